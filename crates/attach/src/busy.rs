//! Who uses a block device: mounts, swap, stacked devices, open descriptors.

use serde::Serialize;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Somebody who uses a device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Holder {
    /// Mounted there.
    Mount(String),
    /// Used as swap.
    Swap(String),
    /// Part of another block device (device mapper, RAID …).
    Device(String),
    /// Open in a process.
    Process {
        /// Its number.
        pid: u32,
        /// Its name.
        name: String,
    },
    /// Claimed by the kernel, it does not say for what (a mount in another namespace).
    Claimed,
}

/// The holders with what to do about each, as one sentence.
pub(crate) fn list(holders: &[Holder]) -> String {
    let each = |holder: &Holder| match holder {
        Holder::Mount(at) => format!("mounted at {at} (umount {at})"),
        Holder::Swap(path) => format!("used as swap (swapoff {path})"),
        Holder::Device(name) => format!("part of {name} (take that apart first)"),
        Holder::Process { pid, name } => format!("open in process {pid}, {name} (end it)"),
        Holder::Claimed => "claimed by the kernel, perhaps mounted in another namespace \
                            (unmount it there)"
            .to_owned(),
    };
    holders.iter().map(each).collect::<Vec<_>>().join("; ")
}

/// Everybody who uses the disk `name` (`loop7`) or a partition of it.
pub(crate) fn holders(name: &str) -> Vec<Holder> {
    let disks = with_partitions(name);
    let mut found = BTreeSet::new();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    found.extend(mounts_of(&mounts, &disks).into_iter().map(Holder::Mount));
    let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();
    found.extend(swaps_of(&swaps, &disks).into_iter().map(Holder::Swap));
    for disk in &disks {
        let directory = format!("/sys/class/block/{disk}/holders");
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        found.extend(entries.map(|e| Holder::Device(e.file_name().to_string_lossy().into())));
    }
    found.extend(processes(&disks));
    if found.is_empty() && disks.iter().any(|disk| is_claimed(disk)) {
        found.insert(Holder::Claimed);
    }
    found.into_iter().collect()
}

/// The disk and its partitions, by name.
fn with_partitions(name: &str) -> Vec<String> {
    let mut disks = vec![name.to_owned()];
    let entries = fs::read_dir(format!("/sys/block/{name}"));
    for entry in entries.into_iter().flatten().flatten() {
        let file = entry.file_name().to_string_lossy().into_owned();
        if file.starts_with(name) && entry.path().join("partition").exists() {
            disks.push(file);
        }
    }
    disks
}

/// The mount points of `disks` in the text of a `mountinfo`. By source, not by device number:
/// btrfs mounts have numbers of their own.
pub(crate) fn mounts_of(mountinfo: &str, disks: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for line in mountinfo.lines() {
        let Some((before, after)) = line.split_once(" - ") else {
            continue;
        };
        let source = after.split(' ').nth(1).map(unescape).unwrap_or_default();
        let is_ours = source
            .strip_prefix("/dev/")
            .is_some_and(|name| disks.iter().any(|disk| disk == name));
        if is_ours && let Some(point) = before.split(' ').nth(4) {
            found.push(unescape(point));
        }
    }
    found
}

fn swaps_of(swaps: &str, disks: &[String]) -> Vec<String> {
    let paths = swaps
        .lines()
        .skip(1)
        .filter_map(|l| l.split_whitespace().next());
    let ours = paths.filter(|path| {
        let name = path.strip_prefix("/dev/");
        name.is_some_and(|name| disks.iter().any(|disk| disk == name))
    });
    ours.map(str::to_owned).collect()
}

/// Processes that have one of `disks` open.
fn processes(disks: &[String]) -> Vec<Holder> {
    let paths: Vec<String> = disks.iter().map(|disk| format!("/dev/{disk}")).collect();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else {
            continue;
        };
        if has_open(&entry.path(), &paths) {
            let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            let name = name.trim().to_owned();
            found.push(Holder::Process { pid, name });
        }
    }
    found
}

fn has_open(process: &Path, paths: &[String]) -> bool {
    let entries = fs::read_dir(process.join("fd"));
    entries.into_iter().flatten().flatten().any(|fd| {
        let target = fs::read_link(fd.path());
        target.is_ok_and(|target| paths.iter().any(|path| target == Path::new(path)))
    })
}

/// Whether the kernel has claimed the disk: an exclusive open fails.
fn is_claimed(disk: &str) -> bool {
    use rustix::fs::{Mode, OFlags, open};
    let flags = OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC;
    matches!(
        open(format!("/dev/{disk}"), flags, Mode::empty()),
        Err(rustix::io::Errno::BUSY)
    )
}

/// `\040` and the like, as the kernel writes blanks in paths.
fn unescape(field: &str) -> String {
    let mut out = Vec::new();
    let mut rest = field.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let octal = (*first == b'\\').then(|| tail.get(..3)).flatten();
        let code = octal.and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                out.push(byte);
                rest = &tail[3..];
            }
            None => {
                out.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTINFO: &str = "\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 7:9 / /mnt/a\\040card rw,relatime - ext4 /dev/loop9 rw
31 22 0:44 /sub /mnt/b rw,relatime - btrfs /dev/loop9p1 rw
32 22 7:90 / /mnt/c rw - ext4 /dev/loop90 rw
33 22 0:5 / /dev rw - devtmpfs devtmpfs rw
";

    #[test]
    fn mounts_of_a_disk_and_its_partitions_are_found_and_no_others() {
        let disks = ["loop9".to_owned(), "loop9p1".to_owned()];
        assert_eq!(mounts_of(MOUNTINFO, &disks), ["/mnt/a card", "/mnt/b"]);
        assert_eq!(mounts_of(MOUNTINFO, &["loop8".to_owned()]), [""; 0]);
        assert_eq!(mounts_of("no table", &disks), [""; 0]);
    }

    #[test]
    fn swap_on_the_disk_is_found() {
        let swaps =
            "Filename Type Size Used Priority\n/dev/loop9p1 partition 1 0 -2\n/swap file 1 0 -3\n";
        assert_eq!(swaps_of(swaps, &["loop9p1".to_owned()]), ["/dev/loop9p1"]);
        assert!(swaps_of(swaps, &["swap".to_owned()]).is_empty());
    }

    #[test]
    fn the_message_names_the_mount_and_the_remedy() {
        let text = list(&[
            Holder::Mount("/mnt/x".into()),
            Holder::Process {
                pid: 7,
                name: "fio".into(),
            },
        ]);
        assert_eq!(
            text,
            "mounted at /mnt/x (umount /mnt/x); open in process 7, fio (end it)"
        );
    }

    #[test]
    fn escapes_are_undone() {
        assert_eq!(unescape("/a\\040b\\134c\\"), "/a b\\c\\");
        assert_eq!(unescape("/plain\\9"), "/plain\\9");
    }
}
