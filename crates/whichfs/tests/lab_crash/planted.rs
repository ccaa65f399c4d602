//! Faults of the card at the cut and before it, of the mount, and of the program.

use crate::{crash, cuts};
use serde_json::Value;
use std::collections::BTreeSet;

/// A fault, a card on which it must show, a filesystem, and what it may make of that: the
/// conditions of cuts that break a promise, and the outcomes of files that do.
struct Planted {
    faults: &'static str,
    card: &'static str,
    fs: &'static str,
    conditions: &'static [&'static str],
    outcomes: &'static [&'static str],
    cuts: &'static str,
}

const fn on_sd(
    faults: &'static str,
    fs: &'static str,
    conditions: &'static [&'static str],
    outcomes: &'static [&'static str],
) -> Planted {
    Planted {
        faults,
        card: "a1-32gb",
        fs,
        conditions,
        outcomes,
        cuts: "24",
    }
}

/// With more cuts, where few hit a file.
const fn more(planted: Planted) -> Planted {
    Planted {
        cuts: "48",
        ..planted
    }
}

const fn on_emmc(planted: Planted) -> Planted {
    Planted {
        card: "emmc-8gb",
        ..planted
    }
}

/// What is lost without damage to what is there.
const LOST: &[&str] = &[
    "old",
    "missing",
    "emptied",
    "truncated",
    "zeroed",
    "unexpected",
];
/// The same where a journal is lost in part, so that structure suffers too.
const LOST_OR_UNREADABLE: &[&str] = &[
    "old",
    "missing",
    "emptied",
    "truncated",
    "zeroed",
    "unexpected",
    "read_error",
];
/// Garbage, where nothing checks the data.
const GARBAGE: &[&str] = &["wrong_silently", "wrong_with_warning", "read_error"];
const LOST_OR_GARBAGE: &[&str] = &[
    "old",
    "missing",
    "emptied",
    "truncated",
    "zeroed",
    "unexpected",
    "read_error",
    "wrong_silently",
    "wrong_with_warning",
];

/// An SD card has no cache that the kernel would flush, so there a cache is a fault by itself.
const PLANTED: [Planted; 13] = [
    // Where a block of extents is lost, a file reads as zeros in parts, without a word.
    on_sd(
        "reorder",
        "ext4",
        &[
            "repaired",
            "repaired_with_loss",
            "durable_lost",
            "silent_corruption",
        ],
        LOST_OR_GARBAGE,
    ),
    on_emmc(on_sd(
        "flush-lies",
        "ext4",
        &["durable_lost", "silent_corruption"],
        &["old", "zeroed", "wrong_silently"],
    )),
    // btrfs finds by its checksums what it cannot use: never garbage without a word.
    on_emmc(on_sd(
        "flush-lies,reorder",
        "btrfs",
        &["unfixable", "durable_lost"],
        LOST_OR_UNREADABLE,
    )),
    // ext4 does not check data: the noise is silent, unless it hits metadata.
    on_sd(
        "torn-page",
        "ext4",
        &["silent_corruption", "repaired", "repaired_with_loss"],
        &["wrong_silently", "missing"],
    ),
    more(on_sd(
        "torn-reported",
        "ext4",
        &[
            "durable_lost",
            "silent_corruption",
            "repaired",
            "repaired_with_loss",
        ],
        LOST_OR_GARBAGE,
    )),
    on_sd(
        "au-rollback",
        "ext4",
        &["durable_lost", "needs_check", "silent_corruption"],
        LOST_OR_GARBAGE,
    ),
    on_sd("small-lost", "ext4", &["durable_lost"], LOST_OR_UNREADABLE),
    more(on_sd(
        "neighbour",
        "btrfs",
        &["unfixable", "durable_lost"],
        &["read_error"],
    )),
    on_sd(
        "zeroed-after",
        "ext4",
        &["repaired_with_loss"],
        &["missing", "wrong_with_warning"],
    ),
    // By the instant it is metadata, which f2fs checks, or data, which it does not.
    on_sd(
        "zeroed-alternately",
        "f2fs",
        &["durable_lost", "silent_corruption", "unfixable"],
        LOST_OR_GARBAGE,
    ),
    on_sd("dropped", "ext4", &["durable_lost"], LOST),
    on_sd(
        "bit-rot",
        "ext4",
        // A bit of metadata is found by their checksums, and a repair may drop what it cannot read.
        &[
            "durable_lost",
            "silent_corruption",
            "needs_check",
            "repaired_with_loss",
        ],
        GARBAGE,
    ),
    on_sd(
        "misdirected",
        "ext4",
        &["durable_lost", "silent_corruption"],
        &["old", "zeroed", "wrong_silently"],
    ),
];

