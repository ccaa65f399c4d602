//! Of the request under way any pieces of 4 KiB are kept.

use crate::fault::{Acts, BLOCK, Effect, FaultEvidence, FaultFacts, Model};

pub(super) const FAULT: Model = Model {
    number: 4,
    facts: FaultFacts {
        name: "torn-4k",
        meaning: "any 4 KiB blocks of the write under way are kept",
        acts: Acts::AtCut,
        evidence: FaultEvidence::Published,
        source: "SSDs: Zheng et al., FAST'13, shorn writes",
    },
    excludes: &[],
    effect: Effect::Loss(|rules| rules.pieces = Some(BLOCK)),
};
