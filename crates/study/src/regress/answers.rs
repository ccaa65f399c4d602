//! What runs decided, side by side: who stopped working, who wins, and with what score.

use super::{RegressionRun, Values, short};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use whichfs_decide::{Advice, Excluded};

/// What a run decided: the fields of its verdict that are compared. It reads from `verdict.json`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct RunVerdict {
    /// Name of the card.
    #[serde(default)]
    pub card: String,
    /// Name of the need.
    pub needs: String,
    /// Filesystems, the best first.
    pub ranking: Vec<RankedPlace>,
    /// The one to take, where scores do not decide.
    #[serde(default)]
    pub advice: Option<Advice>,
    /// Those that could not be chosen, and why.
    #[serde(default)]
    pub excluded: Vec<Excluded>,
    /// The trials behind it, those that failed too.
    #[serde(default)]
    pub trials_of: Vec<TrialName>,
}

/// A filesystem's place in a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RankedPlace {
    /// Name of the filesystem in the catalogue.
    pub candidate: String,
    /// 1 is best at everything, beside the best of its own run.
    pub score: f64,
    /// Probability of being the best of its run; none of a single filesystem.
    #[serde(default)]
    pub p_best: Option<f64>,
    /// Filesystems that cannot be told from it.
    #[serde(default)]
    pub ties_with: Vec<String>,
}

/// A trial of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct TrialName {
    /// Name of the filesystem in the catalogue.
    pub candidate: String,
    /// Decides the data that the workload writes.
    pub seed: u64,
    /// Digest of all that decided the trial.
    pub id: String,
}

/// A trial that failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrialFailure {
    /// Name of the card's profile.
    pub card: String,
    /// Name of the filesystem in the catalogue.
    pub candidate: String,
    /// Name of the workload in the catalogue.
    pub workload: String,
    /// One sentence.
    pub reason: String,
    /// Digest of all that decided the trial.
    pub id: String,
}

/// A filesystem that has no place in a later run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Stopped {
    /// The run: the second is 2.
    pub run: usize,
    /// The card; empty where each run has one.
    pub card: String,
    /// Name of the filesystem in the catalogue.
    pub candidate: String,
    /// The workload; empty where that is all of the run.
    pub workload: String,
    /// What kind of reason.
    pub cause: Cause,
    /// How it was in the first run.
    pub was: Was,
    /// Its trials that failed; 0 where that is not known.
    pub failed: usize,
    /// All its trials; 0 where that is not known.
    pub trials: usize,
    /// The error's text, or the reason why it is excluded.
    pub why: String,
    /// Figures that the first run has of it and this one has not.
    pub gone: usize,
    /// Beginnings of the ids of its trials that failed.
    pub ids: Vec<String>,
}

/// Why a filesystem has no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// A trial of it failed.
    Failed,
    /// A rule, a missing figure or a missing tool excludes it.
    Excluded,
    /// The run does not have it: it was not tried, or that is not known.
    Absent,
}

/// How a filesystem was in the first run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Was {
    /// It had figures, and no trial failed.
    Worked,
    /// It had no place there either.
    Stopped,
    /// It was not there.
    Absent,
}

/// The decision of a later run beside the first one's.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct AnswerChange {
    /// The run: the second is 2.
    pub run: usize,
    /// Name of each run's need; where they differ, places are not compared.
    pub needs: [String; 2],
    /// Who wins in the first run and in this one; none where no filesystem qualifies.
    pub winner: [Option<String>; 2],
    /// Whether the two winners tie in one of the runs.
    pub tie: bool,
    /// Every filesystem that one of the two ranks, in this run's order.
    pub places: Vec<PlaceChange>,
}

/// A filesystem's score and probability of being the best, in the first run and in a later one.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct PlaceChange {
    /// Name of the filesystem in the catalogue.
    pub candidate: String,
    /// Scores; none where it is not ranked.
    pub score: [Option<f64>; 2],
    /// Probabilities of being the best.
    pub p_best: [Option<f64>; 2],
}

impl AnswerChange {
    /// Whether another one wins, or nobody.
    pub fn winner_changed(&self) -> bool {
        self.winner[0] != self.winner[1]
    }
}

impl PlaceChange {
    /// Whether score or probability differ in the digits that are shown.
    pub fn changed(&self) -> bool {
        let differ = |[a, b]: [Option<f64>; 2]| match (a, b) {
            (Some(a), Some(b)) => (a - b).abs() >= 0.005,
            (a, b) => a.is_some() != b.is_some(),
        };
        differ(self.score) || differ(self.p_best)
    }
}

