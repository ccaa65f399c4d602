//! Each thing a real card does that a filesystem feels: one test each, in virtual time.
#![allow(clippy::unwrap_used)]

use crate::common;

use common::{Tiny, log_block, open_aus, page_map, random, sequential, serve, shipped};
use whichfs_card::{Card, Profile, Request};
use whichfs_units::{KIB, MIB, Nanos};

#[test]
fn one_au_too_many_costs_an_au_copy_whatever_the_size_of_the_request() {
    let profile = shipped("class4-4gb");
    let copy_ms = profile.au_bytes() as f64 / 4.7e6 * 1e3;
    for block in [16 * KIB, 64 * KIB, 256 * KIB] {
        let mut card = Card::used(&profile, 1);
        let three = open_aus(&mut card, &profile, 3, block, false);
        let four = open_aus(&mut card, &profile, 4, block, false);
        assert!(
            (four / copy_ms - 1.0).abs() < 0.12,
            "{block}: {four} ms, a copy {copy_ms} ms"
        );
        assert!(four > 10.0 * three, "{block}: {four} ms to {three} ms");
    }
}

#[test]
fn aus_open_one_by_one_up_to_the_limit() {
    let profile = shipped("class4-4gb");
    let mut card = Card::used(&profile, 1);
    let limit = card.open_aus().unwrap().limit;
    assert_eq!(u64::from(limit), profile.open_aus_linear());
    for au in 0..2 * u64::from(limit) {
        serve(&mut card, Request::write(au * profile.au_bytes(), 64 * KIB));
        let open = card.open_aus().unwrap();
        assert!(open.now >= 1 && open.now <= limit, "{open:?}");
        assert!(au < u64::from(limit) || open.now == limit, "{open:?}");
    }
    assert_eq!(Card::used(&page_map(), 1).open_aus(), None, "it maps pages");
}

#[test]
fn the_copy_shrinks_as_the_request_grows_to_the_au() {
    // WB5 -O 4: 256 KiB 904 ms, 2 MiB 736 ms of which 2 MiB are programming.
    let profile = shipped("class4-4gb");
    let mut card = Card::used(&profile, 1);
    let small = open_aus(&mut card, &profile, 4, 256 * KIB, false);
    let half = open_aus(&mut card, &profile, 4, 2 * MIB, false);
    let whole = open_aus(&mut card, &profile, 4, 4 * MIB, false);
    assert!(half < small && whole < small, "{small} {half} {whole}");
}

#[test]
fn an_au_rewritten_wholly_in_order_is_switched_without_copying() {
    let profile = log_block();
    let mut card = Card::used(&profile, 1);
    let au = profile.au_bytes();
    // Makes room: opened, then superseded.
    serve(&mut card, Request::write(10 * au, 4096));
    serve(&mut card, Request::write(10 * au, au));
    let before = card.stats().clone();
    for step in 0..16 {
        serve(&mut card, Request::write(20 * au + step * au / 16, au / 16));
    }
    let after = card.stats();
    assert_eq!(after.programmed_bytes - before.programmed_bytes, au);
    assert_eq!(after.erases, before.erases + 1, "the mother");
}

#[test]
fn random_inside_an_open_au_is_three_to_four_times_slower_than_in_order() {
    // flash.md 2.3.4, WB5.
    let profile = shipped("class4-4gb");
    for block in [16 * KIB, 64 * KIB] {
        let mut card = Card::used(&profile, 1);
        let ordered = open_aus(&mut card, &profile, 1, block, false);
        let shuffled = open_aus(&mut card, &profile, 1, block, true);
        let ratio = shuffled / ordered;
        assert!(
            (2.5..5.0).contains(&ratio),
            "{block}: {shuffled} ms to {ordered} ms"
        );
    }
}

#[test]
fn random_over_the_card_is_slower_than_sequential_on_every_shipped_card() {
    for (name, _) in whichfs_card::builtin() {
        let profile = shipped(name);
        let mut card = Card::used(&profile, 1);
        let ordered = sequential(&mut card, 64 * MIB, 64 * KIB, 512, true) * 1e6 / 65536.0;
        let shuffled = random(&mut card, 64 * MIB, 384 * MIB, 64 * KIB, 512, true);
        assert!(
            shuffled < ordered,
            "{name}: {shuffled} to {ordered} a second"
        );
    }
}

