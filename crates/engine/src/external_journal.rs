//! An external journal: on a second card, or on the same one. There the filesystem's partition is
//! parted into two in the guest, one of them for the journal alone, behind one queue.

use crate::error::{Error, Outcome};
use crate::guest_places::{DEVICE, SECOND_DEVICE};
use crate::partition::CardWindow;
use crate::prepare_error::PrepareError;
use whichfs_fs::Recipe;
use whichfs_study::{JournalAt, JournalPartition, SecondCardUse, Variant};
use whichfs_units::{Bytes, MIB, SECTOR};

/// Identifier of the journal: the same in all trials, so that they are comparable.
const UUID: &str = "6a6f7572-6e61-4c00-8000-000000000001";
/// Makes the kernel know a partition without a table on the disk (util-linux).
const ADDPART: &str = "addpart";

/// How a trial's disk is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskUse {
    /// Device of the filesystem.
    pub device: String,
    /// The whole disk, if the device is a part of it.
    pub whole: Option<String>,
    /// Bytes of the filesystem's device.
    pub bytes: u64,
    /// Commands that part it.
    pub before: Vec<Vec<String>>,
}

/// The disk of a trial in `partition`, parted if `variant` asks for it; `au` is the card's.
///
/// # Errors
/// If there is no room for a filesystem beside the journal.
pub fn disk(partition: &CardWindow, variant: &Variant, au: u64) -> Outcome<DiskUse> {
    let Some(journal) = variant.journal else {
        return Ok(DiskUse {
            device: DEVICE.to_owned(),
            whole: None,
            bytes: partition.bytes,
            before: Vec::new(),
        });
    };
    let (filesystem, place) = spans(partition.bytes, journal, au)?;
    let add = |number: u32, (offset, bytes): (u64, u64)| {
        let sectors = [offset / SECTOR, bytes / SECTOR].map(|n| n.to_string());
        let words = [ADDPART, DEVICE].map(str::to_owned);
        [&words[..], &[number.to_string()], &sectors].concat()
    };
    Ok(DiskUse {
        device: part(1),
        whole: Some(DEVICE.to_owned()),
        bytes: filesystem.1,
        before: vec![add(1, filesystem), add(2, place)],
    })
}

/// The device of the journal in the guest, if `variant` wants it elsewhere.
fn device(variant: &Variant) -> Option<String> {
    let holds_journal = |holds| holds == SecondCardUse::Journal;
    match (&variant.second_card, variant.journal) {
        (Some(second), _) if holds_journal(second.holds) => Some(SECOND_DEVICE.to_owned()),
        (_, Some(_)) => Some(part(2)),
        _ => None,
    }
}

/// The command that makes the journal that `recipe` keeps elsewhere for `variant`; none if it needs
/// none: mkfs.xfs makes its own.
pub fn made(recipe: &Recipe, variant: &Variant) -> Option<Vec<String>> {
    let device = device(variant)?;
    (recipe.kernel_fs != "xfs").then(|| {
        let make = [
            "mke2fs",
            "-q",
            "-F",
            "-O",
            "journal_dev",
            "-b",
            "4096",
            "-U",
        ];
        let make = make.map(str::to_owned).into_iter();
        make.chain([UUID.to_owned(), device]).collect()
    })
}

/// Partition `number` of the disk: the filesystem is the first, the journal the second.
fn part(number: u32) -> String {
    format!("{DEVICE}{number}")
}

/// Offset and length of the filesystem and of its journal, of which both are whole AUs.
fn spans(bytes: u64, journal: JournalPartition, au: u64) -> Outcome<((u64, u64), (u64, u64))> {
    let taken = (journal.mib * MIB).next_multiple_of(au.max(1));
    if taken > bytes / 2 {
        return Err(Error::input(format!(
            "an external journal of {} leaves less than that for the filesystem in a partition of \
             {}: take a smaller journal or a larger partition",
            Bytes(taken),
            Bytes(bytes)
        )));
    }
    let rest = bytes - taken;
    Ok(match journal.at {
        JournalAt::Front => ((taken, rest), (0, taken)),
        JournalAt::End => ((0, rest), (rest, taken)),
    })
}

/// Has `recipe` keep its journal elsewhere, if `variant` asks for it.
///
/// # Errors
/// If it has no journal that can be elsewhere.
pub fn apply_variant(
    recipe: &mut Recipe,
    variant: &Variant,
    name: &str,
) -> Result<(), PrepareError> {
    let Some(device) = device(variant) else {
        return Ok(());
    };
    if !keep_on(recipe, name, &device) {
        return Err(PrepareError::Failed(Error::input(format!(
            "{name}, {}: journal: only ext3, ext4 and xfs can have it elsewhere; name them in the \
             variant's only",
            variant.name
        ))));
    }
    if variant.journal.is_some() {
        recipe.tools.push(ADDPART);
    }
    Ok(())
}

/// The candidates whose journal can be elsewhere.
pub(crate) const CANDIDATES: [&str; 3] = ["ext3", "ext4", "xfs"];

