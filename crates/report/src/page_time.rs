//! The device over time: open AUs and write amplification of each candidate's first trial.

use crate::device::{DeviceView, PhaseView, SeriesView};
use crate::number::{duration, short, with_unit};
use crate::page::Page;
use crate::page_device::ordered;
use whichfs_units::{Bytes, counted};

/// One candidate's first trial on the axis of time.
pub(crate) struct TimeRow {
    pub candidate: String,
    pub seconds: String,
    /// Its phases, each a block for its write amplification.
    pub steps: Vec<Step>,
    /// Write amplification as a path in a drawing of [`WIDTH`] by [`HEIGHT`]; empty where only the
    /// sums of phases are known.
    pub amplification: String,
    /// Open AUs as such a path; none where the card has no such limit or nobody recorded it.
    pub open: Option<Open>,
}

/// Open AUs over time.
pub(crate) struct Open {
    pub path: String,
    /// AU copies over time, as another path in the same drawing.
    pub copies: String,
    /// `5 of 5`.
    pub most: String,
    /// AU copies in all.
    pub copied: u64,
}

/// One phase.
pub(crate) struct Step {
    /// Place in percent of this trial's time.
    pub begin: String,
    pub width: String,
    /// Height in pixels and place from the top, for its write amplification.
    pub height: String,
    pub top: String,
    pub text: String,
    /// The same in figures: name, begin and length, bytes written, programmed by written, AU
    /// copies, erases.
    pub name: String,
    pub at: String,
    pub lasts: String,
    pub written: String,
    pub factor: String,
    pub copies: u64,
    pub erases: u64,
}

/// Size of the drawings; the width is stretched to that of the page.
pub(crate) const WIDTH: f64 = 1000.0;
pub(crate) const HEIGHT: f64 = 32.0;

/// The write amplification that fills the height is two to this power less one; each equal part of
/// the height doubles it.
const DOUBLINGS: f64 = 5.0;

pub(crate) fn times(page: &Page) -> Vec<TimeRow> {
    let devices: Vec<&DeviceView> = (ordered(page).into_iter())
        .filter(|device| !device.phases.is_empty())
        .collect();
    let rates = devices.iter().filter_map(|device| most_copies(device));
    let fastest = rates.fold(0.0, f64::max);
    let rows = devices.into_iter();
    rows.map(|device| time_row(device, fastest)).collect()
}

/// Most AU copies a second in a slot.
fn most_copies(device: &DeviceView) -> Option<f64> {
    let series = device.series.as_ref()?;
    Some(*series.au_copies.iter().max()? as f64 / series.slot_s)
}

/// The row of `device`; so many AU copies a second fill the drawing's height.
fn time_row(device: &DeviceView, fastest: f64) -> TimeRow {
    let end = device.phases.last().map_or(0.0, |phase| phase.end_s);
    let series = device.series.as_ref();
    TimeRow {
        candidate: device.candidate.clone(),
        seconds: duration(end),
        steps: device.phases.iter().map(|phase| step(phase, end)).collect(),
        amplification: series.map_or(String::new(), |series| {
            stairs(series, end, &amplifications(series))
        }),
        open: series.and_then(|series| open(series, end, fastest)),
    }
}

/// Part of the drawing's height that a write amplification takes: 1 is a fifth of it, 2 two.
fn height_of(amplification: f64) -> f64 {
    ((amplification.max(1e-9).log2() + 1.0) / DOUBLINGS).clamp(0.02, 1.0)
}

fn step(phase: &PhaseView, end: f64) -> Step {
    let place = |seconds: f64| seconds / end.max(1e-9) * 100.0;
    let times = phase.write_amplification();
    let height = times.map_or(0.0, height_of) * HEIGHT;
    let seconds = duration(phase.end_s - phase.begin_s);
    let name = phase.phase.replace('_', " ");
    let width = (place(phase.end_s) - place(phase.begin_s)).max(0.1);
    Step {
        begin: format!("{:.2}", place(phase.begin_s)),
        width: format!("{width:.2}"),
        height: format!("{height:.1}"),
        top: format!("{:.1}", HEIGHT - height),
        at: duration(phase.begin_s.max(0.0)),
        lasts: seconds.clone(),
        written: with_unit(phase.write_bytes as f64, "B"),
        factor: times.map_or("–".to_owned(), |times| format!("{} ×", short(times))),
        copies: phase.au_copies,
        erases: phase.erases,
        name: name.clone(),
        text: match times {
            None => format!("{name}: {seconds}, nothing written"),
            Some(times) => format!(
                "{name}: {seconds}, {} written, each byte programmed {} times, {}, {}",
                Bytes(phase.write_bytes),
                short(times),
                counted(phase.au_copies, "AU copy"),
                counted(phase.erases, "erase")
            ),
        },
    }
}

