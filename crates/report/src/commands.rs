//! The commands behind the figures: of each trial the one that runs it again, and the one that
//! shows it.

use crate::device::TrialLine;
use crate::page::{CutSeries, Page};
use crate::samples::ID;
use whichfs_units::counted;

/// Where the part of a command begins in which CANDIDATE and SEED stand for what they say: before
/// it are the user's own words, which may have these in them.
const PART: &str = " --fs CANDIDATE";

/// Trials of a candidate whose commands are written out, at most: of more, the others differ in
/// their seeds alone.
const WRITTEN: usize = 12;

/// `repeat`, the command of one trial, for that of `candidate` with `seed`.
pub(crate) fn repeated(repeat: &str, candidate: &str, seed: u64) -> String {
    let (begin, part) = repeat.split_at(repeat.rfind(PART).unwrap_or(0));
    let part = part
        .replace("SEED", &seed.to_string())
        .replace("CANDIDATE", candidate);
    format!("{begin}{part}")
}

/// `show`, the command that shows a trial, for the one called `id`.
pub(crate) fn shown(show: &str, id: &str) -> String {
    show.replacen("TRIAL", id.get(..ID).unwrap_or(id), 1)
}

/// The trials of one candidate, with their commands.
pub(crate) struct TrialsOf {
    pub candidate: String,
    /// Number of its part of the page.
    pub number: usize,
    /// `3 trials`.
    pub count: String,
    pub trials: Vec<Told>,
    /// How many more there are, and how their commands differ; else empty.
    pub more: String,
    /// Its power cuts.
    pub cuts: Option<Cuts>,
}

/// One trial.
pub(crate) struct Told {
    pub seed: u64,
    pub id: String,
    pub failed: bool,
    /// The commands, to be copied one by one.
    pub show: String,
    pub repeat: String,
}

/// A series of power cuts.
pub(crate) struct Cuts {
    pub id: String,
    pub count: String,
    pub show: String,
    pub repeat: String,
}

/// Candidates with trials, in the order of the ranking, then the others by name.
pub(crate) fn trials(page: &Page) -> Vec<TrialsOf> {
    let place = |name: &str| {
        let mut ranking = page.verdict.ranking.iter();
        let at = ranking.position(|one| one.candidate == name);
        (at.unwrap_or(usize::MAX), name.to_owned())
    };
    let mut names: Vec<&str> = (page.trials_of.iter())
        .map(|line| line.candidate.as_str())
        .collect();
    names.sort_unstable();
    names.dedup();
    names.sort_by_key(|name| place(name));
    let each = names.into_iter().enumerate();
    each.map(|(at, name)| of(page, name, at + 1)).collect()
}

fn of(page: &Page, candidate: &str, number: usize) -> TrialsOf {
    let mut own: Vec<&TrialLine> = (page.trials_of.iter())
        .filter(|line| line.candidate == candidate)
        .collect();
    own.sort_by_key(|line| line.seed);
    let written = own.iter().take(WRITTEN);
    let told = written.map(|line| Told {
        seed: line.seed,
        id: line.id.get(..ID).unwrap_or(&line.id).to_owned(),
        failed: line.failed,
        show: shown(&page.show, &line.id),
        repeat: match line.command.is_empty() {
            true => repeated(&page.repeat, candidate, line.seed),
            false => line.command.clone(),
        },
    });
    TrialsOf {
        candidate: candidate.to_owned(),
        number,
        count: counted(own.len(), "trial"),
        trials: told.collect(),
        more: match own.get(WRITTEN..).unwrap_or_default() {
            [] => String::new(),
            [first, .., last] => format!(
                "{} more, with seeds from {} to {}: their commands differ in the seed alone.",
                own.len() - WRITTEN,
                first.seed,
                last.seed
            ),
            [one] => format!("One more, with seed {}.", one.seed),
        },
        cuts: cuts(page, candidate),
    }
}

fn cuts(page: &Page, candidate: &str) -> Option<Cuts> {
    let own = page.cuts.iter().find(|one| one.candidate == candidate)?;
    let CutSeries { seed, id, cuts, .. } = own;
    Some(Cuts {
        id: id.clone(),
        count: counted(*cuts, "power cut"),
        show: own.show(),
        repeat: repeated(&own.repeat(&page.repeat), candidate, *seed),
    })
}

impl CutSeries {
    /// The command that shows the first of its cuts.
    pub(crate) fn show(&self) -> String {
        format!("whichfs crash replay {}-0", self.id)
    }

    /// `repeat`, with the option that makes these cuts too.
    pub(crate) fn repeat(&self, repeat: &str) -> String {
        format!("{repeat} --cuts {}", self.cuts)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::fixture::{large_page, page};

    #[test]
    fn only_what_stands_for_candidate_and_seed_is_replaced() {
        let repeat = "whichfs choose --tree /SEED/CANDIDATE --fs CANDIDATE --first-seed \
                      SEED --seeds 1 --out repeat-CANDIDATE-SEED";
        assert_eq!(
            repeated(repeat, "ext4", 7),
            "whichfs choose --tree /SEED/CANDIDATE --fs ext4 --first-seed 7 --seeds 1 \
             --out repeat-ext4-7"
        );
        let show = "whichfs trial show TRIAL --store TRIALS.sqlite";
        assert_eq!(
            shown(show, "0123456789abcdef"),
            "whichfs trial show 0123456789ab --store TRIALS.sqlite"
        );
    }

    #[test]
    fn every_trial_has_its_commands_and_of_very_many_the_first() {
        let all = trials(&page());
        assert_eq!(all.len(), 15);
        assert_eq!(all[0].candidate, page().verdict.ranking[0].candidate);
        let count: usize = all.iter().map(|one| one.trials.len()).sum();
        assert_eq!(count, page().trials_of.len());
        assert!(
            all.iter()
                .all(|one| one.more.is_empty() && one.cuts.is_none())
        );
        let many = trials(&large_page(100));
        assert!(many.iter().all(|one| one.trials.len() == WRITTEN));
        assert!(
            many[0]
                .more
                .starts_with("88 more, with seeds from 13 to 100"),
            "{}",
            many[0].more
        );
    }

    #[test]
    fn power_cuts_have_their_own() {
        let mut page = page();
        page.cuts = vec![CutSeries {
            candidate: "xfs".into(),
            seed: 1,
            id: "12ab".into(),
            cuts: 20,
        }];
        let all = trials(&page);
        let own = all.iter().find(|one| one.candidate == "xfs").unwrap();
        let cuts = own.cuts.as_ref().unwrap();
        assert_eq!(cuts.show, "whichfs crash replay 12ab-0");
        assert!(cuts.repeat.contains("--fs xfs"), "{}", cuts.repeat);
        assert!(cuts.repeat.ends_with(" --cuts 20"), "{}", cuts.repeat);
    }
}
