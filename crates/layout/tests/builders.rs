//! The files for builders, used by the builders themselves.
#![allow(clippy::unwrap_used)]

use crate::common;

use common::{board_plan, bytes_at, emit, have, plan, run, superblock_at};
use std::fs::File;
use std::path::Path;
use whichfs_layout::superblock::expected;
use whichfs_layout::{DiskPlan, Layout, Medium, TableKind, Unit, read_table};
use whichfs_units::MIB;

/// Checks that the partitions of `image` are those of `plan` and have its superblocks; those of
/// the types `untuned` only begin where they should.
fn check(image: &Path, plan: &DiskPlan, untuned: &[&str]) {
    let file = File::open(image).unwrap();
    let table = read_table(&mut |at, bytes| bytes_at(&file, at, bytes), 512)
        .unwrap()
        .unwrap();
    assert_eq!(table.entries.len(), plan.partitions.len(), "{table:?}");
    for (entry, one) in table.entries.iter().zip(&plan.partitions) {
        let name = &one.wanted.name;
        assert_eq!((entry.start, entry.bytes), (one.start, one.bytes), "{name}");
        assert_eq!(entry.partuuid, one.partuuid, "{name}");
        let found = superblock_at(image, one.start).unwrap_or_else(|| panic!("{name}: unknown"));
        if one.recipe.image.is_none() {
            assert_eq!(found.candidate, one.candidate.name, "{name}");
        }
        if untuned.contains(&one.recipe.kernel_fs) {
            continue;
        }
        for (figure, wanted) in expected(&one.recipe) {
            assert_eq!(found.figure(figure), Some(wanted), "{name}: {figure:?}");
        }
    }
}

fn genimage(dir: &Path) {
    for name in ["root/boot", "root/data", "root/etc", "input"] {
        std::fs::create_dir_all(dir.join(name)).unwrap();
    }
    std::fs::write(dir.join("root/etc/hostname"), "card\n").unwrap();
    std::fs::write(dir.join("root/boot/Image"), "kernel\n").unwrap();
    let arguments = [
        "--config",
        "genimage.cfg",
        "--rootpath",
        "root",
        "--tmppath",
        "tmp",
        "--inputpath",
        "input",
        "--outputpath",
        "out",
    ];
    run(dir, "genimage", &arguments);
}

#[test]
fn genimage_makes_the_planned_card() {
    let tools = [
        "genimage",
        "mcopy",
        "mke2fs",
        "mkfs.f2fs",
        "sload.f2fs",
        "mkfs.vfat",
    ];
    if !have(&tools) {
        return;
    }
    for (layout, kind, fs, unit) in [
        ("boot-root-data", TableKind::Gpt, "ext4", 4),
        ("boot-root-data", TableKind::Mbr, "f2fs", 4),
        ("ab", TableKind::Gpt, "ext4-nojournal", 12),
    ] {
        let plan = plan(layout, kind, fs, 1024, unit);
        let dir = tempfile::tempdir().unwrap();
        emit(&plan, dir.path());
        genimage(dir.path());
        check(&dir.path().join("out/card.img"), &plan, &[]);
    }
}

#[test]
fn genimage_makes_cards_that_boards_boot_from() {
    if !have(&["genimage", "mcopy", "mke2fs", "mkfs.vfat"]) {
        return;
    }
    for (board, table, type_of_boot) in [
        ("raspberry-pi-3", TableKind::Mbr, "0c"),
        ("beaglebone-black", TableKind::Mbr, "0e"),
        ("imx6", TableKind::Mbr, "0e"),
        (
            "imx8m",
            TableKind::Gpt,
            "bc13c2ff-59e6-4262-a352-b275fd6f7172",
        ),
    ] {
        let plan = board_plan("boot-root", board);
        assert_eq!(plan.table, table, "{board}");
        let dir = tempfile::tempdir().unwrap();
        emit(&plan, dir.path());
        std::fs::create_dir(dir.path().join("input")).unwrap();
        let raw = &plan.board.as_ref().unwrap().rules.raw;
        for area in raw {
            if let Some(file) = &area.file {
                let content = format!("{file} of {board}").repeat(1000);
                std::fs::write(dir.path().join("input").join(file), content).unwrap();
            }
        }
        genimage(dir.path());
        let path = dir.path().join("out/card.img");
        check(&path, &plan, &[]);
        let image = File::open(&path).unwrap();
        let read = &mut |at, bytes| bytes_at(&image, at, bytes);
        let found = read_table(read, 512).unwrap().unwrap();
        assert_eq!(found.entries[0].kind, type_of_boot, "{board}");
        for area in raw {
            assert!(
                found.entries[0].start >= area.end(),
                "{board}: {}",
                area.what
            );
            if let Some(file) = &area.file {
                let there = bytes_at(&image, area.start(), file.len()).unwrap();
                assert_eq!(there, file.as_bytes(), "{board}");
            }
        }
        // The ROM of a BeagleBone wants the partition active.
        let flag = bytes_at(&image, 446, 1).unwrap();
        assert!(table == TableKind::Gpt || flag == [0x80], "{board}");
    }
}

