//! The whole way from a command to a verdict, with guests: these need the lab kernel and the
//! static agent. Trees are small, so a trial takes about a second.
#![allow(clippy::unwrap_used)]

use crate::choosing;

use choosing::{SHORT, assert_same, can_run, choose_of_any_size, done, skip, trials};
use serde_json::Value;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// What a script says before the program runs.
const MOUNTED: &str = "mounts are made";

/// `whichfs choose` on a small tree without the long run, with everything it leaves in `home`.
fn choose(home: &Path, arguments: &[&str]) -> Command {
    let mut command = choose_of_any_size(home, &["--size", "12M"]);
    command.args(SHORT).args(arguments);
    command
}

#[test]
fn lab_trials_are_the_same_bytes_alone_and_side_by_side() {
    if !can_run() {
        return;
    }
    for (of_need, candidates, without) in [
        ("rootfs", "ext4,f2fs,vfat,btrfs", &SHORT[..]),
        ("rootfs-readonly", "squashfs-zstd,erofs,erofs-lz4hc", &[]),
    ] {
        let [alone, beside] = ["1", "2"].map(|jobs| {
            let home = tempfile::tempdir().unwrap();
            let output = choose_of_any_size(home.path(), &["--size", "12M", "--for", of_need])
                .args(["--fs", candidates, "--json", "--jobs", jobs])
                .args(without)
                .args(["--need", "unix_permissions=any"])
                .args(["--need", "crash_class=any"])
                .env(format!("WHICHFS_TEST_{jobs}"), "another environment")
                .output()
                .unwrap();
            done(&output);
            trials(home.path())
        });
        assert!(alone.len() >= 3, "{} trials", alone.len());
        assert_same(&alone, &beside);
    }
}

