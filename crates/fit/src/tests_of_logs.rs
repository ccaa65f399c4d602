//! Fits of what logs hold besides plain curves: rates of other programs, unusual erase sizes,
//! capacities, names and figures that no card has.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::shape::start;
use crate::tests::{card, few, figure, sparse};
use whichfs_card::Card;
use whichfs_curves::Modelled;
use whichfs_curves::flashbench::{OpenAuTests, write_times_of};
use whichfs_logs::{Caveat, Operation, Order as Access};

/// A rate as iozone with O_DIRECT gives it.
fn rate(operation: Operation, order: Access, bytes: u64, bytes_per_s: f64) -> Rate {
    Rate {
        operation,
        order,
        block_bytes: Some(bytes),
        direct: true,
        queue_depth: 1,
        bytes_per_s,
        iops: None,
        latency: None,
        label: "iozone".to_owned(),
        line: 7,
        caveat: None,
    }
}

/// What iozone would print of the card.
fn iozone(profile: &Profile, sizes: &[u64]) -> Vec<Rate> {
    let device = Modelled::new(Card::used(profile, 3), profile.capacity_bytes());
    let mut rates = Vec::new();
    for operation in [Operation::Write, Operation::Read] {
        for order in [Access::Sequential, Access::Random] {
            for bytes in sizes.iter().copied() {
                let ns = host::replay(&device, operation, order, bytes, 3).unwrap();
                rates.push(rate(operation, order, bytes, bytes as f64 / ns * 1e9));
            }
        }
    }
    rates
}

#[test]
fn rates_alone_are_fitted_and_the_rest_is_composed_and_says_so() {
    let known = card(
        &start(Family::LogBlock),
        &[
            ("write.rate_bytes_per_s", 60.0),
            ("write.overhead_us", 700e3),
        ],
    );
    let rates = iozone(&known, &[4 << 10, 64 << 10, 1 << 20, 4 << 20]);
    let options = FitOptions {
        source: "a table".into(),
        ..FitOptions::default()
    };
    let found = fit(&Curves::default(), &rates, &options).unwrap();
    assert!(!found.family_told && found.profile.composed() && found.breaks.is_none());
    assert!(found.toml.contains("They tell neither family nor sizes"));
    let off = figure(&found, "write.rate_bytes_per_s") * 60.0 / 1e9;
    assert!((off - 1.0).abs() < 0.15, "{off}");
    let in_order = |point: &ComparedPoint| {
        let host =
            [Operation::Write, Operation::Read].map(|o| PointOrder::Host(o, Access::Sequential));
        host.contains(&point.place.order)
    };
    let errors = Errors::over(&found.compared, in_order).unwrap();
    assert!(errors.points == 8 && errors.p90 < 0.15, "{errors:?}");
    for figure in found.profile.figures() {
        let Some(source) = &figure.source else {
            continue;
        };
        let fitted = source.starts_with("fit to 16 points of a table");
        assert!(
            fitted
                || ["composed", "unknown: ", "assumed: "]
                    .iter()
                    .any(|word| source.contains(word)),
            "{}: {source}",
            figure.path
        );
    }
}

#[test]
fn hdparm_alone_tells_a_read_rate() {
    let mut read = rate(Operation::Read, Access::Sequential, 2 << 20, 18e6);
    read.direct = false;
    let found = fit(&Curves::default(), &[read], &FitOptions::default()).unwrap();
    assert!(found.compared[0].error() < 0.1, "{:?}", found.compared);
    assert_eq!(found.compared[0].place.bytes, 128 << 10);
}

#[test]
fn requests_of_no_size_take_long_to_replay() {
    let random = |bytes| host::requests(Access::Random, bytes);
    assert_eq!([random(4096), random(512 << 10)], [(64, 512); 2]);
    assert_eq!([random(1 << 20), random(16 << 20)], [(64, 256), (16, 16)]);
}

const UNSYNCED: Caveat = Caveat {
    why: "unsynced",
    at_least: false,
};

#[test]
fn a_rate_that_something_else_made_slower_bounds_the_cards() {
    let bound = |bytes_per_s: f64, at_least: bool| Rate {
        caveat: Some(Caveat {
            at_least,
            ..UNSYNCED
        }),
        ..rate(Operation::Write, Access::Sequential, 1 << 20, bytes_per_s)
    };
    let found = lower_bounds(&[bound(5e6, true), bound(8e6, true), bound(90e6, false)]);
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].place.bytes, found[0].ns),
        (1 << 20, 131_072_000.0)
    );
}

