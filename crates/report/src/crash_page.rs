//! The page of series of power cuts as HTML.
//!
//! From top to bottom: one sentence; for each fault set and workload a table, bars of what became
//! of the filesystem, times of the mount that recovers, and what each mount costs; worst cases,
//! each with a timeline and the command that shows it again; what each filesystem promises;
//! method; card; reproduction.

use crate::crash::{
    ConditionCount, CountWithInterval, CrashGroup, CrashLine, CrashPage, CrashRow, WorstCase,
    milliseconds, short,
};
use crate::crash_strip::{Strip, class, strip};
use crate::documents::crash::judged::words;
use askama::Template;
use whichfs_crash::Harm;
use whichfs_units::Bytes;

/// The page as HTML.
pub fn crash_html(page: &CrashPage) -> String {
    crate::text::rendered(&View::of(page))
}

#[derive(Template)]
#[template(path = "crash.html")]
struct View<'a> {
    page: &'a CrashPage,
    heading: String,
    said: Vec<String>,
    groups: Vec<GroupView<'a>>,
    cases: Vec<CaseView<'a>>,
    /// Heads of the columns of the result.
    harms: [&'static str; 5],
}

struct GroupView<'a> {
    group: &'a CrashGroup,
    rows: Vec<RowView<'a>>,
    /// Longest mount of all, where the bars end.
    mount_end: String,
    /// Some mount differs from the first.
    compares: bool,
    /// Some mount was measured.
    mounts: bool,
    /// What became of files, as far as it did somewhere.
    outcomes: Vec<&'a str>,
    /// Some checker was run.
    checks: bool,
}

struct RowView<'a> {
    row: &'a CrashRow,
    name: String,
    /// Broke a promise, lost, needed fsck, unfixable.
    counts: [&'a CountWithInterval; 4],
    bars: Vec<Bar>,
    /// Files by the outcomes of the group.
    files: Vec<u64>,
    check: String,
    repair: String,
    told: String,
    median: String,
    worst: String,
    takes: String,
    written: String,
    programmed: String,
    amplification: String,
    /// Of the bar of the longest mount, in percent.
    median_percent: String,
    worst_percent: String,
}

struct Bar {
    severity: u8,
    x: String,
    width: String,
    title: String,
}

struct CaseView<'a> {
    name: String,
    group: &'a CrashGroup,
    case: &'a WorstCase,
    mount: String,
    lines: Vec<LineView<'a>>,
    strip: Option<Strip>,
}

struct LineView<'a> {
    line: &'a CrashLine,
    ms: String,
    class: &'static str,
}

impl<'a> View<'a> {
    fn of(page: &'a CrashPage) -> View<'a> {
        let (heading, said) = page.survivors();
        let cases = page.groups.iter().flat_map(|group| {
            let rows = group.rows.iter();
            rows.flat_map(move |row| {
                row.worst
                    .iter()
                    .map(move |case| case_view(group, row, case))
            })
        });
        View {
            page,
            heading,
            said,
            groups: page.groups.iter().map(group_view).collect(),
            cases: cases.collect(),
            harms: Harm::ALL.map(words),
        }
    }
}

fn group_view(group: &CrashGroup) -> GroupView<'_> {
    let mounts = group.rows.iter().filter_map(|row| row.mount_worst_ms);
    let end = mounts.fold(0.0, f64::max);
    let outcomes = crash_file_outcomes(&group.rows);
    GroupView {
        group,
        rows: (group.rows.iter())
            .map(|row| row_view(row, &outcomes, end))
            .collect(),
        outcomes,
        checks: group.rows.iter().any(|row| row.check_median_ms.is_some()),
        mount_end: milliseconds(Some(end)),
        compares: group.rows.iter().any(|row| row.time_ratio.is_some()),
        mounts: end > 0.0,
    }
}

/// What became of a file in some row, in the order of the rows' lists.
pub fn crash_file_outcomes(rows: &[CrashRow]) -> Vec<&str> {
    let mut all: Vec<(&str, u64)> = Vec::new();
    for part in rows.iter().flat_map(|row| &row.files) {
        match all.iter_mut().find(|(name, _)| *name == part.outcome) {
            Some((_, count)) => *count += part.count,
            None => all.push((&part.outcome, part.count)),
        }
    }
    let some = all.into_iter().filter(|(_, count)| *count > 0);
    some.map(|(name, _)| name).collect()
}

