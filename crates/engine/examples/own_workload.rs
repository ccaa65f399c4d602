//! Measures a workload with parameters of one's own on two filesystems and prints its figures.
//!
//! `cargo run -p whichfs-engine --example own_workload`

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use whichfs_engine::board::Board;
use whichfs_engine::cards::{self, CardState};
use whichfs_engine::clock::Clock;
use whichfs_engine::executor::{Executor, Lease, PrepareError, TrialSpec, WorkerSlot};
use whichfs_engine::images::Images;
use whichfs_engine::lab_executor::LabExecutor;
use whichfs_engine::workload_run::WorkloadRun;
use whichfs_study::Variant;

fn main() -> Result<(), Box<dyn Error>> {
    let small = BTreeMap::from([("bytes".to_owned(), 16 << 20), ("files".to_owned(), 300)]);
    let work = WorkloadRun::named("rootfs", &small)?;
    let lab = LabExecutor::new(
        cards::open("class4-4gb")?,
        CardState::Fresh,
        Board::open("raspberry-pi-1")?,
        Clock::Cpu,
        Duration::from_secs(300),
        1,
    )?;
    for name in ["ext4", "btrfs"] {
        let spec = TrialSpec {
            candidate: whichfs_fs::find(name)?,
            work: &work,
            variant: &Variant::default(),
            seed: 7,
        };
        let prepared = match Executor::prepare(&lab, &spec, &Images::unbuilt()) {
            Ok(prepared) => prepared,
            Err(PrepareError::Excluded { why, .. }) => {
                println!("{name}: left out: {why}");
                continue;
            }
            Err(PrepareError::Failed(error)) => return Err(error.into()),
        };
        let (lease, stop) = (lab.lease("an own workload")?, AtomicBool::new(false));
        let trial = lease.run(&prepared, WorkerSlot::default(), &stop, &mut |_, _| ())?;
        for metric in trial.iter().flat_map(|trial| &trial.outcome.metrics) {
            println!(
                "{name} {} {:.4} {}",
                metric.metric, metric.value, metric.unit
            );
        }
    }
    Ok(())
}
