//! Runs a program of the host and passes on what it says.

use crate::confine::Confinement;
use crate::error::AgentError;
use crate::sink::Sink;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{MemfdFlags, OFlags, fcntl_getfl, fcntl_setfl, memfd_create};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, WaitOptions, pidfd_open};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Seek, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use whichfs_trial::Event;

/// How much of a silent program's output is kept for the error message.
const TAIL_BYTES: usize = 4096;

/// Bytes read from a pipe at a time: what a pipe holds.
const PIPE_BYTES: usize = 64 << 10;

/// A program and everything it is given.
pub struct Program<'a> {
    /// Program and arguments.
    pub argv: &'a [String],
    /// The whole environment.
    pub env: &'a BTreeMap<String, String>,
    /// Working directory.
    pub dir: &'a str,
    /// What it reads from its standard input.
    pub stdin: &'a str,
    /// Pass output on as it comes.
    pub show: bool,
    /// What it may do; none: all that the agent may.
    pub confinement: Option<&'a Confinement>,
}

/// How a program ended.
pub struct Ended {
    /// Exit status; 128 + the signal's number if a signal ended it, as shells count.
    pub status: i32,
    /// The end of what it said, without what of its standard output was passed on.
    pub tail: String,
}

/// Runs `program` to its end.
pub fn run(program: &Program<'_>, sink: &mut dyn Sink) -> Result<Ended, AgentError> {
    let [name, arguments @ ..] = program.argv else {
        return Err(AgentError::new("a run step names no program"));
    };
    let mut command = Command::new(name);
    command
        .args(arguments)
        .env_clear()
        .envs(program.env)
        .current_dir(program.dir)
        .stdin(stdin(program.stdin)?)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(confinement) = program.confinement {
        confinement.put_on(&mut command);
    }
    let mut child = command
        .spawn()
        .map_err(|error| AgentError::io("run", format!("{name} in {}", program.dir), &error))?;
    let pid = i32::try_from(child.id())
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(|| AgentError::new(format!("{name}: process id {} is odd", child.id())))?;
    let ended = pidfd_open(pid, PidfdFlags::empty())
        .map_err(|errno| AgentError::system("watch", name, errno))?;
    let mut pipes = Vec::new();
    let ends = [
        ("stdout", child.stdout.take().map(OwnedFd::from)),
        ("stderr", child.stderr.take().map(OwnedFd::from)),
    ];
    for (stream, fd) in ends {
        let fd = fd.ok_or_else(|| AgentError::new(format!("{name}: no pipe for its {stream}")))?;
        set_nonblocking(&fd).map_err(|errno| AgentError::system("prepare pipe of", name, errno))?;
        pipes.push(Pipe::new(stream, fd));
    }
    let mut tail = Vec::new();
    follow(&mut pipes, &ended, &mut |stream, text| {
        if !program.show || stream == "stderr" {
            tail.extend_from_slice(text.as_bytes());
            tail.drain(..tail.len().saturating_sub(TAIL_BYTES));
        }
        if !program.show {
            return Ok(());
        }
        sink.send(&Event::Output {
            stream: stream.to_owned(),
            text,
        })
    })?;
    let status = child
        .wait()
        .map_err(|error| AgentError::io("wait for", name, &error))?;
    Ok(Ended {
        status: shell_status(status),
        tail: String::from_utf8_lossy(&tail).trim().to_owned(),
    })
}

/// A standard input that holds `text`: a file without a name, so that nobody need feed it.
fn stdin(text: &str) -> Result<Stdio, AgentError> {
    if text.is_empty() {
        return Ok(Stdio::null());
    }
    let fail =
        |error: std::io::Error| AgentError::io("prepare", "a program's standard input", &error);
    let file = memfd_create("stdin", MemfdFlags::CLOEXEC).map_err(|errno| fail(errno.into()))?;
    let mut file = File::from(file);
    file.write_all(text.as_bytes()).map_err(fail)?;
    file.rewind().map_err(fail)?;
    Ok(Stdio::from(file))
}

/// Collects processes that have lost their parent; does nothing if there is none.
pub fn reap_orphans() {
    // Ends with ECHILD or with None when nobody is left that has ended.
    while let Ok(Some(_)) = rustix::process::wait(WaitOptions::NOHANG) {}
}

