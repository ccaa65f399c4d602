//! What a probe is sure of is what the shipped profile says, and the card that is modelled from it
//! acts.

#![allow(clippy::unwrap_used)]

use whichfs_card::{Card, Profile, builtin};
use whichfs_curves::Modelled;
use whichfs_probe::{ProbeOptions, Quantity, Silent, Writing, probe};

/// Sizes of which a probe of the card is sure and its profile says something else.
fn contradictions(profile: &Profile) -> Vec<String> {
    let mut device = Modelled::new(Card::used(profile, 1), profile.capacity_bytes());
    let options = ProbeOptions {
        seed: 1,
        writing: Writing::Destroy,
        ..ProbeOptions::default()
    };
    let found = probe(&mut device, &options, &mut Silent);
    let stated = [
        (Quantity::PageBytes, profile.page_bytes()),
        (Quantity::WriteUnitBytes, profile.write_unit_bytes()),
        (Quantity::AuBytes, profile.au_bytes()),
    ];
    let says = |(quantity, stated): (Quantity, u64)| {
        let finding = found.get(quantity);
        let value = finding.value.filter(|_| finding.confident())?.whole();
        (value != stated).then(|| format!("{} {value}, not {stated}", quantity.name()))
    };
    stated.into_iter().filter_map(says).collect()
}

#[test]
fn no_shipped_profile_contradicts_the_probe_of_its_card() {
    for (name, toml) in builtin() {
        let found = contradictions(&Profile::parse(name, toml).unwrap());
        assert!(found.is_empty(), "{name}: {}", found.join("; "));
    }
}

#[test]
fn a_profile_that_says_another_write_unit_than_it_acts_is_caught() {
    let (_, toml) = builtin()
        .iter()
        .find(|(name, _)| *name == "class4-4gb")
        .unwrap();
    let planted = toml.replace(
        "write_unit_bytes = { value = 16_384",
        "write_unit_bytes = { value = 32_768",
    );
    assert_ne!(&planted, toml);
    let found = contradictions(&Profile::parse("planted", &planted).unwrap());
    assert_eq!(found, ["write_unit_bytes 16384, not 32768"]);
}
