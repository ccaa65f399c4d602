//! `whichfs fs why`: why a filesystem is no candidate, or not for a need.

use crate::cli::FsWhyArgs;
use crate::commands::choose;
use crate::failure::{Failure, Kind, Outcome, exit_code};
use crate::output;
use serde::Serialize;
use whichfs_engine::cards;
use whichfs_fs::{Elsewhere, UnknownCandidate};
use whichfs_study::Excluded;

/// Examples in the help text.
pub const EXAMPLES: &str = "\
Examples:
  whichfs fs why zfs                     why it is no candidate, and what is instead
  whichfs fs why vfat --for rootfs       which rule of a need excludes a candidate
  whichfs fs why xfs --card class4-4gb

Exit status: 0 it takes part, 1 it does not, 2 nobody knows it.";

/// The document.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    /// No candidate at all.
    Elsewhere(Elsewhere),
    /// A candidate that a rule of the need excludes.
    Excluded(Excluded),
    /// A candidate that takes part.
    Candidate {
        name: &'static str,
        title: &'static str,
    },
}

/// Runs the command.
pub fn run(args: &FsWhyArgs) -> Outcome<u8> {
    let answer = answer(args)?;
    let takes_part = matches!(answer, Answer::Candidate { .. });
    if args.json {
        output::json(&answer)?;
    } else {
        tell(args, &answer)?;
    }
    Ok(if takes_part { 0 } else { exit_code(Kind::No) })
}

fn answer(args: &FsWhyArgs) -> Outcome<Answer> {
    // A need or a card that is not there is refused, whatever the filesystem.
    let need = choose::need(&args.needs, &[])?;
    let card = cards::open(&args.card)?;
    if let Some(found) = whichfs_fs::find_elsewhere(&args.name) {
        return Ok(Answer::Elsewhere(found.clone()));
    }
    let candidate = whichfs_fs::find(&args.name).map_err(|unknown| nobody(&unknown))?;
    let bytes = cards::geometry(&card.profile).partition_bytes;
    let (_, excluded) =
        whichfs_study::exclude(&need, bytes, &[whichfs_engine::facts::of(candidate)]);
    Ok(match excluded.into_iter().next() {
        Some(excluded) => Answer::Excluded(excluded),
        None => Answer::Candidate {
            name: candidate.name,
            title: candidate.title,
        },
    })
}

fn nobody(unknown: &UnknownCandidate) -> Failure {
    let known: Vec<&str> = whichfs_fs::elsewhere()
        .iter()
        .filter_map(|one| one.names.first().map(String::as_str))
        .collect();
    Failure::input(format!(
        "{unknown}; of those that are no candidates these are known: {}",
        known.join(", ")
    ))
}

fn tell(args: &FsWhyArgs, answer: &Answer) -> Outcome {
    let needs = &args.needs;
    match answer {
        Answer::Elsewhere(found) => {
            output::paragraph(
                &format!("{} is no candidate: {}.", found.title, found.why),
                0,
            )?;
            output::paragraph(&format!("Instead: {}.", found.instead.join(", ")), 0)?;
            output::paragraph(&format!("Source: {}", found.source), 0)
        }
        Answer::Excluded(excluded) => {
            let rule = excluded.rule.as_deref().unwrap_or_default();
            let name = &excluded.candidate;
            let why = &excluded.why;
            output::paragraph(
                &format!("{name} is not for {needs}: it {why} (rule {rule})."),
                0,
            )?;
            if let Some(source) = &excluded.source {
                output::paragraph(&format!("Source: {source}"), 0)?;
            }
            let allowed: Option<Vec<&str>> = excluded.allows().collect();
            let remedy = match allowed {
                Some(all) => format!("What lets it in: {}.", all.join(" and ")),
                None => "Nothing lets it in.".to_owned(),
            };
            output::paragraph(&remedy, 0)
        }
        Answer::Candidate { name, title } => output::paragraph(
            &format!(
                "{name} ({title}) is a candidate for {needs} on {}; whichfs choose --for {needs} \
                 measures it, whichfs fs show {name} says what it is.",
                args.card
            ),
            0,
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(name: &str, needs: &str) -> FsWhyArgs {
        FsWhyArgs {
            name: name.to_owned(),
            card: cards::DEFAULT.to_owned(),
            needs: needs.to_owned(),
            json: false,
        }
    }

    #[test]
    fn a_need_that_nobody_knows_is_refused_whatever_the_filesystem() {
        for name in ["zfs", "ext4", "vfat"] {
            let failure = answer(&args(name, "nosuchneed"))
                .err()
                .map(|one| one.message);
            let said = failure.unwrap_or_default();
            assert!(
                said.contains("no needs are called 'nosuchneed'"),
                "{name}: {said}"
            );
            assert!(said.contains("rootfs"), "the list: {said}");
            assert!(answer(&args(name, "rootfs")).is_ok());
        }
    }
}
