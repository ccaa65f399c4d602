//! whichfs for Arm boards under qemu-user: what needs no lab says the same as on x86-64, also of
//! places behind 4 GiB. Loop devices (root), qemu-user, the tools of ext4 and FAT, and the programs
//! (`make boards`) are needed.
#![allow(clippy::unwrap_used)]

use crate::skip;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Processors, and what runs their programs.
const BOARDS: [(&str, &str); 2] = [("aarch64", "qemu-aarch64"), ("armv7", "qemu-arm")];
/// A card with partitions that begin behind 4 GiB.
const SIZE: &str = "16G";

/// A build of whichfs with a home of its own.
struct Whichfs {
    words: Vec<PathBuf>,
    home: tempfile::TempDir,
}

impl Whichfs {
    fn of(words: &[&Path]) -> Whichfs {
        Whichfs {
            words: words.iter().map(PathBuf::from).collect(),
            home: tempfile::tempdir().unwrap(),
        }
    }

    /// The one of this machine.
    fn own() -> Whichfs {
        Whichfs::of(&[Path::new(env!("CARGO_BIN_EXE_whichfs"))])
    }

    /// The builds for Arm boards, each with the name of its processor. One that is not built, or
    /// that nothing here can run, is left out with a message.
    fn for_boards() -> Vec<(&'static str, Whichfs)> {
        let beside = Path::new(env!("CARGO_BIN_EXE_whichfs")).with_file_name("");
        let build = |(board, emulator): (&'static str, &str)| {
            let program = beside.join(format!("whichfs-{board}"));
            if !program.is_file() {
                skip::skip(format!("no whichfs for {board} is built (make boards)"));
                return None;
            }
            if Command::new(emulator).arg("--version").output().is_err() {
                skip::skip(format!("{emulator} is missing (apt-get install qemu-user)"));
                return None;
            }
            Some((board, Whichfs::of(&[Path::new(emulator), &program])))
        };
        BOARDS.into_iter().filter_map(build).collect()
    }

    /// Status, standard output and standard error of a run in its home.
    fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let output = Command::new(&self.words[0])
            .args(&self.words[1..])
            .args(arguments)
            .current_dir(self.home.path())
            .env("HOME", self.home.path())
            .env_remove("COLUMNS")
            .env_remove("XDG_DATA_HOME")
            .env_remove("XDG_CACHE_HOME")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let code = output.status.code().unwrap_or(-1);
        (code, text(&output.stdout), text(&output.stderr))
    }

    /// The files below a directory of its home.
    fn files(&self, name: &str) -> BTreeMap<PathBuf, String> {
        let mut files = BTreeMap::new();
        let mut todo = vec![self.home.path().join(name)];
        while let Some(directory) = todo.pop() {
            for entry in fs::read_dir(directory).unwrap().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    todo.push(path);
                } else {
                    let short = path.strip_prefix(self.home.path()).unwrap();
                    files.insert(short.to_owned(), fs::read_to_string(&path).unwrap());
                }
            }
        }
        files
    }
}

/// A loop device, detached when it goes.
struct Loop(String);

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["-d", &self.0]).output();
    }
}

/// Runs `arguments` by `own` and by `other`: the same status, the same answer.
fn same(own: &Whichfs, board: &str, other: &Whichfs, status: i32, arguments: &[&str]) {
    let (code, expected, err) = own.run(arguments);
    assert_eq!(code, status, "{arguments:?}: {expected}{err}");
    let (code, found, err) = other.run(arguments);
    assert_eq!(code, status, "{board}: {arguments:?}: {err}");
    assert_eq!(found, expected, "{board}: {arguments:?}");
}

#[test]
fn qemu_arm_images_and_builder_files_are_those_of_x86_64() {
    let own = Whichfs::own();
    for (board, other) in Whichfs::for_boards() {
        let _ = fs::remove_dir_all(own.home.path().join("bsp"));
        let _ = fs::remove_file(own.home.path().join("card.img"));
        let layout = "--fs ext4 --layout ab --au 4M --seed 7 --size";
        let layout: Vec<&str> = layout.split(' ').chain([SIZE]).collect();
        let emit = [&["format", "--emit", "bsp"], &layout[..]].concat();
        same(&own, board, &other, 0, &emit);
        let files = own.files("bsp");
        assert!(files.len() > 10, "{:?}", files.keys());
        assert_eq!(other.files("bsp"), files, "{board}");

        let image = [&["format", "card.img"], &layout[..]].concat();
        same(&own, board, &other, 0, &image);
        // Both judge both images.
        let foreign = other.home.path().join("card.img");
        let foreign = foreign.to_str().unwrap();
        for image in ["card.img", foreign] {
            for (status, au) in [(0, "4M"), (1, "24M")] {
                let check = ["check", image, "--au", au, "--no-gain", "--json"];
                same(&own, board, &other, status, &check);
            }
        }
        same(&own, board, &other, 0, &["probe", "a1-32gb", "--json"]);
    }
}

#[test]
fn qemu_arm_the_capacity_of_a_device_is_checked_behind_4_gib() {
    let own = Whichfs::own();
    let file = own.home.path().join("card");
    fs::File::create(&file).unwrap().set_len(6 << 30).unwrap();
    let mut losetup = Command::new("losetup");
    let output = losetup.args(["-f", "--show"]).arg(&file).output().unwrap();
    if !output.status.success() {
        skip::skip("root and loop devices are needed");
        return;
    }
    let device = Loop(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    for (board, other) in Whichfs::for_boards() {
        let check = ["probe", &device.0, "--write", "--capacity"];
        same(&own, board, &other, 0, &check);
        let (code, out, err) = other.run(&["probe", &device.0, "--json"]);
        assert_eq!(code, 0, "{board}: {err}");
        assert!(out.contains("\"document\": \"probe\""), "{board}: {out}");
    }
}

#[test]
fn qemu_arm_what_needs_the_lab_says_where_it_runs() {
    for (board, whichfs) in Whichfs::for_boards() {
        let (code, out, err) = whichfs.run(&["doctor"]);
        assert_eq!(code, 0, "{board}: {out}{err}");
        assert!(
            out.contains("the lab runs on x86-64 only"),
            "{board}: {out}"
        );
        for command in [
            &["choose"][..],
            &["study", "run", "pandora", "--quick"],
            &["crash", "run", "--fs", "ext4"],
            &["lab", "kernel"],
        ] {
            let (code, _, err) = whichfs.run(command);
            assert_eq!(code, 3, "{board}: {command:?}: {err}");
            let err = err.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(
                err.contains("run the command on a PC"),
                "{board}: {command:?}: {err}"
            );
        }
        let image = "format card.img --size 600M --fs ext4 --au 4M";
        assert_eq!(whichfs.run(&image.split(' ').collect::<Vec<_>>()).0, 0);
        let (code, out, _) = whichfs.run(&["check", "card.img", "--au", "24M"]);
        let out = out.split_whitespace().collect::<Vec<_>>().join(" ");
        let why = "not measured: the lab runs on x86-64 only";
        assert!(code == 1 && out.contains(why), "{board}: {code} {out}");
    }
}
