//! The first byte of each 4 KiB block is zero in all that the card wrote from an instant in the
//! middle half of the run on. The seed draws the instant.

use crate::fault::{Acts, Effect, FaultEvidence, FaultFacts, Model};
use crate::places::zero_blocks;

pub(super) const FAULT: Model = Model {
    number: 10,
    facts: FaultFacts {
        name: "zeroed-after",
        meaning: "first byte of each block zeroed, from an instant on",
        acts: Acts::WithoutCut,
        evidence: FaultEvidence::Hypothesis,
        source: "a test of filesystems, not of cards: ELC 2015, with dm-flakey's \
                 corrupt_bio_byte",
    },
    excludes: &["zeroed-alternately"],
    effect: Effect::Writes(|run, _| {
        let from = run.middle;
        Box::new(move |_, request, _, data| {
            if request.done >= from {
                zero_blocks(request, data);
            }
        })
    }),
};
