//! Reads of eight written sectors fail, each read that touches one as a whole, until the sector is
//! written or discarded: then the card maps another page to its address. That is how Linux' dm-
//! dust does it ([`whichfs_blockdev::Defects`]).

use crate::fault::{Acts, Effect, FaultEvidence, FaultFacts, Model};
use crate::places::written_sectors;
use whichfs_blockdev::Tries;

pub(super) const FAULT: Model = Model {
    number: 18,
    facts: FaultFacts {
        name: "io-errors",
        meaning: "eight written sectors fail to read until they are written again",
        acts: Acts::WhileRead,
        evidence: FaultEvidence::Published,
        source: "SSDs: Schroeder et al., FAST'16, uncorrectable errors and final read errors; \
                 that a write heals is as dm-dust models it (Linux, \
                 Documentation/admin-guide/device-mapper/dm-dust.rst)",
    },
    excludes: &[],
    effect: Effect::Use(|defects, seen, rng| {
        for sector in written_sectors(seen, rng) {
            defects.unreadable.insert(sector, Tries::Fail);
        }
    }),
};
