//! What the kernel said about a filesystem, by its own sentences.

use serde::{Deserialize, Serialize};

/// Kinds of messages, the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
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
const SENTENCES: [(&str, Message); 66] = [
    // kernel/watchdog.c, kernel/hung_task.c, kernel/rcu/tree_stall.h
    ("soft lockup", Message::Hang),
    ("hard lockup", Message::Hang),
    ("blocked for more than", Message::Hang),
    ("detected stall", Message::Hang),
    ("kernel bug at", Message::Oops),
    ("bug: ", Message::Oops),
    ("oops:", Message::Oops),
    ("general protection fault", Message::Oops),
    ("warning: cpu:", Message::Oops),
    ("assertion failed", Message::Oops),
    ("unable to handle", Message::Oops),
    ("i/o error, dev", Message::DeviceError),
    ("buffer i/o error", Message::DeviceError),
    ("lost async page write", Message::DeviceError),
    // ext2, ext3, ext4 and jbd2
    ("ext4-fs error", Message::Damage),
    ("ext2-fs error", Message::Damage),
    ("ext2-fs (vda): error", Message::Damage),
    ("ext4-fs warning", Message::WantsCheck),
    ("warning: mounting fs with errors", Message::Damage),
    ("mounting unchecked fs", Message::WantsCheck),
    ("mounting fs with errors", Message::Damage),
    ("error loading journal", Message::Damage),
    ("journal checksum error", Message::Damage),
    ("jbd2: invalid checksum", Message::Damage),
    ("jbd2: recovery failed", Message::Damage),
    ("recovery complete", Message::Recovery),
    ("orphan cleanup", Message::Recovery),
    ("orphan inode", Message::Recovery),
    ("truncate: deleted", Message::Recovery),
    // xfs
    ("metadata corruption detected", Message::Damage),
    ("metadata crc error", Message::Damage),
    ("corruption of in-memory data", Message::Damage),
    ("corruption detected", Message::Damage),
    ("log mount/recovery failed", Message::Damage),
    ("log mount failed", Message::Damage),
    ("shutting down filesystem", Message::Damage),
    ("starting recovery", Message::Recovery),
    ("ending recovery", Message::Recovery),
    // btrfs
    ("checksum verify failed", Message::Damage),
    ("csum failed", Message::Damage),
    ("parent transid verify failed", Message::Damage),
    ("bad tree block", Message::Damage),
    ("corrupt leaf", Message::Damage),
    ("failed to read", Message::Damage),
    ("btrfs error (device", Message::Damage),
    ("btrfs: error (device", Message::Damage),
    ("forced readonly", Message::ReadOnly),
    ("start tree-log replay", Message::Recovery),
    // nilfs2
    ("nilfs error", Message::Damage),
    ("nilfs (vda): error", Message::Damage),
    // jfs
    ("error: (device vda)", Message::Damage),
    // ntfs3
    ("dirty due to ntfs error", Message::Damage),
    // reiserfs
    ("reiserfs error", Message::Damage),
    ("replayed", Message::Recovery),
    // f2fs
    ("inconsistent", Message::Damage),
    ("run fsck to fix", Message::Damage),
    ("recover fsync data", Message::Recovery),
    // What f2fs found behind its last checkpoint, file by file (fs/f2fs/recovery.c).
    ("recover_inode: ino", Message::Recovery),
    ("recover_dentry: ino", Message::Recovery),
    ("recover_data: ino", Message::Recovery),
    // FAT, exFAT, NTFS
    ("was not properly unmounted", Message::WantsCheck),
    ("volume is dirty", Message::WantsCheck),
    ("fat-fs (vda): error", Message::Damage),
    ("exfat-fs (vda): error", Message::Damage),
    // all
    ("remounting filesystem read-only", Message::ReadOnly),
    ("filesystem has been set read-only", Message::ReadOnly),
];

/// How the lab's kernel calls the device under test.
const LAB_DEVICE: &str = "vda";

