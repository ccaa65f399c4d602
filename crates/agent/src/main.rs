//! The agent as a program: PID 1 of a guest, or `whichfs-agent --watch DISK JOB` on any machine.

use std::ffi::OsString;
use std::io::Read;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::sync::Mutex;
use whichfs_agent::{
    Context, ControlDisk, Error, Reader, Sink, Stream, kernel_log_tail, perform, power_off,
    set_up_guest,
};
use whichfs_trial::{Event, Job};

/// Lines of the kernel log that go with an error.
const LOG_LINES: usize = 50;

/// What the panic hook heard last; the hook itself has no sink.
static PANIC: Mutex<String> = Mutex::new(String::new());

fn main() -> ExitCode {
    panic::set_hook(Box::new(|info| {
        eprintln!("whichfs-agent: {info}");
        if let Ok(mut text) = PANIC.lock() {
            *text = info.to_string();
        }
    }));
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let words: Vec<&str> = arguments.iter().filter_map(|word| word.to_str()).collect();
    match words[..] {
        ["--watch", disk, job] if words.len() == arguments.len() => machine(disk, job),
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
fn guest_job() -> Result<bool, Error> {
    let (context, disk) = set_up_guest()?;
    let mut control = ControlDisk::open(&disk)?;
    let result = control.job();
    result_to_events(
        result.and_then(|job| guarded(&job, &context, &mut control)),
        &mut control,
    )
}

/// On any machine: the job is a file or standard input, events go to standard output.
fn machine(disk: &str, job: &str) -> ExitCode {
    let mut sink = Stream::new(std::io::stdout(), Some(Reader::of(disk)));
    let result = read_job(job).and_then(|job| guarded(&job, &Context::board(), &mut sink));
    match result_to_events(result, &mut sink) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(4),
        Err(error) => {
            eprintln!("whichfs-agent: {error}");
            ExitCode::from(4)
        }
    }
}

/// The job in the file `path`, or on standard input if that is `-`.
fn read_job(path: &str) -> Result<Job, Error> {
    let mut text = Vec::new();
    let read = match path {
        "-" => std::io::stdin().read_to_end(&mut text).map(drop),
        path => std::fs::read(path).map(|bytes| text = bytes),
    };
    read.map_err(|error| Error::new(format!("read job {path}: {error}")))?;
    serde_json::from_slice(&text).map_err(|error| Error::new(format!("job {path}: {error}")))
}

/// Does the job; a panic becomes an error.
fn guarded(job: &Job, context: &Context, sink: &mut dyn Sink) -> Result<(), Error> {
    // After a panic the sink only gets one more event, whole records at a time.
    panic::catch_unwind(AssertUnwindSafe(|| perform(job, context, sink))).unwrap_or_else(|_| {
        let text = PANIC.lock().map(|text| text.clone()).unwrap_or_default();
        Err(Error::new(format!("the agent panicked: {text}")))
    })
}

/// Reports how the job ended; true if it was done.
fn result_to_events(result: Result<(), Error>, sink: &mut dyn Sink) -> Result<bool, Error> {
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
