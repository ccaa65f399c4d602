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
        worth: 1,
        rest_ns: 1000,
    };
    let blocks = 300_u32.div_ceil(24) + 8;
    let mut ftl = PageMap {
        map: CowArray::new(300, NONE),
        owner: CowArray::new((blocks as usize) << 5, NONE),
        live: Live::new(blocks),
        host: None,
        copies: None,
        mixed: None,
        idle_ns: 0,
        streams: Streams::new(0, 64),
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
        ftl.live.add(block, 1);
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
        ftl.live.close(block);
    });
}

#[test]
fn a_collection_takes_the_emptiest_block_and_costs_its_live_units() {
    let mut ftl = tiny();
    let victim = ftl.live.emptiest().unwrap();
    let live = ftl.live.units(victim);
    let closed = (0..ftl.live.len() as u32).filter(|block| ftl.live.is_closed(*block));
    assert_eq!(closed.map(|block| ftl.live.units(block)).min(), Some(live));
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
    let victim = ftl.live.emptiest().unwrap();
    let cost = u64::from(ftl.live.units(victim)) * 1000 + 5000;
    ftl.idle(cost - 1, &mut stats);
    assert_eq!(stats.erases, 0);
    ftl.idle(1, &mut stats);
    assert_eq!(stats.erases, 1);
    ftl.idle(1 << 40, &mut stats);
    ftl.verify().unwrap();
    assert!(ftl.pool.free() > before);
    assert!(!ftl.wants_idle() || ftl.idle_ns < 30_000);
}

#[test]
fn idle_time_is_not_spent_on_blocks_without_garbage() {
    let mut ftl = tiny();
    ftl.rules.units_per_block = 4;
    ftl.rules.shift = 2;
    ftl.rules.background = 100;
    ftl.owner = CowArray::new(100 << 2, NONE);
    ftl.map = CowArray::new(300, NONE);
    ftl.live = Live::new(100);
    ftl.pool = Pool::new(100);
    (ftl.host, ftl.copies) = (None, None);
    let mut stats = Stats::default();
    // Nothing is closed, and a unit takes long enough for products to overflow.
    ftl.rules.copy_unit_ns = 1 << 34;
    ftl.idle(1 << 50, &mut stats);
    assert_eq!(stats.erases, 0);
    for unit in 0..300 {
        ftl.write(unit * 4096, 4096, Order::default(), &mut stats);
    }
    ftl.write(0, 4096, Order::default(), &mut stats);
    ftl.idle(u64::MAX, &mut stats);
    ftl.idle(u64::MAX, &mut stats);
    assert_eq!(stats.erases, 1, "only the block with garbage");
    ftl.verify().unwrap();
}
