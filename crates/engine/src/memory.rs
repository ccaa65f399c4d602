//! How many guests this machine has memory for at once.

use crate::error::{Error, Outcome};
use std::path::PathBuf;
use whichfs_lab::{GroupLimits, memory_directory};
use whichfs_units::{Bytes, KIB, MIB};

/// From here on blocks of 32 KiB and more go back to the system when they are freed. glibc raises
/// that bound as it goes and keeps them in arenas of each thread: a series of power cuts, which
/// frees chunks of 64 KiB by the thousand, held a third more than it used.
pub fn give_back() {
    const BOUND: i32 = 32 << 10;
    // SAFETY: mallopt only changes how later calls of malloc behave; glibc locks its own state.
    // A refusal (0) leaves things as they are.
    unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, BOUND) };
}

/// Processes and threads that a trial has at most, here: those of the guest's kernel, one for each
/// of its programs, and the thread that leads it (fio with four threads has nine).
const PROCESSES: u64 = 24;

/// Trials that fit side by side, at most `jobs`, and the directory of their guests' memory:
/// `guest_bytes` of each are in that directory, `contents_bytes` are the program's own.
///
/// Says so on standard error if they are fewer than `jobs`.
///
/// # Errors
/// If not one of them fits.
pub fn side_by_side(
    jobs: usize,
    guest_bytes: u64,
    contents_bytes: u64,
) -> Outcome<(usize, PathBuf)> {
    let each = guest_bytes + contents_bytes;
    let groups = GroupLimits::now();
    let available = available_bytes().into_iter().chain(groups.memory).min();
    let wanted = available.map_or(jobs, |available| fitting(jobs, available, each));
    let wanted = groups
        .processes
        .map_or(wanted, |left| fitting(wanted, left, PROCESSES));
    let room = |count: usize| memory_directory(count as u64 * guest_bytes / MIB);
    let found = (2..=wanted)
        .rev()
        .find_map(|count| Some((count, room(count).ok()?)));
    let (fits, directory) = match found {
        Some(found) => found,
        None => (1, room(1).map_err(Error::environment)?),
    };
    if fits < jobs {
        log::warn!(
            "{fits} at once instead of {jobs}: there are no memory or processes for more trials of \
             {} and {PROCESSES} processes each (free memory; memory.max and pids.max of the \
             control group)",
            Bytes(each)
        );
    }
    Ok((fits, directory))
}

/// How many of `jobs` trials that need `each` of something `available` of it is enough for; at
/// least one is tried.
fn fitting(jobs: usize, available: u64, each: u64) -> usize {
    let most = usize::try_from(available / each).unwrap_or(usize::MAX);
    jobs.min(most).max(1)
}

/// Memory that programs can have without swapping, if the system tells.
fn available_bytes() -> Option<u64> {
    parse_available(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

fn parse_available(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * KIB)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_are_bounded_by_the_memory_that_is_there() {
        let each = 576 * MIB;
        assert_eq!(fitting(16, 8 << 30, each), 14);
        assert_eq!(fitting(4, 8 << 30, each), 4);
        assert_eq!(fitting(4, 100 * MIB, each), 1, "one is tried");
    }

    #[test]
    fn available_memory_is_in_meminfo() {
        let text = "MemTotal:       16384 kB\nMemAvailable:    2048 kB\n";
        assert_eq!(parse_available(text), Some(2 * MIB));
        assert_eq!(parse_available("MemTotal: 1 kB"), None);
    }

    /// Guests that no directory holds together run one after the other; one that none holds is
    /// an error.
    #[test]
    fn guests_are_as_many_as_their_directory_holds() {
        let (jobs, _) = side_by_side(1 << 30, MIB, 0).unwrap_or_default();
        assert!((1..1 << 30).contains(&jobs), "{jobs}");
        let failure = side_by_side(2, u64::MAX / 4, 0).err();
        assert!(failure.is_some_and(|failure| failure.message.contains("TMPDIR")));
    }
}
