//! What the kernel said about a filesystem, by its own sentences.

use serde::{Deserialize, Serialize};

/// Kinds of messages, the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KernelMessage {
    /// Nothing to do with damage.
    Plain,
    /// The journal or log was recovered, orphans were cleaned up.
    Recovery,
    /// The filesystem was not unmounted, or wants to be checked.
    WantsCheck,
    /// It went, or stays, read-only.
    ReadOnly,
    /// Structure or data are damaged.
    Damage,
    /// The device answered with an error.
    DeviceError,
    /// The kernel itself failed: BUG, oops, WARNING.
    Oops,
    /// The kernel does not go on: a processor or a task that is stuck.
    Hang,
}

/// Sentences of Linux 6.12, in lower case, the worse first: the first that a line holds decides.
/// The device is called as the lab calls it.
const SENTENCES: [(&str, KernelMessage); 66] = [
    // kernel/watchdog.c, kernel/hung_task.c, kernel/rcu/tree_stall.h
    ("soft lockup", KernelMessage::Hang),
    ("hard lockup", KernelMessage::Hang),
    ("blocked for more than", KernelMessage::Hang),
    ("detected stall", KernelMessage::Hang),
    ("kernel bug at", KernelMessage::Oops),
    ("bug: ", KernelMessage::Oops),
    ("oops:", KernelMessage::Oops),
    ("general protection fault", KernelMessage::Oops),
    ("warning: cpu:", KernelMessage::Oops),
    ("assertion failed", KernelMessage::Oops),
    ("unable to handle", KernelMessage::Oops),
    ("i/o error, dev", KernelMessage::DeviceError),
    ("buffer i/o error", KernelMessage::DeviceError),
    ("lost async page write", KernelMessage::DeviceError),
    // ext2, ext3, ext4 and jbd2
    ("ext4-fs error", KernelMessage::Damage),
    ("ext2-fs error", KernelMessage::Damage),
    ("ext2-fs (vda): error", KernelMessage::Damage),
    ("ext4-fs warning", KernelMessage::WantsCheck),
    ("warning: mounting fs with errors", KernelMessage::Damage),
    ("mounting unchecked fs", KernelMessage::WantsCheck),
    ("mounting fs with errors", KernelMessage::Damage),
    ("error loading journal", KernelMessage::Damage),
    ("journal checksum error", KernelMessage::Damage),
    ("jbd2: invalid checksum", KernelMessage::Damage),
    ("jbd2: recovery failed", KernelMessage::Damage),
    ("recovery complete", KernelMessage::Recovery),
    ("orphan cleanup", KernelMessage::Recovery),
    ("orphan inode", KernelMessage::Recovery),
    ("truncate: deleted", KernelMessage::Recovery),
    // xfs
    ("metadata corruption detected", KernelMessage::Damage),
    ("metadata crc error", KernelMessage::Damage),
    ("corruption of in-memory data", KernelMessage::Damage),
    ("corruption detected", KernelMessage::Damage),
    ("log mount/recovery failed", KernelMessage::Damage),
    ("log mount failed", KernelMessage::Damage),
    ("shutting down filesystem", KernelMessage::Damage),
    ("starting recovery", KernelMessage::Recovery),
    ("ending recovery", KernelMessage::Recovery),
    // btrfs
    ("checksum verify failed", KernelMessage::Damage),
    ("csum failed", KernelMessage::Damage),
    ("parent transid verify failed", KernelMessage::Damage),
    ("bad tree block", KernelMessage::Damage),
    ("corrupt leaf", KernelMessage::Damage),
    ("failed to read", KernelMessage::Damage),
    ("btrfs error (device", KernelMessage::Damage),
    ("btrfs: error (device", KernelMessage::Damage),
    ("forced readonly", KernelMessage::ReadOnly),
    ("start tree-log replay", KernelMessage::Recovery),
    // nilfs2
    ("nilfs error", KernelMessage::Damage),
    ("nilfs (vda): error", KernelMessage::Damage),
    // jfs
    ("error: (device vda)", KernelMessage::Damage),
    // ntfs3
    ("dirty due to ntfs error", KernelMessage::Damage),
    // reiserfs
    ("reiserfs error", KernelMessage::Damage),
    ("replayed", KernelMessage::Recovery),
    // f2fs
    ("inconsistent", KernelMessage::Damage),
    ("run fsck to fix", KernelMessage::Damage),
    ("recover fsync data", KernelMessage::Recovery),
    // What f2fs found behind its last checkpoint, file by file (fs/f2fs/recovery.c).
    ("recover_inode: ino", KernelMessage::Recovery),
    ("recover_dentry: ino", KernelMessage::Recovery),
    ("recover_data: ino", KernelMessage::Recovery),
    // FAT, exFAT, NTFS
    ("was not properly unmounted", KernelMessage::WantsCheck),
    ("volume is dirty", KernelMessage::WantsCheck),
    ("fat-fs (vda): error", KernelMessage::Damage),
    ("exfat-fs (vda): error", KernelMessage::Damage),
    // all
    ("remounting filesystem read-only", KernelMessage::ReadOnly),
    ("filesystem has been set read-only", KernelMessage::ReadOnly),
];

