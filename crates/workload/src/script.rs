//! Workload `script`: operations that come as data, one JSON object a line.

use crate::content::levels;
use crate::listing::Listing;
use crate::workload::{Error, Parameter, PhaseDef, Workload, unknown_phase};
use std::collections::BTreeMap;
use whichfs_trial::{Content, Op, WorkloadSpec};
use whichfs_units::GIB;

/// Farthest end of a file in bytes: what is judged is held in memory.
const END_MAX: u64 = GIB;

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
            } => {
                writable(0, *size, content)?;
                self.make(path, Kind::File)
            }
            Op::HardLink { path, existing } => {
                self.must_be(existing, Kind::File)?;
                self.make(path, Kind::File)
            }
            Op::ReadDir { path } | Op::SyncDir { path } if path == "." => Ok(()),
            Op::ReadDir { path } | Op::SyncDir { path } => self.must_be(path, Kind::Directory),
            Op::Read { path } | Op::SyncFile { path } => self.must_be(path, Kind::File),
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
                match self.nodes.get(path) {
                    Some(_) => self.must_be(path, Kind::File),
                    None => self.make(path, Kind::File),
                }
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
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const GOOD: &str = r#"
# A configuration file is replaced.
{"op":"mkdir","path":"etc","mode":493}
{"op":"create","path":"etc/a","size":10,"content":{"generated":{"level":0,"seed":1}}}
{"op":"create","path":"etc/b","size":20,"content":{"generated":{"level":0,"seed":2}}}
{"op":"sync_file","path":"etc/b"}
{"op":"rename","from":"etc/b","to":"etc/a"}
{"op":"rename","from":"etc","to":"conf"}
{"op":"write_sync","path":"conf/a","offset":5,"len":7,"content":{"generated":{"level":1,"seed":3}}}
{"op":"sync_dir","path":"."}
"#;

    fn spec(script: Option<Vec<Op>>) -> WorkloadSpec {
        WorkloadSpec {
            name: "script".into(),
            parameters: BTreeMap::new(),
            tree: None,
            unix: false,
            script,
        }
    }

    /// The refusal of `line`, in which `$N` is content of level N and `$file` that of a file.
    fn refused(line: &str) -> String {
        let line = line.replace("$file", r#""content":{"file":{"path":"/etc/passwd"}}"#);
        let line = [0, 1, 99].iter().fold(line, |line, level| {
            let content = format!(r#""content":{{"generated":{{"level":{level},"seed":1}}}}"#);
            line.replace(&format!("${level}}}"), &format!("{content}}}"))
        });
        parse_script(&format!("{GOOD}{line}\n"))
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn a_script_is_its_lines() {
        let ops = parse_script(GOOD).unwrap();
        assert_eq!(ops.len(), 8);
        assert_eq!(parse_script(&script_text(&ops)).unwrap(), ops);
        let spec = spec(Some(ops));
        let done: Vec<Op> = Script
            .operations("script", &spec, None, 1)
            .unwrap()
            .collect();
        assert!(matches!(&done[0], Op::Mkdir { mode: None, .. }));
        assert_eq!(done[7], Op::SyncDir { path: ".".into() });
    }

    #[test]
    fn paths_that_leave_the_directory_are_refused() {
        for path in ["/etc", "../x", "conf/../../x", ".", "", "conf//x", "conf/"] {
            let error = refused(&format!(r#"{{"op":"mkdir","path":"{path}"}}"#));
            assert!(error.starts_with("line 11: "), "{path}: {error}");
            assert!(error.contains("no path below"), "{path}: {error}");
        }
        // Through a link out of it, or one that was moved away.
        let link = r#"{"op":"symlink","path":"out","target":"/"}"#;
        let error = refused(&format!("{link}\n{{\"op\":\"mkdir\",\"path\":\"out/x\"}}"));
        assert!(error.contains("out is a symbolic link"), "{error}");
        let error = refused(r#"{"op":"mkdir","path":"etc/x"}"#);
        assert!(error.contains("etc does not exist then"), "{error}");
    }

    #[test]
    fn errors_name_the_line_and_the_remedy() {
        let cases = [
            ("{", "line 11: EOF"),
            (r#"{"op":"mkdri","path":"a"}"#, "unknown variant `mkdri`"),
            (r#"{"op":"mkdir","path":"a","size":1}"#, "unknown field"),
            (r#"{"op":"unlink","path":"conf"}"#, "use rmdir"),
            (r#"{"op":"rmdir","path":"conf"}"#, "delete conf/a before"),
            (r#"{"op":"rename","from":"x","to":"y"}"#, "x does not exist"),
            (
                r#"{"op":"rename","from":"conf","to":"conf/b"}"#,
                "into itself",
            ),
            (
                r#"{"op":"create","path":"c","size":1,$99}"#,
                "there is no level 99",
            ),
            (
                r#"{"op":"append","path":"c","len":1,$file,"sync":true}"#,
                "cannot be judged",
            ),
            (
                r#"{"op":"overwrite","path":"conf/a","offset":99999999999,"len":1,$0}"#,
                "smaller offset",
            ),
        ];
        for (line, expected) in cases {
            let error = refused(line);
            assert!(error.contains(expected), "{line}: {error}");
        }
        assert_eq!(parse_script("# none\n"), Err(ScriptError::Empty));
        assert!(Script.check(&spec(None)).is_err());
    }

    #[test]
    fn only_this_workload_takes_a_script() {
        let mut other = spec(parse_script(GOOD).ok());
        Script.check(&other).unwrap();
        other.name = "logger".into();
        let error = crate::find("logger").unwrap().check(&other).unwrap_err();
        assert!(error.to_string().contains("script"), "{error}");
    }
}
