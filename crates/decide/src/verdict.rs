//! The verdict as data: `choose --json`, and what a report needs beside it.

use crate::discrepancy::Discrepancy;
use crate::kinds::OfKind;
use crate::settle::Settling;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Which one, how sure, why, and what would change it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct Verdict {
    /// Card it holds for.
    pub card: String,
    /// Name of the need it answers.
    pub needs: String,
    /// Candidates, best first.
    pub ranking: Vec<Ranked>,
    /// Those that could not be chosen.
    pub excluded: Vec<Excluded>,
    /// Candidates of which trials failed; the verdict stands without them.
    #[serde(default)]
    pub failed: Vec<Failed>,
    /// How to apply it: the winner's mkfs and mount commands and fstab line.
    pub commands: Vec<String>,
    /// Trials behind it.
    pub trials: u64,
    /// Virtual time of those trials together, in seconds.
    pub virtual_s: f64,
    /// Wall time that was spent, in seconds; the only figure that varies from run to run.
    pub wall_s: f64,
    /// Title of the need.
    pub title: String,
    /// The metrics, heaviest first, then those shown without weight.
    pub metrics: Vec<MetricInfo>,
    /// What would change the winner; empty if neither doubling any one weight does nor dropping a
    /// rule that excludes somebody of whom there are trials.
    pub changes: Vec<Change>,
    /// Candidates that deserve more seeds; empty if nothing can change.
    pub next_seeds: Vec<String>,
    /// Score ratio below which candidates tie, for example 1.1.
    pub noise_floor: f64,
    /// Relative uncertainty of the card's figures that was assumed, for example 0.3.
    pub card_uncertainty: f64,
    /// How the probabilities were found, in one sentence.
    pub method: String,
    /// Where its figures come from.
    pub origin: FigureOrigin,
    /// Relative error of the card's model on what was measured of the card; none if the profile
    /// states none.
    pub fit_error: Option<ModelError>,
    /// How far the lab's ratios between filesystems are from published ones, which widens the
    /// probabilities and intervals; none where figures are measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discrepancy: Option<Discrepancy>,
    /// What the need counts and no trial gave a figure for.
    pub unmeasured: Vec<Unmeasured>,
    /// The need's rules in force, and whom each excludes.
    pub rules: Vec<RuleLine>,
    /// If nobody qualifies: those that break the fewest rules.
    pub nearest: Vec<Nearest>,
    /// The answer on each kind of card that this card may be, the likeliest first; empty where
    /// its kind is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<OfKind>,
    /// On how many of the cards that this one may be the answer is right, and what a probe would
    /// make of that; none where the card is known, or where too few trials tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settling: Option<Settling>,
    /// The answer without those whose figures leave something out, if the winner is one of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without: Option<Without>,
    /// Which of several to take, where scores do not decide; none where the first of the ranking
    /// is the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<Advice>,
    /// What one loses who just uses the need's baseline; none if the need has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
}

/// Relative error of a card's model on what was measured of the card: 0.06 is 6 %.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ModelError {
    /// Half of the points are off by less.
    pub median: f64,
    /// Nine of ten points are off by less.
    pub p90: f64,
}

/// Which candidate to take, for another reason than its score.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Advice {
    /// Candidate name.
    pub candidate: String,
    /// Candidates that trials cannot tell apart, itself among them, best score first; empty where
    /// a standard decides.
    pub among: Vec<String>,
    /// Why this one, in words that follow "because".
    pub because: String,
    /// Where that is written; empty where the catalogue has the sources.
    pub source: String,
    /// Who measures better, where a standard decides: one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deviation: Option<String>,
}

/// What everybody uses for a need.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Baseline {
    /// Candidate name.
    pub candidate: String,
    /// Whether scores are beside its figures: its own score is 1.
    pub is_scale: bool,
    /// What one loses with it, in words that follow "If you just use ext4:".
    pub told: String,
}

/// How often something happened.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Count {
    /// Times that it did.
    pub hits: u64,
    /// Times that it was tried.
    pub of: u64,
    /// Ends of the 95 % interval of its share, 0 to 1.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl std::fmt::Display for Count {
    /// `0 of 20 (≤ 16 %)`, `5 of 20 (11 to 47 %)`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [low, high] = [self.low * 100.0, self.high * 100.0];
        match self.hits {
            0 => write!(f, "0 of {} (≤ {high:.0} %)", self.of),
            hits => write!(f, "{hits} of {} ({low:.0} to {high:.0} %)", self.of),
        }
    }
}

