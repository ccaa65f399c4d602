//! Sweeps of block sizes: one as dd's table, several cards side by side, as text, Markdown, CSV and
//! a page.

use crate::document::Document;
use crate::number::short;
use crate::rows::escaped;
use crate::text::{clean, table};
use askama::Template;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write as _;
use whichfs_probe::{Sweep, SweepDirection, SweepOrder, sweep_sizes};
use whichfs_units::{Bytes, Nanos, counted};

/// Most sweeps that stand side by side.
pub const SWEEPS_MAX: usize = 8;

/// Characters of the column of block sizes, with the space after it.
const BLOCK_COLUMN: usize = 9;

impl Document for Sweep {
    const NAME: &'static str = "probe --sweep";
}

/// Sweeps of several cards side by side.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Sweeps {
    /// Each as its command told it.
    pub sweeps: Vec<Sweep>,
}

impl Document for Sweeps {
    const NAME: &'static str = "report of sweeps";
}

/// What is measured, in words, and its key.
const KINDS: [(&str, SweepOrder, SweepDirection); 4] = [
    (
        "read in order",
        SweepOrder::Sequential,
        SweepDirection::Read,
    ),
    ("read at random", SweepOrder::Random, SweepDirection::Read),
    (
        "written in order",
        SweepOrder::Sequential,
        SweepDirection::Write,
    ),
    (
        "written at random",
        SweepOrder::Random,
        SweepDirection::Write,
    ),
];

/// The rows of one sweep: block, then MB/s and the median time of each kind that was measured.
pub fn sweep_text(sweep: &Sweep, width: usize) -> String {
    let kinds = KINDS.iter().filter(|(_, order, direction)| {
        let mut cells = sweep.cells.iter();
        cells.any(|cell| (cell.order, cell.direction) == (*order, *direction))
    });
    let kinds: Vec<_> = kinds.collect();
    let mut head = vec!["block"];
    head.extend(kinds.iter().map(|(words, ..)| *words));
    let rows = sweep_sizes().map(|size| {
        let cells = kinds.iter().map(|(_, order, direction)| {
            let cell = sweep.cell(size, *order, *direction);
            let rate = cell.and_then(|cell| cell.mb_s);
            let time = cell.and_then(|cell| cell.median_us);
            match (rate, time) {
                (Some(rate), Some(us)) => {
                    format!("{} MB/s, {}", short(rate), Nanos((us * 1e3) as u64))
                }
                _ => "–".to_owned(),
            }
        });
        [Bytes(size).to_string()].into_iter().chain(cells).collect()
    });
    let mut text = format!(
        "{}\n\n{}\n",
        heading(sweep),
        table(&head, rows.collect(), width)
    );
    for event in &sweep.events {
        let _ = writeln!(text, "{}", clean(event));
    }
    text
}

/// What was swept, and what that cost.
fn heading(sweep: &Sweep) -> String {
    let ended = sweep.ended.as_ref();
    let ended = ended.map_or(String::new(), |why| format!("; stopped: {why}"));
    clean(&format!(
        "{}, {}: MB/s and the median time of a block; {} read, {} written in {:.0} s{ended}",
        sweep.target,
        Bytes(sweep.capacity_bytes),
        Bytes(sweep.read_bytes),
        Bytes(sweep.write_bytes),
        sweep.seconds
    ))
}

/// A table of several sweeps for one kind: MB/s of each block and card.
struct Kind {
    words: &'static str,
    /// Block, then each card's rate.
    rows: Vec<(String, Vec<String>)>,
}

fn kinds(sweeps: &[Sweep]) -> Vec<Kind> {
    let of_kind = |(words, order, direction): &(&'static str, SweepOrder, SweepDirection)| {
        let rate = |sweep: &Sweep, size| sweep.cell(size, *order, *direction)?.mb_s;
        let any = |size| sweeps.iter().any(|sweep| rate(sweep, size).is_some());
        let rows = sweep_sizes().filter(|size| any(*size)).map(|size| {
            let each = sweeps.iter().map(|sweep| rate(sweep, size));
            let each = each.map(|rate| rate.map_or("–".to_owned(), short));
            (Bytes(size).to_string(), each.collect())
        });
        let rows: Vec<_> = rows.collect();
        (!rows.is_empty()).then_some(Kind { words, rows })
    };
    KINDS.iter().filter_map(of_kind).collect()
}

/// Names of the cards, each once: those that are called alike have a number.
fn names(sweeps: &[Sweep]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for sweep in sweeps {
        let own = clean(&sweep.target);
        let number = 1 + names
            .iter()
            .filter(|name| name.split(" #").next() == Some(&own))
            .count();
        names.push(match number {
            1 => own,
            number => format!("{own} #{number}"),
        });
    }
    names
}

/// Several sweeps side by side for a terminal; where their names leave no room for figures, they
/// stand above, and columns have numbers.
pub fn sweeps_text(sweeps: &[Sweep], width: usize) -> String {
    let mut names = names(sweeps);
    let room = width.saturating_sub(BLOCK_COLUMN) / names.len().max(1);
    let mut legend = String::new();
    if names.iter().any(|name| name.chars().count() + 2 > room) {
        for (at, name) in names.iter_mut().enumerate() {
            let number = (at + 1).to_string();
            let _ = writeln!(legend, "{number}: {name}");
            *name = number;
        }
        legend.push('\n');
    }
    let head: Vec<&str> = ["block"]
        .into_iter()
        .chain(names.iter().map(String::as_str))
        .collect();
    let tables = kinds(sweeps).into_iter().map(|kind| {
        let rows = kind
            .rows
            .into_iter()
            .map(|(size, cells)| [vec![size], cells].concat());
        let title = format!("MB/s {}", kind.words);
        format!("{title}\n{}\n", table(&head, rows.collect(), width))
    });
    legend + &tables.collect::<Vec<_>>().join("\n")
}

