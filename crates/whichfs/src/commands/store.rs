//! `whichfs store check`: whether the store is whole.

use crate::cli::StoreArgs;
use crate::failure::{Failure, Kind, Outcome, exit_code};
use crate::output;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use whichfs_engine::trial_lookup::existing;
use whichfs_report::Document;
use whichfs_store::Checked;
use whichfs_units::{counted, shell_word};

/// The JSON document.
#[derive(Serialize, JsonSchema)]
pub struct StoreChecked<'a> {
    store: &'a Path,
    ok: bool,
    /// Trials that are what their ids say.
    whole: usize,
    /// How many of these each version of the program made.
    versions: &'a BTreeMap<String, usize>,
    /// How many of these ran in the lab without a sealed userland.
    without_userland: usize,
    faults: Vec<Fault<'a>>,
    damage: &'a [String],
}

#[derive(Serialize, JsonSchema)]
struct Fault<'a> {
    id: &'a str,
    why: &'a str,
}

impl Document for StoreChecked<'_> {
    const NAME: &'static str = "store check";
}

/// Runs the command.
pub fn check(args: &StoreArgs) -> Outcome<u8> {
    let store = existing(args.store.as_deref())?;
    let checked = store.check().map_err(Failure::environment)?;
    let path = store.path();
    if args.json {
        let faults = checked.faults.iter();
        output::document(&StoreChecked {
            store: path,
            ok: checked.is_whole(),
            whole: checked.whole,
            versions: &checked.versions,
            without_userland: checked.unsealed,
            faults: faults
                .map(|fault| Fault {
                    id: &fault.id,
                    why: &fault.why,
                })
                .collect(),
            damage: &checked.damage,
        })?;
    } else {
        output::text(&text(path, &checked))?;
    }
    match checked.is_whole() {
        true => Ok(0),
        false => Ok(exit_code(Kind::No)),
    }
}

/// What was found, in lines.
fn text(path: &Path, checked: &Checked) -> String {
    let mut text = format!("{}\n", path.display());
    let whole = counted(checked.whole as u64, "trial");
    let _ = writeln!(text, "{whole} with the id that the identity gives");
    for (version, &trials) in &checked.versions {
        let _ = writeln!(
            text,
            "  {} by whichfs {version}",
            counted(trials as u64, "trial")
        );
    }
    if checked.unsealed > 0 {
        let trials = counted(checked.unsealed as u64, "trial");
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
    if !checked.is_whole() {
        let path = shell_word(&path.display().to_string());
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
        let mut checked = Checked {
            whole: 2,
            versions: [("0.1.0+4".to_owned(), 2)].into(),
            unsealed: 2,
            ..Checked::default()
        };
        let path = Path::new("/s");
        let fine = text(path, &checked);
        assert!(fine.contains("2 trials by whichfs 0.1.0+4"), "{fine}");
        assert!(!fine.contains("Remedy"), "{fine}");
        checked.faults.push(whichfs_store::Fault {
            id: "0123456789abcdef".into(),
            why: "it was changed".into(),
        });
        let wrong = text(path, &checked);
        assert!(wrong.contains("FAULT 0123456789abcdef: it was changed"));
        assert!(wrong.contains("Remedy"), "{wrong}");
    }
}
