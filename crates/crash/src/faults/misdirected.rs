//! One write lands one AU below its place.

use crate::fault::{Acts, ChangeWrite, Effect, FaultEvidence, FaultFacts, Model, RecordedRun};
use whichfs_card::RequestKind;
use whichfs_units::Rng;

pub(super) const FAULT: Model = Model {
    number: 14,
    facts: FaultFacts {
        name: "misdirected",
        meaning: "one write lands an AU away",
        acts: Acts::WithoutCut,
        evidence: FaultEvidence::Hypothesis,
        source: "published of disks (Bairavasundaram et al., FAST'08); a card whose map is wrong \
                 would do so",
    },
    excludes: &[],
    effect: Effect::Writes(misdirect),
};

fn misdirect(run: &RecordedRun<'_>, rng: &mut Rng) -> ChangeWrite {
    let au = run.card.au_bytes;
    // Nothing is below the first AU.
    let writes: Vec<usize> = (0..run.seen.len())
        .filter(|&index| run.seen[index].op == RequestKind::Write && run.seen[index].offset >= au)
        .collect();
    let wrong = match writes.len() as u64 {
        0 => None,
        count => Some(writes[rng.below(count) as usize]),
    };
    Box::new(move |index, _, offset, _| {
        if wrong == Some(index) {
            // Downwards, so that it stays on the card.
            *offset -= au;
        }
    })
}
