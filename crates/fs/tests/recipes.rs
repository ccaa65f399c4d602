//! What every recipe must hold, over many cards: partitions from 32 MiB to 128 GiB on
//! allocation units from 1.5 to 24 MiB.
#![allow(clippy::unwrap_used)]

use whichfs_fs::{Candidate, CrashClass, Geometry, ImageBuild, Purpose, Recipe, candidates, find};
use whichfs_units::{GIB, KIB, MIB};

const LAB: Purpose = Purpose::Lab { seed: 7 };

fn geometries() -> impl Iterator<Item = Geometry> {
    let partitions = [32, 64, 100, 333, 512, 1000, 4096, 7580, 30_436, 131_072];
    let units_kib = [1536, 3072, 4096, 6144, 8192, 12_288, 16_384, 24_576];
    let writes = [(4, 4), (16, 32), (16, 64), (8, 48)];
    partitions.into_iter().flat_map(move |partition| {
        units_kib.into_iter().flat_map(move |au| {
            writes.into_iter().flat_map(move |(page, unit)| {
                [false, true].map(|discard| Geometry {
                    partition_bytes: partition * MIB,
                    page_bytes: page * KIB,
                    write_unit_bytes: unit * KIB,
                    au_bytes: au * KIB,
                    discard,
                    flush: discard,
                })
            })
        })
    })
}

fn card() -> Geometry {
    Geometry {
        partition_bytes: 4 * GIB,
        page_bytes: 16 * KIB,
        write_unit_bytes: 64 * KIB,
        au_bytes: 4 * MIB,
        discard: true,
        flush: false,
    }
}

/// All recipes there are, with what they were made from.
fn recipes(purpose: Purpose) -> impl Iterator<Item = (&'static Candidate, Geometry, Recipe)> {
    candidates().iter().flat_map(move |candidate| {
        geometries().filter_map(move |geometry| {
            let recipe = candidate.recipe(&geometry, purpose).ok()?;
            Some((candidate, geometry, recipe))
        })
    })
}

fn value<'a>(argv: &'a [String], flag: &str) -> &'a str {
    let at = argv.iter().position(|word| word == flag);
    &argv[at.unwrap_or_else(|| panic!("no {flag} in {argv:?}")) + 1]
}

#[test]
fn every_recipe_is_complete() {
    for purpose in [LAB, Purpose::User] {
        for (candidate, _, recipe) in recipes(purpose) {
            let name = candidate.name;
            let read_only = candidate.facts().read_only;
            assert_eq!(recipe.mkfs.is_empty(), read_only, "{name}");
            assert_eq!(recipe.image.is_some(), read_only, "{name}");
            let checks = [&recipe.fsck_check, &recipe.fsck_repair, &recipe.fsck_rescue];
            for argv in recipe
                .mkfs
                .iter()
                .chain(checks)
                .filter(|argv| !argv.is_empty())
            {
                let devices = argv.iter().filter(|word| *word == Recipe::DEVICE).count();
                assert_eq!(devices, 1, "{name}: {argv:?}");
                assert!(
                    recipe.tools.contains(&argv[0].as_str()),
                    "{name}: {}",
                    argv[0]
                );
            }
            if let Some(image) = &recipe.image {
                for place in [ImageBuild::TREE, ImageBuild::IMAGE] {
                    assert_eq!(image.argv.iter().filter(|word| *word == place).count(), 1);
                }
            }
            let atime = if read_only { "ro" } else { "noatime" };
            assert!(
                recipe.mount_options.split(',').any(|word| word == atime),
                "{name}"
            );
            assert!(
                recipe.fstab_options.split(',').any(|word| word == atime),
                "{name}"
            );
            assert!(recipe.fstab_passno == 0 || recipe.fstab_passno == 2);
            for cheat in [
                "nobarrier",
                "barrier=0",
                "nodelalloc",
                "norecovery",
                "writeback",
            ] {
                assert!(!recipe.mount_options.contains(cheat), "{name}: {cheat}");
            }
            assert!(!recipe.tuning.is_empty(), "{name} tells its tuning");
        }
    }
}

#[test]
fn every_candidate_fits_a_common_card() {
    for candidate in candidates() {
        candidate
            .recipe(&card(), LAB)
            .unwrap_or_else(|unfit| panic!("{unfit}"));
    }
}

#[test]
fn facts_have_sources() {
    for candidate in candidates() {
        let facts = candidate.facts();
        for claim in ["minimum size", "largest file", "last year", "crash class"] {
            assert_ne!(
                candidate.source_of(claim),
                "",
                "{} on {claim}",
                candidate.name
            );
        }
        assert!(
            facts
                .sources
                .iter()
                .all(|(claim, source)| !claim.is_empty() && source.len() > 5)
        );
        assert!(facts.y2038 >= 2038 && !facts.good_for.is_empty());
        assert!(
            facts
                .kernel_options
                .iter()
                .all(|option| option.starts_with("CONFIG_"))
        );
        assert!(!facts.packages.is_empty());
    }
}

