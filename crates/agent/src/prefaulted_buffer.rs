//! Memory that is there from the beginning.
//!
//! In the lab the first write to a page of a program costs the host as much as reading a small
//! file, and so does the first after each program that is started, because the child shares what
//! its parent has. This memory comes at once and is not the child's.

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::alloc::{Layout, handle_alloc_error};
use std::ffi::c_void;
use std::ops::{Deref, DerefMut};
use std::ptr::{null_mut, slice_from_raw_parts_mut};

/// Bytes that lie at one place as long as they live, zeros at first.
pub struct PrefaultedBuffer(*mut [u8]);

impl PrefaultedBuffer {
    /// So many bytes, at least one.
    pub fn new(len: usize) -> PrefaultedBuffer {
        let flags = MapFlags::PRIVATE | MapFlags::POPULATE;
        // SAFETY: memory at an address of the kernel's choice is nobody else's.
        let memory =
            unsafe { mmap_anonymous(null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, flags) };
        // No memory ends the program, as everywhere.
        let start = memory.unwrap_or_else(|_| handle_alloc_error(Layout::new::<u8>()));
        // SAFETY: children have no use for these pages. If the kernel refuses, they get them.
        let _ = unsafe { madvise(start, len, Advice::LinuxDontFork) };
        PrefaultedBuffer(slice_from_raw_parts_mut(start.cast(), len))
    }
}

impl Deref for PrefaultedBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the memory is this value's own, initialised, and mapped until it is dropped.
        unsafe { &*self.0 }
    }
}

impl DerefMut for PrefaultedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `&mut self` excludes every other slice.
        unsafe { &mut *self.0 }
    }
}

impl Drop for PrefaultedBuffer {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length; no slice outlives the value.
        let _ = unsafe { munmap(self.0.cast::<c_void>(), self.0.len()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_zero_aligned_and_can_be_written() {
        for len in [1, 4096, 300_000] {
            let mut warm = PrefaultedBuffer::new(len);
            assert_eq!(warm.len(), len);
            assert!(warm.iter().all(|&byte| byte == 0));
            assert_eq!(warm.as_ptr() as usize % 4096, 0);
            warm.fill(7);
            assert!(warm.iter().all(|&byte| byte == 7));
        }
    }
}
