//! Studies: experiments as data, one TOML file each in `studies/`.
//!
//! A study is a matrix with a kind: series of power cuts (`crash`) or trials with figures
//! (`performance`). The file says in prose where the experiment comes from and how this one
//! differs from it.

mod compare;
mod crash;
mod kernels;
mod keys;
mod performance;
mod published;
mod second_card;
mod spots;
mod variant;

pub use compare::{Base, Compare};
pub use crash::{CrashSeries, CrashStudy, FaultSet, Mount};
pub use performance::{PerformanceStudy, Smallest};
pub use published::{Mapped, Mapping, PublishedFigure, Skipped};
pub use second_card::{SecondCard, SecondCardUse};
pub use spots::Spot;
pub use variant::{JournalAt, JournalPartition, Offset, Tuning, Variant};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use toml::Spanned;
use whichfs_decide::{FileError, Position};

/// The kinds of studies.
const KINDS: [&str; 2] = ["crash", "performance"];

/// A study of any kind.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Study {
    /// Series of power cuts.
    Crash(CrashStudy),
    /// Trials with figures.
    Performance(PerformanceStudy),
}

#[derive(Deserialize)]
struct KindFile {
    kind: Spanned<String>,
}

impl Study {
    /// Reads a study file; `file` is only for messages.
    ///
    /// # Errors
    /// [`FileError`] with line, key and what is legal.
    pub fn parse(file: &str, text: &str, known: &Known) -> Result<Study, FileError> {
        let at = Position { file, text };
        let kinds = KINDS.join(" or ");
        let raw: KindFile = at.read(&format!("kind, which is {kinds}"))?;
        match raw.kind.get_ref().as_str() {
            "crash" => CrashStudy::parse(file, text, known).map(Study::Crash),
            "performance" => PerformanceStudy::parse(file, text, known).map(Study::Performance),
            other => Err(at.error(&raw.kind, "kind", format!("'{other}'"), &kinds)),
        }
    }

    /// Name as after `study run`.
    pub fn name(&self) -> &str {
        match self {
            Study::Crash(study) => &study.name,
            Study::Performance(study) => &study.name,
        }
    }
}

/// A workload with parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct StudyWorkload {
    /// In a few words.
    pub name: String,
    /// Name of the workload.
    pub workload: String,
    /// Parameters that are not the default.
    pub parameters: BTreeMap<String, u64>,
    /// Those that the quick form has in their place.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub quick: BTreeMap<String, u64>,
    /// Mounts that it is run with; empty for all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub only_variants: Vec<String>,
    /// Bytes of the partition that it is run on, if not all of the card.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition_bytes: Option<u64>,
    /// The table that its figures stand in, with other workloads; its own if empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub table: String,
    /// Where it stands in its file, as `mine.toml:12`; empty if it is of no file.
    #[serde(skip)]
    pub at: String,
    /// It asks for several CPUs: run on real devices and boards alone, never in the lab.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub on_devices: bool,
    /// Its tables have lines for the CPU time of each phase and for how busy the device was.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cpu: bool,
}

impl StudyWorkload {
    /// The parameters of the quick form.
    pub fn quick_parameters(&self) -> BTreeMap<String, u64> {
        let mut all = self.parameters.clone();
        all.extend(self.quick.clone());
        all
    }

    /// Whether its tables have lines for `metric`.
    pub fn shows(&self, metric: &str) -> bool {
        self.cpu || !whichfs_trial::is_use_of_phase(metric)
    }
}

/// What a study file may name; the command knows it from the other crates.
pub struct Known<'a> {
    /// All candidates of the catalogue.
    pub candidates: &'a [&'a str],
    /// Those whose contract says what a power cut may cost.
    pub filesystems: &'a [&'a str],
    /// Names of the faults that a power cut may add.
    pub faults: &'a [&'a str],
    /// Whether a card of this name, or in this file, can be opened; why not.
    pub card: &'a Opens,
    /// The same of a board.
    pub board: &'a Opens,
    /// Whether a workload of this name takes these parameters; what is legal if not.
    pub workload: &'a Takes,
    /// Whether trials of a workload of this name yield this metric; what they yield if not.
    pub metric: &'a Yields,
}

/// Opens something by its name or file; why it cannot be opened.
pub type Opens = dyn Fn(&str) -> Result<(), String>;

/// Judges a workload's name and parameters; what is legal if they are not.
pub type Takes = dyn Fn(&str, &BTreeMap<String, u64>) -> Result<(), String>;

/// Judges a metric of a workload.
pub type Yields = dyn Fn(&str, &str) -> Result<(), String>;

/// The studies that ship with the program: name and text of `studies/NAME.toml`, by name.
pub const STUDIES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/studies.rs"));

/// The published tables that ship with the program: name and text of `published/NAME.csv`, by name.
pub const PUBLISHED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/published.rs"));
