//! Small helpers that recipes share: argument lists, identifiers, arithmetic.

use crate::model::Purpose;
use std::collections::BTreeMap;
use whichfs_units::Rng;

/// The instant all lab formats are stamped with: 2024-01-01 00:00:00 UTC.
pub(crate) const LAB_TIME: u64 = 1_704_067_200;

/// An argument list from its words.
pub(crate) fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// Several argument lists in one, in order.
pub(crate) fn join<const N: usize>(parts: [Vec<String>; N]) -> Vec<String> {
    parts.into_iter().flatten().collect()
}

/// `text` as words in the lab, nothing for a person.
pub(crate) fn lab_only(purpose: Purpose, text: impl FnOnce(&mut Rng) -> String) -> Vec<String> {
    match purpose {
        Purpose::Lab { seed } => words(&text(&mut Rng::named(seed, "filesystem identifiers"))),
        Purpose::User => Vec::new(),
    }
}

/// Environment in which the tools that know these variables take a fixed time.
pub(crate) fn lab_env(purpose: Purpose, names: &[&str]) -> BTreeMap<String, String> {
    match purpose {
        Purpose::Lab { .. } => names
            .iter()
            .map(|name| ((*name).to_owned(), LAB_TIME.to_string()))
            .collect(),
        Purpose::User => BTreeMap::new(),
    }
}

/// A random UUID (version 4, RFC 9562) from `rng`.
pub(crate) fn uuid(rng: &mut Rng) -> String {
    let mut bytes = [0; 16];
    rng.fill(&mut bytes);
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!(
        "{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    )
}

/// Greatest common divisor; `b` may be zero.
pub(crate) const fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Least common multiple of two numbers above zero.
pub(crate) const fn lcm(a: u64, b: u64) -> u64 {
    a / gcd(a, b) * b
}

/// The largest power of two that divides `value`, which is above zero.
pub(crate) const fn power_of_two_in(value: u64) -> u64 {
    1 << value.trailing_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_differ_by_seed_and_are_version_4() {
        let id = |seed| lab_only(Purpose::Lab { seed }, uuid);
        assert_eq!(id(1), id(1));
        assert_ne!(id(1), id(2));
        assert_eq!(id(1)[0].len(), 36);
        assert_eq!(&id(1)[0][14..15], "4");
        assert!(lab_only(Purpose::User, uuid).is_empty());
    }

    #[test]
    fn arithmetic_on_units_that_are_no_powers_of_two() {
        assert_eq!(lcm(3, 2), 6);
        assert_eq!(lcm(4, 2), 4);
        assert_eq!(gcd(12, 0), 12);
        assert_eq!(power_of_two_in(12 << 20), 4 << 20);
        assert_eq!(power_of_two_in(3 << 19), 1 << 19);
    }
}
