//! What real cards were measured to do (`flash.md` §2.3), one test each, on a profile of the
//! family with figures of the card that the finding cites.
#![allow(clippy::unwrap_used)]

use crate::common;

use common::{open_aus, random, serve};
use whichfs_card::{Card, Profile, Request};
use whichfs_units::{GIB, KIB, MIB, Nanos};

/// A card of `family` with AUs of 4 MiB, its own figures in `sections`.
fn card(family: &str, open: u64, sections: &str) -> Profile {
    Profile::parse("test.toml", &card_text(family, open, sections)).unwrap()
}

fn card_text(family: &str, open: u64, sections: &str) -> String {
    let figure =
        |key: &str, value: u64| format!("{key} = {{ value = {value}, source = \"test\" }}\n");
    let head = format!("title = \"test\"\ninterface = \"sd\"\nfamily = \"{family}\"\n[geometry]\n");
    let common = [
        figure("capacity_bytes", GIB),
        figure("page_bytes", 16 * KIB),
        figure("write_unit_bytes", 32 * KIB),
        figure("au_bytes", 4 * MIB),
        figure("open_aus_linear", open),
        figure("open_aus_random", open),
        figure("spare_aus", 24),
        "[bus]\n".into(),
        figure("command_us", 100),
        figure("rate_bytes_per_s", 23_000_000),
        "[read]\n".into(),
        figure("first_page_us", 400),
        figure("next_page_us", 290),
        "[discard]\n".into(),
        figure("supported", 1),
    ];
    let own: String = sections
        .lines()
        .map(|line| match line.trim().split_once(" = ") {
            Some((key, value)) => figure(key, value.parse().unwrap()),
            None => format!("{}\n", line.trim()),
        })
        .collect();
    head + &common.concat() + &own
}

/// WB21, a Phison card with three open AUs and a small-write area.
fn wb21() -> Profile {
    card(
        "log-block",
        3,
        "[write]
        overhead_us = 1000
        rate_bytes_per_s = 10200000
        partial_us = 2250
        partial_full_us = 1600
        [copy]
        rate_bytes_per_s = 8700000
        erase_us = 3000
        [log_block]
        log_percent = 52
        small_write_bytes = 8192
        small_write_us = 20000
        small_write_jumps = 1",
    )
}

/// WB1, a SanDisk SU04G with four update blocks.
fn wb1() -> Profile {
    card(
        "update-block",
        4,
        "[write]
        overhead_us = 440
        rate_bytes_per_s = 10300000
        partial_us = 1500
        partial_full_us = 860
        [copy]
        rate_bytes_per_s = 12000000
        erase_us = 3000
        [update_block]
        group_bytes = 524288
        group_rate_bytes_per_s = 7700000
        small_bytes = 8192
        small_us = 810",
    )
}

/// WB14 and WB16_2, an NCard: page mapped, slower with every AU beyond two.
fn ncard() -> Profile {
    card(
        "page-map",
        2,
        "[write]
        overhead_us = 1150
        rate_bytes_per_s = 10000000
        partial_us = 2100
        partial_full_us = 1900
        program_bytes = 16384
        switch_us = 2600
        [copy]
        rate_bytes_per_s = 8500000
        erase_us = 3000
        [page_map]
        unit_bytes = 16384
        modify_us = 0
        streams = 2
        background_aus = 12
        [reader]
        max_bytes = 65536",
    )
}

fn ms(profile: &Profile, aus: u64, block: u64, shuffled: bool) -> f64 {
    open_aus(&mut Card::used(profile, 1), profile, aus, block, shuffled)
}

/// Asserts that `modelled` is within `percent` of `measured`, up or down as a factor.
fn near(what: &str, modelled: f64, measured: f64, percent: f64) {
    let factor = (modelled / measured).max(measured / modelled);
    assert!(
        factor <= 1.0 + percent / 100.0,
        "{what}: modelled {modelled:.2}, measured {measured:.2}"
    );
}

#[test]
fn finding_2_3_1_in_order_in_an_open_au_time_is_affine_in_size() {
    // WB16_2, one AU: 2.9 ms for 16 KiB, 15.6 for 128 KiB, 123 for 1 MiB.
    let profile = ncard();
    for (kib, measured) in [
        (16, 3.0),
        (64, 7.8),
        (128, 15.6),
        (512, 61.9),
        (1024, 123.1),
    ] {
        near("16_2", ms(&profile, 1, kib * KIB, false), measured, 12.0);
    }
}

