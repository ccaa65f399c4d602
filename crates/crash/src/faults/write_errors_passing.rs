//! The first one to four writes of each of eight sectors fail, later ones succeed.

use crate::fault::{Acts, Effect, FaultEvidence, FaultFacts, Model};
use crate::places::{PASSES_AFTER, fail, refused_sectors};
use whichfs_blockdev::Tries;

pub(super) const FAULT: Model = Model {
    number: 22,
    facts: FaultFacts {
        name: "write-errors-passing",
        meaning: "writes of eight sectors fail once to four times, then succeed",
        acts: Acts::WhileRun,
        evidence: FaultEvidence::Published,
        source: "SSDs: Schroeder et al., FAST'16, write errors that succeed when tried again; how \
                 often they fail is a hypothesis",
    },
    excludes: &[],
    effect: Effect::Refusal(|defects, requests, rng| {
        for sector in refused_sectors(requests, rng) {
            let tries = Tries::FailMore(1 + rng.below(PASSES_AFTER) as u32);
            fail(&mut defects.unwritable, sector, tries);
        }
    }),
};
