//! Command, transfer and read timing, shared by all families.
//!
//! A read inside a page pays command + array read + transfer; each further page adds
//! another array read that the transfer does not hide, and crossing an AU adds a second map
//! look-up (`flash.md` §2.4: +56–280 µs at page multiples, a further +20–380 µs at AU
//! multiples). Larger map zones (32 MiB and more) are seen in some logs and not modelled.
//! A write pays command and the part of the transfer that programming does not hide; the
//! fitted write rate holds the rest, as datasheet figures do not add up to measured ones
//! (`flash.md` §2.7).

use crate::profile::Profile;

/// Time to move `bytes` at `rate` bytes a second, in nanoseconds, rounded up.
#[inline]
pub(crate) fn span_ns(bytes: u64, rate: u64) -> u64 {
    // 16 GB is the largest product that fits; longer requests are split by the caller's
    // capacity bound, so widen only for them.
    match bytes.checked_mul(1_000_000_000) {
        Some(scaled) => scaled.div_ceil(rate),
        None => (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(rate)) as u64,
    }
}

/// Times of the bus and of reading, in nanoseconds and bytes a second.
#[derive(Clone, Debug)]
pub(crate) struct Bus {
    pub command_ns: u64,
    rate: u64,
    first_page_ns: u64,
    next_page_ns: u64,
    au_step_ns: u64,
    page_bytes: u64,
    au_bytes: u64,
}

impl Bus {
    pub fn new(profile: &Profile) -> Bus {
        Bus {
            command_ns: profile.nanos("bus.command_us"),
            rate: profile.figure("bus.rate_bytes_per_s"),
            first_page_ns: profile.nanos("read.first_page_us"),
            next_page_ns: profile.nanos("read.next_page_us"),
            au_step_ns: profile.nanos("read.au_step_us"),
            page_bytes: profile.page_bytes(),
            au_bytes: profile.au_bytes(),
        }
    }

    /// Time on the wires for `bytes`.
    #[inline]
    pub fn transfer_ns(&self, bytes: u64) -> u64 {
        span_ns(bytes, self.rate)
    }

    /// A read of `bytes` (not zero) at `offset`, all of it.
    pub fn read_ns(&self, offset: u64, bytes: u64) -> u64 {
        let last = offset + bytes - 1;
        let pages = last / self.page_bytes - offset / self.page_bytes;
        let aus = last / self.au_bytes - offset / self.au_bytes;
        self.command_ns
            + self.first_page_ns
            + pages * self.next_page_ns
            + aus * self.au_step_ns
            + self.transfer_ns(bytes)
    }
}
