//! `whichfs card life`: how long a modelled card lives under a stated load, or a filesystem.

use crate::cli::LifeArgs;
use crate::failure::{Failure, Outcome};
use crate::progress::Progress;
use crate::{interrupt, output};
use whichfs_card::{Load, LoadError, wear_under};
use whichfs_engine::cards::{self, NamedProfile};
use whichfs_engine::life::{Daily, LifeQuestion, lab, need_of, of_filesystem};
use whichfs_engine::trial_cache::TrialCache;
use whichfs_report::documents::life::{CardLife, life_text};
use whichfs_units::Bytes;

/// Examples for `--help`.
pub const EXAMPLES: &str = "\
Examples:
  whichfs card life a1-32gb --per-day 2G                      4 KiB writes at random places
  whichfs card life class4-4gb --per-day 200M --block 64K --order sequential
  whichfs card life emmc-8gb --per-day 1G --span 256M         all of it into one small partition
  whichfs card life a1-32gb --fs f2fs --for logger --times-a-day 24
  whichfs card life a1-32gb --fs ext4 --for rootfs --per-day 500M

Without --fs the load is what reaches the card: what applications write, times what the filesystem
adds. With it, a sustained trial in the lab measures what filesystem and card make of it.";

/// Projects the life.
pub fn run(args: &LifeArgs) -> Outcome<u8> {
    let card = cards::open(&args.name)?;
    let document = match (&args.fs, args.per_day) {
        (None, Some(per_day)) => under_load(args, card, per_day)?,
        (fs, _) => under_filesystem(args, card, fs.as_deref().unwrap_or_default())?,
    };
    match args.json {
        true => output::document(&document)?,
        false => output::text_line(&life_text(&document))?,
    }
    Ok(0)
}

/// Simulates the load.
fn under_load(args: &LifeArgs, card: NamedProfile, bytes_a_day: u64) -> Outcome<CardLife> {
    let load = Load {
        bytes_a_day,
        block_bytes: args.block,
        sequential: args.order == "sequential",
        span_bytes: args.span,
        seed: args.seed,
    };
    let wear = wear_under(&card.profile, &load).map_err(|error| match (&error, args.span) {
        (LoadError::Span { .. }, Some(span)) => {
            Failure::input(format!("--span {}: {error}", Bytes(span)))
        }
        _ => Failure::input(error),
    })?;
    Ok(CardLife::new(card.name, &card.profile, &load, wear))
}

/// Runs the sustained trial.
fn under_filesystem(args: &LifeArgs, card: NamedProfile, fs: &str) -> Outcome<CardLife> {
    let candidate = whichfs_fs::find(fs).map_err(|e| Failure::input(format!("--fs: {e}")))?;
    let need = need_of(&args.needs).map_err(|e| Failure::input(format!("--for: {e}")))?;
    let question = LifeQuestion {
        need,
        filesystem: candidate.name.to_owned(),
        daily: match args.per_day {
            Some(bytes) => Daily::FileBytes(bytes),
            None => Daily::Runs(args.times_a_day.unwrap_or(1) as f64),
        },
        seed: args.seed,
    };
    let bench = lab(card.clone())?;
    let asked = (card.name.as_str(), &card.profile);
    let cache = TrialCache::open(None, args.fresh)?;
    let (flag, mut progress) = (interrupt::flag(), Progress::default());
    let found = of_filesystem(question, asked, &bench, cache, flag, &mut progress)?;
    let profile = &card.profile;
    Ok(CardLife::of_filesystem(
        card.name, profile, found.wear, found.load, found.life,
    ))
}
