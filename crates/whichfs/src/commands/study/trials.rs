//! The trials of a study: prepared, taken from the store or run, and kept.

use super::caveats::Caveats;
use crate::failure::{Failure, Kind, Outcome};
use crate::progress::Progress;
use crate::{interrupt, output};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use whichfs_card::Profile;
use whichfs_engine::board::Board;
use whichfs_engine::cards::{self, CardState};
use whichfs_engine::clock::Clock;
use whichfs_engine::executor::PrepareError;
use whichfs_engine::images::Images;
use whichfs_engine::lab_executor::{LabExecutor, Prepared};
use whichfs_engine::study_cost::{Amounts, about, amount};
use whichfs_engine::trial_cache::TrialCache;
use whichfs_engine::workload_run::WorkloadRun;
use whichfs_engine::{partition, places, tree};
use whichfs_lab::available_cores;
use whichfs_report::documents::study::{ExpectedTime, StudyPlan, study_plan_text};
use whichfs_study::{PerformanceStudy, Row, Spot, Variant};
use whichfs_trial::{Status, Trial, WorkloadSpec};

/// Wall time of a trial where `--wall-limit` says nothing, in seconds.
const WALL_LIMIT_S: u64 = 1800;

/// How trials are run.
#[derive(Default)]
pub(super) struct Limits {
    /// Wall time of a trial, in seconds.
    pub wall_s: Option<u64>,
    /// Trials at once.
    pub jobs: Option<u64>,
    /// Also those that the store has.
    pub fresh: bool,
    /// The user's tree in place of those that workloads draw.
    pub tree: Option<PathBuf>,
}

/// What the trials of one bench share: card, board, and version of the kernel if it is not the
/// lab's own.
pub(super) type Place<'a> = (&'a str, &'a str, Option<&'a str>);

/// Where a trial is made.
pub(super) fn place<'a>(spot: &Spot<'a>) -> Place<'a> {
    (spot.card, spot.board, spot.kernel())
}