fn shell_status(status: ExitStatus) -> i32 {
    status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))
        .unwrap_or(255)
}

fn set_nonblocking(fd: &OwnedFd) -> Result<(), Errno> {
    fcntl_setfl(fd, fcntl_getfl(fd)? | OFlags::NONBLOCK)
}

/// The reading end of a stream, with the bytes of a character that is not complete yet.
struct Pipe {
    stream: &'static str,
    fd: Option<OwnedFd>,
    partial: Vec<u8>,
}

/// Takes text of a stream.
type Take<'a> = dyn FnMut(&str, String) -> Result<(), AgentError> + 'a;

impl Pipe {
    fn new(stream: &'static str, fd: OwnedFd) -> Pipe {
        Pipe {
            stream,
            fd: Some(fd),
            partial: Vec::new(),
        }
    }

    /// Takes what is there now; closes the pipe at its end.
    fn drain(&mut self, take: &mut Take<'_>) -> Result<(), AgentError> {
        let mut buffer = vec![0; PIPE_BYTES];
        while let Some(fd) = &self.fd {
            match rustix::io::read(fd, &mut buffer[..]) {
                Ok(0) => self.fd = None,
                Ok(count) => {
                    self.partial.extend_from_slice(&buffer[..count]);
                    let text = take_text(&mut self.partial);
                    if !text.is_empty() {
                        take(self.stream, text)?;
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(errno) => return Err(AgentError::system("read", self.stream, errno)),
            }
        }
        Ok(())
    }

    /// Takes the bytes that never became a character.
    fn finish(&mut self, take: &mut Take<'_>) -> Result<(), AgentError> {
        if self.partial.is_empty() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&self.partial).into_owned();
        self.partial.clear();
        take(self.stream, text)
    }
}

/// Removes the text from `bytes` but leaves an incomplete character at its end.
fn take_text(bytes: &mut Vec<u8>) -> String {
    let keep = match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => bytes.len() - error.valid_up_to(),
        // What is invalid in the middle may hide an incomplete character at the end.
        Err(_) => incomplete_tail(bytes),
        Ok(_) => 0,
    };
    let rest = bytes.split_off(bytes.len() - keep);
    let text = String::from_utf8_lossy(bytes).into_owned();
    *bytes = rest;
    text
}

/// Length of an incomplete character at the end of `bytes`.
fn incomplete_tail(bytes: &[u8]) -> usize {
    (1..=3.min(bytes.len()))
        .find(|&len| {
            std::str::from_utf8(&bytes[bytes.len() - len..])
                .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
        })
        .unwrap_or(0)
}

