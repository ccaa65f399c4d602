//! A campaign of power cuts: which cuts of a series are known, and which are made. Each is in the
//! archive before anybody hears of it, so an interrupted series goes on where it was.

use super::archive::SeriesArchive;
use super::check::Result;
use super::measured::{Rehearsed, Subject};
use super::power::Way;
use super::record::{Recorded, RecordingPlan};
use super::series;
use crate::device::DeviceLease;
use crate::error::Outcome;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use whichfs_crash::Cut;
use whichfs_units::counted;

/// Takes a cut that was made.
pub type Take<'t> = &'t mut dyn FnMut(Result) -> Outcome;

/// Makes the cuts of one series: in the lab, on a board, or by a script in tests.
pub trait Cuts {
    /// Makes the cuts of these `numbers`, in any order, and gives each to `take` in the caller's
    /// thread. It may end before the last one if a limit of the caller is reached.
    ///
    /// # Errors
    /// What is not the filesystem's doing, the caller's interruption, or what `take` says. What
    /// was made is given to `take` all the same.
    fn make(&mut self, numbers: &[u64], interrupted: &AtomicBool, take: Take<'_>) -> Outcome;
}

/// Hears how a campaign of cuts goes.
pub trait CutObserver {
    /// So many of `all` cuts were kept by an earlier run.
    fn known(&mut self, known: usize, all: usize);
    /// A cut was made and kept; `missing` are yet to be made.
    fn made(&mut self, result: &Result, missing: usize);
}

/// Hears nothing.
impl CutObserver for () {
    fn known(&mut self, _known: usize, _all: usize) {}
    fn made(&mut self, _result: &Result, _missing: usize) {}
}

/// The cuts of one series: wanted, known and made.
pub struct CrashCampaign {
    archive: SeriesArchive,
    wanted: Vec<u64>,
    results: BTreeMap<u64, Result>,
}

impl CrashCampaign {
    /// A campaign of the `wanted` cuts over `archive`, in which `kept` were found; `fresh` makes
    /// them all again.
    pub fn new(
        (archive, kept): (SeriesArchive, BTreeMap<u64, Result>),
        wanted: Vec<u64>,
        fresh: bool,
    ) -> CrashCampaign {
        let mut results = kept;
        results.retain(|number, _| !fresh && wanted.contains(number));
        CrashCampaign {
            archive,
            wanted,
            results,
        }
    }

    /// Numbers of the cuts that are to be made.
    pub fn missing(&self) -> Vec<u64> {
        let wanted = self.wanted.iter().copied();
        wanted
            .filter(|number| !self.results.contains_key(number))
            .collect()
    }

    /// The cuts that are known, by their numbers.
    pub fn results(&self) -> &BTreeMap<u64, Result> {
        &self.results
    }

    /// The same, in the order of their numbers.
    pub fn into_results(self) -> Vec<Result> {
        self.results.into_values().collect()
    }

    /// Has `cuts` make those that are missing, and keeps each before `observer` hears of it.
    ///
    /// # Errors
    /// As [`Cuts::make`]; the archive cannot be written. What was made is kept.
    pub fn run(
        &mut self,
        cuts: &mut dyn Cuts,
        interrupted: &AtomicBool,
        observer: &mut dyn CutObserver,
    ) -> Outcome {
        observer.known(self.results.len(), self.wanted.len());
        let missing = self.missing();
        if missing.is_empty() {
            return Ok(());
        }
        let (archive, results) = (&mut self.archive, &mut self.results);
        let mut left = missing.len();
        cuts.make(&missing, interrupted, &mut |result| {
            archive.add(&result)?;
            left = left.saturating_sub(1);
            observer.made(&result, left);
            results.insert(result.cut.number, result);
            Ok(())
        })
    }
}

/// Cuts of a run that the lab recorded: images are made and looked at, several at once.
pub struct LabCuts<'a> {
    /// What was run.
    pub plan: &'a RecordingPlan<'a>,
    /// Operations and requests of the run that is cut.
    pub recorded: &'a Recorded,
    /// All cuts that may be asked for.
    pub cuts: &'a [Cut],
}

