//! From samples to a verdict.
//!
//! Method. A value becomes a cost (its inverse where higher is better). In each metric the
//! candidates' log costs are levelled beside the need's baseline, paired by seed (`fit.rs`).
//! The weighted mean of these log ratios, exponentiated and inverted, is the score: a weighted
//! geometric mean, so that units do not matter and twice as fast in one metric outweighs twice as
//! slow in an equal one exactly. The baseline's score is 1; where it has no figures, being the
//! best at everything is. Candidates whose scores are less than the noise floor apart tie, and
//! `advice.rs` says which of them to take. Probabilities and intervals come from `bootstrap.rs`.
//!
//! A candidate is judged only with every metric that the need requires and without a
//! failed trial; otherwise it is excluded, with that reason. Where a metric that is not
//! required is missing, the remaining weights of that candidate count in full and a
//! reason says so.

use crate::advice;
use crate::bootstrap::{self, Doubt};
use crate::evidence::{Evidence, Sample};
use crate::exclude::{nearest, rule_lines};
use crate::failures;
use crate::fit::{Costs, Levels, fit};
use crate::kinds;
use crate::need::{Enough, Need, Weight};
use crate::plan;
use crate::reasons::{self, Told};
use crate::sensitivity::{without, without_rules};
use crate::verdict::{
    Advice, CandidateFigure, Change, Count, Excluded, Grade, MetricInfo, Ranked, SeedFigure,
    Unmeasured, Verdict,
};
use std::collections::{BTreeMap, BTreeSet};

/// Ratio below which two candidates tie.
pub const NOISE_FLOOR: f64 = 1.1;

/// Samples that contradict each other or the need: a fault of the caller or of a merged store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JudgeError {
    /// One metric came with two units or two directions.
    #[error("metric {metric} came as '{first}' and as '{second}': these trials cannot be compared")]
    MixedUnits {
        /// Name as trials report it.
        metric: String,
        /// Unit and direction of the first sample.
        first: String,
        /// Those of another.
        second: String,
    },
    /// Candidates have figures, but none that the need counts.
    #[error("no trial gave a figure for what {need} counts ({weights}): nothing ranks them")]
    NothingCounts {
        /// Name of the need.
        need: String,
        /// The metrics with a weight above 0.
        weights: String,
    },
}

/// A metric's part of the score.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    pub metric: String,
    pub share: f64,
}

/// What is computed before anything is put into words.
pub(crate) struct Scored {
    /// Metric → levels.
    pub fits: BTreeMap<String, Levels>,
    /// Metric → candidate → figure on the seeds that all ran, before any bound: what is shown.
    pub shown: BTreeMap<String, BTreeMap<String, f64>>,
    /// Weights as shares of 1, heaviest first.
    pub shares: Vec<Share>,
    /// Candidate → mean log ratio to the reference; 0 is as good as that.
    pub loss: BTreeMap<String, f64>,
}

/// Judges `evidence` by `need`.
///
/// # Errors
/// [`JudgeError`] if a metric has two units, or if there are candidates and nothing to rank
/// them by.
pub fn judge(need: &Need, evidence: &Evidence) -> Result<Verdict, JudgeError> {
    let units = units(&evidence.samples)?;
    let (figures, mut excluded) = admit(need, evidence, &units);
    excluded.sort_by(|a, b| (&a.candidate, &a.why).cmp(&(&b.candidate, &b.why)));
    let shares = shares(need, &units);
    if !figures.is_empty() && shares.iter().all(|share| share.share == 0.0) {
        return Err(nothing_counts(need));
    }
    let bounds = bounds(need, evidence.partition_bytes);
    let scored = score(&figures, &units, shares, &bounds, need.baseline.as_deref());
    let (ranking, chances) = rank(need, &figures, &scored, &units, &bounds, evidence);
    let without = without(need, evidence, &ranking)?;
    let winner = ranking.first().map(|first| first.candidate.clone());
    let advice = advice::advise(need, evidence, &ranking);
    let advised = advice.as_ref().map(|advice| &advice.candidate);
    let advised = advised.or(winner.as_ref()).cloned();
    let commands = advised
        .as_ref()
        .and_then(|name| evidence.commands.get(name));
    let told = Told {
        need,
        scored: &scored,
        units: &units,
        bounds: &bounds,
        counts: &evidence.counts,
    };
    let baseline = advice::baseline(&told, &ranking, &excluded, advised.as_deref());
    Ok(Verdict {
        card: evidence.card.clone(),
        needs: need.name.clone(),
        title: need.title.clone(),
        changes: changes(need, evidence, &scored, advice.as_ref(), winner.as_deref()),
        without,
        advice,
        baseline,
        next_seeds: plan::rivals(&ranking, &chances, need.baseline.as_deref()),
        metrics: metrics(need, &units, &scored.shares, &bounds),
        unmeasured: unmeasured(need, &units),
        rules: rule_lines(need, &excluded),
        nearest: match ranking.is_empty() {
            true => nearest(&excluded),
            false => Vec::new(),
        },
        origin: evidence.origin,
        fit_error: evidence.fit_error,
        discrepancy: evidence.discrepancy.clone(),
        ranking,
        excluded,
        failed: failures::of(evidence),
        commands: commands.cloned().unwrap_or_default(),
        trials: evidence.trials,
        virtual_s: evidence.virtual_s,
        wall_s: evidence.wall_s,
        noise_floor: NOISE_FLOOR,
        card_uncertainty: evidence.card_uncertainty,
        kinds: kinds::by_kind(need, evidence),
        settling: None,
        method: reasons::method(&figures, need, evidence),
    })
}

