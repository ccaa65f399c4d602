//! `whichfs crash replay`: one cut of a kept series once more, with all that it has to tell.

use super::{keep, told};
use crate::cli::ReplayArgs;
use crate::failure::{Failure, Kind, Outcome, exit_code};
use crate::{interrupt, output};
use serde::Serialize;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use whichfs_crash::Cut;
use whichfs_engine::crash::archive;
use whichfs_engine::crash::check::{Checker, Result};
use whichfs_engine::crash::image_file;
use whichfs_engine::crash::inputs::{WALL_LIMIT, lab};
use whichfs_engine::crash::record::{Recorded, RecordingPlan};
use whichfs_engine::crash::reproducer::Reproducer;
use whichfs_engine::crash::shell::Shell;
use whichfs_engine::crash::spec::{Makers, Spec};
use whichfs_engine::lab_executor::LabExecutor;
use whichfs_engine::places::{self, WholeFile};
use whichfs_lab::available_cores;
use whichfs_report::documents::crash::{
    CutLine, Extent, cut_place, measured_replay_text, replay_text, timeline,
};

/// Examples in the help text.
pub const EXAMPLES: &str = "\
Examples:
  whichfs crash replay 3f9a0c51d2e7-17                    what happened at cut 17
  whichfs crash replay 3f9a0c51d2e7-17 --keep cut.img     and its image, to mount or debug
  whichfs crash replay 3f9a0c51d2e7-17 --shell            look around in it, in the lab
  whichfs crash replay 3f9-17 --json                      the first digits are enough
  whichfs crash replay lost.json                          what crash minimise wrote

--shell reads commands, each run by sh in a guest with the filesystem mounted; with ! before
it, without mounting it (!e2fsck -fn /dev/vda). What a command writes, the next finds.

The series must have been made on this machine (crash run prints its number).

Exit status: 0 the filesystem kept its promises, 1 it did not (of a file: it fails as it did),
2 bad usage or input, 3 this machine lacks something, 4 the run failed.";

/// The JSON document.
#[derive(Serialize, schemars::JsonSchema)]
pub struct CrashReplay<'a> {
    spec: &'a Spec,
    /// What is not as it was when the series was made.
    differs: &'a [&'static str],
    timeline: &'a [CutLine],
    result: &'a Result,
}

impl whichfs_report::Document for CrashReplay<'_> {
    const NAME: &'static str = "crash replay";
}

/// Runs the command.
pub fn run(args: &ReplayArgs) -> Outcome<u8> {
    let image = args.keep.as_deref().map(image_file::kept).transpose()?;
    if is_file(&args.id) {
        return reproduce(args, &Reproducer::read(Path::new(&args.id))?, image);
    }
    let (series, number) = parse(&args.id)?;
    let (spec, results) = archive::read(&places::crashes()?, series)?;
    if spec.measured.is_some() {
        return measured(args, &spec, results.get(&number), number);
    }
    let bench = lab(spec.place()?, WALL_LIMIT, Some(1))?;
    let plan = RecordingPlan::new(&bench, &spec)?;
    let differs = differences(&bench, &plan)?;
    let cancelled = interrupt::flag();
    let core = available_cores().last().copied();
    note!("{}: running the workload", spec.fs);
    let recorded = plan.record(core, cancelled)?;
    let cut = cut(&spec, &recorded, number)?;
    let checker = Checker::new(&plan, &recorded);
    if let Some(code) = handed_over(args, image, &plan, &recorded, &checker, &cut)? {
        return Ok(code);
    }
    let mut checker = checker;
    let result = checker.check_whole(&cut, core, cancelled)?;
    show(args, &plan, &recorded, &differs, &result)?;
    Ok(if result.broken {
        exit_code(Kind::No)
    } else {
        0
    })
}

/// Shows what was found after a cut of a real device, which cannot be made again.
fn measured(args: &ReplayArgs, spec: &Spec, result: Option<&Result>, number: u64) -> Outcome<u8> {
    if args.keep.is_some() || args.shell {
        return Err(Failure::input(
            "this cut was made on a real device: its image was not kept; --keep and --shell are \
             for cuts of the lab",
        ));
    }
    let Some(result) = result else {
        return Err(Failure::input(format!(
            "series {} has no cut {number} yet: crash run --on goes on with it",
            spec.id()
        )));
    };
    if args.json {
        output::document(&CrashReplay {
            spec,
            differs: &[],
            timeline: &[],
            result,
        })?;
    } else {
        let what = format!(
            "{}, workload {} on {} in {}, measured, seed {}: cut {number}, {}. Of {} operations \
             the first {} were durable as a whole, {} had begun at most.",
            spec.fs,
            spec.workload,
            spec.card,
            spec.board,
            spec.seed,
            cut_place(result),
            result
                .measured
                .as_ref()
                .map_or(0, |measured| measured.operations),
            result.window.0,
            result.window.1
        );
        output::text(&measured_replay_text(&what, result, output::width()))?;
    }
    Ok(if result.broken {
        exit_code(Kind::No)
    } else {
        0
    })
}

