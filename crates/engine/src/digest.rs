//! Hashes that go into a trial's identity.

pub use whichfs_remote::sha256;

/// `bytes` in hex.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
