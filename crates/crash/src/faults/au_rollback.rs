//! The AU written last falls back by up to 64 requests.

use crate::fault::{Acts, AtCut, Effect, Fate, FaultEvidence, FaultFacts, Model};
use crate::places::newest_lost;
use whichfs_blockdev::Logged;
use whichfs_card::RequestKind;
use whichfs_units::Rng;

pub(super) const FAULT: Model = Model {
    number: 7,
    facts: FaultFacts {
        name: "au-rollback",
        meaning: "the AU being written falls back some writes",
        acts: Acts::AtCut,
        evidence: FaultEvidence::Hypothesis,
        source: "a card that writes its map from time to time would do so",
    },
    excludes: &[],
    effect: Effect::Fates(roll_back),
};

fn roll_back(fates: &mut [Fate], cut: &AtCut<'_>, rng: &mut Rng) {
    let au = |request: &Logged| request.offset / cut.card.au_bytes.max(1);
    let newest = || cut.seen.iter().enumerate().rev();
    let Some((_, last)) = newest().find(|(_, request)| request.op == RequestKind::Write) else {
        return;
    };
    for (index, request) in newest().take(newest_lost(rng)) {
        if request.op == RequestKind::Write && au(request) == au(last) {
            fates[index] = Fate::Lost;
        }
    }
}
