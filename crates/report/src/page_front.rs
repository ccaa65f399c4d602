//! The picture of the first screen: the candidates by the two metrics with the largest weights.
//! Better is up and to the right. A line joins those that no other beats in both.

use crate::number::with_unit;
use crate::svg::Axis;
use whichfs_decide::{CandidateFigure, MetricInfo, Ranked, Verdict};

/// Width and height of the picture, in its own units.
pub(crate) const SIZE: [f64; 2] = [460.0, 300.0];
/// The plane in it: left, top, right, bottom.
pub(crate) const PLANE: [f64; 4] = [54.0, 10.0, 448.0, 252.0];
/// Width of a letter of a label, and height of a label.
const LETTER: [f64; 2] = [6.2, 12.0];
/// Most labels: more cover each other.
const LABELS: usize = 7;

/// Candidates in a plane of two metrics, ready to be drawn in units of [`SIZE`].
pub(crate) struct Front {
    /// What is along each axis: name, unit, direction, weight.
    pub titles: [String; 2],
    pub ticks: [Vec<FrontTick>; 2],
    /// The line through those that no other beats.
    pub line: String,
    pub points: Vec<FrontPoint>,
    /// Candidates that lack one of the two figures.
    pub missing: String,
    /// The share of the score that the two metrics have, in percent.
    pub share: String,
    /// The same as the picture tells, in a sentence.
    pub told: String,
}

/// A round number on an axis.
pub(crate) struct FrontTick {
    pub at: String,
    pub text: String,
}

/// Where a candidate is drawn, and what is written beside it.
pub(crate) struct FrontPoint {
    pub at: [String; 2],
    /// The 90 % interval of its mean over the seeds, along each axis; none for one seed.
    pub interval: [Option<[String; 2]>; 2],
    pub winner: bool,
    /// Whether no other beats it in both.
    pub best: bool,
    /// Where its name is written; none where there is no room.
    pub label: Option<FrontLabel>,
    pub name: String,
    /// Name and figures.
    pub text: String,
}

/// A name beside its point.
pub(crate) struct FrontLabel {
    pub at: [String; 2],
    pub anchor: &'static str,
}

