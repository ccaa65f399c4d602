//! `whichfs study`: experiments that are data, made and told as a whole.

mod files;
mod show;
mod told;

pub use show::show;

use crate::bench::Bench;
use crate::cli::{JsonArgs, PlaceArgs, StudyArgs};
use crate::commands::crash::page::{Files, command_line, environment};
use crate::commands::crash::{self, Made};
use crate::commands::table;
use crate::crash::record::Plan;
use crate::crash::spec::{Makers, Selection, Spec};
use crate::failure::{Failure, Kind, Outcome};
use crate::{cards, interrupt, output};
use std::sync::atomic::AtomicBool;
use whichfs_crash::Fault;
use whichfs_report::{CrashGroup, CrashPage, Item};
use whichfs_study::{Cell, FaultSet, Study};

/// Examples in the help text.
pub const EXAMPLES: &str = "\
Examples:
  whichfs study list
  whichfs study show elc2015-power                what it runs, about how long
  whichfs study run elc2015-power --cuts 40       what ELC 2015 did, with fewer cuts
  whichfs study run sync-mounts --only-fs vfat --out sync
  whichfs study run ./mine.toml                   a file in the form of studies/*.toml

Each series is kept as `crash run` keeps it: an interrupted study goes on where it was.

Exit status: 0 done, 2 bad usage or input, 3 this machine lacks something, 4 a series
failed (the others were made all the same).";

/// Lists all studies.
pub fn list(args: &JsonArgs) -> Outcome<u8> {
    let all = files::all()?;
    if args.json {
        output::json(&all)?;
        return Ok(0);
    }
    let rows = all.iter().map(|study| {
        vec![
            study.name.clone(),
            study.cells().len().to_string(),
            study.cuts.to_string(),
            study.title.clone(),
        ]
    });
    output::text_line(&table::text(
        &["study", "series", "cuts", "title"],
        rows.collect(),
    ))?;
    Ok(0)
}

/// Runs one.
pub fn run(args: &StudyArgs) -> Outcome<u8> {
    let found = files::open(&args.name)?;
    let own_cuts = found.cuts;
    let study = changed(found, args)?;
    let bench = crash::bench(&place(&study), args.jobs)?;
    let files = Files::new(&args.out)?;
    let cells = study.cells();
    let mut page = empty_page(&study, own_cuts, &bench);
    let mut first_failure = None;
    for (index, cell) in cells.iter().enumerate() {
        note!(
            "series {} of {}: {} {}, {}, {}",
            index + 1,
            cells.len(),
            cell.fs,
            cell.mount.name,
            cell.faults.name,
            cell.load.name
        );
        match series(&study, &bench, cell, args.fresh, interrupt::flag()) {
            Ok(made) => told::add(&mut page, &study, cell, made),
            Err(failure) if failure.kind == Kind::Interrupted => return Err(failure),
            Err(failure) => {
                note!("not made: {failure}");
                let failed = format!("{} {}: {failure}", cell.fs, cell.mount.name);
                told::group(&mut page, cell).failed.push(failed);
                first_failure.get_or_insert(failure);
            }
        }
    }
    told::compare(&mut page);
    let path = files.write(&page)?;
    if args.json {
        output::json(&page)?;
    } else {
        told::tell(&page)?;
        output::text_line(&format!("\nReport: {}", path.display()))?;
    }
    match first_failure {
        Some(failure) if page.groups.iter().all(|group| group.rows.is_empty()) => Err(failure),
        Some(failure) => Ok(failure.kind as u8),
        None => Ok(0),
    }
}

/// The study with what the command line changes.
fn changed(mut study: Study, args: &StudyArgs) -> Outcome<Study> {
    study.cuts = args.cuts.unwrap_or(study.cuts);
    for name in &args.only_fs {
        if !study.filesystems.contains(name) {
            return Err(Failure::input(format!(
                "--only-fs {name}: {} has {}",
                study.name,
                study.filesystems.join(", ")
            )));
        }
    }
    if !args.only_fs.is_empty() {
        study.filesystems.retain(|fs| args.only_fs.contains(fs));
    }
    Ok(study)
}

fn place(study: &Study) -> PlaceArgs {
    PlaceArgs {
        card: study.card.clone(),
        card_state: cards::CardState::Used,
        board: study.board.clone(),
        clock: "cpu".to_owned(),
        wall_limit: crash::WALL_LIMIT_S,
    }
}

/// Makes one series of the matrix.
fn series(
    study: &Study,
    bench: &Bench,
    cell: &Cell,
    fresh: bool,
    cancelled: &AtomicBool,
) -> Outcome<Made> {
    let faults = cell.faults.faults.iter().map(|name| name.parse::<Fault>());
    let au = bench.geometry().au_bytes;
    let bytes = study.partition_bytes.next_multiple_of(au);
    let mut spec = Spec {
        fs: cell.fs.to_owned(),
        // Beside the recipe's.
        mount: (!cell.mount.add.is_empty()).then(|| format!("+{}", cell.mount.add)),
        card: crash::whole_path(&study.card),
        card_state: bench.card_state.name().to_owned(),
        board: crash::whole_path(&study.board),
        clock: "cpu".to_owned(),
        workload: cell.load.workload.clone(),
        parameters: cell.load.parameters.clone(),
        script: None,
        returns: true,
        partition_bytes: bytes.min(bench.partition_bytes()),
        faults: faults.collect::<Result<_, _>>().map_err(Failure::input)?,
        cuts: Selection::Random(study.cuts),
        recovery: 0,
        fsck: true,
        seed: study.seed,
        made_by: Makers::default(),
    };
    spec.made_by = Makers::of(bench, &Plan::new(bench, &spec)?.recipe()?);
    crash::made(bench, &spec, fresh, cancelled)
}

fn empty_page(study: &Study, own_cuts: u64, bench: &Bench) -> CrashPage {
    let mut environment = environment(bench, study.partition_bytes, study.seed);
    environment.push(cuts(study.cuts, own_cuts));
    CrashPage {
        title: study.title.clone(),
        source: study.source.clone(),
        method: paragraphs(&study.method),
        groups: Vec::<CrashGroup>::new(),
        promises: Vec::new(),
        environment,
        reproduce: command_line(),
    }
}

/// How often each series was cut, and whether the study says so.
fn cuts(made: u64, own: u64) -> Item {
    Item {
        label: "cuts".to_owned(),
        value: format!("{made} of each series"),
        source: match made == own {
            true => String::new(),
            false => format!("--cuts; the study has {own}"),
        },
    }
}

fn paragraphs(text: &str) -> Vec<String> {
    let parts = text.split("\n\n").map(|part| part.replace('\n', " "));
    parts.map(|part| part.trim().to_owned()).collect()
}

/// What each fault of a set does.
fn meanings(set: &FaultSet) -> Vec<String> {
    let known = set
        .faults
        .iter()
        .filter_map(|name| name.parse::<Fault>().ok());
    known
        .map(|fault| format!("{}: {}", fault.name(), fault.facts().meaning))
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn fewer_cuts_than_the_study_has_are_said_and_no_title_counts_them() {
        assert_eq!(cuts(226, 226).source, "");
        let fewer = cuts(40, 226);
        assert_eq!(fewer.value, "40 of each series");
        assert!(fewer.source.contains("226"));
        for study in files::all().unwrap() {
            let number = study.cuts.to_string();
            assert!(!study.title.contains(&number), "{}", study.title);
        }
    }

    #[test]
    fn every_card_and_board_of_a_shipped_study_is_there() {
        for study in files::all().unwrap() {
            cards::open(&study.card).unwrap();
            crate::board::Board::open(&study.board).unwrap();
        }
    }
}
