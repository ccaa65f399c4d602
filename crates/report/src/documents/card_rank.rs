//! Which card to buy.

use crate::document::Document;
use crate::number::{percent, percents, with_unit};
use crate::text::{folded, table};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use whichfs_decide::{CardPlace, CardRanking, Unqualified};

/// The ranking for a program: also the commands that show each card's trials.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CardRankShown<'a> {
    #[serde(flatten)]
    ranking: &'a CardRanking,
    /// For each card the commands that show the trials behind its figures.
    show: BTreeMap<&'a str, Vec<String>>,
}

impl Document for CardRankShown<'_> {
    const NAME: &'static str = "card rank";
}

impl<'a> CardRankShown<'a> {
    /// The `ranking`; `store` is the option that names the store of its trials, after a blank, or
    /// empty.
    pub fn new(ranking: &'a CardRanking, store: &str) -> CardRankShown<'a> {
        let show = |id: &String| format!("whichfs trial show {id}{store}");
        let cards = ranking.cards.iter();
        CardRankShown {
            show: cards
                .map(|card| (card.card.as_str(), card.trials.iter().map(show).collect()))
                .collect(),
            ranking,
        }
    }
}

/// What a card's figures are: `modelled, fit 11 %` or `modelled, composed`.
fn stamp(card: &CardPlace) -> String {
    let basis = match (card.composed, card.fit_error) {
        (true, _) => ", composed".to_owned(),
        (false, Some(error)) => format!(", fit {}", percent(error.median)),
        (false, None) => String::new(),
    };
    format!("{}{basis}", card.origin.word())
}

/// The ranking in lines of at most `width` columns.
pub fn rank_text(ranking: &CardRanking, width: usize) -> String {
    let mut out = String::new();
    if !ranking.cards.is_empty() {
        out.push_str(&ranked(ranking, width));
        out.push('\n');
    }
    for one in &ranking.unqualified {
        out.push_str(&none(one, width));
    }
    out.trim_end().to_owned()
}

fn ranked(ranking: &CardRanking, width: usize) -> String {
    // As many figures as there is room for beside names, probability and stamp.
    let counted = ranking.metrics.iter().enumerate();
    let counted = counted.filter(|(_, metric)| metric.share > 0.0);
    let shown: Vec<_> = counted.take(width.saturating_sub(68) / 12).collect();
    let mut head = vec!["card", "with", "score", "P of best", "figures are"];
    head.extend(shown.iter().map(|(_, metric)| metric.label.as_str()));
    let all: Vec<Option<f64>> = (ranking.cards.iter())
        .map(|card| card.place.p_best)
        .collect();
    let rows = ranking.cards.iter().zip(percents(&all));
    let rows = rows.map(|(card, p_best)| {
        let place = &card.place;
        let mut row = vec![
            card.card.clone(),
            card.candidate.clone(),
            format!("{:.2}", place.score),
            p_best,
            stamp(card),
        ];
        row.extend(shown.iter().map(|(at, metric)| {
            let value = place.values.get(*at).copied().flatten();
            value.map_or("–".to_owned(), |value| with_unit(value, &metric.unit))
        }));
        row
    });
    let mut out = table(&head, rows.collect(), width);
    out.push_str("\n\n");
    let mut say = |text: &str, indent| {
        out.push_str(&folded(text, indent, width));
        out.push('\n');
    };
    if let Some(first) = ranking.cards.first() {
        let (card, candidate) = (&first.card, &first.candidate);
        match first.place.ties_with.as_slice() {
            [] => say(&format!("Buy {card}, with {candidate}."), 0),
            ties => say(
                &format!(
                    "Buy {card}, with {candidate}. It ties with {}: the noise floor of 10 % and \
                     what is known of the cards do not tell them apart.",
                    ties.join(", ")
                ),
                0,
            ),
        }
    }
    say("", 0);
    say("Why", 0);
    for card in &ranking.cards {
        for reason in &card.reasons {
            say(&format!("  {reason}."), 4);
        }
        let ties = &card.place.ties_with;
        if !ties.is_empty() {
            say(
                &format!("  {} ties with {}.", card.card, ties.join(", ")),
                4,
            );
        }
        for caveat in &card.caveats {
            say(
                &format!("  Mind: {} with {}: {caveat}.", card.card, card.candidate),
                4,
            );
        }
        for one in card
            .excluded
            .iter()
            .filter(|one| one.rule.as_deref() == Some("failed"))
        {
            say(
                &format!("  {} without {}: {}.", card.card, one.candidate, one.why),
                4,
            );
        }
    }
    out
}

/// That no filesystem qualifies on a card, which rules exclude whom, and the nearest.
fn none(one: &Unqualified, width: usize) -> String {
    let mut lines = vec![(format!("No filesystem qualifies on {}.", one.card), 0)];
    for near in &one.nearest {
        let (breaks, allow) = (near.breaks.join(" and "), near.allow.join(" "));
        let candidate = &near.candidate;
        lines.push((
            format!("  nearest: {candidate} breaks {breaks}; {allow} lets it in."),
            4,
        ));
    }
    for rule in one.rules.iter().filter(|rule| !rule.excludes.is_empty()) {
        let (name, wants) = (&rule.rule, &rule.wants);
        let excludes = rule.excludes.join(", ");
        lines.push((format!("  rule {name} ({wants}) excludes {excludes}"), 4));
    }
    for excluded in &one.excluded {
        lines.push((format!("  {}: {}", excluded.candidate, excluded.why), 4));
    }
    let lines = lines.into_iter();
    let folded = lines.map(|(text, indent)| folded(&text, indent, width) + "\n");
    folded.collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use whichfs_decide::{CardEvidence, Excluded, Need, Sample, rank_cards};

    fn evidence(card: &str, value: f64) -> CardEvidence {
        let sample = Sample {
            candidate: "nilfs2".into(),
            metric: "append".into(),
            seed: 1,
            value,
            unit: "operations/s".into(),
            lower_is_better: false,
        };
        CardEvidence {
            card: card.into(),
            samples: vec![sample],
            ..CardEvidence::default()
        }
    }

    fn need() -> Need {
        let text = "name = \"test\"\ntitle = \"Test\"\nworkload = \"logger\"\n\
                    requires = [\"append\"]\n[weights.append]\nweight = 1\nbecause = \"x\"\n\
                    [[rules]]\nfact = \"windows\"\nis = true\nbecause = \"x\"\nsource = \"y\"\n";
        Need::parse("test.toml", text).unwrap()
    }

    #[test]
    fn a_ranked_card_has_reason_stamp_and_caveat_and_the_others_their_rules() {
        let mut first = evidence("good", 9.0);
        first.fit_error = Some(whichfs_decide::ModelError {
            median: 0.11,
            p90: 0.3,
        });
        let said = vec!["its cleaner did not run".to_owned()];
        first.caveats = [("nilfs2".to_owned(), said)].into();
        first.trials = [("nilfs2".to_owned(), vec!["abcd".to_owned()])].into();
        let mut second = evidence("other", 3.0);
        second.composed = true;
        let mut none = evidence("bare", 1.0);
        none.samples.clear();
        none.excluded = vec![Excluded {
            candidate: "ext4".into(),
            why: "is not read by Windows".into(),
            rule: Some("windows".into()),
            allow: Some("--need windows=any".into()),
            ..Excluded::default()
        }];
        let ranking = rank_cards(&need(), &[first, second, none]).unwrap();
        let told = rank_text(&ranking, 80);
        for said in [
            "modelled, fit 11",
            "modelled, composed",
            "Buy good, with nilfs2.",
            "good wins append 3.0× (9.00 against 3.00 op/s) over other.",
            "Mind: good with nilfs2: its cleaner did not run.",
            "No filesystem qualifies on bare.",
            "ext4 breaks windows; --need windows=any lets it in.",
            "rule windows",
            "ext4: is not read by Windows",
        ] {
            assert!(told.contains(said), "no {said}: {told}");
        }
        assert!(
            told.lines().all(|line| line.chars().count() <= 80),
            "{told}"
        );
        let alone = rank_text(
            &CardRanking {
                cards: Vec::new(),
                ..ranking.clone()
            },
            80,
        );
        assert!(
            alone.starts_with("No filesystem qualifies on bare."),
            "no empty table: {alone}"
        );
        let shown = CardRankShown::new(&ranking, " --store s.sqlite");
        let json = serde_json::to_value(shown).unwrap();
        assert_eq!(
            json["show"]["good"][0],
            "whichfs trial show abcd --store s.sqlite"
        );
        assert_eq!(json["cards"][0]["trials"][0], "abcd");
        assert_eq!(json["unqualified"][0]["nearest"][0]["candidate"], "ext4");
    }
}