#[test]
fn finding_2_3_2_contiguous_small_writes_are_joined_and_alternating_ones_are_not() {
    // WB6: 4 KiB takes 0.6 ms on one AU and 21 ms on two in turns.
    let text = "[write]
        overhead_us = 1450
        rate_bytes_per_s = 10200000
        partial_us = 1600
        partial_full_us = 1600
        coalesce = 1
        coalesce_bytes = 65536
        [copy]
        rate_bytes_per_s = 8700000
        erase_us = 3000
        [log_block]
        small_write_bytes = 8192
        small_write_us = 21000
        [reader]
        max_bytes = 122880";
    let profile = card("log-block", 3, text);
    near("one AU", ms(&profile, 1, 4 * KIB, false), 0.6, 20.0);
    near("two AUs", ms(&profile, 2, 4 * KIB, false), 21.4, 5.0);
    // The reader cuts at 120 KiB, in the middle of a page, and does not join what is cut.
    let (whole, cut) = (
        ms(&profile, 1, 64 * KIB, false),
        ms(&profile, 1, 128 * KIB, false),
    );
    near("64 KiB", whole, 6.4, 10.0);
    near("128 KiB", cut, 19.4, 15.0);
}

#[test]
fn finding_2_3_3_a_write_below_a_page_costs_more_than_a_page() {
    // WB19: 4 KiB 5.3 ms, 8 KiB 4.7, 16 KiB 3.4.
    let text = "[write]
        overhead_us = 700
        rate_bytes_per_s = 6000000
        partial_us = 5000
        partial_full_us = 2600
        [copy]
        rate_bytes_per_s = 9500000
        erase_us = 3000
        [log_block]";
    let profile = card("log-block", 8, text);
    let times = [4, 8, 16].map(|kib| ms(&profile, 2, kib * KIB, false));
    assert!(times[0] > times[1] && times[1] > times[2], "{times:?}");
    for (modelled, measured) in times.into_iter().zip([5.3, 4.7, 3.4]) {
        near("19", modelled, measured, 12.0);
    }
}

#[test]
fn finding_2_3_4_random_in_an_open_au_merges_its_log_whatever_the_size_of_the_writes() {
    // WB21: 4.6 ms more for 16 KiB, 52 ms more for 256 KiB: 1.1 s an AU, some two merges.
    let profile = wb21();
    for (kib, ordered, shuffled) in [(16, 2.6, 7.2), (64, 7.4, 24.7), (256, 26.3, 78.7)] {
        near("in order", ms(&profile, 1, kib * KIB, false), ordered, 10.0);
        near(
            "at random",
            ms(&profile, 1, kib * KIB, true),
            shuffled,
            25.0,
        );
    }
}

#[test]
fn finding_2_3_5_one_au_too_many_costs_an_au_copy_whatever_the_size_of_the_request() {
    // WB21: 485-489 ms from 16 KiB to 256 KiB with four AUs, 2.7 ms to 26 ms with three.
    let profile = wb21();
    for kib in [8, 16, 64, 256] {
        near("four AUs", ms(&profile, 4, kib * KIB, false), 487.0, 7.0);
        assert!(ms(&profile, 3, kib * KIB, false) < 30.0);
    }
}

#[test]
fn finding_2_3_6_the_slow_path_and_the_copy_rate_tell_the_size_of_an_au() {
    for au_kib in [1536, 3072, 4096, 6144, 12_288] {
        let text = wb5_text(au_kib);
        let three = Profile::parse("au.toml", &text).unwrap();
        assert_eq!(three.au_bytes(), au_kib * KIB);
        // With a place for each AU nothing is merged, and the same writes tell no size.
        let places = "open_aus_linear = { value = 3,";
        assert_eq!(text.matches(places).count(), 1);
        let four = text.replace(places, "open_aus_linear = { value = 4,");
        let four = Profile::parse("au.toml", &four).unwrap();
        for bytes in [16 * KIB, 64 * KIB, 256 * KIB] {
            let (least, most) = told_bytes(&three, bytes);
            near("AU bytes, least", least, three.au_bytes() as f64, 12.0);
            near("AU bytes, most", most, three.au_bytes() as f64, 12.0);
            let (_, most) = told_bytes(&four, bytes);
            assert!(
                most < 0.5 * three.au_bytes() as f64,
                "{au_kib} {bytes}: {most}"
            );
        }
    }
}

