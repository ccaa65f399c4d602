//! A modelled card behind a virtio disk: timing from the card, bytes from its contents.

use crate::block::{BlockGeometry, BlockOperation, BlockRequest, BlockStatus};
use crate::memory::GuestMemory;
use crate::trace::Trace;
use whichfs_card::{
    Card, CardStatus, Completion, Contents, ContentsError, Defects, Logged, Op, Request,
};
use whichfs_trial::{DeviceFigures, Series, Slot};
use whichfs_units::{Nanos, SECTOR};

/// A disk of a guest.
pub struct Disk {
    /// The card, in whatever state it begins.
    pub card: Card,
    /// The card's bytes.
    pub contents: Contents,
    /// Where the disk begins on the card, in bytes: the partition's offset.
    pub offset: u64,
    /// How the disk presents itself.
    pub geometry: BlockGeometry,
    /// Time that the host's controller and driver add to each request.
    pub request_cost: Nanos,
    /// Requests that change the card, with their data, if they are to be kept.
    pub log: Option<Vec<Logged>>,
    /// What the card fails to do; `None` for a good one.
    pub defects: Option<Defects>,
    /// When a defect failed a request.
    pub refused: Vec<Nanos>,
    /// Reads are answered at once, past the card: nobody times them ([`Event::Untimed`]).
    ///
    /// [`Event::Untimed`]: whichfs_trial::Event::Untimed
    pub untimed: bool,
    /// What the card did over time.
    pub series: Series,
}

/// Virtual instant at which a request is done, its status, and bytes the device wrote.
pub(crate) struct Served {
    pub at: Nanos,
    pub status: BlockStatus,
    pub written: u32,
}

impl Disk {
    /// Serves one request that arrives at `now`.
    pub(crate) fn serve(
        &mut self,
        now: Nanos,
        request: &BlockRequest,
        memory: &mut GuestMemory,
        trace: &mut Trace,
    ) -> Result<Served, String> {
        let cost = self.request_cost;
        match request.operation {
            BlockOperation::Read | BlockOperation::Write => {
                if !self.holds(request.offset, request.bytes()) {
                    return Ok(refuse(now, BlockStatus::IoError));
                }
                let reads = request.operation == BlockOperation::Read;
                let op = if reads { Op::Read } else { Op::Write };
                if self.fails(now, op, request.offset, request.bytes()) {
                    return Ok(refuse(now + cost, BlockStatus::IoError));
                }
                let done = match reads && self.untimed {
                    true => (at_once(now), false),
                    false => self.submit(now, op, request.offset, request.bytes(), trace),
                };
                if done.0.status != CardStatus::Ok {
                    return Ok(refuse(done.0.at, BlockStatus::IoError));
                }
                self.transfer(request, memory, reads)?;
                if !reads {
                    let data = self.written(request)?;
                    self.keep(now, &done, Op::Write, request.offset, data);
                }
                Ok(Served {
                    at: done.0.at,
                    status: BlockStatus::Ok,
                    written: if reads { request.bytes() as u32 } else { 0 },
                })
            }
            BlockOperation::Flush => {
                if self.fails(now, Op::Flush, 0, 0) {
                    return Ok(refuse(now + cost, BlockStatus::IoError));
                }
                let done = self.submit(now, Op::Flush, 0, 0, trace);
                self.keep(now, &done, Op::Flush, 0, (0, Box::default()));
                Ok(refuse(done.0.at, BlockStatus::Ok))
            }
            BlockOperation::Discard => {
                let mut at = now;
                for (offset, bytes) in discard_ranges(request, memory)? {
                    if !self.holds(offset, bytes) {
                        return Ok(refuse(now, BlockStatus::IoError));
                    }
                    if self.fails(now, Op::Discard, offset, bytes) {
                        return Ok(refuse(at + cost, BlockStatus::IoError));
                    }
                    let done = self.submit(now, Op::Discard, offset, bytes, trace);
                    at = done.0.at;
                    self.keep(now, &done, Op::Discard, offset, (bytes, Box::default()));
                    let forgotten = self.contents.discard(self.offset + offset, bytes);
                    forgotten.map_err(not_kept)?;
                }
                Ok(refuse(at, BlockStatus::Ok))
            }
            BlockOperation::Identify => {
                let id = b"whichfs-card";
                let Some(first) = request
                    .data
                    .first()
                    .filter(|s| s.bytes as usize >= id.len())
                else {
                    return Ok(refuse(now, BlockStatus::IoError));
                };
                let slice = memory
                    .slice_mut(first.address, first.bytes as usize)
                    .map_err(|e| e.to_string())?;
                slice.fill(0);
                slice[..id.len()].copy_from_slice(id);
                Ok(refuse(now, BlockStatus::Ok))
            }
            BlockOperation::Unknown(_) => Ok(refuse(now, BlockStatus::Unsupported)),
        }
    }

