//! A store of finished trials: its trials in lines, and what it holds in all.

use crate::document::Document;
use crate::text::table;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use whichfs_trial::{Status, Trial};
use whichfs_units::{Bytes, counted, shell_word};

/// A line of `trial list`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TrialListed {
    /// Id of the trial.
    id: String,
    candidate: String,
    card: String,
    board: String,
    workload: String,
    seed: u64,
    /// Whether it failed.
    failed: bool,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    /// When it ended, in seconds since 1970.
    finished_at_unix: i64,
}

/// The document of `store info`.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StoreInfo {
    /// File of the store.
    pub store: PathBuf,
    /// Length of the file in bytes.
    pub bytes: u64,
    /// Trials in it.
    pub trials: u64,
    /// Those that failed.
    pub failed: u64,
    /// Trials by version of whichfs.
    pub versions: BTreeMap<String, u64>,
    /// Trials by workload.
    pub workloads: BTreeMap<String, u64>,
    /// Trials by card.
    pub cards: BTreeMap<String, u64>,
}

/// The document of `store merge`, `store export` and `store gc`: how many trials went where.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StoreChanged {
    /// `merged`, `exported`, `deleted`, or `would be deleted`.
    pub what: &'static str,
    /// How many trials.
    pub trials: u64,
    /// File of the store that was written.
    pub store: PathBuf,
    /// Its size now.
    pub bytes: u64,
}

/// The document of `store check`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StoreChecked {
    /// File of the store.
    pub store: PathBuf,
    /// Whether nothing is wrong.
    pub ok: bool,
    /// Trials that are what their ids say.
    pub whole: usize,
    /// How many of these each version of the program made.
    pub versions: BTreeMap<String, usize>,
    /// How many of these ran in the lab without a sealed userland.
    pub without_userland: usize,
    /// Trials that are not what their ids say.
    pub faults: Vec<StoreFault>,
    /// What SQLite finds wrong with the file.
    pub damage: Vec<String>,
}

/// A trial that is not what its id says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StoreFault {
    /// Id of the trial.
    pub id: String,
    /// What is wrong with it.
    pub why: String,
}

impl Document for StoreChecked {
    const NAME: &'static str = "store check";
}

impl Document for TrialListed {
    const NAME: &'static str = "trial list";
}

impl Document for StoreInfo {
    const NAME: &'static str = "store info";
}

impl Document for StoreChanged {
    const NAME: &'static str = "store change";
}

impl TrialListed {
    /// The line of the `trial` with this id, which ended so many seconds after 1970.
    pub fn new(id: &str, trial: &Trial, finished_at_unix: i64) -> TrialListed {
        let identity = &trial.identity;
        let why = match &trial.outcome.status {
            Status::Done => None,
            Status::Failed { reason, .. } => Some(reason.clone()),
        };
        TrialListed {
            id: id.to_owned(),
            candidate: identity.candidate.clone(),
            card: identity.card.clone(),
            board: identity.board.clone(),
            workload: identity.workload.clone(),
            seed: identity.seed,
            failed: why.is_some(),
            why,
            finished_at_unix,
        }
    }
}

impl StoreInfo {
    /// What the `trials` of the store in the file `store`, of so many `bytes`, are.
    pub fn new<'a>(
        store: &Path,
        bytes: u64,
        trials: impl Iterator<Item = &'a Trial> + Clone,
    ) -> StoreInfo {
        let count = |of: fn(&Trial) -> &String| {
            let mut counts = BTreeMap::new();
            for trial in trials.clone() {
                *counts.entry(of(trial).clone()).or_insert(0) += 1;
            }
            counts
        };
        let failed = trials
            .clone()
            .filter(|trial| trial.outcome.status != Status::Done);
        StoreInfo {
            store: store.to_owned(),
            bytes,
            trials: trials.clone().count() as u64,
            failed: failed.count() as u64,
            versions: count(|trial| &trial.identity.version),
            workloads: count(|trial| &trial.identity.workload),
            cards: count(|trial| &trial.identity.card),
        }
    }
}

