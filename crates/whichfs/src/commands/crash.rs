//! `whichfs crash run`: cuts the power at many instants of one run and tells what is left.

use crate::bench::Bench;
use crate::board::Board;
use crate::cli::{CrashArgs, CutCount};
use crate::clock::Clock;
use crate::commands::table;
use crate::crash::check::{Checker, Result};
use crate::crash::record::{Plan, Recorded};
use crate::crash::series::{self, Options};
use crate::failure::{Failure, Kind, Outcome};
use crate::{cards, interrupt, output};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};
use whichfs_card::Contents;
use whichfs_crash::{
    Condition, Contract, Cut, Fault, Faults, Outcome as Became, Place, Share, all_cuts, cut_at,
    random_cuts,
};
use whichfs_fs::Candidate;
use whichfs_lab::available_cores;
use whichfs_units::{MIB, Nanos};

/// Examples in the help text.
pub const EXAMPLES: &str = "\
Examples:
  whichfs crash run --fs ext4                          100 cuts at random
  whichfs crash run --fs ext4,xfs,btrfs,f2fs --cuts 226 --card emmc-8gb
  whichfs crash run --fs ext4 --faults flush-lies,reorder --card emmc-8gb
  whichfs crash run --fs vfat --mount sync --workload logger
  whichfs crash run --fs ext4 --cuts 226 --only 17 --keep cut-17.img

The workload runs once in the lab; each cut is then an image of the card at one instant of
it, mounted, read, used, checked and repaired in the lab. The same arguments give the same
images. Faults (--faults): reorder, flush-lies, torn-512, torn-4k, torn-page, au-rollback,
small-lost, neighbour; without a cut: zeroed-after, zeroed-alternately, dropped, bit-rot,
misdirected.

Exit status: 0 no filesystem broke its promises, 1 one did.";

/// Results of one filesystem.
#[derive(Serialize)]
struct Report {
    fs: String,
    mount_options: String,
    contract: Contract,
    /// Requests of the run that could be cut.
    requests: usize,
    /// Virtual seconds of the run.
    virtual_s: f64,
    conditions: BTreeMap<Condition, Share>,
    outcomes: BTreeMap<Became, u64>,
    broken: Share,
    mount_median_ms: Option<f64>,
    mount_worst_ms: Option<f64>,
    cuts: Vec<Result>,
}

/// The JSON document.
#[derive(Serialize)]
struct Document<'a> {
    card: &'a str,
    board: &'a str,
    clock: String,
    workload: &'a str,
    parameters: &'a BTreeMap<String, u64>,
    partition_bytes: u64,
    faults: &'a Faults,
    seed: u64,
    filesystems: Vec<Report>,
}

/// Runs the command.
pub fn run(args: &CrashArgs) -> Outcome<u8> {
    let faults = faults(args)?;
    let workload = whichfs_workload::find(&args.workload)
        .map_err(|e| Failure::input(format!("--workload: {e}")))?;
    let parameters = parameters(args, workload)?;
    let candidates = candidates(args)?;
    if args.keep.is_some() && (args.only.is_none() || args.fs.len() != 1) {
        return Err(Failure::input(
            "--keep needs one --fs and the number of one cut (--only N)",
        ));
    }
    let jobs = (args.jobs).map_or_else(|| available_cores().len(), |jobs| jobs as usize);
    let bench = bench(args, jobs)?;
    let partition_bytes = partition(args, &bench)?;
    let cancelled = interrupt::flag();
    let mut reports = Vec::new();
    for candidate in candidates {
        let plan = Plan {
            bench: &bench,
            candidate,
            mount: args.mount.as_deref(),
            workload,
            parameters: parameters.clone(),
            partition_bytes,
            seed: args.seed,
        };
        let report = one(args, &plan, &faults, cancelled)?;
        if !args.json {
            tell(args, &report)?;
        }
        reports.push(report);
    }
    let broken = reports.iter().any(|report| report.broken.count > 0);
    if args.json {
        output::json(&Document {
            card: &bench.card.name,
            board: &bench.board.name,
            clock: bench.clock.name(&bench.board),
            workload: workload.name(),
            parameters: &parameters,
            partition_bytes,
            faults: &faults,
            seed: args.seed,
            filesystems: reports,
        })?;
    }
    Ok(if broken { Kind::No as u8 } else { 0 })
}

