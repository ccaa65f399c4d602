//! Metrics out of the figures of phases. Pure.

use crate::cpu;
use crate::steps::is_unmount;
use crate::workload::{Rule, Workload};
use whichfs_trial::{DeviceFigures, Metric, PhaseFigures};
use whichfs_units::UnknownName;

/// Bytes in a megabyte, as card makers and the published tables count it.
const MEGABYTE: f64 = 1e6;

/// Phases that every trial may have, and that yield their duration.
const COMMON: [&str; 3] = ["mkfs", "deploy", "mount"];

/// Bytes that the filesystem takes, which the agent measures itself.
const SPACE: &str = "space";

/// A timed operation that takes longer than this is a stall.
const STALL_NS: u64 = 1_000_000_000;

/// How bytes grow on their way to the flash: in all, by the filesystem, by the card.
const AMPLIFICATION: [&str; 3] = [
    "write_amplification",
    "write_amplification_filesystem",
    "write_amplification_card",
];

/// What a second card does while the workload writes: bytes that reach it, how those grow on their
/// way to its flash, erases of its blocks. The amplification of the filesystem and of the card
/// above are those of the first card.
const SECOND_CARD: [(&str, &str); 3] = [
    ("second_card_written", "B"),
    ("second_card_amplification", "1"),
    ("second_card_erases", "erases"),
];

/// Checks that trials of `workload` can yield every metric that is `asked` for.
///
/// # Errors
/// The first metric that they cannot, with the nearest that they can.
pub fn check_metrics<'a>(
    workload: &dyn Workload,
    asked: impl IntoIterator<Item = &'a str>,
) -> Result<(), UnknownName> {
    let own = workload.phases().iter().flat_map(|phase| phase.metrics);
    let known: Vec<String> = own
        .map(|definition| definition.metric)
        .chain(COMMON)
        .chain([SPACE])
        .chain(AMPLIFICATION)
        .chain(SECOND_CARD.map(|(metric, _)| metric))
        .map(str::to_owned)
        .chain(cpu::names(workload))
        .collect();
    match asked
        .into_iter()
        .find(|asked| !known.iter().any(|metric| metric == asked))
    {
        Some(missing) => {
            let listed = format!("`whichfs workload show {}`", workload.name());
            Err(UnknownName::new("metric", missing, &known, Some(&listed)))
        }
        None => Ok(()),
    }
}

/// The metrics of a trial: those of `workload`'s phases, durations of mkfs, deploy and
/// mount, write amplification, `others`, which the agent measured itself (`space`), and the use
/// of the CPU.
///
/// A phase that did not happen yields nothing; neither does a rate over no time.
pub fn metrics(
    workload: &dyn Workload,
    figures: &[PhaseFigures],
    others: &[Metric],
) -> Vec<Metric> {
    let mut found = Vec::new();
    let of = |name: &str| figures.iter().find(|phase| phase.phase == name);
    for name in COMMON {
        found.extend(of(name).and_then(|phase| derive(name, Rule::Seconds, phase)));
    }
    for phase in workload.phases() {
        let Some(measured) = of(phase.name) else {
            continue;
        };
        for definition in phase.metrics {
            found.extend(match definition.rule {
                Rule::Space => used(definition.metric, others),
                Rule::Together(names, rule) => together(names, figures)
                    .and_then(|whole| derive(definition.metric, *rule, &whole)),
                rule @ (Rule::Amplification(names) | Rule::Erases(names)) => {
                    of_flash(definition.metric, rule, names, figures)
                }
                rule => derive(definition.metric, rule, measured),
            });
        }
    }
    found.extend(write_amplification(workload, figures));
    found.extend(second_card(workload, figures));
    let own = |metric: &&Metric| metric.metric != SPACE || !names_space(workload);
    found.extend(others.iter().filter(own).cloned());
    found.extend(cpu::metrics(workload, figures));
    found
}

/// Whether `workload` has a name of its own for the space that is used.
fn names_space(workload: &dyn Workload) -> bool {
    let mut metrics = workload.phases().iter().flat_map(|phase| phase.metrics);
    metrics.any(|metric| metric.rule == Rule::Space)
}

