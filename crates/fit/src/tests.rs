//! Fits of modelled cards, whose figures are known, and of curves that no card has.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::shape::{Shape, start};
use whichfs_curves::flashbench::{OpenAuTests, Opened, curves_of, write_times_of};

const SPARSE: [u64; 3] = [4 << 10, 64 << 10, 1 << 20];

/// Curves of a shape with the free figures at `values`, others at their priors' centres
/// about 100 ns a byte.
fn curves(shape: &Shape, values: &[(&str, f64)]) -> Curves {
    curves_of(&card(shape, values), 7).unwrap()
}

/// The card of that shape and these figures.
pub(super) fn card(shape: &Shape, values: &[(&str, f64)]) -> Profile {
    let free = shape.free();
    let theta: Vec<f64> = free
        .iter()
        .enumerate()
        .map(
            |(j, free)| match values.iter().find(|value| value.0 == free.path) {
                Some((_, theta)) => *theta,
                None if j == 0 => 100.0,
                None if free.prior.relative => 100.0 * free.prior.centre.exp(),
                None => free.prior.centre.exp(),
            },
        )
        .collect();
    let capacity = 128 * shape.value("geometry.au_bytes");
    shape.sheet(&free, &theta, capacity).profile().unwrap()
}

pub(super) fn sparse() -> FitOptions {
    FitOptions {
        block_sizes: Some(SPARSE.to_vec()),
        ..FitOptions::default()
    }
}

pub(super) fn figure(fit: &Fit, path: &str) -> f64 {
    let found = fit.profile.figures().find(|figure| figure.path == path);
    found.unwrap_or_else(|| panic!("no {path}")).value as f64
}

/// Fits three sizes, and checks family, figures (with the factor by which
/// they may be off) and errors over all sizes.
fn recovers(curves: &Curves, family: Family, figures: &[(&str, f64, f64)]) {
    {
        let found = fit(curves, &[], &sparse()).unwrap();
        assert_eq!(found.profile.family(), family, "{:?}", found.families);
        for (path, truth, factor) in figures {
            let off = (figure(&found, path) / truth).ln().abs();
            assert!(
                off <= factor.ln() + 1e-9,
                "{path}: {} for {truth}",
                figure(&found, path)
            );
        }
        let errors = Errors::over(&found.compared, |_| true).unwrap();
        assert!(errors.median < 0.04 && errors.p90 < 0.25, "{errors:?}");
        assert!(found.breaks.is_none());
    }
}

#[test]
fn a_card_with_log_blocks_and_a_small_write_area_comes_back() {
    let shape = start(Family::LogBlock)
        .with("geometry.open_aus_linear", 3)
        .with("geometry.open_aus_random", 3)
        .with("log_block.small_write_bytes", 8 << 10);
    let measured = curves(
        &shape,
        &[
            ("log_block.small_write_us", 20e6),
            ("copy.rate_bytes_per_s", 110.0),
        ],
    );
    let figures = [
        ("geometry.open_aus_linear", 3.0, 1.0),
        ("geometry.open_aus_random", 3.0, 1.0),
        ("write.rate_bytes_per_s", 10e6, 1.1),
        ("copy.rate_bytes_per_s", 1e9 / 110.0, 1.1),
        ("log_block.small_write_us", 20e3, 1.05),
    ];
    recovers(&measured, Family::LogBlock, &figures);
}

#[test]
fn a_card_with_log_blocks_alone_comes_back() {
    let shape = start(Family::LogBlock)
        .with("geometry.open_aus_linear", 5)
        .with("geometry.open_aus_random", 5);
    let figures = [
        ("geometry.open_aus_linear", 5.0, 1.0),
        ("write.rate_bytes_per_s", 10e6, 1.15),
    ];
    recovers(&curves(&shape, &[]), Family::LogBlock, &figures);
}

#[test]
fn a_card_with_update_blocks_comes_back() {
    let shape = start(Family::UpdateBlock).with("geometry.open_aus_linear", 4);
    let measured = curves(&shape, &[("update_block.group_rate_bytes_per_s", 130.0)]);
    let figures = [
        ("geometry.open_aus_linear", 4.0, 1.0),
        ("update_block.group_bytes", 524_288.0, 1.0),
        ("update_block.group_rate_bytes_per_s", 1e9 / 130.0, 1.1),
        ("write.rate_bytes_per_s", 10e6, 1.1),
    ];
    recovers(&measured, Family::UpdateBlock, &figures);
}

