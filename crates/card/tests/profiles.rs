//! Profiles: the shipped ones, every mistake in a file, and draws.
#![allow(clippy::unwrap_used)]

use crate::common;

use common::{Tiny, open_aus, random, sequential, shipped};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;
use whichfs_card::{Basis, Card, Family, Interface, Profile, builtin};
use whichfs_units::{KIB, MIB};

pub(crate) fn text() -> String {
    Tiny {
        family: "log-block",
        au_kib: 256,
        aus: 40,
        extra: "",
    }
    .toml()
}

/// Replaces `from` in a good profile and expects the complaint at `line` about `key`,
/// mentioning `words`.
fn check(from: &str, to: &str, line: usize, key: &str, words: &[&str]) {
    let good = text();
    assert!(good.contains(from), "{from}");
    let error = Profile::parse("cards/x.toml", &good.replacen(from, to, 1)).unwrap_err();
    assert_eq!((error.line, error.key.as_str()), (line, key), "{error}");
    let message = error.to_string();
    assert!(
        message.starts_with(&format!("cards/x.toml:{line}: {key}: found")),
        "{message}"
    );
    for word in words {
        assert!(message.contains(word), "{message} does not say {word}");
    }
}

/// Line on which `words` stand in the good profile.
fn line(words: &str) -> usize {
    let good = text();
    good[..good.find(words).unwrap()].matches('\n').count() + 1
}

#[test]
fn every_mistake_is_named_with_line_key_and_what_is_legal() {
    let page = line("page_bytes");
    check(
        "page_bytes = { value = 4096,",
        "page_bytes = { value = -1,",
        page,
        "geometry.page_bytes",
        &["`-1`", "from 512 to 1048576"],
    );
    check(
        "page_bytes = { value = 4096,",
        "page_bytes = { value = 0,",
        page,
        "geometry.page_bytes",
        &["`0`"],
    );
    check(
        "page_bytes = { value = 4096,",
        "page_bytes = { value = 4.5,",
        page,
        "geometry.page_bytes",
        &["`4.5`"],
    );
    check(
        "page_bytes = { value = 4096,",
        "page_bytes = { value = \"4K\",",
        page,
        "geometry.page_bytes",
        &["4K"],
    );
    check(
        "page_bytes = { value = 4096,",
        "page_bytes = {",
        page,
        "geometry.page_bytes",
        &["no value"],
    );
    check(
        "page_bytes = { value = 4096, source = \"test\" }",
        "page_bytes = 4096",
        page,
        "geometry.page_bytes",
        &["source"],
    );
    check(
        "page_bytes = { value = 4096, source = \"test\" }",
        "page_bytes = { value = 4096 }",
        page,
        "geometry.page_bytes",
        &["no source"],
    );
    check(
        "page_bytes = { value = 4096, source = \"test\" }",
        "page_bytes = { value = 4096, source = \"t\", unit = 1 }",
        page,
        "geometry.page_bytes",
        &["unit"],
    );
}

#[test]
fn mistakes_of_the_file_as_a_whole_are_named_too() {
    let page = line("page_bytes");
    check(
        "page_bytes =",
        "page_byte =",
        page,
        "geometry.page_byte",
        &["unknown", "did you mean 'page_bytes'?"],
    );
    check(
        "page_bytes = { value = 4096, source = \"test\" }\n",
        "",
        4,
        "geometry.page_bytes",
        &["nothing", "512"],
    );
    check(
        "[copy]",
        "[kopy]",
        line("[copy]"),
        "kopy",
        &["unknown", "did you mean 'copy'?"],
    );
    check(
        "family = \"log-block\"",
        "family = \"logblock\"",
        3,
        "family",
        &["logblock", "log-block, update-block, page-map"],
    );
    check(
        "interface = \"sd\"",
        "",
        1,
        "interface",
        &["nothing", "sd, emmc, usb"],
    );
    check("title = \"tiny\"", "title = \"\"", 1, "profile", &["title"]);
    let au = line("au_bytes");
    check(
        "au_bytes = { value = 262144,",
        "au_bytes = { value = 262656,",
        au,
        "geometry.au_bytes",
        &["multiple", "4096"],
    );
    let spare = line("spare_aus");
    check(
        "open_aus_linear = { value = 3,",
        "open_aus_linear = { value = 9,",
        spare,
        "geometry.spare_aus",
        &["fewer"],
    );
    check("[bus]", "[bus", line("[bus]"), "profile", &["TOML"]);
}

