//! Family S: update blocks, as SanDisk's patents have them and its cards show them.
//!
//! **Update blocks.** A few logical AUs (`open_aus_linear`) have an update block, which takes
//! their writes in arrival order [P-7139864]. Written in order to the end it replaces the
//! original (*switch*); closed before, the rest is copied from the original first. A jump
//! ahead leaves a hole and stays sequential; a jump back makes the block *chaotic*
//! [P-8275953], of which there are at most `open_aus_random`. A gap of at most `gap_bytes` is
//! padded by copying [P-7904670].
//!
//! **Folding.** With `fold_rate_bytes_per_s`, an AU that was written to its end keeps its place
//! among the open ones; giving it up has the whole AU copied once more at that rate. So a
//! stream pays for every AU it passes, whatever the size of its writes (WB1 -f: 540-590 ms an
//! AU more than -O in an open one from 16 KiB to 4 MiB; WB4 420, WB12 700 ms; WB27 nothing).
//!
//! **Groups.** A chaotic AU is kept in groups of `group_bytes`. A write out of order that
//! covers part of a group has the rest of it copied into a third block (*consolidation*) at
//! `group_rate_bytes_per_s`. Hence the cliff and the slope behind it: WB1 takes 66 ms more
//! than in order for 16 KiB, 62, 55, 52 and 34 ms for 32 to 256 KiB, 12 for 512 KiB and none
//! for 1 MiB: (512 KiB - size) at 7.7 MB/s; WB4 the same behind another reader; WB12 10 MB/s;
//! WB27 behaves as if its group were 1 MiB at 4.2 MB/s (230-250 ms up to 256 KiB).
//!
//! **Small writes.** Out of order and up to `small_bytes`, a write goes to the AU's share of a
//! small-write area for `small_us`; when the share holds `small_area_bytes`, the groups
//! written in it are consolidated (WB1: 4 KiB at random 1.6 ms more than in order, 8 KiB 5 ms,
//! 16 KiB 66 ms). Together: latency is not monotonic in the request size (2.3.7).
//!
//! **Whole AUs.** A write of a whole AU goes to a new block. The first to an AU that was not
//! written lately costs `whole_us` more (4 MiB writes in passes over 1 to 7 AUs: WB12
//! 0.71 s, WB1 0.54 s, WB4 0.42 s for one AU in the first three passes, then for one more AU in
//! nearly each; WB27, with more update blocks, nothing).
//!
//! **Too many AUs.** An AU in use keeps its update block, by recency [P-7818493]; one not
//! written for `keep_writes` writes loses it to an AU that asks. Else the asking AU's writes go
//! on without: in order they are gathered in a shared block and consolidated, a group for each
//! `gather_bytes` of a long write, or for `short_pieces` times as many of short ones (WB1, WB4,
//! WB12 with 5 to 7 AUs: 54 ms for each 64 KiB of writes beyond the four, a third of it up to
//! 64 KiB), small ones too once they go on where the last ended; small ones at random go to a
//! shared area, `shared_percent` of an AU's; others take
//! the block of the AU written last, whose rest is copied (280-350 ms), and what is longer than
//! a piece is consolidated too.

#[path = "update_block/consolidate.rs"]
mod consolidate;
#[path = "update_block/figures.rs"]
mod figures;
#[path = "update_block/rules.rs"]
mod rules;
#[cfg(test)]
#[path = "update_block/tests.rs"]
mod tests;
#[path = "update_block/verify.rs"]
mod verify;

use super::{FamilyFacts, TranslationLayer};
use crate::bus::span_ns;
use crate::cow::CowArray;
use crate::figures::{CardFigures, Misfit};
use crate::flash::{Fill, Order, Pool, Violation};
use crate::stats::Stats;
use figures::{FIT, UpdateBlockFigures};
use rules::Rules;
use std::collections::BTreeSet;

/// No physical block.
const NONE: u32 = u32::MAX;

/// An AU with its update block. Offsets are within the AU.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Slot {
    au: u32,
    /// [`NONE`] if the AU is complete and waits to be folded.
    block: u32,
    /// In order: the block holds `start..next` but for `holes` bytes. `next` is also where the
    /// last write ended if the block is chaotic.
    start: u64,
    next: u64,
    holes: u64,
    /// One past the highest byte written while open.
    high: u64,
    chaotic: bool,
    /// Groups that have data in the small-write area, and bytes there.
    groups: u128,
    small_bytes: u64,
    /// Bytes programmed into the block; in order, small writes share pages.
    programmed: u64,
    used_at: u64,
}

