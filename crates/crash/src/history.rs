//! What every path was at every moment of a run, from its operations.

use std::collections::{BTreeMap, BTreeSet};
use whichfs_trial::{ContentDigest, content_digest, sector_digest};
use whichfs_units::SECTOR;
use whichfs_workload::{Content, Op, generated_bytes};

/// The directory under test as a path.
pub(crate) const ROOT: &str = ".";

/// Bytes of memory that is kept for versions of files to be made in.
const ROOM_MAX: usize = 16 << 20;

/// What a path was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    /// A directory with these permissions.
    Directory { mode: Option<u32> },
    /// File number so many.
    File(usize),
    /// A link to this.
    Symlink { target: String },
}

/// What a path became, with the operation that did it, in order; `None`: it is gone.
pub(crate) type States = [(u64, Option<Node>)];

/// What a path of `states` was after `operation` operations.
pub(crate) fn state_at(states: &States, operation: u64) -> Option<&Node> {
    let known = states.partition_point(|(at, _)| *at <= operation);
    states[..known].last().and_then(|(_, node)| node.as_ref())
}

/// What a path of `states` was at any moment from `first` to `last` operations; `None` among them
/// if it did not exist at some.
pub(crate) fn states_within(states: &States, first: u64, last: u64) -> Vec<Option<&Node>> {
    let mut nodes = vec![state_at(states, first)];
    let later = states.iter().filter(|(at, _)| first < *at && *at <= last);
    nodes.extend(later.map(|(_, node)| node.as_ref()));
    nodes
}

/// A file over time.
#[derive(Clone, Debug)]
pub(crate) struct File {
    /// Permissions, where they were asked for.
    pub mode: Option<u32>,
    /// The operations that changed it, the first made it.
    changes: Vec<Change>,
    /// The first operation that synced it.
    synced: Option<u64>,
}

#[derive(Clone, Debug)]
struct Change {
    operation: u64,
    offset: u64,
    len: u64,
    content: Content,
    /// Size afterwards.
    size: u64,
}

/// All paths and files of a run over the numbers of its operations.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// What each path became, with the operation that did it; `None`: it is gone.
    paths: BTreeMap<String, Vec<(u64, Option<Node>)>>,
    files: Vec<File>,
    operations: u64,
}

/// A name of a file, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    /// Relative to the directory under test.
    pub path: String,
    /// The operation that gave it, and the one that took it.
    from: u64,
    until: Option<u64>,
}

impl Name {
    /// Whether the file had it after some operation from `first` to `last`.
    pub fn within(&self, (first, last): (u64, u64)) -> bool {
        self.from <= last && self.until.is_none_or(|until| until > first)
    }

    /// Whether it is the same path as `other`, later.
    pub fn follows(&self, other: &Name) -> bool {
        self.path == other.path && other.until.is_some_and(|until| until <= self.from)
    }

    /// Whether there was some name after each operation from `first` to `last`.
    pub fn cover(names: &[Name], (first, last): (u64, u64)) -> bool {
        let mut next = first;
        // Each turn goes beyond the name that reaches farthest from there.
        while next <= last {
            let reach = names
                .iter()
                .filter(|name| name.from <= next)
                .map(|name| name.until.unwrap_or(u64::MAX))
                .max();
            match reach {
                Some(reach) if reach > next => next = reach,
                _ => return false,
            }
        }
        true
    }
}

/// Why a history cannot be told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HistoryError {
    /// An operation on a path that does not exist then.
    #[error("operation {operation} needs {path}, which does not exist then")]
    Missing {
        /// Number of the operation, from 1.
        operation: u64,
        /// What the operation names, relative to the directory under test.
        path: String,
    },
    /// The content is on the host.
    #[error("{path} is copied from a file of yours; only generated content can be told later")]
    NotGenerated {
        /// Where the file would be made, relative to the directory under test.
        path: String,
    },
}

impl History {
    /// The history of operations in the order in which they were done.
    ///
    /// # Errors
    /// The first operation that does not go with those before it.
    pub fn of(operations: impl IntoIterator<Item = Op>) -> Result<History, HistoryError> {
        let mut history = History::default();
        for operation in operations {
            history.operations += 1;
            history.add(operation)?;
        }
        Ok(history)
    }

    fn add(&mut self, op: Op) -> Result<(), HistoryError> {
        let synced = synced(&op).map(str::to_owned);
        self.perform(op)?;
        if let Some(file) = synced.and_then(|path| self.file_now(&path).ok()) {
            self.files[file].synced.get_or_insert(self.operations);
        }
        Ok(())
    }