    /// Has the card serve a request at `offset` of the disk: when it is done, and whether AUs were
    /// copied for it.
    fn submit(
        &mut self,
        now: Nanos,
        op: Op,
        offset: u64,
        bytes: u64,
        trace: &mut Trace,
    ) -> (Completion, bool) {
        let request = Request {
            op,
            offset: self.offset + offset,
            bytes,
            fua: false,
        };
        let stats = self.card.stats();
        let (copies, programmed) = (stats.au_copies, stats.programmed_bytes);
        let done = self.card.submit(now + self.request_cost, &request);
        trace.request(now, &request, done.at);
        let (stats, open) = (self.card.stats(), self.card.open_aus());
        let written = op == Op::Write;
        self.series.open_limit = open.map(|open| open.limit);
        let slot = Slot {
            open_aus: open.map_or(0, |open| open.now),
            writes: u64::from(written),
            write_bytes: if written { bytes } else { 0 },
            programmed_bytes: stats.programmed_bytes - programmed,
            au_copies: stats.au_copies - copies,
        };
        self.series.record(now, slot);
        (done, stats.au_copies > copies)
    }

    /// Adds a request to the log, if one is kept: its length and data.
    fn keep(
        &mut self,
        arrived: Nanos,
        (done, collected): &(Completion, bool),
        op: Op,
        offset: u64,
        (bytes, data): (u64, Box<[u8]>),
    ) {
        if let Some(log) = &mut self.log {
            log.push(Logged {
                op,
                offset: self.offset + offset,
                bytes,
                arrived,
                done: done.at,
                collected: *collected,
                data,
            });
        }
    }

    /// What a write has just written, if a log is kept: its length and the bytes.
    fn written(&mut self, request: &BlockRequest) -> Result<(u64, Box<[u8]>), String> {
        let mut data = Vec::new();
        if self.log.is_some() {
            data.resize(request.bytes() as usize, 0);
            let at = self.offset + request.offset;
            self.contents.read(at, &mut data).map_err(not_kept)?;
        }
        Ok((request.bytes(), data.into_boxed_slice()))
    }

    /// What the card has done since it was made.
    pub fn figures(&self) -> DeviceFigures {
        let s = self.card.stats();
        DeviceFigures {
            reads: s.reads,
            writes: s.writes,
            discards: s.discards,
            flushes: s.flushes,
            read_bytes: s.read_bytes,
            write_bytes: s.write_bytes,
            discard_bytes: s.discard_bytes,
            busy: s.busy,
            programmed_bytes: s.programmed_bytes,
            erases: s.erases,
            au_copies: s.au_copies,
            write_sizes: s.write_size_buckets().collect(),
            read_sizes: std::collections::BTreeMap::new(),
        }
    }

    fn holds(&self, offset: u64, bytes: u64) -> bool {
        offset
            .checked_add(bytes)
            .is_some_and(|end| end <= self.geometry.bytes)
    }

