//! Progress of a probe on standard error, its state in a file, and Ctrl-C.

use crate::failure::{Failure, Outcome};
use crate::{interrupt, output};
use std::path::{Path, PathBuf};
use whichfs_engine::narrowing::Narrowing;
use whichfs_engine::places::write_whole;
use whichfs_probe::{NextStage, ProbeEvidence, ProbeStep, Progress, Stage};

/// Shows the steps of a probe, keeps its state and ends it at Ctrl-C.
pub struct Watcher {
    /// The last step told where there is no terminal.
    told: &'static str,
    quiet: bool,
    state: Option<PathBuf>,
    /// Decides which stage comes next; none: all in their order.
    pub narrowing: Option<Narrowing>,
    /// Why the state could not be kept; told once at the end.
    pub failed: Option<String>,
}

impl Watcher {
    /// A watcher that keeps the state in `state`; `quiet` shows nothing.
    pub fn new(state: Option<&Path>, quiet: bool) -> Watcher {
        interrupt::flag();
        Watcher {
            told: "",
            quiet,
            state: state.map(Path::to_owned),
            narrowing: None,
            failed: None,
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        output::clear_bar();
    }
}

impl Progress for Watcher {
    fn step(&mut self, step: &ProbeStep) {
        let left = step
            .left
            .map(|left| format!(", about {:.0} s to go", left.as_secs_f64().ceil()))
            .unwrap_or_default();
        let (done, told) = (step.done, format!("{}{left}", step.doing));
        if !self.quiet
            && !output::progress((done * 1000.0) as u64, 1000, told.clone())
            && self.told != step.doing
        {
            note!("{:3.0} % {told}", done * 100.0);
            self.told = step.doing;
        }
    }

    fn next(&mut self, left: &[Stage], state: &ProbeEvidence) -> NextStage {
        let Some(narrowing) = &mut self.narrowing else {
            return NextStage::usual(left);
        };
        let (next, told) = narrowing.next(left, state);
        if !self.quiet {
            note!("{told}");
        }
        next
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
