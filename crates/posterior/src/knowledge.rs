//! What is known of a card: its marks, size, year and maker, and what was measured of it.
//!
//! A TOML file:
//!
//! ```toml
//! title = "Kingston Class 10 U1, 16 GB"
//! interface = "sd"                  # sd, emmc, usb
//! capacity_bytes = 15_931_539_456
//! year = 2014                       # of manufacture, or when bought new; optional, as all below
//! maker = "41"                      # maker ID of the CID, or a name
//! marks = ["class 10", "U1"]        # also A1, A2, V30 …
//! logs = ["flashbench.log"]         # outputs of flashbench, dd, hdparm, iozone, fio, bonnie++
//!
//! [sizes]                           # what reads tell for sure
//! au_bytes = 4_194_304
//! open_aus = 5                      # written in turns at no cost; above open_aus_tried: no limit
//! open_aus_random = 4               # the same at random places; default: fewer as is usual
//! open_aus_tried = 7                # most AUs that were tried; default: those of flashbench -O
//!
//! [[observed]]
//! operation = "write"               # read, write
//! order = "random"                  # sequential, random; as flashbench -O: linear-aus, random-aus
//! open_aus = 1                      # of linear-aus and random-aus
//! block_bytes = 4096
//! bytes_per_s = 1_200_000
//! noise_percent = 15                # standard deviation of the measurement
//! at_least = true                   # the host's bus bounded it; default false
//! source = "iozone, 100 MB"
//! ```

mod open_aus;

pub use open_aus::OpenAuLimit;

use serde::Deserialize;
use toml::Spanned;
use whichfs_card::Interface;
use whichfs_card::limits::{AU_BYTES, CAPACITY_MAX, RATE};
use whichfs_curves::Curves;
use whichfs_curves::flashbench::{OPEN_AUS_MOST, Opened};
use whichfs_fit::{CurvePlace, Point, PointOrder, Replay, Sizes};
use whichfs_logs::{Operation, Order as Access, Rate};
use whichfs_units::{KIB, MIB, SECTOR, unknown_key};

/// `--erasesize` of flashbench in the published logs, in bytes.
const ERASE_BYTES: u64 = 4 * MIB;
/// Noise of a log: two runs of one unit differ by 3.7 % in the median (docs/fit.md).
const LOG_NOISE: f64 = 0.05;
/// How far a card may be below its speed mark, or its A mark, whose conditions are not those of
/// the sequences here: standard deviations of `ln`.
const SPEED_NOISE: f64 = 0.2;
const APPLICATION_NOISE: f64 = 0.3;
/// Random reads and writes a second of an A1 card (`flash.md` §5). A2 promises more, but with a
/// command queue, which the model has not.
const A1_PER_S: [f64; 2] = [1500.0, 500.0];
/// Smallest card: flashbench -O with 7 AUs of 4 MiB and room behind it.
const CAPACITY_LEAST: u64 = 400 * MIB;
/// Noise of an observation, in percent.
const NOISE_PERCENT: [f64; 2] = [1.0, 300.0];

/// What is known of a card.
#[derive(Clone, Debug, PartialEq)]
pub struct Knowledge {
    /// Maker and model, for people.
    pub title: String,
    /// What the card is plugged into.
    pub interface: Interface,
    /// Bytes that the host sees.
    pub capacity_bytes: u64,
    /// Year of manufacture.
    pub year: Option<u32>,
    /// Maker: an ID such as `03`, or a name.
    pub maker: Option<String>,
    /// Marks on the card.
    pub marks: Marks,
    /// Sizes that are known for sure.
    pub sizes: Sizes,
    /// AUs that can be written in turns at no cost.
    pub open_aus: Option<OpenAuLimit>,
    /// Logs that the caller reads and gives to [`Knowledge::observe`].
    pub logs: Vec<String>,
    /// What was measured.
    pub observations: Vec<Observation>,
}

/// Marks on a card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Sequential write rate that speed class, U and V marks promise, in MB/s.
    pub write_mb_s: Option<u32>,
    /// Whether it has an A mark.
    pub application: bool,
}

/// What an observation says of the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The time of a request is the card's own.
    Exact,
    /// The most that a request takes: the host was the limit, or a mark promises it.
    AtMost,
}

/// One measurement of a card.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// Which requests.
    pub place: CurvePlace,
    /// Time of one request in nanoseconds.
    pub ns: f64,
    /// Standard deviation of `ln` of the time.
    pub noise: f64,
    /// What it says.
    pub bound: Bound,
    /// What it is called in messages.
    pub label: String,
}

/// Why a file says nothing of a card.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {why}")]
pub struct KnowledgeError {
    /// File name as given.
    pub file: String,
    /// Line, counted from one.
    pub line: usize,
    /// What is wrong, and what is legal.
    pub why: String,
}

