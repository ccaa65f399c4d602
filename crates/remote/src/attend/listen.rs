//! Connections to a session: lines are read in one thread and told in another.

use super::session::{News, Session};
use crate::refusal::Refusal;
use crate::wire::{Call, Reply, line};
use parking_lot::Mutex;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use whichfs_trial::StampedEvent;

/// Serves all connections, each for itself.
pub fn all(listener: &UnixListener, session: &Arc<Session>) {
    for stream in listener.incoming().flatten() {
        let session = Arc::clone(session);
        std::thread::spawn(move || drop(one(stream, &session)));
    }
}

/// The way back of a connection, on which threads take turns.
type Out = Arc<Mutex<UnixStream>>;

/// Says `reply` as a whole.
fn say(out: &Out, reply: &Reply) -> std::io::Result<()> {
    let mut out = out.lock();
    out.write_all(&line(reply)?)
}

/// Serves a connection until it ends.
fn one(stream: UnixStream, session: &Arc<Session>) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let mut call = || -> Option<Call> {
        let text = lines.next()?.ok()?;
        // What is not understood is of another version, and ends the connection.
        serde_json::from_str(&text).ok()
    };
    let out = Arc::new(Mutex::new(stream.try_clone()?));
    // One that only looks whether somebody listens says nothing and does not count.
    let mut first = call();
    match first {
        None => return Ok(()),
        Some(Call::Retire) => return retire(&out, session),
        Some(_) => {}
    }
    let connection = session.connect();
    let mut calls = std::iter::from_fn(|| first.take().or_else(&mut call));
    let served = converse(&mut calls, &out, session, connection);
    session.disconnect(connection);
    served.and_then(|()| stream.shutdown(Shutdown::Both))
}

/// Does what is called by a connection that counts, until it ends.
fn converse(
    calls: &mut dyn Iterator<Item = Call>,
    out: &Out,
    session: &Arc<Session>,
    connection: u64,
) -> std::io::Result<()> {
    for next in calls {
        session.hear();
        match next {
            Call::Ask { number, have, what } => {
                let (asked, out) = (session.ask(number, what), Arc::clone(out));
                session.is_heard(number, have);
                let session = Arc::clone(session);
                std::thread::spawn(move || {
                    drop(tell(&out, &session, connection, number, have, asked));
                });
            }
            Call::Heard { number, have } => session.is_heard(number, have),
            // Where it succeeds nobody says so.
            Call::Cut { by } => match by.cut() {
                Ok(()) => {}
                Err(why) => say(out, &Reply::NotCut { why })?,
            },
            Call::Stop => session
                .stop()
                .store(true, std::sync::atomic::Ordering::Relaxed),
            Call::Leave => {
                session.leave();
                session.wait_until_left();
                return say(out, &Reply::Left);
            }
            // Who asks hears that the connection stands.
            Call::Here => say(out, &Reply::Hello)?,
            Call::Retire => {}
        }
    }
    Ok(())
}

/// Another asker wants the board.
fn retire(out: &Out, session: &Session) -> std::io::Result<()> {
    if session.is_attended() {
        return say(out, &Reply::Stays);
    }
    session.leave();
    session.wait_until_left();
    say(out, &Reply::Left)
}

/// Tells what comes of question `number`, but for the first `have` lines.
fn tell(
    out: &Out,
    session: &Session,
    connection: u64,
    number: u64,
    mut have: usize,
    asked: Result<(), Refusal>,
) -> std::io::Result<()> {
    if let Err(refusal) = asked {
        let result = Err(refusal);
        return say(out, &Reply::Answer { number, result });
    }
    let mut lines = BufReader::new(File::open(session.told())?)
        .lines()
        .skip(have);
    loop {
        let (until, result) = match session.news(connection, number, have) {
            News::Over => return Ok(()),
            News::Lines(until) => (until, None),
            News::Answer(until, result) => (until, Some(result)),
        };
        while have < until {
            let Some(text) = lines.next() else { break };
            let told: Box<StampedEvent> = serde_json::from_str(&text?)?;
            say(out, &Reply::StampedEvent { number, told })?;
            have += 1;
        }
        if let Some(result) = result {
            return say(out, &Reply::Answer { number, result });
        }
    }
}
