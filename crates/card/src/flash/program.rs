//! What programming takes: the same arithmetic in every family.
//!
//! **Whole units.** Several planes program one *unit* together (`write.program_bytes`): a
//! write of n units takes overhead + n unit times, so 16 KiB may cost what 4 KiB does and 32
//! KiB twice as much less the overhead (WB21: 4 KiB 2.7 ms, 16 KiB 2.6, 32 KiB 4.2, 64 KiB
//! 7.4, 128 KiB 13.8 ms: 1.0 ms and 1.6 ms a page of 16 KiB).
//!
//! **Units covered in part** cost `write.partial_us` when next to nothing of them is written
//! and `write.partial_full_us` when nearly all is, in between in proportion: more than a whole
//! unit where the card fills up the rest by copying (WB19: 1 KiB 6.2 ms, 4 KiB 5.3, 8 KiB 4.7,
//! 16 KiB 3.4 ms), less where planes are left out (WB5: 4 KiB 3.4 ms, 8 KiB 3.7, 16 KiB 4.5,
//! 32 KiB 6.8 ms). Both zero: what a whole unit costs (programming 512 bytes takes as long as a
//! page, `flash.md` 2.3.3). In random order the rest comes from elsewhere: up to
//! `write.fill_us` more, in proportion to what is missing (WB19 at random: 11.0, 8.7, 5.1 ms).
//!
//! **Order.** A write that does not begin where the last one ended pays `write.jump_us`
//! (WB32: 1.7 ms), one in another AU than the last `write.switch_us` more (WB16_2, two AUs in
//! turns: 2.6 ms, whatever the size). Where the reader keeps a transfer open, contiguous
//! writes are *joined* (`write.coalesce`, 2.3.2) and pay for their bytes alone; this holds
//! while neither is longer than `write.coalesce_bytes` (WB6, WB16 and others: up to 64 KiB).
//! Any other request ends the transfer, and so does a rest of more than `write.coalesce_us`: it
//! was seen back to back only.

use crate::bus::{Divisor, span_ns};
use crate::figures::{CardFigures, Figure};

/// How a write stands to the one before it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Order {
    /// It begins where the last one ended.
    pub follows: bool,
    /// It continues the last one in the same transfer.
    pub joined: bool,
    /// It begins in the AU in which the last one ended.
    pub same_au: bool,
}

impl Order {
    /// The part of a request behind another part of it.
    pub fn next_part(self, cut: bool) -> Order {
        Order {
            follows: self.follows || cut,
            same_au: self.same_au || cut,
            ..self
        }
    }
}

/// Times of programming, from the profile.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Program {
    unit: Divisor,
    unit_ns: u64,
    rate: u64,
    overhead_ns: u64,
    jump_ns: u64,
    switch_ns: u64,
    partial_ns: u64,
    partial_full_ns: u64,
    fill_ns: u64,
}

impl Program {
    /// `natural_unit`: what is programmed at once where the profile does not say.
    pub fn new(card: &CardFigures, natural_unit: u64) -> Program {
        let unit_bytes = match card.write.program_bytes.value {
            0 => natural_unit,
            stated => stated,
        };
        let rate = card.write.rate_bytes_per_s.value;
        let unit_ns = span_ns(unit_bytes, rate);
        let ends = [&card.write.partial_us, &card.write.partial_full_us].map(Figure::nanos);
        let [partial_ns, partial_full_ns] = match ends {
            [0, 0] => [unit_ns; 2],
            ends => ends,
        };
        Program {
            unit: Divisor::new(unit_bytes),
            unit_ns,
            rate,
            overhead_ns: card.write.overhead_us.nanos(),
            jump_ns: card.write.jump_us.nanos(),
            switch_ns: card.write.switch_us.nanos(),
            partial_ns,
            partial_full_ns,
            fill_ns: card.write.fill_us.nanos(),
        }
    }

    /// Only an overhead and a time for each unit.
    #[cfg(test)]
    pub fn plain(unit_bytes: u64, unit_ns: u64, overhead_ns: u64) -> Program {
        Program {
            unit: Divisor::new(unit_bytes),
            unit_ns,
            rate: unit_bytes * 1_000_000_000 / unit_ns,
            overhead_ns,
            jump_ns: 0,
            switch_ns: 0,
            partial_ns: unit_ns,
            partial_full_ns: unit_ns,
            fill_ns: 0,
        }
    }

    /// What a write costs before its first unit.
    #[inline]
    pub fn overhead_ns(&self, order: Order) -> u64 {
        if order.joined {
            return 0;
        }
        let jump = if order.follows { 0 } else { self.jump_ns };
        let switch = if order.same_au { 0 } else { self.switch_ns };
        self.overhead_ns + jump + switch
    }

    /// Programming `length` bytes at `at`. `scattered`: what is around them is elsewhere.
    #[inline]
    pub fn units_ns(&self, at: u64, length: u64, order: Order, scattered: bool) -> u64 {
        if order.joined {
            return span_ns(length, self.rate);
        }
        let (unit, end) = (self.unit.get(), at + length);
        let (first, last) = (self.unit.of(at + unit - 1), self.unit.of(end));
        if first > last {
            return self.partial(length, scattered);
        }
        let (head, tail) = (first * unit - at, end - last * unit);
        let mut spent = (last - first) * self.unit_ns;
        if head > 0 {
            spent += self.partial(head, scattered);
        }
        if tail > 0 {
            spent += self.partial(tail, scattered);
        }
        spent
    }

    /// A unit of which `bytes` are written.
    fn partial(&self, bytes: u64, scattered: bool) -> u64 {
        let missing = self.unit.get() - bytes;
        let fill = if scattered { self.fill_ns } else { 0 };
        let weighted = (self.partial_ns + fill) * missing + self.partial_full_ns * bytes;
        self.unit.of(weighted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program() -> Program {
        Program {
            rate: 10_000_000_000,
            jump_ns: 300,
            switch_ns: 50,
            partial_ns: 800,
            fill_ns: 400,
            ..Program::plain(16_384, 1600, 1000)
        }
    }

    #[test]
    fn whole_units_cost_the_same_and_parts_in_proportion() {
        let plain = Order::default();
        let ns = |at, length, scattered| program().units_ns(at, length, plain, scattered);
        assert_eq!(ns(0, 16_384, false), 1600);
        assert_eq!(ns(16_384, 65_536, true), 6400);
        assert_eq!(ns(0, 8192, false), 1200);
        assert_eq!(ns(4096, 8192, true), 1400);
        assert_eq!(ns(8192, 32_768, false), 1200 + 1600 + 1200);
        assert_eq!(ns(12_288, 8192, false), 1000 + 1000);
    }

    #[test]
    fn order_decides_what_comes_before_the_first_unit() {
        let order = |follows, joined, same_au| Order {
            follows,
            joined,
            same_au,
        };
        let program = program();
        assert_eq!(program.overhead_ns(order(true, true, true)), 0);
        assert_eq!(program.overhead_ns(order(true, false, true)), 1000);
        assert_eq!(program.overhead_ns(order(false, false, true)), 1300);
        assert_eq!(program.overhead_ns(order(false, false, false)), 1350);
        let joined = order(true, true, true);
        assert_eq!(program.units_ns(512, 10_000, joined, false), 1000);
    }
}