/// A profile that says what is known of its card, too.
#[derive(Deserialize)]
struct Within {
    knowledge: Option<File>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    title: String,
    interface: Interface,
    capacity_bytes: Spanned<u64>,
    year: Option<Spanned<u32>>,
    maker: Option<String>,
    #[serde(default)]
    marks: Vec<Spanned<String>>,
    #[serde(default)]
    logs: Vec<String>,
    #[serde(default)]
    sizes: SizesFile,
    #[serde(default)]
    observed: Vec<Spanned<Observed>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct SizesFile {
    page_bytes: Option<Spanned<u64>>,
    write_unit_bytes: Option<Spanned<u64>>,
    au_bytes: Option<Spanned<u64>>,
    open_aus: Option<Spanned<u32>>,
    open_aus_random: Option<Spanned<u32>>,
    open_aus_tried: Option<Spanned<u32>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Observed {
    operation: OperationFile,
    order: OrderFile,
    open_aus: Option<u32>,
    block_bytes: u64,
    bytes_per_s: f64,
    noise_percent: f64,
    #[serde(default)]
    at_least: bool,
    source: String,
}

#[derive(Deserialize, Clone, Copy, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum OperationFile {
    Read,
    Write,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
enum OrderFile {
    Sequential,
    Random,
    LinearAus,
    RandomAus,
}

/// Name → text of every shipped knowledge file, by name.
static SHIPPED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/knowledge.rs"));

/// What is known of the cards that the studies name (`knowledge/*.toml`): (name, TOML text).
pub fn shipped_knowledge() -> &'static [(&'static str, &'static str)] {
    SHIPPED
}

impl Knowledge {
    /// A card of which nothing is known but interface and size.
    pub fn of(title: &str, interface: Interface, capacity_bytes: u64) -> Knowledge {
        Knowledge {
            title: title.to_owned(),
            interface,
            capacity_bytes,
            year: None,
            maker: None,
            marks: Marks::default(),
            sizes: Sizes::default(),
            open_aus: None,
            logs: Vec::new(),
            observations: Vec::new(),
        }
    }

    /// Whether a TOML text is meant as knowledge, not as a profile: it names no family.
    pub fn is_meant(toml: &str) -> bool {
        let root = toml.parse::<toml::Table>();
        let own = ["capacity_bytes", "marks", "logs", "sizes", "observed"];
        root.is_ok_and(|root| {
            !root.contains_key("family") && own.iter().any(|key| root.contains_key(*key))
        })
    }

    /// Reads the text of a knowledge file.
    ///
    /// # Errors
    /// Anything missing, unknown or out of its range, with file and line.
    pub fn parse(file: &str, text: &str) -> Result<Knowledge, KnowledgeError> {
        let read: File = read(file, text)?;
        Knowledge::checked(file, text, read)
    }

    /// Reads the section `[knowledge]` of a profile, which a probe writes: none if it has none.
    ///
    /// # Errors
    /// As [`Knowledge::parse`].
    pub fn within(file: &str, profile: &str) -> Result<Option<Knowledge>, KnowledgeError> {
        let read: Within = read(file, profile)?;
        let section = read.knowledge;
        section
            .map(|section| Knowledge::checked(file, profile, section))
            .transpose()
    }

    /// What `read` says, which was read from `text`.
    fn checked(file: &str, text: &str, read: File) -> Result<Knowledge, KnowledgeError> {
        let error = |at: usize, why: String| wrong(file, text, at, why);
        let bytes = &read.capacity_bytes;
        if !(CAPACITY_LEAST..=CAPACITY_MAX).contains(bytes.get_ref())
            || !bytes.get_ref().is_multiple_of(SECTOR)
        {
            let why = format!(
                "capacity_bytes: {}; legal are whole sectors of 512 bytes from {CAPACITY_LEAST} to \
                 {CAPACITY_MAX}",
                bytes.get_ref()
            );
            return Err(error(bytes.span().start, why));
        }
        let mut known = Knowledge::of(&read.title, read.interface, *bytes.get_ref());
        if let Some(year) = &read.year {
            if !(2000..=2100).contains(year.get_ref()) {
                let why = format!("year: {}; legal are 2000 to 2100", year.get_ref());
                return Err(error(year.span().start, why));
            }
            known.year = Some(*year.get_ref());
        }
        known.maker = read.maker;
        known.logs = read.logs;
        for mark in &read.marks {
            known
                .mark(mark.get_ref())
                .map_err(|why| error(mark.span().start, why))?;
        }
        known.sizes = sizes(&read.sizes).map_err(|(at, why)| error(at, why))?;
        known.open_aus = open_aus::read(&read.sizes).map_err(|(at, why)| error(at, why))?;
        for observed in &read.observed {
            let at = observed.span().start;
            let found = observation(observed.get_ref());
            known
                .observations
                .push(found.map_err(|why| error(at, why))?);
        }
        Ok(known)
    }

