//! The socket of an attached device: statistics on request, and a request to detach.
//!
//! One line in, one JSON document out. The socket is root's alone (its directory has mode
//! 0700).

use crate::busy;
use crate::error::AttachError;
use crate::runtime::{self, path};
use crate::statistics::Statistics;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// A client that says nothing must not stop the others.
const PATIENCE: Duration = Duration::from_secs(2);
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
    /// The request was none.
    Unknown(String),
}

/// The thread that answers.
pub(crate) struct Control {
    number: u32,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Control {
    /// Listens for loop device `number`. `asked` becomes true when somebody wants the device
    /// detached and nobody uses it.
    ///
    /// # Errors
    /// If the socket cannot be made.
    pub fn new(
        number: u32,
        statistics: impl Fn() -> Statistics + Send + 'static,
        asked: Arc<AtomicBool>,
    ) -> io::Result<Control> {
        let at = path(number, "sock");
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
                let _ = stream.and_then(|stream| answer(stream, number, &statistics, &asked));
            }
        };
        let thread = std::thread::Builder::new()
            .name("whichfs-control".into())
            .spawn(serve)?;
        Ok(Control {
            number,
            over,
            thread: Some(thread),
        })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        let at = path(self.number, "sock");
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
    number: u32,
    statistics: &impl Fn() -> Statistics,
    asked: &AtomicBool,
) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new((&stream).take(LINE_MAX)).read_line(&mut line)?;
    let answer = match line.trim() {
        "statistics" => Answer::Statistics(Box::new(statistics())),
        "detach" => match busy::holders(&format!("loop{number}")).as_slice() {
            [] => {
                asked.store(true, Ordering::Release);
                Answer::Detaching
            }
            holders => Answer::Busy(busy::list(holders)),
        },
        other => Answer::Unknown(format!("{other:?}: expected statistics or detach")),
    };
    stream.write_all(&serde_json::to_vec(&answer)?)
}

/// What the card on `device` (`loop7` or `/dev/loop7`) has done.
///
/// # Errors
/// If no running process serves a card there; the message names those that are attached.
pub fn statistics(device: &str) -> Result<Statistics, AttachError> {
    match request(device, "statistics")? {
        Answer::Statistics(statistics) => Ok(*statistics),
        other => Err(unexpected(&other)),
    }
}

/// Asks the process that serves the card on `device` to detach it.
///
/// # Errors
/// If no running process serves a card there, or somebody uses it: the message names who.
pub fn request_detach(device: &str) -> Result<(), AttachError> {
    match request(device, "detach")? {
        Answer::Detaching => Ok(()),
        Answer::Busy(why) => Err(AttachError::io(
            format!("{device} is in use"),
            io::Error::other(why),
        )),
        other => Err(unexpected(&other)),
    }
}

fn request(device: &str, line: &str) -> Result<Answer, AttachError> {
    let connected = crate::loopdev::number(device)
        .and_then(|number| UnixStream::connect(path(number, "sock")).ok());
    let Some(mut stream) = connected else {
        return Err(not_attached(device));
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

fn not_attached(device: &str) -> AttachError {
    let records = runtime::records().unwrap_or_default();
    let alive = records.iter().filter(|record| record.is_alive());
    let names: Vec<String> = alive
        .map(|record| format!("{} ({})", record.device().display(), record.card))
        .collect();
    AttachError::NotAttached {
        device: device.to_owned(),
        attached: match names.is_empty() {
            true => "none".to_owned(),
            false => names.join(", "),
        },
    }
}

fn unexpected(answer: &Answer) -> AttachError {
    let text = format!("unexpected answer {answer:?}");
    AttachError::io("ask for the device", io::Error::other(text))
}
