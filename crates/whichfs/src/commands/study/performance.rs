//! Studies of the kind `performance`: trials, each run once and kept, as tables.

use super::here;
use crate::cli::{StudyArgs, StudyShowArgs, StudyTrialsArgs};
use crate::failure::{Failure, Kind, Outcome, exit_code};
use crate::interrupt;
use crate::output;
use crate::page::command_line;
use crate::progress::Progress;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use whichfs_decide::{Doubt, FigureOrigin, FigureRow, doubts_told};
use whichfs_engine::lab_executor::LabExecutor;
use whichfs_engine::report_folder::ReportFolder;
use whichfs_engine::study_cost::{Amounts, about, amount};
use whichfs_engine::study_run::{self, SmallestPartition, StudyTrials, modules_of, with_modules};
use whichfs_engine::trial_cache::{TrialCache, now_unix};
use whichfs_engine::{cluster, places, studies};
use whichfs_lab::available_cores;
use whichfs_report::documents::check::TuningGain;
use whichfs_report::documents::study::{
    ExpectedTime, FleetRun, SmallestFound, StudyPlace, StudyPlan, StudyRun, StudyShown, fleet_page,
    fleet_text, gain_tables, study_cases, study_definition, study_page, study_plan_text,
    study_text,
};
use whichfs_report::{Document, Export, STUDY_FILES, StudyPage, study_files};
use whichfs_study::{PerformanceStudy, Spot, gains, grids, score_of, turns};
use whichfs_trial::{Status, Trial};
use whichfs_units::counted;

/// Wall time of a trial where `--wall-limit` says nothing, in seconds.
pub const WALL_LIMIT_S: u64 = 1800;

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

/// The trials of a study in the lab.
pub(super) type LabTrials<'a> = StudyTrials<'a, LabExecutor>;

/// The trials of `study` in the lab; one at once for each core, if nobody says.
pub(super) fn lab<'a>(study: &'a PerformanceStudy, limits: &Limits) -> Outcome<LabTrials<'a>> {
    let wall_limit = Duration::from_secs(limits.wall_s.unwrap_or(WALL_LIMIT_S));
    let jobs = limits.jobs.map(|jobs| jobs as usize);
    let jobs = jobs.unwrap_or_else(|| available_cores().len());
    let benches = study_run::benches(study, wall_limit, jobs)?;
    let works = study_run::works(study, limits.tree.as_deref())?;
    let cache = TrialCache::open(None, limits.fresh)?;
    Ok(StudyTrials::new(
        study,
        benches,
        works,
        cache,
        interrupt::flag(),
    ))
}

/// Runs what the store does not have; whether `budget` was spent before the end.
fn run_all(runner: &mut LabTrials<'_>, budget: Option<Duration>) -> Outcome<bool> {
    let jobs = runner.benches.values().map(|bench| bench.jobs).max();
    let spots = runner.study.spots().len();
    let mut progress = Progress::of(spots, jobs.unwrap_or(1));
    runner.run(budget, &|line| note!("{line}"), &mut progress)
}

/// A study that another command makes up: run, and its differences.
///
/// # Errors
/// As [`run`].
pub fn compared(study: &PerformanceStudy) -> Outcome<TuningGain> {
    let mut runner = lab(study, &Limits::default())?;
    run_all(&mut runner, None)?;
    let trials = runner.trials();
    let gains = gains(study, &trials);
    let tables = gain_tables(study, &gains, usize::MAX);
    let mut lacking = study_run::failed(study, &trials);
    lacking.extend(runner.left_out());
    Ok(TuningGain {
        rows: tables.into_iter().flat_map(|table| table.rows).collect(),
        gains,
        lacking,
    })
}

/// Says how much there is to do.
fn dry_run(runner: &mut LabTrials<'_>) -> Outcome<u8> {
    let missing = runner.recall(&mut Progress::default())?;
    let known = runner.trials().len();
    let written = amount(missing.iter())?;
    let plan = StudyPlan {
        study: runner.study,
        trials: known + missing.len(),
        known,
        left_out: &runner.left_out(),
        written_bytes: written.bytes,
        programs: &written.unknown,
        wall: expected(runner)?,
        jobs: runner.benches.values().map(|bench| bench.jobs).max(),
    };
    output::text(&study_plan_text(&plan, output::width()))?;
    Ok(0)
}

