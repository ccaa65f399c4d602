//! A tree drawn from a measured distribution. Pure: same seed, same tree.
//!
//! Its entries have the order of `tar --sort=name`, in which the archives of root filesystems are
//! made (Yocto's `image_types.bbclass`, mmdebstrap): depth first, each directory sorted by name.

use crate::content::generated;
use crate::distribution::{Distribution, weighted};
use crate::listing::{EntryKind, Listing, TreeEntry};
use crate::names::{Names, join};
use std::collections::BTreeMap;
use whichfs_units::Rng;

/// Permissions of directories and programs.
const PROGRAM: u32 = 0o755;
/// Permissions of other files.
const DATA: u32 = 0o644;
/// Permissions of links, which nobody asks for.
const LINK: u32 = 0o777;

/// How large a tree is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Regular files.
    pub files: u64,
    /// Their bytes in all.
    pub bytes: u64,
}

/// A directory that is being filled.
struct Directory {
    path: String,
    /// Share of its depth's files that it gets.
    weight: u64,
}

/// The tree of `seed`, drawn from `from`, with exactly the files and bytes of `size`.
///
/// Names in `taken` (in the root) are left free.
pub fn draw(from: &Distribution, size: Size, seed: u64, taken: &[&str]) -> Listing {
    let mut names = Names::new(taken.iter().map(|&name| name.to_owned()));
    let depths = directories(from, size.files, seed, &mut names);
    let files = files(from, size, seed, &depths, &mut names);
    let links = links(from, &files, seed, &mut names);
    let directory = |directory: &Directory| TreeEntry {
        path: directory.path.clone(),
        mode: PROGRAM,
        kind: EntryKind::Directory,
    };
    let mut entries: Vec<TreeEntry> = depths.iter().flatten().map(directory).collect();
    entries.extend(files);
    entries.extend(links);
    arrange(entries)
}

/// Directories by depth; those of depth 1 stand at index 0.
fn directories(
    from: &Distribution,
    files: u64,
    seed: u64,
    names: &mut Names,
) -> Vec<Vec<Directory>> {
    let mut rng = Rng::named(seed, "tree directories");
    let mut depths: Vec<Vec<Directory>> = Vec::new();
    for &measured in &from.directories_by_depth {
        let count = (measured * files).div_ceil(from.files);
        let level = (0..count)
            .map(|_| {
                let parent = depths.last().map_or("", |above: &Vec<Directory>| {
                    // The cube makes few parents rich, as /usr/share and /usr/lib are.
                    let one = rng.below(1 << 20) as u128;
                    let share = (one * one * one * above.len() as u128) >> 60;
                    above[share as usize].path.as_str()
                });
                let length = from.name_length.draw(&mut rng);
                Directory {
                    path: names.path(&mut rng, parent, length, ""),
                    weight: from.files_per_directory.draw(&mut rng),
                }
            })
            .collect();
        depths.push(level);
    }
    depths
}

/// Sizes in random order: one from each of `count` equal parts of the distribution,
/// scaled so that they add up to `bytes`.
fn sizes(from: &Distribution, count: u64, bytes: u64, rng: &mut Rng) -> Vec<(u64, u64)> {
    const FINE: u64 = 1 << 20;
    let drawn: Vec<u64> = (0..count)
        .map(|at| from.size.at(at * FINE + rng.below(FINE), count * FINE))
        .collect();
    let sum: u128 = drawn.iter().map(|&size| u128::from(size)).sum();
    let scaled = |size: u64| (u128::from(size) * u128::from(bytes) / sum.max(1)) as u64;
    let mut both: Vec<(u64, u64)> = drawn.iter().map(|&size| (size, scaled(size))).collect();
    let missing = bytes - both.iter().map(|&(_, scaled)| scaled).sum::<u64>();
    if let Some(largest) = both.last_mut() {
        largest.1 += missing;
    }
    rng.shuffle(&mut both);
    both
}

