//! Family A: block map with a few open AUs, each with a log block.
//!
//! **Mechanism.** Logical AUs map to physical blocks as wholes. To write into one, the card
//! opens it: a spare block (the *child*, or log block) takes the updates while the old one
//! (the *mother*) keeps serving the rest [P-7206893]. Only `open_aus_linear` can be open, and
//! of these only `open_aus_random` in random order. One more costs closing the least
//! recently used: what the log does not hold is copied from the mother, and the mother is
//! erased. With `first_opened` AUs have places, which they keep when their log is complete or
//! merged, and the place taken first goes to the AU that asks, however lately its own was used.
//! So of four AUs written in turns in three places each write, every second or every third
//! pays, by the order in which they took them before (WB11 and WB15 a third, WB10 half), and of
//! five each. This is the SD specification's "the card prepares a new AU by copying the used
//! RUs and writing the new RUs" [SD110], at the internal move rate Pm. Measured: 0.43–1.1 s
//! for 4 MiB whatever the size of the request (`flash.md` 2.3.5); on WB5 the copied part
//! shrinks as the request grows to the AU, as it does here.
//!
//! **Order.** A log that is written in order from one end to the other replaces the mother
//! without copying (*switch*). A jump ahead of at most `gap_bytes` is filled by copying and
//! stays in order [P-7904670]. Anything else makes the log *chaotic*: it fills up by pages
//! *programmed*, not by pages covered, and when it has taken `log_percent` of an AU it is
//! merged fully into a third block. So writing an AU at random costs the same number of
//! merges whatever the size of the writes: one on WB19 (440 ms an AU from 16 KiB to 1 MiB, at
//! `log_percent` 100), 2.3 on WB6, WB15 and WB21, three and more on WB11 and WB5. Above 100
//! the log has several blocks, as superblock layers do [HYB], which makes merges rarer.
//! `random_percent` is what a page in a chaotic log takes of its time in order. With
//! `merge_at_once` it is merged by the write that fills it, and by one of the whole AU, though
//! the log is worth nothing then (WB2 and WB19, without a small-write area: 440 ms an AU for
//! 2 MiB writes too, which fill the log twice; WB2, WB5 and WB19 for a 4 MiB write to each AU
//! written at random before).
//!
//! **Small writes.** What a page covered in part costs is told in `program` (2.3.3). Contiguous
//! writes are joined where the reader keeps the transfer open (`write.coalesce`, 2.3.2). With an
//! area of their own for small writes cards are of family A+s, which is `small_writes`.
//!
//! **Rest.** With `idle_close_us`, the card closes its logs while idle, the oldest first, once
//! it was left alone for that long: the first writes of 4 MiB after five AUs in turns cost no
//! merge on WB6, WB11, WB15 and WB21, whose logs another run of flashbench separates.
//!
//! Erased AUs (discarded, or never written) have nothing to copy: opening one is cheap.

#[path = "log_block/figures.rs"]
mod figures;
#[path = "log_block/room.rs"]
mod room;
#[path = "log_block/small_writes.rs"]
mod small_writes;
#[cfg(test)]
#[path = "log_block/tests.rs"]
mod tests;

use super::{FamilyFacts, TranslationLayer};
use crate::bus::span_ns;
use crate::cow::CowArray;
use crate::figures::{CardFigures, Misfit};
use crate::flash::{Order, Pool, Program, Violation};
use crate::stats::Stats;
use figures::{FIT, LOGS_MAX, LogBlockFigures};
use small_writes::SmallWrites;

/// No physical block.
const NONE: u32 = u32::MAX;

/// Parameters, from the profile.
#[derive(Clone, Debug, PartialEq)]
struct Rules {
    au_bytes: u64,
    page_bytes: u64,
    capacity_bytes: u64,
    aus: u32,
    open_linear: usize,
    open_random: usize,
    program: Program,
    copy_rate: u64,
    erase_ns: u64,
    random_percent: u64,
    gap_bytes: u64,
    idle_close_ns: u64,
    log_pages: u32,
    /// Free blocks that opening, filling and merging may take.
    reserve: usize,
    /// AUs keep their places in the order in which they took them.
    first_opened: bool,
    merge_at_once: bool,
}

