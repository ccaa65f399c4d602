//! Power cuts of the candidates that could win: the metric `power_loss`.
//!
//! Its value is the upper end of the 95 % interval (Wilson) of the share of cuts after which the
//! filesystem needed repair or durable data were lost: it is never 0, gets smaller the more cuts
//! leave all whole, and so can be compared by ratio as every other metric.

use crate::cli::ChooseArgs;
use crate::commands::crash;
use crate::failure::{Failure, Kind, Outcome};
use crate::interrupt;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use whichfs_crash::Share;
use whichfs_engine::cards::CardState;
use whichfs_engine::choose::{Question, Supplement};
use whichfs_engine::crash::record::Plan;
use whichfs_engine::crash::spec::{Makers, Selection, Spec};
use whichfs_engine::lab_executor::LabExecutor;
use whichfs_report::{CrashRow, CutSeries, Item};
use whichfs_study::plan::MORE_SEEDS_WITHIN;
use whichfs_study::{Count, Excluded, Need, POWER_LOSS, Row, Verdict};
use whichfs_units::{MIB, counted};

/// Cuts of each candidate where the need wants none to hurt and nobody says how many.
const STRICT_CUTS: u64 = 20;
/// Size of the workload's data in MiB.
const SIZE_MIB: u64 = 32;
/// Size of the partition.
const PARTITION_BYTES: u64 = 512 * MIB;

/// Power cuts in the lab beside the trials of a choice.
pub struct LabCuts<'a> {
    args: &'a ChooseArgs,
    need: Need,
    /// The series made so far.
    pub made: Cuts,
}

impl<'a> LabCuts<'a> {
    /// As many cuts as `args` and the need of `question` want of each candidate.
    ///
    /// # Errors
    /// The workload's programs write what nobody knows beforehand, so cuts cannot be judged.
    pub fn new(args: &'a ChooseArgs, question: &Question) -> Outcome<LabCuts<'a>> {
        let made = Cuts::new(args, &question.need);
        if question.work.workload.runs_programs() && made.wanted() {
            return Err(Failure::input(format!(
                "power cuts cannot be made under {}: what its programs write is not known \
                 beforehand; leave out --cuts and --need power_loss=none",
                question.need.workload
            )));
        }
        Ok(LabCuts {
            args,
            need: question.need.clone(),
            made,
        })
    }
}

impl Supplement for LabCuts<'_> {
    fn add(&mut self, verdict: &Verdict) -> Outcome<bool> {
        let names = self.made.lacking(verdict);
        for name in &names {
            let cancelled = interrupt::flag();
            self.made.make(self.args, &self.need, name, cancelled)?;
        }
        Ok(!names.is_empty())
    }

    fn rows(&self, rows: &[Row]) -> Vec<Row> {
        self.made.rows(rows, self.args.first_seed)
    }

    fn excluded(&self) -> Vec<Excluded> {
        self.made.excluded()
    }

    fn counts(&self) -> BTreeMap<String, BTreeMap<String, Count>> {
        self.made.counts()
    }
}

/// The series made so far.
pub struct Cuts {
    number: u64,
    /// A candidate that a cut hurt cannot be chosen.
    none_may_hurt: bool,
    /// By candidate; the reason where no series could be made.
    made: BTreeMap<String, Result<CrashRow, String>>,
    bench: Option<LabExecutor>,
}

impl Cuts {
    /// As many cuts as `args` and `need` want of each candidate.
    pub fn new(args: &ChooseArgs, need: &Need) -> Cuts {
        let none_may_hurt = need
            .settings
            .get(POWER_LOSS)
            .is_some_and(|set| set == "none");
        Cuts {
            number: match (args.cuts, none_may_hurt) {
                (Some(number), _) => number,
                (None, true) => STRICT_CUTS,
                (None, false) => 0,
            },
            none_may_hurt,
            made: BTreeMap::new(),
            bench: None,
        }
    }

    /// Whether any are to be made.
    pub fn wanted(&self) -> bool {
        self.number > 0
    }

    /// Candidates whose cuts can still change who wins: the leader and those near it.
    pub fn lacking(&self, verdict: &Verdict) -> Vec<String> {
        let Some(leader) = verdict.ranking.first().filter(|_| self.number > 0) else {
            return Vec::new();
        };
        let near = verdict
            .ranking
            .iter()
            .filter(|ranked| ranked.score * MORE_SEEDS_WITHIN >= leader.score);
        near.map(|ranked| ranked.candidate.clone())
            .filter(|name| !self.made.contains_key(name))
            .collect()
    }

