//! Faults of the card at the cut, before it and in the run, of the mount, and of the program.
//!
//! Most are shown by a run in which a file is only overwritten in place and each overwrite is
//! synced: nothing but its bytes and the journal is written, so each fault has one thing that it
//! can do to them, and must be called by that name; but for the few cuts, other ones after each
//! change of times, at which the journal was written to its place.

use super::{crash, cuts};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::ops::Range;

/// A fault, what it is shown with, and what every broken promise must be called.
struct Planted {
    faults: &'static str,
    card: &'static str,
    fs: &'static str,
    condition: &'static str,
    outcome: &'static str,
    /// The checker runs too. What these faults do to a file is seen at the first mount, and takes
    /// half the time without it; it runs for one of each kind, and in all other tests.
    fsck: bool,
}

const fn lost(faults: &'static str, card: &'static str) -> Planted {
    Planted {
        faults,
        card,
        fs: "ext4",
        condition: "durable_lost",
        outcome: "old",
        fsck: false,
    }
}

const fn garbage(faults: &'static str, fs: &'static str) -> Planted {
    Planted {
        faults,
        card: "a1-32gb",
        fs,
        condition: "silent_corruption",
        outcome: "wrong_silently",
        fsck: false,
    }
}

const fn checked(planted: Planted) -> Planted {
    Planted {
        fsck: true,
        ..planted
    }
}

/// An SD card has no cache that the kernel would flush, so there a cache is a fault by itself.
const AT_CUT: [Planted; 9] = [
    checked(lost("reorder", "a1-32gb")),
    lost("flush-lies", "emmc-8gb"),
    lost("small-lost", "a1-32gb"),
    lost("au-rollback", "a1-32gb"),
    lost("torn-reported", "a1-32gb"),
    // None of the three has checksums of data.
    checked(garbage("torn-page", "ext4")),
    garbage("torn-page", "f2fs"),
    garbage("neighbour", "ext4"),
    garbage("neighbour", "xfs"),
];

/// Overwrites of a file, 4 KiB each, one block after the other in a scattered order.
const OVERWRITES: u64 = 200;

/// The run: a file of 256 KiB, made durable and then overwritten in place.
fn overwritten() -> tempfile::NamedTempFile {
    let content = |seed: u64| format!("{{\"generated\":{{\"level\":0,\"seed\":{seed}}}}}");
    let mut script = format!(
        "{{\"op\":\"create\",\"path\":\"a\",\"size\":262144,\"content\":{}}}\n\
         {{\"op\":\"sync_fs\"}}\n",
        content(1)
    );
    for number in 0..OVERWRITES {
        let offset = number * 37 % 64 * 4096;
        writeln!(
            script,
            "{{\"op\":\"update\",\"path\":\"a\",\"offset\":{offset},\"len\":4096,\"content\":{}}}",
            content(number + 2)
        )
        .unwrap();
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, script).unwrap();
    file
}

/// `crash run` of the script `file`.
fn scripted(file: &tempfile::NamedTempFile, arguments: &[&str]) -> Option<(i32, Value)> {
    let script = ["--script", file.path().to_str().unwrap()];
    crash(&[&script[..], arguments].concat())
}

/// What broke a promise after the cuts at some requests: the condition of the filesystem and the
/// outcomes of files, for each cut.
fn broken_at(document: &Value, requests: &Range<u64>) -> Vec<(String, BTreeSet<String>)> {
    let hit = cuts(document).iter().filter(|cut| {
        let request = cut["cut"]["request"].as_u64().unwrap();
        cut["broken"] == true && requests.contains(&request)
    });
    hit.map(|cut| (text(&cut["condition"]), broken_files(cut)))
        .collect()
}

/// Outcomes of the files of a cut that break a promise.
fn broken_files(cut: &Value) -> BTreeSet<String> {
    let lists = ["findings", "findings_again"].map(|list| cut[list].as_array().unwrap());
    let findings = lists.into_iter().flatten();
    let broken = findings.filter(|finding| finding["broken"] == true);
    broken.map(|finding| text(&finding["outcome"])).collect()
}

