//! From an instant in the middle half of the run on the card reports writes done and keeps what it
//! held.

use crate::fault::{Acts, Effect, FaultEvidence, FaultFacts, Model};
use crate::places::from_the_middle;
use whichfs_blockdev::LiveDamage;

pub(super) const FAULT: Model = Model {
    number: 25,
    facts: FaultFacts {
        name: "live-dropped",
        meaning: "writes are reported done and dropped, from an instant of the run on",
        acts: Acts::WhileRun,
        evidence: FaultEvidence::Published,
        source: "SD cards at their end that report writes done and keep nothing \
                 (blog.dokucode.de, Immutable SD Cards, 2019); dm-flakey's drop_writes",
    },
    excludes: &[],
    effect: Effect::Live(|run, rng| from_the_middle(run, rng, LiveDamage::DropWrites)),
};
