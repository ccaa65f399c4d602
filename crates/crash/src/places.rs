//! Where faults hit: sectors that were written, newest requests, blocks and pages.

use crate::fault::{BLOCK, GoodRun};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use whichfs_blockdev::{LiveDamage, LiveFault, Logged, Tries};
use whichfs_card::{Contents, ContentsError, RequestKind};
use whichfs_units::{Nanos, Rng, SECTOR};

/// Sectors that a fault of single sectors hits.
const SECTORS: u64 = 8;
/// How often so many are drawn until there are enough outside what a mount writes.
const ROUNDS: usize = 8;
/// Most tries that a passing error fails. Linux tries a page of a file twice, in a readahead and
/// alone, so a single failure is hidden from the reader and more are not.
pub(crate) const PASSES_AFTER: u64 = 4;
/// Requests that a fault looks back: a card that saved its map less often would be useless.
const LOOK_BACK: u64 = 64;

/// First bytes of some sectors, each of those that were written of equal chance: a card spreads its
/// wear, so that what is written often is hardly weaker than the rest.
pub(crate) fn written_sectors(seen: &[Logged], rng: &mut Rng) -> Vec<u64> {
    let writes = || {
        seen.iter()
            .filter(|request| request.op == RequestKind::Write)
    };
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
    (0..SECTORS.min(written)).filter_map(place).collect()
}

/// First bytes of sectors that a workload would write and that the mount `before` it does not, so
/// that up to the first error the run is that of a good card.
pub(crate) fn refused_sectors([before, written]: [&[Logged]; 2], rng: &mut Rng) -> BTreeSet<u64> {
    let touches = |request: &Logged, sector: u64| {
        (request.offset..request.offset + request.bytes).contains(&sector)
    };
    let mut hit = BTreeSet::new();
    for sector in (0..ROUNDS).flat_map(|_| written_sectors(written, rng)) {
        let mut earlier = before
            .iter()
            .filter(|request| request.op == RequestKind::Write);
        if hit.len() < SECTORS as usize && !earlier.any(|request| touches(request, sector)) {
            hit.insert(sector);
        }
    }
    hit
}

/// Lets the next tries of `sector` fail, unless all do.
pub(crate) fn fail(failing: &mut BTreeMap<u64, Tries>, sector: u64, tries: Tries) {
    if failing.get(&sector) != Some(&Tries::Fail) {
        failing.insert(sector, tries);
    }
}

/// How many of the newest requests are lost.
pub(crate) fn newest_lost(rng: &mut Rng) -> usize {
    rng.below(LOOK_BACK) as usize + 1
}

/// Zeroes the first byte of each 4 KiB block of the card in the data of `request`.
pub(crate) fn zero_blocks(request: &Logged, data: &mut Cow<'_, [u8]>) {
    let first = (BLOCK - request.offset % BLOCK) % BLOCK;
    let data = data.to_mut();
    for at in (first as usize..data.len()).step_by(BLOCK as usize) {
        data[at] = 0;
    }
}

/// `damage` from a request in the middle half of `run` on.
pub(crate) fn from_the_middle(run: &GoodRun<'_>, rng: &mut Rng, damage: LiveDamage) -> LiveFault {
    let all = run.written.len() as u64;
    let first = (all / 4 + rng.below((all / 2).max(1))).min(all - 1);
    LiveFault {
        from: run.written[first as usize].arrived,
        alternates: None,
        damage,
    }
}

/// `damage` in every other second of `run`, from an instant within its first one.
pub(crate) fn every_other_second(
    run: &GoodRun<'_>,
    rng: &mut Rng,
    damage: LiveDamage,
) -> LiveFault {
    const SECOND: u64 = 1_000_000_000;
    LiveFault {
        from: run.written[0].arrived + Nanos(rng.below(SECOND)),
        alternates: Some(Nanos(SECOND)),
        damage,
    }
}

/// Puts noise into the page `page`.
pub(crate) fn noise(
    contents: &mut Contents,
    page: u64,
    page_bytes: u64,
    rng: &mut Rng,
) -> Result<(), ContentsError> {
    let mut data = vec![0; page_bytes as usize];
    rng.fill(&mut data);
    contents.write(page * page_bytes, &data)
}
