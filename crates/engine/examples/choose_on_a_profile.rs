//! Chooses a filesystem for a data logger on a shipped card profile, in the lab.
//!
//! `cargo run -p whichfs-engine --example choose_on_a_profile -- class4-4gb`

use std::error::Error;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use whichfs_decide::Need;
use whichfs_engine::board::{self, Board};
use whichfs_engine::cards::{self, CardState};
use whichfs_engine::choose::Choice;
use whichfs_engine::clock::Clock;
use whichfs_engine::lab_executor::LabExecutor;
use whichfs_engine::question::Question;
use whichfs_engine::trial_cache::TrialCache;
use whichfs_engine::workload_run::WorkloadRun;

fn main() -> Result<(), Box<dyn Error>> {
    let card = std::env::args().nth(1).unwrap_or("a1-32gb".to_owned());
    let need = Need::named("logger")?;
    let question = Question {
        work: WorkloadRun::named(&need.workload, &need.parameters)?,
        need,
        candidates: ["ext4", "f2fs", "vfat"].map(str::to_owned).to_vec(),
        first_seed: 1,
        seeds: 2,
        second_card: None,
    };
    let lab = LabExecutor::new(
        cards::open(&card)?,
        CardState::Used,
        Board::open(board::DEFAULT)?,
        Clock::Cpu,
        Duration::from_secs(300),
        2,
    )?;
    let stop = AtomicBool::new(false);
    let cache = TrialCache::open(None, false)?;
    let mut choice = Choice::new(question, &lab, cache, &stop, Instant::now());
    let verdict = choice.decide(&mut (), &mut ())?;
    for one in &verdict.ranking {
        let (score, sure) = (one.score, one.p_best.unwrap_or_default() * 100.0);
        println!(
            "{:10} score {score:.2}, best with {sure:.0} %",
            one.candidate
        );
    }
    Ok(())
}
