//! Where a trial's filesystem lies on its card, and what it is tuned to.

use crate::cards::{self, partition_offset};
use crate::error::{Error, Outcome};
use whichfs_card::Profile;
use whichfs_fs::{Candidate, Geometry, Purpose, Recipe, Unfit};
use whichfs_study::{Tuning, Variant};
use whichfs_units::Bytes;

/// A window on a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardWindow {
    /// First byte on the card.
    pub offset: u64,
    /// Size of the partition in bytes.
    pub bytes: u64,
}

impl CardWindow {
    /// All of a card of `profile`: from the first allocation unit at or after 4 MiB to the last
    /// whole one.
    pub fn whole(profile: &Profile) -> CardWindow {
        CardWindow {
            offset: partition_offset(profile),
            bytes: cards::geometry(profile).partition_bytes,
        }
    }

    /// The same as `variant` lays it, `bytes` of it if that is said.
    ///
    /// # Errors
    /// If the card has no room for it.
    pub fn of(profile: &Profile, variant: &Variant, bytes: Option<u64>) -> Outcome<CardWindow> {
        let whole = CardWindow::whole(profile);
        let offset = variant
            .offset
            .map(|offset| offset.bytes(profile.au_bytes()));
        let partition = CardWindow {
            offset: offset.unwrap_or(whole.offset),
            bytes: bytes.unwrap_or(whole.bytes),
        };
        let room = profile.capacity_bytes().saturating_sub(partition.offset);
        if partition.bytes > room {
            return Err(Error::input(format!(
                "a partition of {} at {} does not fit the card, which has {}: take a smaller \
                 one, or a larger card",
                Bytes(partition.bytes),
                Bytes(partition.offset),
                Bytes(profile.capacity_bytes())
            )));
        }
        Ok(partition)
    }
}

/// The commands for `candidate` in a partition of so many bytes on a card of `profile`, tuned as
/// `tuning` says. Whether a partition is too small is left to the filesystem's tools if `any_size`.
///
/// # Errors
/// The other card cannot be opened; the filesystem does not fit.
pub fn recipe(
    candidate: &Candidate,
    profile: &Profile,
    bytes: u64,
    tuning: &Tuning,
    seed: u64,
    any_size: bool,
) -> Outcome<Result<Recipe, Unfit>> {
    let own = Geometry {
        partition_bytes: bytes,
        ..cards::geometry(profile)
    };
    recipe_on(candidate, own, tuning, seed, any_size)
}

/// The same where the geometry of the card is `own`.
///
/// # Errors
/// As [`recipe`].
pub fn recipe_on(
    candidate: &Candidate,
    own: Geometry,
    tuning: &Tuning,
    seed: u64,
    any_size: bool,
) -> Outcome<Result<Recipe, Unfit>> {
    let geometry = match tuning {
        Tuning::ThisCard | Tuning::Nothing => own,
        Tuning::Card(name) => tuned_for(own, &cards::geometry(&cards::open(name)?.profile)),
    };
    let purpose = Purpose::Lab { seed };
    let recipe = match any_size {
        true => candidate.recipe_of_any_size(&geometry, purpose),
        false => candidate.recipe(&geometry, purpose),
    };
    Ok(recipe.map(|recipe| match tuning {
        Tuning::Nothing => recipe.untuned(),
        _ => recipe,
    }))
}

/// The geometry that somebody takes who tunes for `other`: what the device says itself stays.
fn tuned_for(own: Geometry, other: &Geometry) -> Geometry {
    Geometry {
        page_bytes: other.page_bytes,
        write_unit_bytes: other.write_unit_bytes,
        au_bytes: other.au_bytes,
        ..own
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use whichfs_study::Offset;

    #[test]
    fn a_partition_lies_where_its_variant_says() {
        let card = cards::open(cards::DEFAULT).unwrap().profile;
        let whole = CardWindow::whole(&card);
        let at = |offset, bytes| {
            let variant = Variant {
                offset: Some(offset),
                ..Variant::default()
            };
            CardWindow::of(&card, &variant, bytes)
        };
        assert_eq!(
            CardWindow::of(&card, &Variant::default(), None).unwrap(),
            whole
        );
        let half = Offset::Au {
            numerator: 1,
            denominator: 2,
        };
        let moved = at(half, None).unwrap();
        assert_eq!(
            (moved.offset, moved.bytes),
            (card.au_bytes() / 2, whole.bytes)
        );
        assert_eq!(at(Offset::Bytes(512), Some(4096)).unwrap().bytes, 4096);
        let error = at(Offset::Bytes(512), Some(card.capacity_bytes())).unwrap_err();
        assert!(error.message.contains("does not fit the card"), "{error}");
    }

    #[test]
    fn tuned_for_another_card_keeps_what_the_device_says() {
        let own = cards::geometry(&cards::open("emmc-8gb").unwrap().profile);
        let other = cards::geometry(&cards::open("kodak-ultra-performance-64gb").unwrap().profile);
        let tuned = tuned_for(own, &other);
        assert_eq!(tuned.au_bytes, other.au_bytes);
        assert_ne!(own.au_bytes, other.au_bytes);
        assert_eq!((tuned.discard, tuned.flush), (own.discard, own.flush));
        assert_eq!(tuned.partition_bytes, own.partition_bytes);
    }

    #[test]
    fn untuned_and_tuned_for_another_are_other_commands() {
        let card = cards::open("kodak-ultra-performance-64gb").unwrap().profile;
        let ext4 = whichfs_fs::find("ext4").unwrap();
        let of = |tuning: &Tuning| {
            let made = recipe(ext4, &card, 1 << 30, tuning, 1, false)
                .unwrap()
                .unwrap();
            made.mkfs[0].join(" ")
        };
        let own = of(&Tuning::ThisCard);
        assert!(own.contains("stripe_width=2048"), "{own}");
        assert!(!of(&Tuning::Nothing).contains("stripe_width"));
        let other = of(&Tuning::Card("class10-16gb".into()));
        assert!(other.contains("stripe_width=1024"), "{other}");
        let tiny = |any| recipe(ext4, &card, 1 << 20, &Tuning::ThisCard, 1, any).unwrap();
        assert!(tiny(false).is_err() && tiny(true).is_ok());
        assert!(recipe(ext4, &card, 1, &Tuning::Card("no".into()), 1, true).is_err());
    }
}
