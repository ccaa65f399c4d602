//! Fits modelled cards to what was measured.
//!
//! [`fit`] chooses the family, sizes and counts by trying them on the modelled card under
//! flashbench's sequences ([`whichfs_curves::flashbench`]), fits times and rates to the
//! logarithms of the measured times, and says for each figure where it is from and how well
//! the points determine it. Rates of dd, hdparm, iozone and fio are points beside flashbench's;
//! alone they tell rates, and the rest is composed. [`table`] lists many cards.
//! Pure: no clock, no entropy, no I/O; equal input, equal output.
//!
//! Inside, from the points to the profile: `points` and `host` (what is seen), `replay` (the
//! same on a modelled card), `search` (shapes: family, sizes, counts, switches; where else it
//! begins; what the card had opened before each test), `steps` and `ways` (where it begins and
//! what it tries), `widen` (what the shapes say of the figures), `response` (how a shape answers
//! to its figures), `solve` (times and rates of a shape), `reads` and `fat` (figures of reads,
//! `-a` and `-f`), `residual` (what the family leaves), `write` (the profile).

mod fat;
mod host;
mod jobs;
mod kept_back;
mod left;
mod points;
mod reads;
mod replay;
mod residual;
mod response;
mod row;
mod search;
mod shape;
mod sheet;
mod solve;
mod steps;
mod table;
mod ways;
mod widen;
mod write;

pub use jobs::Jobs;
pub use left::{UnfittedRun, card_name};
pub use points::{ComparedPoint, CurvePlace, Errors, Point, PointOrder, curve_name};
pub use replay::Replay;
pub use row::FitRow;
pub use table::table;

use search::Search;
use whichfs_card::limits::AU_BYTES;
use whichfs_card::{Family, Profile};
use whichfs_curves::Curves;
use whichfs_curves::flashbench::Opened;
use whichfs_logs::Rate;
use write::Basis;

/// A card whose fitted points are off by more than this in the median, or in the 90th
/// percentile, fits no family (|ln(model / measured)|). Two runs of one unit or of two units of
/// one model differ by at most 3.7 % and 22.9 % (`flash.md` \[WB\]: runs 29_1 to 29_3, 30_1 and
/// 30_2, 15 and 15_1, 6 and 6_2): what is off by more is no scatter.
pub const BROKEN: [f64; 2] = [0.1, 0.3];
/// Fewest points and sizes of `flashbench -O` that tell a family.
const POINTS_LEAST: usize = 6;
const SIZES_LEAST: usize = 3;

/// What a fit looks at.
#[derive(Clone, Debug, Default)]
pub struct FitOptions {
    /// Block sizes in bytes of the linear and random write curves that the fit may see; it
    /// sees nothing else of the card then. `None`: everything.
    pub block_sizes: Option<Vec<u64>>,
    /// Seed of what the modelled card was written with before the tests.
    pub seed: u64,
    /// Capacity of the card in bytes, if known; it is no curve.
    pub capacity_bytes: Option<u64>,
    /// flashbench's `--erasesize` in bytes, if known.
    pub erase_bytes: Option<u64>,
    /// Sizes that reads of the card tell for sure, as `flashbench -a` has them.
    pub sizes: Sizes,
    /// How trials of figures run.
    pub jobs: Jobs,
    /// Title of the profile: maker and model. Empty: "fitted card".
    pub title: String,
    /// What the curves are called in the sources of the figures, such as a run of a log.
    pub source: String,
}

/// Sizes of a card that were read off its boundaries, in bytes; none where these do not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Smallest size that the flash programs.
    pub page_bytes: Option<u64>,
    /// What several planes program together.
    pub write_unit_bytes: Option<u64>,
    /// An AU, which need not be flashbench's `--erasesize`.
    pub au_bytes: Option<u64>,
}

/// A fitted card.
#[derive(Clone, Debug)]
pub struct Fit {
    /// The profile as a TOML file, every figure with its source.
    pub toml: String,
    /// The same, read.
    pub profile: Profile,
    /// Every measured point beside the model's, also those that the fit did not see.
    pub compared: Vec<ComparedPoint>,
    /// The same of the family alone, without the residual.
    pub of_family: Vec<ComparedPoint>,
    /// How far the family alone is off, by order and number of AUs.
    pub curves: Vec<CurveErrors>,
    /// Families in the order in which they fit, with what the fit minimised (less is better).
    pub families: Vec<(Family, f64)>,
    /// Whether the points tell the family. If not, family, sizes and counts are composed.
    pub family_told: bool,
    /// What of the log could not be used, and why.
    pub left_out: Vec<String>,
    /// The curve that breaks, where no family fits: most of the card is residual then.
    pub breaks: Option<Break>,
}

