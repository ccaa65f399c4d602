//! A shape: a family with its sizes, counts and switches, and the times and rates that are
//! fitted to it, each with a prior.

use crate::Sizes;
use crate::sheet::Sheet;
use crate::solve::Prior;
use std::collections::BTreeMap;
use whichfs_card::Family;
use whichfs_card::fit_hints::{FigureIs, FittedFigure, PriorScale};
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
    /// The unit that the end of the path of a time, rate or percentage tells.
    fn of(path: &str) -> Unit {
        match path.rsplit('_').next() {
            Some("percent") => Unit::Percent,
            Some("s") => Unit::Rate,
            _ => Unit::Micros,
        }
    }

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

/// ln 16384: in pages of 16 KiB, since the write rate is a time per byte.
const LN_PAGE: f64 = 9.704;

/// `exp(ln_pages)` times what a page takes, give or take `sigma`.
const fn in_pages(path: &'static str, ln_pages: f64, sigma: f64, why: &'static str) -> Free {
    Free {
        path,
        unit: Unit::Micros,
        prior: Prior {
            centre: ln_pages + LN_PAGE,
            relative: true,
            sigma,
        },
        why,
    }
}

impl Free {
    /// A figure that a family has fitted.
    fn of_family(figure: &FittedFigure) -> Free {
        let pages = match figure.scale {
            PriorScale::Pages => LN_PAGE,
            PriorScale::Absolute | PriorScale::WriteTime => 0.0,
        };
        Free {
            path: figure.path,
            unit: Unit::of(figure.path),
            prior: Prior {
                centre: figure.ln_centre + pages,
                relative: figure.scale != PriorScale::Absolute,
                sigma: figure.sigma,
            },
            why: figure.why,
        }
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

/// About the write rate.
const COPY_RATE: Free = Free {
    path: "copy.rate_bytes_per_s",
    unit: Unit::Rate,
    prior: Prior {
        centre: 0.0,
        relative: true,
        sigma: 0.35,
    },
    why: "flash.md 2.3.5",
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
            COPY_RATE,
        ];
        if self.value("reader.max_bytes") > 0 {
            free.push(in_pages(
                "reader.cut_us",
                0.0,
                1.0,
                "cards of the data behind a reader",
            ));
        }
        let own = self.family.fit().fitted.iter();
        let asked = own.filter(|figure| self.is_met(&figure.only));
        free.extend(asked.map(Free::of_family));
        free
    }

    /// Whether the shape is as `condition` says, if there is one.
    pub fn is_met(&self, condition: &Option<FigureIs>) -> bool {
        let condition = condition.as_ref();
        condition.is_none_or(|only| only.values.contains(&self.value(only.path)))
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
    fixed.extend(family.fit().start.iter().copied());
    Shape { family, fixed }
}

impl Shape {
    /// What a shape costs for being unusual, in the unit of what the fit minimises.
    pub fn oddity(&self) -> f64 {
        let hints = self.family.fit();
        let mut oddity = hints.oddity;
        for (path, value) in &self.fixed {
            let of_family = || hints.unusual.iter().find(|(of, ..)| of == path);
            oddity += match *path {
                "reader.max_bytes" if *value > 0 => 1.0,
                "write.coalesce" if *value > 0 => 0.5,
                _ => match of_family() {
                    Some((_, usual, cost)) if !usual.contains(value) => *cost,
                    _ => 0.0,
                },
            };
        }
        oddity
    }
}
