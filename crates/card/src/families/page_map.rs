//! Family P: page map with greedy collection and over-provisioning.
//!
//! **Mechanism.** Every map unit (`unit_bytes`; 4 KiB on a SanDisk Extreme, inferred from
//! its 8 KiB reads at half the 4 KiB IOPS, `flash.md` 2.3.9) of the host has its own place in
//! flash. Writes append to an open block; the unit's old place becomes garbage. When fewer
//! than two blocks are free, the block with the least live data is collected: its live
//! units are copied to a second open block at the move rate Pm, and it is erased. Write
//! amplification is not a parameter: it emerges from the mapping, the spare area and what
//! the host overwrites.
//!
//! **Cost.** Overhead and programming as `program` has it: t0 + size / rate fits the cards of
//! this family from 4 KiB to 1 MiB (2.3.1: NCard 4.6 ms + b/9.5 MB/s, SD-NAND 1.7 ms + b/7.2
//! MB/s), with a plateau where several units are programmed together. A map unit that is
//! written in part and holds data is read and merged first, `modify_us` each.
//!
//! **Streams.** The cards of the logs slow down gradually when more AUs are written in turns,
//! by a share of the rate that does not depend on the size of the writes (WB16_2, 64 KiB and
//! 512 KiB: 2 AUs +0 %, 3 AUs +50 %, 5 AUs +60 %, 7 AUs +90 %): data of some AUs are written
//! twice. With `streams` set, that many AUs have a place of their own; what is written to
//! others goes to a mixed block, which is *folded* (copied out and erased) as soon as it is
//! full. An AU gives up its stream when it is not written for a while (`keep_writes` writes to
//! others, more than the seven AUs that the logs write in turns, or a rest of `rest_us`), not
//! when another wants one: with slots that follow the last use, all of n + 1 AUs would suffer,
//! and they do not.
//!
//! **Background.** While idle, the card collects until `background_aus` are free, as long as a
//! block has `worth_percent` of garbage: a burst then finds room and pays for no collection. The
//! cards of the logs write AUs in order at an even rate, so they have such a reserve.
//!
//! **Order.** There is no slot limit: random costs more than sequential through the overhead,
//! through partial units and through collection, which stalls for whole-block copies (2.3.11).
//! Discarded units are garbage at once, which makes later collections cheaper.
//!
//! A physical address is `block << shift | unit in block`, so that AUs that are no power of
//! two (24 MiB on a SanDisk Ultra) need no division.

#[cfg(test)]
#[path = "page_map/tests.rs"]
mod tests;

use super::{FamilyFacts, TranslationLayer};
use crate::bus::{Divisor, span_ns};
use crate::cow::CowArray;
use crate::figures::{CardFigures, LOGS, Misfit, UNKNOWN, section, share};
use crate::fit_hints::{FitHints, SearchedFigure};
use crate::flash::{Live, Order, Pool, Program, Streams, Violation};
use crate::limits::{MICROS_MAX, UNIT_BYTES, UNITS_MAX, units};
use crate::stats::Stats;
use whichfs_units::SECTOR;

/// Spare blocks that collecting in the background cannot free: those that are open.
const OPEN_BLOCKS: u64 = 4;
/// No physical unit, or no logical one.
const NONE: u32 = u32::MAX;
/// Collection starts when fewer blocks are free: one may be needed by the collection itself.
const RESERVE: usize = 2;

section! {
    /// Figures of the page-mapped family.
    page_map: PageMapFigures {
        /// Mapping unit, bytes.
        unit_bytes: fixed(*UNIT_BYTES.start(), *UNIT_BYTES.end(), None);
        /// Reading and merging a unit that is covered in part, microseconds.
        modify_us: varied(0, MICROS_MAX, None);
        /// AUs written in turns at no cost; 0 is any.
        streams: fixed(0, 1024, Some(0));
        /// Free AUs that idle time provides.
        background_aus: fixed(0, 100_000, Some(0));
        /// Writes to others after which an AU loses its stream.
        keep_writes: varied(8, 65_536, Some(64)), assumed(LOGS, 200);
        /// Rest after which all AUs lose their streams, microseconds.
        rest_us: varied(0, MICROS_MAX, Some(200_000)), assumed(LOGS, 200);
        /// Garbage for which a block is collected in the background, percent.
        worth_percent: varied(0, 90, Some(6)), assumed(UNKNOWN, 100);
    }
}

