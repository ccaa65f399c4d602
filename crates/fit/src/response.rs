//! What a shape does with flashbench: the modelled card itself, run once for each figure.
//!
//! Time is linear in the times of steps and in the reciprocals of rates, since no decision
//! of a translation layer depends on them. So a run with all figures at a reference and more runs
//! with figures changed give the time of every point for any figures. A run tells how often two
//! times are taken, if one grows by a microsecond and the other by more microseconds than the first
//! is taken, and whole times: the sum of all times of a point, in nanoseconds, is exact.

use crate::Jobs;
use crate::points::{CurvePlace, Point};
use crate::replay::Replay;
use crate::shape::{Free, Shape, Unit};
use crate::solve::Row;
use std::collections::BTreeMap;
use std::sync::OnceLock;
use whichfs_card::limits::{MICROS_MAX, RATE};

/// Rows for the `points`; `None` where the shape is no card.
pub(crate) fn rows(
    shape: &Shape,
    free: &[Free],
    reference: &[f64],
    points: &[Point],
    replay: &Replay,
    jobs: Jobs,
) -> Option<Vec<Row>> {
    let factor = free.last().is_some_and(|last| last.unit == Unit::Percent);
    let linear = free.len() - usize::from(factor);
    let mut at = rounded(free, reference);
    let plain = |at: &[f64]| {
        let sheet = shape.sheet(
            free,
            at,
            replay.trial_capacity(shape.value("geometry.au_bytes")),
        );
        replay.times(&sheet.profile().ok()?, points).ok()
    };
    let of_point = |point: &Point| requests(&point.place, replay.erase_bytes);
    let runs = Runs {
        free,
        plain: &plain,
        requests: points.iter().map(of_point).collect(),
        jobs,
    };
    let all: Vec<usize> = (0..linear).collect();
    // The factor multiplies programming and what comes before it, nothing else.
    let of_writing = |j: &usize| free[*j].path.starts_with("write.");
    let affected: Vec<usize> = all.iter().copied().filter(of_writing).collect();
    if factor {
        at[linear] = 1.0;
    }
    let mut doubled = at.clone();
    let mut asked = vec![(&at, all.as_slice())];
    if factor {
        doubled[linear] = 2.0;
        asked.push((&doubled, &affected));
    }
    let mut told = runs.slopes(&asked)?.into_iter();
    let (base, slopes) = told.next()?;
    let extra = told.next().map(|(_, steeper)| {
        let mut extra = vec![vec![0.0; points.len()]; linear];
        for (j, steep) in affected.iter().zip(steeper) {
            extra[*j] = steep.iter().zip(&slopes[*j]).map(|(e, c)| e - c).collect();
        }
        extra
    });
    let row = |i: usize| {
        let of_points: Vec<f64> = slopes.iter().map(|slope| slope[i]).collect();
        let explained: f64 = of_points.iter().zip(&at).map(|(c, t)| c * t).sum();
        Row {
            constant: base[i] - explained,
            factored: extra.as_ref().map_or_else(Vec::new, |extra| {
                extra.iter().map(|of_figure| of_figure[i]).collect()
            }),
            linear: of_points,
            measured_ns: points[i].ns,
        }
    };
    Some((0..points.len()).map(row).collect())
}

/// Times of which a write takes a part, in proportion to what it covers of a unit; of others it
/// takes whole numbers.
const IN_PARTS: [&str; 3] = ["write.partial_us", "write.partial_full_us", "write.fill_us"];

/// What a run changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// The figure is doubled.
    Double(usize),
    /// The first grows by [`LITTLE_NS`], the second, of which writes take whole numbers, by
    /// [`MUCH_NS`].
    Both(usize, usize),
}

/// A microsecond, the least by which a time can grow.
const LITTLE_NS: f64 = 1e3;
/// More microseconds than a time is taken in a point. The most are those of pages: seven AUs of 64
/// MiB have 114,688 of 4 KiB, each touched a few times. It fits between a reference and its bound.
const MUCH_NS: f64 = LITTLE_NS * (1 << 21) as f64;

/// Requests of a test of flashbench of which a point is the mean; `None` for other points.
fn requests(place: &CurvePlace, erase_bytes: u64) -> Option<f64> {
    let all = u64::from(place.aus) * erase_bytes / place.bytes;
    place.order.is_flashbench().then_some(all as f64)
}

/// Times of the points, and how much each grows with each of some figures.
type Slopes = (Vec<f64>, Vec<Vec<f64>>);

/// Runs of the card of a shape.
struct Runs<'a> {
    free: &'a [Free],
    /// Times of the points with these figures.
    plain: &'a (dyn Fn(&[f64]) -> Option<Vec<f64>> + Sync),
    /// Requests of which each point is the mean, where that is known of all.
    requests: Option<Vec<f64>>,
    jobs: Jobs,
}

