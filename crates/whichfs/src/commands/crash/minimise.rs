//! `whichfs crash minimise`: a failing cut as a small file that shows it again.

use super::replay;
use crate::cli::MinimiseArgs;
use crate::failure::{Failure, Kind, Outcome, exit_code};
use crate::{interrupt, output};
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use whichfs_engine::crash::archive;
use whichfs_engine::crash::check::{Checker, Result};
use whichfs_engine::crash::inputs::{WALL_LIMIT, lab};
use whichfs_engine::crash::minimiser::{Minimiser, MinimiserEnd, Small, broken};
use whichfs_engine::crash::record::{Recorded, RecordingPlan};
use whichfs_engine::crash::reproducer::{Reproducer, Signature};
use whichfs_engine::crash::spec::Spec;
use whichfs_engine::places::{self, WholeFile};
use whichfs_lab::available_cores;

/// Examples in the help text.
pub const EXAMPLES: &str = "\
Examples:
  whichfs crash minimise 3f9a0c51d2e7-17                     writes crash-3f9a0c51d2e7-17.json
  whichfs crash minimise 3f9a0c51d2e7-17 --out lost.json --budget 600
  whichfs crash minimise lost.json --budget 600              goes on where the time was over
  whichfs crash replay lost.json                             shows it again

Operations are left out as long as some cut of the shorter run still fails in the same way,
then writes that the card loses (delta debugging). The file names every operation: keep it as
a test, or send it to the filesystem's maintainers. Whether it is minimal or the budget or an
interrupt (Ctrl-C) ended it before is said; the smallest so far is written in any case.

Exit status: 0 written, 2 bad usage or input, 3 this machine lacks something, 4 the run failed,
130 interrupted, and the smallest so far written.";

/// Operations that are shown.
const SHOWN: usize = 20;

/// The JSON document.
#[derive(Serialize, schemars::JsonSchema)]
pub struct CrashMinimise<'a> {
    /// The file that was written.
    file: String,
    /// Whether nothing of it can be left out, as far as was tried.
    minimal: bool,
    /// How it ended.
    ended: MinimiserEnd,
    /// Operations of the run; none where it is that of the workload.
    operations: Option<usize>,
    /// Writes that the card loses; none if they were not looked at.
    lost_writes: Option<usize>,
    /// What was written.
    reproducer: &'a Reproducer,
}

impl whichfs_report::Document for CrashMinimise<'_> {
    const NAME: &'static str = "crash minimise";
}

/// What is to be made smaller.
enum Start {
    /// A cut of a series.
    Cut { spec: Box<Spec>, number: u64 },
    /// A file of an earlier shrinking.
    File(Box<Reproducer>),
}

/// Runs the command.
pub fn run(args: &MinimiseArgs) -> Outcome<u8> {
    let start = Start::of(&args.id)?;
    let spec = start.spec().clone();
    let bench = lab(spec.place()?, WALL_LIMIT, args.jobs)?;
    let out = args.out.clone().unwrap_or_else(|| start.own_file(&args.id));
    let file = WholeFile::new(&out)?;
    let (core, cancelled) = (available_cores().last().copied(), interrupt::flag());
    let plan = RecordingPlan::new(&bench, &spec)?;
    note!("{}: running the workload", spec.fs);
    let recorded = plan.record(core, cancelled)?;
    let (kept, result) = start.failing(&plan, &recorded, core, cancelled)?;
    let mut told = |what: &str, left: usize, time: Duration| {
        note!("{what}: {left} left, at most {} s to go", time.as_secs());
    };
    let budget = Duration::from_secs(args.budget);
    let minimiser = Minimiser::new(&bench, kept, budget, core, cancelled, &mut told);
    let small = minimiser.run(&recorded, &result)?;
    let text = serde_json::to_string_pretty(&small.kept).map_err(Failure::environment)?;
    file.write((text + "\n").as_bytes())?;
    match args.json {
        true => output::document(&document(&small, &out))?,
        false => tell(&small, &out)?,
    }
    Ok(match small.ended {
        MinimiserEnd::Interrupted => exit_code(Kind::Interrupted),
        _ => 0,
    })
}

