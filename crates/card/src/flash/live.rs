//! How many live units each block holds, and which closed block holds the fewest.
//!
//! The least count of every group of blocks is kept beside the counts. Writing kills units,
//! so the counts of closed blocks only fall: a group's least is then a comparison away. Only
//! when a block stops being closed is its group looked through again.

/// Blocks of a group.
const GROUP: usize = 256;
/// Set in a count while its block is free or open: such a block is no victim.
const NOT_CLOSED: u32 = 1 << 31;

/// Live units by block.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Live {
    counts: Vec<u32>,
    /// Least count of the closed blocks in each group, or the flag if none is closed.
    least: Vec<u32>,
}

impl Live {
    /// `blocks` free blocks.
    pub fn new(blocks: u32) -> Live {
        let blocks = blocks as usize;
        Live {
            counts: vec![NOT_CLOSED; blocks],
            least: vec![NOT_CLOSED; blocks.div_ceil(GROUP)],
        }
    }

    /// Units that live in `block`.
    #[inline]
    pub fn units(&self, block: u32) -> u32 {
        self.counts[block as usize] & !NOT_CLOSED
    }

    /// Whether `block` is full and takes no writes.
    pub fn is_closed(&self, block: u32) -> bool {
        self.counts[block as usize] & NOT_CLOSED == 0
    }

    /// `units` more live in `block`, which is open.
    #[inline]
    pub fn add(&mut self, block: u32, units: u32) {
        self.counts[block as usize] += units;
    }

    /// One unit less lives in `block`.
    #[inline]
    pub fn kill(&mut self, block: u32) {
        let count = self.counts[block as usize] - 1;
        self.counts[block as usize] = count;
        self.lower(block, count);
    }

    /// `block` is full: it may be collected.
    pub fn close(&mut self, block: u32) {
        let count = self.units(block);
        self.counts[block as usize] = count;
        self.lower(block, count);
    }

    /// Nothing lives in `block` any more, which is free.
    pub fn clear(&mut self, block: u32) {
        self.counts[block as usize] = NOT_CLOSED;
        let group = block as usize / GROUP;
        self.least[group] = self.least_of(group);
    }

    /// The closed block with the fewest live units, the first of equals; none if no block is
    /// closed.
    pub fn emptiest(&self) -> Option<u32> {
        let least = self.least.iter().copied().min()?;
        if least & NOT_CLOSED != 0 {
            return None;
        }
        let group = self.least.iter().position(|count| *count == least)?;
        let within = self.group(group).iter().position(|count| *count == least)?;
        Some((group * GROUP + within) as u32)
    }

    /// Number of blocks.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Whether the least of every group is what its blocks say.
    pub fn is_consistent(&self) -> bool {
        (0..self.least.len()).all(|group| self.least_of(group) == self.least[group])
    }

    #[inline]
    fn lower(&mut self, block: u32, count: u32) {
        let least = &mut self.least[block as usize / GROUP];
        *least = count.min(*least);
    }

    fn group(&self, group: usize) -> &[u32] {
        &self.counts[group * GROUP..self.counts.len().min((group + 1) * GROUP)]
    }

    fn least_of(&self, group: usize) -> u32 {
        let least = self.group(group).iter().copied().min();
        least.map_or(NOT_CLOSED, |count| count.min(NOT_CLOSED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_the_emptiest_closed_blocks_is_found() {
        let mut live = Live::new(1000);
        assert_eq!(live.emptiest(), None);
        for block in [7, 300, 600, 999] {
            live.add(block, 5);
            live.close(block);
        }
        assert_eq!(live.emptiest(), Some(7));
        live.kill(600);
        live.kill(999);
        assert_eq!(live.emptiest(), Some(600));
        live.clear(600);
        assert_eq!((live.emptiest(), live.units(600)), (Some(999), 0));
        live.add(600, 1);
        assert!(!live.is_closed(600) && live.is_closed(7) && live.is_consistent());
        live.least[0] = 9;
        assert!(!live.is_consistent());
    }
}
