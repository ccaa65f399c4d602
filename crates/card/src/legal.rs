//! Every profile that the reader accepts must work, whatever its figures: a walk over the
//! legal ranges, their ends included. More cases: `PROPTEST_CASES=100000 cargo test legal`.

#![allow(clippy::unwrap_used)]

use crate::families::specs;
use crate::figures::Spec;
use crate::{Card, Family, Interface, Profile, Request, RequestKind};
use proptest::prelude::*;
use std::fmt::Write as _;
use whichfs_units::{KIB, MIB, Nanos, Rng, SECTOR};

/// Largest card of the walk: a large one differs in nothing but time.
const CAPACITY_MOST: u64 = 64 * MIB;
/// Requests after a card was made.
const REQUESTS: u64 = 100;
/// Longest rest between two of them, as a power of two of nanoseconds.
const REST_POWER: u64 = 52;

/// A number between the ends, in every order of magnitude as often.
fn between(rng: &mut Rng, min: u64, max: u64) -> u64 {
    let powers = 64 - (max - min).leading_zeros();
    let span = 1_u64.checked_shl(rng.below(u64::from(powers) + 1) as u32);
    let span = span.unwrap_or(u64::MAX).min(max - min);
    min + rng.below(span + 1)
}

/// A value of `spec`: its default, an end of its range, or something between.
fn value(rng: &mut Rng, spec: &Spec) -> u64 {
    let max = match spec.path {
        "geometry.capacity_bytes" | "geometry.real_bytes" => CAPACITY_MOST,
        _ => spec.max,
    };
    let drawn = match (rng.below(10), spec.default) {
        (0, _) => spec.min,
        (1, _) => max,
        (2..6, Some(default)) => default,
        _ => between(rng, spec.min, max),
    };
    // Most sizes must be multiples of others: powers of two are.
    let even = match rng.below(4) {
        0 => drawn / SECTOR * SECTOR,
        _ => 1 << drawn.max(1).ilog2(),
    };
    match spec.path.ends_with("_bytes") && drawn > 0 && (spec.min..=max).contains(&even) {
        true => even,
        false => drawn,
    }
}

/// How often the figures at fault are drawn anew before a profile is given up.
const MENDS: usize = 100;

/// A profile of the walk; none if its figures do not come to fit together.
fn profile(rng: &mut Rng) -> Option<Profile> {
    let (family_name, family) = Family::NAMES[rng.below(Family::NAMES.len() as u64) as usize];
    let (interface, _) = Interface::NAMES[rng.below(3) as usize];
    let head =
        format!("title = \"drawn\"\nfamily = \"{family_name}\"\ninterface = \"{interface}\"\n");
    let specs: Vec<&Spec> = specs(family).collect();
    let mut values: Vec<u64> = specs.iter().map(|spec| value(rng, spec)).collect();
    for _ in 0..MENDS {
        let error = match Profile::parse("drawn.toml", &toml(&head, &specs, &values)) {
            Ok(profile) => return Some(profile),
            Err(error) => error,
        };
        // The figure at fault, or now and then another that it does not fit to.
        let fault = specs
            .iter()
            .position(|spec| spec.path == error.key)
            .unwrap();
        let at = match rng.below(3) {
            0 => rng.below(9) as usize,
            _ => fault,
        };
        values[at] = value(rng, specs[at]);
    }
    None
}

fn toml(head: &str, specs: &[&Spec], values: &[u64]) -> String {
    let (mut text, mut last) = (head.to_owned(), "");
    for (spec, value) in specs.iter().zip(values) {
        let (section, key) = spec.names();
        if section != last {
            let _ = writeln!(text, "[{section}]");
        }
        last = section;
        let _ = writeln!(text, "{key} = {{ value = {value}, source = \"drawn\" }}");
    }
    text
}

fn request(rng: &mut Rng, profile: &Profile, last_end: u64) -> Request {
    let sectors = profile.capacity_bytes() / SECTOR;
    let op = match rng.below(10) {
        0 => RequestKind::Read,
        1 => RequestKind::Discard,
        2 => RequestKind::Flush,
        _ => RequestKind::Write,
    };
    let offset = match rng.below(3) {
        0 => last_end,
        1 => rng.below(64 * KIB / SECTOR) * SECTOR,
        _ => rng.below(sectors) * SECTOR,
    };
    let longest = sectors
        .saturating_sub(offset / SECTOR)
        .clamp(1, 8 * MIB / SECTOR);
    Request {
        op,
        offset,
        bytes: between(rng, 1, longest) * SECTOR,
        fua: rng.ratio(1, 5),
    }
}

/// Serves [`REQUESTS`] with rests between them.
fn play(card: &mut Card, profile: &Profile, rng: &mut Rng) {
    let (mut now, mut last_end) = (0, 0);
    for _ in 0..REQUESTS {
        now = card.busy_until().0 + between(rng, 0, 1 << REST_POWER);
        let request = request(rng, profile, last_end);
        last_end = (request.offset + request.bytes) % profile.capacity_bytes();
        let completion = card.submit(Nanos(now), &request);
        assert!(completion.at >= Nanos(now));
    }
    assert!(now < u64::MAX / 2, "time does not end");
    card.verify().unwrap();
    check_books(card, profile);
}

/// No block takes more than its size between two erases, and each erase was worth it: something
/// had been written into the block or become garbage in it.
fn check_books(card: &Card, profile: &Profile) {
    let stats = card.stats();
    let (blocks, au) = (card.erases_per_au().len() as u64, profile.au_bytes());
    if profile.slc.bytes.value == 0 {
        assert!(
            stats.programmed_bytes <= (stats.erases + blocks) * au,
            "{stats:?}"
        );
    }
    let least = profile.own().least_programmed(profile);
    let written = stats.programmed_bytes / least.min(au);
    assert!(stats.erases <= written + blocks, "{stats:?}");
}

fn check(seed: u64) -> bool {
    let mut rng = Rng::named(seed, "legal profile");
    let Some(profile) = profile(&mut rng) else {
        return false;
    };
    let mut card = Card::used(&profile, seed);
    card.verify().unwrap();
    play(&mut card, &profile, &mut rng);
    let drawn = profile.draw(seed);
    drawn.check_shape().unwrap();
    play(&mut Card::fresh(&drawn), &drawn, &mut rng);
    let bytes = between(&mut rng, SECTOR, CAPACITY_MOST) / SECTOR * SECTOR;
    if let Ok(resized) = profile.with_capacity(bytes) {
        play(&mut Card::used(&resized, seed), &resized, &mut rng);
    }
    true
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_legal_profile_is_a_card_that_works(seed: u64) {
        check(seed);
    }
}

/// The walk is worth something only if many of its profiles are legal, of each family.
#[test]
fn the_walk_finds_legal_profiles_of_every_family() {
    let mut found = Family::NAMES.map(|_| 0);
    for seed in 0..200 * found.len() as u64 {
        if let Some(profile) = profile(&mut Rng::named(seed, "legal profile")) {
            found[profile.family() as usize] += 1;
        }
    }
    assert!(found.iter().all(|count| *count >= 50), "{found:?}");
}
