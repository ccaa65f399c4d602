//! Study files: the shipped ones and those of the user.

use crate::board::Board;
use crate::cards;
use crate::error::{Error as Failure, Outcome};
use std::collections::BTreeMap;
use std::path::Path;
use whichfs_crash::Fault;
use whichfs_study::{Known, PUBLISHED, PerformanceStudy, PublishedFigure, STUDIES, Skipped, Study};
use whichfs_trial::WorkloadSpec;
use whichfs_units::UnknownName;

/// All shipped studies, sorted by name.
pub fn all() -> Outcome<Vec<Study>> {
    let parse = |(name, text): &(&str, &str)| parse(&format!("studies/{name}.toml"), text);
    STUDIES.iter().map(parse).collect()
}

/// The shipped study `name`, or the one in the file of this name.
pub fn open(name: &str) -> Outcome<Study> {
    if name.contains('/') || name.ends_with(".toml") {
        let text = crate::input::read_text(name)
            .map_err(|e| Failure::input(format!("{name}: {e}; name a file that can be read")))?;
        return parse(name, &text);
    }
    let all = all()?;
    let known: Vec<String> = all.iter().map(|study| study.name().to_owned()).collect();
    let found = all.into_iter().find(|study| study.name() == name);
    found.ok_or_else(|| {
        let listed = Some("`whichfs study list`");
        Failure::input(UnknownName::new("study", name, &known, listed))
    })
}

fn parse(file: &str, text: &str) -> Outcome<Study> {
    let candidates: Vec<&str> = whichfs_fs::candidates()
        .iter()
        .map(|candidate| candidate.name)
        .collect();
    let filesystems: Vec<&str> = candidates
        .iter()
        .copied()
        .filter(|name| whichfs_crash::contract(name, "").is_some())
        .collect();
    let known = Known {
        candidates: &candidates,
        filesystems: &filesystems,
        faults: &Fault::ALL.map(Fault::name),
        card: &|name| said(cards::open(name)),
        board: &|name| said(Board::open(name)),
        workload: &takes,
        metric: &yields,
    };
    Study::parse(file, text, &known).map_err(Failure::input)
}

/// Whether something could be opened; why not.
fn said<T>(opened: Outcome<T>) -> Result<(), String> {
    opened.map(drop).map_err(|failure| failure.message)
}

/// Whether there is such a workload, and takes these parameters.
fn takes(name: &str, parameters: &BTreeMap<String, u64>) -> Result<(), String> {
    let workload = whichfs_workload::find(name).map_err(|e| e.to_string())?;
    let spec = WorkloadSpec {
        name: name.to_owned(),
        parameters: parameters.clone(),
        tree: None,
        unix: true,
        script: None,
        input: None,
    };
    workload.check(&spec).map_err(|e| e.to_string())
}

/// Whether trials of this workload yield this metric.
fn yields(workload: &str, metric: &str) -> Result<(), String> {
    let workload = whichfs_workload::find(workload).map_err(|e| e.to_string())?;
    whichfs_workload::check_metrics(workload, [metric]).map_err(|e| e.to_string())
}

/// The published table `file`: from the folder `from`, or the one that the program has.
///
/// # Errors
/// If there is none of this name, or it cannot be read.
pub fn published(file: &str, from: Option<&Path>) -> Outcome<String> {
    if let Some(folder) = from {
        let path = folder.join(file);
        return crate::input::read_text(&path).map_err(|e| {
            let remedy = "name a folder that has it";
            Failure::input(format!("published table {}: {e}; {remedy}", path.display()))
        });
    }
    let found = file.strip_suffix(".csv");
    let found = found.and_then(|file| PUBLISHED.iter().find(|(name, _)| *name == file));
    found.map(|(_, text)| (*text).to_owned()).ok_or_else(|| {
        let known: Vec<String> = PUBLISHED
            .iter()
            .map(|(name, _)| format!("{name}.csv"))
            .collect();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let remedy = "name a folder of yours that has it";
        Failure::input(format!(
            "{}; {remedy}",
            UnknownName::new("table", file, &known, None)
        ))
    })
}

/// A study to test with, here and in programs that run it.
#[cfg(any(test, feature = "testing"))]
pub mod fixture {
    use super::*;

    /// The shipped study called `name`, which has trials.
    ///
    /// # Panics
    /// If there is none.
    pub fn performance(name: &str) -> whichfs_study::PerformanceStudy {
        match open(name) {
            Ok(Study::Performance(study)) => study,
            _ => panic!("{name} has no trials"),
        }
    }

    /// A study that could be run.
    pub const WHOLE: &str = r#"name = "mine"
kind = "performance"
title = "t"
source = "me"
method = "m"
cards = ["class10-16gb"]
boards = ["generic-1ghz"]
seeds = 1
candidates = ["ext4", "vfat"]

[[variants]]
name = "relatime"
without = ["noatime"]

[[workloads]]
name = "w"
workload = "tree"
"#;

