//! A row of the report: one card, fitted twice.

use crate::Fit;
use crate::points::Errors;

/// One card: fitted to all of its points, and to a few block sizes.
#[derive(Clone, Copy, Debug)]
pub struct FitRow<'a> {
    /// Name of the run.
    pub name: &'a str,
    /// Maker and model, as far as known.
    pub card: &'a str,
    /// The fit to all points.
    pub all: &'a Fit,
    /// The fit to some block sizes.
    pub some: &'a Fit,
}

/// Median and 90th percentile in percent.
pub(crate) fn pair(errors: &Errors) -> String {
    format!("{:.1} / {:.1}", errors.median * 100.0, errors.p90 * 100.0)
}
