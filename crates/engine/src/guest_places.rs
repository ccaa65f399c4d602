//! Where a guest finds what is under test.

/// Where the filesystem under test is mounted in the guest.
pub const MOUNT_POINT: &str = "/mnt/test";
/// The card's device in the guest.
pub const DEVICE: &str = "/dev/vda";
/// The device of the second card in the guest.
pub const SECOND_DEVICE: &str = "/dev/vdb";
