//! The rows of `cards.csv` and of tables like it, and the runs of `flashbench.json`.
#![allow(clippy::unwrap_used, dead_code)]

use std::collections::BTreeMap;
use whichfs_card::{Interface, Profile};
use whichfs_fit::{CurvePlace, FitOptions, Jobs, PointOrder, Sizes};
use whichfs_logs::{LoggedRun, Operation, Order as Access};
use whichfs_posterior::{Bound, Knowledge, Observation, OpenAuLimit};
use whichfs_probe::{Quantity, Value, interpret};
use whichfs_units::{KIB, MIB, SECTOR};

/// Rows that are no members: those of cards that published tables judge (PA, BL, EL, GW); the
/// same card with the command queue or a queue of requests, which the model has not; the same
/// models in a slower host; a disk; means of units one of which died.
const LEFT_OUT: [&str; 29] = [
    "EM2", "PA1", "PA2", "PA3", "BL2", "EL1", "GW1", "BM1", "BM3", "BM5", "BM7", "BM9", "BM11",
    "BM13", "BM15", "PD2-1", "PD2-2", "PD2-3", "PD2-4", "PD2-5", "PD2-6", "PD2-7", "PD2-8",
    "PD2-10", "PD2-11", "PD2-17", "BH3", "BH4", "SW1",
];
/// A card whose row has the year of the review, which calls the card rather old.
const OF_REVIEW: &str = "PT2";
/// Noise of a rate through a filesystem: repeats on one card scatter by 5 to 16 %.
const NOISE: f64 = 0.15;
/// A rate within this share of the host's cap is the host's.
const AT_THE_CAP: f64 = 0.88;
/// Caps of the slots in which the rows PD2 and PD4 were measured, in MB/s: the most that cards read
/// of which a faster host read more.
const PI_2: f64 = 19.4;
const PI_4: f64 = 46.1;
/// hdparm's MB.
const HDPARM_MB: f64 = 1.048_576;
/// Runs of flashbench through a USB reader: their logs name the device `/dev/sdX`
/// (github.com/wirenboard/sdcard_benchmark, `results/result_RUN.txt`).
const IN_A_READER: [&str; 11] = [
    "2", "4", "6", "6_2", "10", "11", "15", "15_1", "16", "20", "32",
];

/// A row of `cards.csv`.
pub struct Row {
    pub id: String,
    pub name: String,
    pub interface: Interface,
    pub bytes: u64,
    pub year: Option<u32>,
    pub maker: Option<String>,
    /// Open AUs in order, where flashbench -O says how many.
    pub open_aus: Option<u32>,
    /// Size of an AU, where one is stated without doubt.
    pub au_bytes: Option<u64>,
    /// MB/s in order and requests a second at random, by column.
    pub figures: BTreeMap<&'static str, f64>,
    /// Cap of the host, in MB/s.
    pub cap: Option<f64>,
    /// Whether writes at random are those of flashbench -O --random: within one AU, not over the
    /// whole card.
    pub in_one_au: bool,
    /// Whether requests at random went all over the card, where a card is slower than in a file.
    pub all_over: bool,
}

const FIGURES: [(&str, Operation, Access, u64); 6] = [
    ("seq_read_mbps", Operation::Read, Access::Sequential, MIB),
    ("rand4k_read_iops", Operation::Read, Access::Random, 4 * KIB),
    ("seq_write_mbps", Operation::Write, Access::Sequential, MIB),
    (
        "rand4k_write_iops",
        Operation::Write,
        Access::Random,
        4 * KIB,
    ),
    (
        "rand16k_write_iops",
        Operation::Write,
        Access::Random,
        16 * KIB,
    ),
    (
        "rand64k_write_iops",
        Operation::Write,
        Access::Random,
        64 * KIB,
    ),
];

