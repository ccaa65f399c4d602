//! A study of power cuts: what it runs, and about how long that takes.

use super::paragraphs;
use crate::document::Document;
use crate::text::table;
use schemars::JsonSchema;
use serde::Serialize;
use whichfs_study::{CrashStudy, Mount};
use whichfs_units::{Bytes, counted};

/// Seconds of one core for a cut with everything, of workloads of 16 to 32 MiB
/// (docs/results.md: 0.2 to 0.5); larger ones take longer.
const CORE_S_OF_A_CUT: f64 = 0.5;
/// Seconds for the run that is cut, which one core makes.
const S_OF_A_RUN: f64 = 3.0;

/// A study of power cuts, and about how long it takes.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CrashStudyShown<'a> {
    #[serde(flatten)]
    study: &'a CrashStudy,
    /// Series of the matrix.
    series: usize,
    /// About so many seconds on this machine.
    expected_s: f64,
    /// Cores of this machine.
    #[serde(skip)]
    cores: usize,
}

impl Document for CrashStudyShown<'_> {
    const NAME: &'static str = "study show crash";
}

impl<'a> CrashStudyShown<'a> {
    /// The study on a machine with so many cores.
    pub fn new(study: &'a CrashStudy, cores: usize) -> CrashStudyShown<'a> {
        let series = study.cells().len();
        CrashStudyShown {
            study,
            series,
            expected_s: expected(series, study.cuts, cores),
            cores,
        }
    }
}

/// The study in lines of at most `width` columns.
pub fn crash_study_definition(shown: &CrashStudyShown, width: usize) -> String {
    let time = told_time(shown.expected_s, shown.cores);
    let rows = rows(shown.study, &time);
    table(&["study", &shown.study.name], rows, width) + "\n"
}

/// Seconds that so many series of so many cuts take on so many cores.
fn expected(series: usize, cuts: u64, cores: usize) -> f64 {
    let cuts = cuts as f64 * CORE_S_OF_A_CUT / cores.max(1) as f64;
    series as f64 * (S_OF_A_RUN + cuts)
}

fn told_time(seconds: f64, cores: usize) -> String {
    let time = match seconds {
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 5400.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    };
    format!(
        "about {time} on {}; --cuts and --fs make it shorter",
        counted(cores, "core")
    )
}

fn rows(study: &CrashStudy, time: &str) -> Vec<Vec<String>> {
    let row = |label: &str, value: String| vec![label.to_owned(), value];
    let series = study.cells().len();
    let mut rows = vec![
        row("question", study.title.clone()),
        row("source", study.source.clone()),
    ];
    let method = paragraphs(&study.method).into_iter();
    rows.extend(method.map(|text| row("method", text)));
    rows.push(row("filesystems", study.filesystems.join(", ")));
    rows.extend(study.mounts.iter().map(|way| row("mount", mount(way))));
    rows.extend(study.faults.iter().map(|set| {
        let names = match set.faults.is_empty() {
            true => "none".to_owned(),
            false => set.faults.join(", "),
        };
        row("faults", format!("{}: {names}", set.name))
    }));
    rows.extend(study.workloads.iter().map(|load| {
        let given = load.parameters.iter();
        let given: Vec<String> = given
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let text = format!("{}: {} {}", load.name, load.workload, given.join(" "));
        row("workload", text.trim_end().to_owned())
    }));
    let card = format!(
        "{}, a partition of {}",
        study.card,
        Bytes(study.partition_bytes)
    );
    rows.extend([
        row("card", card),
        row("board", study.board.clone()),
        row("seed", study.seed.to_string()),
        row("cuts", format!("{series} series of {}", study.cuts)),
        row("takes", time.to_owned()),
    ]);
    rows
}

/// A mount in a line: its options, and who has it.
fn mount(mount: &Mount) -> String {
    let options = match mount.add.as_str() {
        "" => "the catalogue's options".to_owned(),
        add => format!("+{add}"),
    };
    match mount.only.is_empty() {
        true => format!("{}: {options}", mount.name),
        false => format!("{}: {options} ({} only)", mount.name, mount.only.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_time_grows_with_series_and_cuts_and_shrinks_with_cores() {
        assert_eq!(expected(10, 226, 2), 10.0 * (3.0 + 56.5));
        assert_eq!(expected(1, 10, 0), expected(1, 10, 1));
        assert!(told_time(89.0, 2).starts_with("about 89 s on 2 cores"));
        assert!(told_time(595.0, 2).contains("10 min"));
        assert!(told_time(7200.0, 1).contains("2.0 h"));
    }

    #[test]
    fn everything_that_a_study_varies_is_shown() {
        let text = table(
            &["study", "x"],
            rows(&super::super::fixture::crash(), "long"),
            80,
        );
        for word in [
            "+dirsync",
            "(vfat only)",
            "none",
            "records=1000",
            "series of 60",
        ] {
            assert!(text.contains(word), "{word}: {text}");
        }
    }
}
