//! What became of a series of cuts, for a person.

use super::page::milliseconds;
use super::sums::worst_first;
use crate::cli::CrashArgs;
use crate::commands::table;
use crate::failure::{Kind, Outcome, exit_code};
use crate::output;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use whichfs_crash::{Bound, Condition, Contract, Met, Outcome as Became, Seen, Share};
use whichfs_engine::crash::check::Result;
use whichfs_engine::crash::record::{Plan, Recorded};
use whichfs_units::counted;

/// Results of one filesystem.
#[derive(Serialize)]
pub struct Report {
    /// Number of the series: `whichfs crash replay` takes it. None where an image was given.
    pub series: Option<String>,
    /// Filesystem.
    pub fs: String,
    /// Options it was mounted with.
    pub mount_options: String,
    /// What it promises.
    pub contract: Contract,
    /// Requests of the run that could be cut; a real device does not show them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<usize>,
    /// Virtual seconds of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub virtual_s: Option<f64>,
    /// Seconds of the run on a real device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured_s: Option<f64>,
    /// The call at which the run ended because the card had refused a write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// What a user meets, whatever was promised.
    pub met: Met,
    /// What became of the filesystem after how many cuts.
    pub conditions: BTreeMap<Condition, Share>,
    /// What became of how many files, all cuts together.
    pub outcomes: BTreeMap<Became, u64>,
    /// Cuts after which it broke a promise.
    pub broken: Share,
    /// Time of the first mount, recovery included, in milliseconds.
    pub mount_median_ms: Option<f64>,
    /// The longest.
    pub mount_worst_ms: Option<f64>,
    /// Median time of the checker when it changes nothing, in milliseconds.
    pub check_median_ms: Option<f64>,
    /// The longest repair.
    pub repair_worst_ms: Option<f64>,
    /// Each cut.
    pub cuts: Vec<Result>,
}

/// What a report begins with.
pub struct Head {
    /// Number of the series.
    pub series: String,
    /// Filesystem.
    pub fs: String,
    /// Options it was mounted with.
    pub mount_options: String,
    /// What it promises.
    pub contract: Contract,
}

impl Report {
    /// The report of all `cuts` of a recorded run.
    pub fn new(plan: &Plan, recorded: &Recorded, cuts: Vec<Result>) -> Report {
        let head = Head {
            series: plan.spec.id(),
            fs: plan.candidate.name.to_owned(),
            mount_options: recorded.mount_options.clone(),
            contract: recorded.contract.clone(),
        };
        Report {
            requests: Some(recorded.timeline.log().len() - recorded.first),
            virtual_s: Some(recorded.time.as_secs_f64()),
            measured_s: None,
            ended: recorded.ended.clone(),
            ..Report::measured(head, cuts)
        }
    }

    /// The report of all `cuts` of a real device.
    pub fn measured(head: Head, cuts: Vec<Result>) -> Report {
        let total = cuts.len() as u64;
        let mut conditions: BTreeMap<Condition, u64> = BTreeMap::new();
        let mut outcomes = BTreeMap::new();
        for result in &cuts {
            *conditions.entry(result.condition).or_default() += 1;
            for (outcome, count) in &result.outcomes {
                *outcomes.entry(*outcome).or_default() += count;
            }
        }
        let mounts = milliseconds(&cuts, |cut| cut.mount);
        let checks = milliseconds(&cuts, |cut| cut.fsck_check);
        let repairs = milliseconds(&cuts, |cut| cut.fsck_repair);
        Report {
            series: Some(head.series),
            fs: head.fs,
            mount_options: head.mount_options,
            contract: head.contract,
            requests: None,
            virtual_s: None,
            measured_s: measured_s(&cuts),
            ended: None,
            met: Met::of(&cuts.iter().map(seen).collect::<Vec<_>>()),
            conditions: conditions
                .into_iter()
                .map(|(condition, count)| (condition, Share::new(count, total)))
                .collect(),
            outcomes,
            broken: Share::new(
                cuts.iter().filter(|result| result.broken).count() as u64,
                total,
            ),
            mount_median_ms: mounts.get(mounts.len() / 2).copied(),
            mount_worst_ms: mounts.last().copied(),
            check_median_ms: checks.get(checks.len() / 2).copied(),
            repair_worst_ms: repairs.last().copied(),
            cuts,
        }
    }
}

/// What a user would see of a cut.
pub fn seen(cut: &Result) -> Seen {
    Seen {
        condition: cut.condition,
        broken: cut.broken,
        read_error: cut
            .outcomes
            .get(&Became::ReadError)
            .is_some_and(|count| *count > 0),
        faults: cut.checked.check.is_some_and(|status| status != 0),
    }
}