/// About the wall time of what is missing, one after the other: as trials of the same workload and
/// candidate in the store took, else as they took elsewhere.
fn expected(runner: &LabTrials<'_>) -> Outcome<ExpectedTime> {
    let mut expected = ExpectedTime::default();
    let mut amounts = Amounts::default();
    let campaign = runner.campaign();
    let missing = campaign.missing();
    for (cell, spot) in missing.flat_map(|cell| cell.keys.iter().map(move |spot| (cell, spot))) {
        if let Some(wall) = campaign.cache.wall_of_alike(&cell.identity)? {
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

/// What was gathered of a study.
pub(super) struct Gathered<'a> {
    /// Trials that have a result, each with its place in the study.
    pub trials: Vec<(Spot<'a>, Trial)>,
    /// The smallest partitions.
    pub smallest: Vec<SmallestFound<'a>>,
    /// Candidates that cannot run, with the reason.
    pub left_out: Vec<String>,
    /// Trials that failed, with the reason.
    pub failed: Vec<String>,
    /// What figures leave out.
    pub caveats: Vec<String>,
    /// Trials with figures.
    pub done: usize,
    /// Trials that came from the store.
    pub reused: usize,
}

/// Shows one: what it measures, and the figures of its last run from the store.
pub fn show(study: &PerformanceStudy, args: &StudyShowArgs) -> Outcome<u8> {
    let quick = study.clone().quick();
    // What is wrong with the tables is said, whatever the store has.
    studies::published_figures(study, args.published.as_deref())?;
    let last = last(study, &quick, args.published.as_deref());
    if args.json {
        let last = last.as_ref().ok().and_then(Option::as_ref);
        output::document(&StudyShown { study, last })?;
        return Ok(0);
    }
    output::text(&study_definition(study, output::width()))?;
    let run = format!(
        "whichfs study run {}",
        whichfs_units::shell_word(&args.name)
    );
    match &last {
        Err(failure) => {
            output::paragraph(
                &format!("Figures of its last run cannot be shown: {failure}"),
                0,
            )?;
        }
        Ok(None) => output::paragraph("The store has no trial of it yet.", 0)?,
        Ok(Some(document)) => {
            let form = if document.study == study {
                ""
            } else {
                ", the quick form"
            };
            output::text_line(&format!("\nThe figures that the store has{form}\n"))?;
            output::text(&study_text(document, output::width()))?;
        }
    }
    output::text_line(&format!("Run it: {run}"))?;
    Ok(0)
}

/// What the store has of the form of a study that was run last, beside the tables in the folder
/// `from` or those that the program has; `None` if it has nothing.
fn last<'a>(
    full: &'a PerformanceStudy,
    quick: &'a PerformanceStudy,
    from: Option<&Path>,
) -> Outcome<Option<StudyRun<'a>>> {
    let mut found: Option<(i64, StudyRun)> = None;
    for (study, form) in [(full, ""), (quick, " --quick")] {
        let mut runner = lab(study, &Limits::default())?;
        let missing = runner.recall(&mut Progress::default())?.len();
        let Some(newest) = runner.campaign().cache.newest else {
            continue;
        };
        if found.as_ref().is_none_or(|(known, _)| *known < newest) {
            let mut document = study_document(study, &gather(&mut runner, false)?, from)?;
            let command = format!("whichfs study run {}{form}", study.name);
            document.caveats.extend((missing > 0).then(|| {
                let all = counted(document.trials, "trial");
                format!("of its {all} {missing} not there yet: {command} makes what is missing")
            }));
            document.reproduce = command;
            found = Some((newest, document));
        }
    }
    Ok(found.map(|(_, document)| document))
}

/// Runs one.
pub fn run(found: PerformanceStudy, args: &StudyArgs) -> Outcome<u8> {
    if args.cuts.is_some() {
        let remedy = "--quick, --seeds and --fs make it shorter";
        return Err(Failure::input(format!(
            "--cuts: this study cuts no power; {remedy}"
        )));
    }
    let study = changed(found, &args.trials)?;
    if !args.on.is_empty() {
        return here::run(study, args);
    }
    if let Some(flag) = args.here.given() {
        return Err(Failure::input(format!(
            "{flag} is of a real device: name one with --on DEV"
        )));
    }
    // What is wrong with the tables is said before anything runs.
    studies::published_figures(&study, args.published.as_deref())?;
    if let Some(place) = &args.cluster {
        on_cluster(args, place)?;
    }
    let limits = Limits {
        wall_s: args.wall_limit,
        jobs: args.jobs,
        fresh: args.fresh,
        tree: args.trials.tree.clone(),
    };
    let mut runner = lab(&study, &limits)?;
    if args.dry_run {
        return dry_run(&mut runner);
    }
    let files = Files::new(args)?;
    let budget_ended = run_all(&mut runner, args.budget)?;
    let published = args.published.as_deref();
    let gathered = gather(&mut runner, !budget_ended)?;
    let mut document = study_document(&study, &gathered, published)?;
    document.budget_ended = budget_ended;
    document.labels.clone_from(&args.run.labels);
    let none = || Failure::input(format!("{} has no trials", study.name));
    let bench = runner.benches.values().next().ok_or_else(none)?;
    let place = StudyPlace {
        kernels: runner.kernels(),
        card_state: bench.card_state.name(),
        origin: FigureOrigin::Modelled,
    };
    files.tell(args, &study, &gathered.trials, &document, &place)?;
    Ok(match document.failed.is_empty() {
        true => 0,
        false => exit_code(Kind::Trial),
    })
}

/// What `runner` has gathered; the smallest partitions are looked for with new trials only if
/// `searches`.
fn gather<'a>(runner: &mut LabTrials<'a>, searches: bool) -> Outcome<Gathered<'a>> {
    let (study, trials) = (runner.study, runner.trials());
    // Failing is an answer there: a line for each would read like faults.
    let smallest = runner.smallest(searches, &mut Progress::default().quiet(true))?;
    let named = study.variants.len() > 1;
    let smallest = smallest.iter().map(|one| found(one, named));
    Ok(Gathered {
        smallest: smallest.collect::<Outcome<_>>()?,
        left_out: runner.left_out(),
        failed: study_run::failed(study, &trials),
        caveats: [runner.caveats.sentences(), doubts(&trials)].concat(),
        done: study_run::done(&trials),
        reused: runner.campaign().cache.reused,
        trials: with_modules(study, trials),
    })
}