pub fn rows(path: &str) -> Vec<Row> {
    let mut reader = csv::ReaderBuilder::new()
        .comment(Some(b'#'))
        .from_path(path)
        .unwrap();
    let head = reader.headers().unwrap().clone();
    let records = reader.records().map(Result::unwrap);
    let row = |record: csv::StringRecord| {
        let get = |name: &str| {
            let at = head.iter().position(|column| column == name).unwrap();
            record.get(at).unwrap().trim().to_owned()
        };
        let interface = match get("interface").as_str() {
            "eMMC" => Interface::Emmc,
            "USB" => Interface::Usb,
            _ => Interface::Sd,
        };
        let capacity: f64 = get("capacity_gb").parse().unwrap_or(8.0);
        let id = get("id");
        let figures = FIGURES
            .iter()
            .filter_map(|(name, ..)| get(name).parse::<f64>().ok().map(|value| (*name, value)));
        Row {
            figures: figures.collect(),
            bytes: (capacity * 1e9) as u64 / MIB * MIB / SECTOR * SECTOR,
            year: get("year").parse().ok().filter(|_| id != OF_REVIEW),
            maker: maker(&get("name")),
            // `64+` is more than flashbench tries.
            au_bytes: get("au_or_erase_mib")
                .parse()
                .ok()
                .map(|mib: u64| mib * MIB),
            open_aus: get("open_au_linear").trim_end_matches('+').parse().ok(),
            cap: match &id {
                id if id.starts_with("PD2-") => Some(PI_2),
                id if id.starts_with("PD4-") => Some(PI_4),
                _ => None,
            },
            all_over: get("conditions").contains("whole card"),
            in_one_au: get("conditions").contains("flashbench"),
            name: get("name"),
            id,
            interface,
        }
    };
    let mut rows: Vec<Row> = records.map(row).collect();
    // The same model was measured again some years later: it is of the first year.
    for at in 0..rows.len() {
        let same = rows.iter().filter(|row| row.name == rows[at].name);
        rows[at].year = same.filter_map(|row| row.year).min();
    }
    rows
}

/// The brand, and the maker ID if the row has it.
fn maker(name: &str) -> Option<String> {
    let brand = name
        .split([' ', '"'])
        .find(|word| !word.is_empty())?
        .to_owned();
    let id = name.split("mfid ").nth(1).and_then(|rest| rest.get(..2));
    let id = id.or(match brand.as_str() {
        "SanDisk" => Some("03"),
        "Samsung" => Some("1b"),
        "Toshiba" => Some("02"),
        _ => None,
    });
    Some(id.map_or(brand.clone(), |id| format!("{brand}/{id}")))
}

impl Row {
    /// Whether it is a card of which rates are known and no curves.
    pub fn of_rates(&self) -> bool {
        let writes = self
            .figures
            .keys()
            .filter(|name| name.contains("write"))
            .count();
        !self.id.starts_with("WB")
            && !LEFT_OUT.contains(&self.id.as_str())
            && writes > 1
            && self.figures.contains_key("rand4k_write_iops")
    }

    /// What is known of it: its marks, size and year, its reads and its writes if asked for.
    pub fn knowledge(&self, reads: bool, writes: bool) -> Knowledge {
        let mut known = Knowledge::of(&self.name, self.interface, self.bytes);
        known.year = self.year;
        known.maker = self.maker.clone();
        known.open_aus = self.open_aus.map(OpenAuLimit::of_flashbench);
        known.sizes.au_bytes = self.au_bytes;
        for mark in marks(&self.name) {
            known.mark(&mark).unwrap();
        }
        for (name, operation, access, bytes) in FIGURES {
            let asked = if operation == Operation::Read {
                reads
            } else {
                writes
            };
            let Some(value) = self.figures.get(name).filter(|_| asked) else {
                continue;
            };
            // The rows of the Raspberry Pis have hdparm's rate of reading.
            let mb = match operation == Operation::Read && self.id.starts_with("PD") {
                true => HDPARM_MB,
                false => 1.0,
            };
            let ns = match access {
                Access::Sequential => bytes as f64 / (value * mb) * 1e3,
                Access::Random => 1e9 / value,
            };
            let capped = match (access, operation) {
                (Access::Sequential, _) => {
                    self.cap.is_some_and(|cap| value * mb > AT_THE_CAP * cap)
                }
                // A read takes 71 to 182 us longer there than in a Raspberry Pi 4.
                (Access::Random, Operation::Read) => self.cap == Some(PI_2),
                (Access::Random, _) => self.all_over,
            };
            let order = match (operation, access) {
                (Operation::Write, Access::Random) if self.in_one_au => PointOrder::Random,
                _ => PointOrder::Host(operation, access),
            };
            known.observations.push(Observation {
                place: CurvePlace {
                    order,
                    aus: 1,
                    bytes,
                },
                ns,
                noise: NOISE,
                bound: if capped { Bound::AtMost } else { Bound::Exact },
                label: name.to_owned(),
            });
        }
        known
    }
}

