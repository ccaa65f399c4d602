//! What happened around a cut: requests and what was left of them, promises between them.

use super::CutRun;
use crate::crash::LineState as State;
use schemars::JsonSchema;
use serde::Serialize;
use whichfs_blockdev::Logged;
use whichfs_card::RequestKind;
use whichfs_crash::{Cut, Fate, Promise};
use whichfs_trial::RETURNED;
use whichfs_units::{Bytes, Nanos};

/// How much of a run is shown.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Requests before the cut.
    pub before: usize,
    /// Requests after it.
    pub after: usize,
    /// Requests farther back that the cut hurt.
    pub far: usize,
}

/// A line of the timeline.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CutLine {
    /// When, in nanoseconds of virtual time; a request: when it reached the card.
    pub at: Nanos,
    /// When the card reported a request done, or would have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done: Option<Nanos>,
    /// Number of the request; none for others.
    pub request: Option<usize>,
    /// What kind of line it is, and of a request what became of it.
    pub state: State,
    /// What it was.
    pub what: String,
    /// What the cut left of it.
    pub left: String,
}

/// The requests and promises around `cut`, in the order of time.
pub fn timeline(run: &CutRun, cut: &Cut, extent: Extent) -> Vec<CutLine> {
    if whichfs_crash::is_live(run.faults) {
        // Each run on a card that fails is another one than `run`.
        return Vec::new();
    }
    let timeline = run.timeline;
    let story = Story {
        log: timeline.log(),
        promises: &run.run.promises,
        hurt: &timeline.hurt(run.card, run.faults, cut),
        seen: timeline.seen(cut).len(),
        cut,
    };
    story.lines(extent)
}

/// A run and one cut of it.
struct Story<'a> {
    log: &'a [Logged],
    promises: &'a [Promise],
    /// Requests that are not whole, in their order.
    hurt: &'a [(usize, Fate)],
    /// Requests that reached the card.
    seen: usize,
    cut: &'a Cut,
}

impl Story<'_> {
    fn lines(&self, extent: Extent) -> Vec<CutLine> {
        let end = (self.seen + extent.after).min(self.log.len());
        let range = self.seen.saturating_sub(extent.before)..end;
        // What was lost farther back belongs to the story.
        let early: Vec<usize> = (self.hurt.iter().map(|(index, _)| *index))
            .take_while(|index| *index < range.start)
            .collect();
        let (untold, early) = early.split_at(early.len().saturating_sub(extent.far));
        let mut lines = Vec::new();
        if let Some(first) = untold.first() {
            let (hurt, be) = (
                requests(untold.len()),
                if untold.len() == 1 { "is" } else { "are" },
            );
            let what = format!("{hurt} farther back {be} hurt too");
            lines.push(plain(self.log[*first].arrived, State::LeftOut, what));
        }
        let mut next = early.first().copied().unwrap_or(range.start);
        for index in early.iter().copied().chain(range.clone()) {
            if index > next {
                let what = format!("{}, whole", requests(index - next));
                lines.push(plain(self.log[next].arrived, State::LeftOut, what));
            }
            lines.push(self.request(index));
            next = index + 1;
        }
        lines.extend(self.promises(range));
        let what = "THE POWER GOES".to_owned();
        lines.push(plain(self.cut.at, State::Cut, what));
        lines.sort_by_key(|line| line.at);
        lines
    }

    fn request(&self, index: usize) -> CutLine {
        let request = &self.log[index];
        let (state, left) = self.left(index, request);
        CutLine {
            at: request.arrived,
            done: Some(request.done),
            request: Some(index),
            state,
            what: told(request),
            left,
        }
    }

    /// What the cut left of a request.
    fn left(&self, index: usize, request: &Logged) -> (State, String) {
        if index >= self.seen {
            return (State::NeverCame, "never came".to_owned());
        }
        let reported = request.done <= self.cut.at;
        let though = if reported {
            ", though reported done"
        } else {
            ""
        };
        let lost = (State::Lost, format!("LOST{though}"));
        let torn = |what: String| (State::Torn, format!("TORN: {what}{though}"));
        let found = self.hurt.iter().find(|(hurt, _)| *hurt == index);
        match found.map(|(_, fate)| *fate) {
            Some(Fate::Lost) => lost,
            Some(Fate::Before(end)) => match end.saturating_sub(request.offset) {
                0 => lost,
                kept if kept < request.bytes => torn(format!("the first {}", Bytes(kept))),
                _ => whole(reported),
            },
            Some(Fate::Whole) | None if request.op == RequestKind::Flush => flushed(reported),
            Some(Fate::Pieces(unit)) => torn(format!("some pieces of {}", Bytes(unit))),
            Some(Fate::Whole) | None => whole(reported),
        }
    }

    /// The calls that returned while the requests of `range` came; of operations that only
    /// returned, those in a row as one line.
    fn promises(&self, range: std::ops::Range<usize>) -> Vec<CutLine> {
        let shown = &self.log[range];
        let (Some(first), Some(last)) = (shown.first(), shown.last()) else {
            return Vec::new();
        };
        let within = |promise: &&Promise| (first.arrived..=last.done).contains(&promise.at);
        let mut lines: Vec<CutLine> = Vec::new();
        // The first operation of the row, and the requests that had come by then.
        let mut row: Option<(u64, usize, bool)> = None;
        for promise in self.promises.iter().filter(within) {
            let come = shown.partition_point(|request| request.arrived <= promise.at);
            let place = (come, promise.at > self.cut.at);
            let is_return = promise.call == RETURNED;
            let goes_on = row.filter(|(_, come, after)| is_return && (*come, *after) == place);
            match (goes_on, lines.last_mut()) {
                (Some((from, ..)), Some(line)) => {
                    line.what = format!("operations {from} to {} returned", promise.operations);
                }
                _ => lines.push(plain(promise.at, State::Promise, promised(promise))),
            }
            row = match goes_on {
                None if is_return => Some((promise.operations, place.0, place.1)),
                goes_on => goes_on,
            };
        }
        lines
    }
}