/// Where writing in order would go on in an AU without an update block.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Tail {
    au: u32,
    next: u64,
    gathered: u64,
}

/// State of the family.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct UpdateBlock {
    rules: Rules,
    /// Logical AU → physical block, or [`NONE`].
    map: CowArray,
    /// Logical AU → pages from its beginning that may hold data.
    filled: CowArray,
    slots: Vec<Slot>,
    tails: Vec<Tail>,
    /// AUs ready for whole writes, with the write that used each last.
    ready: Vec<(u32, u64)>,
    clock: u64,
    pool: Pool,
    /// The shared block.
    shared: u32,
    shared_fill: Fill,
    /// Groups (AU, group) with small writes in the shared area, and bytes there.
    shared_groups: BTreeSet<(u32, u32)>,
    shared_small: u64,
}

/// A write within one AU.
#[derive(Clone, Copy)]
struct Piece {
    au: u32,
    within: u64,
    end: u64,
    order: Order,
}

impl Piece {
    fn bytes(&self) -> u64 {
        self.end - self.within
    }
}

impl TranslationLayer for UpdateBlock {
    type Figures = UpdateBlockFigures;

    const FACTS: FamilyFacts = FamilyFacts {
        place: 1,
        words: "has update blocks",
        limits_open_aus: true,
        fit: FIT,
    };

    fn check(card: &CardFigures, own: &UpdateBlockFigures) -> Result<(), Misfit> {
        own.check(card)
    }

    fn new(card: &CardFigures, own: &UpdateBlockFigures) -> UpdateBlock {
        let rules = Rules::new(card, own);
        let aus = rules.flash_bytes.div_ceil(rules.au_bytes) as u32;
        // One more is the shared block.
        let mut pool = Pool::new(card.blocks() + 1);
        let shared = pool.take();
        UpdateBlock {
            map: CowArray::new(aus as usize, NONE),
            filled: CowArray::new(aus as usize, 0),
            slots: Vec::with_capacity(rules.open),
            tails: Vec::new(),
            ready: Vec::new(),
            clock: 0,
            pool,
            shared,
            shared_fill: Fill::new(rules.au_bytes),
            shared_groups: BTreeSet::new(),
            shared_small: 0,
            rules,
        }
    }

    fn write(&mut self, offset: u64, bytes: u64, order: Order, stats: &mut Stats) -> u64 {
        let au_bytes = self.rules.au_bytes;
        let mut spent = self.rules.program.overhead_ns(order);
        let (mut at, end) = (offset, offset + bytes);
        while at < end {
            let within = at % au_bytes;
            let piece = Piece {
                au: (at / au_bytes) as u32,
                within,
                end: au_bytes.min(within + end - at),
                order,
            };
            spent += self.write_au(piece, stats);
            at += piece.bytes();
        }
        spent
    }

    /// Erases the AUs covered wholly; one covered in part keeps its data.
    fn discard(&mut self, offset: u64, bytes: u64, stats: &mut Stats) -> u64 {
        let (au_bytes, end) = (self.rules.au_bytes, offset + bytes);
        let last = match end == self.rules.flash_bytes {
            true => end.div_ceil(au_bytes),
            false => end / au_bytes,
        };
        let mut spent = 0;
        for au in offset.div_ceil(au_bytes)..last {
            let au = au as u32;
            if let Some(at) = self.slots.iter().position(|slot| slot.au == au) {
                let slot = self.slots.swap_remove(at);
                spent += self.give_back(&slot, stats);
            }
            self.forget_shared(au);
            spent += self.switch(au, NONE, 0, stats);
        }
        spent
    }

    /// AUs with an update block or waiting to be folded, and how many there can be.
    fn open_aus(&self) -> Option<(usize, usize)> {
        Some((self.slots.len(), self.rules.open))
    }

    fn erase_counts(&self) -> Vec<u32> {
        self.pool.erase_counts()
    }

    fn verify(&self) -> Result<(), Violation> {
        self.verify_blocks()?;
        self.verify_slots()
    }
}