/// An open AU. Offsets are within the AU.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Slot {
    au: u32,
    /// Physical log blocks, [`NONE`] beyond those in use; a log in order has one.
    logs: [u32; LOGS_MAX + 1],
    /// In order: the log holds `start..next`.
    start: u32,
    next: u32,
    /// One past the highest byte written while open.
    high: u32,
    /// Pages programmed in the log blocks; in order, small writes share them.
    used_pages: u32,
    chaotic: bool,
    /// In order once more, in a log of its own behind a chaotic one.
    again: bool,
    /// Stamp of the last use, for eviction.
    used_at: u64,
}

/// State of the family.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LogBlock {
    rules: Rules,
    /// Logical AU → physical block, or [`NONE`].
    map: CowArray,
    /// Logical AU → pages from its beginning that may hold data.
    filled: CowArray,
    slots: Vec<Slot>,
    /// With `first_opened`: AUs with a place, the one that took it first at the front.
    places: Vec<u32>,
    chaotic: usize,
    clock: u64,
    pool: Pool,
    /// Of family A+s; those of family A have none in use.
    small: SmallWrites,
}

impl TranslationLayer for LogBlock {
    type Figures = LogBlockFigures;

    const FACTS: FamilyFacts = FamilyFacts {
        place: 0,
        words: "has log blocks",
        limits_open_aus: true,
        fit: FIT,
    };

    fn check(card: &CardFigures, own: &LogBlockFigures) -> Result<(), Misfit> {
        // A chaotic AU that begins anew takes one more.
        card.check_spare(own.blocks_taken(card) + 1)
    }

    fn small_write_bytes(own: &LogBlockFigures) -> u64 {
        own.small_write_bytes.value
    }

    fn new(card: &CardFigures, own: &LogBlockFigures) -> LogBlock {
        let rules = Rules::new(card, own);
        // One more holds the small-write area.
        let mut pool = Pool::new(card.blocks() + 1);
        let small = SmallWrites::new(card, own, &mut pool);
        let map = CowArray::new(rules.aus as usize, NONE);
        let filled = CowArray::new(rules.aus as usize, 0);
        let slots = Vec::with_capacity(rules.open_linear + 1);
        LogBlock {
            rules,
            map,
            filled,
            places: Vec::with_capacity(slots.capacity()),
            slots,
            chaotic: 0,
            clock: 0,
            pool,
            small,
        }
    }

    fn write(&mut self, offset: u64, bytes: u64, order: Order, stats: &mut Stats) -> u64 {
        if self.small.takes(bytes, order) {
            return self.small.write(bytes, &mut self.pool, stats);
        }
        let mut spent = self.rules.program.overhead_ns(order);
        let (mut at, end) = (offset, offset + bytes);
        while at < end {
            let au = (at / self.rules.au_bytes) as u32;
            let within = (at % self.rules.au_bytes) as u32;
            let length = (end - at).min(self.rules.au_bytes - u64::from(within)) as u32;
            spent += self.write_au(au, within, length, order, stats);
            at += u64::from(length);
        }
        spent
    }

    /// Erases the AUs covered wholly; one covered in part keeps its data.
    fn discard(&mut self, offset: u64, bytes: u64, stats: &mut Stats) -> u64 {
        let au_bytes = self.rules.au_bytes;
        let end = offset + bytes;
        let to_the_end = end == self.rules.capacity_bytes;
        let first = offset.div_ceil(au_bytes);
        let last = if to_the_end {
            u64::from(self.rules.aus)
        } else {
            end / au_bytes
        };
        (first..last).map(|au| self.forget(au as u32, stats)).sum()
    }

    /// Closes logs in `ns` of idle time.
    #[inline]
    fn idle(&mut self, ns: u64, stats: &mut Stats) {
        let wait = self.rules.idle_close_ns;
        if wait > 0 && ns >= wait && !self.slots.is_empty() {
            self.close_idle(ns - wait, stats);
        }
    }

    /// AUs with a log, and how many there can be.
    fn open_aus(&self) -> Option<(usize, usize)> {
        Some((self.slots.len(), self.rules.open_linear))
    }

    fn erase_counts(&self) -> Vec<u32> {
        self.pool.erase_counts()
    }

