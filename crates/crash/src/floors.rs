//! From which operation on names and contents are durable at a cut.

use crate::contract::Contract;
use crate::history::{History, Node, ROOT, States, state_at, states_within};
use crate::window::{RunTimeline, Window};
use std::collections::BTreeMap;

/// The operations up to which things are durable.
pub(crate) struct Floors {
    /// All names.
    pub names: u64,
    /// All contents.
    pub contents: u64,
    /// Each file that was synced by itself.
    pub files: BTreeMap<usize, u64>,
    /// The names in each directory that was synced.
    pub directories: BTreeMap<String, u64>,
    /// The mount promises of what each operation did to names, and to contents.
    returned: (bool, bool),
}

/// From which operation on a name is durable.
pub(crate) struct NameFloor {
    /// Number of the operation whose effect on the name is durable.
    pub operation: u64,
    /// A call, or the mount, promised this very name.
    pub promised: bool,
}

impl Floors {
    /// What is durable at `window` of `run`, on a filesystem of `contract`.
    pub fn new(
        history: &History,
        run: &RunTimeline,
        window: Window,
        contract: &Contract,
    ) -> Floors {
        let returned = run.returned(window.at);
        let all = |promised: bool| match promised {
            true => window.durable.max(returned),
            false => window.durable,
        };
        let mut floors = Floors {
            names: all(contract.returned_names),
            contents: all(contract.returned_writes),
            files: BTreeMap::new(),
            directories: BTreeMap::new(),
            returned: (contract.returned_names, contract.returned_writes),
        };
        for promise in run.of_files(window.at) {
            let at = promise.operations;
            if promise.path == ROOT {
                floors.directories.insert(ROOT.to_owned(), at);
                continue;
            }
            match history.node_at(&promise.path, at) {
                Some(Node::Directory { .. }) => {
                    floors.directories.insert(promise.path.clone(), at);
                }
                Some(Node::File(file)) => {
                    let before = floors.of_file(*file);
                    let whole = promise.call != "O_SYNC";
                    if whole || history.file(*file).is_covered(before, at) {
                        floors.files.insert(*file, at);
                    }
                }
                _ => {}
            }
        }
        floors
    }

    /// From which operation on the content of `file` is durable.
    pub fn of_file(&self, file: usize) -> u64 {
        self.files
            .get(&file)
            .map_or(self.contents, |at| self.contents.max(*at))
    }

    /// Whether a call, or the mount, promised this very content, as it is seen under `path`. Where
    /// names are not promised along, a call only speaks of the name that the file had: a FAT keeps
    /// the size beside the name, and writes both anew when a file is renamed.
    pub fn promised(
        &self,
        history: &History,
        contract: &Contract,
        node: &Node,
        path: &str,
    ) -> bool {
        let Node::File(file) = node else {
            return false;
        };
        let named = |at: &u64| {
            contract.fsync_keeps_names || history.node_at(path, *at) == Some(&Node::File(*file))
        };
        self.returned.1 || self.files.get(file).is_some_and(named)
    }

    /// Whether the mount promised all names.
    pub fn promised_names(&self) -> bool {
        self.returned.0
    }

    /// From which operation on the name `path` is durable; `states`: what it became.
    pub fn of_name(
        &self,
        history: &History,
        contract: &Contract,
        path: &str,
        states: &States,
    ) -> NameFloor {
        let mut floor = NameFloor {
            operation: self.names,
            promised: self.returned.0,
        };
        if contract.fsync_keeps_names {
            for (_, node) in states {
                let Some(Node::File(file)) = node else {
                    continue;
                };
                if let Some(&at) = self.files.get(file)
                    && state_at(states, at) == Some(&Node::File(*file))
                {
                    floor.operation = floor.operation.max(at);
                }
            }
        }
        let above = path.rsplit_once('/').map_or(ROOT, |(above, _)| above);
        if let Some(&at) = self.directories.get(above)
            && contract.fsync_of_directory
            && (contract.fsync_keeps_names || self.is_written(history, contract, path, states, at))
        {
            floor.operation = floor.operation.max(at);
            floor.promised = true;
        }
        floor
    }

    /// Whether fsync of the directory after `at` operations was all that the name `path` lacked,
    /// also where one fsync does one thing: what has it was synced, and the directory is there.
    fn is_written(
        &self,
        history: &History,
        contract: &Contract,
        path: &str,
        states: &States,
        at: u64,
    ) -> bool {
        let written = match state_at(states, at) {
            None => true,
            Some(Node::File(file)) => self.files.contains_key(file),
            Some(Node::Directory { .. }) => self.directories.contains_key(path),
            Some(Node::Symlink { .. }) => false,
        };
        let Some((above, _)) = path.rsplit_once('/') else {
            return written;
        };
        let states = history.states(above);
        let first = self.of_name(history, contract, above, states).operation;
        written && !states_within(states, first.min(at), at).contains(&None)
    }
}
