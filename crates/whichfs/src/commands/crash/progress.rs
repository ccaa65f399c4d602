//! Progress of a series of cuts, on standard error.

use std::time::{Duration, Instant};
use whichfs_engine::crash::check::Result;

/// Progress on standard error.
pub struct Progress<'a> {
    name: &'a str,
    total: usize,
    /// Cuts that were there already.
    before: usize,
    done: usize,
    broken: usize,
    begun: Instant,
    told: Instant,
}

impl Progress<'_> {
    /// Time between two lines.
    const EVERY: Duration = Duration::from_secs(2);

    /// Progress of `total` cuts, `before` of which are there already.
    pub fn new(name: &str, total: usize, before: usize) -> Progress<'_> {
        Progress {
            name,
            total,
            before,
            done: before,
            broken: 0,
            begun: Instant::now(),
            told: Instant::now(),
        }
    }

    /// Takes one more.
    pub fn hear(&mut self, result: &Result) {
        self.done += 1;
        self.broken += usize::from(result.broken);
        if self.told.elapsed() < Self::EVERY && self.done < self.total {
            return;
        }
        self.told = Instant::now();
        let spent = self.begun.elapsed().as_secs_f64();
        let made = (self.done - self.before) as f64;
        let left = spent / made * (self.total - self.done) as f64;
        note!(
            "{}: {} of {} cuts, {:.1} a second, {} broke a promise, about {left:.0} s to go",
            self.name,
            self.done,
            self.total,
            made / spent.max(1e-9),
            self.broken,
        );
    }
}
