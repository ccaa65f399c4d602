//! What stood on a device before it was marked, and how it comes back.

use crate::marks::{self, BLOCK};
use crate::options::{ProbeStep, Progress};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::Range;
use whichfs_curves::{DeviceError, TimedDevice};
use whichfs_units::MIB;

/// Largest request.
pub(crate) const REQUEST: u64 = MIB;
/// What is told while data are put back.
pub(crate) const DOING: &str = "putting back what was there";

/// Contents of blocks of 4 KiB by their offset.
pub type Blocks = BTreeMap<u64, Vec<u8>>;

/// Keeps what stood on a device where a killed process does not lose it.
pub trait UndoLog {
    /// Keeps `blocks`, which are about to be overwritten; they are safe when it returns.
    ///
    /// # Errors
    /// Why they are not safe, with the remedy: then they are not overwritten.
    fn keep(&mut self, blocks: &Blocks) -> Result<(), String>;
}

/// Keeps nothing beside what is in memory: for devices that end with the process.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryOnly;

impl UndoLog for MemoryOnly {
    fn keep(&mut self, _blocks: &Blocks) -> Result<(), String> {
        Ok(())
    }
}

/// What became of blocks that an interrupted check left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Rescue {
    /// Blocks that held a mark, or nothing readable, and hold their data again.
    pub put_back: u64,
    /// Blocks that held neither a mark nor their data: somebody wrote there since. They are
    /// left alone.
    pub changed: u64,
    /// Blocks that are not back: the device does not take them, or they cannot be read and
    /// nothing else tells that this is the device that was checked.
    pub lost: u64,
}

/// How many of `blocks` hold a mark of `seed` in the place of their data.
pub fn marked(device: &mut dyn TimedDevice, seed: u64, blocks: &Blocks) -> u64 {
    let found = runs(blocks).into_iter().flat_map(|run| read(device, run));
    let is_mark = |now: &Vec<u8>| marks::any(seed, now);
    found
        .filter(|(_, now)| now.as_ref().is_some_and(is_mark))
        .count() as u64
}

/// Puts `blocks` back where marks of `seed` still stand in their place.
pub fn rescue(
    device: &mut dyn TimedDevice,
    seed: u64,
    blocks: &Blocks,
    progress: &mut dyn Progress,
) -> Rescue {
    let mut outcome = Rescue::default();
    let (mut marked, mut unreadable) = (Blocks::new(), Blocks::new());
    for run in runs(blocks) {
        for (at, now) in read(device, run) {
            let data = &blocks[&at];
            match now {
                None => drop(unreadable.insert(at, data.clone())),
                Some(now) if now == *data => {}
                Some(now) if marks::any(seed, &now) => drop(marked.insert(at, data.clone())),
                Some(_) => outcome.changed += 1,
            }
        }
    }
    // What cannot be read does not tell whose it is; other blocks do.
    if outcome.changed == 0 || !marked.is_empty() {
        marked.append(&mut unreadable);
    }
    let done = put_back(device, &marked, &mut |done| tell(progress, done));
    let wrong = done.wrong.len() as u64;
    outcome.put_back = marked.len() as u64 - wrong;
    outcome.lost = wrong + unreadable.len() as u64;
    outcome
}

pub(crate) fn tell(progress: &mut dyn Progress, done: f64) {
    let left = None;
    let doing = DOING;
    progress.step(&ProbeStep { doing, done, left });
}

/// What putting back did.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// Bytes written.
    pub written: u64,
    /// Blocks that are not back, with what is there; `None` if it is not readable or not there
    /// to stay.
    pub wrong: BTreeMap<u64, Option<Vec<u8>>>,
}

