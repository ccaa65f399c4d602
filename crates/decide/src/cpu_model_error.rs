//! How far the virtual CPU is off for some work (`data/cpu_model_error.toml`), and what that makes
//! of the figures of a trial.

use crate::need::Need;
use crate::verdict::Verdict;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::LazyLock;
use whichfs_trial::{Identity, Trial, cpu_metrics};

/// How far a time may be off without a word: the check of docs/boards.md.
pub const WITHIN: f64 = 1.15;

/// Work that was charged in the lab and done by a real kernel.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChargedWork {
    /// In words.
    pub name: String,
    /// Charged time by the real kernel's, the least of the filesystems measured.
    pub least: f64,
    /// The same, the greatest.
    pub most: f64,
    /// Phases that consist of such work: names, or `*` and an end.
    #[serde(default, skip_serializing)]
    phases: Vec<String>,
    /// Beginnings of the names of candidates of which it holds; of all, if empty.
    #[serde(default, skip_serializing)]
    candidates: Vec<String>,
    /// A word that their mkfs or their mount options must have.
    #[serde(default, skip_serializing)]
    option: Option<String>,
    /// The compressor of the image that the workload `stack` makes, for which the candidate does
    /// not matter.
    #[serde(default, skip_serializing)]
    stacked: Option<u64>,
    /// Words that they must not have.
    #[serde(default, skip_serializing)]
    without: Vec<String>,
}

impl ChargedWork {
    /// Whether its time is right to 15 %.
    pub fn is_right(&self) -> bool {
        is_within(self.least) && is_within(self.most)
    }

    /// Whether `phase` of the trial of `identity` is such work.
    fn is_of(&self, identity: &Identity, phase: &str) -> bool {
        let named = |name: &String| match name.strip_prefix('*') {
            Some(end) => phase.ends_with(end),
            None => phase == name,
        };
        let begins = |begin: &String| identity.candidate.starts_with(begin.as_str());
        let has = |word: &String| words(identity).any(|other| other == word);
        if identity.workload == "stack" {
            let value = |name: &str| identity.parameters.get(name).copied();
            return self.stacked.is_some()
                && self.stacked == value("compressor")
                // squashfuse unpacks in user space, which is free.
                && value("squashfuse") != Some(1)
                && self.phases.iter().any(named);
        }
        self.phases.iter().any(named)
            && (self.candidates.is_empty() || self.candidates.iter().any(begins))
            && self.option.iter().all(has)
            && !self.without.iter().any(has)
    }
}

fn is_within(ratio: f64) -> bool {
    (1.0 / WITHIN..=WITHIN).contains(&ratio)
}

/// The words of mkfs' commands and of the mount options.
fn words(identity: &Identity) -> impl Iterator<Item = &str> {
    let commands = identity.mkfs.iter().flatten().map(String::as_str);
    commands
        .chain([identity.mount_options.as_str()])
        .flat_map(|text| text.split([' ', ',', '=', ':']))
}

/// The table, as measured.
pub fn charged_works() -> &'static [ChargedWork] {
    static WORKS: LazyLock<Vec<ChargedWork>> = LazyLock::new(|| {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct File {
            work: Vec<ChargedWork>,
        }
        let text = include_str!("../data/cpu_model_error.toml");
        let file: Result<File, _> = toml::from_str(text);
        file.unwrap_or_else(|error| unreachable!("cpu_model_error.toml is tested: {error}"))
            .work
    });
    &WORKS
}

/// A phase whose figures are off by more than 15 % because of what the virtual CPU takes for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Doubt {
    /// What is charged wrongly.
    pub work: &'static ChargedWork,
    /// Name of the workload's phase.
    pub phase: String,
    /// How many times as long it would take with a real kernel's time, least and greatest.
    pub times: [f64; 2],
}

