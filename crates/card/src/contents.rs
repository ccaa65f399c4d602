//! The bytes on a card: sparse, copy on write, bounded in memory.
//!
//! Chunks never written read as zeros and take nothing. A clone shares all chunks. Beyond
//! a bound of resident chunks, those not touched lately go to a [`Spill`] that the caller
//! provides: this crate does no I/O. They are read where they lie; a write of less than a whole
//! chunk brings it back. Errors of the spill are returned and leave the
//! contents as they were before the call, except for chunks that a long write had finished.
//!
//! A card that lies about its size has a [`ContentLayout`] with fewer real bytes than it claims.
//! What is written beyond them lands on other data (the address wraps, as on most fakes), or
//! nowhere, in which case it reads as zeros (`flash.md` §5, f3's findings).

use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use whichfs_units::SECTOR;

/// Bytes of a chunk, and of a slot of a [`Spill`].
pub const CHUNK_BYTES: u64 = 64 << 10;

/// Where chunks go that do not fit in memory: an unlinked file, for example.
pub trait Spill: Send + Sync {
    /// Keeps `chunk` ([`CHUNK_BYTES`] long) in `slot`. Slots are numbered densely from zero
    /// and used again when free; no two calls write the same one at once.
    ///
    /// # Errors
    /// As the medium has them; the chunk then stays in memory.
    fn write_slot(&self, slot: u64, chunk: &[u8]) -> std::io::Result<()>;

    /// Fills `out` with what was last written to `slot`, from byte `start` of the chunk on; both
    /// together are at most [`CHUNK_BYTES`].
    ///
    /// # Errors
    /// As the medium has them; the chunk then stays where it is.
    fn read_slot(&self, slot: u64, start: usize, out: &mut [u8]) -> std::io::Result<()>;
}

/// Why contents could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ContentsError {
    /// Beyond the capacity, or not on sector boundaries.
    #[error("{bytes} bytes at {offset} are no sectors of a card of {capacity} bytes")]
    Range {
        /// First byte.
        offset: u64,
        /// Length of the range.
        bytes: u64,
        /// Bytes of the card.
        capacity: u64,
    },
    /// The spill failed.
    #[error("card contents that do not fit in memory could not be {action}: {source}")]
    Spill {
        /// `put away` or `brought back`.
        action: &'static str,
        /// What the spill said.
        source: std::io::Error,
    },
}

/// Where the bytes of a card are kept: all of them at their place, unless the card lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentLayout {
    /// Bytes that the card claims.
    pub capacity_bytes: u64,
    /// Bytes that it has; at most as many.
    pub real_bytes: u64,
    /// What is written beyond is lost; otherwise it overwrites the beginning.
    pub vanish: bool,
}

impl ContentLayout {
    /// Of an honest card.
    pub const fn honest(capacity_bytes: u64) -> ContentLayout {
        ContentLayout {
            capacity_bytes,
            real_bytes: capacity_bytes,
            vanish: false,
        }
    }

    /// The runs of a range: place in flash, or `None` if there is none, and length.
    fn runs(self, offset: u64, bytes: u64) -> impl Iterator<Item = (Option<u64>, u64)> {
        let end = offset + bytes;
        let mut at = offset;
        std::iter::from_fn(move || {
            let place = at % self.real_bytes;
            let beyond = at >= self.real_bytes;
            let length = (end - at).min(self.real_bytes - place);
            at += length;
            let kept = !(beyond && self.vanish);
            (length > 0).then_some((kept.then_some(place), length))
        })
    }
}

/// The bytes on a card.
#[derive(Clone)]
pub struct Contents {
    layout: ContentLayout,
    chunks: BTreeMap<u64, Chunk>,
    /// Indices of the resident chunks, the next to be put away first.
    queue: VecDeque<u64>,
    bound: Option<Bound>,
}

#[derive(Clone)]
struct Bound {
    chunks: usize,
    store: Arc<Store>,
}

#[derive(Clone)]
enum Chunk {
    Resident { data: Arc<Vec<u8>>, touched: bool },
    Spilled(Arc<Slot>),
}