impl Runs<'_> {
    /// For each setting of the figures and some of them: times of the points there, and how much
    /// each grows with each of those figures.
    fn slopes(&self, asked: &[(&Vec<f64>, &[usize])]) -> Option<Vec<Slopes>> {
        let mut settings: Vec<Vec<f64>> = Vec::new();
        let mut changes = Vec::new();
        for (at, figures) in asked {
            let of_setting = self.changes(figures);
            settings.push(at.to_vec());
            settings.extend(of_setting.iter().map(|change| self.changed(at, *change)));
            changes.push(of_setting);
        }
        let times: Vec<OnceLock<_>> = settings.iter().map(|_| OnceLock::new()).collect();
        self.jobs.run(settings.len(), &|number| {
            times[number].get_or_init(|| (self.plain)(&settings[number]));
        });
        let mut times = times.into_iter().map(|time| time.into_inner().flatten());
        let of_setting = |((at, figures), changes): (&(&Vec<f64>, &[usize]), Vec<Change>)| {
            let base = times.next()??;
            let mut slopes = BTreeMap::new();
            for change in changes {
                slopes.extend(self.grown(at, change, &base, &times.next()??)?);
            }
            let of_figures: Option<Vec<Vec<f64>>> =
                figures.iter().map(|j| slopes.remove(j)).collect();
            Some((base, of_figures?))
        };
        asked.iter().zip(changes).map(of_setting).collect()
    }

    /// The changes that tell `figures`: times by two.
    fn changes(&self, figures: &[usize]) -> Vec<Change> {
        let is_time = |j: &usize| self.requests.is_some() && self.free[*j].unit == Unit::Micros;
        let (mut times, others): (Vec<usize>, Vec<usize>) =
            figures.iter().copied().partition(is_time);
        times.sort_by_key(|j| !IN_PARTS.contains(&self.free[*j].path));
        let mut changes: Vec<Change> = others.into_iter().map(Change::Double).collect();
        while let Some(last) = times.pop() {
            let in_parts = IN_PARTS.contains(&self.free[last].path);
            changes.push(match times.is_empty() || in_parts {
                true => Change::Double(last),
                false => Change::Both(times.remove(0), last),
            });
        }
        changes
    }

    /// The figures `at` with a change.
    fn changed(&self, at: &[f64], change: Change) -> Vec<f64> {
        let mut more = at.to_vec();
        match change {
            Change::Double(j) => {
                more[j] *= 2.0;
                assert!(
                    is_doubled(self.free[j].unit, at[j], more[j]),
                    "{} cannot be doubled from {}",
                    self.free[j].path,
                    at[j]
                );
            }
            Change::Both(first, second) => {
                more[first] += LITTLE_NS;
                more[second] += MUCH_NS;
            }
        }
        more
    }

    /// The slopes that a change from `at` tells, where the points take `base` without it and
    /// `reached` with it.
    fn grown(
        &self,
        at: &[f64],
        change: Change,
        base: &[f64],
        reached: &[f64],
    ) -> Option<Vec<(usize, Vec<f64>)>> {
        let grown = reached.iter().zip(base).map(|(more, less)| more - less);
        Some(match change {
            Change::Double(j) => vec![(j, grown.map(|grown| grown / at[j]).collect())],
            Change::Both(first, second) => {
                let points = grown.zip(self.requests.as_ref()?);
                let (little, much) = points.map(|(grown, of)| taken(grown, *of)).unzip();
                vec![(first, little), (second, much)]
            }
        })
    }
}

/// How often each of two times is taken by the mean of `requests`, which grew by `grown_ns` when
/// one grew by [`LITTLE_NS`] and the other by [`MUCH_NS`].
fn taken(grown_ns: f64, requests: f64) -> (f64, f64) {
    let all = (grown_ns * requests).round();
    let much = (all / MUCH_NS).floor();
    let little = (all - much * MUCH_NS) / LITTLE_NS;
    (little / requests, much / requests)
}

/// Whether the profile's integers of the figures are double each other, as the figures are.
fn is_doubled(unit: Unit, less: f64, more: f64) -> bool {
    let (less, more) = (unit.integer(less), unit.integer(more));
    match unit {
        Unit::Rate => less == 2 * more,
        _ => more == 2 * less,
    }
}

