//! Fits of random modelled cards, most of whose AUs are not flashbench's `--erasesize`, to the
//! noise-free curves that flashbench would print of them: whether the family and the AU are found,
//! how far the fit is off, and whether figures are as near as the profile says.
//!
//! `cargo bench -p whichfs-fit --bench odd`; with a number, so many cards of each family (20).

#[path = "../../probe/tests/support/cards.rs"]
#[allow(
    dead_code,
    reason = "made for the tests of the probe, which need more of it"
)]
#[allow(clippy::unwrap_used, reason = "as there")]
mod cards;

use cards::{Mechanisms, Sizes as Aus, Specimen, specimen_with};
use std::time::Instant;
use whichfs_card::Family;
use whichfs_curves::flashbench::curves_of;
use whichfs_fit::{Errors, Fit, FitOptions, Jobs, fit};

/// Seed of what the cards were written with before.
const SEED: u64 = 1;

/// A fitted figure against the card's own.
struct Figure {
    path: &'static str,
    /// ln(fitted / true) in units of what the profile says of it.
    sigmas: f64,
    /// ln(fitted / true).
    off: f64,
}

fn main() {
    let argument = std::env::args().skip(1).find_map(|word| word.parse().ok());
    let count: u64 = argument.unwrap_or(20);
    let mut tally = Tally::default();
    for (name, family) in Family::NAMES {
        for seed in 0..count {
            let card = specimen_with(1_000 + seed, family, Aus::Usual, 4, Mechanisms::Basic);
            let line = one(&card, &mut tally);
            println!("{name:>12} {seed:>3}: {line}");
        }
    }
    tally.print();
}

#[derive(Default)]
struct Tally {
    cards: usize,
    families: usize,
    aus: usize,
    broken: usize,
    seconds: Vec<f64>,
    figures: Vec<Figure>,
}

fn one(card: &Specimen, tally: &mut Tally) -> String {
    let profile = &card.profile;
    let Ok(curves) = curves_of(profile, SEED) else {
        return "flashbench has no room".to_owned();
    };
    let options = FitOptions {
        seed: SEED,
        capacity_bytes: Some(profile.capacity_bytes()),
        erase_bytes: Some(4 << 20),
        sizes: whichfs_fit::Sizes {
            page_bytes: power_of_two(profile.page_bytes()),
            au_bytes: power_of_two(profile.au_bytes()),
            write_unit_bytes: None,
        },
        jobs: Jobs(side_by_side),
        ..FitOptions::default()
    };
    let began = Instant::now();
    let found = match fit(&curves, &[], &options) {
        Ok(found) => found,
        Err(error) => return format!("no fit: {error}"),
    };
    let seconds = began.elapsed().as_secs_f64();
    tally.add(card, &found, seconds);
    describe(card, &found, seconds)
}

/// What the boundaries of `flashbench -a`, powers of two, tell of `bytes`.
fn power_of_two(bytes: u64) -> Option<u64> {
    Some(1 << bytes.trailing_zeros())
}

fn describe(card: &Specimen, found: &Fit, seconds: f64) -> String {
    let errors = Errors::over(&found.compared, |_| true).unwrap_or_default();
    let [median, p90, worst] = [errors.median, errors.p90, errors.worst].map(|of| 100.0 * of);
    let open = |path| (card.figure(path), figure(found, path).map_or(0, |f| f.0));
    format!(
        "AU {:?} KiB, page {:?} KiB, open {:?} {:?}, {seconds:.1} s, \
         {median:.1}/{p90:.1}/{worst:.0} %{}{}",
        (
            card.profile.au_bytes() >> 10,
            found.profile.au_bytes() >> 10
        ),
        (
            card.profile.page_bytes() >> 10,
            found.profile.page_bytes() >> 10
        ),
        open("geometry.open_aus_linear"),
        open("geometry.open_aus_random"),
        match found.profile.family() == card.profile.family() {
            true => String::new(),
            false => format!(", {:?}", found.profile.family()),
        },
        match &found.breaks {
            Some(broken) => format!(", NO FAMILY: {}", broken.curve.name()),
            None => String::new(),
        }
    )
}

/// Value of a figure of the fitted profile, and how far it may be off, in percent.
fn figure(found: &Fit, path: &str) -> Option<(u64, u64)> {
    let mut figures = found.profile.figures();
    let found = figures.find(|figure| figure.path == path)?;
    Some((found.value, found.uncertainty_percent))
}

impl Tally {
    fn add(&mut self, card: &Specimen, found: &Fit, seconds: f64) {
        self.cards += 1;
        self.seconds.push(seconds);
        self.broken += usize::from(found.breaks.is_some());
        self.aus += usize::from(found.profile.au_bytes() == card.profile.au_bytes());
        if found.profile.family() != card.profile.family() {
            return;
        }
        self.families += 1;
        for path in FIGURES {
            let truth = card.figure(path);
            let Some((value, percent)) = figure(found, path) else {
                continue;
            };
            if truth == 0 || value == 0 || percent == 0 {
                continue;
            }
            let off = (value as f64 / truth as f64).ln();
            let sigmas = off / (1.0 + percent as f64 / 100.0).ln();
            self.figures.push(Figure { path, sigmas, off });
        }
    }

    fn print(&mut self) {
        self.seconds.sort_by(f64::total_cmp);
        println!(
            "{} cards: family of {}, AU of {}, {} said to fit none; {:.1} s in the median, \
             {:.1} at worst",
            self.cards,
            self.families,
            self.aus,
            self.broken,
            self.seconds.get(self.cards / 2).unwrap_or(&0.0),
            self.seconds.last().unwrap_or(&0.0)
        );
        for path in FIGURES {
            let of = self.figures.iter().filter(|figure| figure.path == *path);
            let (mut sigmas, mut off): (Vec<f64>, Vec<f64>) =
                of.map(|f| (f.sigmas.abs(), f.off.abs())).unzip();
            if sigmas.is_empty() {
                continue;
            }
            let within = |bound: f64| sigmas.iter().filter(|s| **s <= bound).count() as f64;
            let share = [1.0, 2.0].map(|bound| 100.0 * within(bound) / sigmas.len() as f64);
            sigmas.sort_by(f64::total_cmp);
            off.sort_by(f64::total_cmp);
            println!(
                "{path:>34}: {:>3} cards, within one {:>3.0} %, two {:>3.0} %, off by {:.1} % \
                 (median), {:.0} % (90th)",
                sigmas.len(),
                share[0],
                share[1],
                100.0 * off[off.len() / 2],
                100.0 * off[off.len() * 9 / 10],
            );
        }
    }
}

/// Times and rates that are fitted.
const FIGURES: &[&str] = &[
    "write.rate_bytes_per_s",
    "bus.command_us",
    "write.overhead_us",
    "write.jump_us",
    "write.switch_us",
    "write.partial_us",
    "write.partial_full_us",
    "write.fill_us",
    "copy.rate_bytes_per_s",
    "reader.cut_us",
    "log_block.small_write_us",
    "log_block.random_percent",
    "update_block.whole_us",
    "update_block.small_us",
    "update_block.group_rate_bytes_per_s",
];

fn side_by_side(count: usize, job: &(dyn Fn(usize) + Sync)) {
    std::thread::scope(|scope| {
        for at in 0..count {
            scope.spawn(move || job(at));
        }
    });
}
