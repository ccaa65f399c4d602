//! The verdict in a terminal: who, how sure, why, the picture, how to apply it.

use crate::answer::{answer, winner};
use crate::excluded::{Group, groups};
use crate::number::{p_best, scale_of, short};
use crate::text::{clean, cut, interval_bar, wrap};
use comfy_table::{Cell, CellAlignment, Table, presets};
use std::fmt::Write as _;
use whichfs_decide::{Excluded, Grade, MetricInfo, Ranked, Verdict};

/// How a terminal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalLook {
    /// Characters in a line; below 60 it is taken as 60.
    pub width: usize,
    /// Whether grades and headings are coloured. Nothing is told by colour alone.
    pub colour: bool,
}

/// Narrowest width that the tables are made for.
const MIN_WIDTH: usize = 60;
/// Longest candidate name in a table.
const NAME: usize = 16;
/// Candidates drawn as bars above the table.
const BARS: usize = 5;
/// Width of score and probability columns with their gaps.
const SCORES: usize = 10;
/// Width of a metric's column with its gap: four digits, a space, a grade.
const METRIC: usize = 7;

/// Stand-ins for the coloured grades while the table is laid out: private-use characters,
/// one column wide, which `clean` removes from all names.
const GRADE_BASE: u32 = 0xe000;

/// The verdict as text of at most `look.width` columns, each line ended.
pub fn terminal(verdict: &Verdict, look: TerminalLook) -> String {
    let look = TerminalLook {
        width: look.width.max(MIN_WIDTH),
        ..look
    };
    let mut out = String::new();
    headline(&mut out, verdict, look);
    commands(&mut out, verdict, look);
    if !verdict.ranking.is_empty() {
        bars(&mut out, verdict, look);
        table(&mut out, verdict, look);
        why(&mut out, verdict, look);
    }
    nearest(&mut out, verdict, look);
    excluded(&mut out, verdict, look);
    out
}

/// `text` in bold where colours are wanted.
fn heading(out: &mut String, text: &str, look: TerminalLook) {
    let text = clean(text);
    let _ = match look.colour {
        true => writeln!(out, "\n\u{1b}[1m{text}\u{1b}[0m"),
        false => writeln!(out, "\n{text}"),
    };
}

fn paragraph(out: &mut String, text: &str, look: TerminalLook) {
    wrap(out, &bound(&clean(text)), "", "", look.width);
}

fn item(out: &mut String, text: &str, look: TerminalLook) {
    wrap(out, &bound(&clean(text)), "  ", "    ", look.width);
}

/// `text` with figures bound to their units by no-break spaces, which `wrap` prints as spaces.
pub(crate) fn bound(text: &str) -> String {
    let mut out = text.to_owned();
    for unit in [" %", " s)", " ms)", " min ", " h "] {
        out = out.replace(unit, &format!("\u{a0}{}", &unit[1..]));
    }
    out
}

fn headline(out: &mut String, verdict: &Verdict, look: TerminalLook) {
    paragraph(
        out,
        &format!("{}, on {}", verdict.title, verdict.card),
        look,
    );
    heading(out, &cut(&winner(verdict), look.width), look);
    for sentence in answer(verdict).1 {
        paragraph(out, &sentence, look);
    }
}

fn bars(out: &mut String, verdict: &Verdict, look: TerminalLook) {
    heading(out, &format!("Score ({})", scale_told(verdict)), look);
    let best = verdict.ranking[0].score;
    let drawn = verdict.ranking.iter().take(BARS);
    let longest = drawn
        .map(|one| one.interval[1].max(one.score))
        .fold(0.0, f64::max);
    let width = (look.width - NAME - 40).min(50);
    for ranked in verdict.ranking.iter().take(BARS) {
        let name = cut(&clean(&ranked.candidate), NAME);
        let behind = match best / ranked.score.max(1e-9) {
            ratio if ratio < 1.005 => String::new(),
            ratio => format!(", {ratio:.2}× behind"),
        };
        let [low, high] = ranked.interval;
        let drawn = interval_bar([low, high].map(|end| end / longest.max(1e-9)), width);
        let _ = writeln!(
            out,
            "  {name:NAME$} {drawn:width$} {:.2} ({low:.2} to {high:.2}){behind}",
            ranked.score
        );
    }
}

/// What a score of 1 is, and what is drawn around it.
pub(crate) fn scale_told(verdict: &Verdict) -> String {
    let scale = verdict
        .baseline
        .as_ref()
        .filter(|baseline| baseline.is_scale);
    match scale {
        Some(baseline) => format!(
            "{} is 1, higher is better; ▒: 90 % interval",
            baseline.candidate
        ),
        None => "1 is best at everything; ▒: 90 % interval".to_owned(),
    }
}

