//! What a study compares, told: how much better or worse, with the interval, and in sentences.

use whichfs_study::{Base, Effect, FallingBehind, Gain, PerformanceStudy};
use whichfs_units::counted;

/// Characters of a column: `-12 (-14…-10) %`, `1.85 (1.79…1.92)`.
const COLUMN: usize = 16;
/// Ratios from here on are told as factors instead of percent.
const FACTOR: f64 = 2.0;

/// A table: its title, its head and its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GainTable {
    /// Where the figures are from.
    pub title: String,
    /// Names of the columns.
    pub head: Vec<String>,
    /// Cells, the label first.
    pub rows: Vec<Vec<String>>,
}

/// The `gains` of a study as tables, one for each card and board, that fit `width` characters. What
/// is compared with a workload is a scaling table for each metric: a row a candidate, a column a
/// workload.
pub fn gain_tables(study: &PerformanceStudy, gains: &[Gain], width: usize) -> Vec<GainTable> {
    let Some(compare) = &study.compare else {
        return Vec::new();
    };
    let (Base::Variant(base) | Base::Candidate(base) | Base::Workload(base)) = &compare.with;
    let scaling = matches!(compare.with, Base::Workload(_));
    let column = |gain: &Gain| match &compare.with {
        Base::Variant(_) => gain.variant.clone(),
        Base::Candidate(_) => gain.candidate.clone(),
        Base::Workload(_) => gain.load.clone(),
    };
    let label = |gain: &Gain| {
        let load = match study.workloads.len() {
            1 => "",
            _ => gain.load.as_str(),
        };
        let parts = match &compare.with {
            Base::Variant(_) => [gain.candidate.as_str(), gain.metric.as_str(), load],
            Base::Candidate(_) => [gain.variant.as_str(), gain.metric.as_str(), load],
            Base::Workload(_) => [gain.candidate.as_str(), gain.variant.as_str(), ""],
        };
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        parts.collect::<Vec<_>>().join(", ")
    };
    let cell_of = if scaling { times } else { change };
    let mut gains: Vec<&Gain> = gains.iter().collect();
    if scaling {
        let metrics = once(gains.iter().map(|gain| gain.metric.clone()));
        let places = once(gains.iter().map(|gain| place(gain)));
        let at = |all: &[String], one: &String| all.iter().position(|other| other == one);
        gains.sort_by_key(|gain| (at(&places, &place(gain)), at(&metrics, &gain.metric)));
    }
    let same = |a: &&Gain, b: &&Gain| place(a) == place(b) && (!scaling || a.metric == b.metric);
    let mut tables = Vec::new();
    for here in gains.chunk_by(same) {
        let columns = once(here.iter().map(|gain| column(gain)));
        let labels = once(here.iter().map(|gain| label(gain)));
        let longest = labels.iter().map(|label| label.chars().count()).max();
        let room = width.saturating_sub(longest.unwrap_or(0) + 2);
        for part in columns.chunks((room / (COLUMN + 2)).max(1)) {
            let cell = |row: &String, name: &String| {
                let of = |gain: &&&Gain| label(gain) == *row && column(gain) == *name;
                let found = here.iter().find(of);
                found.map_or("-".to_owned(), |gain| cell_of(gain))
            };
            let row = |row: &String| {
                let cells = part.iter().map(|name| cell(row, name));
                [row.clone()].into_iter().chain(cells).collect()
            };
            let first = &here[0];
            let what = match scaling {
                true => format!("{}: times that of {base}", first.metric),
                false => format!("compared with {base}"),
            };
            tables.push(GainTable {
                title: format!("{what}, {}", place(first)),
                head: [String::new()]
                    .into_iter()
                    .chain(part.iter().cloned())
                    .collect(),
                rows: labels.iter().map(row).collect(),
            });
        }
    }
    tables
}

/// Where a gain was measured.
fn place(gain: &Gain) -> String {
    format!("on {}, board {}", gain.card, gain.board)
}

/// Each text once, in order.
fn once(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut all = Vec::new();
    for text in texts {
        if !all.contains(&text) {
            all.push(text);
        }
    }
    all
}

/// A gain in a cell of a scaling table: how many times as good, and its interval.
fn times(gain: &Gain) -> String {
    let interval = gain.interval;
    let interval = interval.map(|(low, high)| format!(" ({low:.2}…{high:.2})"));
    format!("{:.2}{}", gain.ratio, interval.unwrap_or_default())
}

