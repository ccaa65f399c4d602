//! The shared-memory schedule (`struct um_timetravel_schedshm`, version 2): the
//! calendar and its guest read and write times in a page instead of sending them.
//!
//! The engine is client 0, the guest client 1. Who runs is `running_id`; only the
//! one that runs writes `current_time`; a guest that is not running leaves its next
//! wish in its `req_time`. All accesses are atomic: the other side is a process of
//! its own, although the protocol lets only one of the two run at a time.

use crate::error::LabError;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering::SeqCst};

/// The guest's place in the client table.
pub const GUEST_ID: u16 = 1;
const ENGINE_ID: u16 = 0;
const CLIENTS: usize = 2;
const VERSION: u32 = 2;
const CAPABILITY_TIME_SHARE: u32 = 1;
/// Ours (kernel/patches/0011): kicks and completions are bits in the guest's place.
const CAPABILITY_DOORBELLS: u32 = 2;
const FLAG_REQUEST_RUN: u32 = 1;
const HEADER_BYTES: usize = 4096;
const CLIENT_BYTES: usize = 128;

/// Bytes of the memory: header and clients, in whole pages.
const BYTES: usize = 8192;

/// Fields of the header, by byte offset.
const VERSION_AT: usize = 0;
const LENGTH_AT: usize = 4;
const FREE_UNTIL_AT: usize = 8;
const CURRENT_TIME_AT: usize = 16;
const RUNNING_ID_AT: usize = 24;
const MAX_CLIENTS_AT: usize = 26;
/// Fields of a client, by byte offset.
const CAPABILITY_AT: usize = 0;
const FLAGS_AT: usize = 4;
const REQUEST_TIME_AT: usize = 8;
const KICKS_AT: usize = 64;
const CALLS_AT: usize = 72;

/// The mapped schedule.
pub struct Schedule {
    base: *mut u8,
    file: OwnedFd,
}

// SAFETY: the mapping is shared memory that is accessed only through atomics.
unsafe impl Send for Schedule {}

impl Schedule {
    /// Makes the memory with the engine as its running client and time zero.
    pub fn new() -> Result<Schedule, LabError> {
        let file = memfd_create("whichfs-schedule", MemfdFlags::CLOEXEC)
            .map_err(|e| LabError::io("make the shared schedule")(e.into()))?;
        ftruncate(&file, BYTES as u64)
            .map_err(|e| LabError::io("size the shared schedule")(e.into()))?;
        // SAFETY: a fresh shared mapping of our own file at an address of the kernel's choice.
        let base = unsafe {
            mmap(
                std::ptr::null_mut(),
                BYTES,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                &file,
                0,
            )
        }
        .map_err(|e| LabError::io("map the shared schedule")(e.into()))?
        .cast::<u8>();
        let schedule = Schedule { base, file };
        schedule.u32_at(VERSION_AT).store(VERSION, SeqCst);
        schedule.u32_at(LENGTH_AT).store(BYTES as u32, SeqCst);
        schedule
            .u16_at(MAX_CLIENTS_AT)
            .store(CLIENTS as u16, SeqCst);
        schedule
            .client_u32(ENGINE_ID, CAPABILITY_AT)
            .store(CAPABILITY_TIME_SHARE | CAPABILITY_DOORBELLS, SeqCst);
        Ok(schedule)
    }

    /// The file to send to the guest.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Whether the guest has taken up the schedule (kernels before 6.12 do not know it).
    pub fn guest_shares(&self) -> bool {
        self.client_u32(GUEST_ID, CAPABILITY_AT).load(SeqCst) & CAPABILITY_TIME_SHARE != 0
    }

    /// Whether kicks and completions are bits here instead of messages.
    pub fn has_doorbells(&self) -> bool {
        self.client_u32(GUEST_ID, CAPABILITY_AT).load(SeqCst) & CAPABILITY_DOORBELLS != 0
    }

    /// The devices that were kicked since the last call, a bit each.
    pub fn take_kicks(&self) -> u64 {
        self.client_u64(GUEST_ID, KICKS_AT).swap(0, SeqCst)
    }

    /// The guest is to see completions of device `index` when it runs.
    pub fn call(&self, index: usize) {
        self.client_u64(GUEST_ID, CALLS_AT)
            .fetch_or(1 << index, SeqCst);
    }

