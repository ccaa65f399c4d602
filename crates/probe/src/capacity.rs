//! Cards that lie about their size: what is written beyond the real end wraps around,
//! vanishes, or fails.
//!
//! f3 fills the whole card; its probe writes few blocks but takes for granted that wrapping
//! cards wrap at a power of two. Here one stripe near the beginning, of the 2000th part of
//! the claimed size, is filled with marked blocks, and the rest is *read* at distances of a
//! stripe: wherever the device wraps, one of these reads falls into the stripe and its mark
//! tells the period exactly. Vanishing writes are found by single marks, sixteen to a round,
//! until the end is known to the block: O(log n) of them. Marks are read only after other
//! writes have pushed them out of a cache that would show them for a while.
//!
//! **Data to keep.** What stands on a block is read and given to a [`UndoLog`] before the first
//! mark is written there. However the check ends (a lie, an error, the user, a panic), all of
//! it is put back, read and compared; a block counts as lost if it does not read as before.
//! Where nothing lies this is exact. Beyond the end of a card that lies nothing was kept, so
//! nothing can be lost there, but it is written back too: the end that was found may be a
//! passing fault. A place that shows a mark when it is to be saved is another name of a block
//! that is saved already.

use crate::marks::{self, BLOCK};
use crate::options::{ProbeStep, Progress};
use crate::put_back::{self, Blocks, REQUEST, UndoLog, put_back};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use whichfs_curves::{DeviceError, TimedDevice};
use whichfs_units::{Bytes, MIB, SECTOR};

/// Bounds of the stripe.
const STRIPE: (u64, u64) = (MIB, 32 * MIB);
/// Marks of one round of the search.
const MARKS: u64 = 16;

/// What is done with what is on the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapacityOptions {
    /// Decides the marks. Another one for each check of a real device: marks that an earlier
    /// check left must not be taken for those of this one.
    pub seed: u64,
    /// Put back what was there. On a card that lies, what is beyond its end never was.
    pub preserve: bool,
}

/// How a device behaves at its claimed size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Honesty {
    /// It keeps what is written up to its claimed end.
    Honest,
    /// Addresses wrap around at the real size.
    Wraps,
    /// What is written beyond the real size is not kept.
    Vanishes,
    /// Requests beyond the real size fail.
    Fails,
    /// It does not keep what is written at its very beginning either.
    Broken,
    /// The check did not come to an end.
    Unknown,
}

/// Result of a capacity check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct CapacityReport {
    /// What the device says.
    pub claimed_bytes: u64,
    /// Where it really ends: to the byte if it wraps, else to 4 KiB; `None` if that is not known.
    pub real_bytes: Option<u64>,
    /// How it behaves.
    pub honesty: Honesty,
    /// What was seen, in words.
    pub evidence: String,
    /// Bytes written, those put back included.
    pub bytes_written: u64,
    /// Blocks whose contents are not back as they were, or not known to be there to stay.
    pub lost_blocks: u64,
    /// Why it ended early.
    pub ended: Option<String>,
}

/// Checks where `device` really ends. The check writes; `keeper` is the undo log, which gets all
/// data before they are overwritten.
pub fn capacity(
    device: &mut dyn TimedDevice,
    options: &CapacityOptions,
    keeper: &mut dyn UndoLog,
    progress: &mut dyn Progress,
) -> CapacityReport {
    let claimed_bytes = device.capacity_bytes();
    let mut check = Check {
        device,
        keeper,
        progress,
        options: *options,
        claimed: claimed_bytes / BLOCK * BLOCK,
        written: 0,
        saved: BTreeMap::new(),
        unkept: BTreeMap::new(),
        epochs: BTreeMap::new(),
        epoch: 0,
    };
    let (honesty, real_bytes, evidence, ended) = match check.run() {
        Ok((honesty, real, evidence)) => (honesty, real, evidence, None),
        Err(reason) => {
            let evidence = "the check did not come to an end".to_owned();
            (Honesty::Unknown, None, evidence, Some(reason))
        }
    };
    let lost_blocks = check.restore(real_bytes.unwrap_or(claimed_bytes));
    CapacityReport {
        claimed_bytes,
        real_bytes: match honesty {
            Honesty::Honest => Some(claimed_bytes),
            _ => real_bytes,
        },
        honesty,
        evidence,
        bytes_written: check.written,
        lost_blocks,
        ended,
    }
}

struct Check<'a> {
    device: &'a mut dyn TimedDevice,
    keeper: &'a mut dyn UndoLog,
    progress: &'a mut dyn Progress,
    options: CapacityOptions,
    claimed: u64,
    written: u64,
    /// What was there, block by block.
    saved: Blocks,
    /// The part of `saved` that the undo log does not have yet.
    unkept: Blocks,
    /// The mark that each block should hold.
    epochs: BTreeMap<u64, u64>,
    epoch: u64,
}

impl Drop for Check<'_> {
    /// On the way out of a panic: who watched may be what panicked, and is not told.
    fn drop(&mut self) {
        put_back(self.device, &self.saved, &mut |_| {});
    }
}

