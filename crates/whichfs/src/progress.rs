//! Progress on standard error: bars on a terminal, plain lines elsewhere.

use crate::output::note_folded;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};
use whichfs_engine::observer::{Observer, ProgressEvent};
use whichfs_trial::Status;
use whichfs_units::{counted, printable};

/// Shows what trials are doing.
pub struct Progress {
    bars: Option<Bars>,
    begun: Instant,
    done: u64,
    total: u64,
    jobs: u64,
    trial_wall: Duration,
    quiet: bool,
    /// Trials are those of a real device, whose time is ours.
    real: bool,
}

struct Bars {
    all: MultiProgress,
    total: ProgressBar,
    workers: Vec<ProgressBar>,
    names: Vec<String>,
}

impl Progress {
    /// Progress of `total` trials on `jobs` workers; `quiet` shows nothing.
    pub fn new(total: usize, jobs: usize, quiet: bool) -> Progress {
        let bars = (std::io::stderr().is_terminal() && !quiet).then(|| Bars::new(total, jobs));
        Progress {
            bars,
            begun: Instant::now(),
            done: 0,
            total: total as u64,
            jobs: jobs as u64,
            trial_wall: Duration::ZERO,
            quiet,
            real: false,
        }
    }

    /// Says lines that stay, also while the trials run.
    pub fn sayer(&self) -> impl Fn(&str) + Sync + use<> {
        let bars = self.bars.as_ref().map(|bars| bars.all.clone());
        move |line: &str| match &bars {
            Some(bars) => bars.suspend(|| note!("{line}")),
            None => note!("{line}"),
        }
    }

    /// The same for trials on a real device.
    pub fn here(self) -> Progress {
        Progress { real: true, ..self }
    }

    /// So many of the trials need not be run.
    fn skip(&mut self, trials: usize) {
        self.total = self.total.saturating_sub(trials as u64);
        if let Some(bars) = &self.bars {
            bars.total.set_length(self.total);
        }
    }

    /// A line that stays.
    pub fn say(&self, line: &str) {
        match &self.bars {
            _ if self.quiet => {}
            Some(bars) => bars.all.suspend(|| note!("{line}")),
            None => note!("{line}"),
        }
    }

    fn line_of(&self, what: &str, trial: &whichfs_trial::Trial, wall: Duration) -> String {
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
        let place = format!("[{}/{}]", self.done, self.total);
        let eta = if self.bars.is_none() {
            self.eta()
        } else {
            String::new()
        };
        format!("{place} {what}: {ended} {eta}")
            .trim_end()
            .to_owned()
    }

    /// Time to go, from the mean of the trials so far.
    fn eta(&self) -> String {
        if self.done == 0 || self.done >= self.total {
            return String::new();
        }
        let mean = self.trial_wall.as_secs_f64() / self.done as f64;
        let left = mean * (self.total - self.done) as f64 / self.jobs as f64;
        format!("(about {left:.0} s to go)")
    }

    /// Takes the bars away.
    pub fn finish(self) -> Duration {
        if let Some(bars) = &self.bars {
            let _ = bars.all.clear();
        }
        self.begun.elapsed()
    }
}

impl Observer for Progress {
    fn hear(&mut self, news: &ProgressEvent) {
        match news {
            ProgressEvent::Ended {
                what, trial, wall, ..
            } => {
                self.done += 1;
                self.trial_wall += *wall;
                self.say(&self.line_of(what, trial, *wall));
            }
            ProgressEvent::Skipped(trials) => self.skip(*trials),
            ProgressEvent::Remark(sentence) => note_folded(&format!("note: {sentence}")),
            _ => {}
        }
        let eta = self.eta();
        let Some(bars) = &mut self.bars else {
            return;
        };
        match news {
            ProgressEvent::Begun { worker, what } => {
                bars.names[*worker] = printable(what);
                bars.workers[*worker].set_message(printable(what));
            }
            ProgressEvent::Phase { worker, phase, at } => {
                let what = &bars.names[*worker];
                let clock = if self.real { "" } else { " of virtual time" };
                bars.workers[*worker]
                    .set_message(printable(&format!("{what}: {phase}, at {at}{clock}")));
            }
            ProgressEvent::Ended { worker, .. } => {
                bars.workers[*worker].set_message("");
                bars.total.set_position(self.done);
                bars.total.set_message(eta);
            }
            _ => {}
        }
    }
}

/// Progress of a choice: one [`Progress`] a round, and what is said between rounds.
#[derive(Default)]
pub struct Rounds {
    round: Option<Progress>,
    /// No lines of trials.
    quiet: bool,
    /// Trials are those of a real device.
    real: bool,
}

impl Rounds {
    /// The same without lines of trials.
    pub fn quiet() -> Rounds {
        Rounds {
            quiet: true,
            ..Rounds::default()
        }
    }

    /// The same for trials on a real device; `quiet` tells no lines of trials.
    pub fn on_device(quiet: bool) -> Rounds {
        Rounds {
            quiet,
            real: true,
            round: None,
        }
    }
}

impl Observer for Rounds {
    fn hear(&mut self, event: &ProgressEvent) {
        match event {
            ProgressEvent::RoundBegun { trials, slots } => {
                let round = Progress::new(*trials, *slots, self.quiet);
                self.round = Some(if self.real { round.here() } else { round });
            }
            ProgressEvent::RoundEnded => drop(self.round.take().map(Progress::finish)),
            ProgressEvent::Reused(count) => {
                note!(
                    "{} reused from the store",
                    counted(*count, "finished trial")
                );
            }
            ProgressEvent::Remark(sentence) => note_folded(&format!("note: {sentence}")),
            ProgressEvent::Caveat { candidate, caveat } => {
                note_folded(&format!("note: {candidate}: {caveat}"));
            }
            ProgressEvent::Excluded { candidate, why } => {
                note_folded(&format!("left out: {candidate}: {why}"));
            }
            _ => {
                if let Some(round) = &mut self.round {
                    round.hear(event);
                }
            }
        }
    }
}

impl Bars {
    fn new(total: usize, jobs: usize) -> Bars {
        let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        // The templates are constants; a wrong one falls back to the plain style.
        let style = |text| {
            ProgressStyle::with_template(text).unwrap_or_else(|_| ProgressStyle::default_bar())
        };
        let bar = all.add(ProgressBar::new(total as u64));
        bar.set_style(style("{wide_bar} {pos}/{len} trials, {elapsed} {msg}"));
        let workers = (0..jobs)
            .map(|_| {
                let worker = all.add(ProgressBar::new_spinner());
                worker.set_style(style("  {spinner} {wide_msg}"));
                worker.enable_steady_tick(Duration::from_millis(200));
                worker
            })
            .collect();
        Bars {
            all,
            total: bar,
            workers,
            names: vec![String::new(); jobs],
        }
    }
}
