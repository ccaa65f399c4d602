//! Progress of a probe on standard error, its state in a file, and Ctrl-C.

use crate::failure::{Failure, Outcome};
use crate::interrupt;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use whichfs_engine::places::write_whole;
use whichfs_probe::{ProbeEvidence, ProbeStep, Progress};

/// Shows the steps of a probe, keeps its state and ends it at Ctrl-C.
pub struct Watcher {
    bar: Option<ProgressBar>,
    /// The last step told where there is no terminal.
    told: &'static str,
    quiet: bool,
    state: Option<PathBuf>,
    /// Why the state could not be kept; told once at the end.
    pub failed: Option<String>,
}

impl Watcher {
    /// A watcher that keeps the state in `state`; `quiet` shows nothing.
    pub fn new(state: Option<&Path>, quiet: bool) -> Watcher {
        let bar = (std::io::stderr().is_terminal() && !quiet).then(|| {
            let bar = ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::stderr());
            // The template is a constant; a wrong one falls back to the plain style.
            let style = ProgressStyle::with_template("{bar:30} {percent:>3} % {wide_msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        interrupt::flag();
        Watcher {
            bar,
            told: "",
            quiet,
            state: state.map(Path::to_owned),
            failed: None,
        }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Progress for Watcher {
    fn step(&mut self, step: &ProbeStep) {
        let left = step
            .left
            .map(|left| format!(", about {:.0} s to go", left.as_secs_f64().ceil()))
            .unwrap_or_default();
        match &self.bar {
            Some(bar) => {
                bar.set_position((step.done * 1000.0) as u64);
                bar.set_message(format!("{}{left}", step.doing));
            }
            None if !self.quiet && self.told != step.doing => {
                note!("{:3.0} % {}{left}", step.done * 100.0, step.doing);
                self.told = step.doing;
            }
            None => {}
        }
    }

    fn checkpoint(&mut self, state: &ProbeEvidence) {
        if let Some(path) = &self.state
            && let Err(error) = keep(path, state)
        {
            self.failed = Some(error.message);
        }
    }

    fn stop(&mut self) -> bool {
        interrupt::asked()
    }
}

fn keep(path: &Path, state: &ProbeEvidence) -> Outcome {
    let text = serde_json::to_string(state).map_err(Failure::environment)?;
    write_whole(path, text.as_bytes())
}
