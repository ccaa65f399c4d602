//! All of flashbench's tests on a used modelled card: `whichfs card curves`.

use super::order::shuffled;
use super::{
    FlashbenchWriting, Host, OPEN_AU_START, OPEN_AU_STRIDE, SizeTimes, align, find_fat, rates,
};
use crate::curves::Curves;
use crate::device::{DeviceError, TimedDevice};
use crate::modelled::Modelled;
use std::collections::BTreeMap;
use whichfs_card::{Card, Profile};
use whichfs_units::Nanos;

/// `--erasesize` of the published logs.
const ERASE_BYTES: u64 = 4 << 20;
/// `--blocksize` of their `-O`.
const BLOCK_BYTES: u64 = 4 << 10;
/// `--blocksize` of their `-a` and `-f`.
const SMALL_BLOCK_BYTES: u64 = 1 << 10;
/// `--fat-nr` of their `-f`.
const FAT_AUS: u32 = 8;
/// Their `-f`.
const FIRST_AUS: FlashbenchWriting = FlashbenchWriting {
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
/// Rest before each run of the program, which a script or a person starts.
const BETWEEN_RUNS: Nanos = Nanos::from_secs(2);

/// Curves of the card that `profile` describes, in use for a while (`seed` decides what was
/// written to it): `-a`, `-f`, then `-O` with 1 to 7 AUs, then the same with `--random`, as
/// the logs in `shared/data` were made: each is a run of the program, with a rest before it.
/// Of `-O`, only what the card has room for is done.
///
/// # Errors
/// The card has no room for `-O` with one AU, or refuses a request.
pub fn curves_of(profile: &Profile, seed: u64) -> Result<Curves, DeviceError> {
    let mut device = used(profile, seed);
    let mut curves = Curves::default();
    for (boundary, line) in align(&mut device, SMALL_BLOCK_BYTES, TRIES)? {
        curves.align.insert(boundary, vec![line]);
    }
    for _ in 0..RUNS {
        device.rest(BETWEEN_RUNS);
        for (bytes, rates) in find_fat(&mut device, &FIRST_AUS)? {
            curves.fat.entry(bytes).or_default().push(rates);
        }
    }
    let tests = OpenAuTests::PUBLISHED;
    let of_writes = Host::new(&mut device, tests.erase_bytes).open_au_tests(&tests)?;
    let Curves { linear, random, .. } = of_writes.curves();
    Ok(Curves {
        linear,
        random,
        ..curves
    })
}

/// What the writes of `-O` took, by order, number of AUs and block size in bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WriteTimes([BTreeMap<u32, BTreeMap<u64, SizeTimes>>; 2]);

impl WriteTimes {
    /// What writes of `bytes` took, at random or in order, with so many AUs.
    pub fn get(&self, random: bool, aus: u32, bytes: u64) -> Option<&SizeTimes> {
        self.0[usize::from(random)].get(&aus)?.get(&bytes)
    }

    /// The curves that the program prints.
    pub fn curves(&self) -> Curves {
        let of_tests = |tests: &BTreeMap<u32, BTreeMap<u64, SizeTimes>>| {
            let tests = tests.iter();
            tests.map(|(aus, found)| (*aus, rates(found))).collect()
        };
        let [linear, random] = &self.0;
        Curves {
            linear: of_tests(linear),
            random: of_tests(random),
            ..Curves::default()
        }
    }
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
    /// What the card had opened before each test.
    pub opened: Opened,
}

/// How many AUs of each test of `-O` the card had opened before it, against the order of the
/// test, and nothing else lately. Tests of which nothing is said find what the tests before
/// them left. A card that closes the AU which it opened first remembers: of 4 AUs in 3 places,
/// every write to the next needs a place where none of them had been opened, every second where
/// two had, every third where three had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Opened([[Option<u8>; OPEN_AUS_MOST as usize]; 2]);

impl Opened {
    /// Nothing is said of any test.
    pub const UNTOLD: Opened = Opened([[None; OPEN_AUS_MOST as usize]; 2]);

    /// The same, but `count` AUs before the test with `aus` AUs; without effect if there is no
    /// such test.
    #[must_use]
    pub fn with(mut self, random: bool, aus: u32, count: u8) -> Opened {
        let of_order = &mut self.0[usize::from(random)];
        if let Some(before) = of_order.get_mut(aus as usize - 1) {
            *before = Some(count);
        }
        self
    }

    /// What is said: whether the test is one at random, its number of AUs, and how many of them.
    pub fn told(&self) -> impl Iterator<Item = (bool, u32, u8)> + '_ {
        let tests = (1..=OPEN_AUS_MOST).flat_map(|aus| [(false, aus), (true, aus)]);
        tests.filter_map(|(random, aus)| Some((random, aus, self.before(random, aus)?)))
    }

    /// What is said of a test.
    pub fn before(&self, random: bool, aus: u32) -> Option<u8> {
        *self.0[usize::from(random)].get(aus as usize - 1)?
    }
}