/// The filesystems that were asked for.
fn candidates(args: &CrashArgs) -> Outcome<Vec<&'static Candidate>> {
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

fn bench(args: &CrashArgs, jobs: usize) -> Outcome<Bench> {
    let place = &args.place;
    let card = cards::open(&place.card)?;
    let mut board = place.board.clone();
    let clock = Clock::parse(&place.clock, &mut board)?;
    Bench::new(
        card,
        place.card_state,
        Board::open(&board)?,
        clock,
        Duration::from_secs(place.wall_limit),
        jobs,
    )
}

fn faults(args: &CrashArgs) -> Outcome<Faults> {
    args.faults
        .iter()
        .map(|name| name.parse::<Fault>())
        .collect::<std::result::Result<_, _>>()
        .map_err(|error| Failure::input(format!("--faults: {error}")))
}

/// The workload's size in bytes, where it has one.
fn parameters(
    args: &CrashArgs,
    workload: &dyn whichfs_workload::Workload,
) -> Outcome<BTreeMap<String, u64>> {
    let mut parameters = BTreeMap::new();
    let known = |name: &str| {
        workload
            .parameters()
            .iter()
            .find(|known| known.name == name)
    };
    let Some(bytes) = known("bytes") else {
        return Ok(parameters);
    };
    parameters.insert("bytes".to_owned(), args.size * MIB);
    // As many files for the size as by default, so that the tree keeps its shape.
    if let Some(files) = known("files") {
        let files = (files.default * args.size * MIB / bytes.default.max(1)).max(1);
        parameters.insert("files".to_owned(), files);
    }
    Ok(parameters)
}

/// Bytes of the partition: what was asked for, or all of a smaller card.
fn partition(args: &CrashArgs, bench: &Bench) -> Outcome<u64> {
    let au = bench.geometry().au_bytes;
    let bytes = (args.partition * MIB).next_multiple_of(au);
    Ok(bytes.min(bench.partition_bytes()))
}

/// The cuts that were asked for.
fn cuts(args: &CrashArgs, recorded: &Recorded, faults: &Faults) -> Outcome<Vec<Cut>> {
    let (log, first) = (recorded.timeline.log(), recorded.first);
    let whole = !faults.is_empty() && faults.iter().all(|fault| fault.is_without_cut());
    let mut cuts = match (args.at, args.cuts) {
        (Some(request), _) => cut_at(log, request, args.seed),
        (None, CutCount::All) => all_cuts(log, first, args.seed),
        (None, CutCount::Number(count)) => random_cuts(log, first, count, args.seed),
    };
    if whole {
        // The damage is judged when all is done: only its seed differs.
        for cut in &mut cuts {
            cut.request = log.len().saturating_sub(1);
            cut.place = Place::After;
            cut.at = recorded.time;
        }
    }
    if cuts.is_empty() {
        return Err(Failure::input(format!(
            "no such request: the workload made {}, numbers {first} to {}",
            log.len() - first,
            log.len().saturating_sub(1)
        )));
    }
    let last = cuts.len() - 1;
    if let Some(only) = args.only {
        cuts.retain(|cut| cut.number == only);
    }
    match cuts.is_empty() {
        true => Err(Failure::input(format!(
            "no such cut: --only takes 0 to {last} here"
        ))),
        false => Ok(cuts),
    }
}

