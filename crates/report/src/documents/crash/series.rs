//! What became of a series of cuts.

use super::CutRun;
use super::live;
use super::row::milliseconds;
use super::sums::worst_first;
use crate::text::Lines;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use whichfs_crash::{
    Contract, CutResult, FilesystemCondition, Met, PathOutcome, Share, ShareBound, SystemOutcome,
};
use whichfs_units::counted;

/// Results of one filesystem.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CutReport {
    /// Number of the series: `whichfs crash replay` takes it. None where an image was given.
    pub series: Option<String>,
    /// Candidate whose images were judged.
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
    /// What became of the system in how many runs, where the card failed while it ran.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub live: BTreeMap<SystemOutcome, Share>,
    /// What a user meets, whatever was promised.
    pub met: Met,
    /// What became of the filesystem after how many cuts.
    pub conditions: BTreeMap<FilesystemCondition, Share>,
    /// What became of how many files, all cuts together.
    pub outcomes: BTreeMap<PathOutcome, u64>,
    /// Cuts after which it broke a promise.
    pub broken: Share,
    /// Time of the first mount, recovery included, in milliseconds.
    pub mount_median_ms: Option<f64>,
    /// Longest mount that recovers, in milliseconds; none if none succeeded.
    pub mount_worst_ms: Option<f64>,
    /// Median time of the checker when it changes nothing, in milliseconds.
    pub check_median_ms: Option<f64>,
    /// The longest repair.
    pub repair_worst_ms: Option<f64>,
    /// Instant, condition and findings of every cut.
    pub cuts: Vec<CutResult>,
}

