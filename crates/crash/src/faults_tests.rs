//! Each fault is what its file says; faults of the card hit what was written.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::cut::tests::write;
use crate::fault::{exclude_each_other, fails_writes};
use std::collections::BTreeSet;
use whichfs_blockdev::{Refuses, Tries};
use whichfs_units::SECTOR;

/// The fault called `name`.
pub(crate) fn fault(name: &str) -> Fault {
    name.parse().unwrap()
}

/// Twenty writes of 4 KiB from 1 MiB on.
fn log() -> Vec<Logged> {
    let write = |n: u64| write((1 << 20) + n * 4096, 1, 4096, n * 1000, n * 1000 + 600);
    (0..20).map(write).collect()
}

fn of(faults: &[Fault], seed: u64) -> Defects {
    defects(&log(), &faults.iter().copied().collect(), seed).unwrap()
}

#[test]
fn every_fault_is_found_by_its_name_and_says_what_it_is() {
    for fault in Fault::ALL {
        let facts = fault.facts();
        assert_eq!(fault.name().parse(), Ok(fault));
        assert!(!facts.meaning.is_empty() && !facts.source.is_empty());
        let file = fault.name().replace('-', "_");
        assert!(FILES.contains(&(&file, fault)), "the file has its name");
        let excluded = fault.0.excludes.iter();
        assert!(excluded.clone().all(|name| name.parse::<Fault>().is_ok()));
        let said = serde_json::to_value(fault).unwrap();
        assert_eq!(said, facts.name, "the same name in JSON");
    }
    let names: BTreeSet<&str> = Fault::ALL.into_iter().map(Fault::name).collect();
    assert_eq!(names.len(), Fault::ALL.len());
    let numbers: Vec<u8> = Fault::ALL.iter().map(|fault| fault.0.number).collect();
    assert_eq!(numbers, (1..=names.len() as u8).collect::<Vec<_>>());
    let torn = Faults::from([fault("torn-512"), fault("torn-4k"), fault("dead")]);
    assert_eq!(
        exclude_each_other(&torn),
        Some([fault("torn-512"), fault("torn-4k")])
    );
    assert_eq!(exclude_each_other(&[fault("torn-512")].into()), None);
    let error = "torn".parse::<Fault>().map_err(|e| e.to_string());
    assert!(error.is_err_and(|text| text.contains("torn-512")));
}

#[test]
fn faults_of_other_times_do_nothing_while_it_is_read() {
    let others = Fault::ALL
        .into_iter()
        .filter(|fault| fault.facts().acts != Acts::WhileRead);
    assert_eq!(defects(&log(), &others.collect(), 1), None);
}

#[test]
fn only_what_was_written_is_hit() {
    let hit = of(&[fault("io-errors"), fault("reads-corrupted")], 1);
    assert!(hit.unreadable.len() > 4 && hit.flipped.len() > 4);
    let written = 1 << 20..(1 << 20) + 20 * 4096;
    for sector in hit.unreadable.keys().chain(hit.flipped.keys()) {
        assert!(written.contains(sector) && sector.is_multiple_of(SECTOR));
    }
    assert!(hit.flipped.values().all(|&bit| u64::from(bit) < SECTOR * 8));
    let none = defects(&[], &[fault("io-errors")].into(), 1).unwrap();
    assert_eq!(none, Defects::default());
}

#[test]
fn another_fault_does_not_move_the_places_of_the_first_and_a_seed_does() {
    let alone = of(&[fault("reads-corrupted")], 1);
    let both = of(&[fault("reads-corrupted"), fault("io-errors-passing")], 1);
    assert_eq!(alone.flipped, both.flipped);
    assert_ne!(alone.flipped, of(&[fault("reads-corrupted")], 2).flipped);
    let times = |tries: &Tries| matches!(tries, Tries::FailMore(1..=4));
    assert!(both.unreadable.values().all(times));
}

#[test]
fn a_dead_card_is_dead_whatever_else_it_is() {
    let dead = of(&[fault("dead"), fault("stuck-read-only")], 1);
    assert_eq!(dead.refuses, Refuses::All);
    assert_eq!(of(&[fault("stuck-read-only")], 1).refuses, Refuses::Writes);
}

#[test]
fn what_is_refused_is_what_would_be_written() {
    let written: Vec<Logged> = (0..20)
        .map(|n| write((1 << 20) + n * 4096, 1, 4096, n * 1000, n * 1000 + 600))
        .collect();
    let of = |fault, seed| refusals(&written, 0, &[fault].into(), seed).unwritable;
    let always = of(fault("write-errors"), 1);
    assert!(always.len() > 4 && always.values().all(|tries| *tries == Tries::Fail));
    let range = 1 << 20..(1 << 20) + 20 * 4096;
    assert!(always.keys().all(|sector| range.contains(sector)));
    assert_ne!(always, of(fault("write-errors"), 2));
    let passing = of(fault("write-errors-passing"), 1);
    let some = |tries: &Tries| matches!(tries, Tries::FailMore(1..=4));
    assert!(!passing.is_empty() && passing.values().all(some));
    assert!(of(fault("dead"), 1).is_empty());
    let mount: Vec<Logged> = written[..10].iter().chain(&written).cloned().collect();
    let later = refusals(&mount, 10, &[fault("write-errors")].into(), 1).unwritable;
    let own = (1 << 20) + 10 * 4096..range.end;
    assert!(!later.is_empty() && later.keys().all(|sector| own.contains(sector)));
    assert!(!fails_writes(&[fault("dead")].into()));
    assert!(fails_writes(&[fault("write-errors")].into()));
}
