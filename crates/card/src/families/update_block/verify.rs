//! The invariants of family S.

use super::{NONE, UpdateBlock};
use crate::flash::Violation;

impl UpdateBlock {
    /// Every physical block is exactly one of: mapped, update, free, shared; the slots are
    /// within their limits and the small-write areas within theirs.
    pub(super) fn verify_blocks(&self) -> Result<(), Violation> {
        let mut owners = vec![0_u32; self.pool.total() as usize];
        let updates = self.slots.iter().map(|slot| slot.block);
        let used = updates.chain(self.map.to_vec());
        let used = used.filter(|block| *block != NONE);
        let free = self.pool.free_blocks();
        for block in used.chain(free).chain([self.shared]) {
            match owners.get_mut(block as usize) {
                Some(count) => *count += 1,
                None => return Err(Violation(format!("block {block} does not exist"))),
            }
        }
        if let Some(block) = owners.iter().position(|count| *count != 1) {
            let count = owners[block];
            let found = format!("block {block} has {count} owners, not one");
            return Err(Violation(found));
        }
        Ok(())
    }

    pub(super) fn verify_slots(&self) -> Result<(), Violation> {
        let chaotic = self.chaotic();
        if self.slots.len() > self.rules.open || chaotic > self.rules.open_chaotic {
            let found = format!("{} update blocks, {chaotic} chaotic", self.slots.len());
            return Err(Violation(found));
        }
        let tails = self.tails.iter().map(|tail| tail.au);
        let mut aus: Vec<u32> = self.slots.iter().map(|slot| slot.au).chain(tails).collect();
        aus.sort_unstable();
        if let Some(twice) = aus.windows(2).find(|pair| pair[0] == pair[1]) {
            let found = format!("AU {} is open twice, or open and shared", twice[0]);
            return Err(Violation(found));
        }
        let groups = self.rules.au_bytes / self.rules.group_bytes;
        for slot in &self.slots {
            let beyond = groups < 128 && slot.groups >> groups != 0;
            let full = slot.small_bytes > self.rules.small_area_bytes;
            let order = slot.start > slot.next && !slot.chaotic;
            let outside = slot.next.max(slot.high) > self.rules.au_bytes;
            let overfull = slot.programmed > self.rules.au_bytes;
            let lost = slot.block == NONE && self.rules.fold_rate.is_none();
            if lost || overfull || beyond || full || order || outside {
                return Err(Violation(format!("update block in disorder: {slot:?}")));
            }
        }
        let full = self.shared_small > self.rules.small_area_bytes;
        if full || !self.shared_fill.fits() || self.tails.len() > self.rules.tails {
            return Err(Violation("the shared block holds more than it can".into()));
        }
        Ok(())
    }
}
