//! A card's geometry and speed from timings: design of experiments, inference, confidence.
//!
//! [`probe`] measures on anything that is a [`whichfs_curves::TimedDevice`]; [`infer`] turns what
//! was measured into [`Findings`]; [`interpret`] does so for a saved flashbench output. Each
//! value has a confidence and its evidence, or there is none and a reason.
//! Pure: no clock, no entropy, no I/O; equal calls on equal devices give equal answers.

mod align;
mod at_random;
mod au_writes;
mod aus_with_data;
mod bench;
mod cache;
mod capacity;
mod evidence;
mod findings;
mod first_aus;
mod folds;
mod infer;
mod infer_streams;
mod infer_writes;
mod interpret;
mod interpret_writes;
mod kept_aus;
mod marks;
mod open_aus;
mod options;
mod places;
mod probe;
mod profile;
mod put_back;
mod rates;
mod stats;
mod steps;
mod sustained;
mod sweep;
mod turns;
mod write_units;
mod zones;

pub use capacity::{CapacityOptions, CapacityReport, Honesty, capacity};
pub use evidence::*;
pub use findings::{CONFIDENT, CardDrift, Finding, Findings, Quantity, Value};
pub use infer::infer;
pub use interpret::interpret;
pub use options::{NextStage, ProbeBudget, ProbeOptions, ProbeStep, Progress, Silent, Writing};
pub use probe::{probe, resume};
pub use profile::RATE_NOISE;
pub use put_back::{Blocks, MemoryOnly, Rescue, UndoLog, marked, rescue};
pub use stats::{Centre, median};
pub use steps::Rise;
pub use sweep::{Sweep, SweepCell, SweepDirection, SweepOrder, sweep, sweep_sizes};
