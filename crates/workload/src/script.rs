//! Workload `script`: operations that come as data, one JSON object a line.

use crate::content::levels;
use crate::listing::Listing;
use crate::workload::{Error, Parameter, PhaseDef, Workload, unknown_phase};
use std::collections::BTreeMap;
use whichfs_trial::{Content, Op, WorkloadSpec};
use whichfs_units::{GIB, MIB, SECTOR};

/// Farthest end of a file in bytes: what is judged is held in memory.
const END_MAX: u64 = GIB;

/// Most bytes of a call: a guest's memory holds them.
const BLOCK_MAX: u64 = 64 * MIB;

/// Longest wait in nanoseconds.
const WAIT_MAX: u64 = 3_600_000_000_000;

/// The workload.
pub struct Script;

const PHASES: [PhaseDef; 1] = [PhaseDef {
    name: "script",
    meaning: "the operations of the script, in order",
    cold: false,
    writes: true,
    space_after: false,
    metrics: &[],
}];

impl Workload for Script {
    fn name(&self) -> &'static str {
        "script"
    }

    fn title(&self) -> &'static str {
        "operations from a file (crash run --script)"
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[]
    }

    fn phases(&self) -> &'static [PhaseDef] {
        &PHASES
    }

    fn takes_script(&self) -> bool {
        true
    }

    fn contradiction(&self, spec: &WorkloadSpec) -> Option<String> {
        let ops = spec.script.as_deref().unwrap_or_default();
        if let Err(error) = check_script(ops) {
            return Some(error.to_string());
        }
        let links = |op: &&Op| {
            matches!(
                op,
                Op::Symlink { .. } | Op::HardLink { .. } | Op::ReadLink { .. }
            )
        };
        ops.iter().find(links).filter(|_| !spec.unix).map(|op| {
            format!("the filesystem has no links: leave out {op:?}, or take another filesystem")
        })
    }

    fn operations(
        &self,
        phase: &str,
        spec: &WorkloadSpec,
        _tree: Option<&Listing>,
        _seed: u64,
    ) -> Result<Box<dyn Iterator<Item = Op>>, Error> {
        self.check(spec)?;
        if phase != PHASES[0].name {
            return Err(unknown_phase(self, phase));
        }
        let unix = spec.unix;
        let ops = spec.script.clone().unwrap_or_default();
        Ok(Box::new(ops.into_iter().map(move |op| suited(op, unix))))
    }
}

/// `op` without permissions where the filesystem has none.
fn suited(mut op: Op, unix: bool) -> Op {
    if let Op::Mkdir { mode, .. } | Op::Create { mode, .. } = &mut op
        && !unix
    {
        *mode = None;
    }
    op
}

/// Why a script cannot be performed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// A line that is no operation.
    #[error(
        "line {line}: {reason}; a line is one operation, for example \
         {{\"op\":\"mkdir\",\"path\":\"d\"}} (docs/crash.md has them all)"
    )]
    Syntax {
        /// Number of the line, from 1.
        line: usize,
        /// What the parser says.
        reason: String,
    },
    /// An operation that cannot be done there.
    #[error("{}{number}: {reason}", if *.is_line { "line " } else { "operation " })]
    Impossible {
        /// Number of the line or operation, from 1.
        number: usize,
        /// Whether `number` is that of a line.
        is_line: bool,
        /// What is wrong, and the remedy.
        reason: String,
    },
    /// There is nothing to do.
    #[error("it has no operation; give at least one")]
    Empty,
}

/// The operations of a script: one JSON object a line; empty lines and those that begin with `#`
/// are passed over.
///
/// # Errors
/// The first line that is no operation or cannot be done after those before it.
pub fn parse_script(text: &str) -> Result<Vec<Op>, ScriptError> {
    let mut ops = Vec::new();
    let mut tree = Tree::default();
    for (at, line) in text.lines().enumerate() {
        let line_number = at + 1;
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let op: Op = serde_json::from_str(line).map_err(|error| ScriptError::Syntax {
            line: line_number,
            reason: error.to_string(),
        })?;
        tree.apply(&op).map_err(|reason| ScriptError::Impossible {
            number: line_number,
            is_line: true,
            reason,
        })?;
        ops.push(op);
    }
    match ops.is_empty() {
        true => Err(ScriptError::Empty),
        false => Ok(ops),
    }
}

