//! Framing of the vhost-user protocol, as `arch/um/drivers/virtio_uml.c` speaks it.
//!
//! A header of 12 bytes (request, flags, size of payload) and a payload, native byte
//! order; file descriptors come beside it. The rust-vmm crates name the in-band
//! notifications that the lab's ordering depends on but do not handle them, hence
//! this framing of ours.

use crate::error::LabError;

/// Every message begins with request, flags and payload size, 4 bytes each.
pub const HEADER_BYTES: usize = 12;
/// The largest payload accepted: a GET_CONFIG of 512 bytes fits twice.
pub const PAYLOAD_BYTES_MAX: usize = 1024;
/// A memory table has at most this many regions (virtio_uml sends one or two).
pub const REGIONS_MAX: usize = 2;

const VERSION: u32 = 1;
const FLAG_REPLY: u32 = 1 << 2;
const FLAG_NEED_REPLY: u32 = 1 << 3;

/// Feature bit of the transport: protocol features can be negotiated.
pub const F_PROTOCOL_FEATURES: u64 = 1 << 30;
/// Protocol features: REPLY_ACK, SLAVE_REQ, CONFIG, INBAND_NOTIFICATIONS.
pub const PROTOCOL_FEATURES: u64 = 1 << 3 | 1 << 5 | 1 << 9 | 1 << 14;

/// Header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Request code.
    pub request: u32,
    /// Version and reply flags.
    pub flags: u32,
    /// Bytes of payload that follow.
    pub size: u32,
}

impl Header {
    /// Reads a header and checks version and size.
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Header, LabError> {
        let word = |at: usize| u32::from_ne_bytes(std::array::from_fn(|i| bytes[at + i]));
        let header = Header {
            request: word(0),
            flags: word(4),
            size: word(8),
        };
        if header.flags & 3 != VERSION {
            return Err(bad(format!("version {} instead of 1", header.flags & 3)));
        }
        if header.size as usize > PAYLOAD_BYTES_MAX {
            return Err(bad(format!("a payload of {} bytes", header.size)));
        }
        Ok(header)
    }

    /// The bytes on the wire.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut out = [0; HEADER_BYTES];
        out[..4].copy_from_slice(&self.request.to_ne_bytes());
        out[4..8].copy_from_slice(&self.flags.to_ne_bytes());
        out[8..].copy_from_slice(&self.size.to_ne_bytes());
        out
    }

    /// Whether the sender waits for a status word.
    pub fn wants_reply(&self) -> bool {
        self.flags & FLAG_NEED_REPLY != 0
    }
}

/// One region of the guest's memory, backed by a file descriptor sent beside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Region {
    /// Address in the guest's physical memory.
    pub guest_address: u64,
    /// Length of the region in bytes.
    pub bytes: u64,
    /// Offset of the region in its file.
    pub file_offset: u64,
}

/// Where the three parts of a ring are, in guest addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingAddress {
    /// Descriptor table.
    pub descriptors: u64,
    /// Used ring.
    pub used: u64,
    /// Available ring.
    pub available: u64,
}

/// A request of the guest, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuestRequest {
    /// Which virtio features does the device have?
    GetFeatures,
    /// These features are used.
    SetFeatures(u64),
    /// Begin of a session.
    SetOwner,
    /// The guest's memory.
    SetMemTable(Vec<Region>),
    /// Entries of ring `index`.
    SetVringNum(u32, u32),
    /// Addresses of ring `index`.
    SetVringAddr(u32, RingAddress),
    /// First available index of ring `index`.
    SetVringBase(u32, u32),
    /// Which protocol features does the device have?
    GetProtocolFeatures,
    /// These protocol features are used.
    SetProtocolFeatures(u64),
    /// Ring `index` is enabled or not.
    SetVringEnable(u32, bool),
    /// The channel for requests of the device comes as a file descriptor.
    SetBackendChannel,
    /// Read `size` bytes of the configuration space at `offset`.
    GetConfig {
        /// First byte.
        offset: u32,
        /// Bytes wanted.
        size: u32,
    },
    /// Write to the configuration space (the write-cache switch).
    SetConfig {
        /// First byte.
        offset: u32,
        /// What is written from there on.
        bytes: Vec<u8>,
    },
    /// Ring `index` has new entries.
    Kick(u32),
}

impl GuestRequest {
    /// Interprets the payload of a message with header `header`.
    pub fn decode(header: &Header, payload: &[u8]) -> Result<GuestRequest, LabError> {
        let fields = Fields(payload);
        Ok(match header.request {
            1 => GuestRequest::GetFeatures,
            2 => GuestRequest::SetFeatures(fields.u64(0)?),
            3 => GuestRequest::SetOwner,
            5 => GuestRequest::SetMemTable(regions(&fields)?),
            8 => GuestRequest::SetVringNum(fields.u32(0)?, fields.u32(4)?),
            9 => GuestRequest::SetVringAddr(
                fields.u32(0)?,
                RingAddress {
                    descriptors: fields.u64(8)?,
                    used: fields.u64(16)?,
                    available: fields.u64(24)?,
                },
            ),
            10 => GuestRequest::SetVringBase(fields.u32(0)?, fields.u32(4)?),
            15 => GuestRequest::GetProtocolFeatures,
            16 => GuestRequest::SetProtocolFeatures(fields.u64(0)?),
            18 => GuestRequest::SetVringEnable(fields.u32(0)?, fields.u32(4)? != 0),
            21 => GuestRequest::SetBackendChannel,
            24 => GuestRequest::GetConfig {
                offset: fields.u32(0)?,
                size: fields.u32(4)?,
            },
            25 => set_config(&fields)?,
            35 => GuestRequest::Kick(fields.u32(0)?),
            other => return Err(bad(format!("request {other} is not known"))),
        })
    }
}