/// How the lab's kernel calls the device under test.
const LAB_DEVICE: &str = "vda";

/// Further signs of damage, whatever the filesystem.
const DAMAGE: [&str; 4] = ["corrupt", "checksum error", "bad magic", "invalid inode"];

/// The kind of one line of the kernel log.
pub fn classify(line: &str) -> KernelMessage {
    let line = line.to_lowercase();
    let sentence = SENTENCES.iter().find(|(text, _)| says(&line, text));
    if let Some((_, kind)) = sentence {
        return *kind;
    }
    if DAMAGE.iter().any(|text| line.contains(text)) {
        return KernelMessage::Damage;
    }
    KernelMessage::Plain
}

/// What of the kernel's `lines` is about the device that it calls `device`, as messages of the lab
/// are: the device is called `vda`, and what is about another one is left out. What names no device
/// may be about this one.
pub fn of_device(device: &str, lines: &[String]) -> Vec<String> {
    let ours = lines
        .iter()
        .filter(|line| named(line).is_none_or(|name| name == device || device.starts_with(name)));
    ours.map(|line| line.replace(device, LAB_DEVICE)).collect()
}

/// The device that a line of a filesystem is about: `EXT4-fs (sda1): …`, `EXT4-fs error (device
/// sda1): …`, `I/O error, dev sda, sector …`.
fn named(line: &str) -> Option<&str> {
    let mut in_brackets = line.match_indices('(').filter_map(|(at, _)| {
        let (inside, _) = line[at + 1..].split_once(')')?;
        let device = inside.strip_prefix("device ");
        let before = line[..at].trim_end();
        let is_of_fs = before.ends_with("-fs") || ["XFS", "NILFS"].contains(&before);
        let name = device.or_else(|| is_of_fs.then_some(inside))?;
        name.split([' ', ':', ',']).next()
    });
    let after_dev = || {
        let (_, rest) = line.split_once("dev ")?;
        rest.split([',', ' ']).next()
    };
    in_brackets.next().or_else(after_dev)
}