    fn perform(&mut self, op: Op) -> Result<(), HistoryError> {
        match op {
            Op::Mkdir { path, mode } => self.set(path, Some(Node::Directory { mode })),
            Op::Symlink { path, target } => self.set(path, Some(Node::Symlink { target })),
            Op::Create {
                path,
                size,
                content,
                mode,
                ..
            }
            | Op::Save {
                path,
                size,
                content,
                mode,
            } => {
                let file = self.new_file(mode);
                self.change(file, &path, Some(0), size, content)?;
                self.set(path, Some(Node::File(file)));
            }
            Op::HardLink { path, existing } => {
                let file = self.file_now(&existing)?;
                self.set(path, Some(Node::File(file)));
            }
            Op::Overwrite {
                path,
                offset,
                len,
                content,
            }
            | Op::Update {
                path,
                offset,
                len,
                content,
            }
            | Op::WriteSync {
                path,
                offset,
                len,
                content,
            }
            | Op::Rewrite {
                path,
                offset,
                len,
                content,
                ..
            } => {
                let file = self.file_now(&path)?;
                self.change(file, &path, Some(offset), len, content)?;
            }
            Op::WriteAt {
                path,
                offset,
                len,
                content,
                ..
            } => {
                let file = self.file_or_new(&path);
                self.change(file, &path, Some(offset), len, content)?;
            }
            Op::Append {
                path, len, content, ..
            } => {
                let file = self.file_or_new(&path);
                self.change(file, &path, None, len, content)?;
            }
            Op::Rename { from, to } => self.rename(&from, &to)?,
            Op::Unlink { path } | Op::Rmdir { path } => {
                self.now(&path)?;
                self.set(path, None);
            }
            Op::SyncFile { path } | Op::SyncClose { path } | Op::WriteBack { path, .. } => {
                self.file_now(&path)?;
            }
            Op::Clear { path } => {
                self.now(&path)?;
                for (inside, _) in self.below(&path) {
                    self.set(inside, None);
                }
            }
            Op::RemoveTree { path } => {
                self.now(&path)?;
                for (inside, _) in self.below(&path) {
                    self.set(inside, None);
                }
                self.set(path, None);
            }
            Op::SyncDir { path } if path != ROOT => {
                self.now(&path)?;
            }
            Op::SyncDir { .. }
            | Op::ReadDir { .. }
            | Op::Read { .. }
            | Op::ReadLink { .. }
            | Op::ReadAt { .. }
            | Op::WillRead { .. }
            | Op::Stat { .. }
            | Op::StatAll { .. }
            | Op::ReadTree { .. }
            | Op::Lap
            | Op::Pause { .. }
            | Op::WaitUntil { .. }
            | Op::SyncFs => {}
        }
        Ok(())
    }

    /// The file at `path`, which is made if nothing is there.
    fn file_or_new(&mut self, path: &str) -> usize {
        self.file_now(path).unwrap_or_else(|_| {
            let file = self.new_file(None);
            self.set(path.to_owned(), Some(Node::File(file)));
            file
        })
    }

    /// What is below `path` now.
    fn below(&self, path: &str) -> Vec<(String, Node)> {
        let prefix = format!("{path}/");
        let below = self.paths.range(prefix.clone()..);
        below
            .take_while(|(path, _)| path.starts_with(&prefix))
            .filter_map(|(path, states)| {
                let (_, node) = states.last()?;
                Some((path.clone(), node.clone()?))
            })
            .collect()
    }

    /// Gives `from`, and all that is below it, the name `to`.
    fn rename(&mut self, from: &str, to: &str) -> Result<(), HistoryError> {
        let node = self.now(from)?;
        // Two names of one file: rename(2) does nothing then.
        if matches!(node, Node::File(_)) && self.now(to).as_ref() == Ok(&node) {
            return Ok(());
        }
        for (path, node) in self.below(from) {
            let moved = format!("{to}{}", &path[from.len()..]);
            self.set(path, None);
            self.set(moved, Some(node));
        }
        self.set(from.to_owned(), None);
        self.set(to.to_owned(), Some(node));
        Ok(())
    }

    fn new_file(&mut self, mode: Option<u32>) -> usize {
        self.files.push(File {
            mode,
            changes: Vec::new(),
            synced: None,
        });
        self.files.len() - 1
    }

    fn set(&mut self, path: String, node: Option<Node>) {
        let states = self.paths.entry(path).or_default();
        states.push((self.operations, node));
    }

