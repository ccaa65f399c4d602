//! The shipped profiles against the measurements they cite. The tolerance beside a figure is
//! what this version of the model claims, not what one would wish.
#![allow(clippy::unwrap_used)]

use crate::common;

use common::{open_aus, random, sequential, shipped};
use whichfs_card::Card;
use whichfs_units::{KIB, MIB};

/// Compares a figure; `percent` is how far it may be off, up or down, as a factor.
fn check(what: &str, modelled: f64, measured: f64, percent: f64) {
    let factor = (modelled / measured).max(measured / modelled);
    println!("{what}: modelled {modelled:.1}, measured {measured:.1}");
    assert!(
        factor <= 1.0 + percent / 100.0,
        "{what}: modelled {modelled:.2}, measured {measured:.2}, tolerance {percent} %"
    );
}

#[test]
fn class4_is_like_wb5() {
    let profile = shipped("class4-4gb");
    let mut card = Card::used(&profile, 1);
    check(
        "sequential write MB/s",
        sequential(&mut card, 64 * MIB, 4 * MIB, 16, true),
        4.9,
        10.0,
    );
    check(
        "sequential read MB/s",
        sequential(&mut card, 64 * MIB, 128 * KIB, 500, false),
        16.2,
        10.0,
    );
    let mut ms = |aus, block, random| open_aus(&mut card, &profile, aus, block, random);
    // flashbench.json run 5_2, in ms a write.
    check("lin 1, 16K", ms(1, 16 * KIB, false), 4.49, 10.0);
    check("lin 1, 64K", ms(1, 64 * KIB, false), 12.85, 15.0);
    check("lin 1, 1M", ms(1, MIB, false), 210.1, 10.0);
    check("lin 3, 4K", ms(3, 4 * KIB, false), 3.69, 15.0);
    check("lin 3, 16K", ms(3, 16 * KIB, false), 4.96, 20.0);
    check("lin 4, 16K", ms(4, 16 * KIB, false), 905.0, 10.0);
    check("lin 4, 256K", ms(4, 256 * KIB, false), 904.0, 10.0);
    check("lin 4, 2M", ms(4, 2 * MIB, false), 736.0, 25.0);
    check("rnd 1, 4K", ms(1, 4 * KIB, true), 16.6, 35.0);
    check("rnd 1, 16K", ms(1, 16 * KIB, true), 17.8, 35.0);
    check("rnd 1, 64K", ms(1, 64 * KIB, true), 53.3, 20.0);
    check("rnd 1, 256K", ms(1, 256 * KIB, true), 153.3, 50.0);
    check("rnd 3, 16K", ms(3, 16 * KIB, true), 16.2, 35.0);
    check("rnd 4, 64K", ms(4, 64 * KIB, true), 585.0, 70.0);
}

#[test]
fn class10_is_like_pt2() {
    let profile = shipped("class10-16gb");
    let mut card = Card::used(&profile, 1);
    check(
        "sequential write MB/s",
        sequential(&mut card, 64 * MIB, 4 * MIB, 16, true),
        11.2,
        10.0,
    );
    check(
        "sequential read MB/s",
        sequential(&mut card, 64 * MIB, 128 * KIB, 500, false),
        20.4,
        10.0,
    );
    let mut iops = |block| 1e3 / open_aus(&mut card, &profile, 1, block, true);
    check("random 4K in one AU, IOPS", iops(4 * KIB), 293.0, 30.0);
    check("random 16K in one AU, IOPS", iops(16 * KIB), 277.0, 30.0);
    check("random 64K in one AU, IOPS", iops(64 * KIB), 134.0, 40.0);
    let collapsed = open_aus(&mut card, &profile, 6, 16 * KIB, false);
    // PT2 gives no figure for it; WB6, of its kind, has one, and the copy rate is in its range.
    check("six AUs, 16K, ms (WB6)", collapsed, 468.0, 10.0);
}

#[test]
fn a1_keeps_its_class_and_is_like_the_cards_that_carry_it() {
    let profile = shipped("a1-32gb");
    let mut card = Card::used(&profile, 1);
    let read = random(&mut card, 0, 256 * MIB, 4 * KIB, 5000, false);
    check("random 4K reads, IOPS (PD4-9)", read, 2455.0, 15.0);
    // iozone works on 100 MB.
    let write = random(&mut card, 512 * MIB, 100 * MIB, 4 * KIB, 20_000, true);
    check("random 4K writes, IOPS (PD4-9)", write, 1175.0, 20.0);
    let stream = sequential(&mut card, 1024 * MIB, 512 * KIB, 1000, true);
    check(
        "sequential write MB/s (chosen between PD4-5 and PD4-9)",
        stream,
        30.0,
        25.0,
    );
    let reading = sequential(&mut card, 1024 * MIB, 512 * KIB, 1000, false);
    check(
        "sequential read MB/s (expected at 512K; BM11 has 93 at 16M)",
        reading,
        82.0,
        15.0,
    );
    // A12: 1500 random reads, 500 random writes a second, 10 MB/s sustained.
    assert!(read >= 1500.0 && write >= 500.0 && stream >= 10.0);
}

#[test]
fn emmc_is_like_em1_and_between_its_neighbours() {
    let profile = shipped("emmc-8gb");
    let mut card = Card::used(&profile, 1);
    check(
        "random 4K reads, IOPS",
        random(&mut card, 0, 100 * MIB, 4 * KIB, 5000, false),
        4187.0,
        15.0,
    );
    check(
        "sequential read MB/s",
        sequential(&mut card, 0, 512 * KIB, 200, false),
        167.0,
        15.0,
    );
    check(
        "random 16K writes, IOPS",
        random(&mut card, 0, 100 * MIB, 16 * KIB, 20_000, true),
        1150.0,
        15.0,
    );
    let stream = sequential(&mut card, 256 * MIB, 512 * KIB, 1000, true);
    check(
        "sequential write MB/s (chosen between EL1 6 and EM1 98)",
        stream,
        40.0,
        15.0,
    );
}

#[test]
fn usb_stick_is_like_pd2_16() {
    let profile = shipped("usb-32gb");
    let mut card = Card::used(&profile, 1);
    check(
        "random 4K reads, IOPS",
        random(&mut card, 0, 100 * MIB, 4 * KIB, 5000, false),
        1248.0,
        15.0,
    );
    check(
        "random 4K writes, IOPS",
        random(&mut card, 0, 100 * MIB, 4 * KIB, 5000, true),
        268.0,
        15.0,
    );
    check(
        "sequential read MB/s",
        sequential(&mut card, 0, 120 * KIB, 2000, false),
        31.7,
        15.0,
    );
    check(
        "sequential write MB/s",
        sequential(&mut card, 512 * MIB, 120 * KIB, 2000, true),
        14.5,
        15.0,
    );
}