/// Honesty, real size, evidence; or why there is no answer.
type Outcome = Result<(Honesty, Option<u64>, String), String>;

/// What is at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// The mark that was written there last.
    Own,
    /// A mark that was written at another place.
    Other(u64),
    /// Anything else.
    Foreign,
    Error,
}

impl Check<'_> {
    fn run(&mut self) -> Outcome {
        let stripe = (self.claimed / 2000).clamp(STRIPE.0, STRIPE.1) / BLOCK * BLOCK;
        let first = MIB.min(self.claimed / 8 / BLOCK * BLOCK);
        if self.claimed < 4 * stripe {
            return Err(format!("{} is too small to check", Bytes(self.claimed)));
        }
        self.tell("marking a stripe", 0.0)?;
        for at in (first..first + stripe).step_by(REQUEST as usize) {
            let end = (at + REQUEST).min(first + stripe);
            self.save(at..end)?;
        }
        self.keep()?;
        self.mark_stripe(first, stripe)?;
        self.flush()?;
        for at in [
            first,
            first + stripe / 2 / BLOCK * BLOCK,
            first + stripe - BLOCK,
        ] {
            if self.look(at)? != Found::Own {
                let evidence = format!("what is written at {at} is not kept");
                return Ok((Honesty::Broken, None, evidence));
            }
        }
        if let Some(outcome) = self.sweep(first, stripe)? {
            return Ok(outcome);
        }
        self.search(first, stripe)
    }

    /// Reads at distances of a stripe: a mark of the stripe elsewhere is a wrap.
    fn sweep(
        &mut self,
        first: u64,
        stripe: u64,
    ) -> Result<Option<(Honesty, Option<u64>, String)>, String> {
        let mut at = first + stripe;
        while at + BLOCK <= self.claimed {
            self.tell(
                "looking for the stripe elsewhere",
                0.6 * at as f64 / self.claimed as f64,
            )?;
            if let Some(origin) = self.sector_of_stripe(at)? {
                // A copy of the stripe would show it too: only a wrap follows a new mark.
                self.mark(origin / BLOCK * BLOCK)?;
                self.flush()?;
                if self.sector_of_stripe(at)? == Some(origin) {
                    let period = at - origin;
                    let evidence = format!(
                        "what is written at {origin} is read at {at} too: addresses wrap at {}",
                        Bytes(period)
                    );
                    return Ok(Some((Honesty::Wraps, Some(period), evidence)));
                }
            }
            // With an overlap, so that a whole block of the stripe is met wherever it begins.
            at += stripe - BLOCK;
        }
        Ok(None)
    }

    /// Marks single blocks until it is known beyond which they are not kept.
    fn search(&mut self, first: u64, stripe: u64) -> Outcome {
        let (mut good, mut bad) = (first + stripe, self.claimed);
        let (mut failed, mut round, mut marks_read) = (0, 0_u32, 0_u64);
        while bad > good {
            self.tell(
                "marking single blocks",
                0.6 + 0.05 * f64::from(round).min(7.0),
            )?;
            let step = ((bad - good) / MARKS / BLOCK).max(1) * BLOCK;
            let mut marks: Vec<u64> = (0..MARKS)
                .map(|at| good + at * step)
                .filter(|at| at + BLOCK <= bad)
                .collect();
            if round == 0 {
                marks.push(self.claimed - BLOCK);
            }
            let broken = self.mark_each(&marks)?;
            self.decoy(first, stripe)?;
            let mut end = None;
            for at in marks {
                marks_read += 1;
                match self.look(at)? {
                    Found::Own if !broken.contains(&at) && end.is_none() => good = at + BLOCK,
                    Found::Own => {}
                    found => {
                        failed += u32::from(found == Found::Error || broken.contains(&at));
                        end = end.or(Some(at));
                    }
                }
            }
            match end {
                Some(at) => bad = at,
                None if round == 0 => break,
                None => {}
            }
            round += 1;
        }
        if bad == self.claimed {
            let evidence = format!("{marks_read} marks up to the claimed end are kept");
            return Ok((Honesty::Honest, None, evidence));
        }
        let honesty = if failed > 0 {
            Honesty::Fails
        } else {
            Honesty::Vanishes
        };
        let evidence = format!("a block at {} is kept, one at {bad} is not", good - BLOCK);
        Ok((honesty, Some(bad), evidence))
    }

    fn tell(&mut self, doing: &'static str, done: f64) -> Result<(), String> {
        if self.progress.stop() {
            return Err("stopped by the user".into());
        }
        let left = None;
        self.progress.step(&ProbeStep { doing, done, left });
        Ok(())
    }

    /// Reads what stands in `range`, if it is to be kept.
    fn save(&mut self, range: Range<u64>) -> Result<(), String> {
        if !self.options.preserve {
            return Ok(());
        }
        let mut data = vec![0; (range.end - range.start) as usize];
        let read = self.device.read(range.start, &mut data);
        read.map_err(|error| error.to_string())?;
        let places = range.step_by(BLOCK as usize);
        for (at, block) in places.zip(data.chunks_exact(BLOCK as usize)) {
            if !self.saved.contains_key(&at) && !marks::any(self.options.seed, block) {
                self.unkept.insert(at, block.to_vec());
            }
        }
        Ok(())
    }

    /// Gives the data that were read since the last call to the undo log: from now on they may be
    /// overwritten.
    fn keep(&mut self) -> Result<(), String> {
        self.keeper.keep(&self.unkept)?;
        self.saved.append(&mut self.unkept);
        Ok(())
    }

    /// Marks blocks one by one; returns those that cannot be read or written.
    fn mark_each(&mut self, places: &[u64]) -> Result<BTreeSet<u64>, String> {
        let mut broken = BTreeSet::new();
        for at in places {
            if self.save(*at..at + BLOCK).is_err() {
                self.alive()?;
                broken.insert(*at);
            }
        }
        self.keep()?;
        for at in places {
            if !broken.contains(at) && self.mark(*at).is_err() {
                self.alive()?;
                broken.insert(*at);
            }
        }
        Ok(broken)
    }

    fn mark(&mut self, at: u64) -> Result<(), String> {
        self.epoch += 1;
        let data = marks::mark(self.options.seed, at, self.epoch);
        self.written += BLOCK;
        self.epochs.insert(at, self.epoch);
        let written = self.device.write(at, &data);
        written.map(drop).map_err(|error| error.to_string())
    }

    /// Marks a whole stripe with one epoch, in large requests.
    fn mark_stripe(&mut self, first: u64, stripe: u64) -> Result<(), String> {
        self.epoch += 1;
        let mut at = first;
        while at < first + stripe {
            let length = REQUEST.min(first + stripe - at);
            let blocks = (at..at + length).step_by(BLOCK as usize);
            let mut data = Vec::with_capacity(length as usize);
            for block in blocks {
                data.extend(marks::mark(self.options.seed, block, self.epoch));
                self.epochs.insert(block, self.epoch);
            }
            self.written += length;
            self.device.write(at, &data).map_err(|e| e.to_string())?;
            at += length;
        }
        Ok(())
    }

    /// Writes enough to push what was written before out of any small cache.
    fn decoy(&mut self, first: u64, stripe: u64) -> Result<(), String> {
        self.mark_stripe(first, stripe.min(8 * MIB))?;
        self.flush()
    }

    fn flush(&mut self) -> Result<(), String> {
        match self.device.flush() {
            Ok(_) | Err(DeviceError::Unsupported(_)) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Whether the device is there at all: beyond the end single requests may fail.
    fn alive(&mut self) -> Result<(), String> {
        let mut data = vec![0; BLOCK as usize];
        match self.device.read(0, &mut data) {
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn look(&mut self, at: u64) -> Result<Found, String> {
        let mut data = vec![0; BLOCK as usize];
        match self.device.read(at, &mut data) {
            Ok(_) => {}
            Err(error @ (DeviceError::Gone(_) | DeviceError::Stopped(_))) => {
                return Err(error.to_string());
            }
            Err(_) => return Ok(Found::Error),
        }
        Ok(match marks::read(self.options.seed, &data) {
            Some((origin, epoch)) if self.epochs.get(&origin) != Some(&epoch) => Found::Foreign,
            Some((origin, _)) if origin == at => Found::Own,
            Some((origin, _)) => Found::Other(origin),
            None => Found::Foreign,
        })
    }

    /// The place for which the sectors from `at` on were written, if that is another one and they
    /// are what was written there last. Addresses may wrap within a block.
    fn sector_of_stripe(&mut self, at: u64) -> Result<Option<u64>, String> {
        let mut data = vec![0; BLOCK as usize];
        match self.device.read(at, &mut data) {
            Ok(_) => {}
            Err(error @ (DeviceError::Gone(_) | DeviceError::Stopped(_))) => {
                return Err(error.to_string());
            }
            Err(_) => return Ok(None),
        }
        let sectors = marks::sectors(self.options.seed, &data);
        let Some((first, _)) = sectors.first().copied().flatten() else {
            return Ok(None);
        };
        // A card that answers with what it read last shows one sector again and again.
        let follows = |(sector, found): (u64, Option<(u64, u64)>)| {
            found.is_some_and(|(place, epoch)| {
                let last = self.epochs.get(&(place / BLOCK * BLOCK)) == Some(&epoch);
                last && place == first + sector * SECTOR
            })
        };
        let all = (0..).zip(sectors).all(follows);
        Ok((all && first != at).then_some(first))
    }

    /// Puts back what was there, and counts the blocks below `end` that are not as they were.
    /// Beyond it a mark that still stands counts too, and what could be read before the check and
    /// cannot any more: there was something to be kept.
    fn restore(&mut self, end: u64) -> u64 {
        let progress = &mut *self.progress;
        let done = put_back(self.device, &self.saved, &mut |done| {
            put_back::tell(progress, done);
        });
        // Only now: until then a panic puts it back.
        self.saved.clear();
        self.written += done.written;
        let is_mark = |data: &Vec<u8>| marks::any(self.options.seed, data);
        let lost = done.wrong.iter();
        let lost = lost.filter(|(at, now)| **at < end || now.as_ref().is_none_or(is_mark));
        lost.count() as u64
    }
}