/// Everything that one run gathers.
pub(super) struct Runner<'a> {
    pub(super) study: &'a PerformanceStudy,
    pub(super) benches: BTreeMap<Place<'a>, LabExecutor>,
    pub(super) works: BTreeMap<&'a str, WorkloadRun>,
    pub(super) keeper: TrialCache,
    pub(super) trials: Vec<(Spot<'a>, Trial)>,
    /// Candidates that cannot run, by card and reason.
    pub(super) left_out: BTreeMap<(&'a str, String), Vec<&'a str>>,
    pub(super) caveats: Caveats,
}

impl<'a> Runner<'a> {
    /// A runner of `study`; `jobs` trials at once, or one for each core.
    pub fn new(study: &'a PerformanceStudy, limits: &Limits) -> Outcome<Runner<'a>> {
        let wall_limit = Duration::from_secs(limits.wall_s.unwrap_or(WALL_LIMIT_S));
        let jobs = limits
            .jobs
            .map_or_else(|| available_cores().len(), |jobs| jobs as usize);
        let mut benches = BTreeMap::new();
        for place in study.spots().iter().map(place) {
            if benches.contains_key(&place) {
                continue;
            }
            let (card, board, kernel) = place;
            let mut name = board.to_owned();
            let clock = Clock::parse(&study.clock, &mut name)?;
            let bench = LabExecutor::new(
                cards::open(card)?,
                CardState::Used,
                Board::open(&name)?,
                clock,
                wall_limit,
                jobs,
            )?;
            let bench = match kernel {
                None => bench,
                Some(version) => bench.under(places::kernel_of(version)?),
            };
            benches.insert(place, bench);
        }
        if let Some(bench) = benches.values().next() {
            check_left_out(study, &bench.card.profile)?;
        }
        let works = works(study, limits.tree.as_deref())?;
        Ok(Runner {
            study,
            benches,
            works,
            keeper: TrialCache::open(None, limits.fresh)?,
            trials: Vec::new(),
            left_out: BTreeMap::new(),
            caveats: Caveats::of_all(caveats(study)),
        })
    }

    /// Takes what the store has; how many trials it lacks.
    pub fn recall(&mut self) -> Outcome<usize> {
        let spots = self.study.spots();
        Ok(self.prepared(&spots, &Images::unbuilt())?.len())
    }

    /// When the last of the trials that the store had was made, in seconds since 1970.
    pub fn newest(&self) -> Option<i64> {
        self.keeper.newest
    }

    /// Any bench.
    pub(super) fn bench(&self) -> Outcome<&LabExecutor> {
        let none = || Failure::input(format!("{} has no trials", self.study.name));
        self.benches.values().next().ok_or_else(none)
    }

    /// The kernels of all benches, each once: release and SHA-256.
    pub(super) fn kernels(&self) -> Vec<(String, String)> {
        let all = self.benches.values().flat_map(LabExecutor::kernels);
        let mut all: Vec<(String, String)> = all
            .map(|kernel| (kernel.release.clone(), kernel.sha256.clone()))
            .collect();
        all.sort();
        all.dedup();
        all
    }

    /// Runs what the store does not have; whether `budget` ended before.
    pub(super) fn run_all(&mut self, budget: Option<Duration>) -> Outcome<bool> {
        let begun = Instant::now();
        let over = || budget.is_some_and(|budget| begun.elapsed() >= budget);
        let study = self.study;
        let spots = study.spots();
        let jobs = self.benches.values().map(|bench| bench.jobs).max();
        let mut progress = Progress::new(spots.len(), jobs.unwrap_or(1), false);
        // What needs images waits for those of its block: no more than one seed's, unless all
        // seeds have the same.
        let of = |spot: &Spot| if study.same_data { 1 } else { spot.seed };
        let block = |a: &Spot<'a>, b: &Spot<'a>| (of(a), place(a)) == (of(b), place(b));
        let mut ended = false;
        for block in spots.chunk_by(block) {
            let tell = |what: &str| progress.say(what);
            let missing = self.prepared(block, &Images::new(&tell))?;
            progress.skip(block.len() - missing.len());
            if missing.is_empty() {
                continue;
            }
            ended = ended || over();
            if !ended {
                ended = self.run_block(missing, &mut progress, &over)?;
            }
        }
        progress.finish();
        Ok(ended)
    }

    /// Runs trials of one card, board and kernel; whether the time was over before the
    /// end.
    fn run_block(
        &mut self,
        missing: Vec<(Spot<'a>, Prepared)>,
        progress: &mut Progress,
        over: &dyn Fn() -> bool,
    ) -> Outcome<bool> {
        let Some((first, _)) = missing.first() else {
            return Ok(false);
        };
        let bench = &self.benches[&place(first)];
        // Variants that come to the same commands are one trial.
        let mut spots: BTreeMap<String, Vec<Spot>> = BTreeMap::new();
        let mut trials = Vec::new();
        for (spot, prepared) in missing {
            let same = spots.entry(prepared.identity.id()).or_default();
            match same.is_empty() {
                true => trials.push(prepared),
                false => progress.skip(1),
            }
            same.push(spot);
        }
        let stopped = Cell::new(false);
        let kept = &mut self.trials;
        let works = &self.works;
        let unchanged = || works.values().try_for_each(tree_is_unchanged);
        let result = self.keeper.run(
            bench,
            trials,
            interrupt::flag(),
            progress,
            &unchanged,
            &mut |trial| {
                let here = spots.get(&trial.identity.id()).into_iter().flatten();
                kept.extend(here.map(|spot| (*spot, trial.clone())));
                if over() {
                    stopped.set(true);
                    return Err(Failure::new(Kind::Interrupted, "the budget is spent"));
                }
                Ok(())
            },
        );
        match result {
            Err(_) if stopped.get() && !interrupt::flag().load(Ordering::Relaxed) => Ok(true),
            other => other.map(|()| false),
        }
    }

    /// The trials of a block that are to be run; those that are known are taken from the store.
    fn prepared(
        &mut self,
        block: &[Spot<'a>],
        images: &Images,
    ) -> Outcome<Vec<(Spot<'a>, Prepared)>> {
        let mut missing = Vec::new();
        for spot in block {
            if interrupt::flag().load(Ordering::Relaxed) {
                return Err(self.keeper.interrupted());
            }
            let bench = &self.benches[&place(spot)];
            let work = &self.works[spot.load.name.as_str()];
            let candidate = whichfs_fs::find(spot.candidate).map_err(Failure::input)?;
            match bench.prepare(candidate, work, spot.variant, spot.seed, images) {
                Ok(mut prepared) => {
                    prepared.label = label(self.study, spot);
                    self.caveats.add(spot.candidate, &prepared.caveats);
                    match self.keeper.known(&prepared.identity)? {
                        Some(trial) => {
                            self.trials.push((*spot, trial));
                        }
                        None => missing.push((*spot, prepared)),
                    }
                }
                Err(PrepareError::Failed(_)) if interrupt::flag().load(Ordering::Relaxed) => {
                    return Err(self.keeper.interrupted());
                }
                Err(PrepareError::Failed(failure)) => return Err(told_where(spot, failure)),
                Err(PrepareError::Excluded { why, .. }) => {
                    let names = self.left_out.entry((spot.card, why)).or_default();
                    if !names.contains(&spot.candidate) {
                        names.push(spot.candidate);
                    }
                }
            }
        }
        self.caveats.tell();
        Ok(missing)
    }

    /// Says how much there is to do.
    pub(super) fn dry_run(&mut self) -> Outcome<u8> {
        let spots = self.study.spots();
        let missing = self.prepared(&spots, &Images::unbuilt())?;
        let written = amount(missing.iter().map(|(spot, _)| spot))?;
        let plan = StudyPlan {
            study: self.study,
            trials: self.trials.len() + missing.len(),
            known: self.trials.len(),
            left_out: &self.left_out(),
            written_bytes: written.bytes,
            programs: &written.unknown,
            wall: self.expected(&missing)?,
            jobs: self.benches.values().map(|bench| bench.jobs).max(),
        };
        output::text(&study_plan_text(&plan, output::width()))?;
        Ok(0)
    }

    /// About the wall time of `missing`, one after the other: as trials of the same workload and
    /// candidate in the store took, else as they took elsewhere.
    fn expected(&self, missing: &[(Spot, Prepared)]) -> Outcome<ExpectedTime> {
        let mut expected = ExpectedTime::default();
        let mut amounts = Amounts::default();
        for (spot, prepared) in missing {
            if let Some(wall) = self.keeper.wall_of_alike(&prepared.identity)? {
                expected.wall += wall;
                continue;
            }
            let bytes = amounts.of(spot)?;
            match about(&spot.load.workload, spot.candidate, bytes) {
                Some(wall) => {
                    expected.wall += wall;
                    expected.elsewhere += 1;
                }
                None => expected.unknown += 1,
            }
        }
        Ok(expected)
    }

    /// What cannot run here, a sentence for each reason.
    pub(super) fn left_out(&self) -> Vec<String> {
        let all = self.left_out.iter();
        all.map(|((card, why), names)| format!("{} on {card}: {why}", names.join(", ")))
            .collect()
    }
}

/// `failure`, if it is the study file's, after the lines of its variant and its workload.
pub(super) fn told_where(spot: &Spot, failure: Failure) -> Failure {
    let lines: Vec<&str> = [&spot.variant.at, &spot.load.at]
        .into_iter()
        .map(String::as_str)
        .filter(|at| !at.is_empty())
        .collect();
    match failure.kind {
        Kind::Input if !lines.is_empty() => failure.about(&lines.join(" with ")),
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
                let candidate = whichfs_fs::find(name).map_err(Failure::input)?;
                let bytes = cards::geometry(profile).partition_bytes;
                let recipe =
                    partition::recipe(candidate, profile, bytes, &variant.tuning, 1, true)?;
                had.extend(recipe.map(|recipe| format!("{name} has {}", recipe.mount_options)));
            }
            let there = |had: &String| had.split([' ', ',']).any(|word| word == option);
            if !had.is_empty() && !had.iter().any(there) {
                let all = had.join("; ");
                return Err(Failure::input(format!(
                    "{}: variants.without: '{option}' is no mount option of any candidate: {all}",
                    variant.at
                )));
            }
        }
    }
    Ok(())
}

/// Trials of a study, each with its spot.
pub(super) type Trials<'a> = [(Spot<'a>, Trial)];