/// Shows what a reproducer shows.
fn reproduce(args: &ReplayArgs, kept: &Reproducer, image: Option<WholeFile>) -> Outcome<u8> {
    let spec = &kept.spec;
    let bench = lab(spec.place()?, WALL_LIMIT, Some(1))?;
    let plan = RecordingPlan::new(&bench, spec)?;
    let differs = differences(&bench, &plan)?;
    let cancelled = interrupt::flag();
    let core = available_cores().last().copied();
    let recorded = plan.record(core, cancelled)?;
    let checker = Checker::new(&plan, &recorded).sparing(kept.spared.clone());
    if let Some(code) = handed_over(args, image, &plan, &recorded, &checker, &kept.cut)? {
        return Ok(code);
    }
    let (result, shown) = kept.show(&plan, &recorded, core, cancelled)?;
    show(args, &plan, &recorded, &differs, &result)?;
    if !shown {
        note!("it does not fail as it did: {}", kept.title);
    }
    Ok(if shown { exit_code(Kind::No) } else { 0 })
}

/// What changed on this machine since the specification of `plan` was made; it is said.
fn differences(bench: &LabExecutor, plan: &RecordingPlan) -> Outcome<Vec<&'static str>> {
    let now = Makers::of(bench, &plan.recipe()?);
    let differs = now.differences(&plan.spec.made_by);
    if !differs.is_empty() {
        note!(
            "the {} changed since this was made: the images may differ",
            differs.join(" and the ")
        );
    }
    Ok(differs)
}

/// Keeps the image in the file `to`, and hands it to a shell if that is asked for.
fn handed_over(
    args: &ReplayArgs,
    to: Option<WholeFile>,
    plan: &RecordingPlan,
    recorded: &Recorded,
    checker: &Checker,
    cut: &Cut,
) -> Outcome<Option<u8>> {
    let (core, cancelled) = (available_cores().last().copied(), interrupt::flag());
    if let Some(to) = to {
        let image = checker.image(cut, core, cancelled)?;
        keep(image.contents, plan, recorded, to)?;
    }
    if !args.shell {
        return Ok(None);
    }
    let image = checker.image(cut, core, cancelled)?;
    let shell = Shell::new(plan, recorded, image.contents, cut)?;
    converse(shell, core, cancelled).map(|()| Some(0))
}

/// The cut that the series made as its `number`th.
pub fn cut(spec: &Spec, recorded: &Recorded, number: u64) -> Outcome<Cut> {
    let cuts = spec.cuts(recorded);
    let found = cuts.iter().find(|cut| cut.number == number);
    found.copied().ok_or_else(|| {
        Failure::input(format!(
            "series {} has no cut {number}; they go from 0 to {}",
            spec.id(),
            cuts.len().saturating_sub(1)
        ))
    })
}

fn show(
    args: &ReplayArgs,
    plan: &RecordingPlan,
    recorded: &Recorded,
    differs: &[&'static str],
    result: &Result,
) -> Outcome {
    let around = args.around as usize;
    let extent = Extent {
        before: around,
        after: around,
        far: around,
    };
    let timeline = timeline(&told(plan, recorded), &result.cut, extent);
    match args.json {
        true => output::document(&CrashReplay {
            spec: plan.spec,
            differs,
            timeline: &timeline,
            result,
        }),
        false => {
            let spec = plan.spec;
            let about = format!(
                "{} ({}), workload {} on {}, seed {}: cut {}",
                spec.fs,
                recorded.mount_options,
                spec.workload,
                spec.card,
                spec.seed,
                result.cut.number
            );
            let (of, width) = (recorded.run.operations, output::width());
            output::text(&replay_text(&about, of, &timeline, result, width))
        }
    }
}

/// Runs the commands of standard input one by one.
fn converse(mut shell: Shell, core: Option<usize>, cancelled: &AtomicBool) -> Outcome {
    let prompt = std::io::stdin().is_terminal();
    let mut lines = std::io::stdin().lines();
    loop {
        if prompt {
            output::note(format_args!("{} > ", shell.name()));
        }
        let line = match lines.next() {
            None => return Ok(()),
            Some(line) => line.map_err(|e| Failure::input(format!("standard input: {e}")))?,
        };
        match line.trim() {
            "" => {}
            "exit" => return Ok(()),
            command => {
                let mut lost = Ok(());
                shell.run(command, core, cancelled, &mut |text| {
                    if lost.is_ok() {
                        lost = output::text(text);
                    }
                })?;
                lost?;
            }
        }
    }
}

/// Whether `id` names a file of `crash minimise`, not a cut of a series.
pub fn is_file(id: &str) -> bool {
    id.ends_with(".json") || Path::new(id).is_file()
}

/// `SERIES-NUMBER`.
pub fn parse(id: &str) -> Outcome<(&str, u64)> {
    let parts = id.rsplit_once('-');
    parts
        .and_then(|(series, number)| Some((series, number.parse().ok()?)))
        .filter(|(series, _)| !series.is_empty())
        .ok_or_else(|| {
            Failure::input(format!(
                "{id:?} names no cut; expected SERIES-NUMBER as crash run prints it, for example \
                 3f9a0c51d2e7-17, or a .json file of crash minimise"
            ))
        })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_id_is_a_series_and_a_number() {
        assert_eq!(parse("3f9a-17").unwrap(), ("3f9a", 17));
        for wrong in ["3f9a", "3f9a-", "-x", "", "-1"] {
            let message = parse(wrong).unwrap_err().message;
            assert!(message.contains("SERIES-NUMBER") && message.contains("crash minimise"));
        }
    }
}
