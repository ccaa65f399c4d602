//! Diagrams as one stand-alone SVG picture: panels in rows and columns, lines and dots on axes.
//! Legible on light and dark grounds, without scripts. The same data are the same bytes.

use std::fmt::Write as _;

/// Space to the left of a panel for the names on its axis, in user units.
const LEFT: f64 = 70.0;
/// Space above a panel for its title.
const ABOVE: f64 = 22.0;
/// Space below a panel for names on its axis, and for the names of its series.
const BELOW: [f64; 2] = [22.0, 18.0];
/// Space to the right of a panel.
const RIGHT: f64 = 16.0;
/// Space for the title, and for the key below all panels.
const ENDS: [f64; 2] = [28.0, 24.0];
/// Most names along an axis.
const NAMES_MAX: usize = 12;
/// Room that a letter of a name takes.
const LETTER: f64 = 6.5;

/// The colours of Okabe and Ito: colour-blind readers can tell them apart, and they are visible on
/// white and on black.
const STYLE: &str = "svg{color:#1b1b1f;background:#fff;font:11px sans-serif}\
text{fill:currentColor}.title{font-size:14px;font-weight:600}.name{font-weight:600}\
.frame{fill:none;stroke:currentColor;stroke-opacity:.35}\
.breaks{stroke:#d55e00;stroke-opacity:1;stroke-width:3}\
.grid{stroke:currentColor;stroke-opacity:.12}\
.mark{stroke:currentColor;stroke-opacity:.5;stroke-dasharray:3 3}\
.line{fill:none;stroke-width:1.5}.hollow{fill:none}\
.c0{stroke:#0072b2;fill:#0072b2}.c1{stroke:#d55e00;fill:#d55e00}.c2{stroke:#009e73;fill:#009e73}\
.line,.hollow{fill:none}\
@media(prefers-color-scheme:dark){svg{color:#e6e6ea;background:#17171a}\
.c0{stroke:#56b4e9;fill:#56b4e9}.c1{stroke:#ff9d5c;fill:#ff9d5c}.line,.hollow{fill:none}}";
/// Colours in [`STYLE`].
const COLOURS: usize = 3;

/// Panels in rows and columns, with a key to their series.
pub(crate) struct Picture<'a> {
    /// Title, of the user's making.
    pub title: &'a str,
    /// Text for screen readers.
    pub alternative: &'a str,
    /// Rows of panels; a row may be shorter than others.
    pub rows: Vec<Vec<Panel>>,
    /// Width and height of the plane of a panel, in user units.
    pub plane: [f64; 2],
    /// Series without data, drawn as a key below all panels.
    pub key: Vec<Series>,
}

/// One diagram.
pub(crate) struct Panel {
    /// Heading above the diagram.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// What is drawn.
    pub series: Vec<Series>,
    /// Places on the horizontal axis that have a name.
    pub marks: Vec<(f64, String)>,
    /// It has a thick frame.
    pub broken: bool,
}

/// A range of values, and those that have a name.
#[derive(Clone)]
pub(crate) struct Axis {
    logarithmic: bool,
    ends: [f64; 2],
    names: Vec<(f64, String)>,
}

/// How the points of a series are drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dots {
    /// Not at all.
    None,
    /// As discs.
    Filled,
    /// As circles.
    Hollow,
}

/// Points that belong together.
pub(crate) struct Series {
    /// Name; empty for none.
    pub name: String,
    /// Which of the colours.
    pub colour: usize,
    /// The points are joined.
    pub joined: bool,
    /// How the points are drawn.
    pub dots: Dots,
    /// Place, value, and half of the error bar's length.
    pub points: Vec<[f64; 3]>,
}

impl Axis {
    /// Evenly spaced names: the place of a name is its number.
    pub fn named(names: impl IntoIterator<Item = String>) -> Axis {
        let names: Vec<(f64, String)> = (0_u32..).map(f64::from).zip(names).collect();
        Axis {
            logarithmic: false,
            ends: [-0.5, names.len().max(1) as f64 - 0.5],
            names,
        }
    }

