//! `whichfs study`: what is listed, what is refused before any guest begins.

use super::sandbox::Sandbox;

#[track_caller]
fn refused(arguments: &[&str], words: &[&str]) {
    let all = [&["study", "run"], arguments].concat();
    Sandbox::new().run(&all).fails(2, words);
}

#[test]
fn wrong_names_are_refused_with_those_that_are_right() {
    refused(&["elc2015-x"], &["did you mean 'elc2015'?"]);
    refused(&["no/such.toml"], &["no/such.toml", "can be read"]);
    refused(
        &["elc2015-power", "--fs", "vfat"],
        &["--fs vfat", "ext4, btrfs"],
    );
    refused(
        &["elc2015-power", "--cuts", "0"],
        &["--cuts", "1..=1000000"],
    );
}

#[test]
fn a_study_is_shown_without_a_kernel() {
    let sandbox = Sandbox::new();
    let run = sandbox.run(&["study", "show", "elc2015-power"]);
    let text = run.succeeds();
    for word in [
        "10 series of 226",
        "Embedded Linux Conference",
        "+sync",
        "about",
    ] {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    let run = sandbox.run(&["study", "show", "elc2015-power", "--json"]);
    let document: serde_json::Value = serde_json::from_str(run.succeeds()).unwrap();
    assert_eq!(
        (&document["cuts"], &document["series"]),
        (&226.into(), &10.into())
    );
    assert!(
        document["expected_s"]
            .as_f64()
            .is_some_and(|seconds| seconds > 60.0)
    );
    sandbox.run(&["study", "show", "elc2015-x"]).fails(
        2,
        &["did you mean 'elc2015'? `whichfs study list` lists all"],
    );
}

#[test]
fn without_a_kernel_the_remedy_is_told() {
    let run = Sandbox::new().run(&["study", "run", "sync-mounts", "--out", "out"]);
    run.fails(3, &["make kernel"]);
}

#[test]
fn a_job_of_lava_is_printed_and_what_it_cannot_be_is_refused() {
    let sandbox = Sandbox::new();
    let start = ["emit", "lava", "pandora", "--device-type", "x15", "--on"];
    let emit = |more: &[&str]| sandbox.run(&[&start[..], more].concat());
    let run = emit(&[
        "/dev/mmcblk0",
        "--quick",
        "--destroy",
        "SD 1",
        "--budget",
        "90m",
    ]);
    let job = run.succeeds();
    for words in [
        "device_type: x15",
        "whichfs study run pandora --quick --on /dev/mmcblk0 --budget 5400s",
        "--destroy 'SD 1'",
        "WHICHFS-RECORD",
    ] {
        assert!(job.contains(words), "{words}: {job}");
    }
    emit(&["/dev/sda", "--actions", "none.yaml"]).fails(2, &["--actions none.yaml", "can be read"]);
    std::fs::write(sandbox.path().join("boot.yaml"), "boot: {}\n").unwrap();
    emit(&["/dev/sda", "--actions", "boot.yaml"]).fails(2, &["--actions boot.yaml", "a list"]);
    let crash = [
        "emit",
        "lava",
        "elc2015-power",
        "--device-type",
        "x",
        "--on",
        "/dev/sda",
    ];
    sandbox.run(&crash).fails(2, &["elc2015-power", "trials"]);
}

#[test]
fn a_board_of_a_lab_needs_a_device_and_a_client() {
    refused(
        &["pandora", "--on", "labgrid:a"],
        &["labgrid:PLACE/dev/mmcblk0"],
    );
    let sandbox = Sandbox::new();
    let crash = [
        "crash",
        "run",
        "--fs",
        "ext4",
        "--power",
        "labgrid",
        "--dry-run",
        "--on",
    ];
    let on = |on: &str| sandbox.run(&[&crash[..], &[on]].concat());
    on("ssh://root@b/dev/sda").fails(2, &["--power labgrid", "--on labgrid:PLACE"]);
    on("/dev/sda").fails(2, &["--power labgrid", "--on labgrid:PLACE"]);
}
