//! Curves as SVG: one small picture for each test, on the same scale, legible on light and
//! dark grounds. Drawn from the data alone: the same curves are the same bytes.

use super::{blocks, decade, decades, panels, size, steps};
use crate::{Curves, Rates};
use std::fmt::Write;

const PANEL: f64 = 330.0;
const PLOT_HEIGHT: f64 = 260.0;
const LEFT: f64 = 66.0;
const TOP: f64 = 52.0;
const GAP: f64 = 20.0;
const HEIGHT: f64 = 380.0;

/// Colours that are told apart by people who see few colours (Okabe and Ito), and that stand
/// out on white and on black.
const COLOURS: [&str; 3] = ["#0072b2", "#d55e00", "#009e73"];

const STYLE: &str = "text{font:11px sans-serif;fill:#222}.title{font-size:13px;font-weight:bold}\
.grid{stroke:#8884;stroke-width:1}.axis{stroke:#888;fill:none}\
@media(prefers-color-scheme:dark){text{fill:#ddd}}";

/// Draws `curves` under the title `name`.
pub fn svg(name: &str, curves: &Curves) -> String {
    let panels = panels(curves);
    let steps = steps(curves);
    let count = panels.len() + usize::from(!steps.is_empty());
    let width = (PANEL + GAP) * count.max(1) as f64;
    let title = escape(name);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {HEIGHT}\" \
         role=\"img\"><title>Curves of {title}</title>\n<style>{STYLE}</style>\n\
         <text class=\"title\" x=\"4\" y=\"18\">{title}</text>\n"
    );
    let all: Vec<(u32, &Rates)> = panels.iter().flat_map(|(_, tests)| tests.clone()).collect();
    let scale = Scale {
        blocks: blocks(&all),
        decades: decades(&all),
    };
    let mut x = 0.0;
    for (title, tests) in &panels {
        rates(&mut out, x, title, tests, &scale);
        x += PANEL + GAP;
    }
    bars(&mut out, x, &steps);
    out.push_str("</svg>\n");
    out
}

/// The axes that all pictures of rates share.
struct Scale {
    blocks: Vec<u64>,
    decades: (i32, i32),
}

impl Scale {
    fn x(&self, column: usize) -> f64 {
        let steps = self.blocks.len().max(1) as f64;
        LEFT + (PANEL - LEFT) * (column as f64 + 0.5) / steps
    }

    fn y(&self, power: f64) -> f64 {
        let (low, high) = self.decades;
        TOP + PLOT_HEIGHT * (f64::from(high) - power) / f64::from(high - low)
    }
}

fn rates(out: &mut String, x: f64, title: &str, tests: &[(u32, &Rates)], scale: &Scale) {
    let _ = writeln!(out, "<g transform=\"translate({x} 0)\">");
    let _ = writeln!(
        out,
        "<text x=\"{LEFT}\" y=\"40\">{title}, by open AUs</text>"
    );
    for power in scale.decades.0..=scale.decades.1 {
        let y = scale.y(f64::from(power));
        line(out, "grid", LEFT, y, PANEL, y);
        text(out, LEFT - 6.0, y + 4.0, "end", &decade(power));
    }
    let every = scale.blocks.len().div_ceil(6).max(1);
    for (column, &block) in scale.blocks.iter().enumerate().step_by(every) {
        text(
            out,
            scale.x(column),
            TOP + PLOT_HEIGHT + 16.0,
            "middle",
            &size(block),
        );
    }
    let middle = (LEFT + PANEL) / 2.0;
    text(
        out,
        middle,
        TOP + PLOT_HEIGHT + 34.0,
        "middle",
        "block size in bytes (K = 1024)",
    );
    line(out, "axis", LEFT, TOP, LEFT, TOP + PLOT_HEIGHT);
    for (i, (aus, rates)) in tests.iter().enumerate() {
        let colour = COLOURS[i % COLOURS.len()];
        let mut points = String::new();
        for (column, block) in scale.blocks.iter().enumerate() {
            if let Some(&rate) = rates.get(block).filter(|rate| **rate > 0.0) {
                let (x, y) = (scale.x(column), scale.y(rate.log10()));
                let _ = write!(points, "{x:.1},{y:.1} ");
                let _ = writeln!(
                    out,
                    "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.5\" fill=\"{colour}\"/>"
                );
            }
        }
        let _ = writeln!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>",
            points.trim_end()
        );
        let x = LEFT + 80.0 * i as f64;
        let y = TOP + PLOT_HEIGHT + 54.0;
        let _ = writeln!(
            out,
            "<rect x=\"{x}\" y=\"{:.0}\" width=\"14\" height=\"3\" fill=\"{colour}\"/>",
            y - 5.0
        );
        let open = if *aus == 1 {
            "1 AU".to_owned()
        } else {
            format!("{aus} AUs")
        };
        text(out, x + 18.0, y, "start", &open);
    }
    out.push_str("</g>\n");
}

