//! The commands of README, tutorials, guides and of all other documents (`docs/tasks.md` has most),
//! run: those for a card on a modelled one that is attached, those for a board not at all, all
//! others here. Those of tutorials and guides run as they stand, those of the other documents are
//! made short by `rules.rs`. The lab kernel and the agent are needed; for cards, root and FUSE.
#![allow(clippy::unwrap_used)]

mod homes;
mod lines;
mod rules;
use crate::skip;

use homes::Home;
use lines::{Line, Needs, documents};
use rules::{RULES, Rule};
use std::collections::BTreeSet;
use std::path::Path;

/// The document with most commands.
const TASKS: &str = "tasks.md";

/// A function that whichfs calls go through where a mounted card is meant.
const ON_A_CARD: &str = r#"
DEV=$dev PART=${dev}p1 MEDIA=$HOME/media
asked=$(whichfs format $DEV --fs ext4 --dry-run)
eval "ID=$(echo "$asked" | sed -n 's/.*--destroy //p')"
mounted() {
    whichfs format $DEV --fs ext4 --destroy "$ID" >/dev/null
    mkdir -p $MEDIA && mount $PART $MEDIA
    if "$@"; then status=0; else status=$?; fi
    umount $MEDIA
    return $status
}
"#;

/// What stands for a card, and for its name.
fn places_of_a_card() -> Vec<(&'static str, String)> {
    [
        (
            "sudo whichfs study run ./mine.toml --on /media/card",
            "mounted whichfs study run ./mine.toml --on \"$MEDIA\"",
        ),
        ("/dev/sdX", "$DEV"),
        ("/dev/mmcblk0", "$DEV"),
        ("--destroy ID", "--destroy \"$ID\""),
    ]
    .map(|(name, there)| (name, there.to_owned()))
    .to_vec()
}

/// Whether a document runs as it stands.
fn as_it_stands(name: &str) -> bool {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    ["tutorials", "guides"]
        .iter()
        .any(|folder| docs.join(folder).join(name).exists())
}

/// Those that run as they stand, or the others.
fn those(as_they_stand: bool) -> Vec<(String, Vec<Line>)> {
    let mut all = documents();
    all.retain(|(name, _)| as_it_stands(name) == as_they_stand);
    all
}

fn rules(name: &str) -> &'static [Rule] {
    if as_it_stands(name) { &[] } else { RULES }
}

/// A script that does `lines`, naming each, and ends at the first that fails. Each block is a shell
/// of its own. The same command is done once.
fn script(lines: &[(usize, String)], before: &str) -> String {
    let mut text = format!("set -eu\nsudo() {{ \"$@\"; }}\n{before}\n(\n");
    let (mut done, mut last) = (BTreeSet::new(), None);
    for (block, code) in lines {
        if last.is_some_and(|last| last != *block) {
            text.push_str(")\n(\n");
        }
        last = Some(*block);
        if done.insert(code) {
            let shown = code.replace('\'', r"'\''");
            text.push_str(&format!(
                "echo \"+ ${{SECONDS}} s\" '{shown}' >&2\n{code}\n"
            ));
        }
    }
    text.push_str(":\n)\n");
    text
}

/// What is run of `lines`: those that need one of `wanted`.
fn of(
    name: &str,
    lines: &[Line],
    wanted: &[Needs],
    places: &[(&str, String)],
) -> Vec<(usize, String)> {
    let lines = lines.iter().filter(|line| wanted.contains(&line.needs));
    lines
        .map(|line| (line.block, rules::of(rules(name), &line.code, places).1))
        .collect()
}

fn can_attach() -> bool {
    let there = |path: &str| Path::new(path).exists();
    rustix::process::geteuid().is_root() && there("/dev/fuse") && there("/dev/loop-control")
}

/// Whether guests can be run; says why not.
fn can_run() -> bool {
    let there = ["WHICHFS_KERNEL", "WHICHFS_AGENT", "WHICHFS_USERLAND"]
        .iter()
        .all(|name| std::env::var_os(name).is_some());
    if !there {
        skip::skip("WHICHFS_KERNEL and WHICHFS_AGENT are not set (make test sets them)");
    }
    there
}

