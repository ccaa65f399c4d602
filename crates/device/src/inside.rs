//! A directory on a mounted filesystem: nothing is formatted or mounted, so the filesystem is the
//! one that is there, as it is mounted.

use crate::error::HereError;
use crate::guard::SYSTEM;
use crate::mounts::{Mount, own_mounts};
use crate::roots::Roots;
use crate::sysfs::Block;
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, fstat, fstatvfs, openat2};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use whichfs_units::{Bytes, MIB};

/// Filesystems in memory.
const MEMORY: [&str; 4] = ["tmpfs", "ramfs", "devtmpfs", "hugetlbfs"];
/// Filesystems that lie on another one.
const LAYERS: [&str; 4] = ["overlay", "aufs", "unionfs", "ecryptfs"];
/// Filesystems of another machine.
const NETWORK: [&str; 12] = [
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "9p",
    "virtiofs",
    "ceph",
    "afs",
    "lustre",
    "fuse.sshfs",
    "fuse.glusterfs",
    "fuse.rclone",
];
/// What stays free beside what a trial needs.
const SPARE: u64 = 32 * MIB;

/// A directory on a mounted filesystem that trials may be run in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inside {
    /// The directory, with links followed.
    dir: PathBuf,
    /// Number of its filesystem and of itself.
    inode: (u64, u64),
    /// Its user and group.
    pub owner: (u32, u32),
    /// Path of the directory, as the user named it.
    pub shown: String,
    /// Kernel's name of the filesystem (`ext4`).
    pub kind: String,
    /// Where it is mounted.
    pub place: String,
    /// Its options as the kernel tells them, as in fstab.
    pub options: String,
    /// Kernel's name of the disk that it is on (`mmcblk0`, `dm-0`).
    pub disk: String,
    /// What the filesystem is called: its kind, and the card or disk with its partition.
    pub id: String,
    /// What tells it from others: the disk, its size, the partition and the filesystem's number.
    pub identity: String,
    /// Size of the filesystem in bytes.
    pub bytes: u64,
    /// Whether discard reaches the disk.
    pub discard: bool,
}

impl Inside {
    /// The directory at `path`, if trials in it are a measurement of a device of this machine and
    /// harm nobody; `internal` lets it be on the filesystem that the system runs from.
    ///
    /// # Errors
    /// The first reason against it, with its remedy.
    pub fn find(path: &Path, internal: bool, roots: &Roots) -> Result<Inside, HereError> {
        let shown = path.display().to_string();
        let missing = |reason: String| HereError::Missing {
            path: shown.clone(),
            reason,
        };
        let dir = std::fs::canonicalize(path).map_err(|error| missing(error.to_string()))?;
        if !dir.is_dir() {
            return Err(missing("it is no directory".to_owned()));
        }
        let mounts = own_mounts(&roots.proc);
        let Some(mount) = mount_of(&dir, &mounts) else {
            return Err(missing("the system does not tell its mount".to_owned()));
        };
        let no_device = |why| HereError::NoDevice {
            path: shown.clone(),
            kind: mount.kind.clone(),
            why,
        };
        if let Some(why) = why_none(&mount.kind) {
            return Err(no_device(why));
        }
        let block = block_of(mount, roots).ok_or_else(|| {
            no_device("which is on no block device: name a directory on a card's own filesystem")
        })?;
        if mount.options.split(',').any(|option| option == "ro") {
            return Err(HereError::ReadOnlyMount {
                path: shown,
                place: mount.place.clone(),
            });
        }
        let same = |other: &&Mount| other.device == mount.device;
        let mut all = mounts.iter().filter(same);
        let system = all.find(|other| SYSTEM.contains(&other.place.as_str()));
        if let Some(system) = system.filter(|_| !internal) {
            return Err(HereError::SystemFilesystem {
                path: shown,
                place: system.place.clone(),
            });
        }
        let open = open(&dir).map_err(|errno| missing(errno.to_string()))?;
        let node = fstat(&open).map_err(|errno| missing(errno.to_string()))?;
        let stat = fstatvfs(&open).map_err(|errno| missing(errno.to_string()))?;
        let disk = block.disk().unwrap_or_else(|| block.clone());
        let discard = disk.attribute("queue/discard_max_bytes");
        // By its number: the kernel's name of a disk changes from day to day.
        let partition = block.attribute("partition");
        let partition = partition.map_or(String::new(), |at| format!(", partition {at}"));
        Ok(Inside {
            id: format!("{} on {}{partition}", mount.kind, disk.id()),
            identity: format!(
                "{}{partition}, {} {:x}",
                disk.identity(),
                mount.kind,
                stat.f_fsid
            ),
            kind: mount.kind.clone(),
            place: mount.place.clone(),
            options: mount.options.clone(),
            disk: disk.name.clone(),
            bytes: stat.f_blocks * stat.f_frsize,
            discard: discard.is_some_and(|bytes| bytes != "0"),
            shown,
            dir,
            inode: (node.st_dev, node.st_ino),
            owner: (node.st_uid, node.st_gid),
        })
    }

