//! The evidence as one SVG picture: extra time across boundaries, rates by request size,
//! and what a write costs by the number of AUs in use.

use crate::evidence::{Evidence, Streams};
use crate::findings::{Findings, Quantity};
use crate::stats::median;
use std::fmt::Write as _;
use whichfs_units::Bytes;

const WIDTH: f64 = 760.0;
const PANEL: f64 = 220.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 32.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 40.0;
/// Colours that are told apart by the colour-blind too.
const COLOURS: [&str; 2] = ["#0072b2", "#d55e00"];

/// A line of points: place on the axis (0 to 1 evenly), value, error.
struct Series {
    name: &'static str,
    points: Vec<(usize, f64, f64)>,
}

/// One diagram.
struct Panel {
    title: String,
    unit: &'static str,
    labels: Vec<String>,
    series: Vec<Series>,
    logarithmic: bool,
    /// Places on the axis that have a name.
    marks: Vec<(usize, String)>,
}

/// The evidence of `findings` as SVG, stand-alone and without scripts.
pub fn svg(findings: &Findings) -> String {
    let measured = &findings.measured;
    let panels: Vec<Panel> = [boundaries(findings), rates(measured), turns(measured)]
        .into_iter()
        .flatten()
        .collect();
    let height = PANEL * panels.len().max(1) as f64;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"white\"/>\n"
    );
    if panels.is_empty() {
        text += "<text x=\"20\" y=\"40\">nothing was measured</text>\n";
    }
    for (at, panel) in panels.iter().enumerate() {
        draw(&mut text, panel, PANEL * at as f64);
    }
    text + "</svg>\n"
}

fn boundaries(findings: &Findings) -> Option<Panel> {
    let test = findings.measured.align.as_ref()?;
    let marks = [
        (Quantity::PageBytes, "page"),
        (Quantity::WriteUnitBytes, "write unit"),
        (Quantity::AuBytes, "AU"),
        (Quantity::ZoneBytes, "zone"),
    ];
    let marks = marks.into_iter().filter_map(|(quantity, name)| {
        let bytes = findings.value(quantity)?.whole();
        let level = 1 << bytes.trailing_zeros();
        let at = test.levels.iter().position(|l| l.bytes == level)?;
        Some((at, format!("{name} {}", Bytes(bytes))))
    });
    let points = test.levels.iter().enumerate();
    Some(Panel {
        title: "Extra time of a read across odd multiples of".into(),
        unit: "µs",
        labels: test
            .levels
            .iter()
            .map(|l| Bytes(l.bytes).to_string())
            .collect(),
        series: vec![Series {
            name: "median and error",
            points: points
                .map(|(at, l)| (at, l.extra_us.median, l.extra_us.error))
                .collect(),
        }],
        logarithmic: false,
        marks: marks.collect(),
    })
}

fn rates(measured: &Evidence) -> Option<Panel> {
    let sizes: Vec<u64> = [&measured.reads, &measured.writes]
        .into_iter()
        .flatten()
        .map(|streams| streams.rates.keys().copied().collect::<Vec<_>>())
        .max_by_key(Vec::len)?;
    let line = |name, streams: &Streams| Series {
        name,
        points: sizes
            .iter()
            .enumerate()
            .filter_map(|(at, size)| {
                let rates = streams.rates.get(size)?;
                Some((at, median(rates)? / 1e6, 0.0))
            })
            .collect(),
    };
    let mut series = Vec::new();
    series.extend(measured.reads.as_ref().map(|streams| line("read", streams)));
    series.extend(
        measured
            .writes
            .as_ref()
            .map(|streams| line("write", streams)),
    );
    Some(Panel {
        title: "Rate in order by request size".into(),
        unit: "MB/s",
        labels: sizes.iter().map(|size| Bytes(*size).to_string()).collect(),
        series,
        logarithmic: true,
        marks: Vec::new(),
    })
}

fn turns(measured: &Evidence) -> Option<Panel> {
    let tests = [
        ("in order", measured.open_linear.as_ref()),
        ("at random", measured.open_random.as_ref()),
    ];
    let mut counts: Vec<u32> = tests
        .iter()
        .filter_map(|(_, test)| *test)
        .flat_map(|test| test.turns.iter().map(|turn| turn.aus))
        .collect();
    counts.sort_unstable();
    counts.dedup();
    let series: Vec<Series> = tests
        .into_iter()
        .map(|(name, test)| {
            let points = counts.iter().enumerate().filter_map(|(at, count)| {
                let turns = test?.turns.iter().filter(|turn| turn.aus == *count);
                let times: Vec<f64> = turns
                    .map(|turn| {
                        if turn.too_many {
                            turn.slow_us
                        } else {
                            turn.fast_us
                        }
                    })
                    .collect();
                Some((at, median(&times)? / 1e3, 0.0))
            });
            let points = points.collect();
            Series { name, points }
        })
        .filter(|series| !series.points.is_empty())
        .collect();
    (!series.is_empty()).then(|| Panel {
        title: "Time of a write of 64 KiB by AUs in use".into(),
        unit: "ms",
        labels: counts.iter().map(ToString::to_string).collect(),
        series,
        logarithmic: true,
        marks: Vec::new(),
    })
}

