//! What a profile may state, and what it states of a card that is not wholly known: the same for
//! whoever reads profiles and whoever writes them.

use std::ops::RangeInclusive;
use whichfs_units::{GIB, KIB, MIB};

/// Largest card in bytes: the end of SDXC, 2 TiB, and a little for makers who count otherwise.
pub const CAPACITY_MAX: u64 = 2_200_000_000_000;
/// What a larger card is cut to where a profile cannot have its capacity, in bytes.
pub const CAPACITY_CUT: u64 = 128 * GIB;
/// Size of an AU in bytes.
pub const AU_BYTES: RangeInclusive<u64> = 16 * KIB..=64 * MIB;
/// Most AUs with the spare ones: 2 TiB in AUs of 2 MiB. Their mapping is kept in memory, a few
/// words each.
pub const AUS_MAX: u64 = 1 << 20;
/// Mapping unit of a page map in bytes.
pub const UNIT_BYTES: RangeInclusive<u64> = 512..=MIB;
/// Most units of a page map with its spare blocks: 512 GiB in units of 4 KiB, down to half of
/// that where an AU is no power of two units. A used card takes two words of memory for each.
pub const UNITS_MAX: u64 = 1 << 27;
/// Longest time of one step in microseconds: 10 s.
pub const MICROS_MAX: u64 = 10_000_000;
/// Slowest and fastest rate that is no typing error, in bytes a second: 10 kB/s to 4 GB/s.
pub const RATE: RangeInclusive<u64> = 10_000..=4_000_000_000;
/// Time of random writes over that of writes in order, in percent.
pub const RANDOM_PERCENT: RangeInclusive<u64> = 100..=10_000;

/// Uncertainty in percent of times and rates that were put together, not measured;
/// two units of one model already differ by more than 10 % (`flash.md` §5).
pub const COMPOSED_PERCENT: u64 = 30;
/// Uncertainty in percent of times and rates that were measured, where nobody says another.
pub const MEASURED_PERCENT: u64 = 15;

/// Units of a page map of `blocks` AUs, as addressed: an AU is rounded up to a power of two units.
pub fn units(blocks: u64, au_bytes: u64, unit_bytes: u64) -> u64 {
    blocks.saturating_mul((au_bytes / unit_bytes).next_power_of_two())
}

/// The legal value nearest to `value`.
pub fn within(legal: &RangeInclusive<u64>, value: u64) -> u64 {
    value.clamp(*legal.start(), *legal.end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_map_in_units_of_4_kib_has_512_gib_or_half_of_it_as_the_documentation_says() {
        let of = |bytes: u64, au: u64| units(bytes / au, au, 4 * KIB);
        assert_eq!(of(512 * GIB, 4 * MIB), UNITS_MAX);
        // 6144 units in 8192, and 257 in 512.
        assert_eq!(of(384 * GIB, 24 * MIB), UNITS_MAX);
        let odd = MIB + 4 * KIB;
        assert!(of(258 * GIB, odd) > UNITS_MAX && of(256 * GIB, odd) <= UNITS_MAX);
        let limits = include_str!("../../../docs/limits.md").split_whitespace();
        let limits = limits.collect::<Vec<_>>().join(" ");
        assert!(limits.contains(
            "at most 2^27 of them with its spare blocks: above some 500 GB, down to half of that \
             where an AU is no power of two, it needs `page_map.unit_bytes` of more than 4 KiB."
        ));
    }
}
