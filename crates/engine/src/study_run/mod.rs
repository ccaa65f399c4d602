//! The policy of `study run`: every trial of a study once, block by block, and what was gathered.

mod caveats;
mod fleet;
mod modules;
mod on_device;
mod planned_lines;
mod smallest;
mod works;

pub use caveats::Caveats;
pub use fleet::{PlacedStudy, kernels_of, require_different, run_fleet};
pub use modules::{modules_of, with_modules};
pub use on_device::{DeviceMatrix, on_device};
pub use planned_lines::{StudyLines, plan_lines};
pub use smallest::SmallestPartition;
pub use works::works;

use crate::board::Board;
use crate::campaign::{Campaign, InOrder, Wanted, WantedTrial};
use crate::cards::{self, CardState};
use crate::clock::Clock;
use crate::error::{Error, ErrorKind, Outcome};
use crate::executor::{Executor, TrialSpec};
use crate::images::Images;
use crate::lab_executor::LabExecutor;
use crate::observer::{Observer, ProgressEvent};
use crate::trial_cache::TrialCache;
use crate::workload_run::WorkloadRun;
use crate::{partition, places};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use whichfs_card::Profile;
use whichfs_decide::FigureRow;
use whichfs_study::{PerformanceStudy, Spot, Variant};
use whichfs_trial::{Status, Trial};

/// What the trials of one executor share: card, board, and version of the kernel if it is not the
/// lab's own.
pub type Bench<'a> = (&'a str, &'a str, Option<&'a str>);

/// Where the trial of `spot` runs.
pub fn bench_of<'a>(spot: &Spot<'a>) -> Bench<'a> {
    (spot.card, spot.board, spot.kernel())
}

/// Executors of the lab for all cards, boards and kernels of `study`, each for `jobs` trials at
/// once of `wall_limit` at most.
///
/// # Errors
/// An unknown card or board; what this machine lacks.
pub fn benches(
    study: &PerformanceStudy,
    wall_limit: Duration,
    jobs: usize,
) -> Outcome<BTreeMap<Bench<'_>, LabExecutor>> {
    let mut benches = BTreeMap::new();
    // All seeds have the same places.
    for place in study.spots_of_seed(1).iter().map(bench_of) {
        if benches.contains_key(&place) {
            continue;
        }
        benches.insert(place, bench(place, &study.clock, wall_limit, jobs)?);
    }
    if let Some(bench) = benches.values().next() {
        check_left_out(study, &bench.card.profile)?;
    }
    Ok(benches)
}

/// The executor of the lab for `place` with `clock`, for `jobs` trials at once of `wall_limit` at
/// most.
///
/// # Errors
/// As [`benches`].
pub fn bench(
    (card, board, kernel): Bench<'_>,
    clock: &str,
    wall_limit: Duration,
    jobs: usize,
) -> Outcome<LabExecutor> {
    let mut name = board.to_owned();
    let clock = Clock::parse(clock, &mut name)?;
    let bench = LabExecutor::new(
        cards::open(card)?,
        CardState::Used,
        Board::open(&name)?,
        clock,
        wall_limit,
        jobs,
    )?;
    Ok(match kernel {
        None => bench,
        Some(version) => bench.under(places::kernel_of(version)?),
    })
}

/// The trials of a study under way.
pub struct StudyTrials<'a, E: Executor> {
    /// What the study file asks for.
    pub study: &'a PerformanceStudy,
    /// Where its trials run.
    pub benches: BTreeMap<Bench<'a>, E>,
    /// What figures leave out.
    pub caveats: Caveats,
    /// Trials that were searched for, beside those of the matrix.
    works: BTreeMap<&'a str, WorkloadRun>,
    campaign: Campaign<'a, E, Spot<'a>>,
    /// Candidates that cannot run, by card and reason.
    left_out: BTreeMap<(&'a str, String), Vec<&'a str>>,
}

