//! The truth about a random card, and whether a finding agrees with it.

use super::cards::Specimen;
use super::measured::{absent, around, bands, discard_of_4_mib, fast_rate};
use super::noisy::Noise;
use std::collections::{BTreeMap, BTreeSet};
use whichfs_curves::{Modelled, TimedDevice};
use whichfs_probe::{Finding, Findings, Quantity};
use whichfs_units::{KIB, MIB, Nanos};

/// What is known of a card without any noise.
pub struct Truth {
    counts: BTreeMap<Quantity, u64>,
    limited: bool,
    small: bool,
    read_rates: BTreeMap<u64, f64>,
    write_rates: BTreeMap<u64, f64>,
    /// Least and greatest value that is right, of the card at its own speed.
    bands: BTreeMap<Quantity, (f64, f64)>,
    /// The same of a discard where the AU is not known.
    discard_of_4_mib: (f64, f64),
    /// Whether writes at random take longer the more are made: an answer is as of now, or none.
    unsettled: bool,
    /// What the card does not have or show: no value is the right answer.
    absent: BTreeSet<Quantity>,
}

/// How a finding compares with the truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    Right,
    Null,
    Unsure,
    Wrong,
}

/// Times, which grow with a card that slows down; the rest of the bands are rates.
const TIMES: [Quantity; 7] = [
    Quantity::OverflowUs,
    Quantity::FlushUs,
    Quantity::DiscardUs,
    Quantity::ReadLatencyUs,
    Quantity::ReadLatency99Us,
    Quantity::WriteLatencyUs,
    Quantity::WriteLatency99Us,
];

/// What goes by the data that a card without any has got.
const RANDOM_WRITES: [Quantity; 5] = [
    Quantity::RandomWrite4k,
    Quantity::RandomWrite16k,
    Quantity::RandomWrite64k,
    Quantity::WriteLatencyUs,
    Quantity::WriteLatency99Us,
];

/// A cache that is faster by less shows in no noise.
const SEEN: f64 = 1.12;

impl Truth {
    pub fn of(card: &Specimen, noise: Noise) -> Truth {
        Truth::seen(card, 0, noise, |device| device)
    }

    /// The truth about a card as one sees it through `make`, whose times scatter by `noise`.
    ///
    /// AUs begin `phase` bytes before multiples of their size there.
    pub fn seen<D: TimedDevice + Clone>(
        card: &Specimen,
        phase: u64,
        noise: Noise,
        make: impl Fn(Modelled) -> D,
    ) -> Truth {
        let figures = [
            (Quantity::PageBytes, "geometry.page_bytes"),
            (Quantity::AuBytes, "geometry.au_bytes"),
            (Quantity::FatAus, "fat.aus"),
            (Quantity::FatFirstAu, "fat.first_au"),
            (Quantity::ZoneBytes, "read.zone_bytes"),
            (Quantity::SmallWriteBytes, "log_block.small_write_bytes"),
            (Quantity::CacheBytes, "cache.bytes"),
            (Quantity::SlcBytes, "slc.bytes"),
        ];
        let mut counts: BTreeMap<Quantity, u64> =
            figures.map(|(q, path)| (q, card.figure(path))).into();
        let (linear, random) = card.open_aus();
        counts.insert(Quantity::OpenAusLinear, linear);
        counts.insert(Quantity::OpenAusRandom, random);
        counts.insert(Quantity::WriteUnitBytes, card.program_unit());
        let au = card.profile.au_bytes();
        let capacity = card.profile.capacity_bytes();
        let base = capacity / 3 / au * au - phase;
        let fresh = make(card.device());
        let in_use = make(card.in_use());
        let mut read_rates = BTreeMap::new();
        let mut write_rates = BTreeMap::new();
        let mut size = 4 * KIB;
        while size <= 4 * MIB {
            let bytes = if card.figure("cache.bytes") > 0 {
                16 * MIB
            } else {
                2 * MIB
            };
            let bytes = bytes.max(4 * size).max(au).next_multiple_of(size);
            let goes_on = round_bytes(card, size).next_multiple_of(size).max(bytes);
            read_rates.insert(size, read_rate(fresh.clone(), base, size, bytes));
            let lead = lead_bytes(card, size).next_multiple_of(size);
            write_rates.insert(size, write_rate(fresh.clone(), base, size, (lead, goes_on)));
            size *= 2;
        }
        let mut truth = Truth {
            counts,
            limited: linear > 0,
            small: card.profile.family() == whichfs_card::Family::LogBlock,
            read_rates,
            write_rates,
            bands: bands(card, noise, (&fresh, &in_use)),
            discard_of_4_mib: discard_of_4_mib(&in_use),
            unsettled: !card.used && card.profile.family() == whichfs_card::Family::LogBlock,
            absent: absent(card),
        };
        if card.figure("slc.bytes") > 0 {
            let rate = fast_rate(fresh, base);
            if rate > SEEN * truth.write_rates[&(2 * MIB)] {
                truth.bands.insert(Quantity::SlcWriteMbS, around(rate, 0.1));
            } else {
                // The bus is as slow as the flash: nothing shows.
                truth.counts.insert(Quantity::SlcBytes, 0);
                truth
                    .absent
                    .extend([Quantity::SlcBytes, Quantity::SlcWriteMbS]);
            }
        }
        truth
    }

