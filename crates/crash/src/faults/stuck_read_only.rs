//! Every write and discard fails with an error; reads and flushes succeed.

use crate::fault::{Acts, Effect, FaultEvidence, FaultFacts, Model};
use whichfs_blockdev::Refuses;

pub(super) const FAULT: Model = Model {
    number: 15,
    facts: FaultFacts {
        name: "stuck-read-only",
        meaning: "every write fails, reads succeed",
        acts: Acts::WhileRead,
        evidence: FaultEvidence::Published,
        source: "SD cards at their end: reports of users (superuser.com 1300797, 2018); the SD \
                 specification has such a state (CSD, PERM_WRITE_PROTECT). Cards that do not tell: \
                 dropped",
    },
    excludes: &[],
    effect: Effect::Use(|defects, _, _| defects.refuses = Refuses::Writes),
};
