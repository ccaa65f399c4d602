//! What a script may do: names, kinds and sizes of files after each of its operations.

use crate::content::levels;
use std::collections::BTreeMap;
use whichfs_trial::{Content, Op};
use whichfs_units::{GIB, MIB, SECTOR};

/// Farthest end of a file in bytes: what is judged is held in memory.
const END_MAX: u64 = GIB;

/// Most bytes of a call: a guest's memory holds them.
const BLOCK_MAX: u64 = 64 * MIB;

/// Longest wait in nanoseconds.
const WAIT_MAX: u64 = 3_600_000_000_000;

/// Longest path in bytes: with the directory under test before it, Linux takes 4095 (PATH_MAX).
const PATH_BYTES_MAX: usize = 4000;

/// Longest target of a symbolic link in bytes (PATH_MAX, symlink(2)).
const TARGET_BYTES_MAX: usize = 4095;

/// Permission bits of chmod(2).
const MODE_MAX: u32 = 0o7777;

/// What a path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    Directory,
    /// File number so many: all its names have the same size.
    File(usize),
    Symlink,
}

impl Node {
    fn words(self) -> &'static str {
        match self {
            Node::Directory => DIRECTORY,
            Node::File(_) => FILE,
            Node::Symlink => SYMLINK,
        }
    }
}

const DIRECTORY: &str = "a directory";
const FILE: &str = "a file";
const SYMLINK: &str = "a symbolic link";

/// Names, kinds and sizes: what is possible.
#[derive(Default)]
pub(crate) struct Tree {
    nodes: BTreeMap<String, Node>,
    /// Bytes of each file.
    sizes: Vec<u64>,
}