/// A table of trials, of at most `width` columns.
pub fn trials_table(trials: &[TrialListed], width: usize) -> String {
    /// Digits of an id that are shown.
    const DIGITS: usize = 12;
    let row = |one: &TrialListed| {
        let ended = one
            .why
            .as_deref()
            .map_or("done", |why| why.lines().next().unwrap_or_default());
        vec![
            one.id.get(..DIGITS).unwrap_or(&one.id).to_owned(),
            one.candidate.clone(),
            one.card.clone(),
            one.workload.clone(),
            one.seed.to_string(),
            ended.to_owned(),
        ]
    };
    let head = ["id", "candidate", "card", "workload", "seed", "ended"];
    table(&head, trials.iter().map(row).collect(), width)
}

/// What a store holds, in lines.
pub fn store_text(info: &StoreInfo) -> String {
    let mut text = format!(
        "{}: {}, {} ({} failed)\n",
        info.store.display(),
        Bytes(info.bytes),
        counted(info.trials, "trial"),
        info.failed
    );
    for (what, of) in [
        ("by version of whichfs", &info.versions),
        ("by workload", &info.workloads),
        ("by card", &info.cards),
    ] {
        let parts: Vec<String> = of
            .iter()
            .map(|(name, count)| format!("{name} {count}"))
            .collect();
        let _ = writeln!(text, "  {what}: {}", parts.join(", "));
    }
    text
}

/// What became of a store, in one line.
pub fn changed_text(changed: &StoreChanged) -> String {
    format!(
        "{} {}; {} is {} now",
        counted(changed.trials, "trial"),
        changed.what,
        changed.store.display(),
        Bytes(changed.bytes)
    )
}

/// What a check of a store found, in lines.
pub fn checked_text(checked: &StoreChecked) -> String {
    let mut text = format!("{}\n", checked.store.display());
    let whole = counted(checked.whole as u64, "trial");
    let _ = writeln!(text, "{whole} with the id that the identity gives");
    for (version, &trials) in &checked.versions {
        let trials = counted(trials as u64, "trial");
        let _ = writeln!(text, "  {trials} by whichfs {version}");
    }
    if checked.without_userland > 0 {
        let trials = counted(checked.without_userland as u64, "trial");
        let _ = writeln!(
            text,
            "  {trials} of the lab without a sealed userland: programs of the host decided too"
        );
    }
    for fault in &checked.faults {
        let _ = writeln!(text, "FAULT {}: {}", fault.id, fault.why);
    }
    for line in &checked.damage {
        let _ = writeln!(text, "DAMAGE {line}");
    }
    if !checked.ok {
        let path = shell_word(&checked.store.display().to_string());
        let _ = writeln!(
            text,
            "Remedy: whichfs trial forget ID --store {path} deletes a faulty trial (with its whole \
             id); damage of the file: restore a copy of it, or go on with another --store"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_told_with_a_remedy() {
        let mut checked = StoreChecked {
            store: "/s".into(),
            ok: true,
            whole: 2,
            versions: [("0.1.0+4".to_owned(), 2)].into(),
            without_userland: 2,
            faults: Vec::new(),
            damage: Vec::new(),
        };
        let fine = checked_text(&checked);
        assert!(fine.contains("2 trials by whichfs 0.1.0+4"), "{fine}");
        assert!(!fine.contains("Remedy"), "{fine}");
        checked.ok = false;
        checked.faults.push(StoreFault {
            id: "0123456789abcdef".into(),
            why: "it was changed".into(),
        });
        let wrong = checked_text(&checked);
        assert!(wrong.contains("FAULT 0123456789abcdef: it was changed"));
        assert!(wrong.contains("Remedy"), "{wrong}");
    }
}