#[test]
fn a_page_mapped_card_comes_back() {
    let shape = start(Family::PageMap).with("page_map.streams", 3);
    let measured = curves(
        &shape,
        &[("write.switch_us", 2e6), ("copy.rate_bytes_per_s", 90.0)],
    );
    let figures = [
        ("page_map.streams", 3.0, 1.0),
        ("write.rate_bytes_per_s", 10e6, 1.1),
        ("copy.rate_bytes_per_s", 1e9 / 90.0, 1.25),
    ];
    recovers(&measured, Family::PageMap, &figures);
}

/// Few points, quickly fitted: two numbers of AUs.
pub(super) fn few() -> Curves {
    let mut few = curves(&start(Family::PageMap), &[]);
    few.linear.retain(|aus, _| [1, 2].contains(aus));
    few.random.retain(|aus, _| *aus == 2);
    few
}

#[test]
fn curves_that_no_card_has_fit_no_family_and_the_worst_is_named() {
    let mut wild = few();
    // The planted fault: one curve goes up and down by a factor of forty from size to size.
    for (index, rate) in wild.random.get_mut(&2).unwrap().values_mut().enumerate() {
        *rate *= if index % 2 == 0 { 40.0 } else { 1.0 };
    }
    let found = fit(&wild, &[], &FitOptions::default()).unwrap();
    let stated = found.profile.fit_error().unwrap();
    assert!(stated.contains("; mostly residual, "), "{stated}");
    let broken = found.breaks.unwrap();
    assert_eq!(
        (broken.curve.order, broken.curve.aus),
        (PointOrder::Random, 2)
    );
    assert!(
        fit(&few(), &[], &FitOptions::default())
            .unwrap()
            .breaks
            .is_none()
    );
}

#[test]
fn a_card_of_which_a_sixth_is_off_by_more_than_units_of_one_model_differ_fits_no_family() {
    // Every second size of one of three curves by a factor of 1.2: scatter; of 2: none.
    for (factor, fits) in [(1.2, true), (2.0, false)] {
        let mut degraded = few();
        // In order: at random, merges of several logs may make every second size slower.
        let curve = degraded.linear.get_mut(&2).unwrap();
        for rate in curve.values_mut().step_by(2) {
            *rate /= factor;
        }
        let found = fit(&degraded, &[], &FitOptions::default()).unwrap();
        assert_eq!(found.breaks.is_none(), fits, "{factor}: {:?}", found.breaks);
        let named = found.breaks.map(|of| of.curve.name());
        assert!(
            fits || named.as_deref() == Some("linear, 2 AUs"),
            "{named:?}"
        );
    }
}

#[test]
fn with_block_sizes_nothing_else_is_looked_at() {
    let measured = few();
    let before = fit(&measured, &[], &sparse()).unwrap();
    let mut altered = measured.clone();
    altered.align.clear();
    altered
        .fat
        .values_mut()
        .flatten()
        .flatten()
        .for_each(|rate| *rate *= 3.0);
    let parts = [&mut altered.linear, &mut altered.random];
    for rates in parts.into_iter().flat_map(|part| part.values_mut()) {
        for (bytes, rate) in rates {
            *rate *= if SPARSE.contains(bytes) { 1.0 } else { 5.0 };
        }
    }
    let after = fit(&altered, &[], &sparse()).unwrap();
    assert_eq!(before.toml, after.toml);
    // The alteration is one that a fit to everything sees.
    let [before, after] =
        [&measured, &altered].map(|curves| fit(curves, &[], &FitOptions::default()).unwrap().toml);
    assert_ne!(before, after);
}

#[test]
fn equal_input_gives_equal_bytes() {
    let measured = few();
    let [one, two] = [(); 2].map(|()| fit(&measured, &[], &sparse()).unwrap());
    assert_eq!(one.toml, two.toml);
    assert_eq!(one.compared, two.compared);
}

