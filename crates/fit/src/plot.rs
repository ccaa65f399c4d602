//! Measured against modelled as SVG: small multiples, one for each number of AUs, and one
//! each for rates of writes and reads.
//!
//! Time of a request over its size, both logarithmic; upper row in order, lower row at random.
//! Dots are measured: filled where the fit saw them, hollow where it did not. Lines are the
//! model. Where no family fits, the curve that breaks has a thick frame. Colours follow the
//! reader's light or dark scheme.

use crate::Break;
use crate::points::{Compared, Order, curve_name};
use std::fmt::Write as _;
use whichfs_curves::logs::{Operation, Order as Access};

/// Size of a panel and the space around it, in user units.
const PANEL: [f64; 2] = [150.0, 150.0];
const GAP: f64 = 12.0;
const MARGIN: [f64; 2] = [64.0, 40.0];

const STYLE: &str = "svg{color:#1b1b1f;background:#fff;font:11px sans-serif}\
.frame{fill:none;stroke:currentColor;stroke-opacity:.35}\
.breaks{stroke:#c2571a;stroke-opacity:1;stroke-width:3}\
.grid{stroke:currentColor;stroke-opacity:.12}\
.model{fill:none;stroke:#c2571a;stroke-width:1.6}\
.seen{fill:#1f5fbf}.unseen{fill:none;stroke:#1f5fbf;stroke-width:1.3}\
text{fill:currentColor}.title{font-size:14px;font-weight:600}\
@media(prefers-color-scheme:dark){svg{color:#e6e6ea;background:#17171a}\
.model{stroke:#ff9d5c}.seen{fill:#7db1ff}.unseen{stroke:#7db1ff}}";

/// Ranges of both axes, as logarithms to base two (bytes) and ten (nanoseconds).
struct Axes {
    bytes: [f64; 2],
    ns: [f64; 2],
}

/// The plot of one card: its points, and the curve that breaks, if one does.
pub fn plot(title: &str, compared: &[Compared], breaks: Option<&Break>) -> String {
    let columns = columns(compared);
    let axes = Axes::of(compared);
    let width = MARGIN[0] + columns.len() as f64 * (PANEL[0] + GAP) + GAP;
    let height = 2.0 * MARGIN[1] + 2.0 * (PANEL[1] + GAP) + 26.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         role=\"img\"><title>{title}: measured and modelled times</title>\
         <style>{STYLE}</style>\n<text class=\"title\" x=\"8\" y=\"18\">{title}</text>\n",
        title = escaped(title),
    );
    for (column, curves) in columns.iter().enumerate() {
        for (row, (order, aus)) in curves.iter().enumerate() {
            let corner = [
                MARGIN[0] + column as f64 * (PANEL[0] + GAP),
                MARGIN[1] + row as f64 * (PANEL[1] + GAP + 14.0),
            ];
            let of_panel: Vec<&Compared> = compared
                .iter()
                .filter(|point| (point.place.order, point.place.aus) == (*order, *aus))
                .collect();
            let broken = breaks.is_some_and(|of| (of.curve.order, of.curve.aus) == (*order, *aus));
            let panel = Panel {
                corner,
                leftmost: column == 0,
                lowest: row == 1,
                broken,
            };
            panel.draw(&mut svg, &axes, &of_panel);
            let mut label = curve_name(*order, *aus);
            if broken {
                label.push_str(": breaks");
            }
            text(&mut svg, corner[0] + 4.0, corner[1] - 4.0, "start", &label);
        }
    }
    legend(&mut svg, height - 10.0);
    svg.push_str("</svg>\n");
    svg
}

/// Order and number of AUs of the curves of each column: the upper one in order, the lower one
/// at random.
fn columns(compared: &[Compared]) -> Vec<[(Order, u32); 2]> {
    let places = || compared.iter().map(|point| point.place);
    let of_test = places().filter(|place| place.order.is_flashbench());
    let mut aus: Vec<u32> = of_test.map(|place| place.aus).collect();
    aus.sort_unstable();
    aus.dedup();
    let mut columns: Vec<[(Order, u32); 2]> = aus
        .into_iter()
        .map(|aus| Order::FLASHBENCH.map(|order| (order, aus)))
        .collect();
    for operation in [Operation::Write, Operation::Read] {
        let both =
            [Access::Sequential, Access::Random].map(|access| Order::Host(operation, access));
        if places().any(|place| both.contains(&place.order)) {
            columns.push(both.map(|order| (order, 1)));
        }
    }
    columns
}

/// The place of one curve.
struct Panel {
    corner: [f64; 2],
    leftmost: bool,
    lowest: bool,
    broken: bool,
}

impl Panel {
    fn draw(&self, svg: &mut String, axes: &Axes, points: &[&Compared]) {
        self.grid(svg, axes);
        let [x, y] = self.corner;
        let line: Vec<String> = points
            .iter()
            .map(|point| {
                let (at_x, at_y) = (axes.x(point.place.bytes as f64), axes.y(point.modelled_ns));
                format!("{:.1},{:.1}", x + at_x, y + at_y)
            })
            .collect();
        let _ = writeln!(
            svg,
            "<polyline class=\"model\" points=\"{}\"/>",
            line.join(" ")
        );
        for point in points {
            let class = if point.fitted { "seen" } else { "unseen" };
            let (at_x, at_y) = (axes.x(point.place.bytes as f64), axes.y(point.measured_ns));
            let (at_x, at_y) = (x + at_x, y + at_y);
            let _ = writeln!(
                svg,
                "<circle class=\"{class}\" cx=\"{at_x:.1}\" cy=\"{at_y:.1}\" r=\"2.6\"/>"
            );
        }
    }

