//! What commands print with `--json` fits the schemas that the program ships.

use super::golden::COMMANDS;
use super::sandbox::Sandbox;
use crate::schemas::Shipped;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Commands whose documents need no lab and no device; with those of the golden files.
const OTHERS: [&str; 11] = [
    "need list --json",
    "need show logger --json",
    "cache list --json",
    "store merge nothing.sqlite --json",
    "doctor --json",
    "study list --json",
    "card attached --json",
    "check card.img --no-gain --json",
    "format card.img --size 64M --fs ext4 --dry-run --json",
    "probe class4-4gb --write --capacity --json",
    "card fit curves.json --json",
];

#[test]
fn documents_fit_the_schemas_of_their_names() {
    let shipped = Shipped::read();
    let golden = COMMANDS.iter().map(|(_, command)| *command);
    // Of the form of flashbench there is no schema.
    let none = |command: &&str| !command.ends_with("--json") || command.contains("card curves");
    let mut seen = BTreeSet::new();
    for command in golden.filter(|command| !none(command)).chain(OTHERS) {
        let sandbox = Sandbox::new();
        if command.contains("curves.json") {
            let curves = sandbox
                .run(&["card", "curves", "class4-4gb", "--json"])
                .stdout;
            std::fs::write(sandbox.path().join("curves.json"), curves).unwrap();
        }
        if command.starts_with("check") {
            let image = "format card.img --size 64M --fs ext4 --au 4M";
            let made = sandbox.run(&image.split(' ').collect::<Vec<_>>());
            assert_eq!(made.code, 0, "{}", made.stderr);
        }
        let words: Vec<&str> = command.split(' ').collect();
        let run = sandbox.run(&words);
        match shipped.check(&run.stdout) {
            Ok(name) => drop(seen.insert(name)),
            Err(why) => panic!("whichfs {command}: {why}\n{}", run.stderr),
        }
    }
    for name in ["fs show", "probe", "check", "format", "doctor", "error"] {
        assert!(seen.contains(name), "{name} is not among {seen:?}");
    }
}

#[test]
fn an_error_is_a_document_with_the_exit_status_and_a_text() {
    let shipped = Shipped::read();
    let sandbox = Sandbox::new();
    let file = sandbox.file("no.sqlite", "no database");
    let file = file.to_str().unwrap();
    for (kind, status, command) in [
        ("input", 2, &["fs", "show", "nonsense"][..]),
        ("input", 2, &["fs", "shows", "ext4"]),
        ("input", 2, &["choose", "--seeds", "many"]),
        ("input", 2, &["image", "tree"]),
        ("environment", 3, &["lab", "kernel"]),
        ("environment", 3, &["store", "check", "--store", file]),
    ] {
        let run = sandbox.run(&[command, &["--json"]].concat());
        assert_eq!(
            shipped.check(&run.stdout).as_deref(),
            Ok("error"),
            "{command:?}"
        );
        let error: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(
            (&error["kind"], &error["status"]),
            (&json!(kind), &json!(status)),
            "{error}"
        );
        assert_eq!(run.code, status);
        // The text is what it is without --json.
        let text = sandbox.run(command);
        assert!(text.stdout.is_empty() && !text.stderr.is_empty());
        let first = error["message"].as_str().unwrap().lines().next().unwrap();
        assert!(
            text.stderr.contains(first) && run.stderr.contains(first),
            "{error}"
        );
        assert!(!error["remedy"].as_str().unwrap().is_empty());
    }
}

#[test]
fn standard_output_has_one_document_at_most() {
    let run = Sandbox::new().run(&["card", "list", "nonsense", "--json"]);
    assert_eq!((run.code, run.stdout.trim()), (1, "[]"));
}

#[test]
fn a_document_that_lacks_a_field_does_not_fit() {
    let shipped = Shipped::read();
    let sandbox = Sandbox::new();
    let whole = sandbox.run(&["fs", "why", "zfs", "--json"]).stdout;
    assert_eq!(shipped.check(&whole).as_deref(), Ok("fs why"));
    for (from, to) in [
        ("\"source\"", "\"other\""),
        ("\"fs why\"", "\"fs\""),
        ("\"schema\": 1", "\"schema\": 2"),
        ("\"schema\": 1", "\"schema\": \"1\""),
    ] {
        let changed = whole.replacen(from, to, 1);
        assert_ne!(changed, whole);
        assert!(shipped.check(&changed).is_err(), "{to}: {changed}");
    }
}
