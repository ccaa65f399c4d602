//! The verdict in a terminal: who, how sure, why, the picture, how to apply it.

use crate::excluded::{Group, failed, groups};
use crate::number::{duration, p_best, scale_of, short};
use crate::settling;
use crate::text::{clean, cut, interval_bar, wrap};
use comfy_table::{Cell, CellAlignment, Table, presets};
use std::fmt::Write as _;
use whichfs_decide::{Excluded, FigureOrigin, Grade, MetricInfo, Ranked, Verdict, kinds_sentence};
use whichfs_units::counted;

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

/// The first line of the answer, and what belongs to it: how sure, whose trials failed, what is
/// to be minded.
pub(crate) fn answer(verdict: &Verdict) -> (String, Vec<String>) {
    let sentences = sureness(verdict).into_iter().chain(failed(verdict));
    let sentences = sentences.chain(reservations(verdict));
    (winner(verdict), sentences.collect())
}

/// What is to be minded: what the winner's figures leave out, what nobody measured, and whether
/// the figures are modelled, and how well.
fn reservations(verdict: &Verdict) -> Vec<String> {
    let caveats = verdict
        .advised()
        .map_or(&[][..], |advised| &advised.caveats);
    let mut said: Vec<String> = caveats
        .iter()
        .map(|caveat| format!("Mind: {caveat}."))
        .collect();
    said.extend(measured_whole(verdict));
    if !verdict.unmeasured.is_empty() && !verdict.ranking.is_empty() {
        let each = verdict.unmeasured.iter();
        let each = each.map(|one| format!("{} ({:.0} %)", one.label, one.share * 100.0));
        let names = each.collect::<Vec<_>>().join(", ");
        said.push(format!("Not measured: {names}; the other weights decide."));
    }
    let stated = verdict.card_uncertainty * 100.0;
    let fit = verdict.fit_error.map_or(String::new(), |fit| {
        format!(
            ", the model is off by {} % in the median and {} % at the 90th percentile",
            short(fit.median * 100.0),
            short(fit.p90 * 100.0)
        )
    });
    said.push(match verdict.origin {
        FigureOrigin::Modelled => {
            format!("Figures are modelled; the card's are taken for ±{stated:.0} %{fit}.")
        }
        other => format!("Figures are {}.", other.word()),
    });
    said
}

/// The first line of the answer.
pub(crate) fn winner(verdict: &Verdict) -> String {
    let Some(advised) = verdict.advised() else {
        return "No candidate qualifies".to_owned();
    };
    let name = &advised.candidate;
    match &verdict.advice {
        Some(advice) if advice.among.is_empty() => format!("Use {name} (by the standard)"),
        Some(_) => format!("Use {name} (a tie)"),
        None if is_undecided(verdict) => format!("Undecided: {name} leads by one seed"),
        None => format!("Use {name}"),
    }
}

/// Whether there is a contest of which one seed is all that is known.
fn is_undecided(verdict: &Verdict) -> bool {
    let first = verdict.ranking.first();
    verdict.ranking.len() > 1 && first.is_some_and(|first| first.seeds < 2)
}

/// How sure, who ties, and on what it rests.
pub(crate) fn sureness(verdict: &Verdict) -> Vec<String> {
    let Some(first) = verdict.ranking.first() else {
        return vec!["Every candidate is excluded; the reasons are below.".to_owned()];
    };
    let mut sentences = advice(verdict);
    let trials = format!(
        "after {} ({} {} in {})",
        counted(verdict.trials, "trial"),
        duration(verdict.virtual_s),
        match verdict.origin {
            FigureOrigin::Measured => "on the device",
            FigureOrigin::Modelled | FigureOrigin::Published => "of virtual time",
        },
        duration(verdict.wall_s)
    );
    let p = (p_best(verdict).first()).map_or(String::new(), |p| p.replace('%', " %"));
    let advised = verdict.advised().unwrap_or(first);
    let errors = match &verdict.discrepancy {
        Some(errors) => format!(
            " (8 of 10 published ratios are within {:.1} times of the lab's)",
            errors.of_eight_in_ten()
        ),
        None => String::new(),
    };
    sentences.push(match first.p_best {
        None => format!("No other candidate qualifies, {trials}."),
        Some(_) if is_undecided(verdict) => format!(
            "One seed decides nothing: --seeds {} or more does, {trials}.",
            whichfs_decide::plan::LEAST
        ),
        Some(_) if advised.candidate == first.candidate => {
            format!("Best with a probability of {p}{errors}, {trials}.")
        }
        Some(_) => format!(
            "{} measures best with a probability of {p}{errors}, {trials}.",
            first.candidate
        ),
    });
    if let (None, Some(second)) = (&verdict.advice, verdict.ranking.get(1)) {
        sentences.push(format!(
            "The second, {}, is {} times behind on the weighted average.",
            second.candidate,
            format_args!("{:.2}", first.score / second.score.max(1e-9))
        ));
    }
    sentences.extend(kinds_sentence(&verdict.kinds));
    sentences.extend(verdict.settling.as_ref().map(settling::sentence));
    if let Some(baseline) = &verdict.baseline {
        sentences.push(format!(
            "If you just use {}: {}.",
            baseline.candidate, baseline.told
        ));
    }
    sentences
}

/// Which to take where scores do not decide, and why.
fn advice(verdict: &Verdict) -> Vec<String> {
    let Some(advice) = &verdict.advice else {
        return Vec::new();
    };
    let name = &advice.candidate;
    let mut sentences = Vec::new();
    sentences.push(match advice.among.split_last() {
        Some((last, others)) => format!(
            "{} or {last}: no difference that you would notice ({} the noise floor of {:.0} %). \
             Take {name}, because {}.",
            others.join(", "),
            match verdict.spread_of(&advice.among) < verdict.noise_floor {
                true => "within",
                false => "each to the next within",
            },
            (verdict.noise_floor - 1.0) * 100.0,
            advice.because
        ),
        None => format!(
            "Take {name}, because {} ({}).",
            advice.because, advice.source
        ),
    });
    sentences.extend(advice.deviation.iter().map(|said| format!("{said}.")));
    sentences
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

/// Where the winner's figures leave something out: the answer without it.
pub(crate) fn measured_whole(verdict: &Verdict) -> Option<String> {
    let without = verdict.without.as_ref()?;
    let (last, others) = without.left_out.split_last()?;
    let those = match others.is_empty() {
        true => last.clone(),
        false => format!("{} and {last}", others.join(", ")),
    };
    Some(format!(
        "The figures of {those} leave something out (caveats) that score and probability do not \
         count; of the others {} is the best ({}).",
        without.winner,
        crate::percents(&[without.p_best])[0].replace('%', " %")
    ))
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
