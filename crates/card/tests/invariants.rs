//! What must hold whatever the host asks, in every family and on odd AU sizes.
#![allow(clippy::unwrap_used)]

use crate::common;

use common::Tiny;
use proptest::prelude::*;
use whichfs_card::{Card, CardStatus, Profile, Request, RequestKind};
use whichfs_units::Nanos;

/// AU sizes in KiB: powers of two and not.
const AUS: [u64; 5] = [64, 96, 192, 256, 384];

const EXTRAS: [(&str, &str); 7] = [
    (
        "update-block",
        "gap_bytes = { value = 16384, source = \"test\" }\n\
        fold_rate_bytes_per_s = { value = 8000000, source = \"test\" }\n\
        [fat]\naus = { value = 1, source = \"test\" }\n\
        first_au = { value = 1, source = \"test\" }\n\
        [reader]\nmax_bytes = { value = 122880, source = \"test\" }\n",
    ),
    ("update-block", ""),
    (
        "page-map",
        "streams = { value = 2, source = \"test\" }\n\
        background_aus = { value = 4, source = \"test\" }\n\
        [slc]\nbytes = { value = 100000, source = \"test\" }\n",
    ),
    (
        "log-block",
        "small_write_bytes = { value = 8192, source = \"test\" }\n\
        idle_close_us = { value = 1000, source = \"test\" }\n\
        log_percent = { value = 60, source = \"test\" }\n\
        small_write_us = { value = 700, source = \"test\" }\n\
        gap_bytes = { value = 16384, source = \"test\" }\n\
        [fat]\naus = { value = 2, source = \"test\" }\n",
    ),
    ("log-block", ""),
    (
        "log-block",
        "first_opened = { value = 1, source = \"test\" }\n\
        merge_at_once = { value = 1, source = \"test\" }\n\
        log_percent = { value = 150, source = \"test\" }\n",
    ),
    (
        "page-map",
        "[cache]\nbytes = { value = 65536, source = \"test\" }\n",
    ),
];

fn profiles() -> impl Strategy<Value = Profile> {
    (0..AUS.len(), 0..EXTRAS.len() + 1, 20_u64..40).prop_map(|(au, which, aus)| {
        let (family, extra) = EXTRAS.get(which).copied().unwrap_or(("page-map", ""));
        Tiny {
            family,
            au_kib: AUS[au],
            aus,
            extra,
        }
        .profile()
    })
}

/// Requests in sectors, a few of them illegal; long and short, near each other and far.
fn requests() -> impl Strategy<Value = Vec<(u8, u64, u64, bool, u32)>> {
    let sizes = prop_oneof![0..4_u64, 1..64_u64, Just(8), 1..1500_u64];
    let one = (
        0..10_u8,
        0..8000_u64,
        sizes,
        any::<bool>(),
        0..3_000_000_u32,
    );
    prop::collection::vec(one, 1..400)
}