#[test]
fn genimage_takes_labels_with_blanks_and_a_fat_without_files() {
    if !have(&["genimage", "mke2fs", "mkfs.vfat"]) {
        return;
    }
    let text = "[[partition]]\nname = \"root\"\nrole = \"data\"\nfs = \"ext4\"\nsize = \"64M\"\n\
                mount = \"/etc\"\nlabel = \"MY ROOT\"\n[[partition]]\nname = \"data\"\n\
                role = \"data\"\nfs = \"vfat\"\nsize = \"64M\"\nmount = \"/data\"\n\
                label = \"MY DATA\"\n";
    let layout = Layout::parse("a test", text).unwrap();
    let medium = Medium::of_unit(256 * MIB, Unit::new(4 * MIB, "given").unwrap(), true);
    let plan = DiskPlan::new(&layout, &medium, None, 7).unwrap();
    let dir = tempfile::tempdir().unwrap();
    emit(&plan, dir.path());
    genimage(dir.path());
    let image = dir.path().join("out/card.img");
    check(&image, &plan, &[]);
    for one in &plan.partitions {
        let found = superblock_at(&image, one.start).unwrap();
        assert_eq!(found.label, one.label, "{}", one.wanted.name);
    }
}

#[test]
fn genimage_takes_what_the_script_made() {
    if !have(&["genimage", "mcopy", "mkfs.xfs", "mkfs.vfat"]) {
        return;
    }
    let plan = plan("boot-root", TableKind::Gpt, "xfs", 1024, 4);
    let dir = tempfile::tempdir().unwrap();
    emit(&plan, dir.path());
    std::fs::create_dir(dir.path().join("input")).unwrap();
    run(dir.path(), "sh", &["mkfs.sh", "--images", "input"]);
    genimage(dir.path());
    check(&dir.path().join("out/card.img"), &plan, &[]);
}

#[test]
fn mke2fs_forgets_stride_where_a_builder_appends_an_extended_option() {
    // The trap itself: if mke2fs ever keeps both, the detour of whichfs.inc is needless.
    if !have(&["mke2fs", "tune2fs"]) {
        return;
    }
    let plan = plan("boot-root", TableKind::Gpt, "ext4", 512, 4);
    let root = &plan.partitions[1];
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("x.img");
    File::create(&image).unwrap().set_len(root.bytes).unwrap();
    let mut argv = whichfs_layout::in_file(root.mkfs_on("x.img").remove(0));
    let seed = "hash_seed=e7429877-e7b3-4a68-a5c9-2f2fdf33d460";
    argv.splice(
        argv.len() - 1..argv.len() - 1,
        ["-E".to_owned(), seed.to_owned()],
    );
    let words: Vec<&str> = argv[1..].iter().map(String::as_str).collect();
    run(dir.path(), "mke2fs", &words);
    let figures = |path: &Path| {
        let found = superblock_at(path, 0).unwrap();
        expected(&root.recipe)
            .into_iter()
            .all(|(figure, wanted)| found.figure(figure) == Some(wanted))
    };
    assert!(!figures(&image), "it is forgotten");
    // What whichfs.inc does then.
    let include = whichfs_layout::emit::all(&plan, "test").into_iter();
    let include = include
        .into_iter()
        .find(|one| one.path == "whichfs.inc")
        .unwrap()
        .text;
    let tune = include
        .split("tune2fs -E ")
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap();
    run(dir.path(), "tune2fs", &["-E", tune, "x.img"]);
    assert!(figures(&image), "{tune}");
}

#[test]
fn a_small_image_without_a_block_size_gets_blocks_of_1_kib() {
    if !have(&["mke2fs"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("x.img");
    File::create(&image).unwrap().set_len(64 << 20).unwrap();
    run(
        dir.path(),
        "mke2fs",
        &["-q", "-F", "-t", "ext4", "-E", "stride=16", "x.img"],
    );
    let found = superblock_at(&image, 0).unwrap();
    use whichfs_layout::superblock::SuperblockFigure;
    assert_eq!(
        found.figure(SuperblockFigure::BlockBytes),
        Some(1024),
        "the trap of the catalogue's -b 4096"
    );
}

/// The major version of systemd-repart.
fn repart_version() -> u32 {
    let output = run(Path::new("/"), "systemd-repart", &["--version"]);
    let text = String::from_utf8_lossy(&output.stdout);
    let number = text.split_whitespace().nth(1).unwrap_or_default();
    number.parse().unwrap_or(0)
}

#[test]
fn systemd_repart_makes_the_planned_card() {
    if !have(&["systemd-repart", "sfdisk", "mke2fs", "mkfs.vfat"]) {
        return;
    }
    for (fs, unit) in [("ext4", 4), ("ext4", 12), ("btrfs", 4), ("ntfs3", 4)] {
        if fs == "ntfs3" && !have(&["mkfs.ntfs"]) {
            continue;
        }
        let plan = plan("boot-root-data", TableKind::Gpt, fs, 2048, unit);
        let dir = tempfile::tempdir().unwrap();
        emit(&plan, dir.path());
        let image = dir.path().join("card.img");
        File::create(&image)
            .unwrap()
            .set_len(plan.medium.capacity_bytes)
            .unwrap();
        let script = "sfdisk -q card.img < repart.sfdisk && set -a && . ./repart.env && \
                      MKE2FS_CONFIG=$PWD/mke2fs.conf && systemd-repart \
                      --definitions=repart.d --dry-run=no --no-pager card.img";
        let Some(()) = repart(dir.path(), script) else {
            return;
        };
        // Before 253 only what mke2fs.conf tunes is tuned.
        let untuned: &[&str] = if repart_version() < 253 {
            &["vfat", "ntfs3"]
        } else {
            &[]
        };
        check(&image, &plan, untuned);
    }
}

/// Runs it; `None` where it may not attach loop devices, which it needs for mkfs.
fn repart(dir: &Path, script: &str) -> Option<()> {
    let output = std::process::Command::new("sh")
        .args(["-c", script])
        .current_dir(dir)
        .env("PATH", common::path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() && said.contains("loop") {
        common::skip::skip(format!(
            "systemd-repart needs loop devices: {}",
            said.trim()
        ));
        return None;
    }
    assert!(output.status.success(), "{said}");
    Some(())
}
