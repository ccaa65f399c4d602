//! What a path is, and whether it may be tested.

use crate::error::HereError;
use crate::mounts::{Mount, mounts, swaps};
use crate::sysfs::Block;
use rustix::io::Errno;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// What the test is going to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads only.
    Read,
    /// Reads and writes.
    Write,
}

/// Where the system tells about devices; another place in tests.
#[derive(Clone, Debug)]
pub struct Roots {
    /// `/proc`.
    pub proc: PathBuf,
    /// `/sys`.
    pub sys: PathBuf,
}

impl Default for Roots {
    fn default() -> Roots {
        Roots {
            proc: "/proc".into(),
            sys: "/sys".into(),
        }
    }
}

/// What is tested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A whole disk: its kernel's name and number.
    Disk {
        /// `mmcblk0`.
        name: String,
        /// `major:minor`.
        number: String,
    },
    /// A regular file: offsets in it are not the card's.
    File,
}

/// A path that may be tested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// As given.
    pub path: PathBuf,
    /// What it is.
    pub kind: Kind,
}

/// Places whose device is the system's.
const SYSTEM: [&str; 7] = [
    "/",
    "/boot",
    "/boot/efi",
    "/boot/firmware",
    "/usr",
    "/var",
    "/home",
];

/// What `path` is, if `access` to it is safe.
///
/// # Errors
/// The first reason against it, with its remedy.
pub fn target(path: &Path, access: Access, roots: &Roots) -> Result<Target, HereError> {
    let shown = path.display().to_string();
    let meta = std::fs::metadata(path).map_err(|error| HereError::Missing {
        path: shown.clone(),
        reason: error.to_string(),
    })?;
    let file_type = meta.file_type();
    let found = Target {
        path: path.to_owned(),
        kind: Kind::File,
    };
    if file_type.is_file() {
        return Ok(found);
    }
    if !file_type.is_block_device() {
        let found = match () {
            () if file_type.is_dir() => "a directory",
            () if file_type.is_char_device() => "a character device",
            () => "neither a device nor a file",
        };
        return Err(HereError::NotStorage { path: shown, found });
    }
    let device = meta.rdev();
    let number = format!("{}:{}", libc::major(device), libc::minor(device));
    let kind = disk(&shown, &number, access, roots)?;
    Ok(Target { kind, ..found })
}

/// The disk `number`, if nothing uses it.
fn disk(path: &str, number: &str, access: Access, roots: &Roots) -> Result<Kind, HereError> {
    let Some(block) = Block::of(&roots.sys, number) else {
        return Err(HereError::Missing {
            path: path.to_owned(),
            reason: format!("the system does not know block device {number}"),
        });
    };
    if let Some(disk) = block.disk() {
        return Err(HereError::Partition {
            path: path.to_owned(),
            disk: format!("/dev/{}", disk.name),
        });
    }
    let mut parts = block.partitions();
    parts.insert(0, block.clone());
    let mounted = mounts(&roots.proc);
    let swapped = swaps(&roots.proc);
    for part in &parts {
        refuse_mounted(path, part, &mounted)?;
    }
    for part in &parts {
        let device = format!("/dev/{}", part.name);
        if swapped.contains(&device) {
            return Err(HereError::Swap {
                path: path.to_owned(),
                device,
            });
        }
        if let Some(holder) = part.holders().into_iter().next() {
            return Err(HereError::Held {
                path: path.to_owned(),
                device,
                holder,
            });
        }
    }
    if access == Access::Write && block.attribute("ro").as_deref() == Some("1") {
        return Err(HereError::ReadOnly {
            path: path.to_owned(),
        });
    }
    Ok(Kind::Disk {
        name: block.name,
        number: block.number,
    })
}

fn refuse_mounted(path: &str, part: &Block, mounted: &[Mount]) -> Result<(), HereError> {
    let device = format!("/dev/{}", part.name);
    // Btrfs has a device number of its own: there the source tells.
    let of_part: Vec<&Mount> = mounted
        .iter()
        .filter(|mount| mount.device == part.number || mount.source == device)
        .collect();
    let place = |mount: &&Mount| mount.place.clone();
    let system = of_part
        .iter()
        .find(|mount| SYSTEM.contains(&mount.place.as_str()));
    if let Some(place) = system.map(place) {
        return Err(HereError::System {
            path: path.to_owned(),
            place,
        });
    }
    match of_part.first().map(place) {
        Some(place) => Err(HereError::Mounted {
            path: path.to_owned(),
            device,
            place,
        }),
        None => Ok(()),
    }
}

/// Why opening `target` failed.
pub(crate) fn open_error(target: &Target, errno: Errno) -> HereError {
    let path = target.path.display().to_string();
    match errno {
        Errno::BUSY => HereError::Busy { path },
        Errno::ROFS => HereError::ReadOnly { path },
        Errno::ACCESS | Errno::PERM => {
            let gid = std::fs::metadata(&target.path).map(|meta| meta.gid());
            HereError::Permission {
                path,
                group: gid.map_or("unknown".to_owned(), group_name),
            }
        }
        Errno::INVAL | Errno::OPNOTSUPP => HereError::NoDirect {
            path,
            reason: errno.to_string(),
        },
        errno => HereError::Missing {
            path,
            reason: errno.to_string(),
        },
    }
}

