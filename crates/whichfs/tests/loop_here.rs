//! Trials on a device of this machine from outside (root, loop devices and the agent are needed).
#![allow(clippy::unwrap_used)]

use crate::cards;

use cards::{Attached, Card, STUDY, skip, user_of};
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

#[test]
fn loop_here_a_study_is_measured_only_where_it_may_and_is_kept() {
    let Some(card) = Card::new(256) else { return };
    let (code, out, err) = card.run(&card.study(&["--dry-run"]));
    assert_eq!(code, 0, "{err}");
    for words in [
        "sfdisk",
        "mke2fs",
        "4 trials, 0 of them finished",
        "left out: reiserfs",
    ] {
        assert!(out.contains(words), "{words}: {out}");
    }
    assert!(out.contains(&format!("--destroy {}", card.id())), "{out}");
    let (code, _, err) = card.run(&card.study(&[]));
    assert!(code == 2 && err.contains("--destroy"), "{code} {err}");
    let (code, _, err) = card.run(&card.study(&["--destroy", &card.path]));
    assert!(code == 2 && err.contains("another device"), "{code} {err}");
    let written = std::os::unix::fs::MetadataExt::blocks(&std::fs::metadata(&card.file).unwrap());
    assert_eq!(written, 0, "written to without consent");

    let (code, out, err) = card.run(&card.study(&["--destroy", card.id()]));
    assert_eq!(code, 0, "{out}{err}");
    for words in [
        "(measured)",
        "tree_write",
        "not counted: the first",
        "reference run 1",
    ] {
        assert!(
            out.contains(words) || err.contains(words),
            "{words}: {out}{err}"
        );
    }
    assert!(out.contains("reference runs"), "{out}");
    card.is_left_alone();
    let csv =
        std::fs::read_to_string(card.home.path().join("whichfs-study/latest/results.csv")).unwrap();
    assert!(
        csv.lines().skip(1).all(|line| line.contains(",real,")),
        "{csv}"
    );
    assert!(
        !csv.contains("write_amplification_card"),
        "no device tells that: {csv}"
    );
    assert!(
        csv.contains("ext4") && csv.contains("ext2") && csv.contains("_cpu,"),
        "{csv}"
    );

    // All of it is known: nothing is written, and no consent is needed.
    let (code, out, err) = card.run(&card.study(&["--json"]));
    assert_eq!(code, 0, "{err}");
    let told: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (told["done"].as_u64(), told["reused"].as_u64()),
        (Some(4), Some(4))
    );
    assert_eq!(told["measured"]["session"], 1);
    assert!(
        told["measured"]["written_bytes"].as_u64() > Some(40_000_000),
        "{told}"
    );
    assert_eq!(told["measured"]["reference_runs"], 3);
}

#[test]
fn loop_here_a_budget_of_bytes_holds_and_the_rest_goes_on() {
    let Some(card) = Card::new(256) else { return };
    let limits = ["--destroy", card.id(), "--max-write", "200M"];
    let (code, out, err) = card.run(&card.study(&limits));
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("--max-write allows"), "{out}");
    let finished = card.finished();
    assert!((1..4).contains(&finished), "{finished}");
    let (code, out, err) = card.run(&card.study(&["--destroy", card.id(), "--budget", "1h"]));
    assert_eq!(code, 0, "{out}{err}");
    assert_eq!(card.finished(), 4);
}

#[test]
fn loop_here_an_interrupted_run_tells_what_is_on_the_device() {
    let Some(card) = Card::new(256) else { return };
    let mut child = card.start();
    let journals = card.home.path().join("whichfs/format");
    let begun = || {
        let entries = std::fs::read_dir(&journals).into_iter().flatten().flatten();
        let mut texts = entries.map(|entry| std::fs::read_to_string(entry.path()));
        texts.any(|text| text.is_ok_and(|text| text.contains("\"trial\"")))
    };
    while !begun() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    card.is_left_alone();
    let (code, _, err) = card.run(&card.study(&["--dry-run"]));
    assert_eq!(code, 0, "{err}");
    for words in [
        "was interrupted",
        "trials of mini",
        "on it now: ext",
        "format it again",
    ] {
        assert!(err.contains(words), "{words}: {err}");
    }
}

