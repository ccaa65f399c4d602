//! Studies of the kind `performance`: trials, each run once and kept, as tables.

use super::here;
use super::trials::{self, Limits, Runner};
use crate::cli::{StudyArgs, StudyShowArgs};
use crate::failure::{Failure, Kind, Outcome, exit_code};
use crate::output;
use crate::page::command_line;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use whichfs_engine::places::{self, WholeFile};
use whichfs_engine::studies;
use whichfs_report::documents::study::{
    SmallestFound, StudyPlace, StudyRun, StudyShown, study_definition, study_page, study_text,
};
use whichfs_report::{Export, document_json};
use whichfs_study::{
    Doubt, Origin, PerformanceStudy, PublishedFigure, Skipped, Spot, doubts_told, gains, grids,
    score_of, turns,
};
use whichfs_trial::{Metric, Trial};
use whichfs_units::counted;

/// What was gathered of a study.
pub(super) struct Gathered<'a> {
    /// Its trials.
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
    published(study, args.published.as_deref())?;
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
        let mut runner = Runner::new(study, &Limits::default())?;
        let missing = runner.recall()?;
        let Some(newest) = runner.newest() else {
            continue;
        };
        if found.as_ref().is_none_or(|(known, _)| *known < newest) {
            let mut document = study_run(study, &gather(&mut runner, false)?, from)?;
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
    let study = changed(found, args)?;
    if let Some(device) = &args.on {
        return here::run(study, args, device);
    }
    if let Some(flag) = args.here.given() {
        return Err(Failure::input(format!(
            "{flag} is of a real device: name one with --on DEV"
        )));
    }
    // What is wrong with the tables is said before anything runs.
    published(&study, args.published.as_deref())?;
    let limits = Limits {
        wall_s: args.wall_limit,
        jobs: args.jobs,
        fresh: args.fresh,
        tree: args.tree.clone(),
    };
    let mut runner = Runner::new(&study, &limits)?;
    if args.dry_run {
        return runner.dry_run();
    }
    let files = Files::new(args)?;
    let budget_ended = runner.run_all(args.budget)?;
    let published = args.published.as_deref();
    let gathered = gather(&mut runner, !budget_ended)?;
    let mut document = study_run(&study, &gathered, published)?;
    document.budget_ended = budget_ended;
    let bench = runner.bench()?;
    let place = StudyPlace {
        kernels: runner.kernels(),
        card_state: bench.card_state.name(),
        origin: Origin::Modelled,
    };
    files.tell(args, &study, &gathered.trials, &document, &place)?;
    Ok(match document.failed.is_empty() {
        true => 0,
        false => exit_code(Kind::Trial),
    })
}

/// What `runner` has gathered; the smallest partitions are looked for with new trials only if
/// `searches`.
fn gather<'a>(runner: &mut Runner<'a>, searches: bool) -> Outcome<Gathered<'a>> {
    let smallest = runner.smallest(searches)?;
    Ok(Gathered {
        smallest,
        left_out: runner.left_out(),
        failed: trials::failed(runner.study, &runner.trials),
        caveats: [runner.caveats.sentences(), doubts(&runner.trials)].concat(),
        done: trials::done(&runner.trials),
        reused: runner.keeper.reused,
        trials: with_modules(runner.study, std::mem::take(&mut runner.trials)),
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

/// `trials` with the sizes of the modules that `study` asks for, among the figures of its first
/// workload: they are no matter of a trial, but stand beside its figures.
fn with_modules<'a>(
    study: &PerformanceStudy,
    mut trials: Vec<(Spot<'a>, Trial)>,
) -> Vec<(Spot<'a>, Trial)> {
    let Some(kernel) = modules_of(study) else {
        return trials;
    };
    let first = study.workloads.first();
    for (spot, trial) in &mut trials {
        if Some(spot.load) == first
            && let Some(module) = kernel.of(spot.candidate)
        {
            trial.outcome.metrics.push(Metric {
                metric: "module_size".to_owned(),
                value: module.bytes as f64,
                unit: "B".to_owned(),
                lower_is_better: true,
            });
        }
    }
    trials
}

/// The kernel whose modules `study` asks for.
fn modules_of(study: &PerformanceStudy) -> Option<&'static whichfs_fs::KernelModules> {
    let wanted = study.modules.as_ref()?;
    whichfs_fs::kernels()
        .iter()
        .find(|kernel| kernel.architecture == *wanted)
}

/// What `gathered` tells of `study`, beside the tables that were published in the folder
/// `from`, or that the program has.
pub(super) fn study_run<'a>(
    study: &'a PerformanceStudy,
    gathered: &Gathered<'a>,
    from: Option<&Path>,
) -> Outcome<StudyRun<'a>> {
    let (published, skipped) = published(study, from)?;
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
        reproduce: command_line(),
    })
}