/// What a fit is told.
const FIT: FitHints = FitHints {
    start: &[
        ("page_map.unit_bytes", 4 << 10),
        ("page_map.modify_us", 0),
        ("page_map.streams", 0),
        ("page_map.background_aus", 16),
    ],
    steps_at: Some("page_map.streams"),
    searched: &[SearchedFigure::always(
        "page_map.streams",
        &[&[0], &[2], &[3], &[4], &[5], &[6]],
    )],
    unusual: &[("page_map.streams", 0..=0, 0.5)],
    ..FitHints::NONE
};

/// Parameters, from the profile.
#[derive(Clone, Debug, PartialEq)]
struct Rules {
    unit: Divisor,
    units: u32,
    units_per_block: u32,
    shift: u32,
    program: Program,
    /// Time to copy one unit; fractions of a nanosecond are below any measurement.
    copy_unit_ns: u64,
    erase_ns: u64,
    modify_ns: u64,
    background: usize,
    /// Units of garbage for which a block is worth collecting in the background.
    worth: u32,
    /// Idle time after which no AU keeps its stream.
    rest_ns: u64,
}

/// A block that takes writes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Frontier {
    block: u32,
    next: u32,
}

/// State of the family.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PageMap {
    rules: Rules,
    /// Logical unit → physical address.
    map: CowArray,
    /// Physical address → logical unit programmed there; it lives there still if the map agrees.
    owner: CowArray,
    live: Live,
    host: Option<Frontier>,
    copies: Option<Frontier>,
    /// Takes what has no stream.
    mixed: Option<Frontier>,
    streams: Streams,
    /// Idle time not yet spent on collecting.
    idle_ns: u64,
    pool: Pool,
    /// Units on the move; kept for its memory.
    moving: Vec<u32>,
}

impl TranslationLayer for PageMap {
    type Figures = PageMapFigures;

    const FACTS: FamilyFacts = FamilyFacts {
        place: 2,
        words: "maps pages",
        limits_open_aus: false,
        fit: FIT,
    };

    fn check(card: &CardFigures, own: &PageMapFigures) -> Result<(), Misfit> {
        own.unit_bytes.check_multiple(SECTOR, "the sector")?;
        let unit = own.unit_bytes.value;
        card.geometry
            .au_bytes
            .check_multiple(unit, own.unit_bytes.path)?;
        own.check_units(card)
    }

    /// The spare blocks keep their ratio to the capacity, because write amplification depends on
    /// it, and what idle time provides is the same part of them.
    fn resize(
        card: &mut CardFigures,
        own: &mut PageMapFigures,
        [bytes, of_bytes]: [u64; 2],
    ) -> Result<(), String> {
        let spare_aus = &mut card.geometry.spare_aus;
        let (spare, background) = (spare_aus.value, own.background_aus.value);
        let scaled = share(spare, bytes, of_bytes).max(spare_aus.spec.min);
        let most = scaled - OPEN_BLOCKS;
        own.background_aus
            .set(share(background, scaled, spare).min(most))?;
        spare_aus.set(scaled)
    }

    #[cfg(test)]
    fn least_programmed(_card: &CardFigures, own: &PageMapFigures) -> u64 {
        own.unit_bytes.value
    }

    fn new(card: &CardFigures, own: &PageMapFigures) -> PageMap {
        let rules = Rules::new(card, own);
        let blocks = card.blocks();
        PageMap {
            map: CowArray::new(rules.units as usize, NONE),
            owner: CowArray::new((blocks as usize) << rules.shift, NONE),
            live: Live::new(blocks),
            host: None,
            copies: None,
            mixed: None,
            idle_ns: 0,
            streams: Streams::new(own.streams.value as usize, own.keep_writes.value),
            pool: Pool::new(blocks),
            moving: Vec::new(),
            rules,
        }
    }

