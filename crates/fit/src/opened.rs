//! Cards that close the AU which was opened first, and what they had opened before each test.
//!
//! With one AU more than there are places such a card pays for each write, every second or every
//! third, by the order in which it had opened the AUs before the test (see [`Opened`]). A log
//! does not tell that order, but the points of a test tell which of the few it was: one number
//! for all block sizes of the test.

use crate::points::{Order, Point};
use crate::search::{Candidate, How, NO_LIMIT, Search};
use crate::solve::misfit;
use whichfs_curves::flashbench::Opened;

/// What a test costs before which some of its AUs had been opened, in the unit of what the fit
/// minimises: where nothing of it was open, all cards are alike.
const OPENED: f64 = 1.0;
/// Times and rates depend on what was open and the reverse: how often both are looked for.
const ROUNDS: usize = 2;

impl Search<'_> {
    /// The card of `best`, or the same that closes the AU opened first, if it fits better.
    pub(crate) fn first_opened(&self, best: Candidate) -> Candidate {
        let places = best.shape.value("geometry.open_aus_linear");
        let limited = (1..NO_LIMIT).contains(&places);
        if !limited || !best.shape.fixed.contains_key("log_block.first_opened") {
            return best;
        }
        let mut found = best.clone();
        for _ in 0..ROUNDS {
            let Some(next) = self.with_places(&found, places) else {
                return best;
            };
            found = next;
        }
        found.decided = best.decided.clone();
        found.decided.insert("log_block.first_opened", How::Tried);
        if found.cost < best.cost { found } else { best }
    }

    /// The card of `from` that closes the AU opened first, after what fits best was opened.
    fn with_places(&self, from: &Candidate, places: u64) -> Option<Candidate> {
        let shape = from.shape.with("log_block.first_opened", 1);
        let theta = &from.solution.theta;
        let sheet = shape.sheet(&from.free, theta, from.replay.trial_capacity());
        let profile = sheet.profile().ok()?;
        let tests = self.tests_beyond(places);
        let mut best = vec![(f64::INFINITY, 0); tests.len()];
        for count in 0..=places as u8 {
            let mut replay = from.replay;
            replay.opened = all(&tests, |_| count);
            let times = replay.times(&profile, self.points).ok()?;
            for (test, best) in tests.iter().zip(&mut best) {
                let odd = if count > 0 { OPENED } else { 0.0 };
                let cost = odd + self.misfit_of(*test, &times);
                if cost < best.0 {
                    *best = (cost, count);
                }
            }
        }
        let mut replay = from.replay;
        replay.opened = all(&tests, |at| best[at].1);
        let odd = best.iter().filter(|(_, count)| *count > 0).count();
        let mut found = self.evaluate(&shape, replay)?;
        found.cost += OPENED * odd as f64;
        Some(found)
    }

    /// Tests with more AUs than there are places.
    fn tests_beyond(&self, places: u64) -> Vec<(Order, u32)> {
        let tests = self.points.iter().map(|point| point.place);
        let mut beyond: Vec<(Order, u32)> = tests
            .filter(|place| place.order.is_flashbench() && u64::from(place.aus) > places)
            .map(|place| (place.order, place.aus))
            .collect();
        beyond.sort_unstable();
        beyond.dedup();
        beyond
    }

    /// What the points of one test add to what the fit minimises.
    fn misfit_of(&self, (order, aus): (Order, u32), times: &[f64]) -> f64 {
        let of_test = |point: &Point| (point.place.order, point.place.aus) == (order, aus);
        self.points
            .iter()
            .zip(times)
            .filter(|(point, _)| of_test(point))
            .map(|(point, time)| misfit(*time, point.ns))
            .sum()
    }
}

/// What was open before each of `tests`.
fn all(tests: &[(Order, u32)], count: impl Fn(usize) -> u8) -> Opened {
    let tests = tests.iter().enumerate();
    tests.fold(Opened::UNTOLD, |opened, (at, (order, aus))| {
        opened.with(*order == Order::Random, *aus, count(at))
    })
}
