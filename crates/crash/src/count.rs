//! A share of a count, with the interval that the count supports.

use serde::Serialize;

/// How often something happened among independent cuts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Share {
    /// Times it happened.
    pub count: u64,
    /// Cuts that were made.
    pub of: u64,
    /// Lower end of the 95 % interval of the share.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Share {
    /// `count` of `of`, with Wilson's score interval (E. B. Wilson, JASA 22, 1927).
    pub fn new(count: u64, of: u64) -> Share {
        const Z: f64 = 1.959_964;
        if of == 0 {
            return Share {
                count,
                of,
                low: 0.0,
                high: 1.0,
            };
        }
        let (n, p) = (of as f64, count as f64 / of as f64);
        let scale = 1.0 / (1.0 + Z * Z / n);
        let centre = p + Z * Z / (2.0 * n);
        let half = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
        Share {
            count,
            of,
            low: (scale * (centre - half)).max(0.0),
            high: (scale * (centre + half)).min(1.0),
        }
    }
}

impl std::fmt::Display for Share {
    /// `0 of 20 (≤ 16 %)`, `20 of 20 (≥ 84 %)`, `5 of 20 (11 to 47 %)`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (count, of) = (self.count, self.of);
        let [low, high] = [self.low * 100.0, self.high * 100.0];
        match count {
            0 => write!(f, "{count} of {of} (≤ {high:.0} %)"),
            _ if count == of => write!(f, "{count} of {of} (≥ {low:.0} %)"),
            _ => write!(f, "{count} of {of} ({low:.0} to {high:.0} %)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_of_many_is_few_but_not_none() {
        // Wilson's interval for 0 of 226: 3.84 / (226 + 3.84).
        let share = Share::new(0, 226);
        assert!(
            share.low == 0.0 && (share.high - 0.0167).abs() < 1e-3,
            "{share:?}"
        );
        let half = Share::new(50, 100);
        assert!((half.low - 0.404).abs() < 1e-3 && (half.high - 0.596).abs() < 1e-3);
        assert_eq!(Share::new(0, 0).high, 1.0);
    }
}
