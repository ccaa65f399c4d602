//! A job done by an agent on this machine, so that nothing is left when it ends, however it ends.
//!
//! The agent is the first process of a process namespace and has a mount namespace of its own:
//! nobody else sees what it mounts, and it can change nothing of this machine but the place under
//! test (`sandbox.rs`). When it is killed, or the program that started it is, the kernel ends all
//! that it started, and takes its mounts away with the namespace.

mod sandbox;

use crate::error::HereError;
use crate::write_limit::WriteLimit;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::process::{Pid, Signal, kill_process_group};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use whichfs_trial::{Event, Job, StampedEvent};

pub use sandbox::DIRECTORY as SANDBOX_DIRECTORY;
use sandbox::Rules;

/// How often it is looked whether the agent is to be ended.
const LOOK: Duration = Duration::from_millis(100);
/// How long a killed agent may take to end: a device that answers no more can hold it for ever.
const DYING: Duration = Duration::from_secs(60);
/// Bytes of what the agent says on standard error that are kept.
const SAID_BYTES: usize = 4096;

/// What an agent is given to do.
pub struct SandboxedAgent<'a> {
    /// The agent's program.
    pub agent: &'a Path,
    /// The job; its paths are those of this machine.
    pub job: &'a Job,
    /// Kernel's name of the disk whose counters are read.
    pub disk: &'a str,
    /// Block devices that it may write; everything else of this machine is read-only for it, but
    /// for `directory`.
    pub writable: &'a [PathBuf],
    /// The directory that it works in, where it mounts no device: it finds it at
    /// [`SANDBOX_DIRECTORY`].
    pub directory: Option<Directory<'a>>,
    /// Time after which it is ended.
    pub wall_limit: Duration,
    /// Bytes after which it is ended, as the disk counts what is written; `None`: no limit.
    pub write_limit: Option<u64>,
}

/// A directory of this machine that a trial works in.
#[derive(Clone, Copy, Debug)]
pub struct Directory<'a> {
    /// The open directory.
    pub open: &'a OwnedFd,
    /// The user and group that operations and programs run as; none: as the agent itself.
    pub user: Option<(u32, u32)>,
}

/// How a sandboxed agent ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentEnd {
    /// All steps were done.
    Done,
    /// A step failed.
    Failed {
        /// What failed and why.
        message: String,
        /// Tail of the kernel's log.
        kernel_log: Vec<String>,
    },
    /// It took too long and was ended.
    TooLong(Duration),
    /// It would have written more than it may and was ended.
    TooMuch,
    /// The user asked to stop.
    Interrupted,
}

/// What an agent told, and how it ended.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentRun {
    /// What the agent reported, in order.
    pub told: Vec<StampedEvent>,
    /// How it ended.
    pub ended: AgentEnd,
}

/// Does `sandboxed`; `hear` gets each event as it comes. `interrupted` ends it. When `hear`
/// returns, an event of an acknowledged job is acknowledged.
///
/// # Errors
/// The agent cannot be started, or does not end.
pub fn run(
    sandboxed: &SandboxedAgent<'_>,
    interrupted: &AtomicBool,
    hear: &mut dyn FnMut(&StampedEvent),
) -> Result<AgentRun, HereError> {
    // Namespaces are those of a thread; one with a process namespace for its children starts no
    // threads, and the agent dies with the thread that started it: that one waits for the end.
    let (over, waits) = channel::<()>();
    let (started, child) = channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let rules = sandbox::enter(sandboxed);
            let child = rules.and_then(|rules| start(sandboxed, rules.as_ref()));
            if started.send(child).is_ok() {
                // Its other end is dropped, nothing is ever sent.
                let _ = waits.recv();
            }
        });
        let child = child.recv().map_err(|_| HereError::Agent {
            what: "the thread that starts it",
            reason: "it ended".to_owned(),
        });
        let life = child
            .flatten()
            .and_then(|child| accompany(child, sandboxed, interrupted, hear));
        drop(over);
        life
    })
}

fn failed(what: &'static str, error: &std::io::Error) -> HereError {
    HereError::Agent {
        what,
        reason: error.to_string(),
    }
}