impl<'a, E: Executor> StudyTrials<'a, E> {
    /// The trials of `study` on `benches` with `works`, of which `cache` knows some; it ends when
    /// `interrupted` is set.
    pub fn new(
        study: &'a PerformanceStudy,
        benches: BTreeMap<Bench<'a>, E>,
        works: BTreeMap<&'a str, WorkloadRun>,
        cache: TrialCache,
        interrupted: &'a AtomicBool,
    ) -> StudyTrials<'a, E> {
        StudyTrials {
            study,
            benches,
            caveats: Caveats::of_all(works::caveats(study)),
            works,
            campaign: Campaign::new(cache, interrupted),
            left_out: BTreeMap::new(),
        }
    }

    /// The matrix and the cache.
    pub fn campaign(&self) -> &Campaign<'a, E, Spot<'a>> {
        &self.campaign
    }

    /// The trials that are known, each with its spot.
    pub fn trials(&self) -> Vec<(Spot<'a>, Trial)> {
        let known = self.campaign.by_key();
        known.map(|(spot, trial)| (*spot, trial.clone())).collect()
    }

    /// Takes what the cache has of all trials; the spots that it lacks.
    ///
    /// # Errors
    /// The cache cannot be read; what is wrong beside a candidate.
    pub fn recall(&mut self, observer: &mut dyn Observer) -> Outcome<Vec<Spot<'a>>> {
        let spots = self.study.spots();
        self.plan(&spots, &Images::unbuilt(), observer)?;
        let missing = self.campaign.missing().flat_map(|cell| &cell.keys);
        Ok(missing.copied().collect())
    }

    /// Runs what the cache does not have, until `budget` is spent; whether it was spent before the
    /// end. `tell` hears what images are being built.
    ///
    /// # Errors
    /// What is no trial's own failure; the caller's interruption. What was finished is kept.
    pub fn run(
        &mut self,
        budget: Option<Duration>,
        tell: &(dyn Fn(&str) + Sync),
        observer: &mut dyn Observer,
    ) -> Outcome<bool> {
        let until = budget.map(|budget| Instant::now() + budget);
        let study = self.study;
        let spots = study.spots();
        // What needs images waits for those of its block: no more than one seed's, unless all
        // seeds have the same.
        let of = |spot: &Spot| if study.same_data { 1 } else { spot.seed };
        let block = |a: &Spot<'a>, b: &Spot<'a>| (of(a), bench_of(a)) == (of(b), bench_of(b));
        let mut order = InOrder::until(until);
        for block in spots.chunk_by(block) {
            self.plan(block, &Images::new(tell), observer)?;
            let missing = self.campaign.missing().count();
            observer.hear(&ProgressEvent::Skipped(block.len().saturating_sub(missing)));
            if missing == 0 {
                continue;
            }
            if order.stopped || order.is_over() {
                order.stopped = true;
                // What the cache has of the rest is taken all the same.
                continue;
            }
            let bench = &self.benches[&bench_of(&block[0])];
            let name = format!("trials of {}", study.name);
            self.campaign.run(bench, &name, &mut order, observer)?;
        }
        Ok(order.stopped)
    }

    /// Prepares the trials at `spots`, and takes those that the cache has.
    fn plan(
        &mut self,
        spots: &[Spot<'a>],
        images: &Images,
        observer: &mut dyn Observer,
    ) -> Outcome {
        for part in spots.chunk_by(|a, b| bench_of(a) == bench_of(b)) {
            let Some(first) = part.first() else {
                continue;
            };
            let bench = &self.benches[&bench_of(first)];
            let wanted = wanted(self.study, part, &self.works)?;
            let planned = self.campaign.plan(bench, wanted, images, &told_where)?;
            for (spot, planned) in part.iter().zip(planned) {
                match planned {
                    WantedTrial::InMatrix { caveats, .. } => {
                        self.caveats.add(spot.candidate, &caveats);
                    }
                    WantedTrial::LeftOut { why, .. } => {
                        let names = self.left_out.entry((spot.card, why)).or_default();
                        if !names.contains(&spot.candidate) {
                            names.push(spot.candidate);
                        }
                    }
                }
            }
        }
        self.caveats.tell(observer);
        Ok(())
    }

    /// What cannot run here, a sentence for each reason.
    pub fn left_out(&self) -> Vec<String> {
        let all = self.left_out.iter();
        all.map(|((card, why), names)| format!("{} on {card}: {why}", names.join(", ")))
            .collect()
    }
}

impl StudyTrials<'_, LabExecutor> {
    /// The kernels of all benches, each once: release and SHA-256.
    pub fn kernels(&self) -> Vec<(String, String)> {
        let all = self.benches.values().flat_map(LabExecutor::kernels);
        let mut all: Vec<(String, String)> = all
            .map(|kernel| (kernel.release.clone(), kernel.sha256.clone()))
            .collect();
        all.sort();
        all.dedup();
        all
    }
}

/// The trials at `spots` with `works`.
fn wanted<'w, 'a: 'w>(
    study: &PerformanceStudy,
    spots: &[Spot<'a>],
    works: &'w BTreeMap<&'a str, WorkloadRun>,
) -> Outcome<Vec<Wanted<'w, Spot<'a>>>> {
    let one = |spot: &Spot<'a>| {
        let spec = TrialSpec {
            candidate: whichfs_fs::find(spot.candidate).map_err(Error::input)?,
            work: &works[spot.load.name.as_str()],
            variant: spot.variant,
            seed: spot.seed,
        };
        Ok(Wanted {
            label: Some(label(study, spot)),
            ..Wanted::of(*spot, spec)
        })
    };
    spots.iter().map(one).collect()
}

