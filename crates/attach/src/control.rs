//! The socket of an attached device: statistics on request, and a request to detach.
//!
//! One line in, one JSON document out. The socket is root's alone (its directory has mode
//! 0700).

use crate::clean::list;
use crate::clock::within;
use crate::error::{AttachError, sentence};
use crate::node::Node;
use crate::runtime::path;
use crate::statistics::Statistics;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use whichfs_device::{Roots, users_of_disk};

/// A client that says nothing must not stop the others.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long the device may take to go: the kernel writes back what it holds.
const GOES: Duration = Duration::from_secs(65);
/// No request is longer.
const LINE_MAX: u64 = 64;

/// Answer to a request.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Statistics(Box<Statistics>),
    /// The device is about to go.
    Detaching,
    /// Somebody uses it: who, as a sentence.
    Busy(String),
    /// It ends with this process, the command that it was attached for.
    Running(u32),
    /// The request was none.
    Unknown(String),
}

/// What the thread that answers and the one that waits tell each other.
#[derive(Debug, Default)]
pub(crate) struct Wishes {
    /// Somebody wants the device detached and nobody uses it.
    pub detach: AtomicBool,
    /// The command for which it is attached; 0 if there is none.
    pub command: AtomicU32,
}

/// The thread that answers.
pub(crate) struct Control {
    node: Node,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Control {
    /// Listens for the device `node`.
    ///
    /// # Errors
    /// If the socket cannot be made.
    pub fn new(
        node: Node,
        statistics: impl Fn() -> Statistics + Send + 'static,
        wishes: Arc<Wishes>,
    ) -> io::Result<Control> {
        let at = path(node, "sock");
        // Left by a process that is gone: the device is ours now.
        let _ = std::fs::remove_file(&at);
        let listener = UnixListener::bind(&at)?;
        let over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&over);
        let serve = move || {
            for stream in listener.incoming() {
                if ends.load(Ordering::Acquire) {
                    break;
                }
                // A client that is gone needs no answer.
                let _ = stream.and_then(|stream| answer(stream, node, &statistics, &wishes));
            }
        };
        let thread = std::thread::Builder::new()
            .name("whichfs-control".into())
            .spawn(serve)?;
        Ok(Control {
            node,
            over,
            thread: Some(thread),
        })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        let at = path(self.node, "sock");
        // The connection wakes the thread; without one it would not look.
        if UnixStream::connect(&at).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
        let _ = std::fs::remove_file(at);
    }
}

fn answer(
    mut stream: UnixStream,
    node: Node,
    statistics: &impl Fn() -> Statistics,
    wishes: &Wishes,
) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new((&stream).take(LINE_MAX)).read_line(&mut line)?;
    let answer = match line.trim() {
        "statistics" => Answer::Statistics(Box::new(statistics())),
        "detach" => detach(node, wishes),
        other => Answer::Unknown(format!("{other:?}: expected statistics or detach")),
    };
    stream.write_all(&serde_json::to_vec(&answer)?)
}

fn detach(node: Node, wishes: &Wishes) -> Answer {
    let command = wishes.command.load(Ordering::Acquire);
    if command != 0 {
        return Answer::Running(command);
    }
    match &*users_of_disk(&node.to_string(), &Roots::default()) {
        [] => {
            wishes.detach.store(true, Ordering::Release);
            Answer::Detaching
        }
        users => Answer::Busy(sentence(users)),
    }
}

/// What the card on `device` (`loop7`, `/dev/loop7`, `/dev/ublkb7`) has done.
///
/// # Errors
/// If no running process serves a card there; the message names those that are attached.
pub fn statistics(device: &str) -> Result<Statistics, AttachError> {
    match request(device, "statistics")? {
        Answer::Statistics(statistics) => Ok(*statistics),
        other => Err(unexpected(&other)),
    }
}

/// Asks the process that serves the card on `device` to detach it, and waits until it has.
///
/// # Errors
/// If no running process serves a card there, it ends with a command, or somebody uses it: the
/// message names who.
pub fn request_detach(device: &str) -> Result<(), AttachError> {
    let in_use =
        |why: String| AttachError::io(format!("{device} is in use"), io::Error::other(why));
    match request(device, "detach")? {
        Answer::Detaching => {}
        Answer::Busy(why) => return Err(in_use(why)),
        Answer::Running(pid) => {
            let device = device.to_owned();
            return Err(AttachError::Running { device, pid });
        }
        other => return Err(unexpected(&other)),
    }
    let Some(node) = Node::parse(device) else {
        return Ok(());
    };
    // Its process removes the record last.
    if within(GOES, || !path(node, "json").exists()) {
        return Ok(());
    }
    let users = users_of_disk(&node.to_string(), &Roots::default());
    Err(in_use(sentence(&users)))
}

fn request(device: &str, line: &str) -> Result<Answer, AttachError> {
    let Some(node) = Node::parse(device) else {
        return Err(not_attached(device)?);
    };
    let mut stream = match UnixStream::connect(path(node, "sock")) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return Err(AttachError::NotRoot);
        }
        Err(_) => return Err(not_attached(device)?),
        Ok(stream) => stream,
    };
    let mut ask = || -> io::Result<Answer> {
        stream.set_read_timeout(Some(PATIENCE * 5))?;
        stream.write_all(format!("{line}\n").as_bytes())?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(serde_json::from_str(&text)?)
    };
    ask().map_err(|error| AttachError::io(format!("ask the process that serves {device}"), error))
}

/// That no card is attached as `device`, with those that are.
fn not_attached(device: &str) -> Result<AttachError, AttachError> {
    let records = list()?;
    let names = records.iter();
    let names = names.map(|record| format!("{} ({})", record.device().display(), record.card));
    let names: Vec<String> = names.collect();
    Ok(AttachError::NotAttached {
        device: device.to_owned(),
        attached: match names.is_empty() {
            true => "none".to_owned(),
            false => names.join(", "),
        },
    })
}

fn unexpected(answer: &Answer) -> AttachError {
    let text = format!("unexpected answer {answer:?}");
    AttachError::io("ask for the device", io::Error::other(text))
}
