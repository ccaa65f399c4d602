//! The checker of the map must find what is planted; and what a collection does.
#![allow(clippy::unwrap_used)]

use super::*;

fn tiny() -> PageMap {
    let rules = Rules {
        unit: Divisor::new(4096),
        units: 300,
        units_per_block: 24,
        shift: 5,
        program: Program::plain(4096, 1000, 1000),
        copy_unit_ns: 1000,
        erase_ns: 5000,
        modify_ns: 100,
        background: 0,
    };
    let blocks = 300_u32.div_ceil(24) + 8;
    let mut ftl = PageMap {
        map: CowArray::new(300, NONE),
        owner: CowArray::new((blocks as usize) << 5, NONE),
        live: vec![NOT_CLOSED; blocks as usize],
        host: None,
        copies: None,
        mixed: None,
        idle_ns: 0,
        streams: Streams::new(0),
        pool: Pool::new(blocks),
        moving: Vec::new(),
        rules,
    };
    let mut stats = Stats::default();
    for unit in 0..300 {
        ftl.write(unit * 4096, 4096, Order::default(), &mut stats);
    }
    for unit in 0..2000 {
        ftl.write(unit * 7919 % 300 * 4096, 4096, Order::default(), &mut stats);
    }
    ftl.verify().unwrap();
    assert!(stats.au_copies > 0);
    ftl
}

fn check_finds(what: &str, plant: impl Fn(&mut PageMap)) {
    let mut ftl = tiny();
    plant(&mut ftl);
    let violation = ftl.verify().expect_err(what);
    assert!(!violation.0.is_empty());
}

#[test]
fn the_checker_finds_every_planted_fault() {
    check_finds("two units at one place", |ftl| {
        let place = ftl.map.read(7);
        ftl.map.replace(8, place);
    });
    check_finds("an owner overwritten", |ftl| {
        let place = ftl.map.read(7);
        ftl.owner.replace(place as usize, 9);
    });
    check_finds("a unit lost without a count", |ftl| {
        ftl.map.replace(7, NONE);
    });
    check_finds("a unit beyond the card", |ftl| {
        ftl.map.replace(7, 1 << 20);
    });
    check_finds("a wrong count", |ftl| {
        let block = ftl.map.read(7) >> ftl.rules.shift;
        ftl.live[block as usize] += 1;
    });
    check_finds("a block that is lost", |ftl| {
        ftl.pool.take();
    });
    check_finds("a block freed twice", |ftl| {
        let block = ftl.pool.take();
        ftl.pool.erase(block);
        ftl.pool.erase(block);
    });
    check_finds("a block freed with data in it", |ftl| {
        let block = ftl.map.read(7) >> ftl.rules.shift;
        ftl.pool.erase(block);
    });
    check_finds("an open block closed", |ftl| {
        let block = ftl.host.unwrap().block;
        ftl.live[block as usize] &= !NOT_CLOSED;
    });
}

#[test]
fn a_collection_takes_the_emptiest_block_and_costs_its_live_units() {
    let mut ftl = tiny();
    let victim = ftl.emptiest();
    let live = ftl.live[victim as usize];
    let closed = ftl.live.iter().filter(|live| **live & NOT_CLOSED == 0);
    assert_eq!(closed.min(), Some(&live));
    let mut stats = Stats::default();
    let spent = ftl.evacuate(victim, &mut stats);
    assert_eq!(spent, u64::from(live) * 1000 + 5000);
    assert_eq!(stats.programmed_bytes, u64::from(live) * 4096);
    assert_eq!(stats.erases, 1);
    ftl.verify().unwrap();
}

#[test]
fn idle_time_is_spent_on_collecting_and_what_is_left_is_kept() {
    let mut ftl = tiny();
    ftl.rules.background = 5;
    let (before, mut stats) = (ftl.pool.free(), Stats::default());
    assert!(before < 5 && ftl.wants_idle());
    let victim = ftl.emptiest();
    let cost = u64::from(ftl.live[victim as usize]) * 1000 + 5000;
    ftl.idle(cost - 1, &mut stats);
    assert_eq!(stats.erases, 0);
    ftl.idle(1, &mut stats);
    assert_eq!(stats.erases, 1);
    ftl.idle(1 << 40, &mut stats);
    ftl.verify().unwrap();
    assert!(ftl.pool.free() > before);
    assert!(!ftl.wants_idle() || ftl.idle_ns < 30_000);
}