    /// From 0, or the least value below it, to above all `values`, with round numbers.
    pub fn linear(values: impl Iterator<Item = f64>) -> Axis {
        let ends = values.fold([0.0_f64, 0.0], |[low, high], value| {
            [low.min(value), high.max(value)]
        });
        let high = (ends[1] * 1.15).max(1.0);
        let mut step = 10_f64.powf((high / 4.0).log10().floor());
        if high / step > 20.0 {
            step *= 5.0;
        } else if high / step > 8.0 {
            step *= 2.0;
        }
        let ticks = (0_u32..).map(|at| f64::from(at) * step);
        Axis {
            logarithmic: false,
            ends: [ends[0], high],
            names: ticks
                .take_while(|tick| *tick <= high)
                .map(|tick| (tick, tick.to_string()))
                .collect(),
        }
    }

    /// The whole decades that hold the positive `values`; `name` tells a power of ten.
    pub fn decades(values: impl Iterator<Item = f64>, name: impl Fn(i32) -> String) -> Axis {
        let values = values.filter(|value| value.is_finite() && *value > 0.0);
        let [low, high] = values.fold([f64::INFINITY, 0.0], |[low, high], value| {
            [low.min(value), high.max(value)]
        });
        let (low, high) = match high > 0.0 {
            true => (low.log10().floor() as i32, high.log10().ceil() as i32),
            false => (0, 1),
        };
        let high = high.max(low + 1);
        let powers = (low..=high).map(|power| (10_f64.powi(power), name(power)));
        Axis {
            logarithmic: true,
            ends: [10_f64.powi(low), 10_f64.powi(high)],
            names: powers.collect(),
        }
    }

    /// All of the positive `values` and a little more, logarithmic; `names` where they lie within.
    pub fn around(values: impl Iterator<Item = f64>, names: &[(f64, &str)]) -> Axis {
        let [low, high] = values.fold([f64::INFINITY, 0.0], |[low, high], value| {
            [low.min(value), high.max(value)]
        });
        let ends = match 0.0 < low && low <= high {
            true => [low / 1.2, high * 1.2],
            false => [1.0, 10.0],
        };
        let names = names.iter().map(|(at, name)| (*at, (*name).to_owned()));
        Axis {
            logarithmic: true,
            ends,
            names: names
                .filter(|(at, _)| (ends[0]..=ends[1]).contains(at))
                .collect(),
        }
    }

    /// Where `value` is, from 0 at the begin to 1 at the end, and never beyond.
    pub fn place(&self, value: f64) -> f64 {
        let scaled = |value: f64| match self.logarithmic {
            true => value.max(f64::MIN_POSITIVE).log10(),
            false => value,
        };
        let [begin, end] = self.ends.map(scaled);
        ((scaled(value) - begin) / (end - begin)).clamp(0.0, 1.0)
    }

    /// The names, thinned out to those for which `room` suffices.
    fn shown(&self, room: f64) -> impl Iterator<Item = &(f64, String)> {
        let letters = self.names.iter().map(|(_, name)| name.chars().count());
        let widest = letters.max().unwrap_or(1) as f64 * LETTER + LETTER;
        let most = ((room / widest) as usize).clamp(1, NAMES_MAX);
        let every = self.names.len().div_ceil(most).max(1);
        self.names.iter().step_by(every)
    }
}

impl Picture<'_> {
    /// The picture as a file.
    pub fn draw(&self) -> String {
        let [width, height] = self.plane;
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0).max(1) as f64;
        let cell = [LEFT + width + RIGHT, ABOVE + height + BELOW[0] + BELOW[1]];
        let whole = [
            columns * cell[0],
            ENDS[0] + self.rows.len().max(1) as f64 * cell[1] + ENDS[1],
        ];
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0} {:.0}\" role=\"img\">\
             <title>{}</title><style>{STYLE}</style>\n",
            whole[0],
            whole[1],
            escaped(self.alternative),
        );
        text(&mut out, "title", [8.0, 18.0], "start", self.title);
        if self.rows.iter().all(Vec::is_empty) {
            text(
                &mut out,
                "",
                [8.0, ENDS[0] + 16.0],
                "start",
                "nothing was measured",
            );
        }
        for (row, panels) in self.rows.iter().enumerate() {
            for (column, panel) in panels.iter().enumerate() {
                let corner = [
                    column as f64 * cell[0] + LEFT,
                    ENDS[0] + row as f64 * cell[1] + ABOVE,
                ];
                Plane {
                    corner,
                    size: self.plane,
                    panel,
                }
                .draw(&mut out);
            }
        }
        key(&mut out, &self.key, [LEFT, whole[1] - 10.0]);
        out.push_str("</svg>\n");
        out
    }
}

