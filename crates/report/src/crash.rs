//! The page of series of power cuts: who survived, how often, how badly, how to see it again.
//!
//! The rows, the sentence that sums them up, and their CSV; `crash_page` writes the HTML.

use crate::documents::crash::judged::JudgedSeries;
use crate::files::RunStamp;
use crate::page::Item;
use crate::rows::line;
use serde::Serialize;

/// What a page of power cuts shows; its JSON form is that of `study run --json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CrashPage {
    /// What was asked.
    pub title: String,
    /// Where the experiment comes from; empty if from here.
    pub source: String,
    /// How it was made, in paragraphs.
    pub method: Vec<String>,
    /// Series of one fault set and workload together.
    pub groups: Vec<CrashGroup>,
    /// What was promised, once for each filesystem and mount.
    pub promises: Vec<Promises>,
    /// Card, board, kernel, versions.
    pub environment: Vec<Item>,
    /// The exact command.
    pub reproduce: String,
    /// When it was made, and what its user calls it by.
    #[serde(skip)]
    pub run: RunStamp,
    /// Its series judged, with every cut; empty for a study, which judges none.
    #[serde(skip)]
    pub judged: Vec<JudgedSeries>,
}

/// The series of one fault set and workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CrashGroup {
    /// The fault set in words.
    pub faults: String,
    /// What each of its faults does.
    pub meaning: Vec<String>,
    /// The workload in words.
    pub workload: String,
    /// One for each filesystem and mount.
    pub rows: Vec<CrashRow>,
    /// Series that could not be made, and why.
    pub failed: Vec<String>,
}

/// One series.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CrashRow {
    /// Name of the filesystem in the catalogue.
    pub fs: String,
    /// Mount in a word; empty where there is only one.
    pub mount: String,
    /// All its options.
    pub options: String,
    /// Number of the series.
    pub series: String,
    /// Cuts, or iterations without a cut.
    pub cuts: u64,
    /// What a user meets, in a sentence that follows its name; empty if nobody counted.
    pub met: String,
    /// After so many a promise was broken.
    pub broken: CountWithInterval,
    /// After so many something durable was lost, promised or not.
    pub lost: CountWithInterval,
    /// After so many it needed its checker, or more.
    pub fsck: CountWithInterval,
    /// After so many it could not be mounted again.
    pub unfixable: CountWithInterval,
    /// Files that were not as last written, a cut.
    pub files_wrong: f64,
    /// Median time of the first mount, recovery included, in milliseconds.
    pub mount_median_ms: Option<f64>,
    /// Longest time of the first mount, in milliseconds.
    pub mount_worst_ms: Option<f64>,
    /// Median time of the filesystem's checker when it changes nothing, in milliseconds; none if it
    /// has none or that was not run.
    pub check_median_ms: Option<f64>,
    /// The longest repair.
    pub repair_worst_ms: Option<f64>,
    /// It was made on a real device: nobody knows what that programmed into its flash.
    pub measured: bool,
    /// Seconds of the workload: virtual ones, or measured.
    pub virtual_s: f64,
    /// Those against the first mount's of this filesystem.
    pub time_ratio: Option<f64>,
    /// Bytes that the workload wrote to the card.
    pub written_bytes: u64,
    /// Those against the first mount's.
    pub written_ratio: Option<f64>,
    /// Bytes that the card programmed into its flash for them.
    pub programmed_bytes: u64,
    /// Those against the first mount's.
    pub programmed_ratio: Option<f64>,
    /// What became of the filesystem, best first.
    pub conditions: Vec<ConditionCount>,
    /// What became of files and directories, all cuts together, best first; all outcomes.
    pub files: Vec<FileCount>,
    /// What became of the system in how many runs, where the card failed while it ran; best first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub systems: Vec<FileCount>,
    /// The worst cuts.
    pub worst: Vec<WorstCase>,
}

/// How many, and the 95 % interval of their share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CountWithInterval {
    /// Times it happened.
    pub count: u64,
    /// Lower end of the share.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// How often something became of a filesystem.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ConditionCount {
    /// In words.
    pub condition: String,
    /// How bad: 0 whole, 1 needs its checker, 2 data lost, 3 gone, 4 the kernel failed.
    pub severity: u8,
    /// Cuts after which it was so.
    pub count: u64,
}

/// What became of so many files and directories.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct FileCount {
    /// In words.
    pub outcome: String,
    /// How many, all cuts together.
    pub count: u64,
}