#[test]
fn lab_a_trial_runs_again_by_the_command_beside_its_figures() {
    if !can_run() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let need = home.path().join("my need.toml");
    let shipped = include_str!("../../../needs/logger.toml");
    std::fs::write(&need, format!("{shipped}\n[parameters]\nrecords = 300\n")).unwrap();
    let output = choose_of_any_size(home.path(), &["--card", "class4-4gb", "--first-seed", "3"])
        .args(["--for", "my need.toml", "--fs", "ext4,xfs"])
        .args(SHORT)
        .args(["--need", "weight.mount=2", "--json"])
        .current_dir(home.path())
        .output()
        .unwrap();
    let page = done(&output);
    let line = &page["trials_of"][1];
    let (id, command) = (
        line["id"].as_str().unwrap(),
        line["command"].as_str().unwrap(),
    );
    let html = std::fs::read_to_string(home.path().join("report/report.html")).unwrap();
    let on_page = command.replace('\'', "&#39;");
    assert!(
        html.contains(&format!("<pre><code>{on_page}</code></pre>")),
        "{on_page}"
    );
    let before = std::fs::read(home.path().join("report/verdict.json")).unwrap();

    // Pasted elsewhere, into a shell that has whichfs.
    let elsewhere = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_whichfs"));
    let path = format!(
        "{}:{}",
        program.parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    let again = Command::new("sh")
        .args(["-c", &format!("{command} --json")])
        .env("PATH", path)
        .env("XDG_CACHE_HOME", home.path().join("cache"))
        .env("XDG_DATA_HOME", elsewhere.path().join("data"))
        .current_dir(elsewhere.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let again = done(&again);
    assert_eq!(again["trials_of"].as_array().unwrap().len(), 1);
    assert_eq!(again["trials_of"][0]["id"], id);
    assert_eq!(again["trials_of"][0]["command"], command, "the same again");
    let kept = |home: &Path| trials(home)[id].clone();
    assert_eq!(kept(home.path()), kept(elsewhere.path()), "to the byte");
    let after = std::fs::read(home.path().join("report/verdict.json")).unwrap();
    assert_eq!(before, after, "no report is overwritten");
}

/// A small tree with a file, a link and a directory.
fn small_tree(at: &Path) {
    std::fs::create_dir_all(at.join("etc")).unwrap();
    std::fs::write(at.join("etc/large"), vec![b'x'; 300_000]).unwrap();
    std::os::unix::fs::symlink("large", at.join("etc/link")).unwrap();
}

#[test]
fn lab_a_tree_of_the_user_is_judged_on_writable_and_read_only_filesystems() {
    if !can_run() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let tree = home.path().join("tree");
    small_tree(&tree);
    let arguments = ["--for", "rootfs-readonly", "--fs", "ext4,erofs", "--json"];
    let mut command = choose_of_any_size(home.path(), &arguments);
    command.arg("--tree").arg(&tree);
    let verdict = done(&command.output().unwrap());
    let ranked = verdict["ranking"].as_array().unwrap();
    let mut names: Vec<&str> = ranked
        .iter()
        .map(|ranked| ranked["candidate"].as_str().unwrap())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["erofs", "ext4"], "{}", verdict["excluded"]);
}

/// The same tree at paths of other lengths, images in caches of other lengths: the same trials.
#[test]
fn lab_where_trees_and_images_are_changes_nothing() {
    if !can_run() {
        return;
    }
    let [near, far] = ["a", "a/somewhat/longer/path/to/the/same/things"].map(|place| {
        let home = tempfile::tempdir().unwrap();
        let place = home.path().join(place);
        small_tree(&place.join("tree"));
        let arguments = ["--for", "rootfs-readonly", "--fs", "ext4,erofs", "--json"];
        let mut command = choose_of_any_size(&place, &arguments);
        done(
            &command
                .arg("--tree")
                .arg(place.join("tree"))
                .output()
                .unwrap(),
        );
        trials(&place)
    });
    assert_eq!(near.len(), 2);
    assert_same(&near, &far);
}

/// The host's inode numbers once decided which inodes of the guest share a chain of its hash
/// table, and by that the nanoseconds: of each hundred trials whose image was new, two differed.
#[test]
fn lab_inode_numbers_of_the_host_change_nothing() {
    if !can_run() {
        return;
    }
    const FILES: usize = 1500;
    let files: Vec<usize> = (0..FILES).collect();
    let reverse: Vec<usize> = (0..FILES).rev().collect();
    let [first, second] = [files, reverse].map(|order| {
        let home = tempfile::tempdir().unwrap();
        let tree = home.path().join("tree");
        std::fs::create_dir(&tree).unwrap();
        for file in order {
            std::fs::write(tree.join(format!("{file:04}")), "x").unwrap();
        }
        let arguments = ["--fs", "ext4,erofs", "--for", "rootfs-readonly", "--json"];
        let mut command = choose_of_any_size(home.path(), &arguments);
        done(&command.arg("--tree").arg(&tree).output().unwrap());
        trials(home.path())
    });
    assert_eq!(first.len(), 2);
    assert_same(&first, &second);
}

#[test]
fn lab_a_limit_of_ours_ends_the_run_instead_of_a_candidate() {
    if !can_run() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let arguments = ["--size", "2048M", "--wall-limit", "1", "--fs", "ext4"];
    let output = choose_of_any_size(home.path(), &arguments)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(
        said.contains("ext4, seed 1: ") && said.contains("raise the wall limit"),
        "{said}"
    );
    assert!(trials(home.path()).is_empty(), "nothing is kept of it");
}

#[test]
fn lab_another_seed_is_another_trial() {
    if !can_run() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    for seed in ["1", "2"] {
        let output = choose(
            home.path(),
            &["--fs", "ext4", "--first-seed", seed, "--json"],
        )
        .output()
        .unwrap();
        done(&output);
    }
    let traces: Vec<Value> = trials(home.path())
        .values()
        .map(|json| serde_json::from_str(json).unwrap())
        .collect();
    assert_eq!(traces.len(), 2);
    let hash = |trial: &Value| trial["outcome"]["trace_sha256"].clone();
    assert_ne!(
        hash(&traces[0]),
        hash(&traces[1]),
        "the check above can fail"
    );
}

#[test]
fn lab_finished_trials_are_used_again_and_fresh_ones_are_not() {
    if !can_run() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let run = |extra: &[&str]| {
        let output = choose_of_any_size(home.path(), &["--size", "12M", "--fs", "ext4,ext3"])
            .args(extra)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        (said, String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (first, verdict) = run(&["-v"]);
    assert!(first.contains("[2/2]"), "{first}");
    // Commands are to be pasted: they alone are never broken.
    let text = verdict
        .lines()
        .take_while(|line| !line.starts_with("How to apply"));
    for line in text {
        assert!(line.chars().count() <= 80, "{line}");
    }
    let (again, _) = run(&[]);
    assert!(
        again.contains("2 finished trials reused") && !again.contains("[1/"),
        "{again}"
    );
    let (fresh, _) = run(&["--fresh", "--verbose"]);
    assert!(fresh.contains("[2/2]"), "{fresh}");
    assert!(
        fresh.contains("results.csv") && fresh.contains("of an earlier run"),
        "{fresh}"
    );
    let (quiet, _) = run(&["-q"]);
    assert_eq!(quiet, "", "neither notes nor progress");
    let report = std::fs::read_to_string(home.path().join("report/report.html")).unwrap();
    assert!(report.contains("ext4") && report.contains("whichfs choose"));
    let csv = std::fs::read_to_string(home.path().join("report/results.csv")).unwrap();
    let mut csv = csv::Reader::from_reader(csv.as_bytes());
    let head = csv.headers().unwrap().clone();
    let row = csv.records().next().unwrap().unwrap();
    let cell = |name: &str| &row[head.iter().position(|column| column == name).unwrap()];
    assert_eq!(
        (cell("card_state"), cell("board")),
        ("used", "generic-1ghz")
    );
    assert!(cell("mkfs").contains("mke2fs") && cell("schema") == "1");
    assert_ne!(cell("partition_offset"), "");
    let id = cell("trial");
    let show = |extra: &[&str]| -> String {
        let shown = Command::new(env!("CARGO_BIN_EXE_whichfs"))
            .args(["trial", "show", &id[..12]])
            .args(extra)
            .env("XDG_DATA_HOME", home.path().join("data"))
            .output()
            .unwrap();
        assert!(shown.status.success(), "{shown:?}");
        String::from_utf8(shown.stdout).unwrap()
    };
    let text = show(&[]);
    for said in [
        id,
        "tree write",
        "programmed",
        "--size 12M --fs ext",
        "--first-seed 1",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    let json: Value = serde_json::from_str(&show(&["--json"])).unwrap();
    assert_eq!(json["id"], *id);
    assert!(json["outcome"]["series"]["slots"][0].is_array());
}

#[test]
fn lab_an_interrupted_choose_keeps_what_is_finished_and_goes_on() {
    if !can_run() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let arguments = ["--fs", "ext4,ext3,xfs,btrfs,f2fs,nilfs2", "--jobs", "1"];
    let child = choose(home.path(), &arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    let store = home.path().join("data/whichfs/store.sqlite");
    let finished = || store.exists() && !trials(home.path()).is_empty();
    while !finished() {
        assert!(
            begun.elapsed() < Duration::from_secs(120),
            "no trial finished"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains(" kept: the same command goes on"), "{said}");
    let kept = trials(home.path());
    assert!(!kept.is_empty() && kept.len() < 6, "{} trials", kept.len());
    let output = choose(home.path(), &arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("reused from the store"), "{said}");
    assert_eq!(trials(home.path()).len(), 6);
}

#[test]
fn lab_a_card_too_small_for_a_filesystem_leaves_it_out_with_the_reason() {
    if !can_run() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let profile = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../cards/class4-4gb.toml"
    ))
    .unwrap();
    let small: String = profile
        .lines()
        .map(|line| match line.starts_with("capacity_bytes") {
            true => "capacity_bytes = { value = 134_217_728, source = \"test\" }\n".to_owned(),
            false => format!("{line}\n"),
        })
        .collect();
    let file = home.path().join("small.toml");
    std::fs::write(&file, small).unwrap();
    let arguments = ["--fs", "ext4,xfs", "--json", "--card"];
    let verdict = done(&choose(home.path(), &arguments).arg(&file).output().unwrap());
    assert_eq!(verdict["ranking"][0]["candidate"], "ext4");
    let excluded = verdict["excluded"].as_array().unwrap();
    let why = excluded.iter().find(|e| e["candidate"] == "xfs").unwrap()["why"].to_string();
    assert!(why.contains("MiB"), "{why}");
}

#[test]
fn lab_exec_runs_a_program_on_the_card() {
    if !can_run() {
        return;
    }
    let run = |command: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_whichfs"))
            .args(["lab", "exec", "--fs", "ext4", "--json", "--"])
            .args(command)
            .output()
            .unwrap();
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code(), document)
    };
    let (code, document) = run(&[
        "dd",
        "if=/dev/zero",
        "of=x",
        "bs=64k",
        "count=16",
        "conv=fsync",
    ]);
    assert_eq!(code, Some(0), "{document}");
    assert!(
        document["stderr"]
            .as_str()
            .unwrap()
            .contains("16+0 records out")
    );
    assert!(document["device"]["write_bytes"].as_u64().unwrap() >= 1 << 20);
    assert!(document["virtual_s"].as_f64().unwrap() > 0.0);
    let (code, document) = run(&["sh", "-c", "exit 7"]);
    assert_eq!((code, &document["exit_status"]), (Some(1), &Value::from(7)));
}

#[test]
fn lab_what_a_program_says_is_not_lost_without_a_word() {
    if !can_run() {
        return;
    }
    let full = std::fs::File::options().write(true).open("/dev/full");
    let home = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_whichfs"))
        .args(["lab", "exec", "--fs", "ext4", "--", "echo", "told"])
        .env("XDG_CACHE_HOME", home.path())
        .stdout(full.unwrap())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("exit status 0"), "the summary stays: {said}");
    assert!(said.contains("cannot write to standard output"), "{said}");
}

/// Paths that are no text, and a place for the report that cannot be written.
#[test]
fn lab_odd_paths_cost_no_verdict() {
    if !can_run() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let odd = home.path().join(OsStr::from_bytes(b"r\xffport"));
    let mut command = choose(home.path(), &["--fs", "ext4", "--json", "--store"]);
    let output = command.arg(&odd).output().unwrap();
    assert_eq!(done(&output)["ranking"][0]["candidate"], "ext4");
    let page = std::fs::read_to_string(home.path().join("report/report.html")).unwrap();
    assert!(page.contains(r"\xff"), "the command as a shell takes it");
    let file = home.path().join("report/report.html/deeper");
    let mut refused = Command::new(env!("CARGO_BIN_EXE_whichfs"));
    refused.args(["choose", "--out"]).arg(file);
    refused.env("XDG_CACHE_HOME", home.path().join("cache"));
    refused.env("XDG_DATA_HOME", home.path().join("data"));
    let output = refused.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("report.html/deeper") && !said.contains("[1/"),
        "{said}"
    );
}

