//! A FUSE mount that is nowhere: made, opened and kept alive by descriptors alone.
//!
//! `fsopen`, `fsmount` and `openat` reach the file without a directory to mount on, so there
//! is no path that a killed process leaves behind ("transport endpoint is not connected").
//! The superblock lives until the loop device lets go of the file.

use crate::error::AttachError;
use crate::file::CardFile;
use crate::serving::Serving;
use fuser::{Config, Session, SessionACL};
use rustix::fs::{Mode, OFlags, open, openat};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_string, fsmount,
    fsopen,
};
use std::os::fd::{AsRawFd, OwnedFd};

/// Serves `file` and opens it.
///
/// # Errors
/// Where FUSE is not to be had, with the remedy.
pub(crate) fn serve(file: CardFile) -> Result<(Serving, OwnedFd), AttachError> {
    let name = file.name.clone();
    let failed = |what| move |error: Errno| AttachError::io(what, error.into());
    let device = open("/dev/fuse", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .map_err(|error| AttachError::no_fuse(error.into()))?;
    let context = fsopen("fuse", FsOpenFlags::FSOPEN_CLOEXEC).map_err(|error| match error {
        Errno::NODEV => AttachError::no_fuse(error.into()),
        Errno::NOSYS => AttachError::OldKernel("fsopen, Linux 5.2"),
        other => AttachError::io("make a FUSE filesystem", other.into()),
    })?;
    let options = [
        ("source", "whichfs".to_owned()),
        ("fd", device.as_raw_fd().to_string()),
        ("rootmode", "40000".to_owned()),
        ("user_id", "0".to_owned()),
        ("group_id", "0".to_owned()),
    ];
    for (key, value) in options {
        fsconfig_set_string(&context, key, value).map_err(failed("configure FUSE"))?;
    }
    fsconfig_create(&context).map_err(failed("make the FUSE filesystem"))?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOEXEC | MountAttrFlags::MOUNT_ATTR_NODEV;
    let mount = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
        .map_err(failed("mount the FUSE filesystem"))?;
    // All uids: requests of the loop driver carry that of whoever caused them.
    let session = Session::from_fd(file, device, SessionACL::All, Config::default())
        .map_err(|error| AttachError::io("begin the FUSE session", error))?;
    let serving = Serving::begin("whichfs-fuse", move || session.run())?;
    let flags = OFlags::RDWR | OFlags::DIRECT | OFlags::CLOEXEC;
    let opened = openat(&mount, name.as_str(), flags, Mode::empty())
        .map_err(failed("open the FUSE file"))?;
    Ok((serving, opened))
}