/// The picture of `verdict`; none if fewer than two metrics count or fewer than two candidates have
/// figures of both.
pub(crate) fn front(verdict: &Verdict) -> Option<Front> {
    let mut metrics: Vec<&MetricInfo> = verdict.metrics.iter().collect();
    metrics.retain(|metric| metric.share > 0.0);
    metrics.sort_by(|a, b| b.share.total_cmp(&a.share));
    let metrics: [&MetricInfo; 2] = metrics.get(..2)?.try_into().ok()?;
    let figures = |one: &'_ Ranked| -> Option<[CandidateFigure; 2]> {
        let of = |metric: &MetricInfo| one.figures.get(&metric.metric).cloned();
        Some([of(metrics[0])?, of(metrics[1])?])
    };
    let drawn = verdict.ranking.iter();
    let drawn: Vec<(&Ranked, [CandidateFigure; 2])> = drawn
        .filter_map(|one| Some((one, figures(one)?)))
        .filter(|(_, both)| both.iter().all(|figure| figure.value > 0.0))
        .collect();
    if drawn.len() < 2 {
        return None;
    }
    let axes = [0, 1].map(|at| Plane::new(at, metrics[at], &drawn));
    let better = |at: usize, a: f64, b: f64| match metrics[at].lower_is_better {
        true => a < b,
        false => a > b,
    };
    let beats = |a: &[CandidateFigure; 2], b: &[CandidateFigure; 2]| {
        let is = |at: usize| better(at, a[at].value, b[at].value);
        let worse = |at: usize| better(at, b[at].value, a[at].value);
        (is(0) && !worse(1)) || (is(1) && !worse(0))
    };
    let is_best = |both: &[CandidateFigure; 2]| !drawn.iter().any(|(_, other)| beats(other, both));
    let winner = verdict.advised().map(|one| one.candidate.as_str());
    let place = |both: &[CandidateFigure; 2]| [0, 1].map(|at| axes[at].place(both[at].value));
    let mut line: Vec<[f64; 2]> = drawn
        .iter()
        .filter(|(_, both)| is_best(both))
        .map(|(_, both)| place(both))
        .collect();
    line.sort_by(|a, b| a[0].total_cmp(&b[0]));
    let line: Vec<String> = line.iter().map(|[x, y]| format!("{x:.1},{y:.1}")).collect();
    let dots: Vec<[f64; 2]> = drawn.iter().map(|(_, both)| place(both)).collect();
    let mut taken: Vec<[f64; 4]> = Vec::new();
    // The winner's label has its place first, then those of the front, then by rank.
    let mut order: Vec<usize> = (0..drawn.len()).collect();
    order.sort_by_key(|&at| {
        let (one, both) = &drawn[at];
        (Some(&*one.candidate) != winner, !is_best(both), at)
    });
    let mut labels: Vec<Option<FrontLabel>> = drawn.iter().map(|_| None).collect();
    for &at in order.iter().take(LABELS) {
        labels[at] = label(&drawn[at].0.candidate, dots[at], &dots, &mut taken);
    }
    let points: Vec<FrontPoint> = drawn
        .iter()
        .zip(labels)
        .map(|((one, both), label)| FrontPoint {
            at: place(both).map(|at| format!("{at:.1}")),
            interval: [0, 1].map(|at| axes[at].interval(&both[at])),
            winner: Some(&*one.candidate) == winner,
            best: is_best(both),
            label,
            name: one.candidate.clone(),
            text: format!(
                "{}: {} {}, {} {}",
                one.candidate,
                metrics[0].label,
                with_unit(both[0].value, &metrics[0].unit),
                metrics[1].label,
                with_unit(both[1].value, &metrics[1].unit)
            ),
        })
        .collect();
    let best = points.iter().filter(|point| point.best);
    let best: Vec<&str> = best.map(|point| point.text.as_str()).collect();
    let lacking = verdict.ranking.iter();
    let lacking = lacking.filter(|one| !points.iter().any(|point| point.name == one.candidate));
    let lacking: Vec<&str> = lacking.map(|one| one.candidate.as_str()).collect();
    Some(Front {
        titles: [0, 1].map(|at| axes[at].title.clone()),
        ticks: [0, 1].map(|at| axes[at].ticks()),
        line: line.join(" "),
        missing: lacking.join(", "),
        share: format!("{:.0}", (metrics[0].share + metrics[1].share) * 100.0),
        told: format!("No other beats in both: {}", best.join("; ")),
        points,
    })
}

/// One axis of the picture.
struct Plane {
    axis: Axis,
    /// Where the worse and the better end are, in the units of the picture.
    ends: [f64; 2],
    /// Stored value of a figure that is shown as 1.
    divisor: f64,
    title: String,
    range: [f64; 2],
    lower_is_better: bool,
}

impl Plane {
    fn new(at: usize, metric: &MetricInfo, drawn: &[(&Ranked, [CandidateFigure; 2])]) -> Plane {
        let values = drawn.iter().flat_map(|(_, both)| {
            let samples = both[at].samples.iter().map(|point| point.value);
            samples.chain([both[at].value])
        });
        let values: Vec<f64> = values.filter(|value| *value > 0.0).collect();
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(0.0, f64::max);
        let middle = [(low * high).sqrt()];
        let scale = crate::number::scale(middle[0], &metric.unit);
        let unit = if scale.unit.is_empty() {
            String::new()
        } else {
            format!(", {}", scale.unit)
        };
        let direction = if metric.lower_is_better {
            "lower"
        } else {
            "higher"
        };
        let [left, top, right, bottom] = PLANE;
        Plane {
            axis: Axis::around(values.into_iter(), &[]),
            ends: if at == 0 {
                [left, right]
            } else {
                [bottom, top]
            },
            divisor: scale.divisor,
            title: format!(
                "{}{unit} ({direction} is better), weight {:.0} %",
                metric.label,
                metric.share * 100.0
            ),
            range: [low / 1.2, high * 1.2],
            lower_is_better: metric.lower_is_better,
        }
    }

    /// Where `value` is in the picture.
    fn place(&self, value: f64) -> f64 {
        let place = self.axis.place(value);
        let place = if self.lower_is_better {
            1.0 - place
        } else {
            place
        };
        self.ends[0] + place * (self.ends[1] - self.ends[0])
    }

