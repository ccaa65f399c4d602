//! Every shipped need asks for what its workload can measure.

use whichfs_decide::sustained::is_sustained;
use whichfs_decide::{Need, POWER_LOSS, SUSTAINED};
use whichfs_trial::WorkloadSpec;

/// What is wrong with what `need` asks for.
fn asks_in_vain(need: &Need) -> Option<String> {
    let workload = match whichfs_workload::find(&need.workload) {
        Ok(workload) => workload,
        Err(error) => return Some(error.to_string()),
    };
    let spec = WorkloadSpec {
        name: need.workload.clone(),
        parameters: need.parameters.clone(),
        tree: None,
        unix: true,
        script: None,
        // A job file of fio, and a command line for whoever takes it for one.
        input: workload.input_flag().map(|_| "[a]\nrw=read\n".into()),
    };
    // Measured by cuts and in the long run, beside the workload's trials.
    let asked = need.weights.keys().chain(&need.requires);
    let asked = asked.filter(|metric| *metric != POWER_LOSS);
    let (long, own): (Vec<&String>, Vec<&String>) = asked.partition(|name| is_sustained(name));
    if let (false, Some(long_use)) = (long.is_empty(), &need.sustained) {
        let work = match whichfs_workload::find(SUSTAINED) {
            Ok(work) => work,
            Err(error) => return Some(error.to_string()),
        };
        let names = long.iter().map(|name| name.as_str());
        if let Err(error) = whichfs_workload::check_metrics(work, names) {
            return Some(error.to_string());
        }
        let known = |name: &String| work.parameters().iter().any(|known| known.name == name);
        if let Some(name) = long_use.parameters.keys().find(|name| !known(name)) {
            return Some(format!("unknown parameter '{name}'"));
        }
    } else if !long.is_empty() {
        return Some(format!("unknown metric '{}': no [sustained]", long[0]));
    }
    let metrics = whichfs_workload::check_metrics(workload, own.into_iter().map(String::as_str));
    let wrong = metrics.err().map(|error| error.to_string());
    wrong.or_else(|| workload.check(&spec).err().map(|error| error.to_string()))
}

#[test]
fn every_need_asks_for_metrics_that_its_workload_yields() {
    let needs = Need::builtin();
    assert!(!needs.is_empty());
    for need in needs {
        assert_eq!(asks_in_vain(&need), None, "{}", need.name);
    }
}

/// The planted faults: a workload, a weight, a requirement and a parameter that do not exist.
#[test]
fn a_need_that_asks_for_something_unmeasured_is_found() {
    let Some(need) = Need::builtin().into_iter().next() else {
        unreachable!("there are needs");
    };
    let check = |need: &Need, word: &str| {
        let found = asks_in_vain(need).unwrap_or_default();
        assert!(found.contains(word), "{found:?}");
    };
    let mut weighs = need.clone();
    let Some(weight) = need.weights.values().next() else {
        unreachable!("{} weighs something", need.name);
    };
    weighs.weights.insert("misspelt".into(), weight.clone());
    check(&weighs, "unknown metric 'misspelt'");
    let mut requires = need.clone();
    requires.requires.push("missing".into());
    check(&requires, "unknown metric 'missing'");
    let mut sets = need.clone();
    sets.parameters.insert("unknown".into(), 1);
    check(&sets, "unknown parameter 'unknown'");
    let mut works = need;
    works.workload = "nothing".into();
    check(&works, "unknown workload 'nothing'");
}

/// Beginnings of the works outside of this repository that rules cite.
const WORKS: [&str; 12] = [
    "Apple, Disk Utility User Guide",
    "Debian Policy ",
    "Filesystem Hierarchy Standard 3.0",
    "Linux 6.13, commit fb6f20ecb121",
    "Linux kernel, Documentation",
    "Microsoft, Overview of FAT, HPFS, and NTFS File Systems",
    "POSIX.1-2017, ",
    "SD Specifications Part 2",
    "dpkg, src/main/archives.c",
    "exFAT specification",
    "linux-libc-dev: netfilter headers",
    "sqlite.org/atomiccommit.html",
];

/// Whether `source` is the need itself, a section of a document of this repository
/// (`docs/crash.md: How it is judged`), or a known work.
fn is_citation(source: &str) -> bool {
    if source == "the definition of this need" || WORKS.iter().any(|work| source.starts_with(work))
    {
        return true;
    }
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    source.split_once(": ").is_some_and(|(path, section)| {
        let text = std::fs::read_to_string(root.join(path)).unwrap_or_default();
        path.ends_with(".md") && text.lines().any(|line| line == format!("## {section}"))
    })
}

#[test]
fn rules_cite_documents_that_exist() {
    for need in Need::builtin() {
        for rule in &need.rules {
            for source in rule.source.split("; ") {
                let fact = rule.fact.name();
                assert!(
                    is_citation(source),
                    "needs/{}.toml: {fact}: '{source}'",
                    need.name
                );
            }
        }
    }
    for none in [
        "whichfs: it is so",
        "docs/none.md: Faults",
        "docs/crash.md: No such section",
        "",
    ] {
        assert!(!is_citation(none), "{none}");
    }
}
