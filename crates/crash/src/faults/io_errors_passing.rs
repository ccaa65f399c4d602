//! The first one to four reads of each of eight written sectors fail, later ones succeed.

use crate::fault::{Acts, Effect, FaultEvidence, FaultFacts, Model};
use crate::places::{PASSES_AFTER, fail, written_sectors};
use whichfs_blockdev::Tries;

pub(super) const FAULT: Model = Model {
    number: 19,
    facts: FaultFacts {
        name: "io-errors-passing",
        meaning: "eight written sectors fail to read once to four times, then succeed",
        acts: Acts::WhileRead,
        evidence: FaultEvidence::Published,
        source: "SSDs: Schroeder et al., FAST'16, read errors that succeed when tried again; how \
                 often they fail is a hypothesis",
    },
    excludes: &[],
    effect: Effect::Use(|defects, seen, rng| {
        for sector in written_sectors(seen, rng) {
            let tries = Tries::FailMore(1 + (rng.next_u64() % PASSES_AFTER) as u32);
            fail(&mut defects.unreadable, sector, tries);
        }
    }),
};
