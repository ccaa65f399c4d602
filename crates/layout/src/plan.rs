//! Where each partition lies: begun on and made of whole allocation units.

use crate::boot::{BootBoard, boot_type, first_byte};
use crate::error::LayoutError;
use crate::file::{KernelFrom, Layout, Partition, Role, Size};
use crate::label::{self, labelled};
use crate::medium::Medium;
use crate::table::Kind;
use whichfs_fs::{Can, Candidate, Matter, Purpose, Recipe, care, find};
use whichfs_units::{Bytes, MIB, Rng, SECTOR};

/// No partition begins before this: boot loaders lie there (Allwinner at 8 KiB, i.MX at 33 KiB,
/// Rockchip up to 8 MiB with its own tables).
const FIRST_BYTES: u64 = 4 * MIB;
/// Bytes of the entries of a GPT: 128 of 128 bytes.
const GPT_ENTRIES: u64 = 128 * 128;
/// Most primary partitions of an MBR.
const MBR_PARTITIONS: usize = 4;
/// An MBR counts sectors in 32 bits.
const MBR_SECTORS: u64 = 1 << 32;

/// A partition with its place and its filesystem.
#[derive(Debug)]
pub struct PlannedPartition {
    /// As it was wanted.
    pub wanted: Partition,
    /// Number in the table, from 1.
    pub number: usize,
    /// First byte on the disk.
    pub start: u64,
    /// Size of the partition in bytes.
    pub bytes: u64,
    /// Filesystem that the partition holds.
    pub candidate: &'static Candidate,
    /// The commands that make and mount it, with its label.
    pub recipe: Recipe,
    /// The label; empty without one.
    pub label: String,
    /// What `PARTUUID=` calls it.
    pub partuuid: String,
    /// The type in the table that the board wants in place of the usual one.
    pub board_type: Option<String>,
}

impl PlannedPartition {
    /// First byte behind it.
    pub fn end(&self) -> u64 {
        self.start + self.bytes
    }

    /// Whether it holds the root filesystem, or one of its slots.
    pub fn is_root(&self) -> bool {
        self.wanted.role == Role::Root
    }
}

/// A disk with its partitions.
#[derive(Debug)]
pub struct DiskPlan {
    /// GPT or MBR.
    pub table: Kind,
    /// What it is laid out on.
    pub medium: Medium,
    /// Identifier of the disk: a UUID, or eight hexadecimal digits in an MBR.
    pub disk_id: String,
    /// Where the kernel is.
    pub kernel: KernelFrom,
    /// In the order of their numbers and places.
    pub partitions: Vec<PlannedPartition>,
    /// The board that boots from it, if one is named.
    pub board: Option<BootBoard>,
}

impl DiskPlan {
    /// Lays `layout` out on `medium`; partitions that name no filesystem get `fs`. Identifiers are
    /// drawn from `seed`.
    ///
    /// # Errors
    /// What does not fit or cannot be, with the remedy.
    pub fn new(
        layout: &Layout,
        medium: &Medium,
        fs: Option<&str>,
        seed: u64,
    ) -> Result<DiskPlan, LayoutError> {
        check_table(layout, medium)?;
        let first = layout.partitions.first();
        let said = first.map(|one| (one.name.as_str(), one.start));
        let unit = medium.unit.bytes;
        let (first, later) = first_byte(layout.board.as_ref(), said, FIRST_BYTES, unit)?;
        let mut board = layout.board.clone();
        if let (Some(board), Some(later)) = (&mut board, later) {
            board.changes.push(later);
        }
        let spans = spans(layout, medium, first)?;
        let mut rng = Rng::named(seed, "partition identifiers");
        let disk_id = match layout.table {
            Kind::Gpt => uuid(&mut rng),
            Kind::Mbr => format!("{:08x}", (rng.next_u64() as u32).max(1)),
        };
        let mut partitions = Vec::new();
        for (index, (wanted, (start, bytes))) in layout.partitions.iter().zip(spans).enumerate() {
            let candidate = filesystem(wanted, fs)?;
            let recipe = candidate
                .recipe(&medium.geometry(bytes), Purpose::User)
                .map_err(|unfit| {
                    let remedy = "give the partition another size, or take another filesystem";
                    LayoutError::plan(format!("partition {}: {unfit}", wanted.name), remedy)
                })?;
            let label = match &wanted.label {
                Some(label) => label.clone(),
                None => label::of_name(&recipe, &wanted.name),
            };
            let recipe = hidden(labelled(recipe, candidate, &label)?, start);
            let number = index + 1;
            let partuuid = match layout.table {
                Kind::Gpt => uuid(&mut rng),
                Kind::Mbr => format!("{disk_id}-{number:02x}"),
            };
            partitions.push(PlannedPartition {
                wanted: wanted.clone(),
                number,
                start,
                bytes,
                candidate,
                recipe,
                label,
                partuuid,
                board_type: match wanted.role {
                    Role::Boot => boot_type(board.as_ref(), layout.table),
                    _ => None,
                },
            });
        }
        let plan = DiskPlan {
            table: layout.table,
            medium: medium.clone(),
            disk_id,
            kernel: layout.kernel,
            partitions,
            board,
        };
        plan.check_boot()?;
        plan.check_board()?;
        Ok(plan)
    }

