//! `whichfs card fit`: a profile from logs of measurements.

use super::{logs, table};
use crate::cli::FitArgs;
use crate::failure::{Failure, Outcome};
use crate::output;
use serde::Serialize;
use whichfs_curves::logs::{NO_CURVES, Remark, Run};
use whichfs_engine::cards::family_name;
use whichfs_engine::places::write_whole;
use whichfs_fit::{
    BROKEN, Errors, Fit, FitError, Jobs, Left, Options, Row, Sizes, fit, plot,
    table as report_table,
};
use whichfs_probe::{Quantity, Value, interpret};
use whichfs_units::counted;

/// Examples for `--help`.
pub const EXAMPLES: &str = "\
Examples:
  whichfs card fit flashbench.log --out mycard.toml --plot fit.svg
  whichfs card fit align.log open.log random.log   one card, a file for each test
  whichfs card fit flashbench.json --run 5_2
  whichfs card fit flashbench.json --run 5_2 --block-sizes 4096,65536,1048576
  whichfs card fit flashbench.json --report > fit.md
  whichfs choose --card ./mycard.toml            decide for the fitted card

flashbench -O of three block sizes tells the family; -O --random, -a and -f tell more. Rates of
dd, hdparm, iozone and fio are fitted too; from them alone the family is not told but composed.
Exit status 1: the card fits no family.";

/// Block sizes that `--report` fits for its test of prediction.
const REPORT_SIZES: [u64; 3] = [4096, 65_536, 1_048_576];

/// The document of `card fit`.
#[derive(Serialize)]
struct Document<'a> {
    run: &'a str,
    family: &'static str,
    /// Whether the log tells the family; if not, it is composed.
    family_told: bool,
    /// Families in the order in which they fit, the least cost first.
    families: Vec<(&'static str, f64)>,
    fitted: Option<ErrorsDocument>,
    unfitted: Option<ErrorsDocument>,
    curves: Vec<CurveDocument>,
    figures: Vec<Determined>,
    /// The curve that breaks, where the card fits no family.
    breaks: Option<String>,
    /// What of the log could not be used, and why.
    left_out: &'a [String],
    profile: &'a str,
}

/// |ln(model / measured)|.
#[derive(Serialize)]
struct ErrorsDocument {
    points: usize,
    median: f64,
    p90: f64,
    worst: f64,
}

#[derive(Serialize)]
struct CurveDocument {
    order: &'static str,
    open_aus: u32,
    fitted: Option<ErrorsDocument>,
    unfitted: Option<ErrorsDocument>,
}

#[derive(Serialize)]
struct Determined {
    figure: String,
    value: u64,
    uncertainty_percent: u64,
    source: Option<String>,
}

/// Fits one run, or all for a report.
pub fn run(args: &FitArgs) -> Outcome<u8> {
    if args.report {
        let (runs, skipped) = logs::read(&args.logs, args.json)?;
        return report(&runs, &skipped, args);
    }
    let run = logs::read_one(&args.logs, args.run.as_deref(), args.json)?;
    let found = fit(&run.curves, &run.rates, &options(&run, args, true))
        .map_err(|error| Failure::input(format!("{}: {error}", run.name)))?;
    if let Some(path) = &args.out {
        write_whole(path, found.toml.as_bytes())?;
    }
    if let Some(path) = &args.plot {
        write_whole(
            path,
            plot(&run.name, &found.compared, found.breaks.as_ref()).as_bytes(),
        )?;
    }
    match args.json {
        true => output::json(&document(&run.name, &found))?,
        false => output::text_line(&text(&run.name, &found, args))?,
    }
    Ok(u8::from(found.breaks.is_some()))
}

fn options(run: &Run, args: &FitArgs, some: bool) -> Options {
    let sizes = (some && !args.block_sizes.is_empty()).then(|| args.block_sizes.clone());
    Options {
        block_sizes: sizes,
        seed: args.seed,
        capacity_bytes: run.card.capacity_bytes,
        erase_bytes: run.erase_bytes,
        sizes: sizes_of_reads(run),
        jobs: Jobs(side_by_side),
        title: name(run),
        source: run.name.clone(),
    }
}

/// Each job on a thread of its own.
fn side_by_side(count: usize, job: &(dyn Fn(usize) + Sync)) {
    std::thread::scope(|scope| {
        for at in 0..count {
            scope.spawn(move || job(at));
        }
    });
}

