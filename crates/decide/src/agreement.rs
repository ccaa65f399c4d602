//! How far two rankings agree.

/// Kendall's tau-b of pairs of figures: 1 if both rank all alike, -1 if they rank all the other
/// way, ties taken off (M. G. Kendall, The treatment of ties in ranking problems, Biometrika
/// 33 (1945), 239-251). `None` with fewer than two pairs, or if one side has only ties.
pub fn kendall_tau_b(pairs: &[(f64, f64)]) -> Option<f64> {
    let (mut score, mut first, mut second) = (0.0, 0.0, 0.0);
    for (at, one) in pairs.iter().enumerate() {
        for other in &pairs[at + 1..] {
            let sign = |a: f64, b: f64| match a.total_cmp(&b) {
                std::cmp::Ordering::Less => -1.0,
                std::cmp::Ordering::Equal => 0.0,
                std::cmp::Ordering::Greater => 1.0,
            };
            let (x, y) = (sign(one.0, other.0), sign(one.1, other.1));
            score += x * y;
            first += x * x;
            second += y * y;
        }
    }
    (first > 0.0 && second > 0.0).then(|| score / f64::sqrt(first * second))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn rankings_that_agree_or_disagree_wholly() {
        let same = [(1.0, 10.0), (2.0, 11.0), (3.0, 40.0)];
        assert_eq!(kendall_tau_b(&same), Some(1.0));
        let reverse = [(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)];
        assert_eq!(kendall_tau_b(&reverse), Some(-1.0));
    }

    #[test]
    fn a_tie_is_taken_off() {
        // Five pairs ranked on the left, six on the right, five alike: 5 / sqrt(5 × 6).
        let pairs = [(1.0, 1.0), (2.0, 2.0), (2.0, 3.0), (4.0, 4.0)];
        let tau = kendall_tau_b(&pairs).unwrap();
        assert!((tau - 5.0 / 30_f64.sqrt()).abs() < 1e-12, "{tau}");
    }

    #[test]
    fn nothing_to_rank_has_no_agreement() {
        assert_eq!(kendall_tau_b(&[]), None);
        assert_eq!(kendall_tau_b(&[(1.0, 1.0)]), None);
        assert_eq!(kendall_tau_b(&[(1.0, 1.0), (1.0, 2.0)]), None);
    }
}
