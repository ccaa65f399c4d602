//! Where a report goes, what is in it, and which files of this machine a command may name.
#![allow(clippy::unwrap_used)]

use crate::choosing;

use choosing::{SHORT, can_run, choose_of_any_size, done};
use std::path::Path;
use std::process::Command;

/// Without --out each run has a folder, and `latest` leads to the newest; `report` takes it too.
#[test]
fn lab_each_run_has_a_folder_and_its_labels() {
    if !can_run() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let run = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_whichfs"));
        command.args(words).current_dir(home.path());
        command.env("XDG_CACHE_HOME", home.path().join("cache"));
        command.env("XDG_DATA_HOME", home.path().join("data"));
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{words:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    };
    let choose = [
        "choose",
        "--fs",
        "ext4,ext3",
        "--size",
        "12M",
        "--seeds",
        "1",
        "-q",
    ];
    let choose = [&choose[..], &SHORT].concat();
    run(&choose);
    let labelled = [
        &choose[..],
        &["--label", "operator=J. Doe", "--label", "req=R-1"],
    ]
    .concat();
    let told = run(&labelled);
    let above = home.path().join("whichfs-report");
    let names = |path: &Path| {
        let all = path.read_dir().unwrap().flatten();
        let names = all.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.collect::<std::collections::BTreeSet<_>>()
    };
    let all = names(&above);
    assert_eq!((all.len(), all.contains("latest")), (3, true), "{all:?}");
    let newest = std::fs::read_link(above.join("latest")).unwrap();
    let newest = newest.to_str().unwrap();
    assert!(
        all.iter()
            .all(|name| name == "latest" || name.as_str() <= newest)
    );
    assert!(
        told.contains(&format!("whichfs-report/{newest}/report.html")),
        "{told}"
    );
    let files = names(&above.join(newest));
    assert_eq!(
        files.len(),
        whichfs_report::VERDICT_FILES.len(),
        "{files:?}"
    );
    let junit = std::fs::read_to_string(above.join("latest/junit.xml")).unwrap();
    for said in [
        "name=\"operator\" value=\"J. Doe\"",
        "sha256 of the lab kernel",
        "name=\"date\"",
    ] {
        assert!(junit.contains(said), "{said}: {junit}");
    }
    assert!(
        !junit.contains("time=\"0.000\""),
        "candidates have times: {junit}"
    );
    let page = std::fs::read_to_string(above.join("latest/report.html")).unwrap();
    assert!(page.contains("J. Doe") && page.contains("class=\"front\""));
    // The folder of all runs stands for the newest.
    run(&["report", "whichfs-report", "whichfs-report"]);
    let table = run(&["store", "export", "all.csv", "--fs", "ext4"]);
    assert!(table.contains("exported"), "{table}");
    let text = std::fs::read_to_string(home.path().join("all.csv")).unwrap();
    assert!(
        text.contains(",ext4,") && !text.contains(",ext3,"),
        "{text}"
    );
}

/// Guests do not see what lies below /tmp: that is said before a trial, with the remedy.
#[test]
fn lab_a_file_that_guests_do_not_see_is_refused_before_the_trial() {
    if !can_run() {
        return;
    }
    let (home, hidden) = (
        tempfile::tempdir().unwrap(),
        tempfile::tempdir_in("/tmp").unwrap(),
    );
    let file = hidden.path().join("x.tar");
    std::fs::write(&file, "").unwrap();
    let line = format!("tar -xf {}", file.display());
    let output = choose_of_any_size(home.path(), &["--fs", "ext4", "--command", &line])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("x.tar") && said.contains("/var/tmp"),
        "{said}"
    );
    assert!(!said.contains("FAILED"), "{said}");
    // A tree of one's own is seen wherever it lies.
    let tree = hidden.path().join("tree");
    std::fs::create_dir(&tree).unwrap();
    std::fs::write(tree.join("a"), "x".repeat(5000)).unwrap();
    let mut command = choose_of_any_size(home.path(), &["--fs", "ext4", "--json", "--tree"]);
    let verdict = done(&command.arg(&tree).args(SHORT).output().unwrap());
    assert_eq!(verdict["ranking"][0]["candidate"], "ext4");
}