impl Doubt {
    /// Whether `metric` is a figure of the phase.
    pub fn is_of(&self, metric: &str) -> bool {
        let rest = metric.strip_prefix(self.phase.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
            && !whichfs_trial::is_use_of_phase(metric)
    }
}

/// The doubts of a trial: of phases in which the CPU works so much, and is charged so far off,
/// that they would end more than 15 % earlier or later. Without the clock `cpu` there are none.
pub fn doubts(trial: &Trial) -> Vec<Doubt> {
    if !trial.identity.clock.starts_with("cpu:") {
        return Vec::new();
    }
    let phases = trial.outcome.phases.iter().map(|phase| &phase.phase);
    phases
        .filter_map(|phase| {
            let mut works = charged_works().iter();
            let work = works.find(|work| work.is_of(&trial.identity, phase))?;
            let [share, _] = cpu_metrics(phase);
            let mut metrics = trial.outcome.metrics.iter();
            let share = metrics.find(|metric| metric.metric == share)?.value / 100.0;
            let times = [work.most, work.least].map(|ratio| 1.0 - share + share / ratio);
            (!times.into_iter().all(is_within)).then(|| Doubt {
                work,
                phase: phase.clone(),
                times,
            })
        })
        .collect()
}

/// What is to be said of the figures of `trials` that are wanted: a sentence, without its full
/// stop, for each work that is charged wrongly.
pub fn doubts_told<'a>(
    trials: impl Iterator<Item = &'a Trial>,
    is_wanted: &dyn Fn(&Doubt) -> bool,
) -> Vec<String> {
    let found: Vec<(&str, Doubt)> = trials
        .flat_map(|trial| {
            let doubts = doubts(trial).into_iter();
            doubts.map(|doubt| (trial.identity.candidate.as_str(), doubt))
        })
        .filter(|(_, doubt)| is_wanted(doubt))
        .collect();
    let of = |work: &ChargedWork| {
        let here: Vec<&(&str, Doubt)> = found.iter().filter(|(_, d)| d.work == work).collect();
        (!here.is_empty()).then(|| sentence(work, &here))
    };
    charged_works().iter().filter_map(of).collect()
}

/// Adds to the candidates of `verdict` what is to be said of their `trials`: of phases that count
/// for `need`.
pub fn doubt_ranking(verdict: &mut Verdict, need: &Need, trials: &[Trial]) {
    let counts = |doubt: &Doubt| {
        let mut weights = need.weights.iter();
        weights.any(|(metric, weight)| weight.weight > 0.0 && doubt.is_of(metric))
    };
    for ranked in &mut verdict.ranking {
        let own = |trial: &&Trial| trial.identity.candidate == ranked.candidate;
        let said = doubts_told(trials.iter().filter(own), &counts);
        ranked.caveats.extend(said);
    }
}

fn sentence(work: &ChargedWork, found: &[&(&str, Doubt)]) -> String {
    let list = |set: BTreeSet<&str>| set.into_iter().collect::<Vec<&str>>().join(", ");
    let candidates = list(found.iter().map(|(candidate, _)| *candidate).collect());
    let phases = list(
        found
            .iter()
            .map(|(_, doubt)| doubt.phase.as_str())
            .collect(),
    );
    let times = || found.iter().flat_map(|(_, doubt)| doubt.times);
    let least = times().fold(f64::INFINITY, f64::min);
    let most = times().fold(0.0, f64::max);
    format!(
        "{phases} ({candidates}): a real kernel would take {} times as long, for the virtual CPU \
         takes {} of its time: {} (docs/boards.md)",
        range(least, most),
        range(work.least, work.most),
        work.name
    )
}

