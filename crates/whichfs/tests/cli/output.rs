//! Output: help that fits, one JSON document, a closed pipe that is no error.

use super::sandbox::{Run, Sandbox};
use std::process::{Command, Stdio};

/// `command` and all below it, as its help lists them.
fn tree(sandbox: &Sandbox, command: &[String]) -> Vec<Vec<String>> {
    let mut all = vec![command.to_vec()];
    let mut arguments: Vec<&str> = command.iter().map(String::as_str).collect();
    arguments.push("--help");
    let help = sandbox.run(&arguments);
    let lines = help.succeeds().lines();
    let listed = lines.skip_while(|line| *line != "Commands:").skip(1);
    // Longer descriptions go on, indented further.
    let names = listed
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  "))
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| line.split(' ').next());
    for name in names.filter(|name| *name != "help") {
        all.extend(tree(sandbox, &[command, &[name.to_owned()]].concat()));
    }
    all
}

#[test]
fn help_of_every_command_says_something_and_fits_100_columns() {
    let sandbox = Sandbox::new();
    let commands = tree(&sandbox, &[]);
    assert!(commands.len() > 20, "{commands:?}");
    for command in commands {
        let mut arguments: Vec<&str> = command.iter().map(String::as_str).collect();
        arguments.push("--help");
        let run = sandbox.run(&arguments);
        let text = run.succeeds();
        // The first line says what the command is for.
        assert!(
            text.lines().next().is_some_and(|line| line.len() > 8),
            "{command:?}: {text}"
        );
        assert!(text.contains("Usage: whichfs"), "{command:?}: {text}");
        for line in text.lines() {
            assert!(line.chars().count() <= 100, "{command:?}: {line}");
        }
    }
}

#[test]
fn help_of_the_main_commands_has_examples_and_exit_codes() {
    let sandbox = Sandbox::new();
    for command in [
        &["--help"][..],
        &["choose", "--help"],
        &["lab", "exec", "--help"],
    ] {
        let run = sandbox.run(command);
        assert!(
            run.succeeds().contains("Examples:\n  whichfs "),
            "{}",
            run.stdout
        );
    }
    assert!(
        sandbox
            .run(&["--help"])
            .stdout
            .contains("Exit status: 0 done, 1")
    );
}

#[test]
fn the_version_is_the_workspaces() {
    let run = Sandbox::new().run(&["--version"]);
    assert_eq!(
        run.succeeds(),
        concat!("whichfs ", env!("CARGO_PKG_VERSION"), "\n")
    );
}

/// Standard output as one JSON document; anything before or after it fails.
fn document(arguments: &[&str]) -> serde_json::Value {
    let run = Sandbox::new().run(&[arguments, &["--json"]].concat());
    serde_json::from_str(run.succeeds()).unwrap()
}

#[test]
fn json_of_lists_and_shows_is_one_document_with_stable_keys() {
    for (arguments, keys) in [
        (
            &["card", "list"][..],
            &["name", "title", "interface", "family", "au_bytes"][..],
        ),
        (
            &["fs", "list"],
            &["name", "title", "good_for", "crash_class", "missing_tools"],
        ),
        (&["workload", "list"], &["name", "title", "phases"]),
    ] {
        let lines = document(arguments);
        let lines = lines.as_array().unwrap();
        assert!(lines.len() >= 3, "{arguments:?}");
        for line in lines {
            assert!(
                keys.iter().all(|key| !line[key].is_null()),
                "{arguments:?}: {line}"
            );
        }
    }
    for (arguments, keys) in [
        (
            &["card", "show", "emmc-8gb"][..],
            &["name", "figures", "partition_offset"][..],
        ),
        (
            &["fs", "show", "f2fs"],
            &["commands", "tuning", "limits", "sources", "card"],
        ),
        (
            &["workload", "show", "rootfs"],
            &["phases", "parameters", "takes_tree"],
        ),
    ] {
        let shown = document(arguments);
        assert!(
            keys.iter().all(|key| !shown[key].is_null()),
            "{arguments:?}: {shown}"
        );
    }
}

