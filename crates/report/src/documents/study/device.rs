//! Trials on a device: how it went.

use super::DeviceMeasured;
use std::collections::BTreeMap;
use std::time::Duration;
use whichfs_decide::{BudgetLimit, Drift, REFERENCES_MIN};
use whichfs_trial::Trial;
use whichfs_units::{Bytes, Nanos, counted, shell_word};

/// What trials that are to run cost, and what they may.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceCosts<'a> {
    /// Estimated time, if all of it can be told.
    pub time: Option<Duration>,
    /// Estimated bytes that they write.
    pub bytes: u64,
    /// Workloads whose programs write what only they know.
    pub unknown: Vec<&'a str>,
    /// Bytes written in this session so far.
    pub spent: u64,
    /// Bytes that may be written in it.
    pub limit: Option<u64>,
}

impl DeviceCosts<'_> {
    /// The costs in a sentence.
    pub fn told(&self) -> String {
        let time = match self.time {
            Some(time) => format!("take about {}", time_words(time)),
            None => "take a time that is not known yet".to_owned(),
        };
        let most = match self.limit {
            Some(most) => format!("; --max-write allows {}", Bytes(most)),
            None => "; --max-write SIZE limits that".to_owned(),
        };
        let unknown = match self.unknown[..] {
            [] => String::new(),
            _ => format!(
                " and what only the program of {} knows",
                self.unknown.join(" and ")
            ),
        };
        format!(
            "They {time} and write about {}{unknown} to the device ({} were written in this \
             session{most}).",
            Bytes(self.bytes),
            Bytes(self.spent)
        )
    }
}

/// What is left on a device after the last trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceAfter {
    /// A directory: its files were removed.
    Directory,
    /// A device of this machine: what the last trial left.
    Local,
    /// The same on a board.
    Remote,
}

/// How the `trials` of a device went that was `measured`: changes of the device, heat, what of the
/// budget was used up, and what is on it now.
pub fn device_sentences(
    measured: &DeviceMeasured,
    trials: &[&Trial],
    after: DeviceAfter,
) -> Vec<String> {
    let mut said = vec![drift_told(measured.reference_runs, &measured.drifts)];
    said.push(warmth(trials));
    said.extend(kernel_threads(trials));
    said.push(format!(
        "Written to the device in this session: {}.",
        Bytes(measured.written_bytes)
    ));
    said.extend(measured.stopped.map(|spent| match spent {
        BudgetLimit::Time => "The time is spent; the same command goes on.".to_owned(),
        BudgetLimit::Bytes => format!(
            "No more trials: the next one would write more than --max-write allows, or began to \
             and was ended. {} kept; with a larger --max-write the same command goes on.",
            counted(trials.len(), "finished trial")
        ),
    }));
    let path = &measured.path;
    said.push(match after {
        DeviceAfter::Directory => format!("What trials wrote in {path} was removed."),
        DeviceAfter::Local => format!(
            "On {path} is what the last trial left: whichfs format {} makes it fit for use.",
            shell_word(path)
        ),
        DeviceAfter::Remote => {
            format!("On {path} is what the last trial left: format it before use.")
        }
    });
    said
}

/// Whether the device changed, by so many `runs` of the reference trial that `found` changes.
pub fn drift_told(runs: usize, found: &[Drift]) -> String {
    if runs < REFERENCES_MIN {
        return format!(
            "Whether the device changed is not known: {} of {REFERENCES_MIN} needed.",
            counted(runs, "reference run")
        );
    }
    if found.is_empty() {
        return format!("The device did not change: {runs} reference runs are alike.");
    }
    let each = found.iter().map(|drift| {
        let (change, spread) = (drift.change * 100.0, drift.spread * 100.0);
        format!(
            "{} {change:+.0} % (runs scatter by {spread:.0} %)",
            drift.metric
        )
    });
    let list = each.collect::<Vec<_>>().join(", ");
    format!("The device changed from the first to the last of {runs} reference runs: {list}.")
}

/// Temperatures and throttling during `trials`.
pub fn warmth(trials: &[&Trial]) -> String {
    let all = || {
        trials
            .iter()
            .filter_map(|trial| trial.outcome.conditions.as_ref())
    };
    let mut parts = Vec::new();
    for (what, name) in [("disk", "device"), ("cpu", "CPU")] {
        let ranges: Vec<(f64, f64)> = all()
            .filter_map(|one| one.temperatures.get(what).copied())
            .collect();
        let low = ranges.iter().map(|range| range.0).fold(f64::MAX, f64::min);
        let high = ranges.iter().map(|range| range.1).fold(f64::MIN, f64::max);
        parts.push(match ranges.is_empty() {
            true => format!("{name} not known"),
            false => format!("{name} {low:.0} to {high:.0} °C"),
        });
    }
    let throttled: Vec<u64> = all().filter_map(|one| one.throttled).collect();
    parts.push(match throttled.iter().sum::<u64>() {
        _ if throttled.is_empty() => "throttling not known".to_owned(),
        0 => "never throttled".to_owned(),
        times => format!("throttled {}", counted(times, "time")),
    });
    format!("Temperature: {}.", parts.join(", "))
}

/// CPU time of the kernel's threads during `trials`, the busiest first; none if none had any.
pub fn kernel_threads(trials: &[&Trial]) -> Option<String> {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for one in trials
        .iter()
        .filter_map(|trial| trial.outcome.conditions.as_ref())
    {
        for (name, time) in &one.threads {
            *sums.entry(name).or_default() += time.0;
        }
    }
    let mut all: Vec<(&str, u64)> = sums.into_iter().collect();
    all.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let each = all
        .iter()
        .take(THREADS)
        .map(|(name, ns)| format!("{name} {}", Nanos(*ns)));
    let list = each.collect::<Vec<_>>().join(", ");
    (!list.is_empty()).then(|| format!("CPU time of kernel threads of the machine: {list}."))
}

/// Kernel threads that are listed.
const THREADS: usize = 6;

/// A time as a person says it.
pub fn time_words(time: Duration) -> String {
    match time.as_secs() {
        s if s < 90 => format!("{s} s"),
        s if s < 5400 => format!("{} min", s / 60),
        s => format!("{:.1} h", s as f64 / 3600.0),
    }
}
