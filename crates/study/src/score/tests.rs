//! Scores of tables whose regret, coverage and ranks are known.

#![allow(clippy::unwrap_used)]
use super::*;
use crate::grid::Repeats;

/// A line of rates: for each filesystem ours of each seed, and what was published.
fn line(figures: &[(&[f64], Option<f64>)]) -> GridLine {
    let ours = figures.iter().map(|(values, _)| {
        let mut sorted = values.to_vec();
        Some(Repeats {
            median: median(&mut sorted)?,
            values: (1..).zip(values.iter().copied()).collect(),
            doubt: None,
        })
    });
    GridLine {
        metric: "write".into(),
        unit: "MB/s".into(),
        lower_is_better: false,
        variant: String::new(),
        load: String::new(),
        ours: ours.collect(),
        published: figures.iter().map(|(_, published)| *published).collect(),
        tau_b: None,
    }
}

fn grid(lines: Vec<GridLine>) -> Grid {
    Grid {
        card: "card".into(),
        board: "board".into(),
        load: "tree".into(),
        candidates: ["ext4", "xfs", "f2fs"].map(str::to_owned).to_vec(),
        lines,
        orders: Vec::new(),
    }
}

#[test]
fn the_best_choice_has_no_regret_and_the_worst_has_all() {
    let right = line(&[
        (&[10.0], Some(5.0)),
        (&[20.0], Some(9.0)),
        (&[5.0], Some(3.0)),
    ]);
    let wrong = line(&[
        (&[10.0], Some(5.0)),
        (&[5.0], Some(20.0)),
        (&[4.0], Some(4.0)),
    ]);
    let found = score(&[grid(vec![right.clone()])], 0.0, false).unwrap();
    let regret = found.regret.unwrap();
    assert_eq!((regret.mean, regret.worst), (1.0, 1.0));
    assert_eq!(found.tau_b, Some(1.0));
    assert!((found.usual.unwrap().mean - 9.0 / 5.0).abs() < 1e-12);
    let random = (9.0 / 5.0 * 1.0 * 3.0_f64).cbrt();
    assert!((found.random.unwrap().mean - random).abs() < 1e-12);

    let both = score(&[grid(vec![right, wrong])], 0.0, false).unwrap();
    assert!((both.regret.unwrap().mean - 2.0).abs() < 1e-12);
    assert_eq!(both.regret.unwrap().worst, 4.0);
    let first = &both.worst[0];
    assert_eq!(
        (first.chosen.as_str(), first.best.as_str()),
        ("ext4", "xfs")
    );
}

#[test]
fn an_advice_takes_what_everybody_uses_where_the_first_is_hardly_ahead() {
    let ahead = |xfs: f64| {
        let figures = [
            (&[10.0][..], Some(9.0)),
            (&[xfs][..], Some(4.5)),
            (&[5.0][..], Some(3.0)),
        ];
        let found = score(&[grid(vec![line(&figures)])], 0.0, false).unwrap();
        let first = found.worst[0].clone();
        (
            first.chosen,
            first.advised,
            found.regret.unwrap().mean,
            found.advised.unwrap().mean,
        )
    };
    let told = |first: &str, advised: &str, regrets: (f64, f64)| {
        (first.to_owned(), advised.to_owned(), regrets.0, regrets.1)
    };
    assert_eq!(ahead(10.9), told("xfs", "ext4", (2.0, 1.0)));
    assert_eq!(ahead(11.1), told("xfs", "xfs", (2.0, 2.0)));
    assert_eq!(ahead(9.0), told("ext4", "ext4", (1.0, 1.0)));
}

#[test]
fn figures_within_the_noise_of_the_source_are_ties() {
    let figures = line(&[
        (&[1.0], Some(100.0)),
        (&[2.0], Some(98.0)),
        (&[3.0], Some(50.0)),
    ]);
    let tau = |noise| {
        score(&[grid(vec![figures.clone()])], noise, false)
            .unwrap()
            .tau_b
    };
    assert_eq!(tau(0.0), Some(-1.0));
    assert!(tau(0.05).unwrap() > -1.0, "two of three pairs count");
}

#[test]
fn intervals_hold_what_the_seeds_say_and_not_more() {
    // xfs is twice as fast as ext4, give or take a tenth.
    let figures = |published| {
        line(&[
            (&[10.0, 10.0, 10.0], Some(1.0)),
            (&[18.0, 20.0, 22.0], Some(published)),
        ])
    };
    let found = |published, noise| {
        let all = score(&[grid(vec![figures(published)])], noise, false);
        all.unwrap().coverage.unwrap()
    };
    assert_eq!(found(2.1, 0.0).covered, 1.0);
    assert_eq!(found(3.0, 0.0).covered, 0.0, "a planted miss is seen");
    assert_eq!(found(3.0, 0.3).covered, 1.0);
    let width = found(2.0, 0.0).width;
    assert!((1.2..2.0).contains(&width), "{width}");
}

#[test]
fn one_factor_over_the_others_is_no_error() {
    let slower = |by: f64| line(&[(&[10.0], Some(10.0 * by)), (&[20.0], Some(20.0 * by))]);
    let alike = score(&[grid(vec![slower(0.5), slower(0.5)])], 0.0, false).unwrap();
    assert!((alike.seconds.unwrap().worst - 1.0).abs() < 1e-12);
    let one_off = score(&[grid(vec![slower(0.5), slower(1.0)])], 0.0, false).unwrap();
    assert!((one_off.seconds.unwrap().median - 2.0).abs() < 1e-12);
}

#[test]
fn grades_have_an_order_and_no_ratio() {
    let grades = line(&[
        (&[10.0], Some(5.0)),
        (&[20.0], Some(6.0)),
        (&[5.0], Some(1.0)),
    ]);
    let found = score(&[grid(vec![grades])], 0.0, true).unwrap();
    assert_eq!(found.tau_b, Some(1.0));
    assert!(found.regret.is_none() && found.seconds.is_none() && found.coverage.is_none());
}

#[test]
fn nothing_published_is_no_score() {
    assert_eq!(score(&[], 0.0, false), None);
    let alone = line(&[(&[10.0], Some(5.0)), (&[20.0], None)]);
    assert_eq!(score(&[grid(vec![alone])], 0.0, false), None);
}
