//! The guest's CPU: what one of each kind of work costs in virtual time.

use std::fmt;
use whichfs_trial::CpuCounts;
use whichfs_units::Nanos;

/// Picoseconds of a nanosecond.
const PICOSECONDS: u128 = 1000;

/// Prices in picoseconds, as the boot parameter `um_cpu=` has them (`kernel/patches/0013`).
/// All zero, the default: the CPU is free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuPrices {
    /// One instruction of the kernel's code.
    pub instruction: u64,
    /// One in an innermost loop that calls nothing.
    pub loop_instruction: u64,
    /// One branch of code that compresses or decompresses.
    pub compression_branch: u64,
    /// One call of a function, beyond its code: what the return takes.
    pub call: u64,
    /// One atomic operation.
    pub atomic: u64,
    /// One byte copied.
    pub copy_byte: u64,
    /// One byte filled.
    pub fill_byte: u64,
    /// One byte put through CRC-32C.
    pub checksum_byte: u64,
    /// Entering the kernel by a system call, and leaving it.
    pub syscall: u64,
    /// The same by a page fault.
    pub fault: u64,
    /// A change of the running task.
    pub switch: u64,
    /// Taking an interrupt.
    pub interrupt: u64,
}

impl CpuPrices {
    /// The same price for each instruction and branch, all else free.
    pub fn of_instructions(picoseconds: u64) -> CpuPrices {
        CpuPrices {
            instruction: picoseconds,
            loop_instruction: picoseconds,
            compression_branch: picoseconds,
            ..CpuPrices::default()
        }
    }

    /// Virtual time that `work` takes, as the guest's kernel lets it pass; `None` if the CPU is
    /// free.
    pub fn time(&self, work: &CpuCounts) -> Option<Nanos> {
        let parts = [
            (work.code, self.instruction),
            (work.loops, self.loop_instruction),
            (work.compression, self.compression_branch),
            (work.call, self.call),
            (work.atomic, self.atomic),
            (work.copy, self.copy_byte),
            (work.fill, self.fill_byte),
            (work.checksum, self.checksum_byte),
            (work.syscall, self.syscall),
            (work.fault, self.fault),
            (work.switch, self.switch),
            (work.interrupt, self.interrupt),
        ];
        let priced = parts.map(|(count, price)| u128::from(count) * u128::from(price));
        let nanoseconds = priced.iter().sum::<u128>() / PICOSECONDS;
        (*self != CpuPrices::default())
            .then(|| Nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX)))
    }
}

impl fmt::Display for CpuPrices {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(
            f,
            "{},{},{},{},{},{},{},{},{},{},{},{}",
            self.instruction,
            self.loop_instruction,
            self.compression_branch,
            self.call,
            self.atomic,
            self.copy_byte,
            self.fill_byte,
            self.checksum_byte,
            self.syscall,
            self.fault,
            self.switch,
            self.interrupt
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// One of each kind, each at a price of its own.
    #[test]
    fn each_kind_of_work_has_its_own_price() {
        let work = CpuCounts {
            code: 1_000_000,
            loops: 10_000_000,
            compression: 100_000,
            call: 10_000,
            atomic: 10_000,
            copy: 10_000,
            fill: 1000,
            checksum: 100,
            syscall: 10,
            fault: 10,
            switch: 10,
            interrupt: 10,
        };
        let prices = CpuPrices {
            instruction: 1000,
            loop_instruction: 300,
            compression_branch: 2000,
            call: 50_000,
            atomic: 70_000,
            copy_byte: 3000,
            fill_byte: 4000,
            checksum_byte: 5000,
            syscall: 6000,
            fault: 700,
            switch: 80,
            interrupt: 9,
        };
        let expected =
            1_000_000 + 3_000_000 + 200_000 + 500_000 + 700_000 + 30_000 + 4000 + 500 + 60 + 7;
        assert_eq!(prices.time(&work), Some(Nanos(expected)), "and 890 ps");
        assert_eq!(prices.time(&CpuCounts::default()), Some(Nanos(0)));
        assert_eq!(CpuPrices::default().time(&work), None, "it is free");
    }

    #[test]
    fn days_of_work_do_not_overflow() {
        let work = CpuCounts {
            code: u64::MAX / 4,
            ..CpuCounts::default()
        };
        let time = CpuPrices::of_instructions(1000).time(&work);
        assert_eq!(time, Some(Nanos(u64::MAX / 4)));
    }
}
