//! A shape: a family with its sizes, counts and switches, and the times and rates that are
//! fitted to it, each with a prior.

use crate::Sizes;
use crate::sheet::Sheet;
use crate::solve::Prior;
use std::collections::BTreeMap;
use whichfs_card::Family;
use whichfs_card::limits::{MICROS_MAX, RANDOM_PERCENT, RATE, within};

/// Open AUs of a card whose limit no test reaches.
pub(crate) const NO_LIMIT: u64 = 8;

/// What a figure's integer means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Microseconds.
    Micros,
    /// Bytes a second; the fit sees nanoseconds a byte.
    Rate,
    /// Percent; the fit sees a factor.
    Percent,
}

/// A time or rate that is fitted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Free {
    pub path: &'static str,
    pub unit: Unit,
    pub prior: Prior,
    /// Why the prior is what it is.
    pub why: &'static str,
}

/// Sizes, counts and switches of one candidate.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shape {
    pub family: Family,
    pub fixed: BTreeMap<&'static str, u64>,
}

impl Unit {
    /// The figure's integer for `theta` (nanoseconds, nanoseconds a byte, or a factor).
    pub fn integer(self, theta: f64) -> u64 {
        let value = match self {
            Unit::Micros => theta / 1e3,
            Unit::Rate => 1e9 / theta,
            Unit::Percent => theta * 100.0,
        };
        let value = value.round().max(0.0) as u64;
        match self {
            Unit::Micros => value.min(MICROS_MAX),
            Unit::Rate => within(&RATE, value),
            Unit::Percent => within(&RANDOM_PERCENT, value),
        }
    }

    /// What an integer means to the fit.
    pub fn theta(self, integer: u64) -> f64 {
        match self {
            Unit::Micros => integer as f64 * 1e3,
            Unit::Rate => 1e9 / integer as f64,
            Unit::Percent => integer as f64 / 100.0,
        }
    }

    /// Bounds of `ln θ`.
    pub fn limits(self) -> (f64, f64) {
        let ln = |integer: u64| self.theta(integer).ln();
        match self {
            Unit::Micros => (0.0, ln(MICROS_MAX)),
            Unit::Rate => (ln(*RATE.end()), ln(*RATE.start())),
            Unit::Percent => (ln(*RANDOM_PERCENT.start()), ln(*RANDOM_PERCENT.end())),
        }
    }
}

/// `pages` times what a page takes, give or take `sigma`.
const fn in_pages(path: &'static str, ln_pages: f64, sigma: f64, why: &'static str) -> Free {
    Free {
        path,
        unit: Unit::Micros,
        prior: Prior {
            // ln 16384 = 9.704: the rate is a time per byte.
            centre: ln_pages + 9.704,
            relative: true,
            sigma,
        },
        why,
    }
}

/// A rate of about `exp(-ln_times)` times the write rate.
const fn like_writing(path: &'static str, ln_times: f64, sigma: f64, why: &'static str) -> Free {
    Free {
        path,
        unit: Unit::Rate,
        prior: Prior {
            centre: ln_times,
            relative: true,
            sigma,
        },
        why,
    }
}

/// Page of cards of which nothing tells it (most cards of the data).
const PAGE_BYTES: u64 = 16 << 10;

/// The write rate comes first: others are relative to it. 10 MB/s is 100 ns a byte.
const WRITE_RATE: Free = Free {
    path: "write.rate_bytes_per_s",
    unit: Unit::Rate,
    prior: Prior {
        centre: 4.6,
        relative: false,
        sigma: 1.5,
    },
    why: "cards of the data: 2 to 20 MB/s",
};

const COMMAND: Free = Free {
    path: "bus.command_us",
    unit: Unit::Micros,
    prior: Prior {
        // 200 us.
        centre: 12.2,
        relative: false,
        sigma: 0.7,
    },
    why: "command and host overhead of the cards of the data",
};

/// Rest after which a card with a small-write area closes its logs; less than the rest before
/// each test (2 s). No log tells more of it.
const IDLE_CLOSE_US: u64 = 1_000_000;

const RANDOM: Free = Free {
    path: "log_block.random_percent",
    unit: Unit::Percent,
    prior: Prior {
        centre: 0.05,
        relative: false,
        sigma: 0.2,
    },
    why: "cards of family A in the data: 100 to 130",
};

