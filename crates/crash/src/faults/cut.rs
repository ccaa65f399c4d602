//! What a card loses when power goes.
//!
//! Without any fault a card keeps every request that it reported done, up to what its profile
//! says of a volatile cache: there, what was written since the last flush may be lost, newest
//! first (JESD84 on the eMMC cache: "data may be lost", the order of an internal flush is not
//! defined). Of the request under way a prefix of whole flash pages is kept: a card programs
//! pages elsewhere and switches its map over. That is an assumption; `torn-512` drops it.
//! A fault takes more:
//!
//! - `reorder`: what a cache holds is kept or lost write by write, in any order.
//! - `flush-lies`: a flush makes nothing durable. Both give a card without a cache a small one.
//! - `torn-512`, `torn-4k`: of the request under way any pieces of that size are kept.
//! - `torn-page`: the flash page under way, where what is kept of the request ends, reads as noise.
//! - `torn-reported`: of the newest write that was reported done any sectors are kept.
//! - `neighbour`: so does a page of the same AU, up to four before the request.
//! - `au-rollback`: the AU written last falls back by up to 64 requests.
//! - `small-lost`: up to 64 of the newest small writes are lost.

use super::{Acts, BLOCK, Evidence, Facts, Fault, Faults};
use crate::image::CardFacts;
use whichfs_card::{Contents, ContentsError, Logged, Op};
use whichfs_units::{KIB, Nanos, Rng, SECTOR};

/// Cache of a card that has none, where a fault wants one: what the smallest eMMC caches have.
const CACHE_BYTES: u64 = 64 * KIB;
/// Requests that a fault looks back: a card that saved its map less often would be useless.
const LOOK_BACK: usize = 64;
/// Largest write that goes to a small-write area where the profile has none.
const SMALL: u64 = 8 * KIB;

const fn at_cut(
    name: &'static str,
    meaning: &'static str,
    evidence: Evidence,
    source: &'static str,
) -> Facts {
    Facts {
        name,
        meaning,
        acts: Acts::AtCut,
        evidence,
        source,
    }
}

pub(super) const REORDER: Facts = at_cut(
    "reorder",
    "unflushed writes are kept or lost in any order",
    Evidence::Published,
    "SSDs: Zheng et al., FAST'13, unserializable writes; of an eMMC's cache JESD84 allows it",
);
pub(super) const FLUSH_LIES: Facts = at_cut(
    "flush-lies",
    "a flush does nothing",
    Evidence::Published,
    "single models: an A2 card's flush bug (root.cz on the Raspberry Pi 5); SSDs in Zheng et al., \
     FAST'13",
);
pub(super) const TORN_512: Facts = at_cut(
    "torn-512",
    "any sectors of the write under way are kept",
    Evidence::Published,
    "SSDs: Zheng et al., FAST'13, shorn writes",
);
pub(super) const TORN_4K: Facts = at_cut(
    "torn-4k",
    "any 4 KiB blocks of the write under way are kept",
    Evidence::Published,
    "SSDs: Zheng et al., FAST'13, shorn writes",
);
pub(super) const TORN_PAGE: Facts = at_cut(
    "torn-page",
    "the flash page under way reads as noise",
    Evidence::Published,
    "NAND: Tseng, Grupp, Swanson, DAC'11: an interrupted program leaves cells in between",
);
pub(super) const TORN_REPORTED: Facts = at_cut(
    "torn-reported",
    "any sectors of the newest write that was reported done are kept",
    Evidence::Published,
    "SSDs: Zheng et al., FAST'13, shorn writes; Ahmadian et al.: losses up to 700 ms after the \
     completion",
);
pub(super) const AU_ROLLBACK: Facts = at_cut(
    "au-rollback",
    "the AU being written falls back some writes",
    Evidence::Hypothesis,
    "a card that writes its map from time to time would do so",
);
pub(super) const SMALL_LOST: Facts = at_cut(
    "small-lost",
    "small writes not yet merged are lost",
    Evidence::Hypothesis,
    "a card with an area of its own for small writes might",
);
pub(super) const NEIGHBOUR: Facts = at_cut(
    "neighbour",
    "a durable page near the one under way is damaged",
    Evidence::Published,
    "MLC NAND: Tseng, Grupp, Swanson, DAC'11: a page shares its cells with an earlier one; one SD \
     card (art-and-technology.blogspot 2017/06)",
);

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

/// What is left of each request in `seen` at `at`.
pub(crate) fn fates(
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
    if faults.contains(&Fault::TornReported) {
        tear_reported(&mut fates, seen, at);
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

/// The newest write that was reported done.
fn tear_reported(fates: &mut [Fate], seen: &[Logged], at: Nanos) {
    let reported = |request: &Logged| request.op == Op::Write && request.done <= at;
    let newest = seen.iter().rposition(reported);
    if let Some(fate) = newest.and_then(|index| fates.get_mut(index))
        && *fate != Fate::Lost
    {
        *fate = Fate::Pieces(SECTOR);
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

/// Noise in the page under way, and in a durable page near it.
pub(crate) fn damage_pages(
    contents: &mut Contents,
    seen: &[Logged],
    fates: &[Fate],
    card: &CardFacts,
    faults: &Faults,
    at: Nanos,
    rng: &mut Rng,
) -> Result<(), ContentsError> {
    let interrupted =
        |(request, _): &(&Logged, &Fate)| request.op == Op::Write && request.done > at;
    let Some((request, fate)) = seen.iter().zip(fates).find(interrupted) else {
        return Ok(());
    };
    let page = card.page_bytes.max(SECTOR);
    let first = request.offset / page;
    let last = (request.offset + request.bytes).div_ceil(page) - 1;
    let drawn = first + rng.below(last - first + 1);
    if faults.contains(&Fault::TornPage) {
        let under_way = match fate {
            Fate::Before(end) => (end / page).clamp(first, last),
            _ => drawn,
        };
        noise(contents, under_way * page, page, rng)?;
    }
    if faults.contains(&Fault::Neighbour) {
        let back = 1 + rng.below(4);
        // A page shares its cells with one of its own block.
        let au = |at: u64| at * page / card.au_bytes.max(1);
        if let Some(before) = first.checked_sub(back).filter(|&at| au(at) == au(first)) {
            noise(contents, before * page, page, rng)?;
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
