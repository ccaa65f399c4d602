//! The smallest partition that each candidate of a study can be used on: mkfs, mount and the
//! workload are tried on sizes between one that fails and one that works.

use super::{StudyTrials, bench_of};
use crate::campaign::{Answers, InOrder, Wanted, WantedTrial};
use crate::error::{Error, Outcome};
use crate::executor::{Executor, TrialSpec};
use crate::images::Images;
use crate::observer::{Observer, ProgressEvent};
use crate::workload_run::WorkloadRun;
use whichfs_study::{Bisection, Smallest, Spot};
use whichfs_trial::{Status, Trial};
use whichfs_units::Bytes;

/// What a search for the smallest partition came to.
#[derive(Clone, Debug)]
pub struct SmallestPartition<'a> {
    /// Its candidate and variant.
    pub spot: Spot<'a>,
    /// Bytes of the smallest partition; none if none was found.
    pub bytes: Option<u64>,
    /// Sizes are left to be tried.
    pub unfinished: bool,
    /// The trial on the smallest size that works.
    pub best: Option<Trial>,
    /// Why the next smaller size failed.
    pub why: String,
}

/// A search, and what its trials said.
struct Search<'a> {
    spot: Spot<'a>,
    bisection: Bisection,
    /// The trial on the smallest size that works so far.
    best: Option<Trial>,
    /// Why the largest size that failed did.
    why: String,
    /// It cannot run here at all.
    dropped: bool,
}

/// What is known of a size.
enum Attempt {
    /// It was tried.
    Tried(Box<Trial>),
    /// The catalogue has no command for it.
    Refused(String),
    /// It is to be tried.
    Open,
    /// It cannot be tried here, for want of a tool.
    Impossible,
}

impl<'a, E: Executor> StudyTrials<'a, E> {
    /// Looks for the smallest partitions, if the study asks for them: on its first card and board,
    /// with the first seed. Sizes that were never tried are, if `tries`. The trials of the matrix
    /// are done then.
    ///
    /// # Errors
    /// What ends the run as a whole: the caller's interruption, a machine that lacks something.
    pub fn smallest(
        &mut self,
        tries: bool,
        observer: &mut dyn Observer,
    ) -> Outcome<Vec<SmallestPartition<'a>>> {
        let Some(asked) = &self.study.smallest else {
            return Ok(Vec::new());
        };
        self.campaign.accept(Answers::Any);
        let mut searches: Vec<Search> = searches(self.study.spots(), asked);
        while self.open(&mut searches)? {
            let first = searches.first().filter(|_| tries);
            let Some(bench) = first.map(|first| bench_of(&first.spot)) else {
                break;
            };
            let bench = &self.benches[&bench];
            let missing = self.campaign.missing().count();
            observer.hear(&ProgressEvent::RoundBegun {
                trials: missing,
                slots: bench.capabilities().slots,
                later: 0,
            });
            let order = &mut InOrder::default();
            let ended = self
                .campaign
                .run(bench, "smallest partitions", order, observer);
            observer.hear(&ProgressEvent::RoundEnded);
            ended?;
        }
        searches.retain(|search| !search.dropped);
        Ok(searches.into_iter().map(Search::found).collect())
    }

    /// Goes on with each search as far as trials are known, and wants the next one of each; false
    /// when all searches have ended.
    fn open(&mut self, searches: &mut [Search<'a>]) -> Outcome<bool> {
        let mut any = false;
        for search in searches.iter_mut().filter(|search| !search.dropped) {
            while let Some(size) = search.bisection.next() {
                match self.attempt(&search.spot, size)? {
                    Attempt::Tried(trial) => search.hear(size, *trial),
                    Attempt::Refused(why) => search.fail(size, why),
                    Attempt::Impossible => {
                        search.dropped = true;
                        break;
                    }
                    Attempt::Open => {
                        any = true;
                        break;
                    }
                }
            }
        }
        Ok(any)
    }

    fn attempt(&mut self, spot: &Spot<'a>, size: u64) -> Outcome<Attempt> {
        let bench = &self.benches[&bench_of(spot)];
        let spec = TrialSpec {
            candidate: whichfs_fs::find(spot.candidate).map_err(Error::input)?,
            work: &self.sized(spot, size),
            variant: spot.variant,
            seed: spot.seed,
        };
        let wanted = Wanted {
            label: Some(format!("{} on {}", spot.candidate, Bytes(size))),
            ..Wanted::of(*spot, spec)
        };
        let images = Images::unbuilt();
        let mut planned = self
            .campaign
            .plan(bench, [wanted], &images, &|_, error| error)?;
        Ok(match planned.pop() {
            Some(WantedTrial::InMatrix { at, .. }) => match &self.campaign.matrix()[at].trial {
                Some(trial) => Attempt::Tried(Box::new(trial.clone())),
                None => Attempt::Open,
            },
            Some(WantedTrial::LeftOut {
                why,
                source: Some(_),
            }) => Attempt::Refused(why),
            Some(WantedTrial::LeftOut { .. }) | None => Attempt::Impossible,
        })
    }

    /// The work of `spot` on a partition of so many bytes.
    fn sized(&self, spot: &Spot, size: u64) -> WorkloadRun {
        let work = &self.works[spot.load.name.as_str()];
        WorkloadRun {
            workload: work.workload,
            parameters: work.parameters.clone(),
            tree: None,
            tree_sha256: String::new(),
            input: None,
            data_seed: work.data_seed,
            partition_bytes: Some(size),
            any_size: true,
        }
    }
}

impl<'a> Search<'a> {
    fn found(self) -> SmallestPartition<'a> {
        SmallestPartition {
            spot: self.spot,
            bytes: self.bisection.smallest(),
            unfinished: self.bisection.next().is_some(),
            best: self.best,
            why: self.why,
        }
    }

    fn hear(&mut self, size: u64, trial: Trial) {
        match &trial.outcome.status {
            Status::Done => {
                self.bisection.hear(size, true);
                self.best = Some(trial);
            }
            Status::Failed { reason, .. } => {
                self.fail(size, shortened(reason));
            }
        }
    }

    fn fail(&mut self, size: u64, why: String) {
        self.bisection.hear(size, false);
        self.why = why;
    }
}

/// Why a step failed: the program without its arguments, its status and what it said first.
fn shortened(reason: &str) -> String {
    const ENDED: &str = " ended with status ";
    let short = reason.find(ENDED).map(|at| {
        let program = reason.split_whitespace().next().unwrap_or_default();
        format!("{program}{}", &reason[at..])
    });
    let short = short.unwrap_or_else(|| reason.to_owned());
    short.lines().next().unwrap_or_default().to_owned()
}

/// A search for each candidate and variant that has the workload.
fn searches<'a>(spots: Vec<Spot<'a>>, asked: &Smallest) -> Vec<Search<'a>> {
    let Some(first) = spots.first().copied() else {
        return Vec::new();
    };
    let here = spots.into_iter().filter(|spot| {
        (spot.seed, spot.card, spot.board) == (first.seed, first.card, first.board)
            && spot.load.name == asked.workload
    });
    here.map(|spot| Search {
        spot,
        bisection: Bisection::new(asked.resolution_bytes, asked.largest_bytes),
        best: None,
        why: String::new(),
        dropped: false,
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_short() {
        let reason = "/bin/sh -c \nset -e\nx ended with status 1: sh: No space left\nmore";
        assert_eq!(
            shortened(reason),
            "/bin/sh ended with status 1: sh: No space left"
        );
        assert_eq!(shortened("it sleeps for ever\nlog"), "it sleeps for ever");
    }
}
