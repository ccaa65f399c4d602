//! A flush makes nothing durable. A card without a cache gets a small one.

use crate::fault::{Acts, Effect, FaultEvidence, FaultFacts, Model};

pub(super) const FAULT: Model = Model {
    number: 2,
    facts: FaultFacts {
        name: "flush-lies",
        meaning: "a flush does nothing",
        acts: Acts::AtCut,
        evidence: FaultEvidence::Published,
        source: "single models: an A2 card's flush bug (root.cz on the Raspberry Pi 5); SSDs in \
                 Zheng et al., FAST'13",
    },
    excludes: &[],
    effect: Effect::Loss(|rules| rules.flush_lies = true),
};
