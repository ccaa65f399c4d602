//! What the guest's CPU did, counted by kind, and the time it took.

use serde::{Deserialize, Serialize};
use whichfs_units::Nanos;

/// CpuCounts of the guest's kernel, counted by kind (`/proc/um_cpu`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CpuCounts {
    /// Instructions of the kernel's code, as its compiler estimates them.
    pub code: u64,
    /// Those of innermost loops that call nothing.
    pub loops: u64,
    /// Branches of code that compresses or decompresses.
    pub compression: u64,
    /// Calls of functions; one through a pointer counts twice.
    pub call: u64,
    /// Atomic operations, as a kernel for several processors has them.
    pub atomic: u64,
    /// Bytes copied.
    pub copy: u64,
    /// Bytes filled.
    pub fill: u64,
    /// Bytes checksummed.
    pub checksum: u64,
    /// System calls.
    pub syscall: u64,
    /// Page faults.
    pub fault: u64,
    /// Changes of the running task.
    pub switch: u64,
    /// Interrupts that the kernel handled.
    pub interrupt: u64,
}

impl CpuCounts {
    /// Reads the text of `/proc/um_cpu`: a line `KIND COUNT` for each kind; other lines are
    /// left out. `None` if a kind is missing or its count is no number.
    pub fn parse(text: &str) -> Option<CpuCounts> {
        let of = |kind: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once(' '));
            let (_, count) = lines.find(|(name, _)| *name == kind)?;
            count.parse().ok()
        };
        Some(CpuCounts {
            code: of("code")?,
            loops: of("loop")?,
            compression: of("compression")?,
            call: of("call")?,
            atomic: of("atomic")?,
            copy: of("copy")?,
            fill: of("fill")?,
            checksum: of("checksum")?,
            syscall: of("syscall")?,
            fault: of("fault")?,
            switch: of("switch")?,
            interrupt: of("interrupt")?,
        })
    }

    /// What was done since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &CpuCounts) -> CpuCounts {
        CpuCounts {
            code: self.code.saturating_sub(earlier.code),
            loops: self.loops.saturating_sub(earlier.loops),
            compression: self.compression.saturating_sub(earlier.compression),
            call: self.call.saturating_sub(earlier.call),
            atomic: self.atomic.saturating_sub(earlier.atomic),
            copy: self.copy.saturating_sub(earlier.copy),
            fill: self.fill.saturating_sub(earlier.fill),
            checksum: self.checksum.saturating_sub(earlier.checksum),
            syscall: self.syscall.saturating_sub(earlier.syscall),
            fault: self.fault.saturating_sub(earlier.fault),
            switch: self.switch.saturating_sub(earlier.switch),
            interrupt: self.interrupt.saturating_sub(earlier.interrupt),
        }
    }
}

/// CPU time of a phase: `{"nanoseconds": 5}`, or `{"nanoseconds": null, "why": "…"}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(untagged)]
pub enum CpuTime {
    /// What the kernel did, at the board's prices.
    Spent {
        /// Virtual time that the CPU worked.
        nanoseconds: Nanos,
    },
    /// There is no such figure.
    Unknown {
        /// Always null.
        nanoseconds: (),
        /// Why, in a sentence.
        why: String,
    },
}

impl CpuTime {
    /// No figure, because of `why`.
    pub fn unknown(why: &str) -> CpuTime {
        CpuTime::Unknown {
            nanoseconds: (),
            why: why.to_owned(),
        }
    }

    /// The time, if it is known.
    pub fn spent(&self) -> Option<Nanos> {
        match self {
            CpuTime::Spent { nanoseconds } => Some(*nanoseconds),
            CpuTime::Unknown { .. } => None,
        }
    }
}

/// Ends of the names of CPU metrics: a share of virtual time, and time for each MiB.
const CPU_METRICS: [&str; 2] = ["cpu", "cpu_per_mib"];

/// Names of the metrics about the CPU time of `phase`, or of the whole trial if that is empty.
pub fn cpu_metrics(phase: &str) -> [String; 2] {
    CPU_METRICS.map(|end| match phase {
        "" => end.to_owned(),
        _ => format!("{phase}_{end}"),
    })
}

/// Whether `metric` is a share of time in which the CPU worked. Neither of two shares is better:
/// one is lower because the CPU works less, or because all else takes longer.
pub fn is_cpu_share(metric: &str) -> bool {
    metric == CPU_METRICS[0] || metric.ends_with("_cpu") && is_cpu_of_phase(metric)
}

/// End of the name of a phase's share of time in which the device had a request to serve.
const BUSY: &str = "_busy";

/// Name of the metric about the time of `phase` in which the device had a request to serve.
pub fn busy_metric(phase: &str) -> String {
    format!("{phase}{BUSY}")
}

/// Whether `metric` is a phase's share of time in which the device had a request to serve.
fn is_busy(metric: &str) -> bool {
    metric
        .strip_suffix(BUSY)
        .is_some_and(|phase| !phase.is_empty())
}

/// Whether `metric` is a share of time, in which the CPU worked or the device was busy. Neither of
/// two such shares is the better one.
pub fn is_share(metric: &str) -> bool {
    is_cpu_share(metric) || is_busy(metric)
}