/// The script of `ops`, as [`parse_script`] reads it.
pub fn script_text(ops: &[Op]) -> String {
    let line = |op: &Op| {
        serde_json::to_string(op)
            .unwrap_or_else(|error| unreachable!("an Op is strings and numbers: {error}"))
    };
    ops.iter().map(|op| line(op) + "\n").collect()
}

/// Checks that each of `ops` can be done after those before it, inside its directory.
///
/// # Errors
/// The first that cannot.
pub fn check_script(ops: &[Op]) -> Result<(), ScriptError> {
    let mut tree = Tree::default();
    for (at, op) in ops.iter().enumerate() {
        tree.apply(op).map_err(|reason| ScriptError::Impossible {
            number: at + 1,
            is_line: false,
            reason,
        })?;
    }
    match ops.is_empty() {
        true => Err(ScriptError::Empty),
        false => Ok(()),
    }
}

/// Those of `ops` that can be done after those kept before them, as a script.
pub fn possible_script(mut ops: Vec<Op>) -> Vec<Op> {
    let mut tree = Tree::default();
    ops.retain(|op| tree.apply(op).is_ok());
    ops
}

/// What a path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Directory,
    File,
    Symlink,
}

impl Kind {
    fn words(self) -> &'static str {
        match self {
            Kind::Directory => "a directory",
            Kind::File => "a file",
            Kind::Symlink => "a symbolic link",
        }
    }
}

/// Names and kinds: what is possible.
#[derive(Default)]
struct Tree {
    nodes: BTreeMap<String, Kind>,
}