#[test]
fn every_figure_says_where_it_is_from() {
    let options = FitOptions {
        title: "a \"card\"".into(),
        source: "run 7".into(),
        ..sparse()
    };
    let found = fit(&few(), &[], &options).unwrap();
    assert_eq!(found.profile.title(), "a \"card\"");
    assert!(found.toml.contains("run 7"));
    let stated = found.profile.fit_error().unwrap();
    assert!(stated.ends_with(" % of 9 fitted points"), "{stated}");
    assert_eq!(found.profile.basis(), whichfs_card::Basis::Fitted);
    let figure = |path: &str| {
        let found = found.profile.figures().find(|figure| figure.path == path);
        found.unwrap().clone()
    };
    let stated = |figure: &&whichfs_card::Figure| figure.source.is_some();
    assert!(found.profile.figures().filter(stated).count() > 25);
    let source = |path: &str| figure(path).source.unwrap();
    assert!(source("write.rate_bytes_per_s").starts_with("fit to 9 points of run 7: "));
    // Three sizes in order say nothing of copying, nor of reads.
    assert!(source("copy.rate_bytes_per_s").starts_with("not determined: prior"));
    assert!(source("read.first_page_us").starts_with("usual value"));
    for path in [
        "copy.rate_bytes_per_s",
        "read.first_page_us",
        "copy.erase_us",
    ] {
        assert!(figure(path).uncertainty_percent >= 30, "{path}");
    }
    assert!(figure("write.rate_bytes_per_s").uncertainty_percent < 30);
}

#[test]
fn what_the_points_decide_is_not_called_a_usual_value() {
    let shape = start(Family::UpdateBlock)
        .with("geometry.open_aus_linear", 4)
        .with("geometry.open_aus_random", 4);
    let found = fit(&curves(&shape, &[]), &[], &sparse()).unwrap();
    assert_eq!(figure(&found, "geometry.open_aus_random"), 4.0);
    let source = |path: &str| {
        let found = found.profile.figures().find(|figure| figure.path == path);
        found.unwrap().source.clone().unwrap()
    };
    for path in ["geometry.open_aus_linear", "geometry.open_aus_random"] {
        assert!(
            source(path).starts_with("fit: "),
            "{path}: {}",
            source(path)
        );
    }
    assert!(source("geometry.page_bytes").starts_with("usual value"));
}

#[test]
fn a_number_of_aus_without_a_step_is_not_said_to_be_one() {
    for family in [Family::UpdateBlock, Family::LogBlock] {
        let found = fit(&curves(&start(family), &[]), &[], &sparse()).unwrap();
        assert_eq!(found.profile.family(), family);
        let source = "value = 8, source = \"fit: no step up to 7 AUs\"";
        assert_eq!(found.toml.matches(source).count(), 2, "{}", found.toml);
    }
}

#[test]
fn too_little_is_refused() {
    let sizes = FitOptions {
        block_sizes: Some(vec![4 << 10, 64 << 10]),
        ..FitOptions::default()
    };
    let error = fit(&few(), &[], &sizes).unwrap_err();
    assert_eq!(
        error,
        FitError::TooFewPoints {
            points: 6,
            sizes: 2,
            left_out: Vec::new(),
        }
    );
    let small = FitOptions {
        capacity_bytes: Some(64 << 20),
        ..sparse()
    };
    assert_eq!(
        fit(&few(), &[], &small).unwrap_err(),
        FitError::TooSmall {
            bytes: 64 << 20,
            least: 352 << 20,
            erase_bytes: 4 << 20,
        }
    );
}

/// Curves of a card with three places that closes the AU opened first or the one used last
/// longest ago, with so many AUs open before the tests with 4 AUs, linear and random.
fn of_places(first_opened: u64, opened: Option<[u8; 2]>) -> Curves {
    let shape = start(Family::LogBlock)
        .small_writes(0)
        .with("geometry.open_aus_linear", 3)
        .with("geometry.open_aus_random", 3)
        .with("log_block.first_opened", first_opened);
    let before =
        |[linear, random]: [u8; 2]| Opened::UNTOLD.with(false, 4, linear).with(true, 4, random);
    let tests = OpenAuTests {
        most: [5, 4],
        opened: opened.map_or(Opened::UNTOLD, before),
        ..OpenAuTests::PUBLISHED
    };
    write_times_of(&card(&shape, &[]), 7, &tests)
        .unwrap()
        .curves()
}

#[test]
fn a_card_that_closes_what_was_opened_first_is_told_from_one_that_goes_by_the_last_use() {
    // Whatever was open before the tests, or as the tests before leave it.
    let planted = [
        (1, Some([3, 2]), 1.0),
        (1, Some([2, 0]), 1.0),
        (1, None, 1.0),
        (0, None, 0.0),
        (0, Some([3, 2]), 0.0),
        // Where nothing of the tests was open, both do the same.
        (1, Some([0, 0]), 0.0),
    ];
    for (first_opened, opened, expect) in planted {
        let found = fit(&of_places(first_opened, opened), &[], &sparse()).unwrap();
        assert_eq!(found.profile.family(), Family::LogBlock);
        let told = figure(&found, "log_block.first_opened");
        assert_eq!(told, expect, "{first_opened} {opened:?}");
        assert_eq!(figure(&found, "geometry.open_aus_linear"), 3.0);
        let errors = Errors::over(&found.compared, |point| !point.fitted).unwrap();
        assert!(
            errors.median < 0.04 && errors.p90 < 0.12,
            "{opened:?} {errors:?}"
        );
    }
}

