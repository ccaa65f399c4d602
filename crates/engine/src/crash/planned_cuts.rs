//! Cuts of a series as lines that any machine can make: planned here, made elsewhere, and their
//! records put into the archive of the series.

use super::archive::{self, SeriesArchive};
use super::campaign::{Cuts, LabCuts};
use super::check::Result as CutResult;
use super::inputs::{LabPlace, WALL_LIMIT, lab};
use super::record::{Recorded, RecordingPlan};
use super::spec::{Makers, Spec};
use crate::cards;
use crate::error::{Error, ErrorKind, Outcome};
use crate::json_lines::{NumberedLines, RefusedLine, document};
use crate::lab_executor::LabExecutor;
use crate::portable_files::{placed, text_of};
use crate::version::version;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use whichfs_lab::available_cores;

/// Some cuts of a series that are to be made, and all that it takes to make them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CutBatch {
    /// Number of the series: the digest of `spec`.
    pub series: String,
    /// What decides the images. A machine of another build refuses the line.
    pub spec: Spec,
    /// Text of the card and board files that `spec` names and that are not shipped.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// Numbers of the cuts.
    pub cuts: Vec<u64>,
}

impl CutBatch {
    /// Name of its JSON document.
    pub const DOCUMENT: &'static str = "crash plan";
    /// Number of that document's schema.
    pub const SCHEMA: u32 = 1;
}

/// What became of one cut, from the machine that made it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CutRecord {
    /// Number of the series: the digest of `spec`.
    pub series: String,
    /// What decides the images.
    pub spec: Spec,
    /// What became of the cut.
    pub result: CutResult,
}

impl CutRecord {
    /// Name of its JSON document.
    pub const DOCUMENT: &'static str = "crash cut";
    /// Number of that document's schema.
    pub const SCHEMA: u32 = 1;
}

/// How many cuts were planned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlannedCuts {
    /// Cuts in the lines.
    pub told: usize,
    /// Cuts that the archive has.
    pub known: usize,
}

/// Gives `tell` the cuts of `spec`, `per_line` of them in a line, without those that the archive in
/// `known` has, if there is one. The workload runs once, because it decides which cuts there are.
///
/// # Errors
/// A file that a line cannot hold; a run that fails or has nothing to cut; an error of `tell`; the
/// caller's interruption.
pub fn plan_cuts(
    bench: &LabExecutor,
    spec: &Spec,
    per_line: usize,
    known: Option<&Path>,
    interrupted: &AtomicBool,
    tell: &mut dyn FnMut(&CutBatch) -> Outcome,
) -> Outcome<PlannedCuts> {
    let mut files = BTreeMap::new();
    let board = cards::is_file(&spec.board).then_some(spec.board.as_str());
    for name in [cards::file_of(&spec.card), board].into_iter().flatten() {
        files.insert(name.to_owned(), text_of(name)?);
    }
    let recorded = RecordingPlan::new(bench, spec)?.record(core(), interrupted)?;
    let all: Vec<u64> = spec.cuts(&recorded).iter().map(|cut| cut.number).collect();
    if all.is_empty() {
        return Err(Error::input(format!(
            "{}: the run has nothing to cut of that kind; take other cuts, or a larger workload",
            spec.fs
        )));
    }
    let id = spec.id();
    let have = match known {
        Some(directory) => archive::of(directory, &id)?,
        None => BTreeMap::new(),
    };
    let missing: Vec<u64> = all
        .iter()
        .copied()
        .filter(|number| !have.contains_key(number))
        .collect();
    for cuts in missing.chunks(per_line.max(1)) {
        tell(&CutBatch {
            series: id.clone(),
            spec: spec.clone(),
            files: files.clone(),
            cuts: cuts.to_vec(),
        })?;
    }
    Ok(PlannedCuts {
        told: missing.len(),
        known: all.len() - missing.len(),
    })
}

/// The core that records a run.
fn core() -> Option<usize> {
    available_cores().last().copied()
}

/// What became of planned cuts.
pub enum CutLineResult<'r> {
    /// A cut was made.
    Made(&'r CutRecord),
    /// A line was not taken.
    Refused(&'r RefusedLine),
}

/// How many lines and cuts became what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CutCounts {
    /// Cuts that were made.
    pub made: usize,
    /// Lines that this machine cannot make, and another one may.
    pub foreign: usize,
    /// Lines that nobody can make.
    pub malformed: usize,
}

