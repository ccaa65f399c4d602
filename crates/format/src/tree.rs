//! An image of one filesystem with a directory's files in it, without root.

use crate::FormatListener;
use crate::builder::{Builder, builder};
use crate::error::FormatError;
use crate::image::{PartialImage, failed, or_full, stop};
use crate::program::{require, run, words};
use crate::proto;
use crate::unsupported_metadata::UnsupportedEntries;
use crate::verify::{self, Check, Outcome};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use whichfs_fs::{Candidate, ImageBuild, Names, Recipe};
use whichfs_layout::superblock::Superblock;
use whichfs_layout::{in_file, mkfs};
use whichfs_units::{Bytes, counted};

/// A directory and what is in it.
#[derive(Clone, Debug)]
pub struct Tree {
    /// The directory whose content goes into the image.
    pub root: PathBuf,
    /// Files, directories and links.
    pub entries: u64,
    /// Bytes of all files, each in whole blocks of 4 KiB.
    pub bytes: u64,
    /// The first entry that a filesystem without Unix's kinds cannot hold: its path and kind.
    pub special: Option<(PathBuf, &'static str)>,
    /// What not every tool can put into an image.
    pub unsupported: UnsupportedEntries,
}

impl Tree {
    /// Looks at the directory `root`.
    ///
    /// # Errors
    /// It is none, or something in it cannot be read.
    pub fn open(root: &Path) -> Result<Tree, FormatError> {
        if !root.is_dir() {
            return Err(FormatError::File {
                path: root.display().to_string(),
                reason: "no directory".into(),
                remedy: "name the directory whose files the image is to have",
            });
        }
        let mut tree = Tree {
            root: root.to_owned(),
            entries: 0,
            bytes: 0,
            special: None,
            unsupported: UnsupportedEntries::default(),
        };
        tree.add(root)?;
        Ok(tree)
    }

    fn add(&mut self, directory: &Path) -> Result<(), FormatError> {
        let unreadable = |path: &Path, error: std::io::Error| FormatError::File {
            path: path.display().to_string(),
            reason: error.to_string(),
            remedy: "make it readable, or take it out of the tree",
        };
        let entries = std::fs::read_dir(directory).map_err(|e| unreadable(directory, e))?;
        for entry in entries {
            let path = entry.map_err(|e| unreadable(directory, e))?.path();
            let meta = path.symlink_metadata().map_err(|e| unreadable(&path, e))?;
            let kind = meta.file_type();
            self.entries += 1;
            self.unsupported.see(&path, &meta);
            if kind.is_file() {
                self.bytes += meta.size().next_multiple_of(4096);
            }
            let special = match () {
                () if kind.is_symlink() => Some("a symbolic link"),
                () if kind.is_block_device() || kind.is_char_device() => Some("a device"),
                () if kind.is_fifo() || kind.is_socket() => Some("a pipe or socket"),
                () => None,
            };
            if let Some(kind) = special.filter(|_| self.special.is_none()) {
                self.special = Some((path.clone(), kind));
            }
            if kind.is_dir() {
                self.add(&path)?;
            }
        }
        Ok(())
    }

    /// Bytes of an image that holds it with a fifth to spare, in whole units of `unit`, where an
    /// empty one takes `least`.
    pub fn image_bytes(&self, candidate: &Candidate, unit: u64) -> u64 {
        let data = (self.bytes + self.entries * 4096) / 4 * 5 + (16 << 20);
        // mke2fs makes an inode for each 16 KiB (inode_ratio in mke2fs.conf).
        let inodes = match candidate.name.starts_with("ext") {
            true => self.entries * (16 << 10) / 4 * 5,
            false => 0,
        };
        (candidate.facts().min_bytes + data.max(inodes)).next_multiple_of(unit)
    }

    /// Refuses what `candidate` cannot hold: links and devices, names, files that are too large.
    pub fn check(&self, candidate: &Candidate) -> Result<(), FormatError> {
        if candidate.facts().symlinks {
            return Ok(());
        }
        let remedy = "take it out of the tree, or take another filesystem";
        let refused = |what: String| FormatError::Tree {
            what,
            remedy: remedy.into(),
        };
        if let Some((path, kind)) = &self.special {
            let (path, fs) = (path.display(), candidate.name);
            return Err(refused(format!("{path} is {kind}, and {fs} has none")));
        }
        let known = whichfs_fs::find(candidate.name).map_err(|error| refused(error.to_string()))?;
        let mut names = Names::on(known);
        self.can_hold(&self.root, candidate, &mut names)
            .map_err(refused)
    }

    /// What in `directory` `candidate` cannot hold, if anything.
    fn can_hold(
        &self,
        directory: &Path,
        candidate: &Candidate,
        names: &mut Names,
    ) -> Result<(), String> {
        let shown = directory.display();
        let entries = std::fs::read_dir(directory).map_err(|error| format!("{shown}: {error}"))?;
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            let below = path.strip_prefix(&self.root).unwrap_or(&path);
            let name = below
                .to_str()
                .ok_or_else(|| format!("the name of {} is no text", path.display()))?;
            names.make(name)?;
            let meta = path
                .symlink_metadata()
                .map_err(|error| format!("{}: {error}", path.display()))?;
            let most = candidate.facts().max_file_bytes;
            if meta.is_file() && meta.size() > most {
                return Err(format!(
                    "{} has {}, and a file on {} at most {}",
                    path.display(),
                    Bytes(meta.size()),
                    candidate.name,
                    Bytes(most)
                ));
            }
            if meta.is_dir() {
                self.can_hold(&path, candidate, names)?;
            }
        }
        Ok(())
    }
}