fn request(profile: &Profile, op: u8, place: u64, sectors: u64, fua: bool) -> Request {
    let op = [RequestKind::Read, RequestKind::Discard, RequestKind::Flush]
        .get(usize::from(op))
        .copied()
        .unwrap_or(RequestKind::Write);
    let offset = place * (profile.capacity_bytes() / 512) / 7990 * 512;
    Request {
        op,
        offset,
        bytes: sectors * 512,
        fua,
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_stream_keeps_the_map_and_the_books(
        profile in profiles(), stream in requests(), used: bool,
    ) {
        let mut card = if used { Card::used(&profile, 1) } else { Card::fresh(&profile) };
        let (mut now, mut last, mut busy) = (0, Nanos::ZERO, 0);
        let (mut written, mut read, mut discarded, mut errors) = (0, 0, 0, 0);
        for (op, place, sectors, fua, pause) in stream {
            let request = request(&profile, op, place, sectors, fua);
            now += u64::from(pause);
            let begin = now.max(card.busy_until().0);
            let completion = card.submit(Nanos(now), &request);
            prop_assert!(completion.at >= last, "completions are in order");
            prop_assert!(completion.at >= Nanos(begin), "none before its request");
            busy += completion.at.0 - begin;
            last = completion.at;
            match (completion.status, request.op) {
                (CardStatus::Ok, RequestKind::Write) => written += request.bytes,
                (CardStatus::Ok, RequestKind::Read) => read += request.bytes,
                (CardStatus::Ok, RequestKind::Discard) => discarded += request.bytes,
                (CardStatus::Ok, RequestKind::Flush) => {}
                _ => errors += 1,
            }
        }
        card.verify().unwrap();
        let stats = card.stats();
        prop_assert_eq!(stats.write_bytes, written);
        prop_assert_eq!(stats.read_bytes, read);
        prop_assert_eq!(stats.discard_bytes, discarded);
        prop_assert_eq!(stats.errors, errors);
        prop_assert_eq!(stats.busy.0, busy);
        prop_assert!(stats.programmed_bytes >= stats.write_bytes);
        if common::figure(&profile, "slc.bytes") == 0 {
            let blocks = card.erases_per_au().len() as u64;
            let room = (stats.erases + blocks) * profile.au_bytes();
            prop_assert!(stats.programmed_bytes <= room, "{stats:?}");
        }
        prop_assert_eq!(stats.write_sizes.iter().sum::<u64>(), stats.writes);
    }

    #[test]
    fn a_clone_has_the_same_future(
        profile in profiles(), past in requests(), future in requests(),
    ) {
        let mut card = Card::used(&profile, 2);
        for (op, place, sectors, fua, _) in past {
            card.submit(Nanos::ZERO, &request(&profile, op, place, sectors, fua));
        }
        let mut again = card.clone();
        for (op, place, sectors, fua, pause) in future {
            let request = request(&profile, op, place, sectors, fua);
            let now = card.busy_until() + Nanos(u64::from(pause));
            prop_assert_eq!(card.submit(now, &request), again.submit(now, &request));
        }
        prop_assert!(card == again);
    }

    #[test]
    fn clones_diverge_without_touching_each_other(
        profile in profiles(), one in requests(), two in requests(),
    ) {
        let play = |card: &mut Card, stream: &[(u8, u64, u64, bool, u32)]| {
            for &(op, place, sectors, fua, _) in stream {
                card.submit(Nanos::ZERO, &request(&profile, op, place, sectors, fua));
            }
        };
        let mut card = Card::used(&profile, 3);
        let mut clone = card.clone();
        play(&mut card, &one);
        play(&mut clone, &two);
        let mut alone = Card::used(&profile, 3);
        play(&mut alone, &one);
        prop_assert!(card == alone);
        let mut alone = Card::used(&profile, 3);
        play(&mut alone, &two);
        prop_assert!(clone == alone);
    }
}

/// Between two erases a block takes at most its size; in order, it is erased only when full.
#[test]
fn what_is_programmed_and_what_is_erased_agree() {
    let profiles = [
        common::log_block(),
        common::update_block(),
        common::page_map(),
    ];
    for profile in profiles
        .into_iter()
        .chain(["class4-4gb", "sandisk-su04g-4gb", "emmc-8gb"].map(common::shipped))
    {
        let (au, mut used) = (profile.au_bytes(), Card::used(&profile, 1));
        let slack =
            (profile.open_aus_linear() + common::figure(&profile, "geometry.spare_aus")) * au;
        let apart = |card: &Card| {
            let stats = card.stats();
            assert!(stats.programmed_bytes >= stats.write_bytes);
            stats.programmed_bytes as i64 - (stats.erases * au) as i64
        };
        let start = 4 * au;
        for block in [4096, 16_384, 65_536] {
            let mut card = used.clone();
            common::sequential(&mut card, start, block, 3 * slack / block, true);
            let apart = apart(&card);
            assert!(
                apart.unsigned_abs() <= slack,
                "{}: {apart} bytes more programmed than erased, {block} in order",
                profile.title()
            );
        }
        // At random, logs may be merged before they are full.
        common::random(&mut used, start, au, 65_536, 3 * slack / 65_536, true);
        let apart = apart(&used);
        assert!(
            apart <= slack as i64,
            "{}: {apart}, one AU at random",
            profile.title()
        );
    }
}

#[test]
fn erases_of_all_blocks_add_up_to_the_figure() {
    for profile in [
        common::log_block(),
        common::update_block(),
        common::page_map(),
    ] {
        let mut card = Card::fresh(&profile);
        common::random(&mut card, 0, profile.capacity_bytes(), 4096, 20_000, true);
        let erases: u64 = card
            .erases_per_au()
            .iter()
            .map(|count| u64::from(*count))
            .sum();
        assert_eq!(erases, card.stats().erases);
        assert!(erases > 100);
    }
}

#[test]
fn a_card_of_2_tib_works_at_its_end_and_its_map_must_fit_in_memory() {
    let toml = Tiny {
        family: "page-map",
        au_kib: 24 * 1024,
        aus: 87_381,
        extra: "",
    }
    .toml();
    let error = Profile::parse("big.toml", &toml).unwrap_err();
    assert_eq!(error.key, "page_map.unit_bytes", "{error}");
    let (small, large) = (
        "unit_bytes = { value = 4096,",
        "unit_bytes = { value = 32768,",
    );
    assert_eq!(toml.matches(small).count(), 1);
    let profile = Profile::parse("big.toml", &toml.replace(small, large)).unwrap();
    assert!(profile.capacity_bytes() > 2_199_000_000_000);
    let mut card = Card::fresh(&profile);
    let end = profile.capacity_bytes() / 4096 * 4096;
    common::serve(&mut card, Request::write(end - 4096, 4096));
    card.verify().unwrap();
}

#[test]
fn illegal_requests_are_answered_and_change_nothing() {
    for profile in [common::log_block(), common::page_map()] {
        let mut card = Card::used(&profile, 1);
        let before = card.erases_per_au();
        let capacity = profile.capacity_bytes();
        let check = |card: &mut Card, request: Request, status| {
            assert_eq!(
                card.submit(Nanos::ZERO, &request).status,
                status,
                "{request:?}"
            );
        };
        check(
            &mut card,
            Request::write(capacity, 512),
            CardStatus::OutOfRange,
        );
        check(
            &mut card,
            Request::read(capacity - 512, 1024),
            CardStatus::OutOfRange,
        );
        check(
            &mut card,
            Request::write(u64::MAX - 511, 512),
            CardStatus::OutOfRange,
        );
        check(&mut card, Request::write(100, 512), CardStatus::Misaligned);
        check(&mut card, Request::read(0, 100), CardStatus::Misaligned);
        check(&mut card, Request::discard(0, 0), CardStatus::Misaligned);
        check(
            &mut card,
            Request::read(capacity - 512, 512),
            CardStatus::Ok,
        );
        assert_eq!(card.stats().errors, 6);
        assert_eq!(card.erases_per_au(), before);
        card.verify().unwrap();
    }
    let mut stick = Card::fresh(&common::shipped("usb-32gb"));
    let discard = stick.submit(Nanos::ZERO, &Request::discard(0, 4096));
    assert_eq!(discard.status, CardStatus::Unsupported);
}
