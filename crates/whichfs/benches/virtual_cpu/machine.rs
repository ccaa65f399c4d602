//! Small measurements of this machine, of what the CPU clock charges apart from code.

use crate::work::clock;
use std::arch::asm;
use std::fmt;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

/// Passes of each measurement; the median counts.
const PASSES: usize = 7;
/// Bytes that no cache holds.
const LARGE: usize = 256 << 20;
/// UnsupportedMetadata, so that its multiples visit each of the pages once, in no order that is
/// foreseen.
const SCATTER: usize = 40_503;
/// System calls of a pass.
const CALLS: u64 = 500_000;
const PAGE: usize = 4096;
/// Where a kernel tells how it guards its returns.
const RETURNS: &str = "/sys/devices/system/cpu/vulnerabilities/spec_rstack_overflow";

/// Prices in picoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// A byte copied between a cached buffer and pages of memory in no order.
    pub copy_byte: f64,
    /// A byte of such pages filled.
    pub fill_byte: f64,
    /// A byte through CRC-32C.
    pub checksum_byte: f64,
    /// A return as the kernel guards it, beyond a plain one; none where it does not.
    pub call: f64,
    /// An atomic operation.
    pub atomic: f64,
    /// A system call that does nothing.
    pub syscall: f64,
    /// Taking a page fault, beyond mapping the page.
    pub fault: f64,
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(
            f,
            "this machine: copy {:.0} ps/byte, fill {:.0}, CRC-32C {:.0}; return {:.1} ns, atomic \
             operation {:.1} ns, system call {:.0} ns, page fault {:.0} ns",
            self.copy_byte,
            self.fill_byte,
            self.checksum_byte,
            self.call / 1000.0,
            self.atomic / 1000.0,
            self.syscall / 1000.0,
            self.fault / 1000.0
        )
    }
}

/// Measures this machine by CPU time of this process.
pub fn measure() -> Machine {
    let mut buffer = vec![1u8; PAGE];
    let mut memory = vec![1u8; LARGE];
    let pages = LARGE / PAGE;
    let page = |at: usize| at * SCATTER % pages * PAGE;
    let to = median(|| {
        (0..pages).for_each(|at| copy(&buffer, &mut memory[page(at)..page(at) + PAGE]));
    });
    let from = median(|| {
        (0..pages).for_each(|at| copy(&memory[page(at)..page(at) + PAGE], &mut buffer));
    });
    let fill = median(|| {
        (0..pages).for_each(|at| black_box(&mut memory[page(at)..page(at) + PAGE]).fill(2));
    });
    let checksum = median(|| {
        (0..pages).for_each(|_| {
            black_box(crc(black_box(&buffer)));
        });
    });
    let syscall = median(|| {
        for _ in 0..CALLS {
            // SAFETY: a system call without arguments.
            black_box(unsafe { libc::syscall(libc::SYS_getppid) });
        }
    });
    let (touched, populated) = (median(|| map(0)), median(|| map(libc::MAP_POPULATE)));
    let by_byte = |time: f64| time * 1000.0 / LARGE as f64;
    Machine {
        copy_byte: by_byte((to + from) / 2.0),
        fill_byte: by_byte(fill),
        checksum_byte: by_byte(checksum),
        call: call(),
        atomic: median(atomics) * 1000.0 / CALLS as f64,
        syscall: syscall * 1000.0 / CALLS as f64,
        fault: (touched - populated).max(0.0) * 1000.0 / pages as f64,
    }
}

fn copy(from: &[u8], to: &mut [u8]) {
    black_box(to).copy_from_slice(black_box(from));
}

/// Picoseconds of a return that the processor is kept from predicting, as Linux does it on
/// AMD's processors ("Safe RET", arch/x86/lib/retpoline.S), less those of a plain one.
fn call() -> f64 {
    let guards = std::fs::read_to_string(RETURNS).unwrap_or_default();
    if !guards.contains("Safe RET") {
        return 0.0;
    }
    let plain = median(|| {
        for _ in 0..CALLS {
            // SAFETY: calls what is below it and comes back.
            unsafe { asm!("call 2f", "jmp 3f", "2: ret", "3:") };
        }
    });
    let guarded = median(|| {
        for _ in 0..CALLS {
            // SAFETY: the same; the second call's own address is dropped.
            unsafe {
                asm!(
                    "call 2f",
                    "jmp 5f",
                    "2: jmp 3f",
                    "3: call 4f",
                    "int3",
                    "4: lea rsp, [rsp + 8]",
                    "ret",
                    "int3",
                    "5:"
                )
            };
        }
    });
    (guarded - plain).max(0.0) * 1000.0 / CALLS as f64
}

fn atomics() {
    let word = AtomicU64::new(0);
    for _ in 0..CALLS {
        black_box(&word).fetch_add(1, Ordering::Relaxed);
    }
}

/// Nanoseconds of CPU time of a pass.
fn median(mut pass: impl FnMut()) -> f64 {
    let mut times: Vec<u64> = (0..PASSES)
        .map(|_| {
            let begun = clock(libc::CLOCK_PROCESS_CPUTIME_ID);
            pass();
            clock(libc::CLOCK_PROCESS_CPUTIME_ID) - begun
        })
        .collect();
    times.sort_unstable();
    times[PASSES / 2] as f64
}

/// Maps memory and reads or writes each page of it.
fn map(flags: i32) {
    let flags = flags | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping, used within its bounds and unmapped at the end.
    unsafe {
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let at = libc::mmap(std::ptr::null_mut(), LARGE, rights, flags, -1, 0);
        assert_ne!(at, libc::MAP_FAILED, "no memory");
        for page in (0..LARGE).step_by(PAGE) {
            at.cast::<u8>().add(page).write_volatile(1);
        }
        libc::munmap(at, LARGE);
    }
}

/// CRC-32C in three lanes by the processor's instruction, as kernels compute it.
fn crc(data: &[u8]) -> u64 {
    use std::arch::x86_64::_mm_crc32_u64;
    #[target_feature(enable = "sse4.2")]
    fn lanes(data: &[u8]) -> u64 {
        let mut crc = [0u64; 3];
        for words in data.chunks_exact(24) {
            for (lane, word) in crc.iter_mut().zip(words.chunks_exact(8)) {
                let word = u64::from_le_bytes(word.try_into().unwrap_or_default());
                *lane = _mm_crc32_u64(*lane, word);
            }
        }
        crc[0] ^ crc[1] ^ crc[2]
    }
    assert!(
        std::is_x86_feature_detected!("sse4.2"),
        "a processor of 2008 or later"
    );
    // SAFETY: the instruction is there.
    unsafe { lanes(data) }
}
