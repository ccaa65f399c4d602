//! `whichfs probe --write --capacity`: is all of a card real?

use super::probe_progress::Watcher;
use crate::cli::{ProbeArgs, WriteHow};
use crate::failure::{Failure, Kind, Outcome, exit_code};
use crate::interrupt::{self, Patience};
use crate::output;
use std::time::SystemTime;
use whichfs_curves::TimedDevice;
use whichfs_engine::undo_log_file::{InterruptedCheck, UndoLogFile, left};
use whichfs_probe::{
    CapacityOptions, CapacityReport, Honesty, MemoryOnly, UndoLog, capacity, marked, rescue,
};
use whichfs_report::documents::probe::capacity_text;
use whichfs_units::counted;

/// Checks the capacity of `device`; exit status 1 if it is not what the card claims, or if
/// data are lost. `identity` is that of a real device.
pub fn run(device: &mut dyn TimedDevice, identity: Option<&str>, args: &ProbeArgs) -> Outcome<u8> {
    let options = CapacityOptions {
        seed: args.seed ^ identity.map_or(0, |_| nonce()),
        preserve: args.write != Some(WriteHow::Destroy),
    };
    let name = args.target.as_deref().unwrap_or_default();
    let mut kept = match identity.filter(|_| options.preserve) {
        Some(identity) => Some(UndoLogFile::create(name, identity, options.seed)?),
        None => None,
    };
    let mut watcher = Watcher::new(None, args.json);
    let report = {
        let _patience = Patience::begin();
        let keeper: &mut dyn UndoLog = match &mut kept {
            Some(kept) => kept,
            None => &mut MemoryOnly,
        };
        capacity(device, &options, keeper, &mut watcher)
    };
    output::clear_bar();
    match kept {
        Some(kept) if report.lost_blocks == 0 => kept.remove(),
        Some(kept) => alert!("whichfs: {}", remedy(name, &kept.path().display())),
        None => {}
    }
    match args.json {
        true => output::document(&report)?,
        false => output::text_line(&capacity_text(&report))?,
    }
    Ok(status(&report))
}

/// Another number each time.
fn nonce() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    // Before 1970 every check is the first.
    now.map_or(0, |now| now.as_nanos() as u64) ^ u64::from(std::process::id()).rotate_left(48)
}

fn status(report: &CapacityReport) -> u8 {
    match report.honesty {
        _ if report.lost_blocks > 0 => exit_code(Kind::No),
        Honesty::Honest => 0,
        // Whether it lies is not known: that is no "no".
        Honesty::Unknown => interrupt::or(exit_code(Kind::Environment)),
        _ => exit_code(Kind::No),
    }
}

fn remedy(name: &str, path: &dyn std::fmt::Display) -> String {
    let name = whichfs_units::shell_word(name);
    format!(
        "what was on the card is in {path}; put it back: whichfs probe {name} --write --put-back \
         (remove the file if nobody needs it)"
    )
}

/// What interrupted checks of `device` left.
fn left_on(device: &mut dyn TimedDevice, identity: &str) -> Outcome<Vec<InterruptedCheck>> {
    left(identity, &mut |left| {
        marked(device, left.seed, &left.blocks) > 0
    })
}

/// Refuses a test of a card on which an interrupted check left marks.
pub fn refuse_marked(device: &mut dyn TimedDevice, name: &str, identity: &str) -> Outcome {
    for left in left_on(device, identity)? {
        let marks = marked(device, left.seed, &left.blocks);
        if marks > 0 {
            return Err(Failure::input(format!(
                "an interrupted capacity check left {} of 4 KiB overwritten; {}",
                counted(marks, "block"),
                remedy(name, &left.path.display())
            )));
        }
    }
    Ok(())
}

/// Puts back what interrupted checks left overwritten; exit status 1 if not all of it.
pub fn put_back(
    device: &mut dyn TimedDevice,
    name: &str,
    identity: &str,
    args: &ProbeArgs,
) -> Outcome<u8> {
    let all = left_on(device, identity)?;
    if all.is_empty() {
        return Err(Failure::input(format!(
            "{name}: no interrupted check of this device ({identity}) has left anything to put back"
        )));
    }
    let mut watcher = Watcher::new(None, args.json);
    let _patience = Patience::begin();
    let mut sum = whichfs_probe::Rescue::default();
    for left in &all {
        let found = put_back_one(device, left, &mut watcher);
        sum.put_back += found.put_back;
        sum.changed += found.changed;
        sum.lost += found.lost;
    }
    output::clear_bar();
    match args.json {
        true => output::document(&sum)?,
        false => output::text_line(&format!(
            "{} of 4 KiB put back, {} left alone (written by others since), {} lost",
            counted(sum.put_back, "block"),
            sum.changed,
            sum.lost
        ))?,
    }
    Ok(u8::from(sum.lost > 0))
}

/// The file stays if a block could not be put back, or if this may be another card.
fn put_back_one(
    device: &mut dyn TimedDevice,
    left: &InterruptedCheck,
    watcher: &mut Watcher,
) -> whichfs_probe::Rescue {
    let found = rescue(device, left.seed, &left.blocks, watcher);
    if found.lost == 0 && (found.put_back > 0 || found.changed == 0) {
        left.remove();
    } else {
        alert!("whichfs: {} is kept", left.path.display());
    }
    found
}