    /// Whether a defect of the card fails this request at `now`, at `offset` of the disk.
    fn fails(&mut self, now: Nanos, op: Op, offset: u64, bytes: u64) -> bool {
        let at = self.offset + offset;
        let defects = self.defects.as_mut();
        let fails = defects.is_some_and(|defects| !defects.admits(op, at, bytes));
        self.refused.extend(fails.then_some(now));
        fails
    }

    fn transfer(
        &mut self,
        request: &BlockRequest,
        memory: &mut GuestMemory,
        reads: bool,
    ) -> Result<(), String> {
        let mut at = self.offset + request.offset;
        for segment in request.data {
            let bytes = segment.bytes as usize;
            if reads {
                let out = memory
                    .slice_mut(segment.address, bytes)
                    .map_err(|e| e.to_string())?;
                self.contents.read(at, out).map_err(not_kept)?;
                if let Some(defects) = &mut self.defects {
                    defects.corrupt(at, out);
                }
            } else {
                let data = memory
                    .slice(segment.address, bytes)
                    .map_err(|e| e.to_string())?;
                self.contents.write(at, data).map_err(not_kept)?;
            }
            at += bytes as u64;
        }
        Ok(())
    }
}

/// Why contents were not kept; whoever keeps them says where and what to do about it.
fn not_kept(error: ContentsError) -> String {
    error.to_string()
}

/// A request that takes no time.
fn at_once(now: Nanos) -> Completion {
    Completion {
        at: now,
        status: CardStatus::Ok,
    }
}

/// A served request without data for the guest.
fn refuse(at: Nanos, status: BlockStatus) -> Served {
    Served {
        at,
        status,
        written: 0,
    }
}

