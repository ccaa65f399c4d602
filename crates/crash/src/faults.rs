//! All faults: each file of the directory `faults` is one, and the build script lists them.
//! Faults go together, but for [`exclude_each_other`](crate::exclude_each_other).

use crate::fault::{Acts, Effect, Fault, Faults, GoodRun};
use serde::{Deserialize, Deserializer, de};
use std::str::FromStr;
use whichfs_blockdev::{Defects, LiveFault, Logged};
use whichfs_units::{Rng, UnknownName};

// `mod NAME;` of each file, and `FILES`: name of the file and fault, by name.
include!(concat!(env!("OUT_DIR"), "/faults.rs"));

impl Fault {
    /// All of them, by number.
    pub const ALL: [Fault; FILES.len()] = by_number();
}

const fn by_number() -> [Fault; FILES.len()] {
    let mut all = [FILES[0].1; FILES.len()];
    let mut next = 0;
    while next < FILES.len() {
        let (mut place, fault) = (next, FILES[next].1);
        while place > 0 && all[place - 1].0.number > fault.0.number {
            all[place] = all[place - 1];
            place -= 1;
        }
        all[place] = fault;
        next += 1;
    }
    all
}

impl FromStr for Fault {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Fault, UnknownName> {
        let found = Fault::ALL.into_iter().find(|fault| fault.name() == name);
        found.ok_or_else(|| {
            let names = Fault::ALL.map(Fault::name);
            UnknownName::new("fault", name, &names, Some("`whichfs crash faults`"))
        })
    }
}

impl<'de> Deserialize<'de> for Fault {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Fault, D::Error> {
        let name = String::deserialize(deserializer)?;
        name.parse().map_err(de::Error::custom)
    }
}

/// What the card does wrong while an image of a run is used, of which it has `seen` these
/// requests. `None` if none of the faults does anything then.
///
/// Each fault draws its places itself: one more fault does not move those of the others.
pub(crate) fn defects(seen: &[Logged], faults: &Faults, seed: u64) -> Option<Defects> {
    let acts = |fault: &Fault| fault.facts().acts == Acts::WhileRead;
    faults.iter().any(acts).then(|| {
        let mut defects = Defects::default();
        for fault in faults {
            if let Effect::Use(add) = fault.0.effect {
                add(&mut defects, seen, &mut Rng::named(seed, fault.name()));
            }
        }
        defects
    })
}

/// What the card refuses in a run that would, on a good card, make the requests `log`, those of
/// the workload from `first` on.
pub fn refusals(log: &[Logged], first: usize, faults: &Faults, seed: u64) -> Defects {
    let (before, written) = log.split_at(first.min(log.len()));
    let mut defects = Defects::default();
    for fault in faults {
        if let Effect::Refusal(add) = fault.0.effect {
            let rng = &mut Rng::named(seed, fault.name());
            add(&mut defects, [before, written], rng);
        }
    }
    defects
}

/// What befalls a card in a run that makes, on a good card, the requests `written`; nothing if it
/// makes none.
pub fn live_faults(written: &[Logged], faults: &Faults, seed: u64) -> Vec<LiveFault> {
    if written.is_empty() {
        return Vec::new();
    }
    let made = faults.iter().filter_map(|fault| match fault.0.effect {
        Effect::Live(make) => Some(make(
            &GoodRun { written },
            &mut Rng::named(seed, fault.name()),
        )),
        _ => None,
    });
    made.collect()
}

#[cfg(test)]
#[path = "faults_tests.rs"]
pub(crate) mod tests;
