//! Which candidate to take where scores do not decide: by a standard, or by the tie-breakers of the
//! need; and what one loses with what everybody uses.

use crate::evidence::Evidence;
use crate::exclude::satisfied;
use crate::facts::Fact;
use crate::judge::NOISE_FLOOR;
use crate::need::{Condition, Need};
use crate::reasons::{Told, differences, times};
use crate::verdict::{Advice, Baseline, Excluded, Ranked};

/// A candidate that a standard has on some cards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standard {
    /// Candidate name.
    pub candidate: String,
    /// Largest partition in bytes that it is for; none if it is for all.
    pub up_to_bytes: Option<u64>,
    /// Reason in one sentence, for people.
    pub because: String,
    /// Where that is written.
    pub source: String,
}

/// The advice on `ranking`; none where its first is the answer by its score.
pub(crate) fn advise(need: &Need, evidence: &Evidence, ranking: &[Ranked]) -> Option<Advice> {
    let leader = ranking.first()?;
    by_standard(need, evidence, ranking, leader).or_else(|| {
        let tied = |one: &&Ranked| {
            one.candidate == leader.candidate || leader.ties_with.contains(&one.candidate)
        };
        let among: Vec<&Ranked> = ranking.iter().filter(tied).collect();
        (among.len() > 1)
            .then(|| break_tie_beside_usual(need, evidence, ranking, among))
            .flatten()
    })
}

/// What the first standard says that is for this card and whose candidate qualifies.
fn by_standard(
    need: &Need,
    evidence: &Evidence,
    ranking: &[Ranked],
    leader: &Ranked,
) -> Option<Advice> {
    let bytes = evidence.partition_bytes?;
    let fits = |standard: &&Standard| standard.up_to_bytes.is_none_or(|most| bytes <= most);
    let found = need.standards.iter().filter(fits).find_map(|standard| {
        let mut all = ranking.iter();
        Some((
            standard,
            all.find(|one| one.candidate == standard.candidate)?,
        ))
    });
    let (standard, own) = found?;
    let ratio = leader.score / own.score;
    let deviation = (ratio >= NOISE_FLOOR).then(|| {
        format!(
            "{} measures {ratio:.2} times as good on the weighted average: a deviation for cards \
             that only your own computers read",
            leader.candidate
        )
    });
    Some(Advice {
        candidate: own.candidate.clone(),
        among: Vec::new(),
        because: standard.because.clone(),
        source: standard.source.clone(),
        deviation,
    })
}

/// Breaks the tie of `among`, best score first. Where what most use for this is within the noise
/// floor of the one that the tie-breakers leave, though not of the first, it takes part as well:
/// nobody should change for a difference that is not noticed.
fn break_tie_beside_usual<'a>(
    need: &Need,
    evidence: &Evidence,
    ranking: &'a [Ranked],
    mut among: Vec<&'a Ranked>,
) -> Option<Advice> {
    let advice = break_tie(need, evidence, among.clone())?;
    among.extend(ranking.iter().filter(|one| {
        Some(&one.candidate) == need.baseline.as_ref()
            && one.ties_with.contains(&advice.candidate)
            && !advice.among.contains(&one.candidate)
    }));
    let beside = break_tie(need, evidence, among)?;
    match beside.candidate == advice.candidate {
        true => Some(advice),
        false => Some(beside),
    }
}

/// The one of `among`, best score first, that the need's tie-breakers leave; the baseline, if they
/// leave several.
fn break_tie(need: &Need, evidence: &Evidence, among: Vec<&Ranked>) -> Option<Advice> {
    let holds = |one: &Ranked, (fact, condition): &(Fact, Condition)| {
        let mut all = evidence.facts.iter();
        let facts = all.find(|facts| facts.name == one.candidate);
        facts.is_some_and(|facts| satisfied(condition, fact.of(facts).0))
    };
    let names: Vec<String> = among.iter().map(|one| one.candidate.clone()).collect();
    let mut left = among;
    let mut because = Vec::new();
    for breaker in &need.tie_breakers {
        let (with, without): (Vec<&Ranked>, Vec<&Ranked>) =
            left.iter().partition(|one| holds(one, breaker));
        if with.is_empty() || without.is_empty() {
            continue;
        }
        let without: Vec<&str> = without.iter().map(|one| one.candidate.as_str()).collect();
        let wanted = breaker.0.wanted(&breaker.1);
        because.push(format!("it {wanted}, unlike {}", without.join(" and ")));
        left = with;
    }
    let baseline = |one: &&&Ranked| Some(&one.candidate) == need.baseline.as_ref();
    let usual = left.iter().find(baseline).filter(|_| left.len() > 1);
    let chosen = usual.or(left.first())?;
    if because.is_empty() {
        because.push(match usual {
            Some(_) => "it is what most use for this".to_owned(),
            None => {
                "no tie-breaker of the need parts them, and its score is the highest".to_owned()
            }
        });
    }
    Some(Advice {
        candidate: chosen.candidate.clone(),
        among: names,
        because: because.join("; "),
        source: String::new(),
        deviation: None,
    })
}

/// What one loses with the need's baseline against the `advised`.
pub(crate) fn baseline(
    told: &Told<'_>,
    ranking: &[Ranked],
    excluded: &[Excluded],
    advised: Option<&str>,
) -> Option<Baseline> {
    let name = told.need.baseline.clone()?;
    let own = ranking.iter().find(|one| one.candidate == name);
    let out = excluded.iter().find(|one| one.candidate == name);
    let best = ranking
        .iter()
        .find(|one| Some(one.candidate.as_str()) == advised);
    let text = match (own, best, out) {
        (Some(own), Some(best), _) if own.candidate == best.candidate => {
            "nothing is lost, it is the answer".to_owned()
        }
        (Some(own), Some(best), _) => against(told, own, best),
        (None, _, Some(out)) => format!("it does not qualify, because it {}", out.why),
        _ => "nobody knows, it did not take part".to_owned(),
    };
    Some(Baseline {
        is_scale: own.is_some(),
        candidate: name,
        told: text,
    })
}

fn against(told: &Told<'_>, own: &Ranked, best: &Ranked) -> String {
    let ratio = best.score / own.score;
    if own.ties_with.contains(&best.candidate) {
        return "no difference that you would notice".to_owned();
    }
    if ratio < 1.0 {
        let gain = 1.0 / ratio;
        return format!("it measures {gain:.2} times as good on the weighted average");
    }
    let (_, losses) = differences(told, &own.candidate, &best.candidate);
    let most = match losses.is_empty() {
        true => String::new(),
        false => format!(", most in {}", losses.join(" and ")),
    };
    format!(
        "you lose a factor of {} on the weighted average{most}",
        times(ratio).trim_end_matches('×')
    )
}