/// Runs `script` in a mount namespace of its own; `None` where that is not allowed.
fn in_own_mounts(script: &str, home: &Path) -> Option<Output> {
    if !rustix::process::geteuid().is_root() {
        skip::skip("mount namespaces need root");
        return None;
    }
    let output = Command::new("unshare")
        .args(["-m", "sh", "-ec", script])
        .env("WHICHFS", env!("CARGO_BIN_EXE_whichfs"))
        .env("XDG_CACHE_HOME", home.join("cache"))
        .env("XDG_DATA_HOME", home.join("data"))
        .env("OUT", home.join("report"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    // What the program itself says of mounts is no reason to skip.
    if !said.contains(MOUNTED) {
        skip::skip(said);
        return None;
    }
    Some(output)
}

#[test]
fn loop_lab_a_noexec_shm_is_passed_over() {
    if !can_run() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let script = "mount -t tmpfs -o noexec none /dev/shm; echo mounts are made >&2; \
                  exec \"$WHICHFS\" lab exec --fs ext4 -- true";
    let Some(output) = in_own_mounts(script, home.path()) else {
        return;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("exit status 0"), "{said}");
}

#[test]
fn lab_who_a_power_cut_hurts_is_excluded_with_the_command_that_shows_it() {
    if !can_run() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let output = choose(home.path(), &["--fs", "ext2,ext4", "--for", "rootfs"])
        .args(["--need", "power_loss=none", "--need", "crash_class=any"])
        .args(["--need", "mounts_after_cut=any", "--cuts", "6", "--json"])
        .args(["--card", "class4-4gb"])
        .output()
        .unwrap();
    let verdict = done(&output);
    let excluded = verdict["excluded"].as_array().unwrap();
    let ext2 = excluded.iter().find(|one| one["candidate"] == "ext2");
    let text = |field: &str| ext2.unwrap()[field].as_str().unwrap().to_owned();
    assert!(text("why").contains(" of 6 ("), "{verdict:#}");
    let replay = text("source");
    let replay = replay.split_once("whichfs ").unwrap().1;
    let again = choose_of_any_size(home.path(), &[]);
    let envs = again
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    let shown = Command::new(env!("CARGO_BIN_EXE_whichfs"))
        .args(replay.split(' '))
        .envs(envs)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&shown.stdout);
    assert!(said.contains("THE POWER GOES"), "{said}");
}
