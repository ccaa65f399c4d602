//! `whichfs cache`: what can be made again, and removing some of it.

use crate::cli::CacheGcArgs;
use crate::failure::Outcome;
use crate::output;
use whichfs_engine::cache_files::{self, CacheEntry, KINDS, LIMIT_BYTES};
use whichfs_engine::places;
use whichfs_report::documents::cache::{CacheKind, CacheShown, cache_text};

/// Examples in the help text.
pub const EXAMPLES: &str = "\
Examples:
  whichfs cache list
  whichfs cache gc                 down to 5G
  whichfs cache gc --limit 1G

Kernels and userlands stay: building them takes minutes. Entries that were used within the last hour
stay too. All else is made again when it is needed, with the same bytes.";

/// What the cache has.
pub fn list(json: bool) -> Outcome<u8> {
    tell(json, LIMIT_BYTES, &[])
}

/// Removes entries until the cache has the size that `args` say.
pub fn gc(args: &CacheGcArgs) -> Outcome<u8> {
    let removed = cache_files::clean_up(args.limit)?;
    tell(args.json, args.limit, &removed)
}

fn tell(json: bool, limit: u64, removed: &[CacheEntry]) -> Outcome<u8> {
    let directory = places::cache()?;
    let entries = cache_files::entries(&directory)?;
    let bytes_of = |all: &mut dyn Iterator<Item = &CacheEntry>| all.map(|one| one.bytes).sum();
    let kind = |(name, meaning, removable): &(&'static str, &'static str, bool)| {
        let own = || entries.iter().filter(|entry| entry.kind == *name);
        CacheKind {
            name: (*name).to_owned(),
            meaning,
            entries: own().count() as u64,
            bytes: bytes_of(&mut own()),
            removable: *removable,
        }
    };
    let document = CacheShown {
        bytes: bytes_of(&mut entries.iter()),
        limit_bytes: limit,
        kinds: KINDS.iter().map(kind).collect(),
        removed: removed.len() as u64,
        removed_bytes: bytes_of(&mut removed.iter()),
        directory,
    };
    match json {
        true => output::document(&document)?,
        false => output::text_line(&cache_text(&document, output::width()))?,
    }
    Ok(0)
}