/// Errors of one curve: one order, one number of AUs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurveErrors {
    /// What it was measured by.
    pub order: PointOrder,
    /// Number of AUs; 1 where that is not what was tested.
    pub aus: u32,
    /// Over the points that the fit saw.
    pub fitted: Option<Errors>,
    /// Over the others.
    pub unfitted: Option<Errors>,
}

impl CurveErrors {
    /// The curve for people: `linear, 2 AUs`, `read in order`.
    pub fn name(&self) -> String {
        points::curve_name(self.order, self.aus)
    }
}

/// Why a card fits no family.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Break {
    /// Errors over all fitted points.
    pub overall: Errors,
    /// The curve that is off by most, in the 90th percentile.
    pub curve: CurveErrors,
}

/// Why there is no fit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FitError {
    /// Too little was measured.
    #[error(
        "{points} write points of {sizes} block sizes; a fit needs at least {POINTS_LEAST} \
         points of {SIZES_LEAST} sizes of flashbench -O, or rates of dd, hdparm, iozone or fio\
         {}",
        left_out_text(left_out)
    )]
    TooFewPoints {
        /// Points that the fit may see.
        points: usize,
        /// Different block sizes among them.
        sizes: usize,
        /// What of the log could not be used, and why.
        left_out: Vec<String>,
    },
    /// The card is too small for the places that `flashbench -O` writes.
    #[error(
        "a capacity of {bytes} bytes has no room for flashbench -O with 7 AUs of {erase_bytes} \
         bytes ({least} bytes): correct the log's capacity, or its --erasesize"
    )]
    TooSmall {
        /// Capacity of the card.
        bytes: u64,
        /// What the tests need.
        least: u64,
        /// flashbench's `--erasesize`.
        erase_bytes: u64,
    },
    /// No modelled card has such AUs.
    #[error(
        "an erase size of {0} bytes is no AU of a modelled card: whole pages of 16 KiB, at most \
         64 MiB. Repeat flashbench with such an --erasesize"
    )]
    EraseSize(u64),
    /// The fitted figures are outside of what a profile may state.
    #[error(
        "the fitted card is no card: {0}; look for the log that does not belong to it: fit \
         without each"
    )]
    NoCard(String),
}

/// What was left out, behind a message.
fn left_out_text(left_out: &[String]) -> String {
    left_out
        .iter()
        .map(|what| format!("; left out: {what}"))
        .collect()
}

/// Fits a card to `curves` and `rates`.
///
/// # Errors
/// Too few points, a capacity too small for the tests, figures beyond all cards.
pub fn fit(curves: &Curves, rates: &[Rate], options: &FitOptions) -> Result<Fit, FitError> {
    let replay = replay(curves, options)?;
    let (measured, left_out) = measured(curves, rates, &replay);
    let sees = |point: &Point| options.sees(point);
    let seen: Vec<Point> = measured.iter().copied().filter(sees).collect();
    let told = tells_family(&seen, &left_out)?;
    let capacity = write::capacity(options, &replay)?;
    let writes: Vec<Point> = seen
        .iter()
        .copied()
        .filter(|point| point.place.order.is_write())
        .collect();
    let mut search = Search::new(&writes, replay, options.sizes(), options.jobs);
    let found = if told { search.run() } else { search.usual() };
    let best = found
        .first()
        .ok_or_else(|| FitError::NoCard("no family can be tried".into()))?;
    let basis = Basis {
        curves: options.block_sizes.is_none().then_some(curves),
        points: &seen,
        told,
        left_out: &left_out,
        options,
    };
    let written = basis.profile(best, capacity)?;
    let model = |profile: &Profile| compared(&measured, profile, &best.replay, options);
    let of_family = model(&written.profile)?;
    let residual = basis
        .residual(&of_family, replay.erase_bytes)
        .filter(|_| told);
    let written = written.with_residual(residual)?;
    let compared = model(&written.profile)?;
    let curves = curve_errors(&of_family);
    let breaks = breaks(&of_family, &curves).filter(|_| told);
    let errors = [&compared, &of_family].map(seen_errors);
    let written = written.with_error(errors, breaks.is_some())?;
    Ok(Fit {
        breaks,
        toml: written.toml,
        profile: written.profile,
        compared,
        of_family,
        curves,
        families: found.iter().map(|c| (c.shape.family, c.cost)).collect(),
        family_told: told,
        left_out,
    })
}

