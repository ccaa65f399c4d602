//! What a probe costs beside flashbench's `-a`, `-f` and `-O --open-au-nr=1..7` with and
//! without `--random` on the same card: at most a fifth of the bytes and of the time.
#![allow(clippy::unwrap_used)]

use whichfs_card::{Card, Profile, builtin};
use whichfs_curves::{Modelled, TimedDevice};
use whichfs_probe::{ProbeOptions, Silent, Writing, probe};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// flashbench's defaults.
const ERASE: u64 = 4 * MIB;
const FAT_AUS: u64 = 6;

/// Block sizes of `-O` and `-f` with `--blocksize=4096`.
fn blocks() -> impl Iterator<Item = u64> {
    (0..11).map(|power| (4 * MIB) >> power)
}

/// A permutation as flashbench's shift register makes: every block once, none in order.
fn scattered(count: u64) -> Vec<u64> {
    let step = (count / 2) | 1;
    let order: Vec<u64> = (0..count).map(|at| at * step % count).collect();
    let mut sorted = order.clone();
    sorted.sort_unstable();
    assert!(sorted.into_iter().eq(0..count), "every block once");
    order
}

/// The sequences of flashbench.c at d783b1b; bytes written and seconds.
fn flashbench(device: &mut Modelled) -> (u64, f64) {
    let data = vec![0; ERASE as usize];
    let mut written = 0;
    let began = device.elapsed();
    let capacity = device.capacity_bytes();
    let mut align = 2048;
    while align < capacity / 7 {
        align *= 2;
    }
    let largest = align;
    while align >= 2048 {
        for _ in 0..8 {
            for shift in [1024, 512, 0] {
                for place in 0..7 {
                    let offset = (align - shift + place * largest) % (capacity - 1024);
                    device.read(offset / 512 * 512, &mut [0; 1024]).unwrap();
                }
            }
        }
        align /= 2;
    }
    for block in blocks() {
        for au in 0..FAT_AUS {
            for at in 0..ERASE / block {
                let offset = au * ERASE + at * block;
                device.write(offset, &data[..block as usize]).unwrap();
                written += block;
            }
        }
    }
    for random in [false, true] {
        for count in 1..=7 {
            for block in blocks() {
                let places = ERASE / block;
                let order = if random {
                    scattered(places)
                } else {
                    (0..places).collect()
                };
                for at in order {
                    for au in 0..count {
                        let offset = (16 * MIB + au * 12 * ERASE + at * block) % capacity;
                        device.write(offset, &data[..block as usize]).unwrap();
                        written += block;
                    }
                }
            }
        }
    }
    (written, (device.elapsed() - began).as_secs_f64())
}

fn costs_a_fifth(name: &str, text: &str) {
    let profile = Profile::parse(name, text).unwrap();
    let device = || Modelled::new(Card::used(&profile, 1), profile.capacity_bytes());
    let (written, seconds) = flashbench(&mut device());
    let options = ProbeOptions {
        seed: 1,
        writing: Writing::Destroy,
        ..ProbeOptions::default()
    };
    let found = probe(&mut device(), &options, &mut Silent);
    println!(
        "{name:>20}: {:>5} of {:>5} MiB, {:>7.1} of {:>8.1} s",
        found.bytes_written / MIB,
        written / MIB,
        found.device_s,
        seconds
    );
    assert!(found.complete, "{name}: {:?}", found.ended);
    assert!(found.bytes_written * 5 <= written, "{name}");
    assert!(found.device_s * 5.0 <= seconds, "{name}");
    assert!(
        written > 2000 * MIB && written < 3000 * MIB,
        "{name}: {}",
        written / KIB
    );
}

#[test]
fn a_probe_costs_a_fifth_of_flashbench_on_every_card() {
    let cards = builtin();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for part in cards.chunks(cards.len().div_ceil(cores)) {
            scope.spawn(move || {
                for (name, text) in part {
                    costs_a_fifth(name, text);
                }
            });
        }
    });
}