    /// Every physical block is exactly one of: mapped, log, free, small-write area.
    fn verify(&self) -> Result<(), Violation> {
        let mut owners = vec![0_u32; self.pool.total() as usize];
        let logs = self
            .slots
            .iter()
            .flat_map(|slot| slot.logs)
            .filter(|log| *log != NONE);
        let mapped = self.map.to_vec().into_iter().filter(|block| *block != NONE);
        for block in logs
            .chain(mapped)
            .chain(self.pool.free_blocks())
            .chain([self.small.block()])
        {
            match owners.get_mut(block as usize) {
                Some(count) => *count += 1,
                None => return Err(Violation(format!("block {block} does not exist"))),
            }
        }
        if let Some(block) = owners.iter().position(|count| *count != 1) {
            let count = owners[block];
            return Err(Violation(format!(
                "block {block} has {count} owners, not one"
            )));
        }
        let chaotic = self.slots.iter().filter(|slot| slot.chaotic).count();
        if chaotic != self.chaotic || chaotic > self.rules.open_random {
            return Err(Violation(format!(
                "{chaotic} chaotic logs, {} counted",
                self.chaotic
            )));
        }
        let mut open: Vec<u32> = self.slots.iter().map(|slot| slot.au).collect();
        open.sort_unstable();
        if let Some(twice) = open.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Violation(format!("AU {} is open twice", twice[0])));
        }
        if self.slots.len() > self.rules.open_linear {
            return Err(Violation(format!("{} open AUs", self.slots.len())));
        }
        self.verify_places()?;
        self.verify_room()
    }
}

impl LogBlock {
    /// A write of `length` bytes at `within` inside one AU.
    fn write_au(
        &mut self,
        au: u32,
        within: u32,
        length: u32,
        order: Order,
        stats: &mut Stats,
    ) -> u64 {
        self.clock += 1;
        let whole = u64::from(length) == self.rules.au_bytes;
        let mut spent = 0;
        let mut found = self.slots.iter().position(|slot| slot.au == au);
        if let Some(at) = found {
            let needed = self.rules.pages_touched(within, length);
            let full = self.slots[at].used_pages + needed > self.rules.log_pages;
            let goes_on = self.continues(at, within) || self.begins_again(at, within);
            if whole || (full && !goes_on) {
                spent += self.close(at, whole && !self.rules.merge_at_once, stats);
                found = None;
            }
        }
        let at = match found {
            Some(at) => {
                spent += self.place(at, within, stats);
                // Making room for a chaotic log may have moved the slots.
                self.slots
                    .iter()
                    .position(|slot| slot.au == au)
                    .unwrap_or(at)
            }
            None => {
                spent += self.open(au, within, whole, stats);
                self.slots.len() - 1
            }
        };
        spent + self.program(at, within, length, order, stats)
    }

    fn continues(&self, at: usize, within: u32) -> bool {
        let slot = &self.slots[at];
        !slot.chaotic && within == slot.next
    }

    /// Opens `au` for a write at `within`; closes another if all places are in use.
    /// A write of the whole AU needs no slot: its log is the new block as soon as it is full.
    fn open(&mut self, au: u32, within: u32, whole: bool, stats: &mut Stats) -> u64 {
        let spent = if whole { 0 } else { self.make_room(au, stats) };
        let mut logs = [NONE; LOGS_MAX + 1];
        logs[0] = self.pool.take();
        let (start, next, high) = (within, within, within);
        let used_at = self.clock;
        self.slots.push(Slot {
            au,
            logs,
            start,
            next,
            high,
            used_pages: 0,
            chaotic: false,
            again: false,
            used_at,
        });
        spent
    }

    /// Prepares open slot `at` for a write at `within`: in order, after a small gap, or chaotic.
    fn place(&mut self, at: usize, within: u32, stats: &mut Stats) -> u64 {
        self.slots[at].used_at = self.clock;
        if self.begins_again(at, within) {
            self.begin_again(at);
        }
        let slot = self.slots[at];
        if slot.chaotic || within == slot.next {
            return 0;
        }
        if within > slot.next && u64::from(within - slot.next) <= self.rules.gap_bytes {
            return span_ns(u64::from(within - slot.next), self.rules.copy_rate);
        }
        self.slots[at].chaotic = true;
        self.chaotic += 1;
        if self.chaotic <= self.rules.open_random {
            return 0;
        }
        self.close(self.oldest(true), false, stats)
    }

