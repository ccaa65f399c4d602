//! The tests of flashbench on a [`TimedDevice`]: `-a`, `-f` and `-O`, with and without `--random`.
//!
//! Access sequences after the program itself (github.com/bradfa/flashbench, `flashbench.c`
//! and `vm.c`), since a card has a history and their order and repetition decide what is
//! measured:
//! - `-O` starts at 16 MiB and uses AUs that are 12 × erase size apart. From the erase size
//!   down to the block size, each size writes all AUs wholly: for each block of an AU, in
//!   order or by a shift register, that block of every AU; the AUs always by the register.
//! - `-f` does the same for one AU after the other from the beginning of the device.
//! - `-a` reads one block before, across and at each power of two, at seven places, and keeps
//!   the fastest of several tries for each place.
//!
//! Times are averaged in whole nanoseconds and turned into bytes a second, as there; unlike
//! the program's output, results are not rounded to three digits. Offsets beyond the device
//! wrap, as there.

mod order;
mod tests_of_card;

use crate::curves::{Align, Rates};
use crate::device::{DeviceError, TimedDevice};
use order::{in_order, shuffled};
use std::collections::BTreeMap;
use whichfs_units::SECTOR;

pub use tests_of_card::{
    OPEN_AUS_MOST, OpenAuTests, Opened, WriteTimes, curves_of, write_times_of,
};

/// Where `-O` begins, if no offset is given: behind the FAT.
const OPEN_AU_START: u64 = 16 << 20;
/// Distance of the AUs that `-O` writes, in AUs.
const OPEN_AU_STRIDE: u64 = 12;
/// Places at which `-a` reads.
const ALIGN_PLACES: u64 = 7;
/// What flashbench writes where the name of its buffer says "random".
const FILL: u8 = 0x5a;

/// Options of `flashbench -O` and `-f`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlashbenchWriting {
    /// `--erasesize`: what is taken for an AU, and the largest block.
    pub erase_bytes: u64,
    /// `--blocksize`: the smallest block.
    pub block_bytes: u64,
    /// `--open-au-nr` or `--fat-nr`.
    pub aus: u32,
    /// `--random`.
    pub random: bool,
}

impl FlashbenchWriting {
    /// Block sizes from the erase size down to the block size, as far as they are whole sectors.
    fn sizes(&self) -> impl Iterator<Item = u64> + use<> {
        let least = self.block_bytes;
        std::iter::successors(Some(self.erase_bytes), |size| Some(size / 2))
            .take_while(move |size| *size >= least && *size > 0 && size.is_multiple_of(SECTOR))
    }

    /// Order of the blocks of `bytes` in an AU.
    fn blocks(&self, bytes: u64) -> Vec<u64> {
        let count = self.erase_bytes / bytes;
        if self.random {
            shuffled(count)
        } else {
            in_order(count)
        }
    }
}

/// `flashbench -O`: rates by block size with `writing.aus` AUs open.
///
/// # Errors
/// The first request that the device fails.
pub fn open_aus(
    device: &mut dyn TimedDevice,
    writing: &FlashbenchWriting,
) -> Result<Rates, DeviceError> {
    let found = Host::new(device, writing.erase_bytes).open_aus(writing)?;
    Ok(rates(&found))
}

/// `flashbench -f`: rates of the first `writing.aus` AUs by block size.
///
/// # Errors
/// The first request that the device fails.
pub fn find_fat(
    device: &mut dyn TimedDevice,
    writing: &FlashbenchWriting,
) -> Result<BTreeMap<u64, Vec<f64>>, DeviceError> {
    Host::new(device, writing.erase_bytes).find_fat(writing)
}

/// `flashbench -a -b block_bytes -c tries`: one line for each power of two.
///
/// # Errors
/// The first request that the device fails.
pub fn align(
    device: &mut dyn TimedDevice,
    block_bytes: u64,
    tries: u32,
) -> Result<BTreeMap<u64, Align>, DeviceError> {
    let size = device.capacity_bytes();
    let mut host = Host::new(device, block_bytes);
    let mut most = block_bytes * 2;
    while most < size / ALIGN_PLACES {
        most *= 2;
    }
    let mut lines = BTreeMap::new();
    let mut boundary = most;
    while boundary >= block_bytes * 2 {
        let starts = [boundary - block_bytes, boundary - block_bytes / 2, boundary];
        let mut fastest = [[u64::MAX; ALIGN_PLACES as usize]; 3];
        for _ in 0..tries {
            for (start, places) in starts.iter().zip(&mut fastest) {
                for (place, least) in places.iter_mut().enumerate() {
                    let at = start + place as u64 * most;
                    *least = host.read(at, block_bytes)?.min(*least);
                }
            }
        }
        lines.insert(boundary, line(&fastest));
        boundary /= 2;
    }
    Ok(lines)
}