#[test]
fn what_goes_with_small_writes_is_not_said_to_be_usual() {
    let found = fit(&of_places(0, None), &[], &sparse()).unwrap();
    for path in ["log_block.merge_at_once", "log_block.idle_close_us"] {
        let told = found.profile.figures().find(|told| told.path == path);
        let source = told.unwrap().source.clone().unwrap_or_default();
        assert!(
            source.starts_with("as cards of the data"),
            "{path}: {source}"
        );
    }
    assert_eq!(figure(&found, "log_block.merge_at_once"), 1.0);
}

#[test]
fn a_card_that_closes_what_was_opened_first_says_what_was_open() {
    let found = fit(&of_places(1, Some([3, 2])), &[], &sparse()).unwrap();
    let stated = "so many had been opened before: 3 before linear, 4 AUs; 2 before random, 4 AUs";
    assert!(found.toml.contains(stated), "{}", found.toml);
}

#[test]
fn one_open_au_is_seen_in_order_and_at_random() {
    let shape = start(Family::LogBlock)
        .small_writes(0)
        .with("geometry.open_aus_linear", 1)
        .with("geometry.open_aus_random", 1);
    let tests = OpenAuTests {
        most: [4, 3],
        ..OpenAuTests::PUBLISHED
    };
    let measured = write_times_of(&card(&shape, &[]), 7, &tests)
        .unwrap()
        .curves();
    let found = fit(&measured, &[], &FitOptions::default()).unwrap();
    for path in ["geometry.open_aus_linear", "geometry.open_aus_random"] {
        assert_eq!(figure(&found, path), 1.0, "{path}");
    }
}

#[test]
fn what_no_family_has_is_residual_and_the_card_meets_its_curves_with_it() {
    // At random, 64 KiB and what is near take up to twice as long, whatever the number of AUs.
    let mut measured = curves(&start(Family::PageMap), &[]);
    for rates in measured.random.values_mut() {
        for (bytes, rate) in rates {
            let octaves = (*bytes as f64 / 65_536.0).log2();
            *rate /= 1.0 + (-octaves * octaves / 2.0).exp();
        }
    }
    let found = fit(&measured, &[], &FitOptions::default()).unwrap();
    let [family, with] = [&found.of_family, &found.compared]
        .map(|compared| Errors::over(compared, |_| true).unwrap());
    assert!(
        with.p90 < 0.25 * family.p90 && with.worst < 0.25 * family.worst,
        "{family:?} {with:?}"
    );
    let stated = found.profile.fit_error().unwrap();
    assert!(stated.contains("; its family alone by "), "{stated}");
    // The profile as a file is the same card.
    let read = Profile::parse("again", &found.toml).unwrap();
    assert_eq!(read.residual(), found.profile.residual());
    assert_eq!(read.canonical(), found.profile.canonical());
}

#[test]
fn a_fit_to_all_points_is_no_worse_than_one_to_few_sizes() {
    // Every second size of one curve twice as slow: near to no family, so the search begins again.
    let mut degraded = few();
    for rate in degraded.linear.get_mut(&2).unwrap().values_mut().step_by(2) {
        *rate /= 2.0;
    }
    let options = FitOptions::default();
    let tests = replay(&degraded, &options).unwrap();
    let (all, _) = measured(&degraded, &[], &tests);
    let third = |point: &Point| SPARSE.contains(&point.place.bytes);
    let few: Vec<Point> = all.iter().copied().filter(third).collect();
    let best = |points| {
        Search::new(points, tests, Sizes::default(), Jobs::default())
            .run()
            .remove(0)
    };
    let (of_all, of_few) = (best(&all), best(&few));
    let mut search = Search::new(&all, tests, Sizes::default(), Jobs::default());
    let on_all = search.try_shape(&of_few.shape, of_few.replay).unwrap();
    assert!(
        of_all.cost <= on_all.cost,
        "{} {}",
        of_all.cost,
        on_all.cost
    );
}
