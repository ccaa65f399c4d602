//! The examples of the engine are run as a stranger would run them.
#![allow(clippy::unwrap_used)]

use std::process::Command;

/// What the example `name` prints, run with a home of its own.
fn example(name: &str) -> String {
    let home = tempfile::tempdir().unwrap();
    let own = std::env::current_exe().unwrap();
    let built = own.ancestors().nth(2).unwrap().join("examples").join(name);
    let output = Command::new(&built)
        .env("XDG_DATA_HOME", home.path())
        .output()
        .unwrap_or_else(|error| {
            panic!(
                "{}: {error} (cargo build --release --examples)",
                built.display()
            )
        });
    let (said, wrong) = (output.stdout, output.stderr);
    assert!(
        output.status.success(),
        "{name}: {}",
        String::from_utf8_lossy(&wrong)
    );
    String::from_utf8(said).unwrap()
}

/// Whether the lab is there; its tests are skipped otherwise, and say so.
fn has_lab(test: &str) -> bool {
    let there = ["WHICHFS_KERNEL", "WHICHFS_AGENT", "WHICHFS_USERLAND"];
    let there = there.iter().all(|name| std::env::var_os(name).is_some());
    if !there {
        eprintln!("{test}: skipped, WHICHFS_KERNEL and WHICHFS_AGENT are not set (make test)");
    }
    there
}

#[test]
fn an_executor_of_ones_own_decides_without_a_lab() {
    let said = example("own_executor");
    assert!(
        said.contains(" ranked, ") && !said.starts_with("0 "),
        "{said}"
    );
}

#[test]
fn the_lab_chooses_measures_and_cuts_for_another_program() {
    if !has_lab("lab_examples") {
        return;
    }
    let ranking = example("choose_on_a_profile");
    // The rules of `logger` exclude vfat before anything is measured.
    assert_eq!(ranking.lines().count(), 2, "{ranking}");
    let figures = example("own_workload");
    for metric in ["ext4 tree_write", "btrfs tree_read", "btrfs space"] {
        assert!(figures.contains(metric), "{metric}: {figures}");
    }
    let cuts = example("power_cuts");
    assert_eq!(cuts.lines().count(), 10, "{cuts}");
    assert!(!cuts.contains("broken"), "{cuts}");
}
