//! The agent as it is on a board: attends to a session, joins a connection to it, does a job.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use whichfs_agent::{hear_panics, run_standalone};
use whichfs_remote::{Refusal, attend, begin_to_attend, link};

/// Seconds without anybody after which a session ends by itself.
const PATIENCE_S: u64 = 600;

fn main() -> ExitCode {
    hear_panics();
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let words: Vec<&str> = arguments.iter().filter_map(|word| word.to_str()).collect();
    match words[..] {
        ["--watch", disk, job] => run_standalone(disk, job, None),
        ["--watch", disk, job, "--confine", how] => run_standalone(disk, job, Some((how, None))),
        ["--attend", directory, sha256] => begin(directory, sha256, PATIENCE_S),
        ["--attend", directory, sha256, seconds] => match seconds.parse() {
            Ok(seconds) => begin(directory, sha256, seconds),
            Err(_) => usage(),
        },
        ["--attend-here", directory, seconds] => match seconds.parse() {
            Ok(seconds) => ended(own_path().and_then(|program| {
                attend(&program, Path::new(directory), Duration::from_secs(seconds))
            })),
            Err(_) => usage(),
        },
        ["--link", directory] => match link(Path::new(directory)) {
            Ok(()) => ExitCode::SUCCESS,
            // As the script that calls it says: gone.
            Err(_) => ExitCode::from(7),
        },
        _ => usage(),
    }
}

fn begin(directory: &str, sha256: &str, seconds: u64) -> ExitCode {
    let patience = Duration::from_secs(seconds);
    ended(
        own_path()
            .and_then(|program| begin_to_attend(&program, Path::new(directory), sha256, patience)),
    )
}

fn own_path() -> Result<std::path::PathBuf, Refusal> {
    std::env::current_exe().map_err(|error| Refusal::environment(format!("/proc: {error}")))
}

fn ended(result: Result<(), Refusal>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(refusal) => {
            eprintln!("{refusal}");
            ExitCode::from(5)
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("usage: whichfs-agent --watch DISK JOB.json|-");
    eprintln!("       whichfs-agent --attend DIRECTORY SHA256 [SECONDS]");
    eprintln!("       whichfs-agent --link DIRECTORY");
    eprintln!("Does a job, or what whichfs asks by ssh (study run --on ssh://…).");
    ExitCode::from(2)
}