#[test]
fn facts_decide_the_hard_constraints() {
    let names = |wanted: fn(&Candidate) -> bool| -> Vec<&str> {
        candidates()
            .iter()
            .filter(|c| wanted(c))
            .map(|c| c.name)
            .collect()
    };
    assert_eq!(
        names(|c| c.facts().windows),
        ["vfat", "vfat-factory", "exfat", "ntfs3"]
    );
    assert_eq!(
        names(|c| !c.facts().symlinks),
        ["vfat", "vfat-factory", "exfat"]
    );
    assert_eq!(names(|c| c.facts().y2038 < 2039), ["ext2"]);
    assert_eq!(names(|c| c.facts().snapshots), ["btrfs", "nilfs2"]);
    assert_eq!(
        names(|c| c.facts().crash_class == CrashClass::None),
        ["ext2", "ext4-nojournal", "vfat", "vfat-factory", "exfat"]
    );
}

#[test]
fn ext_has_one_extended_option_list_with_whole_stripes() {
    for (candidate, geometry, recipe) in recipes(LAB) {
        if !candidate.name.starts_with("ext") || candidate.name == "exfat" {
            continue;
        }
        let argv = &recipe.mkfs[0];
        assert_eq!(
            argv.iter().filter(|word| *word == "-E").count(),
            1,
            "{argv:?}"
        );
        assert_eq!(value(argv, "-b"), "4096");
        let extended: Vec<&str> = value(argv, "-E").split(',').collect();
        let number = |key: &str| -> u64 {
            extended
                .iter()
                .find_map(|word| word.strip_prefix(key))
                .unwrap()
                .parse()
                .unwrap()
        };
        let (stride, stripe) = (number("stride="), number("stripe_width="));
        assert_eq!(stripe * 4096, geometry.au_bytes);
        assert_eq!(stripe % stride, 0);
        assert_eq!(geometry.write_unit_bytes % (stride * 4096), 0);
        let discard = if geometry.discard {
            "discard"
        } else {
            "nodiscard"
        };
        for word in ["lazy_itable_init=0", "lazy_journal_init=0", discard] {
            assert!(extended.contains(&word), "{word} in {extended:?}");
        }
    }
}

#[test]
fn ext4_on_a_card_of_4_mib_units_is_as_by_hand() {
    let recipe = find("ext4")
        .unwrap()
        .recipe(&card(), Purpose::User)
        .unwrap();
    let by_hand = "mke2fs -q -t ext4 -b 4096 -I 256 -E stride=16,stripe_width=1024,\
                   lazy_itable_init=0,lazy_journal_init=0,discard {device}";
    assert_eq!(recipe.mkfs[0].join(" "), by_hand);
    assert!(recipe.mkfs_env.is_empty());
}

#[test]
fn mkfs_discards_only_where_the_bus_does() {
    let check = |name: &str, discard: bool, expected: &str| {
        let geometry = Geometry { discard, ..card() };
        let argv = &find(name).unwrap().recipe(&geometry, LAB).unwrap().mkfs[0];
        let found = argv.join(" ").contains(expected);
        assert!(found, "{name}, discard {discard}: {argv:?}");
    };
    check("ext4", false, ",nodiscard");
    check("f2fs", true, " -t 1");
    check("f2fs", false, " -t 0");
    for name in ["xfs", "btrfs", "nilfs2"] {
        check(name, false, " -K");
        let argv = &find(name).unwrap().recipe(&card(), LAB).unwrap().mkfs[0];
        assert!(!argv.contains(&"-K".to_owned()), "{name}");
    }
}

#[test]
fn f2fs_sections_are_whole_units_where_they_fit() {
    let sections = |partition_mib: u64, au_kib: u64| -> u64 {
        let geometry = Geometry {
            partition_bytes: partition_mib * MIB,
            au_bytes: au_kib * KIB,
            ..card()
        };
        let recipe = find("f2fs").unwrap().recipe(&geometry, LAB).unwrap();
        let argv = &recipe.mkfs[0];
        let segments: u64 = value(argv, "-s").parse().unwrap();
        let sectors: u64 = argv.last().unwrap().parse().unwrap();
        assert_eq!(
            sectors * 512 % (segments * 2 * MIB),
            0,
            "ends with a whole section"
        );
        assert!(sectors * 512 <= geometry.partition_bytes);
        segments
    };
    for (au_kib, segments) in [(1536, 3), (3072, 3), (4096, 2), (6144, 3), (8192, 4)] {
        assert_eq!(sections(4096, au_kib), segments, "{au_kib} KiB");
    }
    for (au_kib, segments) in [(12_288, 6), (16_384, 8), (24_576, 12)] {
        assert_eq!(sections(8192, au_kib), segments, "{au_kib} KiB");
    }
    assert_eq!(sections(64, 4096), 1, "mkfs.f2fs -s 2 fails on 64 MiB");
    assert_eq!(
        sections(1024, 24_576),
        4,
        "the largest divisor that leaves 128 sections"
    );
}