    /// The time of whoever runs.
    pub fn current_time(&self) -> u64 {
        self.u64_at(CURRENT_TIME_AT).load(SeqCst)
    }

    /// The instant at which the guest wants to run, if it has said one.
    pub fn guest_request(&self) -> Option<u64> {
        let flags = self.client_u32(GUEST_ID, FLAGS_AT).load(SeqCst);
        (flags & FLAG_REQUEST_RUN != 0)
            .then(|| self.client_u64(GUEST_ID, REQUEST_TIME_AT).load(SeqCst))
    }

    /// The engine runs, at `now`.
    pub fn engine_runs(&self, now: u64) {
        self.u16_at(RUNNING_ID_AT).store(ENGINE_ID, SeqCst);
        self.u64_at(CURRENT_TIME_AT).store(now, SeqCst);
    }

    /// The guest runs, from `now`, and may go on to before `free_until` without asking.
    pub fn guest_runs(&self, now: u64, free_until: u64) {
        self.u64_at(CURRENT_TIME_AT).store(now, SeqCst);
        self.set_free_until(free_until);
        self.u16_at(RUNNING_ID_AT).store(GUEST_ID, SeqCst);
    }

    /// A new bound for the guest that is running.
    pub fn set_free_until(&self, time: u64) {
        self.u64_at(FREE_UNTIL_AT).store(time, SeqCst);
    }

    fn client_u32(&self, client: u16, field: usize) -> &AtomicU32 {
        self.u32_at(HEADER_BYTES + usize::from(client) * CLIENT_BYTES + field)
    }

    fn client_u64(&self, client: u16, field: usize) -> &AtomicU64 {
        self.u64_at(HEADER_BYTES + usize::from(client) * CLIENT_BYTES + field)
    }

    fn u16_at(&self, at: usize) -> &AtomicU16 {
        assert!(at + 2 <= BYTES && at.is_multiple_of(2));
        // SAFETY: in bounds and aligned (just checked); the mapping lives as long as self.
        unsafe { AtomicU16::from_ptr(self.base.add(at).cast()) }
    }

    fn u32_at(&self, at: usize) -> &AtomicU32 {
        assert!(at + 4 <= BYTES && at.is_multiple_of(4));
        // SAFETY: in bounds and aligned (just checked); the mapping lives as long as self.
        unsafe { AtomicU32::from_ptr(self.base.add(at).cast()) }
    }

    fn u64_at(&self, at: usize) -> &AtomicU64 {
        assert!(at + 8 <= BYTES && at.is_multiple_of(8));
        // SAFETY: in bounds and aligned (just checked); the mapping lives as long as self.
        unsafe { AtomicU64::from_ptr(self.base.add(at).cast()) }
    }
}

impl Drop for Schedule {
    fn drop(&mut self) {
        // SAFETY: unmaps exactly what `new` mapped; no reference outlives self.
        let _ = unsafe { munmap(self.base.cast(), BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_schedule_is_at_zero_and_unshared() {
        let schedule = Schedule::new().expect("memfd and mmap work here");
        assert_eq!(schedule.current_time(), 0);
        assert!(!schedule.guest_shares());
        assert_eq!(schedule.guest_request(), None);
    }

    #[test]
    fn kicks_are_taken_once_and_calls_add_up() {
        let schedule = Schedule::new().expect("memfd and mmap work here");
        schedule.client_u64(GUEST_ID, KICKS_AT).store(5, SeqCst);
        assert_eq!((schedule.take_kicks(), schedule.take_kicks()), (5, 0));
        schedule.call(0);
        schedule.call(3);
        assert_eq!(schedule.client_u64(GUEST_ID, CALLS_AT).load(SeqCst), 9);
    }

    #[test]
    fn a_request_is_seen_only_with_its_flag() {
        let schedule = Schedule::new().expect("memfd and mmap work here");
        schedule
            .client_u64(GUEST_ID, REQUEST_TIME_AT)
            .store(77, SeqCst);
        assert_eq!(schedule.guest_request(), None);
        schedule
            .client_u32(GUEST_ID, FLAGS_AT)
            .store(FLAG_REQUEST_RUN, SeqCst);
        assert_eq!(schedule.guest_request(), Some(77));
    }
}