    /// The partition of role `boot`.
    pub fn boot(&self) -> Option<&PlannedPartition> {
        let mut all = self.partitions.iter();
        all.find(|one| one.wanted.role == Role::Boot)
    }

    /// The partition that U-Boot reads the kernel from; `None` if the kernel is elsewhere.
    pub fn kernel_partition(&self) -> Option<&PlannedPartition> {
        match self.kernel {
            KernelFrom::Elsewhere => None,
            KernelFrom::Card => self
                .boot()
                .or_else(|| self.partitions.iter().find(|one| one.is_root())),
        }
    }

    /// A filesystem that U-Boot cannot read is no place for the kernel.
    fn check_boot(&self) -> Result<(), LayoutError> {
        let Some(one) = self.kernel_partition() else {
            return Ok(());
        };
        let name = one.candidate.name;
        match care(name).get(&Matter::Uboot) {
            Some(uboot) if uboot.can == Can::No => Err(LayoutError::plan(
                format!(
                    "partition {}: the kernel would be loaded from {name}, which U-Boot cannot \
                     read ({})",
                    one.wanted.name, uboot.how
                ),
                "add a small partition with role = \"boot\" and fs = \"vfat\" or \"ext4\", or say \
                 kernel = \"elsewhere\"",
            )),
            _ => Ok(()),
        }
    }
}

fn check_table(layout: &Layout, medium: &Medium) -> Result<(), LayoutError> {
    if layout.table != Kind::Mbr {
        return Ok(());
    }
    let count = layout.partitions.len();
    if count > MBR_PARTITIONS {
        return Err(LayoutError::plan(
            format!("an MBR has {MBR_PARTITIONS} partitions; the layout has {count}"),
            "take table = \"gpt\" (--table gpt)",
        ));
    }
    let reached = MBR_SECTORS * medium.sector_bytes;
    if medium.capacity_bytes > reached {
        return Err(LayoutError::plan(
            format!(
                "an MBR reaches {}; the disk has {}",
                Bytes(reached),
                Bytes(medium.capacity_bytes)
            ),
            "take table = \"gpt\" (--table gpt)",
        ));
    }
    Ok(())
}

/// `recipe` with FAT told what lies before it: in a file mkfs.fat cannot see that, and firmware
/// that starts from FAT goes by it.
fn hidden(mut recipe: Recipe, start: u64) -> Recipe {
    let device = |argv: &Vec<String>| argv.iter().position(|word| word == Recipe::DEVICE);
    if recipe.kernel_fs == "vfat"
        && let Some(argv) = recipe.mkfs.first_mut()
        && let Some(at) = device(argv)
    {
        let sectors = (start / SECTOR).to_string();
        argv.splice(at..at, ["-h".to_owned(), sectors]);
    }
    recipe
}

/// The filesystem that `wanted` names, or else `fs`.
fn filesystem(wanted: &Partition, fs: Option<&str>) -> Result<&'static Candidate, LayoutError> {
    let name = wanted.fs.as_deref().or(fs).ok_or_else(|| {
        LayoutError::plan(
            format!("partition {} names no filesystem", wanted.name),
            "name one there (fs = \"ext4\") or for all (--fs ext4)",
        )
    })?;
    find(name).map_err(|unknown| {
        LayoutError::plan(
            format!("partition {}: {unknown}", wanted.name),
            "take one of the catalogue",
        )
    })
}

