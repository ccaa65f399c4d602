//! What was measured, stage by stage: the state of a probe, and all that is inferred from.
//!
//! It can be stored after each stage and gone on from; [`crate::infer`] turns it into
//! findings without measuring anything.

use crate::open_aus::AUS_MAX;
use crate::options::ProbeOptions;
use crate::stats::Centre;
use crate::steps::Rise;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use whichfs_units::{MIB, Nanos, SECTOR};

/// A part of the probe; later ones use what earlier ones found.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    schemars::JsonSchema,
    Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Reads across boundaries: page, AU, zones.
    Align,
    /// Reading in order and at random.
    Reading,
    /// A stream so long that a cache of fast blocks comes to its end.
    Sustained,
    /// What a flush costs.
    Flush,
    /// Writing in order.
    Writing,
    /// What is programmed together.
    WriteUnit,
    /// AUs open for writing in order.
    OpenLinear,
    /// AUs open for writing in random order.
    OpenRandom,
    /// Where AUs end, seen by writes.
    AuByWrites,
    /// AUs at the beginning with another mapping.
    FatRegion,
    /// Whether small writes open an AU.
    SmallWrites,
    /// Writing at random places of the whole card.
    RandomWrites,
    /// A cache that takes in more than can be programmed meanwhile.
    Cache,
    /// What a discard costs and brings.
    Discard,
}

impl Stage {
    /// All, in order, with what they do in words and their usual share of the time.
    pub const ALL: [(Stage, &'static str, u32); 14] = [
        (Stage::Align, "reads across boundaries", 16),
        (Stage::Reading, "reading in order and at random", 8),
        (Stage::Sustained, "a long stream of writes", 16),
        (Stage::Flush, "flush", 2),
        (Stage::Writing, "writing in order", 16),
        (Stage::WriteUnit, "what is programmed together", 4),
        (Stage::OpenLinear, "open AUs, written in order", 16),
        (Stage::OpenRandom, "open AUs, written at random", 16),
        (Stage::AuByWrites, "where AUs end, by writes", 8),
        (Stage::FatRegion, "the first AUs", 8),
        (Stage::SmallWrites, "small writes", 4),
        (Stage::RandomWrites, "writing at random", 8),
        (Stage::Cache, "cache", 4),
        (Stage::Discard, "discard", 4),
    ];

    /// Whether it writes.
    pub fn writes(self) -> bool {
        !matches!(self, Stage::Align | Stage::Reading)
    }
}

/// What a probe cost so far.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize,
)]
pub struct ProbeCost {
    /// Read requests.
    pub reads: u64,
    /// Write requests.
    pub writes: u64,
    /// Sum over all read requests.
    pub read_bytes: u64,
    /// Sum over all write requests.
    pub write_bytes: u64,
    /// Time on the device, idle time included.
    pub device: Nanos,
    /// Requests that failed.
    pub errors: u64,
}

/// One level of the alignment test: boundaries that are odd multiples of a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct AlignmentLevel {
    /// The power of two in bytes.
    pub bytes: u64,
    /// How much longer a read across takes than one on either side, in microseconds.
    pub extra_us: Centre,
}

/// A step of the alignment test that was looked at closely.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct Boundary {
    /// Where it rises, by powers of two.
    pub rise: Rise,
    /// The odd number that the power of two is to be multiplied by; `None` if it did not show.
    pub factor: Option<u64>,
    /// Height in each quarter of the card, in microseconds.
    pub quarters: Vec<Centre>,
    /// Whether each quarter of the card has it; else what speaks against it.
    pub doubt: Option<String>,
    /// How many standard errors the weakest test was from the other answer.
    pub score: f64,
}

impl Boundary {
    /// Its size in bytes, if it is known.
    pub fn bytes(&self) -> Option<u64> {
        self.factor.map(|factor| factor * self.rise.bytes)
    }
}

