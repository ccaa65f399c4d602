//! Bars of one metric: where each bar ends and where each sample lies, in percent.
//!
//! Bars begin at zero and are linear. One extreme candidate would press all others to
//! the left edge, so the scale ends at a multiple of the median; a bar that is longer
//! is cut, drawn as broken, and its value is written beside it like all others.

use crate::number::{figures_of, scale_of, told, with_unit};
use whichfs_decide::{CandidateFigure, Excluded, Grade, MetricInfo, SeedFigure, Verdict};
use whichfs_units::counted;

/// The scale ends at this multiple of the median unless all values are below.
const CUT_AT_MEDIANS: f64 = 4.0;

/// One candidate's bar.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bar {
    pub candidate: String,
    /// Value with its unit.
    pub value: String,
    /// Empty, or why the candidate is not judged: `1 of 2 trials failed`.
    pub mark: String,
    /// Length in percent of the drawing; empty without a figure.
    pub percent: String,
    /// True if the bar is longer than the drawing.
    pub broken: bool,
    /// Samples: place in percent and text; none where they are too many to be drawn apart.
    pub dots: Vec<Dot>,
    /// From the smallest sample to the largest, in percent and in words; empty for one sample.
    pub spread: Option<Spread>,
    pub grade: &'static str,
    /// True for the candidate the verdict names.
    pub winner: bool,
}

/// Samples drawn one by one, at most.
const DOTS: usize = 12;

/// From the smallest sample to the largest.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Spread {
    pub begin: String,
    pub width: String,
    pub text: String,
}

/// One seed's sample.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Dot {
    pub percent: String,
    pub text: String,
}

/// All bars of a metric, best first; in the order of the ranking where none is better.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Chart {
    pub metric: String,
    pub label: String,
    pub unit: String,
    /// Which of two figures is the better one, in words.
    pub direction: &'static str,
    /// Share of the score in percent.
    pub share: String,
    pub because: String,
    /// What is counted, where the name does not tell; else empty.
    pub meaning: &'static str,
    /// From where on better is no better, and why; empty if there is no such bound.
    pub enough: String,
    pub bars: Vec<Bar>,
    /// True if some bar is longer than the drawing.
    pub any_broken: bool,
    /// True if some bar ends beside all samples of its candidate.
    pub any_beside: bool,
    /// Candidates without a figure.
    pub missing: Vec<String>,
    /// What the right edge stands for.
    pub end: String,
}

/// The chart of `metric`.
pub(crate) fn chart(verdict: &Verdict, metric: &MetricInfo) -> Chart {
    let end = end_of(verdict, &metric.metric);
    let scale = scale_of(verdict, &metric.metric, &metric.unit);
    let winner = verdict
        .ranking
        .first()
        .map(|first| first.candidate.as_str());
    let mut measured: Vec<_> = verdict
        .ranking
        .iter()
        .filter_map(|ranked| Some((ranked, ranked.figures.get(&metric.metric)?)))
        .collect();
    if metric.judged {
        measured.sort_by(|a, b| {
            a.1.ratio
                .total_cmp(&b.1.ratio)
                .then(a.0.candidate.cmp(&b.0.candidate))
        });
    }
    let place = |value: f64| (value / end * 100.0).clamp(0.0, 100.0);
    let bar =
        |candidate: &str, figure: &CandidateFigure, grade: Option<&Grade>, mark: String| Bar {
            candidate: candidate.to_owned(),
            value: told(figure, &metric.unit),
            mark,
            percent: format!("{:.2}", place(figure.value)),
            broken: is_more(figure.value, end),
            spread: spread(&figure.samples, &metric.unit, &place),
            dots: figure
                .samples
                .iter()
                .filter(|_| figure.samples.len() <= DOTS)
                .map(|point| Dot {
                    percent: format!("{:.2}", place(point.value)),
                    text: format!(
                        "seed {}: {}",
                        point.seed,
                        with_unit(point.value, &metric.unit)
                    ),
                })
                .collect(),
            grade: grade.copied().map_or("", Grade::name),
            winner: Some(candidate) == winner,
        };
    let judged = measured.iter().map(|(ranked, figure)| {
        let grade = ranked.grades.get(&metric.metric);
        bar(&ranked.candidate, figure, grade, String::new())
    });
    // Those that are not judged come last: their figures are of the trials that were done.
    let others = unjudged(verdict).into_iter().map(|(one, mark)| {
        let grade = one.grades.get(&metric.metric);
        match one.figures.get(&metric.metric) {
            Some(figure) => bar(&one.candidate, figure, grade, mark),
            None => without_figure(&one.candidate, mark),
        }
    });
    let bars: Vec<Bar> = judged.chain(others).collect();
    let lacks = |ranked: &&whichfs_decide::Ranked| !ranked.figures.contains_key(&metric.metric);
    Chart {
        metric: metric.metric.clone(),
        label: metric.label.clone(),
        unit: if scale.unit.is_empty() {
            "ratio".to_owned()
        } else {
            scale.unit
        },
        direction: direction(metric),
        share: format!("{:.0}", metric.share * 100.0),
        because: metric.because.clone(),
        meaning: meaning(&metric.metric),
        enough: enough(metric),
        any_beside: measured.iter().any(|(_, figure)| beside(figure)),
        any_broken: bars.iter().any(|bar| bar.broken),
        bars,
        missing: verdict
            .ranking
            .iter()
            .filter(lacks)
            .map(|r| r.candidate.clone())
            .collect(),
        end: with_unit(end, &metric.unit),
    }
}

