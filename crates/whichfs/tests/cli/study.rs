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
