//! The text that a trial's id hashes, frozen: `canonical.tsv` has its digest for each shipped
//! profile, as it is, as drawn with five seeds, and in half its size.
#![allow(clippy::unwrap_used)]

use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use whichfs_card::{Profile, builtin};

fn digest(texts: impl Iterator<Item = String>) -> String {
    let mut sum = Sha256::new();
    texts.for_each(|text| sum.update(text));
    sum.finalize()
        .iter()
        .take(8)
        .fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
}

fn line(name: &str, text: &str) -> String {
    let profile = Profile::parse(name, text).unwrap();
    let drawn = (1..=5).map(|seed| profile.draw(seed).canonical());
    let half = profile.with_capacity(profile.capacity_bytes() / 1024 * 512);
    let half = half.map_or_else(|error| error.to_string(), |half| half.canonical());
    [
        name.to_owned(),
        digest([profile.canonical()].into_iter()),
        digest(drawn),
        digest([half].into_iter()),
    ]
    .join("\t")
}

#[test]
fn the_hashed_text_of_every_shipped_profile_is_as_it_was() {
    let found: Vec<String> = builtin()
        .iter()
        .map(|(name, text)| line(name, text))
        .collect();
    let wanted: Vec<&str> = include_str!("canonical.tsv").lines().collect();
    for line in &found {
        println!("{line}");
    }
    // A new card may be added; what is listed stays.
    for line in wanted {
        assert!(
            found.iter().any(|found| found == line),
            "not so any more: {line}"
        );
    }
}
