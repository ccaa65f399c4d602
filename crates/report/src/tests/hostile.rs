//! Text of strangers in every field and every kind of output: names of cards and boards, labels,
//! messages of guests, what studies and needs say.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::fixture::{page, verdict};
use crate::{
    Export, Page, TerminalLook, csv, html, json, junit_of, ktap, markdown, terminal, verdict_cases,
};
use serde_json::Value;
use std::collections::BTreeMap;
use whichfs_decide::{FigureRow, Verdict};

/// Escape sequences of a terminal (CSI, OSC, their one-character forms), a bell, an override of the
/// direction, ends of lines, quotes, markup and commands.
const HOSTILE: &str = "\u{1b}[2J\u{1b}]0;x\u{7}\u{9b}1m\u{202e}\r\nINJECTED '\"`$(x)` </td><b>|,";

/// What of `text` a terminal or viewer would obey.
fn obeyed(text: &str) -> Vec<char> {
    let harmful = |c: &char| whichfs_units::is_harmful(*c) && !matches!(c, '\n' | '\t');
    text.chars().filter(harmful).collect()
}

/// Pointers to the string fields of `value`; of arrays to those of the first elements.
fn fields(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::String(_) => found.push(at.to_owned()),
        Value::Array(all) => {
            for (index, one) in all.iter().take(2).enumerate() {
                fields(one, &format!("{at}/{index}"), found);
            }
        }
        Value::Object(all) => {
            for (name, one) in all {
                let name = name.replace('~', "~0").replace('/', "~1");
                fields(one, &format!("{at}/{name}"), found);
            }
        }
        _ => {}
    }
}

/// `given` with hostile text at the end of every field that takes any text, and how many those are.
fn infected<T: serde::Serialize + serde::de::DeserializeOwned>(given: &T) -> (T, usize) {
    let mut value = serde_json::to_value(given).unwrap();
    let mut all = Vec::new();
    fields(&value, "", &mut all);
    let mut count = 0;
    for field in all {
        let place = value.pointer_mut(&field).unwrap();
        let before = place.clone();
        *place = Value::String(format!("{}{HOSTILE}", before.as_str().unwrap()));
        // Words of a list, such as where figures come from, take no other.
        match serde_json::from_value::<T>(value.clone()) {
            Ok(_) => count += 1,
            Err(_) => *value.pointer_mut(&field).unwrap() = before,
        }
    }
    (serde_json::from_value(value).unwrap(), count)
}

fn row() -> FigureRow {
    let text = || HOSTILE.to_owned();
    FigureRow {
        card: text(),
        kernel: text(),
        clock: text(),
        candidate: text(),
        mount_options: text(),
        workload: text(),
        metric: text(),
        value: 1.0,
        unit: text(),
        lower_is_better: true,
        seed: 1,
        trial: text(),
    }
}

#[test]
fn attack_hostile_text_in_every_field_is_obeyed_by_no_output() {
    let (verdict, fields): (Verdict, usize) = infected(&verdict());
    assert!(fields > 40, "{fields}");
    let (page, fields): (Page, usize) = infected(&page());
    assert!(fields > 60, "{fields}");
    let rows = [row()];
    let mut failed = crate::fixture::trial();
    failed.identity.card = HOSTILE.to_owned();
    failed.outcome.status = whichfs_trial::Status::Failed {
        reason: HOSTILE.to_owned(),
        log: Vec::new(),
    };
    let export = Export {
        rows: &rows,
        trials: &[(HOSTILE, &failed)],
        fit_error: None,
    };
    let look = TerminalLook {
        width: 80,
        colour: false,
    };
    let outputs = [
        ("terminal", terminal(&verdict, look)),
        ("markdown", markdown(&verdict, &export)),
        ("html", html(&page)),
        ("csv", csv(&export)),
        ("json", json(&export)),
        ("junit", junit_of(HOSTILE, &page, &BTreeMap::new())),
        ("ktap", ktap(&verdict_cases(&verdict))),
    ];
    for (name, text) in &outputs {
        assert_eq!(obeyed(text), Vec::<char>::new(), "{name}");
        assert!(text.contains("INJECTED"), "{name} shows it as text");
    }
    for (name, text) in &outputs[..2] {
        let begins = |line: &&str| line.trim_start().starts_with("INJECTED");
        assert_eq!(text.lines().find(begins), None, "{name}");
    }
    for (name, text) in [&outputs[2], &outputs[5]] {
        assert!(!text.contains("</td><b>"), "{name}: markup");
    }
    let back: Value = serde_json::from_str(&outputs[4].1).unwrap();
    assert_eq!(back[0]["card"], HOSTILE, "JSON keeps it");
}

#[test]
fn attack_planted_fault_text_that_is_not_cleaned_is_found() {
    assert!(!obeyed(HOSTILE).is_empty());
    assert!(!obeyed("a\u{9b}31m").is_empty());
    assert!(obeyed("a\n\tb \u{fffd}").is_empty());
}
