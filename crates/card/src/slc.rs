//! The pSLC cache: blocks of the flash used with one bit a cell, in front of the rest.
//!
//! While it has room (`slc.bytes`), a write takes `slc.overhead_us` and its bytes at
//! `slc.rate_bytes_per_s`; when it is full, writes go to the flash directly at the family's
//! times; while the card is idle it is emptied at `slc.drain_rate_bytes_per_s`. It is not
//! volatile: a flush has nothing to do with it. SanDisk Ultra 64 GB writes 19.6 MB/s into it
//! and 15.9 MB/s beside it; no measured size was found (`flash.md` 2.3.10). What is drained is
//! programmed twice, which the write amplification shows.
//!
//! Cards with TLC, whose least program is 64-128 KiB, put small writes into temporary blocks first
//! ([P-10866751], `flash.md` 2.2): with `slc.most_bytes`, longer ones go past the cache, and pay
//! `write.jump_us` where they do not continue the last. So a SanDisk Extreme that makes 998 random
//! writes of 8 KiB a second makes 83 of 64 KiB: fewer bytes, not more (`flash.md` 2.3.9).

use crate::bus::span_ns;
use crate::profile::Profile;
use crate::stats::Stats;

/// Size and times, from the profile.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SlcRules {
    bytes: u64,
    /// The longest write that goes to the cache.
    most_bytes: u64,
    overhead_ns: u64,
    rate: u64,
    drain_rate: u64,
}

impl SlcRules {
    pub fn new(profile: &Profile) -> SlcRules {
        let most_bytes = match profile.slc.most_bytes.value {
            0 => u64::MAX,
            most => most,
        };
        SlcRules {
            most_bytes,
            bytes: profile.slc.bytes.value,
            overhead_ns: profile.slc.overhead_us.nanos(),
            rate: profile.slc.rate_bytes_per_s.value,
            drain_rate: profile.slc.drain_rate_bytes_per_s.value,
        }
    }
}

/// What is in the cache.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Slc {
    used_bytes: u64,
}

impl Slc {
    /// Time of a write of `bytes` that takes `direct_ns` past the cache.
    #[inline]
    pub fn write(
        &mut self,
        rules: &SlcRules,
        bytes: u64,
        direct_ns: u64,
        stats: &mut Stats,
    ) -> u64 {
        if bytes > rules.most_bytes.min(rules.bytes - self.used_bytes) {
            return direct_ns;
        }
        self.used_bytes += bytes;
        stats.programmed_bytes += bytes;
        rules.overhead_ns + span_ns(bytes, rules.rate)
    }

    /// The card was idle for `ns`.
    #[inline]
    pub fn idle(&mut self, rules: &SlcRules, ns: u64) {
        if self.used_bytes > 0 {
            let drained = u128::from(ns) * u128::from(rules.drain_rate) / 1_000_000_000;
            self.used_bytes -= u128::from(self.used_bytes).min(drained) as u64;
        }
    }

    /// Whether it holds no more than it can.
    pub fn fits(&self, rules: &SlcRules) -> bool {
        self.used_bytes <= rules.bytes
    }
}
