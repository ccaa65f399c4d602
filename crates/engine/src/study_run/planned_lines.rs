//! The trials of a study as lines that any machine can run.

use super::{Bench, bench_of, label, told_where, wanted};
use crate::cards;
use crate::error::{Error, Outcome};
use crate::executor::{Executor, PreparedTrial};
use crate::images::Images;
use crate::lab_executor::CONTENTS_MIN_BYTES;
use crate::portable_files::text_of;
use crate::prepare_error::PrepareError;
use crate::study_cost::{Amounts, about};
use crate::trial_cache::TrialCache;
use crate::workload_run::WorkloadRun;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use whichfs_study::{
    PerformanceStudy, Spot, TrialInputs, TrialNeeds, TrialRequest, Tuning, Variant,
};
use whichfs_trial::Identity;
use whichfs_units::MIB;

/// What became of the trials of a study that was planned.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct StudyLines {
    /// Trials that were told.
    pub told: usize,
    /// Trials that the cache has.
    pub known: usize,
    /// Candidates that cannot run, with the reason, once each.
    pub left_out: BTreeSet<String>,
}

/// Tells each trial of `study` on `benches` with `works` to `tell`, seed by seed: those of equal
/// ids once, and none that `cache` has, if there is one. The memory that this takes depends on the
/// trials of one seed, not on the number of seeds.
///
/// # Errors
/// What is wrong beside a candidate; a file that a line cannot hold; the cache cannot be read; the
/// caller's interruption; an error of `tell`.
pub fn plan_lines<'a, E: Executor>(
    study: &'a PerformanceStudy,
    benches: &BTreeMap<Bench<'a>, E>,
    works: &BTreeMap<&'a str, WorkloadRun>,
    mut cache: Option<&mut TrialCache>,
    interrupted: &AtomicBool,
    tell: &mut dyn FnMut(&TrialRequest) -> Outcome,
) -> Outcome<StudyLines> {
    let files = files(study)?;
    let mut lines = StudyLines::default();
    let mut amounts = Amounts::default();
    for seed in 1..=study.seeds {
        // The seed is part of an identity: no other seed has an id of this one.
        let mut ids = BTreeSet::new();
        let spots = study.spots_of_seed(seed);
        for (spot, wanted) in spots.iter().zip(wanted(study, &spots, works)?) {
            if interrupted.load(Ordering::Relaxed) {
                return Err(Error::interrupted());
            }
            let bench = &benches[&bench_of(spot)];
            let prepared = match bench.prepare(&wanted.spec, &Images::unbuilt()) {
                Ok(prepared) => prepared,
                Err(PrepareError::Failed(error)) => return Err(told_where(spot, error)),
                Err(PrepareError::Excluded { why, .. }) => {
                    let (name, card) = (spot.candidate, spot.card);
                    lines.left_out.insert(format!("{name} on {card}: {why}"));
                    continue;
                }
            };
            let identity = prepared.identity();
            if !ids.insert(identity.id()) {
                continue;
            }
            if let Some(cache) = cache.as_deref_mut()
                && cache.known(identity)?.is_some()
            {
                lines.known += 1;
                continue;
            }
            tell(&TrialRequest {
                id: identity.id(),
                label: label(study, spot),
                needs: needs(spot, identity, &mut amounts)?,
                inputs: TrialInputs {
                    card: spot.card.to_owned(),
                    board: spot.board.to_owned(),
                    clock: study.clock.clone(),
                    variant: spot.variant.clone(),
                    partition_bytes: spot.load.partition_bytes,
                    tree: wanted.spec.work.tree.clone(),
                    files: of_trial(spot, &files),
                },
                identity: identity.clone(),
            })?;
            lines.told += 1;
        }
    }
    Ok(lines)
}

/// What a machine needs for the trial at `spot`.
fn needs(spot: &Spot<'_>, identity: &Identity, amounts: &mut Amounts) -> Outcome<TrialNeeds> {
    let bytes = amounts.of(spot)?;
    let candidate = whichfs_fs::find(spot.candidate).map_err(Error::input)?;
    let wall = about(&spot.load.workload, spot.candidate, bytes);
    // A layer in RAM is in the guest's own memory.
    let second = spot.variant.second_card.as_ref();
    let cards = 1 + u64::from(second.is_some_and(|second| !second.is_ram()));
    Ok(TrialNeeds {
        cores: 1,
        memory_bytes: identity.memory_mib * MIB + cards * CONTENTS_MIN_BYTES,
        disk_bytes: bytes,
        // Milliseconds: nobody knows it better.
        wall_s: wall.map(|wall| wall.as_millis() as f64 / 1e3),
        image: candidate.facts().read_only,
    })
}

/// The files that the trial at `spot` names, of `files`.
fn of_trial(spot: &Spot<'_>, files: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let named = [cards::file_of(spot.card), Some(spot.board)];
    let named = named.into_iter().flatten().chain(of_variant(spot.variant));
    named
        .filter_map(|name| Some((name.to_owned(), files.get(name)?.clone())))
        .collect()
}

