//! `whichfs doctor`: what this machine has, what is missing, and the remedy.

mod checks;
mod packages;

use crate::failure::{Kind, Outcome, exit_code};
use crate::{commands, output};
use serde::Serialize;
use std::fmt::Write as _;
use whichfs_engine::cards;

/// How much depends on a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Need {
    /// Nothing works without.
    Essential,
    /// A filesystem is not made on real devices without.
    Candidate,
    /// A convenience.
    Extra,
}

/// One check and what it found.
#[derive(Clone, Debug, Serialize)]
struct Check {
    name: String,
    need: Need,
    ok: bool,
    /// What is there, or what is wrong.
    found: String,
    /// What is lost; null if all is well.
    lost: Option<String>,
    /// What to do; null if all is well.
    remedy: Option<String>,
}

impl Check {
    /// A check that found what it looked for.
    fn ok(name: impl Into<String>, need: Need, found: impl Into<String>) -> Check {
        Check {
            name: name.into(),
            need,
            ok: true,
            found: found.into(),
            lost: None,
            remedy: None,
        }
    }

    /// A check that did not.
    fn missing(
        name: impl Into<String>,
        need: Need,
        found: impl Into<String>,
        lost: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Check {
        Check {
            name: name.into(),
            need,
            ok: false,
            found: found.into(),
            lost: Some(lost.into()),
            remedy: Some(remedy.into()),
        }
    }
}

/// A candidate that this machine cannot make on a real device. The lab has the tools of all.
#[derive(Clone, Debug, Serialize)]
struct LeftOut {
    candidate: &'static str,
    missing_tools: Vec<&'static str>,
    remedy: String,
}

/// The JSON document.
#[derive(Serialize)]
struct Document {
    version: &'static str,
    /// Everything essential is there.
    ok: bool,
    checks: Vec<Check>,
    not_made_on_devices: Vec<LeftOut>,
}

/// Runs the command: exit code 0 if everything essential is there, else 3.
pub fn run(json: bool) -> Outcome<u8> {
    let machine = checks::all()?;
    let mut checks = for_use(packages::check(), &machine);
    checks.extend(machine);
    let document = Document {
        version: env!("CARGO_PKG_VERSION"),
        ok: essentials_are_there(&checks),
        checks,
        not_made_on_devices: left_out()?,
    };
    if json {
        output::json(&document)?;
    } else {
        output::text_line(&text(&document))?;
    }
    Ok(if document.ok {
        0
    } else {
        exit_code(Kind::Environment)
    })
}

/// The checks of packages for somebody who uses what is built: where a guest boots, those that
/// build program and kernel are no longer essential.
fn for_use(mut packages: Vec<Check>, machine: &[Check]) -> Vec<Check> {
    let is_built = machine
        .iter()
        .any(|check| check.name == checks::GUEST && check.ok);
    let essential = |check: &&mut Check| is_built && check.need == Need::Essential;
    for check in packages.iter_mut().filter(essential) {
        check.need = Need::Extra;
        check.lost = check
            .lost
            .take()
            .map(|lost| format!("when building anew, {lost}"));
    }
    packages
}

fn essentials_are_there(checks: &[Check]) -> bool {
    checks
        .iter()
        .all(|check| check.ok || check.need != Need::Essential)
}

fn left_out() -> Outcome<Vec<LeftOut>> {
    let geometry = cards::geometry(&cards::open(cards::DEFAULT)?.profile);
    let left_out = whichfs_fs::candidates().iter().filter_map(|candidate| {
        let missing_tools = commands::fs::missing_tools(candidate, &geometry);
        (!missing_tools.is_empty()).then(|| LeftOut {
            candidate: candidate.name,
            missing_tools,
            remedy: format!("apt-get install {}", candidate.facts().packages.join(" ")),
        })
    });
    Ok(left_out.collect())
}

fn text(document: &Document) -> String {
    let mut text = format!("whichfs {}\n", document.version);
    for check in &document.checks {
        let mark = match (check.ok, check.need) {
            (true, _) => "ok",
            (false, Need::Essential) => "MISSING",
            (false, _) => "missing",
        };
        let _ = write!(text, "{mark:<8}{:<28}{}", check.name, check.found);
        if let (Some(lost), Some(remedy)) = (&check.lost, &check.remedy) {
            let _ = write!(text, ". Lost: {lost}. Remedy: {remedy}");
        }
        text.push('\n');
    }
    let names: Vec<&str> = document
        .not_made_on_devices
        .iter()
        .map(|l| l.candidate)
        .collect();
    if !names.is_empty() {
        let _ = writeln!(
            text,
            "Not made on real devices of this machine: {}",
            names.join(", ")
        );
    }
    text.push_str(match document.ok {
        true => "Everything essential is here.",
        false => "Something essential is missing: see the remedies above.",
    });
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_essential_decides() {
        let ok = Check::ok("a", Need::Essential, "");
        let lost = |need| Check::missing("b", need, "", "something", "apt-get install b");
        assert!(essentials_are_there(&[
            ok.clone(),
            lost(Need::Candidate),
            lost(Need::Extra)
        ]));
        assert!(!essentials_are_there(&[ok, lost(Need::Essential)]));
    }

    #[test]
    fn what_builds_is_no_essential_where_all_is_built() {
        let gcc = || vec![Check::missing("gcc", Need::Essential, "", "none", "")];
        let guest = |ok| {
            let guest = Check::ok(checks::GUEST, Need::Essential, "");
            [Check { ok, ..guest }]
        };
        assert!(essentials_are_there(&for_use(gcc(), &guest(true))));
        assert!(!essentials_are_there(&for_use(gcc(), &guest(false))));
        assert!(!essentials_are_there(&for_use(gcc(), &[])));
    }

    #[test]
    fn what_is_missing_stands_with_loss_and_remedy_on_one_line() {
        let remedy = "apt-get install gcc";
        let document = Document {
            version: "1",
            ok: false,
            checks: vec![Check::missing(
                "gcc",
                Need::Essential,
                "not found",
                "all",
                remedy,
            )],
            not_made_on_devices: vec![LeftOut {
                candidate: "xfs",
                missing_tools: vec!["mkfs.xfs"],
                remedy: String::new(),
            }],
        };
        let text = text(&document);
        let line = text.lines().find(|line| line.starts_with("MISSING gcc"));
        assert!(line.is_some_and(|l| l.contains("Lost: all. Remedy: apt-get install gcc")));
        assert!(
            text.contains("of this machine: xfs") && text.contains("essential is missing"),
            "{text}"
        );
    }
}