/// The metrics that fit beside the names, heaviest first.
fn fitting(verdict: &Verdict, look: TerminalLook) -> Vec<&MetricInfo> {
    let room = look.width.saturating_sub(name_width(verdict) + 1 + SCORES);
    let columns = (room + 1) / METRIC;
    let counted = verdict.metrics.iter().filter(|metric| metric.share > 0.0);
    counted.take(columns).collect()
}

fn name_width(verdict: &Verdict) -> usize {
    let names = verdict
        .ranking
        .iter()
        .map(|ranked| ranked.candidate.chars().count());
    names.max().unwrap_or(0).clamp("candidate".len(), NAME)
}

fn table(out: &mut String, verdict: &Verdict, look: TerminalLook) {
    heading(
        out,
        "All candidates (mean: the score; a letter: the grade)",
        look,
    );
    let metrics = fitting(verdict, look);
    let scales: Vec<_> = metrics
        .iter()
        .map(|metric| scale_of(verdict, &metric.metric, &metric.unit))
        .collect();
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    let mut header = vec![
        "candidate".to_owned(),
        "mean".to_owned(),
        "P of\nbest".to_owned(),
    ];
    header.extend(metrics.iter().zip(&scales).map(|(metric, scale)| {
        let direction = if metric.lower_is_better { "" } else { "↑" };
        format!(
            "{}\n{}{direction}",
            cut(&clean(&metric.short), METRIC - 1),
            cut(&clean(narrow(&scale.unit)), METRIC - 2)
        )
    }));
    table.set_header(header);
    for (ranked, p_best) in verdict.ranking.iter().zip(p_best(verdict)) {
        table.add_row(cells(ranked, p_best, &metrics, &scales));
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 1));
        if index > 0 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for line in table.lines() {
        out.push_str(&painted(line.trim_end(), look));
        out.push('\n');
    }
    legend(out, verdict, &metrics, look);
}

fn cells(
    ranked: &Ranked,
    p_best: String,
    metrics: &[&MetricInfo],
    scales: &[crate::number::Scale],
) -> Vec<Cell> {
    let mut cells = vec![
        Cell::new(cut(&clean(&ranked.candidate), NAME)),
        Cell::new(format!("{:.2}", ranked.score)),
        Cell::new(p_best),
    ];
    for (metric, scale) in metrics.iter().zip(scales) {
        let text = match (
            ranked.figures.get(&metric.metric),
            ranked.grades.get(&metric.metric),
        ) {
            (Some(figure), Some(grade)) => {
                let value = match figure.count {
                    Some(count) => format!("{}/{}", count.hits, count.of),
                    None => short(figure.value / scale.divisor),
                };
                format!("{value} {}", stand_in(*grade))
            }
            _ => "none".to_owned(),
        };
        cells.push(Cell::new(text));
    }
    cells
}

/// Units that are longer than a column, in their short form.
fn narrow(unit: &str) -> &str {
    match unit {
        "files/s" => "/s",
        other => other,
    }
}

fn stand_in(grade: Grade) -> char {
    char::from_u32(GRADE_BASE + grade as u32).unwrap_or('?')
}

/// The letter that stands for a grade, best first.
fn letter(index: usize) -> char {
    ['A', 'B', 'C', 'D', 'E', 'F'][index]
}

/// `line` with the stand-ins replaced by letters, in colour if wanted.
fn painted(line: &str, look: TerminalLook) -> String {
    // Blue to orange-red: told apart by the colour-blind; the letter says it anyway.
    const COLOURS: [&str; 6] = ["1;36", "36", "37", "33", "31", "1;31"];
    let mut out = String::new();
    for c in line.chars() {
        let index = (u32::from(c).wrapping_sub(GRADE_BASE)) as usize;
        match (index < Grade::ALL.len(), look.colour) {
            (true, true) => {
                let _ = write!(out, "\u{1b}[{}m{}\u{1b}[0m", COLOURS[index], letter(index));
            }
            (true, false) => out.push(letter(index)),
            _ => out.push(c),
        }
    }
    out
}

fn legend(out: &mut String, verdict: &Verdict, shown: &[&MetricInfo], look: TerminalLook) {
    let bounds = ["1.1×", "1.5×", "2×", "4×", "10×", ""];
    let grades = Grade::ALL
        .iter()
        .zip(bounds)
        .enumerate()
        .map(|(index, (grade, bound))| {
            let within = if bound.is_empty() {
                String::new()
            } else {
                format!(" ≤{bound}")
            };
            format!("{} {}{within}", letter(index), grade.name())
        });
    paragraph(
        out,
        &format!("{}.", grades.collect::<Vec<_>>().join(", ")),
        look,
    );
    let words = |metrics: Vec<&MetricInfo>| -> String {
        let each = metrics.into_iter().map(|metric| {
            let name = match metric.short == metric.label {
                true => metric.label.clone(),
                false => format!("{} = {}", metric.short, metric.label),
            };
            let bound = metric.enough.map_or(String::new(), |bound| {
                let sign = if metric.lower_is_better { "≤" } else { "≥" };
                let bound = crate::number::with_unit(bound, &metric.unit);
                format!("; {sign} {bound} counts alike")
            });
            format!("{name} ({:.0} %{bound})", metric.share * 100.0)
        });
        each.collect::<Vec<_>>().join(", ")
    };
    let all_lower = shown.iter().all(|metric| metric.lower_is_better);
    let direction = if all_lower {
        "Lower is better"
    } else {
        "Lower is better; ↑: higher is better"
    };
    paragraph(
        out,
        &format!("{direction}. Weights: {}.", words(shown.to_vec())),
        look,
    );
    let counted = verdict.metrics.iter().filter(|metric| metric.share > 0.0);
    let left: Vec<&MetricInfo> = counted.skip(shown.len()).collect();
    if !left.is_empty() {
        paragraph(
            out,
            &format!("Counted, not shown at this width: {}.", words(left)),
            look,
        );
    }
}

