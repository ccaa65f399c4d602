//! `whichfs choose`: from a card and a need to a verdict.

mod confirm;
mod cuts;
mod files;
mod here;
mod inputs;
mod one_card;

use crate::cli::ChooseArgs;
use crate::failure::{Failure, Kind, Outcome, exit_code};
use crate::progress::Progress;
use crate::{emitted, interrupt, output, page, repeat};
use cuts::Cuts;
use files::Report;
pub use one_card::evidence;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use whichfs_engine::board::Board;
use whichfs_engine::clock::Clock;
use whichfs_engine::executor::PrepareError;
use whichfs_engine::images::Images;
use whichfs_engine::lab_executor::{LabExecutor, Prepared};
use whichfs_engine::trial_cache::TrialCache;
use whichfs_engine::workload_run::WorkloadRun;
use whichfs_engine::{cards, places, tree};
use whichfs_layout::{Layout, Medium, Plan, TableKind};
use whichfs_report::Page;
use whichfs_study::plan::{Planned, first_round, next_round};
use whichfs_study::{
    CandidateFacts, Evidence, Excluded, Failure as TrialFailure, Need, Origin, POWER_LOSS, Row,
    Variant, Verdict, doubt_ranking, judge,
};
use whichfs_trial::{Status, Trial, WorkloadSpec};
use whichfs_units::{MIB, counted};

/// Most seeds of a candidate in the lab, unless the user says how many.
const SEEDS: u64 = 6;

/// Examples in the help text.
pub const EXAMPLES: &str = "\
Examples:
  whichfs choose
  whichfs choose --for logger --card class4-4gb --board beaglebone-black
  sudo whichfs choose --card /dev/sdX --write    your card: probed, decided in the lab
  sudo whichfs choose --card /dev/sdX --destroy ID --confirm      … and the two best tried on it
  sudo whichfs choose --card /dev/sdX --here --dry-run            all on the card: what it does
  whichfs choose --candidates ext4,f2fs,btrfs --seeds 5
  whichfs choose --for rootfs-readonly --tree ./rootfs
  whichfs choose --fio my-job.fio                the real fio with a job file of yours
  whichfs choose --command 'tar -xf /srv/app.tar' --candidates ext4,f2fs
  whichfs choose --cuts 20                       and what power cuts do to those that could win
  whichfs choose --need grow=online --need uboot=yes
  whichfs choose --need kernel_options=/boot/config-6.1.0-18-arm64
  whichfs choose --need power_loss=none          a power cut must hurt nothing, tried 20 times
  whichfs choose --emit bsp/                     and files for Yocto, genimage, repart, RAUC …
  whichfs choose --need power_loss=tolerated --json > verdict.json";

/// Runs the command.
pub fn run(args: &ChooseArgs) -> Outcome<u8> {
    let begun = Instant::now();
    if let Some(directory) = &args.emit {
        // What is wrong with them is said before anything runs.
        places::make(directory).map_err(|failure| Failure::input(format!("--emit: {failure}")))?;
        args.layout.as_deref().map(emitted::layout).transpose()?;
    }
    if args.device.here {
        let card = &args.place.card;
        if !card.contains('/') && !Path::new(card).exists() {
            return Err(Failure::input(
                "--here measures on a device: name it with --card /dev/… (lsblk lists them), or \
                 leave --here out to ask the lab",
            ));
        }
        return here::run(args, begun);
    }
    if !confirm::is_device(&args.place.card) {
        if let Some(flag) = args.device.given() {
            return Err(Failure::input(format!(
                "{flag} is of a real device: name it with --card /dev/…"
            )));
        }
        return in_the_lab(args, begun, None);
    }
    let profile = confirm::profile(args)?;
    let asked = args.device.confirm.then_some(args);
    in_the_lab(&confirm::in_the_lab(args, &profile), begun, asked)
}

