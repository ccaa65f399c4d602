//! The same card in another size: for trying a large card in little room.

use super::Profile;
use crate::figures::{CardFigures, Figure, share};

/// Why a card cannot have that capacity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a card of {asked} bytes: {why}")]
pub struct CapacityError {
    /// Bytes asked for.
    pub asked: u64,
    /// What is wrong with it, and what is legal.
    pub why: String,
}

impl Profile {
    /// The same card with the value that `value` gives to each figure.
    ///
    /// # Errors
    /// A value that is not legal, or figures that do not fit together, in words.
    pub fn with_values(&self, mut value: impl FnMut(&Figure) -> u64) -> Result<Profile, String> {
        let mut other = self.clone();
        for figure in other.figures_mut() {
            let value = value(figure);
            figure.set(value)?;
        }
        match other.check_shape() {
            Ok(()) => Ok(other),
            Err((path, found)) => Err(format!("{path} is {found}")),
        }
    }

    /// The same card with those figures that `of` names by their paths as in a profile that does
    /// not state them; figures that every profile states stay.
    ///
    /// # Errors
    /// The other figures need one of these, in words.
    pub fn with_defaults(&self, of: impl Fn(&str) -> bool) -> Result<Profile, String> {
        self.with_values(|figure| match figure.spec.default {
            Some(default) if of(figure.path) => default,
            _ => figure.value,
        })
    }

    /// The same card with `bytes` of capacity, a multiple of the 512-byte sector.
    ///
    /// The pSLC cache keeps its ratio to the capacity. The family decides about the spare blocks
    /// (`TranslationLayer::resize`): their ratio stays where write amplification depends on it,
    /// their number where limits of open AUs do. All times and rates stay.
    ///
    /// # Errors
    /// Where such a card cannot be: no whole sectors, too few AUs, beyond the largest card.
    pub fn with_capacity(&self, bytes: u64) -> Result<Profile, CapacityError> {
        let refuse = |why: String| CapacityError { asked: bytes, why };
        let mut resized = self.clone();
        let CardFigures { geometry, slc, .. } = &mut resized.common;
        geometry.capacity_bytes.set(bytes).map_err(refuse)?;
        // A card that lies has what it has, up to where it tells the truth.
        let real = geometry.real_bytes.value;
        let real = if real < bytes { real } else { 0 };
        geometry.real_bytes.set(real).map_err(refuse)?;
        let of_slc = share(slc.bytes.value, bytes, self.capacity_bytes());
        slc.bytes.set(of_slc).map_err(refuse)?;
        let Profile { common, own, .. } = &mut resized;
        own.resize(common, [bytes, self.capacity_bytes()])
            .map_err(refuse)?;
        match resized.check_shape() {
            Ok(()) => Ok(resized),
            Err((path, found)) => Err(refuse(format!("{path} is {found}"))),
        }
    }

    /// Bytes of flash beside the capacity that writes fill before blocks must be made free again:
    /// the spare blocks of a page map; elsewhere the logs of the AUs that can be open.
    pub fn spare_bytes(&self) -> u64 {
        let aus = match self.family().limits_open_aus() {
            true => self.open_aus_linear(),
            false => self.common.geometry.spare_aus.value,
        };
        aus * self.au_bytes()
    }

