//! What a card does wrong while it is used again after the cut: mounted, read, written, checked
//! and repaired. It answers with an error, or with wrong bytes and no error.
//!
//! - `stuck-read-only`: every write and discard fails with an error; reads and flushes succeed.
//! - `dead`: every request fails.
//! - `reads-corrupted`: eight sectors that were written during the run read with a bit flipped,
//!   the same bit each time, without an error. Writing them does not help.
//! - `io-errors`: reads of eight such sectors fail, each read that touches one as a whole, until
//!   the sector is written or discarded: then the card maps another page to its address. That is
//!   how Linux' dm-dust does it ([`whichfs_card::Defects`]).
//! - `io-errors-passing`: the first one to four reads of each such sector fail, later ones succeed.
//!
//! The places are among the requests that had reached the card, each sector of equal chance: a
//! card spreads its wear, so that what is written often is hardly weaker than the rest.
//! Where two of these faults hit, the one that fails reads goes first.
//! A filesystem cannot give what its card does not give; `verdict` says how that is judged.

use super::{Acts, Evidence, Facts, Fault, Faults};
use whichfs_card::{Defects, Logged, Op, Refuses, Tries};
use whichfs_units::{Rng, SECTOR};

/// Sectors that a fault of single sectors hits.
const PLACES: u64 = 8;
/// Most reads that a passing error fails. Linux tries a page of a file twice, in a readahead and
/// alone, so a single failure is hidden from the reader and more are not.
pub(super) const PASSES_AFTER: u64 = 4;

const fn while_read(
    name: &'static str,
    meaning: &'static str,
    evidence: Evidence,
    source: &'static str,
) -> Facts {
    Facts {
        name,
        meaning,
        acts: Acts::WhileRead,
        evidence,
        source,
    }
}

pub(super) const STUCK_READ_ONLY: Facts = while_read(
    "stuck-read-only",
    "every write fails, reads succeed",
    Evidence::Published,
    "SD cards at their end: reports of users (superuser.com 1300797, 2018); the SD specification \
     has such a state (CSD, PERM_WRITE_PROTECT). Cards that do not tell: dropped",
);
pub(super) const DEAD: Facts = while_read(
    "dead",
    "every request fails",
    Evidence::Published,
    "an SSD after 136 power faults (Zheng et al., FAST'13); a microSD card after 5918 rounds \
     (bahjeez.com, The Great MicroSD Card Survey); an OLPC's card after a cut during a write \
     (laptop.org devel, 2011-March/031294)",
);
pub(super) const READS_CORRUPTED: Facts = while_read(
    "reads-corrupted",
    "eight written sectors read with a bit flipped, without an error",
    Evidence::Hypothesis,
    "published of disks (Bairavasundaram et al., FAST'08); of cards only that their error \
     correction hides how near it is to its end",
);
pub(super) const IO_ERRORS: Facts = while_read(
    "io-errors",
    "eight written sectors fail to read until they are written again",
    Evidence::Published,
    "SSDs: Schroeder et al., FAST'16, uncorrectable errors and final read errors; that a write \
     heals is as dm-dust models it (Linux, Documentation/admin-guide/device-mapper/dm-dust.rst)",
);
pub(super) const IO_ERRORS_PASSING: Facts = while_read(
    "io-errors-passing",
    "eight written sectors fail to read once to four times, then succeed",
    Evidence::Published,
    "SSDs: Schroeder et al., FAST'16, read errors that succeed when tried again; how often they \
     fail is a hypothesis",
);

