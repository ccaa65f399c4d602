//! The ring in which the kernel hands over the records of a tracepoint (perf_event_open(2)), for
//! one processor.

use rustix::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ffi::CString;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

/// Pages of data of a ring, a power of two: 256 KiB hold some 2,900 requests.
const PAGES: usize = 64;
/// `PERF_TYPE_TRACEPOINT`.
const TRACEPOINT: u32 = 2;
/// `PERF_SAMPLE_RAW`.
const RAW: u64 = 1 << 10;
/// The event begins switched off.
const DISABLED: u64 = 1;
/// `PERF_FLAG_FD_CLOEXEC`.
const CLOEXEC: libc::c_ulong = 8;
/// `PERF_RECORD_LOST`.
const LOST_RECORD: u32 = 2;
/// `PERF_RECORD_SAMPLE`.
const SAMPLE_RECORD: u32 = 9;
/// Bytes of the header of a record: type, flags, size.
const HEADER: usize = 8;
/// Offset of `data_head` in the first page of the mapping.
const HEAD: usize = 1024;
/// Offset of `data_tail`.
const TAIL: usize = 1032;
/// `PERF_EVENT_IOC_ENABLE`.
const ENABLE: u32 = 0x2400;
/// `PERF_EVENT_IOC_SET_FILTER`: the size of a pointer is part of it.
const SET_FILTER: u32 = 0x4000_2406 | ((size_of::<usize>() as u32) << 16);

/// The first version of `struct perf_event_attr`, which every kernel takes.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    breakpoint_address: u64,
}

/// A ring that is mapped.
pub struct Ring {
    map: NonNull<u8>,
    page: usize,
    /// The mapping lives as long as this.
    _event: OwnedFd,
}

// SAFETY: the mapping belongs to this value alone, which is used by one thread at a time.
unsafe impl Send for Ring {}

impl Ring {
    /// A ring with the records of the tracepoint `id` that `filter` lets pass, on `processor`.
    ///
    /// # Errors
    /// What the kernel does not let be done, in words.
    pub fn new(id: u64, processor: i32, filter: &str) -> Result<Ring, String> {
        let attributes = Attributes {
            kind: TRACEPOINT,
            size: size_of::<Attributes>() as u32,
            config: id,
            sample_period: 1,
            sample_type: RAW,
            flags: DISABLED,
            ..Attributes::default()
        };
        let (everybody, alone) = (-1, -1);
        // SAFETY: the kernel reads the attributes, whose size they say, and nothing else.
        let event = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                everybody,
                processor,
                alone,
                CLOEXEC,
            )
        };
        let event = i32::try_from(event).ok().filter(|event| *event >= 0);
        let event = event.ok_or_else(|| failed("perf_event_open"))?;
        // SAFETY: the kernel has just opened it for us alone.
        let event = unsafe { OwnedFd::from_raw_fd(event) };
        let filter = CString::new(filter).map_err(|error| error.to_string())?;
        // SAFETY: the kernel reads a string that ends with a zero.
        let set = unsafe { libc::ioctl(event.as_raw_fd(), SET_FILTER as _, filter.as_ptr()) };
        if set != 0 {
            return Err(failed("filter of the tracepoint"));
        }
        let page = rustix::param::page_size();
        // SAFETY: a new mapping of a whole ring, at an address that the kernel chooses.
        let map = unsafe {
            libc::mmap(
                ptr::null_mut(),
                page * (1 + PAGES),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                event.as_raw_fd(),
                0,
            )
        };
        let map = NonNull::new(map.cast::<u8>()).filter(|_| map != libc::MAP_FAILED);
        let ring = Ring {
            map: map.ok_or_else(|| failed("ring of the tracepoint"))?,
            page,
            _event: event,
        };
        // SAFETY: this request takes no argument but a number.
        let enabled = unsafe { libc::ioctl(ring._event.as_raw_fd(), ENABLE as _, 0) };
        match enabled {
            0 => Ok(ring),
            _ => Err(failed("switch the tracepoint on")),
        }
    }

    /// Gives the records that have come to `take`; how many were lost before them.
    pub fn drain(&mut self, take: &mut dyn FnMut(&[u8])) -> u64 {
        let size = (self.page * PAGES) as u64;
        let head = self.number(HEAD).load(Ordering::Acquire);
        let mut tail = self.number(TAIL).load(Ordering::Relaxed);
        let mut lost = 0;
        while tail < head {
            let header = self.copy(tail, HEADER);
            let (kind, length) = header_of(&header);
            // Nothing of the kernel's is shorter than its header or longer than the ring.
            if length < HEADER || length as u64 > size {
                break;
            }
            let body = self.copy(tail + HEADER as u64, length - HEADER);
            match kind {
                SAMPLE_RECORD => take(raw(&body)),
                LOST_RECORD => lost += lost_in(&body),
                _ => {}
            }
            tail += length as u64;
        }
        self.number(TAIL).store(head, Ordering::Release);
        lost
    }

    /// A counter of the first page, which the kernel and we change.
    fn number(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: both offsets are within the first page, aligned to 8, and live as long as the
        // mapping; the kernel accesses them as whole words too.
        unsafe { &*self.map.as_ptr().add(offset).cast::<AtomicU64>() }
    }

    /// `length` bytes of the ring from the place `at` on, which may go over its end.
    fn copy(&self, at: u64, length: usize) -> Vec<u8> {
        let size = self.page * PAGES;
        let begin = (at % size as u64) as usize;
        let first = length.min(size - begin);
        let mut bytes = vec![0; length];
        // SAFETY: both parts lie within the data pages that are mapped after the first page, and
        // the kernel does not write what it has not been told to be read.
        unsafe {
            let data = self.map.as_ptr().add(self.page);
            ptr::copy_nonoverlapping(data.add(begin), bytes.as_mut_ptr(), first);
            ptr::copy_nonoverlapping(data, bytes.as_mut_ptr().add(first), length - first);
        }
        bytes
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this size, and used by nobody any more.
        unsafe { libc::munmap(self.map.as_ptr().cast(), self.page * (1 + PAGES)) };
    }
}