fn one(
    args: &CrashArgs,
    plan: &Plan,
    faults: &Faults,
    cancelled: &std::sync::atomic::AtomicBool,
) -> Outcome<Report> {
    let name = plan.candidate.name;
    let core = available_cores().last().copied();
    note!("{name}: running the workload");
    let recorded = plan.record(core, cancelled)?;
    let cuts = cuts(args, &recorded, faults)?;
    if let Some(path) = &args.keep {
        let checker = Checker::new(plan, &recorded, faults, true);
        let offset = cards::partition_offset(&recorded.profile);
        keep(checker.image(&cuts[0])?, offset, plan.partition_bytes, path)?;
    }
    let options = Options {
        faults,
        fsck: !args.no_fsck,
        jobs: plan.bench.jobs,
    };
    let mut progress = Progress::new(name, cuts.len());
    let results = series::check_all(plan, &recorded, &cuts, &options, cancelled, &mut |result| {
        progress.hear(result);
    })?;
    Ok(report(plan, &recorded, results))
}

/// Writes the partition of an image to a file, sparsely.
fn keep(mut contents: Contents, offset: u64, bytes: u64, path: &Path) -> Outcome {
    let fail = |e: std::io::Error| Failure::environment(format!("--keep {}: {e}", path.display()));
    let mut file = File::create(path).map_err(fail)?;
    let mut buffer = vec![0; MIB as usize];
    let mut at = 0;
    while at < bytes {
        let length = MIB.min(bytes - at) as usize;
        contents
            .read(offset + at, &mut buffer[..length])
            .map_err(Failure::environment)?;
        if buffer[..length].iter().any(|&byte| byte != 0) {
            file.seek(SeekFrom::Start(at))
                .and_then(|_| file.write_all(&buffer[..length]))
                .map_err(fail)?;
        }
        at += length as u64;
    }
    file.set_len(bytes).map_err(fail)
}

fn report(plan: &Plan, recorded: &Recorded, cuts: Vec<Result>) -> Report {
    let total = cuts.len() as u64;
    let mut conditions: BTreeMap<Condition, u64> = BTreeMap::new();
    let mut outcomes = BTreeMap::new();
    for result in &cuts {
        *conditions.entry(result.condition).or_default() += 1;
        for finding in &result.checked.findings {
            *outcomes.entry(finding.outcome).or_default() += 1;
        }
        *outcomes.entry(Became::Right).or_default() += result.right;
    }
    let mut mounts: Vec<Nanos> = cuts.iter().filter_map(|result| result.mount).collect();
    mounts.sort_unstable();
    let milliseconds = |time: &Nanos| time.as_secs_f64() * 1e3;
    Report {
        fs: plan.candidate.name.to_owned(),
        mount_options: recorded.mount_options.clone(),
        contract: recorded.contract,
        requests: recorded.timeline.log().len() - recorded.first,
        virtual_s: recorded.time.as_secs_f64(),
        conditions: conditions
            .into_iter()
            .map(|(condition, count)| (condition, Share::new(count, total)))
            .collect(),
        outcomes,
        broken: Share::new(
            cuts.iter().filter(|result| result.broken).count() as u64,
            total,
        ),
        mount_median_ms: mounts.get(mounts.len() / 2).map(milliseconds),
        mount_worst_ms: mounts.last().map(milliseconds),
        cuts,
    }
}

/// Progress on standard error.
struct Progress<'a> {
    name: &'a str,
    total: usize,
    done: usize,
    broken: usize,
    begun: Instant,
    told: Instant,
}

