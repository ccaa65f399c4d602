//! AUs that are no powers of two, as cheap TLC cards have them (1.5, 3, 6, 12, 24 MiB), in
//! every family: what a stream does, what a border costs, and that the books are kept.
#![allow(clippy::unwrap_used)]

use crate::common;

use common::{Tiny, open_aus, serve};
use whichfs_card::{Card, Profile, Request};
use whichfs_units::{KIB, MIB};

const AUS_KIB: [u64; 5] = [1536, 3 * 1024, 6 * 1024, 12 * 1024, 24 * 1024];
const FAMILIES: [&str; 3] = ["log-block", "update-block", "page-map"];

fn profile(family: &'static str, au_kib: u64) -> Profile {
    let tiny = Tiny {
        family,
        au_kib,
        aus: 70,
        extra: "",
    };
    // A group each of 256 KiB: 24 MiB have 96 of them.
    let text = tiny.toml().replace(
        "group_bytes = { value = 32768",
        "group_bytes = { value = 262144",
    );
    Profile::parse("tiny.toml", &text).unwrap()
}

#[test]
fn streams_and_shuffles_keep_the_books() {
    for au_kib in AUS_KIB {
        for family in FAMILIES {
            let profile = profile(family, au_kib);
            let mut card = Card::used(&profile, 1);
            for (aus, block, shuffled) in [
                (2, 16 * KIB, true),
                (4, 64 * KIB, true),
                (5, MIB / 2, false),
            ] {
                open_aus(&mut card, &profile, aus, block, shuffled);
                card.verify().unwrap();
            }
            let au = profile.au_bytes();
            serve(&mut card, Request::discard(20 * au, 2 * au));
            serve(&mut card, Request::write(20 * au - 4096, 2 * au + 8192));
            card.verify().unwrap();
        }
    }
}

#[test]
fn an_au_written_in_order_is_erased_once_and_copied_never() {
    for au_kib in AUS_KIB {
        for family in ["log-block", "update-block"] {
            let profile = profile(family, au_kib);
            let mut card = Card::used(&profile, 1);
            let au = profile.au_bytes();
            // Room for one more open AU.
            serve(&mut card, Request::write(40 * au, 512 * KIB));
            serve(&mut card, Request::write(40 * au, au));
            let before = card.stats().clone();
            for at in (30 * au..31 * au).step_by(512 * KIB as usize) {
                serve(&mut card, Request::write(at, 512 * KIB));
            }
            let after = card.stats();
            let programmed = after.programmed_bytes - before.programmed_bytes;
            let erases = after.erases - before.erases;
            assert_eq!((programmed, erases), (au, 1), "{family}, {au_kib} KiB");
        }
    }
}

#[test]
fn reads_step_at_the_borders_of_such_aus() {
    for au_kib in AUS_KIB {
        let profile = profile("page-map", au_kib);
        let mut card = Card::used(&profile, 1);
        let mut at = |offset| serve(&mut card, Request::read(offset, 1024)).round();
        let au = profile.au_bytes();
        assert_eq!(at(3 * au - 512) - at(3 * au + 4096 - 512), 200.0);
    }
}
