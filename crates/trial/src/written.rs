//! What was written to the lab's first disk between two inspections, as its control disk tells.

/// Where on the control disk it begins, in bytes.
pub const WRITTEN_AT: u64 = 32 << 20;

/// Its first eight bytes: "wfswrt", version 1.
const MAGIC: u64 = 0x7766_7377_7274_0001;

/// Bytes before the ranges, and of each range.
const HEADER: usize = 24;
const RANGE: usize = 16;

/// Most ranges that are told.
const RANGES_MAX: usize = 1 << 16;

/// What a lab that notes writes says when an inspection begins. A lab that does not, because its
/// card may change what it holds, says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Bytes that were written or discarded since the inspection before this one began: begin and
    /// end of each range, in order and apart. `None` if that is not known: this is the first
    /// inspection, or they were too many.
    pub ranges: Option<Vec<(u64, u64)>>,
}

impl Written {
    /// Of what was noted, in any order.
    pub fn of(mut noted: Vec<(u64, u64)>) -> Written {
        noted.sort_unstable();
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for (begin, end) in noted {
            match ranges.last_mut() {
                Some((_, before)) if *before >= begin => *before = end.max(*before),
                _ => ranges.push((begin, end)),
            }
        }
        Written {
            ranges: (ranges.len() <= RANGES_MAX).then_some(ranges),
        }
    }

    /// Whether any of these ranges may have been written.
    pub fn touches(&self, places: &[(u64, u64)]) -> bool {
        let Some(ranges) = &self.ranges else {
            return true;
        };
        places.iter().any(|&(begin, end)| {
            let next = ranges.partition_point(|(_, before)| *before <= begin);
            ranges.get(next).is_some_and(|(from, _)| *from < end)
        })
    }

    /// As bytes: little-endian numbers.
    pub fn encode(&self) -> Vec<u8> {
        let ranges = self.ranges.as_deref().unwrap_or_default();
        let known = u64::from(self.ranges.is_some());
        let header = [MAGIC, known, ranges.len() as u64];
        let ranges = ranges.iter().flat_map(|&(begin, end)| [begin, end]);
        let numbers = header.into_iter().chain(ranges);
        numbers.flat_map(u64::to_le_bytes).collect()
    }

    /// How many bytes `head`, the first of them, says that there are; `None` if the lab notes
    /// nothing.
    pub fn announced(head: &[u8]) -> Option<usize> {
        let [magic, _, count] = numbers(head.get(..HEADER)?)[..] else {
            return None;
        };
        let count = usize::try_from(count).ok()?;
        (magic == MAGIC && count <= RANGES_MAX).then_some(HEADER + count * RANGE)
    }

    /// What [`Written::encode`] made into the first of these bytes.
    pub fn decode(bytes: &[u8]) -> Option<Written> {
        let all = Written::announced(bytes)?;
        let numbers = numbers(bytes.get(..all)?);
        let known = *numbers.get(1)? == 1;
        let ranges = numbers.get(3..)?.chunks_exact(2).map(|pair| match pair {
            [begin, end] => (*begin, *end),
            _ => (0, u64::MAX),
        });
        Some(Written {
            ranges: known.then(|| ranges.collect()),
        })
    }
}

fn numbers(bytes: &[u8]) -> Vec<u64> {
    let (words, _) = bytes.as_chunks();
    words.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_was_noted_is_put_in_order() {
        let written = Written::of(vec![(40, 50), (10, 20), (20, 30), (12, 14), (45, 60)]);
        assert_eq!(written.ranges.unwrap(), [(10, 30), (40, 60)]);
        assert_eq!(Written::of(Vec::new()).ranges, Some(Vec::new()));
        let many = (0..=RANGES_MAX as u64).map(|n| (3 * n, 3 * n + 1));
        assert_eq!(Written::of(many.collect()).ranges, None, "too many");
    }

    #[test]
    fn a_place_is_touched_by_its_first_and_its_last_byte() {
        let written = Written::of(vec![(10, 20), (40, 50)]);
        for touched in [(0, 11), (19, 30), (0, 100), (12, 13), (45, 90)] {
            assert!(written.touches(&[(70, 80), touched]), "{touched:?}");
        }
        for spared in [(0, 10), (20, 40), (50, 90)] {
            assert!(!written.touches(&[spared]), "{spared:?}");
        }
        assert!(!written.touches(&[]));
        assert!(Written::default().touches(&[(0, 1)]), "nothing is known");
    }

    #[test]
    fn it_passes_through_bytes() {
        let some = Written::of((0..900).map(|n| (n * 7, n * 7 + 3)).collect());
        for written in [Written::default(), Written::of(Vec::new()), some] {
            let mut bytes = written.encode();
            let announced = Written::announced(&bytes[..HEADER]);
            assert_eq!(announced, Some(bytes.len()));
            assert!(
                written.ranges.as_ref().is_none_or(Vec::is_empty) || {
                    let cut = &bytes[..bytes.len() - 1];
                    Written::decode(cut).is_none()
                }
            );
            bytes.resize(bytes.len().next_multiple_of(512), 0);
            assert_eq!(Written::decode(&bytes), Some(written));
        }
        assert_eq!(Written::decode(&[0; 512]), None);
        assert_eq!(Written::decode(b""), None);
    }
}
