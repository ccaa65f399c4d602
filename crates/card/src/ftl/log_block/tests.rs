//! The checker of the block map must find what is planted.
#![allow(clippy::unwrap_used)]

use super::*;

fn tiny() -> LogBlock {
    let (_, toml) = crate::builtin()
        .iter()
        .find(|(name, _)| *name == "class10-16gb")
        .unwrap();
    let mut ftl = LogBlock::new(&Profile::parse("class10-16gb", toml).unwrap());
    let mut stats = Stats::default();
    for step in 0..3000_u64 {
        ftl.write(
            step * 7919 % 3000 * 65_536,
            16_384,
            Order::default(),
            &mut stats,
        );
    }
    ftl.verify().unwrap();
    assert!(stats.au_copies > 0 && ftl.slots.len() > 1);
    ftl
}

fn check_finds(what: &str, plant: impl Fn(&mut LogBlock)) {
    let mut ftl = tiny();
    plant(&mut ftl);
    let violation = ftl.verify().expect_err(what);
    assert!(!violation.0.is_empty());
}

#[test]
fn the_checker_finds_every_planted_fault() {
    check_finds("two AUs in one block", |ftl| {
        let block = ftl.map.read(5);
        ftl.map.replace(6, block);
    });
    check_finds("a block beyond the card", |ftl| {
        ftl.map.replace(5, 1 << 20);
    });
    check_finds("an AU lost", |ftl| {
        ftl.map.replace(5, NONE);
    });
    check_finds("a log that is a mother too", |ftl| {
        ftl.slots[0].logs[0] = ftl.map.read(5);
    });
    check_finds("a block that is lost", |ftl| {
        ftl.pool.take();
    });
    check_finds("a block freed while in use", |ftl| {
        let block = ftl.slots[0].logs[0];
        ftl.pool.erase(block);
    });
    check_finds("one AU open twice", |ftl| {
        ftl.slots[1].au = ftl.slots[0].au;
    });
    check_finds("chaotic logs miscounted", |ftl| {
        ftl.slots[0].chaotic = !ftl.slots[0].chaotic;
    });
    check_finds("more open AUs than slots", |ftl| {
        ftl.rules.open_linear = 1;
    });
    check_finds("a full small-write area", |ftl| ftl.small_fill.overfill());
    check_finds("more pages than logs hold", |ftl| {
        ftl.slots[0].used_pages = 5 * ftl.rules.pages_per_au() + 1;
    });
}

#[test]
fn pages_are_counted_whole_and_in_part() {
    let rules = tiny().rules;
    let page = rules.page_bytes as u32;
    assert_eq!(rules.pages_touched(0, page), 1);
    assert_eq!(rules.pages_touched(512, 512), 1);
    assert_eq!(rules.pages_touched(page - 512, 1024), 2);
    assert_eq!(rules.pages_touched(512, 2 * page), 3);
    assert_eq!(rules.pages_touched(page, 3 * page + 512), 4);
}

#[test]
fn a_chaotic_au_begins_anew_while_all_others_are_open() {
    let (name, toml) = crate::builtin()
        .iter()
        .find(|(name, _)| *name == "class6-8gb")
        .unwrap();
    let profile = Profile::parse(name, toml).unwrap();
    let (mut ftl, mut stats) = (LogBlock::new(&profile), Stats::default());
    let (au, block) = (profile.au_bytes(), profile.au_bytes() / 64);
    let mut write = |ftl: &mut LogBlock, offset, bytes| {
        ftl.write(offset, bytes, Order::default(), &mut stats);
        stats.au_copies
    };
    for at in 0..3 {
        write(&mut ftl, at * au, au);
    }
    for at in 1..3 {
        write(&mut ftl, at * au, block);
    }
    for at in [5, 3, 7] {
        write(&mut ftl, at * block, block);
    }
    assert_eq!((ftl.slots.len(), ftl.chaotic), (3, 1));
    let before = write(&mut ftl, 9 * block, block);
    for at in 0..64 {
        assert_eq!(write(&mut ftl, at * block, block), before, "block {at}");
    }
    ftl.verify().unwrap();
}
