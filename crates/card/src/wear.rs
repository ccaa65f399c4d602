//! Wear: how evenly blocks are erased, and how long a card lives under a stated load.
//!
//! A card fails when its most worn block does. In a trial, the host wrote some bytes
//! and that block was erased `most` times; a day does the same for each byte. So
//! `days = cycles × bytes of the trial / (bytes a day × most)`. The answer is a range over the
//! cycles, never one number: retention, temperature and the controller's own faults are not in
//! it. A short trial overstates how uneven the erases of a life are; its evidence
//! ([`Wear::erases`], [`Wear::spread`]) is shown.

use crate::profile::Profile;
use serde::Serialize;

/// A Julian year, which makes leap years count.
const DAYS_A_YEAR: f64 = 365.25;

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

/// Ranges of years: how long cards live, by the shares of [`Cycles`](crate::Cycles).
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

/// How long cards of `profile` live if from `least` to `most` bytes are programmed in a day, and
/// the most worn block is erased `spread` times as often as the mean at most. The short lives are
/// those of most bytes and the whole spread, the long ones of least bytes and even wear. `None` if
/// nothing is programmed.
pub fn programmed_life(profile: &Profile, (least, most): (f64, f64), spread: f64) -> Option<Life> {
    if least <= 0.0 || most < least {
        return None;
    }
    let blocks = crate::Card::fresh(profile).erases_per_au().len() as f64;
    let flash = blocks * profile.au_bytes() as f64;
    let years = |cycles: f64, programmed: f64| cycles * flash / programmed / DAYS_A_YEAR;
    let cycles = profile.pe_cycles();
    let most = most * spread.max(1.0);
    Some(Life {
        p10_years: years(cycles.p10, most),
        p25_years: years(cycles.p25, most),
        p75_years: years(cycles.p75, least),
        p90_years: years(cycles.p90, least),
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
    fn life_by_programmed_bytes_is_that_by_erases_if_wear_is_even() {
        let (name, toml) = crate::builtin()[0];
        let profile = Profile::parse(name, toml).unwrap();
        let blocks = crate::Card::fresh(&profile).erases_per_au().len();
        let flash = (blocks as u64 * profile.au_bytes()) as f64;
        // The whole flash twice a day, evenly: two cycles a day.
        let even = Wear::of(&vec![2; blocks]);
        let by_erases = projected_life(&profile, 1 << 30, 1 << 30, &even).unwrap();
        let of = |bytes, spread| programmed_life(&profile, bytes, spread);
        let by_bytes = of((2.0 * flash, 2.0 * flash), 1.0).unwrap();
        assert!((by_bytes.p10_years / by_erases.p10_years - 1.0).abs() < 1e-9);
        assert!((by_bytes.p90_years / by_erases.p90_years - 1.0).abs() < 1e-9);
        let wide = of((flash, 2.0 * flash), 3.0).unwrap();
        assert!((by_bytes.p10_years / wide.p10_years - 3.0).abs() < 1e-9);
        assert!((wide.p90_years / by_bytes.p90_years - 2.0).abs() < 1e-9);
        assert_eq!(of((0.0, 0.0), 1.0), None);
    }
}
