//! Runs the real mkfs and fsck of every candidate on sparse files.
//!
//! A test whose tools are not installed says so and passes: the recipes need them, the crate
//! does not.
#![allow(clippy::unwrap_used)]

use crate::skip;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;
use whichfs_fs::{Candidate, Geometry, ImageBuild, Purpose, Recipe, candidates, find};
use whichfs_units::{KIB, MIB};

const LAB: Purpose = Purpose::Lab { seed: 7 };

fn geometry(partition_bytes: u64, au_kib: u64) -> Geometry {
    Geometry {
        partition_bytes,
        page_bytes: 16 * KIB,
        write_unit_bytes: 64 * KIB,
        au_bytes: au_kib * KIB,
        discard: false,
        flush: false,
    }
}

/// Where Debian puts these tools, whoever runs the test.
fn path() -> String {
    format!(
        "/usr/sbin:/sbin:{}",
        std::env::var("PATH").unwrap_or_default()
    )
}

fn installed(tool: &str) -> bool {
    path()
        .split(':')
        .any(|dir| Path::new(dir).join(tool).is_file())
}

/// True if all tools are there; else prints which one is not.
fn have(recipe: &Recipe, name: &str) -> bool {
    let missing = recipe.tools.iter().find(|tool| !installed(tool));
    if let Some(tool) = missing {
        skip::skip(format!("{name}: {tool} is not installed"));
    }
    missing.is_none()
}

fn run(argv: &[String], places: &[(&str, &Path)], env: &BTreeMap<String, String>) -> Output {
    let replaced = argv.iter().map(|word| {
        let place = places.iter().find(|(place, _)| place == word);
        place.map_or_else(
            || word.clone(),
            |(_, path)| path.to_str().unwrap().to_owned(),
        )
    });
    let argv: Vec<String> = replaced.collect();
    let mut command = Command::new(&argv[0]);
    command
        .args(&argv[1..])
        .env("PATH", path())
        .envs(env)
        .stdin(Stdio::null());
    command
        .output()
        .unwrap_or_else(|error| panic!("{argv:?}: {error}"))
}

fn must(argv: &[String], places: &[(&str, &Path)], env: &BTreeMap<String, String>) -> String {
    let output = run(argv, places, env);
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(
        output.status.success(),
        "{}: {}\n{text}",
        argv.join(" "),
        output.status
    );
    text
}

/// mkfs commands that cannot run on a file: nilfs-tune asks the block device for its size.
fn only_on_devices(argv: &[String]) -> bool {
    argv[0] == "nilfs-tune"
}

/// Formats a sparse file of the geometry's size.
fn format(recipe: &Recipe, geometry: &Geometry, image: &Path) {
    let file = File::create(image).unwrap();
    file.set_len(geometry.partition_bytes).unwrap();
    for argv in recipe.mkfs.iter().filter(|argv| !only_on_devices(argv)) {
        must(argv, &[(Recipe::DEVICE, image)], &recipe.mkfs_env);
    }
}

fn check(recipe: &Recipe, image: &Path) {
    if !recipe.fsck_check.is_empty() {
        must(
            &recipe.fsck_check,
            &[(Recipe::DEVICE, image)],
            &BTreeMap::new(),
        );
    }
}

fn read_at(image: &Path, offset: u64, bytes: usize) -> Vec<u8> {
    let mut file = File::open(image).unwrap();
    file.seek(SeekFrom::Start(offset)).unwrap();
    let mut found = vec![0; bytes];
    file.read_exact(&mut found).unwrap();
    found
}

fn u16_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap()))
}

fn u32_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()))
}

/// Formats and checks one candidate on partitions from its smallest on.
fn format_and_check(candidate: &Candidate) {
    let dir = TempDir::new().unwrap();
    let least = candidate.facts().min_bytes;
    let sizes = [least, 64 * MIB, 333 * MIB, 1000 * MIB, 7580 * MIB];
    for size in sizes.into_iter().filter(|size| *size >= least) {
        // Large partitions cost seconds to format: there two units stand for all.
        let units: &[u64] = if size > 512 * MIB {
            &[4096, 12_288]
        } else {
            &[1536, 3072, 4096, 12_288, 24_576]
        };
        for &au_kib in units {
            for purpose in [LAB, Purpose::User] {
                let geometry = geometry(size, au_kib);
                let Ok(recipe) = candidate.recipe(&geometry, purpose) else {
                    assert_eq!(candidate.name, "vfat-factory", "{size} fits");
                    continue;
                };
                if !have(&recipe, candidate.name) {
                    return;
                }
                // Without their force flag these refuse a file: a person has a partition.
                let refuse_files = ["ntfs3", "reiserfs"].contains(&candidate.name);
                if purpose == Purpose::User && (refuse_files || size > 512 * MIB) {
                    continue;
                }
                let image = dir.path().join("image");
                format(&recipe, &geometry, &image);
                check(&recipe, &image);
            }
        }
    }
}

