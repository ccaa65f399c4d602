//! Parts of the page: scores, the winner beside the second, the heat map.

use crate::chart::unjudged;
use crate::number::{p_best, scale_of, short, times, told, with_unit};
use whichfs_decide::{FigureOrigin, Grade, MetricInfo, Ranked, Verdict};

/// A candidate's place, ready to be shown.
pub(crate) struct Score {
    pub candidate: String,
    pub score: String,
    pub percent: String,
    /// The interval in words, and where it begins and how long it is, in percent.
    pub interval: String,
    pub low: String,
    pub width: String,
    pub p_best: String,
    /// It is the answer, by its score or by an advice.
    pub winner: bool,
    /// It ties with the first, or is among those that the answer was chosen from.
    pub ties: bool,
}

/// The winner beside the second.
pub(crate) struct Against {
    pub first: String,
    pub second: String,
    /// One sentence on the average.
    pub sentence: String,
    /// Metrics that count, and those that are shown only.
    pub tables: [Vec<AgainstRow>; 2],
}

/// A metric of both.
pub(crate) struct AgainstRow {
    pub label: String,
    /// Number of the metric's section.
    pub number: usize,
    pub first: String,
    pub second: String,
    pub words: String,
    /// From where on figures count alike, where one of these is beyond; else empty.
    pub alike: String,
    /// Share of the score.
    pub share: String,
    pub wins: bool,
}

/// Head of a column of the heat map.
pub(crate) struct Head {
    pub metric: String,
    pub label: String,
    /// Number of the metric's section.
    pub number: usize,
    pub unit: String,
    /// `↓`, `↑`, or nothing where neither is better.
    pub arrow: &'static str,
    pub share: String,
}

/// A candidate's row of the heat map.
pub(crate) struct HeatRow {
    pub candidate: String,
    /// Number of the part with its trials; 0 if there is none.
    pub number: usize,
    pub score: String,
    /// Empty, or why it is not judged.
    pub why: String,
    pub cells: Vec<HeatCell>,
}

/// One figure of it.
pub(crate) struct HeatCell {
    pub metric: String,
    pub value: String,
    pub grade: &'static str,
    pub class: String,
    /// By what the column is sorted: the ratio to the best; empty without a figure.
    pub order: String,
}

/// A piece of a sentence, with a link where it names a metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub text: String,
    /// Number of the metric's section; 0 for none.
    pub number: usize,
}

/// `text` with the names of metrics linked to their sections, longest names first.
pub(crate) fn linked(text: &str, metrics: &[MetricInfo]) -> Vec<Part> {
    let plain = |text: &str| Part {
        text: text.to_owned(),
        number: 0,
    };
    let mut parts = vec![plain(text)];
    let mut order: Vec<(usize, &str)> = (metrics.iter().enumerate())
        .map(|(at, metric)| (at + 1, metric.label.as_str()))
        .filter(|(_, label)| !label.is_empty())
        .collect();
    order.sort_by_key(|(_, label)| std::cmp::Reverse(label.len()));
    for (number, label) in order {
        let split = |part: Part| match part.text.split_once(label) {
            Some((before, after)) if part.number == 0 => {
                let link = Part {
                    text: label.to_owned(),
                    number,
                };
                vec![plain(before), link, plain(after)]
            }
            _ => vec![part],
        };
        parts = parts.into_iter().flat_map(split).collect();
    }
    parts.retain(|part| !part.text.is_empty());
    parts
}

/// Where the figures come from and how far that may be off, in a sentence or two.
pub(crate) fn provenance(verdict: &Verdict) -> String {
    match verdict.origin {
        FigureOrigin::Modelled => format!(
            "Real Linux filesystem code on a modelled card in virtual time. {}, and the card's \
             figures, each with its source under The card, are taken for ±{:.0} %: that widens the \
             probabilities.",
            error_of_model(verdict),
            verdict.card_uncertainty * 100.0
        ),
        FigureOrigin::Measured => "Measured on a real device.".to_owned(),
        FigureOrigin::Published => "Published by others, as the sources say.".to_owned(),
    }
}

/// By how much the model is off: this card where it was measured, else ratios on other cards.
fn error_of_model(verdict: &Verdict) -> String {
    match (verdict.fit_error, &verdict.discrepancy) {
        (Some(fit), _) => format!(
            "The model is off by {} % in the median of what was measured of this card and by {} % \
             at the 90th percentile",
            short(fit.median * 100.0),
            short(fit.p90 * 100.0)
        ),
        (None, Some(errors)) => format!(
            "This card was not measured; on other cards, 8 of 10 published ratios between \
             filesystems are within {:.1} times of the lab's",
            errors.of_eight_in_ten()
        ),
        (None, None) => "Nothing says how far the model is off this card".to_owned(),
    }
}

