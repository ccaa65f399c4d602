//! Images made without root: whole cards, and single filesystems with a tree in them.
#![allow(clippy::unwrap_used)]

use whichfs_testkit::skip;

use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use whichfs_format::{Builder, Check, OpenDisk, PATH, Tree, builder, format_image, tree_image};
use whichfs_fs::{Purpose, candidates, find};
use whichfs_layout::{BUILTIN, DiskPlan, Layout, Medium, TableKind, Unit};
use whichfs_units::MIB;

/// Nobody interrupts.
static NEVER: AtomicBool = AtomicBool::new(false);

fn have(tools: &[&str]) -> bool {
    let is_there = |tool: &str| {
        PATH.split(':')
            .any(|dir| Path::new(dir).join(tool).is_file())
    };
    let missing = tools.iter().find(|tool| !is_there(tool));
    if let Some(tool) = missing {
        skip::skip(format!("{tool} is not installed"));
    }
    missing.is_none()
}

fn medium(bytes: u64, unit_mib: u64) -> Medium {
    Medium::of_unit(bytes, Unit::new(unit_mib * MIB, "given").unwrap(), false)
}

fn no_fault(checks: &[Check]) {
    assert!(
        !checks.is_empty() && !checks.iter().any(Check::is_bad),
        "{checks:#?}"
    );
}

#[test]
fn a_card_with_partitions_is_made_and_found_aligned() {
    if !have(&["sfdisk", "mke2fs", "mkfs.vfat", "mkfs.f2fs"]) {
        return;
    }
    for (fs, kind, unit) in [("ext4", TableKind::Gpt, 4), ("f2fs", TableKind::Mbr, 12)] {
        let named = |(name, _): &&(&str, &str)| *name == "boot-root-data";
        let (_, text) = BUILTIN.iter().find(named).unwrap();
        let layout = Layout {
            table: kind,
            ..Layout::parse("layout", text).unwrap()
        };
        let plan = DiskPlan::new(&layout, &medium(1 << 30, unit), Some(fs), 7).unwrap();
        let home = tempfile::tempdir().unwrap();
        let image = home.path().join("card.img");
        no_fault(&format_image(&image, &plan, &NEVER, &mut |_| ()).unwrap());
        let disk = OpenDisk::open(&image).unwrap();
        let found = disk.table().unwrap().unwrap();
        assert_eq!((disk.bytes, found.entries.len()), (1 << 30, 3));
        let left: Vec<_> = home.path().read_dir().unwrap().flatten().collect();
        assert_eq!(left.len(), 1, "the image alone: {left:?}");
    }
}

/// A tree with a directory, a link where `unix`, a larger file, and a name in it.
fn tree(home: &Path, unix: bool) -> Tree {
    let root = home.join("tree");
    std::fs::create_dir_all(root.join("etc/empty")).unwrap();
    std::fs::write(root.join("etc/hostname"), "card\n").unwrap();
    std::fs::write(root.join("large"), vec![7; 3 << 20]).unwrap();
    if unix {
        std::os::unix::fs::symlink("etc/hostname", root.join("link")).unwrap();
    }
    Tree::open(&root).unwrap()
}

