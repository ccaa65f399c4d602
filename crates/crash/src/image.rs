//! The content of a card after a cut, made forward from the state before the run.

use crate::cut::Cut;
use crate::fates::{fates, interrupted};
use crate::fault::{
    AfterCut, AtCut, CardFacts, ChangeWrite, Effect, Fate, Fault, Faults, RecordedRun,
};
use crate::faults::defects;
use std::borrow::Cow;
use std::collections::BTreeSet;
use whichfs_blockdev::{Defects, Logged};
use whichfs_card::{Contents, ContentsError, RequestKind};
use whichfs_units::{Nanos, Rng};

/// Written bytes and requests between two checkpoints: so much at most is written again for an
/// image. Each checkpoint keeps copies of the chunks that change, and the places of all.
const EVERY_BYTES: u64 = 8 << 20;
const EVERY: usize = 4096;

/// Checkpoints of a run that writes more than so many times [`EVERY_BYTES`].
const CHECKPOINTS: u64 = 32;

/// A log with the content of the card at some of its requests, so that images need not begin at
/// the beginning. Images share what they do not change with it.
pub struct Timeline {
    log: Vec<Logged>,
    /// Content before the request of that index, all earlier ones whole; the first is of 0.
    checkpoints: Vec<(usize, Contents)>,
    /// The data of the log, if they are not in it.
    stored: Option<Stored>,
}

impl Timeline {
    /// The timeline of `log`; `base` is the content before its first request.
    ///
    /// # Errors
    /// If the contents cannot be kept or a request lies beyond them.
    pub fn new(base: Contents, log: Vec<Logged>) -> Result<Timeline, ContentsError> {
        Timeline::build(base, log, None)
    }

    /// The same with the data of the log in `store`, which is empty and large enough for them:
    /// where it is bounded in memory, the log is too.
    ///
    /// # Errors
    /// If the contents cannot be kept or a request lies beyond them.
    pub fn storing(
        base: Contents,
        log: Vec<Logged>,
        store: Contents,
    ) -> Result<Timeline, ContentsError> {
        let stored = Stored {
            contents: store,
            places: Vec::new(),
        };
        Timeline::build(base, log, Some(stored))
    }

    fn build(
        base: Contents,
        mut log: Vec<Logged>,
        mut stored: Option<Stored>,
    ) -> Result<Timeline, ContentsError> {
        let all: u64 = log.iter().map(|request| request.data.len() as u64).sum();
        let every_bytes = EVERY_BYTES.max(all / CHECKPOINTS);
        let mut contents = base;
        contents.put_all_away()?;
        let mut checkpoints = vec![(0, contents.clone())];
        let (mut from, mut bytes, mut place) = (0, 0, 0);
        for (index, request) in log.iter_mut().enumerate() {
            if bytes >= every_bytes || index - from >= EVERY {
                contents.put_all_away()?;
                checkpoints.push((index, contents.clone()));
                (from, bytes) = (index, 0);
            }
            let length = request.data.len() as u64;
            bytes += length;
            apply(&mut contents, request)?;
            if let Some(stored) = &mut stored {
                let data = std::mem::take(&mut request.data);
                if length > 0 {
                    stored.contents.write(place, &data)?;
                }
                stored.places.push(place);
                place += length;
            }
        }
        if let Some(stored) = &mut stored {
            stored.contents.put_all_away()?;
        }
        Ok(Timeline {
            log,
            checkpoints,
            stored,
        })
    }

    /// All requests; their data may lie elsewhere.
    pub fn log(&self) -> &[Logged] {
        &self.log
    }

    /// The requests that had reached the card at `cut`.
    pub fn seen(&self, cut: &Cut) -> &[Logged] {
        let arrived = |request: &Logged| request.arrived <= cut.at;
        &self.log[..self.log.partition_point(arrived)]
    }

    /// The requests that `cut` does not leave whole, by index, and what is left of them.
    pub fn hurt(&self, card: &CardFacts, faults: &Faults, cut: &Cut) -> Vec<(usize, Fate)> {
        let mut rng = Rng::named(cut.seed, "crash/image");
        let fates = fates(&self.at(cut, card), faults, &mut rng);
        let numbered = fates.into_iter().enumerate();
        numbered.filter(|(_, fate)| *fate != Fate::Whole).collect()
    }

    /// The content of the card after `cut`.
    ///
    /// # Errors
    /// If the contents cannot be kept.
    pub fn image(
        &self,
        card: &CardFacts,
        faults: &Faults,
        cut: &Cut,
    ) -> Result<Contents, ContentsError> {
        self.image_sparing(card, faults, cut, &BTreeSet::new())
    }

