//! What was done to a card, on disk before each step: an interrupted run tells what it left.

use crate::error::FormatError;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// A line of the journal.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Line {
    /// What will be done.
    Begin {
        device: String,
        id: String,
        steps: Vec<String>,
    },
    /// A step begins, counted from 0.
    Step { number: usize },
    /// A trial begins, in the step that is under way.
    Trial { what: String },
    /// The step `number` succeeded.
    Done { number: usize },
    /// All is done, or it was given up with a reason.
    End { reason: Option<String> },
}

/// A journal that is being written.
#[derive(Debug)]
pub struct FormatJournal {
    path: PathBuf,
    file: File,
    steps: Vec<String>,
    done: usize,
    torn: bool,
}

/// What a run left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterruptedFormat {
    /// The device as it was named.
    pub device: String,
    /// What the device is called by.
    pub id: String,
    /// All steps.
    pub steps: Vec<String>,
    /// How many were done.
    pub done: usize,
    /// A step had begun that was not done.
    pub torn: bool,
    /// The trial that began last, if trials were run.
    pub trial: Option<String>,
    /// It came to its end.
    pub ended: bool,
    /// Why it was given up, if it was.
    pub reason: Option<String>,
}

impl InterruptedFormat {
    /// How it ended and the state of the card, if it did not come to a good end; of trials that
    /// were given up with a reason nothing, because that was told and only data of trials are left.
    pub fn told(&self) -> Option<String> {
        match &self.reason {
            None if self.ended => None,
            None => Some(format!("was interrupted: {}", self.state())),
            Some(_) if self.trial.is_some() => None,
            Some(_) if self.done == 0 && !self.torn => None,
            Some(reason) => Some(format!(
                "failed: {}; the reason was: {reason}",
                self.state()
            )),
        }
    }

    /// The state of the card in a sentence.
    pub fn state(&self) -> String {
        if self.ended && self.done == self.steps.len() {
            return "all steps were done".to_owned();
        }
        let done = match self.done {
            0 => "nothing was finished".to_owned(),
            done => format!(
                "done: {}",
                self.steps[..done.min(self.steps.len())].join("; ")
            ),
        };
        match self.steps.get(self.done) {
            Some(step) if self.torn => {
                let trial = self.trial.as_ref();
                let on_it = trial.map_or(String::new(), |trial| format!(" (on it now: {trial})"));
                format!("{done}; half done: {step}{on_it}; format it again before use")
            }
            Some(step) if self.done == 0 => {
                format!("{done}; the first step, {step}, did not begin: the card is as it was")
            }
            Some(step) => format!("{done}; not begun: {step}; format it again before use"),
            None => format!("{done}; whether all is well was not checked"),
        }
    }

    fn of(text: &str) -> Option<InterruptedFormat> {
        let mut left: Option<InterruptedFormat> = None;
        // A line that is cut off at the end was not acted upon.
        for line in text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
        {
            match (line, &mut left) {
                (Line::Begin { device, id, steps }, _) => {
                    left = Some(InterruptedFormat {
                        device,
                        id,
                        steps,
                        done: 0,
                        torn: false,
                        trial: None,
                        ended: false,
                        reason: None,
                    });
                }
                (Line::Step { number }, Some(left)) => {
                    (left.done, left.torn, left.trial) = (number, true, None);
                }
                (Line::Trial { what }, Some(left)) => left.trial = Some(what),
                (Line::Done { number }, Some(left)) => (left.done, left.torn) = (number + 1, false),
                (Line::End { reason }, Some(left)) => (left.ended, left.reason) = (true, reason),
                (_, None) => {}
            }
        }
        left
    }

    /// What the last run on the device called `id` left; `None` without one.
    pub fn read(directory: &Path, id: &str) -> Option<InterruptedFormat> {
        let text = std::fs::read_to_string(place(directory, id)).ok()?;
        InterruptedFormat::of(&text).filter(|left| left.id == id)
    }
}

/// File of the journal of the device called `id`.
fn place(directory: &Path, id: &str) -> PathBuf {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let name: String = id.chars().map(plain).collect();
    let from = name.len().saturating_sub(100);
    directory.join(format!("{}.journal", &name[from..]))
}

impl FormatJournal {
    /// Begins a journal of `steps` in `directory`.
    ///
    /// # Errors
    /// If it cannot be written: then nothing is done.
    pub fn begin(
        directory: &Path,
        device: &str,
        id: &str,
        steps: &[String],
    ) -> Result<FormatJournal, FormatError> {
        let path = place(directory, id);
        let made = std::fs::create_dir_all(directory).and_then(|()| File::create(&path));
        let file = made.map_err(|error| cannot(&path, &error))?;
        let mut journal = FormatJournal {
            path,
            file,
            steps: steps.to_vec(),
            done: 0,
            torn: false,
        };
        journal.write(&Line::Begin {
            device: device.to_owned(),
            id: id.to_owned(),
            steps: steps.to_vec(),
        })?;
        Ok(journal)
    }

    /// A step begins.
    ///
    /// # Errors
    /// If it cannot be written: then nothing is done.
    pub fn step(&mut self, number: usize) -> Result<(), FormatError> {
        self.torn = true;
        self.write(&Line::Step { number })
    }

