//! `whichfs crash`: cuts the power at many instants of one run and tells what is left.

mod faults;
mod input;
mod minimise;
mod on;
pub mod page;
mod planned;
mod progress;
mod replay;

pub use faults::EXAMPLES as FAULTS_EXAMPLES;
pub use faults::run as faults;
pub use minimise::EXAMPLES as MINIMISE_EXAMPLES;
pub use minimise::{CrashMinimise, run as minimise};
pub use planned::{CUT_EXAMPLES, PLAN_EXAMPLES, PlanLine, RecordLine, cut, import, plan, tell};
pub use replay::EXAMPLES as REPLAY_EXAMPLES;
pub use replay::{CrashReplay, run as replay};

use crate::cli::{CrashArgs, PlaceArgs};
use crate::failure::{Failure, Kind, Outcome, exit_code};
use crate::{interrupt, output};
use progress::Progress;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use whichfs_card::Contents;
use whichfs_crash::{Contract, Cut, Faults};
use whichfs_engine::cards;
use whichfs_engine::crash::campaign::lab_results;
use whichfs_engine::crash::check::{Checker, Result};
use whichfs_engine::crash::image_file::{self, Given};
use whichfs_engine::crash::inputs::{self, LabPlace};
use whichfs_engine::crash::record::{Recorded, RecordingPlan};
use whichfs_engine::crash::series;
use whichfs_engine::crash::spec::{CutDevice, Selection, Spec};
use whichfs_engine::lab_executor::LabExecutor;
use whichfs_engine::places::{self, WholeFile};
use whichfs_lab::available_cores;
use whichfs_report::documents::crash::{CutReport, CutRun, CutSums, bound_text, cuts_text, row};
use whichfs_report::documents::faults::fault_names;
use whichfs_report::{CrashRow, crash_files};

/// Examples in the help text, and the faults.
pub fn help() -> String {
    format!("{EXAMPLES}\n\n{}\n\n{EXIT_STATUS}", fault_names())
}

const EXAMPLES: &str = "\
Examples:
  whichfs crash run --fs ext4                          100 cuts at random
  whichfs crash run --fs ext4,xfs,btrfs,f2fs --cuts 226 --card emmc-8gb
  whichfs crash run --fs ext4 --faults flush-lies,reorder --card emmc-8gb
  whichfs crash run --fs vfat --mount +sync --workload logger
  whichfs crash run --fs ext4 --until 'p<1%' --fail-on repair,lost
  whichfs crash run --fs f2fs --script operations.jsonl --cuts all
  whichfs crash run --fs f2fs --recovery 1              cut it again while it recovers
  whichfs crash run --fs ext4 --cuts 226 --only 17 --keep cut-17.img
  whichfs crash replay 3f9a0c51d2e7-17                  one of them once more, with all details
  whichfs crash run --fs ext4 --on ssh://root@board/dev/mmcblk0 --power sysrq --dry-run
  whichfs crash run --fs ext4 --on ssh://root@board/dev/mmcblk0 --power sysrq --destroy ID
  whichfs crash run --fs ext4 --on labgrid:rpi4/dev/mmcblk0 --power labgrid --destroy ID

The workload runs once in the lab; each cut is then an image of the card at one instant of
it, mounted, read, used, checked and repaired in the lab. The same arguments give the same
images; an interrupted series goes on where it was.

With --on the workload runs on a board for each cut, the board loses its power at a random
moment, and what is found when it is back is judged by the same rules.";

const EXIT_STATUS: &str = "\
Exit status: 0 no cut did what --fail-on names (default: broke a promise) and the bound of
--until holds, 1 else, 2 bad usage or input, 3 this machine lacks something, 4 the run to be
cut failed. What was done is kept in any case.";

/// The JSON document.
#[derive(Serialize, schemars::JsonSchema)]
pub struct CrashRun<'a> {
    card: &'a str,
    board: &'a str,
    clock: String,
    workload: &'a str,
    parameters: &'a BTreeMap<String, u64>,
    partition_bytes: u64,
    faults: &'a Faults,
    seed: u64,
    /// The real device, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    measured: Option<&'a CutDevice>,
    #[serde(flatten)]
    sums: CutSums,
    filesystems: Vec<CutReport>,
}

impl whichfs_report::Document for CrashRun<'_> {
    const NAME: &'static str = "crash run";
}

