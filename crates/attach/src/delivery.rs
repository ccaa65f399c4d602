//! Delivers completions at their modelled times, in order, and measures how late it was.
//!
//! One thread: the card is serial, so what is queued later is due later, and a sleep never
//! has to be cut short.

use crate::clock::{monotonic, sleep_until};
use crate::lateness::Punctuality;
use crate::thread::prepare;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

/// The part of a wait that is spent looking at the clock: what a timer of a virtual machine
/// is late at the median, seldom more than this. At most this much of a core is used for
/// each request.
pub(crate) const SPIN_NS: u64 = 60_000;

/// Answers a request; called once, at its time.
pub(crate) type Answer = Box<dyn FnOnce() + Send>;

/// A completion that waits for its time.
struct Waiting {
    due: u64,
    /// Bytes that the answer carries to the kernel.
    bytes: usize,
    answer: Answer,
}

/// What carrying bytes to the kernel takes, so that an answer with much data begins as much
/// earlier and ends at its time. The cheapest of the last answers counts: then few end early,
/// and those by little.
#[derive(Default)]
struct Carriage {
    /// Picoseconds a byte of the last large answers.
    last: VecDeque<u64>,
}

impl Carriage {
    /// Answers counted; smaller answers say nothing.
    const KEPT: usize = 16;
    const LARGE: usize = 64 << 10;

    fn lead_ns(&self, bytes: usize) -> u64 {
        let cheapest = match self.last.len() {
            Carriage::KEPT => self.last.iter().min().copied().unwrap_or_default(),
            _ => 0,
        };
        cheapest * bytes as u64 / 1000
    }

    fn took(&mut self, bytes: usize, ns: u64) {
        if bytes < Carriage::LARGE {
            return;
        }
        if self.last.len() == Carriage::KEPT {
            self.last.pop_front();
        }
        self.last.push_back(ns * 1000 / bytes as u64);
    }
}

/// The thread that answers, and its queue.
pub(crate) struct Delivery {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    queue: Mutex<Queue>,
    filled: Condvar,
    punctuality: Arc<Punctuality>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    closed: bool,
}

impl Delivery {
    /// A thread that waits for completions and counts how late they were.
    ///
    /// # Errors
    /// If no thread can be made.
    pub fn new(punctuality: Arc<Punctuality>) -> io::Result<Delivery> {
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            filled: Condvar::new(),
            punctuality,
        });
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

    /// Has `answer`, which carries `bytes` to the kernel, done at `due` of the monotonic clock.
    pub fn at(&self, due: u64, bytes: usize, answer: Answer) {
        let mut queue = self.shared.queue.lock();
        // The card is serial, so the place is the end; order is kept whoever calls.
        let place = queue.waiting.partition_point(|other| other.due <= due);
        queue.waiting.insert(place, Waiting { due, bytes, answer });
        drop(queue);
        self.shared.filled.notify_one();
    }
}

impl Drop for Delivery {
    /// Delivers what is waiting, each at its time, and ends the thread.
    fn drop(&mut self) {
        self.shared.queue.lock().closed = true;
        self.shared.filled.notify_one();
        if let Some(thread) = self.thread.take() {
            // Its panic is the panic of an answer, which has been printed.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn deliver(&self) {
        let mut carriage = Carriage::default();
        while let Some(Waiting { due, bytes, answer }) = self.next() {
            sleep_until(due.saturating_sub(carriage.lead_ns(bytes)), SPIN_NS);
            let begun = monotonic();
            answer();
            let ended = monotonic();
            carriage.took(bytes, ended - begun);
            self.punctuality.add(due, ended);
        }
    }

    /// The next completion, however long it takes to come; `None` when all is over.
    fn next(&self) -> Option<Waiting> {
        let mut queue = self.queue.lock();
        loop {
            if let Some(first) = queue.waiting.pop_front() {
                return Some(first);
            }
            if queue.closed {
                return None;
            }
            self.filled.wait(&mut queue);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn completions_come_all_and_never_early() {
        let delivery = Delivery::new(Arc::default()).unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let begun = monotonic() + 1_000_000;
        for n in [0_u64, 1, 2, 5, 4, 3] {
            let (seen, due) = (Arc::clone(&seen), begun + n * 1_000_000);
            let answer = move || seen.lock().push((n, monotonic() >= due));
            delivery.at(due, 0, Box::new(answer));
        }
        drop(delivery);
        let seen = seen.lock();
        assert_eq!(seen.len(), 6);
        assert!(seen.iter().all(|(_, in_time)| *in_time));
    }

    #[test]
    fn answers_with_much_data_begin_earlier_by_what_the_cheapest_took() {
        let mut carriage = Carriage::default();
        for ns in 1..=Carriage::KEPT as u64 {
            assert_eq!(carriage.lead_ns(1 << 20), 0, "too few to know");
            carriage.took(1 << 16, 10_000 + ns);
            carriage.took(512, 1_000_000);
        }
        let lead = carriage.lead_ns(1 << 17);
        // 10,001 ns for 64 KiB, in whole picoseconds a byte.
        assert!((19_800..=20_002).contains(&lead), "{lead}");
        assert_eq!(carriage.lead_ns(0), 0);
    }

    #[test]
    fn what_is_overdue_is_delivered_and_counted_as_late() {
        let punctuality = Arc::<Punctuality>::default();
        let delivery = Delivery::new(Arc::clone(&punctuality)).unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        let due = monotonic() - 5_000_000;
        delivery.at(due, 0, Box::new(move || sender.send(()).unwrap()));
        receiver.recv().unwrap();
        while punctuality.figures().count == 0 {
            std::thread::yield_now();
        }
        assert!(punctuality.figures().median_ns >= 5_000_000);
    }
}
