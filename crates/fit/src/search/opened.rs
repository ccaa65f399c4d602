//! Cards that close the AU which was opened first, and what they had opened before each test.
//!
//! With one AU more than there are places such a card pays for each write, every second or every
//! third, by the order in which it had opened the AUs before the test (see [`Opened`]). A log
//! does not tell that order, but the points of a test tell which of the few it was: one number
//! for all block sizes of the test. The numbers, times and rates depend on each other, so each
//! number is tried as the start of the search for all.

use super::{Candidate, How, Search, Tried};
use crate::points::{Point, PointOrder};
use crate::shape::NO_LIMIT;
use crate::solve::{Row, Solution, misfit};
use whichfs_curves::flashbench::Opened;

/// What a test costs before which some of its AUs had been opened, in the unit of what the fit
/// minimises: where nothing of it was open, all cards are alike.
const OPENED: f64 = 1.0;
/// How often the numbers are chosen and figures fitted to them, unless nothing changes before.
const ROUNDS: usize = 4;

/// Order and number of AUs of a test.
type Test = (PointOrder, u32);

/// What the opened AUs that `opened` tells cost.
pub(crate) fn oddity(opened: &Opened) -> f64 {
    OPENED * opened.told().filter(|(_, _, count)| *count > 0).count() as f64
}

impl Search<'_> {
    /// The card of `best`, or the same that closes the AU opened first, if it fits better.
    pub(crate) fn first_opened(&mut self, mut best: Candidate) -> Candidate {
        const PATH: &str = "log_block.first_opened";
        let places = best.shape.value("geometry.open_aus_linear");
        if !(1..NO_LIMIT).contains(&places) || !best.shape.fixed.contains_key(PATH) {
            return best;
        }
        best.decided.insert(PATH, How::Tried);
        match self.known_with_places(&best, places) {
            Some(found) if found.cost < best.cost => Candidate {
                decided: best.decided,
                ..found
            },
            _ => best,
        }
    }

    /// As [`Search::with_places`], which is done once for each shape.
    fn known_with_places(&mut self, from: &Candidate, places: u64) -> Option<Candidate> {
        let is_it = |tried: &&Tried| (&tried.0, tried.1) == (&from.shape, from.replay);
        if let Some((.., known)) = self.placed.iter().find(is_it) {
            return known.clone();
        }
        let found = self.with_places(from, places);
        self.placed
            .push((from.shape.clone(), from.replay, found.clone()));
        found
    }

    /// The card of `from` that closes the AU opened first, after what fits best was opened.
    fn with_places(&self, from: &Candidate, places: u64) -> Option<Candidate> {
        let shape = from.shape.with("log_block.first_opened", 1);
        let tests = self.tests_beyond(places);
        let rows_after = |count: u8| {
            let mut replay = from.replay;
            replay.opened = opened(&tests, &vec![count; tests.len()]);
            self.rows(&shape, &replay)
        };
        let by_count: Option<Vec<Vec<Row>>> = (0..=places as u8).map(rows_after).collect();
        let by_count = by_count?;
        let fits = (0..=places as u8).map(|start| {
            let counts = self.settle(&tests, &by_count, start, |rows| self.solved(&shape, rows));
            let solution = self.solved(&shape, &self.composed(&tests, &by_count, &counts));
            (solution.cost + oddity(&opened(&tests, &counts)), counts)
        });
        let (_, counts) = fits.min_by(|a, b| a.0.total_cmp(&b.0))?;
        let mut replay = from.replay;
        replay.opened = opened(&tests, &counts);
        self.evaluate(&shape, replay)
    }

    /// The numbers of opened AUs that fit best to the figures that fit best to them, from
    /// `start` before each test.
    fn settle(
        &self,
        tests: &[Test],
        by_count: &[Vec<Row>],
        start: u8,
        solved: impl Fn(&[Row]) -> Solution,
    ) -> Vec<u8> {
        let mut counts = vec![start; tests.len()];
        for _ in 0..ROUNDS {
            let theta = solved(&self.composed(tests, by_count, &counts)).theta;
            let next = self.chosen(tests, by_count, &theta);
            if next == counts {
                break;
            }
            counts = next;
        }
        counts
    }

    /// For each test the number of opened AUs with which figures `theta` fit best.
    fn chosen(&self, tests: &[Test], by_count: &[Vec<Row>], theta: &[f64]) -> Vec<u8> {
        let cost = |test: &Test, rows: &[Row]| -> f64 {
            let points = self.points.iter().zip(rows);
            let of_test = points.filter(|(point, _)| is_of(point, test));
            of_test
                .map(|(point, row)| misfit(row.time_at(theta), point.ns))
                .sum()
        };
        let best = |test: &Test| {
            let costs = by_count.iter().zip(0_u8..).map(|(rows, count)| {
                let odd = if count > 0 { OPENED } else { 0.0 };
                (odd + cost(test, rows), count)
            });
            costs
                .min_by(|a, b| a.0.total_cmp(&b.0))
                .map_or(0, |(_, count)| count)
        };
        tests.iter().map(best).collect()
    }

    /// The rows of all points with `counts` AUs opened before the tests.
    fn composed(&self, tests: &[Test], by_count: &[Vec<Row>], counts: &[u8]) -> Vec<Row> {
        let count = |point: &Point| {
            let mut of_tests = tests.iter().zip(counts);
            let of_test = of_tests.find(|(test, _)| is_of(point, test));
            usize::from(of_test.map_or(0, |(_, count)| *count))
        };
        let rows = self.points.iter().enumerate();
        rows.map(|(at, point)| by_count[count(point)][at].clone())
            .collect()
    }

    /// Tests with more AUs than there are places.
    fn tests_beyond(&self, places: u64) -> Vec<Test> {
        let tests = self.points.iter().map(|point| point.place);
        let mut beyond: Vec<Test> = tests
            .filter(|place| place.order.is_flashbench() && u64::from(place.aus) > places)
            .map(|place| (place.order, place.aus))
            .collect();
        beyond.sort_unstable();
        beyond.dedup();
        beyond
    }
}

fn is_of(point: &Point, test: &Test) -> bool {
    (point.place.order, point.place.aus) == *test
}

/// What was open before each of `tests`.
fn opened(tests: &[Test], counts: &[u8]) -> Opened {
    let told = tests.iter().zip(counts);
    told.fold(Opened::UNTOLD, |opened, ((order, aus), count)| {
        opened.with(*order == PointOrder::Random, *aus, *count)
    })
}
