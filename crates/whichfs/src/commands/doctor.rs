//! `whichfs doctor`: what this machine has, what is missing, and the remedy.

use crate::failure::{Kind, Outcome, exit_code};
use crate::{commands, interrupt, output};
use whichfs_engine::cards;
use whichfs_engine::doctor::{CheckNeed, MachineCheck, essentials_are_there, machine_checks};
use whichfs_report::documents::doctor::{Doctor, DoctorLine, LeftOut, doctor_text};

/// Runs the command: exit code 0 if everything essential is there, else 3.
pub fn run(json: bool) -> Outcome<u8> {
    let checks = machine_checks(interrupt::flag())?;
    let document = Doctor {
        version: env!("CARGO_PKG_VERSION"),
        ok: essentials_are_there(&checks),
        checks,
        not_made_on_devices: left_out()?,
    };
    match json {
        true => output::document(&document)?,
        false => output::text_line(&doctor_text(&document, line))?,
    }
    Ok(match document.ok {
        true => 0,
        false => exit_code(Kind::Environment),
    })
}

fn line(check: &MachineCheck) -> DoctorLine<'_> {
    DoctorLine {
        essential: check.need == CheckNeed::Essential,
        name: &check.name,
        found: &check.found,
        missing: check.lost.as_deref().zip(check.remedy.as_deref()),
    }
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
