//! How long a card lives under a filesystem, with a guest.
#![allow(clippy::unwrap_used)]

use crate::choosing::can_run;
use serde_json::Value;
use std::process::Command;

/// The second answer is made of the trial that the first one kept.
#[test]
fn lab_a_life_under_a_filesystem_is_of_one_trial_by_bytes_or_by_runs() {
    if !can_run() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let life = |per: &[&str]| -> Value {
        let words = ["card", "life", "a1-32gb", "--fs", "ext4", "--for", "logger"];
        let output = Command::new(env!("CARGO_BIN_EXE_whichfs"))
            .args([&words[..], per, &["--json"]].concat())
            .current_dir(home.path())
            .env("XDG_DATA_HOME", home.path().join("data"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let by_bytes = life(&["--per-day", "500M"]);
    let load = &by_bytes["filesystem"];
    let amplification: Vec<f64> = load["write_amplification"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one.as_f64().unwrap())
        .collect();
    assert!(
        1.0 < amplification[0] && amplification[0] <= amplification[1],
        "{by_bytes}"
    );
    assert_eq!(load["full_percent"], 80);
    let by_runs = life(&["--times-a-day", "3"]);
    assert_eq!(
        by_runs["filesystem"]["trial"], load["trial"],
        "the trial is kept"
    );
    assert_eq!(by_runs["filesystem"]["times_a_day"], 3.0);
    assert_eq!(life(&[])["filesystem"]["times_a_day"], 1.0);
}