/// A spill with the numbers of its slots; all clones share it.
struct Store {
    spill: Box<dyn Spill>,
    slots: Mutex<Slots>,
    /// Buffers of chunks that were put away, to be used again: fresh memory costs the system more
    /// than copying a chunk.
    spare: Mutex<Vec<Vec<u8>>>,
}

/// Most of those: 8 MiB.
const SPARE_MAX: usize = 128;

#[derive(Default)]
struct Slots {
    free: Vec<u64>,
    /// Number of those in use and free.
    all: u64,
}

impl Store {
    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock()
    }

    fn spare(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.spare.lock()
    }

    /// Takes the buffer of a chunk that nobody else has any more.
    fn keep(&self, chunk: Arc<Vec<u8>>) {
        if let Ok(buffer) = Arc::try_unwrap(chunk) {
            let mut spare = self.spare();
            if spare.len() < SPARE_MAX {
                spare.push(buffer);
            }
        }
    }

    /// Puts `chunk` into a slot of its own.
    fn put(self: &Arc<Store>, chunk: &[u8]) -> std::io::Result<Slot> {
        let number = self.slots().take();
        let store = Arc::clone(self);
        let slot = Slot { number, store };
        // A slot that could not be written is freed.
        self.spill.write_slot(number, chunk).map(|()| slot)
    }
}

impl Slots {
    fn take(&mut self) -> u64 {
        self.free.pop().unwrap_or_else(|| {
            self.all += 1;
            self.all - 1
        })
    }
}

/// A slot in use: freed when the last clone lets go of it.
struct Slot {
    number: u64,
    store: Arc<Store>,
}

impl Slot {
    fn read(&self, start: usize, out: &mut [u8]) -> Result<(), ContentsError> {
        let read = self.store.spill.read_slot(self.number, start, out);
        read.map_err(|source| ContentsError::Spill {
            action: "brought back",
            source,
        })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.store.slots().free.push(self.number);
    }
}

impl std::fmt::Debug for Contents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (capacity, resident) = (self.layout.capacity_bytes, self.queue.len());
        write!(
            f,
            "Contents({capacity} bytes, {} chunks, {resident} resident)",
            self.chunks.len()
        )
    }
}

impl Contents {
    /// Zeros, held in memory as they are written.
    pub fn new(capacity_bytes: u64) -> Contents {
        let (chunks, queue) = (BTreeMap::new(), VecDeque::new());
        Contents {
            layout: ContentLayout::honest(capacity_bytes),
            chunks,
            queue,
            bound: None,
        }
    }

    /// Zeros; at most `resident_bytes` (at least one chunk) stay in memory for each clone,
    /// the rest goes to `spill`, which all clones share.
    pub fn bounded(capacity_bytes: u64, resident_bytes: u64, spill: Box<dyn Spill>) -> Contents {
        let chunks = (resident_bytes / CHUNK_BYTES).max(1) as usize;
        let store = Arc::new(Store {
            spill,
            slots: Mutex::default(),
            spare: Mutex::default(),
        });
        Contents {
            bound: Some(Bound { chunks, store }),
            ..Contents::new(capacity_bytes)
        }
    }

    /// The same for a card that keeps its bytes as `layout` says, which
    /// [`crate::Profile::layout`] tells; nothing may be written yet.
    #[must_use]
    pub fn laid_out(self, layout: ContentLayout) -> Contents {
        assert!(self.chunks.is_empty(), "laid out after it was written");
        assert!(layout.real_bytes <= layout.capacity_bytes && layout.real_bytes > 0);
        Contents { layout, ..self }
    }

    /// Bytes that the card claims to have.
    pub fn capacity_bytes(&self) -> u64 {
        self.layout.capacity_bytes
    }

    /// Bytes of the chunks in memory, shared ones included.
    pub fn resident_bytes(&self) -> u64 {
        self.queue.len() as u64 * CHUNK_BYTES
    }

