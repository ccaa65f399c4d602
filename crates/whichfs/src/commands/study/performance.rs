//! Studies of the kind `performance`: trials, each run once and kept, as tables.

use super::performance_told as told;
use super::smallest::Found;
use super::trials::{Limits, Runner};
use super::{files, paragraphs};
use crate::bench::Bench;
use crate::cli::{NamedArgs, StudyArgs};
use crate::commands::crash::page::command_line;
use crate::failure::{Failure, Kind, Outcome};
use crate::output;
use crate::places::{self, WholeFile};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use whichfs_study::{
    Gain, Grid, PerformanceStudy, PublishedFigure, Row, Skipped, Turn, gains, grids, turns,
};

/// The JSON document, and what is told.
#[derive(Serialize)]
pub(super) struct Document<'a> {
    /// The study as it was run.
    pub study: &'a PerformanceStudy,
    /// Figures, table by table.
    pub tables: Vec<Grid>,
    /// What is compared, if the study compares.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gains: Vec<Gain>,
    /// Turning points, if its workloads are a series.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<Turn>,
    /// The smallest partitions, if the study looks for them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub smallest: Vec<Found<'a>>,
    /// Published lines that stand beside nothing, by file.
    pub skipped: BTreeMap<String, Skipped>,
    /// Candidates that cannot run here, with the reason.
    pub left_out: Vec<String>,
    /// Trials that failed, with the reason.
    pub failed: Vec<String>,
    /// What figures leave out.
    pub caveats: Vec<String>,
    /// Trials of the matrix.
    pub trials: usize,
    /// Trials whose figures are in the tables.
    pub done: usize,
    /// Trials that came from the store.
    pub reused: usize,
    /// Whether the budget ended before the trials did.
    pub budget_ended: bool,
    /// The command.
    pub reproduce: String,
}

/// What `study show` prints as JSON.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    study: &'a PerformanceStudy,
    /// The figures that the store has; without any, absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<&'a Document<'a>>,
}

/// Shows one: what it measures, and the figures of its last run from the store.
pub fn show(study: &PerformanceStudy, args: &NamedArgs) -> Outcome<u8> {
    let quick = study.clone().quick();
    let last = last(study, &quick);
    if args.json {
        let last = last.as_ref().ok().and_then(Option::as_ref);
        output::json(&Shown { study, last })?;
        return Ok(0);
    }
    told::definition(study, &paragraphs(&study.method))?;
    let run = format!("whichfs study run {}", args.name);
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
            told::tell(document)?;
        }
    }
    output::text_line(&format!("Run it: {run}"))?;
    Ok(0)
}

/// What the store has of the form of a study that was run last; `None` if it has nothing.
fn last<'a>(
    full: &'a PerformanceStudy,
    quick: &'a PerformanceStudy,
) -> Outcome<Option<Document<'a>>> {
    let mut found: Option<(i64, Document)> = None;
    for (study, form) in [(full, ""), (quick, " --quick")] {
        let mut runner = Runner::new(study, &Limits::default())?;
        let missing = runner.recall()?;
        let Some(newest) = runner.newest() else {
            continue;
        };
        if found.as_ref().is_none_or(|(known, _)| *known < newest) {
            let mut document = document(&mut runner, study, None, false)?;
            let command = format!("whichfs study run {}{form}", study.name);
            document.caveats.extend((missing > 0).then(|| {
                let all = document.trials;
                format!("{missing} of its {all} trials are not there yet: {command} makes them")
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
    // What is wrong with the tables is said before anything runs.
    published(&study, args.published.as_deref())?;
    let limits = Limits {
        wall_s: args.wall_limit,
        jobs: args.jobs,
        fresh: args.fresh,
    };
    let mut runner = Runner::new(&study, &limits)?;
    if args.dry_run {
        return runner.dry_run();
    }
    let files = Files::new(args)?;
    let budget_ended = runner.run_all(args.budget)?;
    let published = args.published.as_deref();
    let mut document = document(&mut runner, &study, published, !budget_ended)?;
    document.budget_ended = budget_ended;
    let path = files.write(&runner.rows(), &document, runner.bench()?)?;
    if args.json {
        output::json(&document)?;
    } else {
        told::tell(&document)?;
        output::text_line(&format!("\nReport: {}", path.display()))?;
    }
    Ok(match document.failed.is_empty() {
        true => 0,
        false => Kind::Trial as u8,
    })
}

/// What `runner` has gathered of `study`; the smallest partitions are looked for with new trials
/// only if `searches`.
fn document<'a>(
    runner: &mut Runner<'a>,
    study: &'a PerformanceStudy,
    from: Option<&Path>,
    searches: bool,
) -> Outcome<Document<'a>> {
    let (published, skipped) = published(study, from)?;
    let gains = gains(study, &runner.trials);
    Ok(Document {
        study,
        tables: grids(study, &runner.trials, &published),
        turns: turns(study, &gains),
        gains,
        smallest: runner.smallest(searches)?,
        skipped,
        left_out: runner.left_out(),
        failed: runner.failed(),
        caveats: runner.caveats.clone(),
        trials: study.spots().len(),
        done: runner.done(),
        reused: runner.keeper.reused,
        budget_ended: false,
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
    for name in &args.only_fs {
        if !study.candidates.contains(name) {
            let all = study.candidates.join(", ");
            return Err(Failure::input(format!(
                "--only-fs {name}: {} has {all}",
                study.name
            )));
        }
    }
    if !args.only_fs.is_empty() {
        study.candidates.retain(|fs| args.only_fs.contains(fs));
    }
    Ok(study)
}

/// The published figures of `study`, and which lines were passed over.
fn published(
    study: &PerformanceStudy,
    from: Option<&Path>,
) -> Outcome<(Vec<PublishedFigure>, BTreeMap<String, Skipped>)> {
    let (mut figures, mut skipped) = (Vec::new(), BTreeMap::new());
    for mapping in &study.published {
        let text = files::published(&mapping.file, from)?;
        let read = mapping.read(study, &mapping.file, &text);
        let (found, passed) = read.map_err(Failure::input)?;
        figures.extend(found);
        skipped.insert(mapping.file.clone(), passed);
    }
    Ok((figures, skipped))
}

/// The files that a study leaves: that they can be written is known before the first trial.
struct Files {
    html: WholeFile,
    csv: WholeFile,
    json: WholeFile,
    path: PathBuf,
}

impl Files {
    fn new(args: &StudyArgs) -> Outcome<Files> {
        let out = &args.out;
        places::make(out).map_err(|failure| Failure::input(format!("--out: {failure}")))?;
        let path = out.join("report.html");
        Ok(Files {
            html: WholeFile::new(&path)?,
            csv: WholeFile::new(&out.join("results.csv"))?,
            json: WholeFile::new(&out.join("study.json"))?,
            path,
        })
    }

    /// Writes them; where the page is.
    fn write(self, rows: &[Row], document: &Document, bench: &Bench) -> Outcome<PathBuf> {
        let page = told::page(document, bench, paragraphs(&document.study.method));
        self.html
            .write(whichfs_report::study_html(&page).as_bytes())?;
        self.csv.write(whichfs_report::csv(rows).as_bytes())?;
        let json = serde_json::to_string_pretty(document)
            .map_err(|e| Failure::environment(format!("study.json: {e}")))?;
        self.json.write(json.as_bytes())?;
        Ok(self.path)
    }
}