impl Tree {
    fn apply(&mut self, op: &Op) -> Result<(), String> {
        match op {
            Op::Mkdir { path, .. } => self.make(path, Kind::Directory),
            Op::Symlink { path, .. } => self.make(path, Kind::Symlink),
            Op::Create {
                path,
                size,
                content,
                ..
            }
            | Op::Save {
                path,
                size,
                content,
                ..
            } => {
                writable(0, *size, content)?;
                self.make(path, Kind::File)
            }
            Op::HardLink { path, existing } => {
                self.must_be(existing, Kind::File)?;
                self.make(path, Kind::File)
            }
            Op::ReadDir { path } | Op::SyncDir { path } if path == "." => Ok(()),
            Op::ReadDir { path } | Op::SyncDir { path } | Op::StatAll { path } => {
                self.must_be(path, Kind::Directory)
            }
            Op::Read { path }
            | Op::SyncFile { path }
            | Op::SyncClose { path }
            | Op::WillRead { path, .. } => self.must_be(path, Kind::File),
            Op::Stat { path } => match self.nodes.contains_key(path) {
                true => Ok(()),
                false => Err(missing(path)),
            },
            Op::Clear { path } => self.clear(path),
            Op::ReadAt {
                path,
                offset,
                len,
                block,
                direct,
            } => {
                blocks([*offset, *len, *block], *direct)?;
                self.must_be(path, Kind::File)
            }
            Op::Rewrite {
                path,
                offset,
                len,
                block,
                content,
            } => {
                blocks([*offset, *len, *block], false)?;
                writable(*offset, *len, content)?;
                self.must_be(path, Kind::File)
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
                writable(*offset, *len, content)?;
                self.file_or_new(path)
            }
            Op::Lap => Ok(()),
            Op::Pause { nanoseconds } | Op::WaitUntil { nanoseconds } => match nanoseconds {
                0..=WAIT_MAX => Ok(()),
                _ => Err(format!(
                    "{nanoseconds} ns is too long: take at most {WAIT_MAX}"
                )),
            },
            Op::ReadLink { path } => self.must_be(path, Kind::Symlink),
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
            } => {
                writable(*offset, *len, content)?;
                self.must_be(path, Kind::File)
            }
            Op::Append {
                path, len, content, ..
            } => {
                writable(0, *len, content)?;
                self.file_or_new(path)
            }
            Op::Rename { from, to } => self.rename(from, to),
            Op::Unlink { path } => match self.nodes.get(path) {
                Some(Kind::Directory) => Err(format!("{path} is a directory: use rmdir")),
                Some(_) => {
                    self.nodes.remove(path);
                    Ok(())
                }
                None => Err(missing(path)),
            },
            Op::Rmdir { path } => {
                self.must_be(path, Kind::Directory)?;
                if let Some(inside) = self.below(path).first() {
                    return Err(format!("{path} is not empty: delete {inside} before"));
                }
                self.nodes.remove(path);
                Ok(())
            }
            Op::SyncFs => Ok(()),
        }
    }

    /// A file, which may be there already.
    fn file_or_new(&mut self, path: &str) -> Result<(), String> {
        match self.nodes.get(path) {
            Some(_) => self.must_be(path, Kind::File),
            None => self.make(path, Kind::File),
        }
    }

    /// Every file in a directory goes.
    fn clear(&mut self, path: &str) -> Result<(), String> {
        self.must_be(path, Kind::Directory)?;
        for inside in self.below(path) {
            if self.nodes.get(&inside) == Some(&Kind::Directory) {
                return Err(format!("{inside} is a directory: delete it before"));
            }
            self.nodes.remove(&inside);
        }
        Ok(())
    }

    /// A new path, whose parent is a directory.
    fn make(&mut self, path: &str, kind: Kind) -> Result<(), String> {
        self.expect_parent(path)?;
        match self.nodes.insert(path.to_owned(), kind) {
            None => Ok(()),
            Some(there) => Err(format!(
                "{path} exists and is {}: delete it before, or take another name",
                there.words()
            )),
        }
    }

    fn expect_parent(&self, path: &str) -> Result<(), String> {
        inside(path)?;
        match path.rsplit_once('/') {
            Some((parent, _)) => self.must_be(parent, Kind::Directory),
            None => Ok(()),
        }
    }

    fn must_be(&self, path: &str, wanted: Kind) -> Result<(), String> {
        inside(path)?;
        match self.nodes.get(path) {
            Some(kind) if *kind == wanted => Ok(()),
            Some(kind) => Err(format!(
                "{path} is {}, and must be {}",
                kind.words(),
                wanted.words()
            )),
            None => Err(missing(path)),
        }
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), String> {
        inside(from)?;
        self.expect_parent(to)?;
        let Some(&kind) = self.nodes.get(from) else {
            return Err(missing(from));
        };
        let there = self.nodes.get(to);
        let is_directory = |kind: Kind| kind == Kind::Directory;
        if from == to || there.is_some_and(|&old| is_directory(old) || is_directory(kind)) {
            return Err(format!("{to} exists and cannot be replaced by {from}"));
        }
        if to.starts_with(&format!("{from}/")) {
            return Err(format!("{from} cannot be moved into itself"));
        }
        for path in self.below(from) {
            if let Some(kind) = self.nodes.remove(&path) {
                self.nodes
                    .insert(format!("{to}{}", &path[from.len()..]), kind);
            }
        }
        self.nodes.remove(from);
        self.nodes.insert(to.to_owned(), kind);
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

/// Content that can be made again later, not beyond what can be judged.
fn writable(offset: u64, len: u64, content: &Content) -> Result<(), String> {
    if offset.checked_add(len).is_none_or(|end| end > END_MAX) {
        return Err(format!(
            "a write of {len} bytes at {offset} ends beyond {END_MAX}: take a smaller offset or len"
        ));
    }
    match content {
        Content::Generated { level, .. } if usize::from(*level) < levels().len() => Ok(()),
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

#[cfg(test)]
#[path = "script_tests.rs"]
mod tests;
