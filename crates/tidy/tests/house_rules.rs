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
        ("planted.toml", concat!("a = \"/ho", "me/somebody\"\n")),
    ];
    for (path, text) in planted {
        files.push(SourceFile::new(path, text));
    }
    assert_eq!(check(&files).len(), clean + planted.len());
    Ok(())
}
