//! The card has no good block left for eight sectors and answers each write that touches one with
//! an error, each time (SD specification 4.10.1, ERROR; eMMC: likewise). The sector keeps what it
//! held.
//!
//! A program ends at the first call that fails, so what is judged is what was promised before: a
//! call that returned and whose data the card had refused lied (the kernel's "fsyncgate", LWN
//! 752063, 2018).

use crate::fault::{Acts, Effect, FaultEvidence, FaultFacts, Model};
use crate::places::refused_sectors;
use whichfs_blockdev::Tries;

pub(super) const FAULT: Model = Model {
    number: 21,
    facts: FaultFacts {
        name: "write-errors",
        meaning: "writes of eight sectors fail, each time",
        acts: Acts::WhileRun,
        evidence: FaultEvidence::Published,
        source: "SSDs: Schroeder et al., FAST'16, final write errors; Linux' dm-flakey \
                 (error_writes) and xfstests generic/441 test the same",
    },
    excludes: &[],
    effect: Effect::Refusal(|defects, requests, rng| {
        for sector in refused_sectors(requests, rng) {
            defects.unwritable.insert(sector, Tries::Fail);
        }
    }),
};
