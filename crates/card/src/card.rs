//! A card: serial service of requests, caches in front of the flash, and the figures.
//!
//! **Service.** The device does one request at a time: it starts at `max(now, busy until)`.
//! A plain SD card has no cache: a write completes when the card releases busy, and a flush
//! has nothing to do (`flash.md` §2.8).
//!
//! **Commands.** A reader may cut a request into several commands; each finds how it stands
//! to the one before (`ftl::Order`). What the family's programming takes is what the host
//! waits for, unless a pSLC cache (`slc`) or a volatile cache (`cache`) is in front.

use crate::bus::{Bus, Divisor};
use crate::cache::{Cache, CacheRules};
use crate::flash::{OpenAus, Order, Violation};
use crate::ftl::Ftl;
use crate::profile::Profile;
use crate::request::{CardStatus, Completion, Request, RequestKind};
use crate::residual::{Residual, Turns};
use crate::slc::{Slc, SlcRules};
use crate::stats::Stats;
use std::sync::Arc;
use whichfs_units::{MIB, Nanos, Rng, SECTOR};

/// A modelled card's timing and mapping state; the bytes are in [`crate::Contents`].
/// A clone is a snapshot: it shares the mapping until one side writes. Equal cards have the
/// same figures and answer the same from now on.
#[derive(Clone, Debug, PartialEq)]
pub struct Card {
    rules: Rules,
    bus: Bus,
    state: State,
    stats: Stats,
}

/// What requests and rests change.
#[derive(Clone, Debug, PartialEq)]
struct State {
    ftl: Ftl,
    cache: Cache,
    slc: Slc,
    busy_until: u64,
    /// Where the last write command ended, and how long it was: a write there follows it.
    last_end: u64,
    last_bytes: u64,
    /// The reader keeps the transfer of the last write open: nothing came between, and no rest.
    transfer_open: bool,
    /// AUs written last, where the profile has a residual.
    turns: Turns,
}

#[derive(Clone, Debug, PartialEq)]
struct Rules {
    capacity_bytes: u64,
    discard: bool,
    discard_overhead_ns: u64,
    au: Divisor,
    /// Longest contiguous write that is joined with the one before; zero if none is.
    join_bytes: u64,
    /// Longest rest before such a write.
    join_ns: u64,
    cache: CacheRules,
    slc: Option<SlcRules>,
    residual: Option<Arc<Residual>>,
}

impl Card {
    /// A card on which nothing was ever written.
    pub fn fresh(profile: &Profile) -> Card {
        let state = State {
            ftl: Ftl::new(profile),
            cache: Cache::default(),
            slc: Slc::default(),
            busy_until: 0,
            last_end: u64::MAX,
            last_bytes: 0,
            transfer_open: false,
            turns: Turns::default(),
        };
        Card::assemble(profile, state)
    }

    /// A card in use: all of it written once in order, then 5 % of it overwritten by 4 KiB
    /// writes at random places. Its clock is at zero and its figures are
    /// empty, but its erase counts are not.
    pub fn used(profile: &Profile, seed: u64) -> Card {
        const UNIT: u64 = 4096;
        let mut card = Card::fresh(profile);
        let capacity = profile.flash_bytes();
        for offset in (0..capacity).step_by(MIB as usize) {
            let order = Order {
                follows: offset > 0,
                joined: offset > 0 && card.rules.join_bytes > 0,
                same_au: true,
            };
            let bytes = MIB.min(capacity - offset);
            card.state.ftl.write(offset, bytes, order, &mut card.stats);
        }
        let mut rng = Rng::named(seed, "used card");
        for _ in 0..capacity / UNIT / 20 {
            let offset = rng.below(capacity / UNIT) * UNIT;
            let order = Order::default();
            card.state.ftl.write(offset, UNIT, order, &mut card.stats);
        }
        // It was idle since.
        const LONG_NS: u64 = 1 << 50;
        card.state.ftl.idle(LONG_NS, &mut card.stats);
        Card {
            stats: Stats::default(),
            ..card
        }
    }

    /// Serves `request`, which arrives at `now`, and returns when it completes.
    /// A request that the card refuses costs a command and changes nothing else.
    pub fn submit(&mut self, now: Nanos, request: &Request) -> Completion {
        let start = now.0.max(self.state.busy_until);
        self.idle(start - self.state.busy_until);
        let status = self.judge(request);
        let spent = match status {
            CardStatus::Ok => self.serve(request),
            _ => {
                self.stats.errors += 1;
                self.bus.command_ns
            }
        };
        self.stats.busy += Nanos(spent);
        self.state.busy_until = start + spent;
        Completion {
            at: Nanos(self.state.busy_until),
            status,
        }
    }

    /// What it has done since it was made.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// How often each physical block (of an AU's size) was erased in the card's life.
    pub fn erases_per_au(&self) -> Vec<u32> {
        self.state.ftl.erase_counts()
    }

    /// How many AUs are open, of how many; `None` for a card that maps pages and has no such limit.
    pub fn open_aus(&self) -> Option<OpenAus> {
        self.state.ftl.open_aus()
    }

    /// Flash bytes programmed for each byte the host wrote; `None` if it wrote nothing.
    pub fn write_amplification(&self) -> Option<f64> {
        self.stats.write_amplification()
    }

