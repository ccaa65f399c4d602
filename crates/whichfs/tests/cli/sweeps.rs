//! Sweeps of block sizes, side by side in `report`; lives under a filesystem, as far as no lab is
//! needed.

use super::sandbox::{Run, Sandbox};
use serde_json::Value;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// The cells of a sweep in one order and direction.
fn cells<'v>(sweep: &'v Value, order: &str, direction: &str) -> Vec<&'v Value> {
    let all = sweep["cells"].as_array().unwrap().iter();
    all.filter(|cell| cell["order"] == order && cell["direction"] == direction)
        .collect()
}

#[test]
fn a_sweep_has_each_block_size_and_writes_only_where_that_is_allowed() {
    let sandbox = Sandbox::new();
    let read = json(
        sandbox
            .run(&["probe", "a1-32gb", "--sweep", "--json"])
            .succeeds(),
    );
    assert_eq!(
        (&read["document"], &read["write_bytes"]),
        (&"probe --sweep".into(), &0.into())
    );
    assert_eq!(
        read["cells"].as_array().unwrap().len(),
        36,
        "reads in two orders"
    );
    let sizes: Vec<u64> = cells(&read, "random", "read")
        .iter()
        .map(|cell| cell["block_bytes"].as_u64().unwrap())
        .collect();
    assert_eq!((sizes.len(), sizes[0], sizes[17]), (18, 512, 64 << 20));
    let arguments = ["probe", "class4-4gb", "--write=destroy", "--sweep"];
    let written = json(
        sandbox
            .run(&[&arguments[..], &["--json"]].concat())
            .succeeds(),
    );
    assert!(
        written["write_bytes"].as_u64().unwrap() > 1 << 20,
        "{written}"
    );
    let rate = |order: &str| {
        let of = cells(&written, order, "write");
        let small = of.iter().find(|cell| cell["block_bytes"] == 4096);
        small.unwrap()["mb_s"].as_f64().unwrap()
    };
    assert!(
        rate("sequential") > 2.0 * rate("random"),
        "a card of log blocks"
    );
    let csv = sandbox.run(&[&arguments[..], &["--csv"]].concat());
    let csv = csv.succeeds();
    assert_eq!(csv.lines().count(), 1 + 72);
    assert!(
        csv.starts_with("target,block_bytes,order,direction,"),
        "{csv}"
    );
    let text = sandbox.run(&["probe", "a1-32gb", "--sweep"]);
    assert!(
        text.code == 0 && text.stdout.contains("read at random"),
        "{}{}",
        text.stdout,
        text.stderr
    );
}

#[test]
fn a_sweep_that_asks_for_something_else_too_is_refused() {
    let sandbox = Sandbox::new();
    let sweep = |more: &[&str]| sandbox.run(&[&["probe", "a1-32gb"], more].concat());
    sweep(&["--sweep", "--for", "rootfs"]).fails(2, &["--for", "--sweep"]);
    sweep(&["--sweep", "--save", "x.toml"]).fails(2, &["--save", "--sweep"]);
    sweep(&["--csv"]).fails(2, &["--sweep"]);
    sweep(&["--sweep", "--csv", "--json"]).fails(2, &["--csv", "--json"]);
}

/// `whichfs report` of files.
fn report(sandbox: &Sandbox, files: &[&str], more: &[&str]) -> Run {
    sandbox.run(&[&["report"], files, more].concat())
}