/// Writes `blocks`, reads them back, and writes those that differ once more, one by one. None
/// is back while the device does not say that its cache is on the medium. `told` hears the
/// share that is done.
pub(crate) fn put_back(
    device: &mut dyn TimedDevice,
    blocks: &Blocks,
    told: &mut dyn FnMut(f64),
) -> Done {
    let mut done = Done::default();
    let all = runs(blocks);
    let steps = (2 * all.len()).max(1) as f64;
    for (at, run) in all.iter().enumerate() {
        told(at as f64 / steps);
        let data = blocks.range(run.clone()).flat_map(|(_, data)| data);
        let data: Vec<u8> = data.copied().collect();
        done.written += data.len() as u64;
        // What counts is what is read back; only from a device that is gone nothing is.
        if let Err(DeviceError::Gone(_)) = device.write(run.start, &data) {
            return done.with_none_back(blocks);
        }
    }
    if !is_flushed(device) {
        return done.with_none_back(blocks);
    }
    for (at, run) in all.into_iter().enumerate() {
        told((steps / 2.0 + at as f64) / steps);
        done.wrong.extend(differing(device, run, blocks));
    }
    let again: Vec<u64> = std::mem::take(&mut done.wrong).into_keys().collect();
    for at in &again {
        done.written += BLOCK;
        // As above: what counts is what is read back.
        let _ = device.write(*at, &blocks[at]);
    }
    if !is_flushed(device) {
        return done.with_none_back(blocks);
    }
    for at in again {
        done.wrong.extend(differing(device, at..at + BLOCK, blocks));
    }
    done
}

impl Done {
    fn with_none_back(mut self, blocks: &Blocks) -> Done {
        self.wrong = blocks.keys().map(|at| (*at, None)).collect();
        self
    }
}

/// Whether what was written is out of the device's cache: what is read would come from there
/// too. It gets a second chance; a device without a flush has nothing to be flushed.
fn is_flushed(device: &mut dyn TimedDevice) -> bool {
    (0..2).any(|_| matches!(device.flush(), Ok(_) | Err(DeviceError::Unsupported(_))))
}

/// `blocks` as ranges without gaps, none longer than a request.
fn runs(blocks: &Blocks) -> Vec<Range<u64>> {
    let mut found: Vec<Range<u64>> = Vec::new();
    for at in blocks.keys() {
        match found.last_mut() {
            Some(run) if run.end == *at && run.end - run.start < REQUEST => run.end += BLOCK,
            _ => found.push(*at..at + BLOCK),
        }
    }
    found
}

/// The blocks of `run`, each with its contents; `None` for those that cannot be read.
pub(crate) fn read(device: &mut dyn TimedDevice, run: Range<u64>) -> Vec<(u64, Option<Vec<u8>>)> {
    let mut data = vec![0; (run.end - run.start) as usize];
    let places = run.clone().step_by(BLOCK as usize);
    match device.read(run.start, &mut data) {
        Ok(_) => {
            let blocks = data.chunks_exact(BLOCK as usize);
            let blocks = blocks.map(|block| Some(block.to_vec()));
            places.zip(blocks).collect()
        }
        Err(DeviceError::Gone(_)) => places.map(|at| (at, None)).collect(),
        // One bad block fails all of a request.
        Err(_) => places.map(|at| (at, read_block(device, at))).collect(),
    }
}

fn read_block(device: &mut dyn TimedDevice, at: u64) -> Option<Vec<u8>> {
    let mut data = vec![0; BLOCK as usize];
    device.read(at, &mut data).ok().map(|_| data)
}

/// The blocks of `run` that do not read as in `blocks`.
fn differing(
    device: &mut dyn TimedDevice,
    run: Range<u64>,
    blocks: &Blocks,
) -> Vec<(u64, Option<Vec<u8>>)> {
    let mut found = read(device, run);
    found.retain(|(at, now)| now.as_ref() != blocks.get(at));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_in_a_row_are_one_request_of_at_most_a_mebibyte() {
        let blocks = |places: &[u64]| places.iter().map(|at| (*at, vec![0; 4096])).collect();
        assert_eq!(runs(&blocks(&[])), []);
        let gap = runs(&blocks(&[0, 4096, 12288]));
        assert_eq!(gap, [0..8192, 12288..16384]);
        let long: Vec<u64> = (0..300).map(|at| at * BLOCK).collect();
        assert_eq!(runs(&blocks(&long)), [0..REQUEST, REQUEST..300 * BLOCK]);
    }
}
