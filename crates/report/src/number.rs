//! Figures with two or three meaningful digits, in a unit that fits.

use whichfs_decide::{CandidateFigure, Verdict, unit_for};

/// A unit in which a metric is shown.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Scale {
    /// Shown value = stored value / `divisor`.
    pub divisor: f64,
    /// Name of the unit shown; empty for plain numbers.
    pub unit: String,
}

/// The largest unit in which `typical` is at least 1.
pub(crate) fn scale(typical: f64, unit: &str) -> Scale {
    let (divisor, name) = unit_for(typical, unit);
    Scale {
        divisor,
        unit: name.to_owned(),
    }
}

/// One unit for all candidates of a metric, so that its figures can be compared by eye.
/// The median decides: one extreme candidate does not push all others to zeros.
pub(crate) fn scale_of(verdict: &Verdict, metric: &str, unit: &str) -> Scale {
    let mut values: Vec<f64> = figures_of(verdict, metric)
        .into_iter()
        .map(|figure| figure.value)
        .collect();
    values.sort_by(f64::total_cmp);
    let middle = values.get(values.len().saturating_sub(1) / 2);
    scale(middle.copied().unwrap_or(1.0), unit)
}

/// The figures of a metric that decide its scale: of those that are judged, or, where none of them
/// has one, of the others.
pub(crate) fn figures_of<'a>(verdict: &'a Verdict, metric: &str) -> Vec<&'a CandidateFigure> {
    let judged = verdict.ranking.iter().map(|one| &one.figures);
    let judged: Vec<_> = judged.filter_map(|all| all.get(metric)).collect();
    if !judged.is_empty() {
        return judged;
    }
    let others = verdict.excluded.iter().map(|one| &one.figures);
    others.filter_map(|all| all.get(metric)).collect()
}

/// Three significant digits, four characters at most up to a million: `1.23`, `45.6`,
/// `789`, `4567`, `12k`.
pub(crate) fn short(value: f64) -> String {
    match value {
        v if v >= 999_500.0 => format!("{v:.0e}"),
        v if v >= 9_999.5 => format!("{:.0}k", v / 1e3),
        v if v >= 99.95 => format!("{v:.0}"),
        v if v >= 9.995 => format!("{v:.1}"),
        v if v >= 0.0995 => format!("{v:.2}"),
        v if v >= 0.000_5 => format!("{v:.3}").trim_start_matches('0').to_owned(),
        v if v > 0.0 => format!("{v:.0e}"),
        _ => "0".to_owned(),
    }
}

/// A count: whole up to 9999, then as [`short`].
pub(crate) fn count(count: u64) -> String {
    match count {
        0..=9_999 => count.to_string(),
        _ => short(count as f64),
    }
}

/// With its unit: `45.6 ms`, `1.23`.
pub fn with_unit(value: f64, unit: &str) -> String {
    let scale = scale(value, unit);
    let text = short(value / scale.divisor);
    if scale.unit.is_empty() {
        text
    } else {
        format!("{text} {}", scale.unit)
    }
}

/// A figure with its unit; of a bound of a share what was counted: `0 of 20 (≤ 16 %)`.
pub(crate) fn told(figure: &CandidateFigure, unit: &str) -> String {
    match figure.count {
        Some(count) => count.to_string(),
        None => with_unit(figure.value, unit),
    }
}

/// `2.1 times`, `13 times`: two digits of a ratio.
pub(crate) fn times(ratio: f64) -> String {
    if ratio < 9.95 {
        format!("{ratio:.1}")
    } else {
        format!("{ratio:.0}")
    }
}

/// A probability in whole percent; never 0 % or 100 %, which no bootstrap can know.
pub fn percent(p: f64) -> String {
    match (p * 100.0).round() {
        n if n < 1.0 => "<1%".to_owned(),
        n if n > 99.0 => ">99%".to_owned(),
        n => format!("{n:.0}%"),
    }
}

