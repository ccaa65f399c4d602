//! What a guest writes to a disk between two inspections: whoever inspects need not read again
//! what nobody wrote.

use whichfs_trial::Written;

/// Most requests that are noted one by one.
const NOTED_MAX: usize = 1 << 18;

/// Ranges of bytes that were written or discarded.
#[derive(Default)]
pub(crate) struct DirtyRanges {
    /// In the order of requests; `None` before the first inspection, and if they were too many.
    ranges: Option<Vec<(u64, u64)>>,
}

impl DirtyRanges {
    /// Whether anything is noted now.
    pub(crate) fn notes(&self) -> bool {
        self.ranges.is_some()
    }

    /// A request is about to change `bytes` at `offset`, or to fail at that.
    pub(crate) fn note(&mut self, offset: u64, bytes: u64) {
        let Some(ranges) = &mut self.ranges else {
            return;
        };
        let end = offset.saturating_add(bytes);
        let is_room = ranges.len() < NOTED_MAX;
        match ranges.last_mut() {
            Some((_, before)) if *before == offset => *before = end,
            _ if is_room => ranges.push((offset, end)),
            _ => self.ranges = None,
        }
    }

    /// An inspection begins: what was noted since the one before. From now on all is noted anew.
    pub(crate) fn next(&mut self) -> Written {
        let noted = self.ranges.replace(Vec::new());
        noted.map_or_else(Written::default, Written::of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_inspection_is_told_what_was_written_since_the_one_before() {
        let mut noted = DirtyRanges::default();
        noted.note(0, 8);
        assert_eq!(noted.next().ranges, None, "nobody noted it");
        noted.note(16, 8);
        noted.note(24, 8);
        noted.note(4, 4);
        assert_eq!(noted.next().ranges, Some(vec![(4, 8), (16, 32)]));
        assert_eq!(noted.next().ranges, Some(Vec::new()));
    }

    #[test]
    fn too_much_is_not_known_and_does_not_last() {
        let mut noted = DirtyRanges::default();
        noted.next();
        (0..=NOTED_MAX as u64).for_each(|n| noted.note(4 * n, 2));
        assert!(!noted.notes());
        noted.note(0, 1);
        assert_eq!(noted.next().ranges, None);
        noted.note(0, 1);
        assert_eq!(noted.next().ranges, Some(vec![(0, 1)]));
    }
}