/// Averages of the places in microseconds, and `on - (pre + post) / 2`.
fn line(fastest: &[[u64; ALIGN_PLACES as usize]; 3]) -> Align {
    let [pre, on, post] = fastest.map(|places| (places.iter().sum::<u64>() / ALIGN_PLACES) as i64);
    let microseconds = |ns: i64| ns as f64 / 1e3;
    [
        microseconds(pre),
        microseconds(on),
        microseconds(post),
        microseconds(on - (pre + post) / 2),
    ]
}

/// What the writes of one size of a test of `-O` took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizeTimes {
    /// All of them together.
    pub total_ns: u64,
    /// How many they are.
    pub requests: u64,
    /// Bytes a second as the program prints it, from averages in whole nanoseconds.
    pub rate: f64,
}

impl SizeTimes {
    /// Nanoseconds of a write in the mean.
    pub fn mean_ns(&self) -> f64 {
        self.total_ns as f64 / self.requests as f64
    }
}

/// The rates that the program prints.
fn rates(found: &BTreeMap<u64, SizeTimes>) -> Rates {
    let rates = found.iter().map(|(bytes, spent)| (*bytes, spent.rate));
    rates.collect()
}

/// Bytes a second in whole numbers; a device that takes no time has the rate of a nanosecond.
fn rate(bytes: u64, ns: u64) -> f64 {
    (1_000_000_000 * bytes / ns.max(1)) as f64
}

/// The device with flashbench's buffers and its wrapping of offsets.
struct Host<'a> {
    device: &'a mut dyn TimedDevice,
    size: u64,
    buffer: Vec<u8>,
}

impl Host<'_> {
    /// A host of `device` whose transfers have at most `most` bytes.
    fn new(device: &mut dyn TimedDevice, most: u64) -> Host<'_> {
        Host {
            size: device.capacity_bytes(),
            buffer: vec![FILL; most as usize],
            device,
        }
    }

    /// As [`open_aus`].
    fn open_aus(
        &mut self,
        writing: &FlashbenchWriting,
    ) -> Result<BTreeMap<u64, SizeTimes>, DeviceError> {
        let start = OPEN_AU_START.next_multiple_of(writing.erase_bytes);
        let aus = shuffled(u64::from(writing.aus));
        let mut found = BTreeMap::new();
        for bytes in writing.sizes() {
            let blocks = writing.blocks(bytes);
            let (mut sum, mut total_ns) = (0, 0);
            for block in &blocks {
                let mut of_block = 0;
                for au in &aus {
                    let base = start + au * OPEN_AU_STRIDE * writing.erase_bytes;
                    of_block += self.write(base + block * bytes, bytes)?;
                }
                sum += of_block / aus.len() as u64;
                total_ns += of_block;
            }
            let spent = SizeTimes {
                total_ns,
                requests: (blocks.len() * aus.len()) as u64,
                rate: rate(bytes, sum / blocks.len() as u64),
            };
            found.insert(bytes, spent);
        }
        Ok(found)
    }

    /// As [`find_fat`].
    fn find_fat(
        &mut self,
        writing: &FlashbenchWriting,
    ) -> Result<BTreeMap<u64, Vec<f64>>, DeviceError> {
        let mut found = BTreeMap::new();
        for bytes in writing.sizes() {
            let blocks = writing.blocks(bytes);
            let mut rates = Vec::new();
            for au in 0..u64::from(writing.aus) {
                let mut sum = 0;
                for block in &blocks {
                    sum += self.write(au * writing.erase_bytes + block * bytes, bytes)?;
                }
                rates.push(rate(bytes, sum / blocks.len() as u64));
            }
            found.insert(bytes, rates);
        }
        Ok(found)
    }

    fn write(&mut self, offset: u64, bytes: u64) -> Result<u64, DeviceError> {
        let mut spent = 0;
        for (at, length) in self.pieces(offset, bytes) {
            let data = &self.buffer[..length as usize];
            spent += self.device.write(at, data)?.0;
        }
        Ok(spent)
    }

    fn read(&mut self, offset: u64, bytes: u64) -> Result<u64, DeviceError> {
        let mut spent = 0;
        for (at, length) in self.pieces(offset, bytes) {
            let buffer = &mut self.buffer[..length as usize];
            spent += self.device.read(at, buffer)?.0;
        }
        Ok(spent)
    }

    /// A transfer that reaches the end of the device goes on at its beginning.
    fn pieces(&self, offset: u64, bytes: u64) -> impl Iterator<Item = (u64, u64)> + use<> {
        let (size, end) = (self.size, offset + bytes);
        let mut at = offset;
        std::iter::from_fn(move || {
            let place = at % size;
            let length = (end - at).min(size - place);
            at += length;
            (length > 0).then_some((place, length))
        })
    }
}

#[cfg(test)]
mod tests;