/// Passes on what comes out of `pipes` until the process behind `ended` has ended.
///
/// A daemon that it left behind may hold the pipes open: its later output is not waited for.
fn follow(pipes: &mut [Pipe], ended: &OwnedFd, take: &mut Take<'_>) -> Result<(), AgentError> {
    let mut over = false;
    while !over {
        let mut polled = vec![PollFd::new(ended, PollFlags::IN)];
        polled.extend(
            pipes
                .iter()
                .filter_map(|pipe| pipe.fd.as_ref())
                .map(|fd| PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN)),
        );
        match poll(&mut polled, None) {
            Ok(_) => over = !polled[0].revents().is_empty(),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(AgentError::system("poll", "a program's output", errno)),
        }
        for pipe in pipes.iter_mut() {
            pipe.drain(take)?;
        }
    }
    for pipe in pipes {
        pipe.finish(take)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn shell(script: &str, show: bool) -> (Result<Ended, AgentError>, Vec<Event>) {
        let argv = ["/bin/sh", "-c", script].map(str::to_owned);
        let env = BTreeMap::from([("GREETING".to_owned(), "hello".to_owned())]);
        let program = Program {
            argv: &argv,
            env: &env,
            dir: "/",
            stdin: "",
            show,
            confinement: None,
        };
        let mut events = Vec::new();
        (run(&program, &mut events), events)
    }

    fn joined(events: &[Event], wanted: &str) -> String {
        events
            .iter()
            .filter_map(|event| match event {
                Event::Output { stream, text } if stream == wanted => Some(text.as_str()),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn shown_output_arrives_by_stream() {
        let (ended, events) = shell("echo $GREETING; echo oops >&2; pwd", true);
        assert_eq!(ended.unwrap().status, 0);
        assert_eq!(joined(&events, "stdout"), "hello\n/\n");
        assert_eq!(joined(&events, "stderr"), "oops\n");
    }

    #[test]
    fn a_program_reads_what_it_is_given() {
        let argv = ["/bin/cat".to_owned()];
        let env = BTreeMap::new();
        let text = "line\n".repeat(100_000);
        for stdin in ["", text.as_str()] {
            let program = Program {
                argv: &argv,
                env: &env,
                dir: "/",
                stdin,
                show: true,
                confinement: None,
            };
            let mut events = Vec::new();
            run(&program, &mut events).unwrap();
            assert!(joined(&events, "stdout") == stdin, "{}", stdin.len());
        }
    }

    #[test]
    fn why_a_shown_program_failed_is_kept_too() {
        let (ended, events) = shell("echo document; echo broken >&2; exit 2", true);
        assert_eq!(ended.unwrap().tail, "broken");
        assert_eq!(joined(&events, "stdout"), "document\n");
    }

    #[test]
    fn the_environment_is_only_what_the_step_gives() {
        let argv = ["/usr/bin/env".to_owned()];
        let env = BTreeMap::from([("A".to_owned(), "1".to_owned())]);
        let program = Program {
            argv: &argv,
            env: &env,
            dir: "/",
            stdin: "",
            show: true,
            confinement: None,
        };
        let mut events = Vec::new();
        run(&program, &mut events).unwrap();
        assert_eq!(joined(&events, "stdout"), "A=1\n");
    }

    #[test]
    fn long_output_is_complete() {
        let (_, events) = shell(
            "i=0; while [ $i -lt 30000 ]; do echo line $i; i=$((i+1)); done",
            true,
        );
        let text = joined(&events, "stdout");
        assert_eq!(text.lines().count(), 30_000);
        assert!(text.ends_with("line 29999\n"));
    }

    #[test]
    fn a_silent_program_keeps_the_end_of_what_it_said() {
        let (ended, events) = shell("yes | head -c 100000; echo the end >&2; exit 3", false);
        let ended = ended.unwrap();
        assert_eq!(ended.status, 3);
        assert!(ended.tail.len() <= TAIL_BYTES);
        assert!(ended.tail.contains("the end"), "{}", ended.tail);
        assert!(events.is_empty());
    }

    #[test]
    fn a_signal_counts_as_in_a_shell() {
        assert_eq!(shell("kill -9 $$", false).0.unwrap().status, 137);
    }

    #[test]
    fn a_daemon_that_keeps_the_pipe_does_not_hold_us() {
        let (ended, events) = shell("sleep 20 & echo $!", true);
        assert_eq!(ended.unwrap().status, 0);
        let pid: i32 = joined(&events, "stdout").trim().parse().unwrap();
        let pid = Pid::from_raw(pid).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL)
            .expect("it still runs: nobody waited for it");
    }

    #[test]
    fn a_missing_program_is_named() {
        let argv = ["/no/such/program".to_owned()];
        let env = BTreeMap::new();
        let program = Program {
            argv: &argv,
            env: &env,
            dir: "/",
            stdin: "",
            show: false,
            confinement: None,
        };
        let error = run(&program, &mut Vec::new()).err().unwrap().to_string();
        assert!(error.contains("/no/such/program"), "{error}");
    }

    #[test]
    fn characters_are_not_torn_between_reads() {
        let mut bytes = "aé".as_bytes()[..2].to_vec();
        assert_eq!(take_text(&mut bytes), "a");
        assert_eq!(bytes, [0xc3]);
        bytes.push(0xa9);
        assert_eq!(take_text(&mut bytes), "é");
        let mut bytes = vec![0xff, b'x', 0xe2, 0x82];
        assert_eq!(take_text(&mut bytes), "\u{fffd}x");
        assert_eq!(bytes, [0xe2, 0x82]);
    }
}
