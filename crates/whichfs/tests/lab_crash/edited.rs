//! Faults of the filesystem: the image of a run that has ended is edited before it is judged, as a
//! bug of the filesystem would leave it. ext4, with e2fsprogs' debugfs.

use super::{crash, crash_in, cuts};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Command;

const BLOCK: u64 = 4096;

/// Findings: what became of which path.
type Findings = BTreeSet<(String, String)>;

/// An image of a partition with ext4.
struct Image(PathBuf);

/// A regular file of an image.
#[derive(Clone, Debug)]
struct Regular {
    size: u64,
    mode: u64,
    /// Blocks of its content in order.
    blocks: Vec<u64>,
}

impl Image {
    /// Runs a command of debugfs; `write` lets it change the image.
    fn debugfs(&self, write: bool, command: &str) -> String {
        let mut debugfs = Command::new("debugfs");
        if write {
            debugfs.arg("-w");
        }
        let output = debugfs.args(["-R", command]).arg(&self.0).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let complaints: Vec<&str> = said.lines().skip(1).collect();
        assert!(complaints.is_empty(), "debugfs {command}: {complaints:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Every path with its mode and size.
    fn listing(&self) -> BTreeMap<String, (u64, u64)> {
        let mut paths = BTreeMap::new();
        let mut directories = vec![String::new()];
        while let Some(directory) = directories.pop() {
            for line in self.debugfs(false, &format!("ls -p /{directory}")).lines() {
                let fields: Vec<&str> = line.split('/').collect();
                let &[_, _, mode, _, _, name, size, _] = fields.as_slice() else {
                    continue;
                };
                if [".", "..", "lost+found"].contains(&name) {
                    continue;
                }
                let path = format!("{directory}{name}");
                let mode = u64::from_str_radix(mode, 8).unwrap();
                if mode & 0o170_000 == 0o040_000 {
                    directories.push(format!("{path}/"));
                }
                paths.insert(path, (mode, size.parse().unwrap_or(0)));
            }
        }
        paths
    }

    /// The regular files of more than two blocks.
    fn files(&self) -> BTreeMap<String, Regular> {
        let regular = |(path, (mode, size)): (String, (u64, u64))| {
            let large = mode & 0o170_000 == 0o100_000 && size > 2 * BLOCK;
            let blocks = large.then(|| self.debugfs(false, &format!("blocks /{path}")))?;
            let blocks = blocks.split_whitespace().map(|word| word.parse().unwrap());
            let blocks = blocks.collect();
            Some((path, Regular { size, mode, blocks }))
        };
        self.listing().into_iter().filter_map(regular).collect()
    }

    /// The block of the table in which the inode of `path` lies.
    fn block_of_inode(&self, path: &str) -> u64 {
        let place = self.debugfs(false, &format!("imap /{path}"));
        let number = place.split("located at block ").nth(1).unwrap();
        number.split(',').next().unwrap().parse().unwrap()
    }

    fn block(&self, number: u64) -> Vec<u8> {
        let mut bytes = vec![0; BLOCK as usize];
        let file = File::open(&self.0).unwrap();
        file.read_exact_at(&mut bytes, number * BLOCK).unwrap();
        bytes
    }

    fn put(&self, number: u64, bytes: &[u8]) {
        let file = File::options().write(true).open(&self.0).unwrap();
        file.write_all_at(bytes, number * BLOCK).unwrap();
    }
}

/// What is at hand for an edit.
struct Scene {
    directory: tempfile::TempDir,
    end: Image,
    /// An image of an earlier moment, its journal replayed.
    early: Image,
    files: BTreeMap<String, Regular>,
}

/// Arguments of the run that all images come from.
const RUN: [&str; 4] = ["--fs", "ext4", "--partition", "128M"];

impl Scene {
    /// None without a lab.
    fn set() -> Option<Scene> {
        let directory = tempfile::tempdir().unwrap();
        let kept = |name: &str, cut: &[&str]| {
            let path = directory.path().join(name);
            let keep = ["--keep", path.to_str().unwrap()];
            let arguments = [&RUN[..], &["--no-fsck"], cut, &keep].concat();
            crash_in(directory.path(), &arguments);
            Image(path)
        };
        // The first cut after the tree was made durable: files are being overwritten, and none is
        // deleted yet.
        let series = ["--no-fsck", "--cuts", "30"];
        let (_, document) = crash_in(directory.path(), &[&RUN[..], &series].concat())?;
        let durable = |cut: &&Value| cut["window"][0].as_u64().unwrap() > 0;
        let number = cuts(&document).iter().find(durable).unwrap()["cut"]["number"].to_string();
        let early = kept("early", &["--cuts", "30", "--only", &number]);
        let end = kept("end", &["--cuts", "end"]);
        let replay = ["-y", "-E", "journal_only"];
        Command::new("e2fsck")
            .args(replay)
            .arg(&early.0)
            .output()
            .unwrap();
        let files = end.files();
        Some(Scene {
            directory,
            end,
            early,
            files,
        })
    }

    /// The file number `number` in the order of paths.
    fn file(&self, number: usize) -> (&str, &Regular) {
        let (path, file) = self.files.iter().nth(number).unwrap();
        (path, file)
    }

    /// A file that was overwritten in place since the early image.
    fn overwritten(&self) -> (&str, &Regular) {
        let changed = |file: &Regular| {
            file.blocks.iter().all(|&number| {
                let before = self.early.block(number);
                before != self.end.block(number) && before.iter().any(|&byte| byte != 0)
            })
        };
        let found = self.files.iter().find(|(_, file)| changed(file)).unwrap();
        (found.0, found.1)
    }

    /// A directory that was deleted since the early image, from one that is still there.
    fn deleted(&self) -> String {
        let now = self.end.listing();
        let before = self.early.listing();
        let is_gone = |path: &&String| {
            let above = path.rsplit_once('/').map(|(above, _)| above);
            !now.contains_key(*path) && above.is_some_and(|above| now.contains_key(above))
        };
        before.keys().find(is_gone).unwrap().clone()
    }

    /// Edits a copy and lets it be judged: its condition and the findings.
    fn judge(&self, edit: impl FnOnce(&Image)) -> (String, Findings) {
        let copy = Image(self.directory.path().join("edited"));
        std::fs::copy(&self.end.0, &copy.0).unwrap();
        edit(&copy);
        let image = ["--cuts", "end", "--image", copy.0.to_str().unwrap()];
        let (status, document) = crash(&[&RUN[..], &image].concat()).unwrap();
        let cut = &cuts(&document)[0];
        let findings: Findings = cut["findings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|finding| {
                assert_eq!(finding["broken"], true, "{finding:#}");
                let text = |field: &str| finding[field].as_str().unwrap().to_owned();
                (text("path"), text("outcome"))
            })
            .collect();
        assert_eq!(status, i32::from(!findings.is_empty()), "{findings:?}");
        (cut["condition"].as_str().unwrap().to_owned(), findings)
    }

    /// Judges the edit, which must be called `condition` and hurt just these paths.
    #[track_caller]
    fn caught(&self, condition: &str, hurt: &[(&str, &str)], edit: impl FnOnce(&Image)) {
        let (found, findings) = self.judge(edit);
        let owned = |&(path, outcome): &(&str, &str)| (path.to_owned(), outcome.to_owned());
        assert_eq!(findings, hurt.iter().map(owned).collect());
        assert_eq!(found, condition);
    }
}

#[test]
fn lab_every_edit_of_an_image_is_caught_and_called_by_its_name() {
    let Some(scene) = Scene::set() else {
        return;
    };
    scene.caught("clean", &[], |_| {});
    names(&scene);
    attributes(&scene);
    data(&scene);
    inodes(&scene);
}

/// Lost, false and foreign names.
fn names(scene: &Scene) {
    let (path, _) = scene.file(0);
    scene.caught("durable_lost", &[(path, "missing")], |image| {
        image.debugfs(true, &format!("unlink /{path}"));
    });
    let other = format!("{path}-renamed");
    let renamed = [(path, "missing"), (other.as_str(), "unexpected")];
    scene.caught("durable_lost", &renamed, |image| {
        image.debugfs(true, &format!("ln /{path} /{other}"));
        image.debugfs(true, &format!("unlink /{path}"));
    });
    let source = scene.directory.path().join("source");
    std::fs::write(&source, [7; 10_000]).unwrap();
    scene.caught("durable_lost", &[("foreign", "unexpected")], |image| {
        image.debugfs(true, &format!("write {} /foreign", source.display()));
    });
    let gone = scene.deleted();
    scene.caught("durable_lost", &[(&gone, "unexpected")], |image| {
        image.debugfs(true, &format!("mkdir /{gone}"));
    });
    scene.caught("silent_corruption", &[(path, "wrong_silently")], |image| {
        image.debugfs(true, &format!("rm /{path}"));
        image.debugfs(true, &format!("mkdir /{path}"));
    });
}

/// Wrong sizes and modes.
fn attributes(scene: &Scene) {
    let (path, file) = scene.file(1);
    let set = |condition: &str, outcome: &str, field: &str, value: u64| {
        scene.caught(condition, &[(path, outcome)], |image| {
            image.debugfs(true, &format!("sif /{path} {field} {value}"));
        });
    };
    set("durable_lost", "truncated", "size", file.size - 1000);
    set("durable_lost", "emptied", "size", 0);
    set("silent_corruption", "wrong_silently", "size", file.size + 3);
    let mode = file.mode ^ 0o022;
    set("silent_corruption", "wrong_silently", "mode", mode);
}

/// Swapped, zeroed and old blocks.
fn data(scene: &Scene) {
    let ((a, one), (b, two)) = (scene.file(2), scene.file(3));
    let swapped = [(a, "wrong_silently"), (b, "wrong_silently")];
    scene.caught("silent_corruption", &swapped, |image| {
        let (x, y) = (one.blocks[0], two.blocks[0]);
        let kept = image.block(x);
        image.put(x, &image.block(y));
        image.put(y, &kept);
    });
    scene.caught("durable_lost", &[(a, "zeroed")], |image| {
        image.put(one.blocks[1], &[0; BLOCK as usize]);
    });
    // An old version is no garbage, but it was overwritten for good.
    let (path, file) = scene.overwritten();
    scene.caught("durable_lost", &[(path, "old")], |image| {
        for &number in &file.blocks {
            image.put(number, &scene.early.block(number));
        }
    });
}

/// A zeroed block of inodes of files: the kernel finds them without their checksums, and says so.
fn inodes(scene: &Scene) {
    let listing = scene.end.listing();
    let directories: BTreeSet<u64> = listing
        .iter()
        .filter(|(_, (mode, _))| mode & 0o170_000 == 0o040_000)
        .map(|(path, _)| scene.end.block_of_inode(path))
        .collect();
    let blocks = scene
        .files
        .keys()
        .map(|path| scene.end.block_of_inode(path));
    let of_files = |block: &u64| !directories.contains(block);
    let number = blocks.into_iter().find(of_files).unwrap();
    let (condition, findings) = scene.judge(|image| {
        image.put(number, &[0; BLOCK as usize]);
    });
    assert_eq!(condition, "durable_lost");
    // Linux 6.12 shuts the filesystem down then: what comes later is not read either.
    assert!(findings.iter().all(|(_, outcome)| outcome == "read_error"));
    let mut hurt = findings
        .iter()
        .map(|(path, _)| scene.end.block_of_inode(path));
    assert!(hurt.any(|block| block == number), "{findings:?}");
}