/// The answer without some candidates.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct Without {
    /// Those whose figures leave something out, best first.
    pub left_out: Vec<String>,
    /// Who would lead.
    pub winner: String,
    /// Its probability of being the best of the others, 0 to 1; none of a single one.
    #[serde(default)]
    pub p_best: Option<f64>,
}

/// A candidate of which trials failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct Failed {
    /// Candidate name.
    pub candidate: String,
    /// Those that failed, by seed.
    pub failed: Vec<FailedTrial>,
    /// Its trials in all, those that were done too.
    pub trials: u64,
}

impl Failed {
    /// `1 of 2 trials failed`.
    pub fn words(&self) -> String {
        let noun = if self.trials == 1 { "trial" } else { "trials" };
        format!("{} of {} {noun} failed", self.failed.len(), self.trials)
    }
}

/// A trial that ended without figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct FailedTrial {
    /// Decides the data that the workload writes.
    pub seed: u64,
    /// Why, in one sentence.
    pub reason: String,
}

impl Verdict {
    /// The candidate to take: the advised one, or the first of the ranking.
    pub fn advised(&self) -> Option<&Ranked> {
        let advised = self.advice.as_ref().and_then(|advice| {
            let mut all = self.ranking.iter();
            all.find(|one| one.candidate == advice.candidate)
        });
        advised.or(self.ranking.first())
    }

    /// The best score of `names` by their worst; 1 of none.
    pub fn spread_of(&self, names: &[String]) -> f64 {
        let named = self
            .ranking
            .iter()
            .filter(|one| names.contains(&one.candidate));
        let scores: Vec<f64> = named.map(|one| one.score).collect();
        match (scores.first(), scores.last()) {
            (Some(best), Some(worst)) => best / worst.max(1e-9),
            _ => 1.0,
        }
    }

    /// The trials of `candidate` that failed, if any did.
    pub fn failed_of(&self, candidate: &str) -> Option<&Failed> {
        self.failed.iter().find(|one| one.candidate == candidate)
    }
}

/// Where figures come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FigureOrigin {
    /// Real filesystem code on a modelled card, in virtual time.
    #[default]
    Modelled,
    /// A real device.
    Measured,
    /// Somebody else's figures.
    Published,
}

impl FigureOrigin {
    /// The word of the stamp.
    pub fn word(self) -> &'static str {
        match self {
            FigureOrigin::Modelled => "modelled",
            FigureOrigin::Measured => "measured",
            FigureOrigin::Published => "published",
        }
    }
}

/// A metric that the need counts and that nobody has a figure of.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct Unmeasured {
    /// Metric name.
    pub metric: String,
    /// In words.
    pub label: String,
    /// Share of the need's weights that it would have, 0 to 1.
    pub share: f64,
}

/// A rule of the need.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct RuleLine {
    /// Name of its fact.
    pub rule: String,
    /// What a candidate must be like.
    pub wants: String,
    /// Why the need has it.
    pub because: String,
    /// Where that is written.
    pub source: String,
    /// Candidates that break it.
    pub excludes: Vec<String>,
}

/// A candidate that nearly qualifies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct Nearest {
    /// Candidate name.
    pub candidate: String,
    /// Rules that it breaks.
    pub breaks: Vec<String>,
    /// What would let it in, for each of them.
    pub allow: Vec<String>,
}

/// One candidate's place.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct Ranked {
    /// Candidate name.
    pub candidate: String,
    /// Weighted geometric mean of the baseline's cost ÷ its own over all metrics: 1 is as good as
    /// the baseline, 0.5 half as good. Where the baseline has no figures, beside the best in each
    /// metric: 1 is best at everything.
    pub score: f64,
    /// Between what 90 % of the draws of its score lie: seeds, the card's uncertainty and the noise
    /// floor.
    #[serde(default)]
    pub interval: [f64; 2],
    /// Probability of being the best of the ranking, 0 to 1; none of a single candidate.
    #[serde(default)]
    pub p_best: Option<f64>,
    /// Candidates whose scores cannot be told from this one's.
    pub ties_with: Vec<String>,
    /// Grade by metric.
    pub grades: BTreeMap<String, Grade>,
    /// Sentences for people: what the candidate wins and loses by.
    pub reasons: Vec<String>,
    /// Figures by metric.
    pub figures: BTreeMap<String, CandidateFigure>,
    /// Number of seeds behind it.
    pub seeds: usize,
    /// What its figures leave out.
    pub caveats: Vec<String>,
}

