//! Does the operations of a trial: PID 1 in the lab, a static program on a board.
//!
//! The agent gets a [`whichfs_trial::Job`], does its steps in order and reports
//! [`whichfs_trial::Event`]s to a [`Sink`]. It decides nothing: the first failure
//! ends the job with `Event::Error`.

mod aligned;
mod batch;
mod boot;
mod confine;
mod control;
mod deploy;
mod dirents;
mod error;
mod exec;
mod exercise;
mod forget;
mod inspect;
mod kernel_log;
mod modules;
mod monitor;
mod mount;
mod prefaulted_buffer;
mod program;
mod queue;
mod reading;
mod record;
mod requests;
mod ring;
mod sink;
mod standalone;
mod steps;
mod syscall_abi32;
mod walk;
mod work;

pub use boot::{power_off, set_up_guest};
pub use confine::Confinement;
pub use control::{ControlDisk, JOB_MAGIC, RECORDS_OFFSET, encode_job};
pub use error::AgentError;
pub use exec::{Manner, Time, operate};
pub use kernel_log::tail as kernel_log_tail;
pub use mount::{MountOptions, parse_options};
pub use reading::Reader;
pub use record::{RECORD_MAX, records};
pub use sink::{Sink, Stream};
pub use standalone::{guarded, hear_panics, result_to_events, run_standalone};
pub use steps::{Context, perform};
pub use walk::{UnsupportedMetadata, list_tree, unsupported_metadata};
