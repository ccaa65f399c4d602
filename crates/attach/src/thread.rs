//! What the threads between the kernel and the card ask of the kernel for themselves.

use std::cell::Cell;
use std::num::NonZeroU64;

/// `linux/prctl.h`, Linux 5.6; the libc crate does not have it.
const PR_SET_IO_FLUSHER: libc::c_int = 57;

thread_local! {
    static PREPARED: Cell<bool> = const { Cell::new(false) };
}

/// Prepares the calling thread, once: real-time priority (else its wake-ups wait for whatever
/// this machine does), the finest timers, and allocations that never wait for a device to
/// take dirty pages: that device may be the one this thread serves (`PR_SET_IO_FLUSHER`).
/// Each is a help, none a need: what the kernel refuses is gone without.
pub(crate) fn prepare() {
    if PREPARED.replace(true) {
        return;
    }
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    // SAFETY: plain integers; affects this thread alone.
    unsafe { libc::prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) };
    let parameter = libc::sched_param { sched_priority: 1 };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: `parameter` lives through the call; 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, policy, &parameter) };
}