/// A gain in a cell: percent better or worse, or a factor, and its interval.
fn change(gain: &Gain) -> String {
    let factor = gain.ratio >= FACTOR;
    let number = |ratio: f64| match factor {
        true => format!("×{ratio:.1}"),
        false => format!("{:+.0}", (ratio - 1.0) * 100.0),
    };
    let interval = gain
        .interval
        .map(|(low, high)| format!(" ({}…{})", number(low), number(high)));
    let unit = if factor { "" } else { " %" };
    match gain.effect {
        Effect::None => "none".to_owned(),
        _ => format!(
            "{}{}{unit}",
            number(gain.ratio),
            interval.unwrap_or_default()
        ),
    }
}

/// What the comparison says, in sentences.
pub(super) fn sentences(
    study: &PerformanceStudy,
    gains: &[Gain],
    turns: &[FallingBehind],
) -> Vec<String> {
    let Some(compare) = &study.compare else {
        return Vec::new();
    };
    let mut said = vec![match &compare.with {
        Base::Workload(base) => format!(
            "Scaling: how many times as good as with {base}, and the interval of 95 % over \
                 seeds (Student's t on log ratios, paired by seed)."
        ),
        Base::Variant(_) | Base::Candidate(_) => {
            "Differences: percent better (+) or worse (-) than what is compared with, or times \
                 as good, and the interval of 95 % over seeds (Student's t on log ratios, paired \
                 by seed); none: the interval holds 0, or it is below 1 %."
                .to_owned()
        }
    }];
    if gains.iter().any(|gain| gain.effect == Effect::Unknown) {
        said.push("One seed gives no interval: --seeds 3 tells what is chance.".to_owned());
    }
    let base = match &compare.with {
        Base::Variant(name) => {
            said.extend(by_card(gains, name));
            return said;
        }
        Base::Workload(_) => return said,
        Base::Candidate(name) => name,
    };
    said.extend(turns.iter().map(|turn| turning(turn, base)));
    said
}

/// A sentence for each card and variant.
fn by_card(gains: &[Gain], base: &str) -> Vec<String> {
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    for gain in gains {
        let pair = (gain.card.as_str(), gain.variant.as_str());
        if !pairs.contains(&pair) {
            pairs.push(pair);
        }
    }
    let sentence = |(card, variant): &(&str, &str)| {
        let here = gains
            .iter()
            .filter(|gain| gain.card == *card && gain.variant == *variant);
        format!(
            "{card}: {variant} instead of {base}: {}.",
            summary(&here.collect::<Vec<_>>())
        )
    };
    pairs.iter().map(sentence).collect()
}

/// The worst and the best of `gains`, or that there is nothing.
fn summary(gains: &[&Gain]) -> String {
    let told = |gain: &&Gain| {
        let cell = change(gain);
        format!(
            "{cell} ({}, {}, {})",
            gain.candidate, gain.metric, gain.load
        )
    };
    let by_ratio = |a: &&&Gain, b: &&&Gain| a.ratio.total_cmp(&b.ratio);
    let of = |effect: Effect| gains.iter().filter(move |gain| gain.effect == effect);
    let worst = of(Effect::Loss).min_by(by_ratio).map(told);
    let best = of(Effect::Gain).max_by(by_ratio).map(told);
    let unknown = of(Effect::Unknown).count();
    let mut parts = Vec::new();
    parts.extend(worst.map(|text| format!("at worst {text}")));
    parts.extend(best.map(|text| format!("at best {text}")));
    if parts.is_empty() && unknown == 0 {
        return format!("none in {}", counted(gains.len(), "figure"));
    }
    let none = of(Effect::None).count();
    parts.push(format!(
        "none in {none} of {}",
        counted(gains.len(), "figure")
    ));
    if unknown > 0 {
        parts.push(format!("{unknown} with one seed only"));
    }
    parts.join(", ")
}