/// Makes the planned cuts in `lines` with `jobs` guests at once, and gives the record of each to
/// `hear` as it comes. The workload of a series runs once for all lines of it that follow each
/// other. A line that is refused keeps no other from being made.
///
/// # Errors
/// What is not the filesystem's doing: this machine, `lines` or `hear`; the caller's interruption.
/// What was made before is heard.
pub fn make_cuts(
    lines: NumberedLines<'_>,
    jobs: Option<u64>,
    interrupted: &AtomicBool,
    hear: &mut dyn FnMut(CutLineResult<'_>) -> Outcome,
) -> Outcome<CutCounts> {
    let mut work = Work {
        lines,
        counts: CutCounts::default(),
        hear,
    };
    let mut next = work.next()?;
    while let Some(request) = next {
        next = work.series(request, jobs, interrupted)?;
    }
    Ok(work.counts)
}

/// Lines that are worked off.
struct Work<'l, 'h> {
    lines: NumberedLines<'l>,
    counts: CutCounts,
    hear: &'h mut dyn FnMut(CutLineResult<'_>) -> Outcome,
}

impl Work<'_, '_> {
    /// The next line that is what it says; those before it are refused.
    fn next(&mut self) -> Outcome<Option<CutBatch>> {
        while let Some(line) = self.lines.next_line()? {
            match judge_request(&line) {
                Ok(request) => return Ok(Some(request)),
                Err(why) => self.refuse(why, false)?,
            }
        }
        Ok(None)
    }

    /// Refuses the line that was read last.
    fn refuse(&mut self, why: String, foreign: bool) -> Outcome {
        match foreign {
            true => self.counts.foreign += 1,
            false => self.counts.malformed += 1,
        }
        (self.hear)(CutLineResult::Refused(&self.lines.refused(why, foreign)))
    }

    /// Makes the cuts of `first` and of the lines of the same series after it; the line after
    /// those.
    fn series(
        &mut self,
        first: CutBatch,
        jobs: Option<u64>,
        interrupted: &AtomicBool,
    ) -> Outcome<Option<CutBatch>> {
        let prepared = here(&first, jobs).and_then(|bench| {
            let plan = RecordingPlan::new(&bench, &first.spec)?;
            foreign(&bench, &plan)?;
            Ok(bench)
        });
        let bench = match prepared {
            Ok(bench) => bench,
            Err(error) => {
                let elsewhere = match error.kind {
                    ErrorKind::Input => false,
                    ErrorKind::No => true,
                    _ => return Err(error),
                };
                self.refuse(error.message, elsewhere)?;
                return self.next();
            }
        };
        let plan = RecordingPlan::new(&bench, &first.spec)?;
        let recorded = plan.record(core(), interrupted)?;
        let mut request = first.clone();
        loop {
            self.make(&plan, &recorded, &request, interrupted)?;
            match self.next()? {
                Some(next) if next.series == first.series => request = next,
                next => return Ok(next),
            }
        }
    }

    /// Makes the cuts of `request`.
    fn make(
        &mut self,
        plan: &RecordingPlan<'_>,
        recorded: &Recorded,
        request: &CutBatch,
        interrupted: &AtomicBool,
    ) -> Outcome {
        let cuts = plan.spec.cuts(recorded);
        let there: BTreeSet<u64> = cuts.iter().map(|cut| cut.number).collect();
        if let Some(number) = request.cuts.iter().find(|number| !there.contains(number)) {
            let why = format!(
                "series {} has no cut {number}: make the plan anew",
                request.series
            );
            return self.refuse(why, false);
        }
        let mut cuts = LabCuts {
            plan,
            recorded,
            cuts: &cuts,
        };
        cuts.make(&request.cuts, interrupted, &mut |result| {
            self.counts.made += 1;
            (self.hear)(CutLineResult::Made(&CutRecord {
                series: request.series.clone(),
                spec: request.spec.clone(),
                result,
            }))
        })
    }
}

/// The planned cuts in `line`.
fn judge_request(line: &[u8]) -> Result<CutBatch, String> {
    let request: CutBatch = document(line, CutBatch::DOCUMENT, CutBatch::SCHEMA)?;
    judge_spec(&request.series, &request.spec)?;
    Ok(request)
}

/// Refuses a series that is not what its number says, or not of the lab.
fn judge_spec(series: &str, spec: &Spec) -> Result<(), String> {
    if spec.id() != series {
        return Err(format!(
            "its series is not {series}: the line was changed; make the plan anew"
        ));
    }
    match spec.measured {
        Some(_) => Err("its power was cut on a real device, which no other machine has".to_owned()),
        None => Ok(()),
    }
}

/// The lab of `request` on this machine.
fn here(request: &CutBatch, jobs: Option<u64>) -> Outcome<LabExecutor> {
    let card = placed(&request.spec.card, &request.files)?;
    let board = placed(&request.spec.board, &request.files)?;
    let place = LabPlace {
        card: &card,
        board: &board,
        ..request.spec.place()?
    };
    lab(place, WALL_LIMIT, jobs)
}

