//! From an instant in the middle half of the run on the card answers each write and discard with an
//! error: it has gone read-only.

use crate::fault::{Acts, Effect, FaultEvidence, FaultFacts, Model};
use crate::places::from_the_middle;
use whichfs_blockdev::LiveDamage;

pub(super) const FAULT: Model = Model {
    number: 27,
    facts: FaultFacts {
        name: "live-write-errors",
        meaning: "all writes fail, from an instant of the run on",
        acts: Acts::WhileRun,
        evidence: FaultEvidence::Published,
        source: "cards that protect themselves from writes when no good blocks are left (SD \
                 specification 4.10.1, WP_VIOLATION; JESD84, PRE_EOL_INFO); dm-flakey's \
                 error_writes",
    },
    excludes: &[],
    effect: Effect::Live(|run, rng| from_the_middle(run, rng, LiveDamage::FailWrites)),
};
