//! Programs of this machine: found, run, and told of where they fail.

use crate::error::FormatError;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use whichfs_units::shell_word;

/// Where tools are looked for, whoever runs the program.
pub const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Lines of a program's words that are told.
const LINES: usize = 4;

/// Where `tool` is.
pub(crate) fn find(tool: &str) -> Option<PathBuf> {
    let mut all = PATH.split(':').map(|dir| Path::new(dir).join(tool));
    all.find(|path| path.is_file())
}

/// Checks that `tool` is there.
pub(crate) fn require(tool: &str, purpose: &str, package: &str) -> Result<(), FormatError> {
    match find(tool) {
        Some(_) => Ok(()),
        None => Err(FormatError::Missing {
            tool: tool.to_owned(),
            purpose: purpose.to_owned(),
            package: package.to_owned(),
        }),
    }
}

/// A command as a person would type it.
pub(crate) fn shown(argv: &[String]) -> String {
    let words: Vec<String> = argv.iter().map(|word| shell_word(word)).collect();
    words.join(" ")
}

/// Runs `argv` with `stdin`; what it wrote to its standard output. It is in a process group of its
/// own: a signal from the terminal does not stop it halfway.
///
/// # Errors
/// That it cannot be run or failed, with its last words.
pub(crate) fn run(argv: &[String], stdin: &str) -> Result<String, FormatError> {
    let failed = |reason: String| FormatError::Failed {
        command: shown(argv),
        reason,
    };
    let (program, arguments) = argv
        .split_first()
        .ok_or_else(|| failed("no command".into()))?;
    let mut child = Command::new(program)
        .args(arguments)
        .env("PATH", PATH)
        .env("LC_ALL", "C.UTF-8")
        // What speaks to a bus or asks on the terminal has nobody to speak to.
        .env_remove("DISPLAY")
        .stdin(if stdin.is_empty() {
            Stdio::null()
        } else {
            Stdio::piped()
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    if let Some(mut pipe) = child.stdin.take() {
        // One that reads nothing says itself why.
        let _ = pipe.write_all(stdin.as_bytes());
    }
    let output = child
        .wait_with_output()
        .map_err(|error| failed(error.to_string()))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    let said = format!("{}\n{}", text(&output.stdout), text(&output.stderr));
    let lines: Vec<&str> = said
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let last = &lines[lines.len().saturating_sub(LINES)..];
    Err(failed(format!("{}: {}", output.status, last.join(" / "))))
}

/// Words as an argument list.
pub(crate) fn words(text: &[&str]) -> Vec<String> {
    text.iter().map(|word| (*word).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_program_that_fails_is_told_with_its_last_words() {
        let error = run(&words(&["sh", "-c", "echo no room >&2; exit 3"]), "").unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("no room") && text.contains("exit status: 3"),
            "{text}"
        );
        assert!(run(&words(&["no-such-program"]), "").is_err());
        assert_eq!(run(&words(&["cat"]), "in").unwrap(), "in");
        let missing = require("no-such-program", "does it", "some-package").unwrap_err();
        assert!(missing.to_string().contains("apt install some-package"));
    }
}
