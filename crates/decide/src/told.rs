//! Figures in sentences: two of a metric beside each other, in one unit.

use crate::unit::unit_for;

/// `30.4 against 7.88 ms`: the unit is the one that fits the larger figure, but for a smaller one
/// that would be nothing in it, which gets its own.
pub(crate) fn against([own, other]: [f64; 2], unit: &str) -> String {
    let (divisor, name) = scale(own.max(other), unit);
    let (small, small_name) = scale(own.min(other), unit);
    let said = |value: f64| format!("{}{}", digits(value / divisor), spaced(name));
    if own.min(other) / divisor >= 0.01 || small_name == name {
        return format!("{} against {}", digits(own / divisor), said(other));
    }
    let each = |value: f64| match value <= own.min(other) {
        true => format!("{}{}", digits(value / small), spaced(small_name)),
        false => said(value),
    };
    format!("{} against {}", each(own), each(other))
}

/// Where a bound acts on one of two figures: that all beyond it count alike.
pub(crate) fn alike(figures: [f64; 2], bound: Option<f64>, lower: bool, unit: &str) -> String {
    let Some(bound) = bound else {
        return String::new();
    };
    let (beyond, word) = match lower {
        true => (figures.iter().any(|value| *value < bound), "up to"),
        false => (figures.iter().any(|value| *value > bound), "from"),
    };
    let (divisor, name) = scale(bound, unit);
    match beyond {
        true => format!(
            "; {word} {}{} all count alike",
            plain(bound / divisor),
            spaced(name)
        ),
        false => String::new(),
    }
}

/// The unit for `value`, and how many of the stored one it is; a ratio's has no name in a sentence.
fn scale(value: f64, unit: &str) -> (f64, &str) {
    match unit_for(value, unit) {
        (divisor, "×") => (divisor, ""),
        named => named,
    }
}

fn spaced(unit: &str) -> String {
    match unit {
        "" => String::new(),
        unit => format!(" {unit}"),
    }
}

/// Three significant digits.
fn digits(value: f64) -> String {
    match value {
        v if v >= 99.95 => format!("{v:.0}"),
        v if v >= 9.995 => format!("{v:.1}"),
        v if v >= 0.995 => format!("{v:.2}"),
        v if v >= 0.0995 => format!("{v:.3}"),
        v if v >= 0.001 => format!("{v:.4}"),
        v => format!("{v:.1e}"),
    }
}

/// Three significant digits without zeros at the end of the fraction.
fn plain(value: f64) -> String {
    let text = digits(value);
    match text.contains('.') && !text.contains('e') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_figures_have_the_unit_of_the_larger() {
        let check = |own, other, unit: &str, said: &str| {
            assert_eq!(against([own, other], unit), said);
        };
        check(30.4087, 7.8752, "ms", "30.4 against 7.88 ms");
        check(0.0271, 0.6784, "s", "27.1 against 678 ms");
        check(0.0271, 1.5, "s", "0.0271 against 1.50 s");
        check(1.5, 0.002, "s", "1.50 s against 2.00 ms");
        check(646.47, 1845.8, "operations/s", "646 against 1846 op/s");
        check(10.24, 15.57, "1", "10.2 against 15.6");
        check(7_372_800.0, 604_876_800.0, "B", "7.03 against 577 MiB");
    }

    #[test]
    fn a_bound_is_told_where_it_acts() {
        let ms = |figures| alike(figures, Some(0.1), true, "s");
        assert_eq!(ms([0.008, 0.678]), "; up to 100 ms all count alike");
        assert_eq!(ms([0.2, 0.678]), "");
        let rate = alike([5.0, 40.0], Some(30.0), false, "MB/s");
        assert_eq!(rate, "; from 30 MB/s all count alike");
        assert_eq!(alike([5.0, 40.0], None, false, "MB/s"), "");
    }
}
