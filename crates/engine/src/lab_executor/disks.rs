//! The modelled card as the disk of a guest: in its state, with empty contents, of which only some
//! stay in memory.

use super::LabExecutor;
use crate::cards::{CardState, in_state};
use crate::error::{Error, Outcome};
use crate::partition::CardWindow;
use crate::places;
use whichfs_card::{Card, Contents, Profile};
use whichfs_lab::{BlockGeometry, Disk};
use whichfs_spill::SpillFile;
use whichfs_units::{MIB, Nanos};

/// Memory up to which card contents stay in memory beside the guests of all trials.
const MEMORY_BYTES: u64 = 2048 * MIB;
/// Card contents that each trial keeps in memory at least.
pub(crate) const CONTENTS_MIN_BYTES: u64 = 64 * MIB;
/// Part of [`MEMORY_BYTES`] for everything else: mapping state of cards, the program itself.
const OVERHEAD_BYTES: u64 = 256 * MIB;

impl LabExecutor {
    /// The disk of a trial: all of the card in its state, empty contents.
    ///
    /// # Errors
    /// The file of the contents that do not stay in memory cannot be made.
    pub fn disk(&self, profile: &Profile, seed: u64) -> Outcome<Disk> {
        self.disk_of(profile, seed, CardWindow::whole(&self.card.profile))
    }

    /// Where a trial's disk begins on the card, in bytes.
    pub fn disk_offset(&self) -> u64 {
        CardWindow::whole(&self.card.profile).offset
    }

    /// A disk at the beginning of the partition, of so many bytes.
    ///
    /// # Errors
    /// As [`LabExecutor::disk`].
    pub fn disk_of_bytes(&self, profile: &Profile, seed: u64, bytes: u64) -> Outcome<Disk> {
        let whole = CardWindow::whole(&self.card.profile);
        self.disk_of(profile, seed, CardWindow { bytes, ..whole })
    }

    pub(super) fn disk_of(
        &self,
        profile: &Profile,
        seed: u64,
        partition: CardWindow,
    ) -> Outcome<Disk> {
        let contents = self.contents(profile.capacity_bytes())?;
        let card = self.card_of((self.card.name.clone(), seed), profile, self.card_state);
        Ok(self.disk_with(card, contents, profile, partition))
    }

    /// The disk at `partition` of `card`, which has `contents`.
    pub(super) fn disk_with(
        &self,
        card: Card,
        contents: Contents,
        profile: &Profile,
        partition: CardWindow,
    ) -> Disk {
        let host = self.board.host(profile.interface());
        let geometry = BlockGeometry {
            bytes: partition.bytes,
            segments_max: host.segments.min(254),
            write_cache: profile.has_cache(),
            discard_bytes: profile.discard_supported().then_some(profile.au_bytes()),
        };
        Disk::new(
            card,
            contents.laid_out(profile.layout()),
            partition.offset,
            geometry,
            Nanos(host.request_cost_ns),
        )
    }

    /// Empty contents of so many bytes, of which only some stay in memory.
    ///
    /// # Errors
    /// As [`LabExecutor::disk`].
    pub fn contents(&self, bytes: u64) -> Outcome<Contents> {
        self.contents_within(bytes, self.resident_bytes)
    }

    /// The same, of which `resident` bytes stay in memory.
    pub(super) fn contents_within(&self, bytes: u64, resident: u64) -> Outcome<Contents> {
        let directory = places::cache_directory("spill")?;
        let spill = SpillFile::new(&directory).map_err(Error::environment)?;
        Ok(Contents::bounded(bytes, resident, Box::new(spill)))
    }

    /// The card of `key`, name and seed, as all trials begin with it.
    pub(super) fn card_of(&self, key: (String, u64), profile: &Profile, state: CardState) -> Card {
        let seed = key.1;
        let mut used = self.used.lock();
        let card = used
            .entry(key)
            .or_insert_with(|| in_state(profile, state, seed));
        card.clone()
    }
}

/// Contents that each of `jobs` trials may keep in memory beside its guest.
pub(super) fn resident_bytes(guest_bytes: u64, jobs: u64) -> u64 {
    let left = MEMORY_BYTES.saturating_sub(OVERHEAD_BYTES + jobs * guest_bytes);
    (left / jobs).max(CONTENTS_MIN_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_side_by_side_share_the_memory() {
        assert_eq!(resident_bytes(512 * MIB, 1), 1280 * MIB);
        assert_eq!(resident_bytes(512 * MIB, 2), 384 * MIB);
        assert_eq!(
            resident_bytes(512 * MIB, 64),
            64 * MIB,
            "never too little to work"
        );
    }
}