/// Not in proportion to the write rate: the same model at 6 and at 18 MB/s takes much the same.
const WHOLE: Free = Free {
    path: "update_block.whole_us",
    unit: Unit::Micros,
    prior: Prior {
        // 0.53 s.
        centre: 20.09,
        relative: false,
        sigma: 0.3,
    },
    why: "cards of family S in the data with a limit of open AUs: 0.42 to 0.71 s",
};

impl Shape {
    /// The times and rates that are fitted in this shape. The last is the factor, if any.
    pub fn free(&self) -> Vec<Free> {
        let mut free = vec![
            WRITE_RATE,
            COMMAND,
            in_pages("write.overhead_us", -0.5, 0.6, "cards of the data"),
            in_pages("write.jump_us", -1.5, 1.5, "cards of the data"),
            in_pages("write.switch_us", -1.5, 1.5, "cards of the data"),
            in_pages("write.partial_us", 0.0, 0.5, "cards of the data"),
            in_pages("write.partial_full_us", 0.0, 0.3, "a page, flash.md 2.3.3"),
            in_pages("write.fill_us", -0.5, 1.0, "cards of the data"),
            like_writing("copy.rate_bytes_per_s", 0.0, 0.35, "flash.md 2.3.5"),
        ];
        if self.has("reader.max_bytes") {
            free.push(in_pages(
                "reader.cut_us",
                0.0,
                1.0,
                "cards of the data behind a reader",
            ));
        }
        match self.family {
            Family::LogBlock => {
                if self.has("log_block.small_write_bytes") {
                    free.push(in_pages(
                        "log_block.small_write_us",
                        2.0,
                        1.0,
                        "cards of family A+s in the data",
                    ));
                }
                free.push(RANDOM);
            }
            Family::UpdateBlock => {
                if self.value("geometry.open_aus_linear") < 8 {
                    free.push(WHOLE);
                }
                free.push(in_pages(
                    "update_block.small_us",
                    0.5,
                    0.8,
                    "cards of family S in the data",
                ));
                free.push(like_writing(
                    "update_block.group_rate_bytes_per_s",
                    0.5,
                    0.5,
                    "cards of family S in the data",
                ));
            }
            Family::PageMap => {}
        }
        free
    }

    fn has(&self, path: &str) -> bool {
        self.fixed.get(path).is_some_and(|value| *value > 0)
    }

    /// The same with one figure changed.
    pub fn with(&self, path: &'static str, value: u64) -> Shape {
        let mut shape = self.clone();
        shape.fixed.insert(path, value);
        shape
    }