fn files(
    from: &Distribution,
    size: Size,
    seed: u64,
    depths: &[Vec<Directory>],
    names: &mut Names,
) -> Vec<TreeEntry> {
    let mut rng = Rng::named(seed, "tree sizes");
    let sizes = sizes(from, size.files, size.bytes, &mut rng);
    let mut rng = Rng::named(seed, "tree files");
    let weights: Vec<Vec<u64>> = depths
        .iter()
        .map(|level| {
            let weights: Vec<u64> = level.iter().map(|dir| dir.weight).collect();
            let empty = weights.iter().all(|&weight| weight == 0);
            if empty { vec![1; level.len()] } else { weights }
        })
        .collect();
    let extension_weights: Vec<u64> = from.extensions.iter().map(|known| known.1).collect();
    sizes
        .into_iter()
        .map(|(measured, size)| {
            let depth = weighted(&mut rng, &from.files_by_depth);
            let dir = &depths[depth][weighted(&mut rng, &weights[depth])];
            let (extension, _) = &from.extensions[weighted(&mut rng, &extension_weights)];
            let length = from.name_length.draw(&mut rng);
            let level = weighted(&mut rng, &from.class_of(measured).files);
            let program = rng.below(from.files) < from.executables;
            TreeEntry {
                path: names.path(&mut rng, &dir.path, length, extension),
                mode: if program { PROGRAM } else { DATA },
                kind: EntryKind::File {
                    size,
                    content: generated(level as u8, rng.next_u64()),
                },
            }
        })
        .collect()
}

/// Symbolic links beside files, half of them to a neighbour, half to a path from the
/// root; and hard links.
fn links(from: &Distribution, files: &[TreeEntry], seed: u64, names: &mut Names) -> Vec<TreeEntry> {
    let mut rng = Rng::named(seed, "tree links");
    let share = |measured: u64| measured * files.len() as u64 / from.files;
    let mut made = Vec::new();
    for at in 0..share(from.symlinks) + share(from.hard_links) {
        let existing = files[rng.below(files.len() as u64) as usize].path.clone();
        let (dir, name) = existing.rsplit_once('/').unwrap_or(("", &existing));
        let length = from.name_length.draw(&mut rng);
        let path = names.path(&mut rng, dir, length, "");
        let kind = if at >= share(from.symlinks) {
            EntryKind::HardLink { existing }
        } else if rng.ratio(1, 2) {
            let target = name.to_owned();
            EntryKind::Symlink { target }
        } else {
            let target = join("", &format!("/{existing}"));
            EntryKind::Symlink { target }
        };
        made.push(TreeEntry {
            path,
            mode: LINK,
            kind,
        });
    }
    made
}

