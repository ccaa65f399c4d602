//! How a board boots, and what that asks of a card: the kind of table, the boot partition, the
//! places of raw boot loaders. The facts are a board's own (`[boot]` of `boards/NAME.toml`).

use crate::error::LayoutError;
use crate::table::Kind;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use whichfs_units::{Bytes, KIB, SECTOR, arguments};

/// Bytes that a table takes at the beginning of a disk: of a GPT the protective MBR, the header and
/// 128 entries of 128 bytes (UEFI 2.10, 5.3), of an MBR a sector.
const fn table_bytes(kind: Kind) -> u64 {
    match kind {
        Kind::Gpt => 34 * SECTOR,
        Kind::Mbr => SECTOR,
    }
}

/// What a board's boot ROM and firmware need on a card.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BootRules {
    /// What reads the card first, in words.
    pub reader: String,
    /// Kinds of partition table with which it boots, the usual one first.
    pub tables: Vec<Kind>,
    /// Filesystem of the partition that it reads its files from; absent: it reads no partition.
    pub filesystem: Option<String>,
    /// Whether that partition must be the first.
    #[serde(default)]
    pub first: bool,
    /// Type of that partition in an MBR, in hexadecimal digits; absent: that of its filesystem.
    pub mbr_type: Option<String>,
    /// Type of that partition in a GPT; absent: the extended boot loader partition.
    pub gpt_type: Option<String>,
    /// Files that the partition must hold.
    #[serde(default)]
    pub files: Vec<String>,
    /// Places outside of partitions that boot loaders take.
    #[serde(default)]
    pub raw: Vec<RawArea>,
    /// Each of these facts → where it is from.
    pub sources: BTreeMap<String, String>,
}

/// A place outside of partitions that a boot loader takes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawArea {
    /// What lies there, in words.
    pub what: String,
    /// Where it begins: bytes such as `33K`.
    at: String,
    /// How much is kept for it: bytes such as `1M`.
    size: String,
    /// File that is to be written there; absent: it need not be, such as an environment.
    pub file: Option<String>,
}

impl fmt::Display for RawArea {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (from, size) = (Bytes(self.start()), Bytes(self.end() - self.start()));
        write!(f, "{size} from {from} on are the place of {}", self.what)
    }
}

impl RawArea {
    /// First byte.
    pub fn start(&self) -> u64 {
        arguments::bytes(&self.at).unwrap_or(0)
    }

    /// First byte behind it.
    pub fn end(&self) -> u64 {
        self.start()
            .saturating_add(arguments::bytes(&self.size).unwrap_or(0))
    }

    /// The command that writes its file to `device`; `None` without a file.
    pub fn dd(&self, device: &str) -> Option<String> {
        let (file, seek) = (self.file.as_ref()?, self.start() / KIB);
        Some(format!(
            "dd if={file} of={device} bs=1K seek={seek} conv=notrunc,fsync"
        ))
    }
}

impl BootRules {
    /// Why these cannot be a board's, if so.
    pub fn fault(&self) -> Option<String> {
        if self.tables.is_empty() {
            return Some("boot.tables is empty; name gpt, mbr or both".into());
        }
        if self.filesystem.is_none() && (self.first || !self.files.is_empty()) {
            return Some("boot.files and boot.first need boot.filesystem".into());
        }
        let mut before = 0;
        for area in &self.raw {
            let (at, size) = (&area.at, &area.size);
            if arguments::bytes(at).is_err() || !arguments::bytes(size).is_ok_and(|size| size > 0) {
                return Some(format!(
                    "boot.raw: {:?} at {at:?} of {size:?}; write bytes such as \"33K\" and \"1M\"",
                    area.what
                ));
            }
            if area.start() < before || !area.start().is_multiple_of(KIB) {
                return Some(format!(
                    "boot.raw: {:?} begins at {at}, inside of what is before it or of a KiB",
                    area.what
                ));
            }
            before = area.end();
            let hit = |kind: &&Kind| area.start() < table_bytes(**kind);
            if let Some(kind) = self.tables.iter().find(hit) {
                return Some(format!(
                    "boot.tables has {}, whose first {} bytes {:?} at {at} would overwrite",
                    kind.word(),
                    table_bytes(*kind),
                    area.what
                ));
            }
        }
        None
    }
}

/// A board for which a card is laid out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootBoard {
    /// Name of the board, as `--board` takes it.
    pub name: String,
    /// How it boots.
    pub rules: BootRules,
    /// What was changed in the layout because of it, in sentences.
    pub changes: Vec<String>,
}

/// Where partitions begin at the earliest: at `usual`, or behind the last place that a boot loader
/// of the board takes, with the sentence that says so. `first` is the name of the first partition
/// and where it is said to begin.
///
/// # Errors
/// It is said to begin in such a place.
pub(crate) fn first_byte(
    board: Option<&BootBoard>,
    first: Option<(&str, Option<u64>)>,
    usual: u64,
    unit: u64,
) -> Result<(u64, Option<String>), LayoutError> {
    let free = usual.next_multiple_of(unit);
    let Some((board, last)) = board.and_then(|board| Some((board, board.rules.raw.last()?))) else {
        return Ok((free, None));
    };
    let begins = last.end().max(usual).next_multiple_of(unit);
    let said = first.and_then(|(name, start)| Some((name, start?)));
    let over = |start: u64| board.rules.raw.iter().find(|area| start < area.end());
    if let Some((name, start, area)) = said.and_then(|(n, start)| Some((n, start, over(start)?))) {
        let (start, board) = (Bytes(start), &board.name);
        return Err(LayoutError::plan(
            format!("partition {name} begins at {start}. {area} ({board})"),
            format!("say start = \"{}K\", or leave it out", begins / KIB),
        ));
    }
    let later = (begins > free && said.is_none()).then(|| {
        let (begins, board) = (Bytes(begins), &board.name);
        format!("The first partition of {board} begins at {begins}. {last}")
    });
    Ok((begins, later))
}

/// The type that the board wants for its boot partition in a `table`, if another than usual.
pub(crate) fn boot_type(board: Option<&BootBoard>, table: Kind) -> Option<String> {
    let rules = &board?.rules;
    match table {
        Kind::Gpt => rules.gpt_type.clone(),
        Kind::Mbr => rules.mbr_type.clone(),
    }
}