/// Probabilities that belong together in whole percent, as [`percent`] writes them: rounded by the
/// largest remainder, so that they never add up to more than their sum.
/// `–` where there is none.
pub fn percents(all: &[Option<f64>]) -> Vec<String> {
    let known: Vec<f64> = all.iter().flatten().copied().collect();
    let mut rounded = rounded_together(&known).into_iter();
    let each = all.iter().map(|p| p.and_then(|_| rounded.next()));
    each.map(|said| said.unwrap_or_else(|| "–".to_owned()))
        .collect()
}

fn rounded_together(all: &[f64]) -> Vec<String> {
    let exact = || all.iter().map(|p| p.clamp(0.0, 1.0) * 100.0);
    let mut whole: Vec<f64> = exact().map(f64::floor).collect();
    let sum = exact().sum::<f64>().round();
    let lacking = (sum - whole.iter().sum::<f64>()).max(0.0) as usize;
    let mut rests: Vec<(usize, f64)> = exact().map(|n| n - n.floor()).enumerate().collect();
    rests.sort_by(|a, b| b.1.total_cmp(&a.1));
    for (at, _) in rests.into_iter().take(lacking) {
        if let Some(n) = whole.get_mut(at) {
            *n += 1.0;
        }
    }
    whole.into_iter().map(|n| percent(n / 100.0)).collect()
}

/// The probabilities of being best, in the order of the ranking.
pub(crate) fn p_best(verdict: &Verdict) -> Vec<String> {
    let all: Vec<Option<f64>> = verdict.ranking.iter().map(|one| one.p_best).collect();
    percents(&all)
}

/// Seconds for people: `45.6 s`, `12 min`, `3.4 h`.
pub(crate) fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => with_unit(s, "s"),
        s if s < 7_200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_the_unit_that_fits() {
        let check = |value: f64, unit: &str, said: &str| assert_eq!(with_unit(value, unit), said);
        check(26_100.0, "ms", "26.1 s");
        check(26.1, "ms", "26.1 ms");
        check(0.261, "ms", "261 µs");
        check(0.0261, "s", "26.1 ms");
    }

    #[test]
    fn three_digits_in_four_characters() {
        let check = |value: f64, expected: &str| assert_eq!(short(value), expected);
        check(0.0, "0");
        check(0.000_012, "1e-5");
        check(0.0123, ".012");
        check(0.5, "0.50");
        check(1.234, "1.23");
        check(9.999, "10.0");
        check(99.99, "100");
        check(4567.0, "4567");
        check(12_345.0, "12k");
        check(2e6, "2e6");
        for exponent in -6..6 {
            for digit in [1.0, 4.56, 9.996] {
                assert!(short(digit * 10_f64.powi(exponent)).len() <= 4);
            }
        }
    }

    #[test]
    fn units_fit_the_value() {
        assert_eq!(with_unit(0.0123, "s"), "12.3 ms");
        assert_eq!(with_unit(201_326_592.0, "B"), "192 MiB");
        assert_eq!(with_unit(1.5, ""), "1.50");
        assert_eq!(with_unit(14.2, "MB/s"), "14.2 MB/s");
        assert_eq!(with_unit(452.0, "operations/s"), "452 op/s");
        assert_eq!(duration(400.0), "7 min");
    }

    #[test]
    fn no_probability_is_certain() {
        assert_eq!(percent(1.0), ">99%");
        assert_eq!(percent(0.0), "<1%");
        assert_eq!(percent(0.934), "93%");
    }

    #[test]
    fn probabilities_of_one_ranking_never_add_up_to_more_than_they_are() {
        let check = |all: &[f64], said: &[&str]| {
            let all: Vec<Option<f64>> = all.iter().copied().map(Some).collect();
            assert_eq!(percents(&all), said);
        };
        assert_eq!(percents(&[Some(0.9), None]), ["90%", "–"]);
        check(&[0.726, 0.2745, 0.0005], &["73%", "27%", "<1%"]);
        check(&[0.725, 0.275], &["72%", "28%"]);
        check(&[0.335, 0.335, 0.33], &["34%", "33%", "33%"]);
        check(&[0.999, 0.001], &[">99%", "<1%"]);
        check(&[1.0], &[">99%"]);
        check(&[], &[]);
    }
}
