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
        source: "SD cards at their end: reports of users (superuser.com 1300797, 2018); the SD \
                 specification has such a state (CSD, PERM_WRITE_PROTECT); dm-flakey's \
                 error_writes",
    },
    excludes: &[],
    effect: Effect::Live(|run, rng| from_the_middle(run, rng, LiveDamage::FailWrites)),
};
