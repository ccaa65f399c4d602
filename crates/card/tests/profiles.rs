//! Profiles: the shipped ones, every mistake in a file, and draws.
#![allow(clippy::unwrap_used)]

mod common;

use common::Tiny;
use proptest::prelude::*;
use whichfs_card::{Family, Interface, Profile, builtin};

fn text() -> String {
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
        &["unknown", "page_bytes"],
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
        &["unknown", "copy"],
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
        assert!(profile.sources().len() > 8, "{name}");
        assert!(!profile.title().is_empty());
        assert_eq!(profile.has_cache(), profile.interface() == Interface::Emmc);
        assert_eq!(
            profile.discard_supported(),
            profile.interface() != Interface::Usb
        );
    }
    let default = common::shipped("a1-32gb");
    assert!(default.composed() && default.family() == Family::PageMap);
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
        for (name, _) in builtin() {
            let profile = common::shipped(name);
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
