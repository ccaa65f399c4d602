//! Finished runs and single trials: what is compared, shown and refused. No guest runs.

use crate::sandbox::Sandbox;

const COLUMNS: &str = "card,kernel,clock,candidate,mount_options,workload,metric,value,unit,\
                       lower_is_better,seed,trial";

/// A run in which ext4 mounts in so many seconds.
fn run(mount: f64) -> String {
    format!(
        "{COLUMNS}\na1-32gb,6.12,cpu:b,ext4,noatime,rootfs,mount,{mount},s,true,1,t1\n\
         a1-32gb,6.12,cpu:b,ext4,noatime,rootfs,mount_cpu,{mount},%,true,1,t1\n"
    )
}

#[test]
fn a_regression_is_a_page_a_test_case_and_an_exit_code() {
    let sandbox = Sandbox::new();
    let before = sandbox.file("before.csv", run(1.0));
    let after = sandbox.file("after.csv", run(2.0));
    let (page, junit) = (sandbox.path().join("p.html"), sandbox.path().join("j.xml"));
    let [before, after, page_at, junit_at] =
        [&before, &after, &page, &junit].map(|path| path.to_str().unwrap());
    let compare = [
        "report", before, after, "--html", page_at, "--junit", junit_at,
    ];
    let told = sandbox.run(&compare);
    assert!(told.succeeds().contains("2.0 × worse"), "{}", told.stdout);
    assert!(told.stdout.contains("2.0 × higher"), "{}", told.stdout);
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(
        html.contains("1 figure worse, none better"),
        "no share of CPU time is"
    );
    assert!(html.contains("--html"), "the command that gives it again");
    let cases = std::fs::read_to_string(&junit).unwrap();
    assert!(cases.contains("tests=\"2\" failures=\"1\""), "{cases}");
    let failing = sandbox.run(&[&compare[..3], &["--fail-over", "10%"]].concat());
    assert_eq!(failing.code, 1, "{}", failing.stderr);
    let said = "worse by more than 10 % beyond noise, or gone: 1 figure\n";
    assert!(failing.stderr.contains(said), "{}", failing.stderr);
    let nowhere = sandbox.run(&["report", before, after, "--html", "/nowhere/p.html"]);
    nowhere.fails(2, &["/nowhere/p.html"]);
}

#[test]
fn a_trial_that_is_not_there_is_asked_for_by_another_name() {
    let sandbox = Sandbox::new();
    let refused = |id: &str, words: &[&str]| sandbox.run(&["trial", "show", id]).fails(2, words);
    refused("xyz", &["'xyz' is no id", "results.csv"]);
    refused("abc", &["'abc' is no id", "4 or more"]);
    refused("abcdef", &["there is no store at", "--store"]);
    assert!(
        !sandbox.path().join("data").exists(),
        "looking makes no store"
    );
}

#[test]
fn an_older_store_is_copied_before_it_is_read_and_what_is_none_is_left_alone() {
    let sandbox = Sandbox::new();
    let run = sandbox.file("run.csv", run(1.0));
    let compared = |store: &str| sandbox.run(&["report", store, run.to_str().unwrap()]);
    // Without a trial: made by the first version of the tables.
    let old = sandbox.file("old.sqlite", include_bytes!("store-1.sqlite"));
    compared(old.to_str().unwrap()).fails(2, &["as it was: ", "old.sqlite.v1.bak", "no figures"]);
    let copy = std::fs::read(sandbox.path().join("old.sqlite.v1.bak")).unwrap();
    assert_eq!(copy[60..64], [0, 0, 0, 1], "the version of its tables");
    let newer = sandbox.file("newer.sqlite", patched(9));
    compared(newer.to_str().unwrap()).fails(3, &["has schema 9", "a newer whichfs", "--store"]);
    assert_eq!(std::fs::read(&newer).unwrap(), patched(9));
    let none = sandbox.file("none.sqlite", "x");
    compared(none.to_str().unwrap()).fails(3, &["damaged or is not a store", "mv "]);
    assert_eq!(std::fs::read(&none).unwrap(), b"x");
}

/// The store with another version of the tables in its header.
fn patched(version: u32) -> Vec<u8> {
    let mut bytes = include_bytes!("store-1.sqlite").to_vec();
    bytes[60..64].copy_from_slice(&version.to_be_bytes());
    bytes
}
