//! `whichfs trial`: one trial of the store: what decided it, what came out, how to repeat it; and
//! how to be rid of it.

use crate::cli::TrialArgs;
use crate::failure::{Failure, Kind, Outcome};
use crate::output;
use std::collections::BTreeMap;
use std::path::Path;
use whichfs_engine::places;
use whichfs_engine::trial_cache::open_store;
use whichfs_report::{TrialTold, trial_text};
use whichfs_store::{Store, Stored};
use whichfs_study::Need;
use whichfs_trial::Identity;
use whichfs_units::MIB;
use whichfs_units::shell_word;

/// Examples in the help text.
pub const EXAMPLES: &str = "\
Examples:
  whichfs trial show 3f2a91                      the beginning of an id is enough
  whichfs trial show 3f2a91 --store trials.sqlite
  whichfs trial show 3f2a91 --json               identity, phases, figures, whole

Ids of trials are in a report's lists of samples, in its results.csv and in its verdict.json.";

/// Trials that are named where the beginning of an id is that of several.
const NAMED: usize = 5;

/// Digits that an id begins with, at least.
const LEAST: usize = 4;

/// Digits of a whole id.
const ID_DIGITS: usize = 64;

/// Runs the command.
pub fn show(args: &TrialArgs) -> Outcome<u8> {
    tell(args, &find(args)?.1)?;
    Ok(0)
}

/// Runs `whichfs trial forget`.
pub fn forget(args: &TrialArgs) -> Outcome<u8> {
    let (mut store, id) = match find(args) {
        Ok((store, stored)) => {
            tell(args, &stored)?;
            (store, stored.id)
        }
        // A record that cannot be read is deleted by its whole id.
        Err(failure) if args.id.len() == ID_DIGITS && failure.kind == Kind::Environment => {
            note!("{}", failure.message);
            (
                existing(args.store.as_deref())?,
                args.id.to_ascii_lowercase(),
            )
        }
        Err(failure) => return Err(failure),
    };
    match store.forget(&id).map_err(Failure::environment)? {
        true => note!("deleted from {}", store.path().display()),
        false => return Err(Failure::environment(format!("{id} is gone meanwhile"))),
    }
    Ok(0)
}

/// Prints the trial.
fn tell(args: &TrialArgs, stored: &Stored) -> Outcome {
    let told = TrialTold {
        id: &stored.id,
        trial: &stored.trial,
        wall_s: stored.wall_ns as f64 / 1e9,
        finished_at_unix: stored.finished_at_unix,
        repeat: repeat(&stored.trial.identity),
    };
    match args.json {
        true => output::json(&told),
        false => output::text(&trial_text(&told, output::width())),
    }
}

/// The store, and in it the one trial whose id begins as asked.
fn find(args: &TrialArgs) -> Outcome<(Store, Stored)> {
    let asked = args.id.to_ascii_lowercase();
    if asked.len() < LEAST || !asked.chars().all(|c| c.is_ascii_hexdigit()) {
        return Err(Failure::input(format!(
            "'{}' is no id of a trial: name its first {LEAST} or more hexadecimal digits, as in a \
             report's results.csv",
            args.id
        )));
    }
    let store = existing(args.store.as_deref())?;
    let path = store.path().to_owned();
    let found = store
        .beginning(&asked, NAMED + 1)
        .map_err(Failure::environment)?;
    let mut found = found.into_iter();
    match (found.next(), found.next()) {
        (Some(one), None) => Ok((store, one)),
        (None, _) => Err(Failure::input(format!(
            "no trial in {} begins with {asked}; was it kept in another store (--store)?",
            path.display()
        ))),
        (Some(first), Some(second)) => {
            let all = [first, second].into_iter().chain(found);
            let mut names: Vec<String> = all.map(|one| named(&one)).collect();
            if names.len() > NAMED {
                names[NAMED] = "…".to_owned();
            }
            Err(Failure::input(format!(
                "several trials begin with {asked}: {}; name more digits",
                names.join(", ")
            )))
        }
    }
}

/// The store at `path`, or in the user's data directory; looking makes none.
pub fn existing(path: Option<&Path>) -> Outcome<Store> {
    let path = path.map_or_else(places::store, |path| Ok(path.to_owned()))?;
    if !path.exists() {
        return Err(Failure::input(format!(
            "there is no store at {}: name the one that the trials were kept in with --store",
            path.display()
        )));
    }
    Ok(open_store(&path)?)
}

fn named(stored: &Stored) -> String {
    let identity = &stored.trial.identity;
    let id = stored.id.get(..12).unwrap_or(&stored.id);
    format!("{id} ({}, seed {})", identity.candidate, identity.seed)
}

