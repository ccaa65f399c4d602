//! What a path is, and whether it may be tested.

use crate::error::HereError;
use crate::roots::Roots;
use crate::sysfs::Block;
use crate::usage::{self, User};
use rustix::io::Errno;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use whichfs_units::shell_word;

/// How long programs that only look at a device (udev, blkid) may keep it open.
const GLANCE: Duration = Duration::from_secs(2);

/// What the test is going to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads only.
    Read,
    /// Reads and writes.
    Write,
}

/// What is tested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// A whole disk.
    Disk {
        /// Kernel's name: `mmcblk0`.
        name: String,
        /// `major:minor`.
        number: String,
    },
    /// A regular file: offsets in it are not the card's.
    File {
        /// Number of its filesystem.
        device: u64,
        /// Its number there.
        inode: u64,
    },
}

/// A path that may be tested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Path of the device or file, as the user named it.
    pub path: PathBuf,
    /// A whole disk or a regular file.
    pub kind: TargetKind,
    /// What tells it from others: a serial number, or where the file is.
    pub identity: String,
}

impl Target {
    /// Why timings of this are not a card's, though direct I/O works on it: its data lie in memory,
    /// or the page cache of a file below answers. None where nothing of the kind is known.
    pub fn page_cache(&self, roots: &Roots) -> Option<&'static str> {
        let TargetKind::Disk { name, .. } = &self.kind else {
            return None;
        };
        let dio = roots.sys.join("block").join(name).join("loop/dio");
        match std::fs::read_to_string(dio) {
            Ok(text) if text.trim() == "0" => Some(
                "a loop device without direct I/O: the page cache of its file answers, not a card \
                 (losetup --direct-io=on)",
            ),
            _ if name.starts_with("zram") || name.starts_with("ram") => {
                Some("a disk in memory: no card answers")
            }
            _ => None,
        }
    }

    /// Bytes of a file and how many of them are on its filesystem, where these are fewer: reading
    /// its holes touches no card. None of a whole file and of a disk.
    pub fn sparse(&self) -> Option<[u64; 2]> {
        let TargetKind::File { .. } = self.kind else {
            return None;
        };
        let meta = std::fs::metadata(&self.path).ok()?;
        let there = meta.blocks().saturating_mul(512);
        (there < meta.len()).then_some([meta.len(), there])
    }
}

/// Places whose device is the system's.
pub(crate) const SYSTEM: [&str; 8] = [
    "/",
    "/boot",
    "/boot/efi",
    "/efi",
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
    let kind = kind_of(path, roots)?;
    let found = Target {
        path: path.to_owned(),
        identity: identity(path, &kind, roots),
        kind,
    };
    judge(&found, access, roots)?;
    Ok(found)
}

/// What `path` is: a whole disk or a file.
pub(crate) fn kind_of(path: &Path, roots: &Roots) -> Result<TargetKind, HereError> {
    let shown = path.display().to_string();
    let meta = std::fs::metadata(path).map_err(|error| HereError::Missing {
        path: shown.clone(),
        reason: error.to_string(),
    })?;
    let file_type = meta.file_type();
    let device = meta.rdev();
    match () {
        () if file_type.is_file() => Ok(TargetKind::File {
            device: meta.dev(),
            inode: meta.ino(),
        }),
        () if file_type.is_block_device() => {
            let number = format!("{}:{}", libc::major(device), libc::minor(device));
            whole_disk(&shown, &number, roots)
        }
        () => {
            let found = match () {
                () if file_type.is_dir() => "a directory",
                () if file_type.is_char_device() => "a character device",
                () => "neither a device nor a file",
            };
            Err(HereError::NotStorage { path: shown, found })
        }
    }
}

