//! Workload `copies`: copies of a tree come and go, as on a Bootlin board's card (2023).
//!
//! There a tree of 319 MB was written five times from memory; then, five times, the oldest copy was
//! removed and the oldest of the others copied to a new one (`cp -r`, which reads it from the
//! card); then all were removed (`rm -r`). Each of the three ended with a sync. Here the tree is a
//! generated one with the shape of a Debian root (`workloads/rootfs.toml`), and each copy has the
//! same content and a directory of its own. Each sync is a phase of its own, so there is a figure
//! with it and one without.

use crate::distribution::Distribution;
use crate::listing::{EntryKind, Listing, TreeEntry};
use crate::names::join;
use crate::phase::{Operations, Phase};
use crate::tree::{self, Size};
use crate::tree_ops::{Writer, create};
use crate::workload::{
    MetricDef, Parameter, PhaseDef, Rule, Workload, WorkloadError, parameter, unknown_phase,
};
use whichfs_trial::{Op, WorkloadSpec};
use whichfs_units::{GIB, MIB};

/// What this file adds to the list of workloads, and at which place.
pub(crate) const WORKLOADS: &[(u32, &dyn Workload)] = &[(160, &Copies)];

/// A card on which copies of a root tree are written, replaced and removed.
pub struct Copies;

const WRITE: &str = "copies_write";
const WRITE_SYNC: &str = "copies_write_sync";
const ROTATE: &str = "copies_rotate";
const ROTATE_SYNC: &str = "copies_rotate_sync";
const REMOVE: &str = "copies_remove";
const REMOVE_SYNC: &str = "copies_remove_sync";

const PARAMETERS: [Parameter; 5] = [
    Parameter {
        name: "bytes",
        default: 32 * MIB,
        unit: "B",
        meaning: "bytes of a copy; Bootlin's had 319 MB",
        min: MIB,
        max: 64 * GIB,
    },
    Parameter {
        name: "files",
        default: 1_200,
        unit: "files",
        meaning: "regular files of a copy; sizes are scaled to bytes",
        min: 1,
        max: 1_000_000,
    },
    Parameter {
        name: "copies",
        default: 5,
        unit: "copies",
        meaning: "copies that are there at a time",
        min: 1,
        max: 100,
    },
    Parameter {
        name: "rounds",
        default: 5,
        unit: "rounds",
        meaning: "how often the oldest is removed and a new one written",
        min: 1,
        max: 1_000,
    },
    Parameter {
        name: "from_card",
        default: 1,
        unit: "",
        meaning: "1: each new one is read from the oldest that is left; 0: it comes from memory",
        min: 0,
        max: 1,
    },
];

const PHASES: [PhaseDef; 6] = [
    PhaseDef::warm(
        WRITE,
        "write the copies one after the other (MB/s without the sync)",
        true,
        &MetricDef::one("copies_write_unsynced", Rule::Throughput),
    ),
    PhaseDef::warm(
        WRITE_SYNC,
        "syncfs (MB/s of the copies with it)",
        true,
        &MetricDef::one(
            WRITE,
            Rule::Together(&[WRITE, WRITE_SYNC], &Rule::Throughput),
        ),
    )
    .then_space(),
    PhaseDef::warm(
        ROTATE,
        "remove the oldest copy, copy the oldest of the others, so many times (MB/s of what is \
         read and written, without the sync)",
        true,
        &MetricDef::one("copies_rotate_unsynced", Rule::Throughput),
    ),
    PhaseDef::warm(
        ROTATE_SYNC,
        "syncfs (MB/s of the rounds with it)",
        true,
        &MetricDef::one(
            ROTATE,
            Rule::Together(&[ROTATE, ROTATE_SYNC], &Rule::Throughput),
        ),
    ),
    PhaseDef::warm(
        REMOVE,
        "remove all copies (files/s without the sync)",
        true,
        &MetricDef::one("copies_remove_unsynced", Rule::FileRate),
    ),
    PhaseDef::warm(
        REMOVE_SYNC,
        "syncfs (files/s with it)",
        true,
        &MetricDef::one(
            REMOVE,
            Rule::Together(&[REMOVE, REMOVE_SYNC], &Rule::FileRate),
        ),
    ),
];

impl Workload for Copies {
    fn name(&self) -> &'static str {
        "copies"
    }

    fn title(&self) -> &'static str {
        "copies of a tree: written, the oldest replaced again and again, all removed"
    }

    fn parameters(&self) -> &'static [Parameter] {
        &PARAMETERS
    }

    fn phases(&self) -> &'static [PhaseDef] {
        &PHASES
    }

    fn phase(&self, _phase: &PhaseDef) -> Phase<'_> {
        Phase::Operations(self)
    }
}

impl Operations for Copies {
    fn operations(
        &self,
        phase: &str,
        spec: &WorkloadSpec,
        _tree: Option<&Listing>,
        seed: u64,
    ) -> Result<Box<dyn Iterator<Item = Op>>, WorkloadError> {
        let value = |name| parameter(self, spec, name);
        let size = Size {
            files: value("files"),
            bytes: value("bytes"),
        };
        let drawn = tree::draw(Distribution::rootfs(), size, seed, &[]);
        let tree = match spec.unix {
            true => drawn,
            false => drawn.without_unix(),
        };
        let (unix, copies, rounds) = (spec.unix, value("copies"), value("rounds"));
        // With one copy at a time nothing is left to read from.
        let from_card = value("from_card") == 1 && copies > 1;
        Ok(match phase {
            WRITE => {
                Box::new(
                    (0..copies).flat_map(move |at| create(&copy(&tree, at), unix, Writer::Copy)),
                )
            }
            ROTATE => Box::new((0..rounds).flat_map(move |round| {
                let from = from_card.then_some(round + 1);
                let new = copied(&tree, from, round + copies, unix);
                [remove(round)].into_iter().chain(new)
            })),
            REMOVE => Box::new((rounds..rounds + copies).map(remove)),
            WRITE_SYNC | ROTATE_SYNC | REMOVE_SYNC => Box::new([Op::SyncFs].into_iter()),
            other => return Err(unknown_phase(self, other)),
        })
    }
}

