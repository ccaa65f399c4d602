//! Images of small logs, written out by hand.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::cut::tests::write as logged;
use crate::cut::{CutPlace, cut_at};
use crate::fault::BLOCK;
use crate::faults::tests::fault;
use std::collections::BTreeSet;
use whichfs_units::{KIB, Nanos};

/// One image by itself.
fn image(
    base: &Contents,
    log: &[Logged],
    card: &CardFacts,
    faults: &Faults,
    cut: &Cut,
) -> Result<Contents, ContentsError> {
    Timeline::new(base.clone(), log.to_vec())?.image(card, faults, cut)
}

const SD: CardFacts = CardFacts {
    cache_bytes: 0,
    page_bytes: 16 * KIB,
    au_bytes: 1 << 20,
    small_write_bytes: 0,
};
const EMMC: CardFacts = CardFacts {
    cache_bytes: 64 * KIB,
    ..SD
};

fn flush(arrived: u64, done: u64) -> Logged {
    Logged {
        op: RequestKind::Flush,
        ..logged(0, 0, 0, arrived, done)
    }
}

/// Twenty writes of 4 KiB one after the other, a flush after the tenth.
fn log() -> Vec<Logged> {
    let mut log: Vec<Logged> = (0..20)
        .map(|n| logged(n * BLOCK, n as u8 + 1, BLOCK, n * 1000, n * 1000 + 600))
        .collect();
    log.insert(10, flush(9700, 9900));
    log
}

fn at(log: &[Logged], at: u64, seed: u64) -> Cut {
    let place = CutPlace::After;
    Cut {
        number: 0,
        request: log.len() - 1,
        place,
        at: Nanos(at),
        seed,
    }
}

/// First bytes of the first twenty blocks.
fn blocks(card: &CardFacts, faults: &[Fault], cut: &Cut) -> Vec<u8> {
    let base = Contents::new(4 << 20);
    let faults = faults.iter().copied().collect();
    let mut contents = image(&base, &log(), card, &faults, cut).unwrap();
    let mut bytes = vec![0; 20 * BLOCK as usize];
    contents.read(0, &mut bytes).unwrap();
    bytes.chunks(BLOCK as usize).map(|block| block[1]).collect()
}

fn written(count: u8) -> Vec<u8> {
    (1..=20).map(|n| if n <= count { n } else { 0 }).collect()
}

#[test]
fn an_sd_card_keeps_what_it_reported_done() {
    for seed in 0..20 {
        assert_eq!(blocks(&SD, &[], &at(&log(), 5700, seed)), written(6));
        assert_eq!(blocks(&SD, &[], &at(&log(), 1 << 40, seed)), written(20));
    }
}

#[test]
fn a_write_under_way_leaves_a_prefix_of_whole_pages() {
    // From the middle of a page over two whole ones to the middle of a fourth.
    let log = [logged(2 * BLOCK, 7, 12 * BLOCK, 100, 200)];
    let mut lengths = std::collections::BTreeSet::new();
    for seed in 0..200 {
        let cut = Cut {
            seed,
            ..cut_at(&log, 0, seed)[1]
        };
        let base = Contents::new(4 << 20);
        let mut contents = image(&base, &log, &SD, &Faults::new(), &cut).unwrap();
        let mut bytes = vec![0; 16 * BLOCK as usize];
        contents.read(0, &mut bytes).unwrap();
        let written = &bytes[2 * BLOCK as usize..];
        let kept = written.iter().take_while(|&&byte| byte == 7).count();
        assert!(written[kept..].iter().all(|&byte| byte == 0));
        lengths.insert(kept / BLOCK as usize);
    }
    assert_eq!(lengths, [0, 2, 6, 10, 12].into());
}

#[test]
fn a_cache_loses_the_newest_first_and_nothing_before_a_flush() {
    let mut kept_by_seed = std::collections::BTreeSet::new();
    for seed in 0..100 {
        let found = blocks(&EMMC, &[], &at(&log(), 1 << 40, seed));
        let kept = found.iter().take_while(|&&byte| byte != 0).count();
        assert!((10..=20).contains(&kept), "{found:?}");
        assert_eq!(found, written(kept as u8), "a prefix");
        kept_by_seed.insert(kept);
    }
    assert_eq!(kept_by_seed.len(), 11, "each length occurs");
}

#[test]
fn reordering_loses_in_the_middle_and_a_lying_flush_loses_what_was_flushed() {
    let holes = |faults: &[Fault]| {
        (0..50).any(|seed| {
            let found = blocks(&SD, faults, &at(&log(), 1 << 40, seed));
            let first_lost = found.iter().position(|&byte| byte == 0).unwrap_or(20);
            found[first_lost..].iter().any(|&byte| byte != 0)
        })
    };
    assert!(holes(&[fault("reorder")]) && !holes(&[fault("flush-lies")]));
    let after_flush = at(&log(), 9950, 0);
    let cached_before = |faults: &[Fault]| {
        (0..50).any(|seed| {
            let cut = Cut {
                seed,
                ..after_flush
            };
            blocks(&EMMC, faults, &cut) != written(10)
        })
    };
    assert!(cached_before(&[fault("flush-lies")]) && !cached_before(&[fault("reorder")]));
}