impl UpdateBlock {
    fn write_au(&mut self, piece: Piece, stats: &mut Stats) -> u64 {
        self.clock += 1;
        let found = self.slots.iter().position(|slot| slot.au == piece.au);
        if piece.bytes() == self.rules.au_bytes {
            return self.replace(found, piece, stats);
        }
        if let Some(at) = found {
            return self.write_open(at, piece, stats);
        }
        let mut spent = 0;
        if self.slots.len() >= self.rules.open {
            let oldest = self.by_age(Slot::is_any, false);
            if self.slots[oldest].used_at + self.rules.keep_writes >= self.clock {
                return self.write_without(piece, stats);
            }
            spent += self.close(oldest, stats);
        }
        spent + self.open(piece, stats)
    }

    /// Writes a whole AU to a new block.
    fn replace(&mut self, found: Option<usize>, piece: Piece, stats: &mut Stats) -> u64 {
        let mut spent = self.program(piece, false);
        stats.programmed_bytes += self.rules.au_bytes;
        if let Some(at) = found {
            let slot = self.slots.swap_remove(at);
            spent += self.give_back(&slot, stats);
        }
        if !self.known(piece.au) {
            spent += self.rules.whole_ns;
        }
        self.forget_shared(piece.au);
        let block = self.pool.take();
        spent + self.switch(piece.au, block, self.rules.au_bytes, stats)
    }

    /// Whether `au` is one of the few that the card keeps ready for whole writes, one less than
    /// have update blocks; from now on it is, if there is room or one was not used for long.
    fn known(&mut self, au: u32) -> bool {
        let (clock, room) = (self.clock, (self.rules.open - 1).max(1));
        let keep = self.rules.keep_writes;
        if let Some(place) = self.ready.iter_mut().find(|place| place.0 == au) {
            place.1 = clock;
            return true;
        }
        self.ready.retain(|place| place.1 + keep >= clock);
        if self.ready.len() < room {
            self.ready.push((au, clock));
        }
        false
    }

    /// Gives the AU of `piece` an update block and writes there; there is room.
    fn open(&mut self, piece: Piece, stats: &mut Stats) -> u64 {
        let mut spent = self.consolidate_shared(Some(piece.au), stats);
        self.tails.retain(|tail| tail.au != piece.au);
        spent += self.program(piece, false);
        let slot = self.begin(piece, stats);
        self.slots.push(slot);
        spent
    }

    /// An update block that begins with `piece`.
    fn begin(&mut self, piece: Piece, stats: &mut Stats) -> Slot {
        let programmed = self.rules.pages_behind(0, piece.within, piece.end);
        stats.programmed_bytes += programmed;
        Slot {
            au: piece.au,
            block: self.pool.take(),
            start: piece.within,
            next: piece.end,
            holes: 0,
            high: piece.end,
            chaotic: false,
            groups: 0,
            small_bytes: 0,
            programmed,
            used_at: self.clock,
        }
    }

    /// Writes into an AU that has an update block.
    fn write_open(&mut self, at: usize, piece: Piece, stats: &mut Stats) -> u64 {
        let clock = self.clock;
        if self.slots[at].block == NONE {
            self.slots[at] = self.begin(piece, stats);
            return self.program(piece, false);
        }
        let slot = &mut self.slots[at];
        slot.used_at = clock;
        slot.high = slot.high.max(piece.end);
        if let Some(place) = self.ready.iter_mut().find(|place| place.0 == piece.au) {
            place.1 = clock;
        }
        let in_order = piece.within == slot.next;
        let ahead = piece.within.saturating_sub(slot.next);
        if in_order || (!slot.chaotic && ahead > 0) {
            let next = std::mem::replace(&mut slot.next, piece.end);
            let padded = ahead <= self.rules.gap_bytes;
            slot.holes += if padded { 0 } else { ahead };
            let from = if padded { next } else { piece.within };
            let programmed = self.rules.pages_behind(next, from, piece.end);
            let padding = span_ns(piece.within - from, self.rules.copy_rate);
            let chaotic = slot.chaotic;
            let spent = padding + self.program(piece, chaotic);
            return spent + self.fill(at, programmed, stats);
        }
        let mut spent = 0;
        if !slot.chaotic {
            slot.chaotic = true;
            if self.chaotic() > self.rules.open_chaotic {
                let oldest = self.by_age(Slot::is_chaotic, false);
                spent += self.close(oldest, stats);
            }
        } else if piece.within == 0 && slot.groups == 0 {
            return self.begin_pass(at, piece, stats);
        }
        let at = self.slots.iter().position(|slot| slot.au == piece.au);
        spent + at.map_or(0, |at| self.write_chaotic(at, piece, stats))
    }