/// Decides in the lab; the best are measured on the device of `device`, if that is asked for.
fn in_the_lab(args: &ChooseArgs, begun: Instant, device: Option<&ChooseArgs>) -> Outcome<u8> {
    let mut chooser = Chooser::new(args)?;
    let report = Report::new(&args.out)?;
    let candidates = chooser.candidates()?;
    let mut verdict = chooser.verdict(begun)?;
    let mut round = first_round(&candidates, args.first_seed);
    let most = args.seeds.unwrap_or(SEEDS);
    loop {
        while !round.is_empty() {
            chooser.run_round(&round)?;
            verdict = chooser.verdict(begun)?;
            round = next_round(&verdict, args.first_seed, most);
            // A round without news would never end.
            round.retain(|planned| !chooser.has(planned));
        }
        // Cuts can bring others near the leader, and those may deserve more seeds.
        if !chooser.cut(&verdict)? {
            break;
        }
        verdict = chooser.verdict(begun)?;
        round = next_round(&verdict, args.first_seed, most);
        round.retain(|planned| !chooser.has(planned));
    }
    if chooser.recall()? {
        verdict = chooser.verdict(begun)?;
    }
    let mut page = page::page(
        &chooser.bench,
        &chooser.work,
        &verdict,
        chooser.keeper.reused,
        &chooser.trials,
        repeat::line(args),
    );
    page.cuts = chooser.cuts.series_of(args.first_seed);
    let aside = page::aside(&chooser.excluded, &chooser.aside, &page.repeat);
    page.trials_of.extend(aside);
    page.environment.extend(chooser.cuts.items());
    let (mut rows, mut sentences) = (chooser.rows(), chooser.cuts.sentences());
    if verdict.ranking.is_empty() && !chooser.cuts.wanted() {
        // Where nobody could win there is nobody to cut.
        sentences.clear();
    }
    if let Some(device) = device {
        let confirmed = confirm::confirm(device, &chooser, &verdict)?;
        page.environment.extend(confirmed.items());
        sentences.extend(confirmed.lines());
        rows.extend(confirmed.rows);
    }
    let report = report.write(&page, &rows, &chooser.trials)?;
    tell(args, &page, &sentences, &report)?;
    if let Some(directory) = &args.emit {
        emit(&chooser, &verdict, directory)?;
    }
    Ok(code_of(
        verdict.ranking.is_empty(),
        failures(&chooser.trials).is_empty(),
    ))
}

/// Prints the verdict of `page`, what else is to be said, and where the report is.
fn tell(args: &ChooseArgs, page: &Page, sentences: &[String], report: &Path) -> Outcome {
    if args.json {
        return output::json(page);
    }
    let look = whichfs_report::Look {
        width: output::width(),
        colour: output::colour(),
    };
    output::text_line(whichfs_report::terminal(&page.verdict, look).trim_end())?;
    output::text_line("")?;
    for sentence in sentences {
        match sentence.contains('\n') {
            true => output::text_line(sentence)?,
            false => output::paragraph(sentence, 0)?,
        }
    }
    if let Some((whose, show, again)) = page.example() {
        output::with_command(&format!("{whose} (ids of all are in results.csv):"), &show)?;
        output::with_command("The same trial again:", &again)?;
    }
    output::text_line(&format!("Report: {}", report.display()))
}

/// Writes the files for image builders with the best candidate.
fn emit(chooser: &Chooser, verdict: &Verdict, directory: &Path) -> Outcome {
    let Some(best) = verdict.ranking.first() else {
        note!("--emit: no candidate is left: nothing was written");
        return Ok(());
    };
    let is_root = chooser.need.workload == "rootfs";
    let layout = match (&chooser.args.layout, is_root) {
        (Some(name), _) => emitted::layout(name)?,
        (None, true) => emitted::layout("boot-root")?,
        (None, false) => Layout::single(TableKind::Gpt, "data", None, "/data"),
    };
    let card = &chooser.bench.card;
    let why = format!("the profile {} says so", card.name);
    let capacity = card.profile.capacity_bytes();
    let medium = Medium::of_geometry(capacity, &chooser.bench.geometry(), why)?;
    let fs = Some(best.candidate.as_str());
    let seed = emitted::seed_of(&layout, &medium, fs);
    let plan = Plan::new(&layout, &medium, fs, seed)?;
    let files = emitted::write(&plan, directory)?;
    note!("In {}: {}", directory.display(), files.join(", "));
    Ok(())
}

/// Nobody is left because of the need's rules, or because of trials that failed.
fn code_of(nobody_is_left: bool, no_trial_failed: bool) -> u8 {
    match (nobody_is_left, no_trial_failed) {
        (false, _) => 0,
        (true, true) => exit_code(Kind::No),
        (true, false) => exit_code(Kind::Trial),
    }
}

