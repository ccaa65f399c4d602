//! Card profiles of the user: a bad figure is named with file, line and what is legal.

use super::sandbox::{Run, Sandbox};

const GOOD: &str = include_str!("../../../../cards/class4-4gb.toml");

/// The line, from 1, on which `key` stands in `text`.
fn line_of(text: &str, key: &str) -> usize {
    text.lines().position(|line| line.starts_with(key)).unwrap() + 1
}

/// `GOOD` with the value of `key` replaced.
fn with(key: &str, value: &str) -> String {
    let line = GOOD.lines().nth(line_of(GOOD, key) - 1).unwrap();
    let (head, tail) = line.split_once("value = ").unwrap();
    let (_, tail) = tail.split_once(',').unwrap();
    GOOD.replace(line, &format!("{head}value = {value},{tail}"))
}

fn show(text: &str) -> Run {
    let sandbox = Sandbox::new();
    let path = sandbox.file("mine.toml", text);
    sandbox.run(&["card", "show", path.to_str().unwrap()])
}

#[test]
fn a_good_profile_is_taken() {
    let run = show(GOOD);
    let text = run.succeeds();
    assert!(
        text.starts_with("mine: ") && text.contains("geometry.au_bytes"),
        "{text}"
    );
}

#[test]
fn a_negative_absurd_or_textual_figure_is_named_with_file_line_and_range() {
    for (key, value) in [
        ("au_bytes", "-4194304"),
        ("au_bytes", "4"),
        ("capacity_bytes", "999999999999999"),
        ("page_bytes", "\"16 KiB\""),
        ("page_bytes", "1.5"),
        ("open_aus_linear", "0"),
        ("erase_us", "99999999999"),
    ] {
        let run = show(&with(key, value));
        let place = format!("mine.toml:{}:", line_of(GOOD, key));
        run.fails(2, &[&place, key, value, "whole number from"]);
    }
}

#[test]
fn a_missing_figure_is_named_with_its_section_and_range() {
    let line = GOOD.lines().nth(line_of(GOOD, "erase_us") - 1).unwrap();
    let text = GOOD.replace(&format!("{line}\n"), "");
    let place = format!("mine.toml:{}:", line_of(&text, "[copy]"));
    show(&text).fails(
        2,
        &[&place, "copy.erase_us", "nothing", "whole number from"],
    );
}

#[test]
fn a_figure_without_source_and_a_misspelt_key_are_refused() {
    let line = GOOD.lines().nth(line_of(GOOD, "erase_us") - 1).unwrap();
    let place = format!("mine.toml:{}:", line_of(GOOD, "erase_us"));
    let unsourced = GOOD.replace(line, "erase_us = { value = 3_000 }");
    show(&unsourced).fails(2, &[&place, "source"]);
    let misspelt = GOOD.replace("erase_us", "erase_ms");
    show(&misspelt).fails(2, &[&place, "erase_ms", "erase_us"]);
}

#[test]
fn figures_that_contradict_each_other_are_refused() {
    let place = format!("mine.toml:{}:", line_of(GOOD, "au_bytes"));
    show(&with("au_bytes", "4194816")).fails(2, &[&place, "geometry.page_bytes"]);
}

#[test]
fn what_is_no_profile_is_refused() {
    show("").fails(2, &["mine.toml:"]);
    show("title = \"unfinished").fails(2, &["mine.toml:1:"]);
    let sandbox = Sandbox::new();
    sandbox
        .run(&["card", "show", "./none.toml"])
        .fails(2, &["./none.toml", "No such file"]);
    sandbox.run(&["card", "show", "./"]).fails(2, &["./"]);
    let path = sandbox.file("binary.toml", [0xff, 0xfe, 0]);
    sandbox
        .run(&["choose", "--card", path.to_str().unwrap()])
        .fails(2, &["binary.toml"]);
}

#[test]
fn a_card_too_small_for_a_filesystem_is_the_answer_no() {
    let sandbox = Sandbox::new();
    let path = sandbox.file("small.toml", with("capacity_bytes", "33_554_432"));
    let card = path.to_str().unwrap();
    let run = sandbox.run(&["fs", "show", "xfs", "--card", card]);
    assert_eq!((run.code, run.stderr.as_str()), (1, ""));
    assert!(run.stdout.contains("Not for small:"), "{}", run.stdout);
    let run = sandbox.run(&["fs", "show", "xfs", "--card", card, "--json"]);
    let document: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(run.code, 1);
    assert!(document["unfit"]["reason"].is_string() && document["commands"].is_null());
}