/// How many files of `row` came to `outcome`.
pub fn files_of(row: &CrashRow, outcome: &str) -> u64 {
    let of = row.files.iter().filter(|part| part.outcome == outcome);
    of.map(|part| part.count).sum()
}

fn row_view<'a>(row: &'a CrashRow, outcomes: &[&str], end: f64) -> RowView<'a> {
    let percent = |ms: Option<f64>| format!("{:.2}", ms.unwrap_or(0.0) / end.max(1e-9) * 100.0);
    RowView {
        row,
        name: row.name(),
        counts: [&row.broken, &row.lost, &row.fsck, &row.unfixable],
        bars: bars(row),
        files: outcomes.iter().map(|name| files_of(row, name)).collect(),
        check: milliseconds(row.check_median_ms),
        repair: milliseconds(row.repair_worst_ms),
        told: told(row),
        median: milliseconds(row.mount_median_ms),
        worst: milliseconds(row.mount_worst_ms),
        takes: format!("{} s", short(row.virtual_s)),
        written: Bytes(row.written_bytes).to_string(),
        programmed: match row.measured {
            true => "not known".to_owned(),
            false => Bytes(row.programmed_bytes).to_string(),
        },
        amplification: match row.measured {
            true => "not known".to_owned(),
            false => row.write_amplification().map_or("none".to_owned(), short),
        },
        median_percent: percent(row.mount_median_ms),
        worst_percent: percent(row.mount_worst_ms),
    }
}

/// What became of it, without a word for what is whole.
fn told(row: &CrashRow) -> String {
    let harm = row.conditions.iter().filter(|part| part.severity > 0);
    let harm: Vec<String> = harm
        .map(|part| format!("{} {}", part.count, part.condition))
        .collect();
    let image = match harm.is_empty() {
        true => format!("all {} whole", row.cuts),
        false => harm.join(", "),
    };
    match systems_of(row) {
        None => image,
        Some(systems) => format!("system: {systems}; then {image}"),
    }
}

