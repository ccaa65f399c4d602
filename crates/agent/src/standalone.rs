//! The agent on any machine: the job comes from a file or standard input, events go to standard
//! output.

use crate::confine::Confinement;
use crate::monitor::Monitor;
use crate::{AgentError, Context, Reader, Sink, Stream, kernel_log_tail, perform};
use std::io::{BufRead, BufReader};
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::sync::Mutex;
use whichfs_trial::{Event, Job};

/// Lines of the kernel log that go with an error.
const LOG_LINES: usize = 50;

/// What the panic hook heard last; the hook itself has no sink.
static PANIC: Mutex<String> = Mutex::new(String::new());

/// Makes panics tell themselves on standard error, and to [`guarded`].
pub fn hear_panics() {
    panic::set_hook(Box::new(|info| {
        eprintln!("whichfs-agent: {info}");
        if let Ok(mut text) = PANIC.lock() {
            *text = info.to_string();
        }
    }));
}

/// Does the job in the file `job`, or on standard input if that is `-`, and reads what `disk` (as
/// the kernel calls it) has done meanwhile; events go to standard output. Its programs are confined
/// as `confine` says ([`Confinement::parse`]). 0 if it was done, else 4.
pub fn run_standalone(disk: &str, job: &str, confine: Option<(&str, Option<&str>)>) -> ExitCode {
    let reader = Reader::of(disk).with(Monitor::start(disk));
    let mut sink = Stream::new(std::io::stdout(), Some(reader));
    let result = read_job(job).and_then(|(job, rest)| {
        if job.acknowledged {
            sink.wait_for(rest);
        }
        let confinement = confine.map(|(how, user)| Confinement::parse(how, user));
        let confinement = confinement.transpose()?;
        guarded(&job, &Context::board(confinement), &mut sink)
    });
    match result_to_events(result, &mut sink) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(4),
        Err(error) => {
            eprintln!("whichfs-agent: {error}");
            ExitCode::from(4)
        }
    }
}

/// The job in the file `path`, or in the first line of standard input if that is `-`; and what
/// comes after it.
fn read_job(path: &str) -> Result<(Job, Box<dyn BufRead>), AgentError> {
    let (mut text, mut rest) = (Vec::new(), stdin());
    let read = match path {
        "-" => rest.read_until(b'\n', &mut text).map(drop),
        path => std::fs::read(path).map(|bytes| text = bytes),
    };
    read.map_err(|error| AgentError::new(format!("read job {path}: {error}")))?;
    let job = serde_json::from_slice(&text);
    let job = job.map_err(|error| AgentError::new(format!("job {path}: {error}")))?;
    Ok((job, rest))
}

fn stdin() -> Box<dyn BufRead> {
    Box::new(BufReader::new(std::io::stdin()))
}

/// Does the job; a panic becomes an error.
///
/// # Errors
/// The first step that failed.
pub fn guarded(job: &Job, context: &Context, sink: &mut dyn Sink) -> Result<(), AgentError> {
    // After a panic the sink only gets one more event, whole records at a time.
    panic::catch_unwind(AssertUnwindSafe(|| perform(job, context, sink))).unwrap_or_else(|_| {
        let text = PANIC.lock().map(|text| text.clone()).unwrap_or_default();
        Err(AgentError::new(format!("the agent panicked: {text}")))
    })
}

/// Reports how the job ended; true if it was done.
///
/// # Errors
/// Nobody hears it.
pub fn result_to_events(
    result: Result<(), AgentError>,
    sink: &mut dyn Sink,
) -> Result<bool, AgentError> {
    let event = match &result {
        Ok(()) => Event::Done,
        Err(error) => Event::Error {
            message: error.to_string(),
            kernel_log: kernel_log_tail(LOG_LINES),
        },
    };
    sink.send(&event)?;
    Ok(result.is_ok())
}
