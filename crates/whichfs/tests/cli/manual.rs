//! Man pages, completions and the reference of all commands.

use super::sandbox::Sandbox;
use std::path::Path;
use std::process::Command;

#[test]
fn the_reference_is_that_of_this_program() {
    let made = Sandbox::new().run(&["manual", "reference"]).stdout;
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/commands.md");
    let kept = std::fs::read_to_string(kept).unwrap();
    let differs = made
        .lines()
        .zip(kept.lines())
        .find(|(made, kept)| made != kept);
    assert_eq!(differs, None, "docs/commands.md is old: make reference");
    assert!(made == kept, "docs/commands.md is old: make reference");
}

#[test]
fn every_command_has_a_page_with_what_its_help_says() {
    let sandbox = Sandbox::new();
    let out = sandbox.path().join("man/man1");
    sandbox
        .run(&["manual", "pages", "--out", out.to_str().unwrap()])
        .succeeds();
    let pages: Vec<_> = std::fs::read_dir(&out)
        .unwrap()
        .map(|page| page.unwrap())
        .collect();
    let reference = sandbox.run(&["manual", "reference"]).stdout;
    let commands = reference.lines().filter(|line| line.starts_with("## "));
    assert_eq!(commands.count(), pages.len());
    for page in pages {
        let text = std::fs::read_to_string(page.path()).unwrap();
        for section in [".TH", ".SH NAME", ".SH SYNOPSIS"] {
            assert!(
                text.contains(section),
                "{section} in {}",
                page.path().display()
            );
        }
    }
    let crash = std::fs::read_to_string(out.join("whichfs-crash-run.1")).unwrap();
    for word in ["flush\\-lies", "Exit status", "\\-\\-during"] {
        assert!(crash.contains(word), "{word}");
    }
}

#[test]
fn completions_are_programs_of_their_shell() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = sandbox.run(&["manual", "completions", shell]);
        assert!(run.stdout.contains("rank"), "{shell}");
    }
    let bash = sandbox.run(&["manual", "completions", "bash"]).stdout;
    let file = sandbox.file("completions", &bash);
    let read = Command::new("bash").arg("-n").arg(file).status().unwrap();
    assert!(read.success());
    sandbox
        .run(&["manual", "completions", "csh"])
        .fails(2, &["csh", "bash", "zsh"]);
}
