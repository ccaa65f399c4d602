//! `whichfs check`: is what is on a card aligned and tuned, and what would it gain?

use super::study;
use crate::cli::CheckArgs;
use crate::failure::{Failure, Kind, Outcome, exit_code};
use crate::output;
use std::path::Path;
use whichfs_engine::cards;
use whichfs_engine::medium::{self, KernelReport};
use whichfs_engine::places;
use whichfs_engine::tuning_study::tuning_study;
use whichfs_format::{InterruptedFormat, OpenDisk};
use whichfs_layout::{FoundPartition, Medium, backup_fault, cut_off, judge, overlap};
use whichfs_report::documents::check::{CheckReport, CheckedPartition, TuningGain, check_text};

/// Examples in the help text.
pub const EXAMPLES: &str = "\
Examples:
  sudo whichfs check /dev/mmcblk0                       nothing is written
  whichfs check sdcard.img --card a1-32gb               an image, as a BSP's CI does
  whichfs check sdcard.img --au 8M --no-gain            without the lab
  whichfs check sdcard.img --card mycard.toml --json

What is misaligned or not tuned is made again in the lab, as it is and as whichfs format would
make it, on the model of the card (--card; a1-32gb if none is named), and the difference is
measured with the workload rootfs.

Exit status: 0 aligned and tuned, 1 something is not, is cut off, or was left half done by format,
2 bad usage or input.";

/// Runs the command.
pub fn run(args: &CheckArgs) -> Outcome<u8> {
    let disk = OpenDisk::open(&args.target)?;
    if disk.bytes == 0 {
        return Err(Failure::input(format!(
            "{} has no bytes; name a card or an image",
            args.target.display()
        )));
    }
    let medium = medium::of(
        &args.medium.knowledge(),
        Some(disk.bytes),
        KernelReport::of(&args.target),
    )?;
    let unfinished = unfinished(&args.target);
    if let Some(unfinished) = &unfinished {
        // What it left may be nothing that can be read.
        note!("{unfinished}");
    }
    let mut document = document(args, &disk, &medium, unfinished)?;
    if document
        .partitions
        .iter()
        .all(|one| one.verdict.candidate.is_none())
        && document.table.is_none()
    {
        return Err(Failure::input(format!(
            "{} has neither a partition table nor a filesystem that is known; name a card or an \
             image",
            args.target.display()
        )));
    }
    for one in &mut document.partitions {
        match measured(args, one) {
            Ok(gain) => one.gain = gain,
            Err(Some(failure)) => return Err(failure),
            Err(None) => {}
        }
    }
    match args.json {
        true => output::document(&document)?,
        false => output::text(&check_text(&document, output::width()))?,
    }
    let faults = !document.table_faults.is_empty()
        || document
            .partitions
            .iter()
            .any(|one| !one.verdict.faults.is_empty());
    // A reader's name is that of all cards in it: what the journal says alone proves nothing.
    let unknown = |one: &CheckedPartition| one.verdict.candidate.is_none();
    let half = document.unfinished.is_some() && document.partitions.iter().any(unknown);
    let bad = faults || half;
    Ok(if bad { exit_code(Kind::No) } else { 0 })
}

fn document(
    args: &CheckArgs,
    disk: &OpenDisk,
    medium: &Medium,
    unfinished: Option<String>,
) -> Outcome<CheckReport> {
    let table = disk.table()?;
    let places: Vec<(usize, String, u64, u64)> = match &table {
        Some(table) => table
            .entries
            .iter()
            .map(|entry| (entry.number, entry.name.clone(), entry.start, entry.bytes))
            .collect(),
        None => vec![(0, "whole".to_owned(), 0, disk.bytes)],
    };
    let mut partitions = Vec::new();
    for &(number, ref name, start, bytes) in &places {
        let superblock = match start < disk.bytes {
            true => disk.superblock(start)?,
            false => None,
        };
        let found = FoundPartition {
            start,
            bytes,
            superblock,
        };
        let mut verdict = judge(&found, medium);
        let cut_off = cut_off(&found, disk.bytes);
        let others = places.iter().filter(|other| other.0 != number);
        let mut shared =
            others.filter_map(|(n, _, start, bytes)| overlap(&found, *n, *start, *bytes));
        let shared = shared.next();
        let not_measured = match (&cut_off, &shared) {
            (Some(_), _) => Some("it is not whole".to_owned()),
            (_, Some(_)) => Some("another partition overlaps it".to_owned()),
            _ => None,
        };
        verdict.faults.extend(cut_off);
        verdict.faults.extend(shared);
        partitions.push(CheckedPartition {
            number,
            name: name.clone(),
            start,
            bytes,
            verdict,
            gain: None,
            not_measured,
        });
    }
    Ok(CheckReport {
        path: args.target.display().to_string(),
        bytes: disk.bytes,
        au_bytes: medium.unit.bytes,
        au_why: medium.unit.why.clone(),
        table: table.map(|table| table.kind.word()),
        table_faults: disk.backup_damage().map(backup_fault).into_iter().collect(),
        partitions,
        unfinished,
    })
}

/// What a `format` that did not come to its end left on the device at `path`.
fn unfinished(path: &Path) -> Option<String> {
    let id = whichfs_device::id_of(path, &whichfs_device::Roots::default())?;
    let left = InterruptedFormat::read(&places::journals().ok()?, &id)?;
    let told = left.told()?;
    Some(format!("the last format of it {told}"))
}

/// Measures what tuning would gain `one`; nothing if nothing is wrong with it.
///
/// # Errors
/// `None` where it was not measured, and the reason is in `one`.
fn measured(
    args: &CheckArgs,
    one: &mut CheckedPartition,
) -> Result<Option<TuningGain>, Option<Failure>> {
    if one.verdict.faults.is_empty() {
        return Ok(None);
    }
    if one.not_measured.is_some() {
        return Err(None);
    }
    let card = args.medium.card.as_deref().unwrap_or(cards::DEFAULT);
    let study = match args.no_gain {
        true => Err("--no-gain".to_owned()),
        false => tuning_study(card, one.start, one.bytes, &one.verdict),
    };
    match study {
        Ok(study) => {
            if !args.json {
                note!(
                    "measuring what partition {} would gain, in the lab",
                    one.number
                );
            }
            study::compared(&study).map(Some).map_err(Some)
        }
        Err(why) => {
            one.not_measured = Some(why);
            Err(None)
        }
    }
}