fn plain(at: Nanos, state: State, what: String) -> CutLine {
    CutLine {
        at,
        done: None,
        request: None,
        state,
        what,
        left: String::new(),
    }
}

fn requests(count: usize) -> String {
    match count {
        1 => "1 request".to_owned(),
        count => format!("{count} requests"),
    }
}

/// A flush that came: whether it kept what it said is told of the writes before it.
fn flushed(reported: bool) -> (State, String) {
    match reported {
        true => (State::Whole, "reported done".to_owned()),
        false => (State::Unreported, "not yet reported".to_owned()),
    }
}

fn whole(reported: bool) -> (State, String) {
    match reported {
        true => (State::Whole, "whole".to_owned()),
        false => (State::Unreported, "whole, not yet reported".to_owned()),
    }
}

fn told(request: &Logged) -> String {
    let place = || format!("{} at {}", Bytes(request.bytes), Bytes(request.offset));
    let collects = if request.collected {
        ", the card collects"
    } else {
        ""
    };
    match request.op {
        RequestKind::Write => format!("write {}{collects}", place()),
        RequestKind::Discard => format!("discard {}", place()),
        RequestKind::Flush => "flush".to_owned(),
        other => format!("{other:?}"),
    }
}

fn promised(promise: &Promise) -> String {
    if promise.call == RETURNED {
        return format!("operation {} returned", promise.operations);
    }
    match promise.path.as_str() {
        "" => format!("promise: {} returned", promise.call),
        path => format!("promise: {} of {path} returned", promise.call),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whichfs_crash::CutPlace;

    /// Writes of 4 KiB, one each 10 ns, done 15 ns later; the power goes at 95.
    fn log() -> Vec<Logged> {
        let request = |n: u64| Logged {
            op: RequestKind::Write,
            offset: n * 4096,
            bytes: 4096,
            arrived: Nanos(n * 10),
            done: Nanos(n * 10 + 15),
            collected: false,
            data: Box::default(),
        };
        (0..12).map(request).collect()
    }

    const CUT: Cut = Cut {
        number: 0,
        request: 9,
        place: CutPlace::Inside,
        at: Nanos(95),
        seed: 1,
    };

    fn lines(promises: &[Promise], hurt: &[(usize, Fate)], extent: Extent) -> Vec<CutLine> {
        let story = Story {
            log: &log(),
            promises,
            hurt,
            seen: 10,
            cut: &CUT,
        };
        story.lines(extent)
    }

    fn promise(at: u64, call: &str, operations: u64) -> Promise {
        Promise {
            at: Nanos(at),
            call: call.into(),
            path: String::new(),
            operations,
        }
    }

    fn states(lines: &[CutLine]) -> Vec<(Option<usize>, State)> {
        lines
            .iter()
            .map(|line| (line.request, line.state))
            .collect()
    }

    #[test]
    fn what_was_lost_far_back_is_told_and_what_lies_between_counted() {
        let hurt = [
            (1, Fate::Lost),
            (2, Fate::Lost),
            (9, Fate::Before(9 * 4096)),
        ];
        let extent = Extent {
            before: 2,
            after: 1,
            far: 1,
        };
        let lines = lines(&[], &hurt, extent);
        let expected = [
            (None, State::LeftOut),
            (Some(2), State::Lost),
            (None, State::LeftOut),
            (Some(8), State::Whole),
            (Some(9), State::Lost),
            (None, State::Cut),
            (Some(10), State::NeverCame),
        ];
        assert_eq!(states(&lines), expected);
        assert_eq!(lines[0].what, "1 request farther back is hurt too");
        assert_eq!(lines[1].left, "LOST, though reported done");
        assert_eq!(lines[2].what, "5 requests, whole");
        assert_eq!(lines[4].left, "LOST");
        assert_eq!(flushed(true).1, "reported done");
    }

    #[test]
    fn torn_and_unreported_requests_are_told_apart() {
        let hurt = [(7, Fate::Pieces(512)), (8, Fate::Before(8 * 4096 + 1024))];
        let extent = Extent {
            before: 3,
            after: 0,
            far: 0,
        };
        let lines = lines(&[], &hurt, extent);
        let left: Vec<&str> = lines.iter().map(|line| line.left.as_str()).collect();
        assert_eq!(
            left,
            [
                "TORN: some pieces of 512 B, though reported done",
                "TORN: the first 1 KiB, though reported done",
                "whole, not yet reported",
                ""
            ]
        );
    }

    #[test]
    fn operations_that_returned_in_a_row_are_one_line() {
        let promises = [
            promise(81, RETURNED, 4),
            promise(82, RETURNED, 5),
            promise(83, RETURNED, 6),
            promise(84, "fsync", 7),
            promise(91, RETURNED, 7),
            promise(97, RETURNED, 8),
        ];
        let extent = Extent {
            before: 2,
            after: 1,
            far: 0,
        };
        let lines = lines(&promises, &[], extent);
        let told = lines.iter().filter(|line| line.state == State::Promise);
        let told: Vec<&str> = told.map(|line| line.what.as_str()).collect();
        assert_eq!(
            told,
            [
                "operations 4 to 6 returned",
                "promise: fsync returned",
                "operation 7 returned",
                "operation 8 returned"
            ]
        );
    }
}