/// Names in a list of findings of a cut that have one of the outcomes.
fn paths(cut: &Value, list: &str, outcomes: &[&str]) -> BTreeSet<String> {
    let findings = cut[list].as_array().unwrap().iter();
    let of_those = findings.filter(|one| outcomes.contains(&one["outcome"].as_str().unwrap()));
    of_those.map(|one| text(&one["path"])).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

#[test]
fn lab_every_fault_of_the_card_at_the_cut_is_called_by_its_name() {
    let script = overwritten();
    for planted in &AT_CUT {
        let Planted { faults, fs, .. } = planted;
        // The profile itself: the shipped card of this name is a distribution, and what lies beside
        // a file on its cards moves with all that is known of cards.
        let card = format!(
            "{}/../../cards/{}.toml",
            env!("CARGO_MANIFEST_DIR"),
            planted.card
        );
        let arguments = [
            "--fs",
            fs,
            "--faults",
            faults,
            "--card",
            &card,
            "--cuts",
            "40",
            "--no-fsck",
        ];
        let arguments = &arguments[..arguments.len() - usize::from(planted.fsck)];
        let Some((status, document)) = scripted(&script, arguments) else {
            return;
        };
        assert_eq!(status, 1, "{faults} with {fs} was not noticed");
        // Long after the file was made, and before the unmount: only overwrites.
        let requests = document["filesystems"][0]["requests"].as_u64().unwrap();
        let broken = broken_at(&document, &(requests / 2..requests * 9 / 10));
        assert!(broken.len() >= 2, "{faults} with {fs}: {}", broken.len());
        let right = named(&broken, planted.condition, planted.outcome);
        assert!(
            right * 4 >= broken.len() * 3,
            "{faults} with {fs}: {broken:?}"
        );
    }
}

/// How many cuts are called by this condition of the filesystem and this outcome of files alone.
fn named(broken: &[(String, BTreeSet<String>)], condition: &str, outcome: &str) -> usize {
    let outcomes = BTreeSet::from([outcome.to_owned()]);
    let by_name = |found: &&(String, BTreeSet<String>)| found.0 == condition && found.1 == outcomes;
    broken.iter().filter(by_name).count()
}

/// Damage without a cut: the run is judged when it has ended.
#[test]
fn lab_every_fault_of_the_card_in_a_run_is_called_by_its_name() {
    let overwritten = overwritten();
    let large = tempfile::NamedTempFile::new().unwrap();
    let content = r#"{"generated":{"level":0,"seed":1}}"#;
    let made = format!(r#"{{"op":"create","path":"a","size":33554432,"content":{content}}}"#);
    std::fs::write(&large, made).unwrap();
    // ext4 finds its own damage by checksums; the data have none.
    let planted = [
        ("dropped", &overwritten, "durable_lost", "old", 1.0),
        (
            "zeroed-after",
            &overwritten,
            "repaired_with_loss",
            "wrong_silently",
            1.0,
        ),
        (
            "zeroed-alternately",
            &overwritten,
            "repaired_with_loss",
            "wrong_silently",
            1.0,
        ),
        // Some of the writes drawn are metadata's, which the checker finds and repairs.
        (
            "bit-rot",
            &large,
            "silent_corruption",
            "wrong_silently",
            0.4,
        ),
        ("misdirected", &overwritten, "durable_lost", "old", 0.6),
    ];
    for (faults, script, condition, outcome, share) in planted {
        let arguments = ["--fs", "ext4", "--faults", faults, "--cuts", "16"];
        let Some((status, document)) = scripted(script, &arguments) else {
            return;
        };
        assert_eq!(status, 1, "{faults} was not noticed");
        let broken = broken_at(&document, &(0..u64::MAX));
        let right = named(&broken, condition, outcome);
        let enough = right as f64 >= broken.len() as f64 * share;
        assert!(enough, "{faults}: {broken:?}");
    }
}

/// btrfs finds by its checksums what it cannot use: an error, never garbage without a word.
#[test]
fn lab_checksums_of_data_leave_no_garbage() {
    for (faults, card) in [("flush-lies,reorder", "emmc-8gb"), ("neighbour", "a1-32gb")] {
        let arguments = [
            "--fs", "btrfs", "--faults", faults, "--card", card, "--cuts", "40",
        ];
        let Some((status, document)) = crash(&arguments) else {
            return;
        };
        assert_eq!(status, 1, "{faults} was not noticed");
        let wrong = ["wrong_silently", "wrong_with_warning"];
        for cut in cuts(&document).iter().filter(|cut| cut["broken"] == true) {
            let told = [
                "durable_lost",
                "needs_check",
                "unfixable",
                "repaired_with_loss",
            ];
            let condition = text(&cut["condition"]);
            assert!(told.contains(&condition.as_str()), "{faults}: {condition}");
            // The checker may leave an empty link where nothing could be read before.
            let unread = paths(cut, "findings", &["read_error"]);
            assert!(paths(cut, "findings", &wrong).is_empty(), "{faults}: {cut}");
            assert!(
                paths(cut, "findings_again", &wrong).is_subset(&unread),
                "{faults}: {cut}"
            );
        }
    }
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
        assert_eq!(
            status,
            0,
            "{fs}: {:?}",
            broken_at(&document, &(0..u64::MAX))
        );
    }
}

/// The mount is at fault: without barriers a cache holds what fsync had promised. With them the
/// same card at the same cuts breaks nothing, unless its flushes lie.
#[test]
fn lab_a_mount_without_barriers_is_caught() {
    let script = overwritten();
    let with = |mount: &str, faults: &str| {
        let mount = format!("noatime,{mount}");
        let arguments = [
            "--fs", "ext4", "--mount", &mount, "--card", "emmc-8gb", "--faults", faults, "--cuts",
            "40",
        ];
        scripted(&script, &arguments)
    };
    let Some((status, document)) = with("barrier=1", "reorder") else {
        return;
    };
    let all = 0..u64::MAX;
    assert_eq!(status, 0, "{:?}", broken_at(&document, &all));
    for faults in ["reorder", "flush-lies"] {
        let (_, document) = with("barrier=0", faults).unwrap();
        let requests = document["filesystems"][0]["requests"].as_u64().unwrap();
        let broken = broken_at(&document, &(requests / 2..requests * 9 / 10));
        assert!(!broken.is_empty(), "{faults}");
        for (condition, outcomes) in broken {
            // The checker may have had to repair what else the cache held.
            let lost = ["durable_lost", "repaired_with_loss"].contains(&condition.as_str());
            assert!(lost, "{faults}: {condition}");
            assert_eq!(outcomes, ["old".to_owned()].into(), "{faults}: {condition}");
        }
    }
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
        let lost = ["old", "missing", "emptied", "truncated"];
        for (condition, outcomes) in broken_at(&document, &(0..u64::MAX)) {
            assert_eq!(condition, "durable_lost", "{fs}");
            let all = outcomes.iter().all(|name| lost.contains(&name.as_str()));
            assert!(all && !outcomes.is_empty(), "{fs}: {outcomes:?}");
        }
        let (status, document) = crash(&arguments("")[..6]).unwrap();
        assert_eq!(
            status,
            0,
            "{fs}: {:?}",
            broken_at(&document, &(0..u64::MAX))
        );
    }
}

