//! What study files of all kinds are read with: ranges, names, workloads.

use super::{Known, Opens, StudyWorkload};
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Spanned;
use whichfs_decide::{FileError, Position};
use whichfs_units::hint;

/// A workload as a file has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LoadFile {
    name: Spanned<String>,
    workload: Spanned<String>,
    #[serde(default)]
    parameters: BTreeMap<String, u64>,
    pub quick: Option<Spanned<BTreeMap<String, u64>>>,
    #[serde(default)]
    only_variants: Vec<Spanned<String>>,
    pub partition_mib: Option<Spanned<u64>>,
    #[serde(default)]
    table: String,
    #[serde(default)]
    cpu: bool,
    #[serde(default)]
    on_devices: bool,
}

/// Legal sizes of a partition.
const PARTITION_MIB: std::ops::RangeInclusive<u64> = 1..=16_777_216;

/// At least one.
pub(super) fn full<T>(at: &Position, key: &str, list: &Spanned<Vec<T>>) -> Result<(), FileError> {
    match list.get_ref().is_empty() {
        true => Err(at.error(list, key, "none", "at least one")),
        false => Ok(()),
    }
}

pub(super) fn within(
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
pub(super) fn names<S: AsRef<str>>(
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
            return Err(at.error(name, key, format!("'{word}'"), &hint(word, &legal, None)));
        }
        if found.contains(word) {
            return Err(at.error(name, key, format!("'{word}' twice"), "each once"));
        }
        found.push(word.clone());
    }
    Ok(found)
}

/// What a card may be called.
pub(super) const CARDS: &str = "a name of `whichfs card list`, or the file of a profile";
/// What a board may be called.
pub(super) const BOARDS: &str = "a name of `whichfs board list`, or the file of a board";

/// Checks that `name` can be opened.
pub(super) fn opens(
    at: &Position,
    key: &str,
    name: &Spanned<String>,
    open: &Opens,
    legal: &str,
) -> Result<(), FileError> {
    open(name.get_ref()).map_err(|why| at.error(name, key, why, legal))
}

/// The name of a row of the matrix; no other of its kind may have it.
pub(super) fn own_name(
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

/// The workloads of a study whose mounts are `variants`; each form must be legal.
pub(super) fn loads(
    at: &Position,
    given: &[LoadFile],
    variants: &[&str],
    known: &Known,
) -> Result<Vec<StudyWorkload>, FileError> {
    let mut loads: Vec<StudyWorkload> = Vec::new();
    for load in given {
        let others: Vec<&str> = loads.iter().map(|load| load.name.as_str()).collect();
        let read = StudyWorkload {
            name: own_name(at, "workloads.name", &load.name, &others)?,
            workload: load.workload.get_ref().clone(),
            parameters: load.parameters.clone(),
            quick: load
                .quick
                .as_ref()
                .map(|quick| quick.get_ref().clone())
                .unwrap_or_default(),
            only_variants: names(at, "workloads.only_variants", &load.only_variants, variants)?,
            partition_bytes: match &load.partition_mib {
                None => None,
                Some(mib) => {
                    let key = "workloads.partition_mib";
                    Some(within(at, key, mib, PARTITION_MIB)? * whichfs_units::MIB)
                }
            },
            table: load.table.clone(),
            at: at.of(&load.name),
            cpu: load.cpu,
            on_devices: load.on_devices,
        };
        for parameters in [&read.parameters, &read.quick_parameters()] {
            (known.workload)(&read.workload, parameters).map_err(|why| {
                let found = format!("'{}' with these parameters", read.workload);
                at.error(&load.workload, "workloads.workload", found, &why)
            })?;
        }
        loads.push(read);
    }
    Ok(loads)
}