/// A panel and its place in the picture.
struct Plane<'a> {
    corner: [f64; 2],
    size: [f64; 2],
    panel: &'a Panel,
}

impl Plane<'_> {
    fn x(&self, value: f64) -> f64 {
        self.corner[0] + self.panel.x.place(value) * self.size[0]
    }

    fn y(&self, value: f64) -> f64 {
        self.corner[1] + (1.0 - self.panel.y.place(value)) * self.size[1]
    }

    fn draw(&self, out: &mut String) {
        out.push_str("<g>");
        self.axes(out);
        for series in &self.panel.series {
            self.series(out, series);
        }
        let named = self.panel.series.iter().filter(|one| !one.name.is_empty());
        let below = self.corner[1] + self.size[1] + BELOW[0] + 12.0;
        key(out, named, [self.corner[0], below]);
        out.push_str("</g>\n");
    }

    /// Frame, title, and lines at the names of both axes.
    fn axes(&self, out: &mut String) {
        let ([left, top], [width, height]) = (self.corner, self.size);
        let class = if self.panel.broken {
            "frame breaks"
        } else {
            "frame"
        };
        let _ = writeln!(
            out,
            "<rect class=\"{class}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" \
             height=\"{height:.1}\"/>"
        );
        text(out, "name", [left, top - 6.0], "start", &self.panel.title);
        for (value, name) in &self.panel.y.names {
            let y = self.y(*value);
            let _ = writeln!(
                out,
                "<path class=\"grid\" d=\"M{left:.1} {y:.1}h{width:.1}\"/>"
            );
            text(out, "", [left - 6.0, y + 4.0], "end", name);
        }
        for (value, name) in self.panel.x.shown(width) {
            let below = top + height + 14.0;
            text(out, "", [self.x(*value), below], "middle", name);
        }
        for (value, name) in &self.panel.marks {
            let x = self.x(*value);
            let _ = writeln!(
                out,
                "<path class=\"mark\" d=\"M{x:.1} {top:.1}v{height:.1}\"/>"
            );
            text(out, "", [x + 3.0, top + 11.0], "start", name);
        }
    }

    fn series(&self, out: &mut String, series: &Series) {
        let colour = series.colour % COLOURS;
        if series.joined && !series.points.is_empty() {
            let points: Vec<String> = series
                .points
                .iter()
                .map(|[x, y, _]| format!("{:.1},{:.1}", self.x(*x), self.y(*y)))
                .collect();
            let _ = writeln!(
                out,
                "<polyline class=\"c{colour} line\" points=\"{}\"/>",
                points.join(" ")
            );
        }
        for [x, value, error] in &series.points {
            let (x, y) = (self.x(*x), self.y(*value));
            if *error > 0.0 {
                let [low, high] = [value - error, value + error].map(|end| self.y(end));
                let _ = writeln!(
                    out,
                    "<path class=\"c{colour} line\" d=\"M{x:.1} {high:.1}V{low:.1}\"/>"
                );
            }
            dot(out, series, [x, y]);
        }
    }
}

/// One point of `series`.
fn dot(out: &mut String, series: &Series, [x, y]: [f64; 2]) {
    let class = match series.dots {
        Dots::None => return,
        Dots::Filled => "",
        Dots::Hollow => " hollow",
    };
    let colour = series.colour % COLOURS;
    let _ = writeln!(
        out,
        "<circle class=\"c{colour}{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.5\"/>"
    );
}