#[test]
fn a_report_sets_one_to_eight_sweeps_side_by_side() {
    let sandbox = Sandbox::new();
    for (card, file) in [("a1-32gb", "a.json"), ("class4-4gb", "c.json")] {
        let sweep = sandbox.run(&["probe", card, "--sweep", "--json"]);
        sandbox.file(file, sweep.succeeds());
    }
    let one = report(&sandbox, &["a.json"], &[]);
    assert!(
        one.succeeds().starts_with("MB/s read in order"),
        "{}",
        one.stdout
    );
    let two = report(&sandbox, &["a.json", "c.json"], &[]);
    let line = two
        .succeeds()
        .lines()
        .find(|line| line.starts_with("4 KiB"));
    assert_eq!(
        line.unwrap().split_whitespace().count(),
        4,
        "{}",
        two.stdout
    );
    let eight = ["a.json"; 8];
    let text = report(&sandbox, &eight, &[]);
    let lines: Vec<&str> = text.succeeds().lines().collect();
    assert_eq!(
        (lines[0], lines[7]),
        ("1: a1-32gb", "8: a1-32gb #8"),
        "no name is broken"
    );
    assert!(
        lines.iter().all(|line| line.chars().count() <= 80),
        "{}",
        text.stdout
    );
    let document = json(report(&sandbox, &eight, &["--json"]).succeeds());
    assert_eq!(document["sweeps"].as_array().unwrap().len(), 8);
    let markdown = report(&sandbox, &["a.json", "c.json"], &["--markdown"]);
    assert!(
        markdown
            .succeeds()
            .contains("| block | a1-32gb | class4-4gb |"),
        "{}",
        markdown.stdout
    );
    report(&sandbox, &["a.json", "c.json"], &["--html", "cards.html"]);
    let page = std::fs::read_to_string(sandbox.path().join("cards.html")).unwrap();
    assert!(page.contains("class4-4gb"));

    report(&sandbox, &["a.json"; 9], &[]).fails(2, &["at most 8", "name fewer"]);
    report(&sandbox, &["a.json", "none.json"], &[]).fails(2, &["none.json", "name sweeps alone"]);
    report(&sandbox, &["a.json"], &["--fail-over", "5%"]).fails(2, &["--fail-over", "sweeps"]);
}

/// A probe measures what a card is, not rates that can be compared: the remedy is a sweep.
#[test]
fn a_report_of_a_probe_says_what_to_name_instead() {
    let sandbox = Sandbox::new();
    let probe = sandbox.run(&["probe", "class4-4gb", "--json"]);
    sandbox.file("p.json", probe.succeeds());
    let sweep = sandbox.run(&["probe", "class4-4gb", "--sweep", "--json"]);
    sandbox.file("s.json", sweep.succeeds());
    let remedy = &["p.json", "document of `whichfs probe`", "probe --sweep"];
    for files in [
        &["p.json"][..],
        &["p.json", "p.json"],
        &["s.json", "p.json"],
    ] {
        report(&sandbox, files, &[]).fails(2, remedy);
    }
    sandbox.file(
        "results.csv",
        "card,candidate,workload,metric,value,unit,lower_is_better,seed\n",
    );
    let mixed = report(&sandbox, &["results.csv", "p.json"], &[]);
    assert_eq!(mixed.code, 2, "{}", mixed.stderr);
}

#[test]
fn a_life_under_a_filesystem_is_checked_before_the_lab_is_asked() {
    let sandbox = Sandbox::new();
    let life = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        sandbox.run(&[&["card", "life", "a1-32gb"], &words[..]].concat())
    };
    life("--seed 2").fails(2, &["--per-day"]);
    life("--per-day 1G --for logger").fails(2, &["--fs"]);
    life("--times-a-day 3").fails(2, &["--fs"]);
    life("--fs ext4 --times-a-day 3 --per-day 1G").fails(2, &["cannot be used with"]);
    life("--fs ext4 --times-a-day 0").fails(2, &["1..=100000"]);
    life("--fs ext4 --per-day 1G --block 4K").fails(2, &["cannot be used with"]);
    life("--fs ext5 --per-day 1G").fails(2, &["--fs", "did you mean", "ext4"]);
    life("--fs ext4 --for lodger --per-day 1G").fails(2, &["--for", "logger"]);
    let readonly = life("--fs ext4 --for rootfs-readonly --per-day 1G");
    readonly.fails(
        2,
        &["--for", "in the long run", "take one that does, as logger"],
    );
    // Once a day, where nothing else is said.
    for line in [
        "--fs ext4 --for logger",
        "--fs ext4 --for logger --times-a-day 24",
    ] {
        life(line).fails(3, &["no lab kernel", "make kernel"]);
    }
}
