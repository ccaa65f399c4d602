//! The hash that two runs of the same trial must share.

use sha2::{Digest, Sha256};
use whichfs_card::{Request, RequestKind};
use whichfs_units::Nanos;

/// Running SHA-256 over every request of every disk with its virtual times.
#[derive(Default)]
pub struct Trace {
    hash: Sha256,
    /// Requests seen.
    pub requests: u64,
}

impl Trace {
    /// Adds a request that arrived at `arrived` and is done at `done`.
    pub fn request(&mut self, arrived: Nanos, request: &Request, done: Nanos) {
        let op: u64 = match request.op {
            RequestKind::Read => 0,
            RequestKind::Write => 1,
            RequestKind::Discard => 2,
            RequestKind::Flush => 3,
        };
        let mut record = [0; 40];
        let fields = [op, request.offset, request.bytes, arrived.0, done.0];
        for (slot, field) in record.chunks_exact_mut(8).zip(fields) {
            slot.copy_from_slice(&field.to_le_bytes());
        }
        self.hash.update(record);
        self.requests += 1;
    }

    /// The hash so far, in hex.
    pub fn hex(&self) -> String {
        let digest = self.hash.clone().finalize();
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash_of(offset: u64, done: u64) -> String {
        let mut trace = Trace::default();
        let request = Request {
            op: RequestKind::Write,
            offset,
            bytes: 4096,
            fua: false,
        };
        trace.request(Nanos(5), &request, Nanos(done));
        trace.hex()
    }

    #[test]
    fn one_nanosecond_or_one_sector_changes_the_hash() {
        assert_eq!(hash_of(0, 9), hash_of(0, 9));
        assert_ne!(hash_of(0, 9), hash_of(0, 10));
        assert_ne!(hash_of(0, 9), hash_of(512, 9));
    }
}
