//! The first byte of each 4 KiB block is zero in all that the card wrote in every other second.
//! The seed draws which part of the first second is spared.

use crate::fault::{Acts, Effect, FaultEvidence, FaultFacts, Model};
use crate::places::zero_blocks;

/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;

pub(super) const FAULT: Model = Model {
    number: 11,
    facts: FaultFacts {
        name: "zeroed-alternately",
        meaning: "first byte of each block zeroed, every other second",
        acts: Acts::WithoutCut,
        evidence: FaultEvidence::Hypothesis,
        source: "a test of filesystems, not of cards: ELC 2015, with dm-flakey's \
                 corrupt_bio_byte",
    },
    excludes: &[],
    effect: Effect::Writes(|run, rng| {
        // The first damaged second begins within the first of the run.
        let since = run.begin.0 + rng.below(SECOND);
        Box::new(move |_, request, _, data| {
            let after = request.done.0.checked_sub(since);
            if after.is_some_and(|ns| (ns / SECOND).is_multiple_of(2)) {
                zero_blocks(request, data);
            }
        })
    }),
};
