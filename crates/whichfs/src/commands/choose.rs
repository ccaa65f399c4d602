//! `whichfs choose`: from a card and a need to a verdict.

mod confirm;
mod cuts;
mod here;
mod inputs;
mod one_card;

use crate::cli::ChooseArgs;
use crate::failure::{Failure, Kind, Outcome, exit_code};
use crate::progress::Progress;
use crate::{interrupt, output, page, repeat};
use cuts::CutSupplement;
pub use one_card::evidence;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use whichfs_decide::sustained::is_sustained;
use whichfs_decide::{FigureRow, Need, POWER_LOSS, Verdict};
use whichfs_engine::board::Board;
use whichfs_engine::campaign::{failures, rows_of};
use whichfs_engine::choose::{Choice, SEEDS};
use whichfs_engine::clock::Clock;
use whichfs_engine::lab_executor::LabExecutor;
use whichfs_engine::narrowing::{self, Narrowing};
use whichfs_engine::question::Question;
use whichfs_engine::report_folder::ReportFolder;
use whichfs_engine::trial_cache::{TrialCache, now_unix};
use whichfs_engine::workload_run::WorkloadRun;
use whichfs_engine::{builder_files, cards, places, tree};
use whichfs_layout::{DiskPlan, Layout, Medium, TableKind};
use whichfs_report::{Page, VERDICT_FILES, aside, verdict_files};
use whichfs_trial::{Trial, WorkloadSpec};
use whichfs_units::arguments::told;

