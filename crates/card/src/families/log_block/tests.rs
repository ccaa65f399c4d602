//! The checker of the block map must find what is planted.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::Profile;
use crate::families::FamilyFigures;

fn of(profile: &Profile) -> LogBlock {
    match profile.own() {
        FamilyFigures::LogBlock(own) => LogBlock::new(profile, own),
        own => unreachable!("{own:?}"),
    }
}

fn tiny() -> LogBlock {
    used("")
}

/// A card on which blocks were written here and there, with figures of its own.
fn used(figures: &str) -> LogBlock {
    let mut ftl = of(&profile("class10-16gb", figures));
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

/// A shipped profile with more figures of its family.
fn profile(name: &str, figures: &str) -> Profile {
    let (_, toml) = crate::builtin().iter().find(|(of, _)| *of == name).unwrap();
    let text = toml.replace("[log_block]\n", &format!("[log_block]\n{figures}"));
    Profile::parse(name, &text).unwrap()
}

/// A switch of the family that is on.
fn on(key: &str) -> String {
    format!("{key} = {{ value = 1, source = \"test\" }}\n")
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
    check_finds("a full small-write area", |ftl| ftl.small.overfill());
    check_finds("more pages than logs hold", |ftl| {
        ftl.slots[0].used_pages = 5 * ftl.rules.pages_per_au() + 1;
    });
}

#[test]
fn the_checker_finds_an_open_au_without_a_place_and_places_too_many() {
    let places = || used(&on("first_opened"));
    let mut ftl = places();
    ftl.places.remove(0);
    assert!(ftl.verify().unwrap_err().0.contains("has no place"));
    let mut ftl = places();
    ftl.places.extend([900, 901, 902, 903, 904, 905, 906, 907]);
    assert!(ftl.verify().unwrap_err().0.contains("places"));
}

/// How many of 48 writes in turns to four AUs copy an AU, in a card with three places that had
/// opened AUs `before`.
fn copies_of_four_in_turns(figures: &str, before: &[u64]) -> u64 {
    let profile = profile("class4-4gb", figures);
    let (mut ftl, mut stats) = (of(&profile), Stats::default());
    let (au, block) = (profile.au_bytes(), profile.page_bytes());
    for at in 0..9 {
        ftl.write(at * au, au, Order::default(), &mut stats);
    }
    for at in [6, 7, 8].iter().chain(before) {
        for half in 0..2 {
            let offset = at * au + half * au / 2;
            ftl.write(offset, au / 2, Order::default(), &mut stats);
        }
    }
    let mut write = |step: u64| {
        let offset = step % 4 * au + step / 4 * block;
        ftl.write(offset, block, Order::default(), &mut stats);
        ftl.verify().unwrap();
        stats.au_copies
    };
    let settled = (0..24).map(&mut write).last().unwrap();
    (24..72).map(write).last().unwrap() - settled
}

#[test]
fn with_places_the_order_of_opening_decides_how_many_writes_pay() {
    // Four AUs in turns, three places: WB10 pays for half of the writes, WB11 and WB15 for a third.
    let places = on("first_opened");
    let paid = |before: &[u64]| copies_of_four_in_turns(&places, before);
    assert_eq!([paid(&[]), paid(&[3])], [48, 48]);
    assert_eq!([paid(&[3, 2]), paid(&[3, 2, 1])], [24, 16]);
    // In the order of the writes, each finds its place just given away.
    assert_eq!(paid(&[0, 1, 2]), 48);
    // By the last use, what was open before does not matter.
    for before in [&[][..], &[3, 2], &[3, 2, 1]] {
        assert_eq!(copies_of_four_in_turns("", before), 48);
    }
}

#[test]
fn a_place_outlives_its_log_and_the_au_that_asks_keeps_its_own() {
    let profile = profile("class4-4gb", &on("first_opened"));
    let (mut ftl, mut stats) = (of(&profile), Stats::default());
    let (au, block) = (profile.au_bytes(), profile.page_bytes());
    let mut write = |ftl: &mut LogBlock, offset, bytes| {
        ftl.write(offset, bytes, Order::default(), &mut stats);
        ftl.verify().unwrap();
    };
    for half in 0..2 {
        write(&mut ftl, half * au / 2, au / 2);
    }
    assert_eq!((ftl.slots.len(), &ftl.places[..]), (0, &[0][..]));
    // All become chaotic; one that asks for a log is not the one that is closed.
    for at in [0, 1, 2] {
        for at_block in [5, 3, 9] {
            write(&mut ftl, at * au + at_block * block, block);
        }
    }
    assert_eq!(ftl.places, [0, 1, 2]);
    write(&mut ftl, 3 * au + block, block);
    assert_eq!(ftl.places, [1, 2, 3]);
    assert!(ftl.slots.iter().all(|slot| slot.au != 0));
    // A whole AU needs none.
    write(&mut ftl, 7 * au, au);
    assert_eq!(ftl.places, [1, 2, 3]);
}

#[test]
fn merged_at_once_a_log_costs_a_copy_by_the_write_that_fills_it_and_before_a_whole_au() {
    let once = on("merge_at_once");
    for (figures, of_halves, of_whole) in [("", 0, 0), (&once, 1, 1)] {
        let profile = profile("class4-4gb", figures);
        let (mut ftl, mut stats) = (of(&profile), Stats::default());
        let (au, page) = (profile.au_bytes(), profile.page_bytes());
        let mut copies = |offset, bytes| {
            let before = stats.au_copies;
            ftl.write(offset, bytes, Order::default(), &mut stats);
            ftl.verify().unwrap();
            stats.au_copies - before
        };
        copies(0, au);
        // The second half, then the first: as flashbench writes 2 MiB at random.
        assert_eq!(copies(au / 2, au / 2), 0, "{figures}");
        assert_eq!(copies(0, au / 2), of_halves, "{figures}");
        copies(5 * au, au);
        copies(5 * au + 9 * page, page);
        copies(5 * au + 4 * page, page);
        assert_eq!(copies(5 * au, au), of_whole, "{figures}");
    }
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
    let profile = profile("class6-8gb", "");
    let (mut ftl, mut stats) = (of(&profile), Stats::default());
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
