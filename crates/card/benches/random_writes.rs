//! Random 4 KiB writes through the model, one core, merges and collections included. Beside
//! it two floors: the same requests into a plain hash map (unit to number of the write, as the
//! least that a page map must remember), and into an array of words. Medians of [`RUNS`];
//! the clock is the time on the processor, so that other work on the machine counts less.
//!
//! `cargo bench -p whichfs-card` measures the first card of each family, `cargo bench -p
//! whichfs-card -- NAME …` those.

use std::collections::HashMap;
use std::hint::black_box;
use std::time::Instant;
use whichfs_card::{Card, Profile, Request, builtin};
use whichfs_units::{Nanos, Rng};

const WRITES: u64 = 10_000_000;
const RUNS: usize = 5;
const UNIT: u64 = 4096;

fn main() {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    let mut families = Vec::new();
    for (name, toml) in builtin() {
        let profile = match Profile::parse(name, toml) {
            Ok(profile) => profile,
            Err(error) => {
                eprintln!("{error}");
                std::process::exit(2);
            }
        };
        let family = profile.family();
        let first = !families.contains(&family);
        if !(wanted.iter().any(|word| word == name) || wanted.is_empty() && first) {
            continue;
        }
        families.push(family);
        let units = profile.capacity_bytes() / UNIT;
        let array = median(|| floor_per_second(units));
        let map = median(|| hash_map_per_second(units));
        let mut card = used(name, &profile);
        // PrefaultedBuffer: every spare block taken, collections steady.
        run(&mut card, units, WRITES / 4);
        let rate = median(|| {
            let began = on_cpu_s();
            run(&mut card, units, WRITES / 4);
            WRITES as f64 / 4.0 / (on_cpu_s() - began)
        });
        println!(
            "{name} ({:?}): {:.2} M writes/s; floors for {units} units: hash map {:.2} M/s, \
             array {:.1} M/s; write amplification {:.1}; {} merges",
            profile.family(),
            rate / 1e6,
            map / 1e6,
            array / 1e6,
            card.write_amplification().unwrap_or(0.0),
            card.stats().au_copies,
        );
    }
}

/// Seconds that this process was on a processor.
fn on_cpu_s() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let ns = text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok());
    match ns {
        Some(ns) => ns / 1e9,
        None => {
            eprintln!("/proc/self/schedstat cannot be read; this needs Linux");
            std::process::exit(2);
        }
    }
}

/// The median of [`RUNS`] measurements.
fn median(mut measure: impl FnMut() -> f64) -> f64 {
    let mut runs: Vec<f64> = (0..RUNS).map(|_| measure()).collect();
    runs.sort_by(f64::total_cmp);
    runs[RUNS / 2]
}

fn hash_map_per_second(units: u64) -> f64 {
    let mut map = HashMap::new();
    let mut store = |writes: u64| {
        let mut rng = Rng::named(writes, "bench");
        for number in 0..writes {
            map.insert(rng.below(units), number);
        }
    };
    store(WRITES / 4);
    let began = on_cpu_s();
    store(WRITES / 4);
    let rate = WRITES as f64 / 4.0 / (on_cpu_s() - began);
    black_box(&map);
    rate
}

/// Makes a used card and shows what making and cloning it take.
fn used(name: &str, profile: &Profile) -> Card {
    let began = Instant::now();
    let card = Card::used(profile, 1);
    let (made, began) = (began.elapsed(), Instant::now());
    let clone = card.clone();
    let cloned = began.elapsed();
    println!("{name}: used in {made:.0?}; clone in {cloned:.0?}");
    drop(clone);
    card
}

fn run(card: &mut Card, units: u64, writes: u64) {
    let mut rng = Rng::named(writes, "bench");
    for _ in 0..writes {
        let offset = rng.below(units) * UNIT;
        black_box(card.submit(Nanos::ZERO, &Request::write(offset, UNIT)));
    }
}

fn floor_per_second(units: u64) -> f64 {
    let mut words = vec![0_u64; units as usize];
    let mut rng = Rng::named(1, "bench");
    let began = on_cpu_s();
    for number in 0..WRITES {
        words[rng.below(units) as usize] = number;
    }
    black_box(&words);
    WRITES as f64 / (on_cpu_s() - began)
}
