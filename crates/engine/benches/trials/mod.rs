//! What filesystems do on a card of which everything is known.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use whichfs_card::Profile;
use whichfs_engine::board::{self, Board};
use whichfs_engine::cards::{CardState, NamedProfile};
use whichfs_engine::clock::Clock;
use whichfs_engine::executor::{Executor, Lease, PrepareError, TrialSpec, WorkerSlot};
use whichfs_engine::images::Images;
use whichfs_engine::lab_executor::LabExecutor;
use whichfs_engine::workload_run::WorkloadRun;
use whichfs_posterior::ToldBy;
use whichfs_study::Variant;

pub type Failure = Box<dyn Error + Send + Sync>;
/// Figures by filesystem and metric, with whether more is better.
pub type Figures = BTreeMap<(&'static str, String), (f64, bool)>;

/// The times and rates of `work` on each of `filesystems` on `card`. One that cannot be made on
/// this card has none.
pub fn figures(
    card: &Profile,
    work: &WorkloadRun,
    filesystems: &[&'static str],
) -> Result<Figures, Failure> {
    let named = NamedProfile {
        name: "card".to_owned(),
        profile: card.clone(),
        posterior: None,
        probed: ToldBy::NOTHING,
    };
    let limit = Duration::from_secs(300);
    let board = Board::open(board::DEFAULT)?;
    let lab = LabExecutor::new(named, CardState::Used, board, Clock::Cpu, limit, 1)?;
    let (lease, stop) = (lab.lease("a benchmark")?, AtomicBool::new(false));
    let mut figures = Figures::new();
    for filesystem in filesystems {
        let spec = TrialSpec {
            candidate: whichfs_fs::find(filesystem)?,
            work,
            variant: &Variant::default(),
            seed: 1,
        };
        let prepared = match Executor::prepare(&lab, &spec, &Images::unbuilt()) {
            Ok(prepared) => prepared,
            Err(PrepareError::Excluded { .. }) => continue,
            Err(PrepareError::Failed(error)) => return Err(error.into()),
        };
        let trial = lease.run(&prepared, WorkerSlot::default(), &stop, &mut |_, _| ())?;
        for metric in trial.iter().flat_map(|trial| &trial.outcome.metrics) {
            let more = metric.unit.ends_with("/s");
            if more || matches!(metric.unit.as_str(), "s" | "ms") {
                let key = (*filesystem, metric.metric.clone());
                figures.insert(key, (metric.value, more));
            }
        }
    }
    Ok(figures)
}
