//! From an instant in the middle half of the run on the card answers no request any more.

use crate::fault::{Acts, Effect, FaultEvidence, FaultFacts, Model};
use crate::places::from_the_middle;
use whichfs_blockdev::LiveDamage;

pub(super) const FAULT: Model = Model {
    number: 29,
    facts: FaultFacts {
        name: "live-hang",
        meaning: "no request is answered, from an instant of the run on",
        acts: Acts::WhileRun,
        evidence: FaultEvidence::Hypothesis,
        source: "a card that stays busy; Linux' drivers of MMC hosts end such a request with an \
                 error after some seconds, the lab's disk does not, as with a suspended \
                 device-mapper device",
    },
    excludes: &[],
    effect: Effect::Live(|run, rng| from_the_middle(run, rng, LiveDamage::Hang)),
};
