//! Records of trials from files into a store: those that are what they say, each once. A file has
//! records, one a line, or is the log of a job of LAVA that printed them.

use crate::error::{Error, Outcome};
use crate::json_lines::{NumberedLines, RefusedLine, document};
use crate::places;
use crate::trial_cache::open_store;
use crate::version::version;
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::Path;
use whichfs_store::{BATCH, Put, Store};
use whichfs_study::TrialRequest;
use whichfs_trial::TrialRecord;

/// Refused lines that are listed; the others are counted.
const LISTED: usize = 100;

/// Lines of a batch, in bytes, where records are long.
const BATCH_BYTES: usize = 32 << 20;

/// Begin of a line of LAVA's log, which is a YAML list of one line each.
const LAVA_LINE: &[u8] = b"{\"dt\":";
/// What LAVA writes in place of a line of more than 1 MB.
const LAVA_TOO_LONG: &str = "<line way too long ...>";

/// A line of LAVA's log.
#[derive(Deserialize)]
struct LavaLine {
    /// Who says it: `target` for the board.
    lvl: String,
    /// Mostly a text.
    msg: serde_norway::Value,
}

/// What a line of a file is.
#[derive(Debug, PartialEq, Eq)]
enum SourceLine<'l> {
    /// A record, or what is taken for one.
    Record(Cow<'l, [u8]>),
    /// A line of LAVA's log that is no record.
    Log,
}

impl SourceLine<'_> {
    /// # Errors
    /// LAVA left the line out.
    fn of(line: &[u8]) -> Result<SourceLine<'_>, String> {
        let text = line.strip_prefix(b"- ").unwrap_or(line);
        if !text.starts_with(LAVA_LINE) {
            return Ok(SourceLine::Record(line.into()));
        }
        let Ok(logged) = serde_norway::from_slice::<LavaLine>(text) else {
            // Cut off, and refused if a record was in it.
            let mark = TrialRequest::RECORD_MARK.as_bytes();
            let has_mark = text.windows(mark.len()).any(|part| part == mark);
            return Ok(match has_mark {
                true => SourceLine::Record(line.into()),
                false => SourceLine::Log,
            });
        };
        let said = logged.msg.as_str().unwrap_or_default();
        if said == LAVA_TOO_LONG && logged.lvl == "target" {
            return Err(
                "LAVA left out a line of more than 1 MB: run that trial again, and take \
                        its record from the board's store"
                    .to_owned(),
            );
        }
        let Some(record) = said.strip_prefix(TrialRequest::RECORD_MARK) else {
            return Ok(SourceLine::Log);
        };
        // LAVA puts a backslash before each quotation mark that a board prints, beside those of
        // its log's own format.
        let record = match record.starts_with("{\\\"") {
            true => record.replace("\\\"", "\""),
            false => record.to_owned(),
        };
        Ok(SourceLine::Record(record.into_bytes().into()))
    }
}

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
        let (mut is_log, mut has_record) = (false, false);
        while let Some(line) = lines.next_line()? {
            let judged = match SourceLine::of(&line) {
                Ok(SourceLine::Log) => {
                    is_log = true;
                    continue;
                }
                Ok(SourceLine::Record(record)) => rules.judge(&record),
                Err(why) => Err(why),
            };
            has_record = true;
            bytes += line.len();
            match judged {
                Ok(record) => batch.push((record, lines.refused(String::new(), false))),
                Err(why) => counts.refuse(lines.refused(why, false)),
            }
            if batch.len() == BATCH || bytes > BATCH_BYTES {
                counts.put(&mut store, std::mem::take(&mut batch))?;
                bytes = 0;
            }
        }
        if is_log && !has_record {
            let why = "the log of LAVA ends here without a record: its job ended before it \
                       printed any; the log says why";
            counts.refuse(lines.refused(why.to_owned(), false));
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn records_are_found_in_a_log_of_lava() {
        let record = |text: &str| SourceLine::Record(text.as_bytes().to_vec().into());
        // As LAVA 2023.01 writes them, with and without the hyphen of the list.
        let said = r#"{"dt": "2026-11-26T00:12:01.1", "lvl": "target", "msg": "SAID"}"#;
        let line = |words: &str| said.replace("SAID", words);
        let found = |line: &str| {
            SourceLine::of(line.as_bytes()).map(|found| match found {
                SourceLine::Record(bytes) => record(std::str::from_utf8(&bytes).unwrap()),
                SourceLine::Log => SourceLine::Log,
            })
        };
        let wanted = record("{\"id\": \"7f\", \"t\": \"\\\"µ\\\" \\\\\"}");
        // A quotation mark of the record is `\"` in the message, and `\\\"` in the log.
        let marked = line(
            r#"WHICHFS-RECORD {\\\"id\\\": \\\"7f\\\", \\\"t\\\": \\\"\\\\\"\xB5\\\\\" \\\\\\\"}"#,
        );
        assert_eq!(found(&marked), Ok(wanted));
        let plain = line(r#"WHICHFS-RECORD {\"id\": 7}"#);
        assert_eq!(found(&plain), Ok(record("{\"id\": 7}")));
        assert_eq!(
            found(&format!("- {}", line("WHICHFS-RECORD 7"))),
            Ok(record("7"))
        );
        for other in [
            // The shell of a job prints its commands.
            line("+ sed s/^/WHICHFS-RECORD /"),
            line("login: "),
            r#"{"dt": torn"#.into(),
            r#"- {"dt": "2026", "lvl": "results", "msg": {"case": "a", "result": "pass"}}"#.into(),
        ] {
            assert_eq!(found(&other), Ok(SourceLine::Log), "{other}");
        }
        assert!(found(&line(LAVA_TOO_LONG)).unwrap_err().contains("1 MB"));
        // The importer refuses what is no record.
        let torn = r#"{"dt": "2026", "lvl": "target", "msg": "WHICHFS-RECORD {"#;
        for no_log in [r#"{"document": "trial run"}"#, torn, "- {"] {
            assert_eq!(found(no_log), Ok(record(no_log)));
        }
    }
}