#[test]
fn nilfs2_segments_are_powers_of_two_within_a_unit() {
    for (candidate, geometry, recipe) in recipes(LAB) {
        if candidate.name == "nilfs2" {
            let blocks: u64 = value(&recipe.mkfs[0], "-B").parse().unwrap();
            assert!(blocks.is_power_of_two());
            assert_eq!(geometry.au_bytes % (blocks * 4096), 0);
            assert!(geometry.partition_bytes > 16 * blocks * 4096);
            assert!(recipe.helper.is_some(), "the cleaner is declared");
        }
    }
}

#[test]
fn too_small_and_absurd_cards_are_refused_with_a_source() {
    for candidate in candidates() {
        let small = Geometry {
            partition_bytes: candidate.facts().min_bytes - 1,
            ..card()
        };
        let unfit = candidate.recipe(&small, LAB).unwrap_err();
        assert!(unfit.reason.contains("needs at least"), "{unfit}");
        assert!(!unfit.source.is_empty(), "{}", candidate.name);
        for au_bytes in [0, 1000, 65 * MIB] {
            let absurd = Geometry { au_bytes, ..card() };
            assert!(
                candidate.recipe(&absurd, LAB).is_err(),
                "{}",
                candidate.name
            );
        }
    }
    let large = Geometry {
        partition_bytes: 64 * GIB,
        ..card()
    };
    let unfit = find("vfat-factory")
        .unwrap()
        .recipe(&large, LAB)
        .unwrap_err();
    assert!(unfit.to_string().contains("exFAT"), "{unfit}");
}

#[test]
fn the_lab_fixes_identifiers_and_a_person_gets_random_ones() {
    let uuid = |argv: &[Vec<String>]| {
        argv.iter()
            .flatten()
            .any(|word| word.split(['=', ',']).any(|w| w.matches('-').count() == 4))
    };
    for name in [
        "ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "nilfs2", "reiserfs", "jfs",
    ] {
        let candidate = find(name).unwrap();
        let lab = candidate.recipe(&card(), LAB).unwrap();
        let user = candidate.recipe(&card(), Purpose::User).unwrap();
        let other = candidate.recipe(&card(), Purpose::Lab { seed: 8 }).unwrap();
        assert!(uuid(&lab.mkfs), "{name}: {:?}", lab.mkfs);
        assert!(!uuid(&user.mkfs), "{name}: {:?}", user.mkfs);
        assert_ne!(lab.mkfs, other.mkfs, "{name} by seed");
        assert_eq!(
            lab,
            candidate.recipe(&card(), LAB).unwrap(),
            "{name} is pure"
        );
    }
}

#[test]
fn a_person_is_given_no_flag_that_formats_a_mounted_disk() {
    for (candidate, _, recipe) in recipes(Purpose::User) {
        let first: Vec<&str> = recipe.mkfs.iter().flatten().map(String::as_str).collect();
        let forced = match candidate.name {
            "ntfs3" | "ext2" | "ext3" | "ext4" | "ext4-nojournal" => "-F",
            "reiserfs" => "-f",
            "vfat" | "vfat-factory" => "-I",
            _ => continue,
        };
        // `-F 32` of mkfs.vfat is the width of its table, -F of the others is force.
        assert!(!first.contains(&forced), "{}: {first:?}", candidate.name);
    }
}

#[test]
fn an_untuned_recipe_does_not_know_the_card() {
    for candidate in candidates() {
        let mut other = card();
        other.au_bytes = 3 * MIB;
        other.page_bytes = 4 * KIB;
        other.write_unit_bytes = 12 * KIB;
        let [here, there] = [card(), other].map(|geometry| candidate.recipe(&geometry, LAB));
        let [mut here, mut there] = [here.unwrap(), there.unwrap()].map(Recipe::untuned);
        if candidate.name == "f2fs" {
            // Its size in sectors is whole sections of the card's.
            for recipe in [&mut here, &mut there] {
                recipe.mkfs[0].pop();
            }
        }
        assert_eq!(here.mkfs, there.mkfs, "{}", candidate.name);
        assert_eq!(here.image, there.image, "{}", candidate.name);
        assert!(!here.mount_options.contains("noatime"));
    }
    let ext4 = find("ext4")
        .unwrap()
        .recipe(&card(), LAB)
        .unwrap()
        .untuned();
    let line = ext4.mkfs[0].join(" ");
    assert!(
        line.contains("lazy_itable_init=0") && line.contains("hash_seed="),
        "{line}"
    );
    assert!(!line.contains("stride") && !line.contains("-b "), "{line}");
}

#[test]
fn below_the_catalogues_minimum_there_is_a_recipe_for_whoever_asks() {
    let tiny = Geometry {
        partition_bytes: MIB,
        ..card()
    };
    let ext4 = find("ext4").unwrap();
    assert!(ext4.recipe(&tiny, LAB).is_err());
    assert!(ext4.recipe_of_any_size(&tiny, LAB).is_ok());
}
