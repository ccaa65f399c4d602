//! Every request fails, whatever else the card does.

use crate::fault::{Acts, Effect, FaultEvidence, FaultFacts, Model};
use whichfs_blockdev::Refuses;

pub(super) const FAULT: Model = Model {
    number: 16,
    facts: FaultFacts {
        name: "dead",
        meaning: "every request fails",
        acts: Acts::WhileRead,
        evidence: FaultEvidence::Published,
        source: "an SSD after 136 power faults (Zheng et al., FAST'13); a microSD card after 5918 \
                 rounds (bahjeez.com, The Great MicroSD Card Survey); an OLPC's card after a cut \
                 during a write (laptop.org devel, 2011-March/031294)",
    },
    excludes: &[],
    effect: Effect::Use(|defects, _, _| defects.refuses = Refuses::All),
};
