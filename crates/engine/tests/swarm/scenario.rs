//! What a seed decides: the flow, the candidates, what becomes of each trial, and which faults
//! strike when. Some seeds leave whole kinds of faults out, so that rare meetings of the others
//! come about.

use super::world::Fault;
use std::collections::BTreeMap;
use whichfs_engine::mock::Scripted;
use whichfs_units::{Nanos, Rng};

/// What is driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// `choose` in the lab.
    Choose,
    /// A study in the lab, with the search for the smallest partition.
    Study,
    /// A series of power cuts.
    Cuts,
    /// A choice on a device of this machine.
    Device,
    /// A choice on a board's device, whose counter of written bytes begins anew now and then.
    Remote,
}

/// All of them.
pub const FLOWS: [Flow; 5] = [
    Flow::Choose,
    Flow::Study,
    Flow::Cuts,
    Flow::Device,
    Flow::Remote,
];

/// Needs whose workloads the mock runs.
const NEEDS: [&str; 4] = ["logger", "packages", "camera", "rootfs"];

/// Candidates from which a scenario chooses.
const CANDIDATES: [&str; 6] = ["ext4", "f2fs", "xfs", "btrfs", "vfat", "nilfs2"];

/// The scenario of one seed.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Decides everything below.
    pub seed: u64,
    /// What is driven.
    pub flow: Flow,
    /// Name of the need that the verdict is about.
    pub need: &'static str,
    /// Names of the candidates that are compared.
    pub candidates: Vec<&'static str>,
    /// Most seeds or repeats of a candidate.
    pub seeds: u64,
    /// Trials or cuts at once. With more than one the order in which they end is the machine's,
    /// and a replay may differ.
    pub slots: usize,
    /// Cuts of a series.
    pub cuts: u64,
    /// What becomes of the trials of each candidate.
    script: BTreeMap<&'static str, Kind>,
}

/// What becomes of a candidate.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Its phases take so many milliseconds, ±2 %.
    Takes(u64),
    /// Each of its trials fails.
    Fails,
    /// Trials of odd seeds fail.
    FailsAtTimes(u64),
    /// It cannot run here.
    Excluded,
}

impl Scenario {
    /// The scenario of `seed`.
    pub fn of(seed: u64) -> Scenario {
        let mut rng = Rng::named(seed, "swarm/scenario");
        let flow = FLOWS[rng.below(FLOWS.len() as u64) as usize];
        let mut names = CANDIDATES;
        rng.shuffle(&mut names);
        let candidates = names[..2 + rng.below(3) as usize].to_vec();
        let script = candidates.iter().map(|name| {
            let takes = 100 + rng.below(30) * rng.below(10);
            let kind = match rng.below(10) {
                0 => Kind::Fails,
                1 => Kind::FailsAtTimes(takes),
                2 => Kind::Excluded,
                _ => Kind::Takes(takes),
            };
            (*name, kind)
        });
        Scenario {
            script: script.collect(),
            seed,
            flow,
            need: NEEDS[rng.below(NEEDS.len() as u64) as usize],
            candidates,
            seeds: 1 + rng.below(4),
            slots: match rng.below(3) {
                0 => 2 + rng.below(2) as usize,
                _ => 1,
            },
            cuts: 1 + rng.below(12),
        }
    }

    /// What becomes of the trial of `name` with `seed`.
    pub fn scripted(&self, name: &str, seed: u64) -> Scripted {
        let takes = |base: u64| {
            let key = format!("swarm/time/{name}/{seed}");
            let scatter = 98 + Rng::named(self.seed, &key).below(5);
            Scripted::Takes(Nanos(base * scatter * 10_000))
        };
        match self.script.get(name) {
            None => takes(100),
            Some(Kind::Takes(base)) => takes(*base),
            Some(Kind::FailsAtTimes(base)) if seed.is_multiple_of(2) => takes(*base),
            Some(Kind::Fails | Kind::FailsAtTimes(_)) => Scripted::Fails("mount: no".to_owned()),
            Some(Kind::Excluded) => Scripted::Excluded("mkfs is missing".to_owned()),
        }
    }

    /// Faults in a run that has so many `moments` if nobody disturbs it.
    pub fn faults(&self, moments: u64) -> BTreeMap<u64, Fault> {
        let mut rng = Rng::named(self.seed, "swarm/faults");
        let enabled: Vec<bool> = (0..5).map(|_| rng.ratio(2, 3)).collect();
        let mut faults = BTreeMap::new();
        for _ in 0..rng.below(5) {
            let kind = rng.below(5);
            let fault = match kind {
                0 => Fault::Kill,
                1 => Fault::Interrupt,
                2 => Fault::FullDisk(1 + rng.below(3)),
                3 => Fault::Vanish,
                _ => Fault::Slow,
            };
            let at = 1 + rng.below((moments + moments / 2).max(1));
            if enabled[kind as usize] {
                faults.insert(at, fault);
            }
        }
        faults
    }
}
