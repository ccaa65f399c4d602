//! Progress of a series of cuts, on standard error.

use crate::output;
use std::time::{Duration, Instant};
use whichfs_engine::crash::campaign::CutObserver;
use whichfs_engine::crash::check::Result;

/// Progress on standard error.
pub struct Progress<'a> {
    name: &'a str,
    total: usize,
    /// Cuts that were there already.
    before: usize,
    broken: usize,
    /// Series that are made after this one, as long as it.
    series_left: usize,
    begun: Instant,
    told: Instant,
}

impl Progress<'_> {
    /// Time between two lines.
    const EVERY: Duration = Duration::from_secs(2);

    /// Progress of the series called `name`, after which `series_left` more are made.
    pub fn new(name: &str, series_left: usize) -> Progress<'_> {
        Progress {
            name,
            total: 0,
            before: 0,
            broken: 0,
            series_left,
            begun: Instant::now(),
            told: Instant::now(),
        }
    }
}

impl Drop for Progress<'_> {
    fn drop(&mut self) {
        output::clear_bar();
    }
}

impl CutObserver for Progress<'_> {
    fn known(&mut self, known: usize, all: usize) {
        if known > 0 {
            note!(
                "{}: {known} of {all} cuts were made before (--fresh makes them again)",
                self.name
            );
        }
        (self.before, self.total) = (known, all);
    }

    fn made(&mut self, result: &Result, missing: usize) {
        self.broken += usize::from(result.broken);
        let spent = self.begun.elapsed().as_secs_f64();
        let done = self.total - missing;
        let made = (done - self.before) as f64;
        let left = spent / made * (missing + self.series_left * self.total) as f64;
        let told = format!(
            "{}: {done} of {} cuts, {:.1} a second, {} broke a promise, about {left:.0} s to go",
            self.name,
            self.total,
            made / spent.max(1e-9),
            self.broken,
        );
        if self.begun.elapsed() < Self::EVERY
            || output::progress(done as u64, self.total as u64, told.clone())
        {
            return;
        }
        if self.told.elapsed() >= Self::EVERY || missing == 0 {
            self.told = Instant::now();
            note!("{told}");
        }
    }
}