/// Where the partitions lie, the first at `first` or later: first byte and bytes of each.
fn spans(layout: &Layout, medium: &Medium, first: u64) -> Result<Vec<(u64, u64)>, LayoutError> {
    let unit = medium.unit.bytes;
    let end = match layout.table {
        // The second copy lies at the end: its entries, then its header.
        Kind::Gpt => {
            let copy = GPT_ENTRIES.next_multiple_of(medium.sector_bytes) + medium.sector_bytes;
            medium.capacity_bytes.saturating_sub(copy)
        }
        Kind::Mbr => medium.capacity_bytes,
    } / unit
        * unit;
    let room = end.saturating_sub(first);
    let sizes = sizes(layout, first, room, medium)?;
    let mut at = first;
    let mut spans = Vec::new();
    for (wanted, bytes) in layout.partitions.iter().zip(sizes) {
        let start = start(wanted, at, unit)?;
        at = start + bytes;
        if at > end {
            return Err(LayoutError::plan(
                format!(
                    "partition {} would end at {}; the disk has {} and its last whole allocation \
                     unit ends at {}",
                    wanted.name,
                    Bytes(at),
                    Bytes(medium.capacity_bytes),
                    Bytes(end)
                ),
                "make partitions smaller, or take a larger card",
            ));
        }
        spans.push((start, bytes));
    }
    Ok(spans)
}

/// Where `wanted` begins: where it says, or at `at`, behind the one before.
fn start(wanted: &Partition, at: u64, unit: u64) -> Result<u64, LayoutError> {
    let Some(start) = wanted.start else {
        return Ok(at);
    };
    let name = &wanted.name;
    if !start.is_multiple_of(unit) {
        return Err(LayoutError::plan(
            format!(
                "partition {name} begins at {start}, inside an allocation unit of {unit} bytes"
            ),
            format!(
                "say start = \"{}K\", or leave it out",
                start.next_multiple_of(unit) / 1024
            ),
        ));
    }
    if start < at {
        return Err(LayoutError::plan(
            format!("partition {name} begins at {start}, and what is before it ends at {at}"),
            format!("say start = \"{}K\" or more, or leave it out", at / 1024),
        ));
    }
    Ok(start)
}

/// Bytes of each partition: whole units; what says `rest` shares what is left.
fn sizes(layout: &Layout, first: u64, room: u64, medium: &Medium) -> Result<Vec<u64>, LayoutError> {
    let unit = medium.unit.bytes;
    let fixed = |size: Size| match size {
        Size::Bytes(bytes) => Some(bytes.checked_next_multiple_of(unit).unwrap_or(u64::MAX)),
        Size::Percent(percent) => Some(room / unit * percent / 100 * unit),
        Size::Rest => None,
    };
    let known: Vec<Option<u64>> = layout.partitions.iter().map(|p| fixed(p.size)).collect();
    let mut sum = known
        .iter()
        .flatten()
        .fold(0, |a: u64, b| a.saturating_add(*b));
    // A gap before a partition that says where it begins is nobody's.
    let gaps = gaps(layout, &known, first);
    sum = sum.saturating_add(gaps);
    let rests = known.iter().filter(|size| size.is_none()).count() as u64;
    let left = room.saturating_sub(sum);
    let share = left / unit / rests.max(1) * unit;
    let empty = known.contains(&Some(0)) || rests > 0 && share == 0;
    if sum > room || empty {
        return Err(LayoutError::plan(
            format!(
                "the partitions need {}, and the disk of {} has room for {} in allocation units of \
                 {}",
                Bytes(sum.saturating_add(rests * unit)),
                Bytes(medium.capacity_bytes),
                Bytes(room),
                Bytes(unit)
            ),
            "make partitions smaller, or take a larger card",
        ));
    }
    Ok(known
        .into_iter()
        .map(|size| size.unwrap_or(share))
        .collect())
}

/// Bytes that lie unused before partitions which say where they begin, as far as that is known
/// before the sizes of those that take the rest.
fn gaps(layout: &Layout, known: &[Option<u64>], first: u64) -> u64 {
    let mut at = Some(first);
    let mut sum = 0;
    for (wanted, size) in layout.partitions.iter().zip(known) {
        if let (Some(start), Some(before)) = (wanted.start, at) {
            sum += start.saturating_sub(before);
        }
        let begin = wanted.start.or(at);
        at = begin
            .zip(*size)
            .map(|(begin, size)| begin.saturating_add(size));
    }
    sum
}

