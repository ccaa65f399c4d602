//! A profile that was fitted to measurements.

use crate::document::Document;
use crate::text::table;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;
use whichfs_fit::{BROKEN, Errors, Fit};
use whichfs_units::counted;

/// The document of `card fit`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CardFit<'a> {
    run: &'a str,
    family: &'static str,
    /// Whether the log tells the family; if not, it is composed.
    family_told: bool,
    /// Families in the order in which they fit, the least cost first.
    families: Vec<(&'static str, f64)>,
    fitted: Option<FitErrors>,
    unfitted: Option<FitErrors>,
    /// Of the fitted points by the family alone, without the residual.
    of_family: Option<FitErrors>,
    /// By order and number of AUs, of the family alone.
    curves: Vec<CurveDocument>,
    figures: Vec<Determined>,
    /// The curve that breaks, where the card fits no family and is mostly residual.
    breaks: Option<String>,
    /// What of the log could not be used, and why.
    left_out: &'a [String],
    profile: &'a str,
}

/// |ln(model / measured)|.
#[derive(Debug, Serialize, JsonSchema)]
struct FitErrors {
    points: usize,
    median: f64,
    p90: f64,
    worst: f64,
}

#[derive(Debug, Serialize, JsonSchema)]
struct CurveDocument {
    order: &'static str,
    open_aus: u32,
    fitted: Option<FitErrors>,
    unfitted: Option<FitErrors>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Determined {
    figure: String,
    value: u64,
    uncertainty_percent: u64,
    source: Option<String>,
}

impl Document for CardFit<'_> {
    const NAME: &'static str = "card fit";
}

impl<'a> CardFit<'a> {
    /// The fit of the run called `run`.
    pub fn new(run: &'a str, fit: &'a Fit) -> CardFit<'a> {
        let determined = fit.profile.figures().map(|figure| Determined {
            figure: figure.path.to_owned(),
            value: figure.value,
            uncertainty_percent: figure.uncertainty_percent,
            source: figure.source.clone(),
        });
        CardFit {
            run,
            family: fit.profile.family().name(),
            family_told: fit.family_told,
            families: fit
                .families
                .iter()
                .map(|(of, cost)| (of.name(), *cost))
                .collect(),
            fitted: Errors::over(&fit.compared, |point| point.fitted).map(errors),
            unfitted: Errors::over(&fit.compared, |point| !point.fitted).map(errors),
            of_family: Errors::over(&fit.of_family, |point| point.fitted).map(errors),
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
}

fn errors(of: Errors) -> FitErrors {
    FitErrors {
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
        "this card fits no family and is mostly residual: {}, where {median} % and {p90} % are the \
         most; the curve that breaks is {}: {}",
        line(&found.overall),
        curve.name(),
        line(&of_curve)
    ))
}

/// The fit of the run called `run`, whose profile is in `file`, in lines of at most `width`
/// columns.
pub fn fit_text(run: &str, fit: &Fit, file: Option<&Path>, width: usize) -> String {
    let mut out = format!("{run}: family {}", fit.profile.family().name());
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
    if let Some(of) = Errors::over(&fit.of_family, |point| point.fitted)
        && fit.profile.residual().is_some()
    {
        let family = line(&of);
        out.push_str(&format!(
            "\nby the family alone: {family}; the rest is residual"
        ));
    }
    out.push_str(&format!(
        "\n\nThe family alone:\n\n{}",
        curves_text(fit, width)
    ));
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
    out.push_str(&format!("\n\n{}", table(&head, rows.collect(), width)));
    if let Some(broken) = broken(fit) {
        out.push_str(&format!("\n\n{broken}"));
    }
    match file {
        Some(path) => out.push_str(&format!("\n\nprofile: {}", path.display())),
        None => out.push_str("\n\n--out FILE keeps the profile"),
    }
    out
}

/// A line for each curve.
fn curves_text(fit: &Fit, width: usize) -> String {
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
    table(&head, rows.collect(), width)
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
