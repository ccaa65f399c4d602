//! Of the newest write that was reported done any sectors are kept.

use crate::fault::{Acts, AtCut, Effect, Fate, FaultEvidence, FaultFacts, Model};
use whichfs_blockdev::Logged;
use whichfs_card::RequestKind;
use whichfs_units::{Rng, SECTOR};

pub(super) const FAULT: Model = Model {
    number: 6,
    facts: FaultFacts {
        name: "torn-reported",
        meaning: "any sectors of the newest write that was reported done are kept",
        acts: Acts::AtCut,
        evidence: FaultEvidence::Published,
        source: "SSDs: Zheng et al., FAST'13, shorn writes; Ahmadian et al.: losses up to 700 ms \
                 after the completion",
    },
    excludes: &[],
    effect: Effect::Fates(tear),
};

fn tear(fates: &mut [Fate], cut: &AtCut<'_>, _: &mut Rng) {
    let reported = |request: &Logged| request.op == RequestKind::Write && request.done <= cut.at;
    let newest = cut.seen.iter().rposition(reported);
    if let Some(fate) = newest.and_then(|index| fates.get_mut(index))
        && *fate != Fate::Lost
    {
        *fate = Fate::Pieces(SECTOR);
    }
}