/// Everything that one run of the command gathers.
struct Chooser<'a> {
    args: &'a ChooseArgs,
    need: Need,
    bench: LabExecutor,
    work: WorkloadRun,
    keeper: TrialCache,
    trials: Vec<Trial>,
    /// Trials that the store has of candidates that a rule excludes.
    aside: Vec<Trial>,
    excluded: Vec<Excluded>,
    /// What the figures of a candidate leave out.
    caveats: BTreeMap<String, Vec<String>>,
    cuts: Cuts,
}

impl<'a> Chooser<'a> {
    fn new(args: &'a ChooseArgs) -> Outcome<Chooser<'a>> {
        let need = need_of(args)?;
        let card = cards::open(&args.place.card)?;
        let mut board = args.place.board.clone();
        let clock = Clock::parse(&args.place.clock, &mut board)?;
        let board = Board::open(&board)?;
        let work = work_of(args, &need)?;
        let cuts = Cuts::new(args, &need);
        if work.workload.runs_programs() && cuts.wanted() {
            return Err(Failure::input(format!(
                "power cuts cannot be made under {}: what its programs write is not known \
                 beforehand; leave out --cuts and --need power_loss=none",
                need.workload
            )));
        }
        check_names(&args.candidates)?;
        let keeper = TrialCache::open(args.store.clone(), args.fresh)?;
        let wall_limit = Duration::from_secs(args.place.wall_limit);
        let jobs = jobs_of(args);
        let state = args.place.card_state.into();
        let bench = LabExecutor::new(card, state, board, clock, wall_limit, jobs)?;
        Ok(Chooser {
            cuts,
            args,
            need,
            bench,
            work,
            keeper,
            trials: Vec::new(),
            aside: Vec::new(),
            excluded: Vec::new(),
            caveats: BTreeMap::new(),
        })
    }

    /// The candidates that satisfy the need's rules; the others are noted with their reason.
    fn candidates(&mut self) -> Outcome<Vec<String>> {
        let all = whichfs_engine::facts::of_those(&self.args.candidates);
        let (kept, excluded) =
            whichfs_study::exclude(&self.need, self.bench.partition_bytes(), &all);
        self.excluded = excluded;
        self.caveats = not_known(&self.need, &kept);
        Ok(kept.into_iter().map(|facts| facts.name).collect())
    }

    /// Runs the trials of a round that the store does not have.
    fn run_round(&mut self, round: &[Planned]) -> Outcome {
        let prepared = self.prepare(round)?;
        let mut missing = Vec::new();
        let before = self.keeper.reused;
        for trial in prepared {
            match self.keeper.known(&trial.identity)? {
                Some(known) => self.trials.push(known),
                None => missing.push(trial),
            }
        }
        if self.keeper.reused > before {
            let reused = self.keeper.reused - before;
            note!(
                "{} reused from the store",
                counted(reused, "finished trial")
            );
        }
        if missing.is_empty() {
            return Ok(());
        }
        let jobs = self.bench.jobs.min(missing.len());
        let mut progress = Progress::new(missing.len(), jobs, false);
        let trials = &mut self.trials;
        let ended = self.keeper.run(
            &self.bench,
            missing,
            interrupt::flag(),
            &mut progress,
            &|| self.work.check_tree(),
            &mut |trial| {
                trials.push(trial.clone());
                Ok(())
            },
        );
        progress.finish();
        ended
    }

    /// Cuts the power of those that could win and were not cut yet; false if there are none.
    fn cut(&mut self, verdict: &Verdict) -> Outcome<bool> {
        let names = self.cuts.lacking(verdict);
        for name in &names {
            let cancelled = interrupt::flag();
            self.cuts.make(self.args, &self.need, name, cancelled)?;
        }
        Ok(!names.is_empty())
    }

    /// Prepares `round`; a Ctrl-C ends it after the image under way, which is then removed.
    fn prepare(&mut self, round: &[Planned]) -> Outcome<Vec<Prepared>> {
        let interrupted = interrupt::flag();
        let tell = |what: &str| note!("{what}");
        let images = Images::new(&tell);
        let mut prepared = Vec::new();
        for planned in round {
            if interrupted.load(Ordering::Relaxed) {
                return Err(self.keeper.interrupted());
            }
            let candidate = whichfs_fs::find(&planned.candidate).map_err(Failure::input)?;
            match self.bench.prepare(
                candidate,
                &self.work,
                &Variant::default(),
                planned.seed,
                &images,
            ) {
                Ok(trial) => {
                    let first = planned.seed == self.args.first_seed;
                    for caveat in trial.caveats.iter().filter(|_| first) {
                        output::note_folded(&format!("note: {}: {caveat}", planned.candidate));
                        let said = self.caveats.entry(planned.candidate.clone()).or_default();
                        said.push(caveat.clone());
                    }
                    prepared.push(trial);
                }
                // The tool that builds an image hears the Ctrl-C too, and fails.
                Err(PrepareError::Failed(_)) if interrupted.load(Ordering::Relaxed) => {
                    return Err(self.keeper.interrupted());
                }
                Err(PrepareError::Failed(failure)) => return Err(failure),
                Err(PrepareError::Excluded { why, source }) => {
                    output::note_folded(&format!("left out: {}: {why}", planned.candidate));
                    self.excluded.push(Excluded {
                        candidate: planned.candidate.clone(),
                        why,
                        source,
                        ..Excluded::default()
                    });
                }
            }
        }
        Ok(prepared)
    }

    /// Looks up what the store has of those whom a rule excludes, to tell what the rule decides;
    /// whether there is anything. Images are not built for it, and nothing is run.
    fn recall(&mut self) -> Outcome<bool> {
        let tell = |_: &str| ();
        let images = Images::new(&tell);
        for one in self.excluded.iter().filter(|one| one.rules().count() == 1) {
            let Ok(candidate) = whichfs_fs::find(&one.candidate) else {
                continue;
            };
            if candidate.facts().read_only {
                continue;
            }
            let variant = Variant::default();
            let seed = self.args.first_seed;
            let prepared = self
                .bench
                .prepare(candidate, &self.work, &variant, seed, &images);
            // One that cannot be made here, or not on this card, has no trials.
            if let Ok(trial) = prepared {
                self.aside.extend(self.keeper.known(&trial.identity)?);
            }
        }
        Ok(!self.aside.is_empty())
    }

    fn has(&self, planned: &Planned) -> bool {
        self.trials.iter().any(|trial| {
            let identity = &trial.identity;
            identity.candidate == planned.candidate && identity.seed == planned.seed
        })
    }

    fn verdict(&self, begun: Instant) -> Outcome<Verdict> {
        let rows = self.rows();
        let ids: Vec<&str> = {
            let mut names: Vec<&str> = self
                .trials
                .iter()
                .map(|t| t.identity.candidate.as_str())
                .collect();
            names.sort_unstable();
            names.dedup();
            names
        };
        let target = if self.need.workload == "rootfs" {
            "/"
        } else {
            "/data"
        };
        let commands: BTreeMap<String, Vec<String>> = ids
            .into_iter()
            .filter_map(|name| {
                Some((
                    name.to_owned(),
                    whichfs_engine::apply::commands(&self.bench.geometry(), name, target)?,
                ))
            })
            .collect();
        let evidence = Evidence {
            card: self.bench.card.name.clone(),
            samples: rows.iter().map(Row::sample).collect(),
            failures: failures(&self.trials),
            excluded: [self.excluded.clone(), self.cuts.excluded()].concat(),
            commands,
            card_uncertainty: whichfs_engine::cards::uncertainty(&self.bench.card.profile),
            fit_error: whichfs_engine::cards::fit_error(&self.bench.card.profile),
            origin: Origin::Modelled,
            partition_bytes: Some(self.bench.partition_bytes()),
            caveats: self.caveats.clone(),
            aside: of_done(&self.aside).iter().map(Row::sample).collect(),
            trials: self.trials.len() as u64,
            virtual_s: self
                .trials
                .iter()
                .map(|t| t.outcome.virtual_time.as_secs_f64())
                .sum(),
            wall_s: begun.elapsed().as_secs_f64(),
        };
        let mut verdict = judge(&self.need, &evidence).map_err(|e| Failure::new(Kind::Trial, e))?;
        doubt_ranking(&mut verdict, &self.need, &self.trials);
        Ok(verdict)
    }

    fn rows(&self) -> Vec<Row> {
        let mut rows = of_done(&self.trials);
        rows.extend(self.cuts.rows(&rows, self.args.first_seed));
        rows
    }
}

/// What the need's rules leave open of `kept`, by candidate.
fn not_known(need: &Need, kept: &[CandidateFacts]) -> BTreeMap<String, Vec<String>> {
    let open = kept.iter().filter_map(|facts| {
        let told = format!("{} {}", facts.name, whichfs_study::not_known(need, facts)?);
        Some((facts.name.clone(), vec![told]))
    });
    open.collect()
}

/// The figures of those of `trials` that were done.
fn of_done(trials: &[Trial]) -> Vec<Row> {
    let done = trials.iter().filter(|t| t.outcome.status == Status::Done);
    done.flat_map(Row::of_trial).collect()
}

/// Those of `trials` that failed.
fn failures(trials: &[Trial]) -> Vec<TrialFailure> {
    let failure = |trial: &Trial| match &trial.outcome.status {
        Status::Done => None,
        Status::Failed { reason, .. } => Some(TrialFailure {
            candidate: trial.identity.candidate.clone(),
            seed: trial.identity.seed,
            reason: reason.clone(),
        }),
    };
    trials.iter().filter_map(failure).collect()
}

/// Trials at once: as asked for, or one for each core.
fn jobs_of(args: &ChooseArgs) -> usize {
    let cores = || whichfs_lab::available_cores().len();
    args.jobs.map_or_else(cores, |jobs| jobs as usize)
}

/// The need: a shipped one or a file, with the user's changes.
fn need_of(args: &ChooseArgs) -> Outcome<Need> {
    need(&args.needs, &args.need)
}

/// The need called `name`, or that in the file `name`, with `changes` (`KEY=VALUE`).
///
/// # Errors
/// An unknown name, a file that cannot be read or is no need, a change that it does not have.
pub fn need(name: &str, changes: &[String]) -> Outcome<Need> {
    let mut need = if name.contains('/') || name.ends_with(".toml") {
        let text = std::fs::read_to_string(name).map_err(|e| {
            Failure::input(format!("--for {name}: {e}; name a file that can be read"))
        })?;
        Need::parse(name, &text)
    } else {
        Need::named(name)
    }
    .map_err(Failure::input)?;
    for change in changes {
        let change = inputs::change(change, &need)?;
        need.set(&change).map_err(Failure::input)?;
    }
    Ok(need)
}

/// The workload of the need, with the user's size or tree.
fn work_of(args: &ChooseArgs, need: &Need) -> Outcome<WorkloadRun> {
    let workload = whichfs_workload::find(&need.workload).map_err(Failure::input)?;
    let asked = need.weights.keys().chain(&need.requires);
    // Power cuts are no part of a trial.
    let asked = asked.filter(|metric| *metric != POWER_LOSS);
    whichfs_workload::check_metrics(workload, asked.map(String::as_str))
        .map_err(|e| Failure::input(format!("--for {}: {e}", args.needs)))?;
    let mut parameters: BTreeMap<String, u64> = workload
        .parameters()
        .iter()
        .map(|p| (p.name.to_owned(), p.default))
        .collect();
    parameters.extend(need.parameters.clone());
    let input = inputs::of(args)?;
    let spec = |parameters: &BTreeMap<String, u64>| WorkloadSpec {
        name: need.workload.clone(),
        parameters: parameters.clone(),
        // Whether it takes one is all that matters here.
        tree: args.tree.as_ref().map(|_| String::new()),
        unix: true,
        script: None,
        input: input.clone(),
    };
    workload
        .check(&spec(&parameters))
        .map_err(|e| Failure::input(format!("{}: {e}", inputs::flag(args))))?;
    inputs::check(args, workload, &spec(&parameters))?;
    if let Some(size) = args.size {
        let Some(bytes) = parameters.get_mut("bytes") else {
            return Err(Failure::input(format!(
                "--size: the workload {} has no size to change",
                need.workload
            )));
        };
        let before = std::mem::replace(bytes, size * MIB);
        // As many files for the size as before, so that the tree keeps its shape.
        if let Some(files) = parameters.get_mut("files") {
            *files = (*files * size * MIB / before).max(1);
        }
        workload
            .check(&spec(&parameters))
            .map_err(|e| Failure::input(format!("--size {size}: {e}")))?;
    }
    let tree = args.tree.as_deref().map(tree::absolute).transpose()?;
    let tree_sha256 = tree
        .as_deref()
        .map(|tree| {
            tree::tell_odd(tree)?;
            tree::digest(tree, workload)
        })
        .transpose()?
        .unwrap_or_default();
    Ok(WorkloadRun {
        workload,
        parameters,
        tree,
        tree_sha256,
        input,
        data_seed: None,
        partition_bytes: None,
        any_size: false,
    })
}

fn check_names(candidates: &[String]) -> Outcome {
    super::once("--candidates", candidates)?;
    for name in candidates {
        whichfs_fs::find(name).map_err(|e| Failure::input(format!("--candidates: {e}")))?;
    }
    Ok(())
}