impl Progress<'_> {
    /// Time between two lines.
    const EVERY: Duration = Duration::from_secs(2);

    fn new(name: &str, total: usize) -> Progress<'_> {
        Progress {
            name,
            total,
            done: 0,
            broken: 0,
            begun: Instant::now(),
            told: Instant::now(),
        }
    }

    fn hear(&mut self, result: &Result) {
        self.done += 1;
        self.broken += usize::from(result.broken);
        if self.told.elapsed() < Self::EVERY && self.done < self.total {
            return;
        }
        self.told = Instant::now();
        let spent = self.begun.elapsed().as_secs_f64();
        let left = spent / self.done as f64 * (self.total - self.done) as f64;
        note!(
            "{}: {} of {} cuts, {:.1} a second, {} broke a promise, about {left:.0} s to go",
            self.name,
            self.done,
            self.total,
            self.done as f64 / spent.max(1e-9),
            self.broken,
        );
    }
}

fn tell(args: &CrashArgs, report: &Report) -> Outcome {
    output::text_line(&format!(
        "\n{} ({}), {} cuts among {} requests in {:.1} s of virtual time",
        report.fs,
        report.mount_options,
        report.cuts.len(),
        report.requests,
        report.virtual_s,
    ))?;
    let percent = |share: &Share| {
        format!(
            "{:.0} to {:.0} %",
            (share.low * 100.0).floor(),
            (share.high * 100.0).ceil()
        )
    };
    let rows = report
        .conditions
        .iter()
        .map(|(condition, share)| vec![words(condition), share.count.to_string(), percent(share)]);
    output::text_line(&table::text(
        &["filesystem", "cuts", "95 % interval"],
        rows.collect(),
    ))?;
    let rows: Vec<Vec<String>> = report
        .outcomes
        .iter()
        .map(|(outcome, count)| vec![words(outcome), count.to_string()])
        .collect();
    output::text_line(&table::text(&["files, all cuts together", "count"], rows))?;
    if let (Some(median), Some(worst)) = (report.mount_median_ms, report.mount_worst_ms) {
        output::text_line(&format!(
            "mount with recovery: median {median:.1} ms, longest {worst:.1} ms"
        ))?;
    }
    output::text_line(&format!(
        "broke its promises: {} of {} ({})",
        report.broken.count,
        report.broken.of,
        percent(&report.broken)
    ))?;
    worst_cases(args, report)
}

/// The first cuts that broke a promise, with the command that shows each again.
fn worst_cases(args: &CrashArgs, report: &Report) -> Outcome {
    const SHOWN: usize = 3;
    for result in report
        .cuts
        .iter()
        .filter(|result| result.broken)
        .take(SHOWN)
    {
        let cut = &result.cut;
        output::text_line(&format!(
            "  cut {} ({} request {}, at {}): {}",
            cut.number,
            words(&cut.place),
            cut.request,
            cut.at,
            words(&result.condition),
        ))?;
        let broken = result
            .checked
            .findings
            .iter()
            .filter(|finding| finding.broken);
        for finding in broken.take(SHOWN) {
            output::text_line(&format!(
                "    {}: {}: {}",
                finding.path,
                words(&finding.outcome),
                finding.what
            ))?;
        }
        output::text_line(&format!(
            "    again: {}",
            again(args, &report.fs, cut.number)
        ))?;
    }
    Ok(())
}

/// The command that makes the same image again.
fn again(args: &CrashArgs, fs: &str, number: u64) -> String {
    let mut words = vec![format!(
        "whichfs crash run --fs {fs} --card {} --workload {} --size {} --partition {} --seed {}",
        args.place.card, args.workload, args.size, args.partition, args.seed
    )];
    match (args.at, args.cuts) {
        (Some(at), _) => words.push(format!("--at {at}")),
        (None, CutCount::All) => words.push("--cuts all".to_owned()),
        (None, CutCount::Number(count)) => words.push(format!("--cuts {count}")),
    }
    if let Some(mount) = &args.mount {
        words.push(format!("--mount {mount}"));
    }
    if !args.faults.is_empty() {
        words.push(format!("--faults {}", args.faults.join(",")));
    }
    words.push(format!("--only {number}"));
    words.join(" ")
}

/// A name as JSON has it, in words.
fn words(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name.replace('_', " "),
        other => format!("{other:?}"),
    }
}