/// One metric of one phase.
fn derive(metric: &str, rule: Rule, phase: &PhaseFigures) -> Option<Metric> {
    let seconds = phase.seconds();
    let rate = |amount: f64| (seconds > 0.0 && amount > 0.0).then(|| amount / seconds);
    let (value, unit, lower_is_better) = match rule {
        // They come with the others.
        Rule::Told { .. }
        | Rule::Space
        | Rule::Together(..)
        | Rule::Amplification(_)
        | Rule::Erases(_) => return None,
        Rule::Seconds => (Some(seconds), "s", true),
        Rule::Throughput => (rate(phase.counts.bytes as f64 / MEGABYTE), "MB/s", false),
        Rule::OperationRate => (rate(phase.latency.count() as f64), "operations/s", false),
        Rule::FileRate => (rate(phase.counts.files as f64), "files/s", false),
        Rule::Percentile99 => (quantile_ms(phase, 99, 100), "ms", true),
        Rule::Median => (quantile_ms(phase, 1, 2), "ms", true),
        Rule::Longest => (quantile_ms(phase, 1, 1), "ms", true),
        Rule::Stalls => {
            let long = phase.latency.0.range(STALL_NS + 1..);
            let stalls = long.map(|(_, &count)| count).sum::<u64>();
            (Some(stalls as f64), "stalls", true)
        }
    };
    Some(Metric {
        metric: metric.to_owned(),
        value: value?,
        unit: unit.to_owned(),
        lower_is_better,
    })
}

/// What the phases called `names` did and took together, as if one had begun where the one before
/// ended.
fn together(names: &[&str], figures: &[PhaseFigures]) -> Option<PhaseFigures> {
    let of = |name: &&str| figures.iter().find(|phase| phase.phase == **name);
    let mut phases = names.iter().map(of);
    let mut whole = phases.next()??.clone();
    for phase in phases {
        let phase = phase?;
        whole.end += phase.end.saturating_sub(phase.begin);
        whole.counts.operations += phase.counts.operations;
        whole.counts.files += phase.counts.files;
        whole.counts.bytes += phase.counts.bytes;
        whole.counts.read_bytes += phase.counts.read_bytes;
        for (&ns, &count) in &phase.latency.0 {
            whole.latency.record_many(ns, count);
        }
    }
    Some(whole)
}

/// What the flash does for what the phases called `names` write into files, as `metric`. A real
/// device does not tell what it programs.
fn of_flash(metric: &str, rule: Rule, names: &[&str], figures: &[PhaseFigures]) -> Option<Metric> {
    let (mut bytes, mut flash) = (0, DeviceFigures::default());
    for name in names {
        let phase = figures.iter().find(|phase| phase.phase == *name)?;
        bytes += phase.counts.bytes - phase.counts.read_bytes;
        flash.add(&phase.device);
    }
    let (value, unit) = match rule {
        Rule::Erases(_) => (flash.erases as f64 * 1e9, "erases/GB"),
        _ => (flash.programmed_bytes as f64, "1"),
    };
    (flash.programmed_bytes > 0 && bytes > 0).then(|| Metric {
        metric: metric.to_owned(),
        value: value / bytes as f64,
        unit: unit.to_owned(),
        lower_is_better: true,
    })
}

/// The used space among what the agent measured itself, as `metric`.
fn used(metric: &str, others: &[Metric]) -> Option<Metric> {
    let space = others.iter().find(|other| other.metric == SPACE)?;
    Some(Metric {
        metric: metric.to_owned(),
        ..space.clone()
    })
}

/// The latency that `numerator / denominator` of the timed operations do not exceed, in ms.
fn quantile_ms(phase: &PhaseFigures, numerator: u64, denominator: u64) -> Option<f64> {
    let bound = phase.latency.quantile_ns(numerator, denominator);
    bound.map(|ns| ns as f64 / 1e6)
}

/// How the bytes that a workload writes grow on their way to the flash, over all its writing
/// phases and the unmounts, where filesystems write what they kept back until then: by the
/// filesystem (bytes that reach the card for each byte written to files), by the card (bytes
/// programmed for each that reaches it), and in all (the product).
fn write_amplification(workload: &dyn Workload, figures: &[PhaseFigures]) -> Vec<Metric> {
    let mut sum = DeviceFigures::default();
    let mut bytes = 0;
    for phase in writing(workload, figures) {
        sum.write_bytes += phase.device.write_bytes;
        sum.programmed_bytes += phase.device.programmed_bytes;
        bytes += phase.counts.bytes - phase.counts.read_bytes;
    }
    let ratio = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
    let filesystem = ratio(sum.write_bytes, bytes).filter(|_| sum.write_bytes > 0);
    // A real device does not tell what it programs.
    let card = sum
        .write_amplification()
        .filter(|_| sum.programmed_bytes > 0);
    let both = filesystem
        .zip(card)
        .map(|(filesystem, card)| filesystem * card);
    AMPLIFICATION
        .into_iter()
        .zip([both, filesystem, card])
        .filter_map(|(metric, value)| {
            Some(Metric {
                metric: metric.to_owned(),
                value: value?,
                unit: "1".to_owned(),
                lower_is_better: true,
            })
        })
        .collect()
}

