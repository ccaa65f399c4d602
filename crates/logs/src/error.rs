//! Why a log cannot be read.

use crate::text::excerpt;

/// What is wrong with a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Problem {
    /// Nothing in the file is a measurement in a form that is known here.
    Foreign,
    /// The form is known, but there is no measurement in the file.
    Empty,
    /// The file ends in the middle of a line or value.
    Truncated,
    /// A line begins as a measurement and does not go on as one.
    Malformed,
    /// A figure has a unit of another program, or figures of a line contradict each other.
    MixedUnits,
    /// A figure that no card can have.
    Absurd,
    /// A section is there twice and its figures differ.
    Duplicate,
    /// Measurements of several cards, or with several erase sizes, are in one log.
    MixedCards,
    /// A line that means nothing without the command that printed it.
    NoContext,
    /// The run that was asked for is not in the file.
    NoSuchRun,
    /// The file is larger than any log.
    TooLarge,
}

impl Problem {
    fn words(self) -> &'static str {
        match self {
            Problem::Foreign => "not a log that whichfs can read",
            Problem::Empty => "no measurement in the log",
            Problem::Truncated => "the log is cut off",
            Problem::Malformed => "the line is not complete or not as the program prints it",
            Problem::MixedUnits => "units are mixed",
            Problem::Absurd => "the figure is absurd",
            Problem::Duplicate => "the section is there twice with other figures",
            Problem::MixedCards => "the log holds several cards or erase sizes",
            Problem::NoContext => "the line does not say which test it belongs to",
            Problem::NoSuchRun => "no such run in the file",
            Problem::TooLarge => "the file is too large",
        }
    }
}

/// A log that is refused: where, what was found, what was expected, what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{file}{}: {}: found {found}, expected {expected}; {remedy}",
    place(*line),
    problem.words()
)]
pub struct LogError {
    /// The file's name as the caller gave it.
    pub file: String,
    /// Line, counted from 1, where one is to blame.
    pub line: Option<usize>,
    /// The kind of problem.
    pub problem: Problem,
    /// What the file has there.
    pub found: String,
    /// What would have been right.
    pub expected: String,
    /// What the user can do.
    pub remedy: String,
}

impl LogError {
    pub(super) fn new(problem: Problem, line: Option<usize>, found: &str) -> LogError {
        LogError {
            file: String::new(),
            line,
            problem,
            found: format!("`{}`", excerpt(found, 72)),
            expected: String::new(),
            remedy: String::new(),
        }
    }

    pub(super) fn expected(mut self, expected: impl Into<String>) -> LogError {
        self.expected = expected.into();
        self
    }

    pub(super) fn remedy(mut self, remedy: impl Into<String>) -> LogError {
        self.remedy = remedy.into();
        self
    }

    /// What is wrong and what was expected, without place and quotation.
    pub(super) fn reason(&self) -> String {
        format!("{}; expected {}", self.problem.words(), self.expected)
    }

    /// Replaces what was found by words that are no quotation.
    pub(super) fn found(mut self, found: impl Into<String>) -> LogError {
        self.found = found.into();
        self
    }

    pub(super) fn in_file(mut self, file: &str) -> LogError {
        self.file = excerpt(file, 200);
        self
    }
}

fn place(line: Option<usize>) -> String {
    line.map_or(String::new(), |line| format!(":{line}"))
}
