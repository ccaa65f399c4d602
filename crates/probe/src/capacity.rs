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
//! All that is written can be put back, and is compared.

use crate::options::{Progress, Step};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use whichfs_curves::{Device, DeviceError};
use whichfs_units::{Bytes, KIB, MIB, Rng};

/// Size of a marked block.
const BLOCK: u64 = 4 * KIB;
/// Bounds of the stripe.
const STRIPE: (u64, u64) = (MIB, 32 * MIB);
/// Marks of one round of the search.
const MARKS: u64 = 16;
/// Largest request.
const REQUEST: u64 = MIB;

/// What is done with what is on the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapacityOptions {
    /// Decides the marks.
    pub seed: u64,
    /// Put back what was there. On a card that lies, what is beyond its end never was.
    pub preserve: bool,
}

/// How a device behaves at its claimed size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapacityReport {
    /// What the device says.
    pub claimed_bytes: u64,
    /// Where it really ends, to 4 KiB; `None` if that is not known.
    pub real_bytes: Option<u64>,
    /// How it behaves.
    pub honesty: Honesty,
    /// What was seen, in words.
    pub evidence: String,
    /// Bytes written, those put back included.
    pub bytes_written: u64,
    /// Blocks whose contents could not be put back as they were.
    pub lost_blocks: u64,
    /// Why it ended early.
    pub ended: Option<String>,
}

/// Checks where `device` really ends. It writes.
pub fn capacity(
    device: &mut dyn Device,
    options: &CapacityOptions,
    progress: &mut dyn Progress,
) -> CapacityReport {
    let claimed = device.capacity_bytes() / BLOCK * BLOCK;
    let mut check = Check {
        device,
        progress,
        options: *options,
        claimed,
        written: 0,
        saved: BTreeMap::new(),
        epochs: BTreeMap::new(),
        epoch: 0,
    };
    let outcome = check.run();
    let lost_blocks = check.restore();
    let bytes_written = check.written;
    let (honesty, real_bytes, evidence, ended) = match outcome {
        Ok((honesty, real, evidence)) => (honesty, real, evidence, None),
        Err(reason) => {
            let evidence = "the check did not come to an end".to_owned();
            (Honesty::Unknown, None, evidence, Some(reason))
        }
    };
    CapacityReport {
        claimed_bytes: device.capacity_bytes(),
        real_bytes: match honesty {
            Honesty::Honest => Some(device.capacity_bytes()),
            _ => real_bytes,
        },
        honesty,
        evidence,
        bytes_written,
        lost_blocks,
        ended,
    }
}

struct Check<'a> {
    device: &'a mut dyn Device,
    progress: &'a mut dyn Progress,
    options: CapacityOptions,
    claimed: u64,
    written: u64,
    /// What was there, block by block.
    saved: BTreeMap<u64, Vec<u8>>,
    /// The mark that each block should hold.
    epochs: BTreeMap<u64, u64>,
    epoch: u64,
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
        for at in (first..first + stripe).step_by(BLOCK as usize) {
            self.save(at)?;
        }
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
            if let Found::Other(origin) = self.look(at)? {
                // A copy of the stripe would show it too: only a wrap follows a new mark.
                self.mark(origin)?;
                self.flush()?;
                if self.look(at)? == Found::Other(origin) {
                    let period = at - origin;
                    let evidence = format!(
                        "what is written at {origin} is read at {at} too: addresses wrap at {}",
                        Bytes(period)
                    );
                    return Ok(Some((Honesty::Wraps, Some(period), evidence)));
                }
            }
            at += stripe;
        }
        Ok(None)
    }

    /// Marks single blocks until it is known beyond which they are not kept.
    fn search(&mut self, first: u64, stripe: u64) -> Outcome {
        let (mut good, mut bad) = (first + stripe, self.claimed);
        let (mut failed, mut round, mut marks_read) = (0, 0_u32, 0_u64);
        while bad - good > BLOCK {
            self.tell(
                "marking single blocks",
                0.6 + 0.05 * f64::from(round).min(7.0),
            )?;
            let step = ((bad - good) / MARKS / BLOCK).max(1) * BLOCK;
            let mut marks: Vec<u64> = (1..=MARKS)
                .map(|at| good + at * step)
                .filter(|at| at + BLOCK <= bad)
                .collect();
            if round == 0 {
                marks.push(self.claimed - BLOCK);
            }
            let mut broken = BTreeMap::new();
            for at in &marks {
                if self.save(*at).is_err() || self.mark(*at).is_err() {
                    self.alive()?;
                    broken.insert(*at, ());
                }
            }
            self.decoy(first, stripe)?;
            let mut end = None;
            for at in marks {
                marks_read += 1;
                match self.look(at)? {
                    Found::Own if !broken.contains_key(&at) && end.is_none() => good = at + BLOCK,
                    Found::Own => {}
                    found => {
                        failed += u32::from(found == Found::Error || broken.contains_key(&at));
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
        self.progress.step(&Step { doing, done, left });
        Ok(())
    }

    /// The contents of a mark: its place and epoch, then what only these produce.
    fn contents(&self, at: u64, epoch: u64) -> Vec<u8> {
        let mut data = vec![0; BLOCK as usize];
        let key = self.options.seed ^ at.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ epoch;
        Rng::named(key, "capacity mark").fill(&mut data);
        data[..8].copy_from_slice(&at.to_le_bytes());
        data
    }

    fn save(&mut self, at: u64) -> Result<(), String> {
        if !self.options.preserve || self.saved.contains_key(&at) {
            return Ok(());
        }
        let mut data = vec![0; BLOCK as usize];
        self.device.read(at, &mut data).map_err(|e| e.to_string())?;
        self.saved.insert(at, data);
        Ok(())
    }

    fn mark(&mut self, at: u64) -> Result<(), String> {
        self.epoch += 1;
        let data = self.contents(at, self.epoch);
        self.written += BLOCK;
        self.device.write(at, &data).map_err(|e| e.to_string())?;
        self.epochs.insert(at, self.epoch);
        Ok(())
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
                data.extend(self.contents(block, self.epoch));
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
        let mut place = [0; 8];
        place.copy_from_slice(&data[..8]);
        let origin = u64::from_le_bytes(place);
        let Some(epoch) = self.epochs.get(&origin) else {
            return Ok(Found::Foreign);
        };
        if data != self.contents(origin, *epoch) {
            return Ok(Found::Foreign);
        }
        Ok(if origin == at {
            Found::Own
        } else {
            Found::Other(origin)
        })
    }

    /// Puts back what was there, and counts blocks that are not as they were.
    fn restore(&mut self) -> u64 {
        let saved = std::mem::take(&mut self.saved);
        // What a card does not keep is not worth putting back, and may wrap onto data.
        let kept: Vec<_> = saved
            .into_iter()
            .filter(|(at, _)| matches!(self.look(*at), Ok(Found::Own) | Err(_)))
            .collect();
        let mut lost = 0;
        for (at, data) in &kept {
            self.written += BLOCK;
            lost += u64::from(self.device.write(*at, data).is_err());
        }
        let _ = self.flush();
        for (at, data) in &kept {
            let mut now = vec![0; BLOCK as usize];
            let read = self.device.read(*at, &mut now);
            lost += u64::from(read.is_ok() && now != *data);
        }
        lost
    }
}