/// The directory of the copy with this number.
fn root(number: u64) -> String {
    format!("copy-{number:04}")
}

/// Removes the copy with this number.
fn remove(number: u64) -> Op {
    let path = root(number);
    Op::RemoveTree { path }
}

/// Makes copy `to` of `tree`: each entry is read `from` another copy before it is made, as `cp -r`
/// does, or comes from memory.
fn copied(tree: &Listing, from: Option<u64>, to: u64, unix: bool) -> Vec<Op> {
    let new = create(&copy(tree, to), unix, Writer::Copy);
    let Some(from) = from else {
        return new;
    };
    let old = copy(tree, from).entries;
    let read = old.into_iter().map(|TreeEntry { path, kind, .. }| match kind {
        EntryKind::Directory => Some(Op::ReadDir { path }),
        EntryKind::File { .. } => Some(Op::Read { path }),
        EntryKind::Symlink { .. } => Some(Op::ReadLink { path }),
        // cp knows its content from the name before.
        EntryKind::HardLink { .. } => None,
    });
    let both = read.zip(new);
    both.flat_map(|(read, made)| read.into_iter().chain([made]))
        .collect()
}

/// The copy with this number of `tree`: all of it in a directory of its own.
fn copy(tree: &Listing, number: u64) -> Listing {
    let root = root(number);
    let inside = |entry: &TreeEntry| TreeEntry {
        path: join(&root, &entry.path),
        mode: entry.mode,
        kind: match &entry.kind {
            EntryKind::HardLink { existing } => EntryKind::HardLink {
                existing: join(&root, existing),
            },
            other => other.clone(),
        },
    };
    let own = TreeEntry {
        path: root.clone(),
        mode: 0o755,
        kind: EntryKind::Directory,
    };
    Listing {
        entries: [own]
            .into_iter()
            .chain(tree.entries.iter().map(inside))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::collections::BTreeMap;

    fn ops(phase: &str) -> Vec<Op> {
        ops_with(phase, 1)
    }

    fn ops_with(phase: &str, from_card: u64) -> Vec<Op> {
        let parameters = [
            ("bytes", MIB),
            ("files", 40),
            ("copies", 3),
            ("rounds", 2),
            ("from_card", from_card),
        ];
        let spec = WorkloadSpec {
            name: "copies".into(),
            parameters: parameters
                .iter()
                .map(|&(name, value)| (name.to_owned(), value))
                .collect::<BTreeMap<_, _>>(),
            tree: None,
            unix: true,
            script: None,
            input: None,
        };
        Copies.operations(phase, &spec, None, 1).unwrap().collect()
    }

    /// Bytes and numbers of the copies that files are made in.
    fn made(ops: &[Op]) -> (u64, Vec<String>) {
        let (mut bytes, mut copies) = (0, Vec::new());
        for op in ops {
            if let Op::Create { path, size, .. } = op {
                bytes += size;
                let (copy, _) = path.split_once('/').unwrap();
                copies.push(copy.to_owned());
            }
        }
        copies.dedup();
        (bytes, copies)
    }

    #[test]
    fn every_copy_has_all_bytes_and_a_directory_of_its_own() {
        let (bytes, copies) = made(&ops(WRITE));
        assert_eq!(bytes, 3 * MIB);
        assert_eq!(copies, ["copy-0000", "copy-0001", "copy-0002"]);
    }

    #[test]
    fn a_round_removes_the_oldest_before_it_writes_and_a_sync_ends_them_all() {
        let all = ops(ROTATE);
        let (bytes, copies) = made(&all);
        assert_eq!(bytes, 2 * MIB);
        assert_eq!(copies, ["copy-0003", "copy-0004"]);
        assert_eq!(all[0], remove(0));
        assert!(!all.contains(&Op::SyncFs));
        assert_eq!(ops(REMOVE), [remove(2), remove(3), remove(4)]);
        assert_eq!(ops(ROTATE_SYNC), [Op::SyncFs]);
    }

    #[test]
    fn a_new_copy_is_read_from_the_oldest_that_is_left() {
        let all = ops(ROTATE);
        let files = |all: &[Op]| -> Vec<(String, String)> {
            let read = |pair: &[Op]| match pair {
                [Op::Read { path: from }, Op::Create { path: to, .. }] => {
                    Some((from.clone(), to.clone()))
                }
                _ => None,
            };
            all.windows(2).filter_map(read).collect()
        };
        let pairs = files(&all);
        assert_eq!(pairs.len(), 2 * 40);
        let (from, to) = &pairs[0];
        let (old, new) = (from.split_once('/'), to.split_once('/'));
        assert_eq!(
            (old.unwrap().0, new.unwrap().0),
            ("copy-0001", "copy-0003")
        );
        assert_eq!(old.unwrap().1, new.unwrap().1);
        assert!(files(&ops_with(ROTATE, 0)).is_empty(), "from memory");
    }
}
