//! A split virtqueue (virtio 1.2, §2.7), device side.

use crate::error::LabError;
use crate::memory::GuestMemory;
use crate::vhost::RingAddress;

/// Entries that a ring of `virtio_uml` has.
pub const ENTRIES_MAX: u32 = 256;
/// Descriptors that one request may have: 2 beside the data, far more than any segment limit.
const CHAIN_MAX: usize = 2048;

const DESCRIPTOR_BYTES: u64 = 16;
const FLAG_NEXT: u16 = 1;
const FLAG_WRITE: u16 = 2;
const FLAG_INDIRECT: u16 = 4;

/// A piece of guest memory that belongs to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Guest address.
    pub address: u64,
    /// Length of the buffer in bytes.
    pub bytes: u32,
    /// Whether the device writes it.
    pub device_writes: bool,
}

/// State of one ring.
#[derive(Default)]
pub struct Ring {
    /// Entries; a power of two.
    pub entries: u32,
    /// Guest addresses of the ring's three parts.
    pub address: RingAddress,
    next_available: u16,
    next_used: u16,
}

impl Ring {
    /// Sets the number of entries.
    pub fn set_entries(&mut self, entries: u32) -> Result<(), LabError> {
        if !entries.is_power_of_two() || entries > ENTRIES_MAX {
            return Err(bad(format!("a ring of {entries} entries")));
        }
        self.entries = entries;
        Ok(())
    }

    /// Sets the first index; virtio_uml starts at zero.
    pub fn set_base(&mut self, base: u32) {
        self.next_available = base as u16;
        self.next_used = base as u16;
    }

    /// Goes on behind what the guest answered by itself, while `under_way` requests were taken and
    /// not given back: the index of the used ring counts all that were.
    pub fn catch_up(&mut self, memory: &GuestMemory, under_way: usize) -> Result<(), LabError> {
        let used = memory.array(self.address.used.saturating_add(2))?;
        self.next_used = u16::from_le_bytes(used);
        self.next_available = self.next_used.wrapping_add(under_way as u16);
        Ok(())
    }

    /// Takes the next available request: its head, with its segments put into `segments`.
    pub fn pop(
        &mut self,
        memory: &GuestMemory,
        segments: &mut Vec<Segment>,
    ) -> Result<Option<u16>, LabError> {
        if self.entries == 0 {
            return Err(bad("a kick of a ring that was not set up".into()));
        }
        let index = u16::from_le_bytes(memory.array(self.address.available.saturating_add(2))?);
        let waiting = index.wrapping_sub(self.next_available);
        if u32::from(waiting) > self.entries {
            return Err(bad(format!(
                "{waiting} requests in a ring of {}",
                self.entries
            )));
        }
        if waiting == 0 {
            return Ok(None);
        }
        let slot = u64::from(self.next_available) % u64::from(self.entries);
        let head =
            u16::from_le_bytes(memory.array(self.address.available.saturating_add(4 + 2 * slot))?);
        self.next_available = self.next_available.wrapping_add(1);
        segments.clear();
        collect(
            memory,
            self.address.descriptors,
            self.entries,
            head,
            segments,
            true,
        )?;
        Ok(Some(head))
    }

    /// Gives the request `head` back; the device wrote `bytes` of it.
    pub fn push(
        &mut self,
        memory: &mut GuestMemory,
        head: u16,
        bytes: u32,
    ) -> Result<(), LabError> {
        let slot = u64::from(self.next_used) % u64::from(self.entries);
        let entry = memory.slice_mut(self.address.used.saturating_add(4 + 8 * slot), 8)?;
        entry[..4].copy_from_slice(&u32::from(head).to_le_bytes());
        entry[4..].copy_from_slice(&bytes.to_le_bytes());
        self.next_used = self.next_used.wrapping_add(1);
        // The guest reads the index only after the message that follows: no barrier is needed
        // beside the system call that sends it.
        memory
            .slice_mut(self.address.used.saturating_add(2), 2)?
            .copy_from_slice(&self.next_used.to_le_bytes());
        Ok(())
    }
}

/// Follows a chain of descriptors, through one indirect table at most.
fn collect(
    memory: &GuestMemory,
    table: u64,
    entries: u32,
    head: u16,
    segments: &mut Vec<Segment>,
    indirect_allowed: bool,
) -> Result<(), LabError> {
    let mut index = head;
    loop {
        if u32::from(index) >= entries {
            return Err(bad(format!("descriptor {index} of a table of {entries}")));
        }
        let at = table
            .checked_add(DESCRIPTOR_BYTES * u64::from(index))
            .ok_or_else(|| bad("a descriptor table at the end of memory".into()))?;
        let raw: [u8; 16] = memory.array(at)?;
        let address = u64::from_le_bytes(std::array::from_fn(|i| raw[i]));
        let bytes = u32::from_le_bytes(std::array::from_fn(|i| raw[8 + i]));
        let flags = u16::from_le_bytes([raw[12], raw[13]]);
        if flags & FLAG_INDIRECT != 0 {
            let inner = bytes / DESCRIPTOR_BYTES as u32;
            if !indirect_allowed || inner == 0 || inner as usize > CHAIN_MAX {
                return Err(bad(format!("an indirect table of {bytes} bytes")));
            }
            collect(memory, address, inner, 0, segments, false)?;
        } else {
            segments.push(Segment {
                address,
                bytes,
                device_writes: flags & FLAG_WRITE != 0,
            });
        }
        if segments.len() > CHAIN_MAX {
            return Err(bad("a chain of descriptors without an end".into()));
        }
        if flags & FLAG_NEXT == 0 {
            return Ok(());
        }
        index = u16::from_le_bytes([raw[14], raw[15]]);
    }
}

