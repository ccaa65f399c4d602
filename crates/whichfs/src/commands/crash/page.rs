//! A series of cuts as a row of a page, and the page's files.

use super::sums::worst_first;
use super::tell::{Report, measured_s, words};
use super::timeline::{Extent, timeline};
use crate::cli::CrashArgs;
use crate::failure::{Failure, Outcome};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use whichfs_card::Op;
use whichfs_crash::{Condition, Contract, Faults, Met, Outcome as Became, Share};
use whichfs_engine::crash::check::Result;
use whichfs_engine::crash::record::{Plan, Recorded};
use whichfs_engine::lab_executor::LabExecutor;
use whichfs_engine::places::{self, WholeFile};
use whichfs_engine::shell::quoted_os;
use whichfs_report::{
    ConditionCount, Count, CrashGroup, CrashLine, CrashPage, CrashRow, FileCount, Item, Promises,
    WorstCase, crash_csv, crash_html, crash_outcomes_csv,
};
use whichfs_units::{Bytes, MIB, Nanos};

/// Worst cases shown of each series.
const WORST: usize = 2;
/// Findings shown of each.
const FINDINGS: usize = 4;
/// Requests shown around a cut.
const SHOWN: Extent = Extent {
    before: 16,
    after: 6,
    far: 8,
};

const METHOD: &str = "The workload ran once for each filesystem, and every request that changes \
    the card was kept with its data and times. A cut is an instant of that run: the card's content \
    at that instant was mounted, read, used, checked and repaired by a guest. A cut breaks a \
    promise if what was found contradicts what that filesystem promises with these mount options.";

/// How bad a condition is: 0 whole, 1 needs its checker, 2 durable data lost, 3 it cannot be
/// mounted, 4 garbage without a word, or the kernel failed.
pub fn severity(condition: Condition) -> u8 {
    match condition {
        Condition::Clean | Condition::Recovered => 0,
        Condition::ReadOnly | Condition::NeedsCheck | Condition::Repaired => 1,
        Condition::DurableLost | Condition::RepairedWithLoss => 2,
        Condition::MountFailed | Condition::Unfixable | Condition::CardFailed => 3,
        Condition::SilentCorruption | Condition::Oops | Condition::Hang => 4,
    }
}

/// The row of a series; `series` is its number if it is kept.
pub fn row(plan: &Plan, recorded: &Recorded, series: Option<&str>, cuts: &[Result]) -> CrashRow {
    let written = recorded.timeline.log()[recorded.first..].iter();
    CrashRow {
        options: recorded.mount_options.clone(),
        series: series.unwrap_or_default().to_owned(),
        virtual_s: recorded.time.as_secs_f64(),
        written_bytes: written
            .filter(|request| request.op == Op::Write)
            .map(|request| request.bytes)
            .sum(),
        programmed_bytes: recorded.programmed_bytes,
        worst: worst(series, cuts, &|result| {
            (place(plan, recorded, result), lines(plan, recorded, result))
        }),
        ..counted(plan.candidate.name, cuts)
    }
}

/// The row of the series `series` of `fs` on a real device, mounted with `options`.
pub fn measured_row(fs: &str, options: &str, series: &str, cuts: &[Result]) -> CrashRow {
    let place = |result: &Result| {
        let place = format!("Cut {}, {}.", result.cut.number, super::tell::place(result));
        (place, Vec::new())
    };
    let first = cuts.iter().find_map(|cut| cut.measured.as_ref());
    CrashRow {
        options: options.to_owned(),
        series: series.to_owned(),
        measured: true,
        virtual_s: measured_s(cuts).unwrap_or_default(),
        written_bytes: first.map_or(0, |measured| measured.run_bytes),
        worst: worst(Some(series), cuts, &place),
        ..counted(fs, cuts)
    }
}

/// What became of `fs` after `cuts`.
fn counted(fs: &str, cuts: &[Result]) -> CrashRow {
    let total = cuts.len() as u64;
    let count = |is: &dyn Fn(&Result) -> bool| {
        let share = Share::new(cuts.iter().filter(|cut| is(cut)).count() as u64, total);
        Count {
            count: share.count,
            low: share.low,
            high: share.high,
        }
    };
    let lost = |cut: &Result| {
        let gone = [Condition::Unfixable, Condition::SilentCorruption].contains(&cut.condition);
        gone || severity(cut.condition) == 2
    };
    let fsck = |cut: &Result| {
        let class = severity(cut.condition);
        class == 1 || class == 3 || cut.condition == Condition::RepairedWithLoss
    };
    let mounts = milliseconds(cuts, |cut| cut.mount);
    let checks = milliseconds(cuts, |cut| cut.fsck_check);
    let repairs = milliseconds(cuts, |cut| cut.fsck_repair);
    CrashRow {
        fs: fs.to_owned(),
        cuts: total,
        broken: count(&|cut| cut.broken),
        met: Met::of(&cuts.iter().map(super::tell::seen).collect::<Vec<_>>()).sentence(),
        lost: count(&lost),
        fsck: count(&fsck),
        unfixable: count(&|cut| severity(cut.condition) == 3),
        files_wrong: wrong_files(cuts) as f64 / total.max(1) as f64,
        mount_median_ms: mounts.get(mounts.len() / 2).copied(),
        mount_worst_ms: mounts.last().copied(),
        check_median_ms: checks.get(checks.len() / 2).copied(),
        repair_worst_ms: repairs.last().copied(),
        conditions: conditions(cuts),
        files: files(cuts),
        ..CrashRow::default()
    }
}

