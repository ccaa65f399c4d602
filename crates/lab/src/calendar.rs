//! Framing of the calendar protocol (`include/uapi/linux/um_timetravel.h`).
//!
//! Messages of 16 bytes in native byte order: operation, sequence number, time.
//! Nearly every message is acknowledged with the same sequence number; with the
//! shared-memory schedule WAIT and RUN are not.

use crate::error::LabError;

/// Every message has this size: operation and sequence number of 4 bytes, time of 8.
pub const MESSAGE_BYTES: usize = 16;

/// Operation of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum CalendarOperation {
    /// Answer to any message.
    Ack = 0,
    /// A client introduces itself.
    Start = 1,
    /// "Wake me at this time."
    Request = 2,
    /// "I am idle until you say RUN."
    Wait = 3,
    /// "What time is it?"
    Get = 4,
    /// "My time is this now."
    Update = 5,
    /// "Run; the time is this."
    Run = 6,
    /// "You may run freely until this time."
    FreeUntil = 7,
    /// "What is the time of day?"
    GetTimeOfDay = 8,
}

/// One message of the calendar protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CalendarMessage {
    /// What is said.
    pub operation: CalendarOperation,
    /// Number that an acknowledgement repeats.
    pub sequence: u32,
    /// Nanoseconds, where the operation carries a time.
    pub time: u64,
}

impl CalendarMessage {
    /// A message with sequence number zero.
    pub fn new(operation: CalendarOperation, time: u64) -> CalendarMessage {
        CalendarMessage {
            operation,
            sequence: 0,
            time,
        }
    }

    /// The acknowledgement of this message, carrying `time`.
    pub fn ack(&self, time: u64) -> CalendarMessage {
        CalendarMessage {
            operation: CalendarOperation::Ack,
            sequence: self.sequence,
            time,
        }
    }

    /// The bytes on the wire.
    pub fn encode(&self) -> [u8; MESSAGE_BYTES] {
        let mut out = [0; MESSAGE_BYTES];
        out[..4].copy_from_slice(&(self.operation as u32).to_ne_bytes());
        out[4..8].copy_from_slice(&self.sequence.to_ne_bytes());
        out[8..].copy_from_slice(&self.time.to_ne_bytes());
        out
    }

    /// Reads a message; an operation that a guest must not send is an error.
    pub fn decode(bytes: &[u8; MESSAGE_BYTES]) -> Result<CalendarMessage, LabError> {
        let word = |at: usize| u32::from_ne_bytes(std::array::from_fn(|i| bytes[at + i]));
        let operation = match word(0) {
            0 => CalendarOperation::Ack,
            1 => CalendarOperation::Start,
            2 => CalendarOperation::Request,
            3 => CalendarOperation::Wait,
            4 => CalendarOperation::Get,
            5 => CalendarOperation::Update,
            8 => CalendarOperation::GetTimeOfDay,
            other => {
                return Err(LabError::protocol(
                    "calendar",
                    format!("operation {other} is not one that a guest sends"),
                ));
            }
        };
        Ok(CalendarMessage {
            operation,
            sequence: word(4),
            time: u64::from_ne_bytes(std::array::from_fn(|i| bytes[8 + i])),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_decode_or_are_an_error(bytes: [u8; MESSAGE_BYTES]) {
            if let Ok(message) = CalendarMessage::decode(&bytes) {
                prop_assert_eq!(message.encode(), bytes);
            }
        }

        #[test]
        fn what_guests_send_survives_the_wire(op in 0_usize..7, sequence: u32, time: u64) {
            let operation = [
                CalendarOperation::Ack, CalendarOperation::Start, CalendarOperation::Request,
                CalendarOperation::Wait, CalendarOperation::Get, CalendarOperation::Update,
                CalendarOperation::GetTimeOfDay,
            ][op];
            let message = CalendarMessage { operation, sequence, time };
            prop_assert_eq!(CalendarMessage::decode(&message.encode()).ok(), Some(message));
        }
    }

    #[test]
    fn a_guest_must_not_grant_time() {
        for operation in [CalendarOperation::Run, CalendarOperation::FreeUntil] {
            assert!(CalendarMessage::decode(&CalendarMessage::new(operation, 0).encode()).is_err());
        }
    }
}
