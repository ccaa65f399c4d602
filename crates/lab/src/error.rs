//! Why a guest's life ended before its job did, or never began.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// An operational error of the lab.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// A system call of the engine failed.
    #[error("{what}: {source}")]
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
    /// No static agent.
    #[error("no usable agent at {path}: {why}; run `make build`")]
    NoAgent {
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
    /// More wall time than allowed.
    #[error("the trial took more than {} s of wall time (--wall-limit)", .0.as_secs())]
    WallLimit(Duration),
    /// The guest burns CPU and says nothing.
    #[error("the guest spins: {} s of CPU time without a message", .0.as_secs())]
    Spins(Duration),
    /// Nothing is left that could wake the guest.
    #[error("the guest sleeps for ever: no request is under way and no timer is set")]
    SleepsForever,
    /// Virtual time passes and nothing happens.
    #[error("no request and no event in {0} s of virtual time: the guest hangs")]
    NoProgress(u64),
    /// Too much console output.
    #[error("the guest flooded its console: more than {0} bytes")]
    ConsoleFlood(u64),
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

impl LabError {
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