#[test]
fn a_cache_holds_no_more_than_its_size() {
    // 16 blocks fit into 64 KiB, so the first four of twenty are out even without a flush.
    for seed in 0..50 {
        let found = blocks(&EMMC, &[fault("flush-lies")], &at(&log(), 1 << 40, seed));
        assert_eq!(found[..4], [1, 2, 3, 4]);
    }
}

#[test]
fn each_fault_without_a_cut_damages_what_it_says() {
    let end = at(&log(), 1 << 40, 3);
    let mut first_lost = BTreeSet::new();
    for seed in 0..20 {
        let cut = Cut { seed, ..end };
        let dropped = blocks(&SD, &[fault("dropped")], &cut);
        // All up to some block arrived, in the middle half of the run, none behind it.
        let arrived = dropped.iter().take_while(|&&block| block != 0).count();
        assert!((4..=16).contains(&arrived), "{arrived}");
        assert_eq!(dropped, written(arrived as u8));
        first_lost.insert(arrived);
        let base = Contents::new(4 << 20);
        let zeroed = [fault("zeroed-after")].into_iter().collect();
        let mut contents = image(&base, &log(), &SD, &zeroed, &cut).unwrap();
        let bytes = bytes_of(&mut contents);
        let first: Vec<u8> = bytes.chunks(BLOCK as usize).map(|block| block[0]).collect();
        assert_eq!(
            first,
            written(arrived as u8),
            "the same instant of the same seed"
        );
        assert_eq!(
            bytes[19 * BLOCK as usize + 1],
            20,
            "the rest of a block is there"
        );
    }
    assert!(
        first_lost.len() > 3,
        "the seed draws the instant: {first_lost:?}"
    );
    // Small enough that the log lies in several.
    let card = CardFacts {
        au_bytes: 16 * KIB,
        ..SD
    };
    let base = Contents::new(4 << 20);
    for fault in [
        fault("bit-rot"),
        fault("misdirected"),
        fault("small-lost"),
        fault("au-rollback"),
    ] {
        let differs = (0..20).any(|seed| {
            let set = [fault].into_iter().collect();
            let cut = Cut { seed, ..end };
            let mut damaged = image(&base, &log(), &card, &set, &cut).unwrap();
            let mut honest = image(&base, &log(), &card, &Faults::new(), &cut).unwrap();
            bytes_of(&mut damaged) != bytes_of(&mut honest)
        });
        assert!(differs, "{fault:?} changes nothing");
    }
}

fn bytes_of(contents: &mut Contents) -> Vec<u8> {
    let mut bytes = vec![0; 20 * BLOCK as usize];
    contents.read(0, &mut bytes).unwrap();
    bytes
}

#[test]
fn noise_hits_the_page_under_way_or_one_before_it() {
    let log = [
        logged(0, 7, 16 * BLOCK, 0, 50),
        logged(16 * BLOCK, 8, 4 * BLOCK, 100, 200),
    ];
    let base = Contents::new(4 << 20);
    let noisy = |fault: Fault, from: u64, to: u64| {
        (0..40).any(|seed| {
            let cut = Cut {
                seed,
                ..cut_at(&log, 1, seed)[1]
            };
            let set = [fault].into_iter().collect();
            let mut contents = image(&base, &log, &SD, &set, &cut).unwrap();
            let mut bytes = vec![0; ((to - from) * BLOCK) as usize];
            contents.read(from * BLOCK, &mut bytes).unwrap();
            bytes.iter().any(|&byte| ![0, 7, 8].contains(&byte))
        })
    };
    assert!(noisy(fault("torn-page"), 16, 20) && !noisy(fault("torn-page"), 0, 16));
    assert!(noisy(fault("neighbour"), 0, 16) && !noisy(fault("neighbour"), 16, 20));
    // A large request has its neighbours before it, not in it.
    let log = [
        logged(0, 7, 8 * BLOCK, 0, 50),
        logged(8 * BLOCK, 8, 100 * BLOCK, 100, 200),
    ];
    for seed in 0..40 {
        let cut = Cut {
            seed,
            ..cut_at(&log, 1, seed)[1]
        };
        let set = [fault("neighbour")].into_iter().collect();
        let mut contents = image(&base, &log, &SD, &set, &cut).unwrap();
        let mut bytes = vec![0; 100 * BLOCK as usize];
        contents.read(8 * BLOCK, &mut bytes).unwrap();
        assert!(
            bytes.iter().all(|byte| [0, 8].contains(byte)),
            "seed {seed}"
        );
    }
}