impl Cuts for LabCuts<'_> {
    fn make(&mut self, numbers: &[u64], interrupted: &AtomicBool, take: Take<'_>) -> Outcome {
        let asked = |cut: &&Cut| numbers.contains(&cut.number);
        let cuts: Vec<Cut> = self.cuts.iter().filter(asked).cloned().collect();
        series::check_all(self.plan, self.recorded, &cuts, None, interrupted, take)
    }
}

/// The results of `cuts` of the recorded run of `plan`: those that the archive of its series in
/// `directory` lacks are made, or all if `fresh`.
///
/// # Errors
/// As [`CrashCampaign::run`]; the archive cannot be opened.
pub fn lab_results(
    (plan, recorded): (&RecordingPlan<'_>, &Recorded),
    cuts: &[Cut],
    (directory, fresh): (&Path, bool),
    interrupted: &AtomicBool,
    observer: &mut dyn CutObserver,
) -> Outcome<Vec<Result>> {
    // Of one cut that is made again the others of its series stay.
    let anew = fresh && cuts.len() == plan.spec.cuts(recorded).len();
    let opened = SeriesArchive::open(directory, plan.spec, anew)?;
    let wanted = cuts.iter().map(|cut| cut.number).collect();
    let mut campaign = CrashCampaign::new(opened, wanted, fresh);
    let mut cuts = LabCuts {
        plan,
        recorded,
        cuts,
    };
    campaign.run(&mut cuts, interrupted, observer)?;
    Ok(campaign.into_results())
}

/// Cuts of a board's power, one after the other.
pub struct BoardCuts<'a, 'l> {
    /// What is cut.
    pub subject: &'a Subject,
    /// The board's device.
    pub lease: &'a mut DeviceLease<'l>,
    /// What takes the power.
    pub way: &'a Way,
    /// Bytes that may still be written, if there is a limit.
    pub write_limit: &'a mut Option<u64>,
}

impl BoardCuts<'_, '_> {
    /// Takes `bytes` from what may be written; false if that is not left.
    fn spend(&mut self, bytes: u64) -> bool {
        match self.write_limit {
            Some(left) if *left < bytes => false,
            Some(left) => {
                *left -= bytes;
                true
            }
            None => true,
        }
    }
}

impl Cuts for BoardCuts<'_, '_> {
    fn make(&mut self, numbers: &[u64], _interrupted: &AtomicBool, take: Take<'_>) -> Outcome {
        let name = self.subject.candidate.name;
        log::info!("{name}: running the workload without a cut");
        let whole: Rehearsed = self.subject.rehearse(self.lease, *self.write_limit)?;
        self.spend(whole.bytes);
        for (made, number) in numbers.iter().enumerate() {
            if !self.spend(whole.bytes) {
                log::info!(
                    "{name}: the limit of bytes to write ends the series after {}; with a larger \
                     one the same command goes on",
                    counted(made, "cut")
                );
                break;
            }
            take(self.subject.cut(self.lease, &whole, self.way, *number)?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::crash::fixture::{result, spec};
    use crate::error::{Error, ErrorKind};

    /// Makes cuts until the one at which this machine fails.
    struct Until(u64);

    impl Cuts for Until {
        fn make(&mut self, numbers: &[u64], _stop: &AtomicBool, take: Take<'_>) -> Outcome {
            for number in numbers {
                if *number == self.0 {
                    return Err(Error::environment("no room"));
                }
                take(result(*number))?;
            }
            Ok(())
        }
    }

    fn campaign(directory: &std::path::Path, fresh: bool) -> CrashCampaign {
        let opened = SeriesArchive::open(directory, &spec(), fresh).unwrap();
        CrashCampaign::new(opened, vec![0, 1, 2, 3], fresh)
    }

    #[test]
    fn a_series_that_failed_goes_on_with_what_is_missing() {
        let dir = tempfile::tempdir().unwrap();
        let stop = AtomicBool::new(false);
        let mut first = campaign(dir.path(), false);
        let failed = first.run(&mut Until(2), &stop, &mut ()).unwrap_err();
        assert_eq!(failed.kind, ErrorKind::Environment);
        drop(first);
        let mut second = campaign(dir.path(), false);
        assert_eq!(second.missing(), [2, 3]);
        second.run(&mut Until(9), &stop, &mut ()).unwrap();
        assert_eq!(second.into_results().len(), 4);
        assert_eq!(campaign(dir.path(), true).missing(), [0, 1, 2, 3], "fresh");
    }
}
