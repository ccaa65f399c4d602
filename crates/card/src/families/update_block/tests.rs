//! The checker of the update blocks must find what is planted.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::Profile;
use crate::families::FamilyFigures;

fn of(profile: &Profile) -> UpdateBlock {
    match profile.own() {
        FamilyFigures::UpdateBlock(own) => UpdateBlock::new(profile, own),
        own => unreachable!("{own:?}"),
    }
}

fn profile() -> Profile {
    let (name, toml) = crate::builtin()
        .iter()
        .find(|(name, _)| *name == "class4-4gb")
        .unwrap();
    let text = toml
        .replace("\"log-block\"", "\"update-block\"")
        .replace("[log_block]", "[update_block]")
        .replace(
            "random_percent = { value = 310",
            "group_rate_bytes_per_s = { value = 7_700_000",
        );
    Profile::parse(name, &text).unwrap()
}

fn busy() -> UpdateBlock {
    let mut ftl = of(&profile());
    let mut stats = Stats::default();
    for step in 0..4000_u64 {
        let bytes = [4096, 16_384, 65_536][step as usize % 3];
        let offset = step * 7919 % 500 * 65_536;
        ftl.write(offset, bytes, Order::default(), &mut stats);
        ftl.verify().unwrap();
    }
    assert!(stats.au_copies > 0 && ftl.slots.len() > 1 && !ftl.tails.is_empty());
    ftl
}

#[test]
fn the_checker_finds_every_planted_fault() {
    let check = |what: &str, plant: fn(&mut UpdateBlock)| {
        let mut ftl = busy();
        plant(&mut ftl);
        let violation = ftl.verify().expect_err(what);
        assert!(!violation.0.is_empty());
    };
    check("two AUs in one block", |ftl| {
        let block = ftl.map.read(0);
        ftl.map.replace(1, block);
    });
    check("a block beyond the card", |ftl| {
        ftl.map.replace(1, 1 << 20);
    });
    check("an AU lost", |ftl| {
        ftl.map.replace(1, NONE);
    });
    check("an update block that is mapped too", |ftl| {
        ftl.slots[0].block = ftl.map.read(1);
    });
    check("a lost block", |ftl| {
        ftl.pool.take();
    });
    check("one AU open twice", |ftl| {
        ftl.slots[1].au = ftl.slots[0].au;
    });
    check("open and shared", |ftl| ftl.tails[0].au = ftl.slots[0].au);
    check("too many", |ftl| ftl.rules.open = 1);
    check("too many chaotic", |ftl| {
        ftl.slots[0].chaotic = true;
        ftl.rules.open_chaotic = 0;
    });
    check("a group beyond the AU", |ftl| ftl.slots[0].groups = 1 << 9);
    check("a full area", |ftl| ftl.slots[0].small_bytes = 2 << 20);
    check("written beyond the AU", |ftl| ftl.slots[0].high = 5 << 20);
    check("a full shared area", |ftl| ftl.shared_small = 2 << 20);
    check("a full shared block", |ftl| ftl.shared_fill.overfill());
    check("a block with more than it holds", |ftl| {
        ftl.slots[0].programmed = (4 << 20) + 1;
    });
}

#[test]
fn groups_that_are_discarded_take_their_bytes_with_them() {
    let profile = profile();
    let (mut ftl, mut stats) = (of(&profile), Stats::default());
    let au = profile.au_bytes();
    let mut write = |ftl: &mut UpdateBlock, offset, bytes| {
        ftl.write(offset, bytes, Order::default(), &mut stats);
    };
    for at in 0..8 {
        write(&mut ftl, at * au, 65_536);
    }
    // AU 20 has no update block; its small writes go to the shared area.
    for at in [9, 3, 5] {
        write(&mut ftl, 20 * au + at * 65_536, 4096);
    }
    assert_eq!((ftl.shared_groups.len(), ftl.shared_small), (2, 3 * 4096));
    ftl.discard(20 * au, au, &mut Stats::default());
    assert_eq!((ftl.shared_groups.len(), ftl.shared_small), (0, 0));
}