/// The bar of a candidate none of whose trials gave a figure.
fn without_figure(candidate: &str, mark: String) -> Bar {
    Bar {
        candidate: candidate.to_owned(),
        value: "no figure".to_owned(),
        mark,
        percent: String::new(),
        broken: false,
        dots: Vec::new(),
        spread: None,
        grade: "",
        winner: false,
    }
}

/// Candidates that had trials and are not judged, each with a mark that says why.
pub(crate) fn unjudged(verdict: &Verdict) -> Vec<(&Excluded, String)> {
    let marked = |one| {
        let one: &Excluded = one;
        let failed = verdict.failed_of(&one.candidate);
        match (failed, one.figures.is_empty()) {
            (Some(failed), _) => Some((one, failed.words())),
            (None, false) => Some((one, "not judged".to_owned())),
            (None, true) => None,
        }
    };
    verdict.excluded.iter().filter_map(marked).collect()
}

/// What metrics count whose names do not tell.
pub(crate) fn meaning(metric: &str) -> &'static str {
    match metric {
        "write_amplification" => {
            "Bytes that the flash programmed for each byte that the application wrote to files, in \
             the phases that write and at the unmount, without mkfs: the filesystem's part times \
             the card's."
        }
        "write_amplification_filesystem" => {
            "Bytes that the host sent to the card for each byte that the application wrote to \
             files, in the phases that write and at the unmount, without mkfs."
        }
        "write_amplification_card" => {
            "Bytes that the flash programmed for each byte that the host sent to the card, in the \
             phases that write and at the unmount, without mkfs."
        }
        "sustained_write" => {
            "In the long run: the filesystem is 80 % full, on the card cut down to half a GB or \
             64 allocation units, of which several times the spare area was written before. One \
             seed, of those that can still win and of the baseline."
        }
        "sustained_write_amplification" => {
            "Bytes that the flash programmed for each byte written to files in the long run, as \
             for the rate of writing there. Where garbage collection was not exercised there is no \
             figure, and the weight does not count."
        }
        "sustained_begin" => "The same as in the long run, in the first round.",
        "sustained_erases" => {
            "Blocks (allocation units) erased for each GB written in the long run."
        }
        _ => "",
    }
}

/// Which of two figures of `metric` is the better one, in words.
pub(crate) fn direction(metric: &MetricInfo) -> &'static str {
    match (metric.judged, metric.lower_is_better) {
        (false, _) => "neither lower nor higher is better",
        (true, true) => "↓ lower is better",
        (true, false) => "↑ higher is better",
    }
}

/// From where on better is no better, in a sentence.
pub(crate) fn enough(metric: &MetricInfo) -> String {
    let (Some(bound), Some(because)) = (metric.enough, &metric.enough_because) else {
        return String::new();
    };
    let direction = if metric.lower_is_better {
        "Up to"
    } else {
        "From"
    };
    let bound = with_unit(bound, &metric.unit);
    format!("{direction} {bound} all count alike: {because}.")
}