    /// Whether a write at `within` starts slot `at` anew: a log in order beside the chaotic
    /// one. If it comes to the end of the AU, the chaotic one is worth nothing and no merge is
    /// needed (WB6, WB11, WB21: 4 MiB after random writes takes what it does in order).
    fn begins_again(&self, at: usize, within: u32) -> bool {
        let slot = &self.slots[at];
        // Those that are open already took of the reserve.
        let free = self.pool.free() + self.slots.len();
        let room = slot.logs.contains(&NONE) && free > self.rules.reserve;
        let anew = within == 0 && !self.rules.merge_at_once;
        anew && room && (slot.chaotic || slot.again && slot.next > 0)
    }

    fn begin_again(&mut self, at: usize) {
        let block = self.pool.take();
        let slot = &mut self.slots[at];
        if let Some(free) = slot.logs.iter_mut().find(|log| **log == NONE) {
            *free = block;
        }
        self.chaotic -= usize::from(slot.chaotic);
        (slot.chaotic, slot.again) = (false, true);
        (slot.start, slot.next) = (0, 0);
    }

    /// Programs into open slot `at`; a log complete in order replaces the mother at once.
    fn program(
        &mut self,
        at: usize,
        within: u32,
        length: u32,
        order: Order,
        stats: &mut Stats,
    ) -> u64 {
        let rules = &self.rules;
        let end = within + length;
        let slot = &mut self.slots[at];
        let chaotic = slot.chaotic;
        let pages = match chaotic {
            true => rules.pages_touched(within, length),
            false => rules.pages_behind(slot, end),
        };
        stats.programmed_bytes += u64::from(pages) * rules.page_bytes;
        slot.used_pages += pages;
        slot.high = slot.high.max(end);
        let units_ns = rules
            .program
            .units_ns(u64::from(within), u64::from(length), order, chaotic);
        let au_bytes = rules.au_bytes;
        if chaotic {
            let blocks = slot.used_pages.div_ceil(rules.pages_per_au()) as usize;
            for log in slot
                .logs
                .iter_mut()
                .take(blocks)
                .filter(|log| **log == NONE)
            {
                *log = self.pool.take();
            }
            let extra = rules.program.overhead_ns(order) * (rules.random_percent - 100);
            let spent = (units_ns * rules.random_percent + extra) / 100;
            let full = rules.merge_at_once && slot.used_pages >= rules.log_pages;
            return spent
                + if full {
                    self.close(at, false, stats)
                } else {
                    0
                };
        }
        slot.next = end;
        let complete = slot.start == 0 && u64::from(end) == au_bytes;
        units_ns
            + if complete {
                self.close(at, false, stats)
            } else {
                0
            }
    }

    /// Closes slot `at` and returns the time for it. `superseded`: its AU is about to be
    /// written wholly, so nothing of log or mother is worth copying.
    fn close(&mut self, at: usize, superseded: bool, stats: &mut Stats) -> u64 {
        let mut slot = self.slots.swap_remove(at);
        self.chaotic -= usize::from(slot.chaotic);
        let au = slot.au as usize;
        let page = self.rules.page_bytes;
        let mother_bytes = u64::from(self.filled.read(au)) * page;
        let high = mother_bytes.max(u64::from(slot.high));
        if superseded {
            return self.erase_logs(&slot, stats);
        }
        let copied = if slot.chaotic {
            high
        } else {
            let ahead = u64::from(slot.start).min(mother_bytes);
            let held = if slot.again { high } else { mother_bytes };
            ahead + held.saturating_sub(u64::from(slot.next))
        };
        let mut spent = span_ns(copied, self.rules.copy_rate);
        // What a page covered in part lacks, the copy fills.
        let room = match slot.chaotic {
            true => self.rules.au_bytes,
            false => self.rules.au_bytes - self.rules.in_order_bytes(&slot),
        };
        stats.programmed_bytes += copied.next_multiple_of(page).min(room);
        stats.au_copies += u64::from(copied > 0);
        let new = if slot.chaotic {
            self.pool.take()
        } else {
            let logs = slot.logs.iter_mut().rev();
            let last = logs.into_iter().find(|log| **log != NONE);
            last.map_or(NONE, |log| std::mem::replace(log, NONE))
        };
        spent += self.erase_logs(&slot, stats);
        let mother = self.map.replace(au, new);
        self.filled.replace(au, high.div_ceil(page) as u32);
        if mother != NONE {
            spent += self.erase(mother, stats);
        }
        spent
    }

