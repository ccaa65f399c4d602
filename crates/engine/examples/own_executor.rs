//! Runs the policy of `choose` on an executor of one's own: the mock, slowed for one filesystem.
//!
//! `cargo run -p whichfs-engine --example own_executor`

use std::error::Error;
use std::sync::atomic::AtomicBool as Flag;
use std::time::Instant;
use whichfs_decide::Need;
use whichfs_engine::Outcome;
use whichfs_engine::choose::Choice;
use whichfs_engine::executor::{Capabilities, Executor, Prepared, TrialSpec};
use whichfs_engine::images::Images;
use whichfs_engine::mock::{MockExecutor, MockTrial, Scripted};
use whichfs_engine::question::Question;
use whichfs_engine::trial_cache::TrialCache;
use whichfs_engine::workload_run::WorkloadRun;
use whichfs_units::Nanos;

/// The mock on a partition of 256 MiB.
struct SmallCard<'a>(MockExecutor<'a>);

impl<'m> Executor for SmallCard<'m> {
    type Prepared = MockTrial;
    #[rustfmt::skip]
    type Lease<'l> = &'l MockExecutor<'m> where 'm: 'l;
    fn capabilities(&self) -> Capabilities {
        let mut all = self.0.capabilities();
        all.geometry.partition_bytes = 256 << 20;
        all
    }
    fn prepare(&self, spec: &TrialSpec<'_>, images: &Images<'_>) -> Prepared<MockTrial> {
        self.0.prepare(spec, images)
    }
    fn lease(&self, name: &str) -> Outcome<&MockExecutor<'m>> {
        self.0.lease(name)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let script = |name: &str, seed| Scripted::Takes(Nanos(1_000_000 * (seed + name.len() as u64)));
    let executor = SmallCard(MockExecutor::new(&script));
    let need = Need::named("logger")?;
    let question = Question {
        work: WorkloadRun::named(&need.workload, &need.parameters)?,
        need,
        candidates: Vec::new(),
        first_seed: 1,
        seeds: 2,
        second_card: None,
    };
    let home = tempfile::tempdir()?;
    let cache = TrialCache::open(Some(home.path().join("store.sqlite")), false)?;
    let stop = Flag::new(false);
    let mut choice = Choice::new(question, &executor, cache, &stop, Instant::now());
    let verdict = choice.decide(&mut (), &mut ())?;
    let (ranked, excluded) = (verdict.ranking.len(), verdict.excluded.len());
    println!("{ranked} ranked, {excluded} excluded");
    Ok(())
}
