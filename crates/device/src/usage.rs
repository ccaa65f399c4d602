//! Who uses a block device or a file: mounts, swap, stacked and loop devices, open
//! descriptors, in every namespace that this process can see.
//!
//! tidy: long: one question, asked of every place where the kernel tells of a user

use crate::mounts::{Mount, mounts, own_mounts, swaps};
use crate::roots::Roots;
use crate::sysfs::Block;
use rustix::fd::AsRawFd;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, StatxFlags, open, statx};
use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use whichfs_units::shell_word;

/// Somebody who uses a device or a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum User {
    /// A mounted filesystem.
    Mount {
        /// The device: the disk or a partition.
        device: String,
        /// The mount point.
        place: String,
        /// A process that sees the mount, if this one does not.
        process: Option<u32>,
    },
    /// Active swap space.
    Swap {
        /// The device or file.
        device: String,
    },
    /// Another block device is made of it (device mapper, RAID …).
    Stacked {
        /// The disk or partition.
        device: String,
        /// Kernel's name of the other.
        holder: String,
    },
    /// A loop device shows it, or a part of it.
    Loop {
        /// The disk, partition or file.
        device: String,
        /// Path of the loop device.
        holder: String,
    },
    /// One of several devices of a mounted btrfs.
    Btrfs {
        /// The disk or partition.
        device: String,
    },
    /// Open in a process.
    Process {
        /// Process ID, as in `ps`.
        pid: u32,
        /// Name of the process, as in `ps`.
        name: String,
    },
    /// Claimed by the kernel, which does not say for what.
    Claimed,
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            User::Mount {
                place,
                process: None,
                ..
            } => write!(f, "mounted at {place} (umount {})", shell_word(place)),
            User::Mount {
                place,
                process: Some(pid),
                ..
            } => write!(
                f,
                "mounted at {place} in another namespace (nsenter -t {pid} -m umount {})",
                shell_word(place)
            ),
            User::Swap { device } => write!(f, "used as swap (swapoff {})", shell_word(device)),
            User::Stacked { holder, .. } => write!(f, "part of {holder} (take that apart first)"),
            User::Loop { holder, .. } => write!(f, "shown by {holder} (losetup -d {holder})"),
            User::Btrfs { device } => {
                write!(
                    f,
                    "one of the devices of a mounted btrfs ({device}; unmount that)"
                )
            }
            User::Process { pid, name } => write!(f, "open in process {pid}, {name} (end it)"),
            User::Claimed => f.write_str(
                "claimed by the kernel, perhaps mounted in another namespace (unmount it there)",
            ),
        }
    }
}

/// What tells one device or file from all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    /// A block device: its number.
    Device(u32, u32),
    /// A file: number of its filesystem, and inode.
    File(u32, u32, u64),
}

impl Node {
    /// What `path` leads to. Whoever serves its filesystem is not asked, so that one that is
    /// dead stops nobody.
    fn of(path: &Path) -> Option<Node> {
        let wanted = StatxFlags::TYPE | StatxFlags::INO;
        // AT_STATX_DONT_SYNC of linux/fcntl.h.
        let cached = AtFlags::from_bits_retain(0x4000);
        let found = statx(CWD, path, cached, wanted).ok()?;
        match FileType::from_raw_mode(found.stx_mode.into()) {
            FileType::BlockDevice => Some(Node::Device(found.stx_rdev_major, found.stx_rdev_minor)),
            FileType::RegularFile => {
                let (major, minor) = (found.stx_dev_major, found.stx_dev_minor);
                Some(Node::File(major, minor, found.stx_ino))
            }
            _ => None,
        }
    }
}

/// A device or file, as those who use it may name it.
struct Subject {
    /// As it is shown.
    path: String,
    node: Option<Node>,
}

impl Subject {
    fn of_block(block: &Block) -> Subject {
        let (major, minor) = block.number.split_once(':').unwrap_or_default();
        let node = major.parse().ok().zip(minor.parse().ok());
        Subject {
            path: block.path(),
            node: node.map(|(major, minor)| Node::Device(major, minor)),
        }
    }