/// The disk `number`.
fn whole_disk(path: &str, number: &str, roots: &Roots) -> Result<TargetKind, HereError> {
    let path = path.to_owned();
    let Some(block) = Block::of(&roots.sys, number) else {
        let reason = format!("the system does not know block device {number}");
        return Err(HereError::Missing { path, reason });
    };
    if block.is_partition() {
        // One whose disk the system does not tell is no disk either.
        let disk = block
            .disk()
            .map_or("the whole card".to_owned(), |disk| disk.path());
        return Err(HereError::Partition { path, disk });
    }
    Ok(TargetKind::Disk {
        name: block.name,
        number: block.number,
    })
}

/// What tells what is at `path` from others.
pub(crate) fn identity(path: &Path, kind: &TargetKind, roots: &Roots) -> String {
    match kind {
        TargetKind::Disk { number, .. } => {
            let block = Block::of(&roots.sys, number);
            block.map_or_else(|| number.clone(), |block| block.identity())
        }
        TargetKind::File { inode, .. } => {
            let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
            format!("{}, inode {inode}", path.display())
        }
    }
}

/// Whether `access` to `target` is safe now.
///
/// # Errors
/// The first reason against it, with its remedy.
pub(crate) fn judge(target: &Target, access: Access, roots: &Roots) -> Result<(), HereError> {
    let path = target.path.display().to_string();
    let disk = match &target.kind {
        TargetKind::Disk { number, .. } => match Block::of(&roots.sys, number) {
            None => return Err(HereError::Replaced { path }),
            disk => disk,
        },
        TargetKind::File { .. } => None,
    };
    let claims = match &disk {
        Some(disk) => usage::claims(disk, roots),
        None => usage::claims_of_file(&target.path, roots),
    };
    if let Some(refusal) = refusal(&path, claims) {
        return Err(refusal);
    }
    if access == Access::Read {
        return Ok(());
    }
    if disk
        .as_ref()
        .and_then(|disk| disk.attribute("ro"))
        .as_deref()
        == Some("1")
    {
        return Err(HereError::ReadOnly { path });
    }
    let open = others(|| match &disk {
        Some(disk) => usage::processes_of_disk(disk, roots),
        None => usage::processes_of_file(&target.path, roots),
    });
    if let Some(refusal) = refusal(&path, open) {
        return Err(refusal);
    }
    // Of a loop device also its file: a virtual machine that runs from it has not the device open.
    let below = |disk: &Block| usage::processes_below(disk, roots);
    let Some((file, _)) = disk.as_ref().and_then(below) else {
        return Ok(());
    };
    let shown = format!("{file}, which {path} shows,");
    let open = others(|| {
        let below = disk.as_ref().and_then(below);
        below.map(|(_, users)| users).unwrap_or_default()
    });
    refusal(&shown, open).map_or(Ok(()), Err)
}

/// Those of `users` that are not this process and stay.
fn others(users: impl Fn() -> Vec<User>) -> Vec<User> {
    let own = std::process::id();
    without_glances(|| {
        let mut users = users();
        users.retain(|user| !matches!(user, User::Process { pid, .. } if *pid == own));
        users
    })
}

/// Users that do not go away by themselves: udev and its like look at a device that is new.
fn without_glances(users: impl Fn() -> Vec<User>) -> Vec<User> {
    let begun = Instant::now();
    loop {
        let found = users();
        if found.is_empty() || begun.elapsed() > GLANCE {
            return found;
        }
        std::thread::sleep(GLANCE / 20);
    }
}

