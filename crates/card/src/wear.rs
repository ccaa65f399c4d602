//! Wear: how evenly blocks are erased, and how long a card lives under a stated load.
//!
//! **Cycles.** Program and erase cycles are a distribution, [`Cycles`], not a number. The
//! published range of a cell type is one part of its spread (`flash.md` §3): SLC 50-100 k, pSLC
//! 20-40 k, MLC 3-10 k, 3D TLC 1-3 k, QLC 0.1-1 k [KAL]; planar 2Xnm TLC 750-1000 [AT]. Where a
//! profile does not say what its cells are, they lie between planar TLC and MLC: 750-10 000. The
//! other part is that specimens of one model differ tenfold and more (first errors after 2518, 219
//! and 728 writes of the whole card; 1905, 1583, 395 [BH]). Both are taken as what 8 of 10 lie
//! within, of normal distributions of the logarithm, and add as such. Where a profile states
//! `wear.pe_cycles_low` and `_high`, 8 of 10 lie between them: they are of specimens.
//!
//! **Life.** A card fails when its most worn block does. In a trial, the host wrote some bytes
//! and that block was erased `most` times; a day does the same for each byte. So
//! `days = cycles × bytes of the trial / (bytes a day × most)`. The answer is a range over the
//! cycles, never one number: retention, temperature and the controller's own faults are not in
//! it. A short trial overstates how uneven the erases of a life are; its evidence
//! ([`Wear::erases`], [`Wear::spread`]) is shown.

use crate::profile::Profile;
use serde::Serialize;

/// How often the blocks of a card were erased.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Wear {
    /// Physical blocks, of an AU's size each.
    pub blocks: u64,
    /// Erases of all blocks together.
    pub erases: u64,
    /// Erases of the most worn block.
    pub most: u32,
    /// Erases of the least worn block.
    pub least: u32,
    /// (erases, blocks erased so often), in ascending order of erases.
    pub histogram: Vec<(u32, u64)>,
}

impl Wear {
    /// From the erase count of each block, as [`crate::Card::erases_per_au`] gives it.
    pub fn of(erases_per_block: &[u32]) -> Wear {
        let mut sorted = erases_per_block.to_vec();
        sorted.sort_unstable();
        let mut histogram: Vec<(u32, u64)> = Vec::new();
        for &count in &sorted {
            match histogram.last_mut() {
                Some((known, blocks)) if *known == count => *blocks += 1,
                _ => histogram.push((count, 1)),
            }
        }
        Wear {
            blocks: sorted.len() as u64,
            erases: sorted.iter().map(|count| u64::from(*count)).sum(),
            most: sorted.last().copied().unwrap_or(0),
            least: sorted.first().copied().unwrap_or(0),
            histogram,
        }
    }

    /// The erases between two states of one card; `None` if they are not of one card.
    pub fn between(before: &[u32], after: &[u32]) -> Option<Wear> {
        if before.len() != after.len() {
            return None;
        }
        let pairs = after.iter().zip(before);
        let grown: Option<Vec<u32>> = pairs
            .map(|(after, before)| after.checked_sub(*before))
            .collect();
        Some(Wear::of(&grown?))
    }

    /// Erases of the most worn block for each of the mean; at least one, and one if nothing
    /// was erased.
    pub fn spread(&self) -> f64 {
        if self.erases == 0 {
            return 1.0;
        }
        f64::from(self.most) * self.blocks as f64 / self.erases as f64
    }
}

/// Kinds of cells that `wear.cell` names, in the order of its numbers: what they are called, and
/// the least and most cycles that are published for them.
pub const CELL_TYPES: [(&str, f64, f64); CELLS] = [
    ("cells not known, planar TLC to MLC", 750.0, 10_000.0),
    ("SLC", 50_000.0, 100_000.0),
    ("pSLC", 20_000.0, 40_000.0),
    ("MLC", 3_000.0, 10_000.0),
    ("planar TLC", 750.0, 1_000.0),
    ("3D TLC", 1_000.0, 3_000.0),
    ("QLC", 100.0, 1_000.0),
];
/// Number of [`CELL_TYPES`].
pub(crate) const CELLS: usize = 7;

/// What 8 of 10 specimens of one model lie within, as a factor between the ends.
const SPECIMENS: f64 = 10.0;
/// Standard deviations of a normal distribution below which nine of ten lie, and three of four.
const NINE_OF_TEN: f64 = 1.281_552;
const THREE_OF_FOUR: f64 = 0.674_490;

/// Program and erase cycles that cards of one kind stand: shares of them that stand at most so
/// many.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Cycles {
    /// One of ten.
    pub p10: f64,
    /// One of four.
    pub p25: f64,
    /// Three of four.
    pub p75: f64,
    /// Nine of ten.
    pub p90: f64,
}

impl Cycles {
    /// Of specimens with the `cell`th of [`CELL_TYPES`]; of those that are not known, if there is
    /// no such one.
    pub fn of_cell(cell: usize) -> Cycles {
        let (_, least, most) = CELL_TYPES[if cell < CELLS { cell } else { 0 }];
        let parts = [(most / least).ln(), SPECIMENS.ln()].map(|width| width / NINE_OF_TEN / 2.0);
        let deviation = parts[0].hypot(parts[1]);
        Cycles::about((least.ln() + most.ln()) / 2.0, deviation)
    }