pub(crate) fn heads(verdict: &Verdict) -> Vec<Head> {
    let numbered = verdict.metrics.iter().enumerate();
    numbered
        .map(|(at, metric)| head(verdict, metric, at + 1))
        .collect()
}

pub(crate) fn scores(verdict: &Verdict) -> Vec<Score> {
    let Some(best) = verdict.ranking.first() else {
        return Vec::new();
    };
    let ends = verdict
        .ranking
        .iter()
        .map(|one| one.interval[1].max(one.score));
    let longest = ends.fold(1e-9, f64::max);
    let percent = |score: f64| format!("{:.1}", (score / longest).clamp(0.0, 1.0) * 100.0);
    let winner = verdict.advised().map(|one| &one.candidate);
    let among = verdict.advice.iter().flat_map(|advice| &advice.among);
    let among: Vec<&String> = among.chain(&best.ties_with).collect();
    let each = verdict.ranking.iter().zip(p_best(verdict));
    let each = each.map(|(ranked, p_best)| Score {
        candidate: ranked.candidate.clone(),
        score: format!("{:.2}", ranked.score),
        percent: percent(ranked.score),
        interval: format!("{:.2} to {:.2}", ranked.interval[0], ranked.interval[1]),
        low: percent(ranked.interval[0]),
        width: percent(ranked.interval[1] - ranked.interval[0]),
        p_best: p_best.replace('%', " %"),
        winner: Some(&ranked.candidate) == winner,
        ties: among.contains(&&ranked.candidate),
    });
    each.collect()
}

pub(crate) fn against(verdict: &Verdict) -> Option<Against> {
    let first = verdict.advised()?;
    let mut others = verdict.ranking.iter();
    let second = others.find(|one| one.candidate != first.candidate)?;
    let row = |(at, metric): (usize, &MetricInfo)| {
        let own = first.figures.get(&metric.metric)?;
        let other = second.figures.get(&metric.metric)?;
        let gain = metric.judged.then(|| other.ratio / own.ratio);
        let words = match gain {
            None => "not judged".to_owned(),
            Some(gain) if gain >= verdict.noise_floor => format!("{}× better", times(gain)),
            Some(gain) if gain <= 1.0 / verdict.noise_floor => {
                format!("{}× worse", times(1.0 / gain))
            }
            Some(_) => "no difference".to_owned(),
        };
        let row = AgainstRow {
            label: metric.label.clone(),
            number: at + 1,
            share: format!("{:.0} %", metric.share * 100.0),
            first: told(own, &metric.unit),
            second: told(other, &metric.unit),
            words,
            alike: alike(metric, [own.value, other.value]),
            wins: gain.is_some_and(|gain| gain >= verdict.noise_floor),
        };
        Some((metric.share > 0.0, row))
    };
    let rows = verdict.metrics.iter().enumerate().filter_map(row);
    let (counted, shown): (Vec<_>, Vec<_>) = rows.partition(|(counted, _)| *counted);
    let ratio = first.score / second.score.max(1e-9);
    let sentence = if first.ties_with.contains(&second.candidate) {
        format!(
            "{} cannot be told from {} on the weighted average (their scores are {:.2} and \
             {:.2}).",
            second.candidate, first.candidate, second.score, first.score
        )
    } else {
        let (better, worse, ratio) = match ratio >= 1.0 {
            true => (first, second, ratio),
            false => (second, first, 1.0 / ratio),
        };
        format!(
            "{} is {ratio:.2} times behind {} on the weighted average.",
            worse.candidate, better.candidate
        )
    };
    Some(Against {
        first: first.candidate.clone(),
        second: second.candidate.clone(),
        sentence,
        tables: [counted, shown].map(|rows| rows.into_iter().map(|(_, row)| row).collect()),
    })
}

/// From where on figures of `metric` count alike, if one of `values` is beyond that.
fn alike(metric: &MetricInfo, values: [f64; 2]) -> String {
    let Some(bound) = metric.enough else {
        return String::new();
    };
    let (beyond, word) = match metric.lower_is_better {
        true => (values.map(|value| value < bound), "up to"),
        false => (values.map(|value| value > bound), "from"),
    };
    match beyond.contains(&true) {
        true => format!("{word} {} all count alike", with_unit(bound, &metric.unit)),
        false => String::new(),
    }
}

fn head(verdict: &Verdict, metric: &MetricInfo, number: usize) -> Head {
    let unit = scale_of(verdict, &metric.metric, &metric.unit).unit;
    Head {
        metric: metric.metric.clone(),
        label: metric.label.clone(),
        number,
        unit: match unit.as_str() {
            "" => "ratio".to_owned(),
            _ => unit,
        },
        arrow: match (metric.judged, metric.lower_is_better) {
            (false, _) => "",
            (true, true) => "↓",
            (true, false) => "↑",
        },
        share: format!("{:.0}", metric.share * 100.0),
    }
}

