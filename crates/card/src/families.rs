//! The families of translation layers. Each file of the directory `families` is one
//! (`docs/adding-a-family.md`), and the build script lists the files; from the list come the types
//! here. They are enums and no trait objects, because the model calls them for every request.

use crate::figures::{CardFigures, Figure, Misfit, Section, Spec};
use crate::fit_hints::FitHints;
use crate::flash::{OpenAus, Order, Violation};
use crate::stats::Stats;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// A family of translation layers, as the state of one card: its mapping, with what moves it.
///
/// A family answers what a write, a discard or a rest costs; bus, read timing, caches and counters
/// of the host's side are not its business. Addresses are within the flash and outside of the FAT
/// region. No decision depends on a time or rate of the profile, so that a fit may take costs to be
/// linear in them.
pub(crate) trait TranslationLayer: Sized {
    /// The section of a profile that only this family has.
    type Figures: Section;
    /// What others are told of the family.
    const FACTS: FamilyFacts;

    /// Checks how the figures of a profile fit together, beyond the range of each.
    fn check(_card: &CardFigures, _own: &Self::Figures) -> Result<(), Misfit> {
        Ok(())
    }

    /// Gives a card whose capacity became `bytes` of `of_bytes` what goes with the capacity; the
    /// error says in words which figure cannot be so.
    fn resize(
        _card: &mut CardFigures,
        _own: &mut Self::Figures,
        [_bytes, _of_bytes]: [u64; 2],
    ) -> Result<(), String> {
        Ok(())
    }

    /// Writes below this many bytes go to an area of their own; zero if there is none.
    fn small_write_bytes(_own: &Self::Figures) -> u64 {
        0
    }

    /// The least that is programmed at once, in bytes.
    #[cfg(test)]
    fn least_programmed(card: &CardFigures, _own: &Self::Figures) -> u64 {
        card.page_bytes()
    }

    /// The mapping of a card on which nothing was ever written.
    fn new(card: &CardFigures, own: &Self::Figures) -> Self;

    /// Writes `bytes` at `offset`; returns the nanoseconds that programming, copying and erasing
    /// take.
    fn write(&mut self, offset: u64, bytes: u64, order: Order, stats: &mut Stats) -> u64;

    /// Forgets what it wholly holds of the range; returns nanoseconds.
    fn discard(&mut self, offset: u64, bytes: u64, stats: &mut Stats) -> u64;

    /// Works in `ns` of rest.
    fn idle(&mut self, _ns: u64, _stats: &mut Stats) {}

    /// AUs that are open, and how many can be; none if there is no such limit.
    fn open_aus(&self) -> Option<(usize, usize)>;

    /// How often each physical block was erased.
    fn erase_counts(&self) -> Vec<u32>;

    /// Checks every invariant of the mapping, in time linear in the card's size.
    fn verify(&self) -> Result<(), Violation>;
}

/// What a family tells of itself.
#[derive(Debug)]
pub(crate) struct FamilyFacts {
    /// Place in lists, which decides what seeds draw: it never changes, and a new family's is the
    /// next.
    pub place: u8,
    /// What a card of it does, as the end of a sentence: "has log blocks".
    pub words: &'static str,
    /// Whether the number of AUs that can be written in turns is limited, by
    /// `geometry.open_aus_linear`.
    pub limits_open_aus: bool,
    /// What a fit of measured curves is told.
    pub fit: FitHints,
}