/// Height of each slot's write amplification; nothing where nothing was written. What is programmed
/// in a slot without writes (a cache that is emptied) is counted to the last one that has some.
fn amplifications(series: &SeriesView) -> Vec<f64> {
    let mut heights = vec![0.0; series.write_bytes.len()];
    let (mut last, mut programmed) = (0, 0);
    for (at, (&written, &own)) in
        (series.write_bytes.iter().zip(&series.programmed_bytes)).enumerate()
    {
        if written > 0 {
            (last, programmed) = (at, 0);
        }
        programmed += own;
        if let Some(host) = series.write_bytes.get(last).filter(|host| **host > 0) {
            heights[last] = height_of(programmed as f64 / *host as f64);
        }
    }
    heights
}

fn open(series: &SeriesView, end: f64, fastest: f64) -> Option<Open> {
    let limit = series.open_limit.filter(|limit| *limit > 0)?;
    let part = |open: &u32| f64::from(*open) / f64::from(limit);
    let heights: Vec<f64> = series.open_aus.iter().map(part).collect();
    let most = series.open_aus.iter().max()?;
    let rate = |copies: &u64| *copies as f64 / series.slot_s / fastest.max(1e-9);
    let copies: Vec<f64> = series.au_copies.iter().map(rate).collect();
    Some(Open {
        path: stairs(series, end, &heights),
        copies: stairs(series, end, &copies),
        most: format!("{most} of {limit}"),
        copied: series.au_copies.iter().sum(),
    })
}

/// A path of stairs from the bottom: the slots' heights as parts of the drawing's.
fn stairs(series: &SeriesView, end: f64, heights: &[f64]) -> String {
    let x = |slot: usize| {
        let seconds = series.begin_s + slot as f64 * series.slot_s;
        format!("{:.0}", (seconds / end.max(1e-9)).clamp(0.0, 1.0) * WIDTH)
    };
    let mut path = format!("M{} {HEIGHT}", x(0));
    let mut last = String::new();
    for (at, height) in heights.iter().enumerate() {
        let y = format!("{:.1}", HEIGHT - height.clamp(0.0, 1.0) * HEIGHT);
        if y != last {
            path.push_str(&format!("H{}V{y}", x(at)));
            last = y;
        }
    }
    path.push_str(&format!("H{}V{HEIGHT}Z", x(heights.len())));
    path
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn series() -> SeriesView {
        SeriesView {
            begin_s: -0.5,
            slot_s: 1.0,
            open_limit: Some(4),
            open_aus: vec![2, 4, 4, 1],
            writes: vec![1, 0, 2, 1],
            write_bytes: vec![10, 0, 10, 10],
            programmed_bytes: vec![10, 10, 160, 10],
            au_copies: vec![0, 2, 1, 0],
        }
    }

    #[test]
    fn open_aus_are_stairs_up_to_the_limit() {
        let open = open(&series(), 3.5, 2.0).unwrap();
        assert_eq!((open.most.as_str(), open.copied), ("4 of 4", 3));
        assert_eq!(
            open.copies,
            "M0 32H0V32.0H143V0.0H429V16.0H714V32.0H1000V32Z"
        );
        assert_eq!(open.path, "M0 32H0V16.0H143V0.0H714V24.0H1000V32Z");
        let unlimited = SeriesView {
            open_limit: None,
            ..series()
        };
        assert!(super::open(&unlimited, 3.5, 2.0).is_none());
    }

    #[test]
    fn what_is_programmed_later_belongs_to_what_was_written_before() {
        let heights = amplifications(&series());
        let expected = [2.0, 1.0, 16.0, 1.0].map(height_of);
        assert_eq!(heights, [expected[0], 0.0, expected[2], expected[3]]);
        assert_eq!(
            [height_of(1.0), height_of(16.0), height_of(99.0)],
            [0.2, 1.0, 1.0]
        );
        let nothing = SeriesView {
            write_bytes: vec![0; 4],
            ..series()
        };
        assert_eq!(amplifications(&nothing), [0.0; 4]);
    }
}
