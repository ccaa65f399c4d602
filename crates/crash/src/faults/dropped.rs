//! What the card wrote from an instant in the middle half of the run on does not arrive.

use crate::fault::{Acts, Effect, FaultEvidence, FaultFacts, Model};
use std::borrow::Cow;

pub(super) const FAULT: Model = Model {
    number: 12,
    facts: FaultFacts {
        name: "dropped",
        meaning: "writes are dropped from an instant on",
        acts: Acts::WithoutCut,
        evidence: FaultEvidence::Published,
        source: "SD cards at their end that report writes done and keep nothing \
                 (blog.dokucode.de, Immutable SD Cards, 2019); dm-flakey's drop_writes",
    },
    excludes: &[],
    effect: Effect::Writes(|run, _| {
        let from = run.middle;
        Box::new(move |_, request, _, data| {
            if request.done >= from {
                *data = Cow::default();
            }
        })
    }),
};
