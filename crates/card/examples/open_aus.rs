//! Plays `flashbench -O` on modelled cards and prints what it would: for each profile given,
//! kind, number of AUs, block size and mean time of a write in microseconds.
//!
//! `cargo run --release -p whichfs-card --example open_aus -- PROFILE.toml…`
//!
//! As the program does: AUs of 4 MiB, twelve apart from 16 MiB on, block sizes from the AU
//! down to 4 KiB, written in turns, in order or in the order of its shift register.

use whichfs_card::{Card, Profile, Request};
use whichfs_units::{MIB, Nanos};

const AU: u64 = 4 * MIB;

fn main() {
    for path in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&path).map_err(|error| error.to_string());
        let profile =
            text.and_then(|text| Profile::parse(&path, &text).map_err(|error| error.to_string()));
        match profile {
            Ok(profile) => curves(&path, &profile),
            Err(error) => {
                eprintln!("{path}: {error}");
                std::process::exit(2);
            }
        }
    }
}

fn curves(path: &str, profile: &Profile) {
    let mut card = Card::used(profile, 1);
    for random in [false, true] {
        for aus in 1..=7 {
            // Each number of AUs is a run of the program.
            let later = card.busy_until() + Nanos::from_secs(2);
            card.submit(later, &Request::read(0, 512));
            for block in (0..=10).map(|power| AU >> power) {
                let us = mean_us(&mut card, aus, block, random);
                let kind = if random { "rnd" } else { "lin" };
                println!("{path} {kind} {aus} {block} {us:.1}");
            }
        }
    }
}

/// Mean time of a write in microseconds.
fn mean_us(card: &mut Card, aus: u64, block: u64, random: bool) -> f64 {
    let blocks = AU / block;
    let places: Vec<u64> = match random {
        true => shuffled(blocks),
        false => (0..blocks).collect(),
    };
    let began = card.busy_until();
    for place in places {
        for au in shuffled(aus) {
            let offset = 16 * MIB + au * 12 * AU + place * block;
            card.submit(Nanos::ZERO, &Request::write(offset, block));
        }
    }
    (card.busy_until() - began).0 as f64 / 1e3 / (blocks * aus) as f64
}

/// The numbers below `count` in the order of flashbench's shift register.
fn shuffled(count: u64) -> Vec<u64> {
    let bits = (64 - count.leading_zeros()).max(8);
    let mut place = 0;
    let mut order = Vec::with_capacity(count as usize);
    while order.len() < count as usize {
        place = shift(place, bits);
        if place < count {
            order.push(place);
        }
    }
    order
}

/// One step of the register of `bits`; it visits every number, zero included.
fn shift(value: u64, bits: u32) -> u64 {
    let start = ((1 << bits) - 1) & 0xace1;
    let value = match value {
        0 => start,
        value if value == start => return 0,
        value => value,
    };
    let taps: &[u32] = match bits {
        8 => &[0, 2, 3, 4],
        9 => &[0, 4],
        10 => &[0, 3],
        _ => &[0, 2],
    };
    let bit = taps.iter().fold(0, |bit, tap| bit ^ (value >> tap & 1));
    value >> 1 | bit << (bits - 1)
}
