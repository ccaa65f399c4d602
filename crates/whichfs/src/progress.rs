//! Progress of a campaign on standard error: one line that is renewed on a terminal; elsewhere a
//! line now and then. With --verbose there is a line for each trial.

use crate::output::{self, note_folded};
use std::io::IsTerminal;
use std::time::{Duration, Instant};
use whichfs_engine::observer::{Observer, ProgressEvent};
use whichfs_trial::{Status, Trial};
use whichfs_units::counted;

/// What takes less shows no progress; where there is no terminal, also the time between two lines.
const EVERY: Duration = Duration::from_secs(2);

/// Shows what the trials of a campaign are doing, over all its rounds.
pub struct Progress {
    begun: Instant,
    told: Instant,
    done: u64,
    /// Trials that are known to be run.
    total: u64,
    /// Trials that later rounds may ask for.
    later: u64,
    rounds: u64,
    /// Rounds of which nothing is known yet: each is taken for the mean of those before.
    pub rounds_left: u64,
    jobs: u64,
    trial_wall: Duration,
    /// No lines of trials.
    quiet: bool,
    /// Trials are those of a real device, whose time is ours.
    real: bool,
}

impl Default for Progress {
    fn default() -> Progress {
        let now = Instant::now();
        Progress {
            begun: now,
            told: now,
            done: 0,
            total: 0,
            later: 0,
            rounds: 0,
            rounds_left: 0,
            jobs: 1,
            trial_wall: Duration::ZERO,
            quiet: false,
            real: false,
        }
    }
}

impl Progress {
    /// Progress of `trials` on `jobs` workers.
    pub fn of(trials: usize, jobs: usize) -> Progress {
        Progress {
            total: trials as u64,
            jobs: jobs as u64,
            ..Progress::default()
        }
    }

    /// The same without lines of trials, if `quiet`.
    pub fn quiet(self, quiet: bool) -> Progress {
        Progress { quiet, ..self }
    }

    /// The same for trials on a real device.
    pub fn here(self) -> Progress {
        Progress { real: true, ..self }
    }

    fn line_of(&self, what: &str, trial: &Trial, wall: Duration) -> String {
        let ended = match &trial.outcome.status {
            Status::Done if self.real => format!("{:.1} s", wall.as_secs_f64()),
            Status::Done => format!(
                "{} of virtual time in {:.1} s",
                trial.outcome.virtual_time,
                wall.as_secs_f64()
            ),
            Status::Failed { reason, .. } => {
                format!("FAILED: {}", reason.lines().next().unwrap_or_default())
            }
        };
        let (done, total, eta) = (self.done, self.total, self.eta());
        let eta = if eta.is_empty() {
            eta
        } else {
            format!(" ({eta})")
        };
        format!("[{done}/{total}] {what}: {ended}{eta}")
    }

    /// Time to go in all rounds, from the mean of the trials so far.
    fn eta(&self) -> String {
        let unknown = self.rounds_left * self.total / self.rounds.max(1);
        let left = self.total.saturating_sub(self.done) + self.later + unknown;
        if self.done == 0 || left == 0 {
            return String::new();
        }
        let mean = self.trial_wall.as_secs_f64() / self.done as f64;
        format!("about {:.0} s to go", mean * left as f64 / self.jobs as f64)
    }

    /// Renews the line of a terminal.
    fn draw(&self) {
        let (done, total, eta) = (self.done, self.total, self.eta());
        let eta = if eta.is_empty() {
            eta
        } else {
            format!(", {eta}")
        };
        if self.begun.elapsed() >= EVERY && !self.quiet {
            output::progress(done, total, format!("{done} of {total} trials{eta}"));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        output::clear_bar();
    }
}

impl Observer for Progress {
    fn hear(&mut self, event: &ProgressEvent) {
        match event {
            ProgressEvent::RoundBegun {
                trials,
                slots,
                later,
            } => {
                self.total += *trials as u64;
                self.later = *later as u64;
                self.jobs = *slots as u64;
                self.rounds += 1;
            }
            ProgressEvent::RoundEnded => {
                // What is between rounds may tell lines of its own.
                output::clear_bar();
                return;
            }
            ProgressEvent::Skipped(trials) => {
                self.total = self.total.saturating_sub(*trials as u64);
            }
            ProgressEvent::Ended {
                what, trial, wall, ..
            } => {
                self.done += 1;
                self.trial_wall += *wall;
                let failed = trial.outcome.status != Status::Done;
                let due = !std::io::stderr().is_terminal() && self.told.elapsed() >= EVERY;
                if !self.quiet && (failed || due || output::is_verbose()) {
                    self.told = Instant::now();
                    note!("{}", self.line_of(what, trial, *wall));
                }
            }
            ProgressEvent::Reused(count) => {
                let trials = counted(*count, "finished trial");
                note!("{trials} reused from the store");
            }
            ProgressEvent::Remark(sentence) => note_folded(&format!("note: {sentence}")),
            ProgressEvent::Caveat { candidate, caveat } => {
                note_folded(&format!("note: {candidate}: {caveat}"));
            }
            ProgressEvent::Excluded { candidate, why } => {
                note_folded(&format!("left out: {candidate}: {why}"));
            }
            _ => {}
        }
        self.draw();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_to_go_is_that_of_all_rounds() {
        let mut progress = Progress::default().quiet(true);
        let begun = |trials, later| ProgressEvent::RoundBegun {
            trials,
            slots: 2,
            later,
        };
        progress.hear(&begun(10, 6));
        assert_eq!(progress.eta(), "", "nothing is known yet");
        (progress.done, progress.trial_wall) = (4, Duration::from_secs(8));
        // 6 trials of this round and 6 of later ones, of 2 s each, two at once.
        assert_eq!(progress.eta(), "about 12 s to go");
        progress.hear(&ProgressEvent::RoundEnded);
        (progress.done, progress.trial_wall) = (10, Duration::from_secs(20));
        progress.hear(&begun(2, 0));
        assert_eq!(progress.eta(), "about 2 s to go");
        progress.rounds_left = 3;
        assert_eq!(progress.eta(), "about 20 s to go", "three rounds of 6");
        progress.hear(&ProgressEvent::Skipped(2));
        progress.rounds_left = 0;
        assert_eq!(progress.eta(), "");
    }
}