fn found<'a>(one: &SmallestPartition<'a>, named: bool) -> Outcome<SmallestFound<'a>> {
    let candidate = whichfs_fs::find(one.spot.candidate).map_err(Failure::input)?;
    let metric = |name: &str| {
        let metrics = one.best.iter().flat_map(|trial| &trial.outcome.metrics);
        let mut named = metrics.filter(|metric| metric.metric == name);
        named.next().map(|metric| metric.value)
    };
    Ok(SmallestFound {
        candidate: one.spot.candidate,
        variant: if named { &one.spot.variant.name } else { "" },
        bytes: one.bytes,
        unfinished: one.unfinished,
        catalogue_bytes: candidate.facts().min_bytes,
        free_bytes: metric("free"),
        free_inodes: metric("free_inodes"),
        why: one.why.clone(),
    })
}

/// What is to be said of figures that the virtual CPU makes wrong.
fn doubts(trials: &[(Spot, Trial)]) -> Vec<String> {
    let shown = |doubt: &Doubt| {
        let mut loads = trials.iter().map(|(spot, _)| spot.load);
        loads.any(|load| load.shows(&doubt.phase))
    };
    doubts_told(trials.iter().map(|(_, trial)| trial), &shown)
}

/// What `gathered` tells of `study`, beside the tables that were published in the folder
/// `from`, or that the program has.
pub(super) fn study_document<'a>(
    study: &'a PerformanceStudy,
    gathered: &Gathered<'a>,
    from: Option<&Path>,
) -> Outcome<StudyRun<'a>> {
    let (published, skipped) = studies::published_figures(study, from)?;
    let tables = grids(study, &gathered.trials, &published);
    let gains = gains(study, &gathered.trials);
    let modules = modules_of(study).map(|kernel| {
        let (package, version) = (&kernel.package, &kernel.version);
        format!(
            "module_size is of the module and those it depends on in Debian's {package} \
             {version} ({}), not of the lab's kernel",
            kernel.architecture
        )
    });
    let caveats = gathered.caveats.iter().cloned().chain(modules);
    Ok(StudyRun {
        study,
        score: score_of(study, &tables),
        tables,
        turns: turns(study, &gains),
        gains,
        smallest: gathered.smallest.clone(),
        skipped,
        left_out: gathered.left_out.clone(),
        failed: gathered.failed.clone(),
        caveats: caveats.collect(),
        trials: study.spots().len(),
        done: gathered.done,
        reused: gathered.reused,
        budget_ended: false,
        measured: None,
        labels: Vec::new(),
        reproduce: command_line(),
    })
}

