//! How well fits foretell what they have not seen: points left out, sizes left out, other runs of
//! the same card or model. The smoothness of residuals is that of the other cards each time.

use crate::points::{ComparedPoint, CurvePlace, Errors};
use crate::residual::{LeftOut, Remains, Smoothness, left_out, predicted};
use crate::row::{FitRow, pair};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Standard deviations between which 80 % of a normal distribution are.
const OF_80_PERCENT: f64 = 1.2816;

/// What is kept back of one run, beside what is foretold of it.
struct Kept {
    /// All points, with the residual of all.
    seen: Vec<ComparedPoint>,
    /// Each with the residual of the others.
    left_out: Vec<LeftOut>,
    /// Of the fit to few sizes.
    of_few: Vec<ComparedPoint>,
}

/// The tables of runs and of pairs of runs.
pub(crate) fn tables(rows: &[FitRow]) -> String {
    let remains: Vec<Remains> = rows
        .iter()
        .map(|row| Remains::of(&row.all.of_family))
        .collect();
    let smoothness = |without: Option<&str>| {
        let of_others = rows.iter().zip(&remains);
        let of_others = of_others.filter(|(row, _)| without != Some(card(row.name)));
        Smoothness::estimated(&of_others.map(|(_, remains)| remains).collect::<Vec<_>>())
    };
    let mut each: BTreeMap<&str, Smoothness> = BTreeMap::new();
    let kept: Vec<Kept> = rows
        .iter()
        .map(|row| {
            let without = card(row.name);
            let smoothness = each
                .entry(without)
                .or_insert_with(|| smoothness(Some(without)));
            Kept {
                seen: predicted(&row.all.of_family, smoothness),
                left_out: left_out(&row.all.of_family, smoothness),
                of_few: predicted(&row.some.of_family, smoothness),
            }
        })
        .collect();
    let mut text = of_runs(rows, &kept, &smoothness(None));
    text.push_str(&of_pairs(rows));
    text
}

/// The card of a run: runs of one card, or of units of one model, differ in the number behind the
/// underscore.
fn card(run: &str) -> &str {
    match run.rsplit_once('_') {
        Some((card, number)) if number.parse::<u32>().is_ok() => card,
        _ => run,
    }
}

fn of_runs(rows: &[FitRow], kept: &[Kept], smoothness: &Smoothness) -> String {
    let mut text = String::from(
        "\n## Points and sizes kept back\n\n\
         Errors as above; how smooth residuals are is estimated from the other cards each time.\n\n\
         | run | family alone | with residual | each point left out | all points, fit of 3 sizes | \
         other sizes of 3, family alone | with residual |\n|---|---|---|---|---|---|---|\n",
    );
    let mut together: [Vec<ComparedPoint>; 6] = Default::default();
    for (row, kept) in rows.iter().zip(kept) {
        let others = |points: &[ComparedPoint]| {
            let others = points.iter().filter(|point| !point.fitted);
            others.copied().collect::<Vec<_>>()
        };
        let parts = [
            row.all.of_family.clone(),
            kept.seen.clone(),
            kept.left_out.iter().map(|one| one.point).collect(),
            row.some.of_family.clone(),
            others(&row.some.of_family),
            others(&kept.of_few),
        ];
        let _ = writeln!(text, "| {} | {} |", row.name, cells(&parts));
        for (sum, part) in together.iter_mut().zip(parts) {
            sum.extend(part);
        }
    }
    let _ = writeln!(text, "| **all** | {} |", cells(&together));
    let deviations: Vec<f64> = kept
        .iter()
        .flat_map(|kept| &kept.left_out)
        .map(|one| one.deviations.abs())
        .collect();
    let inside = deviations
        .iter()
        .filter(|off| **off <= OF_80_PERCENT)
        .count();
    let Smoothness {
        scatter,
        octaves,
        aus,
        common,
        orders,
    } = smoothness;
    let _ = writeln!(
        text,
        "\nOf the points left out {:.0} % are in the 80 % interval of the residual. Of all cards \
         together: scatter {scatter:.2} of the variance, lengths {octaves:.2} octaves and {aus:.2} \
         doublings of AUs, {common:.2} common to all numbers of AUs, {orders:.2} to both orders.",
        inside as f64 / deviations.len().max(1) as f64 * 100.0
    );
    text
}

/// How far the card of one run is off the points of another.
fn of_pairs(rows: &[FitRow]) -> String {
    let mut text = String::from(
        "\n## Another run of the same card or model\n\n\
         The card fitted to one run against the points of another: what a residual knows of the \
         card and not of the run.\n\n\
         | fitted | measured | family alone | with residual |\n|---|---|---|---|\n",
    );
    let mut together: [Vec<ComparedPoint>; 2] = Default::default();
    for (a, b) in pairs(rows) {
        let parts = [
            against(&a.all.of_family, &b.all.compared),
            against(&a.all.compared, &b.all.compared),
        ];
        let _ = writeln!(text, "| {} | {} | {} |", a.name, b.name, cells(&parts));
        for (sum, part) in together.iter_mut().zip(parts) {
            sum.extend(part);
        }
    }
    let _ = writeln!(text, "| **all** | | {} |", cells(&together));
    text
}

fn pairs<'a, 'b>(rows: &'a [FitRow<'b>]) -> impl Iterator<Item = (&'a FitRow<'b>, &'a FitRow<'b>)> {
    let others = |a: &'a FitRow<'b>| {
        let same = move |b: &&FitRow| a.name != b.name && card(a.name) == card(b.name);
        rows.iter().filter(same).map(move |b| (a, b))
    };
    rows.iter().flat_map(others)
}

/// The points of `measured` beside what `model` does there.
fn against(model: &[ComparedPoint], measured: &[ComparedPoint]) -> Vec<ComparedPoint> {
    let modelled: BTreeMap<CurvePlace, f64> = model
        .iter()
        .map(|point| (point.place, point.modelled_ns))
        .collect();
    let beside = |point: &ComparedPoint| {
        let modelled_ns = *modelled.get(&point.place)?;
        Some(ComparedPoint {
            modelled_ns,
            ..*point
        })
    };
    measured.iter().filter_map(beside).collect()
}

/// Errors of each part, in the cells of a row.
fn cells(parts: &[Vec<ComparedPoint>]) -> String {
    let cell = |part: &Vec<ComparedPoint>| {
        let errors = Errors::over(part, |_| true);
        errors.map_or_else(|| "–".to_owned(), |of| pair(&of))
    };
    parts.iter().map(cell).collect::<Vec<String>>().join(" | ")
}