impl CutReport {
    /// The report of all `cuts` of `fs`, mounted with `mount_options`.
    pub fn new(
        series: Option<String>,
        fs: &str,
        mount_options: &str,
        contract: Contract,
        cuts: Vec<CutResult>,
    ) -> CutReport {
        let total = cuts.len() as u64;
        let mut conditions: BTreeMap<FilesystemCondition, u64> = BTreeMap::new();
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
        CutReport {
            series,
            fs: fs.to_owned(),
            mount_options: mount_options.to_owned(),
            contract,
            requests: None,
            virtual_s: None,
            measured_s: measured_s(&cuts),
            ended: None,
            live: live::shares(&cuts),
            met: Met::of(&cuts.iter().map(CutResult::seen).collect::<Vec<_>>()),
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
    /// The report of all `cuts` of a recorded run.
    pub fn recorded(series: Option<String>, run: &CutRun, cuts: Vec<CutResult>) -> CutReport {
        CutReport {
            requests: Some(run.timeline.log().len() - run.first),
            virtual_s: Some(run.time.as_secs_f64()),
            measured_s: None,
            ended: run.ended.map(str::to_owned),
            ..CutReport::new(
                series,
                run.fs,
                run.mount_options,
                run.contract.clone(),
                cuts,
            )
        }
    }
}

/// How far `bound` is shown by each of `reports`, in lines of at most `width` columns.
pub fn bound_text(bound: ShareBound, reports: &[CutReport], width: usize) -> String {
    let mut out = Lines::new(width);
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
        out.paragraph(&said, 0);
    }
    out.text()
}

/// A report in lines of at most `width` columns.
pub fn cuts_text(report: &CutReport, width: usize) -> String {
    let mut out = Lines::new(width);
    let options = match report.mount_options.as_str() {
        "" => "no mount options",
        options => options,
    };
    out.line("");
    let each = if report.live.is_empty() { "cut" } else { "run" };
    let cuts = counted(report.cuts.len(), each);
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
    out.paragraph(&format!("{} {}.", report.fs, report.met.sentence()), 0);
    out.paragraph(&format!("{} ({options}), {cuts} {of}", report.fs), 0);
    if let Some(call) = &report.ended {
        out.paragraph(
            &format!("the card refused writes, and the run ended with {call}"),
            2,
        );
    }
    live::tell(&mut out, report);
    let rows = report.conditions.iter().map(|(condition, share)| {
        vec![
            name_words(condition),
            share.count.to_string(),
            percent(share),
        ]
    });
    out.table(&["filesystem", "cuts", "95 % interval"], rows.collect());
    let rows: Vec<Vec<String>> = report
        .outcomes
        .iter()
        .map(|(outcome, count)| vec![name_words(outcome), count.to_string()])
        .collect();
    out.table(&["files, all cuts together", "count"], rows);
    if let (Some(median), Some(worst)) = (report.mount_median_ms, report.mount_worst_ms) {
        out.line(&format!(
            "mount with recovery: median {median:.1} ms, longest {worst:.1} ms"
        ));
    }
    if let (Some(check), Some(repair)) = (report.check_median_ms, report.repair_worst_ms) {
        out.line(&format!(
            "its checker: median {check:.1} ms; longest repair {repair:.1} ms"
        ));
    }
    let again = report.cuts.iter().filter(|cut| !cut.recovery.is_empty());
    match again.count() {
        0 => {}
        again => out.line(&format!("cut again while it recovered: {again}")),
    }
    out.line(&format!(
        "broke its promises: {} of {} ({})",
        report.broken.count,
        report.broken.of,
        percent(&report.broken)
    ));
    if let Some(series) = &report.series {
        out.line(&format!(
            "look at a cut: whichfs crash replay {series}-NUMBER"
        ));
    }
    worst_cases(&mut out, report);
    out.text()
}

/// The interval of a share in whole percent.
pub(super) fn percent(share: &Share) -> String {
    let (low, high) = ((share.low * 100.0).floor(), (share.high * 100.0).ceil());
    format!("{low:.0} to {high:.0} %")
}

/// The worst cuts that broke a promise, with the command that shows each again.
fn worst_cases(out: &mut Lines, report: &CutReport) {
    const SHOWN: usize = 3;
    let worst = worst_first(&report.cuts).into_iter();
    for result in worst.filter(|result| result.broken).take(SHOWN) {
        let cut = &result.cut;
        out.line(&format!(
            "  cut {} ({}): {}",
            cut.number,
            cut_place(result),
            name_words(&result.condition),
        ));
        let checked = &result.checked;
        if let Some(Err(why)) = &checked.mounted {
            out.paragraph(&format!("    does not mount: {why}"), 6);
        }
        let findings = checked.findings.iter().chain(&checked.findings_again);
        let mut told = BTreeSet::new();
        let broken = findings
            .filter(|finding| finding.broken && told.insert((&finding.path, &finding.what)));
        for finding in broken.take(SHOWN) {
            let outcome = name_words(&finding.outcome);
            let told = format!("    {}: {outcome}: {}", finding.path, finding.what);
            out.paragraph(&told, 6);
        }
        if let Some(series) = &report.series {
            let number = cut.number;
            out.line(&format!(
                "    again: whichfs crash replay {series}-{number}"
            ));
        }
    }
}

/// Seconds of a whole run on a real device.
pub(super) fn measured_s(cuts: &[CutResult]) -> Option<f64> {
    let mut all = cuts.iter().filter_map(|cut| cut.measured.as_ref());
    all.next().map(|measured| measured.run.as_secs_f64())
}

/// Where a cut lies, in words.
pub fn cut_place(result: &CutResult) -> String {
    let cut = &result.cut;
    match &result.measured {
        None => format!(
            "{} request {}, at {}",
            name_words(&cut.place),
            cut.request,
            cut.at
        ),
        Some(measured) => format!(
            "by {}, {} after the workload began, {} of {} promises told",
            measured.power, cut.at, measured.promises, measured.of_promises
        ),
    }
}

/// A cut of a device in a line: where it lay, how long the board was away, what was found.
pub fn cut_line(result: &CutResult) -> String {
    let away = result.measured.as_ref().map(|measured| measured.away);
    let away = away.map_or(String::new(), |away| format!(", back after {away}"));
    let broken = match result.broken {
        true => "; it BROKE a promise",
        false => "",
    };
    let condition = name_words(&result.condition);
    format!("{}{away}: {condition}{broken}", cut_place(result))
}

/// A name as JSON has it, in words.
pub fn name_words(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name.replace('_', " "),
        other => format!("{other:?}"),
    }
}