/// Refuses a series that other parts were planned for: the answer of this machine is no.
fn foreign(bench: &LabExecutor, plan: &RecordingPlan<'_>) -> Outcome {
    let differences = Makers::of(bench, &plan.recipe()?).differences(&plan.spec.made_by);
    match differences.is_empty() {
        true => Ok(()),
        false => Err(Error::new(
            ErrorKind::No,
            format!(
                "this machine makes other images: its {} is not that of the plan; install the same \
                 package on both machines",
                differences.join(" and its ")
            ),
        )),
    }
}

/// What became of records of cuts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CutImport {
    /// Cuts that the archive did not have.
    pub new: u64,
    /// Cuts that it had.
    pub known: u64,
    /// Lines that were refused, in the order of their files.
    pub refused: Vec<RefusedLine>,
    /// Cuts of the plan that the archive lacks; none without a plan.
    pub missing: Option<u64>,
}

/// The planned cuts in `lines`, by series.
///
/// # Errors
/// A line that is no planned cut.
pub fn planned_cuts(mut lines: NumberedLines<'_>) -> Outcome<BTreeMap<String, BTreeSet<u64>>> {
    let mut planned: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
    while let Some(line) = lines.next_line()? {
        let request = judge_request(&line).map_err(|why| {
            let RefusedLine {
                source, line, why, ..
            } = lines.refused(why, false);
            Error::input(format!("{source}, line {line}: {why}"))
        })?;
        planned
            .entry(request.series)
            .or_default()
            .extend(request.cuts);
    }
    Ok(planned)
}

/// A series of the archive that is open, and what it has.
type OpenSeries = (SeriesArchive, BTreeMap<u64, CutResult>);

/// Puts the records in `sources` into the archive in `directory`: each cut once, however often it
/// comes; with a `plan` only cuts of it. A record that is refused keeps no other out.
///
/// # Errors
/// A source cannot be read, the archive cannot be written. What was imported before stays.
pub fn import_cuts(
    directory: &Path,
    sources: Vec<NumberedLines<'_>>,
    plan: Option<&BTreeMap<String, BTreeSet<u64>>>,
) -> Outcome<CutImport> {
    let mut import = CutImport::default();
    let mut open: BTreeMap<String, OpenSeries> = BTreeMap::new();
    for mut lines in sources {
        while let Some(line) = lines.next_line()? {
            let record = match judge_record(&line, plan) {
                Ok(record) => record,
                Err(why) => {
                    import.refused.push(lines.refused(why, false));
                    continue;
                }
            };
            let (archive, have) = match open.entry(record.series) {
                std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
                std::collections::btree_map::Entry::Vacant(entry) => {
                    entry.insert(SeriesArchive::open(directory, &record.spec, false)?)
                }
            };
            let number = record.result.cut.number;
            match have.get(&number) {
                None => {
                    archive.add(&record.result)?;
                    have.insert(number, record.result);
                    import.new += 1;
                }
                Some(kept) if *kept == record.result => import.known += 1,
                Some(_) => {
                    let why = format!(
                        "cut {number} is kept with another result: the same cut gave two; please \
                         report it"
                    );
                    import.refused.push(lines.refused(why, false));
                }
            }
        }
    }
    if let Some(plan) = plan {
        let mut missing = 0;
        for (series, cuts) in plan {
            let have = match open.remove(series) {
                Some((_, have)) => have,
                None => archive::of(directory, series)?,
            };
            let lacking = cuts.iter().filter(|number| !have.contains_key(number));
            missing += lacking.count() as u64;
        }
        import.missing = Some(missing);
    }
    Ok(import)
}