    /// The ends of the interval of `figure`, those outside of the picture at its edge.
    fn interval(&self, figure: &CandidateFigure) -> Option<[String; 2]> {
        let [one, other] = self.ends;
        let within = |end: f64| self.place(end).clamp(one.min(other), one.max(other));
        let values = figure
            .samples
            .iter()
            .map(|point| point.value.ln())
            .collect();
        interval(values).map(|ends| ends.map(|end| format!("{:.1}", within(end.exp()))))
    }

    /// Three to eight round numbers: 1, 2 and 5 of each decade, or, where the range is narrow,
    /// multiples of a round step.
    fn ticks(&self) -> Vec<FrontTick> {
        let [low, high] = self.range.map(|end| end / self.divisor);
        let mut at: Vec<f64> = Vec::new();
        if high / low > 8.0 {
            let decades = low.log10().floor() as i32..=high.log10().ceil() as i32;
            let wide = high / low > 300.0;
            for decade in decades {
                let steps: &[f64] = if wide { &[1.0] } else { &[1.0, 2.0, 5.0] };
                at.extend(steps.iter().map(|step| step * 10_f64.powi(decade)));
            }
        } else {
            let raw = (high - low) / 5.0;
            let power = 10_f64.powf(raw.log10().floor());
            let step = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
            let step = step.into_iter().find(|step| *step >= raw).unwrap_or(raw);
            let first = (low / step).ceil() as i64;
            at.extend((first..first + 10).map(|count| count as f64 * step));
        }
        at.retain(|value| (low..=high).contains(value) && *value > 0.0);
        at.into_iter()
            .map(|value| FrontTick {
                at: format!("{:.1}", self.place(value * self.divisor)),
                text: crate::number::short(value),
            })
            .collect()
    }
}

/// The interval in which the mean of `values` lies with 90 % probability, by Student's t; none for
/// one value, which says nothing of it.
fn interval(values: Vec<f64>) -> Option<[f64; 2]> {
    /// 95 % points of Student's t with 1, 2 … degrees of freedom, from tables.
    const POINTS: [f64; 8] = [6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860];
    let freedom = values.len().checked_sub(1).filter(|freedom| *freedom > 0)?;
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let error = (squares / freedom as f64 / count).sqrt();
    let half = POINTS[freedom.min(POINTS.len()) - 1] * error;
    Some([mean - half, mean + half])
}