/// A cut worth looking at.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct WorstCase {
    /// Number of the cut and where it lies.
    pub place: String,
    /// What became of the filesystem.
    pub condition: String,
    /// It broke a promise.
    pub broken: bool,
    /// Time of the first mount, recovery included, in milliseconds; none if it failed.
    pub mount_ms: Option<f64>,
    /// What was found.
    pub findings: Vec<String>,
    /// The command that shows it again; empty if nothing was kept.
    pub replay: String,
    /// Requests and promises around it, in the order of time.
    pub timeline: Vec<CrashLine>,
}

/// A line of a timeline.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CrashLine {
    /// Milliseconds from the cut on; before it below 0.
    pub ms: f64,
    /// When the card reported a request done, or would have.
    pub done_ms: Option<f64>,
    /// Number of the request; none for promises and the cut itself.
    pub request: Option<usize>,
    /// What kind of line it is, and of a request what became of it.
    pub state: LineState,
    /// What it was.
    pub what: String,
    /// What the cut left of it.
    pub left: String,
}

/// What became of a request, or what else a line tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LineState {
    /// All of it is there, and the card had said so.
    #[default]
    Whole,
    /// All of it is there, but the card had not said so.
    Unreported,
    /// A part of it is there.
    Torn,
    /// Nothing of it is there.
    Lost,
    /// It came after the cut.
    NeverCame,
    /// A call returned.
    Promise,
    /// The power goes.
    Cut,
    /// Requests that are not shown.
    LeftOut,
}

/// What a filesystem promises over a power cut.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Promises {
    /// Filesystem and mount.
    pub of: String,
    /// Its mount options.
    pub options: String,
    /// In words; empty for none beyond fsync of a file.
    pub promised: Vec<String>,
    /// Where that is written.
    pub source: String,
}

impl CrashRow {
    /// Filesystem and mount.
    pub fn name(&self) -> String {
        match self.mount.as_str() {
            "" => self.fs.clone(),
            mount => format!("{} {mount}", self.fs),
        }
    }

    /// Bytes programmed into flash for each byte written; none if nothing was written.
    pub fn write_amplification(&self) -> Option<f64> {
        let written = self.written_bytes as f64;
        (self.written_bytes > 0 && !self.measured).then(|| self.programmed_bytes as f64 / written)
    }
}

impl CrashPage {
    /// Whether what it tells was seen of real devices.
    pub fn is_measured(&self) -> bool {
        let mut rows = self.groups.iter().flat_map(|group| &group.rows);
        rows.any(|row| row.measured)
    }

    /// Who survived, in a heading and sentences: broken promises, damage nobody had excluded,
    /// and who came through whole.
    pub fn survivors(&self) -> (String, Vec<String>) {
        let (mut broke, mut hurt, mut whole) = (Vec::new(), Vec::new(), Vec::new());
        for (name, rows) in self.by_name() {
            let sum = |of: fn(&CrashRow) -> u64| rows.iter().map(|row| of(row)).sum::<u64>();
            let (cuts, broken) = (sum(|row| row.cuts), sum(|row| row.broken.count));
            let harm = sum(|row| row.lost.count).max(sum(|row| row.fsck.count));
            match (broken, harm) {
                (0, 0) => whole.push(name),
                (0, harm) => hurt.push(format!("{name} ({harm} of {cuts})")),
                (broken, _) => broke.push(format!("{name} ({broken} of {cuts})")),
            }
        }
        let all = broke.len() + hurt.len() + whole.len();
        let survivors = match whole.len() {
            n if n > NAMED => format!("{n} of {all}"),
            _ => list(&whole),
        };
        let heading = match (broke.len(), hurt.len(), whole.len()) {
            (0, 0, 0) => "Nothing was cut".to_owned(),
            (0, 0, n) if n > NAMED => format!("All {n} came through whole"),
            (0, 0, _) => format!("{survivors} came through whole"),
            (0, _, 0) => "None came through whole; no promise was broken".to_owned(),
            (0, _, _) => format!("{survivors} came through whole; no promise was broken"),
            (n, _, 0) => format!("{n} of {all} broke a promise, none came through whole"),
            (n, _, w) if w > NAMED => {
                format!("{survivors} came through whole, {n} broke a promise")
            }
            (n, ..) => format!("{survivors} came through whole; {n} of {all} broke a promise"),
        };
        let rows = self.groups.iter().flat_map(|group| &group.rows);
        let rows = rows.filter(|row| !row.met.is_empty());
        let mut said: Vec<String> = rows
            .map(|row| format!("{} {}.", row.name(), row.met))
            .collect();
        if said.len() > NAMED {
            // A study's tables have them.
            said.clear();
        }
        if !broke.is_empty() {
            said.push(format!("Broke a promise: {}.", list(&broke)));
        }
        if !hurt.is_empty() {
            let hurt = list(&hurt);
            said.push(format!(
                "Lost data or needed repair, having promised no better: {hurt}."
            ));
        }
        (heading, said)
    }