/// Runs the command.
pub fn run(args: &CrashArgs) -> Outcome<u8> {
    if let Some(place) = &args.on.on {
        return on::run(args, place);
    }
    if let Some(flag) = args.here.given() {
        return Err(Failure::input(format!(
            "{flag} is for a real device: name it with --on ssh://USER@HOST/dev/…"
        )));
    }
    let series = input::Series::new(&args.series, args.only)?;
    input::one_image(args)?;
    let mut image = args.image.as_deref().map(Given::open).transpose()?;
    let mut keep = args.keep.as_deref().map(image_file::kept).transpose()?;
    let files = args.out.as_deref().map(page::folder).transpose()?;
    let bench = bench(&args.series.place, args.jobs)?;
    let specs = series.on(&bench)?;
    let common = &specs[0];
    if let Some(image) = &image {
        image.has(common.partition_bytes)?;
    }
    let cancelled = interrupt::flag();
    let (mut reports, mut rows) = (Vec::new(), Vec::new());
    for (at, spec) in specs.iter().enumerate() {
        let left = specs.len() - at - 1;
        let plan = RecordingPlan::new(&bench, spec)?;
        let images = (keep.take(), image.take());
        let Some((report, row)) = one(args, &plan, images, (left, cancelled))? else {
            continue;
        };
        rows.push(row);
        if !args.json {
            output::text(&cuts_text(&report, output::width()))?;
        }
        reports.push(report);
    }
    if reports.is_empty() {
        return Err(Failure::input("no filesystem was left to cut"));
    }
    if let Some(files) = files {
        let page = page::of_run(&bench, args, &common.faults, rows, &reports);
        let path = files.write(&crash_files(&page))?;
        note!("report: {}", path.display());
    }
    tell_bound(args, &reports)?;
    let code = code_of(args, &reports);
    if args.json {
        output::document(&CrashRun {
            card: &bench.card.name,
            board: &bench.board.name,
            clock: bench.clock.name(&bench.board),
            workload: &common.workload,
            parameters: &common.parameters,
            partition_bytes: common.partition_bytes,
            faults: &common.faults,
            seed: common.seed,
            measured: None,
            sums: CutSums::of(&reports),
            filesystems: reports,
        })?;
    }
    Ok(code)
}

/// The lab of `place` for series of cuts, with `jobs` guests at once.
pub fn bench(place: &PlaceArgs, jobs: Option<u64>) -> Outcome<LabExecutor> {
    let machine = &place.machine;
    let lab_place = LabPlace {
        card: &place.card,
        card_state: machine.card_state.into(),
        board: &machine.board,
        clock: &machine.clock,
    };
    inputs::lab(lab_place, Duration::from_secs(machine.wall_limit), jobs)
}

/// Why there is nothing to cut, where a run of the filesystem beside it may have it.
fn nothing_to_cut(plan: &RecordingPlan) -> Option<String> {
    match plan.spec.cuts {
        Selection::Collection(_) => Some(
            "the card never collected in this run: take a larger --size, or another --card"
                .to_owned(),
        ),
        Selection::Mount(_) => Some(format!(
            "the first mount of {} changes nothing on the card: there is nothing to cut",
            plan.candidate.name
        )),
        _ => None,
    }
}

/// The cuts of a recorded run that were asked for; none where the run has nothing of the kind and
/// other filesystems were named too.
fn cuts(args: &CrashArgs, plan: &RecordingPlan, recorded: &Recorded) -> Outcome<Option<Vec<Cut>>> {
    let (log, first) = (recorded.timeline.log(), recorded.first);
    let mut cuts = plan.spec.cuts(recorded);
    if cuts.is_empty() {
        return Err(Failure::input(match nothing_to_cut(plan) {
            Some(why) if args.series.fs.len() > 1 => {
                note!("{}: left out: {why}", plan.candidate.name);
                return Ok(None);
            }
            Some(why) => why,
            None if recorded.ended.is_some() && log.len() == first => format!(
                "nothing to cut: the card refused the first write of the workload, which ended \
                 with {}; another --seed refuses other writes",
                recorded.ended.as_deref().unwrap_or_default()
            ),
            None => format!(
                "no such request: the workload made {}; give --at a number from {first} to {}",
                log.len() - first,
                log.len().saturating_sub(1)
            ),
        }));
    }
    let last = cuts.len() - 1;
    if let Some(only) = args.only {
        cuts.retain(|cut| cut.number == only);
    }
    match cuts.is_empty() {
        true => Err(input::no_such_cut(last as u64)),
        false => Ok(Some(cuts)),
    }
}

