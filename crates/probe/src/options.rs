//! What the probe may do, and how it tells how far it is.

use crate::evidence::ProbeEvidence;
use serde::{Deserialize, Serialize};
use whichfs_units::{MIB, Nanos};

/// What may be written.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Writing {
    /// Nothing: reads only.
    #[default]
    Never,
    /// Each place gets back what was read there just before, so that data survive. Discard
    /// is not tested.
    Preserve,
    /// Random bytes at random places: what is on the card is lost.
    Destroy,
}

/// Bounds of what a probe may cost. When one is reached the probe ends with what it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct ProbeBudget {
    /// Bytes written.
    pub write_bytes: u64,
    /// Time on the device, idle time included.
    pub device: Nanos,
}

impl Default for ProbeBudget {
    /// A quarter of what flashbench's `-f` and `-O` write on a card with AUs of 4 MiB, and half
    /// an hour.
    fn default() -> ProbeBudget {
        ProbeBudget {
            write_bytes: 640 * MIB,
            device: Nanos::from_secs(1800),
        }
    }
}

/// How to probe.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize,
)]
pub struct ProbeOptions {
    /// Decides every place and order.
    pub seed: u64,
    /// What may be written.
    pub writing: Writing,
    /// What it may cost.
    pub budget: ProbeBudget,
}

/// How far a probe is.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbeStep {
    /// What it measures, in words.
    pub doing: &'static str,
    /// Share of the work done, 0 to 1: stages done, weighted by their usual cost.
    pub done: f64,
    /// Time to the end at the pace so far; `None` while nothing is known.
    pub left: Option<Nanos>,
}

/// Whoever watches a probe.
pub trait Progress {
    /// Called before each stage and now and then within one.
    fn step(&mut self, step: &ProbeStep);

    /// Called after each stage with all that is measured: [`crate::resume`] goes on from it.
    fn checkpoint(&mut self, _state: &ProbeEvidence) {}

    /// Whether the probe shall end now with what it has.
    fn stop(&mut self) -> bool {
        false
    }
}

/// Nobody watches.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn step(&mut self, _step: &ProbeStep) {}
}
