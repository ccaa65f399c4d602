//! Delivers completions at their modelled times, in order, and measures how late it was.
//!
//! One thread: the card is serial, so what is queued later is due later, and a sleep never
//! has to be cut short.

use crate::clock::{monotonic, sleep_until};
use crate::lateness::{DeliveryError, Lateness};
use crate::thread::prepare;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// The part of a wait that is spent looking at the clock: what a timer of a virtual machine
/// is late at the median, seldom more than this. At most this much of a core is used for
/// each request.
const SPIN_NS: u64 = 60_000;

/// Answers a request; called once, at its time.
pub(crate) type Answer = Box<dyn FnOnce() + Send>;

/// The thread that answers, and its queue.
pub(crate) struct Delivery {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    filled: Condvar,
    lateness: Mutex<Lateness>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<(u64, Answer)>,
    closed: bool,
}

impl Delivery {
    /// A thread that waits for completions.
    ///
    /// # Errors
    /// If no thread can be made.
    pub fn new() -> io::Result<Delivery> {
        let shared = Arc::new(Shared::default());
        let inner = Arc::clone(&shared);
        let body = move || {
            prepare();
            inner.deliver();
        };
        let thread = std::thread::Builder::new()
            .name("whichfs-deliver".into())
            .spawn(body)?;
        Ok(Delivery {
            shared,
            thread: Some(thread),
        })
    }

    /// Has `answer` called at `due` of the monotonic clock.
    pub fn at(&self, due: u64, answer: Answer) {
        let mut queue = lock(&self.shared.queue);
        // The card is serial, so the place is the end; order is kept whoever calls.
        let place = queue.waiting.partition_point(|(other, _)| *other <= due);
        queue.waiting.insert(place, (due, answer));
        drop(queue);
        self.shared.filled.notify_one();
    }

    /// How late completions were.
    pub fn error(&self) -> DeliveryError {
        lock(&self.shared.lateness).figures()
    }
}

impl Drop for Delivery {
    /// Delivers what is waiting, each at its time, and ends the thread.
    fn drop(&mut self) {
        lock(&self.shared.queue).closed = true;
        self.shared.filled.notify_one();
        if let Some(thread) = self.thread.take() {
            // Its panic is the panic of an answer, which has been printed.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn deliver(&self) {
        while let Some((due, answer)) = self.next() {
            sleep_until(due, SPIN_NS);
            answer();
            lock(&self.lateness).add(monotonic().saturating_sub(due));
        }
    }

    /// The next completion, however long it takes to come; `None` when all is over.
    fn next(&self) -> Option<(u64, Answer)> {
        let mut queue = lock(&self.queue);
        loop {
            if let Some(first) = queue.waiting.pop_front() {
                return Some(first);
            }
            if queue.closed {
                return None;
            }
            queue = self
                .filled
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn completions_come_all_and_never_early() {
        let delivery = Delivery::new().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let begun = monotonic() + 1_000_000;
        for n in [0_u64, 1, 2, 5, 4, 3] {
            let (seen, due) = (Arc::clone(&seen), begun + n * 1_000_000);
            let answer = move || lock(&seen).push((n, monotonic() >= due));
            delivery.at(due, Box::new(answer));
        }
        drop(delivery);
        let seen = lock(&seen);
        assert_eq!(seen.len(), 6);
        assert!(seen.iter().all(|(_, in_time)| *in_time));
    }

    #[test]
    fn what_is_overdue_is_delivered_and_counted_as_late() {
        let delivery = Delivery::new().unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        let due = monotonic() - 5_000_000;
        delivery.at(due, Box::new(move || sender.send(()).unwrap()));
        receiver.recv().unwrap();
        while delivery.error().count == 0 {
            std::thread::yield_now();
        }
        assert!(delivery.error().median_ns >= 5_000_000);
    }
}