/// References as the integers of a profile have them, such that they can be doubled without
/// rounding and without coming to the figure's bound.
fn rounded(free: &[Free], reference: &[f64]) -> Vec<f64> {
    free.iter()
        .zip(reference)
        .map(|(free, theta)| {
            let integer = free.unit.integer(*theta);
            free.unit.theta(match free.unit {
                Unit::Rate => integer.max(2 * RATE.start()) / 2 * 2,
                Unit::Micros => integer.clamp(20, MICROS_MAX / 2),
                Unit::Percent => integer,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::points::PointOrder;
    use crate::shape::start;
    use whichfs_card::Family;
    use whichfs_curves::flashbench::Opened;

    /// Linear and random points of a few sizes and numbers of AUs.
    fn points() -> Vec<Point> {
        let mut points = Vec::new();
        for order in PointOrder::FLASHBENCH {
            for aus in [1, 3, 6] {
                for bytes in [4 << 10, 16 << 10, 64 << 10, 1 << 20, 4 << 20] {
                    let place = CurvePlace { order, aus, bytes };
                    points.push(Point { place, ns: 1e6 });
                }
            }
        }
        points
    }

    /// What runs tell of the times of `shape` by two, and one by one.
    fn both(shape: &Shape, factor: f64) -> Vec<(&'static str, Vec<f64>, Vec<f64>)> {
        let replay = Replay {
            erase_bytes: 4 << 20,
            seed: 3,
            opened: Opened::UNTOLD,
        };
        let (points, free) = (points(), shape.free());
        let reference: Vec<f64> = free.iter().map(|free| free.prior.centre.exp()).collect();
        let mut at = rounded(&free, &reference);
        for (free, at) in free.iter().zip(&mut at) {
            if free.unit == Unit::Percent {
                *at = factor;
            }
        }
        let plain = |at: &[f64]| {
            let sheet = shape.sheet(
                &free,
                at,
                replay.trial_capacity(shape.value("geometry.au_bytes")),
            );
            replay.times(&sheet.profile().ok()?, &points).ok()
        };
        let of_point = |point: &Point| requests(&point.place, replay.erase_bytes);
        let slopes = |requests, times: &[usize]| {
            let runs = Runs {
                free: &free,
                plain: &plain,
                requests,
                jobs: Jobs::default(),
            };
            runs.slopes(&[(&at, times)]).unwrap().remove(0).1
        };
        let times = |j: &usize| free[*j].unit == Unit::Micros;
        let times: Vec<usize> = (0..free.len()).filter(times).collect();
        let by_two = slopes(points.iter().map(of_point).collect(), &times);
        let one_by_one = slopes(None, &times);
        let paths = times.iter().map(|j| free[*j].path);
        let told = paths.zip(by_two).zip(one_by_one);
        told.map(|((path, two), one)| (path, two, one)).collect()
    }

    #[test]
    fn a_run_tells_of_two_times_what_two_runs_tell() {
        let changes: [&[(&str, u64)]; 6] = [
            &[],
            &[("write.coalesce", 1)],
            &[("reader.max_bytes", 64 << 10)],
            &[("geometry.open_aus_random", 1), ("write.coalesce", 1)],
            &[
                ("log_block.merge_at_once", 1),
                ("log_block.log_percent", 34),
            ],
            &[("log_block.first_opened", 1), ("page_map.streams", 3)],
        ];
        for (name, family) in Family::NAMES {
            for (changes, factor) in changes.iter().flat_map(|of| [(of, 1.0), (of, 2.0)]) {
                let mut shape = start(family).with("geometry.open_aus_linear", 4);
                if family == Family::LogBlock {
                    shape = shape.small_writes(8 << 10);
                }
                for (path, value) in *changes {
                    if shape.fixed.contains_key(path) {
                        shape = shape.with(path, *value);
                    }
                }
                for (path, two, one) in both(&shape, factor) {
                    for (two, one) in two.iter().zip(one) {
                        let what = format!("{name} {changes:?} {factor} {path}: {two} {one}");
                        // A part of a microsecond is cut to whole nanoseconds.
                        assert!((two - one).abs() < 2e-3 * one + 1e-9, "{what}");
                    }
                }
            }
        }
    }

    #[test]
    fn references_at_their_bounds_can_be_doubled() {
        let free = start(Family::UpdateBlock)
            .with("geometry.open_aus_linear", 4)
            .free();
        // 398 kB/s: the double of a whole AU's copy is beyond 10 s; and slower than any card.
        for per_byte in [0.01, 1e9 / 398e3, 1e9 / 9e3] {
            let reference: Vec<f64> = free
                .iter()
                .map(|free| match free.prior.relative {
                    true => per_byte * free.prior.centre.exp(),
                    false => per_byte,
                })
                .collect();
            for (free, at) in free.iter().zip(rounded(&free, &reference)) {
                assert!(is_doubled(free.unit, at, 2.0 * at), "{} {at}", free.path);
            }
        }
    }
}
