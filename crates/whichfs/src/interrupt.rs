//! Signals that end a command: the first one asks for an orderly end, the second ends at once,
//! unless something is to be put back first.

use crate::failure::{Kind, exit_code};
use std::sync::atomic::{AtomicBool, Ordering};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// Whether a second signal, too, only asks.
static PATIENT: AtomicBool = AtomicBool::new(false);

const WAIT: &[u8] =
    b"\nwhichfs: putting back what was on the card, which must not be cut short: wait\n";

extern "C" fn handle(signal: libc::c_int) {
    if !INTERRUPTED.swap(true, Ordering::Relaxed) {
        return;
    }
    if !PATIENT.load(Ordering::Relaxed) {
        // SAFETY: _exit is async-signal-safe; guests die with their parent.
        unsafe { libc::_exit(128 + signal) }
    }
    // SAFETY: write is async-signal-safe, and the errno of what was interrupted is kept.
    unsafe {
        let errno = libc::__errno_location();
        let kept = *errno;
        libc::write(libc::STDERR_FILENO, WAIT.as_ptr().cast(), WAIT.len());
        *errno = kept;
    }
}

/// Installs the handler for SIGINT, SIGTERM and SIGHUP and gives the flag that it sets.
pub fn flag() -> &'static AtomicBool {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        install(signal);
    }
    &INTERRUPTED
}

/// The flag that signals set once [`flag`] has installed the handler; until then they end the
/// program as usual.
pub fn state() -> &'static AtomicBool {
    &INTERRUPTED
}

/// Whether a signal has asked for an end.
pub fn asked() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// The exit status of a command that would end with `code`: another one if a signal ended it.
pub fn or(code: u8) -> u8 {
    if asked() {
        exit_code(Kind::Interrupted)
    } else {
        code
    }
}

/// Signals whose default is to end the program, and that it does not make itself by a fault.
const ENDING: [libc::c_int; 14] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGXCPU,
    libc::SIGXFSZ,
    libc::SIGIO,
    libc::SIGPWR,
    libc::SIGSTKFLT,
];

/// While it lives, no signal that can be caught ends the program.
pub struct Patience(());

impl Patience {
    /// From now on all of them only set the flag.
    pub fn begin() -> Patience {
        PATIENT.store(true, Ordering::Relaxed);
        ENDING.into_iter().for_each(install);
        Patience(())
    }
}

impl Drop for Patience {
    fn drop(&mut self) {
        PATIENT.store(false, Ordering::Relaxed);
    }
}

fn install(signal: libc::c_int) {
    let handler = handle as extern "C" fn(libc::c_int) as libc::sighandler_t;
    // SAFETY: the handler does only what is async-signal-safe.
    let before = unsafe { libc::signal(signal, handler) };
    if signal == libc::SIGHUP && before == libc::SIG_IGN {
        // nohup: a terminal that closes does not matter.
        // SAFETY: as it was.
        unsafe { libc::signal(signal, before) };
    }
}
