//! Units in which figures are shown: the one table of sentences and reports.

/// Units by the one that is stored, ascending: how many of that one each is, and its name.
const SECONDS: &[(f64, &str)] = &[(1e-6, "µs"), (1e-3, "ms"), (1.0, "s")];
const MILLISECONDS: &[(f64, &str)] = &[(1e-3, "µs"), (1.0, "ms"), (1e3, "s")];
const BYTES: &[(f64, &str)] = &[
    (1.0, "B"),
    (1024.0, "KiB"),
    (1_048_576.0, "MiB"),
    (1_073_741_824.0, "GiB"),
];

/// The largest unit in which `value`, stored in `unit`, is at least 1 (or the smallest there is):
/// how many of the stored one it is, and its name; `×` for a plain ratio.
pub fn unit_for(value: f64, unit: &str) -> (f64, &str) {
    let units = match unit {
        "s" => SECONDS,
        "ms" => MILLISECONDS,
        "B" => BYTES,
        "operations/s" => return (1.0, "op/s"),
        "1" => return (1.0, "×"),
        other => return (1.0, other),
    };
    let fitting = units.iter().rev().find(|(divisor, _)| value >= *divisor);
    fitting.or(units.first()).copied().unwrap_or((1.0, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_shown_in_the_largest_unit_that_it_fills() {
        let check = |value, unit, said| assert_eq!(unit_for(value, unit), said);
        check(0.0261, "s", (1e-3, "ms"));
        check(1e-9, "s", (1e-6, "µs"));
        check(26_100.0, "ms", (1e3, "s"));
        check(1023.0, "B", (1.0, "B"));
        check(201_326_592.0, "B", (1_048_576.0, "MiB"));
        check(452.0, "operations/s", (1.0, "op/s"));
        check(14.2, "MB/s", (1.0, "MB/s"));
        check(10.9, "1", (1.0, "×"));
        check(1.5, "", (1.0, ""));
    }
}
