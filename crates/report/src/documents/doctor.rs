//! What this machine has, what is missing, and the remedy.

use crate::document::Document;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write as _;

/// A candidate that this machine cannot make on a real device. The lab has the tools of all.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LeftOut {
    /// As `--fs` takes it.
    pub candidate: &'static str,
    /// Programs that are missing.
    pub missing_tools: Vec<&'static str>,
    /// What to do.
    pub remedy: String,
}

/// What this machine has, what is missing, and the remedy; `C` is a check.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Doctor<C> {
    /// Version of the program.
    pub version: &'static str,
    /// Everything essential is there.
    pub ok: bool,
    /// All checks.
    pub checks: Vec<C>,
    /// Candidates that this machine cannot make on a real device.
    pub not_made_on_devices: Vec<LeftOut>,
}

impl<C: Serialize + JsonSchema> Document for Doctor<C> {
    const NAME: &'static str = "doctor";
}

/// A check in a line.
#[derive(Clone, Copy, Debug)]
pub struct DoctorLine<'a> {
    /// Nothing works without.
    pub essential: bool,
    /// What is looked for.
    pub name: &'a str,
    /// What was found.
    pub found: &'a str,
    /// What is lost without, and the remedy; none if it is there.
    pub missing: Option<(&'a str, &'a str)>,
}

/// The document for people; `line` says of a check whether it is essential, its name, what was
/// found, and, if it is missing, what is lost and the remedy.
pub fn doctor_text<C>(document: &Doctor<C>, line: impl Fn(&C) -> DoctorLine<'_>) -> String {
    let mut text = format!("whichfs {}\n", document.version);
    for check in &document.checks {
        let check = line(check);
        let mark = match (check.missing, check.essential) {
            (None, _) => "ok",
            (Some(_), true) => "MISSING",
            (Some(_), false) => "missing",
        };
        let _ = write!(text, "{mark:<8}{:<28}{}", check.name, check.found);
        if let Some((lost, remedy)) = check.missing {
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
    fn what_is_missing_stands_with_loss_and_remedy_on_one_line() {
        let remedy = "apt-get install gcc";
        let document = Doctor {
            version: "1",
            ok: false,
            checks: vec!["gcc"],
            not_made_on_devices: vec![LeftOut {
                candidate: "xfs",
                missing_tools: vec!["mkfs.xfs"],
                remedy: String::new(),
            }],
        };
        let text = doctor_text(&document, |name| DoctorLine {
            essential: true,
            name,
            found: "not found",
            missing: Some(("all", remedy)),
        });
        let line = text.lines().find(|line| line.starts_with("MISSING gcc"));
        assert!(line.is_some_and(|l| l.contains("Lost: all. Remedy: apt-get install gcc")));
        assert!(
            text.contains("of this machine: xfs") && text.contains("essential is missing"),
            "{text}"
        );
    }
}