/// Result of [`Stage::Align`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct AlignTest {
    /// Levels, finest first.
    pub levels: Vec<AlignmentLevel>,
    /// Steps, finest first.
    pub boundaries: Vec<Boundary>,
    /// Time of a read of 1 KiB, in microseconds.
    pub read_us: Centre,
    /// Largest step that is taken for an AU, in bytes.
    pub au_max_bytes: u64,
    /// Zones that are a good part of the card.
    pub zones: Option<ZoneTest>,
}

/// Reads across the multiples of a grid over the whole card.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct ZoneTest {
    /// The grid in bytes.
    pub grid_bytes: u64,
    /// How much longer a read across each multiple takes, from zero on, in microseconds, where one
    /// succeeded.
    pub extra_us: Vec<Option<f64>>,
    /// The multiple that stands out, if there is one.
    pub found: Option<ZonePlaces>,
}

/// A multiple of a grid at which reads take longer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct ZonePlaces {
    /// In units of the grid.
    pub multiple: u64,
    /// Boundaries of that size on the card.
    pub boundaries: usize,
    /// By how much longer reads across them take, in microseconds.
    pub height_us: f64,
    /// Spread of the other places, in microseconds.
    pub spread_us: f64,
    /// The height over its standard error.
    pub score: f64,
}

/// Rates of streams of one direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct Streams {
    /// Request size in bytes → bytes a second in each region of the card.
    pub rates: BTreeMap<u64, Vec<f64>>,
}

/// Times of requests at random places.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct RandomTimes {
    /// Request size in bytes → (mean, standard error of the mean, count), in microseconds.
    pub means: BTreeMap<u64, (f64, f64, usize)>,
    /// Request size in bytes → spread of the times over their median, without the 8 %
    /// shortest and longest.
    pub spreads: BTreeMap<u64, f64>,
    /// Times of 4 KiB, in microseconds.
    pub latency: RequestLatency,
    /// Blocks that a page map put in order meanwhile, if the means are told by what they cost for
    /// a byte; else zero.
    #[serde(default)]
    pub blocks: usize,
}

/// Times of one kind of request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct RequestLatency {
    /// Median in microseconds.
    pub median_us: f64,
    /// Time that 99 of 100 do not exceed, in microseconds.
    pub p99_us: f64,
    /// Number of requests.
    pub count: usize,
}

impl RandomTimes {
    /// Whether places differ so much that the card is of more than one kind.
    pub(crate) fn differs(&self, size: u64) -> bool {
        self.spreads.get(&size).is_some_and(|spread| *spread > 0.22)
    }
}

/// Result of [`Stage::Sustained`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct Sustained {
    /// Where it began, in bytes.
    pub base: u64,
    /// Size of a request in bytes.
    pub request_bytes: u64,
    /// Times of the requests in order, in microseconds.
    pub times_us: Vec<f64>,
    /// Requests before all that follow are slower, if there is such a point.
    pub fast: Option<usize>,
    /// Size of the requests of a second stream behind it, in bytes, and their mean time in
    /// microseconds.
    pub small: Option<(u64, f64)>,
}

/// Result of [`Stage::WriteUnit`]: writes in order of many sizes, none joined to another.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct UnitTest {
    /// Unit in bytes that explains the times best.
    pub unit_bytes: u64,
    /// By how much it does, beside the next best unit and beside times that grow evenly with the
    /// size: twice the difference of the logarithms of the likelihoods.
    pub margins: [f64; 2],
    /// Number of writes.
    pub writes: usize,
}

/// One count of AUs written in turns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct OpenAuCount {
    /// AUs in use.
    pub aus: u32,
    /// Writes measured, after those that open the AUs.
    pub writes: u32,
    /// How many of them were slow.
    pub slow: u32,
    /// Whether the AUs were too many to be open.
    pub too_many: bool,
    /// Median of the fast ones in microseconds; zero of none.
    pub fast_us: f64,
    /// Median of the slow ones in microseconds; zero of none.
    pub slow_us: f64,
    /// Which part of the card.
    pub region: u32,
}

