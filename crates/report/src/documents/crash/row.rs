//! A series of cuts as a row of a page.

use super::CutRun;
use super::series::{CutReport, cut_place, measured_s, name_words};
use super::sums::worst_first;
use super::timeline::{Extent, timeline};
use crate::crash::{
    ConditionCount, CountWithInterval, CrashLine, CrashRow, FileCount, Promises, WorstCase,
};
use std::collections::BTreeMap;
use whichfs_card::RequestKind;
use whichfs_crash::{
    Contract, CutResult, FilesystemCondition, Met, PathOutcome, Share, is_without_cut,
};
use whichfs_units::Nanos;

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

/// How bad a condition is: 0 whole, 1 needs its checker, 2 durable data lost, 3 it cannot be
/// mounted, 4 garbage without a word, or the kernel failed.
pub(super) fn severity(condition: FilesystemCondition) -> u8 {
    match condition {
        FilesystemCondition::Clean | FilesystemCondition::Recovered => 0,
        FilesystemCondition::ReadOnly
        | FilesystemCondition::NeedsCheck
        | FilesystemCondition::Repaired => 1,
        FilesystemCondition::DurableLost | FilesystemCondition::RepairedWithLoss => 2,
        FilesystemCondition::MountFailed
        | FilesystemCondition::Unfixable
        | FilesystemCondition::CardFailed => 3,
        FilesystemCondition::SilentCorruption
        | FilesystemCondition::Oops
        | FilesystemCondition::Hang => 4,
    }
}

/// The row of a series; `series` is its number if it is kept.
pub fn row(run: &CutRun, series: Option<&str>, cuts: &[CutResult]) -> CrashRow {
    let written = run.timeline.log()[run.first..].iter();
    CrashRow {
        options: run.mount_options.to_owned(),
        series: series.unwrap_or_default().to_owned(),
        virtual_s: run.time.as_secs_f64(),
        written_bytes: written
            .filter(|request| request.op == RequestKind::Write)
            .map(|request| request.bytes)
            .sum(),
        programmed_bytes: run.programmed_bytes,
        worst: worst(series, cuts, &|result| {
            (place(run, result), lines(run, result))
        }),
        ..counted(run.fs, cuts)
    }
}

