//! The figures a profile may state: names, legal ranges, meaning. One list, from which come the
//! types of [`Profile`](crate::Profile), its reader, the drawing of uncertain figures and messages.

use crate::cells::CELLS;
use crate::family::Family;
use crate::limits::{
    AU_BYTES, CAPACITY_MAX, LOGS_MAX, MICROS_MAX, RANDOM_PERCENT, RATE, UNIT_BYTES,
};
use std::ops::RangeInclusive;

/// What kind of a quantity a figure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Geometry, cycles, switches: never varied by a draw.
    Fixed,
    /// A time, a rate or a threshold: varied within its uncertainty.
    Varied,
}

/// One figure that a profile may or must state.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Spec {
    /// `section.key` in the TOML file.
    pub path: &'static str,
    /// Least legal value.
    pub min: u64,
    /// Greatest legal value.
    pub max: u64,
    /// Value where the file says nothing; `None` makes it mandatory.
    pub default: Option<u64>,
    /// Whether a draw varies it.
    pub kind: Kind,
    /// Where the default is from and how far it may be off, in percent.
    pub assumed: Option<(&'static str, u64)>,
}

impl Spec {
    /// Section and key.
    pub fn names(&self) -> (&'static str, &'static str) {
        self.path
            .split_once('.')
            .unwrap_or_else(|| unreachable!("no section: {}", self.path))
    }

    /// A figure whose default has a source and an uncertainty of its own.
    const fn assumed(mut self, source: &'static str, percent: u64) -> Spec {
        self.assumed = Some((source, percent));
        self
    }
}

const fn of_kind(kind: Kind, path: &'static str, range: [u64; 2], default: Option<u64>) -> Spec {
    Spec {
        path,
        min: range[0],
        max: range[1],
        default,
        kind,
        assumed: None,
    }
}

const fn fixed(path: &'static str, min: u64, max: u64, default: Option<u64>) -> Spec {
    of_kind(Kind::Fixed, path, [min, max], default)
}

const fn varied(path: &'static str, min: u64, max: u64, default: Option<u64>) -> Spec {
    of_kind(Kind::Varied, path, [min, max], default)
}

const fn rate(path: &'static str, default: Option<u64>) -> Spec {
    varied(path, *RATE.start(), *RATE.end(), default)
}

/// Source of what the published logs of flashbench were fitted with.
const LOGS: &str = "assumed: fits the logs of flashbench";
/// Source of what no log tells.
const UNKNOWN: &str = "assumed: no measurement";
/// Spare blocks that collecting in the background cannot free: those that are open.
pub(crate) const OPEN_BLOCKS: u64 = 4;

/// One figure of a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// `section.key`; the key ends with the unit.
    pub path: &'static str,
    /// Value in the key's unit.
    pub value: u64,
    /// Where it is from; `None` for a default that the file does not state and that means
    /// "nothing of the kind".
    pub source: Option<String>,
    /// How far the truth may be off, in percent, as a factor up or down; zero for geometry.
    pub uncertainty_percent: u64,
    pub(crate) spec: &'static Spec,
}

impl Figure {
    /// Whether it is a time, a rate or a threshold, in which cards of one kind differ; sizes,
    /// counts and switches are not.
    pub fn varies(&self) -> bool {
        self.spec.kind == Kind::Varied
    }

    /// Whether a file that does not state the figure means this value.
    pub fn is_default(&self) -> bool {
        self.spec.default == Some(self.value)
    }

    /// The legal value nearest to `value`.
    pub fn legal(&self, value: f64) -> u64 {
        (value.round() as u64).clamp(self.spec.min, self.spec.max)
    }

    /// A time in microseconds as nanoseconds.
    pub(crate) fn nanos(&self) -> u64 {
        self.value * 1_000
    }

    /// Whether a switch is on.
    pub(crate) fn is_on(&self) -> bool {
        self.value == 1
    }

    /// Sets the value within its legal range.
    ///
    /// # Errors
    /// A value that is not legal, in words.
    pub(crate) fn set(&mut self, value: u64) -> Result<(), String> {
        let Spec { path, min, max, .. } = self.spec;
        if !(*min..=*max).contains(&value) {
            return Err(format!("{path} is {value}, legal are {min} to {max}"));
        }
        self.value = value;
        Ok(())
    }
}