    /// What is right of `quantity`, for people.
    pub fn told(&self, quantity: Quantity) -> String {
        let rates = |rates: &BTreeMap<u64, f64>| {
            let each = rates
                .iter()
                .map(|(size, rate)| format!("{} {rate:.2}", size / KIB));
            each.collect::<Vec<_>>().join(", ")
        };
        match quantity {
            Quantity::ReadMbS | Quantity::BestReadBytes => rates(&self.read_rates),
            Quantity::WriteMbS | Quantity::BestWriteBytes => rates(&self.write_rates),
            _ => {
                let (band, count) = (self.bands.get(&quantity), self.counts.get(&quantity));
                format!(
                    "{band:?} {count:?} absent {}",
                    self.absent.contains(&quantity)
                )
            }
        }
    }

    /// Whether the quantity can be asked of this card.
    pub fn applies(&self, quantity: Quantity) -> bool {
        quantity != Quantity::SmallWriteBytes || self.small
    }

    /// Whether a value agrees, the card being slower by a factor between the two.
    pub fn agrees(&self, quantity: Quantity, finding: &Finding, slower: (f64, f64)) -> bool {
        let Some(value) = finding.value else {
            return self.absent.contains(&quantity)
                || self.unsettled && RANDOM_WRITES.contains(&quantity);
        };
        let near = |truth: f64, tolerance: f64| {
            value.real() >= truth / slower.1 * (1.0 - tolerance)
                && value.real() <= truth / slower.0 * (1.0 + tolerance)
        };
        match quantity {
            Quantity::OpenAusLinear | Quantity::OpenAusRandom => {
                let least = value.whole();
                match (self.limited, finding.at_least) {
                    (true, false) => least == self.counts[&quantity],
                    (true, true) => least <= self.counts[&quantity],
                    (false, at_least) => at_least,
                }
            }
            _ if self.absent.contains(&quantity) => false,
            Quantity::SlcBytes | Quantity::CacheBytes if self.counts[&quantity] > 0 => {
                let truth = self.counts[&quantity] as f64;
                (value.real() / truth - 1.0).abs() <= 0.1
            }
            Quantity::ReadMbS => near(top(&self.read_rates), 0.07),
            Quantity::WriteMbS => near(top(&self.write_rates), 0.07),
            Quantity::BestReadBytes => best(&self.read_rates, value.whole()),
            Quantity::BestWriteBytes => best(&self.write_rates, value.whole()),
            _ if self.bands.contains_key(&quantity) => {
                let unknown = finding.evidence.contains("discards of 4 MiB");
                let (low, high) = match quantity {
                    Quantity::DiscardUs if unknown => self.discard_of_4_mib,
                    _ => self.bands[&quantity],
                };
                let (slow, fast) = if TIMES.contains(&quantity) {
                    (low * slower.0, high * slower.1)
                } else {
                    (low / slower.1, high / slower.0)
                };
                (slow..=fast).contains(&value.real())
            }
            _ => value.whole() == self.counts[&quantity],
        }
    }
}

/// Full rate, in MB/s: the middle one of those of the three largest sizes.
fn top(rates: &BTreeMap<u64, f64>) -> f64 {
    let mut large: Vec<f64> = rates.values().rev().take(3).copied().collect();
    large.sort_by(f64::total_cmp);
    large[1]
}

/// Whether a size is at full rate, and not much larger than need be.
fn best(rates: &BTreeMap<u64, f64>, size: u64) -> bool {
    let full = |size: u64, share: f64| rates.get(&size).is_some_and(|r| *r >= share * top(rates));
    full(size, 0.92) && (size <= 8 * KIB || !full(size / 4, 0.97))
}

/// Rate of reading `bytes` from `base` on in requests of `size`, in MB/s.
fn read_rate(mut device: impl TimedDevice, base: u64, size: u64, bytes: u64) -> f64 {
    let mut buffer = vec![0; size as usize];
    let mut read = Nanos::ZERO;
    for at in (0..bytes).step_by(size as usize) {
        read += device.read(base + at, &mut buffer).unwrap();
    }
    bytes as f64 / read.0 as f64 * 1e3
}

