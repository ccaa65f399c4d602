//! The first byte of each 4 KiB block that is written is zero on the card, in every other second of
//! the run. The seed draws which part of its first second is spared.

use crate::fault::{Acts, Effect, FaultEvidence, FaultFacts, Model};
use crate::places::every_other_second;
use whichfs_blockdev::LiveDamage;

pub(super) const FAULT: Model = Model {
    number: 24,
    facts: FaultFacts {
        name: "live-zeroed-alternately",
        meaning: "first byte of each written block zeroed, every other second of the run",
        acts: Acts::WhileRun,
        evidence: FaultEvidence::Hypothesis,
        source: "a test of filesystems, not of cards: ELC 2015, with dm-flakey's \
                 corrupt_bio_byte and its up and down interval under a mounted filesystem",
    },
    excludes: &[],
    effect: Effect::Live(|run, rng| every_other_second(run, rng, LiveDamage::ZeroFirstByte)),
};
