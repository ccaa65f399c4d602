//! Cards by name or file, their state, and their place in a trial.

use crate::failure::{Failure, Outcome};
use crate::names::unknown;
use std::path::Path;
use whichfs_card::{Card, Family, Profile, builtin};
use whichfs_fs::Geometry;
use whichfs_units::MIB;

/// The card that is used where none is named.
pub const DEFAULT: &str = "a1-32gb";

/// A profile with its name.
pub struct NamedProfile {
    /// Name.
    pub name: String,
    /// The profile.
    pub profile: Profile,
}

/// The shipped card or the profile file called `name`.
pub fn open(name: &str) -> Outcome<NamedProfile> {
    if let Some((name, text)) = builtin().iter().find(|(known, _)| *known == name) {
        return parse(name, &format!("cards/{name}.toml"), text);
    }
    let path = Path::new(name);
    if path.starts_with("/dev") {
        return Err(Failure::input(format!(
            "{name} is a device: sudo whichfs probe {name} --write --save card.toml makes a \
             profile of it, which is named here; or name a modelled card (whichfs card list)"
        )));
    }
    if name.contains('/') || name.ends_with(".toml") {
        let text = std::fs::read_to_string(path).map_err(|e| {
            Failure::input(format!("card {name}: {e}; name a profile that can be read"))
        })?;
        let stem = path
            .file_stem()
            .and_then(|stem| stem.to_str())
            .unwrap_or(name);
        return parse(stem, name, &text);
    }
    let names: Vec<&str> = builtin().iter().map(|(name, _)| *name).collect();
    Err(Failure::input(unknown("card", name, &names)))
}

fn parse(name: &str, file: &str, text: &str) -> Outcome<NamedProfile> {
    let profile = Profile::parse(file, text).map_err(Failure::input)?;
    Ok(NamedProfile {
        name: name.to_owned(),
        profile,
    })
}

/// What profiles call `family`.
pub fn family_name(family: Family) -> &'static str {
    let known = Family::NAMES.iter().find(|(_, value)| *value == family);
    known.map_or("", |(name, _)| name)
}

/// Where the partition begins: the first AU boundary at or after 4 MiB.
pub fn partition_offset(profile: &Profile) -> u64 {
    (4 * MIB).next_multiple_of(profile.au_bytes())
}

/// What filesystems on a card of `profile` are tuned to: one partition from
/// [`partition_offset`] to the last whole AU.
pub fn geometry(profile: &Profile) -> Geometry {
    let room = profile
        .capacity_bytes()
        .saturating_sub(partition_offset(profile));
    Geometry {
        partition_bytes: room - room % profile.au_bytes(),
        page_bytes: profile.page_bytes(),
        write_unit_bytes: profile.write_unit_bytes(),
        au_bytes: profile.au_bytes(),
        discard: profile.discard_supported(),
        flush: profile.has_cache(),
    }
}

/// State in which a card begins a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum CardState {
    /// All of it written once, then 5 % random overwrites.
    Used,
    /// Never written.
    Fresh,
}

impl CardState {
    /// `used` or `fresh`.
    pub fn name(self) -> &'static str {
        match self {
            CardState::Used => "used",
            CardState::Fresh => "fresh",
        }
    }
}

/// A card of `profile` in `state`. Making one used takes about as long as reading a stored
/// snapshot would (0.3 s, 60 MiB), so callers keep it and clone it (copy on write).
pub fn in_state(profile: &Profile, state: CardState, seed: u64) -> Card {
    match state {
        CardState::Fresh => Card::fresh(profile),
        CardState::Used => Card::used(profile, seed),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_shipped_card_opens_and_its_partition_is_aligned() {
        for (name, _) in builtin() {
            let card = open(name).unwrap();
            let offset = partition_offset(&card.profile);
            assert!(
                offset >= 4 * MIB && offset.is_multiple_of(card.profile.au_bytes()),
                "{name}"
            );
        }
    }

    #[test]
    fn unknown_cards_and_devices_are_told_apart() {
        assert!(open("a1-32g").err().unwrap().message.contains("a1-32gb"));
        assert!(
            open("/dev/sdz")
                .err()
                .unwrap()
                .message
                .contains("probe /dev/sdz --write --save")
        );
        assert!(
            open("./none.toml")
                .err()
                .unwrap()
                .message
                .contains("No such file")
        );
    }
}