macro_rules! format_and_check_tests {
    ($($test:ident: $name:literal,)*) => {
        $(#[test]
        fn $test() {
            format_and_check(find($name).unwrap());
        })*

        #[test]
        fn no_writable_candidate_is_forgotten() {
            let tested = [$($name),*];
            let writable = candidates().iter().filter(|c| !c.facts().read_only);
            assert!(writable.map(|c| c.name).eq(tested));
        }
    };
}

format_and_check_tests! {
    tool_ext2_formats_and_checks: "ext2",
    tool_ext3_formats_and_checks: "ext3",
    tool_ext4_formats_and_checks: "ext4",
    tool_ext4_nojournal_formats_and_checks: "ext4-nojournal",
    tool_vfat_formats_and_checks: "vfat",
    tool_vfat_factory_formats_and_checks: "vfat-factory",
    tool_exfat_formats_and_checks: "exfat",
    tool_ntfs3_formats_and_checks: "ntfs3",
    tool_xfs_formats_and_checks: "xfs",
    tool_btrfs_formats_and_checks: "btrfs",
    tool_f2fs_formats_and_checks: "f2fs",
    tool_nilfs2_formats_and_checks: "nilfs2",
    tool_reiserfs_formats_and_checks: "reiserfs",
    tool_jfs_formats_and_checks: "jfs",
}

#[test]
fn tool_the_largest_partition_formats_and_checks() {
    // The ext family writes 2 GiB of inode tables here, so it is left to the smaller sizes.
    let names = [
        "vfat", "exfat", "ntfs3", "xfs", "btrfs", "f2fs", "nilfs2", "reiserfs", "jfs",
    ];
    for name in names {
        let geometry = geometry(131_072 * MIB, 12_288);
        let recipe = find(name).unwrap().recipe(&geometry, LAB).unwrap();
        if !have(&recipe, name) {
            continue;
        }
        let dir = TempDir::new().unwrap();
        let image = dir.path().join("image");
        format(&recipe, &geometry, &image);
        check(&recipe, &image);
    }
}

#[test]
fn tool_checkers_catch_a_broken_image() {
    // Zeroes where each filesystem has its superblock or boot sector: a check that passes
    // this would pass anything.
    for candidate in candidates().iter().filter(|c| !c.facts().read_only) {
        let geometry = geometry(333 * MIB, 4096);
        let recipe = candidate.recipe(&geometry, LAB).unwrap();
        if recipe.fsck_check.is_empty() || !have(&recipe, candidate.name) {
            continue;
        }
        let dir = TempDir::new().unwrap();
        let image = dir.path().join("image");
        let file = File::create(&image).unwrap();
        file.set_len(geometry.partition_bytes).unwrap();
        let output = run(
            &recipe.fsck_check,
            &[(Recipe::DEVICE, &image)],
            &BTreeMap::new(),
        );
        assert!(
            !output.status.success(),
            "{} calls zeroes clean",
            candidate.name
        );
    }
}

#[test]
fn tool_fat_data_areas_begin_on_their_boundary() {
    let dir = TempDir::new().unwrap();
    let image = dir.path().join("image");
    for name in ["vfat", "vfat-factory"] {
        for size_mib in [64, 100, 512, 1000, 7580, 30_436] {
            for au_kib in [1536, 3072, 4096, 12_288, 24_576] {
                let geometry = geometry(size_mib * MIB, au_kib);
                let recipe = find(name).unwrap().recipe(&geometry, LAB).unwrap();
                if !have(&recipe, name) {
                    return;
                }
                format(&recipe, &geometry, &image);
                let boot = read_at(&image, 0, 512);
                let table = match u16_at(&boot, 22) {
                    0 => u32_at(&boot, 36),
                    sectors => sectors,
                };
                let root = u16_at(&boot, 17) * 32 / 512;
                let data = (u16_at(&boot, 14) + u64::from(boot[16]) * table + root) * 512;
                let boundary = match (name, size_mib) {
                    ("vfat", _) => geometry.au_bytes,
                    (_, ..=256) => 32 * KIB,
                    (_, ..=2048) => 64 * KIB,
                    _ => 4 * MIB,
                };
                assert_eq!(
                    data % boundary,
                    0,
                    "{name} {size_mib} MiB on {au_kib} KiB: {data}"
                );
            }
        }
    }
}

#[test]
fn tool_exfat_heaps_begin_on_units_that_are_powers_of_two() {
    let dir = TempDir::new().unwrap();
    let image = dir.path().join("image");
    for size_mib in [200, 1000, 30_436, 65_536] {
        for au_kib in [3072, 4096, 12_288, 16_384] {
            let geometry = geometry(size_mib * MIB, au_kib);
            let recipe = find("exfat").unwrap().recipe(&geometry, LAB).unwrap();
            if !have(&recipe, "exfat") {
                return;
            }
            format(&recipe, &geometry, &image);
            let heap = u32_at(&read_at(&image, 0, 512), 88) * 512;
            let promised = recipe.tuning.iter().any(|(_, why)| {
                why.contains("an allocation unit of") && !why.contains("none of them")
            });
            assert_eq!(
                heap.is_multiple_of(geometry.au_bytes),
                promised,
                "{size_mib} on {au_kib}: {heap}"
            );
            assert!(promised || !geometry.au_bytes.is_power_of_two());
        }
    }
}

