//! Command, transfer and read timing, shared by all families.
//!
//! A read inside a page pays command + array read + transfer; each further page adds
//! another array read that the transfer does not hide, and crossing an AU adds a second map
//! look-up (`flash.md` §2.4: +56–280 µs at page multiples, a further +20–380 µs at AU
//! multiples). A card may have its map in zones of `read.zone_bytes` (32 MiB and more in some
//! logs; a PQI 32 GB card steps at 2 GiB): crossing into another costs `read.zone_step_us`.
//! A write pays command and the part of the transfer that programming does not hide; the
//! fitted write rate holds the rest, as datasheet figures do not add up to measured ones
//! (`flash.md` §2.7).
//!
//! **Mode.** `bus.mode` bounds the rate by what the wires can: 1 default speed 12.5 MB/s, 2
//! high speed 25, 3 UHS-I SDR104 104 [GB], 4 eMMC high speed 52, 5 HS200 200, 6 HS400 400
//! [ISSI]; 0 is no bound of its own.
//!
//! **Reader.** A USB 2 reader in front adds `reader.command_us` to every command, bounds the
//! rate, and cuts a request into commands of at most `reader.max_bytes`. 120 KiB (240 sectors,
//! the limit of Linux's usb-storage) shows in the logs: WB16 is the card of WB16_2 in another
//! host and takes 5.2-5.4 ms more for each multiple of 120 KiB from 128 KiB to 4 MiB; WB6, WB11
//! and WB2 have the same step; each command of a write that is cut takes `reader.cut_us` more.
//! Hosts have limits too: with 64 KiB, a write of 128 KiB takes
//! twice what 64 KiB takes, without the overhead that shows below (WB1, WB5, WB12, WB14, WB19).

use crate::figures::CardFigures;
use std::num::NonZeroU64;

/// What the wires carry in each `bus.mode`, in bytes a second.
const MODE_RATES: [u64; 7] = [
    u64::MAX,
    12_500_000,
    25_000_000,
    104_000_000,
    52_000_000,
    200_000_000,
    400_000_000,
];

/// Time to move `bytes` at `rate` bytes a second, in nanoseconds, rounded up.
#[inline]
pub(crate) fn span_ns(bytes: u64, rate: u64) -> u64 {
    // Up to 18 GB the product fits; only longer spans are widened.
    match bytes.checked_mul(1_000_000_000) {
        Some(scaled) => scaled.div_ceil(rate),
        None => (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(rate)) as u64,
    }
}

/// A divisor; by a power of two it is a shift, which most are and which is several times
/// faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Divisor {
    value: u64,
    /// Shift, or 64 if it is no power of two.
    shift: u32,
}

impl Divisor {
    /// Of `value`, which is not zero.
    pub fn new(value: u64) -> Divisor {
        let shift = match value.is_power_of_two() {
            true => value.trailing_zeros(),
            false => 64,
        };
        Divisor { value, shift }
    }

    /// The divisor itself.
    #[inline]
    pub fn get(self) -> u64 {
        self.value
    }

    /// `dividend / self`
    #[inline]
    pub fn of(self, dividend: u64) -> u64 {
        if self.shift < 64 {
            dividend >> self.shift
        } else {
            dividend / self.value
        }
    }
}

/// Times of the bus and of reading, in nanoseconds and bytes a second.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bus {
    pub command_ns: u64,
    rate: u64,
    first_page_ns: u64,
    next_page_ns: u64,
    au_step_ns: u64,
    zone_step_ns: u64,
    /// Bytes of a map zone, or none.
    zone_bytes: Option<NonZeroU64>,
    max_bytes: u64,
    cut_ns: u64,
    page_bytes: u64,
    au_bytes: u64,
}

