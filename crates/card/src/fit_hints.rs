//! What a fit of measured curves is told of a family: with which card it begins, what it tries, and
//! which times and rates it fits. A figure is named by its path, `section.key`.

use std::ops::RangeInclusive;

/// What a fit is told of a family.
#[derive(Debug)]
pub struct FitHints {
    /// Sizes, counts and switches of the first card that is tried, beside those of all families.
    pub start: &'static [(&'static str, u64)],
    /// The figure that takes the number of AUs beyond which times step up, zero where they do not;
    /// none where no figure does, or `geometry.open_aus_linear` and `geometry.open_aus_random`.
    pub steps_at: Option<&'static str>,
    /// What is tried, one figure after the other, those that matter most first.
    pub searched: &'static [SearchedFigure],
    /// Figures with the values of each that are tried together where the search comes near to no
    /// card: they depend on each other.
    pub restarts: &'static [(&'static str, &'static [u64])],
    /// Times and rates that are fitted beside those of all families. A percentage comes last, of
    /// which there is at most one: it multiplies the times of the section `write`.
    pub fitted: &'static [FittedFigure],
    /// What a card of the family costs for being unusual, in the unit of what the fit minimises
    /// (twice the logarithm of the odds against it).
    pub oddity: f64,
    /// Figures, the values that are usual, and what others cost in the same unit.
    pub unusual: &'static [(&'static str, RangeInclusive<u64>, f64)],
}

impl FitHints {
    /// Nothing is tried or fitted but what cards of all families have.
    pub const NONE: FitHints = FitHints {
        start: &[],
        steps_at: None,
        searched: &[],
        restarts: &[],
        fitted: &[],
        oddity: 0.0,
        unusual: &[],
    };
}

/// That a figure has one of some values.
#[derive(Debug)]
pub struct FigureIs {
    /// Path of the figure.
    pub path: &'static str,
    /// First and last of the values for which it holds.
    pub values: RangeInclusive<u64>,
}

/// A size, a count or a switch that a fit tries.
#[derive(Debug)]
pub struct SearchedFigure {
    /// Path of what is tried, `section.key`.
    pub path: &'static str,
    /// Ways of values, each of which is followed while the fit gets better, for curves of many
    /// sizes of writes.
    pub ways: &'static [&'static [u64]],
    /// The same for curves of few sizes, which tell less.
    pub of_few_sizes: &'static [&'static [u64]],
    /// Without it the figure is not tried.
    pub only: Option<FigureIs>,
}

impl SearchedFigure {
    /// A figure that is tried in these `ways` whatever the curves.
    pub const fn always(path: &'static str, ways: &'static [&'static [u64]]) -> SearchedFigure {
        SearchedFigure {
            path,
            ways,
            of_few_sizes: ways,
            only: None,
        }
    }

    /// A figure that is tried in these `ways` if there are curves of many sizes of writes.
    pub const fn of_many_sizes(
        path: &'static str,
        ways: &'static [&'static [u64]],
    ) -> SearchedFigure {
        SearchedFigure {
            of_few_sizes: &[],
            ..SearchedFigure::always(path, ways)
        }
    }

    /// A figure of all families, whose values the fit itself knows.
    pub const fn shared(path: &'static str) -> SearchedFigure {
        SearchedFigure::always(path, &[])
    }
}

/// A time or rate that a fit takes from curves, with what is likely before: the logarithm of the
/// figure is normally distributed. The unit is told by the path: `_us`, `_per_s` or `_percent`.
#[derive(Debug)]
pub struct FittedFigure {
    /// Path of what is fitted, `section.key`.
    pub path: &'static str,
    /// What the figure is measured in.
    pub scale: PriorScale,
    /// Natural logarithm of the likeliest value: nanoseconds, nanoseconds a byte, or a factor, in
    /// that scale.
    pub ln_centre: f64,
    /// Standard deviation of the logarithm.
    pub sigma: f64,
    /// Why this is likely: which cards have it so.
    pub why: &'static str,
    /// Without it the figure keeps its default.
    pub only: Option<FigureIs>,
}

/// What the likeliest value of a fitted figure is a multiple of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriorScale {
    /// Nothing: it is absolute.
    Absolute,
    /// The time of writing a page of 16 KiB in order.
    Pages,
    /// The time of writing a byte in order.
    WriteTime,
}