/// The spread of two samples or more.
fn spread(samples: &[SeedFigure], unit: &str, place: &dyn Fn(f64) -> f64) -> Option<Spread> {
    let values = || samples.iter().map(|point| point.value);
    let (least, most) = (
        values().fold(f64::MAX, f64::min),
        values().fold(0.0, f64::max),
    );
    (samples.len() > 1).then(|| Spread {
        begin: format!("{:.2}", place(least)),
        width: format!("{:.2}", place(most) - place(least)),
        text: format!(
            "{} from {} to {}",
            counted(samples.len(), "sample"),
            with_unit(least, unit),
            with_unit(most, unit)
        ),
    })
}

/// The value at the right edge.
fn end_of(verdict: &Verdict, metric: &str) -> f64 {
    let mut values: Vec<f64> = figures_of(verdict, metric)
        .into_iter()
        .flat_map(|figure| figure.samples.iter().map(|point| point.value))
        .collect();
    values.sort_by(f64::total_cmp);
    let (Some(median), Some(largest)) = (values.get(values.len() / 2), values.last()) else {
        return 1.0;
    };
    // A figure can be beside its samples.
    let figures = figures_of(verdict, metric).into_iter();
    let largest = figures.map(|one| one.value).fold(*largest, f64::max);
    largest.min(median * CUT_AT_MEDIANS)
}

/// Whether `one` is more than `other` by more than what rounding of floating point numbers does.
fn is_more(one: f64, other: f64) -> bool {
    one > other * (1.0 + 1e-9)
}

/// Whether the figure lies beside all of its samples: it is that on the seeds that all ran.
fn beside(figure: &CandidateFigure) -> bool {
    let values = || figure.samples.iter().map(|point| point.value);
    let (least, most) = (
        values().fold(f64::INFINITY, f64::min),
        values().fold(0.0, f64::max),
    );
    !figure.samples.is_empty() && (is_more(least, figure.value) || is_more(figure.value, most))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn figure(value: f64, samples: &[f64]) -> CandidateFigure {
        let points = samples.iter().zip(1..);
        CandidateFigure {
            value,
            samples: points
                .map(|(&value, seed)| SeedFigure { seed, value })
                .collect(),
            ..crate::fixture::verdict().ranking[0]
                .figures
                .values()
                .next()
                .unwrap()
                .clone()
        }
    }

    #[test]
    fn a_figure_beside_its_samples_is_seen_and_rounding_is_not() {
        assert!(beside(&figure(504.0, &[514.0, 525.0])));
        assert!(beside(&figure(530.0, &[514.0, 525.0])));
        assert!(!beside(&figure(520.0, &[514.0, 525.0])));
        let space = 127_868_928.0;
        assert!(!beside(&figure(
            space * (1.0 + f64::EPSILON),
            &[space, space]
        )));
        assert!(!is_more(space * (1.0 + f64::EPSILON), space));
    }

    /// Of rates the longest bar is the first, of durations the last.
    #[test]
    fn a_cut_bar_is_explained_wherever_it_stands() {
        let text = "name = \"n\"\ntitle = \"t\"\nworkload = \"rootfs\"\n\
                    [weights.tree_read]\nweight = 1\nbecause = \"x\"\n";
        let need = whichfs_decide::Need::parse("n.toml", text).unwrap();
        for lower_is_better in [false, true] {
            let values = [
                ("a", 500.0),
                ("b", 100.0),
                ("c", 90.0),
                ("d", 80.0),
                ("e", 70.0),
            ];
            let sample = |(candidate, value): (&str, f64)| whichfs_decide::Sample {
                candidate: candidate.into(),
                metric: "tree_read".into(),
                seed: 1,
                value,
                unit: "MB/s".into(),
                lower_is_better,
            };
            let evidence = whichfs_decide::Evidence {
                samples: values.map(sample).to_vec(),
                ..whichfs_decide::Evidence::default()
            };
            let verdict = whichfs_decide::judge(&need, &evidence).unwrap();
            let chart = chart(&verdict, &verdict.metrics[0]);
            let broken = chart.bars.iter().position(|bar| bar.broken);
            assert_eq!(broken, Some(if lower_is_better { 4 } else { 0 }));
            assert!(chart.any_broken);
        }
    }
}