impl Bus {
    pub fn new(card: &CardFigures) -> Bus {
        let mode = MODE_RATES[card.bus.mode.value as usize];
        let reader = card.reader.rate_bytes_per_s.value;
        Bus {
            command_ns: card.bus.command_us.nanos() + card.reader.command_us.nanos(),
            rate: card.bus.rate_bytes_per_s.value.min(mode).min(reader),
            first_page_ns: card.read.first_page_us.nanos(),
            next_page_ns: card.read.next_page_us.nanos(),
            au_step_ns: card.read.au_step_us.nanos(),
            zone_step_ns: card.read.zone_step_us.nanos(),
            zone_bytes: NonZeroU64::new(card.read.zone_bytes.value),
            cut_ns: card.reader.cut_us.nanos(),
            max_bytes: match card.reader.max_bytes.value {
                0 => u64::MAX,
                stated => stated,
            },
            page_bytes: card.page_bytes(),
            au_bytes: card.au_bytes(),
        }
    }

    /// Time on the wires for `bytes`.
    #[inline]
    pub fn transfer_ns(&self, bytes: u64) -> u64 {
        span_ns(bytes, self.rate)
    }

    /// `ns`, or the time on the wires for `bytes` if that is longer.
    #[inline]
    pub fn at_least_transfer(&self, bytes: u64, ns: u64) -> u64 {
        // Multiplied instead of divided: this is on the path of every write.
        if u128::from(bytes) * 1_000_000_000 <= u128::from(ns) * u128::from(self.rate) {
            return ns;
        }
        self.transfer_ns(bytes)
    }

    /// The commands that a request becomes.
    #[inline]
    pub fn commands(&self, offset: u64, bytes: u64) -> impl Iterator<Item = (u64, u64)> + use<> {
        let (max, end) = (self.max_bytes, offset + bytes);
        let mut at = offset;
        std::iter::from_fn(move || {
            let length = (end - at).min(max);
            let command = (at, length);
            at += length;
            (length > 0).then_some(command)
        })
    }

    /// What writing takes more because the request is cut.
    #[inline]
    pub fn cut_ns(&self, bytes: u64) -> u64 {
        if bytes <= self.max_bytes {
            return 0;
        }
        bytes.div_ceil(self.max_bytes) * self.cut_ns
    }

    /// A read of `bytes` (not zero) at `offset`, all of it.
    pub fn read_ns(&self, offset: u64, bytes: u64) -> u64 {
        self.commands(offset, bytes)
            .map(|(at, length)| self.read_command_ns(at, length))
            .sum()
    }

    fn read_command_ns(&self, offset: u64, bytes: u64) -> u64 {
        let last = offset + bytes - 1;
        let pages = last / self.page_bytes - offset / self.page_bytes;
        let aus = last / self.au_bytes - offset / self.au_bytes;
        let zones = self
            .zone_bytes
            .map_or(0, |zone| last / zone - offset / zone);
        self.command_ns
            + self.first_page_ns
            + pages * self.next_page_ns
            + aus * self.au_step_ns
            + zones * self.zone_step_ns
            + self.transfer_ns(bytes)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Profile;

    #[test]
    fn a_divisor_divides_and_the_longer_time_counts() {
        for value in [1, 2, 3, 4096, 49_152, 1 << 40] {
            let divisor = Divisor::new(value);
            for dividend in [0, 1, 4095, 4096, 123_456_789, u64::MAX] {
                assert_eq!(divisor.of(dividend), dividend / value);
            }
        }
        let (name, toml) = crate::builtin()[0];
        let bus = Bus::new(&Profile::parse(name, toml).unwrap());
        let transfer = bus.transfer_ns(5000);
        for ns in [0, transfer - 1, transfer, transfer + 1] {
            assert_eq!(bus.at_least_transfer(5000, ns), ns.max(transfer));
        }
    }

    #[test]
    fn a_request_is_cut_into_the_readers_commands() {
        let (name, toml) = crate::builtin()[0];
        let mut bus = Bus::new(&Profile::parse(name, toml).unwrap());
        let cut = |bus: &Bus| bus.commands(512, 131_072).collect::<Vec<_>>();
        assert_eq!(cut(&bus), [(512, 131_072)]);
        bus.max_bytes = 122_880;
        assert_eq!(cut(&bus), [(512, 122_880), (123_392, 8_192)]);
    }
}