/// What became of the system in how many runs, if the card failed while it ran.
pub fn systems_of(row: &CrashRow) -> Option<String> {
    let parts = row.systems.iter();
    let parts: Vec<String> = parts
        .map(|part| format!("{} {}", part.count, part.outcome))
        .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn bars(row: &CrashRow) -> Vec<Bar> {
    let mut parts: Vec<&ConditionCount> = row.conditions.iter().collect();
    parts.sort_by_key(|part| part.severity);
    let scale = 100.0 / row.cuts.max(1) as f64;
    let mut before = 0;
    let mut bars = Vec::new();
    for part in parts {
        bars.push(Bar {
            severity: part.severity.min(4),
            x: format!("{:.2}", before as f64 * scale),
            width: format!("{:.2}", part.count as f64 * scale),
            title: format!("{}: {}", part.condition, part.count),
        });
        before += part.count;
    }
    bars
}

fn case_view<'a>(group: &'a CrashGroup, row: &CrashRow, case: &'a WorstCase) -> CaseView<'a> {
    let lines = case.timeline.iter().map(|line| LineView {
        line,
        ms: format!("{:+.3}", line.ms),
        class: class(line.state),
    });
    CaseView {
        name: row.name(),
        group,
        case,
        mount: milliseconds(case.mount_ms),
        lines: lines.collect(),
        strip: strip(&case.timeline),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crash::tests::{page, row};
    use crate::documents::crash::judged::{AnnexLine, JudgedSeries};
    use crate::files::RunStamp;
    use crate::page::Item;
    use whichfs_crash::Share;

    #[test]
    fn the_page_is_one_file_that_escapes_and_shows_everything() {
        let html = crash_html(&page(vec![row("vfat", 0, 4)]));
        for part in [
            "4 needs check",
            "a&#60;b",
            "whichfs crash replay 12-3",
            "8.00 ms",
            "0 to 2 %",
            "<th class=\"n\">missing</th>",
            "30.0 ms",
        ] {
            assert!(html.contains(part), "{part}");
        }
        assert!(!html.contains("<th class=\"n\">old</th>"), "nothing was");
        for outside in ["<script", "http://", "https://", "src="] {
            assert!(!html.contains(outside), "{outside}");
        }
    }

    /// A page as for quality assurance: labelled, judged, with every cut.
    #[test]
    fn the_judged_page_has_its_result_its_run_and_every_cut_and_fits_every_width() {
        let mut page = page(vec![row("vfat", 0, 4), row("ext4", 0, 0)]);
        page.title = "Power cuts on a1-32gb".into();
        page.run = RunStamp {
            made_unix: 1_764_087_745,
            labels: vec![("requirement".into(), "REQ-<12>".into())],
        };
        let digest = "0123456789abcdef".repeat(4);
        page.environment = vec![Item {
            label: "sha256 of the lab kernel".into(),
            value: digest.clone(),
            ..Item::default()
        }];
        page.judged = ["vfat", "ext4"].map(judged).to_vec();
        page.judged[0].failed = vec!["needed repair after 4 of 10 (17 to 69 %)".into()];
        let html = crash_html(&page);
        for said in [
            "2025-11-25 16:22:25 UTC",
            "REQ-&#60;12&#62;",
            "<b>failed</b>: needed repair after 4 of 10",
            "<b>passed</b>",
            "4 of 10 (17 to 69 %)",
            "confidence of 95 %",
            "request 60, at",
            &digest,
        ] {
            assert!(html.contains(said), "{said}");
        }
        assert_eq!(
            html.matches("request 1, at").count(),
            2,
            "each cut of each series"
        );
        crate::tests::pages::check_widths(&html, "crash");
        let files = crate::crash_files(&page);
        let junit = String::from_utf8_lossy(&files[1].1).into_owned();
        for said in [
            "tests=\"2\"",
            "failures=\"1\"",
            "time=\"12.500\"",
            "name=\"requirement\"",
            "2025-11-25",
            "needed repair: 4 of 10",
            &digest,
        ] {
            assert!(junit.contains(said), "{said}\n{junit}");
        }
        let names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, crate::CRASH_FILES);
    }

    fn judged(fs: &str) -> JudgedSeries {
        let hit = if fs == "vfat" { 4 } else { 0 };
        JudgedSeries {
            fs: fs.into(),
            series: Some("12".into()),
            cuts: 10,
            seconds: 12.5,
            harms: [0, 0, hit, 0, 0]
                .map(|count| Share::new(count, 10))
                .to_vec(),
            failed: Vec::new(),
            annex: (1..=60)
                .map(|number| AnnexLine {
                    number,
                    place: format!("inside request {number}, at 1.234 s"),
                    condition: "needs check".into(),
                    harm: "needed repair".into(),
                })
                .collect(),
        }
    }

    #[test]
    fn bars_fill_the_width() {
        let bars = bars(&row("vfat", 0, 4));
        assert_eq!(
            (bars[1].x.as_str(), bars[1].width.as_str()),
            ("60.00", "40.00")
        );
    }

    #[test]
    fn a_cost_is_shown_with_what_the_flash_had_to_do() {
        let mut sync = row("vfat", 0, 4);
        (sync.written_bytes, sync.programmed_bytes) = (1 << 20, 3 << 20);
        (sync.written_ratio, sync.time_ratio) = (Some(2.5), Some(1.5));
        let html = crash_html(&page(vec![sync]));
        for part in ["1 MiB", "3 MiB", "2.50×", "1.50×", "3.00"] {
            assert!(html.contains(part), "{part}");
        }
    }

    #[test]
    fn a_case_that_was_not_kept_has_no_command() {
        let mut given = row("vfat", 0, 4);
        given.worst[0].replay.clear();
        let mut page = page(vec![given]);
        page.reproduce = "whichfs crash run".into();
        let html = crash_html(&page);
        assert!(!html.contains("<pre><code></code></pre>"));
    }
}