/// `0.82 to 0.86`, or one figure if they are the same.
pub fn range(least: f64, most: f64) -> String {
    let [least, most] = [least, most].map(|value| format!("{value:.2}"));
    match least == most {
        true => least,
        false => format!("{least} to {most}"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use whichfs_trial::{Counts, DeviceFigures, LatencyHistogram, Metric, PhaseFigures, Status};
    use whichfs_units::Nanos;

    fn trial(candidate: &str, mount: &str, phase: &str, share: f64) -> Trial {
        let identity = format!(
            r#"{{"card":"a1-32gb","card_sha256":"","card_state":"used","board":"pandora",
            "board_sha256":"","clock":"cpu:pandora","kernel":"6.12","kernel_sha256":"",
            "candidate":"{candidate}","mkfs":[["mksquashfs","-comp","gzip"]],
            "mount_options":"{mount}","workload":"bonnie","parameters":{{}},"tree_sha256":"",
            "partition_offset":0,"partition_bytes":1,"memory_mib":512,"version":"0.1",
            "agent_sha256":"","tools":{{}},"cpu_features_sha256":"","seed":7}}"#
        );
        let metric = |name: &str, value: f64, unit: &str| Metric {
            metric: name.to_owned(),
            value,
            unit: unit.to_owned(),
            lower_is_better: true,
        };
        Trial {
            identity: serde_json::from_str(&identity).unwrap(),
            outcome: whichfs_trial::TrialOutcome {
                status: Status::Done,
                phases: vec![PhaseFigures {
                    phase: phase.to_owned(),
                    begin: Nanos(0),
                    end: Nanos(100),
                    counts: Counts::default(),
                    latency: LatencyHistogram::default(),
                    device: DeviceFigures::default(),
                    cpu: None,
                    second_card: None,
                }],
                metrics: vec![
                    metric(phase, 3.0, "s"),
                    metric(&format!("{phase}_cpu"), share, "%"),
                ],
                trace_sha256: String::new(),
                virtual_time: Nanos(100),
                series: None,
                erase_spread: None,
                conditions: None,
            },
        }
    }

    #[test]
    fn the_table_is_legal_and_some_of_it_is_off() {
        let works = charged_works();
        assert!(works.len() > 10);
        for work in works {
            assert!(work.least <= work.most && work.least > 0.1, "{}", work.name);
        }
        let right = works.iter().filter(|work| work.is_right()).count();
        assert!(right > 3 && right < works.len(), "{right}");
    }

    #[test]
    fn work_that_is_charged_wrongly_is_told_where_the_cpu_works_that_much() {
        let busy = trial("ext4", "noatime", "random_stat", 96.0);
        let found = doubts(&busy);
        assert_eq!(found.len(), 1);
        let [least, most] = found[0].times;
        // 4 % as they are, 96 % by 1/0.86 and 1/0.82.
        assert!((least - 1.156).abs() < 0.001 && (most - 1.211).abs() < 0.001);
        assert!(found[0].is_of("random_stat") && found[0].is_of("random_stat_p99"));
        assert!(!found[0].is_of("random_stat_cpu") && !found[0].is_of("random_status"));
        let said = doubts_told([&busy].into_iter(), &|_| true);
        assert!(
            said[0].starts_with("random_stat (ext4): a real kernel would take 1.16 to 1.21 times"),
            "{said:?}"
        );
        assert!(doubts_told([&busy].into_iter(), &|_| false).is_empty());
    }

    #[test]
    fn where_the_card_decides_or_the_charge_is_right_there_is_no_doubt() {
        for (candidate, mount, phase, share) in [
            ("ext4", "noatime", "random_stat", 30.0),
            ("ext4", "noatime", "random_create", 99.0),
            ("ext4", "noatime", "random_delete", 99.0),
            ("btrfs", "noatime,compress=zstd", "tree_write", 99.0),
            ("erofs", "ro", "tree_read", 99.0),
        ] {
            let found = doubts(&trial(candidate, mount, phase, share));
            assert!(found.is_empty(), "{candidate} {phase}: {found:?}");
        }
    }

    #[test]
    fn candidates_and_options_tell_whose_work_it_is() {
        for (candidate, mount, phase) in [
            ("btrfs", "noatime", "random_delete"),
            ("btrfs", "noatime", "sequential_write"),
            ("btrfs", "noatime,compress=lzo", "tree_write"),
            ("squashfs-zstd", "ro", "tree_read"),
            ("erofs-lz4hc", "ro", "tree_read"),
        ] {
            let found = doubts(&trial(candidate, mount, phase, 99.0));
            assert_eq!(found.len(), 1, "{candidate} {phase}");
        }
        let gzip = doubts(&trial("squashfs-zstd", "ro", "tree_read", 99.0));
        assert_eq!(gzip[0].work.least, 0.72, "by its mkfs, not by its name");
        let plain = doubts(&trial("btrfs", "compress=zlib", "sequential_write", 99.0));
        assert!(plain.is_empty(), "{plain:?}");
    }

    #[test]
    fn the_image_that_is_stacked_tells_by_its_compressor() {
        let mut stack = trial("vfat", "noatime", "appstart", 99.0);
        stack.identity.workload = "stack".to_owned();
        assert!(doubts(&stack).is_empty(), "no image");
        stack.identity.parameters.insert("compressor".to_owned(), 1);
        let found = doubts(&stack);
        assert_eq!(found[0].work.least, 0.72);
        assert!(found[0].is_of("appstart"));
    }

    #[test]
    fn where_the_cpu_is_free_nothing_is_charged() {
        let mut free = trial("ext4", "noatime", "random_stat", 99.0);
        free.identity.clock = "device".to_owned();
        assert!(doubts(&free).is_empty());
    }
}
