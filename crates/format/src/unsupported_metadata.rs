//! What of a tree a tool cannot put into an image: devices, pipes, sticky bits, second names of a
//! file, extended attributes. Said before anything is written, since the tools leave it out
//! silently.

use crate::builder::{Builder, LAB};
use crate::error::FormatError;
use crate::verify::{Check, Outcome};
use rustix::fs::llistxattr;
use std::fs::Metadata;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Bytes of names of attributes that are looked at.
const NAMES: usize = 64 << 10;

/// The first entry of a tree of each kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnsupportedEntries {
    /// A block or character device.
    pub device: Option<PathBuf>,
    /// A pipe or socket.
    pub pipe: Option<PathBuf>,
    /// Something with the sticky bit.
    pub sticky: Option<PathBuf>,
    /// A file with a second name.
    pub named_twice: Option<PathBuf>,
    /// A file with extended attributes: capabilities, access lists, those of users.
    pub attributes: Option<PathBuf>,
}

impl UnsupportedEntries {
    /// Looks at an entry.
    pub(crate) fn see(&mut self, path: &Path, meta: &Metadata) {
        let kind = meta.file_type();
        let note = |place: &mut Option<PathBuf>, is: bool| {
            if is && place.is_none() {
                *place = Some(path.to_owned());
            }
        };
        let device = kind.is_block_device() || kind.is_char_device();
        note(&mut self.device, device);
        note(&mut self.pipe, kind.is_fifo() || kind.is_socket());
        let sticky = !kind.is_symlink() && meta.mode() & 0o1000 != 0;
        note(&mut self.sticky, sticky);
        note(&mut self.named_twice, kind.is_file() && meta.nlink() > 1);
        if self.attributes.is_none() {
            note(&mut self.attributes, has_attributes(path));
        }
    }

    /// Refuses what `way` would lose and the lab keeps.
    pub(crate) fn check(&self, way: Builder) -> Result<(), FormatError> {
        let lost = match way {
            Builder::Btrfs => [
                (
                    &self.device,
                    "is a device, whose number mkfs.btrfs does not copy",
                ),
                (&None, ""),
            ],
            Builder::Sload => [
                (&self.device, "is a device, which sload.f2fs leaves out"),
                (
                    &self.pipe,
                    "is a pipe or socket, which sload.f2fs leaves out",
                ),
            ],
            Builder::Proto => [
                (
                    &self.sticky,
                    "has the sticky bit, which a prototype of mkfs.xfs cannot say",
                ),
                (&None, ""),
            ],
            Builder::Image | Builder::Mke2fs | Builder::Mcopy | Builder::Lab => return Ok(()),
        };
        match lost
            .iter()
            .find_map(|(path, why)| Some((path.as_ref()?, why)))
        {
            None => Ok(()),
            Some((path, why)) => Err(FormatError::Tree {
                what: format!("{} {why}", path.display()),
                remedy: LAB.into(),
            }),
        }
    }

    /// What `way` loses all the same, to be told beside the checks of the image.
    pub fn lost(&self, way: Builder) -> Vec<Check> {
        let attributes = match way {
            Builder::Sload | Builder::Proto | Builder::Lab => self.attributes.as_ref(),
            _ => None,
        };
        let twice = match way {
            Builder::Proto | Builder::Mcopy => self.named_twice.as_ref(),
            _ => None,
        };
        let attributes = attributes.map(|path| {
            let path = path.display();
            format!("not copied, those of {path} first (ext4, btrfs, squashfs, erofs get them)")
        });
        let twice =
            twice.map(|path| format!("each name is a file of its own, {} first", path.display()));
        let all = [("extended attributes", attributes), ("second names", twice)];
        all.into_iter()
            .filter_map(|(what, why)| {
                Some(Check {
                    what: format!("image: {what}"),
                    outcome: Outcome::Skipped(why?),
                })
            })
            .collect()
    }
}

/// Whether `path` has attributes beside the label that SELinux gives every file.
fn has_attributes(path: &Path) -> bool {
    let mut names = vec![0_u8; NAMES];
    match llistxattr(path, &mut names) {
        Ok(bytes) => names
            .get(..bytes)
            .unwrap_or_default()
            .split(|&byte| byte == 0)
            .any(|name| !name.is_empty() && name != b"security.selinux"),
        // More names than fit are some.
        Err(errno) => errno == rustix::io::Errno::RANGE,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_a_tool_loses_is_refused_or_told() {
        let some = |name: &str| Some(PathBuf::from(name));
        let found = UnsupportedEntries {
            device: some("t/null"),
            pipe: some("t/pipe"),
            sticky: some("t/tmp"),
            named_twice: some("t/a"),
            attributes: some("t/ping"),
        };
        for (way, word) in [
            (Builder::Btrfs, "t/null is a device"),
            (Builder::Sload, "t/null is a device"),
            (Builder::Proto, "t/tmp has the sticky bit"),
        ] {
            let refused = found.check(way).unwrap_err().to_string();
            assert!(
                refused.contains(word) && refused.contains("--lab"),
                "{refused}"
            );
            assert!(UnsupportedEntries::default().check(way).is_ok());
        }
        let pipe = UnsupportedEntries {
            device: None,
            ..found.clone()
        };
        assert!(
            pipe.check(Builder::Sload)
                .unwrap_err()
                .to_string()
                .contains("t/pipe")
        );
        assert!(pipe.check(Builder::Btrfs).is_ok() && found.check(Builder::Mke2fs).is_ok());
        for (way, count) in [
            (Builder::Image, 0),
            (Builder::Mke2fs, 0),
            (Builder::Btrfs, 0),
            (Builder::Lab, 1),
            (Builder::Sload, 1),
            (Builder::Proto, 2),
        ] {
            assert_eq!(found.lost(way).len(), count, "{way:?}");
            assert!(UnsupportedEntries::default().lost(way).is_empty());
        }
    }
}
