//! Workloads: what is done in which phase, and what is measured.

use crate::document::Document;
use crate::text::{folded, table};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use whichfs_study::Study;
use whichfs_workload::{Parameter, PhaseDef, Rule, Workload};

/// A line of `workload list`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WorkloadLine {
    name: &'static str,
    title: &'static str,
    takes_tree: bool,
    phases: Vec<&'static str>,
}

/// The document of `workload show`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WorkloadShown {
    name: &'static str,
    title: &'static str,
    takes_tree: bool,
    needs_input: Option<&'static str>,
    phases: Vec<Phase>,
    parameters: Vec<ParameterLine>,
    /// The forms in which studies run it.
    studies: Vec<WorkloadForm>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Phase {
    name: &'static str,
    meaning: &'static str,
    cold: bool,
    writes: bool,
    metrics: Vec<Metric>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Metric {
    metric: &'static str,
    unit: &'static str,
    lower_is_better: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ParameterLine {
    name: &'static str,
    default: u64,
    min: u64,
    max: u64,
    unit: &'static str,
    meaning: &'static str,
}

impl Document for WorkloadLine {
    const NAME: &'static str = "workload list";
}

impl Document for WorkloadShown {
    const NAME: &'static str = "workload show";
}

/// What a shipped study gives a workload: the size of the original, where it is known, and a small
/// one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WorkloadForm {
    /// Name of the study.
    pub study: String,
    /// What it calls the workload.
    pub name: String,
    /// Parameters that are not the default.
    pub full: BTreeMap<String, u64>,
    /// The same of the quick form.
    pub quick: BTreeMap<String, u64>,
}

impl WorkloadForm {
    /// The forms in which `studies` run `workload`, each once.
    pub fn all(workload: &str, studies: Vec<Study>) -> Vec<WorkloadForm> {
        let mut found: Vec<WorkloadForm> = Vec::new();
        for study in studies {
            let (name, loads) = match study {
                Study::Crash(study) => (study.name, study.workloads),
                Study::Performance(study) => (study.name, study.workloads),
            };
            for load in loads.into_iter().filter(|load| load.workload == workload) {
                found.push(WorkloadForm {
                    study: name.clone(),
                    quick: load.quick_parameters(),
                    name: load.name,
                    full: load.parameters,
                });
            }
        }
        found
    }
}

/// All workloads, a line each.
pub fn workload_lines() -> Vec<WorkloadLine> {
    let line = |workload: &dyn Workload| WorkloadLine {
        name: workload.name(),
        title: workload.title(),
        takes_tree: workload.takes_tree(),
        phases: workload.phases().iter().map(|phase| phase.name).collect(),
    };
    whichfs_workload::every().map(line).collect()
}

/// A table of workloads, of at most `width` columns.
pub fn workload_table(lines: &[WorkloadLine], width: usize) -> String {
    let rows = lines.iter().map(|workload| {
        vec![
            workload.name.to_owned(),
            workload.title.to_owned(),
            workload.phases.join(", "),
        ]
    });
    table(&["name", "stands for", "phases"], rows.collect(), width)
}

impl WorkloadShown {
    /// One workload: phases, metrics, parameters, and the forms in which `studies` run it.
    pub fn new(workload: &dyn Workload, studies: Vec<Study>) -> WorkloadShown {
        WorkloadShown {
            name: workload.name(),
            title: workload.title(),
            takes_tree: workload.takes_tree(),
            needs_input: workload.input_flag(),
            phases: workload.phases().iter().map(phase).collect(),
            parameters: workload.parameters().iter().map(parameter).collect(),
            studies: WorkloadForm::all(workload.name(), studies),
        }
    }
}

fn phase(phase: &PhaseDef) -> Phase {
    let metric = |rule: Rule, metric: &'static str| {
        let one = match rule {
            Rule::Together(_, rule) => *rule,
            rule => rule,
        };
        let (unit, lower_is_better) = match one {
            Rule::Space => ("B", true),
            Rule::Seconds | Rule::Together(..) => ("s", true),
            Rule::Amplification(_) => ("1", true),
            Rule::Erases(_) => ("erases/GB", true),
            Rule::Throughput => ("MB/s", false),
            Rule::OperationRate => ("operations/s", false),
            Rule::FileRate => ("files/s", false),
            Rule::Percentile99 | Rule::Median | Rule::Longest => ("ms", true),
            Rule::Stalls => ("stalls", true),
            Rule::Told {
                unit,
                lower_is_better,
            } => (unit, lower_is_better),
        };
        Metric {
            metric,
            unit,
            lower_is_better,
        }
    };
    Phase {
        name: phase.name,
        meaning: phase.meaning,
        cold: phase.cold,
        writes: phase.writes,
        metrics: phase
            .metrics
            .iter()
            .map(|def| metric(def.rule, def.metric))
            .collect(),
    }
}

