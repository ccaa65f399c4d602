//! Eight sectors that were written during the run read with a bit flipped, the same bit each time,
//! without an error. Writing them does not help. Where a fault fails reads, that goes first.

use crate::fault::{Acts, Effect, FaultEvidence, FaultFacts, Model};
use crate::places::written_sectors;
use whichfs_units::SECTOR;

pub(super) const FAULT: Model = Model {
    number: 17,
    facts: FaultFacts {
        name: "reads-corrupted",
        meaning: "eight written sectors read with a bit flipped, without an error",
        acts: Acts::WhileRead,
        evidence: FaultEvidence::Hypothesis,
        source: "published of disks (Bairavasundaram et al., FAST'08); of cards only that their \
                 error correction hides how near it is to its end",
    },
    excludes: &[],
    effect: Effect::Use(|defects, seen, rng| {
        for sector in written_sectors(seen, rng) {
            let bit = rng.next_u64() % (SECTOR * 8);
            defects.flipped.insert(sector, bit as u16);
        }
    }),
};
