//! Fits modelled cards to measured curves.
//!
//! [`fit`] chooses the family, sizes and counts by trying them on the modelled card under
//! flashbench's sequences ([`whichfs_curves::flashbench`]), fits times and rates to the
//! logarithms of the measured times, and says for each figure where it is from and how well
//! the points determine it. Pure: no clock, no entropy, no I/O; equal input, equal output.

mod points;
mod response;
mod search;
mod shape;
mod sheet;
mod solve;

pub use points::{Compared, Errors, Order, Place, Point, compare, points};

use search::Search;
use sheet::Note;
use whichfs_card::{Family, Profile};
use whichfs_curves::Curves;
use whichfs_curves::flashbench::write_curves_of;

/// What a fit looks at.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Block sizes in bytes of the linear and random write curves that the fit may see; it
    /// sees nothing else of the card then. `None`: everything.
    pub block_sizes: Option<Vec<u64>>,
    /// Seed of what a used card was written with.
    pub seed: u64,
    /// Capacity of the card in bytes, if known.
    pub capacity_bytes: Option<u64>,
}

/// A fitted card.
#[derive(Clone, Debug)]
pub struct Fit {
    /// The profile as a TOML file.
    pub toml: String,
    /// Its family.
    pub family: Family,
    /// Every measured write point beside the model's.
    pub compared: Vec<Compared>,
}

/// Capacity where none is known.
const CAPACITY: u64 = 4_000_000_000;

/// Fits a card to `curves`.
pub fn fit(curves: &Curves, options: &Options) -> Option<Fit> {
    let sizes = options.block_sizes.as_deref();
    let seen = points(curves, sizes);
    let best = Search::new(&seen, options.seed).run().into_iter().next()?;
    let capacity = options.capacity_bytes.unwrap_or(CAPACITY);
    let sheet = best.shape.sheet(&best.free, &best.solution.theta, capacity);
    let toml = sheet.toml("fitted", "sd", &[], |path| {
        let j = best.free.iter().position(|free| free.path == path);
        let source = j.map_or("shape".to_owned(), |j| {
            let s = &best.solution;
            format!("sd {:.2}, informed {:.2}", s.spread[j], s.informed[j])
        });
        Note {
            source: format!("{source}"),
            uncertainty_percent: None,
        }
    });
    let profile = Profile::parse("fitted", &toml).ok()?;
    let modelled = write_curves_of(&profile, options.seed).ok()?;
    Some(Fit {
        family: profile.family(),
        compared: compare(curves, &modelled, sizes),
        toml,
    })
}