/// Makes the file `image` of `bytes` with `recipe` and the files of `tree`, whole or not at all.
/// [`Builder::Lab`] is not for here.
///
/// # Errors
/// What failed.
pub fn tree_image(
    tree: &Tree,
    candidate: &Candidate,
    recipe: &Recipe,
    bytes: u64,
    image: &Path,
    interrupted: &AtomicBool,
    tell: &mut FormatListener,
) -> Result<Vec<Check>, FormatError> {
    tree.check(candidate)?;
    let way = builder(recipe);
    tree.unsupported.check(way)?;
    let part = PartialImage::beside(image, "image", bytes)?;
    let entries = counted(tree.entries, "entry");
    tell(&format!("{} with {entries}", candidate.name));
    build(tree, candidate, recipe, &part).map_err(|error| or_full(image, error))?;
    stop(interrupted, 1, 1)?;
    let mut checks = image_checks(&part.path, recipe)?;
    checks.extend(tree.unsupported.lost(way));
    if !checks.iter().any(Check::is_bad) {
        part.keep(image)?;
    }
    Ok(checks)
}

/// Checks a finished image of one filesystem: its superblock, and its checker.
///
/// # Errors
/// It cannot be read.
pub fn image_checks(image: &Path, recipe: &Recipe) -> Result<Vec<Check>, FormatError> {
    let found = crate::OpenDisk::open(image)?.superblock(0)?;
    Ok(vec![
        tuning(found.as_ref(), recipe),
        verify::fsck("image", recipe, &image.display().to_string()),
    ])
}

fn tuning(found: Option<&Superblock>, recipe: &Recipe) -> Check {
    let outcome = match found {
        None => Outcome::Bad("no filesystem is found".into()),
        Some(found) => match verify::tuned(found, recipe) {
            Ok(()) => Outcome::Good(format!("{} as it was asked for", found.candidate)),
            Err(wrong) => Outcome::Bad(wrong),
        },
    };
    Check {
        what: "image: tuning".into(),
        outcome,
    }
}

fn build(
    tree: &Tree,
    candidate: &Candidate,
    recipe: &Recipe,
    part: &PartialImage,
) -> Result<(), FormatError> {
    let package = candidate.facts().packages.join(" ");
    for tool in &recipe.tools {
        require(tool, &format!("makes {}", candidate.name), &package)?;
    }
    let (root, image) = (tree.root.display().to_string(), part.shown());
    match builder(recipe) {
        Builder::Image => return read_only(recipe, &root, part),
        Builder::Mke2fs => make(recipe, &image, &["-d", &root])?,
        Builder::Btrfs => make(recipe, &image, &["--rootdir", &root])?,
        Builder::Proto => {
            let proto = proto::of(&tree.root)?;
            let file = PartialImage::beside(&part.path, "proto", 0)?;
            std::fs::write(&file.path, proto).map_err(|error| failed(&file.path, &error))?;
            make(recipe, &image, &["-p", &file.shown()])?;
        }
        Builder::Sload => {
            require("sload.f2fs", "puts files into F2FS", &package)?;
            make(recipe, &image, &[])?;
            run(&words(&["sload.f2fs", "-f", &root, &image]), "")?;
        }
        Builder::Mcopy => {
            require("mcopy", "puts files into FAT", "mtools")?;
            make(recipe, &image, &[])?;
            mcopy(&tree.root, &image)?;
        }
        Builder::Lab => {
            return Err(FormatError::Tree {
                what: format!(
                    "no tool puts files into {} without mounting it",
                    candidate.name
                ),
                remedy: "the lab does (whichfs image --lab)".into(),
            });
        }
    }
    Ok(())
}

/// Runs the mkfs commands of `recipe` on the file `image`, with `added` behind the program.
fn make(recipe: &Recipe, image: &str, added: &[&str]) -> Result<(), FormatError> {
    for (number, argv) in mkfs(recipe, image).into_iter().enumerate() {
        let mut argv = in_file(argv);
        if number == 0 {
            argv.splice(1..1, words(added));
        }
        run(&argv, "")?;
    }
    Ok(())
}

/// Copies all of `root` into the FAT image.
fn mcopy(root: &Path, image: &str) -> Result<(), FormatError> {
    let entries = std::fs::read_dir(root).map_err(|error| failed(root, &error))?;
    let mut names: Vec<String> = entries
        .flatten()
        .map(|entry| entry.path().display().to_string())
        .collect();
    names.sort();
    if names.is_empty() {
        return Ok(());
    }
    let mut argv = words(&["mcopy", "-s", "-p", "-Q", "-i", image]);
    argv.extend(names);
    argv.push("::".into());
    run(&argv, "").map(drop)
}

/// Builds a read-only image, which mkfs makes as large as it needs.
fn read_only(recipe: &Recipe, root: &str, part: &PartialImage) -> Result<(), FormatError> {
    let build = recipe.image.iter().flat_map(|build| &build.argv);
    let argv: Vec<String> = build
        .map(|word| {
            word.replace(ImageBuild::TREE, root)
                .replace(ImageBuild::IMAGE, &part.shown())
        })
        .collect();
    // mksquashfs and mkfs.erofs want to make the file themselves.
    let _ = std::fs::remove_file(&part.path);
    run(&argv, "").map(drop)
}