impl Tree {
    /// Does `op`; what cannot be done changes nothing.
    ///
    /// # Errors
    /// Why it cannot be done after those before it, and the remedy.
    pub fn apply(&mut self, op: &Op) -> Result<(), String> {
        match op {
            Op::Mkdir { path, mode } => {
                permissions(*mode)?;
                self.make(path, Node::Directory)
            }
            Op::Symlink { path, target } => {
                link_target(target)?;
                self.make(path, Node::Symlink)
            }
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
                permissions(*mode)?;
                let end = end_of(0, *size, content)?;
                self.new_file(path, end)
            }
            Op::HardLink { path, existing } => {
                let file = self.file(existing)?;
                self.make(path, Node::File(file))
            }
            Op::ReadDir { path } | Op::ReadTree { path } | Op::SyncDir { path } if path == "." => {
                Ok(())
            }
            Op::ReadDir { path }
            | Op::ReadTree { path }
            | Op::SyncDir { path }
            | Op::StatAll { path } => self.directory(path),
            Op::Read { path }
            | Op::SyncFile { path }
            | Op::SyncClose { path }
            | Op::WriteBack { path, .. }
            | Op::WillRead { path, .. } => self.file(path).map(drop),
            Op::Stat { path } => match self.nodes.contains_key(path) {
                true => Ok(()),
                false => Err(missing(path)),
            },
            Op::Clear { path } => self.clear(path),
            Op::RemoveTree { path } => self.remove_tree(path),
            Op::ReadAt {
                path,
                offset,
                len,
                block,
                direct,
            } => {
                blocks([*offset, *len, *block], *direct)?;
                self.file(path).map(drop)
            }
            Op::Rewrite {
                path,
                offset,
                len,
                block,
                content,
            } => {
                blocks([*offset, *len, *block], false)?;
                self.overwrite(path, *offset, *len, content)
            }
            Op::WriteAt {
                path,
                offset,
                len,
                block,
                direct,
                content,
            } => {
                blocks([*offset, *len, *block], *direct)?;
                let end = end_of(*offset, *len, content)?;
                self.grow_or_make(path, end)
            }
            Op::Lap | Op::SyncFs => Ok(()),
            Op::Pause { nanoseconds } | Op::WaitUntil { nanoseconds } => match nanoseconds {
                0..=WAIT_MAX => Ok(()),
                _ => Err(format!(
                    "{nanoseconds} ns is too long: take at most {WAIT_MAX}"
                )),
            },
            Op::ReadLink { path } => self.must_be(path, SYMLINK).map(drop),
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
            } => self.overwrite(path, *offset, *len, content),
            Op::WriteSync {
                path,
                offset,
                len,
                content,
            } => {
                let end = end_of(*offset, *len, content)?;
                let file = self.file(path)?;
                self.grow(file, end);
                Ok(())
            }
            Op::Append {
                path, len, content, ..
            } => {
                let end = end_of(self.size(path), *len, content)?;
                self.grow_or_make(path, end)
            }
            Op::Rename { from, to } => self.rename(from, to),
            Op::Unlink { path } => match self.nodes.get(path) {
                Some(Node::Directory) => Err(format!("{path} is a directory: use rmdir")),
                Some(_) => {
                    self.nodes.remove(path);
                    Ok(())
                }
                None => Err(missing(path)),
            },
            Op::Rmdir { path } => {
                self.directory(path)?;
                if let Some(inside) = self.below(path).first() {
                    return Err(format!("{path} is not empty: delete {inside} before"));
                }
                self.nodes.remove(path);
                Ok(())
            }
        }
    }

    /// A file of so many bytes, which is not there yet.
    fn new_file(&mut self, path: &str, size: u64) -> Result<(), String> {
        self.make(path, Node::File(self.sizes.len()))?;
        self.sizes.push(size);
        Ok(())
    }

    /// A file, which may be there already, and has `end` bytes at least.
    fn grow_or_make(&mut self, path: &str, end: u64) -> Result<(), String> {
        if !self.nodes.contains_key(path) {
            return self.new_file(path, end);
        }
        let file = self.file(path)?;
        self.grow(file, end);
        Ok(())
    }

    fn grow(&mut self, file: usize, end: u64) {
        self.sizes[file] = self.sizes[file].max(end);
    }

    /// Bytes of the file at `path`; 0 if there is none.
    fn size(&self, path: &str) -> u64 {
        match self.nodes.get(path) {
            Some(Node::File(file)) => self.sizes[*file],
            _ => 0,
        }
    }

    /// Bytes of a file that are there are written anew.
    fn overwrite(
        &mut self,
        path: &str,
        offset: u64,
        len: u64,
        content: &Content,
    ) -> Result<(), String> {
        let end = end_of(offset, len, content)?;
        let file = self.file(path)?;
        let size = self.sizes[file];
        match end <= size {
            true => Ok(()),
            false => Err(format!(
                "{path} has {size} bytes then, and {len} at {offset} end beyond them: take a \
                 smaller offset or len, or append, write_at or write_sync, which make it longer"
            )),
        }
    }

    /// Every file in a directory goes.
    fn clear(&mut self, path: &str) -> Result<(), String> {
        self.directory(path)?;
        for inside in self.below(path) {
            if self.nodes.get(&inside) == Some(&Node::Directory) {
                return Err(format!("{inside} is a directory: delete it before"));
            }
            self.nodes.remove(&inside);
        }
        Ok(())
    }

    /// A path goes, with all that is below it.
    fn remove_tree(&mut self, path: &str) -> Result<(), String> {
        inside(path)?;
        for inside in self.below(path) {
            self.nodes.remove(&inside);
        }
        match self.nodes.remove(path) {
            Some(_) => Ok(()),
            None => Err(missing(path)),
        }
    }

    /// A new path, whose parent is a directory.
    fn make(&mut self, path: &str, node: Node) -> Result<(), String> {
        self.expect_parent(path)?;
        if let Some(there) = self.nodes.get(path) {
            return Err(format!(
                "{path} exists and is {}: delete it before, or take another name",
                there.words()
            ));
        }
        self.nodes.insert(path.to_owned(), node);
        Ok(())
    }

    fn expect_parent(&self, path: &str) -> Result<(), String> {
        inside(path)?;
        match path.rsplit_once('/') {
            Some((parent, _)) => self.directory(parent),
            None => Ok(()),
        }
    }

    fn directory(&self, path: &str) -> Result<(), String> {
        self.must_be(path, DIRECTORY).map(drop)
    }

    /// The number of the file at `path`.
    fn file(&self, path: &str) -> Result<usize, String> {
        match self.must_be(path, FILE)? {
            Node::File(file) => Ok(file),
            other => unreachable!("{} is not {FILE}", other.words()),
        }
    }

    fn must_be(&self, path: &str, wanted: &str) -> Result<Node, String> {
        inside(path)?;
        match self.nodes.get(path) {
            Some(node) if node.words() == wanted => Ok(*node),
            Some(node) => Err(format!("{path} is {}, and must be {wanted}", node.words())),
            None => Err(missing(path)),
        }
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), String> {
        inside(from)?;
        self.expect_parent(to)?;
        let Some(&node) = self.nodes.get(from) else {
            return Err(missing(from));
        };
        let there = self.nodes.get(to);
        let is_directory = |node: Node| node == Node::Directory;
        if from == to || there.is_some_and(|&old| is_directory(old) || is_directory(node)) {
            return Err(format!("{to} exists and cannot be replaced by {from}"));
        }
        // Two names of one file: rename(2) does nothing then.
        if matches!(node, Node::File(_)) && there == Some(&node) {
            return Ok(());
        }
        if to.starts_with(&format!("{from}/")) {
            return Err(format!("{from} cannot be moved into itself"));
        }
        for path in self.below(from) {
            if let Some(node) = self.nodes.remove(&path) {
                self.nodes
                    .insert(format!("{to}{}", &path[from.len()..]), node);
            }
        }
        self.nodes.remove(from);
        self.nodes.insert(to.to_owned(), node);
        Ok(())
    }

    /// All paths below `path`.
    fn below(&self, path: &str) -> Vec<String> {
        let prefix = format!("{path}/");
        let after = self.nodes.range(prefix.clone()..);
        after
            .take_while(|(path, _)| path.starts_with(&prefix))
            .map(|(path, _)| path.clone())
            .collect()
    }
}

