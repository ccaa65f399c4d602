//! Curves as SVG: rates by block size for a few numbers of open AUs, and the steps of the
//! alignment test.

use super::{decade, panels, size, steps};
use crate::svg::{Axis, Dots, Panel, Picture, Series};
use whichfs_curves::{Curves, Rates};

/// Draws `curves` under the title `name`.
pub fn svg(name: &str, curves: &Curves) -> String {
    let tests = panels(curves);
    let all = || tests.iter().flat_map(|(_, tests)| tests);
    let mut blocks: Vec<u64> = all().flat_map(|(_, rates)| rates.keys().copied()).collect();
    blocks.sort_unstable();
    blocks.dedup();
    let rates = all().flat_map(|(_, rates)| rates.values().copied());
    let (x, y) = (
        Axis::named(blocks.iter().map(|block| size(*block))),
        Axis::decades(rates, decade),
    );
    let rates = tests.iter().map(|(title, tests)| Panel {
        title: format!("{title}, by block size"),
        x: x.clone(),
        y: y.clone(),
        series: (0..)
            .zip(tests)
            .map(|(colour, (aus, rates))| line(colour, *aus, rates, &blocks))
            .collect(),
        marks: Vec::new(),
        broken: false,
    });
    let picture = Picture {
        title: name,
        alternative: &format!("Curves of {name}"),
        rows: vec![rates.chain(boundaries(curves)).collect()],
        plane: [270.0, 240.0],
        key: Vec::new(),
    };
    picture.draw()
}

/// Rates with so many open AUs.
fn line(colour: usize, aus: u32, rates: &Rates, blocks: &[u64]) -> Series {
    let points = blocks.iter().enumerate().filter_map(|(at, block)| {
        let rate = rates.get(block).filter(|rate| **rate > 0.0)?;
        Some([at as f64, *rate, 0.0])
    });
    Series {
        name: whichfs_units::counted(u64::from(aus), "open AU"),
        colour,
        joined: true,
        dots: Dots::Filled,
        points: points.collect(),
    }
}

/// The steps of the alignment test, if it was made.
fn boundaries(curves: &Curves) -> Option<Panel> {
    let mut steps = steps(curves);
    steps.reverse();
    let points = steps.iter().enumerate();
    (!steps.is_empty()).then(|| Panel {
        title: "extra time of reads across boundaries (µs)".to_owned(),
        x: Axis::named(steps.iter().map(|(boundary, _)| size(*boundary))),
        y: Axis::linear(steps.iter().map(|(_, us)| *us)),
        series: vec![Series {
            name: "median, by boundary".to_owned(),
            colour: 0,
            joined: true,
            dots: Dots::Filled,
            points: points.map(|(at, (_, us))| [at as f64, *us, 0.0]).collect(),
        }],
        marks: Vec::new(),
        broken: false,
    })
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
        let lines = 1 + 3 + 1;
        let points = 1 + 3 * 2 + 1;
        assert_eq!(drawn.matches("<polyline").count(), lines);
        assert_eq!(
            drawn.matches("<circle").count(),
            points + lines,
            "with the keys"
        );
        assert_eq!(drawn.matches("<g>").count(), 3);
        for words in ["MB/s", "kB/s", "by block size", "7 open AUs", "(µs)"] {
            assert!(drawn.contains(words), "{words}");
        }
    }
}
