//! How much of a trial's time its CPU worked, and for how much data; how much of a phase its device
//! was busy. Pure.

use crate::steps::is_unmount;
use crate::workload::Workload;
use whichfs_trial::{CpuTime, Metric, PhaseFigures, busy_metric, cpu_metrics};
use whichfs_units::MIB;

/// Phases beside the workload's own whose CPU time is a figure of its own.
const OTHERS: [&str; 3] = ["mkfs", "deploy", "mount"];

/// What a share of the CPU is taken of.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    cpu_ns: u64,
    time_ns: u64,
    bytes: u64,
}

impl Sum {
    /// The sum with `phase`; `None` if its CPU time is not known.
    fn with(self, phase: &PhaseFigures) -> Option<Sum> {
        let spent = phase.cpu.as_ref().and_then(CpuTime::spent)?;
        Some(Sum {
            cpu_ns: self.cpu_ns + spent.0,
            time_ns: self.time_ns + phase.end.saturating_sub(phase.begin).0,
            bytes: self.bytes + phase.counts.bytes,
        })
    }

    /// CPU time as a share of virtual time, and for each MiB of file content.
    fn metrics(self, prefix: &str) -> impl Iterator<Item = Metric> {
        let ratio = |part: f64, whole: u64| (whole > 0).then(|| part / whole as f64);
        let share = ratio(self.cpu_ns as f64 * 100.0, self.time_ns);
        let each = ratio(self.cpu_ns as f64 / 1e6 * MIB as f64, self.bytes);
        let values = [(share, "%"), (each, "ms/MiB")];
        let named = cpu_metrics(prefix).into_iter().zip(values);
        named.filter_map(|(metric, (value, unit))| {
            Some(Metric {
                metric,
                value: value?,
                unit: unit.to_owned(),
                lower_is_better: true,
            })
        })
    }
}

/// CPU time of the workload's phases and the unmounts together (`cpu`, `cpu_per_mib`), then of
/// each phase under its name, and how busy the device was in it. Nothing where it is not known.
pub(crate) fn metrics(workload: &dyn Workload, figures: &[PhaseFigures]) -> Vec<Metric> {
    let own = |name: &str| workload.phases().iter().any(|phase| phase.name == name);
    let mut whole = figures
        .iter()
        .filter(|figures| own(&figures.phase) || is_unmount(&figures.phase));
    let all = whole.try_fold(Sum::default(), Sum::with);
    let mut found: Vec<Metric> = all.into_iter().flat_map(|sum| sum.metrics("")).collect();
    for figures in figures {
        if own(&figures.phase) || OTHERS.contains(&figures.phase.as_str()) {
            let sum = Sum::default().with(figures);
            found.extend(sum.into_iter().flat_map(|sum| sum.metrics(&figures.phase)));
            found.extend(busy(figures));
        }
    }
    found
}

/// The share of the time of `phase` in which the device had a request to serve; nothing where it
/// had none or nobody saw it.
fn busy(phase: &PhaseFigures) -> Option<Metric> {
    let time_ns = phase.end.saturating_sub(phase.begin).0;
    let busy_ns = phase.device.busy.0.min(time_ns);
    (busy_ns > 0).then(|| Metric {
        metric: busy_metric(&phase.phase),
        value: busy_ns as f64 * 100.0 / time_ns as f64,
        unit: "%".to_owned(),
        lower_is_better: true,
    })
}

/// The names of all that [`metrics`] may give for `workload`.
pub(crate) fn names(workload: &dyn Workload) -> impl Iterator<Item = String> {
    let phases = workload.phases().iter().map(|phase| phase.name);
    let prefixes = phases.chain(OTHERS);
    let whole = cpu_metrics("").into_iter();
    whole.chain(prefixes.flat_map(|phase| {
        let cpu = cpu_metrics(phase).into_iter();
        cpu.chain([busy_metric(phase)])
    }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::find;
    use whichfs_trial::{Counts, DeviceFigures, LatencyHistogram};
    use whichfs_units::Nanos;

    /// A phase of `ms` milliseconds in which the CPU worked `cpu` of them.
    fn phase(name: &str, ms: u64, cpu: Option<u64>, mib: u64) -> PhaseFigures {
        let spent = |ms| CpuTime::Spent {
            nanoseconds: Nanos(ms * 1_000_000),
        };
        PhaseFigures {
            phase: name.into(),
            begin: Nanos(7),
            end: Nanos(7 + ms * 1_000_000),
            counts: Counts {
                bytes: mib * MIB,
                ..Counts::default()
            },
            latency: LatencyHistogram::default(),
            device: DeviceFigures::default(),
            cpu: Some(cpu.map_or_else(|| CpuTime::unknown("it is free"), spent)),
            second_card: None,
        }
    }

    fn of(figures: &[PhaseFigures]) -> Vec<(String, f64)> {
        let found = metrics(find("rootfs").unwrap(), figures);
        found.into_iter().map(|m| (m.metric, m.value)).collect()
    }

    #[test]
    fn cpu_time_is_a_share_of_the_time_and_of_the_bytes() {
        let found = of(&[
            phase("mount", 20, Some(5), 0),
            phase("tree_write", 1000, Some(200), 4),
            phase("delete", 500, Some(250), 0),
            phase("unmount", 500, Some(50), 0),
        ]);
        let expected = [
            ("cpu", 25.0),
            ("cpu_per_mib", 125.0),
            ("mount_cpu", 25.0),
            ("tree_write_cpu", 20.0),
            ("tree_write_cpu_per_mib", 50.0),
            ("delete_cpu", 50.0),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value));
        assert_eq!(found, expected);
        let known: Vec<String> = names(find("rootfs").unwrap()).collect();
        assert!(found.iter().all(|(name, _)| known.contains(name)));
    }

    #[test]
    fn a_device_is_busy_for_a_share_of_its_phase() {
        let at_work = |ms: u64| {
            let mut figures = phase("tree_write", 1000, None, 4);
            figures.device.busy = Nanos(ms * 1_000_000);
            of(&[figures])
        };
        let busy = |share| vec![("tree_write_busy".to_owned(), share)];
        assert_eq!(at_work(250), busy(25.0));
        assert_eq!(at_work(2000), busy(100.0), "of two disks");
        assert!(at_work(0).is_empty());
        let known: Vec<String> = names(find("rootfs").unwrap()).collect();
        assert!(known.contains(&"tree_write_busy".to_owned()));
    }

    #[test]
    fn where_the_cpu_is_free_there_is_no_figure_instead_of_0() {
        let free = [phase("tree_write", 1000, None, 4)];
        assert!(of(&free).is_empty());
        let uncounted = PhaseFigures {
            cpu: None,
            second_card: None,
            ..free[0].clone()
        };
        assert!(of(&[uncounted]).is_empty());
    }
}