    /// Whether `path`, perhaps one of another namespace, leads to it.
    fn is_at(&self, path: &Path) -> bool {
        match (Node::of(path), self.node) {
            (Some(found), Some(node)) => found == node,
            _ => path == Path::new(&self.path),
        }
    }
}

/// Everybody who uses the disk that the kernel calls `name` (`loop7`) or a partition of it, this
/// process included. Of a disk that is gone the mounts are known still, by their sources.
pub fn users_of_disk(name: &str, roots: &Roots) -> Vec<User> {
    let Some(disk) = Block::named(&roots.sys, name) else {
        return mounts_of_gone(name, roots);
    };
    let mut users = claims(&disk, roots);
    let subjects: Vec<Subject> = blocks(&disk).iter().map(Subject::of_block).collect();
    users.extend(processes(&subjects, &roots.proc));
    if users.is_empty() && subjects.iter().any(|one| is_claimed(&one.path)) {
        users.push(User::Claimed);
    }
    users
}

/// Where the disk called `name` or a partition of it is mounted so that an unmount of that path
/// takes this mount and no other: it is the topmost there, and nothing is mounted below it.
/// The disk may be gone: then the mounts' sources tell.
pub fn removable_mounts(name: &str, roots: &Roots) -> Vec<String> {
    let blocks = Block::named(&roots.sys, name).map(|disk| blocks(&disk));
    let is_its = |mount: &Mount| match &blocks {
        Some(blocks) => blocks.iter().any(|block| is_of(mount, block)),
        None => was_of(mount, name),
    };
    let all = own_mounts(&roots.proc);
    let mut found = Vec::new();
    for (at, mount) in all.iter().enumerate() {
        let below = format!("{}/", mount.place.trim_end_matches('/'));
        let is_covered = all[at + 1..].iter().any(|other| other.place == mount.place)
            || all
                .iter()
                .any(|other| other.place != mount.place && other.place.starts_with(&below));
        if !is_covered && is_its(mount) {
            found.push(mount.place.clone());
        }
    }
    found
}

/// The users of `disk` that the kernel knows of: mounts, swap, stacked and loop devices. Of a loop
/// device also those of the file or device that it shows.
pub(crate) fn claims(disk: &Block, roots: &Roots) -> Vec<User> {
    claims_down(disk, roots, DEEPEST)
}

/// As [`claims`], `deep` loop devices down at most.
fn claims_down(disk: &Block, roots: &Roots, deep: usize) -> Vec<User> {
    let blocks = blocks(disk);
    let mut users: BTreeSet<User> = BTreeSet::new();
    for mount in mounts(&roots.proc) {
        if let Some(block) = blocks.iter().find(|block| is_of(&mount, block)) {
            users.insert(User::Mount {
                device: block.path(),
                place: mount.place,
                process: mount.process,
            });
        }
    }
    for (device, place) in mounts_above(disk, &blocks, roots) {
        users.insert(User::Mount {
            device,
            place,
            process: None,
        });
    }
    for name in btrfs_devices(&roots.sys) {
        if let Some(block) = blocks.iter().find(|block| block.name == name) {
            users.insert(User::Btrfs {
                device: block.path(),
            });
        }
    }
    for block in &blocks {
        let device = block.path();
        let stacked = block.holders().into_iter();
        users.extend(stacked.map(|holder| User::Stacked {
            device: device.clone(),
            holder,
        }));
    }
    let subjects: Vec<Subject> = blocks.iter().map(Subject::of_block).collect();
    users.extend(swaps_and_loops(&subjects, roots));
    users.extend(claims_below(disk, roots, deep));
    users.into_iter().collect()
}

/// The users of what the loop device `disk` shows, but for `disk` itself.
fn claims_below(disk: &Block, roots: &Roots, deep: usize) -> Vec<User> {
    let Some(below) = shown_by(disk, roots).filter(|_| deep > 0) else {
        return Vec::new();
    };
    let mut users = match below.node {
        None => Vec::new(),
        Some(Node::File(..)) => swaps_and_loops(&[below], roots),
        Some(Node::Device(major, minor)) => {
            let block = Block::of(&roots.sys, &format!("{major}:{minor}"));
            let below = block.map(|block| block.disk().unwrap_or(block));
            let below = below.filter(|below| below.number != disk.number);
            below.map_or_else(Vec::new, |below| claims_down(&below, roots, deep - 1))
        }
    };
    let own = disk.path();
    users.retain(|user| !matches!(user, User::Loop { holder, .. } if *holder == own));
    users
}