/// What a stream of requests of `size` writes until all AUs are closed that were open before it:
/// as many AUs as can be open, and as many writes as an open one is kept for.
///
/// Closing those is paid once, by whatever is written next, and is no property of the stream.
fn lead_bytes(card: &Specimen, size: u64) -> u64 {
    if !card.limited() {
        return MIB + card.figure("slc.bytes") / size * size + size;
    }
    let aus = card.figure("geometry.open_aus_linear") + 2;
    let kept = card.figure("update_block.keep_writes") + aus;
    (aus * card.profile.au_bytes()).max(kept * size)
}

/// A stream of requests of `size` in which each AU's place was kept for others and came free again.
fn round_bytes(card: &Specimen, size: u64) -> u64 {
    let kept = match card.open_aus() {
        (1.., _) => card.figure("update_block.keep_writes") + card.figure("page_map.keep_writes"),
        _ => 0,
    };
    (kept * size).min(192 * MIB)
}

/// Rate in MB/s of a stream of requests of `size` that goes on: of `bytes`, whole AUs, behind a
/// `lead`, flushed at its end.
fn write_rate(
    mut device: impl TimedDevice,
    base: u64,
    size: u64,
    (lead, bytes): (u64, u64),
) -> f64 {
    let buffer = vec![0; size as usize];
    let room = (device.capacity_bytes() - base) / size * size;
    for at in (0..lead).step_by(size as usize) {
        device.write(base + at % room, &buffer).unwrap();
    }
    device.flush().unwrap();
    let mut write = Nanos::ZERO;
    for at in (lead..lead + bytes).step_by(size as usize) {
        write += device.write(base + at % room, &buffer).unwrap();
    }
    let flush = device.flush().unwrap();
    let idle = device.flush().unwrap();
    write += flush.saturating_sub(idle);
    bytes as f64 / write.0 as f64 * 1e3
}

/// Grade of a finding on a card that is all of these at once: a claim must hold for each, of times
/// and rates for one.
pub fn grade(
    truths: &[Truth],
    quantity: Quantity,
    findings: &Findings,
    slower: (f64, f64),
) -> Grade {
    let finding = findings.get(quantity);
    let agrees = |truth: &Truth| truth.agrees(quantity, finding, slower);
    let measured = |truth: &Truth| truth.bands.contains_key(&quantity);
    let rate = truths.iter().any(measured)
        || matches!(
            quantity,
            Quantity::ReadMbS
                | Quantity::WriteMbS
                | Quantity::BestReadBytes
                | Quantity::BestWriteBytes
        );
    let right = if rate {
        truths.iter().any(agrees)
    } else {
        truths.iter().all(agrees)
    };
    match (right, finding.value.is_some(), finding.confident()) {
        (true, ..) => Grade::Right,
        (false, false, _) => Grade::Null,
        (false, true, true) => Grade::Wrong,
        (false, true, false) => Grade::Unsure,
    }
}

/// Grades by quantity.
#[derive(Default)]
pub struct Summary {
    /// Quantities that are judged.
    pub judged: Vec<Quantity>,
    pub grades: BTreeMap<(Quantity, Grade), u32>,
}

impl Summary {
    pub fn of(judged: &[Quantity]) -> Summary {
        Summary {
            judged: judged.to_vec(),
            ..Summary::default()
        }
    }

    pub fn add(&mut self, quantity: Quantity, grade: Grade) {
        *self.grades.entry((quantity, grade)).or_default() += 1;
    }

    pub fn count(&self, quantity: Option<Quantity>, grade: Option<Grade>) -> u32 {
        let wanted = |(q, g): &(Quantity, Grade)| {
            quantity.is_none_or(|quantity| quantity == *q) && grade.is_none_or(|grade| grade == *g)
        };
        let found = self.grades.iter().filter(|(key, _)| wanted(key));
        found.map(|(_, count)| count).sum()
    }

    pub fn share(&self, quantity: Option<Quantity>, grade: Grade) -> f64 {
        let all = self.count(quantity, None).max(1);
        f64::from(self.count(quantity, Some(grade))) / f64::from(all)
    }

    pub fn print(&self, title: &str) {
        println!("{title}");
        println!(
            "{:<22}{:>7}{:>7}{:>8}{:>7}",
            "", "right", "null", "unsure", "wrong"
        );
        let rows = self.judged.iter().map(|q| (q.name(), Some(*q)));
        for (name, quantity) in rows.chain([("all".to_owned(), None)]) {
            let of = |grade| self.count(quantity, Some(grade));
            println!(
                "{name:<22}{:>7}{:>7}{:>8}{:>7}   {:.1} % right",
                of(Grade::Right),
                of(Grade::Null),
                of(Grade::Unsure),
                of(Grade::Wrong),
                100.0 * self.share(quantity, Grade::Right)
            );
        }
    }
}
