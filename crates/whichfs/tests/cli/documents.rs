//! The commands of README and reference that need neither device nor lab, run as they stand. Those
//! of the tutorial and the guides are run by `lab_documents`; that all others are taken by the
//! program `cli::documents` tests.

use crate::sandbox::Sandbox;
use crate::skip::skip;
use std::path::{Path, PathBuf};

/// What a command needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs {
    /// A device, a board, root: its placeholder says so.
    Hardware,
    /// The lab, or what an earlier command of the lab left.
    Lab,
    Nothing,
}

/// The calls in the `sh` blocks of a document, without comments.
fn calls(text: &str) -> Vec<String> {
    let mut calls = Vec::new();
    let mut inside = None;
    let joined = text.replace("\\\n", " ");
    for line in joined.lines().map(str::trim) {
        if let Some(language) = line.strip_prefix("```") {
            inside = match inside {
                Some(_) => None,
                None => Some(language == "sh"),
            };
        } else if inside == Some(true) {
            let code = line.strip_prefix("sudo ").unwrap_or(line);
            let call = code.strip_prefix("whichfs ");
            calls.extend(
                call.map(|call| call.split("  #").next().unwrap_or(call).trim().to_owned()),
            );
        }
    }
    calls
}

fn needs(call: &str) -> Needs {
    let words: Vec<&str> = call.split_whitespace().collect();
    let hardware = |word: &&str| {
        ["/dev/", "ssh://", "/media/", "$DEV"]
            .iter()
            .any(|place| word.contains(place))
    };
    let command: Vec<&str> = words.iter().take(2).copied().collect();
    match command[..] {
        _ if words.iter().any(hardware) => Needs::Hardware,
        ["card", "attach"] => Needs::Hardware,
        [
            "choose" | "crash" | "lab" | "report" | "trial" | "doctor",
            second,
        ] if second != "faults" => Needs::Lab,
        ["choose" | "report" | "doctor"] => Needs::Lab,
        ["study", "run" | "claims"] | ["card", "rank" | "fit"] | ["probe", _] => Needs::Lab,
        ["image", _] if words.contains(&"exfat") => Needs::Lab,
        _ => Needs::Nothing,
    }
}

#[test]
fn what_a_command_needs_is_seen() {
    let text = "```sh\nsudo whichfs check /dev/mmcblk0\nwhichfs fs list   # all\n```\n\
                ```\nwhichfs fs why\n```\n`whichfs doctor`\n";
    assert_eq!(calls(text), ["check /dev/mmcblk0", "fs list"]);
    for (call, expected) in [
        ("check /dev/mmcblk0", Needs::Hardware),
        ("choose", Needs::Lab),
        ("choose --for logger", Needs::Lab),
        ("crash faults", Needs::Nothing),
        ("study run limits", Needs::Lab),
        ("study list", Needs::Nothing),
        ("check sdcard.img", Needs::Nothing),
    ] {
        assert_eq!(needs(call), expected, "{call}");
    }
}

fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = std::fs::read_dir(root.join("docs")).unwrap();
    let mut all: Vec<PathBuf> = docs.map(|entry| entry.unwrap().path()).collect();
    all.push(root.join("README.md"));
    // The one is run elsewhere, the other is made of the help texts.
    let left_out = ["tutorial.md", "commands.md"];
    let is_one = |path: &Path| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.ends_with(".md") && !left_out.contains(&&*name)
    };
    all.retain(|path| is_one(path));
    all.sort();
    all
}

/// A home with the files that the documents name.
fn home() -> Sandbox {
    let home = Sandbox::on_disk();
    for directory in ["rootfs/etc", "files"] {
        std::fs::create_dir_all(home.path().join(directory)).unwrap();
    }
    home.file("rootfs/etc/hostname", "card\n");
    let card = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cards/a1-32gb.toml");
    home.file("mycard.toml", std::fs::read(card).unwrap());
    let image = [
        "format",
        "sdcard.img",
        "--size",
        "1G",
        "--fs",
        "ext4",
        "--card",
        "a1-32gb",
    ];
    let made = home.run(&image);
    assert_eq!(made.code, 0, "{}", made.stderr);
    home
}

#[test]
fn commands_that_need_nothing_do_what_the_documents_say() {
    let tools = [
        "/usr/sbin/sfdisk",
        "/usr/sbin/mke2fs",
        "/sbin/sfdisk",
        "/sbin/mke2fs",
    ];
    if tools.iter().filter(|tool| Path::new(tool).exists()).count() < 2 {
        return skip("sfdisk and mke2fs are not installed");
    }
    let mut done = 0;
    for document in documents() {
        let text = std::fs::read_to_string(&document).unwrap();
        let calls = calls(&text).into_iter();
        let calls: Vec<String> = calls.filter(|call| needs(call) == Needs::Nothing).collect();
        if calls.is_empty() {
            continue;
        }
        let home = home();
        for call in &calls {
            let words: Vec<&str> = call.split_whitespace().collect();
            let run = home.run(&words);
            let name = document.file_name().unwrap().to_string_lossy();
            // 1 is an answer, too: no, why not, not aligned to 8 MiB.
            let answered = matches!(run.code, 0 | 1) && !run.stdout.is_empty();
            assert!(
                answered,
                "{name}: whichfs {call}: {} {}",
                run.code, run.stderr
            );
            done += 1;
        }
    }
    assert!(done >= 20, "only {done} commands were run");
}