#[test]
fn a_failure_is_a_document_for_programs_and_leaves_standard_output_empty_for_people() {
    let sandbox = Sandbox::new();
    for (command, code, word) in [
        (&["card", "show", "nothing-like-it"][..], 2, "unknown card"),
        (&["choose"], 3, "make kernel"),
    ] {
        let run = sandbox.run(command);
        run.fails(code, &[word]);
        assert_eq!(run.stdout, "");
        let run = sandbox.run(&[command, &["--json"]].concat());
        run.fails(code, &[word]);
        let told: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
        assert!(
            told["message"]
                .as_str()
                .is_some_and(|text| text.contains(word)),
            "{told}"
        );
    }
}

#[test]
fn every_figure_of_a_card_has_unit_source_and_uncertainty() {
    let card = document(&["card", "show", "class4-4gb"]);
    let figures = card["figures"].as_array().unwrap();
    let of = |name: &str| {
        figures
            .iter()
            .find(|figure| figure["figure"] == name)
            .unwrap()
    };
    let rate = of("write.rate_bytes_per_s");
    assert_eq!(rate["value"], 5_100_000);
    assert_eq!(rate["unit"], "B/s");
    assert_eq!(rate["uncertainty_percent"], 15);
    assert!(rate["source"].as_str().unwrap().contains("WB5"));
    assert!(
        of("cache.bytes")["source"].is_null(),
        "a default has no source"
    );
    let run = Sandbox::new().run(&["card", "show", "class4-4gb"]);
    for figure in figures {
        assert!(
            run.stdout.contains(figure["figure"].as_str().unwrap()),
            "{figure}"
        );
    }
}

#[test]
fn commands_follow_the_card() {
    let sandbox = Sandbox::new();
    let show = |card| {
        sandbox
            .run(&["fs", "show", "f2fs", "--card", card])
            .succeeds()
            .to_owned()
    };
    let a1 = show("a1-32gb");
    for word in [
        "mkfs.f2fs",
        "mount -t f2fs",
        "fstab",
        "fsck.f2fs",
        "because",
        "Windows",
    ] {
        assert!(a1.contains(word), "no '{word}': {a1}");
    }
    assert_ne!(a1, show("class4-4gb"));
}

#[test]
fn text_fits_80_columns_where_there_is_no_terminal() {
    let sandbox = Sandbox::new();
    for arguments in [
        &["card", "list"][..],
        &["card", "show", "a1-32gb"],
        &["fs", "list"],
    ] {
        let run = sandbox.run(arguments);
        for line in run.succeeds().lines() {
            assert!(line.chars().count() <= 80, "{arguments:?}: {line}");
        }
    }
}

#[test]
fn a_list_of_cards_says_how_far_each_is_off_and_heeds_columns() {
    let sandbox = Sandbox::new();
    let list = |columns: &str| {
        let mut command = sandbox.command(&["card", "list", "ncard"]);
        Run::of(command.env("COLUMNS", columns))
            .succeeds()
            .to_owned()
    };
    let (wide, narrow) = (list("180"), list("80"));
    for text in [&wide, &narrow] {
        assert!(text.contains("fitted 3.6 / 11.6 %"), "{text}");
    }
    assert_eq!(wide.lines().count(), 4, "{wide}");
    assert!(
        wide.contains("NCard 8 GB SDHC (2013), another unit"),
        "{wide}"
    );
    let shown = sandbox.run(&["card", "show", "ncard-8gb"]);
    assert!(
        shown
            .succeeds()
            .contains("by 3.6 / 11.6 % of the write points of WB14;\nits family alone")
    );
    let composed = sandbox.run(&["card", "list", "a2-cq"]);
    assert!(composed.succeeds().contains("composed"));
}

#[test]
fn a_closed_pipe_is_no_error() {
    let sandbox = Sandbox::new();
    for arguments in [&["card", "show", "a1-32gb"][..], &["fs", "list", "--json"]] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_whichfs"))
            .args(arguments)
            .env("HOME", sandbox.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    }
}

#[test]
fn a_full_output_is_told() {
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_whichfs"))
        .args(["card", "list"])
        .stdout(full)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).contains("standard output"));
}

#[test]
fn doctor_is_one_document_and_every_fault_has_loss_and_remedy() {
    let sandbox = Sandbox::new();
    let run = Run::of(&mut sandbox.command(&["doctor", "--json"]));
    let document: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((run.code, &document["ok"]), (3, &false.into()));
    let checks = document["checks"].as_array().unwrap();
    for name in [
        "gcc",
        "e2fsprogs",
        "lab kernel",
        "agent",
        "store",
        "free space",
        "usable cores",
    ] {
        assert!(
            checks.iter().any(|check| check["name"] == name),
            "no check {name}"
        );
    }
    for check in checks.iter().filter(|check| check["ok"] == false) {
        assert!(
            check["lost"].is_string() && check["remedy"].is_string(),
            "{check}"
        );
    }
}

