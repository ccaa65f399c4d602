//! Studies: experiments as data, one TOML file each in `studies/`.
//!
//! A study of the kind `crash` is a matrix of series of power cuts: filesystems × mounts ×
//! fault sets × workloads, each on the same card with the same seed. The file says in prose
//! where the experiment comes from and how this one differs from it.

use crate::need::hint;
use crate::position::{FileError, Position};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use toml::Spanned;
use whichfs_units::MIB;

/// The only kind of study so far.
const KIND: &str = "crash";
/// Legal cuts of each series.
const CUTS: std::ops::RangeInclusive<u64> = 1..=1_000_000;
/// Legal sizes of the partition in MiB.
const PARTITION_MIB: std::ops::RangeInclusive<u64> = 16..=1 << 20;

/// An experiment with power cuts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Study {
    /// Name as after `study run`.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// Where the experiment comes from.
    pub source: String,
    /// How it is made, and how that differs from the source.
    pub method: String,
    /// Card: a name or a profile file.
    pub card: String,
    /// Board: a name or a board file.
    pub board: String,
    /// Bytes of the partition.
    pub partition_bytes: u64,
    /// Seed of workload, card and cuts.
    pub seed: u64,
    /// Cuts of each series.
    pub cuts: u64,
    /// Filesystems of the catalogue.
    pub filesystems: Vec<String>,
    /// Ways to mount them; the first is what the others are compared with.
    pub mounts: Vec<Mount>,
    /// Sets of faults.
    pub faults: Vec<FaultSet>,
    /// What is cut.
    pub workloads: Vec<Load>,
}

/// A way to mount.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mount {
    /// In a word.
    pub name: String,
    /// Options beside those of the catalogue.
    pub add: String,
    /// Filesystems that have it; empty for all.
    pub only: Vec<String>,
}

/// Faults at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FaultSet {
    /// In a few words.
    pub name: String,
    /// Their names; empty for an honest card.
    pub faults: Vec<String>,
}

/// A workload with parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Load {
    /// In a few words.
    pub name: String,
    /// Name of the workload.
    pub workload: String,
    /// Parameters that are not the default.
    pub parameters: BTreeMap<String, u64>,
}

/// One series of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell<'a> {
    /// Faults.
    pub faults: &'a FaultSet,
    /// Workload.
    pub load: &'a Load,
    /// Filesystem.
    pub fs: &'a str,
    /// Mount.
    pub mount: &'a Mount,
}

/// What a study file may name; the command knows it from the other crates.
pub struct Known<'a> {
    /// Filesystems that can be written to.
    pub filesystems: &'a [&'a str],
    /// Faults.
    pub faults: &'a [&'a str],
    /// Whether a workload of this name takes these parameters; what is legal if not.
    pub workload: &'a Takes,
}

/// Judges a workload's name and parameters; what is legal if they are not.
pub type Takes = dyn Fn(&str, &BTreeMap<String, u64>) -> Result<(), String>;

