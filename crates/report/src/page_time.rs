//! The device over time: open AUs and write amplification of each candidate's first trial, all on
//! one axis of time.

use crate::device::{DeviceView, PhaseView, SeriesView};
use crate::number::{duration, short, with_unit};
use crate::page::Page;
use crate::page_device::{Tick, ordered};
use whichfs_units::{Bytes, counted};

/// One candidate's first trial on the axis of time.
pub(crate) struct TimeRow {
    pub candidate: String,
    pub seconds: String,
    /// Where on the axis it ends, in percent.
    pub length: String,
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
    /// Place in percent of the axis.
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

/// The axis of time that all candidates share, from the first phase of each.
pub(crate) struct Axis {
    /// Its end: the time of the longest trial.
    pub end: String,
    pub ticks: Vec<Tick>,
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
    let end = devices.iter().copied().map(end_of).fold(0.0, f64::max);
    let rows = devices.into_iter();
    rows.map(|device| time_row(device, end, fastest)).collect()
}

/// When the first trial of `device` ends, in seconds.
fn end_of(device: &DeviceView) -> f64 {
    device.phases.last().map_or(0.0, |phase| phase.end_s)
}

/// The axis of [`times`]; none where nobody has any.
pub(crate) fn axis(page: &Page) -> Option<Axis> {
    let end = page.devices.iter().map(end_of).fold(0.0, f64::max);
    (end > 0.0).then(|| Axis {
        end: duration(end),
        ticks: ticks(end),
    })
}

/// Ticks of an axis from 0 to `end` seconds at round figures: three to six of them; of more than
/// four every other has a text, because a telephone has room for no more.
fn ticks(end: f64) -> Vec<Tick> {
    // Of a step that is a fifth at most, the next larger of 1, 2 and 5 times a power of ten.
    let power = 10_f64.powf((end / 5.0).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|times| times * power);
    let step = steps.into_iter().find(|step| end / step <= 5.0);
    let step = step.unwrap_or(end);
    let count = (end / step + 1e-9).floor() as u32;
    let tick = |at: u32| {
        let seconds = f64::from(at) * step;
        Tick {
            percent: format!("{:.2}", seconds / end * 100.0),
            text: match at {
                0 => "0".to_owned(),
                at if count > 3 && !at.is_multiple_of(2) => String::new(),
                _ => round(seconds),
            },
            anchor: match at {
                0 => "start",
                _ if seconds > end * 0.95 => "end",
                _ => "middle",
            },
        }
    };
    (0..=count).map(tick).collect()
}

/// Seconds that are a round figure, without zeros that say nothing.
fn round(seconds: f64) -> String {
    let said = |value: f64, unit: &str| {
        let text = format!("{value:.3}");
        format!(
            "{} {unit}",
            text.trim_end_matches('0').trim_end_matches('.')
        )
    };
    match seconds {
        s if s < 1.0 => said(s * 1e3, "ms"),
        s => said(s, "s"),
    }
}

/// Most AU copies a second in a slot.
fn most_copies(device: &DeviceView) -> Option<f64> {
    let series = device.series.as_ref()?;
    Some(*series.au_copies.iter().max()? as f64 / series.slot_s)
}

/// The row of `device` on an axis of `end` seconds; `fastest` AU copies a second fill the drawing's
/// height.
fn time_row(device: &DeviceView, end: f64, fastest: f64) -> TimeRow {
    let own = end_of(device);
    let series = device.series.as_ref();
    TimeRow {
        candidate: device.candidate.clone(),
        seconds: duration(own),
        length: format!("{:.2}", own / end.max(1e-9) * 100.0),
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
    fn all_candidates_share_the_axis_of_the_longest() {
        let page = crate::fixture::page();
        let rows = times(&page);
        let longest = page.devices.iter().map(end_of).fold(0.0, f64::max);
        let lengths: Vec<f64> = rows.iter().map(|row| row.length.parse().unwrap()).collect();
        assert_eq!(lengths.iter().copied().fold(0.0, f64::max), 100.0);
        for (row, length) in rows.iter().zip(lengths) {
            let mut devices = page.devices.iter();
            let device = devices.find(|one| one.candidate == row.candidate).unwrap();
            assert!((length - end_of(device) / longest * 100.0).abs() < 0.01);
            let last = row.steps.last().unwrap();
            let end: f64 = last.begin.parse::<f64>().unwrap() + last.width.parse::<f64>().unwrap();
            assert!(
                (end - length).abs() < 0.1,
                "phases end where the trial ends"
            );
            let path = row.amplification.rsplit('H').next().unwrap();
            let x: f64 = path.split('V').next().unwrap().parse().unwrap();
            assert!(x <= length * 10.0 + 1.0, "{x} of {length}");
        }
    }

    #[test]
    fn ticks_are_round_and_neither_few_nor_many() {
        let check = |end: f64, said: &[&str]| {
            let texts: Vec<String> = ticks(end).into_iter().map(|tick| tick.text).collect();
            assert_eq!(texts, said);
        };
        check(38.9, &["0", "10 s", "20 s", "30 s"]);
        check(7.24, &["0", "2 s", "4 s", "6 s"]);
        check(0.5, &["0", "", "200 ms", "", "400 ms", ""]);
        check(1834.0, &["0", "500 s", "1000 s", "1500 s"]);
        for tenth in 1..2_000 {
            let count = ticks(f64::from(tenth) / 10.0).len();
            assert!((3..=6).contains(&count), "{tenth}: {count}");
        }
        assert_eq!(ticks(10.0).last().map(|tick| tick.anchor), Some("end"));
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