/// What the loop device `disk` shows; `None` if it is none.
fn shown_by(disk: &Block, roots: &Roots) -> Option<Subject> {
    let path = disk.attribute("loop/backing_file")?;
    let node = backing(&disk.name, &roots.sys).or_else(|| Node::of(Path::new(&path)));
    Some(Subject { path, node })
}

/// The block device that the loop device `disk` shows, if it does not show a file.
pub(crate) fn device_below(disk: &Block, roots: &Roots) -> Option<PathBuf> {
    let below = shown_by(disk, roots)?;
    matches!(below.node, Some(Node::Device(..))).then(|| below.path.into())
}

/// The file that the loop device `disk` shows, if it does not show a device, and the processes
/// that have it open.
pub(crate) fn processes_below(disk: &Block, roots: &Roots) -> Option<(String, Vec<User>)> {
    let below = shown_by(disk, roots)?;
    if !matches!(below.node, Some(Node::File(..))) {
        return None;
    }
    let users = processes(std::slice::from_ref(&below), &roots.proc);
    Some((below.path, users))
}

/// The users of the file `path` that the kernel knows of: swap and loop devices.
pub(crate) fn claims_of_file(path: &Path, roots: &Roots) -> Vec<User> {
    swaps_and_loops(&[file(path)], roots)
}

/// Processes that have the file `path` open.
pub(crate) fn processes_of_file(path: &Path, roots: &Roots) -> Vec<User> {
    processes(&[file(path)], &roots.proc)
}

/// Processes that have `disk` or a partition of it open.
pub(crate) fn processes_of_disk(disk: &Block, roots: &Roots) -> Vec<User> {
    let subjects: Vec<Subject> = blocks(disk).iter().map(Subject::of_block).collect();
    processes(&subjects, &roots.proc)
}

fn file(path: &Path) -> Subject {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    Subject {
        node: Node::of(&path),
        path: path.display().to_string(),
    }
}

/// The disk and its partitions.
fn blocks(disk: &Block) -> Vec<Block> {
    let mut blocks = disk.partitions();
    blocks.insert(0, disk.clone());
    blocks
}

/// Btrfs has a device number of its own: there the source tells, whatever path it was named by.
fn is_of(mount: &Mount, block: &Block) -> bool {
    mount.device == block.number
        || mount.source == block.path()
        || mount.source.starts_with("/dev/")
            && Subject::of_block(block).is_at(Path::new(&mount.source))
}

/// Where the disk called `name`, which is gone, or a partition of it is mounted.
fn mounts_of_gone(name: &str, roots: &Roots) -> Vec<User> {
    let mut left = mounts(&roots.proc);
    left.retain(|mount| was_of(mount, name));
    let users = left.into_iter().map(|mount| User::Mount {
        device: mount.source,
        place: mount.place,
        process: mount.process,
    });
    users.collect()
}

