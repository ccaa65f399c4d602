//! What a comparison says first, in words: who stopped working, who wins now, which trials show it.

use crate::number::percents;
use whichfs_study::{AnswerChange, Cause, Comparison, PlaceChange, RunLine, Stopped, Was};
use whichfs_units::counted;

/// Filesystems that stopped for the same reason in the same run.
pub(crate) struct Halt<'a> {
    /// All of them; the first tells the reason.
    pub all: Vec<&'a Stopped>,
    /// One sentence.
    pub sentence: String,
}

/// What stopped, the worst first: those that stopped for one reason together.
pub(crate) fn halts(comparison: &Comparison) -> Vec<Halt<'_>> {
    let mut groups: Vec<Vec<&Stopped>> = Vec::new();
    for one in &comparison.stopped {
        let same = |group: &&mut Vec<&Stopped>| {
            group.first().is_some_and(|first| {
                (first.run, first.cause, first.was) == (one.run, one.cause, one.was)
                    && (&first.why, first.failed, first.trials)
                        == (&one.why, one.failed, one.trials)
            })
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(one),
            None => groups.push(vec![one]),
        }
    }
    let later = comparison.runs.len().saturating_sub(1);
    let mut halts = Vec::new();
    for all in groups {
        if let Some(sentence) = sentence(&all, later) {
            halts.push(Halt { all, sentence });
        }
    }
    halts
}

/// What to say of those that stopped for one reason.
fn sentence(all: &[&Stopped], later: usize) -> Option<String> {
    let first = all.first()?;
    let names: Vec<String> = all.iter().map(|one| name(one)).collect();
    let names = listed(&names);
    let one = all.len() == 1;
    let when = match later {
        1 => "now".to_owned(),
        _ => format!("in run {}", first.run),
    };
    let trials = match (first.trials, one) {
        (0, _) => String::new(),
        (_, true) => format!(" ({} of {})", first.failed, counted(first.trials, "trial")),
        (_, false) => {
            let trials = counted(first.trials, "trial");
            format!(" ({} of {trials} each)", first.failed)
        }
    };
    let (fail, is) = match one {
        true => ("fails", "is"),
        false => ("fail", "are"),
    };
    let why = &first.why;
    Some(match (first.cause, first.was) {
        (Cause::Failed, Was::Worked) => format!("{names} {fail} {when}{trials}: {why}"),
        (Cause::Failed, Was::Stopped) => {
            format!("{names} {fail} {when} as in run 1{trials}: {why}")
        }
        (Cause::Failed, Was::Absent) => {
            format!("{names}, new in run {}, {fail}{trials}: {why}", first.run)
        }
        (Cause::Excluded, _) => format!("{names} {is} excluded {when}: {why}"),
        (Cause::Absent, _) => format!("{names} {is} gone: run {} has no figure of it", first.run),
    })
}

/// Filesystem, with the card and the workload where those are told apart.
pub(crate) fn name(one: &Stopped) -> String {
    let mut name = one.candidate.clone();
    if !one.card.is_empty() {
        name = format!("{}: {name}", one.card);
    }
    if !one.workload.is_empty() {
        name = format!("{name} ({})", one.workload);
    }
    name
}

fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [front @ .., last] => format!("{} and {last}", front.join(", ")),
    }
}

/// The command that shows a trial of `run`; none if it is not known how.
pub(crate) fn show(run: Option<&RunLine>, id: &str) -> Option<String> {
    let show = &run?.show;
    (!show.is_empty() && !id.is_empty()).then(|| show.replacen("TRIAL", id, 1))
}

/// The commands that show the failed trials of `one`.
pub(crate) fn shows(comparison: &Comparison, one: &Stopped) -> Vec<String> {
    let run = comparison.runs.get(one.run - 1);
    one.ids.iter().filter_map(|id| show(run, id)).collect()
}

