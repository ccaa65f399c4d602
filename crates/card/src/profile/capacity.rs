//! The same card in another size: for trying a large card in little room.

use super::Profile;
use crate::figures;
use crate::profile::Family;

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
    /// The same card with `bytes` of capacity, a multiple of the 512-byte sector.
    ///
    /// A page-mapped card keeps its ratio of spare blocks to capacity, because its write
    /// amplification depends on it, and what it keeps free in the background is the same part
    /// of them; so is the pSLC cache. A card with log blocks keeps the number of spare blocks,
    /// because the limits of open AUs depend on it. All times and rates stay.
    ///
    /// # Errors
    /// Where such a card cannot be: no whole sectors, too few AUs, beyond the largest card.
    pub fn with_capacity(&self, bytes: u64) -> Result<Profile, CapacityError> {
        let refuse = |why: String| CapacityError { asked: bytes, why };
        let mut resized = self.clone();
        resized
            .put("geometry.capacity_bytes", bytes)
            .map_err(refuse)?;
        // A card that lies has what it has, up to where it tells the truth.
        let real = self.figure("geometry.real_bytes");
        resized
            .put("geometry.real_bytes", if real < bytes { real } else { 0 })
            .map_err(refuse)?;
        let slc = share(self.figure("slc.bytes"), bytes, self.capacity_bytes());
        resized.put("slc.bytes", slc).map_err(refuse)?;
        if self.family == Family::PageMap {
            resized
                .scale_spare(bytes, self.capacity_bytes())
                .map_err(refuse)?;
        }
        match resized.check_shape() {
            Ok(()) => Ok(resized),
            Err((path, found)) => Err(refuse(format!("{path} is {found}"))),
        }
    }

    /// Gives a page map `bytes` of `of_bytes` of its spare blocks, and the same part of those
    /// that it keeps free.
    fn scale_spare(&mut self, bytes: u64, of_bytes: u64) -> Result<(), String> {
        let (all, kept) = ("geometry.spare_aus", "page_map.background_aus");
        let (spare, background) = (self.figure(all), self.figure(kept));
        let least = figures::SPECS[index(all)].min;
        let scaled = share(spare, bytes, of_bytes).max(least);
        let most = scaled - figures::OPEN_BLOCKS;
        self.put(kept, share(background, scaled, spare).min(most))?;
        self.put(all, scaled)
    }

    /// Sets a figure that the family has, within its legal range.
    fn put(&mut self, path: &'static str, value: u64) -> Result<(), String> {
        let at = index(path);
        let (min, max) = (figures::SPECS[at].min, figures::SPECS[at].max);
        if !(min..=max).contains(&value) {
            return Err(format!("{path} is {value}, legal are {min} to {max}"));
        }
        match &mut self.figures[at] {
            Some(figure) => figure.value = value,
            None => unreachable!("{:?} has no {path}", self.family),
        }
        Ok(())
    }
}

/// `value` times `part / whole`, rounded up.
fn share(value: u64, part: u64, whole: u64) -> u64 {
    let scaled = (u128::from(value) * u128::from(part)).div_ceil(u128::from(whole));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

fn index(path: &'static str) -> usize {
    figures::index_of(path).unwrap_or_else(|| unreachable!("{path} is a figure"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::{Card, Profile, Request, builtin};
    use whichfs_units::{MIB, Nanos};

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

    #[test]
    fn a_page_mapped_card_keeps_its_over_provisioning() {
        let whole = profile("a1-32gb");
        let small = whole.with_capacity(whole.capacity_bytes() / 8).unwrap();
        assert_eq!(
            small.figure("geometry.spare_aus"),
            whole.figure("geometry.spare_aus").div_ceil(8)
        );
        let logs = profile("class4-4gb");
        assert_eq!(
            logs.with_capacity(512 * MIB)
                .unwrap()
                .figure("geometry.spare_aus"),
            logs.figure("geometry.spare_aus")
        );
    }

    #[test]
    fn what_is_kept_free_in_the_background_stays_a_part_of_the_spare_blocks() {
        let whole = profile("transcend-usd-8gb");
        let figure = |of: &Profile, path| of.figure(path);
        assert_eq!(figure(&whole, "page_map.background_aus"), 16);
        for (mib, background) in [(64, 1), (1024, 3), (3848, 9)] {
            let small = whole.with_capacity(mib * MIB).unwrap();
            let found = figure(&small, "page_map.background_aus");
            assert_eq!(found, background, "{mib} MiB");
            assert!(found + 4 <= figure(&small, "geometry.spare_aus"));
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