/// The row of the series `series` of `fs` on a real device, mounted with `options`.
pub fn measured_row(fs: &str, options: &str, series: &str, cuts: &[CutResult]) -> CrashRow {
    let place = |result: &CutResult| {
        let place = format!("Cut {}, {}.", result.cut.number, cut_place(result));
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
fn counted(fs: &str, cuts: &[CutResult]) -> CrashRow {
    let total = cuts.len() as u64;
    let count = |is: &dyn Fn(&CutResult) -> bool| {
        let share = Share::new(cuts.iter().filter(|cut| is(cut)).count() as u64, total);
        CountWithInterval {
            count: share.count,
            low: share.low,
            high: share.high,
        }
    };
    let lost = |cut: &CutResult| {
        let gone = [
            FilesystemCondition::Unfixable,
            FilesystemCondition::SilentCorruption,
        ]
        .contains(&cut.condition);
        gone || severity(cut.condition) == 2
    };
    let fsck = |cut: &CutResult| {
        let class = severity(cut.condition);
        class == 1 || class == 3 || cut.condition == FilesystemCondition::RepairedWithLoss
    };
    let mounts = milliseconds(cuts, |cut| cut.mount);
    let checks = milliseconds(cuts, |cut| cut.fsck_check);
    let repairs = milliseconds(cuts, |cut| cut.fsck_repair);
    CrashRow {
        fs: fs.to_owned(),
        cuts: total,
        broken: count(&|cut| cut.broken),
        met: Met::of(&cuts.iter().map(CutResult::seen).collect::<Vec<_>>()).sentence(),
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
        systems: super::live::counts(cuts),
        ..CrashRow::default()
    }
}

/// Times of so many cuts in milliseconds, the shortest first.
pub(super) fn milliseconds(
    cuts: &[CutResult],
    of: impl Fn(&CutResult) -> Option<Nanos>,
) -> Vec<f64> {
    let mut times: Vec<Nanos> = cuts.iter().filter_map(of).collect();
    times.sort_unstable();
    times.iter().map(|time| time.as_secs_f64() * 1e3).collect()
}

/// What became of files, all cuts together.
fn files(cuts: &[CutResult]) -> Vec<FileCount> {
    let of = |outcome| {
        let counts = cuts.iter().filter_map(|cut| cut.outcomes.get(&outcome));
        FileCount {
            outcome: name_words(&outcome),
            count: counts.sum(),
        }
    };
    PathOutcome::ALL.map(of).to_vec()
}

/// Files that were not as last written, all cuts together.
fn wrong_files(cuts: &[CutResult]) -> u64 {
    let outcomes = cuts.iter().flat_map(|cut| &cut.outcomes);
    outcomes
        .filter(|(outcome, _)| **outcome != PathOutcome::Right)
        .map(|(_, count)| count)
        .sum()
}

fn conditions(cuts: &[CutResult]) -> Vec<ConditionCount> {
    let mut counts: BTreeMap<(u8, FilesystemCondition), u64> = BTreeMap::new();
    for cut in cuts {
        *counts
            .entry((severity(cut.condition), cut.condition))
            .or_default() += 1;
    }
    let parts = counts.into_iter();
    parts
        .map(|((severity, condition), count)| ConditionCount {
            condition: name_words(&condition),
            severity,
            count,
        })
        .collect()
}

/// Where a cut lies, and what was around it.
type LinesAround<'a> = dyn Fn(&CutResult) -> (String, Vec<CrashLine>) + 'a;

/// The worst cuts: broken promises first, then by what became of the filesystem.
fn worst(series: Option<&str>, cuts: &[CutResult], around: &LinesAround<'_>) -> Vec<WorstCase> {
    let bad = worst_first(cuts);
    // One that is bad without a broken promise is enough.
    let told = bad.iter().filter(|cut| cut.broken).count().clamp(1, WORST);
    let cases = bad.into_iter().take(told);
    cases
        .map(|result| (result, around(result)))
        .map(|(result, (place, timeline))| WorstCase {
            place,
            condition: name_words(&result.condition),
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

fn place(run: &CutRun, result: &CutResult) -> String {
    let cut = &result.cut;
    if is_without_cut(run.faults) {
        let ended = match &result.live {
            Some(live) => format!("the system: {}", name_words(&live.outcome)),
            None => "after the whole run".to_owned(),
        };
        return format!("Iteration {}, {ended}.", cut.number);
    }
    format!(
        "Cut {}, {} request {}, at {}. Of {} operations the first {} were durable as a whole, {} \
         had begun.",
        cut.number,
        name_words(&cut.place),
        cut.request,
        cut.at,
        run.run.operations,
        result.window.0,
        result.window.1
    )
}

/// What was found, in words: why it does not mount or work, then files.
fn findings(result: &CutResult) -> Vec<String> {
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
    let files = files.iter().map(|file| {
        format!(
            "{}: {}: {}",
            file.path,
            name_words(&file.outcome),
            file.what
        )
    });
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

fn lines(run: &CutRun, result: &CutResult) -> Vec<CrashLine> {
    if is_without_cut(run.faults) {
        return Vec::new();
    }
    let cut = result.cut.at.as_secs_f64();
    let ms = |at: Nanos| (at.as_secs_f64() - cut) * 1e3;
    let lines = timeline(run, &result.cut, SHOWN).into_iter();
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
pub fn promises_of(of: String, options: &str, contract: &Contract) -> Promises {
    Promises {
        of,
        options: options.to_owned(),
        promised: contract.sentences().map(str::to_owned).collect(),
        source: contract.source.clone(),
    }
}

/// What was promised of each filesystem.
pub fn promised(reports: &[CutReport]) -> Vec<Promises> {
    let of = |report: &CutReport| {
        promises_of(report.fs.clone(), &report.mount_options, &report.contract)
    };
    reports.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::fixture::result;
    use super::*;

    #[test]
    fn conditions_are_counted_best_first() {
        let of = |number, condition| CutResult {
            condition,
            ..result(number)
        };
        let cuts = [
            of(0, FilesystemCondition::DurableLost),
            of(1, FilesystemCondition::NeedsCheck),
            of(2, FilesystemCondition::Recovered),
            of(3, FilesystemCondition::NeedsCheck),
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
        bad.outcomes = BTreeMap::from([(PathOutcome::Right, 5), (PathOutcome::Missing, 2)]);
        assert_eq!(findings(&bad)[0], "does not mount: EIO");
        assert_eq!(wrong_files(&[bad]), 2);
    }
}