/// As `tar --sort=name` lists them; the first name of a file is the file, others are links to it.
fn arrange(mut entries: Vec<TreeEntry>) -> Listing {
    entries.sort_by(|a, b| a.path.split('/').cmp(b.path.split('/')));
    let mut first: BTreeMap<String, usize> = BTreeMap::new();
    for at in 0..entries.len() {
        let name = match &entries[at].kind {
            EntryKind::HardLink { existing } => existing.clone(),
            EntryKind::File { .. } => entries[at].path.clone(),
            EntryKind::Directory | EntryKind::Symlink { .. } => continue,
        };
        let Some(&earlier) = first.get(&name) else {
            first.insert(name, at);
            continue;
        };
        let existing = entries[earlier].path.clone();
        let link = EntryKind::HardLink { existing };
        let kind = std::mem::replace(&mut entries[at].kind, link);
        if matches!(kind, EntryKind::File { .. }) {
            let mode = std::mem::replace(&mut entries[at].mode, LINK);
            (entries[earlier].mode, entries[earlier].kind) = (mode, kind);
        }
    }
    Listing { entries }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::names::is_portable;
    use std::collections::BTreeSet;
    use whichfs_trial::Content;

    const DEFAULT: Size = Size {
        files: 6_000,
        bytes: 192 << 20,
    };

    fn tree(seed: u64) -> Listing {
        draw(Distribution::rootfs(), DEFAULT, seed, &[])
    }

    #[test]
    fn counts_and_bytes_are_exact() {
        for size in [
            DEFAULT,
            Size { files: 1, bytes: 0 },
            Size {
                files: 50,
                bytes: 1 << 20,
            },
        ] {
            let tree = draw(Distribution::rootfs(), size, 1, &[]);
            assert_eq!(tree.files().count() as u64, size.files);
            assert_eq!(tree.bytes(), size.bytes);
        }
    }

    #[test]
    fn the_tree_looks_like_what_was_measured() {
        for seed in 1..=5 {
            Distribution::rootfs().check(&tree(seed)).unwrap();
        }
    }

    #[test]
    fn planted_wrong_trees_are_found() {
        let check = |spoil: &dyn Fn(&mut Listing), expected: &str| {
            let mut wrong = tree(1);
            spoil(&mut wrong);
            let error = Distribution::rootfs().check(&wrong).unwrap_err();
            assert!(error.contains(expected), "{error}");
        };
        let each = |tree: &mut Listing, change: &dyn Fn(&mut u64, &mut Content)| {
            for entry in &mut tree.entries {
                if let EntryKind::File { size, content } = &mut entry.kind {
                    change(size, content);
                }
            }
        };
        check(
            &|tree| each(tree, &|size, _| *size = 32 << 10),
            "share of files up to",
        );
        check(
            &|tree| each(tree, &|_, content| *content = generated(0, 1)),
            "share of files of level",
        );
        check(
            &|tree| {
                tree.entries
                    .retain(|e| !matches!(e.kind, EntryKind::Symlink { .. }))
            },
            "symlinks",
        );
        check(
            &|tree| {
                for entry in &mut tree.entries {
                    if matches!(entry.kind, EntryKind::File { .. }) {
                        entry.path = format!("d/{}", entry.path.replace('/', "_"));
                    }
                }
            },
            "depth",
        );
        check(
            &|tree| {
                tree.entries
                    .retain(|e| !matches!(e.kind, EntryKind::Directory))
            },
            "directories",
        );
    }

    #[test]
    fn names_are_portable_and_unique() {
        let tree = tree(3);
        let mut seen = BTreeSet::new();
        for entry in &tree.entries {
            let name = entry.path.rsplit('/').next().unwrap();
            assert!(is_portable(name), "{}", entry.path);
            assert!(
                seen.insert(entry.path.to_lowercase()),
                "{} twice",
                entry.path
            );
        }
    }

    #[test]
    fn parents_come_first() {
        let mut seen = BTreeSet::from([String::new()]);
        for entry in tree(4).entries {
            let dir = entry.path.rsplit_once('/').map_or("", |(dir, _)| dir);
            assert!(seen.contains(dir), "{} has no directory yet", entry.path);
            if let EntryKind::HardLink { existing } = &entry.kind {
                assert!(seen.contains(existing), "{existing}");
            }
            seen.insert(entry.path);
        }
    }

    #[test]
    fn directories_are_sorted_depth_first() {
        let entries = tree(4).entries;
        let paths: Vec<&str> = entries.iter().map(|entry| entry.path.as_str()).collect();
        for pair in paths.windows(2) {
            let [a, b] = [pair[0], pair[1]].map(|path| path.split('/').collect::<Vec<_>>());
            assert!(a < b, "{pair:?}");
        }
        let swapped = EntryKind::HardLink {
            existing: "b".into(),
        };
        let file = EntryKind::File {
            size: 1,
            content: generated(0, 1),
        };
        let named = |path: &str, mode, kind: &EntryKind| TreeEntry {
            path: path.into(),
            mode,
            kind: kind.clone(),
        };
        let three = vec![
            named("b", 0o600, &file),
            named("a", LINK, &swapped),
            named("c", LINK, &swapped),
        ];
        let to_a = EntryKind::HardLink {
            existing: "a".into(),
        };
        let right = [
            named("a", 0o600, &file),
            named("b", LINK, &to_a),
            named("c", LINK, &to_a),
        ];
        assert_eq!(arrange(three).entries, right);
    }

    #[test]
    fn seeds_differ() {
        assert_eq!(tree(7), tree(7));
        assert_ne!(tree(7), tree(8));
    }
}