/// Sizes of which a probe is sure that reads this log.
fn sizes_of_reads(run: &Run) -> Sizes {
    let found = interpret(&run.curves);
    let sure = |quantity| {
        let finding = found.get(quantity);
        let value = finding.value.filter(|_| finding.confident());
        value.map(Value::whole)
    };
    Sizes {
        page_bytes: sure(Quantity::PageBytes),
        write_unit_bytes: sure(Quantity::WriteUnitBytes),
        au_bytes: sure(Quantity::AuBytes),
    }
}

/// What the log says the card is.
fn name(run: &Run) -> String {
    let card = &run.card;
    let product = card.product.as_deref().unwrap_or("card of unknown name");
    let maker = card
        .manufacturer
        .as_deref()
        .map(|id| format!(", manufacturer {id}"));
    let date = card.date.as_deref().map(|date| format!(", {date}"));
    format!(
        "{product}{}{}",
        maker.unwrap_or_default(),
        date.unwrap_or_default()
    )
}

/// Fits every run twice, to all points and to three block sizes. `skipped`: what of the logs is
/// no run.
fn report(runs: &[Run], skipped: &[Remark], args: &FitArgs) -> Outcome<u8> {
    let mut fitted = Vec::new();
    let mut left = without_curves(skipped);
    for (at, run) in runs.iter().enumerate() {
        note!("[{}/{}] {}", at + 1, runs.len(), run.name);
        let all = options(run, args, false);
        let some = Options {
            block_sizes: Some(REPORT_SIZES.to_vec()),
            ..all.clone()
        };
        match (fit(&run.curves, &[], &all), fit(&run.curves, &[], &some)) {
            (Ok(all), Ok(some)) => fitted.push((run, all, some)),
            (Err(error), _) | (_, Err(error)) => {
                note!("  left out: {error}");
                left.push(Left {
                    name: run.name.clone(),
                    card: name(run),
                    why: why_left_out(run, &error),
                });
            }
        }
    }
    left.sort_by(|a, b| a.name.cmp(&b.name));
    let names: Vec<String> = fitted.iter().map(|(run, ..)| name(run)).collect();
    let rows: Vec<Row> = fitted
        .iter()
        .zip(&names)
        .map(|((run, all, some), card)| Row {
            name: &run.name,
            card,
            all,
            some,
        })
        .collect();
    if rows.is_empty() {
        return Err(Failure::input(
            "no run has enough points for a fit: give logs of flashbench -O, or rates of dd, \
             hdparm, iozone or fio",
        ));
    }
    output::text_line(report_table(&rows, &left).trim_end())?;
    Ok(0)
}

/// The runs of a collection that have no curves; other remarks are about parts of runs.
fn without_curves(skipped: &[Remark]) -> Vec<Left> {
    let of_run = |remark: &&Remark| remark.why.starts_with(NO_CURVES);
    let left = skipped.iter().filter(of_run).map(|remark| Left {
        name: remark.text.clone(),
        card: "–".to_owned(),
        why: remark.why.clone(),
    });
    left.collect()
}

/// Why `run` was not fitted, for the report.
fn why_left_out(run: &Run, error: &FitError) -> String {
    let curves = &run.curves;
    let writes = curves.linear.len() + curves.random.len();
    match error {
        FitError::TooFewPoints { .. } if writes == 0 && !curves.align.is_empty() => {
            "only the alignment test (flashbench -a): reads, no writes".to_owned()
        }
        error => error.to_string(),
    }
}

fn document<'a>(run: &'a str, fit: &'a Fit) -> Document<'a> {
    let determined = fit.profile.figures().map(|figure| Determined {
        figure: figure.path.to_owned(),
        value: figure.value,
        uncertainty_percent: figure.uncertainty_percent,
        source: figure.source.clone(),
    });
    Document {
        run,
        family: family_name(fit.profile.family()),
        family_told: fit.family_told,
        families: fit
            .families
            .iter()
            .map(|(of, cost)| (family_name(*of), *cost))
            .collect(),
        fitted: Errors::over(&fit.compared, |point| point.fitted).map(errors),
        unfitted: Errors::over(&fit.compared, |point| !point.fitted).map(errors),
        curves: fit
            .curves
            .iter()
            .map(|curve| CurveDocument {
                order: curve.order.name(),
                open_aus: curve.aus,
                fitted: curve.fitted.map(errors),
                unfitted: curve.unfitted.map(errors),
            })
            .collect(),
        figures: determined.collect(),
        breaks: broken(fit),
        left_out: &fit.left_out,
        profile: &fit.toml,
    }
}

fn errors(of: Errors) -> ErrorsDocument {
    ErrorsDocument {
        points: of.points,
        median: of.median,
        p90: of.p90,
        worst: of.worst,
    }
}

