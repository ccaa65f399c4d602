//! From an instant in the middle half of the run on each request takes half a second more, as long
//! as the specification lets a card be busy with a write.

use crate::fault::{Acts, Effect, FaultEvidence, FaultFacts, Model};
use crate::places::from_the_middle;
use whichfs_blockdev::LiveDamage;
use whichfs_units::Nanos;

/// What each request takes more.
const BUSY: Nanos = Nanos(500_000_000);

pub(super) const FAULT: Model = Model {
    number: 28,
    facts: FaultFacts {
        name: "live-slow",
        meaning: "each request takes half a second more, from an instant of the run on",
        acts: Acts::WhileRun,
        evidence: FaultEvidence::Published,
        source: "SD Physical Layer Specification: a write may be busy for 250 ms, for \
                 500 ms on SDXC; dm-delay",
    },
    excludes: &[],
    effect: Effect::Live(|run, rng| from_the_middle(run, rng, LiveDamage::Delay(BUSY))),
};