/// What the card does wrong while an image of a run is used, of which it has `seen` these
/// requests. `None` if none of the faults does anything then.
pub fn defects(seen: &[Logged], faults: &Faults, seed: u64) -> Option<Defects> {
    let acts = |fault: &Fault| fault.facts().acts == Acts::WhileRead;
    if !faults.iter().any(acts) {
        return None;
    }
    let mut defects = Defects {
        refuses: if faults.contains(&Fault::Dead) {
            Refuses::All
        } else if faults.contains(&Fault::StuckReadOnly) {
            Refuses::Writes
        } else {
            Refuses::Nothing
        },
        ..Defects::default()
    };
    // Places of their own for each fault: one more fault does not move those of the others.
    let places = |fault: Fault| {
        let mut rng = Rng::named(seed, fault.name());
        let sectors = match faults.contains(&fault) {
            true => places(seen, &mut rng),
            false => Vec::new(),
        };
        sectors
            .into_iter()
            .map(move |sector| (sector, rng.next_u64()))
    };
    for (sector, chance) in places(Fault::ReadsCorrupted) {
        defects
            .flipped
            .insert(sector, (chance % (SECTOR * 8)) as u16);
    }
    for (sector, chance) in places(Fault::IoErrorsPassing) {
        let times = 1 + (chance % PASSES_AFTER) as u32;
        defects.unreadable.insert(sector, Tries::FailMore(times));
    }
    for (sector, _) in places(Fault::IoErrors) {
        defects.unreadable.insert(sector, Tries::Fail);
    }
    Some(defects)
}

/// First bytes of some sectors, each of those that were written of equal chance.
pub(super) fn places(seen: &[Logged], rng: &mut Rng) -> Vec<u64> {
    let writes = || seen.iter().filter(|request| request.op == Op::Write);
    let written: u64 = writes().map(|request| request.bytes / SECTOR).sum();
    let place = |_| {
        let mut rest = rng.below(written);
        let request = writes().find(|request| {
            let sectors = request.bytes / SECTOR;
            let here = rest < sectors;
            rest -= if here { 0 } else { sectors };
            here
        });
        request.map(|request| request.offset + rest * SECTOR)
    };
    (0..PLACES.min(written)).filter_map(place).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::cut::tests::write;

    /// Twenty writes of 4 KiB from 1 MiB on.
    fn log() -> Vec<Logged> {
        let write = |n: u64| write((1 << 20) + n * 4096, 1, 4096, n * 1000, n * 1000 + 600);
        (0..20).map(write).collect()
    }

    fn of(faults: &[Fault], seed: u64) -> Defects {
        defects(&log(), &faults.iter().copied().collect(), seed).unwrap()
    }

    #[test]
    fn faults_of_other_times_do_nothing_while_it_is_read() {
        let others = Fault::ALL
            .into_iter()
            .filter(|fault| fault.facts().acts != Acts::WhileRead);
        assert_eq!(defects(&log(), &others.collect(), 1), None);
    }

    #[test]
    fn only_what_was_written_is_hit() {
        let hit = of(&[Fault::IoErrors, Fault::ReadsCorrupted], 1);
        assert!(hit.unreadable.len() > 4 && hit.flipped.len() > 4);
        let written = 1 << 20..(1 << 20) + 20 * 4096;
        for sector in hit.unreadable.keys().chain(hit.flipped.keys()) {
            assert!(written.contains(sector) && sector.is_multiple_of(SECTOR));
        }
        assert!(hit.flipped.values().all(|&bit| u64::from(bit) < SECTOR * 8));
        let none = defects(&[], &[Fault::IoErrors].into(), 1).unwrap();
        assert_eq!(none, Defects::default());
    }

    #[test]
    fn another_fault_does_not_move_the_places_of_the_first_and_a_seed_does() {
        let alone = of(&[Fault::ReadsCorrupted], 1);
        let both = of(&[Fault::ReadsCorrupted, Fault::IoErrorsPassing], 1);
        assert_eq!(alone.flipped, both.flipped);
        assert_ne!(alone.flipped, of(&[Fault::ReadsCorrupted], 2).flipped);
        let times = |tries: &Tries| matches!(tries, Tries::FailMore(1..=4));
        assert!(both.unreadable.values().all(times));
    }

    #[test]
    fn a_dead_card_is_dead_whatever_else_it_is() {
        let dead = of(&[Fault::Dead, Fault::StuckReadOnly], 1);
        assert_eq!(dead.refuses, Refuses::All);
        assert_eq!(of(&[Fault::StuckReadOnly], 1).refuses, Refuses::Writes);
    }
}