/// The studies that ship with the program, by the name of their files.
pub const STUDIES: [(&str, &str); 3] = [
    (
        "studies/elc2015-corruption.toml",
        include_str!("../../../studies/elc2015-corruption.toml"),
    ),
    (
        "studies/elc2015-power.toml",
        include_str!("../../../studies/elc2015-power.toml"),
    ),
    (
        "studies/sync-mounts.toml",
        include_str!("../../../studies/sync-mounts.toml"),
    ),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StudyFile {
    name: Spanned<String>,
    kind: Spanned<String>,
    title: Spanned<String>,
    source: Spanned<String>,
    method: Spanned<String>,
    card: Spanned<String>,
    board: Spanned<String>,
    partition_mib: Spanned<u64>,
    #[serde(default = "first_seed")]
    seed: u64,
    cuts: Spanned<u64>,
    filesystems: Spanned<Vec<Spanned<String>>>,
    mounts: Spanned<Vec<MountFile>>,
    faults: Spanned<Vec<FaultsFile>>,
    workloads: Spanned<Vec<LoadFile>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MountFile {
    name: Spanned<String>,
    #[serde(default)]
    add: String,
    #[serde(default)]
    only: Vec<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FaultsFile {
    name: Spanned<String>,
    #[serde(default)]
    faults: Vec<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LoadFile {
    name: Spanned<String>,
    workload: Spanned<String>,
    #[serde(default)]
    parameters: BTreeMap<String, u64>,
}

fn first_seed() -> u64 {
    1
}

impl Study {
    /// Reads a study file; `file` is only for messages.
    ///
    /// # Errors
    /// [`FileError`] with line, key and what is legal.
    pub fn parse(file: &str, text: &str, known: &Known) -> Result<Study, FileError> {
        let at = Position { file, text };
        let raw: StudyFile = at.read(
            "name, kind, title, source, method, card, board, partition_mib, cuts, filesystems, \
             [[mounts]], [[faults]], [[workloads]] as in studies/elc2015-power.toml",
        )?;
        if raw.kind.get_ref() != KIND {
            let found = format!("'{}'", raw.kind.get_ref());
            return Err(at.error(&raw.kind, "kind", found, KIND));
        }
        let filesystems = names(
            &at,
            "filesystems",
            raw.filesystems.get_ref(),
            known.filesystems,
        )?;
        let study = Study {
            name: at.filled("name", &raw.name)?,
            title: at.filled("title", &raw.title)?,
            source: at.filled("source", &raw.source)?,
            method: at.filled("method", &raw.method)?,
            card: at.filled("card", &raw.card)?,
            board: at.filled("board", &raw.board)?,
            partition_bytes: within(&at, "partition_mib", &raw.partition_mib, PARTITION_MIB)? * MIB,
            seed: raw.seed,
            cuts: within(&at, "cuts", &raw.cuts, CUTS)?,
            mounts: mounts(&at, &raw, &filesystems)?,
            faults: faults(&at, &raw, known)?,
            workloads: loads(&at, &raw, known)?,
            filesystems,
        };
        full(&at, "filesystems", &raw.filesystems)?;
        full(&at, "mounts", &raw.mounts)?;
        full(&at, "faults", &raw.faults)?;
        full(&at, "workloads", &raw.workloads)?;
        Ok(study)
    }

    /// All series, those of one fault set and workload together.
    pub fn cells(&self) -> Vec<Cell<'_>> {
        let mut cells = Vec::new();
        for faults in &self.faults {
            for load in &self.workloads {
                for fs in &self.filesystems {
                    let has = |mount: &&Mount| mount.only.is_empty() || mount.only.contains(fs);
                    cells.extend(self.mounts.iter().filter(has).map(|mount| Cell {
                        faults,
                        load,
                        fs,
                        mount,
                    }));
                }
            }
        }
        cells
    }
}

/// At least one.
fn full<T>(at: &Position, key: &str, list: &Spanned<Vec<T>>) -> Result<(), FileError> {
    match list.get_ref().is_empty() {
        true => Err(at.error(list, key, "none", "at least one")),
        false => Ok(()),
    }
}

fn within(
    at: &Position,
    key: &str,
    value: &Spanned<u64>,
    legal: std::ops::RangeInclusive<u64>,
) -> Result<u64, FileError> {
    match legal.contains(value.get_ref()) {
        true => Ok(*value.get_ref()),
        false => Err(at.error(
            value,
            key,
            value.get_ref().to_string(),
            &format!("{} to {}", legal.start(), legal.end()),
        )),
    }
}

/// Names that must be among `legal`, each once.
fn names<S: AsRef<str>>(
    at: &Position,
    key: &str,
    given: &[Spanned<String>],
    legal: &[S],
) -> Result<Vec<String>, FileError> {
    let mut found: Vec<String> = Vec::new();
    for name in given {
        let word = name.get_ref();
        if !legal.iter().any(|legal| legal.as_ref() == word) {
            let legal: Vec<String> = legal.iter().map(|name| name.as_ref().to_owned()).collect();
            return Err(at.error(name, key, format!("'{word}'"), &hint(word, &legal)));
        }
        if found.contains(word) {
            return Err(at.error(name, key, format!("'{word}' twice"), "each once"));
        }
        found.push(word.clone());
    }
    Ok(found)
}

/// The name of a row of the matrix; no other of its kind may have it.
fn own_name(
    at: &Position,
    key: &str,
    name: &Spanned<String>,
    others: &[&str],
) -> Result<String, FileError> {
    let own = at.filled(key, name)?;
    match others.contains(&own.as_str()) {
        true => Err(at.error(name, key, format!("'{own}' twice"), "a name of its own")),
        false => Ok(own),
    }
}

fn mounts(at: &Position, raw: &StudyFile, fs: &[String]) -> Result<Vec<Mount>, FileError> {
    let mut mounts: Vec<Mount> = Vec::new();
    for mount in raw.mounts.get_ref() {
        let others: Vec<&str> = mounts.iter().map(|mount| mount.name.as_str()).collect();
        let name = own_name(at, "mounts.name", &mount.name, &others)?;
        let only = names(at, "mounts.only", &mount.only, fs)?;
        let add = mount.add.clone();
        mounts.push(Mount { name, add, only });
    }
    Ok(mounts)
}

fn faults(at: &Position, raw: &StudyFile, known: &Known) -> Result<Vec<FaultSet>, FileError> {
    let mut sets: Vec<FaultSet> = Vec::new();
    for set in raw.faults.get_ref() {
        let others: Vec<&str> = sets.iter().map(|set| set.name.as_str()).collect();
        let name = own_name(at, "faults.name", &set.name, &others)?;
        let faults = names(at, "faults.faults", &set.faults, known.faults)?;
        sets.push(FaultSet { name, faults });
    }
    Ok(sets)
}

fn loads(at: &Position, raw: &StudyFile, known: &Known) -> Result<Vec<Load>, FileError> {
    let mut loads: Vec<Load> = Vec::new();
    for load in raw.workloads.get_ref() {
        let others: Vec<&str> = loads.iter().map(|load| load.name.as_str()).collect();
        let name = own_name(at, "workloads.name", &load.name, &others)?;
        let workload = load.workload.get_ref().clone();
        (known.workload)(&workload, &load.parameters).map_err(|why| {
            let found = format!("'{workload}' with these parameters");
            at.error(&load.workload, "workloads.workload", found, &why)
        })?;
        let parameters = load.parameters.clone();
        loads.push(Load {
            name,
            workload,
            parameters,
        });
    }
    Ok(loads)
}
