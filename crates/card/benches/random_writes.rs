//! Random 4 KiB writes through the model, one core, merges and collections included; beside
//! it the floor: the same random numbers written into an array of the same number of words.
//!
//! `cargo bench -p whichfs-card`

use std::hint::black_box;
use std::time::Instant;
use whichfs_card::{Card, Profile, Request, builtin};
use whichfs_units::{Nanos, Rng};

const WRITES: u64 = 10_000_000;
const UNIT: u64 = 4096;

fn main() {
    for (name, toml) in builtin() {
        let profile = match Profile::parse(name, toml) {
            Ok(profile) => profile,
            Err(error) => {
                eprintln!("{error}");
                std::process::exit(2);
            }
        };
        let units = profile.capacity_bytes() / UNIT;
        let floor = floor_per_second(units);
        let mut card = snapshots(name, &profile);
        // Warm: every spare block taken, collections steady.
        run(&mut card, units, WRITES / 4);
        let began = Instant::now();
        run(&mut card, units, WRITES);
        let rate = WRITES as f64 / began.elapsed().as_secs_f64();
        println!(
            "{name}: {:.2} M writes/s; floor (random stores into {units} words) {:.1} M/s; \
             ratio {:.2}; write amplification {:.1}; {} merges",
            rate / 1e6,
            floor / 1e6,
            rate / floor,
            card.write_amplification().unwrap_or(0.0),
            card.stats().au_copies,
        );
    }
}

/// Makes a used card and shows what making, keeping, restoring and cloning it take.
fn snapshots(name: &str, profile: &Profile) -> Card {
    let began = Instant::now();
    let card = Card::used(profile, 1);
    let (made, began) = (began.elapsed(), Instant::now());
    let bytes = card.to_bytes();
    let (kept, began) = (began.elapsed(), Instant::now());
    let restored = Card::from_bytes(profile, &bytes);
    let (read, began) = (began.elapsed(), Instant::now());
    let clone = card.clone();
    println!(
        "{name}: used in {made:.0?}; {} MiB to bytes in {kept:.0?}, back in {read:.0?} ({}); \
         clone in {:.0?}",
        bytes.len() >> 20,
        if restored.is_ok() { "same" } else { "refused" },
        began.elapsed(),
    );
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
    let began = Instant::now();
    for number in 0..WRITES {
        words[rng.below(units) as usize] = number;
    }
    black_box(&words);
    WRITES as f64 / began.elapsed().as_secs_f64()
}