/// A section of a profile: a struct with a figure for each key, and their specifications.
macro_rules! section {
    ($(#[$doc:meta])* $section:ident: $Figures:ident {
        $($(#[$key_doc:meta])* $key:ident: $make:ident($($range:expr),*)
            $(, assumed($source:expr, $percent:expr))?;)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $Figures {
            $($(#[$key_doc])* pub $key: Figure,)*
        }

        impl $Figures {
            pub(crate) const SPECS: &'static [Spec] = &[$(
                $make(concat!(stringify!($section), ".", stringify!($key)), $($range),*)
                    $(.assumed($source, $percent))?,
            )*];

            /// The section, with each figure from `read`.
            pub(crate) fn read<E>(
                read: &mut dyn FnMut(&'static Spec) -> Result<Figure, E>,
            ) -> Result<$Figures, E> {
                let mut specs = Self::SPECS.iter();
                let mut next = || match specs.next() {
                    Some(spec) => read(spec),
                    None => unreachable!("a specification for each key"),
                };
                Ok($Figures { $($key: next()?,)* })
            }

            /// All figures, in the order of the keys.
            pub fn figures(&self) -> impl Iterator<Item = &Figure> {
                [$(&self.$key),*].into_iter()
            }

            pub(crate) fn figures_mut(&mut self) -> impl Iterator<Item = &mut Figure> {
                [$(&mut self.$key),*].into_iter()
            }
        }
    };
}

/// The sections that every card has, as fields of one struct.
macro_rules! sections {
    ($($(#[$doc:meta])* $section:ident: $Figures:ident { $($keys:tt)* })*) => {
        $(section! { $(#[$doc])* $section: $Figures { $($keys)* } })*

        /// The figures that cards of every family have.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct CardFigures {
            $($(#[$doc])* pub $section: $Figures,)*
        }

        /// Specifications of the sections that every card has.
        const COMMON: &[&[Spec]] = &[$($Figures::SPECS),*];

        impl CardFigures {
            pub(crate) fn read<E>(
                read: &mut dyn FnMut(&'static Spec) -> Result<Figure, E>,
            ) -> Result<CardFigures, E> {
                Ok(CardFigures { $($section: $Figures::read(read)?,)* })
            }

            pub(crate) fn figures(&self) -> impl Iterator<Item = &Figure> {
                std::iter::empty()$(.chain(self.$section.figures()))*
            }

            pub(crate) fn figures_mut(&mut self) -> impl Iterator<Item = &mut Figure> {
                std::iter::empty()$(.chain(self.$section.figures_mut()))*
            }
        }
    };
}

// All figures, ordered as they are documented in `cards/README.md`.
sections! {
    /// Sizes and counts of the flash.
    geometry: GeometryFigures {
        /// Bytes that the host sees.
        capacity_bytes: fixed(1 << 20, CAPACITY_MAX, None);
        /// The flash page: the least that is programmed at once.
        page_bytes: fixed(512, 1 << 20, None);
        /// What several planes program together: the least that writes at full rate.
        write_unit_bytes: fixed(512, 4 << 20, None);
        /// Allocation unit: the erase-block group that the card handles as one; any multiple of
        /// the page.
        au_bytes: fixed(*AU_BYTES.start(), *AU_BYTES.end(), None);
        /// AUs that can be written in order in turns without copying.
        open_aus_linear: fixed(1, 1024, None);
        /// AUs that can be written at random in turns without copying.
        open_aus_random: fixed(1, 1024, None);
        /// AUs beyond the capacity.
        spare_aus: fixed(8, 100_000, None);
        /// Bytes that a card which lies about its size has; 0 is all.
        real_bytes: fixed(0, CAPACITY_MAX, Some(0));
        /// What is written beyond `real_bytes` wraps (0) or vanishes (1).
        beyond: fixed(0, 1, Some(0));
    }
    /// Between the host and the card.
    bus: BusFigures {
        /// Time of a command, microseconds.
        command_us: varied(0, MICROS_MAX, None);
        /// Transfer rate, bytes a second.
        rate_bytes_per_s: rate(None);
        /// Bus mode that bounds the rate; 0 is none.
        mode: fixed(0, 6, Some(0));
    }
    /// A card reader, or the host in its place.
    reader: ReaderFigures {
        /// More time for each command, microseconds.
        command_us: varied(0, MICROS_MAX, Some(0));
        /// Transfer rate, bytes a second.
        rate_bytes_per_s: rate(Some(*RATE.end()));
        /// Time of each further command of a request that is cut, microseconds.
        cut_us: varied(0, MICROS_MAX, Some(0));
        /// Longest command in bytes; 0 is any.
        max_bytes: fixed(0, 64 << 20, Some(0));
    }
    /// What reading pages costs, by size, order and place.
    read: ReadFigures {
        /// First page of a request, microseconds.
        first_page_us: varied(0, MICROS_MAX, None);
        /// Each further page, microseconds.
        next_page_us: varied(0, MICROS_MAX, None);
        /// More for a request that crosses an AU, microseconds.
        au_step_us: varied(0, MICROS_MAX, Some(0));
        /// Size of a zone of the mapping in bytes; 0 is none.
        zone_bytes: fixed(0, CAPACITY_MAX, Some(0));
        /// More for a request that crosses a zone, microseconds.
        zone_step_us: varied(0, MICROS_MAX, Some(0));
    }
    /// What programming costs, by size, order and place.
    write: WriteFigures {
        /// Time of each write, microseconds.
        overhead_us: varied(0, MICROS_MAX, None);
        /// Rate of whole units, bytes a second.
        rate_bytes_per_s: rate(None);
        /// 1 joins contiguous writes.
        coalesce: fixed(0, 1, Some(0));
        /// Writes are joined up to this length; 0 is any.
        coalesce_bytes: fixed(0, 64 << 20, Some(0));
        /// Writes are joined after a rest of at most this, microseconds.
        coalesce_us: varied(0, MICROS_MAX, Some(10_000)), assumed(UNKNOWN, 200);
        /// What planes program together; 0 is a page or a map unit.
        program_bytes: fixed(0, 4 << 20, Some(0));
        /// A unit covered by next to nothing, microseconds.
        partial_us: varied(0, MICROS_MAX, Some(0));
        /// A unit covered nearly wholly, microseconds; 0 beside 0 is a whole unit.
        partial_full_us: varied(0, MICROS_MAX, Some(0));
        /// More for such a unit in random order, microseconds.
        fill_us: varied(0, MICROS_MAX, Some(0));
        /// A write that does not continue the last, microseconds.
        jump_us: varied(0, MICROS_MAX, Some(0));
        /// A write in another AU than the last, microseconds.
        switch_us: varied(0, MICROS_MAX, Some(0));
    }
    /// Moves within the card.
    copy: CopyFigures {
        /// Internal move rate, bytes a second.
        rate_bytes_per_s: rate(None);
        /// Erasing an AU, microseconds.
        erase_us: varied(0, MICROS_MAX, None);
    }
    /// Whether the bus passes discards, and what they cost.
    discard: DiscardFigures {
        /// 1 if the bus passes discard.
        supported: fixed(0, 1, None);
        /// Time of each discard, microseconds.
        overhead_us: varied(0, MICROS_MAX, Some(0));
        /// An AU of which a part is discarded, microseconds.
        partial_au_us: varied(0, MICROS_MAX, Some(0));
        /// A whole AU, microseconds.
        au_us: varied(0, MICROS_MAX, Some(0));
        /// Smaller pieces are ignored, bytes.
        granularity_bytes: fixed(512, 64 << 20, Some(512));
    }
    /// Volatile cache.
    cache: CacheFigures {
        /// Size; 0 is none.
        bytes: fixed(0, 1 << 30, Some(0));
        /// A flush, microseconds.
        flush_us: varied(0, MICROS_MAX, Some(0));
        /// A flush of an empty cache, microseconds.
        flush_empty_us: varied(0, MICROS_MAX, Some(0));
        /// A reliable write, microseconds.
        fua_us: varied(0, MICROS_MAX, Some(0));
    }
    /// pSLC cache.
    slc: SlcFigures {
        /// Size; 0 is none.
        bytes: fixed(0, 64 << 30, Some(0));
        /// Longest write that goes there, bytes; 0 is any.
        most_bytes: fixed(0, 64 << 20, Some(0));
        /// Time of each write, microseconds.
        overhead_us: varied(0, MICROS_MAX, Some(0));
        /// Rate into the cache, bytes a second.
        rate_bytes_per_s: rate(Some(20_000_000));
        /// Rate out of it at rest, bytes a second.
        drain_rate_bytes_per_s: rate(Some(10_000_000));
    }
    /// Life of the cells.
    wear: WearFigures {
        /// Index into [`CELL_TYPES`](crate::CELL_TYPES).
        cell: fixed(0, CELLS as u64 - 1, Some(0));
        /// Cycles that 9 of 10 specimens stand; 0 beside 0 is what the cells stand.
        pe_cycles_low: fixed(0, 1_000_000, Some(0));
        /// Cycles that 1 of 10 specimens stands.
        pe_cycles_high: fixed(0, 1_000_000, Some(0));
    }
    /// AUs mapped by page for FAT tables.
    fat: FatFigures {
        /// Their number; 0 is no FAT region.
        aus: fixed(0, 64, Some(0));
        /// The first of them.
        first_au: fixed(0, 63, Some(0));
        /// Time of each write, microseconds.
        overhead_us: varied(0, MICROS_MAX, Some(0));
        /// Rate of writes, bytes a second.
        rate_bytes_per_s: rate(Some(1_000_000));
        /// More for a part of a page, microseconds.
        sub_page_us: varied(0, MICROS_MAX, Some(0));
    }
}

section! {
    /// Figures of the family with a log block for each open AU.
    log_block: LogBlockFigures {
        /// Time of writes in random order over those in order, percent.
        random_percent: varied(*RANDOM_PERCENT.start(), *RANDOM_PERCENT.end(), Some(100));
        /// What a chaotic log takes before it is merged, percent of an AU.
        log_percent: fixed(5, 100 * LOGS_MAX as u64, Some(100));
        /// Rest after which logs are closed, microseconds; 0 is never.
        idle_close_us: varied(0, MICROS_MAX, Some(0));
        /// Gaps up to this are copied forward, bytes.
        gap_bytes: fixed(0, 64 << 20, Some(0));
        /// Writes below this go to an area of their own, bytes; 0 is none.
        small_write_bytes: fixed(0, 1 << 20, Some(0));
        /// 1 if contiguous small writes do not go there.
        small_write_jumps: fixed(0, 1, Some(0));
        /// A write to that area, microseconds.
        small_write_us: varied(0, MICROS_MAX, Some(0));
        /// 1 closes the AU opened first, 0 the one used longest ago.
        first_opened: fixed(0, 1, Some(0));
        /// 1 merges a full chaotic log by the write that fills it, and before a write of the
    /// whole AU.
        merge_at_once: fixed(0, 1, Some(0));
    }
}

section! {
    /// Figures of the page-mapped family.
    page_map: PageMapFigures {
        /// Mapping unit, bytes.
        unit_bytes: fixed(*UNIT_BYTES.start(), *UNIT_BYTES.end(), None);
        /// Reading and merging a unit that is covered in part, microseconds.
        modify_us: varied(0, MICROS_MAX, None);
        /// AUs written in turns at no cost; 0 is any.
        streams: fixed(0, 1024, Some(0));
        /// Free AUs that idle time provides.
        background_aus: fixed(0, 100_000, Some(0));
        /// Writes to others after which an AU loses its stream.
        keep_writes: varied(8, 65_536, Some(64)), assumed(LOGS, 200);
        /// Rest after which all AUs lose their streams, microseconds.
        rest_us: varied(0, MICROS_MAX, Some(200_000)), assumed(LOGS, 200);
        /// Garbage for which a block is collected in the background, percent.
        worth_percent: varied(0, 90, Some(6)), assumed(UNKNOWN, 100);
    }
}

section! {
    /// Figures of the family with update blocks.
    update_block: UpdateBlockFigures {
        /// Writes up to this go to the small-write area, bytes.
        small_bytes: fixed(512, 16 << 10, Some(8192));
        /// Size of that area.
        small_area_bytes: fixed(4096, 64 << 20, Some(1 << 20));
        /// A write of 4 KiB to it, microseconds.
        small_us: varied(0, MICROS_MAX, Some(0));
        /// Copying an AU as a whole, microseconds; 0 goes by the copy rate.
        whole_us: varied(0, MICROS_MAX, Some(0));
        /// Group that is rewritten as one, bytes.
        group_bytes: fixed(4096, 64 << 20, Some(512 << 10));
        /// Rate at which groups are rewritten, bytes a second.
        group_rate_bytes_per_s: rate(None);
        /// Rate at which complete AUs are copied once more; 0 is not at all.
        fold_rate_bytes_per_s: varied(0, *RATE.end(), Some(0));
        /// Pieces that are gathered, bytes.
        gather_bytes: fixed(512, 64 << 20, Some(64 << 10));
        /// Gaps up to this are copied forward, bytes.
        gap_bytes: fixed(0, 64 << 20, Some(0));
        /// Writes to others after which an AU loses its place to one that asks.
        keep_writes: varied(8, 65_536, Some(64)), assumed(LOGS, 200);
        /// Pieces of `gather_bytes` that an AU without an update block takes.
        short_pieces: varied(1, 64, Some(3)), assumed(LOGS, 30);
        /// Share of the small-write area that such AUs may fill, percent.
        shared_percent: varied(1, 100, Some(25)), assumed(LOGS, 30);
        /// Share of an AU that a remembered end may reach, percent.
        tail_percent: varied(1, 100, Some(50)), assumed(LOGS, 30);
        /// AUs without an update block whose end is remembered.
        tails: fixed(1, 256, Some(16)), assumed(UNKNOWN, 0);
    }
}

/// Figures of the card's family of translation layer.
#[allow(
    clippy::large_enum_variant,
    reason = "a profile has one, and the model reads it often"
)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FamilyFigures {
    /// Of a log block for each open AU.
    LogBlock(LogBlockFigures),
    /// An AU is written through one of a few update blocks.
    UpdateBlock(UpdateBlockFigures),
    /// A page can lie in any block; blocks are freed by greedy collection.
    PageMap(PageMapFigures),
}

impl FamilyFigures {
    /// Which family it is.
    pub(crate) fn family(&self) -> Family {
        match self {
            FamilyFigures::LogBlock(_) => Family::LogBlock,
            FamilyFigures::UpdateBlock(_) => Family::UpdateBlock,
            FamilyFigures::PageMap(_) => Family::PageMap,
        }
    }

    pub(crate) fn read<E>(
        family: Family,
        read: &mut dyn FnMut(&'static Spec) -> Result<Figure, E>,
    ) -> Result<FamilyFigures, E> {
        Ok(match family {
            Family::LogBlock => FamilyFigures::LogBlock(LogBlockFigures::read(read)?),
            Family::UpdateBlock => FamilyFigures::UpdateBlock(UpdateBlockFigures::read(read)?),
            Family::PageMap => FamilyFigures::PageMap(PageMapFigures::read(read)?),
        })
    }

    pub(crate) fn figures(&self) -> Box<dyn Iterator<Item = &Figure> + '_> {
        match self {
            FamilyFigures::LogBlock(own) => Box::new(own.figures()),
            FamilyFigures::UpdateBlock(own) => Box::new(own.figures()),
            FamilyFigures::PageMap(own) => Box::new(own.figures()),
        }
    }

    pub(crate) fn figures_mut(&mut self) -> Box<dyn Iterator<Item = &mut Figure> + '_> {
        match self {
            FamilyFigures::LogBlock(own) => Box::new(own.figures_mut()),
            FamilyFigures::UpdateBlock(own) => Box::new(own.figures_mut()),
            FamilyFigures::PageMap(own) => Box::new(own.figures_mut()),
        }
    }
}

/// Specifications of the figures that cards of `family` have, in their order.
pub(crate) fn specs(family: Family) -> impl Iterator<Item = &'static Spec> {
    let own = match family {
        Family::LogBlock => LogBlockFigures::SPECS,
        Family::UpdateBlock => UpdateBlockFigures::SPECS,
        Family::PageMap => PageMapFigures::SPECS,
    };
    COMMON.iter().copied().chain([own]).flatten()
}

/// Specification of the figure `key` of `section`; none where there is no such figure.
pub(crate) fn spec(section: &str, key: &str) -> Option<&'static Spec> {
    let mut all = Family::NAMES
        .into_iter()
        .flat_map(|(_, family)| specs(family));
    all.find(|spec| spec.names() == (section, key))
}

/// Least and largest value of the figure `key` of `section`; none where there is no such figure.
pub fn legal(section: &str, key: &str) -> Option<RangeInclusive<u64>> {
    let spec = spec(section, key)?;
    Some(spec.min..=spec.max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_has_a_section_a_range_and_a_legal_default() {
        for spec in Family::NAMES
            .into_iter()
            .flat_map(|(_, family)| specs(family))
        {
            let (section, key) = spec.names();
            assert!(section.len() > 1);
            assert!(spec.assumed.is_none() || spec.default.is_some());
            assert!(spec.min < spec.max, "{}", spec.path);
            assert!(
                spec.default
                    .is_none_or(|d| (spec.min..=spec.max).contains(&d))
            );
            assert_eq!(
                super::spec(section, key),
                Some(spec),
                "{} is there twice",
                spec.path
            );
        }
    }
}
