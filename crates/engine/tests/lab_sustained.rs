//! Sustained trials against what is known: the card's part of write amplification under random
//! overwrites is that of the card's model alone under the same mixture of writes.
#![allow(clippy::unwrap_used)]

use crate::lab_examples::has_lab;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use whichfs_card::{Card, Profile, Request};
use whichfs_engine::board::Board;
use whichfs_engine::cards::{self, CardState, NamedProfile};
use whichfs_engine::clock::Clock;
use whichfs_engine::executor::{Executor, Lease, TrialSpec, WorkerSlot};
use whichfs_engine::images::Images;
use whichfs_engine::lab_executor::LabExecutor;
use whichfs_engine::workload_run::WorkloadRun;
use whichfs_study::Variant;
use whichfs_trial::{DeviceFigures, Trial};
use whichfs_units::{MIB, Nanos, Rng};

const PAGE: u64 = 4096;
/// Files to which a partition of half a GB is filled, and those that are kept.
const FILLED: [u64; 2] = [450 * MIB, 380 * MIB];

/// The trial of random overwrites on ext4 on `card`.
fn overwrites(card: NamedProfile) -> (Trial, Profile) {
    let parameters = [
        ("bytes", FILLED[1]),
        ("peak_bytes", FILLED[0]),
        ("round_bytes", 20 * MIB),
        ("file_min", MIB),
        ("file_max", 2 * MIB),
        ("update_permille", 1000),
    ];
    let parameters = parameters.map(|(name, value)| (name.to_owned(), value));
    let work = WorkloadRun::named("sustained", &BTreeMap::from(parameters)).unwrap();
    let board = Board::open("raspberry-pi-4").unwrap();
    let limit = Duration::from_secs(600);
    let lab = LabExecutor::new(card, CardState::Sustained, board, Clock::Device, limit, 1).unwrap();
    let spec = TrialSpec {
        candidate: whichfs_fs::find("ext4").unwrap(),
        work: &work,
        variant: &Variant::default(),
        seed: 1,
    };
    let prepared = Executor::prepare(&lab, &spec, &Images::unbuilt()).unwrap();
    let (lease, stop) = (lab.lease("overwrites").unwrap(), AtomicBool::new(false));
    let run = lease.run(&prepared, WorkerSlot::default(), &stop, &mut |_, _| ());
    (run.unwrap().unwrap(), lab.card.of_seed(1))
}

/// What the card did in the rounds that count, and the bytes written into files.
fn measured(trial: &Trial) -> (DeviceFigures, u64) {
    let (mut flash, mut bytes) = (DeviceFigures::default(), 0);
    for phase in &trial.outcome.phases {
        if ["sustained_before", "sustained_last"].contains(&phase.phase.as_str()) {
            flash.add(&phase.device);
            bytes += phase.counts.bytes;
        }
    }
    (flash, bytes)
}

/// Write amplification of `profile` where each random page of what is kept comes with `more` bytes in
/// order in a ring of 16 MiB: a journal.
fn simulated(profile: &Profile, more: u64) -> f64 {
    let mut card = Card::used(profile, 1);
    let whole = profile.capacity_bytes();
    let write = |card: &mut Card, at: u64, bytes: u64| {
        card.submit(card.busy_until(), &Request::write(at, bytes));
    };
    card.submit(Nanos::ZERO, &Request::discard(0, whole));
    (0..FILLED[0] / MIB).for_each(|at| write(&mut card, at * MIB, MIB));
    let mut rng = Rng::named(1, "simulated");
    let mut ring = 0;
    let mut rounds = |card: &mut Card, bytes: u64| {
        let before = card.stats().clone();
        for _ in 0..bytes / PAGE {
            write(card, rng.below(FILLED[1] / PAGE) * PAGE, PAGE);
            for _ in 0..more / PAGE {
                write(card, whole - 16 * MIB + ring % (16 * MIB), PAGE);
                ring += PAGE;
            }
        }
        let programmed = card.stats().programmed_bytes - before.programmed_bytes;
        programmed as f64 / (card.stats().write_bytes - before.write_bytes) as f64
    };
    rounds(&mut card, 4 * 20 * MIB);
    rounds(&mut card, 4 * 20 * MIB)
}

#[test]
fn lab_overwrites_on_a_full_ext4_amplify_as_the_card_alone_does() {
    if !has_lab("lab_sustained") {
        return;
    }
    let (trial, profile) = overwrites(cards::open("a1-32gb").unwrap());
    let (flash, bytes) = measured(&trial);
    let found = flash.write_amplification().unwrap();
    let pages = (flash.write_bytes - bytes) as f64 / bytes as f64;
    let expected = simulated(&profile, pages.round() as u64 * PAGE);
    let ratio = found / expected;
    println!("found {found:.2}, expected {expected:.2}, {pages:.2} pages of metadata for each");
    assert!((0.8..1.25).contains(&ratio), "{found} {expected} {pages}");
    // A fault on purpose: a card with ten times the spare area must give clearly less.
    let mut card = cards::open("a1-32gb").unwrap();
    let more = card.profile.with_values(|figure| match figure.path {
        "geometry.spare_aus" => 10 * figure.value,
        _ => figure.value,
    });
    card.profile = more.unwrap();
    let roomy = measured(&overwrites(card).0)
        .0
        .write_amplification()
        .unwrap();
    assert!(roomy - 1.0 < 0.6 * (found - 1.0), "{roomy} {found}");
}