    /// What goes with `log_block.small_write_bytes` (see `small_writes`) unless it is tried.
    pub const WITH_SMALL_WRITES: [&'static str; 2] =
        ["log_block.idle_close_us", "log_block.merge_at_once"];

    /// The same with writes below `bytes` in an area of their own, and with what goes with that
    /// in the data: with such an area, logs are closed in the rest before a test and a log is
    /// begun anew at the AU's beginning (runs 6, 11, 15 and 21); without, a full log is merged
    /// at once and logs stay open (runs 2, 5 and 19).
    pub fn small_writes(&self, bytes: u64) -> Shape {
        let idle_close_us = if bytes > 0 { IDLE_CLOSE_US } else { 0 };
        self.with("log_block.small_write_bytes", bytes)
            .with("log_block.idle_close_us", idle_close_us)
            .with("log_block.merge_at_once", u64::from(bytes == 0))
    }

    /// A figure of the shape, zero if it has none.
    pub fn value(&self, path: &str) -> u64 {
        self.fixed.get(path).copied().unwrap_or(0)
    }

    /// The same with the sizes that reads tell; AUs are of `erase_bytes` where they do not.
    pub fn of_sizes(&self, sizes: &Sizes, erase_bytes: u64) -> Shape {
        let page = sizes.page_bytes.unwrap_or(PAGE_BYTES);
        let unit = sizes.write_unit_bytes.unwrap_or(PAGE_BYTES).max(page);
        self.with("geometry.page_bytes", page)
            .with("geometry.write_unit_bytes", unit)
            .with("write.program_bytes", unit)
            .with("geometry.au_bytes", sizes.au_bytes.unwrap_or(erase_bytes))
    }

    /// All figures, with `theta` for the free ones, on a card of `capacity`.
    pub fn sheet(&self, free: &[Free], theta: &[f64], capacity: u64) -> Sheet {
        let mut values = self.fixed.clone();
        values.insert("geometry.capacity_bytes", capacity);
        let spare = spare_aus(capacity, self.value("geometry.au_bytes"));
        values.insert("geometry.spare_aus", spare);
        for (free, theta) in free.iter().zip(theta) {
            values.insert(free.path, free.unit.integer(*theta));
        }
        Sheet {
            family: self.family,
            values,
        }
    }
}

/// Spare AUs: flash comes in powers of two, a few percent more than the capacity; and what a
/// reserve takes that keeps bursts free of collection.
fn spare_aus(capacity: u64, au_bytes: u64) -> u64 {
    const LEAST: u64 = 48;
    let aus = capacity.div_ceil(au_bytes);
    let flash = capacity.next_power_of_two() / au_bytes;
    let beyond = flash.saturating_sub(aus).min(aus / 10);
    LEAST + beyond.max(aus / 16)
}

/// Figures that writing does not tell, and the usual geometry.
pub(crate) fn start(family: Family) -> Shape {
    let mut fixed = BTreeMap::from([
        ("geometry.page_bytes", PAGE_BYTES),
        ("geometry.write_unit_bytes", PAGE_BYTES),
        ("geometry.au_bytes", 4 << 20),
        ("geometry.open_aus_linear", 8),
        ("geometry.open_aus_random", 8),
        ("bus.rate_bytes_per_s", *RATE.end()),
        ("read.first_page_us", 400),
        ("read.next_page_us", 250),
        ("write.coalesce", 0),
        ("write.coalesce_bytes", 64 << 10),
        ("write.program_bytes", PAGE_BYTES),
        ("copy.erase_us", 3_000),
        ("discard.supported", 1),
        ("discard.overhead_us", 1_000),
        ("discard.partial_au_us", 20_000),
        ("reader.max_bytes", 0),
    ]);
    match family {
        Family::LogBlock => {
            fixed.insert("log_block.log_percent", 100);
            fixed.insert("log_block.gap_bytes", 0);
            fixed.insert("log_block.small_write_bytes", 0);
            fixed.insert("log_block.small_write_jumps", 0);
            fixed.insert("log_block.idle_close_us", 0);
            fixed.insert("log_block.merge_at_once", 0);
            fixed.insert("log_block.first_opened", 0);
        }
        Family::UpdateBlock => {
            fixed.insert("update_block.small_bytes", 8 << 10);
            fixed.insert("update_block.small_area_bytes", 4 << 20);
            fixed.insert("update_block.group_bytes", 512 << 10);
        }
        Family::PageMap => {
            fixed.insert("page_map.unit_bytes", 4 << 10);
            fixed.insert("page_map.modify_us", 0);
            fixed.insert("page_map.streams", 0);
            fixed.insert("page_map.background_aus", 16);
        }
    }
    Shape { family, fixed }
}

impl Shape {
    /// What a shape costs for being unusual, in the unit of what the fit minimises.
    pub fn oddity(&self) -> f64 {
        // Update blocks show where they are: 64 KiB at random takes many times what it does in
        // order and 1 MiB does not. Without that, other families explain as much.
        let mut oddity = match self.family {
            Family::UpdateBlock => 4.0,
            _ => 0.0,
        };
        for (path, value) in &self.fixed {
            let odd = match *path {
                "reader.max_bytes" if *value > 0 => {
                    oddity += 1.0;
                    false
                }
                "write.coalesce" => *value > 0,
                "update_block.group_bytes" if *value != 512 << 10 => {
                    oddity += 1.7;
                    true
                }
                "log_block.log_percent" => *value > 100,
                "log_block.gap_bytes" => *value > 0,
                "log_block.small_write_bytes" => *value > 0,
                "log_block.first_opened" => *value > 0,
                "page_map.streams" => *value > 0,
                _ => false,
            };
            oddity += if odd { 0.5 } else { 0.0 };
        }
        oddity
    }
}