/// What would change the winner. Among candidates that trials cannot tell apart none leads: that
/// one of them would have the highest score is no change.
fn changes(
    need: &Need,
    evidence: &Evidence,
    scored: &Scored,
    advice: Option<&Advice>,
    winner: Option<&str>,
) -> Vec<Change> {
    let tied = |one: &Change| advice.is_some_and(|advice| advice.among.contains(&one.winner));
    let weights = reasons::changes(need, scored).into_iter();
    let weights = weights.filter(|one| !tied(one));
    weights
        .chain(without_rules(need, evidence, winner))
        .collect()
}

/// Candidate → metric → seed → value.
pub(crate) type Figures = BTreeMap<String, BTreeMap<String, BTreeMap<u64, f64>>>;
/// Metric → unit and whether lower is better.
pub(crate) type Units = BTreeMap<String, (String, bool)>;

fn units(samples: &[Sample]) -> Result<Units, JudgeError> {
    let mut units = Units::new();
    for sample in samples {
        let this = (sample.unit.clone(), sample.lower_is_better);
        let first = units
            .entry(sample.metric.clone())
            .or_insert_with(|| this.clone());
        if *first != this {
            let show = |(unit, lower): &(String, bool)| {
                format!(
                    "{unit}, {} is better",
                    if *lower { "lower" } else { "higher" }
                )
            };
            // Sorted, so that the message does not depend on the order of the rows.
            let mut both = [show(first), show(&this)];
            both.sort();
            let [first, second] = both;
            return Err(JudgeError::MixedUnits {
                metric: sample.metric.clone(),
                first,
                second,
            });
        }
    }
    Ok(units)
}

/// Sorts out who can be judged.
fn admit(need: &Need, evidence: &Evidence, units: &Units) -> (Figures, Vec<Excluded>) {
    let mut figures = Figures::new();
    let mut why: BTreeMap<String, (String, &str)> = BTreeMap::new();
    for failed in failures::of(evidence) {
        let text = failures::sentence(&failed);
        why.insert(failed.candidate, (text, "failed"));
    }
    let mut samples: Vec<&Sample> = evidence.samples.iter().collect();
    samples.sort_by(|a, b| {
        let key = |s: &Sample| (s.candidate.clone(), s.metric.clone(), s.seed);
        key(a).cmp(&key(b)).then(a.value.total_cmp(&b.value))
    });
    for sample in samples {
        let metrics = figures.entry(sample.candidate.clone()).or_default();
        let legal = sample.value.is_finite() && sample.value > 0.0;
        if legal {
            // A sample given twice (two stores merged) counts once; the largest value stays.
            let row = metrics.entry(sample.metric.clone()).or_default();
            row.insert(sample.seed, sample.value);
        } else if need.weights.contains_key(&sample.metric) {
            let text = format!(
                "{} is {} {} with seed {}: not a positive figure, it cannot be compared",
                sample.metric, sample.value, sample.unit, sample.seed
            );
            why.entry(sample.candidate.clone())
                .or_insert((text, "requires"));
        }
    }
    for (candidate, metrics) in &figures {
        let missing: Vec<&str> = need
            .requires
            .iter()
            .filter(|metric| !metrics.contains_key(*metric))
            .map(String::as_str)
            .collect();
        if !missing.is_empty() {
            let text = format!(
                "gives no figure for {}, which {} requires",
                missing.join(", "),
                need.name
            );
            why.entry(candidate.clone()).or_insert((text, "requires"));
        }
    }
    let ruled_out: BTreeSet<&String> = evidence.excluded.iter().map(|e| &e.candidate).collect();
    let all = figures.clone();
    figures.retain(|name, _| !why.contains_key(name) && !ruled_out.contains(name));
    let own = why.into_iter().map(|(candidate, (why, rule))| Excluded {
        candidate,
        why,
        rule: Some(rule.to_owned()),
        ..Excluded::default()
    });
    let excluded = own.chain(evidence.excluded.iter().cloned()).map(|one| {
        let partial = partial(&all, &figures, units, &one.candidate);
        Excluded {
            grades: grades(&partial, &shares(need, units)),
            figures: partial,
            ..one
        }
    });
    let excluded = excluded.collect();
    (figures, excluded)
}

