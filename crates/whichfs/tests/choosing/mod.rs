//! What tests share that run the whole way from a command to a verdict.
#![allow(clippy::unwrap_used)]

pub(crate) use crate::skip;

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use whichfs_store::{Filter, Store};

/// For tests of other things than the long run: without the weights that need it, which takes ten
/// times as long as all other trials together.
pub const SHORT: [&str; 4] = [
    "--need",
    "weight.sustained_write=0",
    "--need",
    "weight.sustained_write_amplification=0",
];

/// Whether guests can be run; says why not.
pub fn can_run() -> bool {
    let there = ["WHICHFS_KERNEL", "WHICHFS_AGENT", "WHICHFS_USERLAND"]
        .iter()
        .all(|name| std::env::var_os(name).is_some());
    if !there {
        skip::skip("WHICHFS_KERNEL and WHICHFS_AGENT are not set (make test sets them)");
    }
    there
}

/// `whichfs choose` with everything it leaves in `home`.
pub fn choose_of_any_size(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_whichfs"));
    command
        .args(["choose", "--seeds", "1", "--out"])
        .arg(home.join("report"))
        .args(arguments)
        .env("XDG_CACHE_HOME", home.join("cache"))
        .env("XDG_DATA_HOME", home.join("data"))
        .stdin(Stdio::null());
    command
}

/// The verdict of a run that must have ended well.
pub fn done(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Every trial of a store but those of the long run as JSON, by id.
pub fn trials(home: &Path) -> BTreeMap<String, String> {
    let store = Store::open(&home.join("data/whichfs/store.sqlite")).unwrap();
    let all = store.find(&Filter::default()).unwrap();
    all.into_iter()
        .filter(|s| s.trial.identity.card_state != "sustained")
        .map(|s| (s.id, serde_json::to_string(&s.trial).unwrap()))
        .collect()
}

/// Fails at the first byte that differs, with what is around it.
pub fn assert_same(first: &BTreeMap<String, String>, second: &BTreeMap<String, String>) {
    assert!(first.keys().eq(second.keys()), "other trials");
    for ((id, one), other) in first.iter().zip(second.values()) {
        let Some(at) = one.bytes().zip(other.bytes()).position(|(a, b)| a != b) else {
            assert_eq!(one.len(), other.len(), "trial {id}");
            continue;
        };
        let around = at.saturating_sub(300)..at + 100;
        let part = |text: &str| {
            let bytes = &text.as_bytes()[around.start..around.end.min(text.len())];
            String::from_utf8_lossy(bytes).into_owned()
        };
        panic!(
            "trial {id} differs at byte {at}:\n{}\n{}",
            part(one),
            part(other)
        );
    }
}
