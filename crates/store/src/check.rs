//! Is a store whole, and are its trials what their ids say?

use crate::error::StoreError;
use crate::store::Store;
use rusqlite::types::ValueRef;
use std::collections::BTreeMap;
use whichfs_trial::{Metric, Status, Trial};

/// What a check of a store found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreCheck {
    /// Trials that are what their ids say.
    pub whole: usize,
    /// How many of these each version of the program made.
    pub versions: BTreeMap<String, usize>,
    /// How many of these ran in the lab without a sealed userland.
    pub unsealed: usize,
    /// What is wrong, by id, in the order of ids.
    pub faults: Vec<RecordFault>,
    /// Damage of the file itself, in SQLite's words.
    pub damage: Vec<String>,
}

/// A record that is not a trial of whichfs as it was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordFault {
    /// Its id in the store.
    pub id: String,
    /// What is wrong with it.
    pub why: String,
}

impl StoreCheck {
    /// Whether nothing is wrong.
    pub fn is_whole(&self) -> bool {
        self.faults.is_empty() && self.damage.is_empty()
    }
}

impl Store {
    /// Checks the file, and of every record whether it can be read, has the id that its identity
    /// gives, and is found by what it is: its copies of identity and metrics.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn check(&self) -> Result<StoreCheck, StoreError> {
        let mut checked = StoreCheck {
            damage: self.damage().map_err(|error| self.sqlite(error))?,
            ..StoreCheck::default()
        };
        let all = self.records().map_err(|error| self.sqlite(error))?;
        for (id, json, copies) in all {
            match judge(&id, &json, &copies) {
                Ok(trial) => {
                    let identity = trial.identity;
                    let sealed = identity.userland_sha256.is_some() || identity.is_measured();
                    checked.whole += 1;
                    checked.unsealed += usize::from(!sealed);
                    *checked.versions.entry(identity.version).or_default() += 1;
                }
                Err(why) => checked.faults.push(RecordFault { id, why }),
            }
        }
        Ok(checked)
    }

    /// What SQLite finds wrong with the file.
    fn damage(&self) -> rusqlite::Result<Vec<String>> {
        let mut integrity = self.connection.prepare("PRAGMA integrity_check")?;
        let found = integrity.query_map([], |row| row.get::<_, String>(0))?;
        let mut damage = found.collect::<rusqlite::Result<Vec<String>>>()?;
        damage.retain(|line| line != "ok");
        let sql = "SELECT DISTINCT trial FROM metric WHERE trial NOT IN (SELECT id FROM trial)";
        let mut orphans = self.connection.prepare(sql)?;
        let orphans = orphans.query_map([], |row| row.get::<_, String>(0))?;
        for id in orphans {
            damage.push(format!("figures of the trial {}, which is not there", id?));
        }
        Ok(damage)
    }

    /// Id, JSON and copies of each record.
    fn records(&self) -> rusqlite::Result<Vec<(String, String, Copies)>> {
        let mut metrics = self.connection.prepare(
            "SELECT metric, value, unit, lower_is_better FROM metric WHERE trial = ?1
             ORDER BY position",
        )?;
        let mut trials = self.connection.prepare(
            "SELECT id, json, done, card, candidate, workload, seed, version FROM trial
             ORDER BY id",
        )?;
        let mut rows = trials.query([])?;
        let mut all = Vec::new();
        while let Some(row) = rows.next()? {
            let id: String = row.get(0)?;
            let columns = (2..8).map(|column| row.get_ref(column).map(text));
            let columns = columns.collect::<rusqlite::Result<Vec<String>>>()?;
            let figures = metrics.query_map([&id], |row| {
                Ok(Metric {
                    metric: row.get(0)?,
                    value: row.get(1)?,
                    unit: row.get(2)?,
                    lower_is_better: row.get(3)?,
                })
            })?;
            let metrics = figures.collect::<rusqlite::Result<Vec<Metric>>>()?;
            all.push((id, row.get(1)?, Copies { columns, metrics }));
        }
        Ok(all)
    }
}

/// What of a trial is stored beside its JSON.
struct Copies {
    /// Done, card, candidate, workload, seed and version, as text.
    columns: Vec<String>,
    metrics: Vec<Metric>,
}

/// A column's value as text.
fn text(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
        other => format!("{other:?}"),
    }
}

/// The trial in `json`, if all that is stored of it agrees.
fn judge(id: &str, json: &str, copies: &Copies) -> Result<Trial, String> {
    let trial: Trial =
        serde_json::from_str(json).map_err(|error| format!("it cannot be read: {error}"))?;
    let identity = &trial.identity;
    let own = identity.id();
    if own != id {
        let digits = own.get(..12).unwrap_or(&own);
        return Err(format!(
            "its identity gives the id {digits}…: it was changed"
        ));
    }
    let columns = [
        i64::from(trial.outcome.status == Status::Done).to_string(),
        identity.card.clone(),
        identity.candidate.clone(),
        identity.workload.clone(),
        identity.seed.cast_signed().to_string(),
        identity.version.clone(),
    ];
    if copies.columns != columns {
        return Err("the columns to search by differ from the record".to_owned());
    }
    match copies.metrics == trial.outcome.metrics {
        true => Ok(trial),
        false => Err("its rows of figures differ from the record".to_owned()),
    }
}