/// How many of `trials` have figures.
pub(super) fn done(trials: &Trials<'_>) -> usize {
    let done = |trial: &Trial| trial.outcome.status == Status::Done;
    trials.iter().filter(|(_, trial)| done(trial)).count()
}

/// Those of `trials` that failed, with the reason.
pub(super) fn failed(study: &PerformanceStudy, trials: &Trials<'_>) -> Vec<String> {
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
pub(super) fn rows(study: &PerformanceStudy, trials: &Trials<'_>) -> Vec<Row> {
    let done = |trial: &&(Spot, Trial)| trial.1.outcome.status == Status::Done;
    let mut done: Vec<&(Spot, Trial)> = trials.iter().filter(done).collect();
    let order = study.spots();
    done.sort_by_key(|(spot, _)| order.iter().position(|other| other == spot));
    done.iter()
        .flat_map(|(_, trial)| Row::of_trial(trial))
        .collect()
}

/// What the workloads of `study` do, by their names in it, with the user's tree for those that
/// write one.
///
/// # Errors
/// If there is a tree and none writes one, or it cannot be read.
pub(super) fn works<'a>(
    study: &'a PerformanceStudy,
    tree: Option<&Path>,
) -> Outcome<BTreeMap<&'a str, WorkloadRun>> {
    let tree = tree.map(tree::absolute).transpose()?;
    if let Some(tree) = &tree {
        tree::tell_odd(tree)?;
    }
    let mut works = BTreeMap::new();
    for load in &study.workloads {
        let mut work = work(study, load)?;
        if let Some(tree) = tree.as_ref().filter(|_| takes_tree(&work)) {
            work.tree_sha256 = tree::digest(tree, work.workload)?;
            work.tree = Some(tree.clone());
        }
        works.insert(load.name.as_str(), work);
    }
    if let Some(tree) = tree
        && works.values().all(|work| work.tree.is_none())
    {
        return Err(Failure::input(format!(
            "--tree {}: no workload of {} writes a tree; linuxplanet and bootlin do",
            tree.display(),
            study.name
        )));
    }
    Ok(works)
}

