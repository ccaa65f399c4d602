//! What a profile that a probe saves says of the cards that trials run on.
#![allow(clippy::unwrap_used)]

use whichfs_card::{Card, Profile, builtin};
use whichfs_curves::Modelled;
use whichfs_probe::{Findings, ProbeOptions, Quantity, Silent, Writing, probe};

fn profile(name: &str) -> Profile {
    let mut all = builtin().iter();
    let (name, text) = all.find(|(n, _)| n.contains(name)).unwrap();
    Profile::parse(name, text).unwrap()
}

fn probed(name: &str) -> Findings {
    let profile = profile(name);
    let mut card = Modelled::new(Card::used(&profile, 1), profile.capacity_bytes());
    let options = ProbeOptions {
        seed: 11,
        writing: Writing::Destroy,
        ..ProbeOptions::default()
    };
    probe(&mut card, &options, &mut Silent)
}

/// What files that are written at once cost hangs on how many AUs can be open: trials run on cards
/// that have as many. Without it, the slowest updates of four filesystems were up to 140 times
/// apart on the card and on those that the probe knew.
#[test]
fn the_cards_of_trials_have_as_many_open_aus_as_the_probe_found() {
    let section = |found: &Findings| {
        let text = found.to_profile().unwrap();
        let at = text.find("[knowledge]").unwrap();
        text[at..].to_owned()
    };
    let mut found = probed("class4");
    let few = section(&found);
    let open = profile("class4").open_aus_linear();
    for line in [&format!("open_aus = {open}\n"), "open_aus_tried = 64\n"] {
        assert!(few.contains(line), "{line}{few}");
    }
    // Streams as a journal, small files and large files make them.
    for bytes in [4096, 16_384, 524_288] {
        let stream = format!("order = \"sequential\"\nblock_bytes = {bytes}\n");
        assert!(few.contains(&stream), "{bytes} {few}");
    }
    // One that is no more than possible is not kept.
    let count = found.values.get_mut(&Quantity::OpenAusLinear).unwrap();
    count.confidence = 0.5;
    assert!(!section(&found).contains("open_aus"));
    // No limit up to so many is no count.
    let many = section(&probed("a1-32gb"));
    let count = |key: &str| {
        let value = many.split_once(&format!("{key} = ")).unwrap().1;
        value.split_once('\n').unwrap().0.parse::<u32>().unwrap()
    };
    assert_eq!(count("open_aus"), count("open_aus_tried") + 1);
}
