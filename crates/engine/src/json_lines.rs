//! Files of JSON documents, one a line: planned trials, records of trials.

use crate::error::{Error, Outcome};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::Path;
use whichfs_units::{Bytes, MIB};

/// Longest line that is read. A record with its series has less than 1 MB.
const LINE_BYTES: u64 = 64 * MIB;

/// A line that is not taken, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedLine {
    /// File that it stands in, or `-`.
    pub source: String,
    /// Number of the line, from 1.
    pub line: u64,
    /// What is wrong, with the remedy.
    pub why: String,
    /// Whether this machine is not the right one for it, and the line itself may be.
    pub foreign: bool,
}

/// The lines of a file, with their numbers.
pub struct NumberedLines<'r> {
    name: String,
    reader: Box<dyn BufRead + 'r>,
    line: u64,
}

impl NumberedLines<'static> {
    /// The lines of the file at `path`, or of standard input for `-`.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(path: &Path) -> Outcome<NumberedLines<'static>> {
        let name = path.display().to_string();
        if name == "-" {
            return Ok(NumberedLines::new(&name, Box::new(io::stdin().lock())));
        }
        let file = File::open(path)
            .map_err(|e| Error::input(format!("{name}: {e}; name a file of JSON lines")))?;
        Ok(NumberedLines::new(&name, Box::new(BufReader::new(file))))
    }
}

impl<'r> NumberedLines<'r> {
    /// The lines that `reader` gives, of the file called `name`.
    pub fn new(name: &str, reader: Box<dyn BufRead + 'r>) -> NumberedLines<'r> {
        NumberedLines {
            name: name.to_owned(),
            reader,
            line: 0,
        }
    }

    /// The next line that is not empty, without its end.
    ///
    /// # Errors
    /// It cannot be read, or is longer than any document of whichfs.
    pub fn next_line(&mut self) -> Outcome<Option<Vec<u8>>> {
        loop {
            let mut bytes = Vec::new();
            let mut limited = (&mut self.reader).take(LINE_BYTES + 1);
            let read = limited.read_until(b'\n', &mut bytes);
            let read = read.map_err(|e| Error::environment(format!("{}: {e}", self.name)))?;
            if read == 0 {
                return Ok(None);
            }
            self.line += 1;
            if bytes.len() as u64 > LINE_BYTES {
                return Err(Error::input(format!(
                    "{}, line {}: longer than {}; name a file of JSON lines",
                    self.name,
                    self.line,
                    Bytes(LINE_BYTES)
                )));
            }
            let text = bytes.trim_ascii();
            if !text.is_empty() {
                return Ok(Some(text.to_vec()));
            }
        }
    }

    /// The line that was read last, refused for `why`; `foreign` if another machine may take it.
    pub fn refused(&self, why: String, foreign: bool) -> RefusedLine {
        RefusedLine {
            source: self.name.clone(),
            line: self.line,
            why,
            foreign,
        }
    }
}

/// What each document begins with.
#[derive(Deserialize)]
struct Header {
    #[serde(default)]
    document: String,
    #[serde(default)]
    schema: u32,
}

/// What the document in `text` is called; none if it is no document of whichfs.
pub(crate) fn name_of(text: &str) -> Option<String> {
    let header: Header = serde_json::from_str(text).ok()?;
    Some(header.document).filter(|name| !name.is_empty())
}

/// The document called `document` with schema number `schema` that `line` is.
///
/// # Errors
/// It is cut off, another document, or of another schema.
pub fn document<T: DeserializeOwned>(
    line: &[u8],
    document: &str,
    schema: u32,
) -> Result<T, String> {
    let told = |error: serde_json::Error| match error.classify() {
        Category::Eof => {
            "it is cut off: its writer was killed or had no room; run that trial again".to_owned()
        }
        _ => format!("it is no document of `whichfs {document}` ({error})"),
    };
    let header: Header = serde_json::from_slice(line).map_err(told)?;
    if header.document != document {
        return Err(match header.document.as_str() {
            "" => format!("it is no document of `whichfs {document}`"),
            other => format!("it is a document of `whichfs {other}`, not of `whichfs {document}`"),
        });
    }
    if header.schema != schema {
        return Err(format!(
            "it has schema {}, this program knows {schema}: use the version of whichfs that wrote \
             it",
            header.schema
        ));
    }
    serde_json::from_slice(line).map_err(told)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn lines_are_numbered_and_empty_ones_passed_over() {
        let text: &[u8] = b"one\n\n  \ntwo\r\nthree";
        let mut lines = NumberedLines::new("f", Box::new(text));
        let mut found = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            found.push((lines.line, String::from_utf8(line).unwrap()));
        }
        let found: Vec<(u64, &str)> = found.iter().map(|(n, s)| (*n, s.as_str())).collect();
        assert_eq!(found, [(1, "one"), (4, "two"), (5, "three")]);
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let endless = std::io::BufReader::new(std::io::repeat(b'a'));
        let error = NumberedLines::new("f", Box::new(endless)).next_line();
        assert!(
            error
                .unwrap_err()
                .message
                .contains("line 1: longer than 64 MiB")
        );
    }

    #[test]
    fn another_document_is_told_from_a_torn_one() {
        let read =
            |line: &str| document::<serde_json::Value>(line.as_bytes(), "trial run", 1).map(drop);
        read(r#"{"document": "trial run", "schema": 1}"#).unwrap();
        for (line, told) in [
            (r#"{"document": "trial run", "sch"#, "it is cut off"),
            (
                r#"{"document": "study plan", "schema": 1}"#,
                "of `whichfs study plan`",
            ),
            (
                r#"{"document": "trial run", "schema": 2}"#,
                "schema 2, this program knows 1",
            ),
            ("{}", "no document of `whichfs trial run`"),
            ("[1, 2]", "no document"),
            ("id,seed", "no document"),
            ("\u{0}", "no document"),
        ] {
            let error = read(line).unwrap_err();
            assert!(error.contains(told), "{line}: {error}");
        }
    }
}
