//! Every shipped need asks for what its workload can measure.

use std::collections::BTreeSet;
use whichfs_study::Need;

/// Metrics that every trial may have, whatever its workload.
const COMMON: [&str; 5] = ["mkfs", "deploy", "mount", "space", "write_amplification"];

/// What `need` asks for and cannot have.
fn unmeasured(need: &Need) -> Vec<String> {
    let Ok(workload) = whichfs_workload::find(&need.workload) else {
        return vec![format!("workload {}", need.workload)];
    };
    let phases = workload.phases().iter();
    let mut known: BTreeSet<&str> = phases
        .flat_map(|phase| phase.metrics)
        .map(|definition| definition.metric)
        .collect();
    known.extend(COMMON);
    let asked = need.weights.keys().chain(&need.requires);
    let metrics = asked
        .filter(|metric| !known.contains(metric.as_str()))
        .cloned();
    let known: Vec<&str> = workload
        .parameters()
        .iter()
        .map(|known| known.name)
        .collect();
    let parameters = need
        .parameters
        .keys()
        .filter(|name| !known.contains(&name.as_str()));
    metrics.chain(parameters.cloned()).collect()
}

#[test]
fn every_need_asks_for_metrics_that_its_workload_yields() {
    let needs = Need::builtin();
    assert!(!needs.is_empty());
    for need in needs {
        assert_eq!(unmeasured(&need), Vec::<String>::new(), "{}", need.name);
    }
}

/// The planted faults: a workload, a weight, a requirement and a parameter that do not exist.
#[test]
fn a_need_that_asks_for_something_unmeasured_is_found() {
    let Some(need) = Need::builtin().into_iter().next() else {
        unreachable!("there are needs");
    };
    let mut weighs = need.clone();
    let Some(weight) = need.weights.values().next() else {
        unreachable!("{} weighs something", need.name);
    };
    weighs.weights.insert("misspelt".into(), weight.clone());
    assert_eq!(unmeasured(&weighs), ["misspelt"]);
    let mut requires = need.clone();
    requires.requires.push("missing".into());
    assert_eq!(unmeasured(&requires), ["missing"]);
    let mut sets = need.clone();
    sets.parameters.insert("unknown".into(), 1);
    assert_eq!(unmeasured(&sets), ["unknown"]);
    let mut works = need;
    works.workload = "nothing".into();
    assert_eq!(unmeasured(&works), ["workload nothing"]);
}