/// Makes the types from the list of families: file, type of the mapping, name in profiles.
macro_rules! families {
    ($($file:ident $Name:ident $name:literal,)*) => {
        /// The family of translation layer (`flash.md` §2.2).
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(rename_all = "kebab-case")]
        #[repr(u8)]
        pub enum Family {
            $(
                #[doc = concat!("`", $name, "`; the file of the family describes it.")]
                $Name = <$file::$Name as TranslationLayer>::FACTS.place,
            )*
        }

        impl Family {
            /// All families with their names in profiles.
            pub const NAMES: [(&'static str, Family); [$($name),*].len()] =
                in_order([$(($name, Family::$Name)),*]);

            const fn facts(self) -> &'static FamilyFacts {
                match self {
                    $(Family::$Name => &<$file::$Name as TranslationLayer>::FACTS,)*
                }
            }

            /// Specifications of the figures that only its cards have, in their order.
            fn own_specs(self) -> &'static [Spec] {
                match self {
                    $(Family::$Name => <$file::$Name as TranslationLayer>::Figures::SPECS,)*
                }
            }
        }

        /// Figures of the card's family of translation layer.
        #[allow(
            clippy::large_enum_variant,
            reason = "a profile has one, and the model reads it often"
        )]
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub(crate) enum FamilyFigures {
            $($Name(<$file::$Name as TranslationLayer>::Figures),)*
        }

        impl FamilyFigures {
            /// Which family it is.
            pub fn family(&self) -> Family {
                match self {
                    $(FamilyFigures::$Name(_) => Family::$Name,)*
                }
            }

            /// The figures of `family`, each from `read`.
            pub fn read<E>(
                family: Family,
                read: &mut dyn FnMut(&'static Spec) -> Result<Figure, E>,
            ) -> Result<FamilyFigures, E> {
                Ok(match family {
                    $(Family::$Name => FamilyFigures::$Name(Section::read(read)?),)*
                })
            }

            /// All figures, in the order of the keys.
            pub fn figures(&self) -> Box<dyn Iterator<Item = &Figure> + '_> {
                match self {
                    $(FamilyFigures::$Name(own) => Box::new(own.figures()),)*
                }
            }

            /// As [`FamilyFigures::figures`], to change them.
            pub fn figures_mut(&mut self) -> Box<dyn Iterator<Item = &mut Figure> + '_> {
                match self {
                    $(FamilyFigures::$Name(own) => Box::new(own.figures_mut()),)*
                }
            }

            /// As [`TranslationLayer::check`].
            pub fn check(&self, card: &CardFigures) -> Result<(), Misfit> {
                match self {
                    $(FamilyFigures::$Name(own) => $file::$Name::check(card, own),)*
                }
            }

            /// As [`TranslationLayer::resize`].
            pub fn resize(&mut self, card: &mut CardFigures, part: [u64; 2]) -> Result<(), String> {
                match self {
                    $(FamilyFigures::$Name(own) => $file::$Name::resize(card, own, part),)*
                }
            }

            /// As [`TranslationLayer::small_write_bytes`].
            pub fn small_write_bytes(&self) -> u64 {
                match self {
                    $(FamilyFigures::$Name(own) => $file::$Name::small_write_bytes(own),)*
                }
            }

            /// As [`TranslationLayer::least_programmed`].
            #[cfg(test)]
            pub fn least_programmed(&self, card: &CardFigures) -> u64 {
                match self {
                    $(FamilyFigures::$Name(own) => $file::$Name::least_programmed(card, own),)*
                }
            }
        }

        /// The mapping of a card of any family.
        #[derive(Clone, Debug, PartialEq)]
        pub(crate) enum Mapping {
            $($Name($file::$Name),)*
        }

        impl Mapping {
            /// As [`TranslationLayer::new`].
            pub fn new(card: &CardFigures, own: &FamilyFigures) -> Mapping {
                match own {
                    $(FamilyFigures::$Name(own) => Mapping::$Name($file::$Name::new(card, own)),)*
                }
            }

            /// As [`TranslationLayer::write`].
            #[inline]
            pub fn write(
                &mut self,
                offset: u64,
                bytes: u64,
                order: Order,
                stats: &mut Stats,
            ) -> u64 {
                match self {
                    $(Mapping::$Name(map) => map.write(offset, bytes, order, stats),)*
                }
            }

            /// As [`TranslationLayer::discard`].
            pub fn discard(&mut self, offset: u64, bytes: u64, stats: &mut Stats) -> u64 {
                match self {
                    $(Mapping::$Name(map) => map.discard(offset, bytes, stats),)*
                }
            }

            /// As [`TranslationLayer::idle`].
            #[inline]
            pub fn idle(&mut self, ns: u64, stats: &mut Stats) {
                match self {
                    $(Mapping::$Name(map) => map.idle(ns, stats),)*
                }
            }

            /// As [`TranslationLayer::open_aus`].
            pub fn open_aus(&self) -> Option<OpenAus> {
                let (now, limit) = match self {
                    $(Mapping::$Name(map) => map.open_aus()?,)*
                };
                Some(OpenAus {
                    now: now as u32,
                    limit: limit as u32,
                })
            }

            /// As [`TranslationLayer::erase_counts`].
            pub fn erase_counts(&self) -> Vec<u32> {
                match self {
                    $(Mapping::$Name(map) => map.erase_counts(),)*
                }
            }

            /// As [`TranslationLayer::verify`].
            pub fn verify(&self) -> Result<(), Violation> {
                match self {
                    $(Mapping::$Name(map) => map.verify(),)*
                }
            }
        }
    };
}