    /// Opens the directory that was judged.
    ///
    /// # Errors
    /// Another directory or a link is there now.
    pub fn open(&self) -> Result<OwnedFd, HereError> {
        let open = open(&self.dir).ok();
        let is_it =
            |open: &OwnedFd| fstat(open).is_ok_and(|node| (node.st_dev, node.st_ino) == self.inode);
        open.filter(is_it).ok_or_else(|| HereError::Replaced {
            path: self.shown.clone(),
        })
    }

    /// Checks that the directory is still on the filesystem that was judged, mounted as it was.
    ///
    /// # Errors
    /// What has changed.
    pub fn check(&self, roots: &Roots) -> Result<(), HereError> {
        // Whether the system is on it was judged.
        match Inside::find(Path::new(&self.shown), true, roots) {
            Ok(now) if now == *self => Ok(()),
            _ => Err(HereError::Replaced {
                path: self.shown.clone(),
            }),
        }
    }

    /// Checks that `bytes` of a trial fit, with something to spare.
    ///
    /// # Errors
    /// Too little is free.
    pub fn require_room(&self, bytes: u64) -> Result<(), HereError> {
        let stat = fstatvfs(self.open()?).map_err(|errno| HereError::Missing {
            path: self.shown.clone(),
            reason: errno.to_string(),
        })?;
        let free = stat.f_bavail.saturating_mul(stat.f_frsize);
        let needed = bytes.saturating_add(SPARE);
        match free < needed {
            true => Err(HereError::NoRoom {
                path: self.shown.clone(),
                free: Bytes(free),
                needed: Bytes(needed),
            }),
            false => Ok(()),
        }
    }
}

/// Opens `dir`, in which no link is followed: `openat2` of Linux 5.6.
fn open(dir: &Path) -> Result<OwnedFd, rustix::io::Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let straight = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    openat2(CWD, dir, flags, Mode::empty(), straight)
}

/// The mount that `dir`, which has no links in it, lies on: the deepest, and of those at one place
/// the last, which covers the others.
fn mount_of<'a>(dir: &Path, mounts: &'a [Mount]) -> Option<&'a Mount> {
    let above = mounts.iter().filter(|mount| dir.starts_with(&mount.place));
    above.max_by_key(|mount| Path::new(&mount.place).components().count())
}

/// Why nothing of a device would be measured on the filesystem `kind`.
fn why_none(kind: &str) -> Option<&'static str> {
    let is_in = |list: &[&str]| list.contains(&kind);
    match () {
        () if is_in(&MEMORY) => {
            Some("which lies in memory: name a directory on the card (findmnt --real)")
        }
        () if is_in(&LAYERS) => Some(
            "which lies on another filesystem: name a directory on that one (upperdir= in \
             findmnt's options), outside of the container",
        ),
        () if is_in(&NETWORK) => Some(
            "which is in another machine: run whichfs there, or on a board's device by \
             --on ssh://USER@HOST/DEV",
        ),
        () => None,
    }
}

