//! Directories of the host that a guest sees at fixed paths, wherever they are.
//!
//! The guest's process inherits them as descriptors, and hostfs reaches them by these: no path
//! of the user is known to the guest, so that its length costs no virtual time.

use crate::error::LabError;
use rustix::fs::{Mode, OFlags};
use rustix::io::fcntl_dupfd_cloexec;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::PathBuf;
use whichfs_trial::{SHARED, SHARED_MAX, shared_descriptor};

/// A directory of the host for the guest, read-only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedDirectory {
    /// Its name in the guest: what is in it has paths `/NAME/…` in a job.
    pub name: &'static str,
    /// Where it is on the host.
    pub path: PathBuf,
}

/// Open shared directories, in the order of their descriptors in the guest's process.
pub(crate) struct Handles(Vec<OwnedFd>);

impl Handles {
    /// Opens `directories`.
    ///
    /// # Errors
    /// The first that cannot be opened.
    ///
    /// # Panics
    /// If there are more than [`SHARED_MAX`]: a fault of the caller.
    pub fn open(directories: &[SharedDirectory]) -> Result<Handles, LabError> {
        assert!(directories.len() <= SHARED_MAX as usize, "too many");
        let open = |directory: &SharedDirectory| {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            // Above all places of the guest's, so that filling one does not close another.
            rustix::fs::open(&directory.path, flags, Mode::empty())
                .and_then(|fd| fcntl_dupfd_cloexec(&fd, shared_descriptor(SHARED_MAX)))
                .map_err(|errno| {
                    let what = format!("open {} for the guest", directory.path.display());
                    LabError::io(what)(errno.into())
                })
        };
        directories
            .iter()
            .map(open)
            .collect::<Result<_, _>>()
            .map(Handles)
    }

    /// The descriptors as numbers, for the child between fork and exec.
    pub fn numbers(&self) -> Vec<RawFd> {
        self.0.iter().map(AsRawFd::as_raw_fd).collect()
    }
}

/// Puts descriptors where the guest looks for them. Runs between fork and exec.
pub(crate) fn put_in_place(numbers: &[RawFd]) -> std::io::Result<()> {
    for (at, &number) in (0..).zip(numbers) {
        // SAFETY: a plain system call on numbers.
        if unsafe { libc::dup2(number, shared_descriptor(at)) } < 0 {
            return Err(std::io::Error::last_os_error());
        }
    }
    Ok(())
}

/// The kernel parameter that names them; none without any.
pub(crate) fn parameter(directories: &[SharedDirectory]) -> Option<String> {
    let names: Vec<&str> = directories.iter().map(|directory| directory.name).collect();
    (!names.is_empty()).then(|| format!("{SHARED}{}", names.join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(name: &'static str, path: &str) -> SharedDirectory {
        SharedDirectory {
            name,
            path: path.into(),
        }
    }

    #[test]
    fn only_names_reach_the_command_line() {
        assert_eq!(parameter(&[]), None);
        let both = [directory("tree", "/srv/a/tree"), directory("images", "/i")];
        assert_eq!(
            parameter(&both).as_deref(),
            Some("whichfs.shared=tree,images")
        );
    }

    #[test]
    fn descriptors_are_out_of_each_others_way() {
        let both = [directory("tree", "/tmp"), directory("images", "/")];
        let handles = Handles::open(&both).expect("directories");
        let least = shared_descriptor(SHARED_MAX);
        assert!(handles.numbers().iter().all(|&number| number >= least));
        let error = Handles::open(&[directory("tree", "/no/such")]).err();
        assert!(error.is_some_and(|error| error.to_string().contains("/no/such")));
    }
}
