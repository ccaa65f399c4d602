//! What commands print, to the letter: standard output, and the exit status. A change of it is a
//! change for users: it belongs into CHANGELOG.md. To take over what is printed now:
//! `WHICHFS_GOLDEN=write cargo test -p whichfs golden`.

use super::sandbox::Sandbox;
use std::path::PathBuf;

/// Name of the file, and the command.
pub const COMMANDS: [(&str, &str); 41] = [
    ("card-list.txt", "card list"),
    ("card-show.txt", "card show class4-4gb"),
    ("fs-list.txt", "fs list"),
    ("fs-show.txt", "fs show f2fs --card emmc-8gb"),
    ("fs-compare.txt", "fs compare ext4 f2fs"),
    ("fs-why.txt", "fs why zfs"),
    ("workload-show.txt", "workload show logger"),
    ("board-list.txt", "board list"),
    ("crash-faults.txt", "crash faults"),
    ("study-show.txt", "study show alignment"),
    ("probe-modelled.txt", "probe class4-4gb --write=destroy"),
    (
        "probe-modelled-all.txt",
        "probe class4-4gb --write=destroy -v",
    ),
    ("card-list.json", "card list --json"),
    ("card-show.json", "card show a1-32gb --json"),
    ("card-show-emmc.json", "card show emmc-8gb --json"),
    ("card-curves.json", "card curves class4-4gb --json"),
    ("card-life.json", "card life class4-4gb --per-day 2G --json"),
    (
        "probe-modelled.json",
        "probe class4-4gb --write=destroy --json",
    ),
    ("probe-reads.json", "probe a1-32gb --json"),
    ("fs-list.json", "fs list --json"),
    ("fs-show-ext4.json", "fs show ext4 --card class4-4gb --json"),
    ("fs-show-btrfs.json", "fs show btrfs --card a1-32gb --json"),
    ("fs-show-squashfs.json", "fs show squashfs-zstd --json"),
    ("fs-show-ntfs3.json", "fs show ntfs3 --card emmc-8gb --json"),
    ("fs-compare.json", "fs compare ext4 f2fs --json"),
    ("fs-why.json", "fs why zfs --json"),
    ("fs-why-candidate.json", "fs why ext4 --json"),
    ("workload-list.json", "workload list --json"),
    ("workload-show-rootfs.json", "workload show rootfs --json"),
    ("workload-show-fio.json", "workload show fio --json"),
    ("workload-show-sqlite.json", "workload show sqlite --json"),
    ("board-list.json", "board list --json"),
    ("board-show.json", "board show raspberry-pi-1 --json"),
    ("board-show-bone.json", "board show beaglebone-black --json"),
    ("crash-faults.json", "crash faults --json"),
    ("study-show.json", "study show limits --json"),
    ("study-show-crash.json", "study show sync-mounts --json"),
    (
        "study-dry-run.json",
        "study run pandora --quick --dry-run --json",
    ),
    ("unknown-card.txt", "choose --card nonsense --json"),
    ("unknown-fs.txt", "fs show nonsense --json"),
    ("no-kernel.txt", "lab kernel --json"),
];

/// What a run printed: all of a failure, standard output of anything else.
fn printed(command: &str) -> String {
    let sandbox = Sandbox::new();
    let words: Vec<&str> = command.split(' ').collect();
    let run = sandbox.run(&words);
    let said = match run.stdout.is_empty() {
        true => &run.stderr,
        false => &run.stdout,
    };
    let home = sandbox.path().display().to_string();
    format!("exit status {}\n{}", run.code, said.replace(&home, "HOME"))
}

/// The first line in which `old` and `new` differ.
fn difference(old: &str, new: &str) -> String {
    let mut both = old.lines().zip(new.lines()).enumerate();
    let found = both.find(|(_, (old, new))| old != new);
    found.map_or("one is longer".to_owned(), |(at, (old, new))| {
        format!("line {}:\n  was {old}\n  is  {new}", at + 1)
    })
}

#[test]
fn what_commands_print_is_what_it_was() {
    let golden = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/commands");
    let writes = std::env::var_os("WHICHFS_GOLDEN").is_some_and(|how| how == "write");
    let mut changed = Vec::new();
    for (name, command) in COMMANDS {
        let new = printed(command);
        let path = golden.join(name);
        if writes {
            std::fs::write(&path, &new).unwrap();
        }
        let old = std::fs::read_to_string(&path).unwrap_or_default();
        if old != new {
            changed.push(format!("whichfs {command}: {}", difference(&old, &new)));
        }
    }
    assert!(changed.is_empty(), "{}", changed.join("\n"));
}

#[test]
fn a_changed_line_is_named() {
    assert_eq!(difference("a\nb\n", "a\nc\n"), "line 2:\n  was b\n  is  c");
    assert_eq!(difference("a\n", "a\nb\n"), "one is longer");
}