// `mod FILE;` of each family, and `families! { FILE TYPE "NAME", … }`.
include!(concat!(env!("OUT_DIR"), "/families.rs"));

impl Family {
    /// What profiles call it.
    pub fn name(self) -> &'static str {
        let known = Family::NAMES.iter().find(|(_, value)| *value == self);
        known.map_or("", |(name, _)| name)
    }

    /// What a card of it does, as the end of a sentence: "has log blocks".
    pub fn words(self) -> &'static str {
        self.facts().words
    }

    /// Whether the number of AUs that can be written in turns is limited, by
    /// `geometry.open_aus_linear`.
    pub fn limits_open_aus(self) -> bool {
        self.facts().limits_open_aus
    }

    /// What a fit of measured curves is told.
    pub fn fit(self) -> &'static FitHints {
        &self.facts().fit
    }
}

/// `families` by their places.
const fn in_order<const N: usize>(
    mut families: [(&'static str, Family); N],
) -> [(&'static str, Family); N] {
    let mut sorted = 1;
    while sorted < N {
        let mut at = sorted;
        while at > 0 && families[at].1 as u8 <= families[at - 1].1 as u8 {
            (families[at - 1], families[at]) = (families[at], families[at - 1]);
            at -= 1;
        }
        sorted += 1;
    }
    families
}

/// Specifications of the figures that cards of `family` have, in their order.
pub(crate) fn specs(family: Family) -> impl Iterator<Item = &'static Spec> {
    let own = family.own_specs();
    CardFigures::SPECS.iter().copied().chain([own]).flatten()
}

/// Specification of the figure `key` of `section`; none where there is no such figure.
fn spec(section: &str, key: &str) -> Option<&'static Spec> {
    let mut all = Family::NAMES
        .into_iter()
        .flat_map(|(_, family)| specs(family));
    all.find(|spec| spec.names() == (section, key))
}

/// Least and largest value of the figure `key` of `section`; none where there is no such figure.
pub fn legal_range(section: &str, key: &str) -> Option<RangeInclusive<u64>> {
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

    /// Draws of seeds go by the order, and a profile is read and written by the name.
    #[test]
    fn the_order_never_changes_and_names_are_those_of_documents() {
        let names = Family::NAMES.map(|(name, _)| name);
        assert!(names.starts_with(&["log-block", "update-block", "page-map"]));
        assert!(Family::NAMES.is_sorted_by_key(|(_, family)| *family));
        for ((name, family), place) in Family::NAMES.into_iter().zip(0..) {
            assert_eq!(toml::Value::try_from(family), Ok(name.into()));
            assert_eq!(
                (family.name(), family as u8),
                (name, place),
                "places have no gap"
            );
        }
    }

    #[test]
    fn hints_of_a_fit_name_figures_of_the_family_and_legal_values() {
        for (name, family) in Family::NAMES {
            let hints = family.fit();
            let find = |path: &str| specs(family).find(|spec| spec.path == path);
            let check = |path: &str, values: &[u64]| {
                let spec = find(path).unwrap_or_else(|| panic!("{name} has no {path}"));
                let legal = |value: &u64| (spec.min..=spec.max).contains(value);
                assert!(values.iter().all(legal), "{path}: {values:?}");
            };
            for (path, value) in hints.start {
                check(path, &[*value]);
            }
            for figure in hints.searched {
                let ways = figure.ways.iter().chain(figure.of_few_sizes);
                ways.for_each(|way| check(figure.path, way));
                let own =
                    figure.ways.is_empty() || hints.start.iter().any(|of| of.0 == figure.path);
                assert!(own, "{}: the search has no start", figure.path);
                check(figure.path, &[]);
            }
            for (path, values) in hints.restarts {
                check(path, values);
            }
            let conditions = hints.searched.iter().map(|figure| &figure.only);
            let conditions = conditions.chain(hints.fitted.iter().map(|figure| &figure.only));
            let paths = conditions.flatten().map(|only| only.path);
            let paths = paths.chain(hints.fitted.iter().map(|figure| figure.path));
            let paths = paths.chain(hints.unusual.iter().map(|(path, ..)| *path));
            for path in paths.chain(hints.steps_at) {
                check(path, &[]);
            }
        }
    }
}
