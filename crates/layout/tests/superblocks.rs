//! What the real tools write, read back: tables and superblocks have what the plan asked for.
#![allow(clippy::unwrap_used)]

use crate::common;

use common::{bytes_at, have, plan, run, superblock_at};
use proptest::prelude::*;
use std::fs::File;
use whichfs_fs::{Purpose, candidates};
use whichfs_layout::superblock::{SuperblockFigure, expected};
use whichfs_layout::{
    DiskPlan, FoundPartition, Layout, Medium, TableKind, Unit, in_file, judge, labelled, mkfs,
    read_table, sfdisk_script,
};
use whichfs_units::{KIB, MIB};

#[test]
fn every_filesystem_has_the_figures_that_its_command_asks_for() {
    for candidate in candidates().iter().filter(|one| !one.facts().read_only) {
        // Units that are a power of two, three times one, and small ones.
        for unit in [4 * MIB, 12 * MIB, 3 * MIB, 1536 * KIB] {
            let unit = Unit::new(unit, "given").unwrap();
            let medium = Medium::of_unit(1 << 30, unit, false);
            let bytes = 600 * MIB / medium.unit.bytes * medium.unit.bytes;
            let recipe = candidate
                .recipe(&medium.geometry(bytes), Purpose::User)
                .unwrap();
            if !have(&recipe.tools) {
                continue;
            }
            let recipe = labelled(recipe, candidate, "CARD").unwrap();
            let dir = tempfile::tempdir().unwrap();
            let image = dir.path().join("x.img");
            File::create(&image).unwrap().set_len(bytes).unwrap();
            for argv in mkfs(&recipe, "x.img") {
                let argv = in_file(argv);
                let words: Vec<&str> = argv[1..].iter().map(String::as_str).collect();
                run(dir.path(), &argv[0], &words);
            }
            let what = format!("{} {}", candidate.name, medium.unit.bytes);
            let found = superblock_at(&image, 0).unwrap_or_else(|| panic!("{what}: unknown"));
            let family = candidate.name.trim_end_matches("-factory");
            assert_eq!(found.candidate, family, "{what}");
            for (figure, wanted) in expected(&recipe) {
                assert_eq!(found.figure(figure), Some(wanted), "{what}: {figure:?}");
            }
            if !["exfat", "ntfs3"].contains(&candidate.name) {
                assert_eq!(found.label, "CARD", "{what}");
            }
            if candidate.name == "vfat" {
                let data = found.figure(SuperblockFigure::DataOffset).unwrap();
                assert!(data.is_multiple_of(medium.unit.bytes), "{what}: {data}");
            }
            if candidate.name == family {
                let found = FoundPartition {
                    start: medium.unit.bytes,
                    bytes,
                    superblock: Some(found),
                };
                let faults = judge(&found, &medium).faults;
                // mkfs.exfat takes powers of two only.
                let aligned = medium.unit.bytes.is_power_of_two() || candidate.name != "exfat";
                assert!(faults.is_empty() || !aligned, "{what}: {faults:?}");
            }
        }
    }
}

#[test]
fn tables_that_sfdisk_writes_are_read_as_they_were_planned() {
    if !have(&["sfdisk"]) {
        return;
    }
    for (kind, unit) in [
        (TableKind::Gpt, 4),
        (TableKind::Mbr, 4),
        (TableKind::Gpt, 12),
    ] {
        let plan = plan("boot-root-data", kind, "ext4", 2048, unit);
        let table = written(&plan);
        assert_eq!((table.kind, table.id), (kind, plan.disk_id));
        for (entry, one) in table.entries.iter().zip(&plan.partitions) {
            assert_eq!((entry.start, entry.bytes), (one.start, one.bytes));
            assert_eq!(entry.partuuid, one.partuuid);
        }
        assert_eq!(table.entries.len(), plan.partitions.len());
    }
}

fn written(plan: &DiskPlan) -> whichfs_layout::Table {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("x.img");
    File::create(&image)
        .unwrap()
        .set_len(plan.medium.capacity_bytes)
        .unwrap();
    std::fs::write(dir.path().join("script"), sfdisk_script(plan)).unwrap();
    run(dir.path(), "sh", &["-c", "sfdisk -q x.img < script"]);
    let file = File::open(&image).unwrap();
    read_table(&mut |at, bytes| bytes_at(&file, at, bytes), 512)
        .unwrap()
        .unwrap()
}

/// Signatures and where they lie.
const SIGNATURES: [(usize, &[u8]); 12] = [
    (1080, &[0x53, 0xef]),
    (1024, &[0x10, 0x20, 0xf5, 0xf2]),
    (0, b"XFSB"),
    (510, &[0x55, 0xaa]),
    (3, b"EXFAT   "),
    (3, b"NTFS    "),
    (65_600, b"_BHRfS_M"),
    (1030, &[0x34, 0x34]),
    (65_588, b"ReIsEr2Fs"),
    (32_768, b"JFS1"),
    (0, b"hsqs"),
    (1024, &[0xe2, 0xe1, 0xf5, 0xe0]),
];

proptest! {
    #[test]
    fn no_bytes_behind_a_signature_make_it_panic(
        which in 0..SIGNATURES.len(),
        seed in any::<u64>(),
        start in any::<u64>(),
    ) {
        let mut image = vec![0; 72 << 10];
        whichfs_units::Rng::named(seed, "image").fill(&mut image);
        let (at, signature) = SIGNATURES[which];
        image[at..at + signature.len()].copy_from_slice(signature);
        let mut read = |at: u64, bytes: usize| {
            let from = usize::try_from(at).unwrap_or(usize::MAX).min(image.len());
            Ok(image[from..from.saturating_add(bytes).min(image.len())].to_vec())
        };
        let _ = read_table(&mut read, 512);
        let superblock = whichfs_layout::superblock::read(&mut read, 0).unwrap();
        let medium = Medium::of_unit(1 << 30, Unit::safe(1 << 30), true);
        for bytes in [0, 512, 1 << 30, u64::MAX] {
            let superblock = superblock.clone();
            judge(&FoundPartition { start, bytes, superblock }, &medium);
        }
    }
}

#[test]
fn a_damaged_gpt_is_told() {
    if !have(&["sfdisk"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("x.img");
    File::create(&image).unwrap().set_len(64 * MIB).unwrap();
    let layout = Layout::single(TableKind::Gpt, "data", None, "/data");
    let medium = Medium::of_unit(64 * MIB, Unit::safe(64 * MIB), false);
    let plan = DiskPlan::new(&layout, &medium, Some("ext4"), 1).unwrap();
    std::fs::write(dir.path().join("script"), sfdisk_script(&plan)).unwrap();
    run(dir.path(), "sh", &["-c", "sfdisk -q x.img < script"]);
    let good = std::fs::read(&image).unwrap();
    for at in [530, 600, 1024, 1100] {
        let mut bad = good.clone();
        bad[at] ^= 1;
        let mut read = |at: u64, bytes: usize| {
            let found = bad.get(at as usize..at as usize + bytes);
            Ok(found.unwrap_or_default().to_vec())
        };
        let error = read_table(&mut read, 512);
        assert!(error.unwrap_err().contains("damaged"), "{at}");
    }
}