/// Examples in the help text.
pub const EXAMPLES: &str = "\
Examples:
  whichfs choose
  whichfs choose --for logger --card class4-4gb --board beaglebone-black
  sudo whichfs choose --card /dev/sdX --write    your card: probed, decided in the lab
  sudo whichfs choose --card /dev/sdX --destroy ID --confirm      … and the two best tried on it
  sudo whichfs choose --on /dev/sdX --dry-run                     all on the card: what it does
  whichfs choose --fs ext4,f2fs,btrfs --seeds 5
  whichfs choose --second-card emmc-8gb          and with the journal on another card
  whichfs choose --for rootfs-readonly --tree ./rootfs
  whichfs choose --fio my-job.fio                the real fio with a job file of yours
  whichfs choose --command 'tar -xf /srv/app.tar' --fs ext4,f2fs
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
        args.layout
            .as_deref()
            .map(builder_files::layout)
            .transpose()?;
    }
    if let Some(device) = args.measured_on() {
        if !device.contains('/') && !Path::new(device).exists() {
            return Err(Failure::input(
                "--on measures on a device: --on /dev/… (lsblk lists them), or leave it out to ask \
                 the lab",
            ));
        }
        let mut args = args.clone();
        args.place.card = device.to_owned();
        return here::run(&args, begun);
    }
    if args.device.dry_run || !confirm::is_device(&args.place.card) {
        if let Some(flag) = args.device.given() {
            return Err(Failure::input(format!(
                "{flag} is of a real device: name it with --on, or with --card to probe and confirm"
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
    let question = question(args, SEEDS)?;
    let mut cuts = CutSupplement::new(args, &question)?;
    let cache = TrialCache::open(args.store.clone(), args.fresh)?;
    let bench = bench(args)?;
    let long = bench.sustained(&question.need)?;
    let mut choice = Choice::new(question, &bench, cache, interrupt::flag(), begun);
    choice.long_executor = long.as_ref();
    let report = folder(args)?;
    let verdict = choice.decide(&mut cuts, &mut Progress::default())?;
    let mut page = page::page(
        &bench,
        &choice.question.work,
        &verdict,
        choice.reused(),
        &choice.found.trials,
        repeat::line(args),
    );
    page.run = args.run.stamp();
    page.cuts = cuts.made.series_of(args.first_seed);
    let aside = aside(&choice.found.excluded, &choice.found.aside, &page.repeat);
    page.trials_of.extend(aside);
    page.environment.extend(cuts.made.items());
    let (mut rows, mut sentences) = (choice.found.rows(&cuts), cuts.made.sentences());
    if verdict.ranking.is_empty() && !cuts.made.wanted() {
        // Where nobody could win there is nobody to cut.
        sentences.clear();
    }
    let mut trials = [choice.found.trials.as_slice(), &choice.found.sustained].concat();
    if let Some(device) = device {
        let confirmed = confirm::confirm(device, &choice.question, &rows, &verdict)?;
        page.environment.extend(confirmed.items());
        sentences.extend(confirmed.lines());
        rows.extend(rows_of(&confirmed.trials));
        trials.extend(confirmed.trials);
    }
    let report = write(report, &page, &rows, &trials)?;
    tell(args, &page, &sentences, &report)?;
    if let Some(directory) = &args.emit {
        emit(args, &bench, &choice.question.need, &verdict, directory)?;
    }
    Ok(code_of(
        verdict.ranking.is_empty(),
        failures(&choice.found.trials).is_empty(),
    ))
}

/// Trials in the lab for the need `name` on cards of `capacity` bytes, before a probe for it.
///
/// # Errors
/// An unknown need, and those of the trials.
pub fn narrowing(name: &str, capacity: u64) -> Outcome<Narrowing> {
    let jobs = whichfs_lab::available_cores().len();
    let (cache, progress) = (TrialCache::open(None, false)?, &mut Progress::default());
    let need = need(name, &[])?;
    narrowing::begin(need, capacity, jobs, cache, interrupt::flag(), progress)
}

/// The folder of the report: that it can be written is known before the first trial.
fn folder(args: &ChooseArgs) -> Outcome<ReportFolder> {
    let out = args.out.as_deref();
    ReportFolder::new(out, "whichfs-report", &VERDICT_FILES, now_unix())
}

/// Writes the report with the figures `rows` of `trials`; where its page is.
fn write(
    report: ReportFolder,
    page: &Page,
    rows: &[FigureRow],
    trials: &[Trial],
) -> Outcome<PathBuf> {
    report.write(&verdict_files(page, rows, trials).map_err(Failure::environment)?)
}

/// Prints the verdict of `page`, what else is to be said, and where the report is.
fn tell(args: &ChooseArgs, page: &Page, sentences: &[String], report: &Path) -> Outcome {
    if args.json {
        return output::document(page);
    }
    let look = whichfs_report::TerminalLook {
        width: output::width(),
        colour: output::colour(),
    };
    let table = whichfs_report::terminal(&page.verdict, look);
    output::styled(&format!("{}\n\n", table.trim_end()))?;
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
fn emit(
    args: &ChooseArgs,
    bench: &LabExecutor,
    need: &Need,
    verdict: &Verdict,
    directory: &Path,
) -> Outcome {
    let Some(best) = verdict.advised() else {
        note!("--emit: no candidate is left: nothing was written");
        return Ok(());
    };
    let is_root = need.workload == "rootfs";
    let layout = match (&args.layout, is_root) {
        (Some(name), _) => builder_files::layout(name)?,
        (None, true) => builder_files::layout("boot-root")?,
        (None, false) => {
            let table = match need.partition {
                Some(_) => TableKind::Mbr,
                None => TableKind::Gpt,
            };
            Layout::single(table, "data", None, "/data")
        }
    };
    let card = &bench.card;
    let why = format!("the profile {} says so", card.name);
    let capacity = card.profile.capacity_bytes();
    let medium = Medium::of_geometry(capacity, &bench.geometry(), why)?;
    let fs = Some(best.candidate.as_str());
    let layout = match bench.board.file.boot {
        Some(_) => bench.board.lay_out(layout, None)?,
        None => layout,
    };
    let plan = DiskPlan::new(&layout, &medium, fs, builder_files::seed(None)?)?;
    let files = builder_files::write(&plan, directory, &page::command_line())?;
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

/// The lab with the card and the board of `args`.
fn bench(args: &ChooseArgs) -> Outcome<LabExecutor> {
    let card = cards::open(&args.place.card)?;
    let mut board = args.place.machine.board.clone();
    let clock = Clock::parse(&args.place.machine.clock, &mut board)?;
    let board = Board::open(&board)?;
    let wall_limit = Duration::from_secs(args.place.machine.wall_limit);
    let state = args.place.machine.card_state.into();
    LabExecutor::new(card, state, board, clock, wall_limit, jobs_of(args))
}

/// What `args` ask, with so many `seeds` if they do not say.
fn question(args: &ChooseArgs, seeds: u64) -> Outcome<Question> {
    let need = need(&args.needs, &args.need)?;
    let work = work_of(args, &need)?;
    check_names(&args.candidates)?;
    let mut question = Question {
        need,
        work,
        candidates: args.candidates.clone(),
        first_seed: args.first_seed,
        seeds: args.seeds.unwrap_or(seeds),
        second_card: None,
    };
    let second = args.second_card.as_deref();
    second.map_or(Ok(()), |card| question.offer_second_card(card))?;
    Ok(question)
}

/// Trials at once: as asked for, or one for each core.
fn jobs_of(args: &ChooseArgs) -> usize {
    let cores = || whichfs_lab::available_cores().len();
    args.jobs.map_or_else(cores, |jobs| jobs as usize)
}

/// The need called `name`, or that in the file `name`, with `changes` (`KEY=VALUE`).
///
/// # Errors
/// An unknown name, a file that cannot be read or is no need, a change that it does not have.
pub fn need(name: &str, changes: &[String]) -> Outcome<Need> {
    let mut need = if name.contains('/') || name.ends_with(".toml") {
        let text = whichfs_engine::input::read_text(name).map_err(|e| {
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
    // Power cuts and sustained trials are no part of it.
    let asked = asked.filter(|metric| *metric != POWER_LOSS && !is_sustained(metric));
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
        let before = std::mem::replace(bytes, size);
        // As many files for the size as before, so that the tree keeps its shape.
        if let Some(files) = parameters.get_mut("files") {
            *files = (*files * size / before).max(1);
        }
        workload
            .check(&spec(&parameters))
            .map_err(|e| Failure::input(format!("--size {}: {e}", told(size))))?;
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
    super::once("--fs", candidates)?;
    for name in candidates {
        whichfs_fs::find_of_trial(name).map_err(|e| Failure::input(format!("--fs: {e}")))?;
    }
    Ok(())
}