    fn write(&mut self, offset: u64, bytes: u64, order: Order, stats: &mut Stats) -> u64 {
        let unit = self.rules.unit;
        let (first, last) = (unit.of(offset), unit.of(offset + bytes - 1));
        let mut spent = self.rules.program.overhead_ns(order);
        spent += self.modify(offset, bytes, first, last, order.joined);
        let in_block = u64::from(self.rules.units_per_block);
        let whole = last - first + 1 >= in_block;
        if whole || self.streams.admit(|| (first / in_block) as u32) {
            for unit in first..=last {
                spent += self.place(unit as u32, stats);
            }
        } else {
            for unit in first..=last {
                spent += self.place_mixed(unit as u32, stats);
            }
        }
        stats.programmed_bytes += (last - first + 1) * unit.get();
        let scattered = !order.follows;
        let program = &self.rules.program;
        spent + program.units_ns(offset, bytes, order, scattered)
    }

    fn discard(&mut self, offset: u64, bytes: u64, _stats: &mut Stats) -> u64 {
        // Units covered in part keep their data.
        let first = offset.div_ceil(self.rules.unit.get());
        let last = (offset + bytes) / self.rules.unit.get();
        for unit in first..last {
            if self.map.read(unit as usize) != NONE {
                let old = self.map.replace(unit as usize, NONE);
                self.kill(old);
            }
        }
        0
    }

    /// Works in `ns` of idle time.
    #[inline]
    fn idle(&mut self, ns: u64, stats: &mut Stats) {
        if ns >= self.rules.rest_ns {
            self.streams.release();
        }
        if self.wants_idle() {
            self.collect_idle(ns, stats);
        }
    }

    /// AUs with a stream of their own, and how many there can be; none without such a limit.
    fn open_aus(&self) -> Option<(usize, usize)> {
        self.streams.held()
    }

    fn erase_counts(&self) -> Vec<u32> {
        self.pool.erase_counts()
    }

    /// Map and owners agree, live counts are true, and every block is free, open or closed.
    fn verify(&self) -> Result<(), Violation> {
        let (map, owner) = (self.map.to_vec(), self.owner.to_vec());
        let mut live = vec![0_u32; self.live.len()];
        for (unit, &address) in map
            .iter()
            .enumerate()
            .filter(|(_, address)| **address != NONE)
        {
            if owner.get(address as usize) != Some(&(unit as u32)) {
                return Err(Violation(format!(
                    "unit {unit} is not at address {address}"
                )));
            }
            let within = address & ((1 << self.rules.shift) - 1);
            if within >= self.rules.units_per_block {
                return Err(Violation(format!(
                    "address {address} is outside of its block"
                )));
            }
            live[(address >> self.rules.shift) as usize] += 1;
        }
        let counted = (0..).map(|block| self.live.units(block));
        if let Some(block) = live.iter().zip(counted).position(|(is, said)| *is != said) {
            return Err(Violation(format!(
                "block {block} has {} live units",
                live[block]
            )));
        }
        if !self.live.is_consistent() {
            return Err(Violation("a group's least live count is wrong".into()));
        }
        self.verify_blocks(&live)
    }
}

impl PageMap {
    /// Reads the units that are written in part and hold data. A joined write finds its
    /// first unit still in the buffer.
    fn modify(&mut self, offset: u64, bytes: u64, first: u64, last: u64, joined: bool) -> u64 {
        let unit = self.rules.unit;
        let head = offset != first * unit.get() && !joined;
        let tail = offset + bytes != (last + 1) * unit.get() && (last > first || !head);
        let mut spent = 0;
        if head && self.map.read(first as usize) != NONE {
            spent += self.rules.modify_ns;
        }
        if tail && self.map.read(last as usize) != NONE {
            spent += self.rules.modify_ns;
        }
        spent
    }

    /// Gives logical `unit` a new place; collects first if blocks run out.
    #[inline]
    fn place(&mut self, unit: u32, stats: &mut Stats) -> u64 {
        let mut spent = 0;
        let frontier = match self.host {
            Some(frontier) if frontier.next < self.rules.units_per_block => frontier,
            _ => {
                spent = self.next_block(stats);
                Frontier {
                    block: self.pool.take(),
                    next: 0,
                }
            }
        };
        let address = frontier.block << self.rules.shift | frontier.next;
        self.host = Some(Frontier {
            next: frontier.next + 1,
            ..frontier
        });
        self.live.add(frontier.block, 1);
        let old = self.map.replace(unit as usize, address);
        self.owner.replace(address as usize, unit);
        if old != NONE {
            self.kill(old);
        }
        spent
    }

