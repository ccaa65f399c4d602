//! A modelled card behind a virtio disk: a guest's requests and memory on a stack of block devices.

use crate::block::{BlockGeometry, BlockOperation, BlockRequest, BlockStatus};
use crate::memory::GuestMemory;
use crate::trace::Trace;
use whichfs_blockdev::{
    BlockDevice, Defective, Defects, LiveFault, LiveFaults, Logged, Metered, Recording, Timing,
    Untimed, figures,
};
use whichfs_card::{Card, CardStatus, Completion, Contents, ContentsError, Request, RequestKind};
use whichfs_trial::{DeviceFigures, Series};
use whichfs_units::{Nanos, SECTOR};

/// What a request goes through, from the guest inwards. What is refused or untimed is neither kept
/// nor the card's work.
type Stack = Defective<Untimed<Recording<Metered<Timing>>>>;

/// A disk of a guest.
pub struct Disk {
    device: Stack,
    /// Where the disk begins on the card, in bytes: the partition's offset.
    pub offset: u64,
    /// How the disk presents itself.
    pub geometry: BlockGeometry,
}

/// Virtual instant at which a request is done, its status, and bytes the device wrote.
pub(crate) struct Served {
    pub at: Nanos,
    pub status: BlockStatus,
    pub written: u32,
}

impl Disk {
    /// A disk on `card`, in whatever state it begins, with its bytes. The host's controller and
    /// driver add `request_cost` to each request.
    pub fn new(
        card: Card,
        contents: Contents,
        offset: u64,
        geometry: BlockGeometry,
        request_cost: Nanos,
    ) -> Disk {
        let card = Timing {
            card,
            contents,
            request_cost,
        };
        let kept = Recording::new(Metered::new(card));
        Disk {
            device: Defective::new(Untimed::new(kept), request_cost),
            offset,
            geometry,
        }
    }

    /// A disk with the card, contents and place of this one, and as new in all else.
    #[must_use]
    pub fn twin(&self) -> Disk {
        let Timing {
            card,
            contents,
            request_cost,
        } = self.timing().clone();
        Disk::new(card, contents, self.offset, self.geometry, request_cost)
    }

    /// The same disk with other bytes.
    #[must_use]
    pub fn with_contents(mut self, contents: Contents) -> Disk {
        *self.contents_mut() = contents;
        self
    }

    /// The same disk with defects, or without any.
    #[must_use]
    pub fn with_defects(mut self, defects: Option<Defects>) -> Disk {
        self.device.defects = defects;
        self
    }

    /// The same disk, which these faults befall while it is used.
    #[must_use]
    pub fn with_live_faults(mut self, faults: Vec<LiveFault>) -> Disk {
        self.device.live.faults = faults;
        self
    }

    /// The live faults, and what they have done.
    pub fn live_faults(&self) -> &LiveFaults {
        &self.device.live
    }

    /// The same disk, which keeps the requests that change the card, with their data.
    #[must_use]
    pub fn recording(mut self) -> Disk {
        self.device.below.below.log = Some(Vec::new());
        self
    }

    /// The requests that changed the card since the disk began to keep them.
    pub fn into_log(self) -> Vec<Logged> {
        self.device.below.below.log.unwrap_or_default()
    }

    /// The card in its state.
    pub fn card(&self) -> &Card {
        &self.timing().card
    }

    /// The card's bytes.
    pub fn contents(&self) -> &Contents {
        &self.timing().contents
    }

    /// The card's bytes, to be read or changed.
    pub fn contents_mut(&mut self) -> &mut Contents {
        &mut self.device.below.below.below.below.contents
    }

    /// The card's bytes alone.
    pub fn into_contents(self) -> Contents {
        self.device.below.below.below.below.contents
    }

    /// What the card fails to do, and has failed to do; `None` for a good one.
    pub fn defects(&self) -> Option<&Defects> {
        self.device.defects.as_ref()
    }

    /// When a defect failed a request.
    pub fn refused(&self) -> &[Nanos] {
        &self.device.refused
    }

    /// What the card did over time.
    pub fn series(&self) -> &Series {
        &self.device.below.below.below.series
    }

    /// What the card has done since it was made.
    pub fn figures(&self) -> DeviceFigures {
        figures(&self.device)
    }

    /// Has reads answered at once, past the card, or no longer ([`Event::Untimed`]).
    ///
    /// [`Event::Untimed`]: whichfs_trial::Event::Untimed
    pub(crate) fn set_untimed(&mut self, untimed: bool) {
        self.device.below.on = untimed;
    }

