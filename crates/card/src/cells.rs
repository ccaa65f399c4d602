//! How many program and erase cycles cells stand.
//!
//! They are a distribution, [`Cycles`], not a number. The published range of a cell type is one
//! part of its spread (`flash.md` §3): SLC 50-100 k, pSLC 20-40 k, MLC 3-10 k, 3D TLC 1-3 k, QLC
//! 0.1-1 k [KAL]; planar 2Xnm TLC 750-1000 [AT]. Where a profile does not say what its cells are,
//! they lie between planar TLC and MLC: 750-10 000. The other part is that specimens of one model
//! differ tenfold and more (first errors after 2518, 219 and 728 writes of the whole card; 1905,
//! 1583, 395 [BH]). Both are taken as what 8 of 10 lie within, of normal distributions of the
//! logarithm, and add as such. Where a profile states `wear.pe_cycles_low` and `_high`, 8 of 10
//! lie between them: they are of specimens.

use serde::Serialize;

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

#[cfg(test)]
mod tests {
    use super::*;

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
