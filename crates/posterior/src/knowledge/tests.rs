//! Knowledge files: what they say, and every mistake in one.
#![allow(clippy::unwrap_used)]
use super::*;

const GOOD: &str = r#"title = "Kingston Class 10 U1, 16 GB"
interface = "sd"
capacity_bytes = 15_931_539_456
year = 2014
maker = "41"
marks = ["class 10", "U1", "A1"]
logs = ["flashbench.log"]

[sizes]
au_bytes = 4_194_304
open_aus = 5

[[observed]]
operation = "write"
order = "random"
block_bytes = 4096
bytes_per_s = 1_200_000
noise_percent = 15
source = "iozone"
"#;

#[test]
fn a_file_says_what_it_says() {
    let known = Knowledge::parse("k.toml", GOOD).unwrap();
    assert_eq!((known.year, known.marks.write_mb_s), (Some(2014), Some(10)));
    assert_eq!(
        (known.sizes.au_bytes, known.open_aus),
        (Some(4 << 20), Some(OpenAuLimit::of_flashbench(5)))
    );
    // The marks' promises: writing in order, small reads and small writes.
    assert_eq!(known.observations.len(), 4);
    assert_eq!(
        known.observations[3].label,
        "written at random, 4096 bytes (iozone)"
    );
    assert!((known.observations[3].ns - 4096.0 / 1.2e6 * 1e9).abs() < 1.0);
    assert!(Knowledge::is_meant(GOOD) && !Knowledge::is_meant("family = \"page-map\""));
}

#[test]
fn the_shipped_files_say_something_of_cards_with_a_profile() {
    for (name, text) in shipped_knowledge() {
        let known = Knowledge::parse(name, text).unwrap();
        let profile = whichfs_card::builtin()
            .iter()
            .find(|(of, _)| of == name)
            .unwrap()
            .1;
        let profile = whichfs_card::Profile::parse(name, profile).unwrap();
        assert_eq!(known.capacity_bytes, profile.capacity_bytes(), "{name}");
        assert!(Knowledge::is_meant(text), "{name}");
    }
    assert!(shipped_knowledge().len() > 5);
}

#[test]
fn every_mistake_is_named_with_its_line() {
    for (from, to, line, words) in [
        (
            "noise_percent = 15",
            "noise_percent = 0",
            13,
            "no measurement is without noise",
        ),
        (
            "bytes_per_s = 1_200_000",
            "bytes_per_s = 1.2",
            13,
            "not MB/s",
        ),
        (
            "bytes_per_s = 1_200_000",
            "bytes_per_s = 1e12",
            13,
            "no card has",
        ),
        (
            "bytes_per_s = 1_200_000",
            "bytes_per_s = -5",
            13,
            "no card has",
        ),
        (
            "bytes_per_s = 1_200_000",
            "bytes_per_s = nan",
            13,
            "no card has",
        ),
        (
            "block_bytes = 4096",
            "block_bytes = 4095",
            13,
            "whole sectors",
        ),
        (
            "order = \"random\"",
            "order = \"randm\"",
            15,
            "did you mean 'random'",
        ),
        (
            "order = \"random\"",
            "order = \"random-aus\"\nopen_aus = 9",
            13,
            "1 to 7",
        ),
        ("\"U1\"", "\"U2\"", 6, "V30"),
        ("year = 2014", "year = 14", 4, "2000 to 2100"),
        (
            "capacity_bytes = 15_931_539_456",
            "capacity_bytes = 16",
            3,
            "whole sectors",
        ),
        ("au_bytes = 4_194_304", "au_bytes = 100", 10, "64 MiB"),
        ("open_aus = 5", "open_aus = 0", 11, "(7) means no limit"),
        (
            "open_aus = 5",
            "open_aus = 5\nopen_aus_random = 6",
            12,
            "at most 5",
        ),
        ("open_aus = 5", "open_aus_tried = 64", 11, "no open_aus"),
        ("year = 2014", "yaer = 2014", 4, "did you mean 'year'?"),
    ] {
        assert!(GOOD.contains(from), "{from}");
        let error = Knowledge::parse("k.toml", &GOOD.replacen(from, to, 1)).unwrap_err();
        assert_eq!(error.line, line, "{error}");
        assert!(
            error.to_string().starts_with(&format!("k.toml:{line}: ")),
            "{error}"
        );
        assert!(error.why.contains(words), "{error}");
    }
}

#[test]
fn a_rate_of_a_filesystem_bounds_the_cards() {
    let row = "card,300M,48,99,6144,75,1782,37,124,99,3072,26,100.4,5,16,233,99\n";
    let runs = whichfs_logs::read("bonnie.csv", row).unwrap();
    let mut known = Knowledge::of("t", Interface::Sd, 8 << 30);
    let rates = &runs[0].rates;
    assert!(known.observe("b", &runs[0].curves, rates).is_empty());
    let bounds = |known: &Knowledge| -> Vec<(Bound, u64)> {
        let observations = known.observations.iter();
        observations.map(|of| (of.bound, of.place.bytes)).collect()
    };
    let expected = [(Bound::AtMost, 128 << 10), (Bound::AtMost, 512 << 10)];
    assert_eq!(bounds(&known), expected, "reads, writes");
    // Where the card's own rate is known, the bound says nothing more.
    let own = Rate {
        caveat: None,
        ..rates[0].clone()
    };
    let mut known = Knowledge::of("t", Interface::Sd, 8 << 30);
    let both = [&[own], &rates[..]].concat();
    assert!(known.observe("b", &runs[0].curves, &both).is_empty());
    let expected = [(Bound::Exact, 512 << 10), (Bound::AtMost, 128 << 10)];
    assert_eq!(bounds(&known), expected);
}

#[test]
fn reads_of_flashbench_a_are_as_long_as_its_least_boundary_tells() {
    let reads = |powers: std::ops::Range<u32>| {
        let curves = Curves {
            align: powers
                .map(|power| (1 << power, vec![[1225.0, 1325.0, 1225.0, 100.0]]))
                .collect(),
            ..Curves::default()
        };
        let mut known = Knowledge::of("t", Interface::Sd, 8 << 30);
        known.observe("a", &curves, &[]);
        let of = known.observations.iter();
        of.map(|of| (of.place.bytes, of.ns)).collect::<Vec<_>>()
    };
    // The default of flashbench, then `--blocksize=1024`.
    assert_eq!(reads(15..30), [(16 << 10, 1.225e6)]);
    assert_eq!(reads(11..30), [(1 << 10, 1.225e6)]);
    // A table whose end is missing does not tell it.
    assert_eq!(reads(22..30), []);
}
