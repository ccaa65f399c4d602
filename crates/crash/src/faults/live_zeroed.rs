//! The first byte of each 4 KiB block that is written is zero on the card, from an instant in the
//! middle half of the run on. The system goes on with what it has in memory, and meets the damage
//! when it reads again.

use crate::fault::{Acts, Effect, FaultEvidence, FaultFacts, Model};
use crate::places::from_the_middle;
use whichfs_blockdev::LiveDamage;

pub(super) const FAULT: Model = Model {
    number: 23,
    facts: FaultFacts {
        name: "live-zeroed",
        meaning: "first byte of each written block zeroed, from an instant of the run on",
        acts: Acts::WhileRun,
        evidence: FaultEvidence::Hypothesis,
        source: "a test of filesystems, not of cards: ELC 2015, with dm-flakey's \
                 corrupt_bio_byte under a mounted filesystem",
    },
    excludes: &[],
    effect: Effect::Live(|run, rng| from_the_middle(run, rng, LiveDamage::ZeroFirstByte)),
};
