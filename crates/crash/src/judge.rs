//! What was found on an image against what may and must be there.

use crate::compared::{Bytes, Compared, mixture, older, zeroed};
use crate::contract::Contract;
use crate::floors::Floors;
use crate::found_tree::FoundTree;
use crate::history::{History, Name, Node, States, ancestors, states_within};
use crate::outcome::PathOutcome;
use crate::own::is_own;
use crate::window::{RunTimeline, Window};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use whichfs_trial::Node as FoundNode;

/// What became of one path that is not as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct PathFinding {
    /// Path relative to the directory under test.
    pub path: String,
    /// What became of it.
    pub outcome: PathOutcome,
    /// It breaks a promise of the system or of the filesystem.
    pub broken: bool,
    /// Something that was durable is lost, promised or not.
    pub durable: bool,
    /// In words.
    pub what: String,
}

impl PathFinding {
    /// Whether something durable is lost, promised or not, or is garbage.
    pub fn is_loss(&self) -> bool {
        self.durable || self.outcome.is_wrong()
    }

    /// Whether it breaks a promise, or tells of a loss or of a structure that is not whole.
    pub fn matters(&self) -> bool {
        self.broken || self.is_loss() || self.outcome == PathOutcome::ListedTwice
    }
}

/// What became of something: the outcome, whether that breaks a promise, whether something
/// durable is lost, and in words.
struct Became {
    outcome: PathOutcome,
    broken: bool,
    durable: bool,
    what: String,
}

impl Became {
    fn at(self, path: &str) -> PathFinding {
        PathFinding {
            path: path.to_owned(),
            outcome: self.outcome,
            broken: self.broken,
            durable: self.durable,
            what: self.what,
        }
    }
}

/// Judges many cuts of one run.
pub struct Judge<'a> {
    history: &'a History,
    run: &'a RunTimeline,
    contract: Contract,
    digests: BTreeMap<(usize, usize), u64>,
    /// Where versions are made.
    room: Vec<u8>,
    /// Names of each file.
    names: BTreeMap<usize, Vec<Name>>,
}

/// The files whose sectors are needed: those that may lie between two versions after a cut, and
/// those that were changed since they were made, of which an old version may come back.
pub fn in_flux(
    history: &History,
    run: &RunTimeline,
    window: Window,
    contract: &Contract,
) -> Vec<String> {
    let floors = Floors::new(history, run, window, contract);
    let several = |(_, states): &(&str, &States)| {
        let nodes = states_within(states, window.durable, window.begun);
        nodes.into_iter().flatten().any(|node| match node {
            Node::File(file) => {
                let versions = history
                    .file(*file)
                    .versions(floors.of_file(*file), window.begun);
                versions.start() < versions.end() || *versions.end() > 1
            }
            _ => false,
        })
    };
    let several = history.all().filter(several);
    several.map(|(path, _)| path.to_owned()).collect()
}

/// A path with what it became and what was found there.
type Known<'a> = (&'a str, &'a States, Option<&'a (FoundNode, u32)>);

/// All paths that ever existed or were found, in order.
fn known<'a>(history: &'a History, found: &'a FoundTree) -> impl Iterator<Item = Known<'a>> {
    let mut made = history.all().peekable();
    let mut there = found.entries.iter().peekable();
    std::iter::from_fn(move || {
        let order = match (made.peek(), there.peek()) {
            (Some((path, _)), Some((other, _))) => (*path).cmp(other.as_str()),
            (Some(_), None) => Ordering::Less,
            (None, _) => Ordering::Greater,
        };
        let (path, states) = match order {
            Ordering::Greater => (there.peek()?.0.as_str(), &[][..]),
            _ => made.next()?,
        };
        let entry = match order {
            Ordering::Less => None,
            _ => there.next().map(|(_, entry)| entry),
        };
        Some((path, states, entry))
    })
}