#[test]
fn lab_every_fault_of_the_card_is_caught_and_called_by_its_name() {
    for planted in &PLANTED {
        let arguments = [
            "--fs",
            planted.fs,
            "--faults",
            planted.faults,
            "--card",
            planted.card,
            "--cuts",
            planted.cuts,
        ];
        let Some((status, document)) = crash(&arguments) else {
            return;
        };
        let what = format!("{} with {}", planted.faults, planted.fs);
        assert_eq!(status, 1, "{what} was not noticed");
        let (conditions, outcomes) = broken(&document);
        assert!(!conditions.is_empty(), "{what}");
        let allowed = |seen: &BTreeSet<String>, names: &[&str]| {
            seen.iter().all(|name| names.contains(&name.as_str()))
        };
        assert!(
            allowed(&conditions, planted.conditions),
            "{what}: {conditions:?}"
        );
        assert!(allowed(&outcomes, planted.outcomes), "{what}: {outcomes:?}");
        assert_eq!(outcomes.is_empty(), planted.outcomes.is_empty(), "{what}");
    }
}

/// Conditions of the cuts that break a promise, and outcomes of the files that do.
fn broken(document: &Value) -> (BTreeSet<String>, BTreeSet<String>) {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut outcomes = BTreeSet::new();
    let mut conditions = BTreeSet::new();
    for cut in cuts(document).iter().filter(|cut| cut["broken"] == true) {
        conditions.insert(text(&cut["condition"]));
        for list in ["findings", "findings_again"] {
            let findings = cut[list].as_array().unwrap().iter();
            let broken = findings.filter(|finding| finding["broken"] == true);
            outcomes.extend(broken.map(|finding| text(&finding["outcome"])));
        }
    }
    (conditions, outcomes)
}

/// Journals and logs with checksums see where a write was torn at the size of their blocks, and
/// leave it out.
#[test]
fn lab_a_write_torn_between_blocks_is_survived() {
    for fs in ["ext4", "btrfs", "f2fs"] {
        let arguments = ["--fs", fs, "--faults", "torn-4k", "--cuts", "16"];
        let Some((status, document)) = crash(&arguments) else {
            return;
        };
        assert_eq!(status, 0, "{fs}: {:?}", broken(&document));
    }
}

/// The mount is at fault: without barriers the journal does not order what a cache holds. With
/// them the same card at the same cuts breaks nothing.
#[test]
fn lab_a_mount_without_barriers_is_caught() {
    let with = |barrier: &str| {
        let mount = format!("noatime,barrier={barrier}");
        let arguments = [
            "--fs", "ext4", "--mount", &mount, "--card", "emmc-8gb", "--faults", "reorder",
            "--cuts", "40",
        ];
        crash(&arguments)
    };
    let Some((status, document)) = with("1") else {
        return;
    };
    assert_eq!(status, 0, "{:?}", broken(&document));
    let (_, document) = with("0").unwrap();
    // Nothing is promised then, except what fsync says: that is lost.
    let (conditions, outcomes) = broken(&document);
    assert!(conditions.contains("durable_lost"), "{conditions:?}");
    assert!(outcomes.contains("old"), "{outcomes:?}");
}

/// The program is at fault: its fsync does nothing. What was promised is not there; what is there
/// is right, and the filesystem is whole.
#[test]
fn lab_a_program_whose_fsync_does_nothing_is_caught() {
    for fs in ["ext4", "btrfs"] {
        let arguments = |fault: &'static str| {
            let all = ["--fs", fs, "--workload", "logger", "--cuts", "16"];
            [&all[..], &["--faults", fault]].concat()
        };
        let Some((status, document)) = crash(&arguments("sync-ignored")) else {
            return;
        };
        assert_eq!(status, 1, "{fs}: it was not noticed");
        let (conditions, outcomes) = broken(&document);
        assert_eq!(conditions, ["durable_lost".to_owned()].into(), "{fs}");
        let lost = ["old", "missing", "emptied", "truncated"];
        let all = outcomes.iter().all(|name| lost.contains(&name.as_str()));
        assert!(all && !outcomes.is_empty(), "{fs}: {outcomes:?}");
        let (status, document) = crash(&arguments("")[..6]).unwrap();
        assert_eq!(status, 0, "{fs}: {:?}", broken(&document));
    }
}