    /// Adds a mark: what it promises counts as an observation.
    ///
    /// # Errors
    /// No mark of this name; the message lists all.
    pub fn mark(&mut self, mark: &str) -> Result<(), String> {
        let word = mark
            .to_ascii_lowercase()
            .replace("class", "c")
            .replace([' ', '_'], "");
        let number = word.get(1..).and_then(|number| number.parse::<u32>().ok());
        let (letter, Some(number)) = (word.get(..1).unwrap_or(""), number) else {
            return Err(unknown_mark(mark));
        };
        match (letter, number) {
            ("c", 2 | 4 | 6 | 10) | ("v", 6 | 10 | 30 | 60 | 90) => self.promises(mark, number),
            ("u", 1 | 3) => self.promises(mark, number * 10),
            ("a", 1 | 2) => {
                self.marks.application = true;
                for (operation, per_s) in [Operation::Read, Operation::Write]
                    .into_iter()
                    .zip(A1_PER_S)
                {
                    let order = PointOrder::Host(operation, Access::Random);
                    let place = CurvePlace {
                        order,
                        aus: 1,
                        bytes: 4 * KIB,
                    };
                    self.observations.push(Observation {
                        place,
                        ns: 1e9 / per_s,
                        noise: APPLICATION_NOISE,
                        bound: Bound::AtMost,
                        label: format!("mark {mark}"),
                    });
                }
            }
            _ => return Err(unknown_mark(mark)),
        }
        Ok(())
    }

    /// Adds the promise of so many MB/s written in order.
    fn promises(&mut self, mark: &str, mb_s: u32) {
        if self.marks.write_mb_s.is_some_and(|other| other >= mb_s) {
            return;
        }
        self.marks.write_mb_s = Some(mb_s);
        let order = PointOrder::Host(Operation::Write, Access::Sequential);
        let place = CurvePlace {
            order,
            aus: 1,
            bytes: 512 * KIB,
        };
        self.observations.push(Observation {
            place,
            ns: (512 * KIB) as f64 / f64::from(mb_s) * 1e3,
            noise: SPEED_NOISE,
            bound: Bound::AtMost,
            label: format!("mark {mark}"),
        });
    }

    /// Adds what a log measured; returns what of it could not be used, and why.
    pub fn observe(&mut self, log: &str, curves: &Curves, rates: &[Rate]) -> Vec<String> {
        let bounds = |rate: &&Rate| rate.caveat.is_some_and(|caveat| caveat.at_least);
        let own: Vec<Rate> = rates.iter().filter(|rate| !bounds(rate)).cloned().collect();
        let (mut points, left_out) = whichfs_fit::measured(curves, &own, &replay(0));
        points.extend(small_reads(curves));
        let told = |point: &Point| points.iter().any(|other| other.place == point.place);
        let mut bounds = whichfs_fit::lower_bounds(rates);
        bounds.retain(|point| !told(point));
        let exact = points.into_iter().map(|point| (point, Bound::Exact));
        let of_log = exact.chain(bounds.into_iter().map(|point| (point, Bound::AtMost)));
        self.observations
            .extend(of_log.map(|(point, bound)| Observation {
                place: point.place,
                ns: point.ns,
                noise: LOG_NOISE,
                bound,
                label: format!("{log}: {}, {} bytes", point.place.name(), point.place.bytes),
            }));
        left_out
    }