    /// The frame, with lines for powers of ten and the names on both axes.
    fn grid(&self, svg: &mut String, axes: &Axes) {
        let ([x, y], [width, height]) = (self.corner, PANEL);
        let class = if self.broken { "frame breaks" } else { "frame" };
        let _ = writeln!(
            svg,
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width}\" \
             height=\"{height}\"/>"
        );
        for exponent in axes.ns[0].ceil() as i32..=axes.ns[1].floor() as i32 {
            let at = y + axes.y(10_f64.powi(exponent));
            let _ = writeln!(svg, "<path class=\"grid\" d=\"M{x:.1} {at:.1}h{width}\"/>");
            if self.leftmost {
                text(svg, x - 5.0, at + 4.0, "end", &time_name(exponent));
            }
        }
        if !self.lowest {
            return;
        }
        for (bytes, name) in [(4096.0, "4K"), (65_536.0, "64K"), (1_048_576.0, "1M")] {
            let at = axes.x(bytes);
            if (0.0..=width).contains(&at) {
                text(svg, x + at, y + height + 13.0, "middle", name);
            }
        }
    }
}

fn legend(svg: &mut String, y: f64) {
    let _ = writeln!(
        svg,
        "<circle class=\"seen\" cx=\"70\" cy=\"{at:.1}\" r=\"3\"/>\
         <circle class=\"unseen\" cx=\"180\" cy=\"{at:.1}\" r=\"3\"/>\
         <path class=\"model\" d=\"M316 {at:.1}h18\"/>",
        at = y - 4.0
    );
    text(svg, 78.0, y, "start", "measured, fitted");
    text(svg, 188.0, y, "start", "measured, not fitted");
    text(svg, 340.0, y, "start", "modelled");
    text(svg, 416.0, y, "start", "time of a request over its size");
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, content: &str) {
    let content = escaped(content);
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{content}</text>"
    );
}

/// `10^exponent` nanoseconds for people.
fn time_name(exponent: i32) -> String {
    let (unit, of) = match exponent {
        ..3 => ("ns", 0),
        3..6 => ("µs", 3),
        6..9 => ("ms", 6),
        _ => ("s", 9),
    };
    format!("{} {unit}", 10_f64.powi(exponent - of))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

impl Axes {
    fn of(compared: &[Compared]) -> Axes {
        let range = |numbers: &mut dyn Iterator<Item = f64>| {
            let ends = numbers.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], number| {
                [low.min(number), high.max(number)]
            });
            match ends[0] < ends[1] {
                true => [ends[0] - 0.15, ends[1] + 0.15],
                false => [0.0, 1.0],
            }
        };
        let mut bytes = compared
            .iter()
            .map(|point| (point.place.bytes as f64).log2());
        let mut ns = compared
            .iter()
            .flat_map(|point| [point.measured_ns.log10(), point.modelled_ns.log10()]);
        Axes {
            bytes: range(&mut bytes),
            ns: range(&mut ns),
        }
    }

    fn x(&self, bytes: f64) -> f64 {
        (bytes.log2() - self.bytes[0]) / (self.bytes[1] - self.bytes[0]) * PANEL[0]
    }

    fn y(&self, ns: f64) -> f64 {
        PANEL[1] - (ns.log10() - self.ns[0]) / (self.ns[1] - self.ns[0]) * PANEL[1]
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::CurveErrors;
    use crate::points::{Errors, Place};

    #[test]
    fn every_point_is_drawn_once_within_its_panel() {
        let mut compared = Vec::new();
        for (index, aus) in [1, 2, 3].into_iter().enumerate() {
            for power in 12..23 {
                compared.push(Compared {
                    place: Place {
                        order: Order::Random,
                        aus,
                        bytes: 1 << power,
                    },
                    measured_ns: f64::from(1 << power) * 100.0,
                    modelled_ns: f64::from(1 << power) * 120.0,
                    fitted: index == 0,
                });
            }
        }
        let svg = plot("a <b> card", &compared, None);
        assert_eq!(svg.matches("<circle class=\"seen\"").count(), 11 + 1);
        assert_eq!(svg.matches("<circle class=\"unseen\"").count(), 22 + 1);
        assert_eq!(svg.matches("<rect").count(), 6);
        let number = |text: &str, key: &str| -> f64 {
            let (_, rest) = text.split_once(&format!(" {key}=\"")).unwrap();
            rest.split('"').next().unwrap().parse().unwrap()
        };
        // The frames come column by column, the one at random after the one in order.
        let frame = |at: usize| svg.split("<rect").nth(at + 1).unwrap();
        let drawn = svg
            .split("<circle")
            .skip(1)
            .filter(|of| !of.contains("r=\"3\""));
        for (index, circle) in drawn.enumerate() {
            let frame = frame(index / 11 * 2 + 1);
            for (centre, corner, size) in [("cx", "x", PANEL[0]), ("cy", "y", PANEL[1])] {
                let inside = number(circle, centre) - number(frame, corner);
                assert!((0.0..=size).contains(&inside), "{circle}");
            }
        }
        assert!(svg.contains("a &lt;b&gt; card") && !svg.contains("NaN"));
        assert!(svg.ends_with("</svg>\n"));
        assert!(!plot("nothing", &[], None).contains("inf"));
        assert_eq!(svg.matches("breaks\"").count(), 0);
        let errors = Errors::default();
        let broken = Break {
            overall: errors,
            curve: CurveErrors {
                order: Order::Random,
                aus: 2,
                fitted: Some(errors),
                unfitted: None,
            },
        };
        let svg = plot("a card", &compared, Some(&broken));
        let marked = svg
            .split("<rect")
            .position(|of| of.contains("frame breaks"));
        assert_eq!(marked, Some(4), "the lower panel of the second column");
        assert!(svg.contains("random, 2 AUs: breaks"), "{svg}");
    }
}
