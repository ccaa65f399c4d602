//! Finished runs and single trials: what is compared, shown and refused. No guest runs.

use super::sandbox::Sandbox;

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
    for count in ["tests=\"3\"", "failures=\"1\""] {
        assert!(cases.contains(count), "{cases}");
    }
    let failing = sandbox.run(&[&compare[..3], &["--fail-over", "10%"]].concat());
    assert_eq!(failing.code, 1, "{}", failing.stderr);
    let said = "worse by more than 10 % beyond noise, or gone: 1 figure\n";
    assert!(failing.stderr.contains(said), "{}", failing.stderr);
    let nowhere = sandbox.run(&["report", before, after, "--html", "/nowhere/p.html"]);
    nowhere.fails(2, &["/nowhere/p.html"]);
}

/// The directory `name` of a run: its figures, and what it decided.
fn directory(sandbox: &Sandbox, name: &str, rows: &str, verdict: &str) -> String {
    let dir = sandbox.path().join(name);
    std::fs::create_dir(&dir).unwrap();
    std::fs::write(dir.join("results.json"), rows).unwrap();
    std::fs::write(dir.join("verdict.json"), verdict).unwrap();
    dir.to_str().unwrap().to_owned()
}

const ROW: &str = "{\"card\":\"a1-32gb\",\"kernel\":\"6.12\",\"clock\":\"cpu:b\",\
                   \"candidate\":\"f2fs\",\"mount_options\":\"\",\"workload\":\"rootfs\",\
                   \"metric\":\"mount\",\"value\":1,\"unit\":\"s\",\"lower_is_better\":true,\
                   \"seed\":1,\"trial\":\"aaaabbbbcccc1111\"}";

#[test]
fn a_run_in_which_everything_failed_is_a_result_for_ci() {
    let sandbox = Sandbox::new();
    let won = "{\"needs\":\"rootfs\",\"ranking\":[{\"candidate\":\"f2fs\",\"score\":1,\
               \"p_best\":1}]}";
    let lost = "{\"needs\":\"rootfs\",\"ranking\":[],\"show\":\"whichfs trial show TRIAL\",\
                \"trials_of\":[{\"candidate\":\"f2fs\",\"seed\":1,\"id\":\"0123456789abcdef\"}],\
                \"excluded\":[{\"candidate\":\"f2fs\",\"rule\":\"failed\",\"source\":null,\
                \"why\":\"its trial with seed 1 failed: dd: no <space>\"}]}";
    let before = directory(&sandbox, "A", &format!("[{ROW}]"), won);
    let after = directory(&sandbox, "B", "[]", lost);
    let (page, junit) = (sandbox.path().join("p.html"), sandbox.path().join("j.xml"));
    let [page_at, junit_at] = [&page, &junit].map(|path| path.to_str().unwrap());
    let told = sandbox.run(&[
        "report",
        &before,
        &after,
        "--fail-over",
        "10%",
        "--html",
        page_at,
        "--junit",
        junit_at,
    ]);
    assert_eq!(told.code, 1, "{}", told.stderr);
    assert!(
        told.stderr.contains("not in a later one: f2fs"),
        "{}",
        told.stderr
    );
    let said =
        "f2fs fails now (1 of 1 trial): dd: no <space>\n   whichfs trial show 0123456789ab\n";
    assert!(told.stdout.starts_with(said), "{}", told.stdout);
    assert!(
        told.stdout
            .contains("no filesystem qualifies; f2fs won run 1"),
        "{}",
        told.stdout
    );
    let html = std::fs::read_to_string(&page).unwrap();
    let headline = "<h1>f2fs fails now (1 of 1 trial): dd: no &#60;space&#62;</h1>";
    assert!(html.contains(headline), "{html}");
    let cases = std::fs::read_to_string(&junit).unwrap();
    for count in ["tests=\"2\"", "failures=\"2\""] {
        assert!(cases.contains(count), "{cases}");
    }
    assert!(
        cases.contains("(1 of 1 trial): dd: no &lt;space&gt;\"/>"),
        "{cases}"
    );
    let winner = "<property name=\"run 2: winner\" value=\"f2fs → none\"/>";
    assert!(cases.contains(winner), "{cases}");
    let json = sandbox.run(&["report", &before, &after, "--json"]);
    let json: serde_json::Value = serde_json::from_str(json.succeeds()).unwrap();
    assert_eq!(json["stopped"][0]["why"], "dd: no <space>");
    assert_eq!(json["answers"][0]["winner"][0], "f2fs");
    // Without --fail-over it is told, and no failure.
    sandbox.run(&["report", &before, &after]).succeeds();
    sandbox
        .run(&["report", &before, &before, "--fail-over", "10%"])
        .succeeds();
}

#[test]
fn a_directory_without_figures_is_told_which_file_it_lacks() {
    let sandbox = Sandbox::new();
    let run_at = sandbox.file("run.csv", run(1.0));
    let run_at = run_at.to_str().unwrap();
    let dir = sandbox.path().join("big");
    std::fs::create_dir(&dir).unwrap();
    let at = dir.to_str().unwrap();
    sandbox
        .run(&["report", run_at, at])
        .fails(2, &["big/results.json", "`whichfs choose` wrote"]);
    std::fs::write(dir.join("results.csv"), run(1.0)).unwrap();
    let remedy = "big/results.csv is there: name that file";
    sandbox
        .run(&["report", at, run_at])
        .fails(2, &["big/results.json", remedy]);
    std::fs::write(dir.join("results.json"), "[]").unwrap();
    sandbox
        .run(&["report", run_at, at])
        .fails(2, &["holds no figures"]);
    std::fs::write(dir.join("verdict.json"), "{").unwrap();
    sandbox
        .run(&["report", run_at, at])
        .fails(2, &["big/verdict.json", "remove it"]);
}

#[test]
fn a_trial_that_is_not_there_is_asked_for_by_another_name() {
    let sandbox = Sandbox::new();
    let refused = |id: &str, words: &[&str]| sandbox.run(&["trial", "show", id]).fails(2, words);
    refused("xyz", &["'xyz' is no id", "results.csv"]);
    refused("abc", &["'abc' is no id", "4 or more"]);
    refused("abcdef", &["there is no store at", "name the one"]);
    assert!(
        !sandbox.path().join("data").exists(),
        "looking makes no store"
    );
}

#[test]
fn an_older_store_is_copied_before_it_is_read_and_what_is_none_is_left_alone() {
    let sandbox = Sandbox::new();
    let run = sandbox.file("run.csv", run(1.0));
    let compared = |store: &str| sandbox.run(&["report", "-v", store, run.to_str().unwrap()]);
    // Without a trial: made by the first version of the tables.
    let old = sandbox.file("old.sqlite", include_bytes!("store-1.sqlite"));
    compared(old.to_str().unwrap()).fails(
        2,
        &["by an older whichfs", "old.sqlite.v1.bak", "no figures"],
    );
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