/// Times of so many cuts in milliseconds, the shortest first.
pub fn milliseconds(cuts: &[Result], of: impl Fn(&Result) -> Option<Nanos>) -> Vec<f64> {
    let mut times: Vec<Nanos> = cuts.iter().filter_map(of).collect();
    times.sort_unstable();
    times.iter().map(|time| time.as_secs_f64() * 1e3).collect()
}

/// What became of files, all cuts together.
fn files(cuts: &[Result]) -> Vec<FileCount> {
    let of = |outcome| {
        let counts = cuts.iter().filter_map(|cut| cut.outcomes.get(&outcome));
        FileCount {
            outcome: words(&outcome),
            count: counts.sum(),
        }
    };
    Became::ALL.map(of).to_vec()
}

/// Files that were not as last written, all cuts together.
fn wrong_files(cuts: &[Result]) -> u64 {
    let outcomes = cuts.iter().flat_map(|cut| &cut.outcomes);
    outcomes
        .filter(|(outcome, _)| **outcome != Became::Right)
        .map(|(_, count)| count)
        .sum()
}

fn conditions(cuts: &[Result]) -> Vec<ConditionCount> {
    let mut counts: BTreeMap<(u8, Condition), u64> = BTreeMap::new();
    for cut in cuts {
        *counts
            .entry((severity(cut.condition), cut.condition))
            .or_default() += 1;
    }
    let parts = counts.into_iter();
    parts
        .map(|((severity, condition), count)| ConditionCount {
            condition: words(&condition),
            severity,
            count,
        })
        .collect()
}

/// Where a cut lies, and what was around it.
type DeviceHost<'a> = dyn Fn(&Result) -> (String, Vec<CrashLine>) + 'a;

/// The worst cuts: broken promises first, then by what became of the filesystem.
fn worst(series: Option<&str>, cuts: &[Result], around: &DeviceHost<'_>) -> Vec<WorstCase> {
    let bad = worst_first(cuts);
    // One that is bad without a broken promise is enough.
    let told = bad.iter().filter(|cut| cut.broken).count().clamp(1, WORST);
    let cases = bad.into_iter().take(told);
    cases
        .map(|result| (result, around(result)))
        .map(|(result, (place, timeline))| WorstCase {
            place,
            condition: words(&result.condition),
            broken: result.broken,
            mount_ms: result.mount.map(|time| time.as_secs_f64() * 1e3),
            findings: findings(result),
            replay: match series {
                Some(series) => format!("whichfs crash replay {series}-{}", result.cut.number),
                None => String::new(),
            },
            timeline,
        })
        .collect()
}

fn place(plan: &Plan, recorded: &Recorded, result: &Result) -> String {
    let cut = &result.cut;
    if plan.spec.is_whole() {
        return format!("Iteration {}, after the whole run.", cut.number);
    }
    format!(
        "Cut {}, {} request {}, at {}. Of {} operations the first {} were durable as a whole, {} \
         had begun.",
        cut.number,
        words(&cut.place),
        cut.request,
        cut.at,
        recorded.run.operations,
        result.window.0,
        result.window.1
    )
}

/// What was found, in words: why it does not mount or work, then files.
fn findings(result: &Result) -> Vec<String> {
    let checked = &result.checked;
    let failed = [
        ("does not mount", &checked.mounted),
        ("does not work", &checked.usable),
        ("does not mount after the repair", &checked.mounted_again),
    ];
    let failed = failed.into_iter().filter_map(|(what, done)| match done {
        Some(Err(why)) => Some(format!("{what}: {why}")),
        _ => None,
    });
    let files = match checked.findings.is_empty() {
        false => &checked.findings,
        true => &checked.findings_again,
    };
    let files = files
        .iter()
        .map(|file| format!("{}: {}: {}", file.path, words(&file.outcome), file.what));
    let complains = checked.check.filter(|status| *status != 0);
    let check = complains.map(|status| format!("its checker ends with {status}"));
    let mut all: Vec<String> = failed.chain(check).chain(files).collect();
    let more = all.len().saturating_sub(FINDINGS);
    all.truncate(FINDINGS);
    if more > 0 {
        all.push(format!("and {more} more"));
    }
    all
}

fn lines(plan: &Plan, recorded: &Recorded, result: &Result) -> Vec<CrashLine> {
    if plan.spec.is_whole() {
        return Vec::new();
    }
    let cut = result.cut.at.as_secs_f64();
    let ms = |at: Nanos| (at.as_secs_f64() - cut) * 1e3;
    let lines = timeline(plan, recorded, &result.cut, SHOWN).into_iter();
    let lines = lines.map(|line| CrashLine {
        ms: ms(line.at),
        done_ms: line.done.map(ms),
        request: line.request,
        state: line.state,
        what: line.what,
        left: line.left,
    });
    lines.collect()
}