/// Card (if told apart), filesystem, workload (empty: all of the run).
type Name = (String, String, String);

/// Why a filesystem has no place in one run.
#[derive(Clone, Default)]
struct Reason {
    excluded: bool,
    why: String,
    failed: usize,
    trials: usize,
    ids: Vec<String>,
}

/// Filesystems without a place in a later run.
pub(super) fn stopped(runs: &[RegressionRun], values: &[Values], by_card: bool) -> Vec<Stopped> {
    let workloads: BTreeSet<&str> = (values.iter())
        .flat_map(BTreeMap::keys)
        .map(|key| key.2.as_str())
        .collect();
    let by_workload = workloads.len() > 1;
    let reasons: Vec<BTreeMap<Name, Reason>> = (runs.iter())
        .map(|run| of_run(run, by_card, by_workload))
        .collect();
    let (Some(first), Some(own)) = (reasons.first(), values.first()) else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for (at, (reasons, values)) in reasons.iter().zip(values).enumerate().skip(1) {
        let mut names: BTreeSet<Name> = reasons.keys().cloned().collect();
        let known = |name: &Name, key: &super::Key| {
            (&key.0, &key.1) == (&name.0, &name.1) && (name.2.is_empty() || key.2 == name.2)
        };
        for key in own.keys() {
            let same =
                |other: &super::Key| (&other.0, &other.1, &other.2) == (&key.0, &key.1, &key.2);
            if !values.keys().any(same) && !names.iter().any(|name| known(name, key)) {
                let workload = match by_workload {
                    true => key.2.clone(),
                    false => String::new(),
                };
                names.insert((key.0.clone(), key.1.clone(), workload));
            }
        }
        for name in names {
            let of_it = own.keys().filter(|key| known(&name, key));
            let had = of_it.clone().next().is_some();
            let gone = of_it.filter(|key| !values.contains_key(*key)).count();
            let stopped_before = first.keys().any(|other| {
                (&other.0, &other.1) == (&name.0, &name.1)
                    && (other.2.is_empty() || name.2.is_empty() || other.2 == name.2)
            });
            let reason = reasons.get(&name);
            let told = reason.cloned().unwrap_or_default();
            all.push(Stopped {
                run: at + 1,
                cause: match reason {
                    None => Cause::Absent,
                    Some(reason) if reason.excluded => Cause::Excluded,
                    Some(_) => Cause::Failed,
                },
                was: match (stopped_before, had) {
                    (true, _) => Was::Stopped,
                    (false, true) => Was::Worked,
                    (false, false) => Was::Absent,
                },
                card: name.0,
                candidate: name.1,
                workload: name.2,
                failed: told.failed,
                trials: told.trials,
                why: told.why,
                gone,
                ids: told.ids,
            });
        }
    }
    // What a rule excludes in a run that never had it is no news.
    all.retain(|one| one.was == Was::Worked || one.cause == Cause::Failed);
    all.sort_by_key(|one| (one.was, one.cause, one.run));
    all
}

/// Who has no place in `run`, and why.
fn of_run(run: &RegressionRun, by_card: bool, by_workload: bool) -> BTreeMap<Name, Reason> {
    let mut reasons: BTreeMap<Name, Reason> = BTreeMap::new();
    let card = |card: &str| match by_card {
        true => card.to_owned(),
        false => String::new(),
    };
    if let Some(answer) = &run.answer {
        let done: BTreeSet<&str> = run.rows.iter().map(|row| row.trial.as_str()).collect();
        let one_by_one = |name: &str| run.failed.iter().any(|failed| failed.candidate == name);
        for excluded in &answer.excluded {
            if one_by_one(&excluded.candidate) {
                continue;
            }
            let failed = excluded.rule.as_deref() == Some("failed");
            let own = || {
                let own = move |trial: &&TrialName| trial.candidate == excluded.candidate;
                answer.trials_of.iter().filter(own)
            };
            let without: Vec<String> = (own())
                .filter(|trial| failed && !done.contains(trial.id.as_str()))
                .map(|trial| short(&trial.id))
                .collect();
            let reason = Reason {
                excluded: !failed,
                why: match failed {
                    true => error_text(&excluded.why),
                    false => excluded.why.clone(),
                },
                failed: without.len(),
                trials: own().count(),
                ids: without,
            };
            let name = (
                card(&answer.card),
                excluded.candidate.clone(),
                String::new(),
            );
            reasons.entry(name).or_insert(reason);
        }
    }
    for failed in &run.failed {
        let name = (
            card(&failed.card),
            failed.candidate.clone(),
            match by_workload {
                true => failed.workload.clone(),
                false => String::new(),
            },
        );
        let reason = reasons.entry(name).or_default();
        if reason.failed == 0 {
            reason.why.clone_from(&failed.reason);
            let of_it = run.rows.iter().filter(|row| {
                (&row.candidate, &row.workload) == (&failed.candidate, &failed.workload)
                    && (!by_card || row.card == failed.card)
            });
            reason.trials = of_it.map(|row| &row.trial).collect::<BTreeSet<_>>().len();
        }
        reason.failed += 1;
        reason.trials += 1;
        reason.ids.push(short(&failed.id));
    }
    reasons
}

