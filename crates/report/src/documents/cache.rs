//! The cache: what can be made again, and how much room it takes.

use crate::document::Document;
use crate::text::table;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::PathBuf;
use whichfs_units::Bytes;

/// The document of `cache list` and `cache gc`.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CacheShown {
    /// Where the cache is on this machine.
    pub directory: PathBuf,
    /// Bytes of all that is in it.
    pub bytes: u64,
    /// Bytes up to which `cache gc` keeps entries.
    pub limit_bytes: u64,
    /// What is in it, the longest unused kind by kind.
    pub kinds: Vec<CacheKind>,
    /// Entries that `cache gc` removed.
    pub removed: u64,
    /// Bytes that they had.
    pub removed_bytes: u64,
}

/// A kind of entries of the cache.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CacheKind {
    /// Name of its directory.
    pub name: String,
    /// Use of the entries of this kind, in words.
    pub meaning: &'static str,
    /// How many entries.
    pub entries: u64,
    /// Their bytes on disk.
    pub bytes: u64,
    /// Whether `cache gc` may remove them.
    pub removable: bool,
}

impl Document for CacheShown {
    const NAME: &'static str = "cache list";
}

/// The cache in lines of at most `width` columns.
pub fn cache_text(cache: &CacheShown, width: usize) -> String {
    let row = |kind: &CacheKind| {
        vec![
            kind.name.clone(),
            kind.entries.to_string(),
            Bytes(kind.bytes).to_string(),
            if kind.removable { "yes" } else { "no" }.to_owned(),
            kind.meaning.to_owned(),
        ]
    };
    let head = ["kind", "entries", "size", "gc removes", "what it is"];
    let table = table(&head, cache.kinds.iter().map(row).collect(), width);
    let removed = match cache.removed {
        0 => String::new(),
        count => format!("removed: {count} entries, {}\n", Bytes(cache.removed_bytes)),
    };
    format!(
        "{table}\n{removed}{}: {}; `whichfs cache gc` keeps {}",
        cache.directory.display(),
        Bytes(cache.bytes),
        Bytes(cache.limit_bytes)
    )
}
