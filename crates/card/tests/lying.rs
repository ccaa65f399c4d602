//! Cards that lie about their size: the model of what `probe --capacity` must find.
#![allow(clippy::unwrap_used)]

use crate::common;

use common::{Tiny, serve};
use whichfs_card::{Card, ContentLayout, Contents, Profile, Request};

const KIB: u64 = 1024;

/// 40 AUs of 256 KiB claimed, 10 and a bit there.
fn liar(family: &'static str, beyond: u64) -> Profile {
    let honest = Tiny {
        family,
        au_kib: 256,
        aus: 40,
        extra: "",
    };
    let figure = |key: &str, value: u64| format!("{key} = {{ value = {value}, source = \"t\" }}\n");
    let lie = figure("real_bytes", REAL) + &figure("beyond", beyond);
    let text = honest.toml().replacen("[bus]", &(lie + "[bus]"), 1);
    Profile::parse("liar.toml", &text).unwrap()
}

const REAL: u64 = 2600 * KIB;

fn contents(profile: &Profile) -> Contents {
    Contents::new(profile.capacity_bytes()).laid_out(profile.layout())
}

fn sector(contents: &mut Contents, offset: u64) -> u8 {
    let mut out = [9; 512];
    contents.read(offset, &mut out).unwrap();
    assert!(out.iter().all(|byte| *byte == out[0]));
    out[0]
}

#[test]
fn what_is_written_beyond_wraps_onto_the_beginning() {
    let profile = liar("log-block", 0);
    let mut contents = contents(&profile);
    assert_eq!(contents.capacity_bytes(), profile.capacity_bytes());
    contents.write(0, &[1; 512]).unwrap();
    contents.write(REAL, &[2; 512]).unwrap();
    assert_eq!(
        (sector(&mut contents, 0), sector(&mut contents, REAL)),
        (2, 2)
    );
    assert_eq!(sector(&mut contents, 2 * REAL), 2);
    // One write over the border.
    contents.write(2 * REAL - 512, &[3; 1024]).unwrap();
    assert_eq!(
        (sector(&mut contents, REAL - 512), sector(&mut contents, 0)),
        (3, 3)
    );
    contents.discard(REAL, 512).unwrap();
    assert_eq!(sector(&mut contents, 0), 0);
}

#[test]
fn what_is_written_beyond_vanishes() {
    let profile = liar("page-map", 1);
    let mut contents = contents(&profile);
    contents.write(REAL - 512, &[1; 1024]).unwrap();
    contents.write(3 * REAL, &[2; 512]).unwrap();
    let found = [REAL - 512, REAL, 3 * REAL, 0].map(|at| sector(&mut contents, at));
    assert_eq!(found, [1, 0, 0, 0]);
    contents.discard(REAL - 512, 1024).unwrap();
    assert_eq!(sector(&mut contents, REAL - 512), 0);
}

#[test]
fn an_honest_layout_keeps_everything_at_its_place() {
    let profile = common::page_map();
    assert_eq!(
        profile.layout(),
        ContentLayout::honest(profile.capacity_bytes())
    );
    assert_eq!(profile.flash_bytes(), profile.capacity_bytes());
    assert_eq!(liar("page-map", 0).flash_bytes(), REAL);
}

#[test]
fn every_family_serves_all_it_claims_and_keeps_its_books() {
    for family in ["log-block", "update-block", "page-map"] {
        for beyond in [0, 1] {
            let profile = liar(family, beyond);
            let mut card = Card::used(&profile, 1);
            let step = 12 * KIB;
            for offset in (0..profile.capacity_bytes() - step).step_by(step as usize) {
                assert!(serve(&mut card, Request::write(offset, step)) > 0.0);
            }
            serve(&mut card, Request::write(REAL - 4096, 8192));
            serve(&mut card, Request::discard(REAL - 256 * KIB, 1024 * KIB));
            serve(&mut card, Request::discard(0, profile.capacity_bytes()));
            card.verify().unwrap();
            let blocks = card.erases_per_au().len() as u64;
            assert!(
                blocks <= REAL / (256 * KIB) + 1 + 10,
                "{blocks} blocks of flash"
            );
        }
    }
}

#[test]
fn a_card_that_has_more_than_it_claims_is_refused() {
    let text = liar("page-map", 0).canonical();
    assert!(text.contains("geometry.real_bytes=2662400"));
    let honest = Tiny {
        family: "page-map",
        au_kib: 256,
        aus: 40,
        extra: "",
    };
    let more = "real_bytes = { value = 99999744, source = \"t\" }\n[bus]";
    let error = Profile::parse("x.toml", &honest.toml().replacen("[bus]", more, 1)).unwrap_err();
    assert_eq!(error.key, "geometry.real_bytes");
}