    /// The rows of each filesystem and mount, in the order of their first one.
    fn by_name(&self) -> Vec<(String, Vec<&CrashRow>)> {
        let mut all: Vec<(String, Vec<&CrashRow>)> = Vec::new();
        for row in self.groups.iter().flat_map(|group| &group.rows) {
            match all.iter_mut().find(|(name, _)| *name == row.name()) {
                Some((_, rows)) => rows.push(row),
                None => all.push((row.name(), vec![row])),
            }
        }
        all
    }
}

/// Most names in a heading that has nothing else to tell.
const NAMED: usize = 4;

/// "a, b and c".
fn list(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}

/// All series as CSV: a line each, all figures, no rounding.
pub fn crash_csv(page: &CrashPage) -> String {
    let mut text =
        "faults,workload,fs,mount,options,series,cuts,broken,broken_low,broken_high,lost,\
                    needed_fsck,unfixable,files_wrong_per_cut,mount_median_ms,mount_worst_ms,\
                    check_median_ms,repair_worst_ms,virtual_s,written_bytes,programmed_bytes,\
                    origin\n"
            .to_owned();
    for group in &page.groups {
        for row in &group.rows {
            let number = |value: Option<f64>| value.map_or(String::new(), |v| v.to_string());
            let cells = [
                group.faults.clone(),
                group.workload.clone(),
                row.fs.clone(),
                row.mount.clone(),
                row.options.clone(),
                row.series.clone(),
                row.cuts.to_string(),
                row.broken.count.to_string(),
                row.broken.low.to_string(),
                row.broken.high.to_string(),
                row.lost.count.to_string(),
                row.fsck.count.to_string(),
                row.unfixable.count.to_string(),
                row.files_wrong.to_string(),
                number(row.mount_median_ms),
                number(row.mount_worst_ms),
                number(row.check_median_ms),
                number(row.repair_worst_ms),
                row.virtual_s.to_string(),
                row.written_bytes.to_string(),
                match row.measured {
                    true => String::new(),
                    false => row.programmed_bytes.to_string(),
                },
                origin(row).to_owned(),
            ];
            line(&mut text, cells);
        }
    }
    text
}

/// Where a series was made, as studies say it.
fn origin(row: &CrashRow) -> &'static str {
    match row.measured {
        true => "measured",
        false => "modelled",
    }
}

/// What became of the filesystem after how many cuts, of how many files, and of the system in how
/// many runs on a card that failed, as CSV: a line for each series and outcome that there was.
pub fn crash_outcomes_csv(page: &CrashPage) -> String {
    let mut text = "faults,workload,fs,mount,series,of,outcome,count\n".to_owned();
    for group in &page.groups {
        for row in &group.rows {
            let cuts = row.conditions.iter();
            let cuts = cuts.map(|part| ("filesystem", &part.condition, part.count));
            let files = row.files.iter();
            let files = files.map(|part| ("file", &part.outcome, part.count));
            let systems = row.systems.iter();
            let systems = systems.map(|part| ("system", &part.outcome, part.count));
            for (of, outcome, count) in cuts.chain(files).chain(systems).filter(|part| part.2 > 0) {
                let cells = [
                    &group.faults,
                    &group.workload,
                    &row.fs,
                    &row.mount,
                    &row.series,
                    of,
                    outcome,
                    &count.to_string(),
                ];
                line(&mut text, cells.map(|cell: &str| cell));
            }
        }
    }
    text
}

/// The interval of a share in whole percent: "3 to 9 %".
pub fn interval(count: &CountWithInterval) -> String {
    let (low, high) = ((count.low * 100.0).floor(), (count.high * 100.0).ceil());
    format!("{low:.0} to {high:.0} %")
}

/// "1.2×", or nothing.
pub fn ratio(value: &Option<f64>) -> String {
    value.map_or(String::new(), |ratio| format!("{}×", short(ratio)))
}

