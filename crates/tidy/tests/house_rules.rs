//! The whole tree keeps the house rules, and the walk over it sees what it should.

use whichfs_tidy::{SourceFile, check, tree};

#[test]
fn the_tree_keeps_the_house_rules() -> std::io::Result<()> {
    let files = tree::read(&tree::root())?;
    let findings: Vec<String> = check(&files).iter().map(ToString::to_string).collect();
    assert!(
        findings.is_empty(),
        "{} findings:\n{}",
        findings.len(),
        findings.join("\n")
    );
    Ok(())
}

#[test]
fn the_walk_sees_every_kind_of_file() -> std::io::Result<()> {
    let files = tree::read(&tree::root())?;
    for path in [
        "Cargo.toml",
        "Cargo.lock",
        "Makefile",
        ".ci/run",
        "kernel/build",
        "kernel/lab.config",
        "setup/packages.tsv",
        "setup/cargo",
        "boards/generic-1ghz.toml",
        "crates/units/src/lib.rs",
        "crates/tidy/tests/house_rules.rs",
    ] {
        assert!(
            files.iter().any(|file| file.path == path),
            "{path} is not read"
        );
    }
    assert!(files.iter().all(|file| !file.path.starts_with("target/")));
    Ok(())
}

/// The canary: faults of every module, planted into the real tree, are all reported.
#[test]
fn faults_planted_into_the_tree_are_found() -> std::io::Result<()> {
    let mut files = tree::read(&tree::root())?;
    let clean = check(&files).len();
    let planted = [
        ("crates/units/src/planted.rs", "fn no_purpose() {}\n"),
        ("crates/card/src/planted.rs", "//! A.\nuse std::fs;\n"),
        (
            "crates/card/Cargo.toml",
            "[dependencies]\nwhichfs-lab.workspace = true\n",
        ),
        ("boards/planted.toml", "[cpu]\ncores = 1\n"),
        (
            "crates/lab/src/planted.rs",
            "//! A.\n/// Its seed.\npub type A = u8;\n",
        ),
        ("crates/lab/src/again.rs", "//! A.\n"),
        (
            "crates/planted/src/lib.rs",
            "//! A.\npub struct Nanos(pub u64);\n",
        ),
        (
            "planted.md",
            "A line of prose that has more than a hundred columns is broken where a word ends, \
             so that changes are seen.\n",
        ),
        ("planted.toml", concat!("a = \"/ho", "me/somebody\"\n")),
    ];
    for (path, text) in planted {
        files.push(SourceFile::new(path, text));
    }
    assert_eq!(check(&files).len(), clean + planted.len());
    Ok(())
}

/// What the crates about cards go by has one home, so that it cannot come apart.
#[test]
fn constants_about_cards_are_written_once() -> std::io::Result<()> {
    let files = tree::read(&tree::root())?;
    let about_cards = |file: &&SourceFile| {
        let crates = ["units", "card", "curves", "fit", "probe"];
        let inside = |name: &&str| file.path.starts_with(&format!("crates/{name}/"));
        file.is_rust() && crates.iter().any(inside)
    };
    for (name, home) in [
        ("SECTOR", "crates/units/src/lib.rs"),
        ("CAPACITY_CUT", "crates/card/src/limits.rs"),
        ("COMPOSED_PERCENT", "crates/card/src/limits.rs"),
        ("RATE", "crates/card/src/limits.rs"),
        ("UNITS_MAX", "crates/card/src/limits.rs"),
    ] {
        let number = |line: &str| {
            let (_, rest) = line.split_once(&format!("const {name}: "))?;
            let value = rest.split_once("= ")?.1;
            value
                .starts_with(|c: char| c.is_ascii_digit())
                .then_some(())
        };
        let sources = files.iter().filter(about_cards);
        let homes = sources.filter(|file| file.text.lines().any(|line| number(line).is_some()));
        let homes: Vec<&str> = homes.map(|file| file.path.as_str()).collect();
        assert_eq!(homes, [home], "{name}");
    }
    Ok(())
}

/// The ranges of figures are those of the card's table: nothing else repeats its numbers.
#[test]
fn fit_and_probe_take_ranges_of_figures_from_the_card() -> std::io::Result<()> {
    let files = tree::read(&tree::root())?;
    for file in files.iter().filter(|file| file.is_rust()) {
        let of_these = ["crates/fit/src/", "crates/probe/src/"];
        if of_these.iter().any(|crate_| file.path.starts_with(crate_)) {
            for number in ["4_000_000_000", "4e9", "128 << 30"] {
                assert!(!file.text.contains(number), "{}: {number}", file.path);
            }
        }
    }
    Ok(())
}
