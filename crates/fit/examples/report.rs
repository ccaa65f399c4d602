//! Fits every run of a file of curves to all points and to three block sizes, and writes the
//! table of `docs/fit.md` and the plots beside it: `report CURVES.json docs [RUN…]`.
//!
//! The runs are those with write curves; a plot is written for each run named.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use whichfs_curves::Curves;
use whichfs_fit::{Fit, Options, Row, fit, plot, table};

/// Block sizes of the fits that are judged on the other sizes.
const SIZES: [u64; 3] = [4 << 10, 64 << 10, 1 << 20];

struct Run {
    name: String,
    card: String,
    all: Fit,
    some: Fit,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(file), Some(folder)) = (args.next(), args.next()) else {
        return Err("usage: report CURVES.json FOLDER [RUN…]".into());
    };
    let plotted: Vec<String> = args.collect();
    let mut data: serde_json::Value = serde_json::from_str(&fs::read_to_string(&file)?)?;
    drop_nulls(&mut data);
    let raw: BTreeMap<String, serde_json::Value> = serde_json::from_value(data)?;
    let mut runs = Vec::new();
    for (name, value) in raw {
        let curves: Curves = serde_json::from_value(value.clone())?;
        if curves.linear.is_empty() {
            continue;
        }
        eprintln!("{name}");
        runs.push(Run {
            card: card(&value),
            all: fitted(&curves, &name, &value, None)?,
            some: fitted(&curves, &name, &value, Some(SIZES.to_vec()))?,
            name,
        });
    }
    let rows: Vec<Row> = runs.iter().map(row).collect();
    fs::write(
        format!("{folder}/fit.md"),
        format!("{}{}", HEAD, table(&rows)),
    )?;
    for run in runs.iter().filter(|run| plotted.contains(&run.name)) {
        let title = format!("Run {} ({}), three block sizes fitted", run.name, run.card);
        let svg = plot(&title, &run.some.compared);
        fs::write(format!("{folder}/fit-{}.svg", run.name), svg)?;
    }
    Ok(())
}

const HEAD: &str = include_str!("report.head.md");

fn fitted(
    curves: &Curves,
    name: &str,
    value: &serde_json::Value,
    block_sizes: Option<Vec<u64>>,
) -> Result<Fit, Box<dyn Error>> {
    let options = Options {
        block_sizes,
        seed: 1,
        capacity_bytes: value["size"].as_u64(),
        title: card(value),
        source: format!("run {name}"),
    };
    Ok(fit(curves, &options)?)
}

fn row(run: &Run) -> Row<'_> {
    Row {
        name: &run.name,
        card: &run.card,
        all: &run.all,
        some: &run.some,
    }
}

/// Product name and date of the identification register, which may be another card's.
fn card(value: &serde_json::Value) -> String {
    let text = |key: &str| value[key].as_str().unwrap_or("").trim().to_owned();
    match text("pn") {
        name if name.is_empty() => "unknown".to_owned(),
        name => format!("{name} {}", text("date")).trim().to_owned(),
    }
}

/// A null is a figure that the log does not have; a list with one in it is left out.
fn drop_nulls(value: &mut serde_json::Value) {
    use serde_json::Value;
    let holed = |value: &Value| {
        value.is_null()
            || value
                .as_array()
                .is_some_and(|list| list.iter().any(Value::is_null))
    };
    match value {
        Value::Array(list) => {
            list.retain(|value| !holed(value));
            list.iter_mut().for_each(drop_nulls);
        }
        Value::Object(map) => {
            map.retain(|_, value| !holed(value));
            map.values_mut().for_each(drop_nulls);
        }
        _ => {}
    }
}
