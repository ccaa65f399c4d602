//! What runs on a board during a session: it answers one question after the other, whether
//! somebody is connected or not.
//!
//! It is a process apart from any connection. Whoever connects ([`link`]) takes the place of who
//! was connected before and asks again what is not answered yet: a question that is known by its
//! number is not done twice. What the trial under way tells is kept in a file, so that memory
//! stays small. When the asker says so, or is gone for long, the trial is ended and the directory
//! removed.

mod listen;
mod session;

use crate::about::{Machine, RemoteDisk};
use crate::refusal::{Refusal, Why};
use crate::retire::{SOCKET, retire_others};
use crate::tools::{Versions, sha256};
use crate::trial::{Means, trial};
use crate::wire::{Answer, Ask, MOUNT_POINT, Task};
use session::Session;
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use whichfs_agent::Reader;
use whichfs_device::{Roots, TargetDisk};
use whichfs_format::{PartitionLease, kernel_has};
use whichfs_trial::StampedEvent;

/// Starts [`attend`] in `directory`, apart from this process and its terminal, and returns when it
/// can be connected to. Sessions that others left are ended before. `program` is this program,
/// whose contents have the digest `expected`; `patience` is that of [`attend`].
///
/// # Errors
/// The program is not whole, somebody else's session is at work, or no process can be started.
pub fn begin_to_attend(
    program: &Path,
    directory: &Path,
    expected: &str,
    patience: Duration,
) -> Result<(), Refusal> {
    let failed = |what: &str, error: &dyn std::fmt::Display| {
        Refusal::environment(format!(
            "{what}: {error}; is there room and memory on the board?"
        ))
    };
    let bytes = std::fs::read(program).map_err(|error| failed("read the agent", &error))?;
    if sha256(&bytes) != expected {
        let message = "the copy of the agent is not whole: try again";
        return Err(Refusal::environment(message));
    }
    retire_others(directory)?;
    let mut command = Command::new(program);
    command
        .arg("--attend-here")
        .arg(directory)
        .arg(patience.as_secs().to_string())
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let apart = || match rustix::process::setsid() {
        Ok(_) => Ok(()),
        Err(errno) => Err(errno.into()),
    };
    // SAFETY: between fork and exec only one system call is made, which needs no lock.
    unsafe { command.pre_exec(apart) };
    let mut child = command.spawn().map_err(|error| failed("start", &error))?;
    while UnixStream::connect(directory.join(SOCKET)).is_err() {
        if let Ok(Some(status)) = child.try_wait() {
            return Err(failed("the agent ended at once", &status));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Attends to the session in `directory` until the asker ends it, or is gone for `patience` with
/// no trial under way; then removes the directory.
///
/// # Errors
/// Nobody can connect to it.
pub fn attend(program: &Path, directory: &Path, patience: Duration) -> Result<(), Refusal> {
    let failed = |error: std::io::Error| {
        Refusal::environment(format!("a socket in {}: {error}", directory.display()))
    };
    let listener = UnixListener::bind(directory.join(SOCKET)).map_err(failed)?;
    let session = Arc::new(Session::new(directory, patience));
    let heard = Arc::clone(&session);
    std::thread::spawn(move || listen::all(&listener, &heard));
    let attendant = Attendant {
        program: program.to_owned(),
        directory: directory.to_owned(),
        session: Arc::clone(&session),
        roots: Roots::default(),
    };
    attendant.serve();
    let _ = std::fs::remove_dir_all(directory);
    session.left();
    Ok(())
}

/// Joins standard input and output to the session in `directory`, until either ends.
///
/// # Errors
/// Nobody attends there.
pub fn link(directory: &Path) -> std::io::Result<()> {
    let stream = UnixStream::connect(directory.join(SOCKET))?;
    let mut out = stream.try_clone()?;
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin(), &mut out);
        let _ = out.shutdown(Shutdown::Both);
    });
    let mut from = stream;
    let mut part = [0; 4096];
    let mut to = std::io::stdout();
    // By hand: each line is passed on at once.
    loop {
        match std::io::Read::read(&mut from, &mut part) {
            Ok(0) | Err(_) => return Ok(()),
            Ok(count) => {
                std::io::Write::write_all(&mut to, &part[..count])?;
                std::io::Write::flush(&mut to)?;
            }
        }
    }
}

/// Who does what is asked.
struct Attendant {
    program: PathBuf,
    directory: PathBuf,
    session: Arc<Session>,
    roots: Roots,
}

