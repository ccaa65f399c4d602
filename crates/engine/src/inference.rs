//! Posteriors of cards of which something is known, kept in the cache: inferring takes up to a
//! minute, reading back a moment.

use crate::error::{Error, Outcome};
use crate::{input, places};
use log::{info, warn};
use std::path::Path;
use whichfs_posterior::{
    InferenceOptions, Jobs, Knowledge, Population, Posterior, infer, posterior_key,
};

/// The posterior of the card that the knowledge file `file` with `text` describes.
///
/// # Errors
/// The file or one of its logs is wrong, or its observations contradict each other.
pub fn of_file(file: &str, text: &str) -> Outcome<Posterior> {
    of(file, Knowledge::parse(file, text).map_err(Error::input)?)
}

/// The posterior of the card of which `knowledge` and its logs are known, which is from `file`.
///
/// # Errors
/// One of its logs is wrong, its observations contradict each other, or no card of the population
/// can be it.
pub fn of(file: &str, knowledge: Knowledge) -> Outcome<Posterior> {
    let knowledge = with_logs(file, knowledge)?;
    let name = format!("{:016x}.json", posterior_key(&knowledge));
    let path = places::cache_directory("posterior")?.join(name);
    if let Some(kept) = kept(&path) {
        // Equal knowledge may bear another title.
        return Ok(kept.titled(knowledge.title));
    }
    info!("{file}: inferring what the card may be (up to a minute, once)");
    let population = Population::shipped().map_err(Error::environment)?;
    let options = InferenceOptions {
        jobs: Jobs(side_by_side),
        ..InferenceOptions::default()
    };
    let found = infer(&population, &knowledge, &options)
        .map_err(|error| Error::input(format!("{file}: {error}")))?;
    let json = serde_json::to_vec(&found).map_err(Error::environment)?;
    if let Err(error) = places::write_whole(&path, &json) {
        warn!("{file}: its posterior is not kept: {error}");
    }
    Ok(found)
}

/// `knowledge` with what its logs measured.
fn with_logs(file: &str, mut knowledge: Knowledge) -> Outcome<Knowledge> {
    let beside = Path::new(file).parent().unwrap_or(Path::new("."));
    for log in knowledge.logs.clone() {
        let wrong =
            |error: &dyn std::fmt::Display| Error::input(format!("{file}: log {log}: {error}"));
        let bytes = input::read(beside.join(&log))
            .map_err(|error| wrong(&format!("{error}; name a log that lies beside the file")))?;
        let runs = whichfs_logs::read(&log, bytes).map_err(|error| wrong(&error))?;
        if let [_, _, ..] = &runs[..] {
            return Err(wrong(
                &"it has several runs; a knowledge file takes logs of one card",
            ));
        }
        for run in runs {
            for left_out in knowledge.observe(&log, &run.curves, &run.rates) {
                warn!("{file}: left out of {log}: {left_out}");
            }
        }
    }
    Ok(knowledge)
}

/// The posterior that was kept at `path`; none if there is none, or if it is damaged.
fn kept(path: &Path) -> Option<Posterior> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

/// Each job on a thread of its own.
pub(crate) fn side_by_side(count: usize, job: &(dyn Fn(usize) + Sync)) {
    std::thread::scope(|scope| {
        for at in 0..count {
            scope.spawn(move || job(at));
        }
    });
}
