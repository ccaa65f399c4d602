//! What the attendant and who is connected share: the question under way, what it told, its answer.

use crate::refusal::{Refusal, Why};
use crate::wire::{Answer, Ask, line};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use whichfs_trial::StampedEvent;

/// An asker that has not been heard for so long is gone: every few seconds it says something.
const GONE: Duration = Duration::from_secs(20);
/// How long connections may take to say that nothing is left.
const GOODBYE: Duration = Duration::from_millis(300);
/// How often those who wait look again.
const LOOK: Duration = Duration::from_millis(500);

/// The question under way, with its events and its answer, for attendant and connections.
pub struct Session {
    state: Mutex<State>,
    changed: Condvar,
    stop: AtomicBool,
    told: PathBuf,
    patience: Duration,
}

struct State {
    /// Number of the question under way, or of the last one.
    number: u64,
    /// It, until the attendant takes it.
    ask: Option<Ask>,
    /// Lines that it told so far.
    lines: usize,
    /// Those that the asker is known to have.
    had: usize,
    out: Option<File>,
    /// Why what was told is not all kept.
    broken: Option<String>,
    answer: Option<Result<Answer, Refusal>>,
    /// Which connection counts: the last one.
    connection: u64,
    /// When an asker was heard last, or the last question was answered.
    heard: Instant,
    leaving: bool,
    left: bool,
}

/// What is new for a connection.
pub enum News {
    /// Lines up to this one can be read in the file of told lines.
    Lines(usize),
    /// The answer, after this many lines.
    Answer(usize, Result<Answer, Refusal>),
    /// Another connection counts, or the session is over.
    Over,
}