impl Attendant {
    /// Answers until the session is over.
    fn serve(&self) {
        let (mut disk, mut versions) = (None, Versions::default());
        let mut confirmed = false;
        while let Some(ask) = self.session.next() {
            let result = match (ask, &mut disk) {
                (Ask::Find { path, limits }, disk) => {
                    let found = TargetDisk::find(Path::new(&path), &limits, &self.roots);
                    found.map_err(Refusal::from).map(|found| {
                        let device = Box::new(RemoteDisk::of(&found));
                        (*disk, confirmed) = (Some(found), false);
                        let machine = Box::new(Machine::this());
                        Answer::Found { device, machine }
                    })
                }
                (Ask::Confirm { given }, Some(disk)) => {
                    let result = disk.confirm(given.as_deref(), &self.roots);
                    confirmed = result.is_ok();
                    result.map(|()| Answer::Done).map_err(Refusal::from)
                }
                (Ask::Begin { trials }, Some(disk)) if confirmed => {
                    match PartitionLease::begin(disk, &self.roots, &self.directory, &trials) {
                        Ok(lease) => {
                            self.session.answer(Ok(Answer::Done));
                            match self.trials(disk, lease, &mut versions) {
                                Some(result) => result,
                                None => return,
                            }
                        }
                        Err(error) => Err(error.into()),
                    }
                }
                (ask, disk) => self.look(ask, disk.as_ref(), &mut versions),
            };
            self.session.answer(result);
        }
    }

    /// Does trials on `lease` until the asker ends them: what came of that; `None` if the session
    /// is over.
    fn trials(
        &self,
        disk: &TargetDisk,
        mut lease: PartitionLease<'_>,
        versions: &mut Versions,
    ) -> Option<Result<Answer, Refusal>> {
        while let Some(ask) = self.session.next() {
            let result = match ask {
                Ask::Trial(task) => self.trial(disk, &mut lease, &task),
                Ask::End => {
                    let ended = lease.end(None);
                    return Some(ended.map(|()| Answer::Done).map_err(Refusal::from));
                }
                ask => self.look(ask, Some(disk), versions),
            };
            self.session.answer(result);
        }
        None
    }

    /// Answers what changes nothing.
    fn look(
        &self,
        ask: Ask,
        disk: Option<&TargetDisk>,
        versions: &mut Versions,
    ) -> Result<Answer, Refusal> {
        match (ask, disk) {
            (Ask::Tools { names }, _) => {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let versions = versions.of(&names);
                Ok(Answer::Tools { versions })
            }
            (Ask::Filesystem { name }, _) => {
                let so = kernel_has(&name);
                Ok(Answer::Is { so })
            }
            (Ask::Outage { by }, _) => {
                let milliseconds = u64::try_from(by.takes()?.as_millis()).unwrap_or(u64::MAX);
                Ok(Answer::Takes { milliseconds })
            }
            (Ask::Written, Some(disk)) => {
                let reading = Reader::of(disk.name()).read();
                let bytes = reading.map_or(0, |reading| reading.device.write_bytes);
                Ok(Answer::Written { bytes })
            }
            (ask, _) => {
                let message = format!("{ask:?} is not to be asked now");
                Err(Refusal::new(Why::Input, message))
            }
        }
    }

    fn trial(
        &self,
        disk: &TargetDisk,
        lease: &mut PartitionLease<'_>,
        task: &Task,
    ) -> Result<Answer, Refusal> {
        let place = self.directory.join("mount").display().to_string();
        let wrong = |error| Refusal::new(Why::Input, format!("the job: {error}"));
        let text = serde_json::to_string(&task.job).map_err(wrong)?;
        let job = serde_json::from_str(&text.replace(MOUNT_POINT, &place)).map_err(wrong)?;
        let means = Means {
            agent: &self.program,
            disk: disk.name(),
            wall_limit: Duration::from_secs(task.wall_limit_s),
            write_limit: task.write_limit,
        };
        let work = (task.span, task.keeps, task.label.as_str(), &job);
        let mut hear = |told: &StampedEvent| {
            self.session.tell(told);
            if task.job.acknowledged && told.event.is_awaited() {
                self.session.wait_until_heard();
            }
        };
        let life = trial(lease, &means, work, self.session.stop(), &mut hear)?;
        self.session.complete(&life.told)?;
        Ok(Answer::Ended { ended: life.ended })
    }
}
