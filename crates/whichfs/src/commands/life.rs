//! `whichfs card life`: how long a modelled card lives under a stated load.

use crate::cli::{LifeArgs, LifeOrder};
use crate::failure::{Failure, Outcome};
use crate::output;
use whichfs_card::{Life, Load, LoadError, Profile, wear_under};
use whichfs_engine::cards;
use whichfs_report::documents::life::{CardLife, life_text};
use whichfs_units::Bytes;

/// Examples for `--help`.
pub const EXAMPLES: &str = "\
Examples:
  whichfs card life a1-32gb --per-day 2G                      4 KiB writes at random places
  whichfs card life class4-4gb --per-day 200M --block 64K --order sequential
  whichfs card life emmc-8gb --per-day 1G --span 256M         all of it into one small partition

The load is what reaches the card: what applications write, times what the filesystem adds
(write_amplification_filesystem of `whichfs choose`).";

/// Simulates the load and projects the life.
pub fn run(args: &LifeArgs) -> Outcome<u8> {
    let card = cards::open(&args.name)?;
    let load = Load {
        bytes_a_day: args.per_day,
        block_bytes: args.block,
        sequential: args.order == LifeOrder::Sequential,
        span_bytes: args.span,
        seed: args.seed,
    };
    let wear = wear_under(&card.profile, &load).map_err(|error| match (&error, args.span) {
        (LoadError::Span { .. }, Some(span)) => {
            Failure::input(format!("--span {}: {error}", Bytes(span)))
        }
        _ => Failure::input(error),
    })?;
    let document = CardLife::new(card.name, &card.profile, &load, wear);
    match args.json {
        true => output::document(&document)?,
        false => output::text_line(&life_text(&document))?,
    }
    Ok(0)
}

/// Years that cards of `profile` live if `per_day` bytes reach them as writes of 4 KiB anywhere.
///
/// # Errors
/// A profile that cannot be cut down.
pub fn years(profile: &Profile, per_day: u64) -> Outcome<Option<Life>> {
    let load = Load {
        bytes_a_day: per_day,
        block_bytes: 4 << 10,
        sequential: false,
        span_bytes: None,
        seed: 1,
    };
    let wear = wear_under(profile, &load).map_err(Failure::input)?;
    Ok(wear.life)
}