#[test]
fn a_used_card_is_slower_than_a_fresh_one() {
    // The page map must first run out of blocks.
    for (profile, writes) in [(log_block(), 100), (page_map(), 3000)] {
        let span = profile.capacity_bytes();
        let rate = |mut card: Card| random(&mut card, 0, span, 4096, writes, true);
        let (fresh, used) = (rate(Card::fresh(&profile)), rate(Card::used(&profile, 1)));
        assert!(
            used < 0.9 * fresh,
            "{:?}: used {used}, fresh {fresh}",
            profile.family()
        );
    }
}

#[test]
fn discard_makes_a_later_write_cheap() {
    let profile = log_block();
    let au = profile.au_bytes();
    let mut card = Card::used(&profile, 1);
    for which in 0..3 {
        serve(&mut card, Request::write(which * au, 4096));
    }
    let mut discarded = card.clone();
    serve(&mut discarded, Request::discard(0, 3 * au));
    let copied = serve(&mut card, Request::write(9 * au, 4096));
    let cheap = serve(&mut discarded, Request::write(9 * au, 4096));
    assert!(cheap * 5.0 < copied, "{cheap} µs to {copied} µs");

    // The page map collects less when half of the card is garbage.
    let profile = page_map();
    let half = profile.capacity_bytes() / 2 / 4096 * 4096;
    let mut full = Card::used(&profile, 1);
    let mut trimmed = full.clone();
    serve(&mut trimmed, Request::discard(half, half));
    random(&mut full, 0, half, 4096, 4000, true);
    random(&mut trimmed, 0, half, 4096, 4000, true);
    let (full, trimmed) = (full.write_amplification(), trimmed.write_amplification());
    assert!(
        trimmed.unwrap() < 0.8 * full.unwrap(),
        "{trimmed:?} to {full:?}"
    );
}

#[test]
fn reads_step_at_pages_and_at_aus() {
    let profile = log_block();
    let au = profile.au_bytes();
    let mut card = Card::used(&profile, 1);
    let mut at = |offset| serve(&mut card, Request::read(offset, 1024));
    let inside = at(au + 4096);
    assert_eq!(at(au + 4096 + 1024), inside);
    assert_eq!(
        (at(au + 8192 - 512) - inside).round(),
        30.0,
        "a second page"
    );
    assert_eq!(
        (at(2 * au - 512) - inside).round(),
        230.0,
        "a second page and another AU"
    );
}

#[test]
fn small_writes_do_not_suffer_where_larger_ones_collapse() {
    // flash.md 2.3.8 (WB6): 4 KiB is immune to the slot limit, 16 KiB collapses ~100×.
    let extra = "small_write_bytes = { value = 16384, source = \"test\" }\n\
        small_write_us = { value = 2000, source = \"test\" }\n";
    let profile = Tiny {
        family: "log-block",
        au_kib: 4096,
        aus: 80,
        extra,
    }
    .profile();
    let mut card = Card::used(&profile, 1);
    let few = open_aus(&mut card, &profile, 3, 4 * KIB, false);
    let many = open_aus(&mut card, &profile, 5, 4 * KIB, false);
    assert!((many / few - 1.0).abs() < 0.01, "{few} to {many} ms");
    let few = open_aus(&mut card, &profile, 3, 16 * KIB, false);
    let many = open_aus(&mut card, &profile, 5, 16 * KIB, false);
    assert!(many > 50.0 * few, "{few} to {many} ms");
}

