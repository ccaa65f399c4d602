//! Fits of every shipped card to the noise-free curves that flashbench would print of it: how long
//! a fit takes, and how far it is off.
//!
//! `cargo bench -p whichfs-fit`; the goal is five seconds a card. A fit uses all processors: the
//! clock is the wall's, so let nothing else run beside it.

use std::time::Instant;
use whichfs_card::{Profile, builtin};
use whichfs_curves::flashbench::curves_of;
use whichfs_fit::{Errors, Fit, FitOptions, Jobs, Sizes, fit};

/// Seconds that a fit may take.
const GOAL_S: f64 = 5.0;
/// Seed of what the cards were written with before.
const SEED: u64 = 1;

fn main() {
    let mut all: Vec<(f64, &str)> = Vec::new();
    for (name, toml) in builtin() {
        match measure(name, toml) {
            Ok((seconds, found)) => {
                println!("{}", line(name, seconds, &found));
                all.push((seconds, name));
            }
            Err(error) => println!("{name:>36}: {error}"),
        }
    }
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let Some((worst, name)) = all.last() else {
        return;
    };
    println!(
        "{} cards: median {:.1} s, worst {worst:.1} s ({name}); goal {GOAL_S} s",
        all.len(),
        all[all.len() / 2].0,
    );
    if *worst > GOAL_S {
        std::process::exit(1);
    }
}

/// Seconds that a fit took, and what it found.
fn measure(name: &str, toml: &str) -> Result<(f64, Fit), Box<dyn std::error::Error>> {
    let profile = Profile::parse(name, toml)?;
    let curves = curves_of(&profile, SEED)?;
    let options = FitOptions {
        seed: SEED,
        sizes: Sizes {
            page_bytes: Some(profile.page_bytes()),
            au_bytes: Some(profile.au_bytes()),
            write_unit_bytes: None,
        },
        jobs: Jobs(side_by_side),
        ..FitOptions::default()
    };
    let began = Instant::now();
    let found = fit(&curves, &[], &options)?;
    Ok((began.elapsed().as_secs_f64(), found))
}

fn side_by_side(count: usize, job: &(dyn Fn(usize) + Sync)) {
    std::thread::scope(|scope| {
        for at in 0..count {
            scope.spawn(move || job(at));
        }
    });
}

fn line(name: &str, seconds: f64, found: &Fit) -> String {
    let errors = Errors::over(&found.compared, |_| true).unwrap_or_default();
    let [median, p90, worst] = [errors.median, errors.p90, errors.worst].map(|of| 100.0 * of);
    let breaks = match found.breaks {
        Some(_) => "fits no family",
        None => "",
    };
    format!("{name:>36}: {seconds:>5.2} s, off by {median:.1} / {p90:.1} / {worst:.0} % {breaks}")
}