impl FitOptions {
    /// The sizes that the fit may see.
    fn sizes(&self) -> Sizes {
        match self.block_sizes {
            Some(_) => Sizes::default(),
            None => self.sizes,
        }
    }

    /// Whether the fit may see a point.
    fn sees(&self, point: &Point) -> bool {
        let place = point.place;
        let among = |sizes: &Vec<u64>| place.order.is_flashbench() && sizes.contains(&place.bytes);
        self.block_sizes.as_ref().is_none_or(among)
    }
}

/// The tests as they were done, with the erase size of the log.
fn replay(curves: &Curves, options: &FitOptions) -> Result<Replay, FitError> {
    const PAGE_BYTES: u64 = 16 << 10;
    let told = || points::erase_bytes(curves);
    let erase_bytes = options.erase_bytes.unwrap_or_else(told);
    if !AU_BYTES.contains(&erase_bytes) || !erase_bytes.is_multiple_of(PAGE_BYTES) {
        return Err(FitError::EraseSize(erase_bytes));
    }
    Ok(Replay {
        erase_bytes,
        seed: options.seed,
        opened: Opened::UNTOLD,
    })
}

/// All points that can be replayed, and what was left out.
pub fn measured(curves: &Curves, rates: &[Rate], replay: &Replay) -> (Vec<Point>, Vec<String>) {
    let (mut found, beyond) = points::points(curves, replay.erase_bytes);
    let (of_rates, mut left_out) = host::points(rates);
    found.extend(of_rates);
    if beyond > 0 {
        left_out.insert(
            0,
            format!(
                "{beyond} points of flashbench -O that no run with 1 to 7 AUs of {} bytes has",
                replay.erase_bytes
            ),
        );
    }
    (found, left_out)
}

/// What `rates` say that the card is at least as fast at: they are not the card's alone.
pub fn lower_bounds(rates: &[Rate]) -> Vec<Point> {
    host::lower_bounds(rates)
}

/// Whether the points tell a family; if not, there must be rates.
fn tells_family(seen: &[Point], left_out: &[String]) -> Result<bool, FitError> {
    let of_test = |point: &&Point| point.place.order.is_flashbench();
    let mut sizes: Vec<u64> = seen.iter().filter(of_test).map(|p| p.place.bytes).collect();
    let points = sizes.len();
    sizes.sort_unstable();
    sizes.dedup();
    let sizes = sizes.len();
    let told = points >= POINTS_LEAST && sizes >= SIZES_LEAST;
    if !told && points == seen.len() {
        return Err(FitError::TooFewPoints {
            points,
            sizes,
            left_out: left_out.to_vec(),
        });
    }
    Ok(told)
}

/// The measured points beside the fitted card's.
fn compared(
    measured: &[Point],
    profile: &Profile,
    replay: &Replay,
    options: &FitOptions,
) -> Result<Vec<ComparedPoint>, FitError> {
    let modelled = replay
        .times(profile, measured)
        .map_err(|error| FitError::NoCard(error.to_string()))?;
    let pairs = measured.iter().zip(modelled);
    let compared = pairs.map(|(point, modelled_ns)| ComparedPoint {
        place: point.place,
        measured_ns: point.ns,
        modelled_ns,
        fitted: options.sees(point),
    });
    Ok(compared.collect())
}

/// Errors over the points that the fit saw.
fn seen_errors(compared: &Vec<ComparedPoint>) -> Option<Errors> {
    Errors::over(compared, |point| point.fitted)
}

/// Errors of every curve that was measured.
fn curve_errors(compared: &[ComparedPoint]) -> Vec<CurveErrors> {
    let mut curves: Vec<(PointOrder, u32)> = compared
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
fn breaks(compared: &[ComparedPoint], curves: &[CurveErrors]) -> Option<Break> {
    let overall = Errors::over(compared, |point| point.fitted)?;
    if overall.median <= BROKEN[0] && overall.p90 <= BROKEN[1] {
        return None;
    }
    let off = |curve: &CurveErrors| curve.fitted.map_or(0.0, |errors| errors.p90);
    let curve = curves.iter().max_by(|a, b| off(a).total_cmp(&off(b)))?;
    Some(Break {
        overall,
        curve: *curve,
    })
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_of_logs;
