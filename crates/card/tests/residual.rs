//! What a family does not explain: factors of the times of writes.
#![allow(clippy::unwrap_used)]

use crate::profiles::text;
use whichfs_card::{Card, Profile, Request, RequestKind};

/// The text of a card with a residual.
fn with_residual() -> String {
    let residual = "\n[residual]\nsource = \"test\"\nuncertainty_percent = 10\n\
                    block_bytes = [4096, 65536]\nin_order = [[200, 100]]\n\
                    at_random = [[300, 50]]\n";
    format!("{}{residual}", text())
}

#[test]
fn a_residual_multiplies_the_times_of_writes_alone() {
    let [plain, with] =
        [text(), with_residual()].map(|text| Profile::parse("card", &text).unwrap());
    assert_ne!(plain.canonical(), with.canonical());
    let request = |op, offset, bytes| Request {
        op,
        offset,
        bytes,
        fua: false,
    };
    // Each card on its own: the residual changes no mapping, so they stay alike.
    let mut cards = [plain, with].map(|profile| Card::used(&profile, 1));
    let mut times = |request| {
        cards.each_mut().map(|card| {
            let begin = card.busy_until();
            card.submit(begin, &request).at.0 - begin.0
        })
    };
    let au = 2 << 20;
    let [plain, with] = times(request(RequestKind::Write, au, 4096));
    assert_eq!(with, 2 * plain, "the first of an AU is in order");
    let [plain, with] = times(request(RequestKind::Write, au + (128 << 10), 4096));
    assert_eq!(with, 3 * plain, "elsewhere in it");
    let [plain, with] = times(request(RequestKind::Write, au + (128 << 10) + 4096, 65536));
    assert_eq!(with, plain, "it goes on there");
    let [plain, with] = times(request(RequestKind::Read, au, 4096));
    assert_eq!(with, plain);
    let stats = cards
        .each_ref()
        .map(|card| (card.stats().programmed_bytes, card.stats().erases));
    assert_eq!(stats[0], stats[1]);
}

#[test]
fn mistakes_in_a_residual_are_named_and_its_draws_keep_to_its_uncertainty() {
    let mistakes = [
        ("[4096, 65536]", "[65536, 4096]", "residual.block_bytes"),
        ("[[200, 100]]", "[[200]]", "residual.in_order"),
        ("[[200, 100]]", "[200, 100]", "residual.in_order"),
        ("[[300, 50]]", "[[300, 0]]", "residual.at_random"),
        ("= 10", "= 5000", "residual.uncertainty_percent"),
        ("at_random = [[300, 50]]", "", "residual.at_random"),
        ("at_random", "at_randm", "residual.at_randm"),
        ("source = \"test\"\n", "", "residual"),
    ];
    for (from, to, key) in mistakes {
        let (before, after) = with_residual()
            .rsplit_once(from)
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
            .unwrap();
        let error = Profile::parse("card", &format!("{before}{to}{after}")).unwrap_err();
        assert!(error.key.starts_with(key), "{key}: {error}");
        assert!(error.line > text().lines().count(), "{error}");
    }
    let profile = Profile::parse("card", &with_residual()).unwrap();
    let drawn: Vec<u64> = (0..50)
        .map(|seed| profile.draw(seed).residual().unwrap().in_order[0][0])
        .collect();
    assert!(
        drawn.iter().all(|percent| (181..=221).contains(percent)),
        "{drawn:?}"
    );
    assert!(drawn.iter().max() > drawn.iter().min());
    assert_eq!(profile.draw(3), profile.draw(3));
}