/// Result of the tests of open AUs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct OpenAuTest {
    /// Time of a write with one AU in use, in microseconds.
    pub alone_us: Centre,
    /// All that was tried, in order.
    pub turns: Vec<OpenAuCount>,
    /// Most AUs that went without copying, in each region where a limit was found.
    pub limits: Vec<u32>,
    /// Most AUs tried without a limit.
    pub free_up_to: u32,
    /// Most AUs tried without a limit after they had been written wholly.
    pub filled_up_to: u32,
    /// What makes the result doubtful.
    pub doubt: Option<String>,
    /// Beginnings of the AUs that were written wholly, where no others showed a limit.
    pub filled: Vec<u64>,
    /// Request size, in bytes.
    pub block_bytes: u64,
    /// Distance of the AUs, in bytes: a multiple of what was taken for an AU.
    pub stride_bytes: u64,
    /// Median of all slow writes of the last turn that had any, in microseconds.
    pub overflow_us: f64,
    /// The same of AUs that seemed to have no data, where others were written wholly for that; else
    /// zero.
    #[serde(default)]
    pub before_us: f64,
    /// Whether that is long enough to copy an AU.
    pub copies: bool,
    /// Whether the limit is the number of AUs that stayed fast among too many, in both halves of
    /// the card.
    pub kept: bool,
    /// Whether the limit is that of a page map, which writes twice what goes to further AUs;
    /// nothing where that could not be told.
    pub folds: Option<bool>,
}

impl OpenAuTest {
    /// Whether the limit is no count of copies now and then.
    pub(crate) fn is_exact(&self) -> bool {
        self.copies || self.kept || self.folds == Some(true)
    }
}

/// Result of [`Stage::AuByWrites`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct AuByWrites {
    /// The AU in bytes, if the writes tell.
    pub au_bytes: Option<u64>,
    /// Fineness of the search in bytes.
    pub fineness_bytes: u64,
    /// Pairs of writes that agree and disagree with it.
    pub agree: u32,
    /// See `agree`.
    pub disagree: u32,
    /// What makes it doubtful.
    pub doubt: Option<String>,
    /// Whether no place nearby seemed to lie in another AU: closing AUs cost nothing.
    #[serde(default)]
    pub nowhere: bool,
}

/// Result of [`Stage::FatRegion`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct FatRegion {
    /// Microseconds of writes into each of the first AUs.
    pub first_us: Vec<Centre>,
    /// The same elsewhere.
    pub other_us: Centre,
    /// Which of the first AUs differ.
    pub different: Vec<bool>,
    /// Whether it was seen by copying (else by the rate).
    pub by_copies: bool,
}

/// Result of [`Stage::Flush`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct FlushTest {
    /// Whether the device has the operation.
    pub supported: bool,
    /// Microseconds of a flush with nothing to do.
    pub idle_us: Centre,
    /// Microseconds of a flush after a write of 4 KiB.
    pub after_write_us: Centre,
    /// Microseconds of that write.
    pub write_us: Centre,
}

impl FlushTest {
    /// Whether a flush after a write takes time that writes themselves do not show.
    pub(crate) fn matters(&self) -> bool {
        self.supported && self.after_write_us.median > 0.2 * self.write_us.median
    }
}

/// Result of [`Stage::Cache`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct CacheTest {
    /// Each burst: request size, times of the requests in microseconds.
    pub bursts: Vec<(u64, Vec<f64>)>,
    /// Bytes taken in fast, of each burst that saw an end of it.
    pub sizes: Vec<u64>,
    /// Longest burst that saw no change, in bytes.
    pub none_up_to: u64,
}

/// Result of [`Stage::Discard`]: writes that open one AU and close another of the same kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct DiscardTest {
    /// Whether at least one discard succeeded.
    pub supported: bool,
    /// Bytes of one discard.
    pub bytes: u64,
    /// Microseconds of one.
    pub discard_us: Centre,
    /// Microseconds of writes into discarded places.
    pub after_us: Vec<f64>,
    /// Microseconds of the same writes into places with data.
    pub before_us: Vec<f64>,
}

