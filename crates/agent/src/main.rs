//! The agent as a program: PID 1 of a guest, or `whichfs-agent --watch DISK JOB` on any machine.

use std::ffi::OsString;
use std::panic;
use std::process::ExitCode;
use whichfs_agent::{
    AgentError, ControlDisk, guarded, hear_panics, power_off, result_to_events, run_standalone,
    set_up_guest,
};

fn main() -> ExitCode {
    hear_panics();
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let words: Vec<&str> = arguments.iter().filter_map(|word| word.to_str()).collect();
    match words[..] {
        ["--watch", disk, job] if words.len() == arguments.len() => run_standalone(disk, job, None),
        ["--watch", disk, job, "--confine", how] if words.len() == arguments.len() => {
            run_standalone(disk, job, Some((how, None)))
        }
        ["--watch", disk, job, "--confine", how, user] if words.len() == arguments.len() => {
            run_standalone(disk, job, Some((how, Some(user))))
        }
        // A kernel may give its first process words of its own command line.
        _ if std::process::id() == 1 => guest(),
        _ => {
            eprintln!("usage: whichfs-agent --watch DISK JOB.json|-");
            eprintln!(
                "Does the steps of the job; events go to standard output as JSON lines, with"
            );
            eprintln!("the time and what DISK (mmcblk0, for example) has done by then.");
            ExitCode::from(2)
        }
    }
}

/// The life of a guest: never returns, because PID 1 must not.
fn guest() -> ! {
    let clean = match panic::catch_unwind(guest_job) {
        Ok(Ok(clean)) => clean,
        Ok(Err(error)) => {
            // There is no control disk to tell it to: the console is all there is.
            eprintln!("whichfs-agent: {error}");
            false
        }
        Err(_) => false,
    };
    power_off(clean);
}

/// Sets up the guest and does the job; true if it was done.
fn guest_job() -> Result<bool, AgentError> {
    let (context, disk) = set_up_guest()?;
    let mut control = ControlDisk::open(&disk)?;
    let result = control.job();
    result_to_events(
        result.and_then(|job| guarded(&job, &context, &mut control)),
        &mut control,
    )
}