/// Whether `mount` was made of the disk called `name`, or a partition of it, that is gone.
fn was_of(mount: &Mount, name: &str) -> bool {
    let source = mount.source.strip_prefix("/dev/");
    let Some(rest) = source.and_then(|source| source.strip_prefix(name)) else {
        return false;
    };
    let partition = |rest: &str| rest.strip_prefix('p').is_some_and(is_number);
    rest.is_empty() || partition(rest)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// How many devices are stacked on each other at most: RAID, LVM, crypt, cache and some.
const DEEPEST: usize = 8;

/// What is mounted from devices that are made of `blocks`, however many lie between: the device
/// above, and where.
fn mounts_above(disk: &Block, blocks: &[Block], roots: &Roots) -> Vec<(String, String)> {
    let mut above: Vec<Block> = Vec::new();
    let mut layer: Vec<Block> = blocks.to_vec();
    for _ in 0..DEEPEST {
        let names: BTreeSet<String> = layer.iter().flat_map(Block::holders).collect();
        let found = names
            .iter()
            .filter_map(|name| Block::any_named(&roots.sys, name));
        layer = found.collect();
        if layer.is_empty() {
            break;
        }
        above.extend(layer.iter().cloned());
    }
    let mut found = Vec::new();
    for mount in own_mounts(&roots.proc) {
        let device = above.iter().find(|block| is_of(&mount, block));
        if let Some(device) = device.filter(|device| device.name != disk.name) {
            found.push((device.path(), mount.place));
        }
    }
    found
}

/// Names of the devices of all mounted btrfs: only one of them is the source of the mount.
fn btrfs_devices(sys: &Path) -> Vec<String> {
    let entries = fs::read_dir(sys.join("fs/btrfs")).into_iter().flatten();
    let mut names = Vec::new();
    for entry in entries.flatten() {
        let devices = fs::read_dir(entry.path().join("devices"))
            .into_iter()
            .flatten();
        let found = devices
            .flatten()
            .map(|one| one.file_name().to_string_lossy().into_owned());
        names.extend(found);
    }
    names
}

fn swaps_and_loops(subjects: &[Subject], roots: &Roots) -> Vec<User> {
    let mut users = Vec::new();
    for path in swaps(&roots.proc) {
        if subjects.iter().any(|one| one.is_at(Path::new(&path))) {
            users.push(User::Swap { device: path });
        }
    }
    for (holder, path, node) in loops(&roots.sys) {
        let is_shown = |one: &&Subject| match (node, one.node) {
            (Some(node), Some(wanted)) => node == wanted,
            _ => one.is_at(&path),
        };
        if let Some(one) = subjects.iter().find(is_shown) {
            let device = one.path.clone();
            users.push(User::Loop { device, holder });
        }
    }
    users
}

/// Loop devices that are bound, each with the path of what it shows, and what that is if the
/// device can be asked. The loop driver neither claims that nor is among its holders. The path may
/// be of another namespace, of a file that is deleted, or covered by a mount.
fn loops(sys: &Path) -> Vec<(String, PathBuf, Option<Node>)> {
    let entries = fs::read_dir(sys.join("block")).into_iter().flatten();
    let mut found = Vec::new();
    for entry in entries.flatten() {
        if let Ok(backing) = fs::read_to_string(entry.path().join("loop/backing_file")) {
            let name = entry.file_name().to_string_lossy().into_owned();
            let node = self::backing(&name, sys);
            found.push((format!("/dev/{name}"), backing.trim_end().into(), node));
        }
    }
    found.sort_by(|one, other| one.0.cmp(&other.0));
    found
}

/// `struct loop_info64` of `linux/loop.h`, as far as it matters.
#[repr(C)]
struct LoopInfo {
    device: u64,
    inode: u64,
    rdevice: u64,
    rest: [u64; 26],
}

/// What the loop device called `name` shows, as the kernel tells it by `LOOP_GET_STATUS64`; `None`
/// if it is not bound, or this process may not open it. `sys` tells a real machine from one of the
/// tests.
fn backing(name: &str, sys: &Path) -> Option<Node> {
    const LOOP_GET_STATUS64: libc::Ioctl = 0x4C05;
    if sys != Path::new("/sys") {
        return None;
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let device = open(format!("/dev/{name}"), flags, Mode::empty()).ok()?;
    let mut info = LoopInfo {
        device: 0,
        inode: 0,
        rdevice: 0,
        rest: [0; 26],
    };
    // SAFETY: the kernel fills a structure of 232 bytes, which outlives the call.
    let failed = unsafe { libc::ioctl(device.as_raw_fd(), LOOP_GET_STATUS64, &raw mut info) };
    if failed != 0 {
        return None;
    }
    Some(match info.rdevice {
        0 => Node::File(
            libc::major(info.device),
            libc::minor(info.device),
            info.inode,
        ),
        device => Node::Device(libc::major(device), libc::minor(device)),
    })
}

/// Processes that have one of `subjects` open, or in their memory so that they may write it.
fn processes(subjects: &[Subject], proc: &Path) -> Vec<User> {
    let mut found = Vec::new();
    for entry in fs::read_dir(proc).into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else {
            continue;
        };
        if has_open(&entry.path(), subjects) || maps(&entry.path(), subjects) {
            let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            let name = name.trim().to_owned();
            found.push(User::Process { pid, name });
        }
    }
    found.sort();
    found
}

fn has_open(process: &Path, subjects: &[Subject]) -> bool {
    let entries = fs::read_dir(process.join("fd")).into_iter().flatten();
    entries.flatten().any(|fd| {
        // Sockets and pipes have no path.
        let target = fs::read_link(fd.path()).is_ok_and(|target| target.is_absolute());
        target && subjects.iter().any(|one| one.is_open_as(&fd.path()))
    })
}

/// Whether `process` shares memory with one of `subjects`: what it writes there comes to the device
/// or file, though it may have closed that.
fn maps(process: &Path, subjects: &[Subject]) -> bool {
    let text = fs::read(process.join("maps")).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let mut shared = text.lines().filter_map(shared_mapping);
    shared.any(|(node, path)| {
        let is_it = |one: &Subject| one.node == Some(node) || one.is_at(Path::new(path));
        subjects.iter().any(is_it)
    })
}

/// File and path of a line of `/proc/PID/maps`, if it is of a file that is shared:
/// `7f12c000-7f12d000 rw-s 00000000 08:02 1234      /path`.
fn shared_mapping(line: &str) -> Option<(Node, &str)> {
    let mut words = line.splitn(6, ' ');
    let rights = words.nth(1)?;
    let (major, minor) = words.nth(1)?.split_once(':')?;
    let number = |text| u32::from_str_radix(text, 16).ok();
    let inode = words.next()?.parse().ok()?;
    let node = Node::File(number(major)?, number(minor)?, inode);
    let path = words.next()?.trim_start();
    (rights.ends_with('s') && path.starts_with('/')).then_some((node, path))
}

impl Subject {
    /// Whether the descriptor `fd` (`/proc/PID/fd/N`) is one of it: it leads to what is open,
    /// whatever its path is where the process lives.
    fn is_open_as(&self, fd: &Path) -> bool {
        match (Node::of(fd), self.node) {
            (Some(found), Some(node)) => found == node,
            _ => fs::read_link(fd).is_ok_and(|target| target == Path::new(&self.path)),
        }
    }
}

/// Whether the kernel has claimed the device at `path`: an exclusive open fails.
pub(crate) fn is_claimed(path: &str) -> bool {
    let flags = OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC;
    matches!(
        open(path, flags, Mode::empty()),
        Err(rustix::io::Errno::BUSY)
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::testing::machine;
    use std::os::unix::fs::symlink;

    #[test]
    fn each_way_to_use_a_disk_is_seen_with_its_remedy() {
        let (_root, roots) = machine();
        let disk = Block::named(&roots.sys, "sdz").unwrap();
        assert_eq!(claims(&disk, &roots), []);
        let mount = "1 0 0:44 / /mnt rw - btrfs /dev/sdz1 rw\n";
        fs::write(roots.proc.join("self/mountinfo"), mount).unwrap();
        fs::write(roots.proc.join("swaps"), "Filename\n/dev/sdz1 x\n").unwrap();
        fs::write(roots.sys.join("devices/sdz/sdz1/holders/dm-3"), "").unwrap();
        let by = roots.sys.join("block/loop4/loop");
        fs::create_dir_all(&by).unwrap();
        fs::write(by.join("backing_file"), "/dev/sdz\n").unwrap();
        let texts: Vec<String> = claims(&disk, &roots).iter().map(User::to_string).collect();
        for remedy in [
            "umount /mnt",
            "swapoff /dev/sdz1",
            "part of dm-3",
            "losetup -d /dev/loop4",
        ] {
            assert!(texts.iter().any(|text| text.contains(remedy)), "{texts:?}");
        }
    }

    #[test]
    fn only_a_mount_on_which_nothing_else_lies_can_be_taken_alone() {
        let (_root, roots) = machine();
        let mounts = [
            "1 0 8:17 / /mnt rw - ext4 /dev/sdz1 rw",
            "2 0 8:17 / /free rw - ext4 /dev/sdz1 rw",
            "3 0 8:17 / /above rw - ext4 /dev/sdz1 rw",
            "4 3 8:1 / /above/home rw - ext4 /dev/sda1 rw",
            "5 1 8:1 / /mnt rw - ext4 /dev/sda1 rw",
        ];
        fs::write(roots.proc.join("self/mountinfo"), mounts.join("\n")).unwrap();
        assert_eq!(removable_mounts("sdz", &roots), ["/free"]);
        assert_eq!(users_of_disk("sdz", &roots).len(), 3);
    }

    #[test]
    fn mounts_of_a_disk_that_is_gone_are_known_by_their_sources() {
        let (_root, roots) = machine();
        let mounts = [
            "1 0 259:3 / /dead rw - ext4 /dev/ublkb1 rw",
            "2 0 259:4 / /part rw - vfat /dev/ublkb1p2 rw",
            "3 0 259:5 / /other rw - ext4 /dev/ublkb12 rw",
            "4 0 0:44 / /mnt rw - tmpfs ublkb1 rw",
        ];
        fs::write(roots.proc.join("self/mountinfo"), mounts.join("\n")).unwrap();
        assert_eq!(removable_mounts("ublkb1", &roots), ["/dead", "/part"]);
        let users = users_of_disk("ublkb1", &roots);
        assert_eq!(users.len(), 2);
        assert!(users[0].to_string().contains("umount /dead"), "{users:?}");
    }

    #[test]
    fn a_mount_that_only_another_process_sees_names_it() {
        let (_root, roots) = machine();
        fs::create_dir_all(roots.proc.join("17")).unwrap();
        let mount = "1 0 8:17 / /data rw - ext4 /dev/sdz1 rw\n";
        fs::write(roots.proc.join("17/mountinfo"), mount).unwrap();
        let users = users_of_disk("sdz", &roots);
        assert_eq!(users.len(), 1);
        assert!(users[0].to_string().contains("nsenter -t 17 -m"));
    }

    #[test]
    fn attack_who_shares_memory_with_a_file_uses_it() {
        let (root, roots) = machine();
        let image = root.path().join("image");
        fs::write(&image, "").unwrap();
        let Some(Node::File(major, minor, inode)) = Node::of(&image) else {
            panic!("a file");
        };
        fs::create_dir_all(roots.proc.join("17")).unwrap();
        fs::write(roots.proc.join("17/comm"), "qemu\n").unwrap();
        let used = |rights: &str, inode: u64| {
            let line = format!(
                "7f00-7f01 {rights} 00000000 {major:02x}:{minor:02x} {inode}    /elsewhere\n\
                 7f02-7f03 rw-p 00000000 00:00 0 \n7f04-7f05 rw-s 00000000 00:01 9 [x]\n"
            );
            fs::write(roots.proc.join("17/maps"), line).unwrap();
            processes_of_file(&image, &roots).len()
        };
        assert_eq!(used("rw-s", inode), 1);
        assert_eq!(used("rw-p", inode), 0, "a copy of its own");
        assert_eq!(used("rw-s", inode + 1), 0);
    }

    #[test]
    fn a_file_is_known_under_each_of_its_names() {
        let (root, roots) = machine();
        let (image, link) = (root.path().join("image"), root.path().join("link"));
        fs::write(&image, "").unwrap();
        fs::hard_link(&image, &link).unwrap();
        assert_eq!(claims_of_file(&link, &roots), []);
        assert_eq!(processes_of_file(&link, &roots), []);
        fs::create_dir_all(roots.proc.join("17/fd")).unwrap();
        fs::write(roots.proc.join("17/comm"), "qemu\n").unwrap();
        symlink(&image, roots.proc.join("17/fd/5")).unwrap();
        let by = roots.sys.join("block/loop4/loop");
        fs::create_dir_all(&by).unwrap();
        fs::write(by.join("backing_file"), image.to_str().unwrap()).unwrap();
        let text = format!("{:?}", processes_of_file(&link, &roots));
        assert!(text.contains("17") && text.contains("qemu"), "{text}");
        assert_eq!(claims_of_file(&link, &roots).len(), 1);
    }
}
