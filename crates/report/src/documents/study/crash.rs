//! The page of a study of power cuts, filled series by series, and its tables for a terminal.

use crate::crash::{CrashGroup, CrashPage, CrashRow, ratio, short};
use crate::crash_page::{crash_file_outcomes, files_of, systems_of};
use crate::document::Document;
use crate::documents::crash::promises_of;
use crate::page::Item;
use crate::text::Lines;
use std::collections::BTreeMap;
use whichfs_crash::{Contract, Fault};
use whichfs_study::{CrashSeries, CrashStudy, FaultSet};
use whichfs_units::Bytes;

impl Document for CrashPage {
    const NAME: &'static str = "study run crash";
}

/// The group of `cell`; it is made with its first series.
pub fn crash_group<'a>(page: &'a mut CrashPage, cell: &CrashSeries) -> &'a mut CrashGroup {
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

/// Adds a series, of a filesystem that promises `contract`.
pub fn add_series(
    page: &mut CrashPage,
    study: &CrashStudy,
    cell: &CrashSeries,
    mut row: CrashRow,
    contract: &Contract,
) {
    if study.mounts.len() > 1 {
        row.mount = cell.mount.name.clone();
    }
    let of = row.name();
    if page.promises.iter().all(|promises| promises.of != of) {
        page.promises.push(promises_of(of, &row.options, contract));
    }
    crash_group(page, cell).rows.push(row);
}

/// What each mount costs against the first of the same filesystem in its group.
pub fn compare_mounts(page: &mut CrashPage) {
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

/// Who survived and a table for each group, in lines of at most `width` columns.
pub fn crash_study_text(page: &CrashPage, width: usize) -> String {
    let mut out = Lines::new(width);
    let (heading, said) = page.survivors();
    out.paragraph(&format!("{}: {heading}.", page.title), 0);
    for sentence in said {
        out.paragraph(&sentence, 0);
    }
    for group in &page.groups {
        out.line(&format!("\n{}, {}", group.faults, group.workload));
        let rows = group.rows.iter().map(cells).collect();
        out.table(&HEAD, rows);
        let costs = group.rows.iter().map(costs).collect();
        out.line("");
        out.table(&COSTS, costs);
        tell_files(&mut out, &group.rows);
        for row in &group.rows {
            if let Some(systems) = systems_of(row) {
                out.paragraph(
                    &format!("{}, while the card failed: {systems}", row.name()),
                    2,
                );
            }
        }
        for why in &group.failed {
            out.paragraph(&format!("not made: {why}"), 2);
        }
    }
    out.line(LEGEND);
    out.text()
}

/// What became of files, a column for each outcome that there was.
fn tell_files(out: &mut Lines, rows: &[CrashRow]) {
    let outcomes = crash_file_outcomes(rows);
    if outcomes.is_empty() {
        return;
    }
    let head = [&["files"], &outcomes[..]].concat();
    let cells = rows.iter().map(|row| {
        let counts = outcomes.iter().map(|name| files_of(row, name).to_string());
        [row.name()].into_iter().chain(counts).collect()
    });
    out.line("");
    out.table(&head, cells.collect());
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

/// How often each series was cut, and whether the study says so.
pub fn cuts_item(made: u64, own: u64) -> Item {
    Item {
        label: "cuts".to_owned(),
        value: format!("{made} of each series"),
        source: match made == own {
            true => String::new(),
            false => format!("--cuts; the study has {own}"),
        },
        ..Item::default()
    }
}

/// What each fault of a set does.
fn meanings(set: &FaultSet) -> Vec<String> {
    let known = set
        .faults
        .iter()
        .filter_map(|name| name.parse::<Fault>().ok());
    known
        .map(|fault| format!("{}: {}", fault.name(), fault.facts().meaning))
        .collect()
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
        compare_mounts(&mut page);
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

    #[test]
    fn fewer_cuts_than_the_study_has_are_said() {
        assert_eq!(cuts_item(226, 226).source, "");
        let fewer = cuts_item(40, 226);
        assert_eq!(fewer.value, "40 of each series");
        assert!(fewer.source.contains("226"));
    }
}
