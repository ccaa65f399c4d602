//! Whether what is on a card is aligned and tuned.

use crate::medium::Medium;
use crate::superblock::{Superblock, SuperblockFigure, expected};
use serde::Serialize;
use std::collections::BTreeMap;
use whichfs_fs::{Candidate, Purpose, find};
use whichfs_units::{Bytes, SECTOR};

/// A partition, or a whole disk without a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundPartition {
    /// First byte on the disk.
    pub start: u64,
    /// Size of the partition in bytes.
    pub bytes: u64,
    /// The filesystem in it, if one is known.
    pub superblock: Option<Superblock>,
}

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct LayoutFault {
    /// What was found and what would be right.
    pub what: String,
    /// What it does.
    pub costs: &'static str,
}

/// How what was found is made again elsewhere, for measuring it.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, schemars::JsonSchema)]
pub struct Remedy {
    /// Bytes by which the partition begins behind an allocation unit.
    pub misalignment: u64,
    /// The filesystem is as mkfs makes it by itself.
    pub untuned: bool,
    /// Arguments of mkfs beside the catalogue's.
    pub mkfs: Vec<String>,
    /// Values of options of the catalogue's mkfs command.
    pub set: BTreeMap<String, String>,
}

/// What is to be said of a partition.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct PartitionVerdict {
    /// Its filesystem in the catalogue.
    pub candidate: Option<&'static str>,
    /// What is wrong; nothing if it is as `format` would make it.
    pub faults: Vec<LayoutFault>,
    /// Its figures beside those of the tuned one.
    pub figures: BTreeMap<SuperblockFigure, (u64, Option<u64>)>,
    /// How to make the same for a measurement.
    pub as_found: Remedy,
}

const SHARED: &str = "files share allocation units with what lies beside them: each is copied \
                      for the other's sake";

/// Judges what was `found` on `medium`.
pub fn judge(found: &FoundPartition, medium: &Medium) -> PartitionVerdict {
    let unit = medium.unit.bytes;
    let mut faults = Vec::new();
    let misalignment = found.start % unit;
    if misalignment != 0 {
        faults.push(LayoutFault {
            what: format!(
                "it begins at {}, {} behind an allocation unit of {}",
                bytes(found.start),
                bytes(misalignment),
                Bytes(unit)
            ),
            costs: SHARED,
        });
    }
    let mut verdict = PartitionVerdict {
        candidate: None,
        faults,
        figures: BTreeMap::new(),
        as_found: Remedy {
            misalignment,
            ..Remedy::default()
        },
    };
    let Some(superblock) = &found.superblock else {
        return verdict;
    };
    verdict.candidate = Some(superblock.candidate);
    if let Ok(candidate) = find(superblock.candidate) {
        judge_tuning(&mut verdict, superblock, candidate, found, medium);
    }
    verdict
}

fn judge_tuning(
    verdict: &mut PartitionVerdict,
    superblock: &Superblock,
    candidate: &Candidate,
    found: &FoundPartition,
    medium: &Medium,
) {
    // A damaged table may say anything.
    let geometry = medium.geometry(found.bytes.min(medium.capacity_bytes));
    let tuned = candidate.recipe_of_any_size(&geometry, Purpose::User);
    let wanted = tuned.as_ref().map(expected).unwrap_or_default();
    for (figure, value) in &superblock.figures {
        let want = wanted.get(figure).copied();
        verdict.figures.insert(*figure, (*value, want));
        let differs = want.is_some_and(|want| want != *value);
        // Where FAT's tables end is judged by the data area; its width follows from the size.
        let told = !matches!(
            figure,
            SuperblockFigure::ReservedSectors | SuperblockFigure::FatBits
        );
        if differs && told {
            let shown = |value| match figure.is_bytes() {
                true => bytes(value),
                false => format!("{value}"),
            };
            verdict.faults.push(LayoutFault {
                what: format!(
                    "{} is {}; tuned to this card it is {}",
                    figure.words(),
                    shown(*value),
                    shown(want.unwrap_or_default())
                ),
                costs: costs(*figure),
            });
        }
    }
    if let Some(fault) = data_area(superblock, found.start, medium) {
        verdict.faults.push(fault);
    }
    as_found(&mut verdict.as_found, superblock);
}

/// The data area of a filesystem whose data can begin on an allocation unit.
fn data_area(superblock: &Superblock, start: u64, medium: &Medium) -> Option<LayoutFault> {
    if !matches!(superblock.candidate, "vfat" | "exfat") {
        return None;
    }
    let at = superblock.figure(SuperblockFigure::DataOffset)?;
    let off = start.saturating_add(at) % medium.unit.bytes;
    (off != 0).then(|| LayoutFault {
        what: format!(
            "its data area begins {} behind an allocation unit of {}",
            bytes(off),
            Bytes(medium.unit.bytes)
        ),
        costs: "each write to the tables rewrites an allocation unit with files in it, and the \
                other way round",
    })
}