    /// Gives logical `unit` a new place in the mixed block, and folds it when it is full.
    #[cold]
    fn place_mixed(&mut self, unit: u32, stats: &mut Stats) -> u64 {
        let mut spent = 0;
        let frontier = match self.mixed {
            Some(frontier) => frontier,
            None => {
                spent += self.make_room(stats);
                Frontier {
                    block: self.pool.take(),
                    next: 0,
                }
            }
        };
        let address = frontier.block << self.rules.shift | frontier.next;
        self.live.add(frontier.block, 1);
        let old = self.map.replace(unit as usize, address);
        self.owner.replace(address as usize, unit);
        if old != NONE {
            self.kill(old);
        }
        let next = frontier.next + 1;
        self.mixed = (next < self.rules.units_per_block).then_some(Frontier { next, ..frontier });
        if self.mixed.is_none() {
            self.live.close(frontier.block);
            spent += self.make_room(stats);
            // Making room may have taken this very block.
            if self.live.is_closed(frontier.block) {
                spent += self.evacuate(frontier.block, stats);
            }
        }
        spent
    }

    /// What lives at `address` is garbage from now on: the map no longer points to it, which
    /// is all that tells. Marking it would cost a second random access for every write.
    #[inline]
    fn kill(&mut self, address: u32) {
        self.live.kill(address >> self.rules.shift);
    }

    /// Closes the full host block and collects until one can be taken.
    fn next_block(&mut self, stats: &mut Stats) -> u64 {
        if let Some(full) = self.host.take() {
            self.live.close(full.block);
        }
        self.make_room(stats)
    }

    /// Collects until there are free blocks enough.
    fn make_room(&mut self, stats: &mut Stats) -> u64 {
        let mut spent = 0;
        while self.pool.free() < RESERVE {
            let victim = self.live.emptiest();
            let victim =
                victim.filter(|block| self.live.units(*block) < self.rules.units_per_block);
            let victim = victim.unwrap_or_else(|| panic!("nothing to collect: no spare space"));
            spent += self.evacuate(victim, stats);
        }
        spent
    }

    fn wants_idle(&self) -> bool {
        self.pool.free() < self.rules.background
    }

    /// Collects in `ns` of idle time; what is left of it counts next time, up to a block.
    #[cold]
    fn collect_idle(&mut self, ns: u64, stats: &mut Stats) {
        self.idle_ns = self.idle_ns.saturating_add(ns);
        let most = self.rules.units_per_block - self.rules.worth;
        while self.wants_idle() {
            let victim = self.live.emptiest();
            let Some(victim) = victim.filter(|block| self.live.units(*block) <= most) else {
                self.idle_ns = 0;
                return;
            };
            let live = u64::from(self.live.units(victim));
            let cost = live * self.rules.copy_unit_ns + self.rules.erase_ns;
            if cost > self.idle_ns {
                self.idle_ns = self.idle_ns.min(cost);
                return;
            }
            self.idle_ns -= self.evacuate(victim, stats);
        }
        self.idle_ns = 0;
    }

    /// Copies the live units of closed block `victim` and erases it.
    fn evacuate(&mut self, victim: u32, stats: &mut Stats) -> u64 {
        let live = u64::from(self.live.units(victim));
        self.gather(victim);
        debug_assert_eq!(self.moving.len() as u64, live);
        self.settle();
        self.live.clear(victim);
        self.pool.erase(victim);
        stats.erases += 1;
        stats.au_copies += u64::from(live > 0);
        stats.programmed_bytes += live * self.rules.unit.get();
        live * self.rules.copy_unit_ns + self.rules.erase_ns
    }

