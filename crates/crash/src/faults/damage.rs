//! What a bad card does to data that it reported done, without a cut. Such a run is judged at its
//! end, when all promises are given.
//!
//! - `zeroed-after`, `zeroed-alternately`: the first byte of each 4 KiB block is zero in all that
//!   the card wrote from an instant in the middle half of the run on, or in every other second.
//!   The seed draws the instant, and which part of the first second is spared.
//! - `dropped`: what the card wrote from such an instant on does not arrive.
//! - `bit-rot`: eight bits of what was written flip, each in a write of equal chance: what is
//!   written often, as a journal, is hit often.
//! - `misdirected`: one write lands one AU below its place.

use super::{Acts, BLOCK, Evidence, Facts, Fault, Faults};
use crate::image::CardFacts;
use std::borrow::Cow;
use whichfs_card::{Contents, ContentsError, Logged, Op};
use whichfs_units::{Nanos, Rng, SECTOR};

/// Bits that rot.
const BITS: usize = 8;
/// Nanoseconds.
const SECOND: u64 = 1_000_000_000;

const fn without_cut(
    name: &'static str,
    meaning: &'static str,
    evidence: Evidence,
    source: &'static str,
) -> Facts {
    Facts {
        name,
        meaning,
        acts: Acts::WithoutCut,
        evidence,
        source,
    }
}

pub(super) const ZEROED_AFTER: Facts = without_cut(
    "zeroed-after",
    "first byte of each block zeroed, from an instant on",
    Evidence::Hypothesis,
    "a test of filesystems, not of cards: ELC 2015, with dm-flakey's corrupt_bio_byte",
);
pub(super) const ZEROED_ALTERNATELY: Facts = without_cut(
    "zeroed-alternately",
    "first byte of each block zeroed, every other second",
    Evidence::Hypothesis,
    "a test of filesystems, not of cards: ELC 2015, with dm-flakey's corrupt_bio_byte",
);
pub(super) const DROPPED: Facts = without_cut(
    "dropped",
    "writes are dropped from an instant on",
    Evidence::Published,
    "SD cards at their end that report writes done and keep nothing (blog.dokucode.de, Immutable \
     SD Cards, 2019); dm-flakey's drop_writes",
);
pub(super) const BIT_ROT: Facts = without_cut(
    "bit-rot",
    "eight written bits flip",
    Evidence::Published,
    "SSDs: Zheng et al., FAST'13, bit corruption",
);
pub(super) const MISDIRECTED: Facts = without_cut(
    "misdirected",
    "one write lands an AU away",
    Evidence::Hypothesis,
    "published of disks (Bairavasundaram et al., FAST'08); a card whose map is wrong would do so",
);

/// Damage to requests that were reported done.
pub(crate) struct Damage {
    /// First byte of each block is zero in writes that are done then.
    zeroed: Option<Zeroed>,
    /// Writes from here on are dropped.
    dropped_from: Option<Nanos>,
    /// This request lands elsewhere.
    misdirected: Option<usize>,
}

enum Zeroed {
    From(Nanos),
    /// The second that begins then, and every other one after it.
    EverySecondFrom(Nanos),
}

impl Damage {
    pub fn new(
        log: &[Logged],
        seen: &[Logged],
        card: &CardFacts,
        faults: &Faults,
        rng: &mut Rng,
    ) -> Damage {
        let begin = log.first().map_or(Nanos(0), |request| request.arrived);
        let end = log.last().map_or(Nanos(0), |request| request.done);
        let run = end.saturating_sub(begin).0;
        let from = Nanos(begin.0 + run / 4 + rng.below(run / 2 + 1));
        let zeroed = if faults.contains(&Fault::ZeroedAfter) {
            Some(Zeroed::From(from))
        } else {
            let alternately = faults.contains(&Fault::ZeroedAlternately);
            // The first damaged second begins within the first of the run.
            let since = Nanos(begin.0 + rng.below(SECOND));
            alternately.then_some(Zeroed::EverySecondFrom(since))
        };
        // Nothing is below the first AU.
        let below = |request: &Logged| request.offset >= card.au_bytes;
        let writes: Vec<usize> = (0..seen.len())
            .filter(|&index| seen[index].op == Op::Write && below(&seen[index]))
            .collect();
        let misdirects = faults.contains(&Fault::Misdirected) && !writes.is_empty();
        Damage {
            zeroed,
            dropped_from: faults.contains(&Fault::Dropped).then_some(from),
            misdirected: misdirects.then(|| writes[rng.below(writes.len() as u64) as usize]),
        }
    }

    /// Where request number `index` really lands and what of `data` really arrives; nothing if it
    /// is dropped.
    pub fn of<'a>(
        &self,
        index: usize,
        request: &Logged,
        data: &'a [u8],
        card: &CardFacts,
    ) -> (u64, Cow<'a, [u8]>) {
        if self.dropped_from.is_some_and(|from| request.done >= from) {
            return (request.offset, (&[][..]).into());
        }
        let offset = match self.misdirected {
            // Downwards, so that it stays on the card.
            Some(wrong) if wrong == index => request.offset - card.au_bytes,
            _ => request.offset,
        };
        let zeroed = match &self.zeroed {
            None => false,
            Some(Zeroed::From(from)) => request.done >= *from,
            Some(Zeroed::EverySecondFrom(since)) => {
                request.done >= *since && ((request.done.0 - since.0) / SECOND).is_multiple_of(2)
            }
        };
        if !zeroed {
            return (offset, data.into());
        }
        let mut data = data.to_vec();
        let first = (BLOCK - request.offset % BLOCK) % BLOCK;
        for at in (first as usize..data.len()).step_by(BLOCK as usize) {
            data[at] = 0;
        }
        (offset, data.into())
    }
}

/// Flips a bit in each of some writes.
pub(crate) fn flip_bits(
    contents: &mut Contents,
    seen: &[Logged],
    rng: &mut Rng,
) -> Result<(), ContentsError> {
    let writes: Vec<&Logged> = seen.iter().filter(|r| r.op == Op::Write).collect();
    for _ in 0..BITS.min(writes.len()) {
        let request = writes[rng.below(writes.len() as u64) as usize];
        let offset = request.offset + rng.below(request.bytes / SECTOR) * SECTOR;
        let mut sector = [0; SECTOR as usize];
        contents.read(offset, &mut sector)?;
        sector[rng.below(SECTOR) as usize] ^= 1 << rng.below(8);
        contents.write(offset, &sector)?;
    }
    Ok(())
}