/// Checks that the user's tree, if `work` writes one, is what it was.
fn tree_is_unchanged(work: &WorkloadRun) -> Outcome {
    match &work.tree {
        Some(tree) => tree::check_unchanged(tree, work.workload, &work.tree_sha256),
        None => Ok(()),
    }
}

/// Whether a workload writes a tree that may be the user's.
fn takes_tree(work: &WorkloadRun) -> bool {
    let spec = WorkloadSpec {
        name: work.workload.name().to_owned(),
        parameters: work.parameters.clone(),
        tree: Some(String::new()),
        unix: true,
        script: None,
        input: None,
    };
    work.workload.check(&spec).is_ok()
}

/// What a load of `study` measures, with the defaults of its workload.
fn work(study: &PerformanceStudy, load: &whichfs_study::Load) -> Outcome<WorkloadRun> {
    let workload = whichfs_workload::find(&load.workload).map_err(Failure::input)?;
    let defaults = workload.parameters().iter();
    let mut parameters: BTreeMap<String, u64> = defaults
        .map(|parameter| (parameter.name.to_owned(), parameter.default))
        .collect();
    parameters.extend(load.parameters.clone());
    Ok(WorkloadRun {
        workload,
        parameters,
        tree: None,
        tree_sha256: String::new(),
        input: None,
        data_seed: study.same_data.then_some(1),
        partition_bytes: load.partition_bytes,
        any_size: false,
    })
}

/// What the figures of the workloads of `study` leave out.
fn caveats(study: &PerformanceStudy) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for load in &study.workloads {
        let workload = whichfs_workload::find(&load.workload).ok();
        let said = workload.and_then(|workload| workload.caveat());
        let said = said.map(|said| format!("{}: {said}", load.workload));
        all.extend(said.filter(|said| !all.contains(said)));
    }
    all
}

/// A trial in a few words: what the matrix varies.
pub(super) fn label(study: &PerformanceStudy, spot: &Spot) -> String {
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
    use whichfs_engine::studies::fixture::{changed, performance};

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
        let told = told_where(&spots[0], Failure::input("too large"));
        assert_eq!(told.message, "mine.toml:12 with mine.toml:16: too large");
        let told = told_where(&spots[0], Failure::environment("no kernel"));
        assert_eq!(told.message, "no kernel", "not the file's fault");
    }

    #[test]
    fn a_tree_is_for_those_that_write_one() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), "content").unwrap();
        let study = performance("linuxplanet");
        let works = works(&study, Some(dir.path())).unwrap();
        let has = |name: &str| works[name].tree.is_some();
        assert!(has("kernel tree") && !has("tarball"));
        assert_eq!(works["kernel tree"].tree_sha256.len(), 64);
        let video = performance("pandora");
        let refused = super::works(&video, Some(dir.path())).err().unwrap();
        assert!(refused.message.contains("writes a tree"), "{refused}");
        let none = super::works(&study, Some(&dir.path().join("none")));
        assert!(none.err().unwrap().message.contains("--tree"));
    }

    #[test]
    fn what_the_lab_cannot_measure_is_said_once() {
        let said = caveats(&performance("elc2015"));
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains("not measurable in the lab"), "{said:?}");
        assert_eq!(
            caveats(&performance("gentoo")).len(),
            1,
            "of many workloads, once"
        );
        assert!(caveats(&performance("pandora")).is_empty());
    }
}
