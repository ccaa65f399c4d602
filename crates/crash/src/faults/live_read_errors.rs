//! From an instant in the middle half of the run on the card answers each read with an error.

use crate::fault::{Acts, Effect, FaultEvidence, FaultFacts, Model};
use crate::places::from_the_middle;
use whichfs_blockdev::LiveDamage;

pub(super) const FAULT: Model = Model {
    number: 26,
    facts: FaultFacts {
        name: "live-read-errors",
        meaning: "all reads fail, from an instant of the run on",
        acts: Acts::WhileRun,
        evidence: FaultEvidence::Hypothesis,
        source: "of cards none is known that fails all reads and takes writes; dm-flakey's \
                 error_reads",
    },
    excludes: &[],
    effect: Effect::Live(|run, rng| from_the_middle(run, rng, LiveDamage::FailReads)),
};
