//! What `whichfs crash run` was asked for: refused where it does not go together, before any run.

use super::together;
use crate::cli::{CrashArgs, CutCount, CutDuring};
use crate::commands::once;
use crate::failure::{Failure, Outcome};
use whichfs_crash::{Fault, Faults};
use whichfs_engine::crash::record::cuttable;
use whichfs_engine::crash::script;
use whichfs_engine::crash::spec::Selection;
use whichfs_fs::Candidate;
use whichfs_workload::{ScriptLine, Workload};

/// An image, to be written or given, is that of one cut of one filesystem.
pub fn one_image(args: &CrashArgs) -> Outcome {
    let flag = match (&args.keep, &args.image) {
        (None, None) => return Ok(()),
        (Some(_), _) => "--keep",
        (None, Some(_)) => "--image",
    };
    match args.fs.len() == 1 && (args.only.is_some() || args.cuts == CutCount::End) {
        true => Ok(()),
        false => Err(Failure::input(format!(
            "{flag} needs one --fs and one cut: its number (--only N), or --cuts end"
        ))),
    }
}

/// The instants that were asked for.
pub fn selection(args: &CrashArgs, faults: &Faults) -> Outcome<Selection> {
    let chosen = args.at.is_some() || args.during.is_some() || args.count() == CutCount::All;
    if chosen && whichfs_crash::is_without_cut(faults) {
        return Err(Failure::input(
            "these --faults damage what was written when the run has ended: there is no cut to \
             choose by --at, --during or --cuts all; give --cuts a number, or add a fault of cuts",
        ));
    }
    let last = match (args.at, args.count()) {
        (None, CutCount::Number(count)) => count - 1,
        (None, CutCount::End) => 0,
        _ => u64::MAX,
    };
    if args.only.is_some_and(|only| only > last) {
        return Err(no_such_cut(last));
    }
    match (args.at, args.count(), args.during) {
        (Some(request), _, None) => Ok(Selection::At(request)),
        (None, CutCount::All, None) => Ok(Selection::All),
        (None, CutCount::End, None) => Ok(Selection::End),
        (None, CutCount::Number(count), None) => Ok(Selection::Random(count)),
        (None, CutCount::Number(count), Some(CutDuring::Collection)) => {
            Ok(Selection::Collection(count))
        }
        (None, CutCount::Number(count), Some(CutDuring::Mount)) => Ok(Selection::Mount(count)),
        (_, _, Some(_)) => Err(Failure::input(
            "--during takes cuts at random: give a number to --cuts, and no --at",
        )),
    }
}

/// The workload, with its operations if they come from a file.
pub fn workload(args: &CrashArgs) -> Outcome<(&'static dyn Workload, Option<Vec<ScriptLine>>)> {
    let Some(path) = &args.script else {
        let found = cuttable(&args.workload)?;
        return match found.takes_script() {
            true => Err(Failure::input(
                "--workload script has its operations from a file: give it with --script FILE",
            )),
            false => Ok((found, None)),
        };
    };
    Ok((whichfs_workload::SCRIPT, Some(script::read(path)?)))
}

/// The filesystems that were asked for.
pub fn candidates(args: &CrashArgs) -> Outcome<Vec<&'static Candidate>> {
    once("--fs", &args.fs)?;
    args.fs
        .iter()
        .map(|name| {
            let found = whichfs_fs::find(name);
            let candidate = found.map_err(|e| Failure::input(format!("--fs: {e}")))?;
            let options = args.mount.as_deref().unwrap_or_default();
            match whichfs_crash::contract(candidate.name, options) {
                Some(_) => Ok(candidate),
                None => Err(Failure::input(format!(
                    "--fs {name}: nothing is written to it, so a power cut cannot hurt it; name \
                     one that is (whichfs fs list)"
                ))),
            }
        })
        .collect()
}

/// Refuses a list of mount options with a gap or the same option twice; none at all is a choice.
pub fn mount_options(args: &CrashArgs) -> Outcome {
    let Some(given) = args.mount.as_deref().filter(|given| !given.is_empty()) else {
        return Ok(());
    };
    let options: Vec<String> = given
        .strip_prefix('+')
        .unwrap_or(given)
        .split(',')
        .map(str::to_owned)
        .collect();
    match options.iter().any(|option| option.trim().is_empty()) {
        true => Err(Failure::input(format!(
            "--mount {given}: an option is missing: name it, or leave out what is before or after \
             it (as +sync,dirsync)"
        ))),
        false => once("--mount", &options),
    }
}

/// The faults that were asked for.
pub fn named_faults(args: &CrashArgs) -> Outcome<Faults> {
    once("--faults", &args.faults)?;
    let named = args.faults.iter().map(|name| name.parse::<Fault>());
    let faults = named
        .collect::<std::result::Result<Faults, _>>()
        .map_err(|error| Failure::input(format!("--faults: {error}")))?;
    together(&faults).map_err(|why| Failure::input(format!("--faults: {why}")))?;
    Ok(faults)
}

/// The refusal of a number beyond the `last` cut.
pub fn no_such_cut(last: u64) -> Failure {
    Failure::input(format!("no such cut: --only takes 0 to {last} here"))
}