    /// Fills `out` with the bytes at `offset`.
    ///
    /// # Errors
    /// A range that is no sectors of the card, or the spill's failure.
    pub fn read(&mut self, offset: u64, out: &mut [u8]) -> Result<(), ContentsError> {
        self.check(offset, out.len() as u64)?;
        let mut rest = out;
        for (place, length) in self.layout.runs(offset, rest.len() as u64) {
            let (run, tail) = rest.split_at_mut(length as usize);
            rest = tail;
            match place {
                Some(place) => self.read_run(place, run)?,
                None => run.fill(0),
            }
        }
        Ok(())
    }

    fn read_run(&mut self, place: u64, out: &mut [u8]) -> Result<(), ContentsError> {
        let mut rest = out;
        for piece in pieces(place, rest.len() as u64) {
            let (part, tail) = rest.split_at_mut(piece.length);
            rest = tail;
            match self.chunks.get_mut(&piece.chunk) {
                Some(Chunk::Resident { data, touched }) => {
                    *touched = true;
                    part.copy_from_slice(&data[piece.range()]);
                }
                Some(Chunk::Spilled(slot)) => slot.read(piece.start, part)?,
                None => part.fill(0),
            }
        }
        Ok(())
    }

    /// Puts `data` at `offset`.
    ///
    /// # Errors
    /// A range that is no sectors of the card, or the spill's failure.
    pub fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), ContentsError> {
        self.check(offset, data.len() as u64)?;
        let mut rest = data;
        for (place, length) in self.layout.runs(offset, data.len() as u64) {
            let (run, tail) = rest.split_at(length as usize);
            rest = tail;
            if let Some(place) = place {
                self.write_run(place, run)?;
            }
        }
        Ok(())
    }

    fn write_run(&mut self, place: u64, data: &[u8]) -> Result<(), ContentsError> {
        let mut rest = data;
        for piece in pieces(place, data.len() as u64) {
            let (part, tail) = rest.split_at(piece.length);
            rest = tail;
            let known = self.chunks.get(&piece.chunk);
            let resident = matches!(known, Some(Chunk::Resident { .. }));
            if known.is_none() && is_zero(part) {
                continue;
            }
            let unknown = known.is_none();
            if piece.is_whole() && !resident {
                let mut data = self.buffer();
                data.copy_from_slice(part);
                self.admit(piece.chunk, Arc::new(data))?;
                continue;
            }
            if unknown {
                let mut data = self.buffer();
                data.fill(0);
                self.admit(piece.chunk, Arc::new(data))?;
            }
            if let Some(chunk) = self.bring(piece.chunk)? {
                Arc::make_mut(chunk)[piece.range()].copy_from_slice(part);
            }
        }
        Ok(())
    }

    /// Makes `bytes` at `offset` zeros; chunks covered wholly are given back.
    ///
    /// # Errors
    /// A range that is no sectors of the card, or the spill's failure.
    pub fn discard(&mut self, offset: u64, bytes: u64) -> Result<(), ContentsError> {
        self.check(offset, bytes)?;
        for (place, length) in self.layout.runs(offset, bytes) {
            if let Some(place) = place {
                self.discard_run(place, length)?;
            }
        }
        Ok(())
    }

    fn discard_run(&mut self, offset: u64, bytes: u64) -> Result<(), ContentsError> {
        let (first, last) = (offset.div_ceil(CHUNK_BYTES), (offset + bytes) / CHUNK_BYTES);
        if first < last {
            let mut beyond = self.chunks.split_off(&first);
            let mut kept = beyond.split_off(&last);
            self.chunks.append(&mut kept);
            self.queue.retain(|index| !(first..last).contains(index));
        }
        for piece in pieces(offset, bytes) {
            if self.chunks.contains_key(&piece.chunk)
                && let Some(chunk) = self.bring(piece.chunk)?
            {
                Arc::make_mut(chunk)[piece.range()].fill(0);
            }
        }
        Ok(())
    }

    fn check(&self, offset: u64, bytes: u64) -> Result<(), ContentsError> {
        let fits = offset
            .checked_add(bytes)
            .is_some_and(|end| end <= self.layout.capacity_bytes);
        if fits && offset.is_multiple_of(SECTOR) && bytes.is_multiple_of(SECTOR) {
            return Ok(());
        }
        Err(ContentsError::Range {
            offset,
            bytes,
            capacity: self.layout.capacity_bytes,
        })
    }

    /// The chunk's data, brought into memory; `None` if it was never written.
    fn bring(&mut self, index: u64) -> Result<Option<&mut Arc<Vec<u8>>>, ContentsError> {
        if let Some(Chunk::Spilled(slot)) = self.chunks.get(&index) {
            let mut data = self.buffer();
            slot.read(0, &mut data)?;
            self.admit(index, Arc::new(data))?;
        }
        Ok(match self.chunks.get_mut(&index) {
            Some(Chunk::Resident { data, touched }) => {
                *touched = true;
                Some(data)
            }
            _ => None,
        })
    }

    /// A buffer for a chunk, with whatever bytes.
    fn buffer(&self) -> Vec<u8> {
        let store = self.bound.as_ref().map(|bound| &bound.store);
        let spare = store.and_then(|store| store.spare().pop());
        spare.unwrap_or_else(|| vec![0; CHUNK_BYTES as usize])
    }

    /// Makes `data` resident as chunk `index`, after making room for it.
    fn admit(&mut self, index: u64, data: Arc<Vec<u8>>) -> Result<(), ContentsError> {
        while let Some(bound) = &self.bound
            && self.queue.len() >= bound.chunks
        {
            let store = Arc::clone(&bound.store);
            self.put_away(&store)?;
        }
        self.chunks.insert(
            index,
            Chunk::Resident {
                data,
                touched: false,
            },
        );
        self.queue.push_back(index);
        Ok(())
    }

    /// Puts away all chunks that are in memory, so that clones made from now on share them there
    /// and not here. Does nothing to unbounded contents.
    ///
    /// # Errors
    /// The spill's failure.
    pub fn put_all_away(&mut self) -> Result<(), ContentsError> {
        let Some(store) = self.bound.as_ref().map(|bound| Arc::clone(&bound.store)) else {
            return Ok(());
        };
        while !self.queue.is_empty() {
            self.put_away(&store)?;
        }
        Ok(())
    }

    /// Puts away the resident chunk that was not touched for longest (second chance).
    fn put_away(&mut self, store: &Arc<Store>) -> Result<(), ContentsError> {
        let Some(index) = self.queue.pop_front() else {
            return Ok(());
        };
        let Some(Chunk::Resident { data, touched }) = self.chunks.get_mut(&index) else {
            return Ok(());
        };
        if std::mem::take(touched) {
            self.queue.push_back(index);
            return Ok(());
        }
        match store.put(data) {
            Ok(slot) => {
                let put = Chunk::Spilled(Arc::new(slot));
                if let Some(Chunk::Resident { data, .. }) = self.chunks.insert(index, put) {
                    store.keep(data);
                }
                Ok(())
            }
            Err(source) => {
                self.queue.push_front(index);
                Err(ContentsError::Spill {
                    action: "put away",
                    source,
                })
            }
        }
    }
}

/// The part of a request that lies in one chunk.
struct Piece {
    chunk: u64,
    start: usize,
    length: usize,
}

impl Piece {
    fn is_whole(&self) -> bool {
        self.length as u64 == CHUNK_BYTES
    }

    fn range(&self) -> std::ops::Range<usize> {
        self.start..self.start + self.length
    }
}

fn pieces(offset: u64, bytes: u64) -> impl Iterator<Item = Piece> {
    let end = offset + bytes;
    let mut at = offset;
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let start = at % CHUNK_BYTES;
        let length = (end - at).min(CHUNK_BYTES - start);
        let piece = Piece {
            chunk: at / CHUNK_BYTES,
            start: start as usize,
            length: length as usize,
        };
        at += length;
        Some(piece)
    })
}

/// Whether all bytes are zero, compared a block at a time: mkfs writes hundreds of MiB of zeros.
fn is_zero(bytes: &[u8]) -> bool {
    const ZEROS: [u8; 4096] = [0; 4096];
    bytes
        .chunks(ZEROS.len())
        .all(|block| *block == ZEROS[..block.len()])
}