#[test]
fn the_fat_region_takes_scattered_writes_that_cost_a_merge_elsewhere() {
    let profile = shipped("class10-16gb");
    let mut card = Card::used(&profile, 1);
    let au = profile.au_bytes();
    let before = card.stats().au_copies;
    let fat = random(&mut card, 0, 2 * au, 4096, 500, true);
    assert_eq!(card.stats().au_copies, before);
    let elsewhere = random(&mut card, 100 * au, 20 * au, 4096, 500, true);
    assert!(fat > 20.0 * elsewhere, "{fat} to {elsewhere} a second");
    let ordered = sequential(&mut card, 0, 64 * KIB, 64, true);
    // The first of two AUs pays for closing one.
    sequential(&mut card, 50 * au, 64 * KIB, 64, true);
    let faster = sequential(&mut card, 51 * au, 64 * KIB, 64, true);
    assert!(
        ordered < faster,
        "in order it is slower: {ordered} to {faster} MB/s"
    );
}

#[test]
fn a_short_gap_is_padded_and_a_long_one_is_not() {
    let extra = "gap_bytes = { value = 16384, source = \"test\" }\n";
    let padded = Tiny {
        family: "log-block",
        au_kib: 256,
        aus: 40,
        extra,
    }
    .profile();
    let time = |profile: &Profile, gap: u64| {
        let mut card = Card::used(profile, 1);
        let base = 30 * profile.au_bytes();
        serve(&mut card, Request::write(base, 8192));
        serve(&mut card, Request::write(base + 8192 + gap, 8192));
        serve(&mut card, Request::write(base + 16384 + gap, 8192))
    };
    assert!(time(&padded, 16384) < time(&padded, 20480));
    assert!(time(&padded, 16384) < time(&log_block(), 16384));
}

#[test]
fn random_writes_to_a_full_page_map_amplify_more_than_sequential_ones() {
    let profile = page_map();
    let mut scattered = Card::used(&profile, 1);
    let mut ordered = Card::used(&profile, 1);
    let span = profile.capacity_bytes() / 65536 * 65536;
    random(&mut scattered, 0, span, 4096, 20_000, true);
    for _ in 0..8 {
        sequential(&mut ordered, 0, 64 * KIB, span / 65536, true);
    }
    let (ordered, scattered) = (
        ordered.write_amplification(),
        scattered.write_amplification(),
    );
    assert!(
        scattered.unwrap() > 1.5 * ordered.unwrap(),
        "{scattered:?} {ordered:?}"
    );
}

#[test]
fn a_write_below_the_map_unit_reads_and_modifies() {
    let profile = page_map();
    let mut card = Card::used(&profile, 1);
    let whole = serve(&mut card, Request::write(40_960, 4096));
    let part = serve(&mut card, Request::write(81_920 + 512, 512));
    let two_parts = serve(&mut card, Request::write(122_880 + 512, 4096));
    assert_eq!((part - whole).round(), 90.0);
    assert_eq!(
        (two_parts - whole).round(),
        (2.0 * 90.0 + 409.6_f64).round()
    );
    let mut fresh = Card::fresh(&profile);
    assert_eq!(
        serve(&mut fresh, Request::write(512, 512)),
        whole,
        "nothing to read"
    );
}

#[test]
fn the_volatile_cache_hides_a_burst_until_a_flush_and_drains_when_idle() {
    let profile = shipped("emmc-8gb");
    let mut card = Card::used(&profile, 1);
    let burst = |card: &mut Card| -> f64 {
        (0..16)
            .map(|i| serve(card, Request::write(100 * MIB + i * 8 * MIB, 4096)))
            .sum()
    };
    let hidden = burst(&mut card);
    let flush = serve(&mut card, Request::flush());
    assert!(
        flush > 10.0 * hidden,
        "the flush pays: {flush} µs to {hidden} µs"
    );
    assert!(
        serve(&mut card, Request::flush()) < flush / 5.0,
        "nothing is left to flush"
    );

    burst(&mut card);
    let later = card.busy_until() + Nanos::from_secs(1);
    let idle = (card.submit(later, &Request::flush()).at - later).0 as f64 / 1e3;
    assert!(idle < flush / 5.0, "programmed while idle: {idle} µs");

    let fua = Request {
        fua: true,
        ..Request::write(MIB, 4096)
    };
    assert!(serve(&mut card, fua) > 5.0 * hidden / 16.0);
    let long: f64 = (0..512)
        .map(|i| serve(&mut card, Request::write(i * 4 * MIB, 4096)))
        .sum();
    assert!(
        long / 512.0 > 5.0 * hidden / 16.0,
        "a burst beyond the cache waits"
    );
}

