//! A card: serial service of requests, the volatile cache of an eMMC, and the figures.
//!
//! **Service.** The device does one request at a time: it starts at `max(now, busy until)`.
//! A plain SD card has no cache: a write completes when the card releases busy, and a flush
//! has nothing to do (`flash.md` §2.8).
//!
//! **Volatile cache** (eMMC; `cache.bytes`). A write completes when its data are in the
//! cache; programming it is a *debt* of time that the card pays while it is idle, before a
//! write that would overfill the cache, and at a flush or FUA write. No source tells the
//! latency distribution of a flush; its fixed part `flush_us` is a composed figure. Mapping
//! moves at once; what a power cut loses is not modelled yet.

use crate::bus::Bus;
use crate::ftl::{Ftl, Violation};
use crate::profile::Profile;
use crate::request::{CardStatus, Completion, Op, Request};
use crate::stats::Stats;
use serde::{Deserialize, Serialize};
use whichfs_units::{MIB, Nanos, Rng, SECTOR};

/// A modelled card's timing and mapping state; the bytes are in [`crate::Contents`].
/// A clone is a snapshot: it shares the mapping until one side writes.
#[derive(Clone, Debug)]
pub struct Card {
    rules: Rules,
    bus: Bus,
    pub(crate) state: State,
    stats: Stats,
}

/// What a snapshot keeps.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct State {
    pub ftl: Ftl,
    pub cache: Cache,
    busy_until: u64,
    /// Where the last write ended: a write there continues it.
    last_end: u64,
}

/// The volatile cache: bytes in it and the time that programming them will take.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Cache {
    dirty_bytes: u64,
    debt_ns: u64,
}

#[derive(Clone, Debug)]
struct Rules {
    fingerprint: u64,
    capacity_bytes: u64,
    discard: bool,
    discard_overhead_ns: u64,
    cache_bytes: u64,
    flush_ns: u64,
    fua_ns: u64,
}

impl Card {
    /// A card on which nothing was ever written.
    pub fn fresh(profile: &Profile) -> Card {
        let state = State {
            ftl: Ftl::new(profile),
            cache: Cache::default(),
            busy_until: 0,
            last_end: u64::MAX,
        };
        Card::assemble(profile, state)
    }

    /// A card in use: all of it written once in order, then 5 % of it overwritten by 4 KiB
    /// writes at random places (DESIGN.md §8). Its clock is at zero and its figures are
    /// empty, but its erase counts are not.
    pub fn used(profile: &Profile, seed: u64) -> Card {
        const UNIT: u64 = 4096;
        let mut card = Card::fresh(profile);
        let capacity = profile.capacity_bytes();
        for offset in (0..capacity).step_by(MIB as usize) {
            card.state.ftl.write(
                offset,
                MIB.min(capacity - offset),
                offset > 0,
                &mut card.stats,
            );
        }
        let mut rng = Rng::named(seed, "used card");
        for _ in 0..capacity / UNIT / 20 {
            let offset = rng.below(capacity / UNIT) * UNIT;
            card.state.ftl.write(offset, UNIT, false, &mut card.stats);
        }
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
        self.state.ftl.verify()
    }

    pub(crate) fn assemble(profile: &Profile, state: State) -> Card {
        let rules = Rules {
            fingerprint: profile.fingerprint(),
            capacity_bytes: profile.capacity_bytes(),
            discard: profile.discard_supported(),
            discard_overhead_ns: profile.nanos("discard.overhead_us"),
            cache_bytes: profile.figure("cache.bytes"),
            flush_ns: profile.nanos("cache.flush_us"),
            fua_ns: profile.nanos("cache.fua_us"),
        };
        Card {
            rules,
            bus: Bus::new(profile),
            state,
            stats: Stats::default(),
        }
    }

    pub(crate) fn fingerprint(&self) -> u64 {
        self.rules.fingerprint
    }

    fn judge(&self, request: &Request) -> CardStatus {
        let Request {
            op, offset, bytes, ..
        } = *request;
        match op {
            Op::Flush => CardStatus::Ok,
            Op::Discard if !self.rules.discard => CardStatus::Unsupported,
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
        match op {
            Op::Read => {
                self.stats.reads += 1;
                self.stats.read_bytes += bytes;
                self.bus.read_ns(offset, bytes)
            }
            Op::Write => {
                self.stats.count_write(bytes);
                let follows = offset == self.state.last_end;
                self.state.last_end = offset + bytes;
                let program = self
                    .state
                    .ftl
                    .write(offset, bytes, follows, &mut self.stats);
                self.bus.command_ns + self.buffer(bytes, program, fua)
            }
            Op::Discard => {
                self.stats.discards += 1;
                self.stats.discard_bytes += bytes;
                self.state.last_end = u64::MAX;
                let spent = self.state.ftl.discard(offset, bytes, &mut self.stats);
                self.bus.command_ns + self.rules.discard_overhead_ns + spent
            }
            Op::Flush => {
                self.stats.flushes += 1;
                self.flush()
            }
        }
    }

    /// Time until a write of `bytes` that needs `program_ns` of programming completes.
    fn buffer(&mut self, bytes: u64, program_ns: u64, fua: bool) -> u64 {
        if self.rules.cache_bytes == 0 {
            return program_ns;
        }
        if fua {
            return self.rules.fua_ns + program_ns;
        }
        let cache = &mut self.state.cache;
        cache.dirty_bytes += bytes;
        cache.debt_ns += program_ns;
        let excess = cache.dirty_bytes.saturating_sub(self.rules.cache_bytes);
        let waited = cache.write_back(excess);
        waited.max(self.bus.transfer_ns(bytes))
    }

    fn flush(&mut self) -> u64 {
        if self.rules.cache_bytes == 0 {
            return 0;
        }
        let debt = std::mem::take(&mut self.state.cache).debt_ns;
        self.bus.command_ns + self.rules.flush_ns + debt
    }

    /// The card was idle for `ns`: it programs what the cache holds. Families that work
    /// while idle (draining a pSLC cache) hook in here.
    fn idle(&mut self, ns: u64) {
        let cache = &mut self.state.cache;
        if cache.debt_ns == 0 {
            return;
        }
        let paid = ns.min(cache.debt_ns);
        let cleaned = u128::from(cache.dirty_bytes) * u128::from(paid) / u128::from(cache.debt_ns);
        cache.debt_ns -= paid;
        cache.dirty_bytes -= cleaned as u64;
    }
}

impl Cache {
    /// Programs `bytes` of what is dirty and returns the time for it: its share of the debt.
    fn write_back(&mut self, bytes: u64) -> u64 {
        if bytes == 0 {
            return 0;
        }
        let share = u128::from(self.debt_ns) * u128::from(bytes) / u128::from(self.dirty_bytes);
        self.dirty_bytes -= bytes;
        self.debt_ns -= share as u64;
        share as u64
    }
}
