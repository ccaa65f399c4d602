//! What a card leaves of the requests that a cut meets.
//!
//! Without any fault a card keeps every request that it reported done, up to what its profile
//! says of a volatile cache: there, what was written since the last flush may be lost, newest
//! first (JESD84 on the eMMC cache: "data may be lost", the order of an internal flush is not
//! defined). Of the request under way a prefix of whole flash pages is kept: a card programs
//! pages elsewhere and switches its map over. That is an assumption; the fault `torn-512` drops it.

use crate::fault::{AtCut, Effect, Fate, Faults, LossRules, UnderWay};
use whichfs_blockdev::Logged;
use whichfs_card::RequestKind;
use whichfs_units::{KIB, Nanos, Rng, SECTOR};

/// Cache of a card that has none, where a fault wants one: what the smallest eMMC caches have.
const CACHE_BYTES: u64 = 64 * KIB;

/// What is left of each request at `cut`.
pub(crate) fn fates(cut: &AtCut<'_>, faults: &Faults, rng: &mut Rng) -> Vec<Fate> {
    let mut rules = LossRules::default();
    for fault in faults {
        if let Effect::Loss(change) = fault.0.effect {
            change(&mut rules);
        }
    }
    let mut fates = vec![Fate::Whole; cut.seen.len()];
    lose_cached(&mut fates, cut, &rules, rng);
    // From the last number to the first: the order of their draws is part of what a seed means.
    for fault in faults.iter().rev() {
        if let Effect::Fates(change) = fault.0.effect {
            change(&mut fates, cut, rng);
        }
    }
    // The card serves one request after the other: what waited has left nothing.
    let mut free = Nanos(0);
    for (fate, request) in fates.iter_mut().zip(cut.seen) {
        if request.done > cut.at {
            // What a cache or an area lost stays lost, whatever of it was under way.
            *fate = match free > cut.at || *fate == Fate::Lost {
                true => Fate::Lost,
                false => under_way(request, cut, &rules, rng),
            };
        }
        free = free.max(request.done);
    }
    fates
}

/// The pages of the write that `cut` interrupts, if it interrupts one.
pub(crate) fn interrupted(cut: &AtCut<'_>, fates: &[Fate], rng: &mut Rng) -> Option<UnderWay> {
    let is =
        |(request, _): &(&Logged, &Fate)| request.op == RequestKind::Write && request.done > cut.at;
    let (request, fate) = cut.seen.iter().zip(fates).find(is)?;
    let page_bytes = cut.card.page_bytes.max(SECTOR);
    let first_page = request.offset / page_bytes;
    let last_page = (request.offset + request.bytes).div_ceil(page_bytes) - 1;
    Some(UnderWay {
        first_page,
        last_page,
        drawn_page: first_page + rng.below(last_page - first_page + 1),
        page_bytes,
        fate: *fate,
    })
}

/// A request that the card had not reported done: anything up to all of it may be there, in whole
/// flash pages, since a card programs pages and switches its map over when they are done.
fn under_way(request: &Logged, cut: &AtCut<'_>, rules: &LossRules, rng: &mut Rng) -> Fate {
    if request.op != RequestKind::Write {
        return if rng.ratio(1, 2) {
            Fate::Whole
        } else {
            Fate::Lost
        };
    }
    if let Some(bytes) = rules.pieces {
        return Fate::Pieces(bytes);
    }
    let page = cut.card.page_bytes.max(SECTOR);
    let (first, end) = (request.offset / page, request.offset + request.bytes);
    Fate::Before((first + rng.below(end.div_ceil(page) - first + 1)) * page)
}

/// Writes that a volatile cache may still hold: the newest up to its size, since the last flush.
fn lose_cached(fates: &mut [Fate], cut: &AtCut<'_>, rules: &LossRules, rng: &mut Rng) {
    let LossRules {
        flush_lies,
        reorders,
        ..
    } = *rules;
    let room = match cut.card.cache_bytes {
        0 if flush_lies || reorders => CACHE_BYTES,
        room => room,
    };
    let durable = |request: &Logged| {
        request.op == RequestKind::Flush && request.done <= cut.at && !flush_lies
    };
    let mut cached = Vec::new();
    // The write of which the cache holds the tail, and how much.
    let mut crossing = None;
    let mut held = 0;
    for (index, request) in cut.seen.iter().enumerate().rev() {
        if durable(request) {
            break;
        }
        if request.op == RequestKind::Write {
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
        let end = cut.seen[index].offset + cut.seen[index].bytes;
        match rng.below(tail / SECTOR + 1) {
            0 => {}
            sectors => fates[index] = Fate::Before(end - sectors * SECTOR),
        }
    }
}
