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
    fat: BTreeMap<u64, Vec<Vec<f64>>>,
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
}

/// `flash.md` §2.5: the first two AUs of Phison's cards, three of WB8, the second of SanDisk's.
#[test]
fn the_first_aus_of_real_cards_are_told_apart() {
    let known = [
        (vec!["6", "6_2", "10", "15", "15_1", "21"], (2, 0)),
        (vec!["8"], (3, 0)),
        (vec!["1_2", "4", "12", "27"], (1, 1)),
    ];
    let of = |run: &Run| {
        interpret(&Curves {
            fat: run.fat.clone(),
            ..Curves::default()
        })
    };
    let runs = runs();
    for (names, (count, first)) in &known {
        for name in names {
            let found = of(&runs[*name]);
            assert_eq!(whole(&found, Quantity::FatAus), Some(*count), "{name}");
            assert_eq!(whole(&found, Quantity::FatFirstAu), Some(*first), "{name}");
        }
    }
    let known: Vec<&str> = known.iter().flat_map(|(names, _)| names).copied().collect();
    for (name, run) in runs
        .iter()
        .filter(|(name, _)| !known.contains(&name.as_str()))
    {
        let found = of(run);
        let count = whole(&found, Quantity::FatAus);
        assert!(count.is_none_or(|count| count == 0), "{name}: {count:?}");
        let rate = found.value(Quantity::WriteMbS).map(|rate| rate.real());
        assert_eq!(rate.is_some(), !run.fat.is_empty(), "{name}");
    }
}

#[test]
fn a_log_of_one_au_has_its_rates() {
    let runs = runs();
    let run = runs.values().find(|run| run.lin.contains_key(&1)).unwrap();
    let linear = BTreeMap::from([(1, run.lin[&1].clone())]);
    let found = interpret(&Curves {
        linear,
        ..Curves::default()
    });
    let rate = found.value(Quantity::WriteMbS).unwrap().real() * 1e6;
    let greatest = run.lin[&1].values().copied().fold(0.0, f64::max);
    assert!(
        rate > 0.85 * greatest && rate <= 1.01 * greatest,
        "{rate} {greatest}"
    );
    assert!(
        found
            .get(Quantity::BestWriteBytes)
            .evidence
            .contains("one AU")
    );
    assert!(found.get(Quantity::OpenAusLinear).reason.is_some());
}