    /// Makes the series of `name`, unless nothing is ever written to it.
    ///
    /// # Errors
    /// Only the user's interrupt; anything else is kept as the reason.
    pub fn make(
        &mut self,
        args: &ChooseArgs,
        need: &Need,
        name: &str,
        cancelled: &AtomicBool,
    ) -> Outcome {
        let made = match whichfs_crash::contract(name, "") {
            None => Err("nothing is written to it".to_owned()),
            Some(_) => match self.series(args, need, name, cancelled) {
                Ok(row) => Ok(row),
                Err(failure) if failure.kind == Kind::Interrupted => return Err(failure),
                Err(failure) => Err(failure.message),
            },
        };
        self.made.insert(name.to_owned(), made);
        Ok(())
    }

    fn series(
        &mut self,
        args: &ChooseArgs,
        need: &Need,
        name: &str,
        cancelled: &AtomicBool,
    ) -> Outcome<CrashRow> {
        let bench = match self.bench.take() {
            Some(bench) => bench,
            None => crash::bench(&args.place, args.jobs)?,
        };
        let bench = self.bench.insert(bench);
        let workload = whichfs_workload::find(&need.workload).map_err(Failure::input)?;
        let mut parameters = need.parameters.clone();
        parameters.extend(crash::parameters(SIZE_MIB, workload));
        let mut spec = Spec {
            fs: name.to_owned(),
            mount: None,
            card: crash::whole_path(&args.place.card),
            card_state: CardState::from(args.place.card_state).name().to_owned(),
            board: crash::whole_path(&args.place.board),
            clock: args.place.clock.clone(),
            workload: need.workload.clone(),
            parameters,
            script: None,
            returns: true,
            partition_bytes: PARTITION_BYTES
                .next_multiple_of(bench.geometry().au_bytes)
                .min(bench.partition_bytes()),
            faults: whichfs_crash::Faults::new(),
            cuts: Selection::Random(self.number),
            recovery: 0,
            fsck: true,
            seed: args.first_seed,
            measured: None,
            made_by: Makers::default(),
        };
        note!("{name}: {}", counted(self.number, "power cut"));
        spec.made_by = Makers::of(bench, &Plan::new(bench, &spec)?.recipe()?);
        Ok(crash::made(bench, &spec, args.fresh, cancelled)?.row)
    }

    /// Candidates that a cut hurt, or that could not be cut, where none may hurt.
    pub fn excluded(&self) -> Vec<Excluded> {
        let strict = self.made.iter().filter(|_| self.none_may_hurt);
        strict
            .filter_map(|(name, made)| {
                let why = match made {
                    Ok(row) if hurt(row).count == 0 => return None,
                    Ok(row) => told(row),
                    Err(_) if whichfs_crash::contract(name, "").is_none() => return None,
                    Err(why) => format!("could not be tried with power cuts: {why}"),
                };
                Some(Excluded {
                    candidate: name.clone(),
                    why,
                    rule: Some(POWER_LOSS.to_owned()),
                    source: made.as_ref().ok().map(evidence),
                    ..Excluded::default()
                })
            })
            .collect()
    }

    /// The metric's rows, made like `like`.
    pub fn rows(&self, like: &[Row], seed: u64) -> Vec<Row> {
        let made = self.made.iter();
        made.filter_map(|(name, made)| {
            let cuts = made.as_ref().ok()?;
            let row = like.iter().find(|row| row.candidate == *name)?;
            Some(Row {
                metric: POWER_LOSS.to_owned(),
                value: hurt(cuts).high * 100.0,
                unit: "%".to_owned(),
                lower_is_better: true,
                seed,
                trial: cuts.series.clone(),
                mount_options: cuts.options.clone(),
                ..row.clone()
            })
        })
        .collect()
    }

    /// How many of the cuts of each candidate hurt.
    pub fn counts(&self) -> BTreeMap<String, BTreeMap<String, Count>> {
        let made = self.made.iter();
        let each = made.filter_map(|(name, made)| {
            let share = hurt(made.as_ref().ok()?);
            let count = Count {
                hits: share.count,
                of: share.of,
                low: share.low,
                high: share.high,
            };
            Some((name.clone(), count))
        });
        BTreeMap::from([(POWER_LOSS.to_owned(), each.collect())])
    }

    /// What the report says of them.
    pub fn items(&self) -> Vec<Item> {
        let item = |value: String, source: String| Item {
            label: "power cuts".to_owned(),
            value,
            source,
            ..Item::default()
        };
        if self.number == 0 {
            return vec![item("not measured".to_owned(), HINT.to_owned())];
        }
        let made = self.made.iter();
        made.map(|(name, made)| match made {
            Ok(row) => item(format!("{name} {}", told(row)), evidence(row)),
            Err(why) => item(format!("{name}: none"), why.clone()),
        })
        .collect()
    }

