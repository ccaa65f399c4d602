//! What `whichfs crash run` was asked for: refused where it does not go together, before any run.

use crate::cli::{CrashArgs, CutCount, CutDuring, SeriesArgs};
use crate::commands::once;
use crate::failure::{Failure, Outcome};
use whichfs_crash::{Fault, Faults};
use whichfs_engine::cards::CardState;
use whichfs_engine::crash::inputs::{parameters, specs, together, whole_path};
use whichfs_engine::crash::record::cuttable;
use whichfs_engine::crash::script;
use whichfs_engine::crash::spec::{Makers, Selection, Spec};
use whichfs_engine::lab_executor::LabExecutor;
use whichfs_fs::Candidate;
use whichfs_workload::{ScriptLine, Workload};

/// An image, to be written or given, is that of one cut of one filesystem.
pub fn one_image(args: &CrashArgs) -> Outcome {
    let flag = match (&args.keep, &args.image) {
        (None, None) => return Ok(()),
        (Some(_), _) => "--keep",
        (None, Some(_)) => "--image",
    };
    match args.series.fs.len() == 1 && (args.only.is_some() || args.series.cuts == CutCount::End) {
        true => Ok(()),
        false => Err(Failure::input(format!(
            "{flag} needs one --fs and one cut: its number (--only N), or --cuts end"
        ))),
    }
}

/// The instants that were asked for, of which `only` one may be wanted.
fn selection(args: &SeriesArgs, only: Option<u64>, faults: &Faults) -> Outcome<Selection> {
    let chosen = args.at.is_some() || args.during.is_some() || args.count() == CutCount::All;
    if chosen && whichfs_crash::is_without_cut(faults) {
        return Err(Failure::input(
            "these --faults act without a cut, in the run or at its end: there is none to \
             choose by --at, --during or --cuts all; give --cuts a number, or add a fault of cuts",
        ));
    }
    let last = match (args.at, args.count()) {
        (None, CutCount::Number(count)) => count - 1,
        (None, CutCount::End) => 0,
        _ => u64::MAX,
    };
    if only.is_some_and(|only| only > last) {
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

/// What the series of all filesystems have in common, and the filesystems.
pub struct Series {
    common: Spec,
    candidates: Vec<&'static Candidate>,
    partition_bytes: u64,
}

impl Series {
    /// Those that `args` ask for, of which `only` one cut may be wanted.
    ///
    /// # Errors
    /// What does not go together.
    pub fn new(args: &SeriesArgs, only: Option<u64>) -> Outcome<Series> {
        let faults = named_faults(args)?;
        let (workload, lines) = workload(args)?;
        let candidates = candidates(args)?;
        mount_options(args)?;
        if let (Some(lines), Some(path)) = (&lines, &args.script) {
            script::suits(lines, &candidates, path)?;
        }
        let machine = &args.place.machine;
        let common = Spec {
            fs: String::new(),
            mount: args.mount.clone(),
            card: whole_path(&args.place.card),
            card_state: CardState::from(machine.card_state).name().to_owned(),
            board: whole_path(&machine.board),
            clock: machine.clock.clone(),
            workload: workload.name().to_owned(),
            parameters: parameters(args.size, workload),
            script: lines.map(|lines| lines.into_iter().map(|line| line.op).collect()),
            returns: false,
            partition_bytes: 0,
            cuts: selection(args, only, &faults)?,
            faults,
            recovery: args.recovery,
            fsck: !args.no_fsck,
            seed: args.seed,
            measured: None,
            made_by: Makers::default(),
        };
        Ok(Series {
            common,
            candidates,
            partition_bytes: args.partition,
        })
    }

    /// A series for each filesystem on `lab`: on a partition as large as was asked for, or on all
    /// of a smaller card.
    ///
    /// # Errors
    /// As [`specs`].
    pub fn on(mut self, lab: &LabExecutor) -> Outcome<Vec<Spec>> {
        let bytes = self
            .partition_bytes
            .next_multiple_of(lab.geometry().au_bytes);
        self.common.partition_bytes = bytes.min(lab.partition_bytes());
        specs(lab, &self.common, &self.candidates)
    }
}

/// The workload, with its operations if they come from a file.
pub fn workload(args: &SeriesArgs) -> Outcome<(&'static dyn Workload, Option<Vec<ScriptLine>>)> {
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
pub fn candidates(args: &SeriesArgs) -> Outcome<Vec<&'static Candidate>> {
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
pub fn mount_options(args: &SeriesArgs) -> Outcome {
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
fn named_faults(args: &SeriesArgs) -> Outcome<Faults> {
    once("--faults", &args.faults)?;
    let named = args.faults.iter().map(|name| name.parse::<Fault>());
    let faults = named
        .collect::<std::result::Result<Faults, _>>()
        .map_err(|error| Failure::input(format!("--faults: {error}")))?;
    together(&faults).map_err(|why| why.about("--faults"))?;
    Ok(faults)
}

/// The refusal of a number beyond the `last` cut.
pub fn no_such_cut(last: u64) -> Failure {
    Failure::input(format!("no such cut: --only takes 0 to {last} here"))
}