/// Why `users` speak against a test; what is the system's comes first.
fn refusal(path: &str, users: Vec<User>) -> Option<HereError> {
    let path = path.to_owned();
    let system = users.iter().find_map(|user| match user {
        User::Mount {
            place,
            process: None,
            ..
        } if SYSTEM.contains(&place.as_str()) => Some(place.clone()),
        _ => None,
    });
    if let Some(place) = system {
        return Some(HereError::System { path, place });
    }
    Some(match users.into_iter().next()? {
        User::Mount {
            device,
            place,
            process,
        } => HereError::Mounted {
            path,
            device,
            remedy: match process {
                None => format!("umount {}", shell_word(&place)),
                Some(process) => format!("nsenter -t {process} -m umount {}", shell_word(&place)),
            },
            place: match process {
                None => place,
                Some(process) => format!("{place}, seen by process {process}"),
            },
        },
        User::Swap { device } => HereError::Swap { path, device },
        User::Stacked { device, holder } => HereError::Held {
            path,
            device,
            holder,
            tool: "umount, vgchange -an, cryptsetup close, mdadm --stop",
        },
        User::Loop { device, holder } => HereError::Held {
            path,
            device,
            holder,
            tool: "losetup -d",
        },
        User::Btrfs { device } => HereError::Btrfs { path, device },
        User::Process { pid, name } => HereError::Open { path, pid, name },
        User::Claimed => HereError::Busy { path },
    })
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
    use crate::testing::machine;
    use std::fs;

    fn mount(roots: &Roots, line: &str) {
        fs::write(roots.proc.join("self/mountinfo"), format!("{line}\n")).unwrap();
    }

    fn message(roots: &Roots, number: &str, access: Access) -> String {
        let judged = whole_disk("/dev/x", number, roots).and_then(|kind| {
            let target = Target {
                path: "/dev/x".into(),
                identity: String::new(),
                kind,
            };
            judge(&target, access, roots)
        });
        match judged {
            Ok(()) => "allowed".to_owned(),
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
        let elsewhere = roots.proc.join("17");
        fs::create_dir(&elsewhere).unwrap();
        let line = "1 0 8:17 / /in/container rw - ext4 /dev/sdz1 rw\n";
        mount(&roots, "");
        fs::write(elsewhere.join("mountinfo"), line).unwrap();
        let message_of = message(&roots, "8:16", Access::Read);
        assert!(message_of.contains("process 17"), "{message_of}");
        fs::remove_dir_all(elsewhere).unwrap();
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
            assert!(message.contains("left alone"), "{place}: {message}");
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
        let unknown = whole_disk("/dev/x", "999:999", &roots).unwrap_err();
        assert!(unknown.to_string().contains("does not know"));
    }

    #[test]
    fn a_writer_elsewhere_and_a_loop_device_on_it_refuse() {
        let (_root, roots) = machine();
        fs::create_dir_all(roots.proc.join("17/fd")).unwrap();
        fs::write(roots.proc.join("17/comm"), "dd\n").unwrap();
        std::os::unix::fs::symlink("/dev/sdz1", roots.proc.join("17/fd/5")).unwrap();
        assert_eq!(message(&roots, "8:16", Access::Read), "allowed");
        let refused = message(&roots, "8:16", Access::Write);
        assert!(refused.contains("process 17, dd"), "{refused}");
        let by = roots.sys.join("block/loop4/loop");
        fs::create_dir_all(&by).unwrap();
        fs::write(by.join("backing_file"), "/dev/sdz1\n").unwrap();
        let refused = message(&roots, "8:16", Access::Read);
        assert!(refused.contains("/dev/loop4"), "{refused}");
        assert!(refused.contains("losetup -d"), "{refused}");
    }

    #[test]
    fn a_writer_of_the_file_behind_a_loop_device_refuses() {
        let (root, roots) = machine();
        let file = root.path().join("machine.img");
        fs::write(&file, "").unwrap();
        fs::create_dir_all(roots.sys.join("devices/sdz/loop")).unwrap();
        let backing = roots.sys.join("devices/sdz/loop/backing_file");
        fs::write(backing, file.to_str().unwrap()).unwrap();
        assert_eq!(message(&roots, "8:16", Access::Write), "allowed");
        fs::create_dir_all(roots.proc.join("17/fd")).unwrap();
        fs::write(roots.proc.join("17/comm"), "qemu\n").unwrap();
        std::os::unix::fs::symlink(&file, roots.proc.join("17/fd/5")).unwrap();
        assert_eq!(message(&roots, "8:16", Access::Read), "allowed");
        let refused = message(&roots, "8:16", Access::Write);
        let expected = "machine.img, which /dev/x shows, is open in process 17, qemu; end it";
        assert!(refused.contains(expected), "{refused}");
    }
}
