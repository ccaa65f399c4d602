//! The content of a card after a cut, made forward from the state before the run.

use crate::cut::Cut;
use crate::faults::{Fault, Faults};
use std::collections::BTreeSet;
use whichfs_card::{Contents, ContentsError, Logged, Op};
use whichfs_units::{KIB, Nanos, Rng, SECTOR};

/// Cache of a card that has none, where a fault wants one: what the smallest eMMC caches have.
const CACHE_BYTES: u64 = 64 * KIB;
/// Requests that a fault looks back: a card that saved its map less often would be useless.
const LOOK_BACK: usize = 64;
/// Bytes of a filesystem's block.
const BLOCK: u64 = 4 * KIB;
/// Largest write that goes to a small-write area where the profile has none.
const SMALL: u64 = 8 * KIB;

/// What of the card decides which data survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardFacts {
    /// Volatile cache in bytes; 0 for none.
    pub cache_bytes: u64,
    /// Flash page in bytes.
    pub page_bytes: u64,
    /// AU in bytes.
    pub au_bytes: u64,
    /// Largest write that goes to an area of its own; 0 for no such area.
    pub small_write_bytes: u64,
}

/// What is left of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// All of it.
    Whole,
    /// Nothing.
    Lost,
    /// Everything before this place on the card, in bytes.
    Before(u64),
    /// Each piece of so many bytes by chance.
    Pieces(u64),
}

/// Written bytes and requests between two checkpoints: so much is written again for an image,
/// which takes some milliseconds, and each checkpoint keeps copies of the chunks that change.
const EVERY_BYTES: u64 = 64 << 20;
const EVERY: usize = 4096;

/// A log with the content of the card at some of its requests, so that images need not begin at
/// the beginning. Images share what they do not change with it.
pub struct Timeline {
    log: Vec<Logged>,
    /// Content before the request of that index, all earlier ones whole; the first is of 0.
    checkpoints: Vec<(usize, Contents)>,
}

impl Timeline {
    /// The timeline of `log`; `base` is the content before its first request.
    ///
    /// # Errors
    /// If the contents cannot be kept or a request lies beyond them.
    pub fn new(base: Contents, log: Vec<Logged>) -> Result<Timeline, ContentsError> {
        let mut checkpoints = vec![(0, base.clone())];
        let mut contents = base;
        let (mut from, mut bytes) = (0, 0);
        for (index, request) in log.iter().enumerate() {
            if bytes >= EVERY_BYTES || index - from >= EVERY {
                checkpoints.push((index, contents.clone()));
                (from, bytes) = (index, 0);
            }
            bytes += request.data.len() as u64;
            apply(&mut contents, request)?;
        }
        Ok(Timeline { log, checkpoints })
    }

    /// All requests.
    pub fn log(&self) -> &[Logged] {
        &self.log
    }

    /// The requests that had reached the card at `cut`.
    pub fn seen(&self, cut: &Cut) -> &[Logged] {
        let arrived = |request: &Logged| request.arrived <= cut.at;
        &self.log[..self.log.partition_point(arrived)]
    }

    /// The requests that `cut` does not leave whole, by index, and what is left of them.
    pub fn hurt(&self, card: &CardFacts, faults: &Faults, cut: &Cut) -> Vec<(usize, Fate)> {
        let mut rng = Rng::named(cut.seed, "crash/image");
        let fates = fates(self.seen(cut), card, faults, cut.at, &mut rng);
        let numbered = fates.into_iter().enumerate();
        numbered.filter(|(_, fate)| *fate != Fate::Whole).collect()
    }

    /// The content of the card after `cut`.
    ///
    /// # Errors
    /// If the contents cannot be kept.
    pub fn image(
        &self,
        card: &CardFacts,
        faults: &Faults,
        cut: &Cut,
    ) -> Result<Contents, ContentsError> {
        self.image_sparing(card, faults, cut, &BTreeSet::new())
    }