/// What `contract` promises of a filesystem so mounted.
pub fn promises(of: String, options: &str, contract: &Contract) -> Promises {
    Promises {
        of,
        options: options.to_owned(),
        promised: contract.sentences().map(str::to_owned).collect(),
        source: contract.source.clone(),
    }
}

/// The page of `crash run`.
pub fn of_run(
    bench: &LabExecutor,
    args: &CrashArgs,
    faults: &Faults,
    rows: Vec<CrashRow>,
    reports: &[Report],
) -> CrashPage {
    let names: Vec<&str> = faults.iter().map(|fault| fault.name()).collect();
    let meaning = faults.iter().map(|fault| fault.facts().meaning.to_owned());
    let group = CrashGroup {
        faults: match names.is_empty() {
            true => "honest card".to_owned(),
            false => names.join(", "),
        },
        meaning: meaning.collect(),
        workload: format!("workload {}", args.workload),
        rows,
        failed: Vec::new(),
    };
    CrashPage {
        title: format!("Power cuts on {}", bench.card.name),
        method: vec![METHOD.to_owned()],
        groups: vec![group],
        promises: promised(reports),
        environment: environment(bench, args.partition * MIB, args.seed),
        reproduce: command_line(),
        ..CrashPage::default()
    }
}

/// What was promised of each filesystem.
pub fn promised(reports: &[Report]) -> Vec<Promises> {
    let of = |report: &Report| promises(report.fs.clone(), &report.mount_options, &report.contract);
    reports.iter().map(of).collect()
}

/// What the series ran on.
pub fn environment(bench: &LabExecutor, partition_bytes: u64, seed: u64) -> Vec<Item> {
    let item = |label: &str, value: String, source: &str| Item {
        label: label.to_owned(),
        value,
        source: source.to_owned(),
        ..Item::default()
    };
    let card = format!("{}: {}", bench.card.name, bench.card.profile.title());
    let kernel = format!("sha256 {}", &bench.kernel.sha256[..16]);
    vec![
        item("whichfs", env!("CARGO_PKG_VERSION").to_owned(), ""),
        item("kernel", bench.kernel.release.clone(), &kernel),
        item("card", card, bench.card_state.name()),
        item("partition", Bytes(partition_bytes).to_string(), ""),
        item("board", bench.board.file.title.clone(), "one core modelled"),
        item("clock", bench.clock.name(&bench.board), "virtual time"),
        item("seed", seed.to_string(), ""),
    ]
}

/// This run's command.
pub fn command_line() -> String {
    let words = std::env::args_os().skip(1).map(|word| quoted_os(&word));
    let words: Vec<String> = ["whichfs".to_owned()].into_iter().chain(words).collect();
    words.join(" ")
}

/// The files of a page: that they can be written is known before the first guest.
pub struct Files {
    path: PathBuf,
    html: WholeFile,
    csv: WholeFile,
    outcomes: WholeFile,
}

impl Files {
    /// Those in the directory `out`, which is made.
    pub fn new(out: &Path) -> Outcome<Files> {
        if out.exists() && !out.is_dir() {
            return Err(Failure::input(format!(
                "--out {}: it is no directory; name another",
                out.display()
            )));
        }
        places::make(out)?;
        let path = out.join("report.html");
        Ok(Files {
            html: WholeFile::new(&path)?,
            csv: WholeFile::new(&out.join("results.csv"))?,
            outcomes: WholeFile::new(&out.join("outcomes.csv"))?,
            path,
        })
    }

    /// Writes them; where the page is.
    pub fn write(self, page: &CrashPage) -> Outcome<PathBuf> {
        self.html.write(crash_html(page).as_bytes())?;
        self.csv.write(crash_csv(page).as_bytes())?;
        self.outcomes.write(crash_outcomes_csv(page).as_bytes())?;
        Ok(self.path)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use whichfs_engine::crash::fixture::result;

    #[test]
    fn conditions_are_counted_best_first() {
        let of = |number, condition| Result {
            condition,
            ..result(number)
        };
        let cuts = [
            of(0, Condition::DurableLost),
            of(1, Condition::NeedsCheck),
            of(2, Condition::Recovered),
            of(3, Condition::NeedsCheck),
        ];
        let told: Vec<(String, u64)> = conditions(&cuts)
            .into_iter()
            .map(|part| (part.condition, part.count))
            .collect();
        let told: Vec<(&str, u64)> = told.iter().map(|(c, n)| (c.as_str(), *n)).collect();
        assert_eq!(
            told,
            [("recovered", 1), ("needs check", 2), ("durable lost", 1)]
        );
    }

    #[test]
    fn what_is_wrong_is_told_in_a_few_lines() {
        let mut bad = result(1);
        bad.checked.mounted = Some(Err("EIO".into()));
        bad.outcomes = BTreeMap::from([(Became::Right, 5), (Became::Missing, 2)]);
        assert_eq!(findings(&bad)[0], "does not mount: EIO");
        assert_eq!(wrong_files(&[bad]), 2);
    }
}
