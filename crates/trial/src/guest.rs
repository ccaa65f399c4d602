//! How the engine and the guest's agent find each other's things.

/// Kernel parameter that names the directories of the host that the guest sees, separated by
/// commas, in the order of their descriptors.
pub const SHARED: &str = "whichfs.shared=";

/// Kernel parameter that names the disk with the sealed userland. Without it the guest's root is
/// the shared directory [`HOST_ROOT`].
pub const ROOT: &str = "whichfs.root=";

/// Name under which a guest that sees the host's files has the host's root among its shared
/// directories.
pub const HOST_ROOT: &str = "root";

/// Descriptor of the first of these directories in the guest's process on the host.
const FIRST_SHARED: i32 = 200;

/// Most directories that a guest sees.
pub const SHARED_MAX: i32 = 4;

/// Descriptor, in the guest's process on the host, of shared directory `at`.
pub fn shared_descriptor(at: i32) -> i32 {
    FIRST_SHARED + at
}

/// Host path of shared directory `at`, as the guest's process sees it: of one length,
/// wherever the directory is, because longer paths cost the guest more time.
pub fn shared_path(at: i32) -> String {
    format!("/proc/self/fd/{}/.", shared_descriptor(at))
}