#[test]
fn a_write_that_was_reported_can_be_torn_and_no_other() {
    let log = log();
    let base = Contents::new(4 << 20);
    let torn = (0..20).filter(|&seed| {
        let faults = [fault("torn-reported")].into();
        let mut contents = image(&base, &log, &SD, &faults, &at(&log, 5700, seed)).unwrap();
        let mut bytes = vec![0; 6 * BLOCK as usize];
        contents.read(0, &mut bytes).unwrap();
        let (before, newest) = bytes.split_at(5 * BLOCK as usize);
        assert!(before.iter().all(|&byte| byte != 0), "older ones are whole");
        newest.contains(&0) && newest.contains(&6)
    });
    assert!(torn.count() > 15);
}

#[test]
fn the_same_cut_gives_the_same_bytes() {
    let base = Contents::new(4 << 20);
    let all: Faults = Fault::ALL.into_iter().collect();
    for seed in 0..10 {
        let cut = at(&log(), 15_300, seed);
        let mut a = image(&base, &log(), &EMMC, &all, &cut).unwrap();
        let mut b = image(&base, &log(), &EMMC, &all, &cut).unwrap();
        assert_eq!(bytes_of(&mut a), bytes_of(&mut b));
    }
}

#[test]
fn checkpoints_change_nothing() {
    // Longer than two stretches between checkpoints; `slow` has none but the first.
    let log: Vec<Logged> = (0..9000)
        .map(|n| logged(n % 20 * BLOCK, n as u8, BLOCK, n * 1000, n * 1000 + 600))
        .collect();
    let base = Contents::new(4 << 20);
    let quick = Timeline::new(base.clone(), log.clone()).unwrap();
    assert!(quick.checkpoints.len() > 2);
    let mut slow = Timeline::new(base.clone(), log.clone()).unwrap();
    slow.checkpoints.truncate(1);
    let store = Contents::new(64 << 20);
    let stored = Timeline::storing(base.clone(), log.clone(), store).unwrap();
    assert!(stored.log().iter().all(|request| request.data.is_empty()));
    for set in Fault::ALL.map(Some).into_iter().chain([None]) {
        let faults: Faults = set.into_iter().collect();
        for cut in crate::cut::random_cuts(&log, 0, 10, 9) {
            let mut a = quick.image(&EMMC, &faults, &cut).unwrap();
            let mut b = slow.image(&EMMC, &faults, &cut).unwrap();
            let mut c = stored.image(&EMMC, &faults, &cut).unwrap();
            assert_eq!(bytes_of(&mut a), bytes_of(&mut b), "{set:?} {cut:?}");
            assert_eq!(bytes_of(&mut a), bytes_of(&mut c), "{set:?} {cut:?}");
        }
    }
}

#[test]
fn a_cut_inside_the_newest_write_leaves_a_prefix_of_the_cached_ones() {
    let log = log();
    let mut lengths = std::collections::BTreeSet::new();
    for seed in 0..200 {
        // The last write is under way.
        let found = blocks(&EMMC, &[], &at(&log, 19_300, seed));
        let there = found.iter().take_while(|&&byte| byte != 0).count();
        assert!(
            found[there..].iter().all(|&byte| byte == 0),
            "a newer write outlived an older one: {found:?}"
        );
        lengths.insert(there);
    }
    assert!(
        lengths.contains(&20) && lengths.contains(&10),
        "{lengths:?}"
    );
}

#[test]
fn a_write_larger_than_the_cache_can_lose_its_tail() {
    let log = vec![logged(0, 1, 256 * KIB, 0, 1000)];
    let mut kept = std::collections::BTreeSet::new();
    for seed in 0..100 {
        let faults = Faults::new();
        let base = Contents::new(4 << 20);
        let mut made = image(&base, &log, &EMMC, &faults, &at(&log, 2000, seed)).unwrap();
        let mut found = vec![0; 256 << 10];
        made.read(0, &mut found).unwrap();
        let there = found.iter().take_while(|&&byte| byte != 0).count();
        assert!(found[there..].iter().all(|&byte| byte == 0));
        assert!(there as u64 >= 192 * KIB, "the cache holds 64 KiB: {there}");
        kept.insert(there);
    }
    assert!(kept.len() > 10, "{kept:?}");
}

/// A write of 64 KiB under way: the sizes between which it is torn.
#[test]
fn a_write_under_way_is_torn_between_pieces_of_the_size_that_the_fault_says() {
    let log = [logged(0, 7, 64 * KIB, 0, 600)];
    let base = Contents::new(4 << 20);
    // Whether in some image a piece of so many bytes is neither whole nor empty.
    let splits = |fault: Fault, piece: u64| {
        (0..20).any(|seed| {
            let cut = at(&log, 300, seed);
            let mut contents = image(&base, &log, &SD, &[fault].into(), &cut).unwrap();
            let mut bytes = vec![0; 64 << 10];
            contents.read(0, &mut bytes).unwrap();
            bytes
                .chunks(piece as usize)
                .any(|piece| piece.contains(&0) && piece.contains(&7))
        })
    };
    assert!(splits(fault("torn-512"), 1024) && !splits(fault("torn-512"), 512));
    assert!(splits(fault("torn-4k"), 8192) && !splits(fault("torn-4k"), 4096));
}
