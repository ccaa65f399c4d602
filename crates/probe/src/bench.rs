//! The device under test behind a counter: budget, errors, stalls, data to keep, progress.
//!
//! **What may go wrong and what follows.** A request that fails is a lost sample; a dozen in
//! a row end the stage. A device that is gone, a budget that is used up and a user who has
//! enough end the probe, which then reports what it has. A request that takes seconds is
//! noted and is an outlier that no median minds. A device that slows down shows in the
//! *sentinels*: the same requests repeated from time to time.
//!
//! **Data to keep.** With [`Writing::Preserve`] what is written to a place is what was read
//! there just before, in the same stage; a place that cannot be read is not written.

use crate::evidence::{ProbeCost, ProbeEvidence, Sentinel, Stage};
use crate::options::{NextStage, ProbeOptions, ProbeStep, Progress, Writing};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use whichfs_curves::{DeviceError, TimedDevice};
use whichfs_units::{KIB, MIB, Nanos, Rng};

/// Failures in a row that end a stage.
const FAILURES_MAX: u32 = 12;
/// Events that are told one by one.
const EVENTS_MAX: usize = 20;
/// A read or write that takes longer is noted.
const STALL: Nanos = Nanos::from_secs(10);
/// Largest request that is made.
pub(crate) const REQUEST_MAX: u64 = 4 * MIB;
/// Requests between two looks at the sentinels and two calls of the watcher.
const PULSE: u64 = 128;
/// Places that are read as sentinels, and the size of such a read.
const SENTINELS: u64 = 4;
const SENTINEL_BYTES: u64 = 16 * KIB;

/// Why a stage ended without its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Halt {
    /// This stage cannot be done.
    Stage(String),
    /// The requests of this stage failed.
    Lost(String),
    /// Nothing more can be done.
    Probe(String),
}

/// A device, what it may cost, and what it has cost.
pub(crate) struct Bench<'a> {
    device: &'a mut dyn TimedDevice,
    progress: &'a mut dyn Progress,
    options: ProbeOptions,
    pub capacity: u64,
    /// Places and orders of the stage at hand.
    pub rng: Rng,
    pub spent: ProbeCost,
    /// Where streams began.
    pub streams: BTreeSet<u64>,
    /// What a long stream covered: other tests stay away from it.
    away: Range<u64>,
    /// Time spent before this device was opened, in an earlier part of the probe.
    before: Nanos,
    pub events: Vec<String>,
    failures: u32,
    sentinels: Vec<u64>,
    pub read_sentinels: Vec<Sentinel>,
    buffer: Vec<u8>,
    pattern: Vec<u8>,
    held: BTreeMap<u64, Vec<u8>>,
    flushes: bool,
    step: ProbeStep,
    /// Share of the work at the beginning and at the end of the stage at hand.
    share: (f64, f64),
}