    /// 8 of 10 lie between `low` and `high`.
    pub fn between(low: f64, high: f64) -> Cycles {
        let deviation = (high / low).ln() / NINE_OF_TEN / 2.0;
        Cycles::about((low.ln() + high.ln()) / 2.0, deviation)
    }

    /// Normal in the logarithm.
    fn about(centre: f64, deviation: f64) -> Cycles {
        let at = |deviations: f64| (centre + deviations * deviation).exp();
        Cycles {
            p10: at(-NINE_OF_TEN),
            p25: at(-THREE_OF_FOUR),
            p75: at(THREE_OF_FOUR),
            p90: at(NINE_OF_TEN),
        }
    }
}

/// Ranges of years: how long cards live, by the shares of [`Cycles`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Life {
    /// One of ten lives at most so long.
    pub p10_years: f64,
    /// One of four.
    pub p25_years: f64,
    /// Three of four.
    pub p75_years: f64,
    /// Nine of ten.
    pub p90_years: f64,
}

/// How long cards of `profile` live if the host writes `host_bytes_a_day` as it wrote the
/// `host_bytes` that caused `wear`. `None` if nothing is written or nothing was erased: then
/// wear does not end it.
pub fn projected_life(
    profile: &Profile,
    host_bytes_a_day: u64,
    host_bytes: u64,
    wear: &Wear,
) -> Option<Life> {
    const DAYS_A_YEAR: f64 = 365.25;
    if host_bytes_a_day == 0 || host_bytes == 0 || wear.most == 0 {
        return None;
    }
    let worst_a_day = host_bytes_a_day as f64 * f64::from(wear.most) / host_bytes as f64;
    let years = |cycles: f64| cycles / worst_a_day / DAYS_A_YEAR;
    let cycles = profile.pe_cycles();
    Some(Life {
        p10_years: years(cycles.p10),
        p25_years: years(cycles.p25),
        p75_years: years(cycles.p75),
        p90_years: years(cycles.p90),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_histogram_counts_blocks_and_the_spread_is_worst_to_mean() {
        let wear = Wear::of(&[3, 0, 1, 0, 1, 1]);
        assert_eq!(wear.histogram, [(0, 2), (1, 3), (3, 1)]);
        assert_eq!(
            (wear.blocks, wear.erases, wear.most, wear.least),
            (6, 6, 3, 0)
        );
        assert_eq!(wear.spread(), 3.0);
        assert_eq!(Wear::of(&[0, 0]).spread(), 1.0);
        assert_eq!(Wear::of(&[]).spread(), 1.0);
    }

    #[test]
    fn what_a_card_had_before_is_not_counted() {
        let wear = Wear::between(&[5, 7], &[6, 7]).unwrap();
        assert_eq!(wear.histogram, [(0, 1), (1, 1)]);
        assert_eq!(Wear::between(&[5], &[6, 7]), None);
        assert_eq!(Wear::between(&[6], &[5]), None);
    }

    #[test]
    fn life_is_a_range_that_shrinks_with_load_and_with_erases_of_the_worst_block() {
        let (name, toml) = crate::builtin()[0];
        let profile = Profile::parse(name, toml).unwrap();
        let even = Wear::of(&vec![10; 8192]);
        // Ten erases for five days' bytes: two cycles a day.
        let life = projected_life(&profile, 32 << 30, 160 << 30, &even).unwrap();
        let cycles = profile.pe_cycles();
        assert!((life.p10_years - cycles.p10 / 2.0 / 365.25).abs() < 1e-9);
        assert!((life.p90_years - cycles.p90 / 2.0 / 365.25).abs() < 1e-9);
        let ends = [
            life.p10_years,
            life.p25_years,
            life.p75_years,
            life.p90_years,
        ];
        assert!(ends.windows(2).all(|two| two[0] < two[1]), "{ends:?}");
        // Specimens of one model alone differ tenfold.
        assert!(life.p90_years > 10.0 * life.p10_years, "{ends:?}");
        let mut hot = vec![10; 8192];
        hot[7] = 100;
        let worse = projected_life(&profile, 32 << 30, 160 << 30, &Wear::of(&hot)).unwrap();
        assert!(worse.p75_years < life.p75_years / 9.0);
        assert_eq!(projected_life(&profile, 0, 1, &even), None);
        assert_eq!(projected_life(&profile, 1, 0, &even), None);
        assert_eq!(projected_life(&profile, 1, 1, &Wear::of(&[0, 0])), None);
    }

    #[test]
    fn cycles_are_those_of_the_cells_and_specimens_that_are_stated_stand_as_they_are() {
        let centre = |of: Cycles| (of.p25 * of.p75).sqrt();
        let order = [6, 4, 5, 3, 2, 1].map(|cell| centre(Cycles::of_cell(cell)));
        assert!(order.windows(2).all(|two| two[0] < two[1]), "{order:?}");
        for (cell, (name, least, most)) in CELL_TYPES.into_iter().enumerate() {
            let cycles = Cycles::of_cell(cell);
            // Wider than what is published of the cells, and than specimens differ.
            assert!(
                cycles.p10 < least && cycles.p90 > most,
                "{name}: {cycles:?}"
            );
            assert!(cycles.p90 / cycles.p10 > SPECIMENS, "{name}");
        }
        let stated = Cycles::between(219.0, 2518.0);
        assert!((stated.p10 - 219.0).abs() < 0.01 && (stated.p90 - 2518.0).abs() < 0.01);
        assert_eq!(Cycles::of_cell(99), Cycles::of_cell(0));
    }
}