#[test]
fn a_missing_figure_points_at_its_section() {
    let missing = text().replacen("page_bytes = { value = 4096, source = \"test\" }\n", "", 1);
    let error = Profile::parse("x", &missing).unwrap_err();
    assert_eq!(error.line, 4, "the line of [geometry]");
}

#[test]
fn shipped_profiles_are_sorted_named_and_have_a_source_for_each_stated_figure() {
    let names: Vec<_> = builtin().iter().map(|(name, _)| *name).collect();
    assert!(names.is_sorted());
    for (name, toml) in builtin() {
        let profile = Profile::parse(&format!("cards/{name}.toml"), toml).unwrap();
        assert!(
            profile
                .figures()
                .all(|figure| figure.source.as_ref().is_none_or(|s| s.len() > 2))
        );
        // Where most is a gap, most has the same source.
        let least = if profile.composed() { 3 } else { 9 };
        assert!(profile.sources().len() >= least, "{name}");
        assert!(!profile.title().is_empty());
        // The queue of an A2 card requires a cache (flash.md 2.8).
        let queue = name.contains("-cq-");
        assert_eq!(
            profile.has_cache(),
            profile.interface() == Interface::Emmc || queue,
            "{name}"
        );
        assert_eq!(
            profile.discard_supported(),
            profile.interface() != Interface::Usb
        );
    }
    let default = common::shipped("a1-32gb");
    assert!(default.composed() && default.family() == Family::PageMap);
}

/// Bytes at the end of a card's name, as makers count: `8gb`, `512mb`.
fn size_in_name(name: &str) -> f64 {
    let (_, size) = name.rsplit_once('-').unwrap();
    let number = |digits: &str| digits.parse::<f64>().unwrap();
    match size.strip_suffix("mb") {
        Some(digits) => 1e6 * number(digits),
        None => 1e9 * number(size.strip_suffix("gb").unwrap()),
    }
}

#[test]
fn names_tell_the_size_and_every_card_has_its_file_and_its_line_in_the_readme() {
    let cards = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cards");
    let readme = std::fs::read_to_string(cards.join("README.md")).unwrap();
    let mut titles = BTreeSet::new();
    for (name, _) in builtin() {
        let profile = shipped(name);
        let kebab = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(name.chars().all(kebab), "{name}");
        assert!(titles.insert(profile.title().to_owned()), "{name}");
        assert_eq!(readme.matches(&format!("`{name}`")).count(), 1, "{name}");
        let share = profile.capacity_bytes() as f64 / size_in_name(name);
        assert!((0.93..1.02).contains(&share), "{name} has {share} of it");
    }
    let files: BTreeSet<String> = std::fs::read_dir(cards)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|file| file.strip_suffix(".toml").map(str::to_owned))
        .collect();
    let listed: BTreeSet<String> = builtin().iter().map(|(name, _)| (*name).into()).collect();
    assert_eq!(files, listed);
}

/// What a card does in order, in MB/s, and at random, in requests a second.
#[derive(Debug)]
struct Rates {
    read: f64,
    write: f64,
    random_read: f64,
    random_write: f64,
    random_64k_write: f64,
}

impl Rates {
    /// Of a used card with these figures. Filling a card takes time and memory and no rate
    /// depends on its size, so what is larger than 8 GB is cut to that.
    fn of(name: &str, toml: &str) -> Rates {
        let profile = Profile::parse(name, &cut(name, toml)).unwrap();
        let mut card = Card::used(&profile, 1);
        // iozone works on 100 MB. Linux hands an SD host at most 512 KiB at once.
        let (span, block) = (100 * MIB, 512 * KIB);
        Rates {
            random_read: random(&mut card, 64 * MIB, span, 4 * KIB, 2000, false),
            read: sequential(&mut card, 64 * MIB, block, 200, false),
            write: sequential(&mut card, 64 * MIB, block, 256, true),
            random_write: random(&mut card, 512 * MIB, span, 4 * KIB, 4000, true),
            random_64k_write: random(&mut card, 768 * MIB, span, 64 * KIB, 800, true),
        }
    }

    /// All of them, in the order of the columns of `rows.tsv`.
    fn all(&self) -> [f64; 5] {
        [
            self.read,
            self.write,
            self.random_read,
            self.random_write,
            self.random_64k_write,
        ]
    }
}

