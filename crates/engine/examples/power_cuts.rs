//! Cuts the power ten times while files are replaced on ext4, and says what was left.
//!
//! `cargo run -p whichfs-engine --example power_cuts`

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use whichfs_engine::board::Board;
use whichfs_engine::cards::{self, CardState};
use whichfs_engine::clock::Clock;
use whichfs_engine::crash::check::Checker;
use whichfs_engine::crash::record::RecordingPlan;
use whichfs_engine::crash::spec::{Makers, Selection, Spec};
use whichfs_engine::lab_executor::LabExecutor;

fn main() -> Result<(), Box<dyn Error>> {
    let card = cards::open("a1-32gb")?;
    let board = Board::open("generic-1ghz")?;
    let wall_limit = Duration::from_secs(300);
    let lab = LabExecutor::new(card, CardState::Used, board, Clock::Cpu, wall_limit, 1)?;
    let spec = Spec {
        fs: "ext4".to_owned(),
        mount: None,
        card: "a1-32gb".to_owned(),
        card_state: "used".to_owned(),
        board: "generic-1ghz".to_owned(),
        clock: "cpu".to_owned(),
        workload: "rootfs".to_owned(),
        parameters: BTreeMap::from([("bytes".to_owned(), 16 << 20), ("files".to_owned(), 150)]),
        script: None,
        returns: true,
        partition_bytes: 512 << 20,
        faults: BTreeSet::new(),
        cuts: Selection::Random(10),
        recovery: 0,
        fsck: true,
        seed: 1,
        measured: None,
        made_by: Makers::default(),
    };
    let stop = AtomicBool::new(false);
    let plan = RecordingPlan::new(&lab, &spec)?;
    let recorded = plan.record(None, &stop)?;
    let mut checker = Checker::new(&plan, &recorded);
    for cut in spec.cuts(&recorded) {
        let result = checker.check(&cut, None, &stop)?;
        let promise = if result.broken { "broken" } else { "kept" };
        println!(
            "cut {}: {:?}, promise {promise}",
            cut.number, result.condition
        );
    }
    Ok(())
}