    /// The instant from which on it is idle.
    pub fn busy_until(&self) -> Nanos {
        Nanos(self.state.busy_until)
    }

    /// Checks every invariant of the mapping; takes time linear in the card's size.
    ///
    /// # Errors
    /// The first invariant that does not hold.
    pub fn verify(&self) -> Result<(), Violation> {
        if let Some(rules) = &self.rules.slc
            && !self.state.slc.fits(rules)
        {
            return Err(Violation("the pSLC cache holds more than it can".into()));
        }
        self.state.ftl.verify()
    }

    fn assemble(profile: &Profile, state: State) -> Card {
        let rules = Rules {
            capacity_bytes: profile.capacity_bytes(),
            discard: profile.discard_supported(),
            discard_overhead_ns: profile.discard.overhead_us.nanos(),
            au: Divisor::new(profile.au_bytes()),
            join_bytes: match profile.write.coalesce_bytes.value {
                _ if !profile.write.coalesce.is_on() => 0,
                0 => u64::MAX,
                stated => stated,
            },
            join_ns: profile.write.coalesce_us.nanos(),
            cache: CacheRules::new(profile),
            slc: (profile.slc.bytes.value > 0).then(|| SlcRules::new(profile)),
            residual: profile.residual().cloned().map(Arc::new),
        };
        Card {
            rules,
            bus: Bus::new(profile),
            state,
            stats: Stats::default(),
        }
    }

    fn judge(&self, request: &Request) -> CardStatus {
        let Request {
            op, offset, bytes, ..
        } = *request;
        match op {
            RequestKind::Flush => CardStatus::Ok,
            RequestKind::Discard if !self.rules.discard => CardStatus::Unsupported,
            _ if bytes == 0 || offset % SECTOR != 0 || bytes % SECTOR != 0 => {
                CardStatus::Misaligned
            }
            _ => match offset.checked_add(bytes) {
                Some(end) if end <= self.rules.capacity_bytes => CardStatus::Ok,
                _ => CardStatus::OutOfRange,
            },
        }
    }

    /// Time of a legal request.
    fn serve(&mut self, request: &Request) -> u64 {
        let Request {
            op,
            offset,
            bytes,
            fua,
        } = *request;
        self.state.transfer_open &= op == RequestKind::Write;
        match op {
            RequestKind::Read => {
                self.stats.reads += 1;
                self.stats.read_bytes += bytes;
                self.bus.read_ns(offset, bytes)
            }
            RequestKind::Write => {
                self.stats.count_write(bytes);
                let commands = self.bus.commands(offset, bytes);
                let spent: u64 = commands
                    .map(|(at, length)| self.write(at, length, fua))
                    .sum();
                let spent = spent + self.bus.cut_ns(bytes);
                self.with_residual(spent, offset, bytes)
            }
            RequestKind::Discard => {
                self.stats.discards += 1;
                self.stats.discard_bytes += bytes;
                self.state.last_end = u64::MAX;
                let spent = self.state.ftl.discard(offset, bytes, &mut self.stats);
                self.bus.command_ns + self.rules.discard_overhead_ns + spent
            }
            RequestKind::Flush => {
                self.stats.flushes += 1;
                match self.rules.cache.present() {
                    false => 0,
                    true => self.bus.command_ns + self.state.cache.flush(&self.rules.cache),
                }
            }
        }
    }

    /// Time of a write of which the family and what is around it take `spent`.
    #[inline]
    fn with_residual(&mut self, spent: u64, offset: u64, bytes: u64) -> u64 {
        let Card { rules, state, .. } = self;
        let Some(residual) = &rules.residual else {
            return spent;
        };
        let (au, end) = (rules.au.of(offset), offset + bytes);
        let first = offset == au * rules.au.get();
        residual.of(spent, bytes, state.turns.write(au, offset, end, first))
    }

    /// Time of one write command.
    #[inline]
    fn write(&mut self, offset: u64, bytes: u64, fua: bool) -> u64 {
        let Card { rules, state, .. } = self;
        let follows = offset == state.last_end;
        let au = |at: u64| rules.au.of(at);
        let order = Order {
            follows,
            joined: follows
                && state.transfer_open
                && bytes.max(state.last_bytes) <= rules.join_bytes,
            same_au: follows || au(offset) == au(state.last_end.wrapping_sub(1)),
        };
        (state.last_end, state.last_bytes) = (offset + bytes, bytes);
        state.transfer_open = true;
        let mut program = state.ftl.write(offset, bytes, order, &mut self.stats);
        if let Some(slc) = &rules.slc {
            program = state.slc.write(slc, bytes, program, &mut self.stats);
        }
        let waited = state.cache.write(&rules.cache, bytes, program, fua);
        self.bus.command_ns + self.bus.at_least_transfer(bytes, waited)
    }

    /// The card was idle for `ns`.
    #[inline]
    fn idle(&mut self, ns: u64) {
        if ns == 0 {
            return;
        }
        self.state.transfer_open &= ns <= self.rules.join_ns;
        self.state.ftl.idle(ns, &mut self.stats);
        self.state.cache.idle(ns);
        if let Some(slc) = &self.rules.slc {
            self.state.slc.idle(slc, ns);
        }
    }
}