    /// Lists the units that live in `victim` in `moving`.
    fn gather(&mut self, victim: u32) {
        let mut address = victim << self.rules.shift;
        let end = address + self.rules.units_per_block;
        let mut found = 0;
        self.moving
            .resize(self.rules.units_per_block as usize + 1, NONE);
        while address < end {
            let owners = self.owner.run(address as usize, (end - address) as usize);
            found += self.map.select(owners, address, &mut self.moving[found..]);
            address += owners.len() as u32;
        }
        self.moving.truncate(found);
    }

    /// Gives the units in `moving` new places behind the copies made before.
    fn settle(&mut self) {
        let mut done = 0;
        while done < self.moving.len() {
            let frontier = match self.copies {
                Some(frontier) if frontier.next < self.rules.units_per_block => frontier,
                full => {
                    if let Some(full) = full {
                        self.live.close(full.block);
                    }
                    Frontier {
                        block: self.pool.take(),
                        next: 0,
                    }
                }
            };
            let address = frontier.block << self.rules.shift | frontier.next;
            let room = (self.rules.units_per_block - frontier.next) as usize;
            let places = self
                .owner
                .run(address as usize, room.min(self.moving.len() - done));
            let units = &self.moving[done..done + places.len()];
            places.copy_from_slice(units);
            self.map.assign(units, address);
            done += units.len();
            self.live.add(frontier.block, units.len() as u32);
            self.copies = Some(Frontier {
                next: frontier.next + units.len() as u32,
                ..frontier
            });
        }
    }

    /// Every block is free (and empty), open, or closed, and just one of these.
    fn verify_blocks(&self, live: &[u32]) -> Result<(), Violation> {
        let mut not_closed = vec![false; live.len()];
        let open = self
            .host
            .iter()
            .chain(&self.copies)
            .chain(&self.mixed)
            .map(|frontier| frontier.block);
        for block in self.pool.free_blocks() {
            if live.get(block as usize) != Some(&0) {
                return Err(Violation(format!("block {block} is free but not empty")));
            }
        }
        for block in self.pool.free_blocks().chain(open) {
            match not_closed.get_mut(block as usize) {
                Some(seen) if !*seen => *seen = true,
                _ => return Err(Violation(format!("block {block} is free or open twice"))),
            }
        }
        let flags = (0..).map(|block| !self.live.is_closed(block));
        match not_closed
            .iter()
            .zip(flags)
            .position(|(is, said)| *is != said)
        {
            Some(block) => Err(Violation(format!(
                "block {block} is lost or closed and free"
            ))),
            None => Ok(()),
        }
    }
}

impl PageMapFigures {
    /// Whether the map fits into memory and its background work can come to an end.
    fn check_units(&self, card: &CardFigures) -> Result<(), Misfit> {
        let spare = card.geometry.spare_aus.value;
        let blocks = card.flash_bytes().div_ceil(card.au_bytes()) + spare;
        let units = units(blocks, card.au_bytes(), self.unit_bytes.value);
        if units > UNITS_MAX {
            let found = format!("{units} units with the spare blocks, more than {UNITS_MAX}");
            return Err((self.unit_bytes.path, found));
        }
        let background = self.background_aus.value;
        if background + OPEN_BLOCKS > spare {
            let found = format!(
                "{background}, more than geometry.spare_aus ({spare}) leaves beside {OPEN_BLOCKS} \
                 open blocks"
            );
            return Err((self.background_aus.path, found));
        }
        Ok(())
    }
}

impl Rules {
    fn new(card: &CardFigures, own: &PageMapFigures) -> Rules {
        let unit_bytes = own.unit_bytes.value;
        let units_per_block = (card.au_bytes() / unit_bytes) as u32;
        let worth = u64::from(units_per_block) * own.worth_percent.value;
        Rules {
            unit: Divisor::new(unit_bytes),
            units: card.flash_bytes().div_ceil(unit_bytes) as u32,
            units_per_block,
            shift: units_per_block.next_power_of_two().trailing_zeros(),
            program: Program::new(card, unit_bytes),
            copy_unit_ns: span_ns(unit_bytes, card.copy.rate_bytes_per_s.value),
            erase_ns: card.copy.erase_us.nanos(),
            modify_ns: own.modify_us.nanos(),
            background: own.background_aus.value as usize,
            worth: worth.div_ceil(100).max(1) as u32,
            rest_ns: own.rest_us.nanos(),
        }
    }
}