    /// All groups of slot `at` are in place: a new pass in order begins, in an erased block.
    fn begin_pass(&mut self, at: usize, piece: Piece, stats: &mut Stats) -> u64 {
        let slot = &mut self.slots[at];
        (slot.chaotic, slot.start, slot.holes) = (false, 0, 0);
        slot.next = piece.end;
        let worn = std::mem::take(&mut slot.programmed) > 0;
        let mut spent = self.program(piece, false);
        if worn {
            spent += self.renew(at, stats);
        }
        spent + self.fill(at, self.rules.pages_behind(0, 0, piece.end), stats)
    }

    /// Writes out of order into slot `at`, which is chaotic.
    fn write_chaotic(&mut self, at: usize, piece: Piece, stats: &mut Stats) -> u64 {
        let rules = &self.rules;
        let touched = rules.groups(piece.within, piece.end);
        let slot = &mut self.slots[at];
        slot.next = piece.end;
        let mut copied = 0;
        let mut spent = 0;
        if piece.bytes() <= rules.small_bytes {
            slot.groups |= mask(touched);
            slot.small_bytes += piece.bytes();
            spent = rules.small_write_ns(piece.bytes());
            if slot.small_bytes > rules.small_area_bytes {
                let groups = slot.groups;
                (slot.groups, slot.small_bytes) = (0, 0);
                copied = self.groups_bytes(piece.au, groups);
            }
        } else {
            let high = slot.high;
            slot.groups &= !mask(touched.clone());
            if slot.groups == 0 {
                slot.small_bytes = 0;
            }
            copied = self.rest_bytes(piece, high);
        }
        let pages = self.rules.pages_behind(0, piece.within, piece.end);
        spent += span_ns(copied, self.rules.group_rate) + self.program(piece, true);
        spent + self.fill(at, pages + copied, stats)
    }

    /// Programs `bytes` into slot `at`; a block complete in order replaces the original, a
    /// full chaotic one, whose groups are in place, makes room for a new one.
    fn fill(&mut self, at: usize, bytes: u64, stats: &mut Stats) -> u64 {
        let au_bytes = self.rules.au_bytes;
        stats.programmed_bytes += bytes;
        let slot = &mut self.slots[at];
        slot.programmed += bytes;
        if !slot.chaotic && slot.next == au_bytes && slot.start == 0 && slot.holes == 0 {
            let (au, block) = (slot.au, std::mem::replace(&mut slot.block, NONE));
            if self.rules.fold_rate.is_none() {
                self.slots.swap_remove(at);
            }
            return self.switch(au, block, au_bytes, stats);
        }
        let mut spent = 0;
        while self.slots[at].chaotic && self.slots[at].programmed >= au_bytes {
            self.slots[at].programmed -= au_bytes;
            spent += self.renew(at, stats);
        }
        spent
    }

    /// Gives slot `at` an erased block for its full one.
    fn renew(&mut self, at: usize, stats: &mut Stats) -> u64 {
        let erased = self.pool.take();
        let full = std::mem::replace(&mut self.slots[at].block, erased);
        self.erase(full, stats)
    }

    /// Writes into an AU that has no update block while all others are in use.
    fn write_without(&mut self, piece: Piece, stats: &mut Stats) -> u64 {
        let bytes = piece.bytes();
        let known = self.tails.iter().position(|tail| tail.au == piece.au);
        let tail = known.or_else(|| self.begin_tail(piece));
        if let Some(at) = tail.filter(|at| self.tails[*at].next == piece.within) {
            let gather = self.rules.gather_bytes;
            let tail = &mut self.tails[at];
            tail.next = piece.end;
            let mut groups = bytes / gather;
            if bytes <= gather {
                tail.gathered += bytes;
                groups = tail.gathered / self.rules.short_bytes;
                tail.gathered %= self.rules.short_bytes;
            }
            self.tails[at..].rotate_left(1);
            return self.program_shared(piece, stats) + self.shared_groups_ns(groups, stats);
        }
        if bytes <= self.rules.small_bytes {
            let groups = self.rules.groups(piece.within, piece.end);
            let marked = groups.map(|group| (piece.au, group));
            self.shared_groups.extend(marked);
            self.shared_small += bytes;
            match known {
                Some(at) => self.tails[at].next = piece.end,
                None => self.push_tail(piece.au, piece.end),
            }
            let small = self.rules.small_write_ns(bytes);
            let spent = small + self.program_shared(piece, stats);
            if self.shared_small <= self.rules.shared_bytes {
                return spent;
            }
            return spent + self.consolidate_shared(None, stats);
        }
        let newest = self.by_age(Slot::is_any, true);
        let most = match self.slots[newest].block {
            NONE => 0,
            _ => self.rules.au_bytes / self.rules.group_bytes,
        };
        let more = (bytes.div_ceil(self.rules.gather_bytes) - 1).min(most);
        let spent = self.close(newest, stats) + self.shared_groups_ns(more, stats);
        spent + self.open(piece, stats)
    }

