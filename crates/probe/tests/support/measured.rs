//! The truth about what a card takes for requests: measured on the card itself, without a budget.

use super::cards::Specimen;
use super::noisy::{Drift, Noise, Noisy};
use std::collections::{BTreeMap, BTreeSet};
use whichfs_card::Family;
use whichfs_curves::TimedDevice;
use whichfs_probe::Quantity;
use whichfs_units::{KIB, MIB, Rng};

/// Size of a write in turns.
const BLOCK: u64 = 64 * KIB;
/// Finest unit of programming that a test by sizes of 4 KiB and more can tell.
const UNIT_LEAST: u64 = 8 * KIB;

/// `value` and as much around it.
pub fn around(value: f64, share: f64) -> (f64, f64) {
    (value * (1.0 - share), value * (1.0 + share))
}

/// What the card does not have or show.
pub fn absent(card: &Specimen) -> BTreeSet<Quantity> {
    use Quantity::{
        DiscardSpeedup, DiscardUs, FatFirstAu, OverflowUs, SlcBytes, SlcWriteMbS, SmallWriteBytes,
        WriteUnitBytes, ZoneBytes,
    };
    let has = |path: &str| card.figure(path) > 0;
    let is = |family| card.profile.family() == family;
    let rows = [
        (ZoneBytes, has("read.zone_bytes")),
        (FatFirstAu, has("fat.aus")),
        (OverflowUs, card.limited()),
        (SmallWriteBytes, is(Family::LogBlock)),
        (DiscardUs, has("discard.supported")),
        (DiscardSpeedup, has("discard.supported")),
        (SlcBytes, has("slc.bytes")),
        (SlcWriteMbS, has("slc.bytes")),
        (WriteUnitBytes, card.program_unit() >= UNIT_LEAST),
    ];
    let absent = rows.into_iter().filter(|(_, shows)| !shows);
    absent.map(|(quantity, _)| quantity).collect()
}

/// Values between which the truth lies, of what takes time.
pub fn bands<D: TimedDevice + Clone>(
    card: &Specimen,
    noise: Noise,
    (fresh, in_use): (&D, &D),
) -> BTreeMap<Quantity, (f64, f64)> {
    use Quantity::{
        DiscardSpeedup, DiscardUs, FlushUs, OverflowUs, RandomRead4k, RandomRead16k, RandomRead64k,
        RandomWrite4k, RandomWrite16k, RandomWrite64k, ReadLatency99Us, ReadLatencyUs,
        WriteLatency99Us, WriteLatencyUs,
    };
    let mut bands = BTreeMap::new();
    for (quantity, size) in [(RandomRead4k, 4), (RandomRead16k, 16), (RandomRead64k, 64)] {
        let times = reads(&mut fresh.clone(), size * KIB, 200);
        bands.insert(quantity, around(1e6 / mean(&times), 0.07));
    }
    for (quantity, size) in [
        (RandomWrite4k, 4),
        (RandomWrite16k, 16),
        (RandomWrite64k, 64),
    ] {
        let size = size * KIB;
        let times = writes(&mut full(card, fresh), size, long(card, size));
        bands.insert(quantity, around(1e6 / mean(&times), 0.15));
    }
    let noisy = |device| Noisy::new(device, noise, Drift::None, 99);
    let read = reads(&mut noisy(fresh.clone()), 4 * KIB, 3000);
    let written = writes(&mut noisy(full(card, fresh)), 4 * KIB, 1000);
    for (quantity, times, low, high) in [
        (ReadLatencyUs, &read, 0.5, 0.5),
        (ReadLatency99Us, &read, 0.96, 0.9985),
        (WriteLatencyUs, &written, 0.42, 0.58),
        (WriteLatency99Us, &written, 0.96, 0.9985),
    ] {
        let band = (0.93 * quantile(times, low), 1.07 * quantile(times, high));
        bands.insert(quantity, band);
    }
    bands.insert(FlushUs, around(flush(&mut fresh.clone()), 0.1));
    if card.limited() {
        bands.insert(OverflowUs, overflow(card, &mut in_use.clone()));
    }
    if card.figure("discard.supported") > 0 {
        let (us, speedup) = discards(card, in_use);
        bands.insert(DiscardUs, us);
        bands.insert(DiscardSpeedup, speedup);
    }
    bands
}

fn mean(times: &[f64]) -> f64 {
    times.iter().sum::<f64>() / times.len() as f64
}

fn quantile(times: &[f64], q: f64) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[((sorted.len() - 1) as f64 * q).round() as usize]
}

/// Times in microseconds of reads at random places.
fn reads(device: &mut impl TimedDevice, size: u64, count: u64) -> Vec<f64> {
    let mut rng = Rng::named(99, "truth");
    let mut buffer = vec![0; size as usize];
    let mut time = |_| {
        let offset = rng.below(device.capacity_bytes() / size) * size;
        device.read(offset, &mut buffer).unwrap().0 as f64 / 1e3
    };
    (0..count).map(&mut time).collect()
}

/// Time in microseconds of a write that is made durable.
fn through(device: &mut impl TimedDevice, offset: u64, size: u64) -> f64 {
    let written = device.write(offset, &vec![0; size as usize]).unwrap();
    (written + device.flush().unwrap()).0 as f64 / 1e3
}

/// Times of durable writes at random places, behind others that used up what was ready.
fn writes(device: &mut impl TimedDevice, size: u64, count: u64) -> Vec<f64> {
    let mut rng = Rng::named(98, "truth");
    let mut times: Vec<f64> = (0..count + 50)
        .map(|_| {
            let offset = rng.below(device.capacity_bytes() / size) * size;
            through(device, offset, size)
        })
        .collect();
    times.split_off(50)
}

