//! Which AUs are written with a place of their own.

/// A few places, kept by the AUs that use them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Streams {
    /// Zero: every AU has a place.
    places: usize,
    /// Writes after which an AU that was not written loses its place to one that wants it.
    keep_writes: u64,
    /// AU and the write that used it last.
    holders: Vec<(u32, u64)>,
    clock: u64,
}

impl Streams {
    /// `places` of them, each kept for `keep_writes`; no places mean that there is no limit.
    pub fn new(places: usize, keep_writes: u64) -> Streams {
        Streams {
            places,
            keep_writes,
            holders: Vec::with_capacity(places),
            clock: 0,
        }
    }

    /// Whether a write to `au` finds a place; which AU it is matters only with a limit.
    #[inline]
    pub fn admit(&mut self, au: impl FnOnce() -> u32) -> bool {
        self.places == 0 || self.look_for(au())
    }

    /// Places in use, and all; none if there is no limit.
    pub fn held(&self) -> Option<(usize, usize)> {
        (self.places > 0).then_some((self.holders.len(), self.places))
    }

    /// All places are free.
    pub fn release(&mut self) {
        self.holders.clear();
    }

    fn look_for(&mut self, au: u32) -> bool {
        self.clock += 1;
        let clock = self.clock;
        if let Some(holder) = self.holders.iter_mut().find(|holder| holder.0 == au) {
            holder.1 = clock;
            return true;
        }
        if self.holders.len() < self.places {
            self.holders.push((au, clock));
            return true;
        }
        let stale = self.holders.iter_mut().min_by_key(|holder| holder.1);
        match stale {
            Some(holder) if holder.1 + self.keep_writes < clock => {
                *holder = (au, clock);
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_kept_by_those_who_use_them() {
        const KEEP: u64 = 64;
        let mut streams = Streams::new(2, KEEP);
        assert!(streams.admit(|| 1) && streams.admit(|| 2));
        for _ in 0..10 {
            assert!(!streams.admit(|| 3) && streams.admit(|| 1) && streams.admit(|| 2));
        }
        let refused = (0..KEEP + 1).take_while(|_| !streams.admit(|| 3)).count();
        assert_eq!(refused as u64, KEEP - 1, "1 is the stalest");
        assert!(streams.admit(|| 2) && !streams.admit(|| 1));
        assert_eq!(streams.held(), Some((2, 2)));
        streams.release();
        assert_eq!(streams.held(), Some((0, 2)));
        assert_eq!(Streams::new(0, KEEP).held(), None);
        assert!(streams.admit(|| 1) && streams.admit(|| 9) && !streams.admit(|| 2));
        assert!(Streams::new(0, KEEP).admit(|| 9));
    }
}
