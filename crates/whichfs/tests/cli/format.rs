//! `format`, `check` and `image` from outside: images only, no root, no guest.

use super::sandbox::{Run, Sandbox};
use crate::skip::skip;
use std::path::Path;

pub(super) fn has(tool: &str) -> bool {
    let there = ["/usr/sbin", "/usr/bin", "/sbin"]
        .iter()
        .any(|dir| Path::new(dir).join(tool).exists());
    if !there {
        skip(format!("{tool} is not installed"));
    }
    there
}

pub(super) fn refused(run: &Run, words: &[&str]) {
    assert_eq!(run.code, 2, "{}{}", run.stdout, run.stderr);
    for word in words {
        assert!(
            run.stderr.contains(word),
            "{word:?} is not in {}",
            run.stderr
        );
    }
}

#[test]
fn bad_input_is_told_with_its_remedy_and_makes_no_file() {
    let home = Sandbox::new();
    home.file(
        "bad.toml",
        "[[partition]]\nname = \"x\"\nrole = \"data\"\nsize = \"1Q\"\n",
    );
    home.file(
        "over.toml",
        "[[partition]]\nname = \"a\"\nrole = \"data\"\nsize = \"64M\"\n\
         [[partition]]\nname = \"b\"\nrole = \"data\"\nsize = \"64M\"\nstart = \"32M\"\n",
    );
    for (arguments, words) in [
        (vec!["x.img"], vec!["--fs ext4"]),
        (vec!["x.img", "--fs", "ext4"], vec!["the size is not known"]),
        (
            vec!["x.img", "--fs", "ext5", "--size", "1G"],
            vec!["did you mean 'ext2', 'ext3' or 'ext4'?"],
        ),
        (
            vec!["x.img", "--fs", "ext4", "--size", "1G", "--au", "100000"],
            vec!["4M or 12M"],
        ),
        (
            vec!["x.img", "--fs", "ext4", "--size", "8M"],
            vec!["larger card"],
        ),
        (
            vec!["x.img", "--fs", "xfs", "--size", "64M"],
            vec!["needs at least 304 MiB"],
        ),
        (
            vec!["x.img", "--layout", "bad.toml", "--size", "1G"],
            vec!["bad.toml:1", "25%"],
        ),
        (
            vec![
                "x.img",
                "--layout",
                "over.toml",
                "--fs",
                "ext4",
                "--size",
                "1G",
            ],
            vec!["what is before it ends at"],
        ),
        (
            vec!["x.img", "--layout", "boot-rot", "--size", "1G"],
            vec!["did you mean 'boot-root'"],
        ),
        (
            vec![
                "x.img",
                "--layout",
                "boot-root",
                "--fs",
                "f2fs",
                "--label",
                "X",
                "--size",
                "1G",
            ],
            vec!["cannot be used with"],
        ),
        (
            vec!["x.img", "--fs", "vfat", "--label", "boot", "--size", "1G"],
            vec!["capital letters"],
        ),
        (
            vec!["x.img", "--fs", "squashfs-xz", "--size", "1G"],
            vec!["whichfs image TREE"],
        ),
        (
            vec!["x.img", "--fs", "squashfs-xz", "--size", "1G", "--dry-run"],
            vec!["whichfs image TREE"],
        ),
        (
            vec!["x.img", "--fs", "ext4", "--size", "1G", "--label", "a\"b"],
            vec!["use letters, digits"],
        ),
        (
            vec!["x.img", "--fs", "ext4", "--size", "1G", "--mount", "/a#b"],
            vec!["absolute path without blanks, quotes"],
        ),
        (
            vec!["/tmp", "--fs", "ext4", "--dry-run"],
            vec!["is a directory", "lsblk"],
        ),
        (
            vec!["x.img", "--fs", "ext4", "--size", "1G", "--card", "no-card"],
            vec!["unknown card"],
        ),
        (
            vec![
                "x.img", "--fs", "f2fs", "--mount", "/", "--size", "1G", "--table", "bsd",
            ],
            vec!["gpt, mbr"],
        ),
        (
            vec!["no/dir/x.img", "--fs", "ext4", "--size", "1G"],
            vec!["can be written"],
        ),
        (
            vec!["/dev/null", "--fs", "ext4"],
            vec!["a character device"],
        ),
        (
            vec!["/dev/no-such", "--fs", "ext4"],
            vec!["No such file", "lsblk"],
        ),
    ] {
        let all: Vec<&str> = ["format"].into_iter().chain(arguments).collect();
        refused(&home.run(&all), &words);
    }
    let left: Vec<_> = home
        .path()
        .read_dir()
        .unwrap()
        .flatten()
        .map(|e| e.file_name())
        .collect();
    assert!(
        left.iter()
            .all(|name| !name.to_string_lossy().contains("img")),
        "{left:?}"
    );
}

