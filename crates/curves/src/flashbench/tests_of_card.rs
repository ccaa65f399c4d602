//! All of flashbench's tests on a used modelled card: `whichfs card curves`.

use super::{Writing, align, find_fat, open_aus};
use crate::curves::Curves;
use crate::device::{Device, DeviceError};
use crate::modelled::Modelled;
use whichfs_card::{Card, Profile};

/// `--erasesize` of the published logs.
const ERASE_BYTES: u64 = 4 << 20;
/// `--blocksize` of their `-O`.
const BLOCK_BYTES: u64 = 4 << 10;
/// `--blocksize` of their `-a` and `-f`.
const SMALL_BLOCK_BYTES: u64 = 1 << 10;
/// `--fat-nr` of their `-f`.
const FAT_AUS: u32 = 8;
/// Most AUs of their `-O`.
const OPEN_AUS_MOST: u32 = 7;
/// A model has no noise: more tries or runs would give the same.
const TRIES: u32 = 2;
const RUNS: usize = 1;

/// Curves of the card that `profile` describes, in use for a while (`seed` decides what was
/// written to it): `-a`, `-f`, then `-O` with 1 to 7 AUs, then the same with `--random`, as
/// the logs in `shared/data` were made.
///
/// # Errors
/// The card refuses a request: it is too small for the tests.
pub fn curves_of(profile: &Profile, seed: u64) -> Result<Curves, DeviceError> {
    let mut device = used(profile, seed);
    let mut curves = Curves::default();
    for (boundary, line) in align(&mut device, SMALL_BLOCK_BYTES, TRIES)? {
        curves.align.insert(boundary, vec![line]);
    }
    let first_aus = Writing {
        erase_bytes: ERASE_BYTES,
        block_bytes: SMALL_BLOCK_BYTES,
        aus: FAT_AUS,
        random: false,
    };
    for _ in 0..RUNS {
        for (bytes, rates) in find_fat(&mut device, &first_aus)? {
            curves.fat.entry(bytes).or_default().push(rates);
        }
    }
    open_au_tests(&mut device, &mut curves)?;
    Ok(curves)
}

/// As [`curves_of`], without `-a` and `-f`.
///
/// # Errors
/// As [`curves_of`].
pub fn write_curves_of(profile: &Profile, seed: u64) -> Result<Curves, DeviceError> {
    let mut curves = Curves::default();
    open_au_tests(&mut used(profile, seed), &mut curves)?;
    Ok(curves)
}

fn used(profile: &Profile, seed: u64) -> Modelled {
    Modelled::new(Card::used(profile, seed), profile.capacity_bytes())
}

fn open_au_tests(device: &mut dyn Device, curves: &mut Curves) -> Result<(), DeviceError> {
    for random in [false, true] {
        for aus in 1..=OPEN_AUS_MOST {
            let writing = Writing {
                erase_bytes: ERASE_BYTES,
                block_bytes: BLOCK_BYTES,
                aus,
                random,
            };
            let rates = open_aus(device, &writing)?;
            let part = if random {
                &mut curves.random
            } else {
                &mut curves.linear
            };
            part.insert(aus, rates);
        }
    }
    Ok(())
}