/// Says that the card fits no family, by how much, and which curve breaks.
fn broken(fit: &Fit) -> Option<String> {
    let found = fit.breaks.as_ref()?;
    let curve = &found.curve;
    let of_curve = curve.fitted.or(curve.unfitted).unwrap_or_default();
    let [median, p90] = BROKEN.map(percent);
    Some(format!(
        "this card fits no family: {}, where {median} % and {p90} % are the most; the curve that \
         breaks is {}: {}",
        line(&found.overall),
        curve.name(),
        line(&of_curve)
    ))
}

fn text(run: &str, fit: &Fit, args: &FitArgs) -> String {
    let mut out = format!("{run}: family {}", family_name(fit.profile.family()));
    if !fit.family_told {
        out.push_str(" (composed: the log tells neither family nor sizes, only rates)");
    }
    for what in &fit.left_out {
        out.push_str(&format!("\nleft out: {what}"));
    }
    for (what, fitted) in [("fitted", true), ("not fitted", false)] {
        if let Some(of) = Errors::over(&fit.compared, |point| point.fitted == fitted) {
            out.push_str(&format!(
                "\n{} {what}: {}",
                counted(of.points, "point"),
                line(&of)
            ));
        }
    }
    out.push_str(&format!("\n\n{}", curves_text(fit)));
    let figures = fit
        .profile
        .figures()
        .filter(|figure| figure.source.is_some());
    let rows = figures.map(|figure| {
        let uncertainty = match figure.uncertainty_percent {
            0 => String::new(),
            percent => format!("±{percent} %"),
        };
        let source = figure.source.clone().unwrap_or_default();
        vec![
            figure.path.to_owned(),
            figure.value.to_string(),
            uncertainty,
            source,
        ]
    });
    let head = ["figure", "value", "", "source"];
    out.push_str(&format!("\n\n{}", table::text(&head, rows.collect())));
    if let Some(broken) = broken(fit) {
        out.push_str(&format!("\n\n{broken}"));
    }
    match &args.out {
        Some(path) => out.push_str(&format!("\n\nprofile: {}", path.display())),
        None => out.push_str("\n\n--out FILE keeps the profile"),
    }
    out
}

/// A line for each curve.
fn curves_text(fit: &Fit) -> String {
    let rows = fit.curves.iter().map(|curve| {
        let mut row = vec![curve.name()];
        row.extend(cells(&curve.fitted));
        row.extend(cells(&curve.unfitted));
        row
    });
    let head = [
        "curve",
        "fitted",
        "90th",
        "worst",
        "not fitted",
        "90th",
        "worst",
    ];
    table::text(&head, rows.collect())
}

/// Median, 90th percentile and worst error, or nothing.
fn cells(of: &Option<Errors>) -> [String; 3] {
    of.as_ref().map_or_else(Default::default, |of| {
        [of.median, of.p90, of.worst].map(|error| format!("{} %", percent(error)))
    })
}

/// `median 3.1 %, 90th percentile 12 %, worst 40 %`.
fn line(of: &Errors) -> String {
    format!(
        "median {} %, 90th percentile {} %, worst {} %",
        percent(of.median),
        percent(of.p90),
        percent(of.worst)
    )
}

/// An error of the logarithm in percent, with two digits.
fn percent(error: f64) -> String {
    match 100.0 * error {
        p if p >= 10.0 => format!("{p:.0}"),
        p => format!("{p:.1}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whichfs_curves::{Curves, logs::Identity};

    #[test]
    fn runs_that_cannot_be_fitted_have_their_reason() {
        let remark = |why: &str| Remark {
            lines: (1, 1),
            why: why.to_owned(),
            text: "10_2".to_owned(),
        };
        let remarks = [remark("fields"), remark(&format!("{NO_CURVES}; fields"))];
        let left = without_curves(&remarks);
        assert_eq!(left.len(), 1);
        assert_eq!(
            (left[0].name.as_str(), left[0].card.as_str()),
            ("10_2", "–")
        );
        let mut run = Run {
            name: "5".into(),
            lines: (1, 1),
            card: Identity::default(),
            erase_bytes: None,
            curves: Curves::default(),
            rates: Vec::new(),
        };
        let few = FitError::TooFewPoints {
            points: 0,
            sizes: 0,
            left_out: Vec::new(),
        };
        assert!(why_left_out(&run, &few).contains("0 write points"));
        run.curves.align.insert(4096, vec![[1.0, 2.0, 1.0, 1.0]]);
        assert!(why_left_out(&run, &few).contains("alignment test"));
    }
}