impl<'a> Bench<'a> {
    /// `device` as `evidence` left it.
    pub fn new(
        device: &'a mut dyn TimedDevice,
        progress: &'a mut dyn Progress,
        evidence: &ProbeEvidence,
    ) -> Bench<'a> {
        let options = evidence.options;
        let capacity = device.capacity_bytes();
        let mut rng = Rng::named(options.seed, "sentinels");
        let sentinels = (0..SENTINELS)
            .map(|_| rng.below((capacity / SENTINEL_BYTES).max(1)) * SENTINEL_BYTES)
            .collect();
        let mut pattern = Vec::new();
        if options.writing == Writing::Destroy {
            pattern.resize(REQUEST_MAX as usize, 0);
            Rng::named(options.seed, "pattern").fill(&mut pattern);
        }
        Bench {
            device,
            progress,
            options,
            capacity,
            rng,
            spent: evidence.spent,
            streams: BTreeSet::new(),
            away: evidence.sustained.as_ref().map_or(0..0, |stream| {
                stream.base..stream.base.saturating_add(stream.bytes())
            }),
            before: evidence.spent.device,
            events: evidence.events.clone(),
            failures: 0,
            sentinels,
            read_sentinels: evidence.read_sentinels.clone(),
            buffer: vec![0; REQUEST_MAX as usize],
            pattern,
            held: BTreeMap::new(),
            flushes: true,
            step: ProbeStep {
                doing: "",
                done: 0.0,
                left: None,
            },
            share: (0.0, 0.0),
        }
    }

    /// Begins a stage that is the share `share` of all work, from and to.
    pub fn begin(&mut self, name: &str, doing: &'static str, share: (f64, f64)) {
        self.rng = Rng::named(self.options.seed, name);
        self.failures = 0;
        self.held.clear();
        self.step.doing = doing;
        self.share = share;
        self.tell(0.0);
    }

    /// Says that the share `part` of the stage is done.
    pub fn tell(&mut self, part: f64) {
        let done = self.share.0 + (self.share.1 - self.share.0) * part.clamp(0.0, 1.0);
        let done = done.max(self.step.done);
        let spent = self.spent.device.0 as f64;
        self.step.done = done;
        self.step.left = (done > 0.02).then(|| Nanos((spent * (1.0 - done) / done) as u64));
        self.progress.step(&self.step);
    }

    pub fn checkpoint(&mut self, evidence: &ProbeEvidence) {
        self.progress.checkpoint(evidence);
    }

    /// Which stage comes next.
    pub fn next(&mut self, left: &[Stage], evidence: &ProbeEvidence) -> NextStage {
        self.progress.next(left, evidence)
    }

    /// Reads and returns the time in microseconds, or `None` if it failed.
    pub fn read(&mut self, offset: u64, bytes: u64) -> Result<Option<f64>, Halt> {
        self.check(0)?;
        let spent = self.device.read(offset, &mut self.buffer[..bytes as usize]);
        self.spent.reads = self.spent.reads.saturating_add(1);
        self.spent.read_bytes = self.spent.read_bytes.saturating_add(bytes);
        let time = self.judge("read", spent)?;
        if self.spent.reads.is_multiple_of(PULSE) {
            self.look()?;
        }
        Ok(time)
    }

    /// Makes ready to write `bytes` at `offset`: data that are to be kept are read now, so
    /// that no read comes between the writes that are timed.
    pub fn hold(&mut self, offset: u64, bytes: u64) -> Result<(), Halt> {
        if self.options.writing != Writing::Preserve {
            return Ok(());
        }
        let mut at = offset;
        while at < offset + bytes {
            let length = REQUEST_MAX.min(offset + bytes - at);
            if self.read(at, length)?.is_some() {
                let data = self.buffer[..length as usize].to_vec();
                self.held.insert(at, data);
            }
            at += length;
        }
        Ok(())
    }

    /// Other tests take no places in `range`.
    pub fn keep_away(&mut self, range: Range<u64>) {
        self.away = range;
    }

    /// Whether a test may take the `bytes` at `offset`.
    pub fn is_free(&self, offset: u64, bytes: u64) -> bool {
        offset + bytes <= self.away.start || offset >= self.away.end
    }

    /// Up to `count` AUs of `au` bytes that a long stream wrote wholly, apart from each other if
    /// there is room.
    pub fn streamed(&self, au: u64, count: usize) -> Vec<u64> {
        let (first, end) = (self.away.start.div_ceil(au), self.away.end / au);
        let aus = end.saturating_sub(first);
        let apart = (aus / (count as u64).max(1)).clamp(1, 3);
        let places = (first..end).step_by(apart as usize).map(|at| at * au);
        places.take(count).collect()
    }

    /// Bytes that may be written in all.
    pub fn write_budget(&self) -> u64 {
        self.options.budget.write_bytes
    }

    /// Writes a place that no other write of the stage comes to.
    pub fn write_held(&mut self, offset: u64, bytes: u64) -> Result<Option<f64>, Halt> {
        self.hold(offset, bytes)?;
        let time = self.write(offset, bytes)?;
        self.release();
        Ok(time)
    }

    /// Forgets what is held: the places may change from now on.
    pub fn release(&mut self) {
        self.held.clear();
    }

    /// Writes and returns the time in microseconds, or `None` if it failed.
    pub fn write(&mut self, offset: u64, bytes: u64) -> Result<Option<f64>, Halt> {
        assert!(
            self.options.writing != Writing::Never,
            "a stage that writes runs only where writing is allowed"
        );
        self.check(bytes)?;
        if self.options.writing == Writing::Preserve && self.held_range(offset, bytes).is_none() {
            self.hold(offset, bytes)?;
        }
        let spent = match self.options.writing {
            Writing::Preserve => {
                let Some((start, from)) = self.held_range(offset, bytes) else {
                    return Ok(None);
                };
                let data = &self.held[&start][from..from + bytes as usize];
                self.device.write(offset, data)
            }
            // Other bytes at other places, as data have it.
            _ => {
                let room = REQUEST_MAX - bytes;
                let from = (offset / 512 * 4096 % (room + 1)) as usize;
                self.device
                    .write(offset, &self.pattern[from..from + bytes as usize])
            }
        };
        self.spent.writes = self.spent.writes.saturating_add(1);
        self.spent.write_bytes = self.spent.write_bytes.saturating_add(bytes);
        if self.spent.writes.is_multiple_of(PULSE) {
            self.progress.step(&self.step);
        }
        self.judge("write", spent)
    }

    /// Writes and makes durable; the time of both in microseconds.
    pub fn write_through(&mut self, offset: u64, bytes: u64) -> Result<Option<f64>, Halt> {
        let Some(written) = self.write(offset, bytes)? else {
            return Ok(None);
        };
        Ok(Some(written + self.flush()?.unwrap_or(0.0)))
    }

    /// Flushes; `None` where the device does not know that.
    pub fn flush(&mut self) -> Result<Option<f64>, Halt> {
        if !self.flushes {
            return Ok(None);
        }
        self.check(0)?;
        match self.device.flush() {
            Err(DeviceError::Unsupported(_)) => {
                self.flushes = false;
                Ok(None)
            }
            spent => self.judge("flush", spent),
        }
    }

    /// Discards; `Ok(None)` if it failed, [`Halt::Stage`] where the device does not know it.
    pub fn discard(&mut self, offset: u64, bytes: u64) -> Result<Option<f64>, Halt> {
        self.check(0)?;
        let spent = self.device.discard(offset, bytes);
        self.judge("discard", spent)
    }

    /// Leaves the device alone.
    pub fn rest(&mut self, span: Nanos) -> Result<(), Halt> {
        self.device.rest(span);
        self.check(0)
    }

    /// Whether `bytes` more can be written.
    pub fn affords(&self, bytes: u64) -> bool {
        self.spent.write_bytes.saturating_add(bytes) <= self.options.budget.write_bytes
    }

    /// Reads the sentinels.
    pub fn look(&mut self) -> Result<(), Halt> {
        let mut us = 0.0;
        // Apart from the buffer in which data that are to be kept may stand.
        let mut buffer = [0; SENTINEL_BYTES as usize];
        for at in 0..self.sentinels.len() {
            let offset = self.sentinels[at];
            self.check(0)?;
            let spent = self.device.read(offset, &mut buffer);
            self.spent.reads = self.spent.reads.saturating_add(1);
            self.spent.read_bytes = self.spent.read_bytes.saturating_add(SENTINEL_BYTES);
            us += self.judge("read", spent)?.unwrap_or(f64::NAN);
        }
        self.progress.step(&self.step);
        if us.is_finite() {
            let at_s = self.spent.device.as_secs_f64();
            self.read_sentinels.push(Sentinel { at_s, us });
        }
        Ok(())
    }

    fn held_range(&self, offset: u64, bytes: u64) -> Option<(u64, usize)> {
        let (start, data) = self.held.range(..=offset).next_back()?;
        let from = offset - start;
        (from + bytes <= data.len() as u64).then_some((*start, from as usize))
    }

    /// Time on the device, that of earlier parts of the probe included.
    fn now(&self) -> Nanos {
        Nanos(self.before.0.saturating_add(self.device.elapsed().0))
    }

    /// Whether one more request may be made.
    fn check(&mut self, write_bytes: u64) -> Result<(), Halt> {
        let now = self.now();
        self.spent.device = now;
        if now >= self.options.budget.device {
            let limit = self.options.budget.device;
            return Err(Halt::Probe(format!(
                "the budget of {limit} on the device is used up"
            )));
        }
        if write_bytes > 0 && !self.affords(write_bytes) {
            let limit = whichfs_units::Bytes(self.options.budget.write_bytes);
            return Err(Halt::Probe(format!(
                "the budget of {limit} to write is used up"
            )));
        }
        if self.progress.stop() {
            return Err(Halt::Probe("stopped by the user".into()));
        }
        Ok(())
    }

    /// What a request's answer means: a time, a lost sample, or the end.
    fn judge(
        &mut self,
        what: &'static str,
        answer: Result<Nanos, DeviceError>,
    ) -> Result<Option<f64>, Halt> {
        self.spent.device = self.now();
        match answer {
            Ok(spent) => {
                self.failures = 0;
                if spent >= STALL {
                    self.note(format!("a {what} took {spent}"));
                }
                Ok(Some(spent.0 as f64 / 1e3))
            }
            Err(error @ (DeviceError::Gone(_) | DeviceError::Stopped(_))) => {
                Err(Halt::Probe(error.to_string()))
            }
            Err(error @ DeviceError::Unsupported(_)) => Err(Halt::Stage(error.to_string())),
            Err(error) => {
                self.spent.errors = self.spent.errors.saturating_add(1);
                self.failures += 1;
                self.note(error.to_string());
                if self.failures >= FAILURES_MAX {
                    let reason = format!("{FAILURES_MAX} requests in a row failed, last: {error}");
                    return Err(Halt::Lost(reason));
                }
                Ok(None)
            }
        }
    }

    fn note(&mut self, event: String) {
        if self.events.len() < EVENTS_MAX {
            let at = self.spent.device.as_secs_f64();
            self.events.push(format!("after {at:.1} s: {event}"));
        }
    }
}
