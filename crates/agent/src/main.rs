//! The agent as a program: PID 1 of a guest, or `whichfs-agent JOB.json` on a board.

use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;
use whichfs_agent::{
    Context, ControlDisk, Error, Sink, Stdout, kernel_log_tail, perform, power_off, set_up_guest,
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
    if std::process::id() == 1 {
        guest();
    }
    board()
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

/// On a board or on any host: the job is a file, events go to standard output.
fn board() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(path), None) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: whichfs-agent JOB.json");
        eprintln!("Does the steps of the job; events go to standard output as JSON lines.");
        return ExitCode::from(2);
    };
    let mut sink = Stdout;
    let result =
        read_job(Path::new(&path)).and_then(|job| guarded(&job, &Context::board(), &mut sink));
    match result_to_events(result, &mut sink) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(4),
        Err(error) => {
            eprintln!("whichfs-agent: {error}");
            ExitCode::from(4)
        }
    }
}

fn read_job(path: &Path) -> Result<Job, Error> {
    let text = std::fs::read(path)
        .map_err(|error| Error::new(format!("read job {}: {error}", path.display())))?;
    serde_json::from_slice(&text)
        .map_err(|error| Error::new(format!("job {}: {error}", path.display())))
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