/// The figures of a candidate that is not judged, each beside the best of those that are.
fn partial(
    all: &Figures,
    judged: &Figures,
    units: &Units,
    candidate: &str,
) -> BTreeMap<String, CandidateFigure> {
    let geometric = |row: &BTreeMap<u64, f64>| crate::fit::mean(row.values().map(|v| v.ln())).exp();
    let of = |(metric, row): (&String, &BTreeMap<u64, f64>)| {
        let value = geometric(row);
        let sign = if units[metric].1 { 1.0 } else { -1.0 };
        let others = judged.values().filter_map(|metrics| metrics.get(metric));
        let ratio = |other: f64| (sign * (value / other).ln()).exp();
        let worst = others.map(|row| ratio(geometric(row))).fold(1.0, f64::max);
        let points = row.iter().map(|(&seed, &value)| SeedFigure { seed, value });
        let figure = CandidateFigure {
            value,
            ratio: round(worst, 6),
            samples: points.collect(),
            count: None,
        };
        (metric.clone(), figure)
    };
    let rows = all.get(candidate).into_iter().flatten();
    rows.map(of).collect()
}

/// Weights without any figure.
fn unmeasured(need: &Need, units: &Units) -> Vec<Unmeasured> {
    let total: f64 = need.weights.values().map(|weight| weight.weight).sum();
    let lacking =
        |(metric, weight): &(&String, &Weight)| weight.weight > 0.0 && !units.contains_key(*metric);
    let lines = need.weights.iter().filter(lacking);
    lines
        .map(|(metric, weight)| Unmeasured {
            metric: metric.clone(),
            label: weight.label.clone(),
            share: round(weight.weight / total, 4),
        })
        .collect()
}

fn nothing_counts(need: &Need) -> JudgeError {
    let counted = need
        .weights
        .iter()
        .filter(|(_, weight)| weight.weight > 0.0);
    let names: Vec<&str> = counted.map(|(metric, _)| metric.as_str()).collect();
    JudgeError::NothingCounts {
        need: need.name.clone(),
        weights: names.join(", "),
    }
}

fn shares(need: &Need, units: &Units) -> Vec<Share> {
    let counted = |metric: &String| units.contains_key(metric);
    let weights = need.weights.iter().filter(|(metric, _)| counted(metric));
    let total: f64 = weights.clone().map(|(_, weight)| weight.weight).sum();
    let mut shares: Vec<Share> = weights
        .map(|(metric, weight)| Share {
            metric: metric.clone(),
            share: if total > 0.0 {
                weight.weight / total
            } else {
                0.0
            },
        })
        .collect();
    shares.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.metric.cmp(&b.metric)));
    shares
}

/// Metric → value from which on better is no better.
pub(crate) type Bounds = BTreeMap<String, f64>;

fn bounds(need: &Need, partition_bytes: Option<u64>) -> Bounds {
    let of = |(metric, weight): (&String, &Weight)| {
        let value = match weight.enough.as_ref()?.0 {
            Enough::Value(value) => value,
            Enough::OfPartition(share) => share * partition_bytes? as f64,
        };
        Some((metric.clone(), value))
    };
    need.weights.iter().filter_map(of).collect()
}

