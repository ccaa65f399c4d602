//! A durable page of the AU of the request under way, up to four before the request, reads as
//! noise.

use crate::fault::{Acts, AfterCut, Effect, FaultEvidence, FaultFacts, Model};
use crate::places::noise;
use whichfs_card::{Contents, ContentsError};
use whichfs_units::Rng;

pub(super) const FAULT: Model = Model {
    number: 9,
    facts: FaultFacts {
        name: "neighbour",
        meaning: "a durable page near the one under way is damaged",
        acts: Acts::AtCut,
        evidence: FaultEvidence::Published,
        source: "MLC NAND: Tseng, Grupp, Swanson, DAC'11: a page shares its cells with an earlier \
                 one; one SD card (art-and-technology.blogspot 2017/06)",
    },
    excludes: &[],
    effect: Effect::Contents(damage),
};

fn damage(contents: &mut Contents, cut: &AfterCut<'_>, rng: &mut Rng) -> Result<(), ContentsError> {
    let Some(write) = &cut.under_way else {
        return Ok(());
    };
    let back = 1 + rng.below(4);
    // A page shares its cells with one of its own block.
    let au = |page: u64| page * write.page_bytes / cut.card.au_bytes.max(1);
    let before = write.first_page.checked_sub(back);
    match before.filter(|&page| au(page) == au(write.first_page)) {
        Some(page) => noise(contents, page, write.page_bytes, rng),
        None => Ok(()),
    }
}
