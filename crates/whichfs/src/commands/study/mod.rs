//! `whichfs study`: experiments that are data, made and told as a whole.

mod amounts;
mod caveats;
mod claims;
mod compared;
mod crash;
mod crash_told;
mod durations;
mod files;
mod gains_told;
mod here;
mod performance;
mod performance_told;
mod show;
mod smallest;
mod trials;

pub use claims::claims;
pub use compared::{Compared, compared};
pub use show::show;

use crate::cli::{JsonArgs, StudyArgs};
use crate::commands::table;
use crate::failure::Outcome;
use crate::output;
use serde::Serialize;
use std::collections::BTreeMap;
use whichfs_study::Study;
use whichfs_units::counted;

/// Examples in the help text.
pub const EXAMPLES: &str = "\
Examples:
  whichfs study list
  whichfs study show elc2015-power                what it runs, about how long
  whichfs study show pandora                      what it runs, and the figures of its last run
  whichfs study run linuxplanet --quick           trials, beside the published figures
  whichfs study run alignment --quick             what misalignment costs, with intervals
  whichfs study run linuxplanet --budget 10m      what fits into ten minutes; goes on later
  whichfs study run linuxplanet --dry-run         how many trials, about how long
  whichfs study run pandora --only-card platinum-class10-64gb
  whichfs study run linuxplanet --tree ./linux-6.12    a real kernel tree instead of a drawn one
  whichfs study claims                            what the authors concluded, and what we find
  whichfs study run elc2015-power --cuts 40       what ELC 2015 did, with fewer cuts
  whichfs study run sync-mounts --only-fs vfat --out sync
  sudo whichfs study run pandora --quick --on /dev/sdX --dry-run    on a real card: what it does
  sudo whichfs study run pandora --quick --on /dev/sdX --destroy ID --budget 2h --max-write 20G
  whichfs study run pandora --quick --on ssh://root@board/dev/mmcblk0 --dry-run    on a board's card
  sudo whichfs study run pandora --quick --on /media/card    in a directory: nothing is formatted
  whichfs study run ./mine.toml                   a file in the form of studies/*.toml

Each series is kept as `crash run` keeps it, each trial in the store: an interrupted study
goes on where it was. With --on the trials of each repeat run in a random order on the device,
the first is not counted, and one runs again and again between them, so that it is seen whether
the device changed. ssh://USER@HOST[:PORT]/dev/… is the device of a board: by your own ssh, without
questions, with an agent that is copied there (make agents) and removed again. A directory is
measured as it is mounted; what is written there is removed.

Exit status: 0 done, 2 bad usage or input, 3 this machine lacks something, 4 a series or
trial failed (the others were made all the same).";

/// Lists all studies.
pub fn list(args: &JsonArgs) -> Outcome<u8> {
    let all = files::all()?;
    if args.json {
        output::json(&all)?;
        return Ok(0);
    }
    let rows = all.iter().map(|study| {
        let (size, title) = match study {
            Study::Crash(study) => (
                format!(
                    "{} series of {}",
                    study.cells().len(),
                    counted(study.cuts, "cut")
                ),
                &study.title,
            ),
            Study::Performance(study) => (counted(study.spots().len(), "trial"), &study.title),
        };
        vec![study.name().to_owned(), size, title.clone()]
    });
    output::text_line(&table::text(&["study", "size", "question"], rows.collect()))?;
    Ok(0)
}

/// Runs one.
pub fn run(args: &StudyArgs) -> Outcome<u8> {
    match files::open(&args.name)? {
        Study::Crash(study) => crash::run(study, args),
        Study::Performance(study) => performance::run(study, args),
    }
}

/// What a shipped study gives a workload: the size of the original, where it is known, and a small
/// one.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Form {
    /// Name of the study.
    pub study: String,
    /// What it calls the workload.
    pub name: String,
    /// Parameters that are not the default.
    pub full: BTreeMap<String, u64>,
    /// The same of the quick form.
    pub quick: BTreeMap<String, u64>,
}

/// The forms in which shipped studies run `workload`, each once.
pub fn forms(workload: &str) -> Outcome<Vec<Form>> {
    let mut found: Vec<Form> = Vec::new();
    for study in files::all()? {
        let (name, loads) = match study {
            Study::Crash(study) => (study.name, study.workloads),
            Study::Performance(study) => (study.name, study.workloads),
        };
        for load in loads.into_iter().filter(|load| load.workload == workload) {
            found.push(Form {
                study: name.clone(),
                quick: load.quick_parameters(),
                name: load.name,
                full: load.parameters,
            });
        }
    }
    Ok(found)
}

/// The paragraphs of a text of a study, each in one line.
fn paragraphs(text: &str) -> Vec<String> {
    let parts = text.split("\n\n").map(|part| part.replace('\n', " "));
    parts.map(|part| part.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use whichfs_engine::board::Board;
    use whichfs_engine::cards;

    /// A shipped study of this name, which has trials.
    pub fn performance(name: &str) -> whichfs_study::PerformanceStudy {
        match files::open(name).unwrap() {
            Study::Performance(study) => study,
            other => panic!("{} has no trials", other.name()),
        }
    }

    #[test]
    fn a_workload_has_the_forms_of_the_studies_that_run_it() {
        let found = forms("copies").unwrap();
        assert_eq!(
            (found.len(), found[0].study.as_str()),
            (1, "bootlin-copies")
        );
        assert_eq!(found[0].full["bytes"], 319_000_000);
        assert_eq!(found[0].quick["bytes"], 31_900_000);
        assert!(
            forms("logger")
                .unwrap()
                .iter()
                .any(|form| form.study == "sync-mounts")
        );
        assert!(forms("none").unwrap().is_empty());
    }

    #[test]
    fn every_card_and_board_of_a_shipped_study_is_there() {
        for study in files::all().unwrap() {
            let (cards, boards) = match study {
                Study::Crash(study) => (vec![study.card], vec![study.board]),
                Study::Performance(study) => (study.cards, study.boards),
            };
            for card in cards {
                cards::open(&card).unwrap();
            }
            for board in boards {
                Board::open(&board).unwrap();
            }
        }
    }

    #[test]
    fn no_title_counts_the_cuts_that_an_option_changes() {
        for study in files::all().unwrap() {
            if let Study::Crash(study) = study {
                let number = study.cuts.to_string();
                assert!(!study.title.contains(&number), "{}", study.title);
            }
        }
    }
}