    /// Among AUs written in order, a write of the first `tail_percent` of an AU begins another
    /// (WB1, WB4, WB12: 2 MiB writes with 5 to 7 AUs take as much more for each byte as 128 to
    /// 512 KiB do).
    fn begin_tail(&mut self, piece: Piece) -> Option<usize> {
        let large = piece.within == 0 && piece.bytes() >= self.rules.tail_bytes;
        if !large || self.chaotic() > 0 {
            return None;
        }
        self.push_tail(piece.au, 0);
        Some(self.tails.len() - 1)
    }

    fn push_tail(&mut self, au: u32, next: u64) {
        if self.tails.len() == self.rules.tails {
            self.tails.remove(0);
        }
        self.tails.push(Tail {
            au,
            next,
            gathered: 0,
        });
    }

    /// Closes slot `at`: the block becomes the AU's, after what it lacks was copied.
    fn close(&mut self, at: usize, stats: &mut Stats) -> u64 {
        let slot = self.slots.swap_remove(at);
        if slot.block == NONE {
            return self.fold(slot.au, stats);
        }
        let mother = u64::from(self.filled.read(slot.au as usize)) * self.rules.page_bytes;
        let high = mother.max(slot.high);
        let copied = if slot.chaotic {
            high
        } else {
            let around = slot.start.min(mother) + mother.saturating_sub(slot.next);
            around + slot.holes
        };
        // What a page covered in part lacks, the copy fills.
        let room = match slot.chaotic {
            true => self.rules.au_bytes,
            false => self.rules.au_bytes - slot.programmed,
        };
        stats.programmed_bytes += copied.next_multiple_of(self.rules.page_bytes).min(room);
        stats.au_copies += u64::from(copied > 0);
        let mut spent = span_ns(copied, self.rules.copy_rate);
        let block = if slot.chaotic {
            let merged = self.pool.take();
            spent += self.erase(slot.block, stats);
            merged
        } else {
            slot.block
        };
        self.push_tail(slot.au, slot.next);
        spent + self.switch(slot.au, block, high, stats)
    }

    /// Makes `block` the one of `au`, of which `high` bytes hold data.
    fn switch(&mut self, au: u32, block: u32, high: u64, stats: &mut Stats) -> u64 {
        let pages = high.div_ceil(self.rules.page_bytes) as u32;
        self.filled.replace(au as usize, pages);
        match self.map.replace(au as usize, block) {
            NONE => 0,
            mother => self.erase(mother, stats),
        }
    }

    /// Erases the update block of a slot that is no more.
    fn give_back(&mut self, slot: &Slot, stats: &mut Stats) -> u64 {
        match slot.block {
            NONE => 0,
            block => self.erase(block, stats),
        }
    }

    fn erase(&mut self, block: u32, stats: &mut Stats) -> u64 {
        self.pool.erase(block);
        stats.erases += 1;
        self.rules.erase_ns
    }

    /// Nothing of `au` is left in the shared block.
    fn forget_shared(&mut self, au: u32) {
        self.tails.retain(|tail| tail.au != au);
        self.forget_groups(Some(au));
    }
}

/// The bits of a range of groups.
fn mask(groups: std::ops::Range<u32>) -> u128 {
    groups.fold(0, |bits, group| bits | 1 << group)
}

impl Slot {
    fn is_any(&self) -> bool {
        true
    }

    fn is_chaotic(&self) -> bool {
        self.chaotic
    }
}
