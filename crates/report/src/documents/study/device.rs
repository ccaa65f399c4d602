//! Trials on a device: how it went.

use std::collections::BTreeMap;
use std::time::Duration;
use whichfs_decide::{Drift, REFERENCES_MIN};
use whichfs_trial::Trial;
use whichfs_units::{Nanos, counted};

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