impl OpenAuTests {
    /// All, as the published logs have them.
    pub const PUBLISHED: OpenAuTests = OpenAuTests {
        erase_bytes: ERASE_BYTES,
        block_bytes: BLOCK_BYTES,
        most: [OPEN_AUS_MOST; 2],
        opened: Opened::UNTOLD,
    };

    /// Bytes from the beginning of the card to the end of the last AU that is written.
    pub fn end_bytes(&self) -> u64 {
        self.end_with(OPEN_AUS_MOST)
    }

    /// The same with `aus` AUs, of which there is at least one.
    fn end_with(&self, aus: u32) -> u64 {
        let erase = self.erase_bytes;
        let last = u64::from(aus - 1) * super::OPEN_AU_STRIDE;
        super::OPEN_AU_START.next_multiple_of(erase) + (last + 1) * erase
    }

    /// Most AUs for which a card of `capacity_bytes` has room; offsets beyond would wrap, and
    /// two AUs be one.
    fn room(&self, capacity_bytes: u64) -> Result<u32, DeviceError> {
        let fit = (1..=OPEN_AUS_MOST).take_while(|aus| self.end_with(*aus) <= capacity_bytes);
        fit.last().ok_or_else(|| DeviceError::Failed {
            operation: "write",
            offset: self.end_with(1) - self.erase_bytes,
            bytes: self.erase_bytes,
            reason: format!(
                "the card has {capacity_bytes} bytes, flashbench -O needs {}",
                self.end_with(1)
            ),
        })
    }
}

/// What the writes of `-O` take as in [`curves_of`], in a fraction of its time: of the tests
/// before, only the larger writes of `-f` are done, which leave the card in the same state.
///
/// # Errors
/// As [`curves_of`].
pub fn write_times_of(
    profile: &Profile,
    seed: u64,
    tests: &OpenAuTests,
) -> Result<WriteTimes, DeviceError> {
    let mut device = used(profile, seed);
    let larger = FlashbenchWriting {
        erase_bytes: tests.erase_bytes,
        block_bytes: LARGER_BLOCK_BYTES,
        ..FIRST_AUS
    };
    device.rest(BETWEEN_RUNS);
    let mut host = Host::new(&mut device, tests.erase_bytes);
    host.find_fat(&larger)?;
    host.open_au_tests(tests)
}

fn used(profile: &Profile, seed: u64) -> Modelled {
    Modelled::new(Card::used(profile, seed), profile.capacity_bytes())
}

impl Host<'_> {
    /// `-O` with one AU and more, in order, then at random.
    pub(super) fn open_au_tests(&mut self, tests: &OpenAuTests) -> Result<WriteTimes, DeviceError> {
        let mut times = WriteTimes::default();
        let room = tests.room(self.size)?;
        for (random, most) in [false, true].into_iter().zip(tests.most) {
            for aus in 1..=most.min(room) {
                self.device.rest(BETWEEN_RUNS);
                let writing = FlashbenchWriting {
                    erase_bytes: tests.erase_bytes,
                    block_bytes: tests.block_bytes,
                    aus,
                    random,
                };
                if let Some(count) = tests.opened.before(random, aus) {
                    self.opened_before(&writing, count)?;
                }
                let found = self.open_aus(&writing)?;
                times.0[usize::from(random)].insert(aus, found);
            }
        }
        Ok(times)
    }

    /// Takes every place of the card for AUs that no test writes, then some for the last `count`
    /// AUs of the test, the last one first. Each is written wholly in two halves: nothing of it
    /// is left to be merged.
    fn opened_before(&mut self, test: &FlashbenchWriting, count: u8) -> Result<(), DeviceError> {
        let start = OPEN_AU_START.next_multiple_of(test.erase_bytes);
        let others = 1..=u64::from(OPEN_AUS_MOST);
        let of_test = shuffled(u64::from(test.aus)).into_iter().rev();
        let theirs = of_test.take(count.into()).map(|au| au * OPEN_AU_STRIDE);
        for au in others.chain(theirs) {
            for half in 0..2 {
                let bytes = test.erase_bytes / 2;
                self.write(start + au * test.erase_bytes + half * bytes, bytes)?;
            }
        }
        Ok(())
    }
}
