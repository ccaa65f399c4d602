//! Up to 64 of the newest small writes are lost.

use crate::fault::{Acts, AtCut, Effect, Fate, FaultEvidence, FaultFacts, Model};
use crate::places::newest_lost;
use whichfs_card::RequestKind;
use whichfs_units::{KIB, Rng};

/// Largest write that goes to a small-write area where the profile has none.
const SMALL: u64 = 8 * KIB;

pub(super) const FAULT: Model = Model {
    number: 8,
    facts: FaultFacts {
        name: "small-lost",
        meaning: "small writes not yet merged are lost",
        acts: Acts::AtCut,
        evidence: FaultEvidence::Hypothesis,
        source: "a card with an area of its own for small writes might",
    },
    excludes: &[],
    effect: Effect::Fates(lose),
};

fn lose(fates: &mut [Fate], cut: &AtCut<'_>, rng: &mut Rng) {
    let largest = match cut.card.small_write_bytes {
        0 => SMALL,
        bytes => bytes,
    };
    let seen = cut.seen;
    let small =
        |&index: &usize| seen[index].op == RequestKind::Write && seen[index].bytes <= largest;
    for index in (0..seen.len()).rev().filter(small).take(newest_lost(rng)) {
        fates[index] = Fate::Lost;
    }
}