#[test]
fn a_flush_of_a_plain_card_takes_no_time() {
    let mut card = Card::used(&shipped("a1-32gb"), 1);
    serve(&mut card, Request::write(0, 4096));
    assert_eq!(serve(&mut card, Request::flush()), 0.0);
}

#[test]
fn requests_queue_up_behind_each_other() {
    let profile = page_map();
    let mut card = Card::fresh(&profile);
    let first = card.submit(Nanos(1000), &Request::read(0, 4096)).at;
    let second = card.submit(Nanos(1000), &Request::read(0, 4096)).at;
    assert_eq!(second.0 - first.0, first.0 - 1000);
}

#[test]
fn logs_are_closed_in_a_long_rest_and_not_in_a_short_one() {
    let extra = "idle_close_us = { value = 500000, source = \"test\" }\n";
    let profile = Tiny {
        family: "log-block",
        au_kib: 256,
        aus: 40,
        extra,
    }
    .profile();
    let copies_after = |rest_ms: u64| {
        let mut card = Card::used(&profile, 1);
        for au in 0..3 {
            serve(&mut card, Request::write(au * profile.au_bytes(), 4096));
        }
        let before = card.stats().au_copies;
        let later = card.busy_until() + Nanos::from_millis(rest_ms);
        card.submit(later, &Request::read(0, 512));
        let rested = card.stats().au_copies;
        let next = serve(&mut card, Request::write(9 * profile.au_bytes(), 4096));
        card.verify().unwrap();
        (rested - before, next)
    };
    let (short, slow) = copies_after(400);
    let (long, quick) = copies_after(5000);
    assert_eq!((short, long), (0, 3));
    assert!(quick * 5.0 < slow, "{quick} µs to {slow} µs");
}

#[test]
fn a_stream_pays_for_each_au_where_complete_ones_are_folded() {
    // WB1 -f: 540 ms an AU more, whatever the size of the writes.
    let extra = "fold_rate_bytes_per_s = { value = 8000000, source = \"test\" }\n";
    let tiny = |extra| Tiny {
        family: "update-block",
        au_kib: 256,
        aus: 40,
        extra,
    };
    let au_ms = |extra, block: u64| {
        let mut card = Card::used(&tiny(extra).profile(), 1);
        let au = 256 * KIB;
        sequential(&mut card, 0, block, 8 * au / block, true);
        let began = card.busy_until();
        sequential(&mut card, 8 * au, block, 8 * au / block, true);
        card.verify().unwrap();
        (card.busy_until() - began).0 as f64 / 8e6
    };
    let fold_ms = 256.0 * 1024.0 / 8e3;
    for block in [16 * KIB, 64 * KIB] {
        let more = au_ms(extra, block) - au_ms("", block);
        assert!(
            (more / fold_ms - 1.0).abs() < 0.1,
            "{block}: {more} ms, {fold_ms}"
        );
    }
}

#[test]
fn writes_are_joined_only_while_the_transfer_stays_open() {
    let profile = shipped("a1-32gb");
    assert_eq!(common::figure(&profile, "write.coalesce"), 1);
    let pause_ns = common::figure(&profile, "write.coalesce_us") * 1000;
    let second = |between: fn(&mut Card), rest_ns: u64| {
        let mut card = Card::fresh(&profile);
        serve(&mut card, Request::write(0, 4096));
        between(&mut card);
        let now = card.busy_until() + Nanos(rest_ns);
        let completion = card.submit(now, &Request::write(4096, 4096));
        completion.at - now
    };
    let joined = second(|_| {}, 0);
    assert_eq!(second(|_| {}, pause_ns), joined);
    let apart = second(|_| {}, pause_ns + 1);
    assert!(apart.0 > 2 * joined.0, "{apart:?}, {joined:?}");
    let read = |card: &mut Card| {
        serve(card, Request::read(1 << 20, 4096));
    };
    let flush = |card: &mut Card| {
        serve(card, Request::flush());
    };
    assert_eq!([second(read, 0), second(flush, 0)], [apart; 2]);
}
