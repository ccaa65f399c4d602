//! The picture of a timeline: requests as bars from their arrival until the card was done.

use crate::crash::{CrashLine, LineState};

/// Bars lie in so many lanes, since several requests may be under way at once.
const LANES: usize = 4;
/// Height of a lane in pixels, the gap to the next one included.
const LANE: usize = 8;

/// Requests before the cut: a pause before them would make those around the cut too small.
const BEFORE: usize = 8;

/// A picture; places are in percent of its width.
pub(crate) struct Strip {
    pub(crate) bars: Vec<Bar>,
    /// Instants at which calls returned.
    pub(crate) promises: Vec<Tick>,
    /// Place of the power cut.
    pub(crate) cut: String,
    /// What the width stands for.
    pub(crate) width: String,
}

/// A request from its arrival until the card was done.
pub(crate) struct Bar {
    pub(crate) class: &'static str,
    pub(crate) x: String,
    pub(crate) y: usize,
    pub(crate) width: String,
    pub(crate) title: String,
}

/// The instant at which a call returned, which promised something.
pub(crate) struct Tick {
    pub(crate) x: String,
    pub(crate) title: String,
}

/// The name that style sheets have for a state.
pub(crate) fn class(state: LineState) -> &'static str {
    match state {
        LineState::Whole => "whole",
        LineState::Unreported => "unreported",
        LineState::Torn => "torn",
        LineState::Lost => "lost",
        LineState::NeverCame => "never",
        LineState::Promise => "promise",
        LineState::Cut => "cut",
        LineState::LeftOut => "out",
    }
}

/// The picture of the last requests before the cut and those after it; what a cut hurt is always
/// there, but for what lies before requests that `lines` leave out. None without requests.
pub(crate) fn strip(lines: &[CrashLine]) -> Option<Strip> {
    let left_out = lines
        .iter()
        .rposition(|line| line.state == LineState::LeftOut);
    let lines = &lines[left_out.map_or(0, |at| at + 1)..];
    let first = first_shown(lines)?;
    let end_of = |line: &CrashLine| line.done_ms.unwrap_or(line.ms);
    let requests = || {
        let shown = move |line: &&CrashLine| line.request.is_some() && end_of(line) >= first;
        lines.iter().filter(shown)
    };
    let last = requests().map(end_of).fold(0.0, f64::max);
    let span = (last - first).max(1e-9);
    let percent = |ms: f64| ((ms - first) / span * 100.0).clamp(0.0, 100.0);
    let bars = requests().enumerate().map(|(n, line)| Bar {
        class: class(line.state),
        x: format!("{:.2}", percent(line.ms)),
        y: n % LANES * LANE,
        width: format!(
            "{:.2}",
            (percent(end_of(line)) - percent(line.ms)).max(0.25)
        ),
        title: match line.request {
            Some(number) => format!("{number}: {}: {}", line.what, line.left),
            None => line.what.clone(),
        },
    });
    let promises = lines
        .iter()
        .filter(|line| line.state == LineState::Promise && line.ms >= first);
    Some(Strip {
        bars: bars.collect(),
        promises: promises
            .map(|line| Tick {
                x: format!("{:.2}", percent(line.ms)),
                title: line.what.clone(),
            })
            .collect(),
        cut: format!("{:.2}", percent(0.0)),
        width: format!("{span:.1} ms"),
    })
}

/// Where the picture begins, in milliseconds from the cut on.
fn first_shown(lines: &[CrashLine]) -> Option<f64> {
    let requests = || lines.iter().filter(|line| line.request.is_some());
    let before: Vec<f64> = requests()
        .map(|line| line.ms)
        .filter(|ms| *ms <= 0.0)
        .collect();
    let near = before.get(before.len().saturating_sub(BEFORE));
    let hurt = requests().find(|line| matches!(line.state, LineState::Lost | LineState::Torn));
    let hurt = hurt.map_or(0.0, |line| line.ms);
    requests().next()?;
    Some(near.copied().unwrap_or(0.0).min(hurt))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn request(number: usize, ms: f64, done_ms: f64, state: LineState) -> CrashLine {
        CrashLine {
            ms,
            done_ms: Some(done_ms),
            request: Some(number),
            state,
            ..CrashLine::default()
        }
    }

    fn other(ms: f64, state: LineState) -> CrashLine {
        CrashLine {
            ms,
            state,
            ..CrashLine::default()
        }
    }

    #[test]
    fn requests_lie_where_they_were_and_the_cut_among_them() {
        let strip = strip(&[
            request(1, -900.0, -899.0, LineState::Lost),
            other(-800.0, LineState::LeftOut),
            request(7, -6.0, -4.0, LineState::Whole),
            other(-3.0, LineState::Promise),
            request(8, -1.0, 1.0, LineState::Torn),
            other(0.0, LineState::Cut),
            request(9, 3.0, 4.0, LineState::NeverCame),
        ])
        .unwrap();
        let places: Vec<(&str, &str, &str)> = (strip.bars.iter())
            .map(|bar| (bar.class, bar.x.as_str(), bar.width.as_str()))
            .collect();
        let expected = [
            ("whole", "0.00", "20.00"),
            ("torn", "50.00", "20.00"),
            ("never", "90.00", "10.00"),
        ];
        assert_eq!(places, expected);
        assert_eq!(
            (strip.cut.as_str(), strip.width.as_str()),
            ("60.00", "10.0 ms")
        );
        assert_eq!(strip.promises[0].x, "30.00");
    }

    #[test]
    fn a_pause_before_the_last_requests_is_not_shown() {
        let mut lines: Vec<CrashLine> = (0..20)
            .map(|n| request(n, n as f64 - 1000.0, n as f64 - 999.0, LineState::Whole))
            .collect();
        lines.extend(
            (20..30).map(|n| request(n, n as f64 - 30.0, n as f64 - 29.0, LineState::Whole)),
        );
        assert_eq!(strip(&lines).unwrap().width, "8.0 ms");
        lines[25].state = LineState::Lost;
        assert_eq!(strip(&lines).unwrap().width, "8.0 ms");
        lines[20].state = LineState::Torn;
        assert_eq!(
            strip(&lines).unwrap().width,
            "10.0 ms",
            "what is hurt is shown"
        );
    }

    #[test]
    fn without_requests_there_is_no_picture() {
        assert!(strip(&[other(0.0, LineState::Cut)]).is_none());
    }
}