impl Session {
    /// A session that keeps what is told in `directory`.
    pub fn new(directory: &Path, patience: Duration) -> Session {
        Session {
            state: Mutex::new(State {
                number: 0,
                ask: None,
                lines: 0,
                had: 0,
                out: None,
                broken: None,
                answer: None,
                connection: 0,
                heard: Instant::now(),
                leaving: false,
                left: false,
            }),
            changed: Condvar::new(),
            stop: AtomicBool::new(false),
            told: directory.join("told"),
            patience,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// File of the lines that the question under way told.
    pub fn told(&self) -> &Path {
        &self.told
    }

    /// Whether the trial under way is to end.
    pub fn stop(&self) -> &AtomicBool {
        &self.stop
    }

    /// Waits for the next question; `None` if the session is over.
    pub fn next(&self) -> Option<Ask> {
        let mut state = self.lock();
        loop {
            if state.leaving || state.heard.elapsed() > self.patience {
                state.leaving = true;
                return None;
            }
            if let Some(ask) = state.ask.take() {
                return Some(ask);
            }
            self.changed.wait_for(&mut state, LOOK);
        }
    }

    /// Keeps an event of the question under way.
    pub fn tell(&self, told: &StampedEvent) {
        let mut state = self.lock();
        let text = line(told);
        let written = match &mut state.out {
            Some(out) => text.and_then(|text| out.write_all(&text)),
            None => Ok(()),
        };
        match written {
            Ok(()) => state.lines += 1,
            Err(error) => state.broken = Some(error.to_string()),
        }
        self.changed.notify_all();
    }

    /// Keeps those of all events of the question that [`Session::tell`] has not heard.
    ///
    /// # Errors
    /// Not all of them could be kept.
    pub fn complete(&self, all: &[StampedEvent]) -> Result<(), Refusal> {
        let heard = self.lock().lines;
        all.iter().skip(heard).for_each(|told| self.tell(told));
        match &self.lock().broken {
            None => Ok(()),
            Some(why) => Err(Refusal::environment(format!(
                "cannot keep what the trial told in {}: {why}; make room there",
                self.told.display()
            ))),
        }
    }

    /// Answers the question under way.
    pub fn answer(&self, result: Result<Answer, Refusal>) {
        let mut state = self.lock();
        state.answer = Some(result);
        state.heard = Instant::now();
        self.stop.store(false, Ordering::Relaxed);
        self.changed.notify_all();
    }

    /// All is done and removed.
    pub fn left(&self) {
        let mut state = self.lock();
        state.left = true;
        self.changed.notify_all();
        drop(state);
        // Connections say so before the process ends.
        std::thread::sleep(GOODBYE);
    }

    /// A new connection, which counts from now on.
    pub fn connect(&self) -> u64 {
        let mut state = self.lock();
        state.connection += 1;
        state.heard = Instant::now();
        self.changed.notify_all();
        state.connection
    }

    /// The asker was heard.
    pub fn hear(&self) {
        self.lock().heard = Instant::now();
    }

    /// Whether an asker is there, who has been heard lately.
    pub fn is_attended(&self) -> bool {
        let state = self.lock();
        state.connection > 0 && state.heard.elapsed() < GONE
    }

    /// A connection has ended.
    pub fn disconnect(&self, connection: u64) {
        let mut state = self.lock();
        if state.connection == connection && !state.left {
            // Its asker is not there any more, as far as others are concerned.
            state.heard = Instant::now().checked_sub(GONE).unwrap_or(state.heard);
        }
    }

    /// Takes the question `number`, unless it is known already.
    ///
    /// # Errors
    /// It is neither the one under way nor the next.
    pub fn ask(&self, number: u64, ask: Ask) -> Result<(), Refusal> {
        let mut state = self.lock();
        if number == state.number {
            return Ok(());
        }
        let is_free = state.answer.is_some() || state.number == 0;
        if number != state.number + 1 || !is_free {
            let message = format!("question {number} after {}", state.number);
            return Err(Refusal::new(Why::Input, message));
        }
        let out = File::create(&self.told)
            .map_err(|error| Refusal::environment(format!("{}: {error}", self.told.display())))?;
        state.out = Some(out);
        (state.number, state.lines, state.answer, state.broken) = (number, 0, None, None);
        state.had = 0;
        state.ask = Some(ask);
        self.changed.notify_all();
        Ok(())
    }

    /// The asker has the first `have` lines of question `number`.
    pub fn is_heard(&self, number: u64, have: usize) {
        let mut state = self.lock();
        if number == state.number {
            state.had = state.had.max(have);
        }
        self.changed.notify_all();
    }

    /// Waits until the asker has all lines of the question under way, however long it is away; not
    /// if the trial is to end.
    pub fn wait_until_heard(&self) {
        let mut state = self.lock();
        while state.had < state.lines && !state.leaving && !self.stop.load(Ordering::Relaxed) {
            if state.heard.elapsed() > self.patience {
                state.leaving = true;
                self.stop.store(true, Ordering::Relaxed);
            }
            self.changed.wait_for(&mut state, LOOK);
        }
    }

    /// Ends the session, and the trial under way.
    pub fn leave(&self) {
        let mut state = self.lock();
        state.leaving = true;
        self.stop.store(true, Ordering::Relaxed);
        self.changed.notify_all();
    }

    /// Waits until nothing is left.
    pub fn wait_until_left(&self) {
        let mut state = self.lock();
        while !state.left {
            self.changed.wait_for(&mut state, LOOK);
        }
    }

    /// Waits for what `connection` does not have yet of question `number`: `have` lines it has.
    pub fn news(&self, connection: u64, number: u64, have: usize) -> News {
        let mut state = self.lock();
        loop {
            if state.connection != connection || state.left || number != state.number {
                return News::Over;
            }
            if let Some(answer) = &state.answer {
                return News::Answer(state.lines, answer.clone());
            }
            if state.lines > have {
                return News::Lines(state.lines);
            }
            self.changed.wait_for(&mut state, LOOK);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use whichfs_trial::Event;
    use whichfs_units::Nanos;

    const LONG: Duration = Duration::from_secs(60);

    fn told(at: u64) -> StampedEvent {
        StampedEvent {
            at: Nanos(at),
            event: Event::Done,
            reading: None,
        }
    }

    #[test]
    fn a_question_is_done_once_however_often_it_is_asked() {
        let home = tempfile::tempdir().unwrap();
        let session = Session::new(home.path(), LONG);
        let connection = session.connect();
        session.ask(1, Ask::Written).unwrap();
        session.ask(1, Ask::Written).unwrap();
        assert!(matches!(session.next(), Some(Ask::Written)));
        session.tell(&told(1));
        assert!(matches!(session.news(connection, 1, 0), News::Lines(1)));
        let error = session.ask(2, Ask::End).unwrap_err();
        assert!(error.message.contains("after 1"), "the first is under way");
        session.complete(&[told(1), told(2)]).unwrap();
        session.answer(Ok(Answer::Done));
        // Another connection asks for it again, and has one line.
        let other = session.connect();
        assert!(matches!(session.news(connection, 1, 1), News::Over));
        session.ask(1, Ask::Written).unwrap();
        let News::Answer(2, Ok(Answer::Done)) = session.news(other, 1, 1) else {
            panic!("it was answered");
        };
        assert_eq!(
            std::fs::read_to_string(session.told())
                .unwrap()
                .lines()
                .count(),
            2
        );
        assert!(session.ask(3, Ask::End).is_err());
        session.ask(2, Ask::End).unwrap();
        assert!(matches!(session.next(), Some(Ask::End)));
    }

    #[test]
    fn a_session_ends_when_its_asker_says_so_or_is_gone() {
        let home = tempfile::tempdir().unwrap();
        let session = Session::new(home.path(), Duration::ZERO);
        std::thread::sleep(Duration::from_millis(1));
        assert!(session.next().is_none(), "nobody comes");
        let session = Session::new(home.path(), LONG);
        let connection = session.connect();
        assert!(session.is_attended());
        session.disconnect(connection);
        assert!(!session.is_attended());
        session.leave();
        assert!(session.next().is_none() && session.stop().load(Ordering::Relaxed));
    }

    #[test]
    fn a_line_that_is_awaited_is_heard_or_the_trial_ends() {
        let home = tempfile::tempdir().unwrap();
        let session = Session::new(home.path(), LONG);
        session.ask(1, Ask::Written).unwrap();
        session.tell(&told(1));
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| session.wait_until_heard());
            session.is_heard(2, 9);
            session.is_heard(1, 0);
            std::thread::sleep(Duration::from_millis(20));
            assert!(!waits.is_finished());
            session.is_heard(1, 1);
        });
        session.tell(&told(2));
        session.stop().store(true, Ordering::Relaxed);
        session.wait_until_heard();
        let left = Session::new(home.path(), Duration::ZERO);
        left.ask(1, Ask::Written).unwrap();
        left.tell(&told(1));
        left.wait_until_heard();
        assert!(left.next().is_none(), "nobody came");
    }

    #[test]
    fn what_cannot_be_kept_is_no_result() {
        let home = tempfile::tempdir().unwrap();
        let session = Session::new(home.path(), LONG);
        std::os::unix::fs::symlink("/dev/full", session.told()).unwrap();
        session.ask(1, Ask::Written).unwrap();
        let error = session.complete(&[told(1)]).unwrap_err();
        assert!(error.message.contains("make room"), "{error}");
    }
}