/// Milliseconds with unit; "none" where nothing mounted.
pub fn milliseconds(value: Option<f64>) -> String {
    match value {
        None => "none".to_owned(),
        Some(ms) if ms >= 10_000.0 => format!("{} s", short(ms / 1000.0)),
        Some(ms) => format!("{} ms", short(ms)),
    }
}

/// Two or three significant digits.
pub fn short(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn count(count: u64) -> CountWithInterval {
        CountWithInterval {
            count,
            low: 0.0,
            high: 0.0167,
        }
    }

    pub(crate) fn row(fs: &str, broken: u64, fsck: u64) -> CrashRow {
        let part = |condition: &str, severity, count| ConditionCount {
            condition: condition.into(),
            severity,
            count,
        };
        let file = |outcome: &str, count| FileCount {
            outcome: outcome.into(),
            count,
        };
        CrashRow {
            fs: fs.into(),
            mount: "sync".into(),
            options: "noatime,sync".into(),
            cuts: 10,
            broken: count(broken),
            fsck: count(fsck),
            conditions: vec![part("clean", 0, 10 - fsck), part("needs check", 1, fsck)],
            files: vec![file("right", 90), file("old", 0), file("missing", 7)],
            check_median_ms: Some(30.0),
            mount_median_ms: Some(2.0),
            mount_worst_ms: Some(8.0),
            worst: vec![WorstCase {
                place: "cut 3".into(),
                findings: vec!["a<b".into()],
                replay: "whichfs crash replay 12-3".into(),
                timeline: vec![CrashLine::default()],
                ..WorstCase::default()
            }],
            ..CrashRow::default()
        }
    }

    pub(crate) fn page(rows: Vec<CrashRow>) -> CrashPage {
        CrashPage {
            groups: vec![CrashGroup {
                faults: "honest card".into(),
                rows,
                ..CrashGroup::default()
            }],
            ..CrashPage::default()
        }
    }

    #[test]
    fn a_real_device_is_not_passed_for_a_modelled_one() {
        let modelled = page(vec![row("vfat", 0, 4)]);
        let mut measured = modelled.clone();
        measured.groups[0].rows[0].measured = true;
        for (page, origin, other) in [
            (&modelled, "modelled", "Measured:"),
            (&measured, "measured", "Modelled:"),
        ] {
            let csv = crash_csv(page);
            assert!(
                csv.lines().skip(1).all(|line| line.ends_with(origin)),
                "{csv}"
            );
            assert!(!crate::crash_html(page).contains(other));
        }
        assert!(
            crash_csv(&measured)
                .lines()
                .skip(1)
                .all(|line| line.contains(",,measured"))
        );
    }

    #[test]
    fn outcomes_are_a_line_each() {
        let text = crash_outcomes_csv(&page(vec![row("vfat", 0, 4)]));
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(
            lines,
            [
                "honest card,,vfat,sync,,filesystem,clean,6",
                "honest card,,vfat,sync,,filesystem,needs check,4",
                "honest card,,vfat,sync,,file,right,90",
                "honest card,,vfat,sync,,file,missing,7",
            ]
        );
    }

    #[test]
    fn the_first_sentence_says_who_survived() {
        let (heading, said) = page(vec![
            row("ext4", 0, 0),
            row("vfat", 0, 4),
            row("f2fs", 2, 2),
        ])
        .survivors();
        assert_eq!(
            heading,
            "ext4 sync came through whole; 1 of 3 broke a promise"
        );
        assert_eq!(
            said,
            [
                "Broke a promise: f2fs sync (2 of 10).",
                "Lost data or needed repair, having promised no better: vfat sync (4 of 10)."
            ]
        );
        let (heading, said) = page(vec![row("ext4", 0, 0), row("xfs", 0, 0)]).survivors();
        assert_eq!(heading, "ext4 sync and xfs sync came through whole");
        assert!(said.is_empty());
        let all = ["a", "b", "c", "d", "e"].map(|fs| row(fs, 0, 0)).to_vec();
        assert_eq!(page(all.clone()).survivors().0, "All 5 came through whole");
        let most = [all, vec![row("f2fs", 2, 2)]].concat();
        assert_eq!(
            page(most).survivors().0,
            "5 of 6 came through whole, 1 broke a promise"
        );
    }

    #[test]
    fn csv_keeps_commas_inside() {
        let csv = crash_csv(&page(vec![row("vfat", 0, 4)]));
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[1].contains("\"noatime,sync\""), "{csv}");
        let columns = lines[0].split(',').count();
        assert_eq!(
            lines[1].replace("noatime,sync", "x").split(',').count(),
            columns
        );
    }
}