    fn now(&self, path: &str) -> Result<Node, HistoryError> {
        self.node_at(path, self.operations)
            .cloned()
            .ok_or_else(|| HistoryError::Missing {
                operation: self.operations,
                path: path.to_owned(),
            })
    }

    fn file_now(&self, path: &str) -> Result<usize, HistoryError> {
        match self.now(path)? {
            Node::File(file) => Ok(file),
            _ => Err(HistoryError::Missing {
                operation: self.operations,
                path: path.to_owned(),
            }),
        }
    }

    /// Adds a write; at the end of the file if no offset is given.
    fn change(
        &mut self,
        file: usize,
        path: &str,
        offset: Option<u64>,
        len: u64,
        content: Content,
    ) -> Result<(), HistoryError> {
        if matches!(content, Content::File { .. }) {
            return Err(HistoryError::NotGenerated {
                path: path.to_owned(),
            });
        }
        let operation = self.operations;
        let changes = &mut self.files[file].changes;
        let before = changes.last().map_or(0, |change| change.size);
        let offset = offset.unwrap_or(before);
        changes.push(Change {
            operation,
            offset,
            len,
            content,
            size: before.max(offset + len),
        });
        Ok(())
    }

    /// All paths that ever existed, in order, and what each became.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &States)> {
        let all = self.paths.iter();
        all.map(|(path, states)| (path.as_str(), states.as_slice()))
    }

    /// What `path` became; nothing if it never existed.
    pub(crate) fn states(&self, path: &str) -> &States {
        self.paths.get(path).map_or(&[], Vec::as_slice)
    }

    /// What `path` was after `operation` operations.
    pub(crate) fn node_at(&self, path: &str, operation: u64) -> Option<&Node> {
        state_at(self.states(path), operation)
    }

    /// What `path` was at any moment from `first` to `last` operations; `None` among them if it
    /// did not exist at some.
    pub(crate) fn nodes_within(&self, path: &str, first: u64, last: u64) -> Vec<Option<&Node>> {
        states_within(self.states(path), first, last)
    }

    /// The operation up to `last` that put `file` at `path` in the place of another file.
    pub(crate) fn replaced_at(&self, path: &str, file: usize, last: u64) -> Option<u64> {
        let states = self.paths.get(path)?;
        let is_file = |node: &Option<Node>| matches!(node, Some(Node::File(_)));
        let replaces = |pair: &&[(u64, Option<Node>)]| {
            is_file(&pair[0].1) && pair[1].1 == Some(Node::File(file)) && pair[1].0 <= last
        };
        states.windows(2).rfind(replaces).map(|pair| pair[1].0)
    }

    /// All names of all files.
    pub(crate) fn names(&self) -> BTreeMap<usize, Vec<Name>> {
        let mut names: BTreeMap<usize, Vec<Name>> = BTreeMap::new();
        for (path, states) in &self.paths {
            for (at, (from, node)) in states.iter().enumerate() {
                if let Some(Node::File(file)) = node {
                    names.entry(*file).or_default().push(Name {
                        path: path.clone(),
                        from: *from,
                        until: states.get(at + 1).map(|(until, _)| *until),
                    });
                }
            }
        }
        names
    }

    pub(crate) fn file(&self, file: usize) -> &File {
        &self.files[file]
    }
}

/// The file that an operation syncs by itself.
fn synced(op: &Op) -> Option<&str> {
    match op {
        Op::SyncFile { path }
        | Op::SyncClose { path }
        | Op::Update { path, .. }
        | Op::WriteSync { path, .. }
        | Op::Save { path, .. }
        | Op::Append {
            path, sync: true, ..
        } => Some(path),
        _ => None,
    }
}

impl File {
    /// Whether one of the first `operations` synced it.
    pub fn is_synced(&self, operations: u64) -> bool {
        self.synced.is_some_and(|first| first <= operations)
    }

    /// Numbers of the versions that it had at any moment from `first` to `last` operations. Version
    /// 0 is the empty file before its first change; version n is after n changes.
    pub fn versions(&self, first: u64, last: u64) -> std::ops::RangeInclusive<usize> {
        let until = |operation| {
            self.changes
                .partition_point(|change| change.operation <= operation)
        };
        // It is made and filled by one operation: empty only if that one is not durable.
        until(first)..=until(last)
    }

