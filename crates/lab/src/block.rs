//! virtio-blk (virtio 1.2, §5.2): the header of a request and the configuration space.

use crate::error::LabError;
use crate::memory::GuestMemory;
use crate::ring::Segment;
use whichfs_units::SECTOR;

/// Bytes of `struct virtio_blk_config` up to the last field used here.
pub const CONFIG_BYTES: usize = 60;
/// Byte of the configuration space that switches the write cache.
pub const CONFIG_WRITE_CACHE_AT: u32 = 32;

/// Status byte of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum BlockStatus {
    /// The request succeeded (`VIRTIO_BLK_S_OK`).
    Ok = 0,
    /// The device could not do it.
    IoError = 1,
    /// The device does not know it.
    Unsupported = 2,
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockOperation {
    /// Read the data segments from the device.
    Read,
    /// Write the data segments to the device.
    Write,
    /// Make earlier writes durable.
    Flush,
    /// Forget the ranges named in the data segments.
    Discard,
    /// Serial number of the device.
    Identify,
    /// Something this device does not offer.
    Unknown(u32),
}

/// A request, split into its parts.
#[derive(Debug)]
pub struct BlockRequest<'a> {
    /// What is asked for.
    pub operation: BlockOperation,
    /// Byte offset on the disk.
    pub offset: u64,
    /// Guest memory to read from or write to; without header and status byte.
    pub data: &'a [Segment],
    /// Guest address of the status byte.
    pub status_at: u64,
}

impl BlockRequest<'_> {
    /// Splits the segments of a chain.
    pub fn parse<'a>(
        memory: &GuestMemory,
        segments: &'a [Segment],
    ) -> Result<BlockRequest<'a>, LabError> {
        let [header, data @ .., status] = segments else {
            return Err(bad(format!("a request of {} segments", segments.len())));
        };
        if header.bytes < 16 || header.device_writes {
            return Err(bad(format!("a request header like {header:?}")));
        }
        if status.bytes < 1 || !status.device_writes {
            return Err(bad(format!("a status byte like {status:?}")));
        }
        let raw: [u8; 16] = memory.array(header.address)?;
        let sector = u64::from_le_bytes(std::array::from_fn(|i| raw[8 + i]));
        let operation = match u32::from_le_bytes(std::array::from_fn(|i| raw[i])) {
            0 => BlockOperation::Read,
            1 => BlockOperation::Write,
            4 => BlockOperation::Flush,
            8 => BlockOperation::Identify,
            11 => BlockOperation::Discard,
            other => BlockOperation::Unknown(other),
        };
        let wants_writable = matches!(operation, BlockOperation::Read | BlockOperation::Identify);
        if data.iter().any(|s| s.device_writes != wants_writable) {
            return Err(bad(format!(
                "{operation:?} with data in the wrong direction"
            )));
        }
        Ok(BlockRequest {
            operation,
            offset: sector.saturating_mul(SECTOR),
            data,
            status_at: status.address.saturating_add(u64::from(status.bytes) - 1),
        })
    }

    /// Bytes of all data segments.
    pub fn bytes(&self) -> u64 {
        self.data.iter().map(|s| u64::from(s.bytes)).sum()
    }
}

/// What a disk tells its driver.
#[derive(Clone, Copy, Debug)]
pub struct BlockGeometry {
    /// Size in bytes.
    pub bytes: u64,
    /// Most data segments in a request.
    pub segments_max: u32,
    /// Whether the device has a volatile cache: without one the kernel sends no flush.
    pub write_cache: bool,
    /// Granularity of discard in bytes; `None` where the bus passes no discard.
    pub discard_bytes: Option<u64>,
}

impl BlockGeometry {
    /// Feature bits: VERSION_1, INDIRECT_DESC, SEG_MAX, BLK_SIZE and those that the geometry has.
    pub fn features(&self) -> u64 {
        const VERSION_1: u64 = 1 << 32;
        const INDIRECT_DESC: u64 = 1 << 28;
        const SEG_MAX: u64 = 1 << 2;
        const BLK_SIZE: u64 = 1 << 6;
        const FLUSH: u64 = 1 << 9;
        const DISCARD: u64 = 1 << 13;
        let flush = if self.write_cache { FLUSH } else { 0 };
        let discard = if self.discard_bytes.is_some() {
            DISCARD
        } else {
            0
        };
        VERSION_1 | INDIRECT_DESC | SEG_MAX | BLK_SIZE | flush | discard
    }

    /// The configuration space.
    pub fn config(&self) -> [u8; CONFIG_BYTES] {
        /// As mmc_block limits a discard: what the card erases within its time-out.
        const DISCARD_SECTORS_MAX: u32 = 1 << 20;
        let mut out = [0; CONFIG_BYTES];
        let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &(self.bytes / SECTOR).to_le_bytes());
        put(12, &self.segments_max.to_le_bytes());
        put(20, &(SECTOR as u32).to_le_bytes());
        put(32, &[u8::from(self.write_cache)]);
        put(34, &1_u16.to_le_bytes());
        if let Some(granularity) = self.discard_bytes {
            put(36, &DISCARD_SECTORS_MAX.to_le_bytes());
            put(40, &1_u32.to_le_bytes());
            put(44, &((granularity / SECTOR) as u32).to_le_bytes());
        }
        out
    }
}

fn bad(what: String) -> LabError {
    LabError::protocol("virtio", what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::memory;

    fn segment(address: u64, bytes: u32, device_writes: bool) -> Segment {
        Segment {
            address,
            bytes,
            device_writes,
        }
    }

    #[test]
    fn a_write_is_split_into_header_data_and_status() {
        let mut memory = memory(0, 4096);
        let header = [&1_u32.to_le_bytes()[..], &[0; 4], &8_u64.to_le_bytes()].concat();
        memory
            .slice_mut(0, 16)
            .expect("in memory")
            .copy_from_slice(&header);
        let segments = [
            segment(0, 16, false),
            segment(512, 1024, false),
            segment(64, 1, true),
        ];
        let request = BlockRequest::parse(&memory, &segments).expect("valid");
        assert_eq!(request.operation, BlockOperation::Write);
        assert_eq!((request.offset, request.bytes()), (4096, 1024));
        assert_eq!(request.status_at, 64);
    }

    #[test]
    fn data_in_the_wrong_direction_is_an_error() {
        let memory = memory(0, 4096);
        let segments = [
            segment(0, 16, false),
            segment(512, 512, false),
            segment(64, 1, true),
        ];
        assert!(
            BlockRequest::parse(&memory, &segments).is_err(),
            "a read of readable data"
        );
    }

    #[test]
    fn a_request_without_a_status_byte_is_an_error() {
        let memory = memory(0, 4096);
        assert!(BlockRequest::parse(&memory, &[segment(0, 16, false)]).is_err());
        let segments = [segment(0, 16, false), segment(64, 1, false)];
        assert!(BlockRequest::parse(&memory, &segments).is_err());
    }

    #[test]
    fn a_plain_sd_card_offers_neither_flush_nor_discard() {
        let geometry = BlockGeometry {
            bytes: 1 << 30,
            segments_max: 128,
            write_cache: false,
            discard_bytes: None,
        };
        assert_eq!(geometry.features() & (1 << 9 | 1 << 13), 0);
        assert_eq!(geometry.config()[..8], (1_u64 << 21).to_le_bytes());
    }
}