/// Has `recipe` of the candidate `name` keep its journal on `device`; whether it can.
pub fn keep_on(recipe: &mut Recipe, name: &str, device: &str) -> bool {
    let argv = recipe.mkfs.first_mut();
    let Some(argv) = argv.filter(|_| CANDIDATES.contains(&name)) else {
        return false;
    };
    match recipe.kernel_fs {
        "ext3" | "ext4" => {
            insert(argv, ["-J".to_owned(), format!("device={device}")]);
            // It is looked for by its identifier otherwise, in what blkid knows.
            insert(&mut recipe.fsck_check, ["-j".to_owned(), device.to_owned()]);
        }
        _ => {
            let log = format!("logdev={device}");
            match argv.iter().position(|word| word == "-l") {
                Some(at) => argv[at + 1] = format!("{},{log}", argv[at + 1]),
                None => insert(argv, ["-l".to_owned(), log.clone()]),
            }
            for options in [&mut recipe.mount_options, &mut recipe.fstab_options] {
                let own = std::mem::take(options);
                let all = [own.as_str(), &log].into_iter();
                let all: Vec<&str> = all.filter(|one| !one.is_empty()).collect();
                *options = all.join(",");
            }
            insert(&mut recipe.fsck_check, ["-l".to_owned(), device.to_owned()]);
        }
    }
    true
}

/// Puts `words` before the device of `argv`.
fn insert(argv: &mut Vec<String>, words: [String; 2]) {
    let at = argv.iter().position(|word| word == Recipe::DEVICE);
    let at = at.unwrap_or(argv.len());
    argv.splice(at..at, words);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use whichfs_fs::{Geometry, Purpose};
    use whichfs_study::SecondCard;
    use whichfs_units::{GIB, KIB};

    fn variant(mib: u64, at: JournalAt) -> Variant {
        Variant {
            name: "external".into(),
            journal: Some(JournalPartition { mib, at }),
            ..Variant::default()
        }
    }

    fn recipe(name: &str) -> Recipe {
        let geometry = Geometry {
            partition_bytes: GIB,
            page_bytes: 8 * KIB,
            write_unit_bytes: 32 * KIB,
            au_bytes: 4 * MIB,
            discard: false,
            flush: false,
        };
        let candidate = whichfs_fs::find(name).unwrap();
        candidate
            .recipe(&geometry, Purpose::Lab { seed: 1 })
            .unwrap()
    }

    const PARTITION: CardWindow = CardWindow {
        offset: 4 * MIB,
        bytes: GIB,
    };

    #[test]
    fn the_disk_is_parted_on_allocation_units() {
        let front = disk(&PARTITION, &variant(9, JournalAt::Front), 4 * MIB).unwrap();
        let words: Vec<String> = front.before.iter().map(|argv| argv.join(" ")).collect();
        assert_eq!(words[0], "addpart /dev/vda 1 24576 2072576");
        assert_eq!(
            words[1], "addpart /dev/vda 2 0 24576",
            "9 MiB are three AUs"
        );
        let made = made(&recipe("ext4"), &variant(9, JournalAt::Front)).unwrap();
        let made = made.join(" ");
        assert!(made.ends_with("/dev/vda2") && made.contains("journal_dev"));
        assert_eq!(
            (front.device.as_str(), front.bytes),
            ("/dev/vda1", GIB - 12 * MIB)
        );
        let end = disk(&PARTITION, &variant(8, JournalAt::End), 4 * MIB).unwrap();
        assert_eq!(end.before[0].join(" "), "addpart /dev/vda 1 0 2080768");
        assert_eq!(end.before[1].join(" "), "addpart /dev/vda 2 2080768 16384");
        let without = disk(&PARTITION, &Variant::default(), 4 * MIB).unwrap();
        assert_eq!((without.device.as_str(), without.bytes), (DEVICE, GIB));
        assert!(without.before.is_empty() && without.whole.is_none());
        let error = disk(&PARTITION, &variant(600, JournalAt::End), 4 * MIB).unwrap_err();
        assert!(error.message.contains("smaller journal"), "{error}");
    }

    #[test]
    fn the_journal_is_named_to_mkfs_and_fsck_and_only_ext_has_one() {
        let mut ext4 = recipe("ext4");
        apply_variant(&mut ext4, &variant(64, JournalAt::Front), "ext4").unwrap();
        assert!(
            ext4.mkfs[0]
                .join(" ")
                .ends_with("-J device=/dev/vda2 {device}")
        );
        assert_eq!(
            ext4.fsck_check.join(" "),
            "e2fsck -f -n -j /dev/vda2 {device}"
        );
        assert!(ext4.tools.contains(&ADDPART));
        for name in ["ext2", "ext4-nojournal", "btrfs"] {
            let refused = apply_variant(&mut recipe(name), &variant(64, JournalAt::Front), name);
            let PrepareError::Failed(failure) = refused.unwrap_err() else {
                unreachable!("it is the study's fault");
            };
            assert!(
                failure.message.contains("only ext3, ext4 and xfs"),
                "{failure}"
            );
        }
        let second = Variant {
            second_card: Some(SecondCard {
                card: "emmc-8gb".into(),
                holds: SecondCardUse::Journal,
                mib: 64,
            }),
            ..Variant::default()
        };
        let mut xfs = recipe("xfs");
        apply_variant(&mut xfs, &second, "xfs").unwrap();
        let mkfs = xfs.mkfs[0].join(" ");
        assert!(mkfs.ends_with(",logdev=/dev/vdb {device}"), "{mkfs}");
        assert_eq!(xfs.mount_options, "noatime,logdev=/dev/vdb");
        assert_eq!(
            xfs.fsck_check.join(" "),
            "xfs_repair -n -l /dev/vdb {device}"
        );
        assert_eq!(made(&xfs, &second), None, "mkfs.xfs makes it");
        assert!(!xfs.tools.contains(&ADDPART), "nothing is parted");
        let journal = made(&recipe("ext4"), &second).unwrap();
        assert!(journal.ends_with(&["/dev/vdb".to_owned()]), "{journal:?}");
        let untouched = recipe("btrfs");
        let mut same = recipe("btrfs");
        apply_variant(&mut same, &Variant::default(), "btrfs").unwrap();
        assert_eq!(same.mkfs, untouched.mkfs);
    }
}