/// The `(offset, bytes)` ranges of a discard request.
pub(crate) fn discard_ranges(
    request: &BlockRequest,
    memory: &GuestMemory,
) -> Result<Vec<(u64, u64)>, String> {
    const RANGE_BYTES: u64 = 16;
    let mut ranges = Vec::new();
    for segment in request.data {
        for i in 0..u64::from(segment.bytes) / RANGE_BYTES {
            let raw: [u8; 16] = memory
                .array(segment.address.saturating_add(i * RANGE_BYTES))
                .map_err(|e| e.to_string())?;
            let sector = u64::from_le_bytes(std::array::from_fn(|i| raw[i]));
            let sectors = u32::from_le_bytes(std::array::from_fn(|i| raw[8 + i]));
            ranges.push((sector.saturating_mul(SECTOR), u64::from(sectors) * SECTOR));
        }
    }
    Ok(ranges)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::memory::tests::memory;
    use crate::ring::Segment;
    use whichfs_card::{Profile, Refuses, Tries, builtin};
    use whichfs_units::MIB;

    const OFFSET: u64 = 4 * MIB;

    fn disk(defects: Option<Defects>) -> Disk {
        let (name, text) = builtin()[0];
        let profile = Profile::parse(name, text).unwrap();
        Disk {
            card: Card::fresh(&profile),
            contents: Contents::new(profile.capacity_bytes()),
            offset: OFFSET,
            geometry: BlockGeometry {
                bytes: 64 * MIB,
                segments_max: 128,
                write_cache: true,
                discard_bytes: None,
            },
            request_cost: Nanos(1000),
            log: Some(Vec::new()),
            defects,
            refused: Vec::new(),
            untimed: false,
            series: Series::default(),
        }
    }

    /// A request for 1 KiB at the disk's second sector: its status, and what a read gives.
    fn serve(disk: &mut Disk, operation: BlockOperation) -> (BlockStatus, Vec<u8>) {
        let mut memory = memory(0, 4096);
        let data = [Segment {
            address: 1024,
            bytes: 1024,
            device_writes: operation == BlockOperation::Read,
        }];
        let request = BlockRequest {
            operation,
            offset: SECTOR,
            data: &data[..usize::from(operation != BlockOperation::Flush)],
            status_at: 0,
        };
        let served = disk
            .serve(Nanos(0), &request, &mut memory, &mut Trace::default())
            .unwrap();
        assert!(served.at > Nanos(0), "an error takes time too");
        let bytes = memory.slice_mut(1024, 1024).unwrap().to_vec();
        (served.status, bytes)
    }

    #[test]
    fn a_card_that_refuses_answers_with_errors_and_changes_nothing() {
        let refusing = |refuses| Defects {
            refuses,
            ..Defects::default()
        };
        let mut disk = disk(Some(refusing(Refuses::Writes)));
        assert_eq!(
            serve(&mut disk, BlockOperation::Write).0,
            BlockStatus::IoError
        );
        assert_eq!(serve(&mut disk, BlockOperation::Read).0, BlockStatus::Ok);
        assert_eq!(serve(&mut disk, BlockOperation::Flush).0, BlockStatus::Ok);
        assert_eq!(disk.figures().writes, 0);
        assert_eq!(disk.log.as_ref().unwrap().len(), 1, "the flush alone");
        disk.defects = Some(refusing(Refuses::All));
        for operation in [BlockOperation::Read, BlockOperation::Flush] {
            assert_eq!(serve(&mut disk, operation).0, BlockStatus::IoError);
        }
    }

    #[test]
    fn reads_that_nobody_times_take_no_time_and_are_not_the_cards_work() {
        let mut disk = disk(None);
        disk.untimed = true;
        let mut memory = memory(0, 4096);
        let mut at = |operation| {
            let data = [Segment {
                address: 1024,
                bytes: 1024,
                device_writes: operation == BlockOperation::Read,
            }];
            let request = BlockRequest {
                operation,
                offset: SECTOR,
                data: &data,
                status_at: 0,
            };
            let trace = &mut Trace::default();
            (disk.serve(Nanos(5), &request, &mut memory, trace).unwrap()).at
        };
        assert!(at(BlockOperation::Write) > Nanos(5));
        assert_eq!(at(BlockOperation::Read), Nanos(5));
        assert_eq!((disk.figures().reads, disk.figures().writes), (0, 1));
    }

    #[test]
    fn the_series_has_what_the_figures_have_and_the_open_aus() {
        let mut disk = disk(None);
        serve(&mut disk, BlockOperation::Read);
        assert_eq!(disk.series.slots[0].writes, 0);
        serve(&mut disk, BlockOperation::Write);
        serve(&mut disk, BlockOperation::Flush);
        let (figures, slot) = (disk.figures(), disk.series.slots[0]);
        assert_eq!((slot.writes, slot.write_bytes), (1, figures.write_bytes));
        assert_eq!(slot.programmed_bytes, figures.programmed_bytes);
        let open = disk.card.open_aus();
        assert_eq!(disk.series.open_limit, open.map(|open| open.limit));
        assert_eq!(slot.open_aus, open.map_or(0, |open| open.now));
    }

    #[test]
    fn places_of_defects_are_those_of_the_card() {
        let bad = OFFSET + 2 * SECTOR;
        let mut disk = disk(Some(Defects {
            unreadable: [(bad, Tries::Fail)].into(),
            flipped: [(bad, 0)].into(),
            ..Defects::default()
        }));
        assert_eq!(
            serve(&mut disk, BlockOperation::Read).0,
            BlockStatus::IoError
        );
        assert_eq!(serve(&mut disk, BlockOperation::Write).0, BlockStatus::Ok);
        let (status, bytes) = serve(&mut disk, BlockOperation::Read);
        assert_eq!((status, bytes[512]), (BlockStatus::Ok, 1));
        assert_eq!(disk.defects.unwrap().failed, 1);
        assert_eq!(disk.refused, [Nanos(0)]);
    }
}
