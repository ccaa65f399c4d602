//! What may run side by side, as the caller has it: a fit knows no threads.

/// Runs a job for each number below a count, in any order or side by side, and ends when all have.
#[derive(Clone, Copy, Debug)]
pub struct Jobs(pub fn(usize, &(dyn Fn(usize) + Sync)));

impl Jobs {
    /// Runs `job` for each number below `count`.
    pub fn run(self, count: usize, job: &(dyn Fn(usize) + Sync)) {
        (self.0)(count, job);
    }
}

impl Default for Jobs {
    /// One after the other.
    fn default() -> Jobs {
        Jobs(|count, job| (0..count).for_each(job))
    }
}
