//! What an agent says while it works: one JSON object a record.

use crate::cpu_counts::CpuCounts;
use crate::found::DirectoryEntry;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The call of an [`Event::Promise`] that only tells that an operation returned.
pub const RETURNED: &str = "returned";

/// One record of the agent. Whoever receives it stamps it with its clock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A phase begins; device figures are taken at its stamp.
    PhaseBegin {
        /// Name of the phase.
        phase: String,
    },
    /// A phase has ended, successfully.
    PhaseEnd {
        /// Name of the phase.
        phase: String,
        /// What was done.
        counts: Counts,
        /// Latency of each operation, where the workload asks for it.
        latency: LatencyHistogram,
    },
    /// What the kernel did in a phase, counted right before its begin and right after its end.
    Work {
        /// Name of the phase.
        phase: String,
        /// Work of the phase alone, by its kind.
        work: CpuCounts,
    },
    /// The system promised that earlier data are durable (fsync returned, …).
    Promise {
        /// The call that returned: `fsync`, `fdatasync`, `syncfs`, `umount`, `O_SYNC` for a write
        /// that had this flag, or [`RETURNED`].
        call: String,
        /// Path, where the promise is about one file or directory.
        path: String,
        /// Operations of the job's phases that had been done then, the promising one included.
        operations: u64,
    },
    /// A [`crate::Step::Try`] stopped at a failure.
    Failed {
        /// Name of the attempt.
        attempt: String,
        /// What failed and why.
        message: String,
    },
    /// What follows is looked at and not timed, or no longer: the lab's cards answer reads at once.
    Untimed {
        /// True at the begin of what is not timed, false at its end.
        begins: bool,
    },
    /// What a [`crate::Step::Inspect`] found; one of several.
    Found {
        /// Some of the entries.
        entries: Vec<DirectoryEntry>,
    },
    /// Digests of consecutive sectors of a file that a [`crate::Step::Inspect`] asked for, if they
    /// are too many for its entry.
    Sectors {
        /// Path relative to the directory inspected.
        path: String,
        /// Number of the first sector.
        first: u64,
        /// [`crate::sector_digest`] of each.
        digests: Vec<u32>,
    },
    /// What the kernel logged.
    KernelLog {
        /// Lines without level and time.
        lines: Vec<String>,
        /// When the kernel said each line, in microseconds since it started; empty if that is not
        /// told.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        times_us: Vec<u64>,
    },
    /// A figure that is not a duration.
    Metric {
        /// Metric name (`space`, `exit_status`).
        name: String,
        /// Value in `unit`.
        value: f64,
        /// Unit, for example `B`.
        unit: String,
    },
    /// Output of a program that was asked to show it.
    Output {
        /// `stdout`, `stderr`, or the path of a `show_file` step.
        stream: String,
        /// Text; bytes that are not UTF-8 are replaced.
        text: String,
    },
    /// The job failed; nothing follows.
    Error {
        /// What failed and why.
        message: String,
        /// Tail of the kernel log.
        kernel_log: Vec<String>,
    },
    /// All steps were done; nothing follows.
    Done,
}

impl Event {
    /// Whether an agent with an acknowledged job ([`crate::Job::acknowledged`]) waits after it.
    pub fn is_awaited(&self) -> bool {
        matches!(self, Event::Promise { .. } | Event::PhaseBegin { .. })
    }
}

/// What a phase did.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize,
)]
pub struct Counts {
    /// Operations performed.
    pub operations: u64,
    /// Files created, read or deleted.
    pub files: u64,
    /// Bytes of file content written or read.
    pub bytes: u64,
    /// Of these, bytes that `read_at` read: they are not written in a phase that does both.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub read_bytes: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Histogram of latencies: upper bound of a bucket in nanoseconds → count.
///
/// An octave has 32 buckets of equal width, so neighbouring bounds are at most 1/32 apart
/// and a quantile, which is a bound, is at most 1/32 too high. Histograms of different
/// trials have the same buckets and can be added. In JSON a list of `[bound, count]`: the
/// keys of an object are strings, which a tagged event does not turn back into numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(from = "Vec<(u64, u64)>", into = "Vec<(u64, u64)>")]
pub struct LatencyHistogram(pub BTreeMap<u64, u64>);

impl From<Vec<(u64, u64)>> for LatencyHistogram {
    fn from(buckets: Vec<(u64, u64)>) -> LatencyHistogram {
        LatencyHistogram(buckets.into_iter().collect())
    }
}

impl From<LatencyHistogram> for Vec<(u64, u64)> {
    fn from(latency: LatencyHistogram) -> Vec<(u64, u64)> {
        latency.0.into_iter().collect()
    }
}

impl LatencyHistogram {
    /// Adds one operation that took `ns`.
    pub fn record(&mut self, ns: u64) {
        self.record_many(ns, 1);
    }

    /// Adds `count` operations that took `ns` each.
    pub fn record_many(&mut self, ns: u64, count: u64) {
        if count > 0 {
            *self.0.entry(bucket_ns(ns)).or_insert(0) += count;
        }
    }

    /// Number of operations recorded.
    pub fn count(&self) -> u64 {
        self.0.values().sum()
    }

    /// The bucket bound that `numerator / denominator` of all operations do not exceed;
    /// `None` if nothing was recorded.
    pub fn quantile_ns(&self, numerator: u64, denominator: u64) -> Option<u64> {
        let wanted = (self.count() * numerator).div_ceil(denominator).max(1);
        let mut seen = 0;
        self.0.iter().find_map(|(&bound, &count)| {
            seen += count;
            (seen >= wanted).then_some(bound)
        })
    }
}

/// Buckets in an octave, as a power of two.
const BUCKETS_LOG2: u32 = 5;

/// Upper bound of the bucket of `ns`.
fn bucket_ns(ns: u64) -> u64 {
    if ns < 2 << BUCKETS_LOG2 {
        return ns;
    }
    let shift = ns.ilog2() - BUCKETS_LOG2;
    (((ns >> shift) + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn buckets_hold_their_values_within_a_thirty_second() {
        for ns in [0, 1, 63, 64, 65, 66, 1000, 123_456_789, u64::MAX / 2] {
            let bound = bucket_ns(ns);
            assert!(bound >= ns, "{bound} < {ns}");
            assert!(bound - ns <= ns / 32, "{bound} is far above {ns}");
            assert_eq!(bucket_ns(bound), bound, "bounds are in their own bucket");
        }
    }

    #[test]
    fn quantiles_of_a_known_histogram() {
        let mut latency = LatencyHistogram::default();
        assert_eq!(latency.quantile_ns(1, 2), None);
        for ns in 1..=10 {
            latency.record(ns);
        }
        assert_eq!(latency.quantile_ns(1, 2), Some(5));
        assert_eq!(latency.quantile_ns(99, 100), Some(10));
        assert_eq!(latency.quantile_ns(0, 1), Some(1));
    }

    #[test]
    fn latencies_survive_the_wire() {
        let mut latency = LatencyHistogram::default();
        latency.record(2_000_000);
        let event = Event::PhaseEnd {
            phase: "random_update".into(),
            counts: Counts::default(),
            latency,
        };
        let text = serde_json::to_string(&event).unwrap();
        assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), event);
    }

    #[test]
    fn events_are_tagged_json() {
        let event = Event::PhaseBegin {
            phase: "mount".into(),
        };
        let text = serde_json::to_string(&event).unwrap();
        assert_eq!(text, r#"{"event":"phase_begin","phase":"mount"}"#);
        assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), event);
    }
}