#[test]
fn quiet_tells_no_note_and_keeps_errors_and_verbose_tells_all() {
    let sandbox = Sandbox::new();
    let told = sandbox.run(&["need", "new", "a", "--out", "a.toml"]);
    assert!(told.stderr.contains("change it"), "{}", told.stderr);
    for word in ["-q", "--quiet"] {
        let out = format!("b{word}.toml");
        let quiet = sandbox.run(&["need", "new", "b", "--out", &out, word]);
        assert_eq!((quiet.code, quiet.stderr.as_str()), (0, ""));
        let failed = sandbox.run(&["card", "show", "nonsense", word]);
        assert_eq!(failed.code, 2);
        assert!(failed.stderr.contains("nonsense"), "{}", failed.stderr);
        // The option stands before the command, too.
        let before = sandbox.run(&[word, "need", "new", "c", "--out", &format!("c{word}")]);
        assert_eq!((before.code, before.stderr.as_str()), (0, ""));
    }
    let both = sandbox.run(&["card", "list", "-q", "-v"]);
    assert_eq!(both.code, 2, "{}", both.stderr);
}

#[test]
fn a_probe_prints_five_lines_and_all_of_it_with_verbose() {
    let sandbox = Sandbox::new();
    // Quiet, because a slow machine shows progress.
    let run = sandbox.run(&["probe", "class4-4gb", "--write=destroy", "--quiet"]);
    let lines: Vec<&str> = run.succeeds().lines().collect();
    assert!(lines.len() <= 5, "{lines:?}");
    assert!(
        lines[0].starts_with("class4-4gb: page 16 KiB, AU 4 MiB"),
        "{lines:?}"
    );
    let long = lines.iter().find(|line| line.chars().count() > 80);
    assert_eq!(long, None);
    let run = sandbox.run(&["probe", "class4-4gb", "--write=destroy", "--verbose"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(
        run.stdout.contains("standard errors at least"),
        "the evidence"
    );
}

/// No list of all names is an answer to a slip.
#[test]
fn a_slip_gets_three_names_at_most_and_the_command_that_lists_all() {
    let sandbox = Sandbox::new();
    for (words, meant, lists) in [
        (
            &["choose", "--card", "a1_32gb"][..],
            "a1-32gb",
            "whichfs card list",
        ),
        (&["card", "show", "a1_32gb"], "a1-32gb", "whichfs card list"),
        (
            &["choose", "--board", "rpi4"],
            "raspberry-pi-4",
            "whichfs board list",
        ),
        (
            &["board", "show", "rpi4"],
            "raspberry-pi-4",
            "whichfs board list",
        ),
        (
            &["choose", "--for", "rootsf"],
            "rootfs",
            "whichfs need list",
        ),
        (&["choose", "--fs", "ext5"], "ext4", "whichfs fs list"),
        (&["fs", "show", "btfrs"], "btrfs", "whichfs fs list"),
        (
            &["workload", "show", "loger"],
            "logger",
            "whichfs workload list",
        ),
        (
            &["study", "run", "pandorra"],
            "pandora",
            "whichfs study list",
        ),
        (
            &["crash", "run", "--fs", "ext4", "--faults", "flush-lie"],
            "flush-lies",
            "whichfs crash faults",
        ),
        (
            &["need", "new", "x", "--from", "loger"],
            "logger",
            "whichfs need list",
        ),
    ] {
        let run = sandbox.run(words);
        assert_eq!(run.code, 2, "{words:?}: {}", run.stderr);
        let said = &run.stderr;
        assert!(said.contains(&format!("'{meant}'")), "{words:?}: {said}");
        assert!(said.contains(lists), "{words:?}: {said}");
        let names = said.matches('\'').count() / 2;
        assert!(names <= 4, "{words:?} names {names}: {said}");
        let json = sandbox.run(&[words, &["--json"]].concat());
        let error: serde_json::Value = serde_json::from_str(&json.stdout).unwrap_or_default();
        // Commands without --json say so, in JSON as well.
        assert_eq!(error["document"], "error", "{words:?}: {}", json.stdout);
    }
}