#[test]
fn an_image_is_made_found_good_and_not_overwritten_by_a_slip() {
    if !has("sfdisk") || !has("mke2fs") || !has("mkfs.vfat") {
        return;
    }
    let home = Sandbox::new();
    let make = [
        "format",
        "card.img",
        "--fs",
        "ext4",
        "--layout",
        "boot-root-data",
        "--size",
        "1G",
        "--au",
        "12M",
    ];
    let dry = home.run(&[&make[..], &["--dry-run"]].concat());
    assert_eq!(dry.code, 0, "{}", dry.stderr);
    assert!(
        dry.stdout.contains("sfdisk") && dry.stdout.contains("stripe_width=3072"),
        "{}",
        dry.stdout
    );
    assert!(!home.path().join("card.img").exists());
    let made = home.run(&make);
    assert_eq!(made.code, 0, "{}{}", made.stdout, made.stderr);
    for words in ["you said so", "PARTUUID=", "good"] {
        assert!(made.stdout.contains(words), "{words}: {}", made.stdout);
    }
    assert!(
        made.stdout
            .lines()
            .all(|line| line.starts_with("PARTUUID") || line.chars().count() <= 80),
        "{}",
        made.stdout
    );
    let good = home.run(&["check", "card.img", "--au", "12M"]);
    assert_eq!(good.code, 0, "{}{}", good.stdout, good.stderr);
    assert_eq!(
        good.stdout.matches("aligned and tuned").count(),
        3,
        "{}",
        good.stdout
    );
    // On a card with other units it is not.
    let other = home.run(&["check", "card.img", "--au", "8M", "--no-gain", "--json"]);
    assert_eq!(other.code, 1);
    let found: serde_json::Value = serde_json::from_str(&other.stdout).unwrap();
    assert_eq!(found["partitions"].as_array().unwrap().len(), 3);
    // A second time it must be named.
    let path = home.path().join("card.img");
    let before = std::fs::read(&path).unwrap();
    refused(&home.run(&make), &["loses all its data", "--destroy"]);
    refused(
        &home.run(&[&make[..], &["--destroy", "other.img"]].concat()),
        &["another device"],
    );
    assert!(std::fs::read(&path).unwrap() == before);
    let named = std::fs::canonicalize(&path).unwrap();
    let again = home.run(&[&make[..], &["--destroy", named.to_str().unwrap()]].concat());
    assert_eq!(again.code, 0, "{}", again.stderr);
}

#[test]
fn a_misaligned_image_is_told_and_without_a_lab_nothing_is_asserted() {
    if !has("mke2fs") {
        return;
    }
    let home = Sandbox::new();
    let script = "truncate -s 256M x.img; \
                  echo 'start=63, type=83' | /usr/sbin/sfdisk -q -f x.img; \
                  truncate -s 200M p.img && /usr/sbin/mke2fs -q -F -t ext4 p.img && \
                  dd if=p.img of=x.img bs=512 seek=63 conv=notrunc,sparse status=none";
    let made = std::process::Command::new("sh")
        .args(["-c", script])
        .current_dir(home.path())
        .status();
    assert!(made.unwrap().success());
    let told = home.run(&["check", "x.img", "--card", "a1-32gb"]);
    assert_eq!(told.code, 1, "{}{}", told.stdout, told.stderr);
    for words in [
        "31.5 KiB behind an allocation unit of 4 MiB",
        "block size is 1 KiB",
        "was not measured",
    ] {
        let flat = told.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(words), "{words}: {}", told.stdout);
    }
}

#[test]
fn what_is_no_card_is_told() {
    let home = Sandbox::new();
    home.file("empty", "");
    home.file("text", "no image\n".repeat(1000));
    refused(&home.run(&["check", "empty"]), &["has no bytes"]);
    refused(
        &home.run(&["check", "text"]),
        &["neither a partition table nor a filesystem"],
    );
    refused(&home.run(&["check", "none"]), &["No such file"]);
    refused(&home.run(&["check", "."]), &["neither a device nor a file"]);
}

