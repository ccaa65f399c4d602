//! `whichfs crash plan`, `cut` and `import`: cuts that other machines make.

use super::{bench, input};
use crate::cli::{CrashCutArgs, CrashImportArgs, CrashPlanArgs};
use crate::failure::{Kind, Outcome, exit_code};
use crate::{interrupt, output};
use serde::Serialize;
use whichfs_engine::crash::planned_cuts::{
    self, CutBatch, CutLineResult, CutRecord, PlannedCuts, import_cuts, make_cuts, plan_cuts,
};
use whichfs_engine::crash::spec::Spec;
use whichfs_engine::json_lines::{NumberedLines, RefusedLine};
use whichfs_engine::lab_executor::LabExecutor;
use whichfs_engine::places;
use whichfs_report::Document;
use whichfs_report::documents::planned::{CutsImported, ImportRefusal, cuts_imported_text};
use whichfs_units::counted;

/// Examples in the help text.
pub const PLAN_EXAMPLES: &str = "\
Examples:
  whichfs crash plan --fs ext4,f2fs --cuts 1000 > cuts.jsonl
  whichfs crash plan --fs ext4 --cuts 1000 --only-missing > cuts.jsonl

The workload runs here once, because it decides which cuts there are. Then: crash cut on any
machine, crash import here, and crash run with the same arguments shows what was found.";

/// Examples in the help text.
pub const CUT_EXAMPLES: &str = "\
Examples:
  whichfs crash plan --fs ext4,f2fs --cuts 1000 > cuts.jsonl
  whichfs crash cut cuts.jsonl > records.jsonl
  sed -n 7p cuts.jsonl | whichfs crash cut > record.jsonl
  whichfs crash import records.jsonl --plan cuts.jsonl
  whichfs crash run --fs ext4,f2fs --cuts 1000

A machine with another build refuses a line; the others are made.

Exit status: 0 done, 1 cuts of the plan are missing, 2 a line was refused or is malformed, 3 this
machine has another build or lacks something, 4 the run failed, 130 interrupted.";

/// A line of `crash plan`.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct PlanLine<'a>(&'a CutBatch);

impl Document for PlanLine<'_> {
    const NAME: &'static str = CutBatch::DOCUMENT;
    const SCHEMA: u32 = CutBatch::SCHEMA;
}

/// A line of `crash cut`.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct RecordLine<'a>(&'a CutRecord);

impl Document for RecordLine<'_> {
    const NAME: &'static str = CutRecord::DOCUMENT;
    const SCHEMA: u32 = CutRecord::SCHEMA;
}

/// Prints the cuts of the series that are asked for, some in each line.
pub fn plan(args: &CrashPlanArgs) -> Outcome<u8> {
    let series = input::Series::new(&args.series, None)?;
    let lab = bench(&args.series.place, None)?;
    let specs = series.on(&lab)?;
    match tell(&lab, &specs, args.per_line, args.only_missing) {
        Err(end) if end.kind == Kind::Interrupted && !interrupt::asked() => Ok(0),
        told => told.map(|()| 0),
    }
}

/// Prints the cuts of `specs`, `per_line` of them in each line.
pub fn tell(lab: &LabExecutor, specs: &[Spec], per_line: u64, only_missing: bool) -> Outcome {
    let kept = only_missing.then(places::crashes).transpose()?;
    let mut all = PlannedCuts::default();
    for spec in specs {
        note!("{}: running the workload", spec.fs);
        let told = plan_cuts(
            lab,
            spec,
            per_line as usize,
            kept.as_deref(),
            interrupt::flag(),
            &mut |request| output::json_line(&PlanLine(request)),
        )?;
        all.told += told.told;
        all.known += told.known;
    }
    let known = match all.known {
        0 => String::new(),
        known => format!(", {known} known"),
    };
    note!("{} planned{known}", counted(all.told, "cut"));
    Ok(())
}

/// Makes planned cuts and prints their records.
pub fn cut(args: &CrashCutArgs) -> Outcome<u8> {
    let lines = NumberedLines::open(&args.plan)?;
    let mut hear = |line: CutLineResult<'_>| match line {
        CutLineResult::Made(record) => output::json_line(&RecordLine(record)),
        CutLineResult::Refused(RefusedLine {
            source, line, why, ..
        }) => {
            note!("{source}, line {line}: refused: {why}");
            Ok(())
        }
    };
    let counts = make_cuts(lines, args.jobs, interrupt::flag(), &mut hear)?;
    note!("{} made", counted(counts.made, "cut"));
    Ok(match (counts.malformed, counts.foreign) {
        (0, 0) => 0,
        (0, _) => exit_code(Kind::Environment),
        _ => exit_code(Kind::Input),
    })
}

/// Keeps records of cuts.
pub fn import(args: &CrashImportArgs) -> Outcome<u8> {
    let plan = args.plan.as_deref().map(NumberedLines::open).transpose()?;
    let plan = plan.map(planned_cuts::planned_cuts).transpose()?;
    let sources = args.records.iter().map(|path| NumberedLines::open(path));
    let sources = sources.collect::<Outcome<Vec<_>>>()?;
    let directory = places::crashes()?;
    let found = import_cuts(&directory, sources, plan.as_ref())?;
    let document = CutsImported {
        directory,
        new: found.new,
        known: found.known,
        refusals: found.refused.into_iter().map(refusal).collect(),
        missing: found.missing,
    };
    match args.json {
        true => output::document(&document)?,
        false => output::text(&cuts_imported_text(&document))?,
    }
    Ok(match (document.refusals.len(), document.missing) {
        (0, None | Some(0)) => 0,
        (0, Some(_)) => exit_code(Kind::No),
        _ => exit_code(Kind::Input),
    })
}

fn refusal(line: RefusedLine) -> ImportRefusal {
    ImportRefusal {
        source: line.source,
        line: line.line,
        why: line.why,
    }
}