    /// Serves one request that arrives at `now`.
    pub(crate) fn serve(
        &mut self,
        now: Nanos,
        request: &BlockRequest,
        memory: &mut GuestMemory,
        trace: &mut Trace,
    ) -> Result<Served, String> {
        match request.operation {
            BlockOperation::Read | BlockOperation::Write => {
                if !self.holds(request.offset, request.bytes()) {
                    return Ok(refuse(now, BlockStatus::IoError));
                }
                let reads = request.operation == BlockOperation::Read;
                let op = if reads {
                    RequestKind::Read
                } else {
                    RequestKind::Write
                };
                let done = self.submit(now, op, request.offset, request.bytes(), trace);
                if done.status != CardStatus::Ok {
                    return Ok(refuse(done.at, BlockStatus::IoError));
                }
                self.transfer(request, memory, reads)?;
                Ok(Served {
                    at: done.at,
                    status: BlockStatus::Ok,
                    written: if reads { request.bytes() as u32 } else { 0 },
                })
            }
            BlockOperation::Flush => {
                let done = self.submit(now, RequestKind::Flush, 0, 0, trace);
                Ok(refuse(done.at, status(&done)))
            }
            BlockOperation::Discard => {
                let mut at = now;
                for (offset, bytes) in discard_ranges(request, memory)? {
                    if !self.holds(offset, bytes) {
                        return Ok(refuse(now, BlockStatus::IoError));
                    }
                    let done = self.submit(now, RequestKind::Discard, offset, bytes, trace);
                    at = at.max(done.at);
                    if done.status != CardStatus::Ok {
                        return Ok(refuse(at, BlockStatus::IoError));
                    }
                    let forgotten = self.device.discard(self.offset + offset, bytes);
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

    /// When and how a request at `offset` of the disk ends; the card's work is traced.
    fn submit(
        &mut self,
        now: Nanos,
        op: RequestKind,
        offset: u64,
        bytes: u64,
        trace: &mut Trace,
    ) -> Completion {
        let request = Request {
            op,
            offset: self.offset + offset,
            bytes,
            fua: false,
        };
        let done = self.device.submit(now, &request);
        let is_untimed = op == RequestKind::Read && self.device.below.on;
        if done.status != CardStatus::Failed && !is_untimed {
            trace.request(now, &request, done.at);
        }
        done
    }

    fn timing(&self) -> &Timing {
        &self.device.below.below.below.below
    }

    fn holds(&self, offset: u64, bytes: u64) -> bool {
        offset
            .checked_add(bytes)
            .is_some_and(|end| end <= self.geometry.bytes)
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
                self.device.read(at, out).map_err(not_kept)?;
            } else {
                let data = memory
                    .slice(segment.address, bytes)
                    .map_err(|e| e.to_string())?;
                self.device.write(at, data).map_err(not_kept)?;
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

/// The guest's status of a completion.
fn status(done: &Completion) -> BlockStatus {
    match done.status {
        CardStatus::Ok => BlockStatus::Ok,
        _ => BlockStatus::IoError,
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
fn discard_ranges(request: &BlockRequest, memory: &GuestMemory) -> Result<Vec<(u64, u64)>, String> {
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
    use whichfs_blockdev::{Refuses, Tries};
    use whichfs_card::{Profile, builtin};
    use whichfs_units::MIB;

    const OFFSET: u64 = 4 * MIB;

    fn disk(defects: Option<Defects>) -> Disk {
        let (name, text) = builtin()[0];
        let profile = Profile::parse(name, text).unwrap();
        let geometry = BlockGeometry {
            bytes: 64 * MIB,
            segments_max: 128,
            write_cache: true,
            discard_bytes: None,
        };
        let contents = Contents::new(profile.capacity_bytes());
        let card = Card::fresh(&profile);
        let disk = Disk::new(card, contents, OFFSET, geometry, Nanos(1000));
        disk.with_defects(defects).recording()
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
        let mut disk = disk.with_defects(Some(refusing(Refuses::All)));
        for operation in [BlockOperation::Read, BlockOperation::Flush] {
            assert_eq!(serve(&mut disk, operation).0, BlockStatus::IoError);
        }
        assert_eq!(disk.into_log().len(), 1, "the flush alone");
    }

    #[test]
    fn reads_that_nobody_times_take_no_time_and_are_not_the_cards_work() {
        let mut disk = disk(None);
        disk.set_untimed(true);
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
        assert_eq!(disk.series().slots[0].writes, 0);
        serve(&mut disk, BlockOperation::Write);
        serve(&mut disk, BlockOperation::Flush);
        let (figures, slot) = (disk.figures(), disk.series().slots[0]);
        assert_eq!((slot.writes, slot.write_bytes), (1, figures.write_bytes));
        assert_eq!(slot.programmed_bytes, figures.programmed_bytes);
        let open = disk.card().open_aus();
        assert_eq!(disk.series().open_limit, open.map(|open| open.limit));
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
        assert_eq!(disk.defects().unwrap().failed, 1);
        assert_eq!(disk.refused(), [Nanos(0)]);
    }
}