impl Start {
    /// What `id` names.
    fn of(id: &str) -> Outcome<Start> {
        if replay::is_file(id) {
            return Ok(Start::File(Box::new(Reproducer::read(Path::new(id))?)));
        }
        let (series, number) = replay::parse(id)?;
        let (spec, results) = archive::read(&places::crashes()?, series)?;
        if spec.measured.is_some() {
            return Err(Failure::input(
                "this cut was made on a real device and cannot be made again: minimise takes cuts \
                 of the lab (crash run without --on)",
            ));
        }
        match results.get(&number).is_some_and(|result| !result.broken) {
            true => Err(nothing(number)),
            false => Ok(Start::Cut {
                spec: Box::new(spec),
                number,
            }),
        }
    }

    fn spec(&self) -> &Spec {
        match self {
            Start::Cut { spec, .. } => spec,
            Start::File(kept) => &kept.spec,
        }
    }

    /// Where the result goes if nobody says: a file is made smaller in its place.
    fn own_file(&self, id: &str) -> PathBuf {
        match self {
            Start::Cut { spec, number } => format!("crash-{}-{number}.json", spec.id()).into(),
            Start::File(_) => id.into(),
        }
    }

    /// The failure as it shows now.
    fn failing(
        self,
        plan: &RecordingPlan,
        recorded: &Recorded,
        core: Option<usize>,
        cancelled: &AtomicBool,
    ) -> Outcome<(Reproducer, Result)> {
        match self {
            Start::Cut { spec, number } => {
                let cut = replay::cut(&spec, recorded, number)?;
                let result = Checker::new(plan, recorded).check_whole(&cut, core, cancelled)?;
                let signature = Signature::of(&result).ok_or_else(|| nothing(number))?;
                let kept = Reproducer {
                    title: String::new(),
                    spec: *spec,
                    cut,
                    spared: BTreeSet::new(),
                    signature,
                    findings: broken(&result),
                };
                Ok((kept, result))
            }
            Start::File(mut kept) => {
                let (result, shown) = kept.show(plan, recorded, core, cancelled)?;
                if !shown {
                    return Err(Failure::input(format!(
                        "it does not fail as it did ({}): there is nothing to make smaller; \
                         crash replay shows what it does now",
                        kept.title
                    )));
                }
                if result.cut != kept.cut {
                    kept.spared.clear();
                    kept.cut = result.cut;
                }
                Ok((*kept, result))
            }
        }
    }
}

fn nothing(number: u64) -> Failure {
    Failure::input(format!(
        "cut {number} broke no promise: there is nothing to make smaller; crash run names those \
         that did"
    ))
}

fn document<'a>(small: &'a Small, out: &Path) -> CrashMinimise<'a> {
    CrashMinimise {
        file: out.display().to_string(),
        minimal: small.ended == MinimiserEnd::Minimal,
        ended: small.ended,
        operations: small.kept.spec.script.as_ref().map(Vec::len),
        lost_writes: small.lost_writes,
        reproducer: &small.kept,
    }
}

fn tell(small: &Small, out: &Path) -> Outcome {
    output::paragraph(&small.kept.title, 0)?;
    let ops = small.kept.spec.script.as_deref().unwrap_or_default();
    let text = whichfs_workload::script_text(&ops[..ops.len().min(SHOWN)]);
    for line in text.lines() {
        output::text_line(&format!("  {line}"))?;
    }
    if ops.len() > SHOWN {
        output::text_line(&format!("  and {} more", ops.len() - SHOWN))?;
    }
    output::paragraph(&small.told(out), 0)?;
    output::text_line(&format!(
        "written to {0}; again: whichfs crash replay {0}",
        out.display()
    ))
}