impl<'a> Judge<'a> {
    /// A judge of cuts of `run`, whose operations are `history`, on a filesystem of `contract`.
    pub fn new(history: &'a History, run: &'a RunTimeline, contract: Contract) -> Judge<'a> {
        Judge {
            history,
            run,
            contract,
            digests: BTreeMap::new(),
            room: Vec::new(),
            names: history.names(),
        }
    }

    /// All paths that are not as they were when the power went, in order, and the number of
    /// those that are. `warned`: the kernel spoke of damage.
    pub fn judge(
        &mut self,
        window: Window,
        found: &FoundTree,
        warned: bool,
    ) -> (Vec<PathFinding>, u64) {
        if !window.is_settled() {
            return self.judge_paths(window, found, warned);
        }
        let settled = self.contract.settled();
        let usual = std::mem::replace(&mut self.contract, settled);
        let judged = self.judge_paths(window, found, warned);
        self.contract = usual;
        judged
    }

    fn judge_paths(
        &mut self,
        window: Window,
        found: &FoundTree,
        warned: bool,
    ) -> (Vec<PathFinding>, u64) {
        let floors = Floors::new(self.history, self.run, window, &self.contract);
        let mut findings = Vec::new();
        let mut right = 0;
        for known in known(self.history, found) {
            let (path, _, entry) = known;
            if is_own(path) {
                continue;
            }
            let became = self.path(known, window, &floors, found, warned);
            let became = match found.repeated.contains(path) {
                true => Some(self.listed_twice(became)),
                false => became,
            };
            match became {
                Some(became) => findings.push(became.at(path)),
                None => right += u64::from(entry.is_some()),
            }
        }
        self.vanished(window, &floors, found, &mut findings);
        (findings, right)
    }

    /// Durable files that are under none of their names, though they had one at any moment. A
    /// renamed file may be under either name, so that no single path tells.
    fn vanished(
        &mut self,
        window: Window,
        floors: &Floors,
        found: &FoundTree,
        findings: &mut Vec<PathFinding>,
    ) {
        let promised = floors.promised_names();
        let renamed: Vec<(usize, Vec<Name>)> = self
            .names
            .iter()
            .filter_map(|(&file, names)| {
                let synced = floors.files.get(&file);
                let moments = (floors.names.max(synced.copied().unwrap_or(0)), window.begun);
                let covered = Name::cover(names, moments);
                let within = |name: &&Name| name.within(moments);
                let names: Vec<Name> = names.iter().filter(within).cloned().collect();
                (covered && (synced.is_some() || names.len() > 1)).then_some((file, names))
            })
            .collect();
        for (file, names) in renamed {
            let floor = floors.of_file(file);
            let has = |path: &str| names.iter().any(|name| name.path == path);
            if findings
                .iter()
                .any(|found| found.durable && has(&found.path))
                || names
                    .iter()
                    .any(|name| self.is_there(file, &name.path, (floor, window.begun), found))
            {
                continue;
            }
            let kept = self.contract.keeps_untouched
                && self.contract.fsync_keeps_names
                && (self.contract.fsync_keeps_renamed || !self.is_ousted(file, &names, window));
            let became = Became {
                outcome: PathOutcome::Missing,
                broken: kept || promised,
                durable: true,
                what: "its content was durable, and it is under none of its names".to_owned(),
            };
            // Its last name; two findings of one path would count it twice.
            let Some(Name { path, .. }) = names.last() else {
                continue;
            };
            findings.retain(|finding| finding.path != *path);
            findings.push(became.at(path));
        }
    }

    /// Whether another file took one of `names`, which `file` had had, and was synced: a call that
    /// has not returned may have done its work.
    fn is_ousted(&self, file: usize, names: &[Name], window: Window) -> bool {
        let synced = |other: usize| self.history.file(other).is_synced(window.begun);
        let others = self.names.iter();
        let mut theirs = others
            .filter(|(other, _)| **other != file && synced(**other))
            .flat_map(|(_, names)| names);
        theirs.any(|other| names.iter().any(|name| other.follows(name)))
    }

    /// Whether `path` shows some version of this file, even one that is too old; not if what is
    /// there is another file that had this name.
    fn is_there(&mut self, file: usize, path: &str, window: (u64, u64), found: &FoundTree) -> bool {
        let Some(bytes) = found.bytes(path) else {
            let entry = found.entries.get(path);
            return matches!(entry, Some((FoundNode::Unreadable { .. }, _)));
        };
        match self.content(file, window, bytes) {
            Compared::Right | Compared::Legal(..) => true,
            // Hurt, unless it is another file.
            Compared::Damaged(..) | Compared::Lost(..) => {
                let history = self.history;
                let nodes = history.nodes_within(path, 0, window.1);
                !nodes.into_iter().flatten().any(|node| {
                    let Node::File(other) = node else {
                        return false;
                    };
                    *other != file && self.content(*other, (0, window.1), bytes).is_its_own()
                })
            }
        }
    }

    fn path(
        &mut self,
        (path, states, entry): Known<'_>,
        window: Window,
        floors: &Floors,
        found: &FoundTree,
        warned: bool,
    ) -> Option<Became> {
        let floor = floors.of_name(self.history, &self.contract, path, states);
        let nodes = states_within(states, floor.operation, window.begun);
        let Some((node, mode)) = entry else {
            return self.absent(path, &nodes, found, floor.promised);
        };
        let structure = self.contract.structure;
        let durable = !nodes.contains(&None);
        if let FoundNode::Unreadable { error } = node {
            return Some(Became {
                outcome: PathOutcome::ReadError,
                broken: structure || floor.promised && durable,
                durable,
                what: error.clone(),
            });
        }
        let unexpected = |what: &str, promised: bool| {
            Some(Became {
                outcome: PathOutcome::Unexpected,
                broken: structure || promised,
                durable: true,
                what: what.to_owned(),
            })
        };
        let there: Vec<&Node> = nodes.iter().copied().flatten().collect();
        if there.is_empty() {
            return match states {
                [] => unexpected("no such name was ever made", false),
                _ => unexpected("it was deleted, and that was durable", floor.promised),
            };
        }
        let wrong = if warned {
            PathOutcome::WrongWithWarning
        } else {
            PathOutcome::WrongSilently
        };
        let mut best: Option<Became> = None;
        for node_then in there.iter().copied() {
            let compared = self.compare(path, node_then, (node, *mode), window, floors, found);
            let (outcome, broken, durable, what) = match compared {
                Compared::Right => return None,
                Compared::Legal(outcome, what) => (outcome, false, false, what),
                Compared::Damaged(outcome, what) => {
                    let outcome = outcome.unwrap_or(wrong);
                    (outcome, self.contract.no_garbage, false, what)
                }
                // A rename was under way, and it is whole under its other name.
                Compared::Lost(outcome, what)
                    if !durable
                        && self.is_whole_elsewhere(path, node_then, window, floors, found) =>
                {
                    (outcome.unwrap_or(wrong), false, false, what)
                }
                Compared::Lost(outcome, what) => {
                    let broken = self.contract.keeps_untouched
                        || floors.promised(self.history, &self.contract, node_then, path);
                    (outcome.unwrap_or(wrong), broken, true, what)
                }
            };
            // What explains the bytes that are there goes before what only calls them wrong.
            let rank = |broken, durable, outcome: PathOutcome| {
                (broken, !outcome.explains(), durable, outcome)
            };
            let better = |best: &Became| {
                rank(broken, durable, outcome) < rank(best.broken, best.durable, best.outcome)
            };
            if best.as_ref().is_none_or(better) {
                best = Some(Became {
                    outcome,
                    broken,
                    durable,
                    what,
                });
            }
        }
        let hurt = best
            .as_ref()
            .is_some_and(|best| best.broken || best.durable);
        if hurt && self.went_back(path, &there, floor.operation, window, found) {
            return Some(Became {
                outcome: PathOutcome::Old,
                broken: self.contract.keeps_untouched || floor.promised,
                durable: true,
                what: "the file that had this name before".to_owned(),
            });
        }
        best
    }

    /// What became of a path that its directory has more than once. If nothing else is wrong with
    /// it, that breaks the filesystem's structure, and nothing is lost.
    fn listed_twice(&self, became: Option<Became>) -> Became {
        const WHAT: &str = "its directory lists it more than once";
        match became {
            Some(worse) if worse.broken || worse.durable || worse.outcome.is_wrong() => Became {
                what: format!("{}; {WHAT}", worse.what),
                ..worse
            },
            _ => Became {
                outcome: PathOutcome::ListedTwice,
                broken: self.contract.structure,
                durable: false,
                what: WHAT.to_owned(),
            },
        }
    }

    /// Whether `path` shows a file that had this name before operation `floor`, and is none of
    /// those that may have it now.
    fn went_back(
        &mut self,
        path: &str,
        now: &[&Node],
        floor: u64,
        window: Window,
        found: &FoundTree,
    ) -> bool {
        let Some(bytes) = found.bytes(path) else {
            return false;
        };
        let history = self.history;
        let before = history.nodes_within(path, 0, floor);
        before.into_iter().flatten().any(|node| match node {
            Node::File(file) if bytes.size > 0 && !now.contains(&node) => {
                let content = self.content(*file, (0, window.begun), bytes);
                content.is_its_own()
            }
            _ => false,
        })
    }

    /// Whether the file that `node` is may have another name than `path` and has its content there.
    fn is_whole_elsewhere(
        &mut self,
        path: &str,
        node: &Node,
        window: Window,
        floors: &Floors,
        found: &FoundTree,
    ) -> bool {
        let Node::File(file) = node else {
            return false;
        };
        let moments = (floors.names, window.begun);
        let names = self.names.get(file).into_iter().flatten();
        let others = names.filter(|name| name.path != path && name.within(moments));
        let others: Vec<String> = others.map(|name| name.path.clone()).collect();
        others.iter().any(|other| {
            let Some(bytes) = found.bytes(other) else {
                return false;
            };
            let versions = (floors.of_file(*file), window.begun);
            let content = self.content(*file, versions, bytes);
            matches!(content, Compared::Right | Compared::Legal(..))
        })
    }

    /// A path that was not found; `promised`: a call, or the mount, promised its name.
    fn absent(
        &self,
        path: &str,
        nodes: &[Option<&Node>],
        found: &FoundTree,
        promised: bool,
    ) -> Option<Became> {
        let became = |outcome, broken, durable, what: &str| Became {
            outcome,
            broken,
            durable,
            what: what.to_owned(),
        };
        if nodes.contains(&None) {
            nodes.last().copied().flatten()?;
            let what = "it was new, and nothing had made it durable";
            return Some(became(PathOutcome::Missing, false, false, what));
        }
        let unreadable = |above: &str| {
            let entry = found.entries.get(above);
            matches!(entry, Some((FoundNode::Unreadable { .. }, _)))
        };
        if ancestors(path).any(unreadable) {
            let what = "a directory above it cannot be read";
            return Some(became(
                PathOutcome::ReadError,
                self.contract.structure || promised,
                true,
                what,
            ));
        }
        let broken = self.contract.keeps_untouched || promised;
        Some(became(PathOutcome::Missing, broken, true, "it was durable"))
    }

    fn compare(
        &mut self,
        path: &str,
        then: &Node,
        (now, mode): (&FoundNode, u32),
        window: Window,
        floors: &Floors,
        found: &FoundTree,
    ) -> Compared {
        match (then, now) {
            (Node::Directory { mode: asked }, FoundNode::Directory) => right_mode(*asked, mode),
            (Node::Symlink { target }, FoundNode::Symlink { target: now }) if target == now => {
                Compared::Right
            }
            (Node::Symlink { target }, FoundNode::Symlink { target: now }) => {
                Compared::Damaged(None, format!("it points to {now:?} instead of {target:?}"))
            }
            (Node::File(number), FoundNode::File { .. }) => {
                let replaced = match self.contract.replace_keeps_data {
                    true => self.history.replaced_at(path, *number, window.begun),
                    false => None,
                };
                let floor = floors.of_file(*number).max(replaced.unwrap_or(0));
                let bytes = found.bytes(path);
                let content = bytes.map(|b| self.content(*number, (floor, window.begun), b));
                match content {
                    None | Some(Compared::Right) => {
                        right_mode(self.history.file(*number).mode, mode)
                    }
                    Some(other) => other,
                }
            }
            _ => Compared::Damaged(None, "it is of another kind".to_owned()),
        }
    }

    /// A file's content against its versions.
    fn content(&mut self, number: usize, (first, last): (u64, u64), bytes: Bytes<'_>) -> Compared {
        let Bytes { size, digest, .. } = bytes;
        let file = self.history.file(number);
        let versions = file.versions(first, last);
        for version in versions.clone().rev() {
            if file.size(version) == size && self.digest(number, version) == digest {
                let (what, outcome) = match version {
                    _ if version == *versions.end() => return Compared::Right,
                    0 => ("made, and not filled yet", PathOutcome::Emptied),
                    _ => ("an earlier version", PathOutcome::Old),
                };
                return Compared::Legal(outcome, what.to_owned());
            }
        }
        let older = older(&versions);
        for version in older.clone().rev() {
            if file.size(version) == size && self.digest(number, version) == digest {
                let what = "a version before the one that was durable";
                return Compared::Lost(Some(PathOutcome::Old), what.to_owned());
            }
        }
        let durable = file.size(*versions.start());
        let newest = file.size(*versions.end());
        if size < durable {
            let outcome = if size == 0 {
                PathOutcome::Emptied
            } else {
                PathOutcome::Truncated
            };
            let what = format!("{size} bytes; {durable} were durable");
            return Compared::Lost(Some(outcome), what);
        }
        if size > newest {
            let what = format!("{size} bytes; it never had more than {newest}");
            return Compared::Damaged(None, what);
        }
        match bytes.sectors {
            Some(sectors) => mixture(file, versions, (size, newest), sectors),
            None => zeroed(&file.content(*versions.start()), bytes),
        }
    }

    fn digest(&mut self, number: usize, version: usize) -> u64 {
        let file = self.history.file(number);
        let kept = self.digests.entry((number, version));
        *kept.or_insert_with(|| file.digest(version, &mut self.room))
    }
}

fn right_mode(asked: Option<u32>, found: u32) -> Compared {
    match asked {
        Some(asked) if asked & 0o7777 != found => Compared::Damaged(
            None,
            format!("its mode is {found:04o} instead of {asked:04o}"),
        ),
        _ => Compared::Right,
    }
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "damage_tests.rs"]
mod damage_tests;

#[cfg(test)]
#[path = "promise_tests.rs"]
mod promise_tests;
