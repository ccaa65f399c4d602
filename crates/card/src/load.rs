//! A load on a modelled card, simulated: how it wears the card, and how long the card lives.

use crate::{CapacityError, Card, Life, Profile, Request, Wear, projected_life};
use whichfs_units::{Bytes, Rng};

/// Capacity of the cut-down card on which a load over the whole card is simulated: blocks must
/// be erased several times for their spread to show. A page-mapped card keeps its share of
/// spare blocks, others their number.
const CUT_BYTES: u64 = 2 << 30;
/// Times that the load is written to age the card, and again to measure it.
const ROUNDS: u64 = 4;
/// Fewest and most bytes that are written each time.
const WRITTEN_LEAST: u64 = 4 << 30;
const WRITTEN_MAX: u64 = 16 << 30;

/// What reaches a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Bytes in a day.
    pub bytes_a_day: u64,
    /// Bytes of a write.
    pub block_bytes: u64,
    /// Each write after the last; else anywhere.
    pub sequential: bool,
    /// Bytes from the card's beginning on that are written; none is all of it.
    pub span_bytes: Option<u64>,
    /// Seed of the places.
    pub seed: u64,
}

/// How a load wears a card.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadWear {
    /// Bytes that are written.
    pub span_bytes: u64,
    /// Flash bytes programmed for each byte that the host writes.
    pub write_amplification: f64,
    /// Erases of blocks.
    pub erases: Wear,
    /// Years that shares of such cards live at most; none if nothing is written or erased.
    pub life: Option<Life>,
}

/// Why a load cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// The part that is written is smaller than a write, or larger than the card.
    #[error("expected between a block and the card's {}", Bytes(*.capacity))]
    Span {
        /// Bytes of the card.
        capacity: u64,
    },
    /// The profile cannot be cut down.
    #[error(transparent)]
    Capacity(#[from] CapacityError),
    /// The card has other blocks than before.
    #[error("the card lost count of its erases")]
    Erases,
}

/// Simulates `load` on a card of `profile`.
///
/// # Errors
/// The part that is written does not fit; the profile cannot be cut down.
pub fn wear_under(profile: &Profile, load: &Load) -> Result<LoadWear, LoadError> {
    let capacity = profile.capacity_bytes();
    let span_bytes = load.span_bytes.unwrap_or(capacity);
    if span_bytes > capacity || span_bytes < load.block_bytes {
        return Err(LoadError::Span { capacity });
    }
    let small = match load.span_bytes {
        None if capacity > CUT_BYTES => profile.with_capacity(CUT_BYTES)?,
        _ => profile.clone(),
    };
    let span = load.span_bytes.unwrap_or(small.capacity_bytes());
    let share = small.capacity_bytes() as f64 / capacity as f64;
    let mut used = Card::used(&small, load.seed);
    let total = (ROUNDS * span).clamp(WRITTEN_LEAST, WRITTEN_MAX);
    // The first rounds bring the mapping into the state that lasts.
    write(&mut used, span, total, load, "life, before");
    let (before, programmed) = (used.erases_per_au(), used.stats().programmed_bytes);
    let written = used.stats().write_bytes;
    write(&mut used, span, total, load, "life");
    let stats = used.stats();
    let (programmed, written) = (
        stats.programmed_bytes - programmed,
        stats.write_bytes - written,
    );
    let erases = Wear::between(&before, &used.erases_per_au()).ok_or(LoadError::Erases)?;
    let a_day = (load.bytes_a_day as f64 * share).ceil() as u64;
    Ok(LoadWear {
        span_bytes,
        write_amplification: programmed as f64 / written as f64,
        life: projected_life(&small, a_day, written, &erases),
        erases,
    })
}

/// Writes `bytes` into the first `span` bytes of the card.
fn write(card: &mut Card, span: u64, bytes: u64, load: &Load, stream: &str) {
    let block = load.block_bytes;
    let places = span / block;
    let mut rng = Rng::named(load.seed, stream);
    for at in 0..bytes / block {
        let place = match load.sequential {
            false => rng.below(places),
            true => at % places,
        };
        card.submit(card.busy_until(), &Request::write(place * block, block));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::builtin;

    const LOAD: Load = Load {
        bytes_a_day: 1 << 30,
        block_bytes: 4096,
        sequential: false,
        span_bytes: Some(256 << 20),
        seed: 1,
    };

    fn class4() -> Profile {
        let name = "class4-4gb";
        let (_, text) = builtin().iter().find(|(known, _)| *known == name).unwrap();
        Profile::parse(name, text).unwrap()
    }

    #[test]
    fn random_writes_wear_more_than_those_in_order_and_life_is_a_range() {
        let card = class4();
        let of = |load: Load| wear_under(&card, &load).unwrap();
        let random = of(LOAD);
        let sequential = of(Load {
            sequential: true,
            ..LOAD
        });
        assert!(random.write_amplification > 5.0 * sequential.write_amplification);
        // Small writes in order share pages: the card programs what it is given.
        assert!((0.99..1.01).contains(&sequential.write_amplification));
        let life = random.life.unwrap();
        assert!(life.p10_years < life.p25_years && life.p75_years < life.p90_years);
        assert!(life.p90_years < sequential.life.unwrap().p90_years);
        let none = of(Load {
            bytes_a_day: 0,
            ..LOAD
        });
        assert!(none.life.is_none());
    }

    #[test]
    fn a_span_beyond_the_card_is_refused() {
        let wrong = Load {
            span_bytes: Some(1 << 50),
            ..LOAD
        };
        let refused = wear_under(&class4(), &wrong).unwrap_err().to_string();
        assert!(refused.contains("the card's"), "{refused}");
    }
}