/// The study with what the command line changes.
fn changed(mut study: PerformanceStudy, args: &StudyArgs) -> Outcome<PerformanceStudy> {
    if args.cuts.is_some() {
        let remedy = "--quick, --seeds and --only-fs make it shorter";
        return Err(Failure::input(format!(
            "--cuts: this study cuts no power; {remedy}"
        )));
    }
    if args.quick {
        study = study.quick();
    }
    study.seeds = args.seeds.unwrap_or(study.seeds);
    only(
        "--only-fs",
        &study.name,
        &mut study.candidates,
        &args.only_fs,
    )?;
    only(
        "--only-card",
        &study.name,
        &mut study.cards,
        &args.only_card,
    )?;
    Ok(study)
}

/// Leaves of `all` those that `option` of the command line names.
fn only(option: &str, study: &str, all: &mut Vec<String>, wanted: &[String]) -> Outcome {
    if let Some(name) = wanted.iter().find(|name| !all.contains(name)) {
        let all = all.join(", ");
        return Err(Failure::input(format!(
            "{option} {name}: {study} has {all}"
        )));
    }
    if !wanted.is_empty() {
        all.retain(|name| wanted.contains(name));
    }
    Ok(())
}

/// The published figures of `study`, and which lines were passed over.
fn published(
    study: &PerformanceStudy,
    from: Option<&Path>,
) -> Outcome<(Vec<PublishedFigure>, BTreeMap<String, Skipped>)> {
    let (mut figures, mut skipped) = (Vec::new(), BTreeMap::new());
    for mapping in &study.published {
        let text = studies::published(&mapping.file, from).map_err(|e| e.about(&mapping.at))?;
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

/// The files that a study leaves: that they can be written is known before the first trial.
pub(super) struct Files {
    html: WholeFile,
    csv: WholeFile,
    json: WholeFile,
    path: PathBuf,
}

impl Files {
    pub fn new(args: &StudyArgs) -> Outcome<Files> {
        let out = &args.out;
        places::make_out(out)?;
        let path = out.join("report.html");
        Ok(Files {
            html: WholeFile::new(&path)?,
            csv: WholeFile::new(&out.join("results.csv"))?,
            json: WholeFile::new(&out.join("study.json"))?,
            path,
        })
    }

    /// Writes them, and prints what they say.
    pub fn tell(
        self,
        args: &StudyArgs,
        study: &PerformanceStudy,
        trials: &trials::Trials<'_>,
        document: &StudyRun,
        place: &StudyPlace,
    ) -> Outcome {
        let failed = whichfs_report::failed_rows(trials.iter().map(|(_, trial)| trial));
        let export = Export {
            rows: &trials::rows(study, trials),
            failed: &failed,
            // Of several cards: `study.json` and the page have what belongs to each.
            fit_error: None,
        };
        let path = self.write(&export, document, place)?;
        if args.json {
            return output::document(document);
        }
        output::text(&study_text(document, output::width()))?;
        output::text_line(&format!("\nReport: {}", path.display()))
    }

    /// Writes them; where the page is.
    fn write(self, export: &Export, document: &StudyRun, place: &StudyPlace) -> Outcome<PathBuf> {
        let page = study_page(document, place, env!("CARGO_PKG_VERSION"));
        self.html
            .write(whichfs_report::study_html(&page).as_bytes())?;
        self.csv.write(whichfs_report::csv(export).as_bytes())?;
        let json = document_json(document)
            .map_err(|e| Failure::environment(format!("study.json: {e}")))?;
        self.json.write(json.as_bytes())?;
        Ok(self.path)
    }
}