fn missing(path: &str) -> String {
    format!("{path} does not exist then: make it in a line before")
}

/// A path stays in its directory, and is written in one way only.
fn inside(path: &str) -> Result<(), String> {
    let legal = |name: &str| !matches!(name, "" | "." | "..") && !name.contains('\0');
    if path.len() > PATH_BYTES_MAX {
        return Err(format!(
            "the path has {} bytes: take at most {PATH_BYTES_MAX}",
            path.len()
        ));
    }
    match path.split('/').all(legal) {
        true => Ok(()),
        false => Err(format!(
            "{path:?} is no path below the directory under test: names separated by single /, \
             none of them . or .., no / at the begin or end"
        )),
    }
}

/// Offset, length and block of calls that can be made.
fn blocks([offset, len, block]: [u64; 3], direct: bool) -> Result<(), String> {
    if !(1..=BLOCK_MAX).contains(&block) {
        return Err(format!("block {block} is not 1 to {BLOCK_MAX}"));
    }
    let whole = |bytes: u64| bytes.is_multiple_of(SECTOR);
    match !direct || [offset, len, block].into_iter().all(whole) {
        true => Ok(()),
        false => Err(format!(
            "direct: offset {offset}, len {len} and block {block} must be multiples of {SECTOR}"
        )),
    }
}

/// Permission bits that chmod(2) takes.
fn permissions(mode: Option<u32>) -> Result<(), String> {
    match mode {
        Some(mode) if mode > MODE_MAX => Err(format!(
            "mode {mode} is no permissions: take a decimal number up to {MODE_MAX} (octal \
             {MODE_MAX:o}); 420 is octal 644, 493 is octal 755"
        )),
        _ => Ok(()),
    }
}

/// What a symbolic link can point to.
fn link_target(target: &str) -> Result<(), String> {
    match target.len() {
        1..=TARGET_BYTES_MAX if !target.contains('\0') => Ok(()),
        bytes => Err(format!(
            "a link cannot point to this target of {bytes} bytes: take 1 to {TARGET_BYTES_MAX}, \
             none of them 0"
        )),
    }
}

/// Where a write ends; its content can be made again later, and it ends not beyond what can be
/// judged.
fn end_of(offset: u64, len: u64, content: &Content) -> Result<u64, String> {
    let end = offset.checked_add(len).filter(|end| *end <= END_MAX);
    let end = end.ok_or_else(|| {
        format!(
            "a write of {len} bytes at {offset} ends beyond {END_MAX}: take a smaller offset or len"
        )
    })?;
    match content {
        Content::Generated { level, .. } if usize::from(*level) < levels().len() => Ok(end),
        Content::Generated { level, .. } => Err(format!(
            "there is no level {level}: take 0 to {}",
            levels().len() - 1
        )),
        Content::File { path } => Err(format!(
            "content of the file {path} cannot be judged later: use \
             {{\"generated\":{{\"level\":0,\"seed\":1}}}}"
        )),
    }
}