/// A reply to request `request` that carries `payload`.
pub fn reply(request: u32, payload: &[u8]) -> Vec<u8> {
    let header = Header {
        request,
        flags: VERSION | FLAG_REPLY,
        size: payload.len() as u32,
    };
    [&header.encode()[..], payload].concat()
}

/// The in-band completion notification of ring `index`, to be answered.
pub fn call(index: u32) -> [u8; HEADER_BYTES + 8] {
    const VRING_CALL: u32 = 4;
    let header = Header {
        request: VRING_CALL,
        flags: VERSION | FLAG_NEED_REPLY,
        size: 8,
    };
    let mut out = [0; HEADER_BYTES + 8];
    out[..HEADER_BYTES].copy_from_slice(&header.encode());
    out[HEADER_BYTES..HEADER_BYTES + 4].copy_from_slice(&index.to_ne_bytes());
    out
}

/// Bytes of the guest's answer to [`call`].
pub const CALL_REPLY_BYTES: usize = HEADER_BYTES + 8;

/// Checks the guest's answer to [`call`].
pub fn check_call_reply(bytes: &[u8; CALL_REPLY_BYTES]) -> Result<(), LabError> {
    let head: [u8; HEADER_BYTES] = std::array::from_fn(|i| bytes[i]);
    let header = Header::decode(&head)?;
    let status = Fields(&bytes[HEADER_BYTES..]).u64(0)?;
    if header.flags & FLAG_REPLY == 0 || header.size != 8 || status != 0 {
        return Err(bad(format!(
            "a completion was answered with {header:?}, status {status}"
        )));
    }
    Ok(())
}

fn regions(fields: &Fields) -> Result<Vec<Region>, LabError> {
    let count = fields.u32(0)? as usize;
    if count == 0 || count > REGIONS_MAX {
        return Err(bad(format!("a memory table of {count} regions")));
    }
    (0..count)
        .map(|i| {
            let at = 8 + i * 32;
            Ok(Region {
                guest_address: fields.u64(at)?,
                bytes: fields.u64(at + 8)?,
                file_offset: fields.u64(at + 24)?,
            })
        })
        .collect()
}

fn set_config(fields: &Fields) -> Result<GuestRequest, LabError> {
    let (offset, size) = (fields.u32(0)?, fields.u32(4)? as usize);
    let bytes = fields
        .0
        .get(12..12 + size.min(PAYLOAD_BYTES_MAX))
        .ok_or_else(|| bad(format!("SET_CONFIG of {size} bytes without them")))?;
    Ok(GuestRequest::SetConfig {
        offset,
        bytes: bytes.to_vec(),
    })
}

/// Native-endian fields of a payload.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn array<const N: usize>(&self, at: usize) -> Result<[u8; N], LabError> {
        self.0
            .get(at..at + N)
            .map(|bytes| std::array::from_fn(|i| bytes[i]))
            .ok_or_else(|| {
                bad(format!(
                    "a payload of {} bytes ends too early",
                    self.0.len()
                ))
            })
    }

    fn u32(&self, at: usize) -> Result<u32, LabError> {
        self.array(at).map(u32::from_ne_bytes)
    }

    fn u64(&self, at: usize) -> Result<u64, LabError> {
        self.array(at).map(u64::from_ne_bytes)
    }
}

fn bad(what: String) -> LabError {
    LabError::protocol("vhost-user", what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header(request: u32, size: u32) -> Header {
        Header {
            request,
            flags: VERSION,
            size,
        }
    }

    proptest! {
        #[test]
        fn any_header_decodes_or_is_an_error(bytes: [u8; HEADER_BYTES]) {
            if let Ok(header) = Header::decode(&bytes) {
                prop_assert_eq!(header.encode(), bytes);
                prop_assert!(header.size as usize <= PAYLOAD_BYTES_MAX);
            }
        }

        #[test]
        fn any_payload_decodes_or_is_an_error(
            request in 0_u32..40,
            payload in proptest::collection::vec(any::<u8>(), 0..PAYLOAD_BYTES_MAX),
        ) {
            let head = header(request, payload.len() as u32);
            if let Ok(GuestRequest::SetMemTable(regions)) = GuestRequest::decode(&head, &payload) {
                prop_assert!(regions.len() <= REGIONS_MAX);
            }
        }

        #[test]
        fn any_call_reply_is_checked(bytes: [u8; CALL_REPLY_BYTES]) {
            let _ = check_call_reply(&bytes);
        }
    }

    #[test]
    fn a_kick_names_its_ring() {
        let payload = [3_u32.to_ne_bytes(), 0_u32.to_ne_bytes()].concat();
        let request = GuestRequest::decode(&header(35, 8), &payload).ok();
        assert_eq!(request, Some(GuestRequest::Kick(3)));
    }

    #[test]
    fn a_truncated_memory_table_is_an_error() {
        let mut payload = vec![0; 8 + 32];
        payload[0] = 2;
        assert!(GuestRequest::decode(&header(5, 40), &payload).is_err());
        payload[0] = 1;
        assert!(GuestRequest::decode(&header(5, 40), &payload).is_ok());
    }

    #[test]
    fn a_refused_completion_is_an_error() {
        let mut answer = call(0);
        answer[4] = (VERSION | FLAG_REPLY) as u8;
        assert!(check_call_reply(&answer).is_ok());
        answer[HEADER_BYTES] = 1;
        assert!(
            check_call_reply(&answer).is_err(),
            "status 1 must be noticed"
        );
    }
}