    /// The series that were made, for the report.
    pub fn series_of(&self, seed: u64) -> Vec<CutSeries> {
        let made = self.made.iter();
        made.filter_map(|(name, made)| {
            let row = made.as_ref().ok()?;
            Some(CutSeries {
                candidate: name.clone(),
                seed,
                id: row.series.clone(),
                cuts: self.number,
            })
        })
        .collect()
    }

    /// What to say below the verdict.
    pub fn sentences(&self) -> Vec<String> {
        let items = self.items().into_iter();
        items
            .map(|item| format!("Power cuts: {} ({}).", item.value, item.source))
            .collect()
    }
}

const HINT: &str = "--cuts 20 cuts the power of those that could win";

/// Cuts that hurt: repair was needed or durable data were lost, promised or not.
fn hurt(row: &CrashRow) -> Share {
    let parts = row.conditions.iter().filter(|part| part.severity > 0);
    Share::new(parts.map(|part| part.count).sum(), row.cuts)
}

/// The worst cut with the command that shows it again, or the series if all was whole.
fn evidence(row: &CrashRow) -> String {
    match row.worst.first() {
        Some(case) => format!("the worst: {}; {}", case.condition, case.replay),
        None => format!("series {}", row.series),
    }
}

/// In a sentence that follows the candidate's name.
fn told(row: &CrashRow) -> String {
    let share = hurt(row);
    if share.count == 0 {
        return format!(
            "was whole after all {} power cuts (hurt: {share})",
            share.of
        );
    }
    format!("needed repair or lost durable data after power cuts: {share}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use whichfs_report::{ConditionCount, WorstCase};

    fn row(hurt: u64) -> CrashRow {
        let part = |severity, count| ConditionCount {
            severity,
            count,
            ..ConditionCount::default()
        };
        CrashRow {
            series: "12ab".into(),
            cuts: 20,
            conditions: vec![part(0, 20 - hurt), part(1, hurt)],
            worst: (hurt > 0)
                .then(|| WorstCase {
                    condition: "needs check".into(),
                    replay: "whichfs crash replay 12ab-7".into(),
                    ..WorstCase::default()
                })
                .into_iter()
                .collect(),
            ..CrashRow::default()
        }
    }

    fn cuts(none_may_hurt: bool) -> Cuts {
        Cuts {
            number: 20,
            none_may_hurt,
            made: BTreeMap::from([
                ("ext2".to_owned(), Ok(row(5))),
                ("ext4".to_owned(), Ok(row(0))),
                (
                    "squashfs-xz".to_owned(),
                    Err("nothing is written to it".into()),
                ),
                ("xfs".to_owned(), Err("no room".into())),
            ]),
            bench: None,
        }
    }

    #[test]
    fn who_was_hurt_is_excluded_only_where_none_may() {
        assert!(cuts(false).excluded().is_empty());
        let excluded = cuts(true).excluded();
        let names: Vec<&str> = excluded.iter().map(|e| e.candidate.as_str()).collect();
        assert_eq!(names, ["ext2", "xfs"]);
        assert!(
            excluded[0]
                .why
                .contains("after power cuts: 5 of 20 (11 to 47 %)"),
            "{excluded:?}"
        );
        assert_eq!(excluded[0].rule.as_deref(), Some("power_loss"));
    }

    #[test]
    fn each_series_is_told_in_a_sentence() {
        let said = cuts(false).sentences();
        assert!(said[0].contains("(the worst: needs check; whichfs crash replay 12ab-7)"));
        assert!(
            said[1].contains("ext4 was whole after all 20 power cuts (hurt: 0 of 20 (≤ 16 %))")
        );
        let none = Cuts {
            number: 0,
            ..cuts(false)
        };
        assert!(none.sentences()[0].contains("--cuts 20"));
    }

    #[test]
    fn the_figure_is_the_upper_end_so_that_more_cuts_without_harm_are_better() {
        let like = |candidate: &str| Row {
            card: "c".into(),
            kernel: "k".into(),
            clock: "cpu".into(),
            candidate: candidate.into(),
            mount_options: "noatime".into(),
            workload: "rootfs".into(),
            metric: "mount".into(),
            value: 1.0,
            unit: "s".into(),
            lower_is_better: true,
            seed: 1,
            trial: "t".into(),
        };
        let rows = cuts(false).rows(&[like("ext2"), like("ext4"), like("squashfs-xz")], 1);
        assert_eq!(rows.len(), 2);
        // Wilson, 0 of 20: 3.84 / (20 + 3.84).
        assert!((rows[1].value - 16.1).abs() < 0.1, "{rows:?}");
        assert!(rows[0].value > 40.0 && rows[0].trial == "12ab");
    }
}
