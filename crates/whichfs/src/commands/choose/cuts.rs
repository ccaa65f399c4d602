//! Power cuts in the lab of the candidates that could win.

use crate::cli::ChooseArgs;
use crate::commands::crash;
use crate::failure::{Failure, Kind, Outcome};
use crate::interrupt;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use whichfs_decide::{Count, Excluded, FigureRow, Need, Verdict};
use whichfs_engine::cards::CardState;
use whichfs_engine::crash::inputs;
use whichfs_engine::crash::record::RecordingPlan;
use whichfs_engine::crash::spec::{Makers, Selection, Spec};
use whichfs_engine::lab_executor::LabExecutor;
use whichfs_engine::question::{Question, Supplement};
use whichfs_report::{CrashRow, PowerCuts};
use whichfs_units::{MIB, counted};

/// Size of the workload's data.
const SIZE_BYTES: u64 = 32 * MIB;
/// Size of the partition.
const PARTITION_BYTES: u64 = 512 * MIB;

/// Power cuts in the lab beside the trials of a choice.
pub struct CutSupplement<'a> {
    args: &'a ChooseArgs,
    need: Need,
    /// The series made so far.
    pub made: PowerCuts,
    bench: Option<LabExecutor>,
}

impl<'a> CutSupplement<'a> {
    /// As many cuts as `args` and the need of `question` want of each candidate.
    ///
    /// # Errors
    /// The workload's programs write what nobody knows beforehand, so cuts cannot be judged.
    pub fn new(args: &'a ChooseArgs, question: &Question) -> Outcome<CutSupplement<'a>> {
        let made = PowerCuts::new(args.cuts, &question.need);
        if question.work.workload.runs_programs() && made.wanted() {
            return Err(Failure::input(format!(
                "power cuts cannot be made under {}: what its programs write is not known \
                 beforehand; leave out --cuts and --need power_loss=none",
                question.need.workload
            )));
        }
        Ok(CutSupplement {
            args,
            need: question.need.clone(),
            made,
            bench: None,
        })
    }
}

impl Supplement for CutSupplement<'_> {
    fn add(&mut self, verdict: &Verdict) -> Outcome<bool> {
        let names = self.made.lacking(verdict);
        for (at, name) in names.iter().enumerate() {
            self.make(name, (names.len() - at - 1, interrupt::flag()))?;
        }
        Ok(!names.is_empty())
    }

    fn rows(&self, rows: &[FigureRow]) -> Vec<FigureRow> {
        self.made.rows(rows, self.args.first_seed)
    }

    fn excluded(&self) -> Vec<Excluded> {
        self.made.excluded()
    }

    fn counts(&self) -> BTreeMap<String, BTreeMap<String, Count>> {
        self.made.counts()
    }
}

impl CutSupplement<'_> {
    /// Makes the series of `name`, unless nothing is ever written to it.
    ///
    /// # Errors
    /// Only the user's interrupt; anything else is kept as the reason.
    fn make(&mut self, name: &str, cancelled: (usize, &AtomicBool)) -> Outcome {
        let made = match whichfs_crash::contract(name, "") {
            None => Err("nothing is written to it, or it has a second card".to_owned()),
            Some(_) => match self.series(name, cancelled) {
                Ok(row) => Ok(row),
                Err(failure) if failure.kind == Kind::Interrupted => return Err(failure),
                Err(failure) => Err(failure.message),
            },
        };
        self.made.add(name, made);
        Ok(())
    }

    fn series(&mut self, name: &str, cancelled: (usize, &AtomicBool)) -> Outcome<CrashRow> {
        let (args, need, number) = (self.args, &self.need, self.made.number);
        let bench = match self.bench.take() {
            Some(bench) => bench,
            None => crash::bench(&args.place, args.jobs)?,
        };
        let bench = self.bench.insert(bench);
        let workload = whichfs_workload::find(&need.workload).map_err(Failure::input)?;
        let mut parameters = need.parameters.clone();
        parameters.extend(inputs::parameters(SIZE_BYTES, workload));
        let mut spec = Spec {
            fs: name.to_owned(),
            mount: None,
            card: inputs::whole_path(&args.place.card),
            card_state: CardState::from(args.place.machine.card_state)
                .name()
                .to_owned(),
            board: inputs::whole_path(&args.place.machine.board),
            clock: args.place.machine.clock.clone(),
            workload: need.workload.clone(),
            parameters,
            script: None,
            returns: true,
            partition_bytes: PARTITION_BYTES
                .next_multiple_of(bench.geometry().au_bytes)
                .min(bench.partition_bytes()),
            faults: whichfs_crash::Faults::new(),
            cuts: Selection::Random(number),
            recovery: 0,
            fsck: true,
            seed: args.first_seed,
            measured: None,
            made_by: Makers::default(),
        };
        note!("{name}: {}", counted(number, "power cut"));
        spec.made_by = Makers::of(bench, &RecordingPlan::new(bench, &spec)?.recipe()?);
        Ok(crash::made(bench, &spec, args.fresh, cancelled)?.row)
    }
}