fn parameter(parameter: &Parameter) -> ParameterLine {
    ParameterLine {
        name: parameter.name,
        default: parameter.default,
        min: parameter.min,
        max: parameter.max,
        unit: parameter.unit,
        meaning: parameter.meaning,
    }
}

/// Parameters that are not the default, in words.
fn assigned(parameters: &BTreeMap<String, u64>) -> String {
    let pairs = parameters
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    let all: Vec<String> = pairs.collect();
    match all.is_empty() {
        true => "the defaults".to_owned(),
        false => all.join(" "),
    }
}

/// One workload in lines of at most `width` columns.
pub fn workload_text(workload: &WorkloadShown, width: usize) -> String {
    let mut text = format!("{}: {}\n\n", workload.name, workload.title);
    let phases = workload.phases.iter().map(|phase| {
        let metrics: Vec<String> = phase
            .metrics
            .iter()
            .map(|m| {
                let better = if m.lower_is_better { "lower" } else { "higher" };
                format!("{} in {}, {better} is better", m.metric, m.unit)
            })
            .collect();
        vec![
            phase.name.to_owned(),
            phase.meaning.to_owned(),
            metrics.join("\n"),
        ]
    });
    let _ = writeln!(
        text,
        "{}\n",
        table(
            &["phase", "what is done", "metrics"],
            phases.collect(),
            width
        )
    );
    let parameters = workload.parameters.iter().map(|p| {
        vec![
            p.name.to_owned(),
            p.default.to_string(),
            format!("{}–{}", p.min, p.max),
            p.unit.to_owned(),
            p.meaning.to_owned(),
        ]
    });
    let head = ["parameter", "default", "range", "unit", "what it decides"];
    let _ = writeln!(text, "{}\n", table(&head, parameters.collect(), width));
    if !workload.studies.is_empty() {
        let rows = workload.studies.iter().map(|form| {
            vec![
                form.study.clone(),
                form.name.clone(),
                assigned(&form.full),
                assigned(&form.quick),
            ]
        });
        let head = ["study", "workload there", "in full", "--quick"];
        let _ = writeln!(text, "{}\n", table(&head, rows.collect(), width));
    }
    for sentence in beside(workload) {
        let _ = writeln!(text, "{}", folded(&sentence, 0, width));
    }
    text.truncate(text.trim_end().len());
    text
}

/// What else is to be known of a workload, a paragraph each.
fn beside(workload: &WorkloadShown) -> Vec<String> {
    let mut all = vec![
        "Also measured in every trial: mkfs or deploy, and mount (s), space (B), \
         write_amplification (and its parts: _filesystem, _card), cpu (% of the time that the \
         kernel worked) and cpu_per_mib (ms/MiB); both for each phase too (PHASE_cpu), and \
         PHASE_busy (% of the phase in which the card had a request to serve)."
            .to_owned(),
    ];
    let mut metrics = workload.phases.iter().flat_map(|phase| &phase.metrics);
    if metrics.any(|metric| metric.metric.ends_with("_p99")) {
        all.push(
            "NAME_p99: the time that 99 of 100 operations of the phase do not exceed (_p50: half \
             of them; _p999: 999 of 1,000)."
                .to_owned(),
        );
    }
    all.extend(
        workload
            .needs_input
            .map(|input| format!("It needs {input}.")),
    );
    if workload.takes_tree {
        let sentence = "--tree DIR replaces the generated tree by the files of a directory.";
        all.push(sentence.to_owned());
    }
    all
}