/// `failure`, if it is the study file's, after the lines of its variant and its workload.
pub fn told_where(spot: &Spot, failure: Error) -> Error {
    let lines: Vec<&str> = [&spot.variant.at, &spot.load.at]
        .into_iter()
        .map(String::as_str)
        .filter(|at| !at.is_empty())
        .collect();
    match failure.kind {
        ErrorKind::Input if !lines.is_empty() => failure.about(&lines.join(" with ")),
        _ => failure,
    }
}

/// Checks that some candidate of each variant has the mount options that it leaves out, on a card
/// of `profile`.
fn check_left_out(study: &PerformanceStudy, profile: &Profile) -> Outcome {
    for variant in &study.variants {
        let of = |name: &&String| variant.only.is_empty() || variant.only.contains(*name);
        for option in &variant.without {
            let mut had = Vec::new();
            for name in study.candidates.iter().filter(of) {
                let candidate = whichfs_fs::find(name).map_err(Error::input)?;
                let bytes = cards::geometry(profile).partition_bytes;
                let recipe =
                    partition::recipe(candidate, profile, bytes, &variant.tuning, 1, true)?;
                had.extend(recipe.map(|recipe| format!("{name} has {}", recipe.mount_options)));
            }
            let there = |had: &String| had.split([' ', ',']).any(|word| word == option);
            if !had.is_empty() && !had.iter().any(there) {
                let all = had.join("; ");
                return Err(Error::input(format!(
                    "{}: variants.without: '{option}' is no mount option of any candidate: {all}",
                    variant.at
                )));
            }
        }
    }
    Ok(())
}

/// Trials of a study, each with its spot.
pub type Trials<'a> = [(Spot<'a>, Trial)];

/// How many of `trials` have figures.
pub fn done(trials: &Trials<'_>) -> usize {
    let done = |trial: &Trial| trial.outcome.status == Status::Done;
    trials.iter().filter(|(_, trial)| done(trial)).count()
}

/// Those of `trials` that failed, with the reason.
pub fn failed(study: &PerformanceStudy, trials: &Trials<'_>) -> Vec<String> {
    let failed = trials.iter().filter_map(|(spot, trial)| {
        let Status::Failed { reason, .. } = &trial.outcome.status else {
            return None;
        };
        let reason = reason.lines().next().unwrap_or_default();
        Some(format!("{}: {reason}", label(study, spot)))
    });
    failed.collect()
}

/// The figures of `trials` in the order of the matrix, whichever ended first.
pub fn rows(study: &PerformanceStudy, trials: &Trials<'_>) -> Vec<FigureRow> {
    let done = |trial: &&(Spot, Trial)| trial.1.outcome.status == Status::Done;
    let mut done: Vec<&(Spot, Trial)> = trials.iter().filter(done).collect();
    let order = study.spots();
    done.sort_by_key(|(spot, _)| order.iter().position(|other| other == spot));
    done.iter()
        .flat_map(|(_, trial)| FigureRow::of_trial(trial))
        .collect()
}

/// A trial in a few words: what the matrix varies.
fn label(study: &PerformanceStudy, spot: &Spot) -> String {
    let variant = match study.variants.as_slice() {
        [Variant { name, .. }] if name.is_empty() => String::new(),
        _ => format!(" {}", spot.variant.name),
    };
    let vary = |list: &[String], value: &str| match list.len() {
        1 => String::new(),
        _ => format!(" on {value}"),
    };
    format!(
        "{}{variant}, {}{}{}, seed {}",
        spot.candidate,
        spot.load.name,
        vary(&study.cards, spot.card),
        vary(&study.boards, spot.board),
        spot.seed
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::studies::fixture::{changed, performance};

    #[test]
    fn an_option_that_nobody_has_cannot_be_left_out() {
        let profile = cards::open("class10-16gb").unwrap().profile;
        check_left_out(&changed("", "").unwrap(), &profile).unwrap();
        let study = changed("\"noatime\"", "\"noatim\"").unwrap();
        let failure = check_left_out(&study, &profile).unwrap_err();
        let told = "mine.toml:12: variants.without: 'noatim' is no mount option of any candidate";
        assert!(failure.message.contains(told), "{failure}");
        for study in ["pandora", "options", "tuning"] {
            check_left_out(&performance(study), &profile).unwrap();
        }
    }

    #[test]
    fn what_cannot_be_is_told_with_the_lines_of_variant_and_workload() {
        let study = changed("", "").unwrap();
        let spots = study.spots();
        let told = told_where(&spots[0], Error::input("too large"));
        assert_eq!(told.message, "mine.toml:12 with mine.toml:16: too large");
        let told = told_where(&spots[0], Error::environment("no kernel"));
        assert_eq!(told.message, "no kernel", "not the file's fault");
    }
}