#[test]
fn files_for_builders_are_the_same_for_the_same_seed() {
    let home = Sandbox::new();
    let emit = |dir: &str, seed: &str| {
        let run = home.run(&[
            "format", "--card", "a1-32gb", "--fs", "f2fs", "--layout", "ab", "--emit", dir,
            "--seed", seed,
        ]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert!(run.stdout.contains("genimage.cfg"), "{}", run.stdout);
    };
    emit("one", "1");
    emit("two", "1");
    emit("three", "2");
    let read = |dir: &str, name: &str| {
        let text = std::fs::read_to_string(home.path().join(dir).join(name)).unwrap();
        // The comment has the command, which names the directory.
        text.lines()
            .filter(|line| !line.starts_with('#'))
            .collect::<Vec<_>>()
            .join("\n")
    };
    for name in [
        "whichfs.wks.in",
        "genimage.cfg",
        "fstab",
        "mkfs.sh",
        "whichfs.cfg",
        "u-boot.txt",
        "rauc-system.conf",
        "sw-description",
        "mender.conf",
        "repart.d/20-root-a.conf",
        "repart.env",
    ] {
        assert_eq!(read("one", name), read("two", name), "{name}");
    }
    assert_ne!(read("one", "fstab"), read("three", "fstab"));
    assert!(read("one", "whichfs.cfg").contains("CONFIG_F2FS_FS=y"));
    refused(
        &home.run(&["format", "--fs", "ext4", "--emit", "x"]),
        &["the size is not known", "card"],
    );
    let no_boot = [
        "format", "--card", "a1-32gb", "--fs", "f2fs", "--layout", "./l.toml", "--emit", "x",
    ];
    home.file(
        "l.toml",
        "[[partition]]\nname = \"root\"\nrole = \"root\"\nsize = \"rest\"\nmount = \"/\"\n",
    );
    refused(
        &home.run(&no_boot),
        &["U-Boot cannot read", "role = \"boot\""],
    );
}

#[test]
fn a_tree_becomes_an_image_and_a_file_that_is_there_stays() {
    if !has("mke2fs") {
        return;
    }
    let home = Sandbox::new();
    std::fs::create_dir(home.path().join("tree")).unwrap();
    home.file("tree/hello", "world\n");
    let make = [
        "image",
        "tree",
        "--fs",
        "ext4",
        "--card",
        "class4-4gb",
        "-o",
        "root.ext4",
        "--label",
        "ROOT",
    ];
    let made = home.run(&make);
    assert_eq!(made.code, 0, "{}{}", made.stdout, made.stderr);
    assert!(
        made.stdout.contains("e2fsck finds nothing"),
        "{}",
        made.stdout
    );
    refused(&home.run(&make), &["--force"]);
    assert_eq!(home.run(&[&make[..], &["--force"]].concat()).code, 0);
    let small = [
        "image", "tree", "--fs", "ext4", "--size", "1M", "-o", "small",
    ];
    refused(&home.run(&small), &["larger --size"]);
    refused(
        &home.run(&["image", "none", "--fs", "ext4", "-o", "x"]),
        &["no directory"],
    );
    refused(
        &home.run(&["image", "tree", "--fs", "ext9", "-o", "x"]),
        &["did you mean"],
    );
    refused(
        &home.run(&[
            "image", "tree", "--fs", "ext4", "--size", "10000001", "-o", "x",
        ]),
        &["multiple of 4K"],
    );
    assert!(!home.path().join("x").exists());
}

/// What was told, as if lines had no width.
pub(super) fn one_line(run: &Run) -> String {
    let words: Vec<&str> = run.stdout.split_whitespace().collect();
    words.join(" ")
}

#[test]
fn an_image_that_is_cut_off_is_found() {
    if !has("sfdisk") || !has("mke2fs") {
        return;
    }
    let home = Sandbox::new();
    let made = home.run(&["format", "x.img", "--fs", "ext4", "--size", "256M"]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    let mut options = std::fs::File::options();
    let image = options.write(true).open(home.path().join("x.img"));
    let image = image.unwrap();
    let whole = home.run(&["check", "x.img", "--no-gain"]);
    assert!(
        whole.stdout.contains("aligned and tuned"),
        "{}",
        whole.stdout
    );
    assert_eq!(whole.code, 0);
    // Behind its superblock, and before its partition.
    for (mib, known) in [(100, true), (3, false)] {
        image.set_len(mib << 20).unwrap();
        let cut = home.run(&["check", "x.img"]);
        assert_eq!(cut.code, 1, "{}{}", cut.stdout, cut.stderr);
        let told = one_line(&cut);
        for words in [
            "behind the end of the disk at",
            "cut off",
            "it is not whole",
        ] {
            assert!(told.contains(words), "{words}: {told}");
        }
        assert_eq!(cut.stdout.contains("stride"), known, "{}", cut.stdout);
        assert!(!cut.stdout.contains("aligned"), "{}", cut.stdout);
    }
    // A filesystem without a table, on less than it covers.
    home.run(&["format", "y.img", "--fs", "ext4", "--size", "256M"]);
    let table = std::fs::read(home.path().join("y.img")).unwrap();
    std::fs::write(home.path().join("z.img"), &table[4 << 20..64 << 20]).unwrap();
    let cut = home.run(&["check", "z.img", "--no-gain"]);
    assert_eq!(cut.code, 1, "{}{}", cut.stdout, cut.stderr);
    let told = one_line(&cut);
    assert!(told.contains("more than the 60 MiB"), "{told}");
}

/// The second copy of a GPT, at the end of the disk; partitions that share bytes.
#[test]
fn what_is_wrong_with_a_table_that_can_be_read_is_found() {
    if !has("sfdisk") || !has("mke2fs") {
        return;
    }
    let home = Sandbox::new();
    let of = |table: &str| {
        let name = format!("{table}.img");
        let layout = ["--size", "256M", "--layout", "boot-root", "--table", table];
        let made = home.run(
            &[
                &["format", &name, "--fs", "ext4", "--au", "4M"],
                &layout[..],
            ]
            .concat(),
        );
        assert_eq!(made.code, 0, "{}", made.stderr);
        std::fs::read(home.path().join(name)).unwrap()
    };
    let check = |image: &[u8]| {
        std::fs::write(home.path().join("x.img"), image).unwrap();
        home.run(&["check", "x.img", "--au", "4M", "--no-gain"])
    };
    let gpt = of("gpt");
    assert_eq!(check(&gpt).code, 0);
    let mut damaged = gpt.clone();
    let end = damaged.len();
    damaged[end - 512..].fill(0);
    let found = check(&damaged);
    assert_eq!(found.code, 1, "{}{}", found.stdout, found.stderr);
    let told = one_line(&found);
    assert!(
        told.contains("second copy of the GPT is damaged (no header)"),
        "{told}"
    );
    assert!(
        check(&gpt[..end - 512])
            .stdout
            .contains("behind the end of the disk")
    );
    let mut mbr = of("mbr");
    assert_eq!(check(&mbr).code, 0);
    mbr.copy_within(446..462, 462);
    let found = check(&mbr);
    assert_eq!(found.code, 1, "{}{}", found.stdout, found.stderr);
    assert!(
        one_line(&found).contains("it overlaps partition 2"),
        "{}",
        found.stdout
    );
}

/// A size that no file can have is told as that.
#[test]
fn an_image_that_no_file_can_hold_is_refused_with_its_size() {
    if !has("sfdisk") || !has("mke2fs") {
        return;
    }
    let home = Sandbox::new();
    std::fs::create_dir(home.path().join("tree")).unwrap();
    let size = ["--fs", "ext4", "--size", "8388607T"];
    for first in [&["format", "x.img"][..], &["image", "tree", "-o", "x.img"]] {
        let run = home.run(&[first, &size[..]].concat());
        run.fails(2, &["no file can have 8388607 TiB", "smaller --size"]);
        assert!(home.path().read_dir().unwrap().count() <= 2);
    }
}

#[test]
fn a_partition_without_a_filesystem_is_not_called_tuned() {
    if !has("sfdisk") || !has("mke2fs") {
        return;
    }
    let home = Sandbox::new();
    home.run(&["format", "x.img", "--fs", "ext4", "--size", "64M"]);
    let mut image = std::fs::read(home.path().join("x.img")).unwrap();
    image[4 << 20..5 << 20].fill(0);
    std::fs::write(home.path().join("x.img"), image).unwrap();
    let raw = home.run(&["check", "x.img", "--no-gain"]);
    assert_eq!(raw.code, 0, "a boot loader may lie there: {}", raw.stdout);
    assert!(raw.stdout.contains("cannot be told"), "{}", raw.stdout);
}

#[test]
fn on_without_a_device_is_told_what_to_name() {
    let home = Sandbox::new();
    for card in [
        &["choose", "--on", "class4-4gb"][..],
        // As it was called.
        &["choose", "--here"],
        &["choose", "--here", "--card", "class4-4gb"],
    ] {
        refused(&home.run(&[card, &["--dry-run"]].concat()), &["--on /dev/"]);
    }
    let both = home.run(&["choose", "--on", "/dev/sdX", "--card", "class4-4gb"]);
    refused(&both, &["cannot be used with"]);
}

/// A pipe would wait for ever, and be replaced by an image; so would a link to nothing.
#[test]
fn attack_a_pipe_or_a_link_to_nothing_is_no_card() {
    let home = Sandbox::new();
    let pipe = home.path().join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    std::os::unix::fs::symlink("nowhere", home.path().join("link")).unwrap();
    refused(
        &home.run(&["check", "pipe"]),
        &["neither a device nor a file"],
    );
    let format = |path| home.run(&["format", path, "--fs", "ext4", "--size", "64M"]);
    refused(&format("pipe"), &["neither a device nor a file"]);
    refused(&format("link"), &["a link to nothing"]);
    assert!(!pipe.is_file() && home.path().join("link").is_symlink());
    assert_eq!(home.path().read_dir().unwrap().count(), 2);
}