fn failed(what: &str) -> String {
    format!("{what}: {}", std::io::Error::last_os_error())
}

/// Type and length of a record.
fn header_of(header: &[u8]) -> (u32, usize) {
    let part = |from: usize, to: usize| header.get(from..to).unwrap_or_default();
    let kind = part(0, 4).try_into().map_or(0, u32::from_ne_bytes);
    let length = part(6, 8).try_into().map_or(0, u16::from_ne_bytes);
    (kind, length.into())
}

/// The tracepoint's record in a sample: its length stands before it.
fn raw(body: &[u8]) -> &[u8] {
    let Some((length, rest)) = body.split_first_chunk::<4>() else {
        return &[];
    };
    let length = u32::from_ne_bytes(*length) as usize;
    rest.get(..length).unwrap_or(rest)
}

/// The count in a record of losses, which has an id before it.
fn lost_in(body: &[u8]) -> u64 {
    let count = body.get(8..16).and_then(|part| part.try_into().ok());
    count.map_or(0, u64::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_taken_apart() {
        let header = [9, 0, 0, 0, 1, 0, 96, 0];
        assert_eq!(header_of(&header), (SAMPLE_RECORD, 96));
        assert_eq!(header_of(&[1]), (0, 0));
        assert_eq!(raw(&[2, 0, 0, 0, 7, 8, 0, 0]), [7, 8]);
        assert_eq!(raw(&[200, 0, 0, 0, 7]), [7], "no more than there is");
        assert!(raw(&[1]).is_empty());
        let lost = [[0; 8], 5_u64.to_ne_bytes()].concat();
        assert_eq!((lost_in(&lost), lost_in(&[1, 2])), (5, 0));
        assert_eq!(size_of::<Attributes>(), 64, "PERF_ATTR_SIZE_VER0");
    }

    #[test]
    fn a_tracepoint_that_is_none_is_told() {
        let why = Ring::new(u64::MAX, 0, "dev == 1").err();
        assert!(why.is_some_and(|why| why.contains("perf_event_open")));
    }
}