/// Least and most of the AU's size that 16 writes of `bytes` tell which go on in four AUs in
/// turns: their time, less what programming takes, times the copy rate.
fn told_bytes(profile: &Profile, bytes: u64) -> (f64, f64) {
    let (mut card, au) = (Card::used(profile, 1), profile.au_bytes());
    let mut told = Vec::new();
    for step in 0..5 {
        for which in 10..14 {
            let write = Request::write(which * au + step * bytes, bytes);
            let us = serve(&mut card, write);
            let programming =
                bytes as f64 / common::figure(profile, "write.rate_bytes_per_s") as f64;
            // What is written is not copied.
            told.push((us / 1e6 - programming) * 8_700_000.0 + bytes as f64);
        }
    }
    // The first of each AU finds what was open before.
    let told = &told[4..];
    let least = told.iter().copied().fold(f64::INFINITY, f64::min);
    (least, told.iter().copied().fold(0.0, f64::max))
}

/// WB5 with AUs of another size and WB21's copy rate.
fn wb5_text(au_kib: u64) -> String {
    let (_, text) = whichfs_card::builtin()
        .iter()
        .find(|(name, _)| *name == "class4-4gb")
        .unwrap();
    let au = format!("au_bytes = {{ value = {},", au_kib * KIB);
    let mut text = (*text).to_owned();
    for (from, to) in [
        ("au_bytes = { value = 4_194_304,", au.as_str()),
        (
            "copy]\nrate_bytes_per_s = { value = 4_700_000",
            "copy]\nrate_bytes_per_s = { value = 8_700_000",
        ),
    ] {
        assert_eq!(text.matches(from).count(), 1, "{from}");
        text = text.replace(from, to);
    }
    text
}

#[test]
fn finding_2_3_7_latency_is_not_monotonic_in_request_size() {
    // WB1 at random in an open AU: 4 KiB 3.7-4.1 ms, 16-256 KiB 59-71 ms, 1 MiB at full speed.
    let profile = wb1();
    let modelled = [4, 16, 64, 256, 512].map(|kib| ms(&profile, 1, kib * KIB, true));
    for (modelled, measured) in modelled.into_iter().zip([4.0, 68.6, 62.0, 59.5, 62.6]) {
        near("1_2", modelled, measured, 25.0);
    }
    assert!(modelled[0] * 10.0 < modelled[1] && modelled[3] < modelled[1]);
    near(
        "1 MiB",
        ms(&profile, 1, MIB, true),
        ms(&profile, 1, MIB, false),
        5.0,
    );
    // Merging sixteen 4 KiB writes into one of 64 KiB is no gain.
    assert!(modelled[2] * 0.9 < modelled[0] * 16.0);
}

#[test]
fn finding_2_3_8_4k_is_immune_where_16k_collapses() {
    // WB21 with four AUs in turns: 4 KiB 21 ms as with two, 16 KiB 485 ms.
    let profile = wb21();
    let small = [2, 4, 7].map(|aus| ms(&profile, aus, 4 * KIB, false));
    near("4 KiB", small[1], small[0], 1.0);
    near("4 KiB", small[2], 21.4, 15.0);
    assert!(ms(&profile, 4, 16 * KIB, false) > 100.0 * ms(&profile, 3, 16 * KIB, false));
}

#[test]
fn finding_2_3_9_reads_of_two_pages_take_longer_than_of_one() {
    // SanDisk Extreme: 8 KiB random reads at half the rate of 4 KiB ones: what is read at once,
    // the page of the model, has 4 KiB.
    let text = "[write]
        overhead_us = 700
        rate_bytes_per_s = 30000000
        [copy]
        rate_bytes_per_s = 30000000
        erase_us = 4500
        [page_map]
        unit_bytes = 4096
        modify_us = 300";
    let large = card_text("page-map", 8, text);
    let page = "page_bytes = { value = 16384";
    assert_eq!(large.matches(page).count(), 1);
    let ratio = |text: &str| {
        let mut used = Card::used(&Profile::parse("test.toml", text).unwrap(), 1);
        let mut reads = |bytes| random(&mut used, 0, GIB / 2, bytes, 500, false);
        reads(8 * KIB) / reads(4 * KIB)
    };
    let small = large.replace(page, "page_bytes = { value = 4096");
    let ratios = [ratio(&small), ratio(&large)];
    assert!(ratios[0] < 0.65 && ratios[1] > 0.75, "{ratios:?}");
}