fn turning(turn: &FallingBehind, base: &str) -> String {
    let FallingBehind {
        card,
        candidate,
        metric,
        ..
    } = turn;
    let variant = match turn.variant.as_str() {
        "" => String::new(),
        variant => format!(" ({variant})"),
    };
    let who = format!("{card}: {candidate}{variant}");
    match (&turn.behind_from, &turn.ahead_from) {
        (Some(load), _) => format!("{who} falls behind {base} in {metric} from {load} on."),
        (None, Some(load)) => format!("{who} is ahead of {base} in {metric} from {load} on."),
        (None, None) => format!("{who} does not fall behind {base} in {metric}."),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn gain(candidate: &str, variant: &str, ratio: f64, effect: Effect) -> Gain {
        Gain {
            card: "c".into(),
            board: "b".into(),
            load: "tree".into(),
            candidate: candidate.into(),
            variant: variant.into(),
            metric: "tree_write".into(),
            ratio,
            interval: Some((ratio - 0.02, ratio + 0.02)),
            seeds: 3,
            effect,
        }
    }

    #[test]
    fn a_card_that_does_not_care_is_told_plainly() {
        let none = gain("ext4", "63 sectors", 1.001, Effect::None);
        let said = by_card(&[none.clone(), none.clone()], "aligned");
        assert_eq!(
            said,
            ["c: 63 sectors instead of aligned: none in 2 figures."]
        );
        let loss = gain("vfat", "63 sectors", 0.6, Effect::Loss);
        let said = by_card(&[none, loss], "aligned").concat();
        assert!(
            said.contains("at worst -40 (-42…-38) % (vfat, tree_write, tree)"),
            "{said}"
        );
        assert!(said.contains("none in 1 of 2 figures"), "{said}");
    }

    #[test]
    fn large_gains_are_factors() {
        let mut large = gain("f2fs", "x", 9.8, Effect::Gain);
        large.interval = Some((1.5, 64.0));
        assert_eq!(change(&large), "×9.8 (×1.5…×64.0)");
        large.interval = None;
        assert_eq!(change(&large), "×9.8");
    }

    #[test]
    fn where_it_falls_behind_is_told() {
        let mut turn = FallingBehind {
            card: "c".into(),
            board: "b".into(),
            candidate: "vfat".into(),
            variant: String::new(),
            metric: "video_write".into(),
            behind_from: Some("50 files".into()),
            ahead_from: None,
        };
        let said = turning(&turn, "ext4");
        assert_eq!(
            said,
            "c: vfat falls behind ext4 in video_write from 50 files on."
        );
        turn.behind_from = None;
        assert!(turning(&turn, "ext4").contains("does not fall behind ext4"));
    }

    fn study(with: Base) -> PerformanceStudy {
        PerformanceStudy {
            compare: Some(whichfs_study::Compare {
                with,
                metrics: Vec::new(),
                series: false,
            }),
            ..super::super::fixture::performance()
        }
    }

    #[test]
    fn scaling_has_a_row_for_each_filesystem_and_a_table_for_each_metric() {
        // In the order of the matrix: by workload, then by candidate, then by metric.
        let mut gains = Vec::new();
        for (load, ratio) in [("2 jobs", 1.8), ("4 jobs", 2.5)] {
            for candidate in ["ext4", "f2fs"] {
                for metric in ["read", "write"] {
                    let mut one = gain(candidate, "", ratio, Effect::Gain);
                    (one.load, one.metric) = (load.into(), metric.into());
                    gains.push(one);
                }
            }
        }
        gains[1].interval = None;
        gains[1].effect = Effect::Unknown;
        let study = study(Base::Workload("1 job".into()));
        let made = gain_tables(&study, &gains, 80);
        let titles: Vec<&str> = made.iter().map(|table| table.title.as_str()).collect();
        assert_eq!(
            titles,
            [
                "read: times that of 1 job, on c, board b",
                "write: times that of 1 job, on c, board b"
            ]
        );
        assert_eq!(made[0].head, ["", "2 jobs", "4 jobs"]);
        assert_eq!(
            made[0].rows,
            ["ext4", "f2fs"].map(|fs| [fs, "1.80 (1.78…1.82)", "2.50 (2.48…2.52)"])
        );
        assert_eq!(made[1].rows[0], ["ext4", "1.80", "2.50 (2.48…2.52)"]);
        let said = sentences(&study, &gains, &[]);
        assert!(
            said[0].starts_with("Scaling: how many times as good as with 1 job"),
            "{said:?}"
        );
    }

    #[test]
    fn tables_fit_their_width() {
        let names = ["0 B", "512 B", "63 sectors", "half an AU", "quarter"];
        let gains = names.map(|name| gain("ext4", name, 0.9, Effect::Loss));
        let made = gain_tables(&study(Base::Variant("aligned".into())), &gains, 55);
        assert_eq!(made.len(), 3, "two columns of 18 beside a label of 16");
        assert_eq!(made[0].head, ["", "0 B", "512 B"]);
        assert_eq!(
            made[0].rows,
            [["ext4, tree_write", "-10 (-12…-8) %", "-10 (-12…-8) %"]]
        );
    }
}
