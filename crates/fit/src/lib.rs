//! Fits modelled cards to measured curves.
//!
//! [`fit`] chooses the family, sizes and counts by trying them on the modelled card under
//! flashbench's sequences ([`whichfs_curves::flashbench`]), fits times and rates to the
//! logarithms of the measured times, and says for each figure where it is from and how well
//! the points determine it. [`plot`] draws measured against modelled, [`table`] lists many
//! cards. Pure: no clock, no entropy, no I/O; equal input, equal output.
//!
//! Inside, from the points to the profile: `points` (what is seen), `search` (shapes: family,
//! sizes, counts, switches), `response` (a shape on the modelled card), `solve` (times and
//! rates of a shape), `reads` and `fat` (figures of `-a` and `-f`), `write` (the profile).

mod fat;
mod plot;
mod points;
mod reads;
mod response;
mod search;
mod shape;
mod sheet;
mod solve;
mod table;
mod write;

pub use plot::plot;
pub use points::{Compared, Errors, Order, Place, Point, compare, points};
pub use table::{Row, table};
pub use write::Determined;

use search::Search;
use whichfs_card::{Family, Profile};
use whichfs_curves::Curves;
use whichfs_curves::flashbench::curves_of;

/// A card whose fitted points are off by more than this in the median, or in the 90th
/// percentile, fits no family (|ln(model / measured)|).
const BROKEN: [f64; 2] = [0.15, 0.6];
/// Fewest points and sizes that tell a family.
const POINTS_LEAST: usize = 6;
const SIZES_LEAST: usize = 3;

/// What a fit looks at.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Block sizes in bytes of the linear and random write curves that the fit may see; it
    /// sees nothing else of the card then. `None`: everything.
    pub block_sizes: Option<Vec<u64>>,
    /// Seed of what the modelled card was written with before the tests.
    pub seed: u64,
    /// Capacity of the card in bytes, if known; it is no curve.
    pub capacity_bytes: Option<u64>,
    /// Title of the profile: maker and model. Empty: "fitted card".
    pub title: String,
    /// What the curves are called in the sources of the figures, such as a run of a log.
    pub source: String,
}

/// A fitted card.
#[derive(Clone, Debug)]
pub struct Fit {
    /// The profile as a TOML file, every figure with its source.
    pub toml: String,
    /// The same, read.
    pub profile: Profile,
    /// How well each fitted time and rate is determined.
    pub determined: Vec<Determined>,
    /// All curves of the fitted card, as `whichfs card curves` has them.
    pub modelled: Curves,
    /// Every measured write point beside the model's, also those that the fit did not see.
    pub compared: Vec<Compared>,
    /// Errors of each curve.
    pub curves: Vec<CurveErrors>,
    /// Families in the order in which they fit, with what the fit minimised (less is better).
    pub families: Vec<(Family, f64)>,
    /// The curve that breaks, where no family fits.
    pub breaks: Option<Break>,
}

/// Errors of one curve: one order, one number of AUs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurveErrors {
    /// Linear or random.
    pub order: Order,
    /// Number of AUs.
    pub aus: u32,
    /// Over the points that the fit saw.
    pub fitted: Option<Errors>,
    /// Over the others.
    pub unfitted: Option<Errors>,
}

/// Why a card fits no family.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Break {
    /// Errors over all fitted points.
    pub overall: Errors,
    /// The curve that is off by most, in the median.
    pub curve: CurveErrors,
}

/// Why there is no fit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FitError {
    /// Too little was measured.
    #[error(
        "{points} write points of {sizes} block sizes; a fit needs at least {POINTS_LEAST} \
         points of {SIZES_LEAST} sizes of flashbench -O"
    )]
    TooFewPoints {
        /// Points that the fit may see.
        points: usize,
        /// Different block sizes among them.
        sizes: usize,
    },
    /// The card is too small for the places that `flashbench -O` writes.
    #[error("a capacity of {0} bytes has no room for flashbench -O with 7 AUs (352 MiB)")]
    TooSmall(u64),
    /// The fitted figures are outside of what a profile may state.
    #[error("the fitted card is no card: {0}")]
    NoCard(String),
}

/// Fits a card to `curves`.
///
/// # Errors
/// Too few points, a capacity too small for the tests, figures beyond all cards.
pub fn fit(curves: &Curves, options: &Options) -> Result<Fit, FitError> {
    let sizes = options.block_sizes.as_deref();
    let seen = points(curves, sizes);
    check(&seen)?;
    let capacity = write::capacity(options)?;
    let found = Search::new(&seen, options.seed).run();
    let best = found
        .first()
        .ok_or_else(|| FitError::NoCard("no family can be tried".into()))?;
    let families = found.iter().map(|c| (c.shape.family, c.cost)).collect();
    let measured = sizes.is_none().then_some(curves);
    let written = write::profile(best, measured, seen.len(), capacity, options)?;
    let modelled = curves_of(&written.profile, options.seed)
        .map_err(|error| FitError::NoCard(error.to_string()))?;
    let compared = compare(curves, &modelled, sizes);
    let curves = curve_errors(&compared);
    Ok(Fit {
        breaks: breaks(&compared, &curves),
        toml: written.toml,
        profile: written.profile,
        determined: written.determined,
        modelled,
        compared,
        curves,
        families,
    })
}

fn check(seen: &[Point]) -> Result<(), FitError> {
    let mut sizes: Vec<u64> = seen.iter().map(|point| point.place.bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let (points, sizes) = (seen.len(), sizes.len());
    if points < POINTS_LEAST || sizes < SIZES_LEAST {
        return Err(FitError::TooFewPoints { points, sizes });
    }
    Ok(())
}

/// Errors of every curve that was measured.
fn curve_errors(compared: &[Compared]) -> Vec<CurveErrors> {
    let mut curves: Vec<(Order, u32)> = compared
        .iter()
        .map(|point| (point.place.order, point.place.aus))
        .collect();
    curves.sort_unstable();
    curves.dedup();
    let of = |order, aus, fitted| {
        Errors::over(compared, |point| {
            (point.place.order, point.place.aus, point.fitted) == (order, aus, fitted)
        })
    };
    curves
        .into_iter()
        .map(|(order, aus)| CurveErrors {
            order,
            aus,
            fitted: of(order, aus, true),
            unfitted: of(order, aus, false),
        })
        .collect()
}

/// Whether the fitted points are too far off, and which curve is worst.
fn breaks(compared: &[Compared], curves: &[CurveErrors]) -> Option<Break> {
    let overall = Errors::over(compared, |point| point.fitted)?;
    if overall.median <= BROKEN[0] && overall.p90 <= BROKEN[1] {
        return None;
    }
    let off = |curve: &CurveErrors| curve.fitted.map_or(0.0, |errors| errors.median);
    let curve = curves.iter().max_by(|a, b| off(a).total_cmp(&off(b)))?;
    Some(Break {
        overall,
        curve: *curve,
    })
}

#[cfg(test)]
mod tests;
