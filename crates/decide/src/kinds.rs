//! What the answer depends on: the best candidate on each kind of card that this card may be.

use crate::evidence::Evidence;
use crate::judge::judge;
use crate::need::Need;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A kind of card, such as "maps pages".
#[derive(Clone, Debug, PartialEq)]
pub struct CardKind {
    /// What it does, to follow "if it".
    pub name: String,
    /// Probability that the card is of it, 0 to 1.
    pub probability: f64,
}

/// The answer if the card is of one kind.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct OfKind {
    /// What cards of the kind do, to follow "if it".
    pub kind: String,
    /// Probability that the card is of it, 0 to 1.
    pub probability: f64,
    /// Seeds whose cards are of it.
    pub seeds: u64,
    /// The best candidate on them.
    pub winner: String,
    /// How many times better it is there than the next, by score.
    pub ahead: f64,
}

/// The answer on each kind of card that was tried, the likeliest first; empty where there is one.
pub(crate) fn by_kind(need: &Need, evidence: &Evidence) -> Vec<OfKind> {
    let mut kinds: BTreeMap<&str, (f64, Vec<u64>)> = BTreeMap::new();
    for (seed, kind) in &evidence.card_kinds {
        let of_kind = kinds
            .entry(&kind.name)
            .or_insert((kind.probability, Vec::new()));
        of_kind.1.push(*seed);
    }
    if kinds.len() < 2 {
        return Vec::new();
    }
    let answer = |(kind, (probability, seeds)): (&str, (f64, Vec<u64>))| {
        let mut of_kind = evidence.clone();
        of_kind.card_kinds.clear();
        of_kind.caveats.clear();
        of_kind.aside.clear();
        of_kind
            .samples
            .retain(|sample| seeds.contains(&sample.seed));
        of_kind
            .failures
            .retain(|failure| seeds.contains(&failure.seed));
        let verdict = judge(need, &of_kind).ok()?;
        let [first, rest @ ..] = &verdict.ranking[..] else {
            return None;
        };
        Some(OfKind {
            kind: kind.to_owned(),
            probability,
            seeds: seeds.len() as u64,
            winner: first.candidate.clone(),
            ahead: rest.first().map_or(1.0, |next| first.score / next.score),
        })
    };
    let mut answers: Vec<OfKind> = kinds.into_iter().filter_map(answer).collect();
    answers.sort_by(|a, b| b.probability.total_cmp(&a.probability));
    answers
}

/// The answers in one sentence; none where there is one kind.
pub fn sentence(kinds: &[OfKind]) -> Option<String> {
    let (first, rest) = kinds.split_first()?;
    let part = |of: &OfKind| {
        let ahead = match of.ahead {
            ahead if ahead >= 1.1 => format!(" by {ahead:.1}×"),
            _ => String::new(),
        };
        format!(
            "if it {} ({:.0} %), {}{ahead}",
            of.kind,
            of.probability * 100.0,
            of.winner
        )
    };
    let parts: Vec<String> = kinds.iter().map(part).collect();
    let begin = match rest.iter().all(|of| of.winner == first.winner) {
        true => "What kind of card it is does not decide",
        false => "What kind of card it is decides",
    };
    Some(format!("{begin}: {}.", parts.join("; ")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::evidence::Sample;

    fn evidence(kinds: [&str; 2], f2fs: [f64; 2]) -> Evidence {
        let need = Need::named("logger").unwrap();
        let metrics: Vec<&String> = need.weights.keys().chain(&need.requires).collect();
        let of = |candidate: &str, seed: u64, value: f64| -> Vec<Sample> {
            let sample = |metric: &&String| Sample {
                candidate: candidate.to_owned(),
                metric: (*metric).clone(),
                seed,
                value,
                unit: "s".into(),
                lower_is_better: true,
            };
            metrics.iter().map(sample).collect()
        };
        let mut samples = Vec::new();
        for (seed, f2fs) in [1, 2].into_iter().zip(f2fs) {
            samples.extend(of("ext4", seed, 1.0));
            samples.extend(of("f2fs", seed, f2fs));
        }
        let kind = |name: &str| CardKind {
            name: name.to_owned(),
            probability: 0.5,
        };
        Evidence {
            samples,
            card_kinds: [(1, kind(kinds[0])), (2, kind(kinds[1]))].into(),
            ..Evidence::default()
        }
    }

    #[test]
    fn the_best_candidate_is_told_for_each_kind() {
        let need = Need::named("logger").unwrap();
        let split = by_kind(
            &need,
            &evidence(["maps pages", "has log blocks"], [0.5, 2.0]),
        );
        let told: Vec<(&str, &str)> = split
            .iter()
            .map(|of| (of.kind.as_str(), of.winner.as_str()))
            .collect();
        assert!(
            told.contains(&("maps pages", "f2fs")) && told.contains(&("has log blocks", "ext4"))
        );
        let said = sentence(&split).unwrap();
        assert!(
            said.starts_with("What kind of card it is decides: if it "),
            "{said}"
        );
        assert!(
            said.contains("if it maps pages (50 %), f2fs by 2.0×"),
            "{said}"
        );
        let split = by_kind(
            &need,
            &evidence(["maps pages", "has log blocks"], [0.5, 0.5]),
        );
        assert!(sentence(&split).unwrap().contains("does not decide"));
        assert!(by_kind(&need, &evidence(["maps pages", "maps pages"], [0.5, 2.0])).is_empty());
    }
}