/// Whether `metric` is about what one phase used: time of the CPU, or of the device.
pub fn is_use_of_phase(metric: &str) -> bool {
    is_cpu_of_phase(metric) || is_busy(metric)
}

/// The name of `metric` in words: `tree write`, `mount: share of CPU time`.
pub fn metric_words(metric: &str) -> String {
    let ends = [
        ("_cpu", "share of CPU time"),
        ("_cpu_per_mib", "CPU time per MiB"),
        (BUSY, "share of time that the device is busy"),
    ];
    let mut of_phase = ends.iter().filter_map(|&(end, what)| {
        let phase = metric.strip_suffix(end).filter(|phase| !phase.is_empty());
        Some((phase?, what))
    });
    let (phase, what) = match metric {
        "cpu" => ("", "share of CPU time"),
        "cpu_per_mib" => ("", "CPU time per MiB"),
        _ => of_phase.next().unwrap_or((metric, "")),
    };
    let separator = if phase.is_empty() || what.is_empty() {
        ""
    } else {
        ": "
    };
    format!("{}{separator}{what}", phase.replace('_', " "))
}

/// Whether `metric` is about the CPU time of one phase.
pub fn is_cpu_of_phase(metric: &str) -> bool {
    let of = |end: &str| metric.strip_suffix(end)?.strip_suffix('_');
    CPU_METRICS
        .into_iter()
        .filter_map(of)
        .any(|phase| !phase.is_empty())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn cpu_metrics_are_told_from_others_by_their_names() {
        for metric in cpu_metrics("tree_write") {
            assert!(is_cpu_of_phase(&metric), "{metric}");
        }
        for metric in ["cpu", "cpu_per_mib", "tree_write", "_cpu", "mycpu"] {
            assert!(!is_cpu_of_phase(metric), "{metric}");
        }
    }

    #[test]
    fn shares_are_told_from_cpu_time_per_byte() {
        for metric in ["cpu", "mount_cpu", "tree_write_cpu"] {
            assert!(is_cpu_share(metric), "{metric}");
        }
        for metric in ["cpu_per_mib", "mount_cpu_per_mib", "mount", "_cpu", "mycpu"] {
            assert!(!is_cpu_share(metric), "{metric}");
        }
    }

    #[test]
    fn a_busy_device_is_a_share_of_a_phase_and_no_cpu_time() {
        let busy = busy_metric("tree_write");
        assert!(is_share(&busy) && is_use_of_phase(&busy));
        assert!(!is_cpu_share(&busy) && !is_cpu_of_phase(&busy));
        assert!(is_share("mount_cpu") && is_use_of_phase("mount_cpu_per_mib"));
        for metric in ["busy", "_busy", "tree_write"] {
            assert!(!is_share(metric) && !is_use_of_phase(metric), "{metric}");
        }
    }

    #[test]
    fn metrics_are_named_in_words() {
        for (metric, words) in [
            ("tree_write", "tree write"),
            ("cpu", "share of CPU time"),
            ("cpu_per_mib", "CPU time per MiB"),
            ("tree_write_cpu", "tree write: share of CPU time"),
            ("mount_cpu_per_mib", "mount: CPU time per MiB"),
            ("fill_busy", "fill: share of time that the device is busy"),
        ] {
            assert_eq!(metric_words(metric), words);
        }
    }

    const SHOWN: &str = "code 100\nloop 50\ncompression 2\n\
                         call 20\natomic 3\ncopy 30\nfill 4\nchecksum 5\nsyscall 6\n\
                         fault 7\nswitch 8\ninterrupt 9\ncharged_ns 12345\n";

    #[test]
    fn the_counts_of_the_kernel_are_read_by_name() {
        let work = CpuCounts::parse(SHOWN).unwrap();
        assert_eq!((work.code, work.copy, work.interrupt), (100, 30, 9));
        assert_eq!((work.loops, work.call, work.atomic), (50, 20, 3));
        assert_eq!(CpuCounts::parse(&SHOWN.replace("fill 4\n", "")), None);
        assert_eq!(CpuCounts::parse(&SHOWN.replace("fill 4", "fill x")), None);
    }

    #[test]
    fn work_of_an_interval_is_a_difference() {
        let work = CpuCounts::parse(SHOWN).unwrap();
        let earlier = CpuCounts {
            code: 60,
            copy: 30,
            ..CpuCounts::default()
        };
        let since = work.since(&earlier);
        assert_eq!((since.code, since.copy, since.fill), (40, 0, 4));
    }

    #[test]
    fn a_time_that_is_not_known_is_null_with_the_reason() {
        let spent = CpuTime::Spent {
            nanoseconds: Nanos(5),
        };
        let unknown = CpuTime::unknown("it is free");
        for (time, text) in [
            (spent, r#"{"nanoseconds":5}"#),
            (unknown, r#"{"nanoseconds":null,"why":"it is free"}"#),
        ] {
            assert_eq!(serde_json::to_string(&time).unwrap(), text);
            assert_eq!(serde_json::from_str::<CpuTime>(text).unwrap(), time);
        }
    }
}