/// Who wins in a later run, beside the first.
pub(crate) fn winner(change: &AnswerChange) -> String {
    let run = change.run;
    let [first, own] = &change.needs;
    if first != own {
        return format!(
            "Run {run} is for {own}, run 1 for {first}: their verdicts do not compare."
        );
    }
    let tie = match change.tie {
        true => "; they tie within the noise floor",
        false => "",
    };
    match &change.winner {
        [Some(first), Some(own)] if first == own => format!("Run {run}: {own} wins, as in run 1."),
        [Some(first), Some(own)] => {
            format!("Run {run}: {own} wins; in run 1 it was {first}{tie}.")
        }
        [Some(first), None] => format!("Run {run}: no filesystem qualifies; {first} won run 1."),
        [None, Some(own)] => format!("Run {run}: {own} wins; in run 1 none qualified."),
        [None, None] => format!("Run {run}: no filesystem qualifies, as in run 1."),
    }
}

/// Score and probability of each filesystem in the first run and in a later one. The
/// probabilities of a run are rounded together.
pub(crate) fn places(change: &AnswerChange) -> Vec<(&PlaceChange, [String; 2])> {
    let rounded = [0, 1].map(|run: usize| {
        let known = change.places.iter().map(|one| one.p_best[run]);
        percents(&known.filter(Option::is_some).collect::<Vec<_>>()).into_iter()
    });
    let [mut first, mut own] = rounded;
    let mut told = |one: &PlaceChange| {
        let p_best = [
            one.p_best[0].and_then(|_| first.next()),
            one.p_best[1].and_then(|_| own.next()),
        ];
        let score = one
            .score
            .map(|score| score.map(|score| format!("{score:.2}")));
        [pair(score), pair(p_best)]
    };
    let places = change.places.iter();
    places.map(|one| (one, told(one))).collect()
}

/// `A → B`, or one of them if they read alike.
fn pair(both: [Option<String>; 2]) -> String {
    let [first, own] = both.map(|said| said.unwrap_or_else(|| "none".to_owned()));
    match first == own {
        true => first,
        false => format!("{first} → {own}"),
    }
}

/// Who wins and every score and probability in two or more runs, as names and values for a build
/// server.
pub fn comparison_properties(comparison: &Comparison) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for change in &comparison.answers {
        let run = change.run;
        let won = change.winner.clone();
        let [first, own] = won.map(|name| name.unwrap_or_else(|| "none".to_owned()));
        let said = match first == own {
            true => own,
            false => format!("{first} → {own}"),
        };
        all.push((format!("run {run}: winner"), said));
        for (one, [score, p_best]) in places(change) {
            all.push((format!("run {run}: score of {}", one.candidate), score));
            let name = format!("run {run}: probability of {} being best", one.candidate);
            all.push((name, p_best));
        }
    }
    all
}

/// That of some runs only the figures are known; none if all have a verdict.
pub(crate) fn undecided(comparison: &Comparison) -> Option<String> {
    let without = comparison.runs.iter().enumerate();
    let without = without.filter(|(_, run)| !run.decided);
    let numbers: Vec<String> = without.map(|(at, _)| (at + 1).to_string()).collect();
    let runs = match numbers.len() {
        0 => return None,
        1 => format!("run {}", numbers.join("")),
        _ => format!("runs {}", listed(&numbers)),
    };
    Some(format!(
        "Of {runs} only figures are known (no verdict.json): neither who won there nor which \
         trials failed."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_of_a_run_are_rounded_together() {
        let place = |candidate: &str, p_best| PlaceChange {
            candidate: candidate.to_owned(),
            score: [Some(0.5); 2],
            p_best,
        };
        let change = AnswerChange {
            run: 2,
            needs: ["logger".to_owned(), "logger".to_owned()],
            winner: [Some("xfs".to_owned()), Some("xfs".to_owned())],
            tie: false,
            places: vec![
                place("xfs", [Some(0.725), Some(0.865)]),
                place("f2fs", [Some(0.275), Some(0.136)]),
                place("jfs", [None, Some(0.0)]),
            ],
        };
        let told: Vec<String> = (places(&change).into_iter())
            .map(|(_, [_, p_best])| p_best)
            .collect();
        assert_eq!(told, ["72% → 86%", "28% → 14%", "none → <1%"]);
    }
}
