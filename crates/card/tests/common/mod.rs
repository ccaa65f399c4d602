//! Small cards and access patterns for the tests.
#![allow(dead_code, clippy::unwrap_used)]

use whichfs_card::{Card, CardStatus, Profile, Request};
use whichfs_units::{KIB, Nanos, Rng};

/// The profile called `name` from `cards/`.
pub fn shipped(name: &str) -> Profile {
    let (_, toml) = whichfs_card::builtin()
        .iter()
        .find(|(known, _)| *known == name)
        .unwrap();
    Profile::parse(name, toml).unwrap()
}

/// The value of a figure of `profile`.
pub fn figure(profile: &Profile, path: &str) -> u64 {
    profile.figures().find(|of| of.path == path).unwrap().value
}

/// A small card: everything happens within a few hundred requests.
pub struct Tiny {
    pub family: &'static str,
    pub au_kib: u64,
    pub aus: u64,
    pub extra: &'static str,
}

impl Tiny {
    pub fn toml(&self) -> String {
        let figure =
            |key: &str, value: u64| format!("{key} = {{ value = {value}, source = \"test\" }}\n");
        let own = match self.family {
            "log-block" => "[log_block]\n".to_owned() + &figure("random_percent", 300),
            "update-block" => {
                "[update_block]\n".to_owned()
                    + &figure("group_rate_bytes_per_s", 5_000_000)
                    + &figure("group_bytes", 32 << 10)
                    + &figure("small_area_bytes", 32 << 10)
            }
            _ => "[page_map]\n".to_owned() + &figure("unit_bytes", 4096) + &figure("modify_us", 90),
        };
        let head = format!(
            "title = \"tiny\"\ninterface = \"sd\"\nfamily = \"{}\"\n[geometry]\n",
            self.family
        );
        let figures = [
            figure("capacity_bytes", self.au_kib * KIB * self.aus - 3 * 512),
            figure("page_bytes", 4096),
            figure("write_unit_bytes", 8192),
            figure("au_bytes", self.au_kib * KIB),
            figure("open_aus_linear", 3),
            figure("open_aus_random", 2),
            figure("spare_aus", 8),
            "[bus]\n".into(),
            figure("command_us", 10),
            figure("rate_bytes_per_s", 100_000_000),
            "[read]\n".into(),
            figure("first_page_us", 100),
            figure("next_page_us", 30),
            figure("au_step_us", 200),
            "[write]\n".into(),
            figure("overhead_us", 400),
            figure("rate_bytes_per_s", 10_000_000),
            match self.family {
                "page-map" => String::new(),
                _ => figure("partial_us", 500) + &figure("partial_full_us", 500),
            },
            "[copy]\n".into(),
            figure("rate_bytes_per_s", 10_000_000),
            figure("erase_us", 2000),
            "[discard]\n".into(),
            figure("supported", 1),
            figure("partial_au_us", 1000),
        ];
        head + &figures.concat() + &own + self.extra
    }

    pub fn profile(&self) -> Profile {
        Profile::parse("tiny.toml", &self.toml()).unwrap()
    }
}

/// A tiny card of the log-block family.
pub fn log_block() -> Profile {
    Tiny {
        family: "log-block",
        au_kib: 256,
        aus: 40,
        extra: "",
    }
    .profile()
}

/// A tiny card of the page-map family.
pub fn page_map() -> Profile {
    Tiny {
        family: "page-map",
        au_kib: 256,
        aus: 40,
        extra: "",
    }
    .profile()
}

/// Serves `request` as soon as the card is idle; returns how long it took in microseconds.
pub fn serve(card: &mut Card, request: Request) -> f64 {
    let began = card.busy_until();
    let completion = card.submit(Nanos::ZERO, &request);
    assert_eq!(completion.status, CardStatus::Ok, "{request:?}");
    (completion.at - began).0 as f64 / 1e3
}

/// flashbench's `-O`: writes `aus` AUs, 12 erase sizes apart from 16 MiB on, in turns of
/// `block` bytes, in order or shuffled within each AU; mean time of a write in ms.
pub fn open_aus(card: &mut Card, profile: &Profile, aus: u64, block: u64, random: bool) -> f64 {
    let au = profile.au_bytes();
    let mut order: Vec<u64> = (0..au / block).collect();
    if random {
        Rng::named(block, "order").shuffle(&mut order);
    }
    let base = |which| (16_u64 << 20).next_multiple_of(au) + which * 12 * au;
    // As flashbench comes from larger blocks: what earlier writers left open is closed.
    for half in 0..2 {
        for which in 0..profile.open_aus_linear() {
            serve(card, Request::write(base(which) + half * au / 2, au / 2));
        }
    }
    // Shuffled passes fill a log that is merged now and then: the mean is over many of them.
    let passes = if random { 8 } else { 1 };
    let mut total = 0.0;
    for _ in 0..passes {
        for &index in &order {
            for which in 0..aus {
                total += serve(card, Request::write(base(which) + index * block, block));
            }
        }
    }
    total / 1e3 / (order.len() as u64 * aus * passes) as f64
}

/// Rate in MB/s of `count` requests of `bytes`, one after the other from `start` on.
pub fn sequential(card: &mut Card, start: u64, bytes: u64, count: u64, write: bool) -> f64 {
    let at = |index| start + index * bytes;
    let request = |index| {
        if write {
            Request::write(at(index), bytes)
        } else {
            Request::read(at(index), bytes)
        }
    };
    let us: f64 = (0..count).map(|index| serve(card, request(index))).sum();
    (bytes * count) as f64 / us
}

/// Requests a second of `count` requests of `bytes` at random places of `span` from `start` on.
pub fn random(card: &mut Card, start: u64, span: u64, bytes: u64, count: u64, write: bool) -> f64 {
    let mut rng = Rng::named(count, "random");
    let mut us = 0.0;
    for _ in 0..count {
        let offset = start + rng.below(span / bytes) * bytes;
        let request = if write {
            Request::write(offset, bytes)
        } else {
            Request::read(offset, bytes)
        };
        us += serve(card, request);
    }
    count as f64 * 1e6 / us
}

/// A tiny card of the update-block family.
pub fn update_block() -> Profile {
    Tiny {
        family: "update-block",
        au_kib: 256,
        aus: 40,
        extra: "",
    }
    .profile()
}