    /// The same, with the requests of the indices `spared` whole all the same.
    ///
    /// # Errors
    /// If the contents cannot be kept.
    pub fn image_sparing(
        &self,
        card: &CardFacts,
        faults: &Faults,
        cut: &Cut,
        spared: &BTreeSet<usize>,
    ) -> Result<Contents, ContentsError> {
        let at_cut = self.at(cut, card);
        let seen = at_cut.seen;
        let mut rng = Rng::named(cut.seed, "crash/image");
        let mut fates = fates(&at_cut, faults, &mut rng);
        for &index in spared.iter().filter(|&&index| index < seen.len()) {
            fates[index] = Fate::Whole;
        }
        let changes = self.changes(&at_cut, faults, &mut rng);
        let damages = faults.iter().any(|fault| fault.is_without_cut());
        let whole = fates
            .iter()
            .take_while(|fate| **fate == Fate::Whole)
            .count();
        let before = if damages { 0 } else { whole };
        let later = self
            .checkpoints
            .partition_point(|(index, _)| *index <= before);
        let (from, checkpoint) = &self.checkpoints[later - 1];
        let mut contents = checkpoint.clone();
        let mut stored = self.stored.clone();
        let mut buffer = Vec::new();
        for (index, request) in seen.iter().enumerate().skip(*from) {
            match request.op {
                RequestKind::Discard if fates[index] == Fate::Whole => {
                    contents.discard(request.offset, request.bytes)?;
                }
                RequestKind::Write => {
                    let data = match &mut stored {
                        None => &request.data[..],
                        Some(stored) => stored.data(index, request, &mut buffer)?,
                    };
                    let (mut offset, mut data) = (request.offset, Cow::Borrowed(data));
                    for change in &changes {
                        change(index, request, &mut offset, &mut data);
                    }
                    write(&mut contents, offset, &data, fates[index], &mut rng)?;
                }
                _ => {}
            }
        }
        let after = AfterCut {
            seen,
            card,
            under_way: interrupted(&at_cut, &fates, &mut rng),
        };
        for fault in faults {
            if let Effect::Contents(damage) = fault.0.effect {
                damage(&mut contents, &after, &mut rng)?;
            }
        }
        Ok(contents)
    }

    fn at<'a>(&'a self, cut: &Cut, card: &'a CardFacts) -> AtCut<'a> {
        AtCut {
            seen: self.seen(cut),
            card,
            at: cut.at,
        }
    }

    /// What `faults` do to writes.
    fn changes(&self, cut: &AtCut<'_>, faults: &Faults, rng: &mut Rng) -> Vec<ChangeWrite> {
        let begin = self.log.first().map_or(Nanos(0), |first| first.arrived);
        let end = self.log.last().map_or(Nanos(0), |last| last.done);
        let took = end.saturating_sub(begin).0;
        let run = RecordedRun {
            seen: cut.seen,
            card: cut.card,
            begin,
            middle: Nanos(begin.0 + took / 4 + rng.below(took / 2 + 1)),
        };
        let change = |fault: &Fault| match fault.0.effect {
            Effect::Writes(change) => Some(change(&run, rng)),
            _ => None,
        };
        faults.iter().filter_map(change).collect()
    }

    /// What the card does wrong while that image is used; `None` if none of the faults does
    /// anything then.
    pub fn defects(&self, faults: &Faults, cut: &Cut) -> Option<Defects> {
        defects(self.seen(cut), faults, cut.seed)
    }
}

/// What was written, in the order of the log: data that lie in a file, for one.
#[derive(Clone)]
struct Stored {
    contents: Contents,
    /// Where the data of each request begin.
    places: Vec<u64>,
}

impl Stored {
    /// The data of request number `index`, in `buffer`.
    fn data<'a>(
        &mut self,
        index: usize,
        request: &Logged,
        buffer: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], ContentsError> {
        buffer.resize(request.bytes as usize, 0);
        self.contents.read(self.places[index], buffer)?;
        Ok(buffer)
    }
}

/// Does all of a request.
fn apply(contents: &mut Contents, request: &Logged) -> Result<(), ContentsError> {
    match request.op {
        RequestKind::Discard => contents.discard(request.offset, request.bytes),
        RequestKind::Write => contents.write(request.offset, &request.data),
        _ => Ok(()),
    }
}

/// Puts what `fate` leaves of `data` at `offset`.
fn write(
    contents: &mut Contents,
    offset: u64,
    data: &[u8],
    fate: Fate,
    rng: &mut Rng,
) -> Result<(), ContentsError> {
    match fate {
        Fate::Lost => Ok(()),
        Fate::Whole => contents.write(offset, data),
        Fate::Before(end) => {
            let bytes = end.saturating_sub(offset).min(data.len() as u64);
            match bytes {
                0 => Ok(()),
                bytes => contents.write(offset, &data[..bytes as usize]),
            }
        }
        Fate::Pieces(unit) => {
            let mut at = offset;
            for piece in data.chunks(unit as usize) {
                if rng.ratio(1, 2) {
                    contents.write(at, piece)?;
                }
                at += piece.len() as u64;
            }
            Ok(())
        }
    }
}

#[cfg(test)]
#[path = "image_tests.rs"]
mod tests;
