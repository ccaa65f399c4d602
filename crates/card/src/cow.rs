//! A long array whose clone is cheap: chunks are shared until one side writes.
//!
//! `Arc::make_mut` costs a locked instruction on every access, which also stalls the
//! memory pipeline of the random lookups a page map makes. So a chunk that only this
//! array uses is a plain box; cloning turns the boxes into shared ones, once. The mutex is
//! taken by `clone` and by readers of the whole; the hot path has `&mut self` and no lock.

use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;

/// Entries of a chunk: 64 KiB of `u32`.
const CHUNK: usize = 1 << 14;

/// Copy-on-write array of `u32`; entries never written hold the fill value and take no memory.
#[derive(Debug)]
pub(crate) struct CowArray {
    len: usize,
    fill: u32,
    chunks: Mutex<Vec<Chunk>>,
}

#[derive(Debug)]
enum Chunk {
    Empty,
    Owned(Box<[u32]>),
    Shared(Arc<Box<[u32]>>),
}

impl Chunk {
    /// The entries for writing, copied first if somebody else has them too.
    #[inline(always)]
    fn owned(&mut self, fill: u32) -> &mut [u32] {
        if !matches!(self, Chunk::Owned(_)) {
            self.take_over(fill);
        }
        match self {
            Chunk::Owned(entries) => entries,
            _ => unreachable!("taken over above"),
        }
    }

    #[cold]
    fn take_over(&mut self, fill: u32) {
        let entries = match std::mem::replace(self, Chunk::Empty) {
            Chunk::Empty => vec![fill; CHUNK].into_boxed_slice(),
            Chunk::Owned(entries) => entries,
            Chunk::Shared(shared) => {
                Arc::try_unwrap(shared).unwrap_or_else(|shared| (*shared).clone())
            }
        };
        *self = Chunk::Owned(entries);
    }

    fn entries(&self) -> Option<&[u32]> {
        match self {
            Chunk::Empty => None,
            Chunk::Owned(entries) => Some(entries),
            Chunk::Shared(entries) => Some(entries),
        }
    }
}

impl CowArray {
    /// `len` entries of `fill`.
    pub fn new(len: usize, fill: u32) -> CowArray {
        let chunks = (0..len.div_ceil(CHUNK)).map(|_| Chunk::Empty).collect();
        CowArray {
            len,
            fill,
            chunks: Mutex::new(chunks),
        }
    }

    /// Entry `index`, seen through the lock.
    #[cfg(test)]
    pub fn get(&self, index: usize) -> u32 {
        assert!(index < self.len, "entry {index} of {}", self.len);
        let chunks = self.lock();
        chunks[index / CHUNK]
            .entries()
            .map_or(self.fill, |entries| entries[index % CHUNK])
    }

    /// Entry `index`, without a lock.
    #[inline(always)]
    pub fn read(&mut self, index: usize) -> u32 {
        let fill = self.fill;
        match &self.chunks_mut()[index / CHUNK] {
            Chunk::Owned(entries) => entries[index % CHUNK],
            other => other
                .entries()
                .map_or(fill, |entries| entries[index % CHUNK]),
        }
    }

    /// Puts `value` at `index` and returns what was there.
    #[inline(always)]
    pub fn replace(&mut self, index: usize, value: u32) -> u32 {
        let fill = self.fill;
        let entries = self.chunks_mut()[index / CHUNK].owned(fill);
        std::mem::replace(&mut entries[index % CHUNK], value)
    }

    /// The entries from `start` on, for writing: `most` of them or up to the chunk's end.
    pub fn run(&mut self, start: usize, most: usize) -> &mut [u32] {
        let fill = self.fill;
        let within = start % CHUNK;
        let end = CHUNK.min(within + most);
        &mut self.chunks_mut()[start / CHUNK].owned(fill)[within..end]
    }

    /// Puts `first`, `first + 1`, … at `indices`.
    pub fn assign(&mut self, indices: &[u32], first: u32) {
        let fill = self.fill;
        let chunks = self.chunks_mut();
        for (index, value) in indices.iter().zip(first..) {
            let index = *index as usize;
            chunks[index / CHUNK].owned(fill)[index % CHUNK] = value;
        }
    }

    /// Writes to the front of `found` those of `indices` that hold `first`, `first + 1`, … (the
    /// n-th index is compared with `first + n`) and returns how many. `found` has room for
    /// one more than all. There is no branch on the answer: the processor then has many of
    /// the random look-ups under way at once.
    pub fn select(&mut self, indices: &[u32], first: u32, found: &mut [u32]) -> usize {
        let fill = self.fill;
        let chunks = self.chunks_mut();
        let mut count = 0;
        for (&index, value) in indices.iter().zip(first..) {
            let at = index as usize;
            let held = match &chunks[at / CHUNK] {
                Chunk::Owned(entries) => entries[at % CHUNK],
                other => other.entries().map_or(fill, |entries| entries[at % CHUNK]),
            };
            found[count] = index;
            count += usize::from(held == value);
        }
        count
    }

    /// Adds one to entry `index`.
    #[inline(always)]
    pub fn increment(&mut self, index: usize) {
        let fill = self.fill;
        self.chunks_mut()[index / CHUNK].owned(fill)[index % CHUNK] += 1;
    }

    /// All entries in order.
    pub fn to_vec(&self) -> Vec<u32> {
        let mut all = Vec::with_capacity(self.len.next_multiple_of(CHUNK));
        for chunk in self.lock().iter() {
            match chunk.entries() {
                Some(entries) => all.extend_from_slice(entries),
                None => all.resize(all.len() + CHUNK, self.fill),
            }
        }
        all.truncate(self.len);
        all
    }

    #[inline(always)]
    fn chunks_mut(&mut self) -> &mut [Chunk] {
        self.chunks.get_mut()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Chunk>> {
        self.chunks.lock()
    }
}

impl Clone for CowArray {
    /// Shares every chunk: cost is a pointer for each.
    fn clone(&self) -> CowArray {
        let mut chunks = self.lock();
        let copies = chunks.iter_mut().map(share).collect();
        CowArray {
            len: self.len,
            fill: self.fill,
            chunks: Mutex::new(copies),
        }
    }
}

/// Equal entries, whoever shares them.
impl PartialEq for CowArray {
    fn eq(&self, other: &CowArray) -> bool {
        self.to_vec() == other.to_vec()
    }
}

fn share(chunk: &mut Chunk) -> Chunk {
    let shared = match std::mem::replace(chunk, Chunk::Empty) {
        Chunk::Empty => return Chunk::Empty,
        Chunk::Owned(entries) => Arc::new(entries),
        Chunk::Shared(shared) => shared,
    };
    *chunk = Chunk::Shared(Arc::clone(&shared));
    Chunk::Shared(shared)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_diverge_on_both_sides() {
        let mut one = CowArray::new(3 * CHUNK - 5, 7);
        one.replace(CHUNK, 1);
        let mut two = one.clone();
        assert_eq!(two.replace(CHUNK, 2), 1);
        one.replace(0, 3);
        assert_eq!((one.get(CHUNK), two.get(CHUNK)), (1, 2));
        assert_eq!((one.get(0), two.get(0)), (3, 7));
        assert_eq!((one.read(CHUNK), two.read(2 * CHUNK)), (1, 7));
    }

    #[test]
    fn unwritten_chunks_take_no_memory() {
        let mut array = CowArray::new(1 << 30, u32::MAX);
        array.replace(123_456_789, 5);
        let chunks = array.lock();
        assert_eq!(
            chunks
                .iter()
                .filter(|chunk| chunk.entries().is_some())
                .count(),
            1
        );
    }
}
