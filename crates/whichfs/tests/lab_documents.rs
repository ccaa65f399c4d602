//! The commands of the tutorial and the guides, run: those that end in `# card` on a modelled card
//! that is attached, those that end in `# board` not at all, all others as they stand. The lab
//! kernel and the agent are needed; for cards, root and FUSE.
#![allow(clippy::unwrap_used)]

#[path = "../../../tests/skip.rs"]
mod skip;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a line of a document needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs {
    Nothing,
    Root,
    Card,
    Board,
}

/// The lines of the `sh` blocks of a document, also of those within lists.
fn lines(text: &str) -> Vec<(Needs, String)> {
    let mut lines = Vec::new();
    let mut block: Option<String> = None;
    for line in text.lines() {
        let trimmed = line.trim();
        if let Some(language) = trimmed.strip_prefix("```") {
            block = match block {
                Some(_) => None,
                None => Some(language.to_owned()),
            };
        } else if block.as_deref() == Some("sh") && !trimmed.is_empty() {
            let (code, mark) = trimmed.rsplit_once(" # ").unwrap_or((trimmed, ""));
            let needs = match mark.trim() {
                "card" => Needs::Card,
                "board" => Needs::Board,
                _ if code.contains("sudo ") => Needs::Root,
                _ => Needs::Nothing,
            };
            lines.push((needs, code.trim_end().to_owned()));
        }
    }
    lines
}

#[test]
fn marks_say_what_a_line_needs() {
    let text = "1. Do:\n   ```sh\n   whichfs fs list\n   sudo ls\n   ls $DEV   # card\n   \
                ssh pi  # board\n   ```\n```toml\na = 1\n```\n";
    let found = lines(text);
    let expected = [
        (Needs::Nothing, "whichfs fs list"),
        (Needs::Root, "sudo ls"),
        (Needs::Card, "ls $DEV"),
        (Needs::Board, "ssh pi"),
    ];
    assert_eq!(
        found,
        expected.map(|(needs, code)| (needs, code.to_owned()))
    );
}

/// The documents whose commands are run.
fn documents() -> Vec<PathBuf> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let guides = std::fs::read_dir(docs.join("guides")).unwrap();
    let mut all: Vec<PathBuf> = guides.map(|entry| entry.unwrap().path()).collect();
    all.push(docs.join("tutorial.md"));
    all.sort();
    all
}

/// A home in which `whichfs` is this program.
fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let bin = home.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_whichfs"), bin.join("whichfs")).unwrap();
    home
}

/// A script that does `code`, naming each line, and ends at the first that fails.
fn script(code: &[String], before: &str) -> String {
    let mut text = format!("set -eu\nsudo() {{ \"$@\"; }}\n{before}\n");
    for line in code {
        let shown = line.replace('\'', r"'\''");
        text.push_str(&format!("echo '+ {shown}' >&2\n{line}\n"));
    }
    text
}

fn bash(home: &Path) -> Command {
    let mut command = Command::new("bash");
    let path = std::env::var("PATH").unwrap_or_default();
    command
        .current_dir(home)
        .env("PATH", format!("{}:{path}", home.join("bin").display()))
        .env("HOME", home)
        .env("XDG_DATA_HOME", home.join("data"))
        .env("XDG_CACHE_HOME", home.join("cache"))
        .stdin(Stdio::null());
    command
}

/// Runs the script `text`, which must end well.
fn run(document: &Path, home: &Path, text: &str) {
    let output = bash(home).arg("-c").arg(text).output().unwrap();
    let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    let name = document.file_name().unwrap().to_string_lossy();
    assert!(
        output.status.success(),
        "{name}: {}\n{out}\n{err}",
        output.status
    );
}

fn of(document: &Path, wanted: &[Needs]) -> Vec<String> {
    let text = std::fs::read_to_string(document).unwrap();
    let all = lines(&text).into_iter();
    all.filter(|(needs, _)| wanted.contains(needs))
        .map(|(_, code)| code)
        .collect()
}

fn can_attach() -> bool {
    let there = |path: &str| Path::new(path).exists();
    rustix::process::geteuid().is_root() && there("/dev/fuse") && there("/dev/loop-control")
}

#[test]
fn lab_documents_lines_without_a_mark_run_anywhere() {
    if ["WHICHFS_KERNEL", "WHICHFS_AGENT"]
        .iter()
        .any(|name| std::env::var_os(name).is_none())
    {
        return skip::skip("WHICHFS_KERNEL and WHICHFS_AGENT are not set (make test sets them)");
    }
    let mut wanted = vec![Needs::Nothing];
    wanted.extend(can_attach().then_some(Needs::Root));
    for document in documents() {
        let home = home();
        let code = of(&document, &wanted);
        assert!(!code.is_empty(), "{}", document.display());
        run(&document, home.path(), &script(&code, ""));
    }
}

#[test]
fn lab_documents_lines_for_a_card_run_on_a_modelled_one() {
    if std::env::var_os("WHICHFS_KERNEL").is_none() || !can_attach() {
        return skip::skip("WHICHFS_KERNEL, root, FUSE and loop devices are needed");
    }
    let mut ran = 0;
    for document in documents() {
        let code = of(&document, &[Needs::Card]);
        if code.is_empty() {
            continue;
        }
        ran += code.len();
        let home = home();
        let id = "DEV=$dev PART=${dev}p1\n\
                  asked=$(whichfs format $DEV --fs ext4 --dry-run)\n\
                  eval \"ID=$(echo \"$asked\" | sed -n 's/.*--destroy //p')\"";
        std::fs::write(home.path().join("lines"), script(&code, id)).unwrap();
        let attach = "whichfs card attach a1-32gb --size 512 --speed max --run 'bash lines'";
        run(&document, home.path(), attach);
    }
    assert!(ran >= 10, "{ran} lines");
}