fn bad(what: String) -> LabError {
    LabError::protocol("virtio", what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::memory;
    use proptest::prelude::*;

    const TABLE: u64 = 0x1000;
    const AVAILABLE: u64 = 0x2000;
    const USED: u64 = 0x3000;

    fn ring() -> Ring {
        let mut ring = Ring {
            address: RingAddress {
                descriptors: TABLE,
                used: USED,
                available: AVAILABLE,
            },
            ..Ring::default()
        };
        ring.set_entries(8).expect("8 is a power of two");
        ring
    }

    fn put(memory: &mut GuestMemory, at: u64, bytes: &[u8]) {
        memory
            .slice_mut(at, bytes.len())
            .expect("in memory")
            .copy_from_slice(bytes);
    }

    fn descriptor(address: u64, bytes: u32, flags: u16, next: u16) -> Vec<u8> {
        [
            &address.to_le_bytes()[..],
            &bytes.to_le_bytes(),
            &flags.to_le_bytes(),
            &next.to_le_bytes(),
        ]
        .concat()
    }

    fn offer(memory: &mut GuestMemory, head: u16) {
        put(memory, AVAILABLE + 4, &head.to_le_bytes());
        put(memory, AVAILABLE + 2, &1_u16.to_le_bytes());
    }

    #[test]
    fn a_chain_is_followed_and_given_back() {
        let (mut ring, mut memory) = (ring(), memory(0, 0x8000));
        put(&mut memory, TABLE, &descriptor(0x4000, 16, FLAG_NEXT, 2));
        put(
            &mut memory,
            TABLE + 32,
            &descriptor(0x5000, 512, FLAG_WRITE, 0),
        );
        offer(&mut memory, 0);
        let mut segments = Vec::new();
        assert_eq!(ring.pop(&memory, &mut segments).expect("valid"), Some(0));
        assert_eq!(segments.len(), 2);
        assert!(!segments[0].device_writes && segments[1].device_writes);
        assert_eq!(ring.pop(&memory, &mut segments).expect("valid"), None);
        ring.push(&mut memory, 0, 513).expect("valid");
        assert_eq!(memory.array::<2>(USED + 2).expect("in memory"), [1, 0]);
    }

    #[test]
    fn what_the_guest_answered_itself_is_passed_over() {
        let (mut ring, mut memory) = (ring(), memory(0, 0x8000));
        put(&mut memory, TABLE + 48, &descriptor(0x4000, 16, 0, 0));
        // Three were offered; the guest gave back the first, the second is under way.
        put(&mut memory, AVAILABLE + 2, &3_u16.to_le_bytes());
        put(&mut memory, AVAILABLE + 4, &[0, 0, 1, 0, 3, 0]);
        put(&mut memory, USED + 2, &1_u16.to_le_bytes());
        ring.catch_up(&memory, 1).expect("valid");
        let mut segments = Vec::new();
        assert_eq!(ring.pop(&memory, &mut segments).expect("valid"), Some(3));
        assert_eq!(ring.pop(&memory, &mut segments).expect("valid"), None);
        ring.push(&mut memory, 1, 1).expect("valid");
        assert_eq!(memory.array::<2>(USED + 2).expect("in memory"), [2, 0]);
    }

    #[test]
    fn a_loop_of_descriptors_is_an_error() {
        let (mut ring, mut memory) = (ring(), memory(0, 0x8000));
        put(&mut memory, TABLE, &descriptor(0x4000, 16, FLAG_NEXT, 0));
        offer(&mut memory, 0);
        assert!(ring.pop(&memory, &mut Vec::new()).is_err());
    }

    #[test]
    fn nested_indirect_tables_are_an_error() {
        let (mut ring, mut memory) = (ring(), memory(0, 0x8000));
        put(
            &mut memory,
            TABLE,
            &descriptor(0x4000, 16, FLAG_INDIRECT, 0),
        );
        put(
            &mut memory,
            0x4000,
            &descriptor(0x5000, 16, FLAG_INDIRECT, 0),
        );
        offer(&mut memory, 0);
        assert!(ring.pop(&memory, &mut Vec::new()).is_err());
    }

    proptest! {
        #[test]
        fn any_memory_is_a_request_or_an_error(
            bytes in proptest::collection::vec(any::<u8>(), 512),
        ) {
            let (mut ring, mut memory) = (ring(), memory(0, 0x8000));
            put(&mut memory, TABLE, &bytes[..256]);
            put(&mut memory, AVAILABLE, &bytes[256..]);
            let _ = ring.pop(&memory, &mut Vec::new());
        }
    }
}