/// Whether `text` stands in `line` and does not begin inside a word: "debug: " is no "bug: ".
fn says(line: &str, text: &str) -> bool {
    line.match_indices(text).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(char::is_alphanumeric)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_about_other_devices_are_left_out_and_ours_are_as_the_labs() {
        let lines = [
            "FAT-fs (mmcblk0p1): error, fat_get_cluster",
            "EXT4-fs error (device mmcblk1p2): ext4_lookup:1858: inode #2: comm ls",
            "EXT4-fs (mmcblk0p1): recovery complete",
            "XFS (sda1): Metadata corruption detected",
            "I/O error, dev mmcblk0, sector 8",
            "I/O error, dev sdb, sector 8",
            "JBD2: recovery failed",
            "BTRFS info (device mmcblk0p1 state E): forced readonly",
            "wlan0: associated (try 1/3)",
        ]
        .map(str::to_owned);
        let expected = [
            "FAT-fs (vda): error, fat_get_cluster",
            "EXT4-fs (vda): recovery complete",
            "I/O error, dev mmcblk0, sector 8",
            "JBD2: recovery failed",
            "BTRFS info (device vda state E): forced readonly",
            "wlan0: associated (try 1/3)",
        ];
        let found = of_device("mmcblk0p1", &lines);
        assert_eq!(found, expected);
        assert_eq!(classify(&found[0]), KernelMessage::Damage);
        assert_eq!(classify(&found[1]), KernelMessage::Recovery);
    }

    #[test]
    fn lines_of_real_kernels_are_told_apart() {
        let lines = [
            (
                "EXT4-fs (vda): mounted filesystem with ordered data mode",
                KernelMessage::Plain,
            ),
            ("EXT4-fs (vda): recovery complete", KernelMessage::Recovery),
            (
                "EXT4-fs (vda): 2 orphan inodes deleted",
                KernelMessage::Recovery,
            ),
            (
                "EXT4-fs error (device vda): ext4_lookup:1785: inode #2",
                KernelMessage::Damage,
            ),
            (
                "EXT4-fs (vda): Remounting filesystem read-only",
                KernelMessage::ReadOnly,
            ),
            (
                "XFS (vda): Starting recovery (logdev: internal)",
                KernelMessage::Recovery,
            ),
            (
                "XFS (vda): Metadata CRC error detected at xfs_agi_read_verify",
                KernelMessage::Damage,
            ),
            (
                "BTRFS info (device vda): start tree-log replay",
                KernelMessage::Recovery,
            ),
            (
                "BTRFS warning (device vda): csum failed root 5 ino 257",
                KernelMessage::Damage,
            ),
            (
                "F2FS-fs (vda): recover fsync data on readonly fs",
                KernelMessage::Recovery,
            ),
            (
                "F2FS-fs (vda): recover_data: ino = 5 (i_size: recover) recovered = 2, err = 0",
                KernelMessage::Recovery,
            ),
            (
                "FAT-fs (vda): Volume was not properly unmounted.",
                KernelMessage::WantsCheck,
            ),
            (
                "EXT2-fs (vda): error: ext2_lookup: deleted inode referenced: 15",
                KernelMessage::Damage,
            ),
            (
                "REISERFS error (device vda): vs-5150 search_by_key: invalid format found in \
                 block 8211. Fsck?",
                KernelMessage::Damage,
            ),
            (
                "BTRFS: error (device vda state A) in btrfs_run_delayed_refs:2160: errno=-5",
                KernelMessage::Damage,
            ),
            (
                "BTRFS info (device vda state EA): forced readonly",
                KernelMessage::ReadOnly,
            ),
            (
                "FAT-fs (vda): Filesystem has been set read-only",
                KernelMessage::ReadOnly,
            ),
            ("XFS (vda): log mount failed", KernelMessage::Damage),
            (
                "NILFS error (device vda): nilfs_check_folio: bad entry in directory #11",
                KernelMessage::Damage,
            ),
            (
                "ERROR: (device vda): diRead: i_ino != di_number",
                KernelMessage::Damage,
            ),
            (
                "ntfs3(vda): Mark volume as dirty due to NTFS errors",
                KernelMessage::Damage,
            ),
            ("debug: nothing", KernelMessage::Plain),
            ("kernel BUG at fs/jbd2/commit.c:534!", KernelMessage::Oops),
            (
                "WARNING: CPU: 0 PID: 1 at fs/inode.c:407",
                KernelMessage::Oops,
            ),
            (
                "watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [agent:1]",
                KernelMessage::Hang,
            ),
            (
                "INFO: task agent:1 blocked for more than 120 seconds.",
                KernelMessage::Hang,
            ),
            (
                "rcu: INFO: rcu_sched self-detected stall on CPU",
                KernelMessage::Hang,
            ),
            (
                "I/O error, dev vda, sector 8 op 0x0:(READ)",
                KernelMessage::DeviceError,
            ),
        ];
        for (line, kind) in lines {
            assert_eq!(classify(line), kind, "{line}");
        }
        assert!(
            KernelMessage::Hang > KernelMessage::Oops
                && KernelMessage::Oops > KernelMessage::Damage
        );
        assert!(KernelMessage::Damage > KernelMessage::Recovery);
    }
}
