//! Ctrl-C: the first one asks for an orderly end, the second ends at once.

use std::sync::atomic::{AtomicBool, Ordering};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

extern "C" fn handle(signal: libc::c_int) {
    if INTERRUPTED.swap(true, Ordering::Relaxed) {
        // SAFETY: _exit is async-signal-safe; guests die with their parent.
        unsafe { libc::_exit(128 + signal) }
    }
}

/// Installs the handler for SIGINT and SIGTERM and gives the flag that it sets.
pub fn flag() -> &'static AtomicBool {
    let handler = handle as extern "C" fn(libc::c_int) as libc::sighandler_t;
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: the handler only touches an atomic and calls _exit.
        unsafe { libc::signal(signal, handler) };
    }
    &INTERRUPTED
}