    /// Everything that decides the posterior, as text for a digest.
    pub fn canonical(&self) -> String {
        let mut text = format!(
            "{:?} {} {:?} {:?} {:?}\n",
            self.interface, self.capacity_bytes, self.year, self.maker, self.sizes
        );
        if let Some(open) = self.open_aus {
            let OpenAuLimit {
                linear,
                random,
                tried,
            } = open;
            text.push_str(&format!("open_aus {linear}"));
            if (random, tried) != (None, OPEN_AUS_MOST) {
                text.push_str(&format!(" {random:?} {tried}"));
            }
            text.push('\n');
        }
        for observation in &self.observations {
            let Observation {
                place,
                ns,
                noise,
                bound,
                ..
            } = observation;
            text.push_str(&format!("{place:?} {ns} {noise} {bound:?}\n"));
        }
        text
    }
}

/// Reads `text` as `T`.
fn read<T: serde::de::DeserializeOwned>(file: &str, text: &str) -> Result<T, KnowledgeError> {
    toml::from_str(text).map_err(|e| {
        let why = match unknown_key(e.message()) {
            Some((found, hint)) => format!("{found}; {hint}"),
            None => e.message().to_owned(),
        };
        wrong(file, text, e.span().map_or(0, |span| span.start), why)
    })
}

/// What is wrong at the byte `at` of `text`.
fn wrong(file: &str, text: &str, at: usize, why: String) -> KnowledgeError {
    KnowledgeError {
        file: file.to_owned(),
        line: text.get(..at).unwrap_or(text).matches('\n').count() + 1,
        why,
    }
}

/// The sequences of the observations, on cards that were written with `seed` before.
pub(crate) fn replay(seed: u64) -> Replay {
    Replay {
        erase_bytes: ERASE_BYTES,
        seed,
        opened: Opened::UNTOLD,
    }
}

/// Time of a read by flashbench's alignment test, before boundaries.
fn small_reads(curves: &Curves) -> Option<Point> {
    let mut all: Vec<f64> = curves
        .align
        .values()
        .flatten()
        .map(|line| line[0])
        .collect();
    all.sort_by(f64::total_cmp);
    let us = *all.get(all.len() / 2)?;
    let order = PointOrder::Host(Operation::Read, Access::Random);
    let place = CurvePlace {
        order,
        aus: 1,
        bytes: curves.align_block_bytes()?,
    };
    (us > 0.0).then_some(Point {
        place,
        ns: us * 1e3,
    })
}

fn unknown_mark(mark: &str) -> String {
    format!(
        "marks: `{mark}`; legal are class 2, 4, 6 and 10, U1, U3, V6, V10, V30, V60, V90, A1 and A2"
    )
}

fn sizes(file: &SizesFile) -> Result<Sizes, (usize, String)> {
    let size = |name: &str, of: &Option<Spanned<u64>>| {
        let Some(stated) = of else {
            return Ok(None);
        };
        let bytes = *stated.get_ref();
        match (SECTOR..=*AU_BYTES.end()).contains(&bytes) && bytes.is_multiple_of(SECTOR) {
            true => Ok(Some(bytes)),
            false => {
                let why = format!("{name}: {bytes}; legal are whole sectors up to 64 MiB");
                Err((stated.span().start, why))
            }
        }
    };
    Ok(Sizes {
        page_bytes: size("page_bytes", &file.page_bytes)?,
        write_unit_bytes: size("write_unit_bytes", &file.write_unit_bytes)?,
        au_bytes: size("au_bytes", &file.au_bytes)?,
    })
}

fn observation(file: &Observed) -> Result<Observation, String> {
    let operation = match file.operation {
        OperationFile::Read => Operation::Read,
        OperationFile::Write => Operation::Write,
    };
    let order = match file.order {
        OrderFile::Sequential => PointOrder::Host(operation, Access::Sequential),
        OrderFile::Random => PointOrder::Host(operation, Access::Random),
        OrderFile::LinearAus => PointOrder::Linear,
        OrderFile::RandomAus => PointOrder::Random,
    };
    if order.is_flashbench() && file.operation == OperationFile::Read {
        return Err("operation: flashbench -O (linear-aus, random-aus) writes".into());
    }
    let aus = file.open_aus.unwrap_or(1);
    if !(1..=OPEN_AUS_MOST).contains(&aus) || (aus > 1 && !order.is_flashbench()) {
        return Err(format!(
            "open_aus: {aus}; legal are 1 to {OPEN_AUS_MOST}, above 1 with linear-aus and \
             random-aus"
        ));
    }
    let bytes = file.block_bytes;
    let halved =
        bytes > 0 && ERASE_BYTES.is_multiple_of(bytes) && (ERASE_BYTES / bytes).is_power_of_two();
    if bytes == 0
        || !bytes.is_multiple_of(SECTOR)
        || bytes > 16 * MIB
        || (order.is_flashbench() && !halved)
    {
        return Err(format!(
            "block_bytes: {bytes}; legal are whole sectors up to 16 MiB, and {ERASE_BYTES} by a \
             power of two with linear-aus and random-aus"
        ));
    }
    let rate = file.bytes_per_s;
    if !(rate.is_finite() && (0.1 * *RATE.start() as f64..=*RATE.end() as f64).contains(&rate)) {
        return Err(format!(
            "bytes_per_s: {rate}; no card has less than 1000 or more than 4,000,000,000: bytes a \
             second, not MB/s"
        ));
    }
    let [least, most] = NOISE_PERCENT;
    if !(least..=most).contains(&file.noise_percent) {
        return Err(format!(
            "noise_percent: {}; legal are {least} to {most}: no measurement is without noise, two \
             runs on one card differ by some 4 %",
            file.noise_percent
        ));
    }
    let place = CurvePlace { order, aus, bytes };
    Ok(Observation {
        place,
        ns: bytes as f64 / rate * 1e9,
        noise: file.noise_percent / 100.0,
        bound: if file.at_least {
            Bound::AtMost
        } else {
            Bound::Exact
        },
        label: format!("{}, {bytes} bytes ({})", place.name(), file.source),
    })
}

#[cfg(test)]
mod tests;