/// A card that refuses writes is told: the call that waits for them fails, and the run ends there.
/// What had been promised before is kept. A program that does not ask is not told, and loses it.
#[test]
fn lab_writes_that_the_card_refuses_are_told_by_fsync() {
    let script = overwritten();
    let mut deceived = 0;
    // On a card without a cache btrfs is not told of its superblock (docs/crash.md, reproducers).
    for (fs, card) in [
        ("ext4", "a1-32gb"),
        ("xfs", "a1-32gb"),
        ("f2fs", "a1-32gb"),
        ("btrfs", "emmc-8gb"),
    ] {
        let with = |faults: &str, cuts: &str| {
            let arguments = [
                "--fs", fs, "--card", card, "--faults", faults, "--cuts", cuts,
            ];
            scripted(&script, &arguments)
        };
        for faults in ["write-errors", "write-errors-passing"] {
            let Some((status, document)) = with(faults, "12") else {
                return;
            };
            assert_eq!(
                status,
                0,
                "{fs}: {:?}",
                broken_at(&document, &(0..u64::MAX))
            );
            let ended = text(&document["filesystems"][0]["ended"]);
            assert!(
                ended.contains("EIO") || ended.contains("EROFS"),
                "{fs}: {ended}"
            );
            let refused = |cut: &Value| cut["refused_writes"].as_u64().unwrap();
            assert!(cuts(&document).iter().any(|cut| refused(cut) > 0), "{fs}");
        }
        let (status, _) = with("sync-ignored", "end").unwrap();
        assert_eq!(status, 0, "{fs}: the unmount wrote all");
        // Nobody asks, so nobody is told, unless the filesystem itself stops.
        let (status, document) = with("write-errors,sync-ignored", "end").unwrap();
        let stopped = document["filesystems"][0]["ended"].is_string();
        assert!(status == 1 || stopped, "{fs}: {document:#}");
        deceived += status;
    }
    assert!(deceived > 0, "no filesystem lost what nobody asked for");
}