    /// As many as are begun within `ns`; the last may end later, unseen by the host.
    #[cold]
    fn close_idle(&mut self, ns: u64, stats: &mut Stats) {
        let mut spent = 0;
        while spent <= ns && !self.slots.is_empty() {
            spent += self.close(self.oldest(false), false, stats);
        }
    }

    fn erase_logs(&mut self, slot: &Slot, stats: &mut Stats) -> u64 {
        let logs = slot.logs.iter().filter(|log| **log != NONE);
        logs.map(|log| self.erase(*log, stats)).sum()
    }

    fn erase(&mut self, block: u32, stats: &mut Stats) -> u64 {
        self.pool.erase(block);
        stats.erases += 1;
        self.rules.erase_ns
    }

    /// Erases everything of one AU.
    fn forget(&mut self, au: u32, stats: &mut Stats) -> u64 {
        let mut spent = 0;
        if let Some(at) = self.slots.iter().position(|slot| slot.au == au) {
            let slot = self.slots.swap_remove(at);
            self.chaotic -= usize::from(slot.chaotic);
            spent += self.erase_logs(&slot, stats);
        }
        let mother = self.map.replace(au as usize, NONE);
        self.filled.replace(au as usize, 0);
        if mother != NONE {
            spent += self.erase(mother, stats);
        }
        spent
    }

    /// No block holds more than it can between two erases.
    fn verify_room(&self) -> Result<(), Violation> {
        self.small.verify()?;
        for slot in &self.slots {
            let logs = slot.logs.iter().filter(|log| **log != NONE).count() as u32;
            if slot.used_pages > logs * self.rules.pages_per_au() {
                let found = format!("{} pages in {logs} logs", slot.used_pages);
                return Err(Violation(found));
            }
        }
        Ok(())
    }
}

impl Rules {
    fn new(card: &CardFigures, own: &LogBlockFigures) -> Rules {
        let au_bytes = card.au_bytes();
        let pages_per_au = au_bytes / card.page_bytes();
        let linear = card.open_aus_linear() as usize;
        Rules {
            au_bytes,
            page_bytes: card.page_bytes(),
            capacity_bytes: card.flash_bytes(),
            aus: card.flash_bytes().div_ceil(au_bytes) as u32,
            open_linear: linear,
            open_random: (card.open_aus_random() as usize).min(linear),
            program: Program::new(card, card.page_bytes()),
            copy_rate: card.copy.rate_bytes_per_s.value,
            erase_ns: card.copy.erase_us.nanos(),
            random_percent: own.random_percent.value,
            reserve: own.blocks_taken(card) as usize,
            log_pages: (pages_per_au * own.log_percent.value / 100) as u32,
            idle_close_ns: own.idle_close_us.nanos(),
            gap_bytes: own.gap_bytes.value,
            first_opened: own.first_opened.is_on(),
            merge_at_once: own.merge_at_once.is_on(),
        }
    }

    fn pages_per_au(&self) -> u32 {
        (self.au_bytes / self.page_bytes) as u32
    }

    /// Pages that a write covers wholly or in part.
    #[inline]
    fn pages_touched(&self, within: u32, length: u32) -> u32 {
        let (start, end) = (u64::from(within), u64::from(within) + u64::from(length));
        (end.div_ceil(self.page_bytes) - start / self.page_bytes) as u32
    }

    /// Pages that going on in order up to `end` begins; the last one begun may have had room.
    #[inline]
    fn pages_behind(&self, slot: &Slot, end: u32) -> u32 {
        if slot.next == slot.start {
            return self.pages_touched(slot.start, end - slot.start);
        }
        let pages = |bytes: u32| u64::from(bytes).div_ceil(self.page_bytes) as u32;
        pages(end) - pages(slot.next)
    }

    /// Bytes of the pages that the log in order holds.
    fn in_order_bytes(&self, slot: &Slot) -> u64 {
        let pages = self.pages_touched(slot.start, slot.next - slot.start);
        u64::from(pages) * self.page_bytes
    }
}
