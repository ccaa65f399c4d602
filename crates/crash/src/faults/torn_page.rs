//! The flash page under way, where what is kept of the request ends, reads as noise.

use crate::fault::{Acts, AfterCut, Effect, Fate, FaultEvidence, FaultFacts, Model};
use crate::places::noise;
use whichfs_card::{Contents, ContentsError};
use whichfs_units::Rng;

pub(super) const FAULT: Model = Model {
    number: 5,
    facts: FaultFacts {
        name: "torn-page",
        meaning: "the flash page under way reads as noise",
        acts: Acts::AtCut,
        evidence: FaultEvidence::Published,
        source: "NAND: Tseng, Grupp, Swanson, DAC'11: an interrupted program leaves cells in \
                 between",
    },
    excludes: &[],
    effect: Effect::Contents(damage),
};

fn damage(contents: &mut Contents, cut: &AfterCut<'_>, rng: &mut Rng) -> Result<(), ContentsError> {
    let Some(write) = &cut.under_way else {
        return Ok(());
    };
    let page = match write.fate {
        Fate::Before(end) => (end / write.page_bytes).clamp(write.first_page, write.last_page),
        _ => write.drawn_page,
    };
    noise(contents, page, write.page_bytes, rng)
}