    /// The same, with the requests of the indices `spared` whole all the same.
    ///
    /// # Errors
    /// If the contents cannot be kept.
    pub fn image_sparing(
        &self,
        card: &CardFacts,
        faults: &Faults,
        cut: &Cut,
        spared: &BTreeSet<usize>,
    ) -> Result<Contents, ContentsError> {
        let seen = self.seen(cut);
        let mut rng = Rng::named(cut.seed, "crash/image");
        let mut fates = fates(seen, card, faults, cut.at, &mut rng);
        for &index in spared.iter().filter(|&&index| index < seen.len()) {
            fates[index] = Fate::Whole;
        }
        let damage = Damage::new(&self.log, seen, faults, &mut rng);
        let damages = faults.iter().any(|fault| fault.is_without_cut());
        let whole = fates
            .iter()
            .take_while(|fate| **fate == Fate::Whole)
            .count();
        let before = if damages { 0 } else { whole };
        let later = self
            .checkpoints
            .partition_point(|(index, _)| *index <= before);
        let (from, checkpoint) = &self.checkpoints[later - 1];
        let mut contents = checkpoint.clone();
        for (index, request) in seen.iter().enumerate().skip(*from) {
            match request.op {
                Op::Discard if fates[index] == Fate::Whole => {
                    contents.discard(request.offset, request.bytes)?;
                }
                Op::Write => {
                    let data = damage.data(index, request, card);
                    write(&mut contents, data.0, &data.1, fates[index], &mut rng)?;
                }
                _ => {}
            }
        }
        damage_pages(&mut contents, seen, card, faults, cut.at, &mut rng)?;
        if faults.contains(&Fault::BitRot) {
            flip_bits(&mut contents, seen, &mut rng)?;
        }
        Ok(contents)
    }
}

/// Does all of a request.
fn apply(contents: &mut Contents, request: &Logged) -> Result<(), ContentsError> {
    match request.op {
        Op::Discard => contents.discard(request.offset, request.bytes),
        Op::Write => contents.write(request.offset, &request.data),
        _ => Ok(()),
    }
}

/// What is left of each request in `seen` at `at`.
fn fates(
    seen: &[Logged],
    card: &CardFacts,
    faults: &Faults,
    at: Nanos,
    rng: &mut Rng,
) -> Vec<Fate> {
    let mut fates = vec![Fate::Whole; seen.len()];
    lose_cached(&mut fates, seen, card, faults, at, rng);
    if faults.contains(&Fault::SmallLost) {
        lose_small(&mut fates, seen, card, rng);
    }
    if faults.contains(&Fault::AuRollback) {
        roll_back(&mut fates, seen, card, rng);
    }
    // The card serves one request after the other: what waited has left nothing.
    let mut free = Nanos(0);
    for (fate, request) in fates.iter_mut().zip(seen) {
        if request.done > at {
            // What a cache or an area lost stays lost, whatever of it was under way.
            *fate = match free > at || *fate == Fate::Lost {
                true => Fate::Lost,
                false => under_way(request, card, faults, rng),
            };
        }
        free = free.max(request.done);
    }
    fates
}

/// A request that the card had not reported done: anything up to all of it may be there, in whole
/// flash pages, since a card programs pages and switches its map over when they are done.
fn under_way(request: &Logged, card: &CardFacts, faults: &Faults, rng: &mut Rng) -> Fate {
    if request.op != Op::Write {
        return if rng.ratio(1, 2) {
            Fate::Whole
        } else {
            Fate::Lost
        };
    }
    if faults.contains(&Fault::Torn512) {
        return Fate::Pieces(SECTOR);
    }
    if faults.contains(&Fault::Torn4k) {
        return Fate::Pieces(BLOCK);
    }
    let page = card.page_bytes.max(SECTOR);
    let (first, end) = (request.offset / page, request.offset + request.bytes);
    Fate::Before((first + rng.below(end.div_ceil(page) - first + 1)) * page)
}