    /// `WHOLE` with another text in one place.
    pub fn changed(from: &str, to: &str) -> Outcome<whichfs_study::PerformanceStudy> {
        match parse("mine.toml", &WHOLE.replacen(from, to, 1))? {
            Study::Performance(study) => Ok(study),
            Study::Crash(_) => Err(Failure::input("it cuts the power")),
        }
    }
}

/// The published figures of `study` from tables in the folder `from`, or those that the program
/// has; and which lines of each were passed over.
///
/// # Errors
/// There is no such table, or it is not what the study says of it.
pub fn published_figures(
    study: &PerformanceStudy,
    from: Option<&Path>,
) -> Outcome<(Vec<PublishedFigure>, BTreeMap<String, Skipped>)> {
    let (mut figures, mut skipped) = (Vec::new(), BTreeMap::new());
    for mapping in &study.published {
        let text = published(&mapping.file, from).map_err(|e| e.about(&mapping.at))?;
        let file = match from {
            Some(folder) => folder.join(&mapping.file).display().to_string(),
            None => mapping.file.clone(),
        };
        let read = mapping.read(study, &file, &text);
        let (found, passed) = read.map_err(Failure::input)?;
        figures.extend(found);
        let again = skipped.contains_key(&mapping.file);
        let name = match again {
            true => format!("{}, {}", mapping.file, mapping.value_column),
            false => mapping.file.clone(),
        };
        skipped.insert(name, passed);
    }
    Ok((figures, skipped))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::fixture::changed;
    use super::*;

    #[test]
    fn every_data_set_of_truth_is_read_whole() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../truth");
        let entries = std::fs::read_dir(&folder).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        let files = paths.filter(|path| path.extension().is_some_and(|end| end == "toml"));
        let mut sets = 0;
        for path in files {
            // Paths of cards are those of whoever runs a study, here from another directory.
            let text = std::fs::read_to_string(&path).unwrap();
            let text = text.replace("./truth/", &format!("{}/", folder.display()));
            let Study::Performance(study) = parse(path.to_str().unwrap(), &text).unwrap() else {
                panic!("{}: no performance study", path.display())
            };
            for mapping in &study.published {
                let table = published(&mapping.file, Some(&folder)).unwrap();
                let (figures, skipped) = mapping.read(&study, &mapping.file, &table).unwrap();
                assert!(figures.len() > 1, "{}", path.display());
                assert!(skipped.unused.is_empty(), "{skipped:?}");
            }
            sets += 1;
        }
        assert!(sets >= 5, "{sets}");
    }

    #[test]
    fn every_shipped_study_is_whole_and_named_as_its_file() {
        let all = all().unwrap();
        for (study, (file, _)) in all.iter().zip(STUDIES) {
            assert_eq!(study.name(), *file);
            match study {
                Study::Crash(study) => assert!(study.cells().len() > 1),
                Study::Performance(study) => {
                    assert!(study.spots().len() > 1);
                    assert!(study.clone().quick().spots().len() <= study.spots().len());
                    for mapping in &study.published {
                        let table = published(&mapping.file, None).unwrap();
                        let (figures, _) = mapping.read(study, &mapping.file, &table).unwrap();
                        assert!(!figures.is_empty(), "{}: {}", study.name, mapping.file);
                    }
                }
            }
        }
        let error = open("elc2015-powr").unwrap_err();
        assert!(error.message.contains("elc2015-power"), "{error}");
    }

    #[test]
    fn cards_and_boards_that_are_not_there_are_told_with_their_lines() {
        changed("", "").unwrap();
        for (from, to, told) in [
            (
                "10-16gb",
                "10-16g",
                "mine.toml:6: cards: unknown card 'class10-16g'; did",
            ),
            (
                "class10-16gb",
                "./none.toml",
                "mine.toml:6: cards: card ./none.toml: No such",
            ),
            (
                "1ghz",
                "9ghz",
                "mine.toml:7: boards: unknown board 'generic-9ghz'",
            ),
            (
                "\"vfat\"]",
                "\"vfta\"]",
                "mine.toml:9: candidates: 'vfta'; did you mean 'vfat'",
            ),
            (
                "\"tree\"",
                "\"tre\"",
                "'tre' with these parameters; unknown workload",
            ),
        ] {
            let failure = changed(from, to).unwrap_err();
            assert!(failure.message.contains(told), "{failure}");
        }
    }

    #[test]
    fn a_workload_that_cannot_be_is_refused_with_what_can() {
        assert!(takes("rootfs", &BTreeMap::new()).is_ok());
        let wrong = BTreeMap::from([("byte".to_owned(), 1)]);
        assert!(takes("rootfs", &wrong).unwrap_err().contains("bytes"));
        assert!(takes("rootfss", &BTreeMap::new()).is_err());
    }

    #[test]
    fn every_card_and_board_of_a_shipped_study_is_there() {
        for study in all().unwrap() {
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
        for study in all().unwrap() {
            if let Study::Crash(study) = study {
                let number = study.cuts.to_string();
                assert!(!study.title.contains(&number), "{}", study.title);
            }
        }
    }
}