    /// The trial `what` begins.
    ///
    /// # Errors
    /// As [`FormatJournal::step`].
    pub fn trial(&mut self, what: &str) -> Result<(), FormatError> {
        let what = what.to_owned();
        self.write(&Line::Trial { what })
    }

    /// It is done.
    ///
    /// # Errors
    /// As [`FormatJournal::step`].
    pub fn done(&mut self, number: usize) -> Result<(), FormatError> {
        (self.done, self.torn) = (number + 1, false);
        self.write(&Line::Done { number })
    }

    /// All is done, or given up.
    ///
    /// # Errors
    /// As [`FormatJournal::step`].
    pub fn end(&mut self, reason: Option<String>) -> Result<(), FormatError> {
        self.write(&Line::End { reason })
    }

    /// That the user stopped it here.
    pub(crate) fn interrupted(&self) -> FormatError {
        FormatError::Interrupted {
            done: self.done,
            all: self.steps.len(),
            state: self.left().state(),
        }
    }

    /// That it was given up here because of `error`, with the state of the card.
    pub(crate) fn given_up(&mut self, error: FormatError) -> FormatError {
        // The error matters more than a journal that cannot be ended: without an end the next run
        // tells of an interruption.
        let _ = self.end(Some(error.to_string()));
        let state = self.left().state();
        let error = Box::new(error);
        FormatError::GivenUp { error, state }
    }

    /// What is left if nothing more is done.
    fn left(&self) -> InterruptedFormat {
        InterruptedFormat {
            device: String::new(),
            id: String::new(),
            steps: self.steps.clone(),
            done: self.done,
            torn: self.torn,
            trial: None,
            ended: false,
            reason: None,
        }
    }

    fn write(&mut self, line: &Line) -> Result<(), FormatError> {
        let text = serde_json::to_string(line).unwrap_or_default();
        let written = writeln!(self.file, "{text}").and_then(|()| self.file.sync_all());
        written.map_err(|error| cannot(&self.path, &error))
    }
}

fn cannot(path: &Path, error: &std::io::Error) -> FormatError {
    FormatError::File {
        path: path.display().to_string(),
        reason: error.to_string(),
        remedy: "make room there, or set XDG_DATA_HOME: without a journal nothing is written",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_state_of_the_card_is_told_from_every_line_on() {
        let home = tempfile::tempdir().unwrap();
        let steps = ["table".to_owned(), "ext4 on root".to_owned()];
        let mut journal = FormatJournal::begin(home.path(), "/dev/sdx", "cid/1", &steps).unwrap();
        for number in 0..2 {
            journal.step(number).unwrap();
            journal.done(number).unwrap();
        }
        journal.end(None).unwrap();
        let path = place(home.path(), "cid/1");
        let text = std::fs::read_to_string(&path).unwrap();
        // A kill or a power cut leaves any beginning of it.
        for end in 0..=text.len() {
            std::fs::write(&path, &text[..end]).unwrap();
            let lines = text[..end].matches('\n').count();
            let state = InterruptedFormat::read(home.path(), "cid/1").map(|left| left.state());
            let whole = end > 0 && text.as_bytes().get(end) == Some(&b'\n');
            let expected = match lines + usize::from(whole) {
                0 => None,
                1 => Some("the card is as it was"),
                2 => Some("half done: table"),
                3 => Some("not begun: ext4 on root"),
                4 => Some("half done: ext4 on root"),
                5 => Some("done: table; ext4 on root"),
                _ => Some("all steps were done"),
            };
            match expected {
                None => assert_eq!(state, None),
                Some(words) => assert!(state.as_ref().unwrap().contains(words), "{end} {state:?}"),
            }
        }
        assert_eq!(
            InterruptedFormat::read(home.path(), "cid 1"),
            None,
            "another device of that file name"
        );
    }

    #[test]
    fn the_trial_that_was_under_way_is_named() {
        let home = tempfile::tempdir().unwrap();
        let steps = ["table".to_owned(), "trials of mine".to_owned()];
        let mut journal = FormatJournal::begin(home.path(), "/dev/sdx", "cid", &steps).unwrap();
        let state = || InterruptedFormat::read(home.path(), "cid").unwrap().state();
        for (span, trial) in [(0, "ext4, seed 1"), (0, "f2fs, seed 1")] {
            journal.step(span).unwrap();
            assert!(state().contains("half done: table;"), "{}", state());
            journal.done(span).unwrap();
            journal.step(1).unwrap();
            journal.trial(trial).unwrap();
            let told = state();
            assert!(told.contains(&format!("half done: trials of mine (on it now: {trial})")));
            assert!(told.contains("format it again before use"), "{told}");
        }
        journal.done(1).unwrap();
        journal.end(None).unwrap();
        assert_eq!(state(), "all steps were done");
    }

    #[test]
    fn without_a_place_for_it_nothing_is_done() {
        let error = FormatJournal::begin(Path::new("/proc/none"), "d", "i", &[]).unwrap_err();
        assert!(error.to_string().contains("XDG_DATA_HOME"), "{error}");
    }
}
