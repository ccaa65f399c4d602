//! `whichfs fs why`: why a filesystem is no candidate, or not for a need.

use crate::cli::FsWhyArgs;
use crate::commands::choose;
use crate::failure::{Failure, Kind, Outcome, exit_code};
use crate::output;
use whichfs_engine::cards;
use whichfs_fs::UnknownCandidate;
use whichfs_report::documents::fs::{FsWhy, fs_why_text};
use whichfs_units::nearest;

/// Examples in the help text.
pub const EXAMPLES: &str = "\
Examples:
  whichfs fs why zfs                     why it is no candidate, and what is instead
  whichfs fs why vfat --for rootfs       which rule of a need excludes a candidate
  whichfs fs why xfs --card class4-4gb

Exit status: 0 it takes part, 1 it does not, 2 nobody knows it.";

/// Runs the command.
pub fn run(args: &FsWhyArgs) -> Outcome<u8> {
    let answer = answer(args)?;
    match args.json {
        true => output::document(&answer.document())?,
        false => output::text(&fs_why_text(
            &answer,
            &args.needs,
            &args.card,
            output::width(),
        ))?,
    }
    Ok(match answer {
        FsWhy::Candidate { .. } => 0,
        _ => exit_code(Kind::No),
    })
}

fn answer(args: &FsWhyArgs) -> Outcome<FsWhy> {
    // A need or a card that is not there is refused, whatever the filesystem.
    let need = choose::need(&args.needs, &[])?;
    let card = cards::open(&args.card)?;
    if let Some(found) = whichfs_fs::find_elsewhere(&args.name) {
        return Ok(FsWhy::Elsewhere(found.clone()));
    }
    let candidate = whichfs_fs::find(&args.name).map_err(|unknown| nobody(&args.name, &unknown))?;
    let bytes = cards::geometry(&card.profile).partition_bytes;
    let (_, excluded) =
        whichfs_decide::exclude(&need, bytes, &[whichfs_engine::facts::of(candidate)]);
    Ok(match excluded.into_iter().next() {
        Some(excluded) => FsWhy::Excluded(excluded),
        None => FsWhy::Candidate {
            name: candidate.name,
            title: candidate.title,
        },
    })
}

/// That no filesystem has this name; those that are no candidates may have been meant too.
fn nobody(name: &str, unknown: &UnknownCandidate) -> Failure {
    let known = whichfs_fs::elsewhere().iter();
    let known: Vec<&String> = known.flat_map(|one| &one.names).collect();
    match (nearest(name, &known).first(), unknown) {
        (Some(near), UnknownCandidate::Unknown(none)) if none.nearest.is_empty() => Failure::input(
            format!("unknown filesystem '{name}'; did you mean '{near}'? it is no candidate"),
        ),
        _ => Failure::input(unknown),
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
                said.contains("unknown need 'nosuchneed'; `whichfs need list`"),
                "{name}: {said}"
            );
            assert!(answer(&args(name, "rootfs")).is_ok());
        }
    }
}
