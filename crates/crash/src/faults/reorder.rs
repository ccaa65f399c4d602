//! What a cache holds is kept or lost write by write, in any order. A card without a cache gets a
//! small one.

use crate::fault::{Acts, Effect, FaultEvidence, FaultFacts, Model};

pub(super) const FAULT: Model = Model {
    number: 1,
    facts: FaultFacts {
        name: "reorder",
        meaning: "unflushed writes are kept or lost in any order",
        acts: Acts::AtCut,
        evidence: FaultEvidence::Published,
        source: "SSDs: Zheng et al., FAST'13, unserializable writes; of an eMMC's cache JESD84 \
                 allows it",
    },
    excludes: &[],
    effect: Effect::Loss(|rules| rules.reorders = true),
};