/// What a tool reads of `etc/hostname` in an image; `None` where none reads it without mounting.
fn hostname(fs: &str, image: &Path) -> Option<String> {
    let image = image.to_str().unwrap();
    let argv: Vec<&str> = match fs {
        "ext4" | "ext2" | "ext3" | "ext4-nojournal" => {
            vec!["debugfs", "-R", "cat /etc/hostname", image]
        }
        "vfat" | "vfat-factory" => vec!["mtype", "-i", image, "::/etc/hostname"],
        "squashfs-zstd" | "squashfs-lzo" | "squashfs-xz" => {
            vec!["unsquashfs", "-cat", image, "etc/hostname"]
        }
        "btrfs" => vec![
            "btrfs",
            "restore",
            "--path-regex",
            "^/(|etc(|/hostname))$",
            image,
            ".",
        ],
        _ => return None,
    };
    let home = tempfile::tempdir().unwrap();
    let output = Command::new(argv[0])
        .args(&argv[1..])
        .env("PATH", PATH)
        .current_dir(home.path())
        .output()
        .unwrap();
    if fs == "btrfs" {
        return std::fs::read_to_string(home.path().join("etc/hostname")).ok();
    }
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn a_tree_gets_into_every_filesystem_whose_tools_can() {
    let mut made = 0;
    for candidate in candidates() {
        let home = tempfile::tempdir().unwrap();
        let tree = tree(home.path(), candidate.facts().symlinks);
        let medium = medium(1 << 30, 4);
        let bytes = tree.image_bytes(candidate, 4 * MIB);
        let recipe = candidate
            .recipe(&medium.geometry(bytes), Purpose::User)
            .unwrap();
        let image = home.path().join("x.img");
        let way = builder(&recipe);
        let extra: &[&str] = match way {
            Builder::Lab => continue,
            Builder::Mcopy => &["mcopy"],
            Builder::Sload => &["sload.f2fs"],
            _ => &[],
        };
        if !have(&recipe.tools) || !have(extra) {
            continue;
        }
        let checks = tree_image(
            &tree,
            candidate,
            &recipe,
            bytes,
            &image,
            &NEVER,
            &mut |_| (),
        );
        no_fault(&checks.unwrap_or_else(|error| panic!("{}: {error}", candidate.name)));
        if let Some(read) = hostname(candidate.name, &image) {
            assert_eq!(read, "card\n", "{}", candidate.name);
        }
        made += 1;
    }
    assert!(made == 0 || made >= 5, "{made}");
}

/// What the tools tell of `etc/hostname` in read-only images: owner and time.
#[test]
fn read_only_images_keep_owners_and_times_of_the_tree() {
    let root = rustix::process::geteuid().is_root();
    let owner = if root {
        1234
    } else {
        rustix::process::geteuid().as_raw()
    };
    for (fs, argv) in [
        ("squashfs-zstd", &["unsquashfs", "-UTC", "-lln"][..]),
        ("erofs", &["dump.erofs", "--path=/etc/hostname"]),
    ] {
        let candidate = find(fs).unwrap();
        let home = tempfile::tempdir().unwrap();
        let tree = tree(home.path(), true);
        let file = tree.root.join("etc/hostname");
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
        std::fs::File::open(&file)
            .unwrap()
            .set_modified(time)
            .unwrap();
        if root {
            std::os::unix::fs::chown(&file, Some(owner), Some(owner)).unwrap();
        }
        let geometry = medium(1 << 30, 4).geometry(64 * MIB);
        let recipe = candidate.recipe(&geometry, Purpose::User).unwrap();
        if !have(&recipe.tools) || !have(&argv[..1]) {
            continue;
        }
        let image = home.path().join("x.img");
        let made = tree_image(
            &tree,
            candidate,
            &recipe,
            64 * MIB,
            &image,
            &NEVER,
            &mut |_| (),
        );
        no_fault(&made.unwrap());
        let output = Command::new(argv[0])
            .args(&argv[1..])
            .arg(&image)
            .env("PATH", PATH)
            .env("TZ", "UTC")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let of_file = said
            .lines()
            .filter(|line| fs == "erofs" || line.contains("hostname"));
        let of_file = of_file.collect::<Vec<_>>().join("\n");
        assert!(
            of_file.contains(&owner.to_string()) && of_file.contains("2001-09-09"),
            "{said}"
        );
    }
}

/// Before mcopy is asked, which gives up without a reason or renames.
#[test]
fn what_fat_cannot_hold_is_refused_by_name() {
    let home = tempfile::tempdir().unwrap();
    let root = tree(home.path(), false).root;
    let of = |make: &dyn Fn(&Path)| {
        let place = root.join("place");
        std::fs::create_dir(&place).unwrap();
        make(&place);
        let found = Tree::open(&root).unwrap();
        let refused = ["vfat", "exfat"].map(|fs| found.check(find(fs).unwrap()));
        assert!(found.check(find("ext4").unwrap()).is_ok());
        std::fs::remove_dir_all(&place).unwrap();
        refused.map(|refused| {
            refused
                .err()
                .map_or(String::new(), |error| error.to_string())
        })
    };
    let file = |place: &Path, name: &str| std::fs::write(place.join(name), name).unwrap();
    for (names, word) in [
        (&["Readme", "README"][..], "are one name"),
        (&["a:b"], "has no ':'"),
        (&["trailing."], "no period at the end"),
    ] {
        for refused in of(&|place| names.iter().for_each(|name| file(place, name))) {
            assert!(
                refused.contains(word) && refused.contains("another filesystem"),
                "{refused}"
            );
        }
    }
    let [vfat, exfat] = of(&|place| {
        let large = std::fs::File::create(place.join("large")).unwrap();
        large.set_len(5 << 30).unwrap();
    });
    assert!(
        vfat.contains("large has 5 GiB") && exfat.is_empty(),
        "{vfat} {exfat}"
    );
    assert_eq!(of(&|place| file(place, "plain")), ["", ""]);
}

#[test]
fn what_a_tool_would_leave_out_is_refused_or_told() {
    let home = tempfile::tempdir().unwrap();
    let mut tree = tree(home.path(), true);
    let pipe = tree.root.join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    tree = Tree::open(&tree.root).unwrap();
    let image = home.path().join("x.img");
    let of = |tree: &Tree, name: &str, bytes: u64| {
        let candidate = find(name).unwrap();
        let geometry = medium(1 << 30, 4).geometry(bytes);
        let recipe = candidate.recipe(&geometry, Purpose::User).unwrap();
        tree_image(tree, candidate, &recipe, bytes, &image, &NEVER, &mut |_| ())
    };
    let refused = of(&tree, "f2fs", 128 * MIB).unwrap_err().to_string();
    assert!(
        refused.contains("tree/pipe") && refused.contains("--lab"),
        "{refused}"
    );
    assert!(!image.exists());
    std::fs::remove_file(&pipe).unwrap();
    let value = rustix::fs::setxattr(
        tree.root.join("large"),
        "user.kind",
        b"large",
        rustix::fs::XattrFlags::empty(),
    );
    if value.is_err() || !have(&["mkfs.f2fs", "sload.f2fs"]) {
        return skip::skip("no extended attributes here, or no tools of F2FS");
    }
    tree = Tree::open(&tree.root).unwrap();
    let checks = of(&tree, "f2fs", 128 * MIB).unwrap();
    let told = checks
        .iter()
        .find(|check| check.what == "image: extended attributes");
    assert!(format!("{told:?}").contains("tree/large"), "{checks:?}");
}

#[test]
fn what_cannot_be_is_refused_and_leaves_no_file() {
    let home = tempfile::tempdir().unwrap();
    let tree = tree(home.path(), true);
    let image = home.path().join("x.img");
    let of = |name: &str, bytes: u64| {
        let candidate = find(name).unwrap();
        let recipe = candidate
            .recipe(&medium(1 << 30, 4).geometry(bytes), Purpose::User)
            .unwrap();
        let made = tree_image(
            &tree,
            candidate,
            &recipe,
            bytes,
            &image,
            &NEVER,
            &mut |_| (),
        );
        let error = made.unwrap_err().to_string();
        assert!(!image.exists(), "{name}");
        error
    };
    assert!(of("vfat", 64 * MIB).contains("is a symbolic link"));
    assert!(of("exfat", 64 * MIB).contains("symbolic link"));
    assert!(of("nilfs2", 256 * MIB).contains("--lab"));
    if have(&["mke2fs"]) {
        std::fs::write(tree.root.join("larger"), vec![1; 12 << 20]).unwrap();
        let full = of("ext4", 12 * MIB);
        assert!(full.contains("mke2fs"), "{full}");
    }
    assert!(
        Tree::open(&home.path().join("none"))
            .unwrap_err()
            .to_string()
            .contains("no directory")
    );
    let left: Vec<_> = home.path().read_dir().unwrap().flatten().collect();
    assert_eq!(left.len(), 1, "the tree alone: {left:?}");
}

#[test]
fn an_interrupt_leaves_no_file() {
    if !have(&["sfdisk", "mke2fs"]) {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let tree = tree(home.path(), true);
    let image = home.path().join("x.img");
    let now = AtomicBool::new(true);
    let ext4 = find("ext4").unwrap();
    let geometry = medium(1 << 30, 4).geometry(64 * MIB);
    let recipe = ext4.recipe(&geometry, Purpose::User).unwrap();
    let made = tree_image(&tree, ext4, &recipe, 64 * MIB, &image, &now, &mut |_| ());
    assert!(made.unwrap_err().to_string().contains("no image was made"));
    let layout = Layout::single(TableKind::Gpt, "data", None, "/data");
    let plan = DiskPlan::new(&layout, &medium(1 << 30, 4), Some("ext4"), 1).unwrap();
    let made = format_image(&image, &plan, &now, &mut |_| ());
    assert!(made.unwrap_err().to_string().contains("no image was made"));
    let left: Vec<_> = home.path().read_dir().unwrap().flatten().collect();
    assert_eq!(left.len(), 1, "the tree alone: {left:?}");
}

#[test]
fn what_is_no_image_is_told() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("x");
    for (bytes, table) in [
        (vec![], false),
        (b"text".to_vec(), false),
        (vec![0x55; 4096], false),
    ] {
        std::fs::write(&path, bytes).unwrap();
        let disk = OpenDisk::open(&path).unwrap();
        assert_eq!(disk.table().unwrap().is_some(), table);
        assert_eq!(disk.superblock(0).unwrap(), None);
    }
    let error = OpenDisk::open(&home.path().join("none"))
        .unwrap_err()
        .to_string();
    assert!(error.contains("can be read"), "{error}");
}