/// The phases in which `workload` writes, and the unmounts.
fn writing<'f>(
    workload: &dyn Workload,
    figures: &'f [PhaseFigures],
) -> impl Iterator<Item = &'f PhaseFigures> {
    let writes = workload.phases().iter().filter(|phase| phase.writes);
    let names: Vec<&str> = writes.map(|phase| phase.name).collect();
    figures
        .iter()
        .filter(move |phase| names.contains(&phase.phase.as_str()) || is_unmount(&phase.phase))
}

/// What the second card did while the workload wrote; nothing where there is none.
fn second_card(workload: &dyn Workload, figures: &[PhaseFigures]) -> Vec<Metric> {
    let mut sum: Option<DeviceFigures> = None;
    for second in writing(workload, figures).filter_map(|phase| phase.second_card.as_ref()) {
        sum.get_or_insert_default().add(second);
    }
    let Some(sum) = sum else {
        return Vec::new();
    };
    let values = [
        Some(sum.write_bytes as f64),
        sum.write_amplification(),
        Some(sum.erases as f64),
    ];
    SECOND_CARD
        .into_iter()
        .zip(values)
        .filter_map(|((metric, unit), value)| {
            Some(Metric {
                metric: metric.to_owned(),
                value: value?,
                unit: unit.to_owned(),
                lower_is_better: true,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::find;
    use whichfs_trial::{Counts, LatencyHistogram};
    use whichfs_units::Nanos;

    fn phase(name: &str, seconds: u64, counts: Counts) -> PhaseFigures {
        PhaseFigures {
            phase: name.into(),
            begin: Nanos::from_secs(10),
            end: Nanos::from_secs(10 + seconds),
            counts,
            latency: LatencyHistogram::default(),
            device: DeviceFigures {
                write_bytes: 1000,
                programmed_bytes: 3000,
                ..DeviceFigures::default()
            },
            cpu: None,
            second_card: None,
        }
    }

    fn value(metrics: &[Metric], name: &str) -> Option<f64> {
        let mut found = metrics.iter().filter(|metric| metric.metric == name);
        let value = found.next().map(|metric| metric.value);
        assert!(found.next().is_none(), "{name} twice");
        value
    }

    #[test]
    fn figures_made_by_hand() {
        let mut update = phase(
            "random_update",
            4,
            Counts {
                operations: 205,
                files: 0,
                bytes: 200 * 4096,
                read_bytes: 0,
            },
        );
        for ms in 1..=100 {
            update.latency.record(ms * 1_000_000);
        }
        let write = Counts {
            operations: 9,
            files: 8,
            bytes: 30_000_000,
            read_bytes: 0,
        };
        let delete = Counts {
            operations: 70,
            files: 60,
            bytes: 0,
            read_bytes: 0,
        };
        let figures = [
            phase("mount", 2, Counts::default()),
            phase("tree_write", 3, write),
            update,
            phase("delete", 2, delete),
        ];
        let space = Metric {
            metric: "space".into(),
            value: 5.0,
            unit: "B".into(),
            lower_is_better: true,
        };
        let rootfs = find("rootfs").unwrap();
        let metrics = metrics(rootfs, &figures, &[space]);
        let names = metrics.iter().map(|metric| metric.metric.as_str());
        check_metrics(rootfs, names).unwrap();
        assert_eq!(value(&metrics, "mount"), Some(2.0));
        assert_eq!(value(&metrics, "tree_write"), Some(10.0));
        assert_eq!(value(&metrics, "random_update"), Some(25.0));
        let p99 = value(&metrics, "random_update_p99").unwrap();
        assert!((99.0..=102.1).contains(&p99), "{p99}");
        assert_eq!(value(&metrics, "delete"), Some(30.0));
        assert_eq!(value(&metrics, "space"), Some(5.0));
        let filesystem = 3000.0 / (30_000_000.0 + 200.0 * 4096.0);
        let of = |name| value(&metrics, name).unwrap();
        assert_eq!(of("write_amplification_card"), 3.0);
        assert!((of("write_amplification_filesystem") - filesystem).abs() < 1e-12);
        assert!((of("write_amplification") - 3.0 * filesystem).abs() < 1e-12);
        assert_eq!(value(&metrics, "tree_read"), None, "it did not happen");
        let write = metrics
            .iter()
            .find(|metric| metric.metric == "tree_write")
            .unwrap();
        assert!(!write.lower_is_better && write.unit == "MB/s");
    }

    #[test]
    fn a_workload_may_name_the_space_that_is_used() {
        let space = Metric {
            metric: "space".into(),
            value: 5.0,
            unit: "B".into(),
            lower_is_better: true,
        };
        let empty = phase("empty", 1, Counts::default());
        let metrics = metrics(find("mkfs").unwrap(), &[empty], &[space]);
        assert_eq!(value(&metrics, "mkfs_used"), Some(5.0));
        assert_eq!(value(&metrics, "space"), None, "once is enough");
    }

    #[test]
    fn latencies_have_a_median_a_longest_and_stalls() {
        let mut shot = phase("video_record", 60, Counts::default());
        for ms in [1, 2, 3, 900, 1_100, 4_000] {
            shot.latency.record(ms * 1_000_000);
        }
        let of = |rule| derive("x", rule, &shot).unwrap();
        assert!((3.0..3.1).contains(&of(Rule::Median).value));
        assert!((4_000.0..4_126.0).contains(&of(Rule::Longest).value));
        assert_eq!(
            (of(Rule::Stalls).value, of(Rule::Stalls).unit),
            (2.0, "stalls".into())
        );
        shot.latency = LatencyHistogram::default();
        assert_eq!(derive("x", Rule::Stalls, &shot).unwrap().value, 0.0);
        assert_eq!(derive("x", Rule::Longest, &shot), None);
    }

    #[test]
    fn a_figure_with_its_sync_is_that_of_two_phases() {
        let write = Counts {
            operations: 1,
            files: 1,
            bytes: 12_000_000,
            read_bytes: 0,
        };
        let (copies, none) = (find("copies").unwrap(), Counts::default());
        let figures = [
            phase("copies_write", 2, write),
            phase("copies_write_sync", 4, none),
        ];
        let both = metrics(copies, &figures, &[]);
        assert_eq!(value(&both, "copies_write_unsynced"), Some(6.0));
        assert_eq!(value(&both, "copies_write"), Some(2.0));
        let without = metrics(copies, &figures[1..], &[]);
        assert_eq!(value(&without, "copies_write"), None, "a part is missing");
    }

    #[test]
    fn what_read_at_reads_is_not_written() {
        let counts = Counts {
            bytes: 5_000,
            read_bytes: 4_000,
            ..Counts::default()
        };
        let bonnie = find("bonnie").unwrap();
        let metrics = metrics(bonnie, &[phase("random_seeks", 1, counts)], &[]);
        assert_eq!(value(&metrics, "write_amplification_filesystem"), Some(1.0));
    }

    #[test]
    fn what_is_written_at_unmount_counts() {
        let write = Counts {
            operations: 1,
            files: 1,
            bytes: 2_000,
            read_bytes: 0,
        };
        let mut written = phase("tree_write", 1, write);
        written.device = DeviceFigures::default();
        let rootfs = find("rootfs").unwrap();
        let of = |unmount: &str| {
            let late = phase(unmount, 1, Counts::default());
            metrics(rootfs, &[written.clone(), late], &[])
        };
        for unmount in ["unmount", "unmount_2"] {
            let metrics = of(unmount);
            let filesystem = value(&metrics, "write_amplification_filesystem");
            assert_eq!(filesystem, Some(0.5));
            assert_eq!(value(&metrics, "write_amplification"), Some(1.5));
        }
        assert_eq!(value(&of("tree_read"), "write_amplification"), None);
    }

    #[test]
    fn the_wear_of_a_second_card_is_told_apart() {
        let write = Counts {
            operations: 1,
            files: 1,
            bytes: 2_000,
            read_bytes: 0,
        };
        let with = |name: &str, counts| PhaseFigures {
            second_card: Some(DeviceFigures {
                write_bytes: 400,
                programmed_bytes: 1_000,
                erases: 2,
                ..DeviceFigures::default()
            }),
            ..phase(name, 1, counts)
        };
        let rootfs = find("rootfs").unwrap();
        let none = Counts::default();
        let figures = [
            with("mkfs", none),
            with("tree_write", write),
            with("tree_read", none),
            with("unmount", none),
        ];
        let metrics = metrics(rootfs, &figures, &[]);
        let names = metrics.iter().map(|metric| metric.metric.as_str());
        check_metrics(rootfs, names).unwrap();
        let of = |name| value(&metrics, name).unwrap();
        assert_eq!(of("second_card_written"), 800.0, "not what mkfs writes");
        assert_eq!(of("second_card_amplification"), 2.5);
        assert_eq!(of("second_card_erases"), 4.0);
        assert_eq!(of("write_amplification_filesystem"), 1.0, "of the first");
    }

    #[test]
    fn nothing_over_no_time_is_no_rate() {
        let counts = Counts {
            operations: 1,
            files: 1,
            bytes: 1,
            read_bytes: 0,
        };
        let rootfs = find("rootfs").unwrap();
        let metrics = metrics(rootfs, &[phase("tree_write", 0, counts)], &[]);
        assert_eq!(value(&metrics, "tree_write"), None);
    }
}