/// The command that runs a trial like this one; with the same program, kernel and tools it has the
/// same id.
fn repeat(identity: &Identity) -> String {
    let needs = Need::builtin();
    let fitting = needs
        .iter()
        .find_map(|need| Some((need, size(need, identity)?)));
    let Some((need, size)) = fitting else {
        return format!(
            "no shipped need has the workload {} with these parameters: it is the trial of a need \
             file (its report has the command, under The trials and their commands), or a study's: \
             whichfs study list names the studies, and whichfs study run STUDY --fresh runs them \
             again",
            identity.workload
        );
    };
    let mut words = vec!["whichfs choose".to_owned()];
    let mut option = |name: &str, value: &str| words.push(format!("{name} {}", shell_word(value)));
    option("--for", &need.name);
    option("--card", &identity.card);
    option("--card-state", &identity.card_state);
    option("--board", &identity.board);
    if identity.clock == "device" {
        option("--clock", "device");
    }
    if let Some(mib) = size {
        option("--size", &mib.to_string());
    }
    if !identity.tree_sha256.is_empty() {
        option("--tree", "THE-SAME-DIRECTORY");
    }
    match (&identity.input, identity.workload.as_str()) {
        (Some(command), "command") => option("--command", command),
        (Some(_), _) => option("--fio", "THE-SAME-FILE"),
        (None, _) => {}
    }
    option("--candidates", &identity.candidate);
    option("--first-seed", &identity.seed.to_string());
    option("--seeds", "1");
    // What the store has would not be run, and a report lies in the usual directory.
    words.push("--fresh".to_owned());
    let out = format!("repeat-{}-{}", identity.candidate, identity.seed);
    words.push(format!("--out {}", shell_word(&out)));
    words.join(" ")
}

/// Whether `need` has trials like this one: with which `--size`, if any.
fn size(need: &Need, identity: &Identity) -> Option<Option<u64>> {
    if need.workload != identity.workload || excludes(need, identity) {
        return None;
    }
    let workload = whichfs_workload::find(&need.workload).ok()?;
    let defaults = workload.parameters().iter();
    let mut own: BTreeMap<String, u64> = defaults.map(|p| (p.name.to_owned(), p.default)).collect();
    own.extend(need.parameters.clone());
    if own == identity.parameters {
        return Some(None);
    }
    let (before, bytes) = (*own.get("bytes")?, *identity.parameters.get("bytes")?);
    own.insert("bytes".to_owned(), bytes);
    if let Some(files) = own.get_mut("files") {
        *files = (*files * bytes / before.max(1)).max(1);
    }
    (own == identity.parameters && bytes % MIB == 0).then_some(Some(bytes / MIB))
}

/// Whether a rule of `need` excludes the trial's candidate.
fn excludes(need: &Need, identity: &Identity) -> bool {
    let Ok(candidate) = whichfs_fs::find(&identity.candidate) else {
        return false;
    };
    let facts = [whichfs_engine::facts::of(candidate)];
    let (_, excluded) = whichfs_study::exclude(need, identity.partition_bytes, &facts);
    !excluded.is_empty()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn identity(workload: &str, candidate: &str, parameters: &[(&str, u64)]) -> Identity {
        let text = format!(
            r#"{{"card":"a1-32gb","card_sha256":"","card_state":"used","board":"generic-1ghz",
            "board_sha256":"","clock":"cpu:generic-1ghz","kernel":"6.12","kernel_sha256":"",
            "candidate":"{candidate}","mkfs":[],"mount_options":"noatime","workload":"{workload}",
            "parameters":{{}},"tree_sha256":"","partition_offset":4194304,
            "partition_bytes":32000000000,"memory_mib":512,"version":"0.1","agent_sha256":"",
            "tools":{{}},"cpu_features_sha256":"","seed":7}}"#
        );
        let mut identity: Identity = serde_json::from_str(&text).unwrap();
        let defaults = whichfs_workload::find(workload)
            .unwrap()
            .parameters()
            .iter();
        identity.parameters = defaults.map(|p| (p.name.to_owned(), p.default)).collect();
        for (name, value) in parameters {
            identity.parameters.insert((*name).to_owned(), *value);
        }
        identity
    }

    #[test]
    fn a_trial_is_run_again_with_its_need_candidate_and_seed() {
        assert_eq!(
            repeat(&identity("rootfs", "ext4", &[])),
            "whichfs choose --for rootfs --card a1-32gb --card-state used --board generic-1ghz \
             --candidates ext4 --first-seed 7 --seeds 1 --fresh \
             --out repeat-ext4-7"
        );
        let read_only = repeat(&identity("rootfs", "squashfs-zstd", &[]));
        assert!(read_only.contains("--for rootfs-readonly "), "{read_only}");
    }

    #[test]
    fn another_size_is_told_and_other_parameters_belong_to_a_study() {
        let of = |name: &str| identity("rootfs", "ext4", &[]).parameters[name];
        let half = [("bytes", of("bytes") / 2), ("files", of("files") / 2)];
        let line = repeat(&identity("rootfs", "ext4", &half));
        let mib = of("bytes") / 2 / MIB;
        assert!(
            line.contains(&format!("--size {mib} --candidates")),
            "{line}"
        );
        let odd = repeat(&identity("rootfs", "ext4", &[("files", 1)]));
        assert!(odd.contains("whichfs study run STUDY"), "{odd}");
    }
}
