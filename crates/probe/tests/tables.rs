//! Saved flashbench outputs, interpreted: published tables as their authors read them, and
//! the runs of Wirenboard's cards (MIT) without nonsense.
#![allow(clippy::unwrap_used)]

use serde::Deserialize;
use std::collections::BTreeMap;
use whichfs_curves::{Align, Curves, Rates};
use whichfs_probe::{Findings, Quantity, interpret};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

fn published(text: &str) -> Curves {
    let mut curves = Curves::default();
    for line in text.lines().skip(1) {
        let fields: Vec<f64> = line.split(',').map(|f| f.parse().unwrap()).collect();
        let row = [fields[1], fields[2], fields[3], fields[4]];
        curves.align.entry(fields[0] as u64).or_default().push(row);
    }
    curves
}

fn whole(findings: &Findings, quantity: Quantity) -> Option<u64> {
    findings.value(quantity).map(|value| value.whole())
}

#[test]
fn kingston_has_erase_blocks_of_4_mib_and_no_visible_page() {
    let text = include_str!("data/flashbench-align-kingston-16gb-c10u1.csv");
    let findings = interpret(&published(text));
    assert_eq!(whole(&findings, Quantity::AuBytes), Some(4 * MIB));
    assert!(findings.get(Quantity::AuBytes).confident());
    assert_eq!(whole(&findings, Quantity::PageBytes), None);
    assert_eq!(whole(&findings, Quantity::ZoneBytes), None);
}

#[test]
fn pqi_has_pages_multi_plane_access_erase_blocks_and_a_step_at_2_gib() {
    let text = include_str!("data/flashbench-align-pqi-32gb-microsd.csv");
    let findings = interpret(&published(text));
    assert_eq!(whole(&findings, Quantity::PageBytes), Some(4 * KIB));
    assert_eq!(whole(&findings, Quantity::WriteUnitBytes), Some(16 * KIB));
    assert_eq!(whole(&findings, Quantity::AuBytes), Some(4 * MIB));
    assert_eq!(whole(&findings, Quantity::ZoneBytes), Some(2048 * MIB));
}

/// The table of flashbench's README, whose author reads 8 KiB pages, two planes, 4 MiB.
#[test]
fn the_card_of_the_readme_has_two_planes() {
    let differences = [
        4.65, 5.85, 53.3, 148., 157., 159., 165., 171., 165., 169., 171., 317., 299., 302., 294.,
        300., 324.,
    ];
    let mut curves = Curves::default();
    for (at, difference) in differences.iter().enumerate() {
        let line = [740., 745. + difference, 790., *difference];
        curves.align.insert(2048 << at, vec![line]);
    }
    let findings = interpret(&curves);
    assert_eq!(whole(&findings, Quantity::PageBytes), Some(8 * KIB));
    assert_eq!(whole(&findings, Quantity::WriteUnitBytes), Some(16 * KIB));
    assert_eq!(whole(&findings, Quantity::AuBytes), Some(4 * MIB));
}

/// A run with the columns of `cards.csv` for its card.
#[derive(Deserialize)]
struct Run {
    page_kib: String,
    au_mib: String,
    open_linear: String,
    open_random: String,
    al: BTreeMap<u64, Vec<Align>>,
    lin: BTreeMap<u32, Rates>,
    rnd: BTreeMap<u32, Rates>,
}

fn runs() -> BTreeMap<String, Run> {
    serde_json::from_str(include_str!("data/wirenboard.json")).unwrap()
}

#[test]
fn the_runs_of_real_cards_give_what_their_columns_say_or_nothing() {
    let (mut pages, mut aus, mut slots) = (0, 0, 0);
    for (name, run) in runs() {
        let found = interpret(&Curves {
            align: run.al,
            linear: run.lin,
            random: run.rnd,
            ..Curves::default()
        });
        let page = whole(&found, Quantity::PageBytes).map(|b| (b / KIB).to_string());
        if let Some(page) = &page {
            assert!(
                run.page_kib.is_empty() || *page == run.page_kib,
                "{name}: page {page}"
            );
            pages += 1;
        }
        let au = whole(&found, Quantity::AuBytes).map(|b| b / MIB);
        if let Some(au) = au {
            let said = run.au_mib.replace("1-2", "1");
            assert!(
                said.starts_with(&au.to_string()),
                "{name}: AU {au}, not {said}"
            );
            aus += 1;
        }
        let counts = [
            (Quantity::OpenAusLinear, &run.open_linear),
            (Quantity::OpenAusRandom, &run.open_random),
        ];
        for (quantity, said) in counts {
            let finding = found.get(quantity);
            let Some(value) = finding.value.map(|v| v.whole()) else {
                continue;
            };
            let least: u64 = said.trim_start_matches(">=")[..1].parse().unwrap();
            let bound = said.starts_with(">=");
            let agrees = match finding.at_least {
                true => bound && value >= least || value <= least,
                false => value == least || bound && value > least,
            };
            assert!(agrees, "{name}: {quantity:?} {finding:?}, not {said}");
            slots += 1;
        }
        println!(
            "{name:>5}: page {page:?} of {}, AU {au:?} of {}",
            run.page_kib, run.au_mib
        );
    }
    println!("{pages} pages, {aus} AUs, {slots} counts of open AUs");
    assert!(
        pages >= 18 && aus >= 20 && slots >= 30,
        "{pages} {aus} {slots}"
    );
}

#[test]
fn a_number_of_aus_beyond_all_costs_nothing() {
    let rates = Rates::from([(64 * KIB, 1e6)]);
    let mut curves = Curves::default();
    for aus in [1, 2, u32::MAX] {
        curves.linear.insert(aus, rates.clone());
    }
    let found = interpret(&curves);
    let linear = found.get(Quantity::OpenAusLinear);
    assert!(linear.reason.as_ref().unwrap().contains("in between"));
    let rate = found.get(Quantity::WriteMbS);
    assert!(rate.reason.as_ref().unwrap().contains("not read"));
}