#[test]
fn rates_that_may_not_be_the_cards_are_left_out_with_the_reason() {
    let (read, write) = (Operation::Read, Operation::Write);
    let (in_order, at_random) = (Access::Sequential, Access::Random);
    let with = |change: fn(&mut Rate), rate: Rate| {
        let mut rate = rate;
        change(&mut rate);
        rate
    };
    let buffered = |bytes_per_s| {
        with(
            |rate| rate.direct = false,
            rate(read, in_order, 1 << 20, bytes_per_s),
        )
    };
    let rates = [
        rate(write, in_order, 20 << 20, 12e6),
        buffered(20e6),
        buffered(22e6),
        buffered(90e6),
        with(
            |rate| rate.queue_depth = 32,
            rate(write, in_order, 4096, 9e6),
        ),
        with(
            |rate| rate.queue_depth = 32,
            rate(write, at_random, 4096, 1e6),
        ),
        with(
            |rate| rate.caveat = Some(UNSYNCED),
            rate(write, in_order, 1 << 20, 60e6),
        ),
    ];
    let (points, left_out) = host::points(&rates);
    let found: Vec<(PointOrder, u64, f64)> = points
        .iter()
        .map(|point| {
            (
                point.place.order,
                point.place.bytes,
                (point.ns / 1e4).round() / 1e2,
            )
        })
        .collect();
    let ms = |bytes: u64, bytes_per_s: f64| (bytes as f64 / bytes_per_s * 1e5).round() / 1e2;
    assert_eq!(
        found,
        [
            (
                PointOrder::Host(read, in_order),
                128 << 10,
                ms(128 << 10, 20e6)
            ),
            (
                PointOrder::Host(write, in_order),
                16 << 20,
                ms(16 << 20, 12e6)
            ),
            (PointOrder::Host(write, at_random), 4096, ms(4096, 1e6)),
        ]
    );
    let reasons = ["others are slower", "the kernel joins", "unsynced"];
    assert_eq!(left_out.len(), reasons.len(), "{left_out:?}");
    for (found, reason) in left_out.iter().zip(reasons) {
        assert!(found.contains(reason), "{found}");
    }
}

#[test]
fn a_bus_that_must_be_faster_than_reads_tell_is_composed() {
    let rates = [4 << 10, 64 << 10, 1 << 20].map(|bytes| {
        let of = |operation, rate_| rate(operation, Access::Sequential, bytes, rate_);
        [of(Operation::Write, 20e6), of(Operation::Read, 2e6)]
    });
    let found = fit(
        &Curves::default(),
        rates.as_flattened(),
        &FitOptions::default(),
    )
    .unwrap();
    let bus = "bus.rate_bytes_per_s";
    assert_eq!(
        figure(&found, bus),
        figure(&found, "write.rate_bytes_per_s")
    );
    let of_bus = found.profile.figures().find(|figure| figure.path == bus);
    let of_bus = of_bus.unwrap();
    let source = of_bus.source.as_deref().unwrap();
    assert!(
        source.starts_with("composed: what writing takes"),
        "{source}"
    );
    assert_eq!(of_bus.uncertainty_percent, 30);
    assert!(
        found.toml.starts_with("# Fitted to 6 points of "),
        "{}",
        found.toml
    );
}

#[test]
fn rates_beside_flashbench_are_points_of_the_same_fit() {
    let plain = fit(&few(), &[], &FitOptions::default()).unwrap();
    let known = card(&start(Family::PageMap), &[]);
    let rates = iozone(&known, &[16 << 10, 1 << 20]);
    let both = fit(&few(), &rates, &FitOptions::default()).unwrap();
    assert!(both.family_told && both.breaks.is_none());
    assert_eq!(both.compared.len(), plain.compared.len() + rates.len());
    // Reads were not told by the curves without -a.
    let source = |fit: &Fit| {
        fit.toml
            .contains("first_page_us = { value = 400, source = \"usual")
    };
    assert!(source(
        &fit(&without_align(), &[], &FitOptions::default()).unwrap()
    ));
    assert!(!source(
        &fit(&without_align(), &rates, &FitOptions::default()).unwrap()
    ));
    // With block sizes a fit sees nothing else.
    assert_eq!(
        fit(&few(), &[], &sparse()).unwrap().toml,
        fit(&few(), &rates, &sparse()).unwrap().toml
    );
}

fn without_align() -> Curves {
    Curves {
        align: [].into(),
        ..few()
    }
}

#[test]
fn rates_of_memory_and_of_unknown_sizes_are_left_out_with_the_reason() {
    let good = rate(Operation::Read, Access::Sequential, 4096, 5e6);
    let memory = rate(Operation::Read, Access::Sequential, 4096, 2e9);
    let mut unknown = good.clone();
    unknown.block_bytes = None;
    let mut cached = rate(Operation::Write, Access::Random, 4096, 5e6);
    cached.direct = false;
    let mut buffered = good.clone();
    buffered.direct = false;
    let rates = [good, memory, unknown, cached, buffered];
    let found = fit(&Curves::default(), &rates, &FitOptions::default()).unwrap();
    assert_eq!(found.compared.len(), 1);
    assert_eq!(found.left_out.len(), 4, "{:?}", found.left_out);
    assert!(found.left_out[0].contains("line 7") && found.left_out[0].contains("memory"));
    let error = fit(&Curves::default(), &rates[1..3], &FitOptions::default()).unwrap_err();
    assert!(error.to_string().contains("memory"), "{error}");
}

