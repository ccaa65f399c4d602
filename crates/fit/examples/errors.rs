//! Errors of the fits of all runs in a file of curves: `errors FILE [RUN…]`.
use std::collections::BTreeMap;
use whichfs_curves::Curves;
use whichfs_fit::{Errors, Options, Order, fit};

fn main() {
    let mut args = std::env::args().skip(1);
    let text = std::fs::read_to_string(args.next().unwrap()).unwrap();
    let mut all: serde_json::Value = serde_json::from_str(&text).unwrap();
    drop_nulls(&mut all);
    let all: BTreeMap<String, Curves> = serde_json::from_value(all).unwrap();
    let mut runs: Vec<String> = args.collect();
    let verbose = runs.iter().any(|run| run == "-v");
    runs.retain(|run| run != "-v");
    let mut ours = Vec::new();
    let mut everything = Vec::new();
    for (name, curves) in &all {
        if curves.linear.is_empty() || (!runs.is_empty() && !runs.contains(name)) {
            continue;
        }
        for sizes in [None, Some(vec![4096, 65536, 1 << 20])] {
            let clock = std::time::Instant::now();
            let options = Options {
                block_sizes: sizes.clone(),
                seed: 1,
                ..Options::default()
            };
            let found = fit(curves, &options).unwrap();
            let took = clock.elapsed();
            let of = |order, fitted| {
                Errors::over(&found.compared, |p| {
                    p.place.order == order && p.fitted == fitted
                })
                .unwrap_or_default()
            };
            let show = sizes.is_none();
            print!(
                "{name:>5} {:?} {:5.1}s ",
                found.profile.family(),
                took.as_secs_f64()
            );
            for order in Order::ALL {
                let f = of(order, true);
                print!(
                    " {} fit {:4.1}% {:5.1}%",
                    order.name(),
                    f.median * 100.,
                    f.p90 * 100.
                );
            }
            if !show {
                for order in Order::ALL {
                    let f = of(order, false);
                    print!(
                        " | {} {:4.1}% {:5.1}%",
                        order.name(),
                        f.median * 100.,
                        f.p90 * 100.
                    );
                }
                let e = Errors::over(&found.compared, |p| !p.fitted).unwrap();
                print!(
                    " || {:4.1}% {:5.1}% {:6.1}%",
                    e.median * 100.,
                    e.p90 * 100.,
                    e.worst * 100.
                );
                ours.extend(found.compared.iter().filter(|p| !p.fitted).copied());
            } else {
                everything.extend(found.compared.iter().copied());
            }
            println!();
            if verbose {
                println!("{}", found.toml);
                for order in Order::ALL {
                    println!("{} ln(model/measured) in %", order.name());
                    for aus in 1..=7 {
                        let line: Vec<String> = found
                            .compared
                            .iter()
                            .rev()
                            .filter(|p| p.place.order == order && p.place.aus == aus)
                            .map(|p| {
                                format!(
                                    "{:7.1}{:5.0}",
                                    p.measured_ns / 1e6,
                                    (p.modelled_ns / p.measured_ns).ln() * 100.
                                )
                            })
                            .collect();
                        println!("{aus} {}", line.join(" "));
                    }
                }
            }
        }
    }
    for (what, points) in [("all points", &everything), ("not fitted", &ours)] {
        if let Some(e) = Errors::over(points, |_| true) {
            println!(
                "{what}: {} points, {:.1}% {:.1}% worst {:.1}%",
                e.points,
                e.median * 100.,
                e.p90 * 100.,
                e.worst * 100.
            );
        }
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
