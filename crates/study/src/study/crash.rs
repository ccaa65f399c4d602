//! Studies of the kind `crash`: a matrix of series of power cuts, filesystems × mounts × fault
//! sets × workloads, each on the same card with the same seed.

use super::keys::{BOARDS, CARDS, LoadFile, full, loads, names, opens, own_name, within};
use super::{Known, StudyWorkload};
use serde::{Deserialize, Serialize};
use toml::Spanned;
use whichfs_decide::{FileError, Position};
use whichfs_units::MIB;

/// Legal cuts of each series.
const CUTS: std::ops::RangeInclusive<u64> = 1..=1_000_000;
/// Legal sizes of the partition in MiB.
const PARTITION_MIB: std::ops::RangeInclusive<u64> = 16..=1 << 20;

/// An experiment with power cuts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct CrashStudy {
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
    /// Size of the partition that holds each filesystem.
    pub partition_bytes: u64,
    /// Seed of workload, card and cuts.
    pub seed: u64,
    /// Cuts of each series.
    pub cuts: u64,
    /// Filesystems of the catalogue.
    pub filesystems: Vec<String>,
    /// Ways to mount them; the first is what the others are compared with.
    pub mounts: Vec<Mount>,
    /// What goes wrong in a series, each set alone.
    pub faults: Vec<FaultSet>,
    /// What is cut.
    pub workloads: Vec<StudyWorkload>,
}

/// A way to mount.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Mount {
    /// In a word.
    pub name: String,
    /// Options beside those of the catalogue.
    pub add: String,
    /// Filesystems that have it; empty for all.
    pub only: Vec<String>,
}

/// Faults at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct FaultSet {
    /// In a few words.
    pub name: String,
    /// Their names; empty for an honest card.
    pub faults: Vec<String>,
}

/// One series of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrashSeries<'a> {
    /// What goes wrong beside the cut.
    pub faults: &'a FaultSet,
    /// What runs until the cut.
    pub load: &'a StudyWorkload,
    /// Name of the filesystem in the catalogue.
    pub fs: &'a str,
    /// Options that differ from the catalogue's.
    pub mount: &'a Mount,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CrashFile {
    name: Spanned<String>,
    #[serde(rename = "kind")]
    _kind: String,
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

fn first_seed() -> u64 {
    1
}

impl CrashStudy {
    /// Reads a study file; `file` is only for messages.
    ///
    /// # Errors
    /// [`FileError`] with line, key and what is legal.
    pub fn parse(file: &str, text: &str, known: &Known) -> Result<CrashStudy, FileError> {
        let at = Position { file, text };
        let raw: CrashFile = at.read(
            "name, kind, title, source, method, card, board, partition_mib, cuts, filesystems, \
             [[mounts]], [[faults]], [[workloads]] as in studies/elc2015-power.toml",
        )?;
        only_series(&at, raw.workloads.get_ref())?;
        let filesystems = names(
            &at,
            "filesystems",
            raw.filesystems.get_ref(),
            known.filesystems,
        )?;
        let study = CrashStudy {
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
            workloads: loads(&at, raw.workloads.get_ref(), &[], known)?,
            filesystems,
        };
        opens(&at, "card", &raw.card, known.card, CARDS)?;
        opens(&at, "board", &raw.board, known.board, BOARDS)?;
        full(&at, "filesystems", &raw.filesystems)?;
        full(&at, "mounts", &raw.mounts)?;
        full(&at, "faults", &raw.faults)?;
        full(&at, "workloads", &raw.workloads)?;
        Ok(study)
    }

    /// All series, those of one fault set and workload together.
    pub fn cells(&self) -> Vec<CrashSeries<'_>> {
        let mut cells = Vec::new();
        for faults in &self.faults {
            for load in &self.workloads {
                for fs in &self.filesystems {
                    let has = |mount: &&Mount| mount.only.is_empty() || mount.only.contains(fs);
                    cells.extend(self.mounts.iter().filter(has).map(|mount| CrashSeries {
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

fn mounts(at: &Position, raw: &CrashFile, fs: &[String]) -> Result<Vec<Mount>, FileError> {
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

fn faults(at: &Position, raw: &CrashFile, known: &Known) -> Result<Vec<FaultSet>, FileError> {
    let mut sets: Vec<FaultSet> = Vec::new();
    for set in raw.faults.get_ref() {
        let others: Vec<&str> = sets.iter().map(|set| set.name.as_str()).collect();
        let name = own_name(at, "faults.name", &set.name, &others)?;
        let faults = names(at, "faults.faults", &set.faults, known.faults)?;
        sets.push(FaultSet { name, faults });
    }
    Ok(sets)
}

/// A series is made shorter by fewer cuts: a smaller workload would be another experiment.
fn only_series(at: &Position, loads: &[LoadFile]) -> Result<(), FileError> {
    if let Some(quick) = loads.iter().find_map(|load| load.quick.as_ref()) {
        return Err(at.error(quick, "workloads.quick", "a quick form", "none: --cuts N"));
    }
    match loads.iter().find_map(|load| load.partition_mib.as_ref()) {
        Some(mib) => {
            let key = "workloads.partition_mib";
            Err(at.error(
                mib,
                key,
                "a partition",
                "none here: partition_mib of the study",
            ))
        }
        None => Ok(()),
    }
}
