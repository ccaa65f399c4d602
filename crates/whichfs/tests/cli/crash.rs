//! `whichfs crash`: what is refused before any guest begins.

use super::sandbox::Sandbox;

#[track_caller]
fn refused(arguments: &[&str], words: &[&str]) {
    let all = [&["crash", "run"], arguments].concat();
    Sandbox::new().run(&all).fails(2, words);
}

#[test]
fn wrong_names_are_refused_with_those_that_are_right() {
    refused(&["--fs", "ext5"], &["--fs", "ext4"]);
    refused(
        &["--fs", "ext4", "--faults", "torn"],
        &["--faults", "torn-512"],
    );
    refused(
        &["--fs", "ext4", "--workload", "rootfss"],
        &["unknown workload", "rootfs"],
    );
    refused(&["--fs", "ext4", "--card", "a1-32g"], &["a1-32gb"]);
}

#[test]
fn what_cannot_be_cut_is_refused() {
    refused(&["--fs", "squashfs-xz"], &["cannot hurt it", "fs list"]);
    refused(&["--fs", "ext4", "--cuts", "0"], &["1 to 1000000", "all"]);
    refused(
        &["--fs", "ext4,xfs", "--only", "1", "--keep", "x"],
        &["--keep", "--only N"],
    );
    refused(
        &["--fs", "ext4", "--image", "x"],
        &["--image", "--only N", "--cuts end"],
    );
    refused(
        &["--fs", "ext4", "--only", "1", "--image", "x", "--keep", "y"],
        &["--image", "--keep"],
    );
}

/// The list and the help text have every fault, each with its source.
#[test]
fn faults_are_listed_with_what_is_known_of_them() {
    let sandbox = Sandbox::new();
    let list = sandbox.run(&["crash", "faults", "--json"]);
    let faults: Vec<serde_json::Value> = serde_json::from_str(&list.stdout).unwrap();
    assert!(faults.len() > 18);
    let text = sandbox.run(&["crash", "faults"]).stdout;
    let help = sandbox.run(&["crash", "run", "--help"]).stdout;
    for fault in &faults {
        let name = fault["name"].as_str().unwrap();
        assert!(text.contains(name) && help.contains(name), "{name}");
        assert!(!fault["source"].as_str().unwrap().is_empty(), "{name}");
        assert!(["published", "hypothesis"].contains(&fault["evidence"].as_str().unwrap()));
    }
}

#[test]
fn what_cannot_be_shown_again_is_refused() {
    let replay = |id: &str, words: &[&str]| {
        Sandbox::new().run(&["crash", "replay", id]).fails(2, words);
    };
    replay("nonsense", &["SERIES-NUMBER", ".json"]);
    replay("3f9a-1", &["no series", "crash run"]);
    refused(
        &["--fs", "ext4", "--cuts", "all", "--during", "collection"],
        &["--during", "--cuts"],
    );
    for choice in [["--during", "mount"], ["--at", "7"], ["--cuts", "all"]] {
        let fault = &["--fs", "ext4", "--faults", "misdirected"];
        refused(
            &[&fault[..], &choice].concat(),
            &["without a cut", "--cuts"],
        );
    }
}

#[test]
fn what_is_no_reproducer_is_refused_with_what_makes_one() {
    let sandbox = Sandbox::new();
    let run = sandbox.run(&["crash", "replay", "none.json"]);
    run.fails(2, &["none.json", "crash minimise"]);
    let junk = sandbox.file("junk.json", "junk");
    let run = sandbox.run(&["crash", "replay", junk.to_str().unwrap()]);
    run.fails(2, &["junk.json is no reproducer", "crash minimise"]);
}

#[test]
fn every_sentence_about_faults_fits_80_columns() {
    let text = Sandbox::new().run(&["crash", "faults"]).stdout;
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn a_script_is_refused_with_its_line_and_the_remedy() {
    let sandbox = Sandbox::new();
    let script = sandbox.file(
        "script",
        "# a comment\n{\"op\":\"mkdir\",\"path\":\"../d\"}\n",
    );
    let script = script.to_str().unwrap();
    let run = |arguments: &[&str]| {
        let all = [&["crash", "run", "--fs", "ext4"], arguments].concat();
        sandbox.run(&all)
    };
    run(&["--script", script]).fails(2, &["script ", "line 2", "below the directory"]);
    let misspelt = sandbox.file("misspelt", "\n{\"op\":\"unlnk\",\"path\":\"d\"}\n");
    let misspelt = misspelt.to_str().unwrap();
    let example = r#"right would be {"op":"unlink","path":"d/a"}"#;
    run(&["--script", misspelt]).fails(2, &[misspelt, "line 2", "no operation", example]);
    for none in ["/no/such", "/tmp"] {
        run(&["--script", none]).fails(2, &["script", none, "name a file"]);
    }
    let names = sandbox.file("names", "{\"op\":\"mkdir\",\"path\":\"a:b\"}\n");
    let all = [
        "crash",
        "run",
        "--fs",
        "ext4,vfat",
        "--script",
        names.to_str().unwrap(),
    ];
    sandbox
        .run(&all)
        .fails(2, &["line 1", "vfat has no ':'", "leave vfat out"]);
    run(&["--workload", "script"]).fails(2, &["--script FILE"]);
    run(&["--script", script, "--workload", "logger"]).fails(2, &["--script", "--workload"]);
}

/// Without a kernel a run would end with 3: so these are told before.
#[test]
fn what_a_run_would_find_late_is_refused_before_it() {
    refused(&["--fs", "ext4,ext4"], &["--fs: ext4 stands twice"]);
    refused(
        &["--fs", "ext4", "--faults", "reorder,reorder"],
        &["--faults: reorder", "twice"],
    );
    let one = ["--fs", "ext4", "--cuts", "end"];
    let with = |flag, path, words: &[&str]| refused(&[&one[..], &[flag, path]].concat(), words);
    with(
        "--keep",
        "/no/such/x",
        &["image", "/no/such/x", "name a file"],
    );
    with("--keep", "/dev/null", &["image", "no file"]);
    with("--image", "/no/such", &["image /no/such", "name a file"]);
    with(
        "--image",
        "/tmp",
        &["image /tmp", "is a directory", "name a file"],
    );
    with("--only", "1", &["--only takes 0 to 0"]);
    with(
        "--out",
        "/dev/null",
        &["/dev/null", "a directory is expected"],
    );
    for gap in ["+", "sync,,dirsync", "+sync,"] {
        with("--mount", gap, &["--mount", gap, "an option is missing"]);
    }
    with("--mount", "sync,sync", &["--mount: sync stands twice"]);
}

#[test]
fn without_a_kernel_the_remedy_is_told() {
    let run = Sandbox::new().run(&["crash", "run", "--fs", "ext4"]);
    run.fails(3, &["make kernel"]);
}