fn costs(figure: SuperblockFigure) -> &'static str {
    match figure {
        SuperblockFigure::BlockBytes | SuperblockFigure::ClusterBytes => {
            "requests smaller than a flash page are read, changed and written again"
        }
        SuperblockFigure::SegmentsPerSection | SuperblockFigure::BlocksPerSegment => {
            "what is cleaned at once is no whole allocation unit: the card copies the rest"
        }
        _ => "the allocator does not know where allocation units begin",
    }
}

/// How mkfs is told to make a filesystem with the figures of `superblock`.
fn as_found(remedy: &mut Remedy, superblock: &Superblock) {
    let figure = |figure| superblock.figure(figure).unwrap_or(0);
    let mut set = |key: &str, value: u64| {
        remedy.set.insert(key.to_owned(), value.to_string());
    };
    match superblock.candidate {
        "ext2" | "ext3" | "ext4" | "ext4-nojournal" => {
            let (stride, stripe) = (
                figure(SuperblockFigure::Stride),
                figure(SuperblockFigure::StripeWidth),
            );
            let block = figure(SuperblockFigure::BlockBytes);
            if stride == 0 && stripe == 0 {
                remedy.untuned = true;
                remedy.mkfs = vec!["-b".into(), block.to_string()];
            } else {
                set("stride", stride.max(1));
                set("stripe_width", stripe.max(1));
                set("-b", block);
            }
        }
        "f2fs" => set("-s", figure(SuperblockFigure::SegmentsPerSection)),
        "xfs" => match figure(SuperblockFigure::StripeUnitBytes) {
            0 => remedy.untuned = true,
            unit => {
                set("su", unit);
                set("sw", figure(SuperblockFigure::StripeBytes) / unit);
                set("agsize", figure(SuperblockFigure::GroupBytes));
            }
        },
        "vfat" => {
            set("-R", figure(SuperblockFigure::ReservedSectors));
            set("-s", figure(SuperblockFigure::ClusterBytes) / SECTOR);
        }
        "exfat" => {
            let data = figure(SuperblockFigure::DataOffset).max(SECTOR);
            set("-c", figure(SuperblockFigure::ClusterBytes));
            set("-b", 1 << data.trailing_zeros());
        }
        "nilfs2" => set("-B", figure(SuperblockFigure::BlocksPerSegment)),
        "ntfs3" => set("-c", figure(SuperblockFigure::ClusterBytes)),
        _ => {}
    }
}

/// Bytes in words, exactly where that is short.
fn bytes(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        _ => Bytes(bytes).to_string(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::medium::Unit;
    use whichfs_units::{GIB, MIB};

    fn medium() -> Medium {
        Medium::of_unit(GIB, Unit::new(4 * MIB, "given").unwrap(), true)
    }

    fn ext4(stride: u64, stripe: u64, block: u64) -> Superblock {
        Superblock {
            candidate: "ext4",
            label: String::new(),
            figures: BTreeMap::from([
                (SuperblockFigure::BlockBytes, block),
                (SuperblockFigure::Stride, stride),
                (SuperblockFigure::StripeWidth, stripe),
            ]),
        }
    }

    fn of(start: u64, superblock: Option<Superblock>) -> PartitionVerdict {
        let found = FoundPartition {
            start,
            bytes: 512 * MIB,
            superblock,
        };
        judge(&found, &medium())
    }

    #[test]
    fn what_format_makes_has_no_fault() {
        assert!(of(4 * MIB, Some(ext4(16, 1024, 4096))).faults.is_empty());
        assert!(of(0, None).faults.is_empty());
    }

    #[test]
    fn misalignment_and_defaults_are_faults_and_can_be_made_again() {
        let verdict = of(63 * 512, Some(ext4(0, 0, 1024)));
        let all: Vec<&str> = verdict.faults.iter().map(|f| f.what.as_str()).collect();
        assert!(all[0].contains("31.5 KiB behind"), "{all:?}");
        assert!(
            all.iter().any(|what| what.contains("block size is 1 KiB")),
            "{all:?}"
        );
        assert_eq!(verdict.as_found.misalignment, 63 * 512);
        assert!(verdict.as_found.untuned);
        assert_eq!(verdict.as_found.mkfs, ["-b", "1024"]);
        let other = of(0, Some(ext4(2, 4, 4096)));
        assert_eq!(other.as_found.set["stripe_width"], "4");
    }

    #[test]
    fn a_data_area_inside_a_unit_is_a_fault_of_fat() {
        let fat = Superblock {
            candidate: "vfat",
            label: String::new(),
            figures: BTreeMap::from([
                (SuperblockFigure::DataOffset, 1 << 20),
                (SuperblockFigure::ReservedSectors, 32),
                (SuperblockFigure::ClusterBytes, 16384),
            ]),
        };
        let verdict = of(4 * MIB, Some(fat));
        assert!(
            verdict
                .faults
                .iter()
                .any(|fault| fault.what.contains("data area"))
        );
        assert_eq!(verdict.as_found.set["-R"], "32");
    }
}
