//! The volatile cache of an eMMC, and what flush and forced unit access cost.
//!
//! With `cache.bytes`, a write completes when its data are in the cache; programming it is a
//! *debt* of time that the card pays while it is idle, before a write that would overfill the
//! cache, and at a flush. A flush pays the whole debt and `cache.flush_us`; with nothing to
//! write it costs `cache.flush_empty_us`. A forced write is eMMC's *reliable write*: it goes
//! past the cache, old or new after a power cut, and is "a bit costly" [K-avoid]:
//! `cache.fua_us` and its programming. No source tells the latency distribution of a flush
//! (`flash.md` §2.8); its fixed parts are composed figures unless a profile cites one.
//! Mapping moves at once; which of the data a power cut takes, the crate `crash` decides from the
//! requests and `cache.bytes`.

use crate::profile::Profile;

/// Times and size, from the profile.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CacheRules {
    bytes: u64,
    flush_ns: u64,
    flush_empty_ns: u64,
    fua_ns: u64,
}

impl CacheRules {
    pub fn new(profile: &Profile) -> CacheRules {
        CacheRules {
            bytes: profile.cache.bytes.value,
            flush_ns: profile.cache.flush_us.nanos(),
            flush_empty_ns: profile.cache.flush_empty_us.nanos(),
            fua_ns: profile.cache.fua_us.nanos(),
        }
    }

    /// Whether the card has a cache at all.
    pub fn present(&self) -> bool {
        self.bytes > 0
    }
}

/// The volatile cache: bytes in it and the time that programming them will take.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Cache {
    dirty_bytes: u64,
    debt_ns: u64,
}

impl Cache {
    /// Time beyond the transfer until a write of `bytes` completes that takes `program_ns`
    /// to program.
    #[inline]
    pub fn write(&mut self, rules: &CacheRules, bytes: u64, program_ns: u64, fua: bool) -> u64 {
        if !rules.present() {
            return program_ns;
        }
        if fua {
            return rules.fua_ns + program_ns;
        }
        self.dirty_bytes += bytes;
        self.debt_ns += program_ns;
        let excess = self.dirty_bytes.saturating_sub(rules.bytes);
        self.write_back(excess)
    }

    /// Makes everything durable; time beyond the command.
    pub fn flush(&mut self, rules: &CacheRules) -> u64 {
        match std::mem::take(self) {
            Cache { dirty_bytes: 0, .. } => rules.flush_empty_ns,
            Cache { debt_ns, .. } => rules.flush_ns + debt_ns,
        }
    }

    /// The card was idle for `ns`: it programs what it holds.
    pub fn idle(&mut self, ns: u64) {
        if self.debt_ns == 0 {
            return;
        }
        let paid = ns.min(self.debt_ns);
        let cleaned = u128::from(self.dirty_bytes) * u128::from(paid) / u128::from(self.debt_ns);
        self.debt_ns -= paid;
        self.dirty_bytes -= cleaned as u64;
    }

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