#[test]
fn tool_ext4_keeps_what_it_was_told() {
    let geometry = geometry(100 * MIB, 1536);
    let recipe = find("ext4").unwrap().recipe(&geometry, LAB).unwrap();
    if !have(&recipe, "ext4") || !installed("dumpe2fs") {
        return;
    }
    let dir = TempDir::new().unwrap();
    let image = dir.path().join("image");
    format(&recipe, &geometry, &image);
    let argv = ["dumpe2fs", "-h", "{device}"].map(str::to_owned);
    let text = must(&argv, &[(Recipe::DEVICE, &image)], &BTreeMap::new());
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("no {name} in {text}"))
            .trim()
            .to_owned()
    };
    assert_eq!(field("Block size:"), "4096");
    assert_eq!(field("RAID stride:"), "16");
    assert_eq!(field("RAID stripe width:"), "384");
    assert!(recipe.mkfs[0].contains(&field("Filesystem UUID:")));
    let extended = recipe.mkfs[0].join(" ");
    assert!(extended.contains(&format!("hash_seed={}", field("Directory Hash Seed:"))));
}

/// Candidates whose tools draw identifiers or read the clock without a way to fix it: two
/// formats are the same only where randomness and clock are given, as in the lab.
const NEED_THE_LAB: [&str; 5] = ["xfs", "btrfs", "nilfs2", "reiserfs", "jfs"];

#[test]
fn tool_two_lab_formats_are_byte_identical() {
    for candidate in candidates().iter().filter(|c| !c.facts().read_only) {
        let name = candidate.name;
        let geometry = geometry(400 * MIB, 4096);
        let recipe = candidate.recipe(&geometry, LAB).unwrap();
        if !have(&recipe, name) {
            continue;
        }
        let dir = TempDir::new().unwrap();
        let images = ["first", "second"].map(|image| dir.path().join(image));
        for image in &images {
            format(&recipe, &geometry, image);
        }
        let mut cmp = Command::new("cmp");
        let same = cmp.arg("-s").args(&images).status().unwrap().success();
        if NEED_THE_LAB.contains(&name) {
            println!(
                "{name}: {} outside the lab",
                if same { "the same" } else { "different" }
            );
        } else {
            assert!(same, "{name} differs between two formats");
        }
    }
}

/// A small tree whose times are its own, so that builds differ unless the recipe fixes them.
fn plant(tree: &Path) {
    std::fs::create_dir_all(tree.join("etc/deep")).unwrap();
    for (name, lines) in [("etc/a", 1), ("etc/b", 5000), ("etc/deep/c", 40_000)] {
        std::fs::write(tree.join(name), format!("{name} has text\n").repeat(lines)).unwrap();
    }
    std::os::unix::fs::symlink("b", tree.join("etc/link")).unwrap();
}

#[test]
fn tool_images_are_reproducible_and_pass_their_check() {
    for candidate in candidates().iter().filter(|c| c.facts().read_only) {
        let recipe = candidate.recipe(&geometry(64 * MIB, 4096), LAB).unwrap();
        if !have(&recipe, candidate.name) {
            continue;
        }
        let dir = TempDir::new().unwrap();
        let build = recipe.image.as_ref().unwrap();
        let contents = ["one", "two"].map(|name| {
            let (tree, image) = (
                dir.path().join(name),
                dir.path().join(format!("{name}.img")),
            );
            plant(&tree);
            must(
                &build.argv,
                &[(ImageBuild::TREE, &tree), (ImageBuild::IMAGE, &image)],
                &build.env,
            );
            check(&recipe, &image);
            std::fs::read(&image).unwrap()
        });
        assert!(
            contents[0] == contents[1],
            "{}: two builds differ",
            candidate.name
        );
        assert!(contents[0].len() >= 4096);
        let broken = dir.path().join("broken.img");
        std::fs::write(&broken, vec![0; contents[0].len()]).unwrap();
        let output = run(
            &recipe.fsck_check,
            &[(Recipe::DEVICE, &broken)],
            &BTreeMap::new(),
        );
        assert!(
            !output.status.success(),
            "{} calls zeroes clean",
            candidate.name
        );
    }
}

#[test]
fn tool_untuned_recipes_format_and_check() {
    let dir = TempDir::new().unwrap();
    for candidate in candidates().iter().filter(|c| !c.facts().read_only) {
        let geometry = geometry(1000 * MIB, 4096);
        let recipe = candidate.recipe(&geometry, LAB).unwrap().untuned();
        if have(&recipe, candidate.name) {
            let image = dir.path().join("image");
            format(&recipe, &geometry, &image);
            check(&recipe, &image);
        }
    }
}