fn score(
    figures: &Figures,
    units: &Units,
    shares: Vec<Share>,
    bounds: &Bounds,
    baseline: Option<&str>,
) -> Scored {
    let mut fits = BTreeMap::new();
    let mut shown = BTreeMap::new();
    for (metric, (_, lower_is_better)) in units {
        let sign = if *lower_is_better { 1.0 } else { -1.0 };
        let costs = |counted: &dyn Fn(f64) -> f64| -> Costs {
            let rows = figures
                .iter()
                .filter_map(|(name, metrics)| Some((name, metrics.get(metric)?)));
            let cost = |(seed, value): (&u64, &f64)| (*seed, sign * counted(*value).ln());
            rows.map(|(name, row)| (name.clone(), row.iter().map(cost).collect()))
                .collect()
        };
        let plain = fit(&costs(&|value| value), baseline);
        let of = |level: &f64| (sign * (level + plain.common)).exp();
        let values = plain
            .level
            .iter()
            .map(|(name, level)| (name.clone(), of(level)));
        shown.insert(metric.clone(), values.collect());
        let levels = match bounds.get(metric) {
            Some(bound) if *lower_is_better => fit(&costs(&|value| value.max(*bound)), baseline),
            Some(bound) => fit(&costs(&|value| value.min(*bound)), baseline),
            None => plain,
        };
        fits.insert(metric.clone(), levels);
    }
    let names = figures.keys().cloned();
    let loss = names
        .map(|name| (name.clone(), loss(&name, &fits, &shares)))
        .collect();
    Scored {
        fits,
        shown,
        shares,
        loss,
    }
}

/// Mean log ratio to the reference over the metrics that `candidate` has.
pub(crate) fn loss(candidate: &str, fits: &BTreeMap<String, Levels>, shares: &[Share]) -> f64 {
    let (mut sum, mut weight) = (0.0, 0.0);
    for share in shares {
        let fit = fits.get(&share.metric);
        if let Some((fit, level)) = fit.and_then(|fit| Some((fit, fit.level.get(candidate)?))) {
            sum += share.share * (level - fit.reference);
            weight += share.share;
        }
    }
    if weight > 0.0 {
        sum / weight
    } else {
        f64::INFINITY
    }
}

/// Log ratio of `candidate` to the best of a metric.
pub(crate) fn behind(fit: &Levels, candidate: &str) -> Option<f64> {
    let best = fit.level.values().copied().fold(f64::INFINITY, f64::min);
    fit.level.get(candidate).map(|level| level - best)
}

/// The candidates in their order, and each one's probability of being the best as far as more
/// seeds could change it.
fn rank(
    need: &Need,
    figures: &Figures,
    scored: &Scored,
    units: &Units,
    bounds: &Bounds,
    evidence: &Evidence,
) -> (Vec<Ranked>, BTreeMap<String, f64>) {
    let mut order: Vec<String> = figures.keys().cloned().collect();
    let doubt = Doubt {
        score: NOISE_FLOOR.ln() / std::f64::consts::SQRT_2,
        metric: (1.0 + evidence.doubt_of_card().max(0.0)).ln() / 2.0,
        discrepancy: None,
    };
    let by_seeds = bootstrap::draw(&order, &scored.fits, &scored.shares, &doubt);
    let chances = by_seeds
        .iter()
        .map(|(name, own)| (name.clone(), own.p_best));
    let chances = chances.collect();
    let drawn = match evidence.discrepancy.as_ref() {
        None => by_seeds,
        discrepancy => {
            let doubt = Doubt {
                discrepancy,
                ..doubt
            };
            bootstrap::draw(&order, &scored.fits, &scored.shares, &doubt)
        }
    };
    // Of one candidate there is no contest.
    let contest = order.len() > 1;
    order.sort_by(|a, b| scored.loss[a].total_cmp(&scored.loss[b]).then(a.cmp(b)));
    let ties = |name: &String| {
        let tied = |other: &&String| {
            *other != name && (scored.loss[*other] - scored.loss[name]).abs() < NOISE_FLOOR.ln()
        };
        order.iter().filter(tied).cloned().collect()
    };
    let ranking = order
        .iter()
        .map(|name| {
            let told = Told {
                need,
                scored,
                units,
                bounds,
                counts: &evidence.counts,
            };
            let figures = figures_of(&figures[name], scored, name, &evidence.counts);
            Ranked {
                candidate: name.clone(),
                score: round(1.0 / scored.loss[name].exp(), 4),
                interval: [1, 0].map(|end| round((-drawn[name].loss[end]).exp(), 4)),
                p_best: contest.then(|| round(drawn[name].p_best, 3)),
                ties_with: ties(name),
                grades: grades(&figures, &scored.shares),
                reasons: reasons::reasons(&told, &order, name),
                seeds: figures.values().map(|f| f.samples.len()).max().unwrap_or(0),
                caveats: evidence.told_of(name),
                figures,
            }
        })
        .collect();
    (ranking, chances)
}

