//! Faults of a data file, each with its line.

use toml::Spanned;
use whichfs_units::{unknown_key, wanted};

/// What is wrong in a data file, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {key}: {found}; {}", wanted(.expected))]
pub struct FileError {
    /// File as the caller named it.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Key that is wrong.
    pub key: String,
    /// What was found.
    pub found: String,
    /// What is legal there.
    pub expected: String,
}

/// Turns byte offsets of a file into lines.
#[derive(Clone, Copy, Debug)]
pub struct Position<'a> {
    /// The file, as messages name it.
    pub file: &'a str,
    /// Its whole text.
    pub text: &'a str,
}

impl Position<'_> {
    /// Reads the file; `shape` says in words what it must hold.
    ///
    /// # Errors
    /// If the text is no TOML, or has not the shape of `T`: with the line.
    pub fn read<T: serde::de::DeserializeOwned>(&self, shape: &str) -> Result<T, FileError> {
        toml::from_str(self.text).map_err(|error| {
            let message = error.message().replace('\n', " ");
            let (found, expected) =
                unknown_key(&message).unwrap_or_else(|| (message, shape.to_owned()));
            FileError {
                file: self.file.to_owned(),
                line: self.line(error.span().map_or(0, |span| span.start)),
                key: "the file".to_owned(),
                found,
                expected,
            }
        })
    }

    /// File and line of `at`: `mine.toml:12`.
    pub fn of<T>(&self, at: &Spanned<T>) -> String {
        format!("{}:{}", self.file, self.line(at.span().start))
    }

    fn line(&self, offset: usize) -> usize {
        let before = self.text.bytes().take(offset);
        1 + before.filter(|&byte| byte == b'\n').count()
    }

    /// The error that `key` at `at` is `found`, where `expected` is legal.
    pub fn error<T>(
        &self,
        at: &Spanned<T>,
        key: &str,
        found: impl Into<String>,
        expected: &str,
    ) -> FileError {
        FileError {
            file: self.file.to_owned(),
            line: self.line(at.span().start),
            key: key.to_owned(),
            found: found.into(),
            expected: expected.to_owned(),
        }
    }

    /// The error that `key`, which stands at no one place, is `found`.
    pub fn whole(&self, key: &str, found: &str, expected: &str) -> FileError {
        let table = self.text.find(&format!("[{key}]"));
        FileError {
            file: self.file.to_owned(),
            line: self.line(table.unwrap_or(0)),
            key: key.to_owned(),
            found: found.to_owned(),
            expected: expected.to_owned(),
        }
    }

    /// The text, which must not be empty.
    ///
    /// # Errors
    /// If it is empty or blank: with the line of `key`.
    pub fn filled(&self, key: &str, text: &Spanned<String>) -> Result<String, FileError> {
        if text.get_ref().trim().is_empty() {
            return Err(self.error(text, key, "an empty text", "some words"));
        }
        Ok(text.get_ref().clone())
    }
}
