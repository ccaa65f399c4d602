//! The page of a study of power cuts, filled series by series, and its tables for a terminal.

use super::crash::meanings;
use crate::commands::crash::Made;
use crate::commands::crash::page::promises;
use crate::commands::table;
use crate::failure::Outcome;
use crate::output;
use std::collections::BTreeMap;
use whichfs_report::{
    CrashGroup, CrashPage, CrashRow, crash_file_outcomes, files_of, ratio, short,
};
use whichfs_study::{Cell, CrashStudy};
use whichfs_units::Bytes;

/// The group of `cell`; it is made with its first series.
pub fn group<'a>(page: &'a mut CrashPage, cell: &Cell) -> &'a mut CrashGroup {
    let is =
        |group: &CrashGroup| group.faults == cell.faults.name && group.workload == cell.load.name;
    let at = page.groups.iter().position(is).unwrap_or_else(|| {
        page.groups.push(CrashGroup {
            faults: cell.faults.name.clone(),
            meaning: meanings(cell.faults),
            workload: cell.load.name.clone(),
            ..CrashGroup::default()
        });
        page.groups.len() - 1
    });
    &mut page.groups[at]
}

/// Adds a series.
pub fn add(page: &mut CrashPage, study: &CrashStudy, cell: &Cell, made: Made) {
    let mut row = made.row;
    if study.mounts.len() > 1 {
        row.mount = cell.mount.name.clone();
    }
    let of = row.name();
    if page.promises.iter().all(|promises| promises.of != of) {
        page.promises
            .push(promises(of, &row.options, &made.contract));
    }
    group(page, cell).rows.push(row);
}

/// What each mount costs against the first of the same filesystem in its group.
pub fn compare(page: &mut CrashPage) {
    for group in &mut page.groups {
        let mut first: BTreeMap<String, CrashRow> = BTreeMap::new();
        for row in &mut group.rows {
            let Some(first) = first.get(&row.fs) else {
                first.insert(row.fs.clone(), row.clone());
                continue;
            };
            let ratio = |bytes: u64, first: u64| Some(bytes as f64 / first.max(1) as f64);
            row.time_ratio = Some(row.virtual_s / first.virtual_s.max(1e-9));
            row.written_ratio = ratio(row.written_bytes, first.written_bytes);
            row.programmed_ratio = ratio(row.programmed_bytes, first.programmed_bytes);
        }
    }
}

/// Prints who survived and a table for each group.
pub fn tell(page: &CrashPage) -> Outcome {
    let (heading, said) = page.survivors();
    output::paragraph(&format!("{}: {heading}.", page.title), 0)?;
    for sentence in said {
        output::paragraph(&sentence, 0)?;
    }
    for group in &page.groups {
        output::text_line(&format!("\n{}, {}", group.faults, group.workload))?;
        let rows = group.rows.iter().map(cells).collect();
        output::text_line(&table::text(&HEAD, rows))?;
        let costs = group.rows.iter().map(costs).collect();
        output::text_line("")?;
        output::text_line(&table::text(&COSTS, costs))?;
        tell_files(&group.rows)?;
        for why in &group.failed {
            output::paragraph(&format!("not made: {why}"), 2)?;
        }
    }
    output::text_line(LEGEND)
}

/// What became of files, a column for each outcome that there was.
fn tell_files(rows: &[CrashRow]) -> Outcome {
    let outcomes = crash_file_outcomes(rows);
    if outcomes.is_empty() {
        return Ok(());
    }
    let head = [&["files"], &outcomes[..]].concat();
    let cells = rows.iter().map(|row| {
        let counts = outcomes.iter().map(|name| files_of(row, name).to_string());
        [row.name()].into_iter().chain(counts).collect()
    });
    output::text_line("")?;
    output::text_line(&table::text(&head, cells.collect()))
}

const HEAD: [&str; 10] = [
    "", "cuts", "broke", "95 %", "lost", "fsck", "dead", "files", "mount", "worst",
];

const COSTS: [&str; 8] = [
    "",
    "takes s",
    "",
    "writes",
    "",
    "programs",
    "",
    "amplification",
];

const LEGEND: &str = "
broke: cuts after which a promise was broken; 95 %: interval of their share
lost: cuts after which durable data were lost, promised or not
fsck: those after which it needed its checker; dead: after which nothing mounts it
files: not as last written, a cut (below: what became of them, all cuts
together, allowed or not); mount, worst: median and longest in ms
takes: virtual seconds of the workload; programs: what the card wrote into its
flash for it; each against the first mount of the same filesystem
amplification: programs / writes";

/// One line, narrow enough for 80 columns.
fn cells(row: &CrashRow) -> Vec<String> {
    let whole = |ms: Option<f64>| ms.map_or("none".to_owned(), |ms| format!("{ms:.0}"));
    let (low, high) = (row.broken.low * 100.0, row.broken.high * 100.0);
    vec![
        row.name(),
        row.cuts.to_string(),
        row.broken.count.to_string(),
        format!("{:.0}-{:.0}", low.floor(), high.ceil()),
        row.lost.count.to_string(),
        row.fsck.count.to_string(),
        row.unfixable.count.to_string(),
        // Files are looked at where it mounts.
        row.mount_median_ms
            .map_or("none".to_owned(), |_| format!("{:.1}", row.files_wrong)),
        whole(row.mount_median_ms),
        whole(row.mount_worst_ms),
    ]
}

/// What the workload cost.
fn costs(row: &CrashRow) -> Vec<String> {
    vec![
        row.name(),
        format!("{:.1}", row.virtual_s),
        ratio(&row.time_ratio),
        Bytes(row.written_bytes).to_string(),
        ratio(&row.written_ratio),
        Bytes(row.programmed_bytes).to_string(),
        ratio(&row.programmed_ratio),
        row.write_amplification().map_or("none".to_owned(), short),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_costs_against_the_first_of_its_filesystem() {
        let row = |fs: &str, virtual_s, written_bytes| CrashRow {
            fs: fs.into(),
            virtual_s,
            written_bytes,
            programmed_bytes: 2 * written_bytes,
            ..CrashRow::default()
        };
        let mut page = CrashPage {
            groups: vec![CrashGroup {
                rows: vec![
                    row("vfat", 2.0, 10),
                    row("ext4", 1.0, 10),
                    row("vfat", 5.0, 30),
                ],
                ..CrashGroup::default()
            }],
            ..CrashPage::default()
        };
        compare(&mut page);
        let rows = &page.groups[0].rows;
        assert_eq!((rows[0].time_ratio, rows[1].time_ratio), (None, None));
        assert_eq!(
            (rows[2].time_ratio, rows[2].written_ratio),
            (Some(2.5), Some(3.0))
        );
        let told = costs(&rows[2]);
        let expected = [
            "vfat", "5.0", "2.50×", "30 B", "3.00×", "60 B", "3.00×", "2.00",
        ];
        assert_eq!(told, expected);
    }
}
