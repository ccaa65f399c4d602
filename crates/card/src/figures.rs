//! The figures a profile may state: names, legal ranges, meaning. From the list here, of those that
//! every card has, and from the section of each family come the types of
//! [`Profile`](crate::Profile), its reader, the drawing of uncertain figures and messages.

use crate::cells::CELLS;
use crate::limits::{AU_BYTES, CAPACITY_MAX, MICROS_MAX, RATE};
use std::ops::Range;

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
    pub(crate) const fn assumed(mut self, source: &'static str, percent: u64) -> Spec {
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

pub(crate) const fn fixed(path: &'static str, min: u64, max: u64, default: Option<u64>) -> Spec {
    of_kind(Kind::Fixed, path, [min, max], default)
}

pub(crate) const fn varied(path: &'static str, min: u64, max: u64, default: Option<u64>) -> Spec {
    of_kind(Kind::Varied, path, [min, max], default)
}

pub(crate) const fn rate(path: &'static str, default: Option<u64>) -> Spec {
    varied(path, *RATE.start(), *RATE.end(), default)
}

/// Source of what the published logs of flashbench were fitted with.
pub(crate) const LOGS: &str = "assumed: fits the logs of flashbench";
/// Source of what no log tells.
pub(crate) const UNKNOWN: &str = "assumed: no measurement";

/// The path of a figure that does not fit to others, and what is wrong with it.
pub(crate) type Misfit = (&'static str, String);

/// `value` times `part / whole`, rounded up.
pub(crate) fn share(value: u64, part: u64, whole: u64) -> u64 {
    let scaled = (u128::from(value) * u128::from(part)).div_ceil(u128::from(whole));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

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

    /// Checks that the value is a multiple of `of`, which is called `what`.
    pub(crate) fn check_multiple(&self, of: u64, what: &str) -> Result<(), Misfit> {
        let value = self.value;
        if value.is_multiple_of(of) {
            return Ok(());
        }
        let found = format!("{value}, which is no multiple of {what} ({of})");
        Err((self.path, found))
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

/// What a section of a profile is to those that read and change all its figures.
pub(crate) trait Section: Sized {
    /// The specification of each figure, in the order of the keys.
    const SPECS: &'static [Spec];

    /// The section, with each figure from `read`.
    fn read<E>(read: &mut dyn FnMut(&'static Spec) -> Result<Figure, E>) -> Result<Self, E>;

    /// All figures, in the order of the keys.
    fn figures(&self) -> impl Iterator<Item = &Figure>;

    /// As [`Section::figures`], to change them.
    fn figures_mut(&mut self) -> impl Iterator<Item = &mut Figure>;
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
            $($(#[$key_doc])* pub $key: $crate::figures::Figure,)*
        }

        impl $crate::figures::Section for $Figures {
            const SPECS: &'static [$crate::figures::Spec] = &[$(
                $crate::figures::$make(
                    concat!(stringify!($section), ".", stringify!($key)),
                    $($range),*
                )$(.assumed($source, $percent))?,
            )*];

            fn read<E>(
                read: &mut dyn FnMut(
                    &'static $crate::figures::Spec,
                ) -> Result<$crate::figures::Figure, E>,
            ) -> Result<$Figures, E> {
                let mut specs = Self::SPECS.iter();
                let mut next = || match specs.next() {
                    Some(spec) => read(spec),
                    None => unreachable!("a specification for each key"),
                };
                Ok($Figures { $($key: next()?,)* })
            }

            fn figures(&self) -> impl Iterator<Item = &$crate::figures::Figure> {
                [$(&self.$key),*].into_iter()
            }

            fn figures_mut(&mut self) -> impl Iterator<Item = &mut $crate::figures::Figure> {
                [$(&mut self.$key),*].into_iter()
            }
        }
    };
}
pub(crate) use section;

/// The sections that every card has, as fields of one struct.
macro_rules! sections {
    ($($(#[$doc:meta])* $section:ident: $Figures:ident { $($keys:tt)* })*) => {
        $(section! { $(#[$doc])* $section: $Figures { $($keys)* } })*

        /// The figures that cards of every family have.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct CardFigures {
            $($(#[$doc])* pub $section: $Figures,)*
        }

        impl CardFigures {
            /// Specifications of the sections that every card has.
            pub(crate) const SPECS: &[&[Spec]] = &[$($Figures::SPECS),*];

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

impl CardFigures {
    /// Bytes that the host sees.
    pub fn capacity_bytes(&self) -> u64 {
        self.geometry.capacity_bytes.value
    }

    /// Bytes that are really there: less than the capacity on a card that lies about it.
    pub fn flash_bytes(&self) -> u64 {
        match self.geometry.real_bytes.value {
            0 => self.capacity_bytes(),
            real => real,
        }
    }

    /// The flash page: the least that is programmed at once.
    pub fn page_bytes(&self) -> u64 {
        self.geometry.page_bytes.value
    }

    /// What several planes program together: the least that writes at full rate.
    pub fn write_unit_bytes(&self) -> u64 {
        self.geometry.write_unit_bytes.value
    }

    /// Allocation unit: the erase-block group that the card handles as one.
    pub fn au_bytes(&self) -> u64 {
        self.geometry.au_bytes.value
    }

    /// AUs that can be written sequentially in turns without copying.
    pub fn open_aus_linear(&self) -> u64 {
        self.geometry.open_aus_linear.value
    }

    /// AUs that can be written in random order in turns without copying.
    pub fn open_aus_random(&self) -> u64 {
        self.geometry.open_aus_random.value
    }

    /// AUs that are mapped by page for FAT tables, from AU `fat.first_au` on.
    pub fn fat_aus(&self) -> u64 {
        self.fat.aus.value
    }

    /// Bytes of the card that are the FAT region; empty if it has none.
    pub fn fat_range(&self) -> Range<u64> {
        let start = self.fat.first_au.value * self.au_bytes();
        start..start + self.fat_aus() * self.au_bytes()
    }

    /// Physical blocks that a family has: the AUs behind the FAT region and the spare ones.
    pub(crate) fn blocks(&self) -> u32 {
        let aus = self.flash_bytes().div_ceil(self.au_bytes());
        (aus - self.fat_aus() + self.geometry.spare_aus.value) as u32
    }

    /// Whether the spare AUs are the `needed` ones.
    pub(crate) fn check_spare(&self, needed: u64) -> Result<(), Misfit> {
        if self.geometry.spare_aus.value >= needed {
            return Ok(());
        }
        let found = format!("fewer than the {needed} that open AUs and merging take");
        Err((self.geometry.spare_aus.path, found))
    }
}