/// Several sweeps side by side in Markdown.
pub fn sweeps_markdown(sweeps: &[Sweep]) -> String {
    let names: Vec<String> = names(sweeps).iter().map(|name| escaped(name)).collect();
    let names = names.join(" | ");
    let mut out = String::new();
    for kind in kinds(sweeps) {
        let rule = "---|".repeat(sweeps.len() + 1);
        let _ = write!(out, "MB/s {}\n\n| block | {names} |\n|{rule}\n", kind.words);
        for (size, cells) in kind.rows {
            let _ = writeln!(out, "| {size} | {} |", cells.join(" | "));
        }
        out.push('\n');
    }
    out
}

/// Every cell of `sweeps` as a line of CSV.
///
/// # Errors
/// None in practice: it is written to memory.
pub fn sweeps_csv(sweeps: &[Sweep]) -> Result<String, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record([
        "target",
        "block_bytes",
        "order",
        "direction",
        "blocks",
        "mb_s",
        "median_us",
        "longest_us",
    ])?;
    let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    for sweep in sweeps {
        for cell in &sweep.cells {
            let order = match cell.order {
                SweepOrder::Sequential => "sequential",
                SweepOrder::Random => "random",
            };
            let direction = match cell.direction {
                SweepDirection::Read => "read",
                SweepDirection::Write => "write",
            };
            writer.write_record([
                sweep.target.clone(),
                cell.block_bytes.to_string(),
                order.to_owned(),
                direction.to_owned(),
                cell.blocks.to_string(),
                number(cell.mb_s),
                number(cell.median_us),
                number(cell.longest_us),
            ])?;
        }
    }
    let bytes = writer.into_inner().map_err(|error| error.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[derive(Template)]
#[template(path = "sweeps.html")]
struct View {
    title: String,
    names: Vec<String>,
    headings: Vec<String>,
    kinds: Vec<Kind>,
}

/// Several sweeps side by side as a page.
pub fn sweeps_html(sweeps: &[Sweep]) -> String {
    crate::text::rendered(&View {
        title: format!("Rates of {} by block size", counted(sweeps.len(), "card")),
        names: names(sweeps),
        headings: sweeps.iter().map(heading).collect(),
        kinds: kinds(sweeps),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use whichfs_probe::{SweepCell, Writing};

    fn swept(target: &str, factor: f64) -> Sweep {
        let cell = |block_bytes: u64, order| SweepCell {
            block_bytes,
            order,
            direction: SweepDirection::Read,
            blocks: 2,
            mb_s: Some(factor * block_bytes as f64 / 1e5),
            median_us: Some(100.0),
            longest_us: Some(120.0),
        };
        let orders = [SweepOrder::Sequential, SweepOrder::Random];
        Sweep {
            target: target.to_owned(),
            identity: "id".to_owned(),
            capacity_bytes: 1 << 32,
            writing: Writing::Never,
            seed: 1,
            cells: orders
                .iter()
                .flat_map(|order| [512, 65_536].map(|size| cell(size, *order)))
                .collect(),
            read_bytes: 1 << 20,
            write_bytes: 0,
            seconds: 3.0,
            events: Vec::new(),
            ended: None,
        }
    }

    #[test]
    fn one_card_is_ddss_table_and_what_was_not_measured_is_left_out() {
        let text = sweep_text(&swept("sd", 1.0), 100);
        assert!(text.starts_with("sd, 4 GiB: MB/s"), "{text}");
        assert!(
            text.contains("read at random") && !text.contains("written in order"),
            "{text}"
        );
        let line = text
            .lines()
            .find(|line| line.starts_with("64 KiB"))
            .unwrap();
        assert!(line.contains("0.66 MB/s, 100"), "{line}");
    }

    #[test]
    fn cards_stand_side_by_side_in_every_form() {
        let all = [swept("sd", 1.0), swept("sd", 2.0), swept("a<b>", 3.0)];
        let text = sweeps_text(&all, 100);
        assert!(
            text.contains("sd #2") && text.contains("MB/s read at random"),
            "{text}"
        );
        let narrow = sweeps_text(&all, 26);
        assert!(
            narrow.starts_with("1: sd\n2: sd #2\n3: a<b>\n\n"),
            "{narrow}"
        );
        let markdown = sweeps_markdown(&all);
        assert!(
            markdown.contains("| 64 KiB | 0.66 | 1.31 | 1.97 |"),
            "{markdown}"
        );
        assert!(
            markdown.contains("| a&lt;b> |") && !markdown.contains("a<b>"),
            "{markdown}"
        );
        let csv = sweeps_csv(&all).unwrap();
        assert_eq!(csv.lines().count(), 1 + 3 * 4);
        assert!(
            csv.lines()
                .nth(1)
                .unwrap()
                .starts_with("sd,512,sequential,read,2,0.00512,100"),
            "{csv}"
        );
        let html = sweeps_html(&all);
        assert!(
            html.contains("a&#60;b&#62;") && !html.contains("a<b>"),
            "text of a card is escaped"
        );
        assert_eq!(html.matches("<table>").count(), 2);
    }
}