/// Further signs of damage, whatever the filesystem.
const DAMAGE: [&str; 4] = ["corrupt", "checksum error", "bad magic", "invalid inode"];

/// The kind of one line of the kernel log.
pub fn classify(line: &str) -> Message {
    let line = line.to_lowercase();
    let sentence = SENTENCES.iter().find(|(text, _)| says(&line, text));
    if let Some((_, kind)) = sentence {
        return *kind;
    }
    if DAMAGE.iter().any(|text| line.contains(text)) {
        return Message::Damage;
    }
    Message::Plain
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
        assert_eq!(classify(&found[0]), Message::Damage);
        assert_eq!(classify(&found[1]), Message::Recovery);
    }

    #[test]
    fn lines_of_real_kernels_are_told_apart() {
        let lines = [
            (
                "EXT4-fs (vda): mounted filesystem with ordered data mode",
                Message::Plain,
            ),
            ("EXT4-fs (vda): recovery complete", Message::Recovery),
            ("EXT4-fs (vda): 2 orphan inodes deleted", Message::Recovery),
            (
                "EXT4-fs error (device vda): ext4_lookup:1785: inode #2",
                Message::Damage,
            ),
            (
                "EXT4-fs (vda): Remounting filesystem read-only",
                Message::ReadOnly,
            ),
            (
                "XFS (vda): Starting recovery (logdev: internal)",
                Message::Recovery,
            ),
            (
                "XFS (vda): Metadata CRC error detected at xfs_agi_read_verify",
                Message::Damage,
            ),
            (
                "BTRFS info (device vda): start tree-log replay",
                Message::Recovery,
            ),
            (
                "BTRFS warning (device vda): csum failed root 5 ino 257",
                Message::Damage,
            ),
            (
                "F2FS-fs (vda): recover fsync data on readonly fs",
                Message::Recovery,
            ),
            (
                "F2FS-fs (vda): recover_data: ino = 5 (i_size: recover) recovered = 2, err = 0",
                Message::Recovery,
            ),
            (
                "FAT-fs (vda): Volume was not properly unmounted.",
                Message::WantsCheck,
            ),
            (
                "EXT2-fs (vda): error: ext2_lookup: deleted inode referenced: 15",
                Message::Damage,
            ),
            (
                "REISERFS error (device vda): vs-5150 search_by_key: invalid format found in \
                 block 8211. Fsck?",
                Message::Damage,
            ),
            (
                "BTRFS: error (device vda state A) in btrfs_run_delayed_refs:2160: errno=-5",
                Message::Damage,
            ),
            (
                "BTRFS info (device vda state EA): forced readonly",
                Message::ReadOnly,
            ),
            (
                "FAT-fs (vda): Filesystem has been set read-only",
                Message::ReadOnly,
            ),
            ("XFS (vda): log mount failed", Message::Damage),
            (
                "NILFS error (device vda): nilfs_check_folio: bad entry in directory #11",
                Message::Damage,
            ),
            (
                "ERROR: (device vda): diRead: i_ino != di_number",
                Message::Damage,
            ),
            (
                "ntfs3(vda): Mark volume as dirty due to NTFS errors",
                Message::Damage,
            ),
            ("debug: nothing", Message::Plain),
            ("kernel BUG at fs/jbd2/commit.c:534!", Message::Oops),
            ("WARNING: CPU: 0 PID: 1 at fs/inode.c:407", Message::Oops),
            (
                "watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [agent:1]",
                Message::Hang,
            ),
            (
                "INFO: task agent:1 blocked for more than 120 seconds.",
                Message::Hang,
            ),
            (
                "rcu: INFO: rcu_sched self-detected stall on CPU",
                Message::Hang,
            ),
            (
                "I/O error, dev vda, sector 8 op 0x0:(READ)",
                Message::DeviceError,
            ),
        ];
        for (line, kind) in lines {
            assert_eq!(classify(line), kind, "{line}");
        }
        assert!(Message::Hang > Message::Oops && Message::Oops > Message::Damage);
        assert!(Message::Damage > Message::Recovery);
    }
}