#[test]
fn finding_2_3_9_a_modern_card_writes_fewer_bytes_with_64k_at_random_than_with_8k() {
    // SanDisk Extreme 64 GB, no queue: 8 KiB 998 a second (8.0 MB/s), 64 KiB 83 (5.4 MB/s), in
    // order 63 MB/s.
    let text = |most: u64| {
        format!(
            "[write]
            overhead_us = 300
            jump_us = 10300
            rate_bytes_per_s = 63700000
            [copy]
            rate_bytes_per_s = 63700000
            erase_us = 4500
            [page_map]
            unit_bytes = 4096
            modify_us = 300
            background_aus = 12
            [slc]
            bytes = 134217728
            most_bytes = {most}
            overhead_us = 697
            rate_bytes_per_s = 40000000"
        )
    };
    let rates = |most: u64| {
        let wide = card_text("page-map", 8, &text(most)).replace("= 23000000", "= 104000000");
        assert!(wide.contains("104000000"));
        let mut card = Card::fresh(&Profile::parse("test.toml", &wide).unwrap());
        let mut at_random = |bytes| random(&mut card, 0, GIB / 2, bytes, 500, true);
        let [small, large] = [8 * KIB, 64 * KIB].map(&mut at_random);
        (
            small,
            large,
            common::sequential(&mut card, GIB / 2, 512 * KIB, 64, true),
        )
    };
    let (small, large, ordered) = rates(32 * KIB);
    near("8 KiB", small, 998.0, 5.0);
    near("64 KiB", large, 83.0, 5.0);
    assert!(
        large * 64.0 < small * 8.0 && ordered > 40.0,
        "{small} {large} {ordered}"
    );
    // Where all writes go to the cache, larger ones move more.
    let (small, large, _) = rates(0);
    assert!(large * 64.0 > 2.0 * small * 8.0, "{small} {large}");
}

#[test]
fn finding_2_3_10_a_pslc_cache_is_fast_until_full_and_again_after_a_rest() {
    // SanDisk Ultra 64 GB: 19.6 MB/s into the cache, 15.9 MB/s beside it.
    let text = "[write]
        overhead_us = 0
        rate_bytes_per_s = 15900000
        [copy]
        rate_bytes_per_s = 16000000
        erase_us = 4500
        [page_map]
        unit_bytes = 4096
        modify_us = 0
        background_aus = 12
        [slc]
        bytes = 67108864
        rate_bytes_per_s = 19600000
        drain_rate_bytes_per_s = 10000000";
    let profile = card("page-map", 8, text);
    let mut card = Card::fresh(&profile);
    let rate = |card: &mut Card, start: u64| common::sequential(card, start, MIB, 32, true);
    near("cached", rate(&mut card, 0), 19.6, 3.0);
    near("cached", rate(&mut card, 32 * MIB), 19.6, 3.0);
    near("full", rate(&mut card, 64 * MIB), 15.9, 3.0);
    let rested = card.busy_until() + Nanos::from_secs(5);
    card.submit(rested, &Request::read(0, 4096));
    near("drained for 5 s", rate(&mut card, 96 * MIB), 19.6, 3.0);
    near("full again", rate(&mut card, 128 * MIB), 16.8, 10.0);
    assert!(
        card.write_amplification().unwrap() > 1.5,
        "programmed twice"
    );
    card.verify().unwrap();
}

