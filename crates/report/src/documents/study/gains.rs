//! What a study compares, told: how much better or worse, with the interval, and in sentences.

use whichfs_study::{Base, Effect, FallingBehind, Gain, PerformanceStudy};
use whichfs_units::counted;

/// Characters of a column: `-12 (-14…-10) %`.
const COLUMN: usize = 15;
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

/// The `gains` of a study as tables, one for each card and board, that fit `width` characters.
pub fn gain_tables(study: &PerformanceStudy, gains: &[Gain], width: usize) -> Vec<GainTable> {
    let Some(compare) = &study.compare else {
        return Vec::new();
    };
    let (base, by_variant) = match &compare.with {
        Base::Variant(name) => (name, true),
        Base::Candidate(name) => (name, false),
    };
    let column = |gain: &Gain| match by_variant {
        true => gain.variant.clone(),
        false => gain.candidate.clone(),
    };
    let label = |gain: &Gain| {
        let other = match by_variant {
            true => &gain.candidate,
            false => &gain.variant,
        };
        let load = if study.workloads.len() > 1 {
            gain.load.as_str()
        } else {
            ""
        };
        let parts = [other.as_str(), gain.metric.as_str(), load];
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        parts.collect::<Vec<_>>().join(", ")
    };
    let mut tables = Vec::new();
    for here in gains.chunk_by(|a, b| (&a.card, &a.board) == (&b.card, &b.board)) {
        let columns = once(here.iter().map(column));
        let labels = once(here.iter().map(label));
        let longest = labels.iter().map(|label| label.chars().count()).max();
        let room = width.saturating_sub(longest.unwrap_or(0) + 2);
        for part in columns.chunks((room / (COLUMN + 2)).max(1)) {
            let cell = |row: &String, name: &String| {
                let of = |gain: &&Gain| label(gain) == *row && column(gain) == *name;
                here.iter().find(of).map_or("-".to_owned(), change)
            };
            let row = |row: &String| {
                let cells = part.iter().map(|name| cell(row, name));
                [row.clone()].into_iter().chain(cells).collect()
            };
            let first = &here[0];
            tables.push(GainTable {
                title: format!(
                    "compared with {base}, on {}, board {}",
                    first.card, first.board
                ),
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
    let mut said = vec![
        "Differences: percent better (+) or worse (-) than what is compared with, or times as \
         good, and the interval of 95 % over seeds (Student's t on log ratios, paired by seed); \
         none: the interval holds 0, or it is below 1 %."
            .to_owned(),
    ];
    if gains.iter().any(|gain| gain.effect == Effect::Unknown) {
        said.push("One seed gives no interval: --seeds 3 tells what is chance.".to_owned());
    }
    let base = match &compare.with {
        Base::Variant(name) => {
            said.extend(by_card(gains, name));
            return said;
        }
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

    #[test]
    fn tables_fit_their_width() {
        let study = |with| PerformanceStudy {
            compare: Some(whichfs_study::Compare {
                with,
                metrics: Vec::new(),
                series: false,
            }),
            ..super::super::fixture::performance()
        };
        let names = ["0 B", "512 B", "63 sectors", "half an AU", "quarter"];
        let gains = names.map(|name| gain("ext4", name, 0.9, Effect::Loss));
        let made = gain_tables(&study(Base::Variant("aligned".into())), &gains, 55);
        assert_eq!(made.len(), 3, "two columns of 17 beside a label of 16");
        assert_eq!(made[0].head, ["", "0 B", "512 B"]);
        assert_eq!(
            made[0].rows,
            [["ext4, tree_write", "-10 (-12…-8) %", "-10 (-12…-8) %"]]
        );
    }
}
