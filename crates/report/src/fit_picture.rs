//! Measured against modelled as SVG: a panel for each number of AUs, and for rates of writes and
//! reads; the upper row in order, the lower one at random.
//!
//! Discs are measured and seen by the fit, circles measured and not seen, lines the model. Where
//! no family fits, the curve that breaks has a thick frame.

use crate::svg::{Axis, Dots, Panel, Picture, Series};
use whichfs_fit::{Break, ComparedPoint, PointOrder, curve_name};
use whichfs_logs::{Operation, Order as Access};

/// Block sizes that have a name on the axis.
const BLOCKS: [(f64, &str); 3] = [(4096.0, "4K"), (65_536.0, "64K"), (1_048_576.0, "1M")];

/// The picture of one card: its points, and the curve that breaks, if one does.
pub fn fit_svg(title: &str, compared: &[ComparedPoint], breaks: Option<&Break>) -> String {
    let columns = columns(compared);
    let sizes = compared.iter().map(|point| point.place.bytes as f64);
    let times = compared
        .iter()
        .flat_map(|point| [point.measured_ns, point.modelled_ns]);
    let axes = (
        Axis::around(sizes, &BLOCKS),
        Axis::decades(times, time_name),
    );
    let row = |row: usize| {
        let curves = columns.iter().map(|curves| curves[row]);
        curves
            .map(|(order, aus)| panel((order, aus), &axes, compared, breaks))
            .collect()
    };
    let picture = Picture {
        title: &format!("{title}: time of a request over its size"),
        alternative: &format!("{title}: measured and modelled times of a request by its size"),
        rows: vec![row(0), row(1)],
        plane: [150.0, 150.0],
        key: vec![
            series("measured, fitted", Dots::Filled, Vec::new()),
            series("measured, not fitted", Dots::Hollow, Vec::new()),
            series("modelled", Dots::None, Vec::new()),
        ],
    };
    picture.draw()
}

fn panel(
    (order, aus): (PointOrder, u32),
    axes: &(Axis, Axis),
    compared: &[ComparedPoint],
    breaks: Option<&Break>,
) -> Panel {
    let broken = breaks.is_some_and(|of| (of.curve.order, of.curve.aus) == (order, aus));
    let here = || {
        let places = compared.iter();
        places.filter(|point| (point.place.order, point.place.aus) == (order, aus))
    };
    let measured = |fitted: bool| {
        let points = here().filter(move |point| point.fitted == fitted);
        points.map(|point| [point.place.bytes as f64, point.measured_ns, 0.0])
    };
    let modelled = here().map(|point| [point.place.bytes as f64, point.modelled_ns, 0.0]);
    Panel {
        title: curve_name(order, aus) + if broken { ": breaks" } else { "" },
        x: axes.0.clone(),
        y: axes.1.clone(),
        series: vec![
            series("", Dots::None, modelled.collect()),
            series("", Dots::Filled, measured(true).collect()),
            series("", Dots::Hollow, measured(false).collect()),
        ],
        marks: Vec::new(),
        broken,
    }
}

/// Dots in one colour, a line in the other.
fn series(name: &str, dots: Dots, points: Vec<[f64; 3]>) -> Series {
    Series {
        name: name.to_owned(),
        colour: usize::from(dots == Dots::None),
        joined: dots == Dots::None,
        dots,
        points,
    }
}

/// Order and number of AUs of the curves of each column: the upper one in order, the lower one
/// at random.
fn columns(compared: &[ComparedPoint]) -> Vec<[(PointOrder, u32); 2]> {
    let places = || compared.iter().map(|point| point.place);
    let of_test = places().filter(|place| place.order.is_flashbench());
    let mut aus: Vec<u32> = of_test.map(|place| place.aus).collect();
    aus.sort_unstable();
    aus.dedup();
    let mut columns: Vec<[(PointOrder, u32); 2]> = aus
        .into_iter()
        .map(|aus| PointOrder::FLASHBENCH.map(|order| (order, aus)))
        .collect();
    for operation in [Operation::Write, Operation::Read] {
        let both =
            [Access::Sequential, Access::Random].map(|access| PointOrder::Host(operation, access));
        if places().any(|place| both.contains(&place.order)) {
            columns.push(both.map(|order| (order, 1)));
        }
    }
    columns
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use whichfs_fit::{CurveErrors, CurvePlace, Errors};

    #[test]
    fn every_point_is_drawn_once_and_the_curve_that_breaks_is_framed() {
        let mut compared = Vec::new();
        for (index, aus) in [1, 2, 3].into_iter().enumerate() {
            for power in 12..23 {
                compared.push(ComparedPoint {
                    place: CurvePlace {
                        order: PointOrder::Random,
                        aus,
                        bytes: 1 << power,
                    },
                    measured_ns: f64::from(1 << power) * 100.0,
                    modelled_ns: f64::from(1 << power) * 120.0,
                    fitted: index == 0,
                });
            }
        }
        let svg = fit_svg("a <b> card", &compared, None);
        assert_eq!(svg.matches("<circle class=\"c0\"").count(), 11 + 1);
        assert_eq!(svg.matches("<circle class=\"c0 hollow\"").count(), 22 + 1);
        assert_eq!(svg.matches("<rect").count(), 6);
        assert_eq!(svg.matches("breaks\"").count(), 0);
        let errors = Errors::default();
        let broken = Break {
            overall: errors,
            curve: CurveErrors {
                order: PointOrder::Random,
                aus: 2,
                fitted: Some(errors),
                unfitted: None,
            },
        };
        let svg = fit_svg("a card", &compared, Some(&broken));
        let mut frames = svg.split("<rect").skip(1);
        let marked = frames.position(|of| of.contains("frame breaks"));
        assert_eq!(marked, Some(4), "the lower panel of the second column");
        assert!(svg.contains("random, 2 AUs: breaks"), "{svg}");
        assert!(!fit_svg("nothing", &[], None).contains("inf"));
    }
}
