//! What a verdict rests on: figures of trials, what failed, what is known of card and candidates.

use crate::discrepancy::Discrepancy;
use crate::facts::CandidateFacts;
use crate::kinds::CardKind;
use crate::verdict::{Count, Excluded, FigureOrigin, ModelError};
use std::collections::BTreeMap;

/// One figure of one trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Candidate name.
    pub candidate: String,
    /// Metric name.
    pub metric: String,
    /// Seed of the trial.
    pub seed: u64,
    /// Value in `unit`, finite and above 0.
    pub value: f64,
    /// Unit; one for each metric.
    pub unit: String,
    /// True for durations and space.
    pub lower_is_better: bool,
}

/// A trial that gave no figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Candidate name.
    pub candidate: String,
    /// Seed of the trial.
    pub seed: u64,
    /// One sentence.
    pub reason: String,
}

/// What a verdict rests on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    /// Card name.
    pub card: String,
    /// Figures of the finished trials, in any order.
    pub samples: Vec<Sample>,
    /// Trials that failed.
    pub failures: Vec<Failure>,
    /// Candidates that were excluded before any trial.
    pub excluded: Vec<Excluded>,
    /// How to apply each candidate: mkfs, mount, fstab line.
    pub commands: BTreeMap<String, Vec<String>>,
    /// Relative uncertainty of the card's figures as its profile states it (0.3 is ±30 %).
    pub card_uncertainty: f64,
    /// Trials behind the samples.
    pub trials: u64,
    /// Their virtual time in seconds.
    pub virtual_s: f64,
    /// Wall time spent in seconds.
    pub wall_s: f64,
    /// Where the samples come from.
    pub origin: FigureOrigin,
    /// Relative error of the card's model on what was measured of the card.
    pub fit_error: Option<ModelError>,
    /// How far ratios of such figures are from published ones; none of figures that are measured.
    pub discrepancy: Option<Discrepancy>,
    /// What is known of the candidates, for the need's tie-breakers.
    pub facts: Vec<CandidateFacts>,
    /// Counts behind figures that are bounds of a share: metric → candidate → count.
    pub counts: BTreeMap<String, BTreeMap<String, Count>>,
    /// Figures of candidates that a rule excludes: only to tell what the rule decides.
    pub aside: Vec<Sample>,
    /// What the figures of a candidate leave out.
    pub caveats: BTreeMap<String, Vec<String>>,
    /// Which figure of a candidate still changed when its trial ended, by too little for anybody to
    /// notice: told as a caveat, and counted as it is.
    pub unsettled: BTreeMap<String, String>,
    /// What kind of card each seed's trials ran on, where they are samples of several.
    pub card_kinds: BTreeMap<u64, CardKind>,
    /// Bytes of the partition; none where the samples have several.
    pub partition_bytes: Option<u64>,
}

impl Evidence {
    /// What is to be known of the figures of `candidate`.
    pub(crate) fn told_of(&self, candidate: &str) -> Vec<String> {
        let leaves_out = self.caveats.get(candidate).into_iter().flatten();
        leaves_out
            .chain(self.unsettled.get(candidate))
            .cloned()
            .collect()
    }

    /// How far the card's figures may be off, as a fraction: what its profile states of its
    /// figures and how far the model is off what was measured, which are independent.
    pub(crate) fn doubt_of_card(&self) -> f64 {
        doubt(self.card_uncertainty, self.fit_error)
    }
}

/// How far a card's figures may be off, as a fraction: `stated` by its profile, and by how much
/// its model is off what was measured, which are independent. Of the model the 90th percentile
/// counts: a figure that decides a contest may well be one of the worst tenth.
pub(crate) fn doubt(stated: f64, fit: Option<ModelError>) -> f64 {
    stated.hypot(fit.map_or(0.0, |fit| fit.p90.max(fit.median)))
}