/// Prints how far the bound of `--until` is shown.
pub fn tell_bound(args: &CrashArgs, reports: &[Report]) -> Outcome {
    let Some(bound) = args.until.filter(|_| !args.json) else {
        return Ok(());
    };
    for report in reports {
        let harmed = report.met.harmed;
        let said = match bound.clean_cuts_needed(harmed.count, harmed.of) {
            0 => format!("{}: {bound} is shown: harm after {harmed}", report.fs),
            more => format!(
                "{}: {bound} is not shown: harm after {harmed}; {} without harm would still be \
                 needed",
                report.fs,
                counted(more, "cut")
            ),
        };
        output::paragraph(&said, 0)?;
    }
    Ok(())
}

/// 1 if a cut did what `--fail-on` names or the bound of `--until` is not shown, else 0.
pub fn code_of(args: &CrashArgs, reports: &[Report]) -> u8 {
    let failed = |report: &Report| {
        let mut cuts = report.cuts.iter().map(seen);
        let harmed = report.met.harmed;
        let shown = |bound: Bound| bound.clean_cuts_needed(harmed.count, harmed.of) == 0;
        cuts.any(|cut| args.fail_on.iter().any(|harm| cut.has(*harm)))
            || !args.until.is_none_or(shown)
    };
    match reports.iter().any(failed) {
        true => exit_code(Kind::No),
        false => 0,
    }
}

/// Prints a report.
pub fn tell(report: &Report) -> Outcome {
    let options = match report.mount_options.as_str() {
        "" => "no mount options",
        options => options,
    };
    output::text_line("")?;
    let cuts = counted(report.cuts.len(), "cut");
    let of = match (report.requests, report.virtual_s) {
        (Some(requests), Some(seconds)) => format!(
            "among {} in {seconds:.1} s of virtual time",
            counted(requests, "request")
        ),
        _ => format!(
            "of a run of {:.1} s, measured on a real device",
            report.measured_s.unwrap_or_default()
        ),
    };
    output::paragraph(&format!("{} {}.", report.fs, report.met.sentence()), 0)?;
    output::paragraph(&format!("{} ({options}), {cuts} {of}", report.fs), 0)?;
    if let Some(call) = &report.ended {
        output::paragraph(
            &format!("the card refused writes, and the run ended with {call}"),
            2,
        )?;
    }
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
    if let (Some(check), Some(repair)) = (report.check_median_ms, report.repair_worst_ms) {
        output::text_line(&format!(
            "its checker: median {check:.1} ms; longest repair {repair:.1} ms"
        ))?;
    }
    let again = report.cuts.iter().filter(|cut| !cut.recovery.is_empty());
    match again.count() {
        0 => {}
        again => output::text_line(&format!("cut again while it recovered: {again}"))?,
    }
    output::text_line(&format!(
        "broke its promises: {} of {} ({})",
        report.broken.count,
        report.broken.of,
        percent(&report.broken)
    ))?;
    if let Some(series) = &report.series {
        output::text_line(&format!(
            "look at a cut: whichfs crash replay {series}-NUMBER"
        ))?;
    }
    worst_cases(report)
}

/// The worst cuts that broke a promise, with the command that shows each again.
fn worst_cases(report: &Report) -> Outcome {
    const SHOWN: usize = 3;
    let worst = worst_first(&report.cuts).into_iter();
    for result in worst.filter(|result| result.broken).take(SHOWN) {
        let cut = &result.cut;
        output::text_line(&format!(
            "  cut {} ({}): {}",
            cut.number,
            place(result),
            words(&result.condition),
        ))?;
        let checked = &result.checked;
        if let Some(Err(why)) = &checked.mounted {
            output::paragraph(&format!("    does not mount: {why}"), 6)?;
        }
        let findings = checked.findings.iter().chain(&checked.findings_again);
        let mut told = BTreeSet::new();
        let broken = findings
            .filter(|finding| finding.broken && told.insert((&finding.path, &finding.what)));
        for finding in broken.take(SHOWN) {
            let outcome = words(&finding.outcome);
            let told = format!("    {}: {outcome}: {}", finding.path, finding.what);
            output::paragraph(&told, 6)?;
        }
        if let Some(series) = &report.series {
            let number = cut.number;
            output::text_line(&format!(
                "    again: whichfs crash replay {series}-{number}"
            ))?;
        }
    }
    Ok(())
}

/// Seconds of a whole run on a real device.
pub fn measured_s(cuts: &[Result]) -> Option<f64> {
    let mut all = cuts.iter().filter_map(|cut| cut.measured.as_ref());
    all.next().map(|measured| measured.run.as_secs_f64())
}

/// Where a cut lies, in words.
pub fn place(result: &Result) -> String {
    let cut = &result.cut;
    match &result.measured {
        None => format!(
            "{} request {}, at {}",
            words(&cut.place),
            cut.request,
            cut.at
        ),
        Some(measured) => format!(
            "by {}, {} after the workload began, {} of {} promises told",
            measured.power, cut.at, measured.promises, measured.of_promises
        ),
    }
}

/// A name as JSON has it, in words.
pub fn words(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name.replace('_', " "),
        other => format!("{other:?}"),
    }
}