/// The record in `line`, if it is taken.
fn judge_record(
    line: &[u8],
    plan: Option<&BTreeMap<String, BTreeSet<u64>>>,
) -> Result<CutRecord, String> {
    let record: CutRecord = document(line, CutRecord::DOCUMENT, CutRecord::SCHEMA)?;
    judge_spec(&record.series, &record.spec)?;
    let (made, own) = (&record.spec.made_by.version, version());
    if *made != own {
        return Err(format!(
            "it was made by whichfs {made}, this is {own}: install the same package on both \
             machines"
        ));
    }
    let number = record.result.cut.number;
    let wanted = plan.is_none_or(|plan| {
        let cuts = plan.get(&record.series);
        cuts.is_some_and(|cuts| cuts.contains(&number))
    });
    match wanted {
        true => Ok(record),
        false => Err(format!(
            "cut {number} of series {} is not in the plan: import it without a plan to keep it",
            record.series
        )),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::crash::fixture::{result, spec};
    use serde_json::{Value, json};

    /// A series that this program would make.
    fn own() -> Spec {
        Spec {
            made_by: Makers {
                version: version(),
                ..Makers::default()
            },
            ..spec()
        }
    }

    /// The document called `name` with these fields, in a line.
    fn line(name: &str, fields: Value) -> String {
        let mut all = json!({ "document": name, "schema": 1 });
        let all_fields = all.as_object_mut().unwrap();
        all_fields.extend(fields.as_object().unwrap().clone());
        format!("{all}\n")
    }

    /// A line of `crash cut` about cut `number` of `spec`.
    fn record(spec: &Spec, number: u64) -> String {
        let (series, result) = (spec.id(), result(number));
        line(
            "crash cut",
            json!({ "series": series, "spec": spec, "result": result }),
        )
    }

    /// A line of `crash plan` with these `cuts` of `spec`.
    fn planned(spec: &Spec, cuts: &[u64]) -> String {
        let series = spec.id();
        line(
            "crash plan",
            json!({ "series": series, "spec": spec, "cuts": cuts }),
        )
    }

    fn lines(text: &str) -> NumberedLines<'_> {
        NumberedLines::new("f", Box::new(text.as_bytes()))
    }

    fn imported(directory: &Path, text: &str, plan: Option<&str>) -> CutImport {
        let plan = plan.map(|plan| planned_cuts(lines(plan)).unwrap());
        import_cuts(directory, vec![lines(text)], plan.as_ref()).unwrap()
    }

    #[test]
    fn each_cut_is_kept_once_and_missing_ones_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        let plan = planned(&own(), &[0, 1]) + &planned(&own(), &[2]);
        let text = record(&own(), 1) + &record(&own(), 0) + &record(&own(), 1);
        let first = imported(dir.path(), &text, Some(&plan));
        assert_eq!((first.new, first.known, first.missing), (2, 1, Some(1)));
        let again = imported(dir.path(), &text, None);
        assert_eq!((again.new, again.known, again.missing), (0, 3, None));
        let kept = archive::of(dir.path(), &own().id()).unwrap();
        assert_eq!(kept.into_keys().collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn a_record_that_is_not_what_it_says_is_refused_and_keeps_no_other_out() {
        let dir = tempfile::tempdir().unwrap();
        let whole = record(&own(), 3);
        let foreign = Spec {
            made_by: Makers {
                version: "0.0.1".into(),
                ..Makers::default()
            },
            ..spec()
        };
        let wrong = [
            (whole[..whole.len() / 2].to_owned() + "\n", "it is cut off"),
            (whole.replace("\"ext4\"", "\"xfs\""), "the line was changed"),
            (record(&foreign, 3), "made by whichfs 0.0.1"),
            (planned(&own(), &[3]), "of `whichfs crash plan`"),
            (record(&own(), 9), "cut 9 of series"),
        ];
        let text: String = wrong.iter().map(|(line, _)| line.as_str()).collect();
        let plan = planned(&own(), &[3]);
        let import = imported(dir.path(), &(text + &whole), Some(&plan));
        assert_eq!((import.new, import.missing), (1, Some(0)));
        assert_eq!(import.refused.len(), wrong.len());
        for (refused, (line, told)) in import.refused.iter().zip(&wrong) {
            assert!(refused.why.contains(told), "{line}: {}", refused.why);
        }
    }

    #[test]
    fn a_cut_with_two_results_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        imported(dir.path(), &record(&own(), 1), None);
        let other = record(&own(), 1).replace("\"broken\":true", "\"broken\":false");
        let import = imported(dir.path(), &other, None);
        assert_eq!((import.new, import.known), (0, 0));
        assert!(import.refused[0].why.contains("gave two"));
    }

    #[test]
    fn lines_that_nobody_can_make_are_refused_one_by_one() {
        let on_a_board = Spec {
            measured: Some(super::super::spec::CutDevice {
                device: "serial 1".into(),
                power: "sysrq".into(),
                partition_offset: 0,
                kernel: "6.1".into(),
            }),
            ..own()
        };
        let text = planned(&on_a_board, &[0]) + "junk\n" + &record(&own(), 0);
        let mut told = Vec::new();
        let mut hear = |line: CutLineResult<'_>| {
            if let CutLineResult::Refused(refused) = line {
                told.push((refused.line, refused.why.clone()));
            }
            Ok(())
        };
        let stop = AtomicBool::new(false);
        let counts = make_cuts(lines(&text), Some(1), &stop, &mut hear).unwrap();
        assert_eq!((counts.malformed, counts.foreign, counts.made), (3, 0, 0));
        let lines: Vec<u64> = told.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [1, 2, 3]);
        assert!(told[0].1.contains("a real device"), "{told:?}");
    }
}