/// Starts the agent with its job; it puts `rules` on its programs.
fn start(sandboxed: &SandboxedAgent<'_>, rules: Option<&Rules>) -> Result<Child, HereError> {
    let job = serde_json::to_vec(sandboxed.job).map_err(|error| HereError::Agent {
        what: "its job",
        reason: error.to_string(),
    })?;
    let user = sandboxed.directory.and_then(|directory| directory.user);
    let mut command = Command::new(sandboxed.agent);
    command
        .args(["--watch", sandboxed.disk, "-", "--confine"])
        .arg(rules.map_or("none".to_owned(), |(fd, handled)| {
            format!("{}:{handled}", fd.as_raw_fd())
        }))
        .args(user.map(|(user, group)| format!("{user}:{group}")))
        .current_dir("/")
        // A Ctrl-C is for this program, which then ends the agent.
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let inherited = rules.map(|(fd, _)| fd.as_raw_fd());
    let before = move || {
        // SAFETY: system calls on numbers alone.
        let failed = unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0
                || inherited.is_some_and(|fd| libc::fcntl(fd, libc::F_SETFD, 0) != 0)
        };
        match failed {
            false => Ok(()),
            true => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: between fork and exec only system calls are made, which need no lock.
    unsafe { command.pre_exec(before) };
    let mut child = command
        .spawn()
        .map_err(|error| failed("the agent", &error))?;
    if let Some(mut stdin) = child.stdin.take() {
        // An agent that has died already is seen by its events.
        let _ = stdin.write_all(&job).and_then(|()| stdin.write_all(b"\n"));
        child.stdin = Some(stdin).filter(|_| sandboxed.job.acknowledged);
    }
    Ok(child)
}

/// Hears the agent until it ends, or ends it.
fn accompany(
    mut child: Child,
    sandboxed: &SandboxedAgent<'_>,
    interrupted: &AtomicBool,
    hear: &mut dyn FnMut(&StampedEvent),
) -> Result<AgentRun, HereError> {
    let limit = sandboxed.write_limit;
    let limit = limit.map(|most| WriteLimit::new(sandboxed.disk, most));
    let limits = (sandboxed.wall_limit, limit.as_ref());
    let prompt = limit.as_ref().map(|_| Prompt::begin());
    let (sender, receiver) = channel();
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let listener = out.map(|out| std::thread::spawn(move || listen(out, &sender)));
    let complaints = err.map(|err| std::thread::spawn(move || tail(err)));
    let mut heard = child.stdin.take();
    let mut told = Vec::new();
    let stopped = follow(&receiver, limits, interrupted, &mut |one| {
        hear(&one);
        acknowledge(&mut heard, &one);
        told.push(one);
    });
    if stopped.is_some() {
        if stopped == Some(AgentEnd::TooMuch) {
            WriteLimit::shut_down(child.id(), sandboxed.writable);
        }
        end_group(&mut child);
    }
    drop(prompt);
    let status = end(&mut child)?;
    // Both ends of the pipes are closed by now, and what was still in them is heard.
    drop(listener.map(std::thread::JoinHandle::join));
    told.extend(receiver.try_iter());
    let said = complaints
        .and_then(|thread| thread.join().ok())
        .unwrap_or_default();
    let is_told = told
        .last()
        .is_some_and(|told| matches!(told.event, Event::Done | Event::Error { .. }));
    if stopped.is_none() && !is_told && status.signal() == Some(libc::SIGKILL) {
        return Err(HereError::Killed);
    }
    let ended = stopped.unwrap_or_else(|| ended(told.last(), status, &said));
    Ok(AgentRun { told, ended })
}

/// Lets the agent go on after `told`, if it waits: one that has died is seen by its events.
fn acknowledge(heard: &mut Option<ChildStdin>, told: &StampedEvent) {
    if let Some(heard) = heard.as_mut().filter(|_| told.event.is_awaited()) {
        let _ = heard.write_all(b"\n");
    }
}

/// Passes the agent's lines on; those that are none of ours are left out.
fn listen(out: impl Read, sender: &Sender<StampedEvent>) {
    for line in BufReader::new(out).lines().map_while(Result::ok) {
        if let Ok(told) = serde_json::from_str(&line)
            && sender.send(told).is_err()
        {
            return;
        }
    }
}

/// The end of what comes.
fn tail(mut from: impl Read) -> String {
    let (mut kept, mut part) = (Vec::new(), [0; 1024]);
    while let Ok(count @ 1..) = from.read(&mut part) {
        kept.extend_from_slice(&part[..count]);
        kept.drain(..kept.len().saturating_sub(SAID_BYTES));
    }
    String::from_utf8_lossy(&kept).trim().to_owned()
}

/// Hears until the last event; why it is to be ended before, if so.
fn follow(
    receiver: &Receiver<StampedEvent>,
    (wall, writes): (Duration, Option<&WriteLimit>),
    interrupted: &AtomicBool,
    hear: &mut dyn FnMut(StampedEvent),
) -> Option<AgentEnd> {
    let begun = Instant::now();
    let mut next = begun;
    loop {
        if interrupted.load(Ordering::Relaxed) {
            return Some(AgentEnd::Interrupted);
        }
        if begun.elapsed() >= wall {
            return Some(AgentEnd::TooLong(wall));
        }
        let now = Instant::now();
        if let Some(writes) = writes.filter(|_| now >= next) {
            let left = writes.left();
            if left == 0 {
                return Some(AgentEnd::TooMuch);
            }
            next = now + WriteLimit::pause(left);
        }
        let pause = writes.map_or(LOOK, |_| next.saturating_duration_since(now));
        match receiver.recv_timeout(pause) {
            Ok(told) => hear(told),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return None,
        }
    }
}

/// Kills the agent and at once those of its programs that it has told no other group: what it
/// writes after that counts, and the kernel ends the others only when the agent itself is gone.
fn end_group(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.kill();
}

/// The calling thread runs before all others until this goes, if it may: a program writes a
/// hundred megabytes to memory while a thread waits for its turn on a busy machine.
struct Prompt;

impl Prompt {
    fn begin() -> Prompt {
        schedule(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, 1);
        Prompt
    }
}

impl Drop for Prompt {
    fn drop(&mut self) {
        schedule(libc::SCHED_OTHER, 0);
    }
}

fn schedule(policy: libc::c_int, priority: libc::c_int) {
    // SAFETY: a structure of numbers alone, of which all zeros is one.
    let mut parameter: libc::sched_param = unsafe { std::mem::zeroed() };
    parameter.sched_priority = priority;
    // SAFETY: the structure outlives the call. Where it is refused, the thread is as before.
    unsafe { libc::sched_setscheduler(0, policy, &raw const parameter) };
}

/// Waits for the end of the agent.
fn end(child: &mut Child) -> Result<ExitStatus, HereError> {
    let begun = Instant::now();
    while begun.elapsed() < DYING {
        let ended = child
            .try_wait()
            .map_err(|error| failed("the agent's end", &error))?;
        if let Some(status) = ended {
            return Ok(status);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Err(HereError::Stuck { pid: child.id() })
}

/// How an agent ended that was not ended by us: as it said last, else as the system says.
fn ended(last: Option<&StampedEvent>, status: ExitStatus, said: &str) -> AgentEnd {
    match last.map(|told| &told.event) {
        Some(Event::Done) => AgentEnd::Done,
        Some(Event::Error {
            message,
            kernel_log,
        }) => AgentEnd::Failed {
            message: message.clone(),
            kernel_log: kernel_log.clone(),
        },
        _ => {
            let how = match status.signal() {
                Some(signal) => format!("a signal, {signal}"),
                None => format!("status {}", status.code().unwrap_or(-1)),
            };
            let said = match said {
                "" => String::new(),
                said => format!(": {said}"),
            };
            AgentEnd::Failed {
                message: format!("the agent ended early with {how}{said}"),
                kernel_log: Vec::new(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use whichfs_units::Nanos;

    fn told(event: Event) -> StampedEvent {
        StampedEvent {
            at: Nanos(1),
            event,
            reading: None,
        }
    }

    #[test]
    fn an_agent_ended_as_it_said_last() {
        let done = told(Event::Done);
        let killed = ExitStatus::from_raw(9);
        assert_eq!(ended(Some(&done), killed, ""), AgentEnd::Done);
        let error = told(Event::Error {
            message: "mount: no".into(),
            kernel_log: vec!["line".into()],
        });
        let expected = AgentEnd::Failed {
            message: "mount: no".into(),
            kernel_log: vec!["line".into()],
        };
        assert_eq!(
            ended(Some(&error), ExitStatus::from_raw(4 << 8), ""),
            expected
        );
        let AgentEnd::Failed { message, .. } = ended(None, killed, "no such thing") else {
            panic!("it failed");
        };
        assert!(
            message.contains("a signal, 9") && message.contains("no such thing"),
            "{message}"
        );
    }

    #[test]
    fn lines_that_are_no_events_are_left_out() {
        let (sender, receiver) = channel();
        let line = serde_json::to_string(&told(Event::Done)).unwrap();
        listen(format!("hello\n{line}\n{{\"event\":").as_bytes(), &sender);
        drop(sender);
        assert_eq!(receiver.iter().collect::<Vec<_>>(), [told(Event::Done)]);
    }

    #[test]
    fn only_the_end_of_what_was_said_is_kept() {
        let text = format!("{}end\n", "x".repeat(10_000));
        let kept = tail(text.as_bytes());
        assert!(kept.ends_with("end") && kept.len() < SAID_BYTES);
    }

    #[test]
    fn a_user_and_a_limit_end_it() {
        let (_sender, receiver) = channel();
        let flag = AtomicBool::new(false);
        let limit = Duration::from_millis(1);
        let stopped = follow(&receiver, (limit, None), &flag, &mut |_| ());
        assert_eq!(stopped, Some(AgentEnd::TooLong(limit)));
        flag.store(true, Ordering::Relaxed);
        let stopped = follow(&receiver, (limit, None), &flag, &mut |_| ());
        assert_eq!(stopped, Some(AgentEnd::Interrupted));
    }
}
