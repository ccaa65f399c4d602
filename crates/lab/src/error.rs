//! Why a guest's life ended before its job did, or never began.

use std::io;
use std::path::PathBuf;
use std::time::Duration;
use whichfs_units::Nanos;

/// An operational error of the lab.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// A system call of the engine failed.
    #[error("{what}: {source}{}", remedy(source))]
    Io {
        /// What was attempted.
        what: String,
        /// The system's answer.
        source: io::Error,
    },
    /// The guest sent something that the protocol does not allow.
    #[error("the guest broke the {protocol} protocol: {what}")]
    Protocol {
        /// `calendar`, `vhost-user`, `virtio` or `control`.
        protocol: &'static str,
        /// What was found and what was expected.
        what: String,
    },
    /// No kernel image.
    #[error("no lab kernel at {path}: run `make kernel` (or `whichfs lab kernel --build`)")]
    NoKernel {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// A kernel that cannot mount the sealed userland.
    #[error(
        "the lab kernel at {path} is of an older whichfs and cannot read the sealed userland: run \
         `make kernel` (or `whichfs lab kernel --build`, with the --version or --modules that it \
         was built with)"
    )]
    OldKernel {
        /// Path of the lab kernel.
        path: PathBuf,
    },
    /// No static agent.
    #[error("no usable agent at {path}: {why}; run `make build`")]
    NoAgent {
        /// Where it was looked for.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// No sealed userland.
    #[error(
        "no usable sealed userland at {path}: {why}; run `make userland` (or `userland/build`)"
    )]
    NoUserland {
        /// Where it was looked for.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// No directory for the guest's memory.
    #[error("{0}")]
    NoTemporary(String),
    /// The guest process ended before its job.
    #[error("the guest ended early: {how}")]
    GuestEnded {
        /// Exit status or signal.
        how: String,
    },
    /// The kernel of the guest panicked.
    #[error("the guest's kernel panicked: {line}")]
    Panic {
        /// The kernel's own line.
        line: String,
    },
    /// The host refused the guest's kernel memory, mappings, processes or tracing.
    #[error("{0}")]
    HostRefused(&'static str),
    /// More wall time than allowed.
    #[error("the trial took more than {} s of wall time: raise the wall limit", .0.as_secs())]
    WallLimit(Duration),
    /// The guest burns CPU and says nothing.
    #[error(
        "the guest spins: {} s of CPU time without a message; if it computes, raise the wall limit",
        .0.as_secs()
    )]
    Spins(Duration),
    /// Nothing is left that could wake the guest.
    #[error("the guest sleeps for ever: no request is under way and no timer is set")]
    SleepsForever,
    /// Virtual time passes and nothing happens.
    #[error("no request and no event in {0} s of virtual time: the guest hangs")]
    NoProgress(u64),
    /// The limit of virtual time was reached.
    #[error("it has not ended in {} s of virtual time: it hangs", .0.as_secs_f64().round())]
    VirtualLimit(Nanos),
    /// Too much console output.
    #[error("the guest flooded its console: more than {0} bytes")]
    ConsoleFlood(u64),
    /// Too much output of programs.
    #[error(
        "a program printed more than {0} bytes: let it write to a file or to /dev/null instead"
    )]
    OutputFlood(u64),
    /// The store behind a disk's contents failed (the host's disk is full, …).
    #[error("the contents of disk {disk} could not be kept: {why}")]
    Contents {
        /// Which disk.
        disk: usize,
        /// The reason with its remedy.
        why: String,
    },
    /// The agent reported a failure.
    #[error("{message}")]
    Agent {
        /// The agent's sentence.
        message: String,
        /// Tail of the guest's kernel log.
        kernel_log: Vec<String>,
    },
    /// The guest powered off before the agent said that it was done.
    #[error("the guest powered off before its job was done")]
    NotDone,
    /// Interrupted by the user.
    #[error("interrupted")]
    Interrupted,
}

/// What to do about `error` of a system call that needs something of the host.
fn remedy(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE) => "; raise the limit of open files (ulimit -n 4096)",
        Some(libc::EAGAIN) => {
            "; raise the limit of processes (ulimit -u, pids.max of the control group)"
        }
        Some(libc::ENOMEM) => "; free memory, or raise its limit (ulimit -v, memory.max)",
        Some(libc::EPERM | libc::ENOSYS) => {
            "; a seccomp filter or a container forbids it: run outside of it"
        }
        Some(libc::ENOSPC) => "; make room there",
        _ => "",
    }
}

/// Ends of a guest that the host caused, by a part of the sentence that tells them: memory
/// that the host took away, or had not when it was first touched.
const HOST_ENDS: [&str; 4] = [
    "signal: 9 ",
    "signal: 7 ",
    // User Mode Linux on SIGBUS of its own, and of its first program.
    "Kernel mode signal 7",
    "exitcode=0x00000007",
];

impl LabError {
    /// The sentence with its remedy, if this machine or the limits in force are to blame, so
    /// that it says nothing about the filesystem under test.
    pub fn blames_host(&self) -> Option<String> {
        let memory = "this machine had no memory for the guest: run fewer trials at once \
                      (--jobs), free memory, or set TMPDIR to a directory with room";
        match self {
            LabError::Io { .. }
            | LabError::NoKernel { .. }
            | LabError::NoAgent { .. }
            | LabError::NoTemporary(_)
            | LabError::HostRefused(_)
            | LabError::WallLimit(_)
            | LabError::Contents { .. } => Some(self.to_string()),
            LabError::GuestEnded { how: text } | LabError::Panic { line: text }
                if HOST_ENDS.iter().any(|end| text.contains(end)) =>
            {
                Some(format!("{self}; {memory}"))
            }
            _ => None,
        }
    }

    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> LabError {
        let what = what.into();
        move |source| LabError::Io { what, source }
    }

    pub(crate) fn protocol(protocol: &'static str, what: impl Into<String>) -> LabError {
        LabError::Protocol {
            protocol,
            what: what.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_host_did_blames_the_host() {
        let ended = |how: &str| LabError::GuestEnded { how: how.into() };
        let panic = |line: &str| LabError::Panic { line: line.into() };
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let hosts = [
            ended("signal: 9 (SIGKILL)"),
            ended("signal: 7 (SIGBUS) (core dumped)"),
            panic("Kernel panic - not syncing: Kernel mode signal 7"),
            panic("Attempted to kill init! exitcode=0x00000007"),
            LabError::HostRefused("no memory"),
            LabError::WallLimit(Duration::from_secs(300)),
            LabError::io("make the console file")(full()),
            LabError::Contents {
                disk: 0,
                why: "no room".into(),
            },
        ];
        for error in hosts {
            assert!(error.blames_host().is_some(), "{error}");
        }
        let guests = [
            ended("signal: 11 (SIGSEGV)"),
            ended("signal: 79"),
            panic("Kernel panic - not syncing: VFS: cannot mount root"),
            LabError::Spins(Duration::from_secs(60)),
            LabError::SleepsForever,
            LabError::NoProgress(9),
            LabError::VirtualLimit(Nanos(9)),
            LabError::ConsoleFlood(9),
            LabError::OutputFlood(9),
            LabError::NotDone,
            LabError::protocol("virtio", "a ring of 3"),
        ];
        for error in guests {
            assert_eq!(error.blames_host(), None, "{error}");
        }
    }
}
