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
/// Their `-f`.
const FIRST_AUS: Writing = Writing {
    erase_bytes: ERASE_BYTES,
    block_bytes: SMALL_BLOCK_BYTES,
    aus: FAT_AUS,
    random: false,
};
/// Writes of this size stand for smaller ones where only the card's state matters.
const LARGER_BLOCK_BYTES: u64 = 64 << 10;
/// Most AUs of their `-O`.
pub const OPEN_AUS_MOST: u32 = 7;
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
    for _ in 0..RUNS {
        for (bytes, rates) in find_fat(&mut device, &FIRST_AUS)? {
            curves.fat.entry(bytes).or_default().push(rates);
        }
    }
    open_au_tests(&mut device, &mut curves, &OpenAuTests::PUBLISHED)?;
    Ok(curves)
}

/// What of `-O` is done, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenAuTests {
    /// `--erasesize` in bytes: what is taken for an AU, and the largest block.
    pub erase_bytes: u64,
    /// `--blocksize` in bytes: the smallest block.
    pub block_bytes: u64,
    /// Most open AUs, linear and random, of [`OPEN_AUS_MOST`].
    pub most: [u32; 2],
}

impl OpenAuTests {
    /// All, as the published logs have them.
    pub const PUBLISHED: OpenAuTests = OpenAuTests {
        erase_bytes: ERASE_BYTES,
        block_bytes: BLOCK_BYTES,
        most: [OPEN_AUS_MOST; 2],
    };

    /// Bytes from the beginning of the card to the end of the last AU that is written.
    pub fn end_bytes(&self) -> u64 {
        let erase = self.erase_bytes;
        let aus = u64::from(OPEN_AUS_MOST - 1) * super::OPEN_AU_STRIDE + 1;
        super::OPEN_AU_START.next_multiple_of(erase) + aus * erase
    }
}

/// The curves of `-O` as in [`curves_of`], in a fraction of the time: of the tests before,
/// only the larger writes of `-f` are done, which leave the card in the same state.
///
/// # Errors
/// As [`curves_of`].
pub fn write_curves_of(
    profile: &Profile,
    seed: u64,
    tests: &OpenAuTests,
) -> Result<Curves, DeviceError> {
    let mut device = used(profile, seed);
    let larger = Writing {
        erase_bytes: tests.erase_bytes,
        block_bytes: LARGER_BLOCK_BYTES,
        ..FIRST_AUS
    };
    find_fat(&mut device, &larger)?;
    let mut curves = Curves::default();
    open_au_tests(&mut device, &mut curves, tests)?;
    Ok(curves)
}

fn used(profile: &Profile, seed: u64) -> Modelled {
    Modelled::new(Card::used(profile, seed), profile.capacity_bytes())
}

fn open_au_tests(
    device: &mut dyn Device,
    curves: &mut Curves,
    tests: &OpenAuTests,
) -> Result<(), DeviceError> {
    for (random, most) in [false, true].into_iter().zip(tests.most) {
        for aus in 1..=most {
            let writing = Writing {
                erase_bytes: tests.erase_bytes,
                block_bytes: tests.block_bytes,
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
