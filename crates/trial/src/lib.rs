//! What a trial is: the job the agent gets, the events it returns, the record that is kept.
//!
//! These types are the contract between the crates that run trials (lab, agent,
//! here) and those that judge them (study, store, report). They hold data and
//! nothing else; every one of them is JSON on the wire and in the store,
//! but for what an inspection of an image finds, which has a form of its own on the wire.

mod compact;
mod cpu_counts;
mod device_figures;
mod event;
mod found;
mod guest;
mod job;
mod op;
mod record;
mod series;
mod stamped_event;

pub use compact::{MARK, compact, expand};
pub use cpu_counts::{
    CpuCounts, CpuTime, busy_metric, cpu_metrics, is_cpu_of_phase, is_cpu_share, is_share,
    is_use_of_phase, metric_words,
};
pub use device_figures::DeviceFigures;
pub use event::{Counts, Event, LatencyHistogram, RETURNED};
pub use found::{ContentDigest, DirectoryEntry, Node, ZERO_RUNS, content_digest, sector_digest};
pub use guest::{HOST_ROOT, ROOT, SHARED, SHARED_MAX, shared_descriptor, shared_path};
pub use job::{BlockQueue, EXERCISE_NAME, Job, Step, WorkloadSpec};
pub use op::{Content, Op, Pieces};
pub use record::{
    Identity, Measured, Metric, PhaseFigures, REAL, SecondCardIdentity, Status, Trial,
    TrialOutcome, TrialRecord,
};
pub use series::{Series, Slot};
pub use stamped_event::{Conditions, CounterReading, StampedEvent};
