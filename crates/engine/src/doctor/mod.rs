//! What this machine has, what is missing, and the remedy.

mod checks;
mod packages;

use crate::error::Outcome;
use crate::places;
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::atomic::AtomicBool;

/// How much depends on a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CheckNeed {
    /// Nothing works without.
    Essential,
    /// A filesystem is not made on real devices without.
    Candidate,
    /// Only comfort is lost without.
    Extra,
}

/// One check and what it found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MachineCheck {
    /// What is looked for.
    pub name: String,
    /// How much depends on it.
    pub need: CheckNeed,
    /// True if what is looked for was found.
    pub ok: bool,
    /// What is there, or what is wrong.
    pub found: String,
    /// What is lost; null if all is well.
    pub lost: Option<String>,
    /// What to do; null if all is well.
    pub remedy: Option<String>,
}

impl MachineCheck {
    /// A check that found what it looked for.
    pub fn ok(name: impl Into<String>, need: CheckNeed, found: impl Into<String>) -> MachineCheck {
        MachineCheck {
            name: name.into(),
            need,
            ok: true,
            found: found.into(),
            lost: None,
            remedy: None,
        }
    }

    /// A check that did not.
    pub fn missing(
        name: impl Into<String>,
        need: CheckNeed,
        found: impl Into<String>,
        lost: impl Into<String>,
        remedy: impl Into<String>,
    ) -> MachineCheck {
        MachineCheck {
            name: name.into(),
            need,
            ok: false,
            found: found.into(),
            lost: Some(lost.into()),
            remedy: Some(remedy.into()),
        }
    }
}

/// All checks of this machine; `cancelled` ends the guest that is booted.
///
/// # Errors
/// A shipped file that cannot be read; the lab cannot run.
pub fn machine_checks(cancelled: &AtomicBool) -> Outcome<Vec<MachineCheck>> {
    let machine = checks::all(cancelled)?;
    let mut packages = packages::check();
    if places::require_lab().is_err() {
        // They build the lab and the program.
        packages.retain(|check| check.need != CheckNeed::Essential);
    }
    let mut all = for_use(packages, &machine);
    all.extend(machine);
    Ok(all)
}

/// The checks of packages for somebody who uses what is built: where a guest boots, those that
/// build program and kernel are no longer essential.
fn for_use(mut packages: Vec<MachineCheck>, machine: &[MachineCheck]) -> Vec<MachineCheck> {
    let is_built = machine
        .iter()
        .any(|check| check.name == checks::GUEST && check.ok);
    let essential = |check: &&mut MachineCheck| is_built && check.need == CheckNeed::Essential;
    for check in packages.iter_mut().filter(essential) {
        check.need = CheckNeed::Extra;
        check.lost = check
            .lost
            .take()
            .map(|lost| format!("when building anew, {lost}"));
    }
    packages
}

/// Whether everything essential is there.
pub fn essentials_are_there(checks: &[MachineCheck]) -> bool {
    checks
        .iter()
        .all(|check| check.ok || check.need != CheckNeed::Essential)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_essential_decides() {
        let ok = MachineCheck::ok("a", CheckNeed::Essential, "");
        let lost = |need| MachineCheck::missing("b", need, "", "something", "apt-get install b");
        assert!(essentials_are_there(&[
            ok.clone(),
            lost(CheckNeed::Candidate),
            lost(CheckNeed::Extra)
        ]));
        assert!(!essentials_are_there(&[ok, lost(CheckNeed::Essential)]));
    }

    #[test]
    fn what_builds_is_no_essential_where_all_is_built() {
        let gcc = || {
            vec![MachineCheck::missing(
                "gcc",
                CheckNeed::Essential,
                "",
                "none",
                "",
            )]
        };
        let guest = |ok| {
            let guest = MachineCheck::ok(checks::GUEST, CheckNeed::Essential, "");
            [MachineCheck { ok, ..guest }]
        };
        assert!(essentials_are_there(&for_use(gcc(), &guest(true))));
        assert!(!essentials_are_there(&for_use(gcc(), &guest(false))));
        assert!(!essentials_are_there(&for_use(gcc(), &[])));
    }
}
