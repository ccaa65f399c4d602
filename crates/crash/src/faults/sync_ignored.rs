//! fsync, fdatasync and syncfs return at once and do nothing, O_SYNC is dropped. The program takes
//! that for a promise, and so does the judge: what it then misses is the program's loss, of which
//! the filesystem knows nothing. An unmount writes all as ever.

use crate::fault::{Acts, Effect, FaultEvidence, FaultFacts, Model};

pub(super) const FAULT: Model = Model {
    number: 20,
    facts: FaultFacts {
        name: "sync-ignored",
        meaning: "fsync and its kin return and do nothing",
        acts: Acts::WhileRun,
        evidence: FaultEvidence::Published,
        source: "libeatmydata (S. Smith, libeatmydata(1)), under which image builders run dpkg",
    },
    excludes: &[],
    effect: Effect::SyncIgnored,
};