/// Runs the lines of `documents` without a mark, one document after the other in `home`; how many.
fn run_unmarked(documents: &[(String, Vec<Line>)], home: &Home) -> usize {
    let mut wanted = vec![Needs::Nothing];
    wanted.extend(can_attach().then_some(Needs::Root));
    let mut ran = 0;
    for (name, lines) in documents {
        let places = home.prepare(name, lines);
        let code = of(name, lines, &wanted, &places);
        let done = home.run(&script(&code, ""));
        done.unwrap_or_else(|why| panic!("{name}: {why}"));
        ran += code.len();
    }
    ran
}

#[test]
fn lab_documents_tutorials_and_guides_run_as_they_stand() {
    if can_run() {
        for document in those(true) {
            assert!(run_unmarked(std::slice::from_ref(&document), &Home::new()) > 0);
        }
    }
}

#[test]
fn lab_documents_the_commands_by_task_run() {
    if can_run() {
        let mut tasks = those(false);
        tasks.retain(|(name, _)| name == TASKS);
        assert!(run_unmarked(&tasks, &Home::new()) >= 40);
    }
}

#[test]
fn lab_documents_the_commands_of_all_other_documents_run() {
    if can_run() {
        let mut others = those(false);
        others.retain(|(name, _)| name != TASKS);
        assert!(run_unmarked(&others, &Home::new()) >= 25);
    }
}

#[test]
fn lab_documents_lines_for_a_card_run_on_a_modelled_one() {
    if !can_run() || !can_attach() {
        return skip::skip("root, FUSE and loop devices are needed");
    }
    let mut ran = 0;
    for (name, lines) in documents() {
        let home = Home::new();
        let mut places = home.prepare(&name, &lines);
        places.extend(places_of_a_card());
        let code = of(&name, &lines, &[Needs::Card], &places);
        if code.is_empty() {
            continue;
        }
        ran += code.len();
        std::fs::write(home.path().join("lines"), script(&code, ON_A_CARD)).unwrap();
        let attach = "whichfs card attach a1-32gb --size 512M --speed max --run 'bash lines'";
        home.run(attach)
            .unwrap_or_else(|why| panic!("{name}: {why}"));
    }
    assert!(ran >= 25, "{ran} lines");
}

#[test]
fn a_command_that_fails_is_told_with_its_document() {
    let home = Home::new();
    let text = "```sh\nwhichfs fs list\nwhichfs fs show nosuch  # a card\nwhichfs card list\n```\n";
    let lines = lines::lines(text).unwrap();
    let code = of("README.md", &lines, &[Needs::Nothing], &[]);
    let why = home.run(&script(&code, "")).unwrap_err();
    assert!(
        why.contains("whichfs fs show nosuch") && !why.contains("card list"),
        "{why}"
    );
    let home = Home::new();
    assert_eq!(home.run(&script(&code[..1], "")), Ok(()));
}

/// Rules that are of no line of `documents`.
fn idle<'a>(rules: &'a [Rule], documents: &[(String, Vec<Line>)]) -> Vec<&'a str> {
    let mut idle: Vec<&Rule> = rules.iter().collect();
    let run = [Needs::Nothing, Needs::Root, Needs::Card];
    let lines = documents.iter().flat_map(|(_, lines)| lines);
    for line in lines.filter(|line| run.contains(&line.needs)) {
        let (rule, _) = rules::of(rules, &line.code, &[]);
        idle.retain(|idle| rule.is_none_or(|rule| rule.begins != idle.begins));
    }
    idle.into_iter().map(|rule| rule.begins).collect()
}

#[test]
fn every_rule_is_of_a_line_that_runs() {
    assert_eq!(idle(RULES, &those(false)), [""; 0]);
    let planted = vec![("README.md".to_owned(), Vec::new())];
    assert_eq!(idle(RULES, &planted).len(), RULES.len());
}

#[test]
fn readers_are_told_how_lines_that_need_hardware_are_marked() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let tasks = std::fs::read_to_string(docs.join(TASKS)).unwrap();
    for mark in ["/dev/…", "ssh://", "/media/", "# card", "# board"] {
        assert!(
            tasks.contains(&format!("`{mark}")),
            "{TASKS} does not tell of {mark}"
        );
    }
}
