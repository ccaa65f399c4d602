//! The control disk: the job goes in, the agent's events come out.
//!
//! A reserved virtio disk beside the cards. Reading from offset zero gives a header
//! (magic, length) and the job as JSON; each write request is one event. Requests are
//! answered at once, so an event costs no virtual time on the device, and events and
//! card requests have one order.

use crate::block::{BlockGeometry, BlockOperation, BlockRequest, BlockStatus};
use crate::error::LabError;
use crate::memory::GuestMemory;
use whichfs_trial::{Event, MARK, expand};

/// First eight bytes of the control disk, little-endian.
pub const MAGIC: u64 = 0x7766_7363_746c_0001;
/// Where the job begins.
pub const JOB_AT: u64 = 512;
/// Most bytes of one event; a chain of descriptors could name the same memory many times.
const EVENT_BYTES_MAX: u64 = 1 << 20;
/// Size of the disk: room for a job and for the place where events are written.
pub const DISK_BYTES: u64 = 64 << 20;

/// State of the control disk.
pub struct Control {
    image: Vec<u8>,
}

impl Control {
    /// A control disk that hands out `job`.
    pub fn new(job: &[u8]) -> Control {
        let mut image = vec![0; JOB_AT as usize];
        image[..8].copy_from_slice(&MAGIC.to_le_bytes());
        image[8..16].copy_from_slice(&(job.len() as u64).to_le_bytes());
        image.extend_from_slice(job);
        Control { image }
    }

    /// How the disk presents itself.
    pub fn geometry() -> BlockGeometry {
        BlockGeometry {
            bytes: DISK_BYTES,
            segments_max: 254,
            write_cache: false,
            discard_bytes: None,
        }
    }

    /// Serves one request; a write yields the event that it carries.
    pub fn serve(
        &self,
        request: &BlockRequest,
        memory: &mut GuestMemory,
    ) -> Result<(BlockStatus, u32, Option<Event>), LabError> {
        match request.operation {
            BlockOperation::Read => {
                self.read(request, memory)?;
                Ok((BlockStatus::Ok, request.bytes() as u32, None))
            }
            BlockOperation::Write => Ok((BlockStatus::Ok, 0, Some(event(request, memory)?))),
            BlockOperation::Flush => Ok((BlockStatus::Ok, 0, None)),
            _ => Ok((BlockStatus::Unsupported, 0, None)),
        }
    }

    fn read(&self, request: &BlockRequest, memory: &mut GuestMemory) -> Result<(), LabError> {
        let mut at = usize::try_from(request.offset).unwrap_or(usize::MAX);
        for segment in request.data {
            let out = memory.slice_mut(segment.address, segment.bytes as usize)?;
            let have = self.image.get(at..).unwrap_or_default();
            let take = have.len().min(out.len());
            out[..take].copy_from_slice(&have[..take]);
            out[take..].fill(0);
            at = at.saturating_add(out.len());
        }
        Ok(())
    }
}

/// The event in a write request: JSON, or what an inspection found in a form of its own, padded
/// with zeros.
fn event(request: &BlockRequest, memory: &GuestMemory) -> Result<Event, LabError> {
    if request.bytes() > EVENT_BYTES_MAX {
        let what = format!(
            "an event of {} bytes: at most {EVENT_BYTES_MAX}",
            request.bytes()
        );
        return Err(LabError::protocol("control", what));
    }
    let mut text = Vec::with_capacity(request.bytes() as usize);
    for segment in request.data {
        text.extend_from_slice(memory.slice(segment.address, segment.bytes as usize)?);
    }
    if text.first() == Some(&MARK) {
        let garbled = || LabError::protocol("control", "what was found is garbled");
        return expand(&text).ok_or_else(garbled);
    }
    let end = text.iter().position(|&b| b == 0).unwrap_or(text.len());
    serde_json::from_slice(&text[..end]).map_err(|error| {
        let shown = String::from_utf8_lossy(&text[..end.min(200)]).into_owned();
        LabError::protocol(
            "control",
            format!("an event that is not one ({error}): {shown}"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::memory;
    use crate::ring::Segment;
    use whichfs_trial::compact;

    fn data(address: u64, bytes: u32, device_writes: bool) -> [Segment; 1] {
        [Segment {
            address,
            bytes,
            device_writes,
        }]
    }

    fn request(operation: BlockOperation, offset: u64, data: &[Segment]) -> BlockRequest<'_> {
        BlockRequest {
            operation,
            offset,
            data,
            status_at: 0,
        }
    }

    #[test]
    fn the_job_is_read_back_with_its_length() {
        let control = Control::new(b"{\"seed\":1}");
        let mut memory = memory(0, 8192);
        let segments = data(0, 1024, true);
        control
            .serve(&request(BlockOperation::Read, 0, &segments), &mut memory)
            .expect("valid");
        assert_eq!(memory.array(0).expect("in memory"), MAGIC.to_le_bytes());
        assert_eq!(memory.array(8).expect("in memory"), 10_u64.to_le_bytes());
        assert_eq!(memory.slice(512, 11).expect("in memory"), b"{\"seed\":1}\0");
    }

    #[test]
    fn a_write_is_an_event_and_rubbish_is_an_error() {
        let control = Control::new(b"");
        let mut memory = memory(0, 8192);
        let text = br#"{"event":"done"}"#;
        memory
            .slice_mut(512, text.len())
            .expect("in memory")
            .copy_from_slice(text);
        let segments = data(512, 512, false);
        let write = request(BlockOperation::Write, 1 << 20, &segments);
        let (_, _, event) = control.serve(&write, &mut memory).expect("valid");
        assert_eq!(event, Some(Event::Done));
        memory.slice_mut(512, 1).expect("in memory")[0] = b'[';
        assert!(control.serve(&write, &mut memory).is_err());
    }

    #[test]
    fn what_was_found_is_an_event_and_rubbish_after_its_mark_an_error() {
        let control = Control::new(b"");
        let mut memory = memory(0, 8192);
        let found = Event::Found {
            entries: Vec::new(),
        };
        let bytes = compact(&found).expect("has such a form");
        let place = memory.slice_mut(512, bytes.len()).expect("in memory");
        place.copy_from_slice(&bytes);
        let segments = data(512, 512, false);
        let write = request(BlockOperation::Write, 1 << 20, &segments);
        let (_, _, event) = control.serve(&write, &mut memory).expect("valid");
        assert_eq!(event, Some(found));
        memory.slice_mut(512, 2).expect("in memory")[1] += 1;
        assert!(control.serve(&write, &mut memory).is_err());
    }
}