/// The files that `variant` names: of the card that it is tuned to, and of the second one.
fn of_variant(variant: &Variant) -> impl Iterator<Item = &str> {
    let tuned = match &variant.tuning {
        Tuning::Card(name) => cards::file_of(name),
        Tuning::ThisCard | Tuning::Nothing => None,
    };
    let second = variant.second_card.as_ref();
    let second = second.and_then(|second| cards::file_of(&second.card));
    tuned.into_iter().chain(second)
}

/// The text of each card or board file that `study` names.
///
/// # Errors
/// It cannot be read, or needs further files.
fn files(study: &PerformanceStudy) -> Outcome<BTreeMap<String, String>> {
    let variants = study.variants.iter().flat_map(of_variant);
    let boards = study.boards.iter().map(String::as_str);
    let cards = study.cards.iter().filter_map(|name| cards::file_of(name));
    let named = cards
        .chain(variants)
        .chain(boards.filter(|name| cards::is_file(name)));
    let mut files = BTreeMap::new();
    for name in named.collect::<BTreeSet<&str>>() {
        files.insert(name.to_owned(), text_of(name)?);
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::mock::{MockExecutor, Scripted};
    use crate::studies::fixture::changed;
    use crate::study_run::works;
    use whichfs_units::Nanos;

    /// The lines of `study`, in which vfat cannot run, and what became of the rest; `take` of them
    /// are taken.
    fn planned(study: &PerformanceStudy, take: usize) -> Outcome<(Vec<TrialRequest>, StudyLines)> {
        let script = |name: &str, _seed: u64| match name {
            "vfat" => Scripted::Excluded("no tool".to_owned()),
            _ => Scripted::Takes(Nanos(1)),
        };
        let spots = study.spots();
        let benches: BTreeMap<Bench<'_>, MockExecutor<'_>> = spots
            .iter()
            .map(|spot| (bench_of(spot), MockExecutor::new(&script).called(spot.card)))
            .collect();
        let works = works(study, None)?;
        let mut told = Vec::new();
        let mut tell = |planned: &TrialRequest| {
            told.push(planned.clone());
            match told.len() < take {
                true => Ok(()),
                false => Err(Error::interrupted()),
            }
        };
        let never = AtomicBool::new(false);
        let lines = plan_lines(study, &benches, &works, None, &never, &mut tell)?;
        Ok((told, lines))
    }

    #[test]
    fn each_trial_is_planned_once_with_what_it_needs() {
        let twice = "[[workloads]]\nname = \"again\"\nworkload = \"tree\"\n\n[[workloads]]";
        let mut study = changed("[[workloads]]", twice).unwrap();
        study.seeds = 3;
        assert_eq!(
            study.spots().len(),
            12,
            "two filesystems, two workloads that are one"
        );
        let (told, lines) = planned(&study, usize::MAX).unwrap();
        let seeds: Vec<u64> = told.iter().map(|one| one.identity.seed).collect();
        assert_eq!(seeds, [1, 2, 3], "of equal ids one");
        assert_eq!((lines.told, lines.known), (3, 0));
        let left_out: Vec<&String> = lines.left_out.iter().collect();
        assert_eq!(left_out, ["vfat on class10-16gb: no tool"]);
        for one in &told {
            assert_eq!(one.id, one.identity.id());
            assert!(one.needs.memory_bytes >= 64 << 20, "{:?}", one.needs);
            assert!(
                one.needs.disk_bytes > 0 && !one.needs.image,
                "{:?}",
                one.needs
            );
            assert!(one.inputs.files.is_empty(), "all that it names is shipped");
        }
    }

    #[test]
    fn a_second_card_needs_memory_beside_the_first() {
        let memory = |second: &str| {
            let variant = format!("{second}\nonly = [\"ext4\"]");
            let study = changed("without = [\"noatime\"]", &variant).unwrap();
            planned(&study, usize::MAX).unwrap().0[0].needs.memory_bytes
        };
        let one = memory("add = \"relatime\"");
        let card = memory("second_card = { card = \"emmc-8gb\", holds = \"journal\" }");
        assert_eq!(card, one + CONTENTS_MIN_BYTES);
        let ram = memory("second_card = { card = \"ram\", holds = \"upper\" }");
        assert_eq!(ram, one, "it is part of the guest's memory");
    }

    #[test]
    fn an_error_of_the_reader_ends_the_plan() {
        let study = changed("seeds = 1", "seeds = 1000").unwrap();
        let error = planned(&study, 2).unwrap_err();
        assert_eq!(error.kind, crate::error::ErrorKind::Interrupted);
    }

    #[test]
    fn files_are_part_of_a_line_and_those_with_logs_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let card = dir.path().join("own.toml");
        std::fs::copy(root.join("cards/class10-16gb.toml"), &card).unwrap();
        let named = format!("\"{}@usb1.1\"", card.display());
        let study = changed("\"class10-16gb\"", &named).unwrap();
        let (told, _) = planned(&study, usize::MAX).unwrap();
        let names: Vec<&String> = told[0].inputs.files.keys().collect();
        assert_eq!(names, [&card.display().to_string()], "without its port");
        let known =
            "title = \"t\"\ninterface = \"sd\"\ncapacity_bytes = 15999172608\nlogs = [\"x.log\"]\n";
        std::fs::write(&card, known).unwrap();
        let refused = files(&study).unwrap_err().message;
        assert!(refused.contains("names the log x.log"), "{refused}");
    }
}