/// The error in the sentence that the verdict says of a failed trial: what stands after the first
/// colon.
fn error_text(why: &str) -> String {
    let text = why.split_once(": ").map_or(why, |(_, error)| error);
    text.to_owned()
}

/// The decisions of later runs beside the first one's.
pub(super) fn changes(runs: &[RegressionRun]) -> Vec<AnswerChange> {
    let Some(first) = runs.first().and_then(|run| run.answer.as_ref()) else {
        return Vec::new();
    };
    let later = runs.iter().enumerate().skip(1);
    later
        .filter_map(|(at, run)| Some(change(at + 1, first, run.answer.as_ref()?)))
        .collect()
}

fn change(run: usize, first: &RunVerdict, own: &RunVerdict) -> AnswerChange {
    let best = |answer: &RunVerdict| {
        let advised = answer.advice.as_ref().and_then(|advice| {
            let mut all = answer.ranking.iter();
            all.find(|place| place.candidate == advice.candidate)
                .cloned()
        });
        advised.or(answer.ranking.first().cloned())
    };
    let winners = [first, own].map(|answer| best(answer).map(|place| place.candidate));
    let ties = |answer: &RunVerdict| {
        let best = best(answer);
        best.is_some_and(|best| {
            winners
                .iter()
                .flatten()
                .any(|name| best.ties_with.contains(name))
        })
    };
    let mut names: Vec<&str> = Vec::new();
    if first.needs == own.needs {
        for place in own.ranking.iter().chain(&first.ranking) {
            if !names.contains(&place.candidate.as_str()) {
                names.push(&place.candidate);
            }
        }
    }
    let place = |answer: &RunVerdict, name: &str| {
        let mut places = answer.ranking.iter();
        let place = places.find(|place| place.candidate == name)?;
        Some((place.score, place.p_best))
    };
    let places = names.into_iter().map(|name| {
        let both = [place(first, name), place(own, name)];
        PlaceChange {
            candidate: name.to_owned(),
            score: both.map(|place| place.map(|(score, _)| score)),
            p_best: both.map(|place| place.and_then(|(_, p_best)| p_best)),
        }
    });
    AnswerChange {
        run,
        needs: [first.needs.clone(), own.needs.clone()],
        places: places.collect(),
        tie: ties(first) || ties(own),
        winner: winners,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::{compare, tests::run};
    use super::*;

    /// The answer of a run in which all `failed` trials of f2fs ended with an error.
    fn answer(winner: &str, score: f64, failed: bool) -> RunVerdict {
        let ranked = match failed {
            true => "[]".to_owned(),
            false => format!("[{{\"candidate\":\"f2fs\",\"score\":{score},\"p_best\":0.4}}]"),
        };
        let mut answer: RunVerdict = serde_json::from_str(&format!(
            "{{\"card\":\"a1-32gb\",\"needs\":\"rootfs\",\"ranking\":{ranked},\"other\":1}}"
        ))
        .unwrap();
        answer.ranking.insert(
            0,
            RankedPlace {
                candidate: winner.into(),
                score: 1.0,
                p_best: Some(0.6),
                ..RankedPlace::default()
            },
        );
        if failed {
            answer.excluded = vec![Excluded {
                candidate: "f2fs".into(),
                why: "2 of its 2 trials failed, that with seed 1: sh: bad: no".into(),
                rule: Some("failed".into()),
                ..Excluded::default()
            }];
        }
        answer.trials_of = (1..=2)
            .map(|seed| TrialName {
                candidate: "f2fs".into(),
                seed,
                id: format!("f2fsmount{seed}"),
            })
            .collect();
        answer
    }

    fn with(
        mut run: RegressionRun,
        answer: Option<RunVerdict>,
        keep: fn(&str) -> bool,
    ) -> RegressionRun {
        run.rows.retain(|row| keep(&row.candidate));
        RegressionRun { answer, ..run }
    }

    #[test]
    fn what_stopped_working_is_told_with_its_error_and_its_trials() {
        let before = with(run("a", 1.0, 0.0), Some(answer("ext4", 0.9, false)), |_| {
            true
        });
        let after = with(
            run("b", 1.0, 0.0),
            Some(answer("ext4", 0.9, true)),
            |name| name != "f2fs",
        );
        let both = compare(&[before.clone(), after.clone()]).unwrap();
        let [stopped] = &both.stopped[..] else {
            panic!("{:?}", both.stopped)
        };
        assert_eq!(
            (stopped.run, stopped.cause, stopped.was),
            (2, Cause::Failed, Was::Worked)
        );
        assert_eq!((stopped.failed, stopped.trials, stopped.gone), (2, 2, 1));
        assert_eq!(stopped.why, "sh: bad: no");
        assert_eq!(stopped.ids, ["f2fsmount1", "f2fsmount2"]);
        let gone = both
            .lines
            .iter()
            .find(|line| line.candidate == "f2fs")
            .unwrap();
        assert_eq!(both.why_gone(gone, 2), Some(stopped));
        assert_eq!(both.why_gone(gone, 3), None);
        // What failed before is no news.
        let again = compare(&[after.clone(), after]).unwrap();
        assert_eq!(again.stopped[0].was, Was::Stopped);
        assert_eq!(again.broken().count(), 0);
        // One of two is enough, though its figures are all there.
        let mut half = with(run("b", 1.0, 0.0), Some(answer("ext4", 0.9, true)), |_| {
            true
        });
        half.rows
            .iter_mut()
            .for_each(|row| row.trial = "f2fsmount1".into());
        let both = compare(&[before, half]).unwrap();
        let broken: Vec<_> = both
            .broken()
            .map(|one| (one.failed, one.trials, one.gone))
            .collect();
        assert_eq!(broken, [(1, 2, 0)]);
    }

    #[test]
    fn a_run_in_which_nothing_works_is_compared_and_a_file_without_figures_is_not() {
        let mut nothing = answer("ext4", 0.9, true);
        nothing.ranking.clear();
        let empty = with(run("b", 1.0, 0.0), Some(nothing), |_| false);
        let both = compare(&[run("a", 1.0, 0.0), empty.clone()]).unwrap();
        let told: Vec<(&str, Cause)> = (both.broken())
            .map(|one| (one.candidate.as_str(), one.cause))
            .collect();
        assert_eq!(told, [("f2fs", Cause::Failed), ("ext4", Cause::Absent)]);
        let alone = RegressionRun {
            answer: None,
            ..empty
        };
        compare(&[run("a", 1.0, 0.0), alone]).unwrap_err();
    }

    #[test]
    fn failed_trials_of_a_store_are_told_by_card_and_workload() {
        let mut after = with(run("b", 1.0, 0.0), None, |name| name != "f2fs");
        after.failed = (1..=3)
            .map(|seed| TrialFailure {
                card: "a1-32gb".into(),
                candidate: "f2fs".into(),
                workload: "rootfs".into(),
                reason: "hung".into(),
                id: format!("{seed}"),
            })
            .collect();
        let both = compare(&[run("a", 1.0, 0.0), after]).unwrap();
        let one = both.broken().next().unwrap();
        assert_eq!((one.failed, one.trials, one.why.as_str()), (3, 3, "hung"));
    }

    #[test]
    fn winner_score_and_probability_are_compared_where_the_need_is_the_same() {
        let one = |name, answer| with(run(name, 1.0, 0.0), Some(answer), |_| true);
        let runs = [
            one("a", answer("ext4", 0.9, false)),
            one("b", answer("xfs", 0.7, false)),
            one("c", answer("ext4", 0.9, false)),
        ];
        let all = compare(&runs).unwrap();
        let [second, third] = &all.answers[..] else {
            panic!("{:?}", all.answers)
        };
        assert!(second.winner_changed() && !third.winner_changed());
        assert_eq!(second.winner, [Some("ext4".into()), Some("xfs".into())]);
        let f2fs = second
            .places
            .iter()
            .find(|place| place.candidate == "f2fs")
            .unwrap();
        assert!(f2fs.changed());
        assert_eq!(f2fs.score, [Some(0.9), Some(0.7)]);
        assert!(third.places.iter().all(|place| !place.changed()));
        let mut other = runs[1].clone();
        other.answer.as_mut().unwrap().needs = "logger".into();
        let all = compare(&[runs[0].clone(), other]).unwrap();
        assert!(
            all.answers[0].places.is_empty(),
            "scores of two needs are no change"
        );
    }
}
