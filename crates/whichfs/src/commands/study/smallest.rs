//! The smallest partition that each candidate of a study can be used on: mkfs, mount and the
//! workload are tried on sizes between one that fails and one that works.

use super::trials::{Runner, place};
use crate::failure::{Failure, Outcome};
use crate::interrupt;
use crate::progress::Progress;
use std::collections::BTreeMap;
use whichfs_engine::executor::PrepareError;
use whichfs_engine::images::Images;
use whichfs_engine::lab_executor::Prepared;
use whichfs_engine::workload_run::WorkloadRun;
use whichfs_report::documents::study::SmallestFound;
use whichfs_study::{Bisection, Smallest, Spot};
use whichfs_trial::{Status, Trial};
use whichfs_units::Bytes;

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
    Open(Box<Prepared>),
    /// It cannot be tried here, for want of a tool.
    Impossible,
}

impl<'a> Runner<'a> {
    /// Looks for the smallest partitions, if the study asks for them: on its first card and board,
    /// with the first seed. Sizes that were never tried are, if `tries`.
    ///
    /// # Errors
    /// What ends the run as a whole: the user's interrupt, a machine that lacks something.
    pub fn smallest(&mut self, tries: bool) -> Outcome<Vec<SmallestFound<'a>>> {
        let study = self.study;
        let Some(asked) = &study.smallest else {
            return Ok(Vec::new());
        };
        let mut searches: Vec<Search> = searches(study.spots(), asked);
        let mut tried = BTreeMap::new();
        while let Some(batch) = self.open(&mut searches, &tried)? {
            if !tries {
                break;
            }
            self.try_all(batch, &mut tried)?;
        }
        let named = study.variants.len() > 1;
        searches.retain(|search| !search.dropped);
        searches.iter().map(|search| found(search, named)).collect()
    }

    /// Goes on with each search as far as trials are known; the next one of each. `None` when
    /// all searches have ended.
    fn open(
        &mut self,
        searches: &mut [Search<'a>],
        tried: &BTreeMap<String, Trial>,
    ) -> Outcome<Option<Vec<Prepared>>> {
        let mut batch = Vec::new();
        for search in searches.iter_mut().filter(|search| !search.dropped) {
            while let Some(size) = search.bisection.next() {
                match self.attempt(&search.spot, size, tried)? {
                    Attempt::Tried(trial) => search.hear(size, *trial),
                    Attempt::Refused(why) => search.fail(size, why),
                    Attempt::Impossible => {
                        search.dropped = true;
                        break;
                    }
                    Attempt::Open(prepared) => {
                        batch.push(*prepared);
                        break;
                    }
                }
            }
        }
        Ok(Some(batch).filter(|batch| !batch.is_empty()))
    }

    fn attempt(
        &self,
        spot: &Spot<'a>,
        size: u64,
        tried: &BTreeMap<String, Trial>,
    ) -> Outcome<Attempt> {
        let bench = &self.benches[&place(spot)];
        let work = self.sized(spot, size);
        let candidate = whichfs_fs::find(spot.candidate).map_err(Failure::input)?;
        match bench.prepare(
            candidate,
            &work,
            spot.variant,
            spot.seed,
            &Images::unbuilt(),
        ) {
            Ok(mut prepared) => {
                let known = tried.get(&prepared.identity.id()).cloned();
                prepared.label = format!("{} on {}", spot.candidate, Bytes(size));
                Ok(
                    match known.map_or_else(|| self.keeper.answered(&prepared), |t| Ok(Some(t)))? {
                        Some(trial) => Attempt::Tried(Box::new(trial)),
                        None => Attempt::Open(Box::new(prepared)),
                    },
                )
            }
            Err(PrepareError::Excluded {
                why,
                source: Some(_),
            }) => Ok(Attempt::Refused(why)),
            Err(PrepareError::Excluded { .. }) => Ok(Attempt::Impossible),
            Err(PrepareError::Failed(failure)) => Err(failure),
        }
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

    fn try_all(&mut self, batch: Vec<Prepared>, tried: &mut BTreeMap<String, Trial>) -> Outcome {
        let spots = self.study.spots();
        let Some(spot) = spots.first() else {
            return Ok(());
        };
        let bench = &self.benches[&place(spot)];
        // Failing is an answer here: a line for each would read like faults.
        let mut progress = Progress::new(batch.len(), bench.jobs, true);
        self.keeper.run(
            bench,
            batch,
            interrupt::flag(),
            &mut progress,
            &|| Ok(()),
            &mut |trial| {
                tried.insert(trial.identity.id(), trial.clone());
                Ok(())
            },
        )
    }
}

impl Search<'_> {
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

fn found<'a>(search: &Search<'a>, named: bool) -> Outcome<SmallestFound<'a>> {
    let candidate = whichfs_fs::find(search.spot.candidate).map_err(Failure::input)?;
    let metric = |name: &str| {
        let metrics = search.best.iter().flat_map(|trial| &trial.outcome.metrics);
        let mut named = metrics.filter(|metric| metric.metric == name);
        named.next().map(|metric| metric.value)
    };
    Ok(SmallestFound {
        candidate: search.spot.candidate,
        variant: if named { &search.spot.variant.name } else { "" },
        bytes: search.bisection.smallest(),
        unfinished: search.bisection.next().is_some(),
        catalogue_bytes: candidate.facts().min_bytes,
        free_bytes: metric("free"),
        free_inodes: metric("free_inodes"),
        why: search.why.clone(),
    })
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
