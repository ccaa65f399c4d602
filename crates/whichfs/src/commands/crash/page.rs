//! The page of series of cuts, and its files.

use crate::cli::CrashArgs;
use crate::failure::Outcome;
use crate::page::{command_line, digests};
use std::path::Path;
use whichfs_crash::Faults;
use whichfs_engine::lab_executor::LabExecutor;
use whichfs_engine::report_folder::ReportFolder;
use whichfs_engine::trial_cache::now_unix;
use whichfs_report::documents::crash::judged::{JudgedSeries, SeriesRule};
use whichfs_report::documents::crash::{CutReport, promised};
use whichfs_report::{CRASH_FILES, CrashGroup, CrashPage, CrashRow, Item, item};
use whichfs_units::Bytes;

const METHOD: &str = "The workload ran once for each filesystem, and every request that changes \
    the card was kept with its data and times. A cut is an instant of that run: the card's content \
    at that instant was mounted, read, used, checked and repaired by a guest. A cut breaks a \
    promise if what was found contradicts what that filesystem promises with these mount options.";

/// The page of `crash run`.
pub fn of_run(
    bench: &LabExecutor,
    args: &CrashArgs,
    faults: &Faults,
    rows: Vec<CrashRow>,
    reports: &[CutReport],
) -> CrashPage {
    let names: Vec<&str> = faults.iter().map(|fault| fault.name()).collect();
    let meaning = faults.iter().map(|fault| fault.facts().meaning.to_owned());
    let group = CrashGroup {
        faults: match names.is_empty() {
            true => "honest card".to_owned(),
            false => names.join(", "),
        },
        meaning: meaning.collect(),
        workload: format!("workload {}", args.series.workload),
        rows,
        failed: Vec::new(),
    };
    CrashPage {
        title: format!("Power cuts on {}", bench.card.name),
        method: vec![METHOD.to_owned()],
        groups: vec![group],
        promises: promised(reports),
        environment: environment(bench, args.series.partition, args.series.seed),
        run: args.run.stamp(),
        judged: judged(args, reports),
        reproduce: command_line(),
        ..CrashPage::default()
    }
}

/// What the series ran on.
pub fn environment(bench: &LabExecutor, partition_bytes: u64, seed: u64) -> Vec<Item> {
    let card = format!("{}: {}", bench.card.name, bench.card.profile.title());
    let kernel = format!("sha256 {}", &bench.kernel.sha256[..16]);
    let mut items = vec![
        item("whichfs", env!("CARGO_PKG_VERSION"), ""),
        item("kernel", &bench.kernel.release, &kernel),
        item("card", card, bench.card_state.name()),
        item("partition", Bytes(partition_bytes), ""),
        item("board", &bench.board.file.title, "one core modelled"),
        item("clock", bench.clock.name(&bench.board), "virtual time"),
        item("seed", seed, ""),
    ];
    items.extend(digests(bench));
    items
}

/// The series of `reports` judged by `--fail-on` and `--until`.
pub fn judged(args: &CrashArgs, reports: &[CutReport]) -> Vec<JudgedSeries> {
    let rule = SeriesRule {
        fail_on: &args.fail_on,
        until: args.series.until,
    };
    reports.iter().map(|report| rule.judge(report)).collect()
}

/// The folder `out` for a page: that it can be written is known before the first guest.
pub fn folder(out: &Path) -> Outcome<ReportFolder> {
    ReportFolder::new(Some(out), "", &CRASH_FILES, now_unix())
}
