//! The most that a job may write to its disk.
//!
//! What is written is what the disk itself counts. What the page cache still holds for it will be
//! written too when the job is ended and its filesystem is unmounted, so that counts as well; where
//! the filesystem can be shut down, that is dropped at the end.

use crate::mounts;
use crate::sysfs::Block;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use whichfs_units::{KIB, MIB};

/// Bytes of a sector in the kernel's counters, whatever the disk's own sectors have.
const SECTOR: u64 = 512;
/// Part of the limit that is left for what an unmount writes beside data.
const SPARE_PART: u64 = 200;
/// The same for small limits.
const SPARE: u64 = MIB / 2;
/// Bytes a second that a program puts into the page cache at most: by them the next look is due
/// before the limit is reached.
const FASTEST: u64 = 4 << 30;

/// `FS_IOC_SHUTDOWN` of ext4, xfs, f2fs, exfat and others: the filesystem writes nothing any more.
const FS_IOC_SHUTDOWN: libc::Ioctl = 0x8004_587d_u32 as libc::Ioctl;
/// Neither data nor journal is written before.
const FS_SHUTDOWN_NOLOGFLUSH: u32 = 2;

/// Watches how much a job writes.
#[derive(Debug)]
pub(crate) struct WriteLimit {
    stat: PathBuf,
    /// What the disk had written before the job.
    begin: u64,
    most: u64,
    /// Counters of what is dirty, by backing device; `None` where this process may not see them.
    dirty: Option<Dirty>,
}

/// `bdi` of debugfs: a directory for each backing device.
#[derive(Debug)]
struct Dirty {
    debugfs: OwnedFd,
    /// The disk's own, `major:minor`.
    own: String,
    /// Those that others had before the job: btrfs and FUSE have their own.
    others: BTreeSet<String>,
}

impl WriteLimit {
    /// A job may write `most` bytes to the disk that the kernel calls `disk`, from now on.
    pub fn new(disk: &str, most: u64) -> WriteLimit {
        let block = Block::named(Path::new("/sys"), disk);
        let own = block.map(|block| block.number).unwrap_or_default();
        let stat = Path::new("/sys/block").join(disk).join("stat");
        WriteLimit {
            begin: written(&stat).unwrap_or(0),
            stat,
            most,
            dirty: debugfs().map(|debugfs| Dirty {
                others: names(&debugfs),
                debugfs,
                own,
            }),
        }
    }

    /// Bytes that the job may still write; 0: it is to be ended.
    pub fn left(&self) -> u64 {
        let written = written(&self.stat).unwrap_or(self.begin);
        let spare = self.most / SPARE_PART + SPARE;
        let pending = self.dirty.as_ref().map_or_else(all_dirty, Dirty::bytes);
        let used = written.saturating_sub(self.begin) + pending + spare;
        self.most.saturating_sub(used)
    }

    /// Shuts down the filesystems that `process` has mounted from `devices`, so that what the page
    /// cache and the journal hold for them is never written. Those that cannot be shut down (btrfs,
    /// vfat) write it when they are unmounted.
    pub fn shut_down(process: u32, devices: &[PathBuf]) {
        for mount in mounts::of_process(Path::new("/proc"), process) {
            if !devices
                .iter()
                .any(|device| *device == Path::new(&mount.source))
            {
                continue;
            }
            let place = format!("/proc/{process}/root{}", mount.place);
            let options = File::options()
                .read(true)
                .custom_flags(libc::O_DIRECTORY)
                .clone();
            let Ok(root) = options.open(place) else {
                continue;
            };
            let flags = FS_SHUTDOWN_NOLOGFLUSH;
            // SAFETY: the descriptor is open, and the kernel reads one 32-bit number. A filesystem
            // that has no such call refuses it.
            unsafe { libc::ioctl(root.as_raw_fd(), FS_IOC_SHUTDOWN, &raw const flags) };
        }
    }

    /// When to look again if `left` bytes are left.
    pub fn pause(left: u64) -> Duration {
        let microseconds = left.saturating_mul(1_000_000) / FASTEST;
        Duration::from_micros(microseconds.clamp(500, 100_000))
    }
}

impl Dirty {
    /// Bytes of the page cache that have to be written to the disk, and those on the way.
    fn bytes(&self) -> u64 {
        let all = names(&self.debugfs);
        let mine = all.difference(&self.others).chain([&self.own]);
        let kib: u64 = mine.map(|name| self.kib(name)).sum();
        kib * KIB
    }

    fn kib(&self, name: &str) -> u64 {
        let path = format!("{}/{name}/stats", bdi(&self.debugfs));
        let text = fs::read_to_string(path).unwrap_or_default();
        dirty_kib(&text)
    }
}

/// KiB that the counters of a backing device call dirty.
fn dirty_kib(text: &str) -> u64 {
    let wanted = ["BdiWriteback:", "BdiReclaimable:"];
    let lines = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let is_wanted = words.next().is_some_and(|name| wanted.contains(&name));
        words.next()?.parse::<u64>().ok().filter(|_| is_wanted)
    });
    lines.sum()
}

/// What the whole machine has to write: more than the disk gets, if others write too.
fn all_dirty() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let lines = text.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        let kib: u64 = value.trim().strip_suffix(" kB")?.parse().ok()?;
        ["Dirty", "Writeback"].contains(&name).then_some(kib * KIB)
    });
    lines.sum()
}

fn written(stat: &Path) -> Option<u64> {
    let text = fs::read_to_string(stat).ok()?;
    // reads, merged, sectors, ms, writes, merged, sectors written (Documentation/block/stat.rst).
    let sectors: u64 = text.split_whitespace().nth(6)?.parse().ok()?;
    Some(sectors * SECTOR)
}

/// debugfs, which need not be mounted: only root gets it.
fn debugfs() -> Option<OwnedFd> {
    let context = fsopen("debugfs", FsOpenFlags::FSOPEN_CLOEXEC).ok()?;
    fsconfig_create(&context).ok()?;
    let flags = FsMountFlags::FSMOUNT_CLOEXEC;
    let debugfs = fsmount(&context, flags, MountAttrFlags::MOUNT_ATTR_RDONLY).ok()?;
    Path::new(&bdi(&debugfs)).is_dir().then_some(debugfs)
}

fn bdi(debugfs: &OwnedFd) -> String {
    format!("/proc/self/fd/{}/bdi", debugfs.as_raw_fd())
}

fn names(debugfs: &OwnedFd) -> BTreeSet<String> {
    let entries = fs::read_dir(bdi(debugfs)).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dirty_and_on_the_way_counts() {
        let text = "BdiWriteback:             48 kB\nBdiReclaimable:         1000 kB\n\
                    BdiDirtyThresh:       123456 kB\nBdiDirtied:            99999 kB\n";
        assert_eq!(dirty_kib(text), 1048);
        assert_eq!(dirty_kib("BdiWriteback: x kB"), 0);
    }

    #[test]
    fn a_spare_is_left_and_the_next_look_is_in_time() {
        let limit = WriteLimit {
            stat: PathBuf::from("/no/such/stat"),
            begin: 0,
            most: 200 * MIB,
            dirty: None,
        };
        assert!(limit.left() <= 200 * MIB - MIB - MIB / 2);
        let tiny = WriteLimit {
            most: SPARE,
            ..limit
        };
        assert_eq!(tiny.left(), 0);
        assert_eq!(WriteLimit::pause(0), Duration::from_micros(500));
        assert!(WriteLimit::pause(4 << 20) <= Duration::from_millis(1));
        assert_eq!(WriteLimit::pause(u64::MAX), Duration::from_millis(100));
    }
}
