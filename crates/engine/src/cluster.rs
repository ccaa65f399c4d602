//! Trials of a study on other machines: the Python package gives them to Dask.

use crate::error::{Error, ErrorKind, Outcome};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The module that runs trials on a cluster, and imports their records.
const MODULE: &str = "whichfs.cluster";
/// How to get it.
const REMEDY: &str = "pip install 'whichfs[cluster]' in the Python that WHICHFS_PYTHON names \
                      (python3 by default)";
/// How often an interruption is looked for.
const TURN: Duration = Duration::from_millis(50);
/// Time for an interrupted module to import the records that it has.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs the module with `words`: a study, `--cluster WHERE` and options of `study plan`. `python`
/// is the interpreter, `program` the file of whichfs that the module asks. When it ends well, the
/// store has the records of all trials.
///
/// # Errors
/// There is no such Python, or it lacks the package; what the module said on standard error, with
/// the kind of its exit status; the caller's interruption, which is passed on first.
pub fn run_trials(
    python: &OsStr,
    program: &Path,
    words: &[OsString],
    interrupted: &AtomicBool,
) -> Outcome {
    run(python, program, words, (interrupted, PATIENCE))
}

/// As [`run_trials`]; an interrupted module has so long to end by itself.
fn run(
    python: &OsStr,
    program: &Path,
    words: &[OsString],
    (interrupted, patience): (&AtomicBool, Duration),
) -> Outcome {
    let find = Command::new(python)
        .args(["-c", &format!("import {MODULE}")])
        .env("WHICHFS_PROGRAM", program)
        .stdin(Stdio::null())
        .output();
    let name = python.display();
    let found = find.map_err(|e| Error::environment(format!("{name}: {e}; {REMEDY}")))?;
    if !found.status.success() {
        let said = String::from_utf8_lossy(&found.stderr);
        let last = said.lines().last().unwrap_or("it ended").to_owned();
        return Err(Error::environment(format!(
            "{name} cannot load the package whichfs: {last}; {REMEDY}"
        )));
    }
    let child = Command::new(python)
        .args(["-m", MODULE])
        .args(words)
        .env("WHICHFS_PROGRAM", program)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn();
    let failed = |e: io::Error| Error::environment(format!("{name}: {e}; {REMEDY}"));
    let mut child = child.map_err(failed)?;
    judge(wait(&mut child, interrupted, patience).map_err(failed)?)
}

/// How `child` ended, which an interruption interrupts too: by SIGINT, so that it can say what is
/// kept, and after `patience` by SIGTERM. A process that a script began in the background ignores
/// SIGINT, and so do its children.
fn wait(child: &mut Child, interrupted: &AtomicBool, patience: Duration) -> io::Result<ExitStatus> {
    let mut told = None;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        let signal = match told {
            None if interrupted.load(Ordering::Relaxed) => {
                told = Some(Instant::now());
                Some(Signal::INT)
            }
            Some(since) if since.elapsed() > patience => Some(Signal::TERM),
            _ => None,
        };
        if let Some(signal) = signal {
            // It has ended meanwhile, or hears of it.
            let _ = kill_process(Pid::from_child(child), signal);
        }
        std::thread::sleep(TURN);
    }
}

/// The error of a module that ended with `status`; it has said why.
fn judge(status: ExitStatus) -> Outcome {
    let kind = match status.code() {
        Some(0) => return Ok(()),
        Some(1) => ErrorKind::No,
        Some(2) => ErrorKind::Input,
        Some(4) => ErrorKind::Trial,
        Some(130) => ErrorKind::Interrupted,
        // It was interrupted before it could say so.
        None if matches!(status.signal(), Some(libc::SIGINT | libc::SIGTERM)) => {
            ErrorKind::Interrupted
        }
        _ => ErrorKind::Environment,
    };
    Err(Error::new(
        kind,
        "not all trials ran on the cluster, for the reason above; finished ones are kept: repeat \
         the command",
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    /// A Python that does `body`, a shell script, when it is to run the module.
    fn run_with(body: &str, interrupted: bool) -> Outcome {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("python");
        std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let flag = AtomicBool::new(interrupted);
        let (python, program) = (path.as_os_str(), Path::new("whichfs"));
        let patience = Duration::from_millis(300);
        run(python, program, &["s".into()], (&flag, patience))
    }

    #[test]
    fn a_python_that_is_missing_or_lacks_the_package_is_told_with_the_remedy() {
        let flag = AtomicBool::new(false);
        let none = run_trials(OsStr::new("/none/python"), Path::new("w"), &[], &flag);
        let lacking = run_with("echo \"No module named 'whichfs'\" >&2; exit 1", false);
        for (error, told) in [
            (none, "No such file"),
            (lacking, "No module named 'whichfs'"),
        ] {
            let error = error.unwrap_err();
            assert_eq!(error.kind, ErrorKind::Environment);
            assert!(error.message.contains(told), "{error}");
            assert!(
                error.remedy().contains("pip install 'whichfs[cluster]'"),
                "{error}"
            );
        }
    }

    #[test]
    fn the_exit_status_of_the_module_is_the_kind_of_the_error() {
        let kind = |status: u8| {
            let module = format!("[ \"$1\" = -c ] && exit 0; exit {status}");
            run_with(&module, false).map_err(|error| error.kind)
        };
        assert_eq!(kind(0), Ok(()));
        assert_eq!(kind(2), Err(ErrorKind::Input));
        assert_eq!(kind(3), Err(ErrorKind::Environment));
        assert_eq!(kind(130), Err(ErrorKind::Interrupted));
    }

    #[test]
    fn an_interruption_reaches_the_module() {
        // A shell that began with SIGINT ignored cannot take it again: then SIGTERM ends it.
        for trap in ["trap 'exit 130' INT", "trap '' INT"] {
            let module = format!("[ \"$1\" = -c ] && exit 0; {trap}; while :; do sleep 0.05; done");
            let error = run_with(&module, true).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Interrupted, "{trap}");
        }
    }
}
