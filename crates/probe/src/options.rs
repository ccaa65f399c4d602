//! What the probe may do, and how it tells how far it is.

use crate::evidence::{ProbeEvidence, Stage};
use serde::{Deserialize, Serialize};
use whichfs_units::arguments::bytes;
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

impl ProbeBudget {
    /// The default, changed by `parts`: bytes (`640M`), a time (`30m`) or one of each, in any
    /// order.
    ///
    /// # Errors
    /// A part that is neither, or two of one kind; in words that begin with the part.
    pub fn parse(parts: &[String]) -> Result<ProbeBudget, String> {
        let mut budget = ProbeBudget::default();
        let mut given = [false; 2];
        for part in parts {
            let kind = match (duration(part), size(part)) {
                (Some(time), _) => {
                    budget.device = time;
                    0
                }
                (None, Some(bytes)) => {
                    budget.write_bytes = bytes;
                    1
                }
                (None, None) => {
                    return Err(format!(
                        "{part}: expected bytes such as 640M or 2G, or a time such as 90s, 30m or \
                         2h"
                    ));
                }
            };
            if std::mem::replace(&mut given[kind], true) {
                let kind = ["a time", "bytes"][kind];
                return Err(format!(
                    "{part}: {kind} stands there twice; give bytes, a time, or one of each"
                ));
            }
        }
        Ok(budget)
    }
}

/// A time with its unit, such as `90s`, of more than nothing.
fn duration(part: &str) -> Option<Nanos> {
    let seconds = match part.chars().last()? {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        _ => return None,
    };
    let number: u64 = part[..part.len() - 1].parse().ok()?;
    let ns = number.checked_mul(seconds)?.checked_mul(1_000_000_000)?;
    (ns > 0).then_some(Nanos(ns))
}

/// Bytes with their unit, such as `640M`, of more than none.
fn size(part: &str) -> Option<u64> {
    let has_unit = part.ends_with(|c: char| !c.is_ascii_digit());
    bytes(part).ok().filter(|bytes| has_unit && *bytes > 0)
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

/// How a probe goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextStage {
    /// With this stage.
    Run(Stage),
    /// The probe ends, because no stage is left.
    Done,
    /// The probe ends, because the stages that are left are not needed; the text says why.
    Enough(String),
}

impl NextStage {
    /// The first of the stages that are `left`.
    pub fn usual(left: &[Stage]) -> NextStage {
        left.first()
            .map_or(NextStage::Done, |stage| NextStage::Run(*stage))
    }
}

/// Whoever watches a probe.
pub trait Progress {
    /// Called before each stage and now and then within one.
    fn step(&mut self, step: &ProbeStep);

    /// Called after each stage with all that is measured: [`crate::resume`] goes on from it.
    fn checkpoint(&mut self, _state: &ProbeEvidence) {}

    /// Which of the stages that are `left` comes next; the usual order is that of `left`.
    fn next(&mut self, left: &[Stage], _state: &ProbeEvidence) -> NextStage {
        NextStage::usual(left)
    }

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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_budget_is_bytes_a_time_or_both() {
        let of = |parts: &[&str]| {
            let parts: Vec<String> = parts.iter().map(|part| (*part).to_owned()).collect();
            ProbeBudget::parse(&parts)
        };
        let both = of(&["2G", "90s"]).unwrap();
        assert_eq!(both.write_bytes, 2 << 30);
        assert_eq!(both.device, Nanos::from_secs(90));
        assert_eq!(of(&[]).unwrap(), ProbeBudget::default());
        assert_eq!(of(&["2h"]).unwrap().device, Nanos::from_secs(7200));
        for twice in [["5M", "5M"], ["90s", "2h"]] {
            let wrong = of(&twice).unwrap_err();
            assert!(wrong.contains("one of each"), "{wrong}");
        }
        for wrong in ["", "12", "x", "5 apples", "0M", "99999999999999G", "-3m"] {
            let told = of(&[wrong]).unwrap_err();
            assert!(told.contains("640M"), "{wrong}: {told}");
        }
    }
}
