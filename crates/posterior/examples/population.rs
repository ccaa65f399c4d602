//! Makes `crates/posterior/data/population.tsv`: `make population`.
//!
//! `cargo run --release -p whichfs-posterior --example population -- cards.csv flashbench.json`
//!
//! Each run of flashbench with write curves is a member, as fitted. Each other row of cards.csv and
//! of data/emmc.csv with rates is some members: samples of its posterior under the fitted cards,
//! with a prior that is widened, since the fitted cards are of the years 2012 to 2019 and slower
//! than those of today.
#![allow(clippy::unwrap_used)]

mod data;

use data::{Row, side_by_side};
use std::collections::BTreeMap;
use whichfs_card::Profile;
use whichfs_fit::{Jobs, fit};
use whichfs_posterior::{InferenceOptions, Member, Population, Widening, infer};

/// Rows of eMMC beside those of `cards.csv`.
const EMMC: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/emmc.csv");
/// Members of a row, and the samples of its posterior over which they are spread.
const SAMPLES_OF_ROW: usize = 6;
const SAMPLES: usize = 256;
/// How far rows lie from fitted cards: rates of writing in order are 4 to 18 MB/s in the runs
/// and 7 to 144 MB/s in the rows.
const WIDENING: Widening = Widening {
    speed: 1.2,
    each: 0.5,
};

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let [_, cards, runs] = &args[..] else {
        panic!("give cards.csv and flashbench.json");
    };
    let mut rows = data::rows(cards);
    rows.extend(data::rows(EMMC));
    let fitted = Population {
        members: fitted(&data::runs(runs), &rows),
    };
    let mut members = fitted.members.clone();
    for row in rows.iter().filter(|row| row.of_rates()) {
        members.extend(of_row(row, &fitted));
    }
    let by_card = members.iter().fold(BTreeMap::new(), |mut counts, member| {
        *counts.entry(member.card.clone()).or_insert(0) += 1;
        counts
    });
    for member in &mut members {
        member.weight = 1.0 / f64::from(by_card[&member.card]);
    }
    println!("# Made by `make population` from cards.csv, emmc.csv and flashbench.json.");
    print!("{}", Population { members }.text());
}

/// The runs as fitted.
fn fitted(runs: &[whichfs_logs::LoggedRun], rows: &[Row]) -> Vec<Member> {
    let mut members = Vec::new();
    for run in runs {
        let options = data::fit_options(run);
        let Ok(found) = fit(&run.curves, &run.rates, &options) else {
            continue;
        };
        if !found.family_told {
            continue;
        }
        let row = data::row_of_run(rows, &run.name);
        eprintln!("{}: {:?}", run.name, found.profile.family());
        let card = data::without_reader(&run.name, &found.profile);
        members.push(member(&run.name, row, card));
    }
    members
}

/// Samples of the posterior of a row.
fn of_row(row: &Row, fitted: &Population) -> Vec<Member> {
    let knowledge = row.knowledge(true, true);
    let options = InferenceOptions {
        jobs: Jobs(side_by_side),
        samples: SAMPLES,
        widening: WIDENING,
        ..InferenceOptions::default()
    };
    let found = infer(fitted, &knowledge, &options).unwrap();
    eprintln!("{}: {:?} {:?}", row.id, found.families(), found.remarks);
    let samples = (1..=SAMPLES_OF_ROW as u64).map(|seed| found.sample(seed).clone());
    samples.map(|sample| member(&row.id, row, sample)).collect()
}

fn member(id: &str, row: &Row, profile: Profile) -> Member {
    Member {
        id: id.to_owned(),
        card: row.id.clone(),
        weight: 1.0,
        interface: row.interface,
        year: row.year,
        bytes: profile.capacity_bytes(),
        maker: row.maker.clone(),
        profile,
    }
}