/// One candidate's figure of one metric.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct CandidateFigure {
    /// In the metric's unit, on the first seed: what the anchor (the baseline, or the candidate
    /// with the most seeds) took there, times the mean ratio to it on the seeds that both ran.
    pub value: f64,
    /// How many times worse than the best candidate, paired by seed; 1 is the best. It is the
    /// ratio of the `value`s, but for those beyond the metric's `enough`, which count alike.
    pub ratio: f64,
    /// Every sample, by seed.
    pub samples: Vec<SeedFigure>,
    /// How often it happened, where the value is the upper end of the interval of a share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<Count>,
}

/// The figure of one seed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct SeedFigure {
    /// Seed of the trial.
    pub seed: u64,
    /// Value in the metric's unit.
    pub value: f64,
}

/// What a metric is and how much it counts.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct MetricInfo {
    /// Metric name.
    pub metric: String,
    /// In words.
    pub label: String,
    /// In six characters at most.
    pub short: String,
    /// Unit of its values.
    pub unit: String,
    /// True for durations and space.
    pub lower_is_better: bool,
    /// False where neither of two figures is the better one and the need gives the metric no
    /// weight: it is shown without grades.
    #[serde(default = "yes")]
    pub judged: bool,
    /// Share of the score, 0 to 1; the shares add up to 1.
    pub share: f64,
    /// Why it counts this much.
    pub because: String,
    /// Value from which on better is no better.
    pub enough: Option<f64>,
    /// Reason for `enough`, in one sentence.
    pub enough_because: Option<String>,
}

fn yes() -> bool {
    true
}

/// A candidate that could not be chosen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct Excluded {
    /// Candidate name.
    pub candidate: String,
    /// One sentence that follows the candidate's name.
    pub why: String,
    /// The rule broken: a fact's name, `requires`, `failed`; none if the caller has another reason.
    pub rule: Option<String>,
    /// Source of the fact and of the rule.
    pub source: Option<String>,
    /// What lets it past that rule, a `--need` or another card or kernel; none if nothing does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow: Option<String>,
    /// The other rules that it breaks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Broken>,
    /// Figures of its trials, where it had some before it was excluded.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub figures: BTreeMap<String, CandidateFigure>,
    /// Grades of these, beside the best of those that are judged.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub grades: BTreeMap<String, Grade>,
}

impl Excluded {
    /// What lets it past each of them, in the same order.
    pub fn allows(&self) -> impl Iterator<Item = Option<&str>> {
        let also = self.also.iter().map(|broken| broken.allow.as_deref());
        let first = self.rule.iter().map(|_| self.allow.as_deref());
        first.chain(also)
    }

    /// Names of all rules that it breaks.
    pub fn rules(&self) -> impl Iterator<Item = &str> {
        let also = self.also.iter().map(|broken| broken.rule.as_str());
        self.rule.as_deref().into_iter().chain(also)
    }
}

/// A rule that a candidate breaks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct Broken {
    /// Name of its fact.
    pub rule: String,
    /// One sentence that follows the candidate's name.
    pub why: String,
    /// Source of the fact and of the rule.
    pub source: String,
    /// As of [`Excluded`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow: Option<String>,
}

/// What would change the winner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct Change {
    /// Metric whose weight is doubled; empty where a rule is dropped.
    pub metric: String,
    /// Rule that is dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Who would lead then.
    pub winner: String,
    /// One sentence.
    pub text: String,
}

/// A figure in a word, by its ratio to the best.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// At most 1.1 times the best.
    Best,
    /// At most 1.5 times.
    #[serde(rename = "very good")]
    VeryGood,
    /// At most 2 times.
    Good,
    /// At most 4 times.
    Fair,
    /// At most 10 times.
    Bad,
    /// More than 10 times.
    Worst,
}

impl Grade {
    /// All grades, best first.
    pub const ALL: [Grade; 6] = [
        Grade::Best,
        Grade::VeryGood,
        Grade::Good,
        Grade::Fair,
        Grade::Bad,
        Grade::Worst,
    ];

    /// The grade of a figure `ratio` times worse than the best one.
    pub fn of_ratio(ratio: f64) -> Grade {
        // A ratio that is a bound but for rounding gets the better grade.
        let within = |bound: f64| ratio <= bound * (1.0 + 1e-9);
        match () {
            () if within(1.1) => Grade::Best,
            () if within(1.5) => Grade::VeryGood,
            () if within(2.0) => Grade::Good,
            () if within(4.0) => Grade::Fair,
            () if within(10.0) => Grade::Bad,
            () => Grade::Worst,
        }
    }

    /// The grade in words.
    pub fn name(self) -> &'static str {
        match self {
            Grade::Best => "best",
            Grade::VeryGood => "very good",
            Grade::Good => "good",
            Grade::Fair => "fair",
            Grade::Bad => "bad",
            Grade::Worst => "worst",
        }
    }
}
