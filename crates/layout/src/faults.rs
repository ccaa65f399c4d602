//! Faults of partitions as a whole: cut off, overlapping, without a second table.

use crate::superblock::SuperblockFigure;
use crate::{FoundPartition, LayoutFault};
use whichfs_units::Bytes;

/// That a part of `found` lies behind the end of a disk of `bytes`, or its filesystem behind its
/// own end.
pub fn cut_off(found: &FoundPartition, bytes: u64) -> Option<LayoutFault> {
    let end = found.start.saturating_add(found.bytes);
    let superblock = found.superblock.as_ref();
    // Of a btrfs it is the size of all its devices.
    let covers = superblock.filter(|superblock| superblock.candidate != "btrfs");
    let covers = covers.and_then(|superblock| superblock.figure(SuperblockFigure::Bytes));
    let what = match covers {
        _ if end > bytes => format!(
            "it ends at {}, behind the end of the disk at {}",
            Bytes(end),
            Bytes(bytes)
        ),
        Some(covers) if covers > found.bytes => format!(
            "its filesystem has {}, more than the {} that are there",
            Bytes(covers),
            Bytes(found.bytes)
        ),
        _ => return None,
    };
    Some(LayoutFault {
        what,
        costs: "the image is cut off, or was written to a card that is too small: what lies behind \
                is missing",
    })
}

/// That the second copy of a GPT is not what it should be.
pub fn backup_fault(damage: String) -> LayoutFault {
    LayoutFault {
        what: format!("the second copy of the GPT is damaged ({damage})"),
        costs: "if the first copy is lost, so are the partitions; gdisk writes it anew",
    }
}

/// That `found` shares bytes with the partition `number`, which has `bytes` from `start` on.
pub fn overlap(
    found: &FoundPartition,
    number: usize,
    start: u64,
    bytes: u64,
) -> Option<LayoutFault> {
    let end = found.start.saturating_add(found.bytes);
    (start < end && found.start < start.saturating_add(bytes)).then(|| LayoutFault {
        what: format!(
            "it overlaps partition {number}, which begins at {}",
            Bytes(start)
        ),
        costs: "what is written to one destroys the other",
    })
}