#[test]
fn finding_2_3_11_collection_stalls_for_copies_of_whole_blocks() {
    // Lexar 16 GB stalls now and then; most writes are fast.
    let text = "[write]
        overhead_us = 700
        rate_bytes_per_s = 11000000
        [copy]
        rate_bytes_per_s = 9000000
        erase_us = 3000
        [page_map]
        unit_bytes = 4096
        modify_us = 300";
    let profile = card("page-map", 8, text);
    let (times, copies) = scattered(Card::used(&profile, 1));
    let (median, worst) = (times[10_000], times[19_999]);
    assert!(
        median < 2.0 && worst > 100.0 * median,
        "{median} ms, {worst} ms"
    );
    // A stall is the copy of one block or more, and nothing else is one.
    let stalls: Vec<f64> = times.iter().copied().filter(|ms| *ms > 50.0).collect();
    let stalled: f64 = stalls.iter().sum();
    assert!(
        copies as usize >= stalls.len() && !stalls.is_empty(),
        "{copies}"
    );
    assert!(
        stalled > 0.3 * times.iter().sum::<f64>(),
        "{stalled} ms in stalls"
    );
    // No block to collect, no stall: the same writes on a card that was never written.
    let (times, copies) = scattered(Card::fresh(&profile));
    assert_eq!(copies, 0);
    assert!(times[19_999] < 10.0 * times[10_000], "{} ms", times[19_999]);
    // Copying at half the rate, stalls take twice as long.
    let slow = text.replace("= 9000000", "= 4500000");
    let (times, _) = scattered(Card::used(&card("page-map", 8, &slow), 1));
    near("at half the rate", times[19_999], 2.0 * worst, 5.0);
}

/// Times of 20 000 small writes all over `card` in milliseconds, ascending, and the copies of
/// blocks that it made.
fn scattered(mut card: Card) -> (Vec<f64>, u64) {
    let before = card.stats().au_copies;
    let mut times: Vec<f64> = (0..20_000_u64)
        .map(|step| {
            let offset = step * 7919 % (GIB / 4096) * 4096;
            serve(&mut card, Request::write(offset, 4096)) / 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    (times, card.stats().au_copies - before)
}

#[test]
fn more_aus_than_streams_slow_a_page_mapped_card_gradually() {
    // WB16_2 at 64 KiB: 10.4 ms with two AUs, 13-15 with three to five, 18 with seven.
    let profile = ncard();
    let times = [2, 3, 5, 7].map(|aus| ms(&profile, aus, 64 * KIB, false));
    for (modelled, measured) in times.into_iter().zip([10.4, 14.5, 13.3, 18.1]) {
        near("16_2", modelled, measured, 25.0);
    }
    assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "{times:?}");
}

#[test]
fn finding_2_5_only_the_second_au_of_a_sandisk_card_is_another() {
    // WB1 -f: 16 KiB in order 3.0 ms in the second AU, 4.5 in the others; 4 KiB 4.0 and 2.8.
    let text = "[write]
        overhead_us = 750
        rate_bytes_per_s = 4500000
        partial_us = 2000
        partial_full_us = 2000
        [copy]
        rate_bytes_per_s = 12000000
        erase_us = 3000
        [update_block]
        group_rate_bytes_per_s = 7700000
        [fat]
        aus = 1
        first_au = 1
        overhead_us = 900
        rate_bytes_per_s = 8400000
        sub_page_us = 2500";
    let profile = card("update-block", 4, text);
    let mut card = Card::used(&profile, 1);
    let mut au = |which: u64, block: u64| {
        let mb_s = common::sequential(&mut card, which * 4 * MIB, block, 4 * MIB / block, true);
        block as f64 / 1e3 / mb_s
    };
    for other in [2, 3, 0] {
        au(other, 16 * KIB);
        near("16 KiB", au(other, 16 * KIB), 4.5, 5.0);
        near("4 KiB", au(other, 4 * KIB), 2.8, 10.0);
    }
    near("16 KiB there", au(1, 16 * KIB), 3.0, 5.0);
    near("4 KiB there", au(1, 4 * KIB), 4.0, 5.0);
}

#[test]
fn small_writes_in_order_beyond_the_update_blocks_are_gathered_as_larger_ones_are() {
    // WB1 -O 5: 2.5 ms for 8 KiB and 3.6 ms for 16 KiB; WB4 3.0 and 4.5; WB12 2.3 and 3.0.
    let profile = wb1();
    let beyond = |block| ms(&profile, 5, block, false) / ms(&profile, 4, block, false);
    for block in [4 * KIB, 8 * KIB] {
        let (small, large) = (beyond(block), beyond(32 * KIB));
        assert!(
            small < large,
            "{block}: {small} times, {large} times 32 KiB"
        );
    }
}