/// Writes of `size` in which a card puts several AUs in order: of 4 KiB a thousand are none of
/// 24 MiB, or one.
fn long(card: &Specimen, size: u64) -> u64 {
    const AUS: u64 = 8;
    (AUS * card.profile.au_bytes() / size).max(1000)
}

/// The card with its pSLC cache full: as it is while it is written to without a rest.
fn full<D: TimedDevice + Clone>(card: &Specimen, fresh: &D) -> D {
    let mut device = fresh.clone();
    let au = card.profile.au_bytes();
    let base = device.capacity_bytes() / 3 / au * au;
    let mut left = card.figure("slc.bytes");
    let mut at = base;
    for size in [MIB, BLOCK, 4 * KIB] {
        while left >= size {
            device.write(at, &vec![0; size as usize]).unwrap();
            left -= size;
            at += size;
        }
    }
    device
}

/// Rate in MB/s of a stream while a pSLC cache takes it in.
pub fn fast_rate(mut device: impl TimedDevice, base: u64) -> f64 {
    let spent: u64 = (0..4)
        .map(|at| {
            device
                .write(base + at * 2 * MIB, &vec![0; 2 << 20])
                .unwrap()
                .0
        })
        .sum();
    (8 * MIB) as f64 / spent as f64 * 1e3
}

fn flush(device: &mut impl TimedDevice) -> f64 {
    let base = device.capacity_bytes() / 2 / MIB * MIB;
    let times: Vec<f64> = (0..11)
        .map(|at| {
            device.write(base + at * 4 * KIB, &[0; 4096]).unwrap();
            device.flush().unwrap().0 as f64 / 1e3
        })
        .collect();
    quantile(&times[1..], 0.5)
}

/// Time of a write that is slow because one AU too many is in use.
fn overflow(card: &Specimen, device: &mut impl TimedDevice) -> (f64, f64) {
    let au = card.profile.au_bytes();
    let (linear, _) = card.open_aus();
    let copies = card.profile.family() == Family::LogBlock;
    // Family S keeps places: more AUs than have any.
    let aus = if copies { linear + 1 } else { 16 };
    // Behind any FAT region.
    let first = 5;
    let step = ((device.capacity_bytes() / au - first - 1) / aus).clamp(1, 3);
    let bases: Vec<u64> = (0..aus).map(|at| (first + step * at) * au).collect();
    let mut times = Vec::new();
    let rounds = (au / BLOCK / 2).clamp(3, 8);
    for round in 0..2 * rounds {
        for base in &bases {
            let us = if copies {
                through(device, base + round % (au / BLOCK) * BLOCK, BLOCK)
            } else {
                through(device, base + (2 * round) % (au / BLOCK) * BLOCK, 2 * BLOCK)
            };
            if round >= rounds {
                times.push(us);
            }
        }
    }
    let alone = bases[0] + au / BLOCK / 2 * BLOCK;
    through(device, alone, BLOCK);
    let alone = through(device, alone + BLOCK, BLOCK);
    let middle = (alone * quantile(&times, 1.0)).sqrt();
    let slow: Vec<f64> = times.into_iter().filter(|us| *us > middle).collect();
    (0.8 * quantile(&slow, 0.1), 1.25 * quantile(&slow, 0.9))
}

/// Time of a discard of 4 MiB somewhere, which is what is told where the AU is not known.
pub fn discard_of_4_mib<D: TimedDevice + Clone>(in_use: &D) -> (f64, f64) {
    let mut device = in_use.clone();
    let step = device.capacity_bytes() / 16 / (24 * MIB) * 24 * MIB;
    let times: Vec<f64> = (1..16)
        .filter_map(|at| Some(device.discard(at * step, 4 * MIB).ok()?.0 as f64 / 1e3))
        .collect();
    if times.is_empty() {
        return (0.0, 0.0);
    }
    (0.9 * quantile(&times, 0.0), 1.1 * quantile(&times, 1.0))
}

/// Time of a discard of an AU, and by how much it makes writes that open one AU and
/// close another faster: by the median, as some close an AU that was open before or put others
/// in order.
fn discards<D: TimedDevice + Clone>(card: &Specimen, fresh: &D) -> ((f64, f64), (f64, f64)) {
    let au = card.profile.au_bytes();
    let (linear, _) = card.open_aus();
    let aus = fresh.capacity_bytes() / au;
    let lead = if card.limited() { linear } else { 2 };
    let count = (lead + 12).min(aus / 10).max(lead + 3);
    let step = (aus / 2 / (2 * count)).clamp(1, 3);
    let (mut times, mut ratios) = (Vec::new(), Vec::new());
    for part in 0..3 {
        let mut device = full(card, fresh);
        let first = 4 + aus / 4 * part;
        let bases: Vec<u64> = (0..2 * count)
            .map(|at| (first + step * at) % (aus - 1) * au)
            .collect();
        let (without, with) = bases.split_at(count as usize);
        let usual = |device: &mut D, bases: &[u64]| -> f64 {
            let times: Vec<f64> = bases
                .iter()
                .map(|base| through(device, *base, BLOCK))
                .collect();
            quantile(&times[lead as usize..], 0.5)
        };
        let before = usual(&mut device, without);
        for base in with {
            times.push(device.discard(*base, au).unwrap().0 as f64 / 1e3);
        }
        ratios.push(before / usual(&mut device, with));
    }
    let us = (0.9 * quantile(&times, 0.1), 1.1 * quantile(&times, 0.9));
    let ratio = (0.75 * quantile(&ratios, 0.0), 1.33 * quantile(&ratios, 1.0));
    (us, ratio)
}