/// The steps of the alignment test, one bar for each boundary.
fn bars(out: &mut String, x: f64, steps: &[(u64, f64)]) {
    if steps.is_empty() {
        return;
    }
    let largest = steps.iter().fold(0.0_f64, |all, step| all.max(step.1));
    let height = (PLOT_HEIGHT / steps.len() as f64).min(24.0);
    let _ = writeln!(out, "<g transform=\"translate({x} 0)\">");
    let _ = writeln!(
        out,
        "<text x=\"{LEFT}\" y=\"40\">reads across boundaries</text>"
    );
    for (i, &(boundary, us)) in steps.iter().enumerate() {
        let y = TOP + height * i as f64;
        let long = if largest > 0.0 {
            us.max(0.0) / largest * (PANEL - LEFT - 52.0)
        } else {
            0.0
        };
        let _ = writeln!(
            out,
            "<rect x=\"{LEFT}\" y=\"{:.1}\" width=\"{long:.1}\" height=\"{:.1}\" fill=\"{}\"/>",
            y + 1.0,
            (height - 2.0).max(0.5),
            COLOURS[0]
        );
        text(
            out,
            LEFT - 6.0,
            y + height / 2.0 + 4.0,
            "end",
            &size(boundary),
        );
        let value = format!("{us:.1}");
        text(
            out,
            LEFT + long + 4.0,
            y + height / 2.0 + 4.0,
            "start",
            &value,
        );
    }
    line(out, "axis", LEFT, TOP, LEFT, TOP + PLOT_HEIGHT);
    let middle = (LEFT + PANEL) / 2.0;
    let below = TOP + PLOT_HEIGHT + 34.0;
    text(
        out,
        middle,
        below,
        "middle",
        "extra time in µs (median), by boundary in bytes",
    );
    out.push_str("</g>\n");
}

fn line(out: &mut String, class: &str, x1: f64, y1: f64, x2: f64, y2: f64) {
    let _ = writeln!(
        out,
        "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
    );
}

fn text(out: &mut String, x: f64, y: f64, anchor: &str, words: &str) {
    let _ = writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>"
    );
}

/// `text` inside an element; control characters are no XML.
fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars().filter(|c| !c.is_control()) {
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
    use super::*;

    #[test]
    fn every_point_and_step_is_drawn_once() {
        let mut curves = Curves::default();
        for aus in [1, 3, 5, 7] {
            curves.linear.insert(aus, [(4096, 1e5), (8192, 2e7)].into());
        }
        curves.random.insert(2, [(4096, 1e3)].into());
        curves.align.insert(4096, vec![[10.0, 30.0, 10.0, 20.0]]);
        let drawn = svg("a <b> & c", &curves);
        assert_eq!(
            drawn.matches("<circle").count(),
            7,
            "1, 3, 7 and the one of random"
        );
        assert_eq!(drawn.matches("<polyline").count(), 4);
        assert_eq!(drawn.matches("<g ").count(), 3);
        assert!(drawn.contains("a &lt;b&gt; &amp; c") && !drawn.contains("<b>"));
        for words in [
            "MB/s",
            "kB/s",
            "block size in bytes",
            "extra time in µs",
            "7 AUs",
        ] {
            assert!(drawn.contains(words), "{words}");
        }
        let (open, close) = (drawn.matches("<g").count(), drawn.matches("</g>").count());
        assert_eq!(open, close);
        assert!(!drawn.contains("NaN") && !drawn.contains("inf"));
        assert!(svg("", &Curves::default()).ends_with("</svg>\n"));
    }
}