/// The grades of `figures` whose metrics are judged.
fn grades(
    figures: &BTreeMap<String, CandidateFigure>,
    shares: &[Share],
) -> BTreeMap<String, Grade> {
    (figures.iter())
        .filter(|(metric, _)| is_judged(metric, shares))
        .map(|(metric, figure)| (metric.clone(), Grade::of_ratio(figure.ratio)))
        .collect()
}

fn figures_of(
    metrics: &BTreeMap<String, BTreeMap<u64, f64>>,
    scored: &Scored,
    name: &str,
    counts: &BTreeMap<String, BTreeMap<String, Count>>,
) -> BTreeMap<String, CandidateFigure> {
    let figure = |(metric, row): (&String, &BTreeMap<u64, f64>)| {
        let samples: Vec<SeedFigure> = row
            .iter()
            .map(|(&seed, &value)| SeedFigure { seed, value })
            .collect();
        let shown = scored.shown.get(metric).and_then(|all| all.get(name));
        let value = shown.copied().unwrap_or_default();
        // A single sample is shown as it was, not through ln and exp.
        let value = match samples.as_slice() {
            [one] if (one.value / value).ln().abs() < 1e-9 => one.value,
            _ => value,
        };
        let behind = scored.fits.get(metric).and_then(|fit| behind(fit, name));
        let ratio = round(behind.unwrap_or(0.0).exp(), 6);
        (
            metric.clone(),
            CandidateFigure {
                value,
                ratio,
                samples,
                count: counts.get(metric).and_then(|all| all.get(name)).copied(),
            },
        )
    };
    metrics.iter().map(figure).collect()
}

fn metrics(need: &Need, units: &Units, shares: &[Share], bounds: &Bounds) -> Vec<MetricInfo> {
    let share_of: BTreeMap<&String, f64> = shares.iter().map(|s| (&s.metric, s.share)).collect();
    let mut all: Vec<MetricInfo> = units
        .iter()
        .map(|(metric, (unit, lower_is_better))| MetricInfo {
            metric: metric.clone(),
            label: need.label(metric),
            short: need.short(metric),
            unit: unit.clone(),
            lower_is_better: *lower_is_better,
            judged: is_judged(metric, shares),
            share: share_of.get(metric).copied().unwrap_or(0.0),
            because: need.weights.get(metric).map_or_else(
                || "shown, not counted".to_owned(),
                |weight| weight.because.clone(),
            ),
            enough: bounds.get(metric).copied(),
            enough_because: bounds.get(metric).and_then(|_| {
                let (_, because) = need.weights.get(metric)?.enough.as_ref()?;
                Some(because.clone())
            }),
        })
        .collect();
    // What a phase used is last: it explains the others.
    let explains = |info: &MetricInfo| whichfs_trial::is_use_of_phase(&info.metric);
    all.sort_by(|a, b| {
        let by_share = b.share.total_cmp(&a.share);
        let by_kind = || explains(a).cmp(&explains(b));
        by_share.then_with(by_kind).then(a.metric.cmp(&b.metric))
    });
    all
}

/// Whether one of two figures of `metric` is the better one: not of two shares of time, unless
/// the need counts them.
fn is_judged(metric: &str, shares: &[Share]) -> bool {
    let mut counted = shares.iter().filter(|share| share.share > 0.0);
    !whichfs_trial::is_share(metric) || counted.any(|share| share.metric == metric)
}

/// `value` with `digits` after the point.
fn round(value: f64, digits: i32) -> f64 {
    let factor = 10_f64.powi(digits);
    (value * factor).round() / factor
}
