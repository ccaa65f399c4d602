//! Why, in sentences, and what would change it.

use crate::evidence::Evidence;
use crate::judge::{Bounds, Figures, NOISE_FLOOR, Scored, Share, Units, loss};
use crate::need::Need;
use crate::told;
use crate::verdict::{Change, Count, ModelError};
use std::collections::BTreeMap;

/// Gains and losses named in a sentence, at most of each.
const NAMED: usize = 2;

/// What sentences are made of.
pub(crate) struct Told<'a> {
    pub need: &'a Need,
    pub scored: &'a Scored,
    pub units: &'a Units,
    pub bounds: &'a Bounds,
    pub counts: &'a BTreeMap<String, BTreeMap<String, Count>>,
}

impl Told<'_> {
    /// What `gain` in `metric` is, with the figures behind it.
    fn part(&self, metric: &str, gain: f64, [own, other]: [&str; 2]) -> String {
        let label = self.need.label(metric);
        let counts = self.counts.get(metric);
        let counted = |name: &str| counts?.get(name).copied();
        if let (Some(own), Some(other)) = (counted(own), counted(other)) {
            return format!("{label} {own} against {other}");
        }
        let ratio = times(gain.abs().exp());
        let of = |name: &str| self.scored.shown.get(metric)?.get(name).copied();
        match (of(own), of(other), self.units.get(metric)) {
            (Some(own), Some(other), Some((unit, lower))) => {
                let bound = self.bounds.get(metric).copied();
                let figures = told::against([own, other], unit);
                let alike = told::alike([own, other], bound, *lower, unit);
                format!("{label} {ratio} ({figures}{alike})")
            }
            _ => format!("{label} {ratio}"),
        }
    }
}

/// Sentences about `name`: against the winner, or, for the winner, against the second.
pub(crate) fn reasons(told: &Told<'_>, order: &[String], name: &str) -> Vec<String> {
    let Told { need, scored, .. } = told;
    let mut sentences = Vec::new();
    let rival = order.iter().find(|other| other.as_str() != name);
    if let Some(rival) = rival {
        let (wins, losses) = differences(told, name, rival);
        if !wins.is_empty() {
            sentences.push(format!("{name} wins {} over {rival}", wins.join(" and ")));
        }
        if !losses.is_empty() {
            sentences.push(format!("{name} loses {} to {rival}", losses.join(" and ")));
        }
        if wins.is_empty() && losses.is_empty() {
            sentences.push(format!(
                "{name} cannot be told from {rival} in any metric that counts"
            ));
        }
    }
    let missing: Vec<String> = scored
        .shares
        .iter()
        .filter(|share| share.share > 0.0)
        .filter(|share| !scored.fits[&share.metric].level.contains_key(name))
        .map(|share| need.label(&share.metric))
        .collect();
    if !missing.is_empty() {
        sentences.push(format!(
            "{name} gives no figure for {}: judged without",
            missing.join(", ")
        ));
    }
    sentences
}

/// What `name` wins over and loses to `rival`, weightiest first: "mount 3.0× (10.0 against 30.0
/// ms)".
pub(crate) fn differences(told: &Told<'_>, name: &str, rival: &str) -> (Vec<String>, Vec<String>) {
    let scored = told.scored;
    let mut parts: Vec<(f64, f64, &str)> = Vec::new();
    for Share { metric, share } in &scored.shares {
        let level = &scored.fits[metric].level;
        if let (Some(own), Some(other)) = (level.get(name), level.get(rival)) {
            let gain = other - own;
            if *share > 0.0 && gain.abs() >= NOISE_FLOOR.ln() {
                parts.push((share * gain.abs(), gain, metric));
            }
        }
    }
    parts.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.2.cmp(b.2)));
    let words = |winning: bool| {
        let side = parts.iter().filter(|(_, gain, _)| (*gain > 0.0) == winning);
        side.take(NAMED)
            .map(|(_, gain, metric)| told.part(metric, *gain, [name, rival]))
            .collect()
    };
    (words(true), words(false))
}

/// `2.1×`, `13×`: two significant digits.
pub(crate) fn times(ratio: f64) -> String {
    match ratio {
        r if r < 9.95 => format!("{r:.1}×"),
        r => format!("{r:.0}×"),
    }
}

/// Who would lead if one metric weighed twice; only changes are listed.
pub(crate) fn changes(need: &Need, scored: &Scored) -> Vec<Change> {
    let Some(winner) = leader(scored, &scored.shares) else {
        return Vec::new();
    };
    let mut changes = Vec::new();
    for doubled in scored.shares.iter().filter(|share| share.share > 0.0) {
        let mut shares = scored.shares.clone();
        for share in &mut shares {
            if share.metric == doubled.metric {
                share.share *= 2.0;
            }
        }
        // A lead by rounding alone is none.
        let leads = |other: &str| {
            let loss_of = |name: &str| loss(name, &scored.fits, &shares);
            loss_of(&winner) - loss_of(other) > 1e-9
        };
        match leader(scored, &shares) {
            Some(other) if leads(&other) => changes.push(Change {
                metric: doubled.metric.clone(),
                rule: None,
                text: format!(
                    "if \"{}\" weighed twice, {other} would lead",
                    need.label(&doubled.metric)
                ),
                winner: other,
            }),
            _ => {}
        }
    }
    changes
}

fn leader(scored: &Scored, shares: &[Share]) -> Option<String> {
    let loss_of = |name: &String| loss(name, &scored.fits, shares);
    let names = scored.loss.keys();
    names
        .min_by(|a, b| loss_of(a).total_cmp(&loss_of(b)).then(a.cmp(b)))
        .cloned()
}

/// How the probabilities were found, in one sentence.
pub(crate) fn method(figures: &Figures, need: &Need, evidence: &Evidence) -> String {
    let counts = figures
        .values()
        .map(|metrics| metrics.values().map(|row| row.len()).max());
    let counts: Vec<usize> = counts.flatten().collect();
    let most = counts.iter().copied().max().unwrap_or(0);
    let baseline = need
        .baseline
        .as_deref()
        .filter(|name| figures.contains_key(*name));
    let anchor = baseline.unwrap_or("the one with the most seeds");
    let uneven = match most > 1 {
        true => format!(
            "; each is compared with {anchor} on the seeds that both ran, and figures are what \
             that ratio makes of the first seed's"
        ),
        false => String::new(),
    };
    let stated = evidence.card_uncertainty * 100.0;
    let fit = match evidence.fit_error {
        Some(ModelError { median, p90 }) => format!(
            " and the {:.0} % by which nine of ten points of its model are off at most (half: \
             {:.1} %)",
            p90 * 100.0,
            median * 100.0
        ),
        None => String::new(),
    };
    let model = match &evidence.discrepancy {
        Some(errors) => format!(
            ", and how far ratios of the lab are from {} published ones (8 of 10 within {:.1} \
             times)",
            errors.ratios,
            errors.of_eight_in_ten()
        ),
        None => String::new(),
    };
    let doubt = format!(
        "a noise floor of 10 %, the card's stated uncertainty of {stated:.0} %{fit}{model}"
    );
    let draws = crate::bootstrap::DRAWS;
    match most {
        0 | 1 => format!("One seed: probabilities come from {doubt} ({draws} draws)"),
        n => format!("Bootstrap over up to {n} seeds, with {doubt} ({draws} draws){uneven}"),
    }
}
