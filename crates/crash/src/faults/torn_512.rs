//! Of the request under way any pieces of 512 bytes are kept.

use crate::fault::{Acts, Effect, FaultEvidence, FaultFacts, Model};
use whichfs_units::SECTOR;

pub(super) const FAULT: Model = Model {
    number: 3,
    facts: FaultFacts {
        name: "torn-512",
        meaning: "any sectors of the write under way are kept",
        acts: Acts::AtCut,
        evidence: FaultEvidence::Published,
        source: "SSDs: Zheng et al., FAST'13, shorn writes",
    },
    excludes: &["torn-4k"],
    effect: Effect::Loss(|rules| rules.pieces = Some(SECTOR)),
};