/// The same request from time to time, to see whether the card changes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct Sentinel {
    /// Seconds on the device since the probe began.
    pub at_s: f64,
    /// Time of the request in microseconds.
    pub us: f64,
}

/// All that was measured so far, and how far the probe is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct ProbeEvidence {
    /// What tells this device from another of the same size; the caller says it.
    pub identity: String,
    /// Size that the device claims.
    pub capacity_bytes: u64,
    /// How it was asked to probe.
    pub options: ProbeOptions,
    /// What it cost.
    pub spent: ProbeCost,
    /// Stages that have a result.
    pub done: Vec<Stage>,
    /// Stages that have none, and why.
    pub failed: BTreeMap<Stage, String>,
    /// Those of them whose requests failed: another try may have a result.
    pub lost: Vec<Stage>,
    /// Why it ended early.
    pub ended: Option<String>,
    /// Failed and stalled requests, the first of them.
    pub events: Vec<String>,
    /// Stage by stage.
    pub align: Option<AlignTest>,
    /// Reading in order.
    pub reads: Option<Streams>,
    /// Reading at random.
    pub random_reads: Option<RandomTimes>,
    /// A long stream of writes.
    pub sustained: Option<Sustained>,
    /// What is programmed together.
    pub write_unit: Option<UnitTest>,
    /// Writing in order.
    pub writes: Option<Streams>,
    /// Writing at random.
    pub random_writes: Option<RandomTimes>,
    /// What a flush takes, idle and after a write.
    pub flush: Option<FlushTest>,
    /// AUs written in order in turns.
    pub open_linear: Option<OpenAuTest>,
    /// AUs written at random in turns.
    pub open_random: Option<OpenAuTest>,
    /// Size of the AU, as writes across its boundaries tell it.
    pub au_by_writes: Option<AuByWrites>,
    /// The first AUs.
    pub fat: Option<FatRegion>,
    /// Size of a small write → (writes, slow ones) with one AU more in use than can be open.
    pub small_writes: Option<BTreeMap<u64, (u32, u32, f64)>>,
    /// Bursts of writes, up to those that fill the card's cache.
    pub cache: Option<CacheTest>,
    /// What a discard takes, and whether later writes become faster.
    pub discard: Option<DiscardTest>,
    /// Reads of the same places.
    pub read_sentinels: Vec<Sentinel>,
    /// Writes in order of the same size.
    pub write_sentinels: Vec<Sentinel>,
}

impl ProbeEvidence {
    /// Nothing measured yet of the device `identity`.
    pub fn begin(identity: &str, options: ProbeOptions) -> ProbeEvidence {
        ProbeEvidence {
            identity: identity.to_owned(),
            options,
            ..ProbeEvidence::default()
        }
    }

    /// This state with what is asked for now, but for the seed, which decided the places measured
    /// so far. That it is of the same device is for the caller to see by
    /// [`ProbeEvidence::identity`].
    pub fn go_on(self, options: ProbeOptions) -> ProbeEvidence {
        let seed = self.options.seed;
        ProbeEvidence {
            options: ProbeOptions { seed, ..options },
            ..self
        }
    }

    /// Whether the state is whole and its figures can be those of a device; one from a file may
    /// hold anything.
    ///
    /// # Errors
    /// A stage that is done but has no result, or the first figure that no device has.
    pub fn check(&self) -> Result<(), String> {
        if let Some(stage) = self.done.iter().find(|stage| !self.has_result(**stage)) {
            return Err(format!(
                "done: found {stage:?} without a result; expected one of each stage that is done"
            ));
        }
        if let Some(test) = &self.align {
            for boundary in &test.boundaries {
                self.check_boundary(boundary)?;
            }
        }
        for (name, test) in [
            ("open_linear", &self.open_linear),
            ("open_random", &self.open_random),
        ] {
            if let Some(test) = test {
                self.check_open_aus(name, test)?;
            }
        }
        if let Some(au) = self.au_by_writes.as_ref().and_then(|test| test.au_bytes) {
            self.check_size("au_by_writes.au_bytes", Some(au))?;
        }
        self.check_streams()
    }