/// One filesystem: what is told, and its row of the page. The image of its one cut is written to
/// the first of `images`; that in the second is judged instead.
fn one(
    args: &CrashArgs,
    plan: &RecordingPlan,
    images: (Option<WholeFile>, Option<Given>),
    (series_left, cancelled): (usize, &AtomicBool),
) -> Outcome<Option<(CutReport, CrashRow)>> {
    let name = plan.candidate.name;
    let core = available_cores().last().copied();
    if output::is_verbose() {
        note!("{name}: running the workload");
    }
    let recorded = plan.record(core, cancelled)?;
    let Some(cuts) = cuts(args, plan, &recorded)? else {
        return Ok(None);
    };
    if let Some(to) = images.0 {
        let image = Checker::new(plan, &recorded).image(&cuts[0], core, cancelled)?;
        keep(image.contents, plan, &recorded, to)?;
    }
    if let Some(image) = images.1 {
        return given(image, plan, &recorded, &cuts, cancelled).map(Some);
    }
    let results = results(plan, &recorded, &cuts, args.fresh, (series_left, cancelled))?;
    let series = Some(plan.spec.id());
    let run = told(plan, &recorded);
    let row = row(&run, series.as_deref(), &results);
    Ok(Some((CutReport::recorded(series, &run, results), row)))
}

/// What a whole series came to.
pub struct Made {
    /// Its figures and worst cases.
    pub row: CrashRow,
    /// What was promised.
    pub contract: Contract,
}

/// Runs the workload of `spec` and makes all its cuts that are not kept already. `series_left` more
/// series follow, for the time to go.
pub fn made(
    bench: &LabExecutor,
    spec: &Spec,
    fresh: bool,
    (series_left, cancelled): (usize, &AtomicBool),
) -> Outcome<Made> {
    let plan = RecordingPlan::new(bench, spec)?;
    let recorded = plan.record(available_cores().last().copied(), cancelled)?;
    let cuts = spec.cuts(&recorded);
    let results = results(&plan, &recorded, &cuts, fresh, (series_left, cancelled))?;
    Ok(Made {
        row: row(&told(&plan, &recorded), Some(&spec.id()), &results),
        contract: recorded.contract,
    })
}

/// The results of `cuts`; those that the series' archive lacks are made.
fn results(
    plan: &RecordingPlan,
    recorded: &Recorded,
    cuts: &[Cut],
    fresh: bool,
    (series_left, cancelled): (usize, &AtomicBool),
) -> Outcome<Vec<Result>> {
    let kept = places::crashes()?;
    let mut progress = Progress::new(plan.candidate.name, series_left);
    lab_results(
        (plan, recorded),
        cuts,
        (&kept, fresh),
        cancelled,
        &mut progress,
    )
}

/// Prints how far the bound of `--until` is shown.
fn tell_bound(args: &CrashArgs, reports: &[CutReport]) -> Outcome {
    match args.series.until.filter(|_| !args.json) {
        Some(bound) => output::text(&bound_text(bound, reports, output::width())),
        None => Ok(()),
    }
}

/// 1 if a cut did what `--fail-on` names or the bound of `--until` is not shown, else 0.
fn code_of(args: &CrashArgs, reports: &[CutReport]) -> u8 {
    let judged = page::judged(args, reports);
    match judged.iter().all(|one| one.failed.is_empty()) {
        true => 0,
        false => exit_code(Kind::No),
    }
}

/// The recorded run in the JSON document.
pub fn told<'a>(plan: &'a RecordingPlan, recorded: &'a Recorded) -> CutRun<'a> {
    CutRun {
        fs: plan.candidate.name,
        mount_options: &recorded.mount_options,
        contract: &recorded.contract,
        faults: &plan.spec.faults,
        timeline: &recorded.timeline,
        first: recorded.first,
        run: &recorded.run,
        card: &recorded.card,
        time: recorded.time,
        programmed_bytes: recorded.programmed_bytes,
        ended: recorded.ended.as_deref(),
    }
}

/// Writes the partition of an image to a file.
fn keep(contents: Contents, plan: &RecordingPlan, recorded: &Recorded, to: WholeFile) -> Outcome {
    let offset = cards::partition_offset(&recorded.profile);
    image_file::write(contents, offset, plan.spec.partition_bytes, to)
}

/// Judges an `image` of the user's. It belongs to no series: nothing of it is kept.
fn given(
    image: Given,
    plan: &RecordingPlan,
    recorded: &Recorded,
    cuts: &[Cut],
    cancelled: &AtomicBool,
) -> Outcome<(CutReport, CrashRow)> {
    let spec = plan.spec;
    let offset = cards::partition_offset(&recorded.profile);
    let mut contents = plan
        .bench
        .disk(&recorded.profile, spec.seed)?
        .into_contents();
    image.read(&mut contents, offset)?;
    let mut results = Vec::new();
    let image = Some(&contents);
    series::check_all(plan, recorded, cuts, image, cancelled, &mut |result| {
        results.push(result);
        Ok(())
    })?;
    let run = told(plan, recorded);
    let row = row(&run, None, &results);
    Ok((CutReport::recorded(None, &run, results), row))
}
