//! Where on the card tests take place: random, in different AUs, in a known part.

use crate::bench::Bench;
use whichfs_units::MIB;

/// The first bytes of a card are left to the test of the FAT region: 64 MiB, or a sixteenth
/// of a small card.
pub(crate) fn lead_bytes(capacity: u64) -> u64 {
    (64 * MIB).min(capacity / 16)
}

/// Distances that are multiples of every usual AU, greatest first.
const STRIDES: [u64; 4] = [192 * MIB, 96 * MIB, 48 * MIB, 24 * MIB];
/// Multiples of a known AU that are tried as a distance: neighbours may belong together.
const SPACINGS: [u64; 4] = [12, 6, 3, 1];
/// Places of one region that a distance should leave.
const PLACES: u64 = 24;

/// Distance at which places lie in different AUs and at the beginning of one.
pub(crate) fn stride(capacity: u64, au_bytes: Option<u64>) -> u64 {
    let region = capacity / 2;
    match au_bytes {
        Some(au) => {
            let fits = |spacing: &&u64| region / (**spacing * au) >= PLACES;
            au * SPACINGS.iter().find(fits).copied().unwrap_or(1)
        }
        None => {
            let fits = |stride: &&u64| region / **stride >= PLACES;
            STRIDES.iter().find(fits).copied().unwrap_or(24 * MIB)
        }
    }
}

/// Multiples of `stride` in one half of the card (0 or 1), in random order.
pub(crate) fn bases(bench: &mut Bench, stride: u64, region: u32) -> Vec<u64> {
    let half = bench.capacity / 2;
    let (from, to) = match region {
        0 => (lead_bytes(bench.capacity), half),
        _ => (half, bench.capacity),
    };
    let mut bases: Vec<u64> = (from.div_ceil(stride)..to / stride)
        .map(|at| at * stride)
        .filter(|base| bench.is_free(*base, MIB))
        .collect();
    bench.rng.shuffle(&mut bases);
    bases
}

/// A random beginning of a stream of `length` in one half of the card, where none began before if
/// there is such a place: what was written there would be written again, out of order.
pub(crate) fn stream_base(
    bench: &mut Bench,
    region: u32,
    length: u64,
    au_bytes: Option<u64>,
) -> Option<u64> {
    let known = au_bytes.map(|au| [au]);
    let units = match &known {
        Some(au) => &au[..],
        None if bench.capacity >= 1024 * MIB => &STRIDES,
        None => &[8 * MIB],
    };
    let end = match region {
        0 => bench.capacity / 2,
        _ => bench.capacity,
    };
    let mut found = Vec::new();
    for unit in units {
        found.extend(bases(bench, *unit, region));
    }
    found.retain(|base| base + length <= end && bench.is_free(*base, length));
    let fresh = found.iter().find(|base| !bench.streams.contains(base));
    let base = fresh.or(found.first()).copied()?;
    bench.streams.insert(base);
    Some(base)
}
