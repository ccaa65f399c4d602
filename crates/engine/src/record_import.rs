//! Records of trials from files into a store: those that are what they say, each once.

use crate::error::{Error, Outcome};
use crate::json_lines::{NumberedLines, RefusedLine, document};
use crate::lab_executor::version;
use crate::places;
use crate::trial_cache::open_store;
use std::collections::BTreeSet;
use std::path::Path;
use whichfs_store::{BATCH, Put, Store};
use whichfs_study::TrialRequest;
use whichfs_trial::TrialRecord;

/// Refused lines that are listed; the others are counted.
const LISTED: usize = 100;

/// Lines of a batch, in bytes, where records are long.
const BATCH_BYTES: usize = 32 << 20;

/// What became of records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportCounts {
    /// Records that were not in the store.
    pub new: u64,
    /// Records that took the place of a failed trial.
    pub replaced: u64,
    /// Records that the store had.
    pub known: u64,
    /// Lines that were refused.
    pub refused: u64,
    /// The first of these.
    pub listed: Vec<RefusedLine>,
    /// Trials of the plan that the store has no figures of; none without a plan.
    pub missing: Option<u64>,
}

/// Which records are taken.
#[derive(Default)]
pub struct ImportRules {
    /// Also those of other versions of whichfs.
    pub other_versions: bool,
    /// Only those of the plan with these ids, if there is one.
    pub plan: Option<BTreeSet<String>>,
    /// Now, in seconds since 1970: no record is kept as one of later, for clocks of other machines
    /// may be wrong.
    pub now_unix: i64,
}

impl ImportRules {
    /// The record in `line`, if it is taken.
    fn judge(&self, line: &[u8]) -> Result<TrialRecord, String> {
        let mut record: TrialRecord = document(line, TrialRecord::DOCUMENT, TrialRecord::SCHEMA)?;
        let identity = &record.trial.identity;
        let own = identity.id();
        if own != record.id {
            return Err(format!(
                "trial {} is not what its id says: it was changed; run that trial again",
                start(&record.id)
            ));
        }
        // A device has no version of the lab's method.
        if !self.other_versions && !identity.is_measured() && identity.version != version() {
            return Err(format!(
                "trial {} was made by whichfs {}, this is {}: install the same package on both \
                 machines, or take records of other versions, too (verdicts of this version do not \
                 use them)",
                start(&own),
                identity.version,
                version()
            ));
        }
        if self.plan.as_ref().is_some_and(|plan| !plan.contains(&own)) {
            return Err(format!(
                "trial {} ({}, seed {}) is not in the plan: the plan changed, or it is of another \
                 one; import it without a plan to keep it",
                start(&own),
                identity.candidate,
                identity.seed
            ));
        }
        record.finished_at_unix = record.finished_at_unix.min(self.now_unix);
        Ok(record)
    }
}

/// The first digits of an id.
fn start(id: &str) -> String {
    id.chars().take(12).collect()
}

/// The ids of the planned trials in `lines`.
///
/// # Errors
/// A line that is no planned trial.
pub fn planned_ids(mut lines: NumberedLines<'_>) -> Outcome<BTreeSet<String>> {
    let mut ids = BTreeSet::new();
    while let Some(line) = lines.next_line()? {
        let read = document::<TrialRequest>(&line, TrialRequest::DOCUMENT, TrialRequest::SCHEMA);
        let planned = read.map_err(|why| {
            let refused = lines.refused(why, false);
            Error::input(format!(
                "{}, line {}: {}",
                refused.source, refused.line, refused.why
            ))
        })?;
        ids.insert(planned.id);
    }
    Ok(ids)
}

/// Puts the records in `sources` into the store at `path`, or the user's, which is made if there is
/// none: [`BATCH`] of them in each transaction. A record that is refused keeps no other out.
///
/// # Errors
/// A source cannot be read, the store cannot be written. What was imported before stays; importing
/// all again goes on from there.
pub fn import(
    path: Option<&Path>,
    sources: Vec<NumberedLines<'_>>,
    rules: &ImportRules,
) -> Outcome<(Store, ImportCounts)> {
    let path = path.map_or_else(places::store, |path| Ok(path.to_owned()))?;
    let mut store = open_store(&path)?;
    let mut counts = ImportCounts::default();
    for mut lines in sources {
        let mut batch: Vec<(TrialRecord, RefusedLine)> = Vec::new();
        let mut bytes = 0;
        while let Some(line) = lines.next_line()? {
            bytes += line.len();
            match rules.judge(&line) {
                Ok(record) => batch.push((record, lines.refused(String::new(), false))),
                Err(why) => counts.refuse(lines.refused(why, false)),
            }
            if batch.len() == BATCH || bytes > BATCH_BYTES {
                counts.put(&mut store, std::mem::take(&mut batch))?;
                bytes = 0;
            }
        }
        counts.put(&mut store, batch)?;
    }
    if let Some(plan) = &rules.plan {
        let mut missing = 0;
        for id in plan {
            missing += u64::from(!store.has_done(id).map_err(Error::environment)?);
        }
        counts.missing = Some(missing);
    }
    Ok((store, counts))
}

impl ImportCounts {
    fn refuse(&mut self, line: RefusedLine) {
        self.refused += 1;
        if self.listed.len() < LISTED {
            self.listed.push(line);
        }
    }

    /// Stores `batch`, each record with the place that it came from.
    fn put(&mut self, store: &mut Store, batch: Vec<(TrialRecord, RefusedLine)>) -> Outcome {
        if batch.is_empty() {
            return Ok(());
        }
        let put = store.put_all(batch.iter().map(|(record, _)| record));
        let put = put.map_err(Error::environment)?;
        for ((_, place), became) in batch.iter().zip(put) {
            match became {
                Ok(Put::New) => self.new += 1,
                Ok(Put::Replaced) => self.replaced += 1,
                Ok(Put::Known | Put::SuccessKept) => self.known += 1,
                Err(error) => self.refuse(RefusedLine {
                    why: error.to_string(),
                    ..place.clone()
                }),
            }
        }
        Ok(())
    }
}