/// Bounds of the values of a panel, as they are drawn.
fn bounds(panel: &Panel) -> (f64, f64) {
    let values = || {
        panel
            .series
            .iter()
            .flat_map(|s| s.points.iter().map(|p| p.1))
    };
    let (low, high) = values().fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(v), h.max(v)));
    if panel.logarithmic {
        return (low.max(1e-3).log10().floor(), high.max(1e-2).log10().ceil());
    }
    (low.min(0.0), (high * 1.15).max(1.0))
}

/// Where a panel's values are on the page.
struct Scale {
    top: f64,
    low: f64,
    high: f64,
    last: f64,
    logarithmic: bool,
}

impl Scale {
    fn of(panel: &Panel, top: f64) -> Scale {
        let (low, high) = bounds(panel);
        Scale {
            top,
            low,
            high,
            last: (panel.labels.len().max(2) - 1) as f64,
            logarithmic: panel.logarithmic,
        }
    }

    fn x(&self, at: usize) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * at as f64 / self.last
    }

    fn y(&self, value: f64) -> f64 {
        let value = match self.logarithmic {
            true => value.max(1e-3).log10(),
            false => value,
        };
        let share = (value - self.low) / (self.high - self.low).max(1e-9);
        self.top + PANEL - BOTTOM - (PANEL - TOP - BOTTOM) * share
    }
}

fn draw(text: &mut String, panel: &Panel, top: f64) {
    let scale = Scale::of(panel, top);
    let _ = writeln!(
        text,
        "<text x=\"{LEFT}\" y=\"{:.1}\" font-weight=\"bold\">{} ({})</text>",
        top + 16.0,
        escape(&panel.title),
        panel.unit
    );
    axes(text, panel, &scale);
    for (which, series) in panel.series.iter().enumerate() {
        line(text, series, which, &scale);
    }
}

fn axes(text: &mut String, panel: &Panel, scale: &Scale) {
    let bottom = scale.top + PANEL - BOTTOM;
    for tick in ticks(panel, scale.low, scale.high) {
        let y = scale.y(tick);
        let _ = writeln!(
            text,
            "<line x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#ddd\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{tick}</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            y + 4.0
        );
    }
    let every = panel.labels.len().div_ceil(12).max(1);
    for (at, label) in panel.labels.iter().enumerate().step_by(every) {
        let _ = writeln!(
            text,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            scale.x(at),
            bottom + 16.0,
            escape(label)
        );
    }
    for (at, name) in &panel.marks {
        let x = scale.x(*at);
        let _ = writeln!(
            text,
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{bottom:.1}\" stroke=\"#888\" \
             stroke-dasharray=\"3 3\"/><text x=\"{:.1}\" y=\"{:.1}\" fill=\"#444\">{}</text>",
            scale.top + TOP,
            x + 3.0,
            scale.top + TOP + 8.0,
            escape(name)
        );
    }
}

fn line(text: &mut String, series: &Series, which: usize, scale: &Scale) {
    let colour = COLOURS[which % COLOURS.len()];
    let points: Vec<String> = series
        .points
        .iter()
        .map(|(at, value, _)| format!("{:.1},{:.1}", scale.x(*at), scale.y(*value)))
        .collect();
    let _ = writeln!(
        text,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>",
        points.join(" ")
    );
    for (at, value, error) in &series.points {
        let x = scale.x(*at);
        let _ = writeln!(
            text,
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\"/>\
             <circle cx=\"{x:.1}\" cy=\"{:.1}\" r=\"2.5\" fill=\"{colour}\"/>",
            scale.y(value - error),
            scale.y(value + error),
            scale.y(*value)
        );
    }
    let _ = writeln!(
        text,
        "<text x=\"{:.1}\" y=\"{:.1}\" fill=\"{colour}\" text-anchor=\"end\">{}</text>",
        WIDTH - RIGHT - 110.0 * which as f64,
        scale.top + 16.0,
        series.name
    );
}

/// Values at which lines are drawn.
fn ticks(panel: &Panel, low: f64, high: f64) -> Vec<f64> {
    if panel.logarithmic {
        return (low as i32..=high as i32)
            .map(|power| 10_f64.powi(power))
            .collect();
    }
    let step = 10_f64.powf((high / 4.0).log10().floor());
    let step = if high / step > 20.0 {
        5.0 * step
    } else if high / step > 8.0 {
        2.0 * step
    } else {
        step
    };
    (0..)
        .map(|at| f64::from(at) * step)
        .take_while(|tick| *tick <= high)
        .collect()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
