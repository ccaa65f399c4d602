//! The guest's CPU: what one of each kind of work costs in virtual time.

use std::fmt;

/// Prices in picoseconds, as the boot parameter `um_cpu=` has them (`kernel/patches/0003`).
/// All zero, the default: the CPU is free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuPrices {
    /// One basic block of the kernel's code.
    pub block: u64,
    /// One basic block of code that compresses or decompresses.
    pub compression_block: u64,
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
    /// The same price for each block, all else free.
    pub fn of_blocks(picoseconds: u64) -> CpuPrices {
        CpuPrices {
            block: picoseconds,
            compression_block: picoseconds,
            ..CpuPrices::default()
        }
    }
}

impl fmt::Display for CpuPrices {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(
            f,
            "{},{},{},{},{},{},{},{},{}",
            self.block,
            self.compression_block,
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