    /// Whether all that a stage measures is there.
    fn has_result(&self, stage: Stage) -> bool {
        match stage {
            Stage::Align => self.align.is_some(),
            Stage::Reading => self.reads.is_some() && self.random_reads.is_some(),
            Stage::Sustained => self.sustained.is_some(),
            Stage::Flush => self.flush.is_some(),
            Stage::WriteUnit => self.write_unit.is_some(),
            Stage::Writing => self.writes.is_some(),
            Stage::OpenLinear => self.open_linear.is_some(),
            Stage::OpenRandom => self.open_random.is_some(),
            Stage::AuByWrites => self.au_by_writes.is_some(),
            Stage::FatRegion => self.fat.is_some(),
            Stage::SmallWrites => self.small_writes.is_some(),
            Stage::RandomWrites => self.random_writes.is_some(),
            Stage::Cache => self.cache.is_some(),
            Stage::Discard => self.discard.is_some(),
        }
    }

    /// An AU or page in bytes: whole sectors, no more than the device.
    fn check_size(&self, name: &str, bytes: Option<u64>) -> Result<(), String> {
        let legal = |bytes: &u64| {
            (SECTOR..=self.capacity_bytes).contains(bytes) && bytes.is_multiple_of(SECTOR)
        };
        match bytes.filter(legal) {
            Some(_) => Ok(()),
            None => Err(format!(
                "{name}: found {}; expected whole sectors, at most the device's {} bytes",
                bytes.map_or("a size beyond all".to_owned(), |bytes| bytes.to_string()),
                self.capacity_bytes
            )),
        }
    }

    fn check_boundary(&self, boundary: &Boundary) -> Result<(), String> {
        self.check_size("align.boundaries.rise.bytes", Some(boundary.rise.bytes))?;
        let Some(factor) = boundary.factor else {
            return Ok(());
        };
        let bytes = factor.checked_mul(boundary.rise.bytes);
        self.check_size("align.boundaries, factor times bytes", bytes)
    }

    fn check_open_aus(&self, name: &str, test: &OpenAuTest) -> Result<(), String> {
        let limits = || test.limits.iter().copied();
        let turns = test.turns.iter().map(|turn| turn.aus);
        let counts = turns.chain([test.free_up_to, test.filled_up_to]);
        let none = limits().find(|limit| *limit == 0);
        let many = || counts.chain(limits()).find(|count| *count > AUS_MAX);
        if let Some(count) = none.or_else(many) {
            return Err(format!(
                "{name}: found {count} AUs; expected 1 to {AUS_MAX}"
            ));
        }
        let end = |base: &u64| {
            base.checked_add(MIB)
                .is_none_or(|end| end > self.capacity_bytes)
        };
        match test.filled.iter().find(|base| end(base)) {
            Some(base) => Err(format!(
                "{name}.filled: found a place at {base}; expected places on the device"
            )),
            None => Ok(()),
        }
    }

    /// Rates are of requests of some size in some place, and above zero.
    fn check_streams(&self) -> Result<(), String> {
        for (name, streams) in [("reads", &self.reads), ("writes", &self.writes)] {
            let rates = streams.iter().flat_map(|streams| &streams.rates);
            for (size, rates) in rates {
                if *size == 0 || rates.iter().any(|rate| *rate <= 0.0) {
                    return Err(format!(
                        "{name}: found {rates:?} at {size} bytes; expected rates above zero"
                    ));
                }
            }
        }
        let bursts = self.cache.iter().flat_map(|test| &test.bursts);
        for (size, _) in bursts {
            self.check_size("cache.bursts", Some(*size))?;
        }
        let fat = self.fat.as_ref();
        if fat.is_some_and(|test| test.different.len() != test.first_us.len()) {
            return Err("fat: found AUs without times; expected a time for each".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