/// The text of a profile for a card of at most 8 GB, with its share of spare AUs.
fn cut(name: &str, toml: &str) -> String {
    let whole = Profile::parse(name, toml).unwrap();
    let parts = whole.capacity_bytes().div_ceil(8_100_000_000);
    let capacity = whole.capacity_bytes() / parts / whole.au_bytes() * whole.au_bytes();
    let scale = |line: &str| -> String {
        let (key, rest) = line.split_once(" = { value = ").unwrap_or((line, ""));
        let (value, rest) = rest.split_once(',').unwrap_or((rest, ""));
        let scaled = match key {
            "capacity_bytes" => capacity,
            "spare_aus" => {
                let spare: u64 = value.replace('_', "").parse().unwrap();
                (spare / parts).max(spare.min(30))
            }
            _ => return line.to_owned(),
        };
        format!("{key} = {{ value = {scaled},{rest}")
    };
    toml.lines().map(|line| scale(line) + "\n").collect()
}

/// Lines of `rows.tsv`: card, row, and what is measured of it.
fn rows() -> Vec<(&'static str, &'static str, [Option<f64>; 5])> {
    let lines = include_str!("rows.tsv").lines();
    lines
        .filter(|line| !line.starts_with('#'))
        .skip(1)
        .map(|line| {
            let fields: Vec<_> = line.split('\t').collect();
            let measured = |at: usize| (fields[at] != "-").then(|| fields[at].parse().unwrap());
            (fields[0], fields[1], [2, 3, 4, 5, 6].map(measured))
        })
        .collect()
}

/// The first rate that is more than a tenth off, with the row's value and the model's.
fn off(rates: &Rates, measured: &[Option<f64>; 5]) -> Option<(usize, f64, f64)> {
    let pairs = measured.iter().zip(rates.all()).enumerate();
    pairs
        .filter_map(|(at, (measured, modelled))| measured.map(|m| (at, m, modelled)))
        .find(|(_, measured, modelled)| (modelled / measured - 1.0).abs() > 0.1)
}

fn text_of(name: &str) -> &'static str {
    builtin()
        .iter()
        .find(|(known, _)| *known == name)
        .unwrap()
        .1
}

#[test]
fn cards_of_a_row_have_the_rates_of_the_row() {
    let rows = rows();
    assert!(rows.len() >= 37);
    for (name, row, measured) in &rows {
        let known = measured.iter().flatten().count();
        assert!(known >= 1 && shipped(name).title().contains(row), "{name}");
        assert!(shipped(name).composed() || known >= 4, "{name}");
        let rates = Rates::of(name, text_of(name));
        println!("{name} {:.0?}", rates.all());
        assert_eq!(off(&rates, measured), None, "{name}, {row}: {rates:.0?}");
    }
    let named: BTreeSet<_> = rows.iter().map(|(name, ..)| *name).collect();
    for (name, text) in builtin().iter().filter(|(name, _)| *name != "class4-4gb") {
        let fitted = text.starts_with("# Made by `whichfs card fit`");
        let known = fitted || shipped(name).composed() || named.contains(name);
        assert!(known, "{name}: neither composed, nor of a row, nor fitted");
    }
}

/// What a profile of a row says of its error.
fn stated_error(row: &str, rates: &Rates, measured: &[Option<f64>; 5]) -> String {
    let pairs = measured.iter().zip(rates.all());
    let errors =
        pairs.filter_map(|(measured, modelled)| Some((modelled / (*measured)?).ln().abs()));
    let (known, worst) = errors.fold((0, 0.0), |(n, worst): (u32, f64), e| (n + 1, worst.max(e)));
    format!("at most {:.1} % of {known} rates of {row}", 100.0 * worst)
}