/// Runs the trials that the store lacks at `place`, and takes their records.
fn on_cluster(args: &StudyArgs, place: &str) -> Outcome {
    let which = &args.trials;
    let mut words: Vec<OsString> = vec![
        args.name.clone().into(),
        format!("--cluster={place}").into(),
    ];
    let mut option = |name: &str, value: Option<String>| {
        words.extend(value.map(|value| format!("--{name}={value}").into()));
    };
    option("workers", args.jobs.map(|jobs| jobs.to_string()));
    option("wall-limit", args.wall_limit.map(|limit| limit.to_string()));
    option("seeds", which.seeds.map(|seeds| seeds.to_string()));
    option(
        "fs",
        (!which.only_fs.is_empty()).then(|| which.only_fs.join(",")),
    );
    option(
        "card",
        (!which.only_card.is_empty()).then(|| which.only_card.join(",")),
    );
    words.extend(which.quick.then(|| "--quick".into()));
    words.extend(
        which
            .tree
            .iter()
            .flat_map(|tree| ["--tree".into(), tree.into()]),
    );
    let program = std::env::current_exe().map_err(Failure::environment)?;
    cluster::run_trials(&places::python(), &program, &words, interrupt::flag())
}

/// The study with what the command line changes.
pub(super) fn changed(
    mut study: PerformanceStudy,
    args: &StudyTrialsArgs,
) -> Outcome<PerformanceStudy> {
    if args.quick {
        study = study.quick();
    }
    study.seeds = args.seeds.unwrap_or(study.seeds);
    let only = study.only(&args.only_fs, &args.only_card);
    only.map_err(Failure::input)
}

/// The files that a study leaves: that they can be written is known before the first trial.
pub(super) struct Files(ReportFolder);

impl Files {
    pub fn new(args: &StudyArgs) -> Outcome<Files> {
        let out = args.out.as_deref();
        let folder = ReportFolder::new(out, "whichfs-study", &STUDY_FILES, now_unix());
        Ok(Files(folder?))
    }

    /// Writes them, and prints what they say.
    pub fn tell(
        self,
        args: &StudyArgs,
        study: &PerformanceStudy,
        trials: &study_run::Trials<'_>,
        document: &StudyRun,
        place: &StudyPlace,
    ) -> Outcome {
        let rows = study_run::rows(study, trials);
        let page = study_page(document, place, env!("CARGO_PKG_VERSION"));
        let path = self.write(&rows, trials, &page, document)?;
        output::answer(args.json, document, study_text, &path)
    }

    /// The same of a study that ran on several boards, with the trials of all.
    pub fn tell_fleet(
        self,
        args: &StudyArgs,
        trials: &study_run::Trials<'_>,
        fleet: &FleetRun,
        place: &StudyPlace,
    ) -> Outcome {
        let done = trials
            .iter()
            .filter(|(_, trial)| trial.outcome.status == Status::Done);
        let rows: Vec<FigureRow> = done
            .flat_map(|(_, trial)| FigureRow::of_trial(trial))
            .collect();
        let page = fleet_page(fleet, place, env!("CARGO_PKG_VERSION"));
        let path = self.write(&rows, trials, &page, fleet)?;
        output::answer(args.json, fleet, fleet_text, &path)
    }

    /// Writes them; where the page is.
    fn write(
        self,
        rows: &[FigureRow],
        trials: &study_run::Trials<'_>,
        page: &StudyPage,
        document: &impl Document,
    ) -> Outcome<PathBuf> {
        let variants = trials.iter();
        let variants: Vec<(&str, &Trial)> = variants
            .map(|(spot, trial)| (spot.variant.name.as_str(), trial))
            .collect();
        let export = Export {
            rows,
            trials: &variants,
            // Of several cards: `study.json` and the page have what belongs to each.
            fit_error: None,
        };
        let files = study_files(page, document, &export, &study_cases(trials));
        self.0.write(&files.map_err(Failure::environment)?)
    }
}