    /// Whether all that was changed after operation `durable` lies among the bytes that operation
    /// `write` wrote: an O_SYNC write makes its own bytes and the size durable, no others.
    pub fn is_covered(&self, durable: u64, write: u64) -> bool {
        let (first, last) = self.versions(durable, write).into_inner();
        let since = self.changes.get(first..last).unwrap_or_default();
        let Some(own) = since.last() else {
            return true;
        };
        let end = |change: &Change| change.offset + change.len;
        let inside = |change: &Change| {
            change.len == 0 || own.offset <= change.offset && end(change) <= end(own)
        };
        own.operation == write && since.iter().all(inside)
    }

    /// Bytes of a version.
    pub fn size(&self, version: usize) -> u64 {
        version
            .checked_sub(1)
            .map_or(0, |last| self.changes[last].size)
    }

    /// The whole content of a version.
    pub fn content(&self, version: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.make(version, &mut bytes);
        bytes
    }

    /// Makes `bytes` the whole content of a version.
    fn make(&self, version: usize, bytes: &mut Vec<u8>) {
        bytes.clear();
        bytes.resize(self.size(version) as usize, 0);
        for change in &self.changes[..version] {
            change.fill(bytes);
        }
    }

    /// Digest of a version, as the agent takes it; in `room` it is made where it must be.
    pub fn digest(&self, version: usize, room: &mut Vec<u8>) -> u64 {
        let size = self.size(version);
        let last = self.changes[..version].last();
        let Some(whole) = last.filter(|last| last.offset == 0 && last.len >= size) else {
            self.make(version, room);
            let digest = content_digest(room);
            room.clear();
            room.shrink_to(ROOM_MAX);
            return digest;
        };
        let mut digest = ContentDigest::default();
        whole.pieces(size).for_each(|piece| digest.update(piece));
        digest.finish()
    }

    /// Digest of each sector of a version, cut or filled with zeros to `size` bytes: the size of a
    /// file may reach the card before the bytes that were appended.
    pub fn sectors(&self, version: usize, size: u64) -> Vec<u32> {
        let mut content = self.content(version);
        content.resize(size as usize, 0);
        content.chunks(SECTOR as usize).map(sector_digest).collect()
    }

    /// Digests that each sector had in any version from 1 to the one before `version`, cut or
    /// filled with zeros to `size` bytes. Costs as much as writing all of them once.
    pub fn sectors_before(&self, version: usize, size: u64) -> Vec<BTreeSet<u32>> {
        let mut bytes = vec![0; size as usize];
        let sectors = bytes.len().div_ceil(SECTOR as usize);
        let mut digests = vec![BTreeSet::new(); sectors];
        for (number, change) in self.changes[..version.saturating_sub(1)].iter().enumerate() {
            change.fill(&mut bytes);
            let changed = match number {
                0 => 0..sectors,
                _ => change.sectors(sectors),
            };
            let pieces = bytes.chunks(SECTOR as usize).zip(&mut digests);
            for (piece, digests) in pieces.take(changed.end).skip(changed.start) {
                digests.insert(sector_digest(piece));
            }
        }
        digests
    }
}

impl Change {
    /// The first `len` bytes that it wrote, in pieces.
    fn pieces(&self, len: u64) -> impl Iterator<Item = &'static [u8]> {
        let Content::Generated { level, seed } = self.content else {
            unreachable!("History::change refuses other content");
        };
        let mut done = 0;
        std::iter::from_fn(move || {
            let left = len.checked_sub(done).filter(|left| *left > 0)?;
            let piece = generated_bytes(level, seed, done, left);
            done += piece.len() as u64;
            Some(piece)
        })
    }

    /// Writes what it wrote into the file's `bytes`, as far as these go.
    fn fill(&self, bytes: &mut [u8]) {
        let room = (bytes.len() as u64).saturating_sub(self.offset);
        let mut at = self.offset as usize;
        for piece in self.pieces(self.len.min(room)) {
            bytes[at..at + piece.len()].copy_from_slice(piece);
            at += piece.len();
        }
    }

    /// The sectors that it touched, of a file with so many.
    fn sectors(&self, count: usize) -> std::ops::Range<usize> {
        let end = (self.offset + self.len).div_ceil(SECTOR) as usize;
        ((self.offset / SECTOR) as usize).min(count)..end.min(count)
    }
}

/// The directories above `path`, the nearest first, and the root as `.`.
pub(crate) fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(path);
    std::iter::from_fn(move || {
        let current = rest?;
        let above = current.rsplit_once('/').map(|(above, _)| above);
        rest = above;
        Some(above.unwrap_or("."))
    })
}

#[cfg(test)]
#[path = "history_tests.rs"]
pub(crate) mod tests;