#[test]
fn an_erase_size_of_8_mib_is_replayed_and_becomes_the_au() {
    let shape = start(Family::LogBlock)
        .with("geometry.au_bytes", 8 << 20)
        .with("geometry.open_aus_linear", 3)
        .with("geometry.open_aus_random", 3);
    let tests = OpenAuTests {
        erase_bytes: 8 << 20,
        most: [4, 1],
        ..OpenAuTests::PUBLISHED
    };
    let measured = write_times_of(&card(&shape, &[]), 7, &tests)
        .unwrap()
        .curves();
    let options = FitOptions {
        erase_bytes: Some(8 << 20),
        ..sparse()
    };
    let found = fit(&measured, &[], &options).unwrap();
    assert_eq!(figure(&found, "geometry.au_bytes"), f64::from(8 << 20));
    assert_eq!(figure(&found, "geometry.open_aus_linear"), 3.0);
    let errors = Errors::over(&found.compared, |_| true).unwrap();
    assert!(errors.points == 60 && errors.median < 0.04, "{errors:?}");
    assert!(!found.toml.contains("inferred"));
    let inferred = fit(&measured, &[], &sparse()).unwrap();
    assert_eq!(figure(&inferred, "geometry.au_bytes"), f64::from(8 << 20));
    for note in [
        "# The AU is inferred: 8 MiB",
        "\"inferred: the largest block",
    ] {
        assert!(inferred.toml.contains(note), "{}", inferred.toml);
    }
    let absurd = FitOptions {
        erase_bytes: Some(100 << 20),
        ..sparse()
    };
    assert_eq!(
        fit(&measured, &[], &absurd).unwrap_err(),
        FitError::EraseSize(100 << 20)
    );
}

#[test]
fn points_that_cannot_be_replayed_do_not_count() {
    let mut beyond = Curves::default();
    let rates = [4096, 8192, 16_384, 65_536, 262_144, 1 << 20].map(|bytes| (bytes, 1e6));
    beyond.linear.insert(8, rates.into());
    let error = fit(&beyond, &[], &FitOptions::default()).unwrap_err();
    let FitError::TooFewPoints {
        points, left_out, ..
    } = error
    else {
        panic!("{error}")
    };
    assert_eq!((points, left_out.len()), (0, 1));
    let mut mixed = few();
    mixed.linear.extend(beyond.linear);
    let found = fit(&mixed, &[], &FitOptions::default()).unwrap();
    let plain = fit(&few(), &[], &FitOptions::default()).unwrap();
    assert_eq!(found.compared, plain.compared);
    assert!(found.toml.contains("# Left out: 6 points of flashbench -O"));
}

#[test]
fn a_name_cannot_break_the_profile() {
    let options = FitOptions {
        title: "a\nb\"\\".into(),
        source: "run\ntitle = \"other\"".into(),
        ..sparse()
    };
    let found = fit(&few(), &[], &options).unwrap();
    assert_eq!(found.profile.title(), "a b\"\\");
}

#[test]
fn a_larger_capacity_than_a_profile_may_have_is_cut() {
    let options = FitOptions {
        capacity_bytes: Some(900_000_000_000_000),
        ..sparse()
    };
    let found = fit(&few(), &[], &options).unwrap();
    assert_eq!(figure(&found, "geometry.capacity_bytes"), 2_f64.powi(37));
    assert!(found.toml.contains("from 900000000000000 bytes as stated"));
}

#[test]
fn reads_of_flashbench_a_have_the_size_that_its_least_boundary_tells() {
    let mut coarse = few();
    let of = |us: f64| vec![[us, us + 100.0, us, 100.0]];
    coarse.align = (15..27).map(|power| (1 << power, of(1000.0))).collect();
    let first = |curves: &Curves| {
        let found = fit(curves, &[], &FitOptions::default()).unwrap();
        let command = figure(&found, "bus.command_us");
        figure(&found, "read.first_page_us") + command
    };
    // 16 KiB take 712 us at 23 MB/s.
    assert!((first(&coarse) - (1000.0 - 712.0)).abs() < 2.0);
    coarse.align = (16..27).map(|power| (1 << power, of(1000.0))).collect();
    let found = fit(&coarse, &[], &FitOptions::default()).unwrap();
    assert_eq!(figure(&found, "read.first_page_us"), 400.0);
}