/// Metrics beside each other in a table that is printed.
const PRINTED: usize = 6;

/// The heat map in pieces that fit a sheet of A4: some metrics of all candidates each.
pub(crate) fn printed(verdict: &Verdict) -> Vec<(Vec<Head>, Vec<HeatRow>)> {
    let pieces = heads(verdict).len().div_ceil(PRINTED);
    let piece = |at: usize| {
        let heads = heads(verdict).into_iter();
        let rows = heat(verdict).into_iter().map(|mut row| {
            row.cells = row
                .cells
                .into_iter()
                .skip(at * PRINTED)
                .take(PRINTED)
                .collect();
            row
        });
        (
            heads.skip(at * PRINTED).take(PRINTED).collect(),
            rows.collect(),
        )
    };
    (0..pieces).map(piece).collect()
}

/// Judged candidates, best first, then those that are not judged and had trials.
pub(crate) fn heat(verdict: &Verdict) -> Vec<HeatRow> {
    let judged = verdict.ranking.iter().map(|one: &Ranked| HeatRow {
        candidate: one.candidate.clone(),
        number: 0,
        score: format!("{:.2}", one.score),
        why: String::new(),
        cells: cells(verdict, &one.figures),
    });
    let any = !verdict.metrics.is_empty();
    let others = unjudged(verdict).into_iter().filter(|_| any);
    let excluded = others.map(|(one, _)| HeatRow {
        candidate: one.candidate.clone(),
        number: 0,
        score: "not judged".to_owned(),
        why: one.why.clone(),
        cells: cells(verdict, &one.figures),
    });
    judged.chain(excluded).collect()
}

fn cells(
    verdict: &Verdict,
    figures: &std::collections::BTreeMap<String, whichfs_decide::CandidateFigure>,
) -> Vec<HeatCell> {
    let cell = |metric: &MetricInfo| {
        let scale = scale_of(verdict, &metric.metric, &metric.unit);
        let figure = figures.get(&metric.metric);
        let judged = figure.filter(|_| metric.judged);
        let grade = judged.map(|figure| Grade::of_ratio(figure.ratio));
        HeatCell {
            metric: metric.metric.clone(),
            value: figure.map_or("–".into(), |f| match f.count {
                Some(count) => count.to_string(),
                None => short(f.value / scale.divisor),
            }),
            grade: match figure {
                None => "no figure",
                Some(_) => grade.map_or("", Grade::name),
            },
            class: match (figure, grade) {
                (None, _) => "none".to_owned(),
                (Some(_), None) => String::new(),
                (Some(_), Some(grade)) => format!("g{}", grade as u8),
            },
            order: figure.map_or(String::new(), |figure| format!("{:.4}", figure.ratio)),
        }
    };
    verdict.metrics.iter().map(cell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_the_model_is_what_the_probabilities_count() {
        let mut verdict = crate::fixture::verdict();
        let said = provenance(&verdict);
        assert!(said.contains("of what was measured of this card"), "{said}");
        verdict.fit_error = None;
        verdict.discrepancy = Some(whichfs_decide::Discrepancy {
            sets: 1,
            ratios: 10,
            deciles: vec![1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.6, 3.0, 4.0],
        });
        let said = provenance(&verdict);
        assert!(said.contains("within 2.6 times of the lab's"), "{said}");
        assert!(!said.contains("Nothing says"), "{said}");
    }

    #[test]
    fn what_counts_alike_is_said_beside_the_figures() {
        let verdict = crate::fixture::verdict();
        let mount = verdict.metrics.iter().find(|m| m.metric == "mount");
        let said = |values| mount.map(|mount| alike(mount, values)).unwrap_or_default();
        assert_eq!(said([0.167, 0.009]), "up to 100 ms all count alike");
        assert_eq!(said([0.167, 0.409]), "");
        let read = verdict.metrics.iter().find(|m| m.metric == "tree_read");
        assert_eq!(
            read.map(|read| alike(read, [1.0, 2.0])).unwrap_or_default(),
            ""
        );
    }

    #[test]
    fn sentences_link_to_the_metrics_that_they_name() {
        let verdict = crate::fixture::verdict();
        let place = |label: &str| {
            let at = verdict.metrics.iter().position(|m| m.label == label);
            at.map_or(0, |at| at + 1)
        };
        let parts = linked(
            "f2fs loses mount 3.4× and delete files 2×.",
            &verdict.metrics,
        );
        let said: String = parts.iter().map(|part| part.text.as_str()).collect();
        assert_eq!(said, "f2fs loses mount 3.4× and delete files 2×.");
        let links: Vec<(&str, usize)> = (parts.iter())
            .filter(|part| part.number > 0)
            .map(|part| (part.text.as_str(), part.number))
            .collect();
        let expected = [
            ("mount", place("mount")),
            ("delete files", place("delete files")),
        ];
        assert_eq!(links, expected);
    }
}