/// The names of `series` in a line, each behind a sample of how it is drawn.
fn key<'a>(out: &mut String, series: impl IntoIterator<Item = &'a Series>, [mut x, y]: [f64; 2]) {
    for one in series {
        let (colour, middle) = (one.colour % COLOURS, y - 4.0);
        if one.joined {
            let _ = writeln!(
                out,
                "<path class=\"c{colour} line\" d=\"M{x:.1} {middle:.1}h16\"/>"
            );
        }
        dot(out, one, [x + 8.0, middle]);
        text(out, "", [x + 20.0, y], "start", &one.name);
        x += 36.0 + one.name.chars().count() as f64 * LETTER;
    }
}

fn text(out: &mut String, class: &str, [x, y]: [f64; 2], anchor: &str, words: &str) {
    let words = escaped(words);
    let _ = writeln!(
        out,
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>"
    );
}

/// `words` inside an element; control characters are no XML.
fn escaped(words: &str) -> String {
    let mut out = String::new();
    for c in words.chars().filter(|c| !c.is_control()) {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn series(name: &str, dots: Dots, points: Vec<[f64; 3]>) -> Series {
        Series {
            name: name.to_owned(),
            colour: 0,
            joined: true,
            dots,
            points,
        }
    }

    #[test]
    fn every_point_lies_within_the_frame_of_its_panel() {
        let values = [1e-9, 3.0, 1e12, 7e4];
        let points = || {
            values
                .iter()
                .enumerate()
                .map(|(at, y)| [at as f64, *y, y / 2.0])
        };
        let panel = |y: Axis| Panel {
            title: "a <b> & c".to_owned(),
            x: Axis::named(values.map(|value| value.to_string())),
            y,
            series: vec![series("s", Dots::Hollow, points().collect())],
            marks: vec![(2.0, "here".to_owned())],
            broken: false,
        };
        let axes = vec![
            panel(Axis::linear(values.into_iter())),
            panel(Axis::decades(values.into_iter(), |power| {
                format!("1e{power}")
            })),
            panel(Axis::around(
                [2.0, 5.0].into_iter(),
                &[(3.0, "three"), (9.0, "nine")],
            )),
        ];
        let picture = Picture {
            title: "<t>",
            alternative: "t",
            rows: vec![axes],
            plane: [200.0, 100.0],
            key: Vec::new(),
        };
        let drawn = picture.draw();
        let number = |text: &str, key: &str| -> f64 {
            let (_, rest) = text.split_once(&format!(" {key}=\"")).unwrap();
            rest.split('"').next().unwrap().parse().unwrap()
        };
        let mut seen = 0;
        for panel in drawn.split("<g>").skip(1) {
            let frame = panel.split("<rect").nth(1).unwrap();
            for circle in panel.split("<circle").skip(1).take(values.len()) {
                for (centre, corner, size) in [("cx", "x", 200.0), ("cy", "y", 100.0)] {
                    let inside = number(circle, centre) - number(frame, corner);
                    assert!((-0.1..=size + 0.1).contains(&inside), "{circle}");
                    seen += 1;
                }
            }
        }
        assert_eq!(seen, 3 * 4 * 2);
        assert!(drawn.contains("three") && !drawn.contains("nine"));
        assert!(drawn.contains("a &lt;b&gt; &amp; c") && !drawn.contains("<b>"));
        assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
    }

    #[test]
    fn nothing_is_drawn_as_nothing() {
        let picture = Picture {
            title: "",
            alternative: "",
            rows: Vec::new(),
            plane: [100.0, 100.0],
            key: Vec::new(),
        };
        let drawn = picture.draw();
        assert!(drawn.contains("nothing was measured") && drawn.ends_with("</svg>\n"));
    }

    #[test]
    fn names_are_thinned_out_to_the_room_there_is() {
        let axis = Axis::named((0..40).map(|at| format!("name {at}")));
        assert_eq!(axis.shown(1e6).count(), 10);
        assert_eq!(axis.shown(60.0).count(), 1);
    }
}
