//! The whole way of a card: probed, decided in the lab, confirmed on the card, which is a modelled
//! one that is attached (root, FUSE, loop devices, the lab kernel and the agent are needed).
#![allow(clippy::unwrap_used)]

use crate::cards;

use cards::{Attached, Card, skip};

#[test]
fn lab_confirm_the_two_best_of_the_lab_are_measured_on_the_card() {
    if std::env::var_os("WHICHFS_KERNEL").is_none()
        || std::env::var_os("WHICHFS_USERLAND").is_none()
    {
        return skip::skip("WHICHFS_KERNEL and WHICHFS_USERLAND are not set (make test sets them)");
    }
    let Some(card) = Card::new(64) else { return };
    let Some(attached) = Attached::new(&card) else {
        return;
    };
    let (code, out, err) = card.run(&attached.study(&["--dry-run"]));
    assert_eq!(code, 0, "{err}");
    let id = out
        .rsplit("--destroy ")
        .next()
        .unwrap()
        .trim()
        .trim_matches('\'');
    let candidates = ["--fs", "ext4,ext3,btrfs"];
    let choose = [
        "choose",
        "--for",
        "logger",
        "--card",
        &attached.path,
        "--confirm",
    ];
    let sizes = ["--seeds", "2", "--settle", "0"];
    let all = [&choose[..], &candidates[..], &sizes[..]].concat();
    // Nothing is written without consent.
    let (code, _, err) = card.run(&all);
    assert!(code == 2 && err.contains("--destroy"), "{code} {err}");

    let (code, out, err) = card.run(&[&all[..], &["--destroy", id]].concat());
    assert_eq!(code, 0, "{out}{err}");
    for words in [
        "Figures are modelled",
        "On the device",
        "lab → device",
        "log_append",
    ] {
        assert!(out.contains(words), "{words}: {out}{err}");
    }
    let told = [
        "The device agrees",
        "The device disagrees",
        "cannot be told apart",
        "cannot tell them apart",
        "Believe the device",
    ];
    assert!(told.iter().any(|words| out.contains(words)), "{out}");
    assert!(out.contains("reference runs"), "whether it changed: {out}");
    let profiles = card.home.path().join("whichfs/cards");
    assert_eq!(
        std::fs::read_dir(profiles).unwrap().count(),
        1,
        "its profile is kept"
    );
    let csv = std::fs::read_to_string(card.home.path().join("whichfs-report/latest/results.csv"))
        .unwrap();
    let measured = csv.lines().filter(|line| line.contains(",real,"));
    let names: std::collections::BTreeSet<&str> = ["ext4", "ext3", "btrfs"]
        .into_iter()
        .filter(|name| measured.clone().any(|line| line.contains(name)))
        .collect();
    assert_eq!(names.len(), 2, "the two best were measured: {names:?}");

    // Trials of both places are in the store: the same command asks for nothing and measures
    // nothing again.
    let (code, again, err) = card.run(&all);
    assert_eq!(code, 0, "{again}{err}");
    assert!(again.contains("On the device"), "{again}");
}