#[test]
fn every_card_states_its_fit_error_or_is_composed() {
    let mut wrong = Vec::new();
    for (name, row, measured) in rows() {
        let card = shipped(name);
        let expected = stated_error(row, &Rates::of(name, text_of(name)), &measured);
        if !card.composed() && card.fit_error() != Some(expected.as_str()) {
            wrong.push(format!("{name}: fit_error = \"{expected}\""));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let readme = include_str!("../../../cards/README.md");
    for (name, _) in builtin() {
        let card = shipped(name);
        let listed = readme
            .lines()
            .find(|line| line.contains(&format!("`{name}`")));
        let of_readme = listed.and_then(|line| line.split_once("fitted to "));
        match (card.basis(), card.fit_error()) {
            (Basis::Composed, None) | (Basis::Measured, Some(_)) => {}
            (Basis::Fitted, Some(error)) => {
                let (run, off) = of_readme.unwrap().1.split_once(": ").unwrap();
                let (off, _) = off.split_once(" off").unwrap();
                let alone = card.residual().map_or("", |_| "; its family alone by ");
                let expected = format!("{off} of the write points of {run}{alone}");
                assert!(error.starts_with(&expected), "{name}: {error}");
            }
            other => panic!("{name}: {other:?}"),
        }
    }
}

/// Rows of `cards.csv`, but those of families that are numbered throughout.
const ROWS: &str = "WB1 WB2 WB4 WB5 WB6 WB8 WB10 WB11 WB12 WB14 WB15 WB16 WB19 WB20 WB21 WB22 \
    WB27 WB29 WB30 WB32 BF1 FB0 PT1 PT2 LW1 PS1 LX1 PX1 CS7 NX1 SW1 PA1 PA2 PA3 GW1 BL2 EL1 AY1 \
    AY2 AY3 AU1 AU2 EM1 EM2 IS-SanDisk16GB IS-Lexar64GB IS-Lexar128GB IS-SanDisk128GB \
    IS-SanDisk64GB IS-Samsung128GB IS-Amazon64GB IS-SanDisk32GB IS-PNY27";

#[test]
fn every_row_of_the_data_is_a_card_or_has_its_reason() {
    let numbered = [("PD2-", 17), ("PD4-", 15), ("BM", 16), ("BH", 4)];
    let of_numbers = numbered
        .into_iter()
        .flat_map(|(prefix, most)| (1..=most).map(move |number| format!("{prefix}{number}")));
    let rows: Vec<String> = ROWS
        .split_whitespace()
        .map(str::to_owned)
        .chain(of_numbers)
        .collect();
    assert_eq!(rows.len(), 105);
    let readme = include_str!("../../../cards/README.md");
    let tables = readme.lines().filter(|line| line.starts_with('|'));
    let words: BTreeSet<&str> = tables
        .flat_map(|line| line.split(|c: char| !(c.is_alphanumeric() || c == '-')))
        .collect();
    let missing: Vec<&String> = rows
        .iter()
        .filter(|row| !words.contains(row.as_str()))
        .collect();
    assert!(
        missing.is_empty(),
        "neither shipped nor refused: {missing:?}"
    );
}

#[test]
fn a_rate_that_is_not_the_rows_is_noticed() {
    let (name, _, measured) = rows()[0];
    let text = text_of(name);
    assert_eq!(off(&Rates::of(name, text), &measured), None);
    for (section, key) in [
        ("[read]", "first_page_us"),
        ("[read]", "next_page_us"),
        ("[write]", "overhead_us"),
        ("[write]", "rate_bytes_per_s"),
    ] {
        let section = text.find(section).unwrap();
        let at = section
            + text[section..]
                .find(&format!("{key} = {{ value = "))
                .unwrap();
        let at = at + key.len() + " = { value = ".len();
        let wrong = format!("{}9{}", &text[..at], &text[at..]);
        assert!(off(&Rates::of(name, &wrong), &measured).is_some(), "{key}");
    }
}

/// What the marks in a card's name promise: MB/s written in order, 4 KiB reads and writes at
/// random a second [A12]. A2's 4000 and 2000 are promised with the queue: cards without it
/// are held to A1's.
fn promised(name: &str) -> [f64; 3] {
    let mut promised = [0.0_f64; 3];
    let marks: Vec<&str> = name.split('-').collect();
    for mark in &marks {
        let asked = match *mark {
            "class4" => [4.0, 0.0, 0.0],
            "class6" => [6.0, 0.0, 0.0],
            "class10" | "u1" => [10.0, 0.0, 0.0],
            "u3" => [30.0, 0.0, 0.0],
            "a2" if marks.contains(&"cq") => [10.0, 4000.0, 2000.0],
            "a1" | "a2" => [10.0, 1500.0, 500.0],
            _ => [0.0; 3],
        };
        for (most, asked) in promised.iter_mut().zip(asked) {
            *most = most.max(asked);
        }
    }
    promised
}

#[test]
fn cards_keep_what_their_marks_promise() {
    // Measured below their class: the rows have 9.0 and 8.9 MB/s.
    const BELOW: [&str; 2] = ["kingston-class10-16gb", "sony-class10-16gb"];
    // Its reader is what is between it and its class.
    const BEHIND: &str = "usb2-reader-a1-32gb";
    let mut checked = 0;
    for (name, toml) in builtin().iter().filter(|(name, _)| *name != BEHIND) {
        let promised = promised(name);
        if promised == [0.0; 3] {
            continue;
        }
        let rates = Rates::of(name, toml);
        let done = [rates.write, rates.random_read, rates.random_write];
        let kept = done
            .iter()
            .zip(promised)
            .all(|(does, asked)| *does >= asked);
        assert_eq!(kept, !BELOW.contains(name), "{name}: {rates:.0?}");
        checked += 1;
    }
    assert!(checked >= 20, "{checked}");
}

#[test]
fn typical_cards_come_in_the_order_of_their_classes() {
    let rates = |name: &str| Rates::of(name, text_of(name));
    let classes = [
        "class4-4gb",
        "class6-8gb",
        "class10-16gb",
        "a1-32gb",
        "u3-64gb",
    ];
    let writes = classes.map(|name| rates(name).write);
    assert!(writes.is_sorted(), "{writes:?}");
    let random =
        ["u1-32gb", "a1-32gb", "a2-64gb", "a2-cq-64gb"].map(|name| rates(name).random_write);
    assert!(random.is_sorted(), "{random:?}");
    let (alone, behind) = (rates("a1-32gb"), rates("usb2-reader-a1-32gb"));
    for (alone, behind) in alone.all().into_iter().zip(behind.all()) {
        assert!(alone > behind, "a reader makes nothing faster");
    }
    let (old, new) = (rates("emmc-8gb"), rates("emmc51-64gb"));
    assert!(new.read > old.read && new.write > old.write);
}

#[test]
fn cards_measured_inside_one_au_are_like_their_rows() {
    let check = |what: &str, modelled: f64, measured: f64, percent: f64| {
        let factor = (modelled / measured).max(measured / modelled);
        println!("{what}: modelled {modelled:.1}, measured {measured:.1}");
        assert!(
            factor <= 1.0 + percent / 100.0,
            "{what}: {modelled}, {measured}"
        );
    };
    let pt1 = Profile::parse("pt1", &cut("pt1", text_of("sandisk-ultra-64gb"))).unwrap();
    let mut card = Card::used(&pt1, 1);
    let mut iops = |block: u64| random(&mut card, 24 * MIB, 24 * MIB, block, 200, true);
    check("PT1 4K", iops(4 * KIB), 532.0, 10.0);
    check("PT1 16K", iops(16 * KIB), 378.0, 10.0);
    // PT1 wrote into its pSLC cache, which the profile leaves out.
    check("PT1 64K", iops(64 * KIB), 206.0, 20.0);
    let stream = sequential(&mut card, 1024 * MIB, 512 * KIB, 500, true);
    check("PT1 behind the cache, MB/s", stream, 15.9, 10.0);
    let pt2 = shipped("lexar-class10-16gb");
    let mut card = Card::used(&pt2, 1);
    let mut iops = |block| 1e3 / open_aus(&mut card, &pt2, 1, block, true);
    check("PT2 4K", iops(4 * KIB), 293.0, 30.0);
    check("PT2 16K", iops(16 * KIB), 277.0, 30.0);
    check("PT2 64K", iops(64 * KIB), 134.0, 40.0);
}

#[test]
fn titles_and_sources_do_not_change_what_decides() {
    let other = text()
        .replace("\"test\"", "\"elsewhere\"")
        .replace("tiny", "another");
    let (one, two) = (
        Profile::parse("a", &text()).unwrap(),
        Profile::parse("b", &other).unwrap(),
    );
    assert_eq!(one.canonical(), two.canonical());
    let faster = text().replace("erase_us = { value = 2000,", "erase_us = { value = 1999,");
    assert_ne!(
        one.canonical(),
        Profile::parse("a", &faster).unwrap().canonical()
    );
}

proptest! {
    #[test]
    fn draws_stay_within_the_uncertainty_and_leave_geometry_alone(seed: u64) {
        static PROFILES: LazyLock<Vec<Profile>> =
            LazyLock::new(|| builtin().iter().map(|(name, _)| shipped(name)).collect());
        for profile in PROFILES.iter() {
            let drawn = profile.draw(seed);
            prop_assert_eq!(&drawn, &profile.draw(seed));
            prop_assert_ne!(drawn.canonical(), profile.canonical());
            for (was, is) in profile.figures().zip(drawn.figures()) {
                if was.path.starts_with("geometry.") {
                    prop_assert_eq!(was, is);
                }
                let factor = 1.0 + was.uncertainty_percent as f64 / 100.0;
                let value = was.value as f64;
                let (least, most) = (value / factor - 1.0, value * factor + 1.0);
                prop_assert!((least..=most).contains(&(is.value as f64)), "{is:?}");
            }
        }
    }

    #[test]
    fn no_text_makes_the_reader_panic(cut in 0_usize..3000, insert in "[ -~\n]{0,8}") {
        let good = text();
        let cut = cut.min(good.len());
        let _ = Profile::parse("x", &format!("{}{insert}{}", &good[..cut], &good[cut..]));
        let _ = Profile::parse("x", &good[..cut]);
    }
}