    /// The same card cut down to `bytes`, on which as much of the spare room can be used in
    /// proportion: the block into which a page map collects is one as before, which on a small card
    /// is a good part of its spare blocks.
    ///
    /// # Errors
    /// As [`Profile::with_capacity`].
    pub fn cut_down(&self, bytes: u64) -> Result<Profile, CapacityError> {
        /// The block that a collection copies into: with it a small card collects as theory and the
        /// whole card do (see the test).
        const OPEN: u64 = 1;
        let small = self.with_capacity(bytes)?;
        if self.family().limits_open_aus() {
            return Ok(small);
        }
        let spare = self.common.geometry.spare_aus.value.saturating_sub(OPEN);
        let spare = share(spare, bytes, self.capacity_bytes()) + OPEN;
        let value = |figure: &Figure| match figure.path {
            "geometry.spare_aus" => spare,
            _ => figure.value,
        };
        small
            .with_values(value)
            .map_err(|why| CapacityError { asked: bytes, why })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::{Card, Profile, Request, builtin};
    use whichfs_units::{MIB, Nanos, Rng};

    fn profile(name: &str) -> Profile {
        let (_, text) = builtin().iter().find(|(known, _)| *known == name).unwrap();
        Profile::parse(name, text).unwrap()
    }

    #[test]
    fn every_shipped_card_can_be_cut_down_and_its_end_moves() {
        for (name, _) in builtin() {
            let whole = profile(name);
            let small = whole.with_capacity(256 * MIB).unwrap();
            assert_eq!(small.capacity_bytes(), 256 * MIB, "{name}");
            let mut card = Card::used(&small, 1);
            card.verify().unwrap();
            let beyond = Request::write(256 * MIB, 512);
            assert_ne!(
                card.submit(Nanos::ZERO, &beyond).status,
                crate::CardStatus::Ok
            );
        }
    }

    /// Write amplification of random writes of 4 KiB over the first `live` of the card, all of
    /// which holds data and the rest none, once it does not change any more.
    fn amplification(profile: &Profile, live: f64) -> f64 {
        let mut card = Card::used(profile, 1);
        let bytes = profile.capacity_bytes();
        card.submit(Nanos::ZERO, &Request::discard(0, bytes));
        let units = (bytes as f64 * live) as u64 / 4096;
        for unit in 0..units {
            card.submit(card.busy_until(), &Request::write(unit * 4096, 4096));
        }
        let mut rng = Rng::named(1, "overwrites");
        let mut round = |card: &mut Card| {
            let before = card.stats().programmed_bytes;
            for _ in 0..3 * units {
                let at = rng.below(units) * 4096;
                card.submit(card.busy_until(), &Request::write(at, 4096));
            }
            (card.stats().programmed_bytes - before) as f64 / (3 * units * 4096) as f64
        };
        round(&mut card);
        round(&mut card)
    }

    /// What greedy collection costs where writes are random over `share` of the flash (X. Luojie
    /// and B. Kurkoski, An improved analytic expression for write amplification in NAND flash, ICNC
    /// 2012): a / (a + W(-a e^-a)), with a = 1 / share and W of Lambert.
    fn greedy(share: f64) -> f64 {
        let a = 1.0 / share;
        let x = -a * (-a).exp();
        // The branch from 0 to -1, by iteration of w = x e^-w.
        let w = (0..2_000).fold(0.0_f64, |w, _| x * (-w).exp());
        a / (a + w)
    }

    #[test]
    fn a_card_cut_down_amplifies_as_theory_and_the_large_card_do() {
        let whole = profile("a1-32gb");
        let share_of = |profile: &Profile, live: f64| {
            let spare = profile.spare_bytes() - 4 * profile.au_bytes();
            profile.capacity_bytes() as f64 * live / (profile.capacity_bytes() + spare) as f64
        };
        let small = whole.cut_down(512 * MIB).unwrap();
        let large = whole.cut_down(2048 * MIB).unwrap();
        for live in [0.8, 0.9, 1.0] {
            let expected = greedy(share_of(&whole, live));
            let found = amplification(&small, live);
            assert!((found / expected - 1.0).abs() < 0.03, "{found} {expected}");
            let found = found / amplification(&large, live);
            assert!((found - 1.0).abs() < 0.03, "{live}: {found}");
        }
        // A fault on purpose: a card with ten times the spare area.
        let room = whole.with_values(|figure| match figure.path {
            "geometry.spare_aus" => 10 * figure.value,
            _ => figure.value,
        });
        let room = amplification(&room.unwrap().cut_down(512 * MIB).unwrap(), 0.9);
        assert!(room < 0.5 * greedy(share_of(&whole, 0.9)), "{room}");
    }

    #[test]
    fn a_page_mapped_card_keeps_its_over_provisioning() {
        let whole = profile("a1-32gb");
        let small = whole.with_capacity(whole.capacity_bytes() / 8).unwrap();
        assert_eq!(
            small.geometry.spare_aus.value,
            whole.geometry.spare_aus.value.div_ceil(8)
        );
        let logs = profile("class4-4gb");
        assert_eq!(
            logs.with_capacity(512 * MIB)
                .unwrap()
                .geometry
                .spare_aus
                .value,
            logs.geometry.spare_aus.value
        );
    }

    #[test]
    fn what_is_kept_free_in_the_background_stays_a_part_of_the_spare_blocks() {
        let whole = profile("transcend-usd-8gb");
        let background_aus = |of: &Profile| {
            let mut figures = of.figures();
            figures
                .find(|figure| figure.path == "page_map.background_aus")
                .unwrap()
                .value
        };
        assert_eq!(background_aus(&whole), 16);
        for (mib, background) in [(64, 1), (1024, 3), (3848, 9)] {
            let small = whole.with_capacity(mib * MIB).unwrap();
            let found = background_aus(&small);
            assert_eq!(found, background, "{mib} MiB");
            assert!(found + 4 <= small.geometry.spare_aus.value);
        }
    }

    #[test]
    fn the_same_capacity_is_the_same_card() {
        let whole = profile("emmc-8gb");
        assert_eq!(whole.with_capacity(whole.capacity_bytes()).unwrap(), whole);
    }

    #[test]
    fn a_card_that_lies_is_honest_below_what_it_has() {
        let (_, text) = builtin()[0];
        let figure = "real_bytes = { value = 268435456, source = \"planted\" }";
        let lie = text.replacen("[geometry]", &format!("[geometry]\n{figure}"), 1);
        let lying = Profile::parse("lying", &lie).unwrap();
        for (mib, real) in [(512, 256), (256, 256), (128, 128)] {
            let layout = lying.with_capacity(mib * MIB).unwrap().layout();
            assert_eq!(layout.real_bytes, real * MIB, "{mib}");
            assert_eq!(layout.capacity_bytes, mib * MIB);
        }
    }

    #[test]
    fn impossible_capacities_are_refused_with_the_reason() {
        let whole = profile("class4-4gb");
        for (bytes, word) in [
            (100 * MIB + 1, "sector"),
            (512, "legal are"),
            (u64::MAX, "legal are"),
            (2 * MIB, "AU"),
        ] {
            let error = whole.with_capacity(bytes).unwrap_err();
            assert!(error.to_string().contains(word), "{bytes}: {error}");
        }
    }
}
