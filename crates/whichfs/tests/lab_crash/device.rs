//! Faults while the image is mounted, read and repaired.

use super::{crash, cuts};
use serde_json::Value;

/// The cuts under a fault, of one filesystem; none without a lab.
fn with(fault: &str, fs: &str, count: &str) -> Option<Vec<Value>> {
    let arguments = ["--fs", fs, "--faults", fault, "--cuts", count];
    let (status, document) = crash(&arguments)?;
    let cuts = cuts(&document).clone();
    let broken = cuts.iter().any(|cut| cut["broken"] == true);
    assert_eq!(status, i32::from(broken));
    Some(cuts)
}

/// Number of cuts after which the filesystem was in the condition `name`.
fn conditions(cuts: &[Value], name: &str) -> usize {
    cuts.iter().filter(|cut| cut["condition"] == name).count()
}

/// All outcomes of files at the first mount.
fn outcomes(cuts: &[Value]) -> Vec<&str> {
    let findings = cuts
        .iter()
        .flat_map(|cut| cut["findings"].as_array().unwrap());
    findings
        .map(|finding| finding["outcome"].as_str().unwrap())
        .collect()
}

fn none_is_broken(cuts: &[Value]) {
    let alarm = cuts.iter().find(|cut| cut["broken"] == true);
    assert!(alarm.is_none(), "{:#}", alarm.unwrap());
}

#[test]
fn lab_a_dead_card_is_the_cards_failure() {
    for fs in ["ext4", "btrfs"] {
        let Some(cuts) = with("dead", fs, "3") else {
            return;
        };
        assert_eq!(conditions(&cuts, "card_failed"), 3, "{fs}");
        none_is_broken(&cuts);
    }
}

/// ext4 marks its superblock before it mounts, so that a card that does not write does not mount;
/// f2fs mounts and serves what it has.
#[test]
fn lab_a_card_that_does_not_write_is_told_from_one_that_does_not_read() {
    for (fs, condition) in [("ext4", "card_failed"), ("f2fs", "read_only")] {
        let Some(cuts) = with("stuck-read-only", fs, "end") else {
            return;
        };
        assert_eq!(conditions(&cuts, condition), 1, "{fs}");
        assert!(cuts[0]["failed_requests"].as_u64().unwrap() > 0);
        assert!(outcomes(&cuts).is_empty(), "all of it is read");
        none_is_broken(&cuts);
    }
}

/// What the card does not give is a read error, of the files that lie there and no others, and
/// breaks no promise.
#[test]
fn lab_what_the_card_does_not_give_is_a_read_error() {
    for fault in ["io-errors", "io-errors-passing"] {
        let Some(cuts) = with(fault, "ext4", "8") else {
            return;
        };
        none_is_broken(&cuts);
        let hit: Vec<Value> = cuts
            .into_iter()
            .filter(|cut| cut["failed_requests"].as_u64().unwrap() > 0)
            .collect();
        assert!(hit.len() >= 4, "{fault}: {} cuts were hit", hit.len());
        let told = [
            "durable_lost",
            "repaired_with_loss",
            "repaired",
            "recovered",
        ];
        for cut in &hit {
            let condition = cut["condition"].as_str().unwrap();
            assert!(told.contains(&condition), "{fault}: {condition}");
        }
        let seen = outcomes(&hit);
        assert!(seen.contains(&"read_error"), "{fault}: {seen:?}");
        // What nothing made durable may be old or missing; garbage there is none.
        let known = ["read_error", "old", "missing", "emptied", "zeroed"];
        assert!(seen.iter().all(|name| known.contains(name)), "{seen:?}");
    }
}

/// ext4 has no checksums of data: it gives what the card gives. btrfs has, and refuses.
#[test]
fn lab_what_the_card_corrupts_is_silent_only_where_nothing_checks_it() {
    for (fs, silent) in [("ext4", true), ("btrfs", false)] {
        let arguments = [
            "--fs",
            fs,
            "--faults",
            "reads-corrupted",
            "--cuts",
            "8",
            "--no-fsck",
        ];
        let Some((status, document)) = crash(&arguments) else {
            return;
        };
        let cuts = cuts(&document);
        assert_eq!(status, 1, "{fs}: not noticed");
        assert_eq!(conditions(cuts, "silent_corruption") > 0, silent, "{fs}");
        let seen = outcomes(cuts);
        assert_eq!(seen.contains(&"wrong_silently"), silent, "{fs}: {seen:?}");
        assert!(seen.contains(&"read_error") || silent, "{fs}: {seen:?}");
        assert!(cuts.iter().all(|cut| cut["failed_requests"] == 0));
    }
}