/// A place for `name` beside the point `at`, on which lies neither another label nor a point.
fn label(
    name: &str,
    at: [f64; 2],
    points: &[[f64; 2]],
    taken: &mut Vec<[f64; 4]>,
) -> Option<FrontLabel> {
    let width = name.chars().count() as f64 * LETTER[0];
    let [left, top, right, bottom] = PLANE;
    // Above and below first: beside it lies the point's own interval.
    let places = [
        (6.0, -7.0),
        (-6.0, -7.0),
        (6.0, 16.0),
        (-6.0, 16.0),
        (8.0, 4.0),
        (-8.0, 4.0),
    ];
    for (dx, dy) in places {
        let (x, y) = (at[0] + dx, at[1] + dy);
        let from = if dx > 0.0 { x } else { x - width };
        let own = [from, y - LETTER[1] + 2.0, from + width, y + 2.0];
        let inside = own[0] >= left && own[2] <= right && own[1] >= top && own[3] <= bottom;
        let covers = |[x, y]: &[f64; 2]| {
            (own[0] - 4.0..own[2] + 4.0).contains(x) && (own[1] - 3.0..own[3] + 3.0).contains(y)
        };
        let crosses = |other: &[f64; 4]| {
            own[0] < other[2] && other[0] < own[2] && own[1] < other[3] && other[1] < own[3]
        };
        if inside && !points.iter().any(covers) && !taken.iter().any(crosses) {
            taken.push(own);
            return Some(FrontLabel {
                at: [x, y].map(|at| format!("{at:.1}")),
                anchor: if dx > 0.0 { "start" } else { "end" },
            });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use whichfs_decide::{Evidence, Need, Sample, judge};

    fn verdict(figures: &[(&str, f64, f64)]) -> Verdict {
        let text = "name = \"n\"\ntitle = \"t\"\nworkload = \"rootfs\"\n\
                    [weights.tree_read]\nweight = 2\nbecause = \"x\"\n\
                    [weights.mount]\nweight = 1\nbecause = \"x\"\n";
        let need = Need::parse("n.toml", text).unwrap();
        let sample = |candidate: &str, metric: &str, value, lower_is_better| Sample {
            candidate: candidate.into(),
            metric: metric.into(),
            seed: 1,
            value,
            unit: if lower_is_better { "s" } else { "MB/s" }.into(),
            lower_is_better,
        };
        let samples = figures.iter().flat_map(|(name, read, mount)| {
            [
                sample(name, "tree_read", *read, false),
                sample(name, "mount", *mount, true),
            ]
        });
        let evidence = Evidence {
            samples: samples.collect(),
            ..Evidence::default()
        };
        judge(&need, &evidence).unwrap()
    }

    #[test]
    fn those_that_none_beats_in_both_are_the_front_and_better_is_up_and_right() {
        let verdict = verdict(&[("a", 30.0, 0.2), ("b", 20.0, 0.1), ("c", 15.0, 0.3)]);
        let front = front(&verdict).unwrap();
        let of = |name: &str| front.points.iter().find(|one| one.name == name).unwrap();
        assert_eq!(
            [of("a").best, of("b").best, of("c").best],
            [true, true, false]
        );
        let at = |name: &str| of(name).at.clone().map(|text| text.parse::<f64>().unwrap());
        assert!(at("a")[0] > at("b")[0], "reads faster");
        assert!(at("b")[1] < at("a")[1], "mounts faster: higher up");
        assert_eq!(front.line.split(' ').count(), 2);
        assert_eq!(front.points.iter().filter(|one| one.winner).count(), 1);
        assert_eq!(front.share, "100");
        for ticks in &front.ticks {
            assert!((2..=9).contains(&ticks.len()), "{}", ticks.len());
        }
        let text = &front.titles[0];
        assert!(
            text.contains("higher is better") && text.contains("67 %"),
            "{text}"
        );
    }

    #[test]
    fn labels_cover_neither_each_other_nor_points() {
        let many: Vec<(String, f64, f64)> = (0..16)
            .map(|at| (format!("candidate-{at}"), 20.0 + f64::from(at) / 50.0, 0.1))
            .collect();
        let many: Vec<(&str, f64, f64)> = many.iter().map(|(n, a, b)| (&**n, *a, *b)).collect();
        let front = front(&verdict(&many)).unwrap();
        let labels = front
            .points
            .iter()
            .filter(|one| one.label.is_some())
            .count();
        assert!((1..=LABELS).contains(&labels), "{labels}");
        let mut taken = Vec::new();
        let place = label("ext4", [200.0, 100.0], &[[200.0, 100.0]], &mut taken);
        let above = place.unwrap().at[1].parse::<f64>().unwrap();
        assert!(
            above < 95.0,
            "the interval of the point does not go through it"
        );
        taken.clear();
        // The planted fault: a point where the label would be, and a wall of labels.
        let right = label(
            "ext4",
            [200.0, 100.0],
            &[[200.0, 100.0], [215.0, 92.0]],
            &mut taken,
        );
        assert_eq!(right.map(|one| one.anchor), Some("end"));
        taken.push([0.0, 0.0, 460.0, 300.0]);
        assert!(label("ext4", [200.0, 100.0], &[], &mut taken).is_none());
    }

    #[test]
    fn the_interval_of_a_mean_is_that_of_students_t() {
        // Worked by hand: mean 2, standard deviation 1, standard error 1 / sqrt(3).
        let [low, high] = interval(vec![1.0, 2.0, 3.0]).unwrap();
        let half = 2.920 / 3.0_f64.sqrt();
        assert!((low - (2.0 - half)).abs() < 1e-9 && (high - (2.0 + half)).abs() < 1e-9);
        // The range of the samples, which it is not.
        assert!(low < 1.0 && high > 3.0);
        assert_eq!(interval(vec![1.0]), None);
        let [low, high] = interval((0..40).map(f64::from).collect()).unwrap();
        assert!(low > 15.0 && high < 24.0, "{low} {high}");
    }

    #[test]
    fn one_metric_or_one_candidate_has_no_front() {
        assert!(front(&verdict(&[("a", 30.0, 0.2)])).is_none());
    }
}