/// Writes that a volatile cache may still hold: the newest up to its size, since the last flush.
fn lose_cached(
    fates: &mut [Fate],
    seen: &[Logged],
    card: &CardFacts,
    faults: &Faults,
    at: Nanos,
    rng: &mut Rng,
) {
    let lies = faults.contains(&Fault::FlushLies);
    let reorders = faults.contains(&Fault::Reorder);
    let room = match card.cache_bytes {
        0 if lies || reorders => CACHE_BYTES,
        room => room,
    };
    let durable = |request: &Logged| request.op == Op::Flush && request.done <= at && !lies;
    let mut cached = Vec::new();
    // The write of which the cache holds the tail, and how much.
    let mut crossing = None;
    let mut held = 0;
    for (index, request) in seen.iter().enumerate().rev() {
        if durable(request) {
            break;
        }
        if request.op == Op::Write {
            if held + request.bytes > room {
                crossing = Some((index, room - held));
                break;
            }
            held += request.bytes;
            cached.push(index);
        }
    }
    // Without reordering the oldest leave the cache first.
    cached.reverse();
    let kept = rng.below(cached.len() as u64 + 1) as usize;
    for (place, &index) in cached.iter().enumerate() {
        let lost = if reorders {
            rng.ratio(1, 2)
        } else {
            place >= kept
        };
        if lost {
            fates[index] = Fate::Lost;
        }
    }
    if let Some((index, tail)) = crossing.filter(|_| reorders || kept == 0) {
        let end = seen[index].offset + seen[index].bytes;
        match rng.below(tail / SECTOR + 1) {
            0 => {}
            sectors => fates[index] = Fate::Before(end - sectors * SECTOR),
        }
    }
}

/// The newest small writes.
fn lose_small(fates: &mut [Fate], seen: &[Logged], card: &CardFacts, rng: &mut Rng) {
    let largest = match card.small_write_bytes {
        0 => SMALL,
        bytes => bytes,
    };
    let small = |&index: &usize| seen[index].op == Op::Write && seen[index].bytes <= largest;
    let lost = rng.below(LOOK_BACK as u64) as usize + 1;
    let newest: Vec<usize> = (0..seen.len()).rev().filter(small).take(lost).collect();
    for index in newest {
        fates[index] = Fate::Lost;
    }
}

/// The newest writes to the AU that was written last.
fn roll_back(fates: &mut [Fate], seen: &[Logged], card: &CardFacts, rng: &mut Rng) {
    let au = |request: &Logged| request.offset / card.au_bytes.max(1);
    let Some(last) = seen.iter().rev().find(|request| request.op == Op::Write) else {
        return;
    };
    let open = au(last);
    let lost = rng.below(LOOK_BACK as u64) as usize + 1;
    for (index, request) in seen.iter().enumerate().rev().take(lost) {
        if request.op == Op::Write && au(request) == open {
            fates[index] = Fate::Lost;
        }
    }
}

/// Puts what `fate` leaves of `data` at `offset`.
fn write(
    contents: &mut Contents,
    offset: u64,
    data: &[u8],
    fate: Fate,
    rng: &mut Rng,
) -> Result<(), ContentsError> {
    match fate {
        Fate::Lost => Ok(()),
        Fate::Whole => contents.write(offset, data),
        Fate::Before(end) => {
            let bytes = end.saturating_sub(offset).min(data.len() as u64);
            match bytes {
                0 => Ok(()),
                bytes => contents.write(offset, &data[..bytes as usize]),
            }
        }
        Fate::Pieces(unit) => {
            let mut at = offset;
            for piece in data.chunks(unit as usize) {
                if rng.ratio(1, 2) {
                    contents.write(at, piece)?;
                }
                at += piece.len() as u64;
            }
            Ok(())
        }
    }
}

/// Damage to requests that were reported done.
struct Damage {
    /// First byte of each block is zero in writes that arrive then.
    zeroed: Option<Zeroed>,
    /// Writes from here on are dropped.
    dropped_from: Option<Nanos>,
    /// This request lands elsewhere.
    misdirected: Option<usize>,
}

