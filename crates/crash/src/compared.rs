//! A file's content, sector by sector, against the versions that it had.

use crate::history::File;
use crate::outcome::PathOutcome;
use whichfs_trial::{content_digest, sector_digest};
use whichfs_units::SECTOR;

/// The content of a file that was read.
#[derive(Clone, Copy)]
pub(crate) struct Bytes<'a> {
    pub size: u64,
    /// Digest of the whole content.
    pub digest: u64,
    /// Of each sector, if they were asked for.
    pub sectors: Option<&'a [u32]>,
    /// Else runs of sectors of zeros, first and number.
    pub zeros: &'a [(u64, u64)],
}

/// How something found compares with what it may be.
pub(crate) enum Compared {
    Right,
    /// Not the newest, but allowed.
    Legal(PathOutcome, String),
    /// Never so, where nothing durable was touched; no outcome: wrong, with or without warning.
    Damaged(Option<PathOutcome>, String),
    /// What was durable is lost.
    Lost(Option<PathOutcome>, String),
}

impl Compared {
    /// Whether what was found is this file's, and no other's: zeros could be anybody's.
    pub(crate) fn is_its_own(&self) -> bool {
        match self {
            Compared::Right => true,
            Compared::Legal(outcome, _) => *outcome != PathOutcome::Zeroed,
            Compared::Damaged(..) | Compared::Lost(..) => false,
        }
    }
}

/// Versions before those that may be there, as far back as is worth making each whole; what is
/// older still is known by its sectors.
pub(crate) fn older(versions: &std::ops::RangeInclusive<usize>) -> std::ops::Range<usize> {
    const BACK: usize = 64;
    versions.start().saturating_sub(BACK).max(1)..*versions.start()
}

/// A file that should be `right`, and is not: whether it is but for sectors of zeros.
pub(crate) fn zeroed(right: &[u8], found: Bytes<'_>) -> Compared {
    let mut expected = right.to_vec();
    expected.resize(found.size as usize, 0);
    for (first, count) in found.zeros {
        let at = |sector: u64| (sector.saturating_mul(SECTOR)).min(found.size) as usize;
        expected[at(*first)..at(first.saturating_add(*count))].fill(0);
    }
    let durable = right.len();
    let what = format!(
        "{} bytes, other than the {durable} that were durable",
        found.size
    );
    let zeros = content_digest(&expected) == found.digest;
    Compared::Lost(zeros.then_some(PathOutcome::Zeroed), what)
}

/// Whether each sector is that of some version, or ends with zeros where that version ended.
pub(crate) fn mixture(
    file: &File,
    versions: std::ops::RangeInclusive<usize>,
    (size, newest): (u64, u64),
    sectors: &[u32],
) -> Compared {
    let of_versions: Vec<(u64, Vec<u32>)> = versions
        .clone()
        .map(|version| (file.size(version), file.sectors(version, size)))
        .collect();
    let (mut zeros, mut lost, mut foreign) = (0_u64, Vec::new(), Vec::new());
    let told = sectors.iter().take(size.div_ceil(SECTOR) as usize);
    for (at, found) in told.enumerate() {
        let end = ((at as u64 + 1) * SECTOR).min(size);
        let digests = of_versions.iter().map(|(_, digests)| &digests[at]);
        let mut like = of_versions
            .iter()
            .filter(|(_, digests)| digests[at] == *found)
            .peekable();
        if like.peek().is_some() {
            // No version that reaches so far: zeros stand for what was appended.
            zeros += u64::from(like.all(|(length, _)| *length < end));
        } else if same(digests) {
            // It never changed: what stood there has been durable.
            lost.push(at);
        } else {
            foreign.push(at);
        }
    }
    let count = sectors.len();
    let before = match lost.is_empty() && foreign.is_empty() {
        true => Vec::new(),
        false => file.sectors_before(*versions.start(), size),
    };
    let is_old = |at: &usize| {
        let then = before.get(*at).zip(sectors.get(*at));
        then.is_some_and(|(then, now)| then.contains(now))
    };
    let is_zero = |at: &usize| {
        let bytes = (size - *at as u64 * SECTOR).min(SECTOR);
        sectors[*at] == sector_digest(&[0; SECTOR as usize][..bytes as usize])
    };
    // What changed since it was durable, and is as it was before, or zeros: what was durable there
    // is lost too.
    let (gone, foreign): (Vec<usize>, Vec<usize>) =
        (foreign.into_iter()).partition(|at| is_old(at) || is_zero(at));
    lost.extend(gone);
    if !lost.is_empty() {
        let outcome = match foreign.is_empty() {
            true if lost.iter().all(is_old) => Some(PathOutcome::Old),
            true if lost.iter().all(|at| is_old(at) || is_zero(at)) => Some(PathOutcome::Zeroed),
            _ => None,
        };
        let what = format!("{} of {count} sectors that were durable", lost.len());
        return Compared::Lost(outcome, what);
    }
    if !foreign.is_empty() {
        let foreign = foreign.len();
        let what = format!("{foreign} of {count} sectors are of none of its versions");
        return Compared::Damaged(None, what);
    }
    let (outcome, what) = if size == 0 {
        (PathOutcome::Emptied, format!("0 of {newest} bytes"))
    } else if zeros > 0 {
        (
            PathOutcome::Zeroed,
            format!("{zeros} of {count} sectors end with zeros"),
        )
    } else if size < newest {
        (PathOutcome::Truncated, format!("{size} of {newest} bytes"))
    } else {
        (PathOutcome::Mixed, "sectors of several versions".to_owned())
    };
    Compared::Legal(outcome, what)
}

fn same<'a>(mut digests: impl Iterator<Item = &'a u32>) -> bool {
    let first = digests.next();
    digests.all(|digest| Some(digest) == first)
}