fn why(out: &mut String, verdict: &Verdict, look: TerminalLook) {
    heading(out, "Why", look);
    // The second's reasons mirror the winner's: they are left out.
    let told = verdict
        .ranking
        .iter()
        .take(4)
        .enumerate()
        .filter(|(place, _)| *place != 1);
    for (_, ranked) in told {
        for reason in &ranked.reasons {
            item(out, &format!("{reason}."), look);
        }
    }
    heading(out, "What would change it", look);
    if verdict.changes.is_empty() {
        item(
            out,
            "Doubling any one weight does not change the winner.",
            look,
        );
    }
    for change in &verdict.changes {
        item(out, &format!("{}.", sentence(&change.text)), look);
    }
}

/// `text` with a capital letter.
pub(crate) fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| {
        first.to_uppercase().collect::<String>() + characters.as_str()
    })
}

fn excluded(out: &mut String, verdict: &Verdict, look: TerminalLook) {
    if verdict.excluded.is_empty() {
        return;
    }
    let (apart, groups): (Vec<_>, Vec<_>) =
        (groups(verdict).into_iter()).partition(Group::is_measured);
    not_comparable(out, verdict, &apart, look);
    if groups.is_empty() {
        return;
    }
    heading(out, "Excluded", look);
    for group in &groups {
        let rule = match group.rule.as_str() {
            "" => String::new(),
            rule => format!(" [{rule}]"),
        };
        let names = group.candidates.join(", ");
        item(out, &format!("{names}: {}{rule}", group.why), look);
    }
    if groups.iter().any(|group| !group.rule.is_empty()) {
        let said = "In brackets: the rule. whichfs fs why NAME --for NEED tells every rule that \
                    one breaks, with its source.";
        item(out, said, look);
    }
}

/// Candidates that were measured and are not ranked: why, and their figures.
fn not_comparable(out: &mut String, verdict: &Verdict, groups: &[Group], look: TerminalLook) {
    if groups.is_empty() {
        return;
    }
    heading(out, "Not comparable", look);
    for group in groups {
        item(
            out,
            &format!("{}: {}.", group.candidates.join(", "), group.why),
            look,
        );
        let own = |one: &&Excluded| group.candidates.contains(&one.candidate);
        for one in verdict.excluded.iter().filter(own) {
            let counted = verdict.metrics.iter().filter(|metric| metric.share > 0.0);
            let each = counted.filter_map(|metric| {
                let figure = one.figures.get(&metric.metric)?;
                let value = crate::number::told(figure, &metric.unit);
                Some(format!("{} {}", metric.label, value.replace(' ', "\u{a0}")))
            });
            let figures: Vec<String> = each.collect();
            if !figures.is_empty() {
                let said = format!(
                    "{}, measured all the same: {}.",
                    one.candidate,
                    figures.join(", ")
                );
                item(out, &said, look);
            }
        }
    }
}

/// If nobody qualifies: who nearly does, and which rules exclude how many.
fn nearest(out: &mut String, verdict: &Verdict, look: TerminalLook) {
    if verdict.nearest.is_empty() {
        return;
    }
    heading(out, "The nearest that would qualify", look);
    for near in &verdict.nearest {
        let breaks = near.breaks.join(" and ");
        let allow = near.allow.join(" and ");
        item(
            out,
            &format!("{}: breaks {breaks}; {allow} lets it in.", near.candidate),
            look,
        );
    }
    heading(out, "What each rule excludes", look);
    for rule in verdict
        .rules
        .iter()
        .filter(|rule| !rule.excludes.is_empty())
    {
        item(
            out,
            &format!("{}: {}", rule.rule, rule.excludes.join(", ")),
            look,
        );
    }
}

fn commands(out: &mut String, verdict: &Verdict, look: TerminalLook) {
    if verdict.commands.is_empty() {
        return;
    }
    heading(out, "How to apply it", look);
    for command in &verdict.commands {
        // A command is never broken: a line that is copied must run.
        let _ = writeln!(out, "  {}", clean(command));
    }
}