enum Zeroed {
    From(Nanos),
    OddSecondsSince(Nanos),
}

impl Damage {
    fn new(log: &[Logged], seen: &[Logged], faults: &Faults, rng: &mut Rng) -> Damage {
        let begin = log.first().map_or(Nanos(0), |request| request.arrived);
        let end = log.last().map_or(Nanos(0), |request| request.done);
        let middle = Nanos(begin.0 + end.saturating_sub(begin).0 / 2);
        let zeroed = if faults.contains(&Fault::ZeroedAfter) {
            Some(Zeroed::From(middle))
        } else {
            let alternately = faults.contains(&Fault::ZeroedAlternately);
            alternately.then_some(Zeroed::OddSecondsSince(begin))
        };
        let writes: Vec<usize> = (0..seen.len())
            .filter(|&index| seen[index].op == Op::Write)
            .collect();
        let misdirects = faults.contains(&Fault::Misdirected) && !writes.is_empty();
        Damage {
            zeroed,
            dropped_from: faults.contains(&Fault::Dropped).then_some(middle),
            misdirected: misdirects.then(|| writes[rng.below(writes.len() as u64) as usize]),
        }
    }

    /// Where request number `index` really lands and what really arrives; no data if it is dropped.
    fn data<'a>(
        &self,
        index: usize,
        request: &'a Logged,
        card: &CardFacts,
    ) -> (u64, std::borrow::Cow<'a, [u8]>) {
        if self
            .dropped_from
            .is_some_and(|from| request.arrived >= from)
        {
            return (request.offset, (&[][..]).into());
        }
        let offset = match self.misdirected {
            // Downwards, so that it stays on the card.
            Some(wrong) if wrong == index => request.offset.saturating_sub(card.au_bytes),
            _ => request.offset,
        };
        let zeroed = match &self.zeroed {
            None => false,
            Some(Zeroed::From(from)) => request.arrived >= *from,
            Some(Zeroed::OddSecondsSince(begin)) => {
                (request.arrived.saturating_sub(*begin).0 / 1_000_000_000) % 2 == 1
            }
        };
        if !zeroed {
            return (offset, (&request.data[..]).into());
        }
        let mut data = request.data.to_vec();
        let first = (BLOCK - request.offset % BLOCK) % BLOCK;
        for at in (first as usize..data.len()).step_by(BLOCK as usize) {
            data[at] = 0;
        }
        (offset, data.into())
    }
}

/// Noise in the page under way, and in a durable page near it.
fn damage_pages(
    contents: &mut Contents,
    seen: &[Logged],
    card: &CardFacts,
    faults: &Faults,
    at: Nanos,
    rng: &mut Rng,
) -> Result<(), ContentsError> {
    let interrupted = |request: &&Logged| request.op == Op::Write && request.done > at;
    let Some(request) = seen.iter().find(interrupted) else {
        return Ok(());
    };
    let page = card.page_bytes.max(SECTOR);
    let pages = request.bytes.div_ceil(page);
    let here = (request.offset / page + rng.below(pages)) * page;
    if faults.contains(&Fault::TornPage) {
        noise(contents, here, page, rng)?;
    }
    if faults.contains(&Fault::Neighbour) {
        let before = here.saturating_sub((1 + rng.below(4)) * page);
        // A page shares its cells with one of its own block.
        if before / card.au_bytes.max(1) == here / card.au_bytes.max(1) {
            noise(contents, before, page, rng)?;
        }
    }
    Ok(())
}

fn noise(
    contents: &mut Contents,
    offset: u64,
    bytes: u64,
    rng: &mut Rng,
) -> Result<(), ContentsError> {
    let mut data = vec![0; bytes as usize];
    rng.fill(&mut data);
    contents.write(offset, &data)
}

fn flip_bits(contents: &mut Contents, seen: &[Logged], rng: &mut Rng) -> Result<(), ContentsError> {
    const BITS: usize = 8;
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

#[cfg(test)]
#[path = "image_tests.rs"]
mod tests;
