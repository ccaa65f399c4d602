//! The guest's memory as the engine sees it: one or two mapped files.

use crate::error::LabError;
use crate::vhost::Region;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::os::fd::OwnedFd;

/// Mapped regions of guest memory. Every access is checked against them.
#[derive(Default)]
pub struct GuestMemory {
    regions: Vec<Mapped>,
}

struct Mapped {
    guest_address: u64,
    bytes: usize,
    base: *mut u8,
}

// SAFETY: the mappings belong to this value alone and are unmapped with it.
unsafe impl Send for GuestMemory {}

impl GuestMemory {
    /// Maps `regions`, whose files are `files`, in the same order.
    pub fn map(regions: &[Region], files: Vec<OwnedFd>) -> Result<GuestMemory, LabError> {
        if regions.len() != files.len() {
            return Err(bad(format!(
                "{} regions, {} files",
                regions.len(),
                files.len()
            )));
        }
        let mut memory = GuestMemory::default();
        for (region, file) in regions.iter().zip(files) {
            memory.regions.push(Mapped::new(region, &file)?);
        }
        Ok(memory)
    }

    /// `bytes` bytes of guest memory at `address`.
    ///
    /// The slice is only used while the guest waits for the engine's answer: its one
    /// CPU is stopped, so nobody else writes there.
    pub fn slice(&self, address: u64, bytes: usize) -> Result<&[u8], LabError> {
        let start = self.find(address, bytes)?;
        // SAFETY: `find` checked that the range lies in a live mapping of ours.
        Ok(unsafe { std::slice::from_raw_parts(start, bytes) })
    }

    /// `bytes` writable bytes of guest memory at `address`; see [`GuestMemory::slice`].
    pub fn slice_mut(&mut self, address: u64, bytes: usize) -> Result<&mut [u8], LabError> {
        let start = self.find(address, bytes)?;
        // SAFETY: `find` checked the range; `&mut self` excludes every other slice.
        Ok(unsafe { std::slice::from_raw_parts_mut(start, bytes) })
    }

    /// A fixed number of bytes at `address`.
    pub fn array<const N: usize>(&self, address: u64) -> Result<[u8; N], LabError> {
        let slice = self.slice(address, N)?;
        Ok(std::array::from_fn(|i| slice[i]))
    }

    fn find(&self, address: u64, bytes: usize) -> Result<*mut u8, LabError> {
        for region in &self.regions {
            let Some(offset) = address.checked_sub(region.guest_address) else {
                continue;
            };
            let end = offset.checked_add(bytes as u64);
            if end.is_some_and(|end| end <= region.bytes as u64) {
                // SAFETY: offset + bytes is inside the mapping, so the pointer is too.
                return Ok(unsafe { region.base.add(offset as usize) });
            }
        }
        Err(bad(format!(
            "{bytes} bytes at {address:#x} are not guest memory"
        )))
    }
}

impl Mapped {
    fn new(region: &Region, file: &OwnedFd) -> Result<Mapped, LabError> {
        let size = rustix::fs::fstat(file)
            .map_err(|e| LabError::io("look at the guest's memory file")(e.into()))?
            .st_size as u64;
        let end = region.file_offset.checked_add(region.bytes);
        if region.bytes == 0 || end.is_none_or(|end| end > size) {
            return Err(bad(format!(
                "{region:?} does not fit its file of {size} bytes"
            )));
        }
        let bytes = region.bytes as usize;
        // SAFETY: a fresh shared mapping at an address of the kernel's choice.
        let base = unsafe {
            mmap(
                std::ptr::null_mut(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                file,
                region.file_offset,
            )
        }
        .map_err(|e| LabError::io("map the guest's memory")(e.into()))?;
        Ok(Mapped {
            guest_address: region.guest_address,
            bytes,
            base: base.cast(),
        })
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: unmaps exactly what `new` mapped.
        let _ = unsafe { munmap(self.base.cast(), self.bytes) };
    }
}

fn bad(what: String) -> LabError {
    LabError::protocol("virtio", what)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    /// Memory of `bytes` bytes at guest address `at`.
    pub(crate) fn memory(at: u64, bytes: u64) -> GuestMemory {
        let file = memfd_create("test", MemfdFlags::CLOEXEC).expect("memfd");
        ftruncate(&file, bytes).expect("size");
        let region = Region {
            guest_address: at,
            bytes,
            file_offset: 0,
        };
        GuestMemory::map(&[region], vec![file]).expect("map")
    }

    #[test]
    fn ranges_outside_the_regions_are_errors() {
        let memory = memory(0x10_0000, 8192);
        assert!(memory.slice(0x10_0000, 8192).is_ok());
        assert!(memory.slice(0x10_0000, 8193).is_err());
        assert!(memory.slice(0xf_ffff, 2).is_err());
        assert!(memory.slice(u64::MAX - 3, 8).is_err(), "no wrap-around");
    }

    #[test]
    fn a_region_larger_than_its_file_is_an_error() {
        let file = memfd_create("test", MemfdFlags::CLOEXEC).expect("memfd");
        ftruncate(&file, 4096).expect("size");
        let region = Region {
            guest_address: 0,
            bytes: 8192,
            file_offset: 0,
        };
        assert!(GuestMemory::map(&[region], vec![file]).is_err());
    }
}
