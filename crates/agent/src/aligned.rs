//! Direct I/O: a byte buffer that is aligned for it, and how far to read.

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

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.store[self.start..self.start + self.len]
    }

    /// The bytes, to be changed.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.store[self.start..self.start + self.len]
    }
}

/// Where a direct read of the next `left` bytes of a file into a buffer of `len` bytes ends, of
/// which `filled` are there: what it asks for behind the file's end, the kernel would fill with
/// zeros.
pub fn end_of_direct_read(len: usize, filled: usize, left: u64) -> usize {
    /// No filesystem has larger blocks.
    const BLOCK: usize = 64 << 10;
    let room = len.saturating_sub(filled);
    let left = usize::try_from(left).map_or(room, |left| left.min(room));
    match left.next_multiple_of(BLOCK) {
        0 => len,
        wanted => len.min(filled + wanted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_direct_read_asks_for_the_files_last_block_and_not_for_more() {
        const KIB: usize = 1 << 10;
        for (filled, left, end) in [
            (64, 1, 128),
            (64, 64, 128),
            (64, 65, 192),
            (64, 447, 512),
            (64, 448, 512),
            (64, 9_999_999, 512),
            (0, 100, 128),
            // It is longer than it was said to be.
            (128, 0, 512),
            (512, 7, 512),
        ] {
            let found = end_of_direct_read(512 * KIB, filled * KIB, (left * KIB) as u64);
            assert_eq!(found, end * KIB, "{filled} {left}");
        }
        assert_eq!(end_of_direct_read(4096, 0, u64::MAX), 4096);
    }

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