/// The block device of `mount`: by its number, else (btrfs, FUSE) by what is mounted.
fn block_of(mount: &Mount, roots: &Roots) -> Option<Block> {
    Block::of(&roots.sys, &mount.device).or_else(|| {
        let device = std::fs::metadata(&mount.source).ok()?.rdev();
        let number = format!("{}:{}", libc::major(device), libc::minor(device));
        // What is no device has the number 0:0.
        Block::of(&roots.sys, &number)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::testing::machine;
    use tempfile::TempDir;

    /// A machine on which a directory that is really there is the mount `line` says, by its
    /// place `@`.
    fn mounted(lines: &[&str]) -> (TempDir, Roots, PathBuf) {
        let (root, roots) = machine();
        let dir = root.path().canonicalize().unwrap().join("card");
        std::fs::create_dir_all(dir.join("below")).unwrap();
        let text: String = lines
            .iter()
            .map(|line| line.replace('@', dir.to_str().unwrap()) + "\n")
            .collect();
        std::fs::write(roots.proc.join("self/mountinfo"), text).unwrap();
        (root, roots, dir)
    }

    fn refusal(lines: &[&str], internal: bool) -> String {
        let (_root, roots, dir) = mounted(lines);
        let found = Inside::find(&dir.join("below"), internal, &roots);
        found.unwrap_err().to_string()
    }

    const ROOT: &str = "1 0 259:1 / / rw - ext4 /dev/nvme0n1p1 rw";
    const CARD: &str = "2 1 8:17 / @ rw,noatime - ext4 /dev/sdz1 rw,discard";

    #[test]
    fn the_filesystem_is_the_one_that_is_there() {
        let (_root, roots, dir) = mounted(&[ROOT, CARD]);
        let found = Inside::find(&dir.join("below"), false, &roots).unwrap();
        assert_eq!((found.kind.as_str(), found.disk.as_str()), ("ext4", "sdz"));
        assert_eq!(found.options, "rw,noatime,discard");
        assert_eq!(found.id, "ext4 on sdz, partition 1");
        assert_eq!(found.place, dir.to_str().unwrap());
        found.check(&roots).unwrap();
        assert!(found.require_room(1).is_ok());
        let text = found.require_room(1 << 60).unwrap_err().to_string();
        assert!(text.contains("free, and a trial needs"), "{text}");
    }

    #[test]
    fn a_filesystem_mounted_over_it_or_otherwise_is_another() {
        let (_root, roots, dir) = mounted(&[ROOT, CARD]);
        let found = Inside::find(&dir, false, &roots).unwrap();
        let path = roots.proc.join("self/mountinfo");
        let text = std::fs::read_to_string(&path).unwrap();
        let over = format!("{text}3 2 8:16 / {} rw - vfat /dev/sdz rw\n", dir.display());
        for other in [over, text.replace("noatime", "sync"), ROOT.to_owned()] {
            std::fs::write(&path, other).unwrap();
            let error = found.check(&roots).unwrap_err().to_string();
            assert!(
                error.contains("another device than a moment ago"),
                "{error}"
            );
        }
    }

    #[test]
    fn what_is_no_device_of_this_machine_is_refused_with_what_to_do() {
        for (kind, word) in [
            ("tmpfs", "in memory"),
            ("overlay", "upperdir="),
            ("nfs4", "another machine"),
            ("9p", "another machine"),
            ("fuse.sshfs", "ssh://"),
            ("zfs", "no block device"),
            ("proc", "no block device"),
        ] {
            let line = format!("2 1 0:44 / @ rw - {kind} none rw");
            let text = refusal(&[ROOT, &line], true);
            assert!(text.contains(kind) && text.contains(word), "{text}");
        }
    }

    #[test]
    fn read_only_mounts_are_refused() {
        let of_mount = CARD.replace("rw,noatime", "ro,noatime");
        let of_filesystem = CARD.replace("rw,discard", "ro");
        for line in [of_mount, of_filesystem] {
            let text = refusal(&[ROOT, &line], false);
            assert!(text.contains("remount,rw"), "{text}");
        }
    }

    #[test]
    fn the_systems_own_filesystem_needs_a_word() {
        let root = ROOT.replace("259:1", "8:17");
        let text = refusal(&[&root], false);
        assert!(text.contains("filesystem of /,"), "{text}");
        assert!(text.contains("--internal"), "{text}");
        // Also by a bind mount.
        let text = refusal(&[&root, CARD], false);
        assert!(text.contains("--internal"), "{text}");
        let (_root, roots, dir) = mounted(&[&root]);
        let found = Inside::find(&dir, true, &roots).unwrap();
        assert_eq!(found.place, "/");
    }

    #[test]
    fn what_is_no_directory_is_told() {
        let (_root, roots, dir) = mounted(&[ROOT, CARD]);
        let file = dir.join("file");
        std::fs::write(&file, "").unwrap();
        for path in [file, dir.join("none")] {
            assert!(Inside::find(&path, false, &roots).is_err());
        }
    }
}
