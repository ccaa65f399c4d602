//! What a card refuses while the workload runs: it has no good block left for some addresses and
//! answers a write there with an error (SD specification 4.10.1, ERROR; eMMC: likewise).
//!
//! - `write-errors`: writes of eight sectors fail, each write that touches one as a whole, each
//!   time. The sector keeps what it held.
//! - `write-errors-passing`: the first one to four writes of each such sector fail.
//!
//! The places are among those that the workload writes on a card without this fault, each sector
//! of equal chance, but for those that the mount before it writes too; up to the first error both
//! runs are the same. A program ends at the first call
//! that fails, so what is judged is what was promised before: a call that returned and whose data
//! the card had refused lied (the kernel's "fsyncgate", LWN 752063, 2018).

use super::device::{PASSES_AFTER, places};
use super::{Acts, Evidence, Facts, Fault, Faults};
use std::collections::BTreeSet;
use whichfs_card::{Defects, Logged, Op, Tries};
use whichfs_units::Rng;

/// Sectors that are hit, and how often so many are drawn until there are enough outside what the
/// mount writes.
const PLACES: usize = 8;
const ROUNDS: usize = 8;

pub(super) const WRITE_ERRORS: Facts = Facts {
    name: "write-errors",
    meaning: "writes of eight sectors fail, each time",
    acts: Acts::WhileRun,
    evidence: Evidence::Published,
    source: "SSDs: Schroeder et al., FAST'16, final write errors; Linux' dm-flakey (error_writes) \
             and xfstests generic/441 test the same",
};
pub(super) const WRITE_ERRORS_PASSING: Facts = Facts {
    name: "write-errors-passing",
    meaning: "writes of eight sectors fail once to four times, then succeed",
    acts: Acts::WhileRun,
    evidence: Evidence::Published,
    source: "SSDs: Schroeder et al., FAST'16, write errors that succeed when tried again; how \
             often they fail is a hypothesis",
};

/// Whether one of `faults` needs to know what a run writes before it acts in it.
pub fn fails_writes(faults: &Faults) -> bool {
    [Fault::WriteErrors, Fault::WriteErrorsPassing]
        .iter()
        .any(|fault| faults.contains(fault))
}

/// What the card refuses in a run that would, on a good card, make the requests `log`, those of
/// the workload from `first` on.
pub fn refusals(log: &[Logged], first: usize, faults: &Faults, seed: u64) -> Defects {
    let (before, written) = log.split_at(first.min(log.len()));
    let mut defects = Defects::default();
    for fault in [Fault::WriteErrorsPassing, Fault::WriteErrors] {
        let mut rng = Rng::named(seed, fault.name());
        if !faults.contains(&fault) {
            continue;
        }
        let mut hit = BTreeSet::new();
        for sector in (0..ROUNDS).flat_map(|_| places(written, &mut rng)) {
            let mut earlier = before.iter().filter(|request| request.op == Op::Write);
            if hit.len() < PLACES && !earlier.any(|request| touches(request, sector)) {
                hit.insert(sector);
            }
        }
        for sector in hit {
            let tries = match fault {
                Fault::WriteErrors => Tries::Fail,
                _ => Tries::FailMore(1 + rng.below(PASSES_AFTER) as u32),
            };
            defects.unwritable.insert(sector, tries);
        }
    }
    defects
}

fn touches(request: &Logged, sector: u64) -> bool {
    (request.offset..request.offset + request.bytes).contains(&sector)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cut::tests::write;

    #[test]
    fn what_is_refused_is_what_would_be_written() {
        let written: Vec<Logged> = (0..20)
            .map(|n| write((1 << 20) + n * 4096, 1, 4096, n * 1000, n * 1000 + 600))
            .collect();
        let of = |fault, seed| refusals(&written, 0, &[fault].into(), seed).unwritable;
        let always = of(Fault::WriteErrors, 1);
        assert!(always.len() > 4 && always.values().all(|tries| *tries == Tries::Fail));
        let range = 1 << 20..(1 << 20) + 20 * 4096;
        assert!(always.keys().all(|sector| range.contains(sector)));
        assert_ne!(always, of(Fault::WriteErrors, 2));
        let passing = of(Fault::WriteErrorsPassing, 1);
        let some = |tries: &Tries| matches!(tries, Tries::FailMore(1..=4));
        assert!(!passing.is_empty() && passing.values().all(some));
        assert!(of(Fault::Dead, 1).is_empty());
        let mount: Vec<Logged> = written[..10].iter().chain(&written).cloned().collect();
        let later = refusals(&mount, 10, &[Fault::WriteErrors].into(), 1).unwritable;
        let own = (1 << 20) + 10 * 4096..range.end;
        assert!(!later.is_empty() && later.keys().all(|sector| own.contains(sector)));
        assert!(!fails_writes(&[Fault::Dead].into()));
        assert!(fails_writes(&[Fault::WriteErrors].into()));
    }
}