/// A random UUID (version 4, RFC 9562), in small letters.
fn uuid(rng: &mut Rng) -> String {
    let mut bytes = [0; 16];
    rng.fill(&mut bytes);
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    crate::table::guid_text(&bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::file::BUILTIN;
    use crate::medium::Unit;
    use proptest::prelude::*;
    use whichfs_units::{GIB, KIB};

    fn medium(capacity: u64, unit: u64) -> Medium {
        Medium::of_unit(capacity, Unit::new(unit, "given").unwrap(), true)
    }

    fn plan(text: &str, medium: &Medium) -> Result<DiskPlan, LayoutError> {
        let layout = Layout::parse("l.toml", text).unwrap();
        DiskPlan::new(&layout, medium, Some("ext4"), 1)
    }

    fn entry(name: &str, role: &str, rest: &str) -> String {
        format!("[[partition]]\nname = \"{name}\"\nrole = \"{role}\"\n{rest}\n")
    }

    #[test]
    fn partitions_begin_on_units_and_are_whole_units_of_any_size() {
        for unit in [
            MIB,
            3 * MIB / 2,
            3 * MIB,
            4 * MIB,
            6 * MIB,
            12 * MIB,
            24 * MIB,
            64 * MIB,
        ] {
            for (name, text) in BUILTIN {
                let plan = plan(text, &medium(16 * GIB, unit)).unwrap();
                let mut before = 4 * MIB;
                for one in &plan.partitions {
                    assert!(one.start.is_multiple_of(unit) && one.bytes.is_multiple_of(unit));
                    assert!(one.start >= before && one.bytes > 0, "{name} {unit}");
                    before = one.end();
                }
                assert!(before <= 16 * GIB - 33 * 512);
                // No more is lost than what percentages round down.
                assert!(before + 2 * unit > 16 * GIB - 33 * 512, "{name} {unit}");
            }
        }
    }

    #[test]
    fn overlaps_and_places_inside_a_unit_are_refused_with_the_next_place() {
        let card = medium(GIB, 4 * MIB);
        let a = entry("a", "data", "size = \"64M\"");
        let b = |start: &str| entry("b", "data", &format!("size = \"64M\"\nstart = \"{start}\""));
        let over = plan(&format!("{a}{}", b("32M")), &card)
            .unwrap_err()
            .to_string();
        assert!(
            over.contains("begins at 33554432") && over.contains("69632K"),
            "{over}"
        );
        let inside = plan(&format!("{a}{}", b("101M")), &card)
            .unwrap_err()
            .to_string();
        assert!(inside.contains("inside an allocation unit") && inside.contains("106496K"));
        let gap = plan(&format!("{a}{}", b("256M")), &card).unwrap();
        assert_eq!(gap.partitions[1].start, 256 * MIB);
        let rest = entry("c", "data", "size = \"rest\"");
        let all = plan(&format!("{a}{}{rest}", b("256M")), &card).unwrap();
        assert_eq!(all.partitions[2].end(), GIB - 4 * MIB);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let one = entry("a", "data", "size = \"2G\"");
        for (text, capacity) in [
            (one.clone(), GIB),
            (one.replace("2G", "rest"), 4 * MIB),
            (one.replace("2G", "rest"), 0),
            (one.replace("2G", "16777215T"), GIB),
            (one.replace("2G", "1%"), 64 * MIB),
            (
                format!("{one}{}", entry("b", "data", "size = \"rest\"")),
                2 * GIB + 8 * MIB,
            ),
        ] {
            let error = plan(&text, &medium(capacity, 4 * MIB))
                .unwrap_err()
                .to_string();
            assert!(error.contains("larger card"), "{text}: {error}");
        }
        let small = plan(&one.replace("2G", "4M"), &medium(GIB, 4 * MIB)).unwrap_err();
        assert!(
            small.to_string().contains("needs at least 8 MiB"),
            "{small}"
        );
    }

    #[test]
    fn an_mbr_has_four_partitions_and_two_tebibytes() {
        let five: String = (0..5)
            .map(|n| entry(&format!("p{n}"), "data", "size = \"64M\""))
            .collect();
        let card = medium(GIB, 4 * MIB);
        let error = plan(&format!("table = \"mbr\"\n{five}"), &card).unwrap_err();
        assert!(error.to_string().contains("--table gpt"), "{error}");
        assert_eq!(plan(&five, &card).unwrap().partitions.len(), 5);
        let one = format!("table = \"mbr\"\n{}", entry("a", "data", "size = \"rest\""));
        let error = plan(&one, &medium(4 << 40, 4 * MIB))
            .unwrap_err()
            .to_string();
        assert!(error.contains("reaches 2 TiB"), "{error}");
        let small = plan(&one, &card).unwrap();
        assert_eq!(
            small.partitions[0].partuuid,
            format!("{}-01", small.disk_id)
        );
    }

    #[test]
    fn a_kernel_is_never_put_where_u_boot_cannot_read_it() {
        let root = entry(
            "root",
            "root",
            "fs = \"f2fs\"\nsize = \"rest\"\nmount = \"/\"",
        );
        let boot = entry("boot", "boot", "fs = \"vfat\"\nsize = \"64M\"");
        let card = medium(GIB, 4 * MIB);
        let error = plan(&root, &card).unwrap_err().to_string();
        assert!(error.contains("U-Boot cannot read") && error.contains("role = \"boot\""));
        assert!(plan(&format!("{boot}{root}"), &card).is_ok());
        assert!(plan(&format!("kernel = \"elsewhere\"\n{root}"), &card).is_ok());
        assert!(plan(&boot.replace("vfat", "f2fs"), &card).is_err());
    }

    #[test]
    fn unknown_and_missing_filesystems_are_told() {
        let of = |fs: Option<&str>, text: &str| {
            let layout = Layout::parse("l", text).unwrap();
            let card = medium(GIB, 4 * MIB);
            let made = DiskPlan::new(&layout, &card, fs, 1);
            made.unwrap_err().to_string()
        };
        let one = entry("a", "data", "size = \"rest\"");
        assert!(of(None, &one).contains("--fs ext4"));
        assert!(of(Some("ext5"), &one).contains("did you mean"));
    }

    #[test]
    fn fat_is_told_what_lies_before_it() {
        let boot = entry("boot", "boot", "fs = \"vfat\"\nsize = \"64M\"");
        let made = plan(&boot, &medium(GIB, 12 * MIB)).unwrap();
        let argv = made.partitions[0].recipe.mkfs[0].join(" ");
        assert!(argv.ends_with("-h 24576 {device}"), "{argv}");
    }

    #[test]
    fn identifiers_are_the_seeds() {
        let card = medium(GIB, 4 * MIB);
        let layout = Layout::parse("l", &entry("a", "data", "size = \"rest\"")).unwrap();
        let id = |seed| {
            let plan = DiskPlan::new(&layout, &card, Some("ext4"), seed).unwrap();
            plan.partitions[0].partuuid.clone()
        };
        assert_eq!(id(1), id(1));
        assert_ne!(id(1), id(2));
        assert_eq!(id(1).len(), 36);
    }

    proptest! {
        #[test]
        fn no_plan_overlaps_or_leaves_the_disk(
            capacity in 0..(64 * GIB),
            unit_kib in 16_u64..16_384,
            sizes in proptest::collection::vec(
                (0_u64..4096, 0..3_u8, proptest::option::of(0_u64..8192)),
                1..6,
            ),
        ) {
            let unit = (unit_kib * 4 * KIB).max(64 * KIB);
            let card = medium(capacity, unit);
            let partitions = sizes.iter().enumerate().map(|(n, (size, kind, start))| Partition {
                name: format!("p{n}"),
                role: Role::Data,
                fs: None,
                size: match kind {
                    0 => Size::Bytes(size * MIB + 1),
                    1 => Size::Percent(size % 100 + 1),
                    _ => Size::Rest,
                },
                start: start.map(|at| at * unit),
                label: None,
                mount: String::new(),
                slot: None,
            });
            let layout = Layout {
                table: Kind::Gpt,
                table_is_said: true,
                kernel: KernelFrom::Elsewhere,
                board: None,
                partitions: partitions.collect(),
            };
            if let Ok(plan) = DiskPlan::new(&layout, &card, Some("ext2"), 1) {
                let mut before = 4 * MIB;
                for one in &plan.partitions {
                    prop_assert!(one.start >= before && one.start.is_multiple_of(unit));
                    prop_assert!(one.bytes > 0 && one.bytes.is_multiple_of(unit));
                    before = one.end();
                }
                prop_assert!(before + 33 * 512 <= capacity);
            }
        }
    }
}
