//! Time that the way from the block layer to the card and back takes, by bytes of a request.

/// Time of the way, growing with the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Way {
    fixed_ns: u64,
    ns_per_mib: u64,
}

impl Way {
    /// From the time of a way for each of two sizes.
    pub fn through(small: (usize, u64), large: (usize, u64)) -> Way {
        let more = large.1.saturating_sub(small.1);
        // A host that sends no larger requests than the small one: a point, not a line.
        let bytes = large.0.saturating_sub(small.0) as u64;
        let ns_per_mib = (more << 20).checked_div(bytes).unwrap_or(0);
        let own = (ns_per_mib * small.0 as u64) >> 20;
        Way {
            fixed_ns: small.1.saturating_sub(own),
            ns_per_mib,
        }
    }

    /// The way of a request of `bytes`.
    pub fn ns(&self, bytes: u64) -> u64 {
        self.fixed_ns + ((self.ns_per_mib * bytes) >> 20)
    }
}

/// The ways of the directions, which copy at different ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ways {
    pub read: Way,
    /// Also of what carries no data.
    pub write: Way,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_is_a_line_through_both_sizes() {
        let way = Way::through((4096, 40_000), (262_144, 100_000));
        for (bytes, ns) in [(4096, 40_000_u64), (262_144, 100_000)] {
            assert!(
                way.ns(bytes).abs_diff(ns) <= 2,
                "{bytes}: {}",
                way.ns(bytes)
            );
        }
        assert!(way.ns(0) < 40_000);
    }

    #[test]
    fn a_larger_request_never_has_a_shorter_way() {
        let odd = Way::through((4096, 90_000), (262_144, 50_000));
        assert_eq!((odd.ns(0), odd.ns(1 << 20)), (90_000, 90_000));
        assert_eq!(Way::default().ns(1 << 20), 0);
        let point = Way::through((4096, 40_000), (4096, 41_000));
        assert_eq!(point.ns(1 << 20), 40_000);
    }
}
