//! A table of many fitted cards, in Markdown.

use crate::points::{ComparedPoint, Errors, PointOrder};
use crate::row::{FitRow, pair};
use crate::{Break, Fit, UnfittedRun, kept_back};
use std::fmt::Write as _;

/// How a fit works and what it does not meet.
const HEAD: &str = include_str!("table.head.md");

/// The report: how fits work, the table, what it says over all rows, and the runs that were left
/// out.
pub fn table(rows: &[FitRow], left: &[UnfittedRun]) -> String {
    let mut text = format!(
        "{HEAD}Errors are |ln(model / measured)| of the time of a write, in percent: median / 90th \
         percentile.\n\n\
         | run | card | family | figures | all points fitted | fitted of 3 sizes | other sizes, \
         linear | other sizes, random | other sizes |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    for row in rows {
        let _ = writeln!(
            text,
            "| {} | {} | {}{}{} | {} | {} | {} | {} | {} | {} |",
            row.name,
            row.card,
            row.all.profile.family().name(),
            other_family(row),
            if row.all.breaks.is_some() {
                ", **does not fit**"
            } else {
                ""
            },
            figures(row.all),
            errors(row.all, |_| true),
            errors(row.some, |point| point.fitted),
            errors(row.some, |point| !point.fitted
                && point.place.order == PointOrder::Linear),
            errors(row.some, |point| !point.fitted
                && point.place.order == PointOrder::Random),
            errors(row.some, |point| !point.fitted),
        );
    }
    text.push('\n');
    summary(&mut text, rows);
    text.push_str(&kept_back::tables(rows));
    left_out(&mut text, rows.len(), left);
    text
}

/// The runs that were not fitted, each with its reason.
fn left_out(text: &mut String, fitted: usize, left: &[UnfittedRun]) {
    if left.is_empty() {
        return;
    }
    let _ = write!(
        text,
        "\n## Runs without a fit\n\n{} of {} runs have no write curves that could be fitted.\n\n\
         | run | card | why |\n|---|---|---|\n",
        left.len(),
        fitted + left.len()
    );
    for UnfittedRun { name, card, why } in left {
        let _ = writeln!(text, "| {name} | {card} | {why} |");
    }
}

fn summary(text: &mut String, rows: &[FitRow]) {
    let all = rows.iter().flat_map(|row| &row.all.compared);
    let some = || rows.iter().flat_map(|row| &row.some.compared);
    let over = [
        ("All points fitted", Errors::over(all, |_| true)),
        (
            "Three sizes, points fitted",
            Errors::over(some(), |point| point.fitted),
        ),
        (
            "Three sizes, points not fitted",
            Errors::over(some(), |point| !point.fitted),
        ),
    ];
    for (what, errors) in over {
        if let Some(errors) = errors {
            let _ = writeln!(
                text,
                "- {what}: {} points, median {:.1} %, 90th percentile {:.1} %, worst {:.0} %.",
                errors.points,
                errors.median * 100.0,
                errors.p90 * 100.0,
                errors.worst * 100.0
            );
        }
    }
    if rows.iter().all(|row| row.all.breaks.is_none()) {
        text.push_str("- Every run fits a family by the measure above.\n");
    }
    for row in rows {
        if let Some(Break { overall, curve }) = row.all.breaks {
            let _ = writeln!(
                text,
                "- Run {} fits no family: median {:.1} %, 90th percentile {:.1} %. The curve that \
                 breaks most: {} ({}).",
                row.name,
                overall.median * 100.0,
                overall.p90 * 100.0,
                curve.name(),
                curve.fitted.map_or_else(|| "–".to_owned(), |of| pair(&of)),
            );
        }
    }
}

/// Where three sizes lead to another family than all do.
fn other_family(row: &FitRow) -> String {
    let (all, some) = (row.all.profile.family(), row.some.profile.family());
    if all == some {
        String::new()
    } else {
        format!(" ({} of 3 sizes)", some.name())
    }
}

/// The figures that tell most about a card.
fn figures(fit: &Fit) -> String {
    const SHOWN: [(&str, &str, f64, &str); 6] = [
        ("write.rate_bytes_per_s", "write", 1e6, "MB/s"),
        ("write.overhead_us", "overhead", 1e3, "ms"),
        ("copy.rate_bytes_per_s", "copy", 1e6, "MB/s"),
        ("log_block.small_write_us", "small write", 1e3, "ms"),
        ("update_block.group_rate_bytes_per_s", "group", 1e6, "MB/s"),
        ("page_map.streams", "streams", 1.0, ""),
    ];
    let value = |path: &str| {
        let of_path = |figure: &&whichfs_card::Figure| figure.path == path;
        fit.profile
            .figures()
            .find(of_path)
            .map(|figure| figure.value)
    };
    let mut parts = Vec::new();
    if let (Some(linear), Some(random)) = (
        value("geometry.open_aus_linear"),
        value("geometry.open_aus_random"),
    ) && linear < 8
    {
        parts.push(format!("open AUs {linear}/{random}"));
    }
    if value("log_block.first_opened") == Some(1) {
        parts.push("the first opened is closed".to_owned());
    }
    for (path, name, divisor, unit) in SHOWN {
        if let Some(value) = value(path).filter(|value| *value > 0) {
            let value = value as f64 / divisor;
            parts.push(format!("{name} {value:.3} {unit}").trim_end().to_owned());
        }
    }
    parts.join(", ").replace(".000", "")
}

fn errors(fit: &Fit, chosen: impl Fn(&ComparedPoint) -> bool) -> String {
    Errors::over(&fit.compared, chosen).map_or_else(|| "–".to_owned(), |errors| pair(&errors))
}

#[cfg(test)]
mod tests {
    use super::{HEAD, UnfittedRun, left_out};
    use crate::BROKEN;
    use crate::host::{FILE_BYTES, IN_ORDER_BYTES};
    use crate::replay::{TRIAL_AUS, TRIAL_BYTES_LEAST};
    use whichfs_units::Bytes;

    #[test]
    fn the_head_states_what_the_code_does_and_is_that_of_the_report() {
        let words = HEAD.split_whitespace().collect::<Vec<_>>().join(" ");
        let [in_order, at_random, least] =
            [IN_ORDER_BYTES, FILE_BYTES, TRIAL_BYTES_LEAST].map(Bytes);
        for stated in [
            format!("in order over {in_order} or at random over {at_random}."),
            format!("cut down to {TRIAL_AUS} AUs, at least {least}."),
            format!(
                "off by more than {:.0} % in the median or {:.0} % in the 90th percentile by its \
                 family alone fits no",
                BROKEN[0] * 100.0,
                BROKEN[1] * 100.0
            ),
        ] {
            assert!(words.contains(&stated), "{stated}");
        }
        assert!(include_str!("../../../docs/fit.md").starts_with(HEAD));
    }

    #[test]
    fn a_run_without_a_fit_is_listed_with_its_reason() {
        let mut text = String::new();
        left_out(&mut text, 26, &[]);
        assert!(text.is_empty());
        let left = UnfittedRun {
            name: "5".into(),
            card: "SA04G".into(),
            why: "no writes".into(),
        };
        left_out(&mut text, 26, &[left]);
        assert!(text.contains("1 of 27 runs"), "{text}");
        assert!(text.ends_with("| 5 | SA04G | no writes |\n"), "{text}");
    }
}
