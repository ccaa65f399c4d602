//! A byte buffer that is aligned for direct I/O.

/// Alignment that satisfies O_DIRECT on every block device with pages of 4 KiB.
const ALIGN: usize = 4096;

/// A zeroed buffer whose bytes begin at a multiple of [`ALIGN`].
pub struct Aligned {
    /// One alignment longer than wanted.
    store: Vec<u8>,
    /// Where the aligned part begins in `store`.
    start: usize,
    /// Length of the aligned part.
    len: usize,
}

impl Aligned {
    /// A buffer of `len` zero bytes.
    pub fn new(len: usize) -> Aligned {
        let store = vec![0; len + ALIGN];
        let start = store.as_ptr().align_offset(ALIGN);
        assert!(start < ALIGN, "a byte pointer can always be aligned");
        Aligned { store, start, len }
    }

    /// The whole buffer, as the system call reads it.
    pub fn bytes(&self) -> &[u8] {
        &self.store[self.start..self.start + self.len]
    }

    /// The bytes, to be changed.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.store[self.start..self.start + self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_aligned_and_zero() {
        for len in [512, 4096, 131_072] {
            let buffer = Aligned::new(len);
            assert_eq!(buffer.bytes().len(), len);
            assert_eq!(buffer.bytes().as_ptr() as usize % ALIGN, 0);
            assert!(buffer.bytes().iter().all(|&byte| byte == 0));
        }
    }
}