/// Marks in a card's name.
pub fn marks(name: &str) -> Vec<String> {
    let words = name.replace("Class ", "C").replace(['(', ')'], " ");
    let is_mark =
        |word: &&str| ["C2", "C4", "C6", "C10", "U1", "U3", "A1", "A2", "V30"].contains(word);
    words
        .split(' ')
        .filter(is_mark)
        .map(str::to_owned)
        .collect()
}

pub fn runs(path: &str) -> Vec<LoggedRun> {
    whichfs_logs::read(path, std::fs::read(path).unwrap()).unwrap()
}

/// What is known of the card of `run` without its writes: marks, size, year, maker, sizes, reads.
pub fn known_without_writes(run: &LoggedRun, row: &Row) -> Knowledge {
    let mut reads = run.clone();
    reads.curves.linear.clear();
    reads.curves.random.clear();
    reads.rates.retain(|rate| rate.operation == Operation::Read);
    let mut known = row.knowledge(true, false);
    known.sizes = sizes(run);
    known.open_aus = None;
    known.observe(&run.name, &reads.curves, &reads.rates);
    known
}

/// The write points of `run`.
pub fn written(run: &LoggedRun, row: &Row) -> Vec<Observation> {
    let mut all = Knowledge::of(&row.name, row.interface, row.bytes);
    all.observe(&run.name, &run.curves, &[]);
    all.observations.retain(|of| of.place.order.is_flashbench());
    all.observations
}

/// The row of a run: `6_2` is one of `WB6`.
pub fn row_of_run<'a>(rows: &'a [Row], run: &str) -> &'a Row {
    let id = format!("WB{}", run.split('_').next().unwrap());
    rows.iter().find(|row| row.id == id).unwrap()
}

pub fn fit_options(run: &LoggedRun) -> FitOptions {
    FitOptions {
        capacity_bytes: run.card.capacity_bytes,
        erase_bytes: run.erase_bytes,
        sizes: sizes(run),
        jobs: Jobs(side_by_side),
        title: run.name.clone(),
        source: run.name.clone(),
        ..FitOptions::default()
    }
}

/// Sizes of which a probe is sure that reads the log.
pub fn sizes(run: &LoggedRun) -> Sizes {
    let found = interpret(&run.curves);
    let sure = |quantity| {
        let finding = found.get(quantity);
        finding
            .value
            .filter(|_| finding.confident())
            .map(Value::whole)
    };
    Sizes {
        page_bytes: sure(Quantity::PageBytes),
        write_unit_bytes: sure(Quantity::WriteUnitBytes),
        au_bytes: sure(Quantity::AuBytes),
    }
}

/// The card of a fitted `run` without its reader, which joins requests that go on from each other,
/// and cuts long ones: the same card joins in a reader and not in a slot (runs 16 and 16_2), and of
/// the cards in a slot one joins.
pub fn without_reader(run: &str, fitted: &Profile) -> Profile {
    let joins = |path: &str| path.starts_with("write.coalesce") && IN_A_READER.contains(&run);
    let of_reader = |path: &str| path.starts_with("reader.") || joins(path);
    fitted.with_defaults(of_reader).unwrap()
}

/// Each job on a thread of its own.
pub fn side_by_side(count: usize, job: &(dyn Fn(usize) + Sync)) {
    std::thread::scope(|scope| {
        for at in 0..count {
            scope.spawn(move || job(at));
        }
    });
}