/// Name of the group `gid`, or its number.
fn group_name(gid: u32) -> String {
    let text = std::fs::read_to_string("/etc/group").unwrap_or_default();
    let line = text
        .lines()
        .find(|line| line.split(':').nth(2) == Some(&gid.to_string()));
    match line.and_then(|line| line.split(':').next()) {
        Some(name) => name.to_owned(),
        None => gid.to_string(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs;
    use tempfile::TempDir;

    /// A machine with a disk `sdz` (8:16) and its partition `sdz1` (8:17).
    fn machine() -> (TempDir, Roots) {
        let root = tempfile::tempdir().unwrap();
        let roots = Roots {
            proc: root.path().join("proc"),
            sys: root.path().join("sys"),
        };
        let disk = roots.sys.join("devices/sdz");
        fs::create_dir_all(disk.join("sdz1/holders")).unwrap();
        fs::create_dir_all(disk.join("holders")).unwrap();
        fs::write(disk.join("dev"), "8:16\n").unwrap();
        fs::write(disk.join("ro"), "0\n").unwrap();
        fs::write(disk.join("sdz1/dev"), "8:17\n").unwrap();
        fs::write(disk.join("sdz1/partition"), "1\n").unwrap();
        let numbers = roots.sys.join("dev/block");
        fs::create_dir_all(&numbers).unwrap();
        std::os::unix::fs::symlink(&disk, numbers.join("8:16")).unwrap();
        std::os::unix::fs::symlink(disk.join("sdz1"), numbers.join("8:17")).unwrap();
        fs::create_dir_all(roots.proc.join("self")).unwrap();
        (root, roots)
    }

    fn mount(roots: &Roots, line: &str) {
        fs::write(roots.proc.join("self/mountinfo"), format!("{line}\n")).unwrap();
    }

    fn message(roots: &Roots, number: &str, access: Access) -> String {
        match disk("/dev/x", number, access, roots) {
            Ok(kind) => format!("allowed: {kind:?}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_free_disk_is_allowed() {
        let (_root, roots) = machine();
        for access in [Access::Read, Access::Write] {
            assert!(message(&roots, "8:16", access).starts_with("allowed"));
        }
    }

    #[test]
    fn a_partition_names_its_disk() {
        let (_root, roots) = machine();
        let message = message(&roots, "8:17", Access::Read);
        assert!(message.contains("name the disk, /dev/sdz"), "{message}");
    }

    #[test]
    fn a_mounted_partition_refuses_the_disk_also_by_its_name_alone() {
        let (_root, roots) = machine();
        for line in [
            "1 0 8:17 / /media/card rw - vfat /dev/sdz1 rw",
            "1 0 0:44 / /media/card rw - btrfs /dev/sdz1 rw",
            "1 0 8:16 / /media/card rw - ext4 /dev/other rw",
        ] {
            mount(&roots, line);
            let message = message(&roots, "8:16", Access::Read);
            assert!(message.contains("umount /media/card"), "{line}: {message}");
        }
        mount(&roots, "1 0 8:33 / /media/card rw - vfat /dev/sdy1 rw");
        assert!(message(&roots, "8:16", Access::Write).starts_with("allowed"));
    }

    #[test]
    fn the_systems_own_disk_is_never_tested() {
        let (_root, roots) = machine();
        for place in SYSTEM {
            mount(
                &roots,
                &format!("1 0 8:17 / {place} rw - ext4 /dev/sdz1 rw"),
            );
            let message = message(&roots, "8:16", Access::Read);
            assert!(message.contains("never tested"), "{place}: {message}");
        }
    }

    #[test]
    fn swap_holders_and_the_lock_switch_refuse() {
        let (_root, roots) = machine();
        let swaps = "Filename Type\n/dev/sdz1 partition\n";
        fs::write(roots.proc.join("swaps"), swaps).unwrap();
        assert!(message(&roots, "8:16", Access::Read).contains("swapoff /dev/sdz1"));
        fs::write(roots.proc.join("swaps"), "Filename Type\n").unwrap();

        let holder = roots.sys.join("devices/sdz/sdz1/holders/dm-3");
        fs::write(&holder, "").unwrap();
        assert!(message(&roots, "8:16", Access::Read).contains("dm-3"));
        fs::remove_file(&holder).unwrap();

        fs::write(roots.sys.join("devices/sdz/ro"), "1\n").unwrap();
        assert!(message(&roots, "8:16", Access::Read).starts_with("allowed"));
        assert!(message(&roots, "8:16", Access::Write).contains("read-only"));
    }

    #[test]
    fn what_is_no_storage_is_told_by_its_kind() {
        let roots = Roots::default();
        let message = |path: &str| {
            target(Path::new(path), Access::Read, &roots)
                .unwrap_err()
                .to_string()
        };
        assert!(message("/dev/null").contains("a character device"));
        assert!(message("/tmp").contains("a directory"));
        assert!(message("/dev/none").contains("lsblk"));
        assert!(message_of_unknown(&roots).contains("does not know"));
    }

    fn message_of_unknown(roots: &Roots) -> String {
        disk("/dev/x", "999:999", Access::Read, roots)
            .unwrap_err()
            .to_string()
    }
}