#[test]
fn loop_here_a_device_that_is_detached_in_the_middle_lives_until_the_run_has_ended() {
    let Some(card) = Card::new(256) else { return };
    let mut study = card.command(&card.study(&["--destroy", card.id()]));
    study.stdout(Stdio::piped()).stderr(Stdio::piped());
    let study = study.spawn().unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    // The loop driver lets go of the file when the last user has let go of the device.
    let mut losetup = std::process::Command::new("losetup");
    losetup.arg("-d").arg(&card.path).output().unwrap();
    let output = study.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{err}");
    assert!(!err.contains("FAILED"), "{err}");
    let name = card.path.trim_start_matches("/dev/");
    let bound = PathBuf::from(format!("/sys/block/{name}/loop/backing_file"));
    let begun = Instant::now();
    let is_ours = || {
        let text = std::fs::read_to_string(&bound).unwrap_or_default();
        text.trim_end() == card.id()
    };
    while is_ours() {
        assert!(
            begun.elapsed() < Duration::from_secs(120),
            "something holds it"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn loop_here_a_device_that_is_too_small_for_the_workload_is_told() {
    let Some(card) = Card::new(24) else { return };
    let run = |bytes: &str| {
        let study = STUDY.replace("8000000", bytes);
        std::fs::write(card.home.path().join("mini.toml"), study).unwrap();
        card.run(&card.study(&["--destroy", card.id(), "--seeds", "1"]))
    };
    // More data than the partition has: before anything is written.
    let (code, _, err) = run("40000000");
    assert_eq!(code, 2, "{err}");
    assert!(
        err.contains("38.1 MiB of data") && err.contains("take a larger device"),
        "{err}"
    );
    let written = std::os::unix::fs::MetadataExt::blocks(&std::fs::metadata(&card.file).unwrap());
    assert_eq!(written, 0, "written to in vain");
    // More than the filesystem leaves of it.
    let (code, out, err) = run("16500000");
    assert_eq!(code, 4, "{out}{err}");
    assert!(err.contains("FAILED") && err.contains("full"), "{err}");
    card.is_left_alone();
}

#[test]
fn loop_here_choose_tells_a_measured_verdict() {
    let Some(card) = Card::new(256) else { return };
    let choose = ["choose", "--on", &card.path, "--fs", "ext4,ext3"];
    let more = [
        "--size", "16M", "--seeds", "1", "--settle", "0", "--au", "4M",
    ];
    let all = [&choose[..], &more[..]].concat();
    let (code, out, err) = card.run(&[&all[..], &["--dry-run"]].concat());
    assert_eq!(code, 0, "{err}");
    assert!(
        out.contains("Nothing was written") && out.contains("sfdisk"),
        "{out}"
    );
    let (code, out, err) = card.run(&[&all[..], &["--destroy", card.id()]].concat());
    assert_eq!(code, 0, "{out}{err}");
    let said = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("Figures are measured") && said.contains("on the device"),
        "{out}"
    );
    assert!(!out.contains("virtual"), "{out}");
    card.is_left_alone();
    let verdict = card.home.path().join("whichfs-report/latest/verdict.json");
    let told: serde_json::Value = serde_json::from_slice(&std::fs::read(verdict).unwrap()).unwrap();
    assert_eq!(told["origin"], "measured");
    assert_eq!(told["ranking"].as_array().unwrap().len(), 2);
}

#[test]
fn loop_here_an_attached_modelled_card_is_a_device_too() {
    let Some(card) = Card::new(64) else { return };
    let program = env!("CARGO_BIN_EXE_whichfs");
    let study = "study run ./mini.toml --settle 0 --seeds 1 --fs ext4 --on $WHICHFS_DEVICE";
    let script = format!(
        "id=$({program} {study} --dry-run | sed -n 's/.*--destroy //p'); \
         eval {program} {study} --destroy \"$id\""
    );
    let attach = [
        "card", "attach", "a1-32gb", "--size", "256M", "--speed", "max",
    ];
    let (code, out, err) = card.run(&[&attach[..], &["--run", &script]].concat());
    if code == 3 {
        return skip::skip(err.trim());
    }
    assert_eq!(code, 0, "{out}{err}");
    assert!(
        out.contains("tree_write") && out.contains("(measured)"),
        "{out}{err}"
    );
}

#[test]
fn loop_here_a_card_whose_driver_dies_in_the_middle_ends_the_run_and_loses_nothing() {
    let Some(card) = Card::new(64) else { return };
    let Some(mut attached) = Attached::new(&card) else {
        return;
    };
    let (code, out, err) = card.run(&attached.study(&["--dry-run"]));
    assert_eq!(code, 0, "{err}");
    let id = out
        .rsplit("--destroy ")
        .next()
        .unwrap()
        .trim()
        .trim_matches('\'')
        .to_owned();
    let path = attached.path.clone();
    let mut command = card.command(&attached.study(&["--destroy", &id, "--seeds", "20"]));
    let mut study = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut err = String::new();
    let mut lines = BufReader::new(study.stderr.take().unwrap());
    // Until the table lies, and the next trial is under way.
    while !err.contains("[2/") {
        assert!(
            lines.read_line(&mut err).unwrap() > 0,
            "it ended early: {err}"
        );
    }
    std::thread::sleep(Duration::from_millis(300));
    attached.process.kill().unwrap();
    attached.process.wait().unwrap();
    lines.read_to_string(&mut err).unwrap();
    let status = study.wait().unwrap();
    assert_eq!(status.code(), Some(4), "{err}");
    let said = err.contains("errors of the device") || err.contains("is another device");
    assert!(said && err.contains(" kept"), "{err}");
    let begun = Instant::now();
    while let Some(user) = user_of(&path) {
        assert!(begun.elapsed() < Duration::from_secs(180), "{user}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A control group with little memory, the kernel's pages for it included; gone with the value.
struct LittleMemory(PathBuf);

impl LittleMemory {
    fn new(mib: u64) -> Option<LittleMemory> {
        let old = std::path::Path::new("/sys/fs/cgroup/memory");
        let (parent, limit) = match old.is_dir() {
            true => (old, "memory.limit_in_bytes"),
            false => (std::path::Path::new("/sys/fs/cgroup"), "memory.max"),
        };
        if !old.is_dir() {
            let _ = std::fs::write(parent.join("cgroup.subtree_control"), "+memory");
        }
        let group = parent.join(format!("whichfs-device-{}", std::process::id()));
        let made = std::fs::create_dir(&group)
            .and_then(|()| std::fs::write(group.join(limit), (mib << 20).to_string()));
        let group = LittleMemory(group);
        match made {
            Ok(()) => Some(group),
            Err(error) => {
                skip::skip(format!("no control group for memory: {error}"));
                None
            }
        }
    }

    /// The most that it had, in bytes, where the kernel tells.
    fn most(&self) -> Option<u64> {
        let names = ["memory.max_usage_in_bytes", "memory.peak"];
        let mut texts = names
            .iter()
            .map(|name| std::fs::read_to_string(self.0.join(name)));
        texts.find_map(|text| text.ok()?.trim().parse().ok())
    }
}

impl Drop for LittleMemory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn loop_here_a_machine_with_256_mib_of_memory_is_enough() {
    let Some(card) = Card::new(1024) else { return };
    let Some(memory) = LittleMemory::new(256) else {
        return;
    };
    // More data than there is memory.
    let study = STUDY
        .replace(
            "bytes = 8000000, files = 100",
            "bytes = 300000000, files = 300",
        )
        .replace("\"ext4\", \"ext2\", \"reiserfs\"", "\"ext4\"");
    std::fs::write(card.home.path().join("mini.toml"), study).unwrap();
    let arguments = card.study(&["--destroy", card.id(), "--seeds", "1", "--json"]);
    let plain = card.command(&arguments);
    let mut command = std::process::Command::new("sh");
    let tasks = memory.0.join("cgroup.procs");
    let script = format!("echo $$ > {} && exec \"$@\"", tasks.display());
    command.args(["-c", &script, "sh"]).arg(plain.get_program());
    command.args(plain.get_args()).current_dir(card.home.path());
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let output = command.stdin(Stdio::null()).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{err}");
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["done"].as_u64(), Some(1), "{told}");
    if let Some(most) = memory.most() {
        assert!(most <= 256 << 20, "{most}");
        println!("a study on a device took {} MiB at most", most >> 20);
    }
    card.is_left_alone();
}

/// A virtual machine, for example, that runs from the file.
#[test]
fn loop_here_a_card_whose_file_another_process_has_open_is_left_alone() {
    let Some(card) = Card::new(64) else { return };
    let format = ["format", &card.path, "--fs", "ext4", "--destroy", card.id()];
    let open = std::fs::File::open(&card.file).unwrap();
    let (code, _, err) = card.run(&format);
    assert_eq!(code, 2, "{err}");
    assert!(
        err.contains(&format!("which {} shows, is open in process", card.path)),
        "{err}"
    );
    let written = std::os::unix::fs::MetadataExt::blocks(&open.metadata().unwrap());
    assert_eq!(written, 0, "written to all the same");
    drop(open);
    let (code, _, err) = card.run(&format);
    assert_eq!(code, 0, "{err}");
    let life = ["--card", "a1-32gb", "--per-day", "0"];
    let (code, out, err) = card.run(&[&["card", "identify", &card.path][..], &life].concat());
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("wear does not end it"), "{out}");
}

/// A program writes as much as it likes; the disk's own counter says how much that is.
#[test]
fn loop_here_attack_a_trial_that_writes_too_much_is_ended() {
    const MOST: u64 = 100 << 20;
    let Some(card) = Card::new(1024) else { return };
    let disk = card.path.trim_start_matches("/dev/");
    let written = || -> u64 {
        let text = std::fs::read_to_string(format!("/sys/block/{disk}/stat")).unwrap();
        let sectors: u64 = text.split_whitespace().nth(6).unwrap().parse().unwrap();
        sectors * 512
    };
    let program = "for i in 1 2 3; do dd if=/dev/zero of=f$i bs=1M count=200; sync -f .; done";
    // Those that can be shut down, and one that cannot.
    for filesystem in ["ext4", "xfs", "btrfs"] {
        let before = written();
        let choose = [
            "choose",
            "--on",
            &card.path,
            "--for",
            "command",
            "--command",
            program,
            "--fs",
            filesystem,
            "--seeds",
            "1",
            "--settle",
            "0",
            "--max-write",
            "100M",
            "--destroy",
            card.id(),
        ];
        let (_, out, err) = card.run(&choose);
        assert!(out.contains("--max-write allows"), "{out}{err}");
        let written = written() - before;
        eprintln!("{filesystem}: {written}");
        // Without the limit the program writes 600 MiB.
        let most = MOST + MOST / 100 + (1 << 20);
        assert!(written <= most, "{filesystem}: {written} of {MOST}");
    }
}
