//! How far figures of the lab are from those of the device that it models.

use super::median;
use crate::agreement::kendall_tau_b;
use crate::evidence::Sample;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A metric in both places.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Distance {
    /// Name as trials report it.
    pub metric: String,
    /// Unit of the figures.
    pub unit: String,
    /// Medians of each candidate that has both: of the lab, of the device.
    pub candidates: BTreeMap<String, (f64, f64)>,
    /// What the device has for each that the lab has: the geometric mean over candidates.
    pub ratio: f64,
    /// How far both rank the candidates alike (Kendall's tau-b); `None` where that says nothing.
    pub tau_b: Option<f64>,
}

/// The metrics that both `lab` and `device` have, in the order of their names.
pub fn distances(lab: &[Sample], device: &[Sample]) -> Vec<Distance> {
    let names: BTreeSet<&String> = device.iter().map(|sample| &sample.metric).collect();
    names
        .into_iter()
        .filter_map(|metric| distance(metric, lab, device))
        .collect()
}

fn distance(metric: &str, lab: &[Sample], device: &[Sample]) -> Option<Distance> {
    let (lab, measured) = (medians(metric, lab), medians(metric, device));
    let both = measured.iter().filter_map(|(candidate, &there)| {
        let here = *lab.get(candidate)?;
        (here > 0.0 && there > 0.0).then(|| (candidate.clone(), (here, there)))
    });
    let candidates: BTreeMap<String, (f64, f64)> = both.collect();
    if candidates.is_empty() {
        return None;
    }
    let logs = candidates.values().map(|(lab, device)| (device / lab).ln());
    let ratio = (logs.sum::<f64>() / candidates.len() as f64).exp();
    let pairs: Vec<(f64, f64)> = candidates.values().copied().collect();
    let unit = device.iter().find(|sample| sample.metric == metric);
    Some(Distance {
        metric: metric.to_owned(),
        unit: unit.map(|sample| sample.unit.clone()).unwrap_or_default(),
        candidates,
        ratio,
        tau_b: kendall_tau_b(&pairs),
    })
}

/// Medians of `metric` by candidate.
fn medians(metric: &str, samples: &[Sample]) -> BTreeMap<String, f64> {
    let mut values: BTreeMap<&String, Vec<f64>> = BTreeMap::new();
    for sample in samples.iter().filter(|sample| sample.metric == metric) {
        values
            .entry(&sample.candidate)
            .or_default()
            .push(sample.value);
    }
    let medians = values.into_iter();
    medians
        .filter_map(|(name, values)| Some((name.clone(), median(values)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn sample(candidate: &str, metric: &str, seed: u64, value: f64) -> Sample {
        Sample {
            candidate: candidate.into(),
            metric: metric.into(),
            unit: "MB/s".into(),
            seed,
            value,
            lower_is_better: false,
        }
    }

    #[test]
    fn a_distance_is_told_of_what_both_places_have() {
        let lab = [
            sample("ext4", "write", 1, 10.0),
            sample("ext4", "write", 2, 12.0),
            sample("ext4", "write", 3, 11.0),
            sample("f2fs", "write", 1, 22.0),
            sample("ext4", "erases", 1, 5.0),
            sample("xfs", "write", 1, 9.0),
        ];
        let device = [
            sample("ext4", "write", 1, 22.0),
            sample("f2fs", "write", 1, 44.0),
            sample("btrfs", "write", 1, 1.0),
            sample("ext4", "mount", 1, 0.0),
        ];
        let found = distances(&lab, &device);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].candidates.len(), 2);
        assert_eq!(found[0].candidates["ext4"], (11.0, 22.0));
        assert!((found[0].ratio - 2.0).abs() < 1e-12);
        assert_eq!(found[0].tau_b, Some(1.0));
        assert_eq!(found[0].unit, "MB/s");
    }
}
