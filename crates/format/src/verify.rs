//! What was made, checked: table, superblocks, fsck, mount, write, read.

use crate::disk::OpenDisk;
use crate::error::FormatError;
use crate::mounted;
use crate::program::{find, run};
use std::path::Path;
use whichfs_fs::Recipe;
use whichfs_layout::superblock::expected;
pub(crate) use whichfs_layout::{Check, CheckOutcome as Outcome};
use whichfs_layout::{DiskPlan, FoundPartition, PlannedPartition, judge};
use whichfs_units::{Bytes, counted};

/// Checks the table of `path` and all superblocks against `plan`.
pub(crate) fn disk(path: &Path, plan: &DiskPlan) -> Result<Vec<Check>, FormatError> {
    let disk = OpenDisk::open(path)?;
    let mut checks = vec![Check::new("partition table", table(&disk, plan)?)];
    for one in &plan.partitions {
        let what = format!("{}: alignment and tuning", one.wanted.name);
        checks.push(Check::new(what, superblock(&disk, plan, one)?));
    }
    Ok(checks)
}

fn table(disk: &OpenDisk, plan: &DiskPlan) -> Result<Outcome, FormatError> {
    let Some(table) = disk.table()? else {
        return Ok(Outcome::Bad("there is none".into()));
    };
    let found: Vec<(u64, u64)> = table.entries.iter().map(|e| (e.start, e.bytes)).collect();
    let wanted: Vec<(u64, u64)> = plan.partitions.iter().map(|p| (p.start, p.bytes)).collect();
    if found != wanted || table.kind != plan.table {
        return Ok(Outcome::Bad(format!("found {found:?}, wanted {wanted:?}")));
    }
    let unit = plan.medium.unit.bytes;
    let aligned = found
        .iter()
        .all(|(start, bytes)| start % unit == 0 && bytes % unit == 0);
    Ok(match aligned {
        true => Outcome::Good(format!(
            "{}, whole units of {}",
            counted(found.len(), "partition"),
            Bytes(unit)
        )),
        false => Outcome::Bad(format!("not in whole units of {}", Bytes(unit))),
    })
}

/// The superblock of `one` has what its command asked for.
fn superblock(
    disk: &OpenDisk,
    plan: &DiskPlan,
    one: &PlannedPartition,
) -> Result<Outcome, FormatError> {
    let Some(found) = disk.superblock(one.start)? else {
        return Ok(Outcome::Bad("no filesystem is found".into()));
    };
    if let Err(wrong) = tuned(&found, &one.recipe) {
        return Ok(Outcome::Bad(wrong));
    }
    let label = found.label == one.label || found.label.is_empty();
    if !label {
        return Ok(Outcome::Bad(format!(
            "the label is {:?}, not {:?}",
            found.label, one.label
        )));
    }
    let verdict = judge(
        &FoundPartition {
            start: one.start,
            bytes: one.bytes,
            superblock: Some(found),
        },
        &plan.medium,
    );
    let figures = expected(&one.recipe);
    let figures: Vec<String> = figures
        .iter()
        .map(|(figure, value)| match figure.is_bytes() {
            true => format!("{} {}", figure.words(), Bytes(*value)),
            false => format!("{} {value}", figure.words()),
        })
        .collect();
    let told = match figures.is_empty() {
        true => one.candidate.name.to_owned(),
        false => format!("{}: {}", one.candidate.name, figures.join(", ")),
    };
    // A small FAT or an odd unit has no layout without fault: the recipe says so itself.
    Ok(Outcome::Good(match verdict.faults.first() {
        Some(fault) => format!("{told} ({})", fault.what),
        None => told,
    }))
}

/// Whether `found` has the figures that the commands of `recipe` ask for.
pub(crate) fn tuned(
    found: &whichfs_layout::superblock::Superblock,
    recipe: &Recipe,
) -> Result<(), String> {
    for (figure, wanted) in expected(recipe) {
        let value = found.figure(figure);
        if value != Some(wanted) {
            let value = value.map_or("not there".to_owned(), |value| value.to_string());
            return Err(format!(
                "{} is {value}; {wanted} was asked for",
                figure.words()
            ));
        }
    }
    Ok(())
}

/// Runs the checker of `recipe` on `device`.
pub(crate) fn fsck(name: &str, recipe: &Recipe, device: &str) -> Check {
    let what = format!("{name}: fsck");
    let argv = Recipe::on_device(&recipe.fsck_check, device);
    let outcome = match argv.first() {
        None => Outcome::Skipped(format!("{} has no checker", recipe.kernel_fs)),
        Some(program) if find(program).is_none() => {
            Outcome::Skipped(format!("{program} is not installed"))
        }
        Some(program) => match run(&argv, "") {
            Ok(_) => Outcome::Good(format!("{program} finds nothing")),
            Err(error) => Outcome::Bad(error.to_string()),
        },
    };
    Check::new(what, outcome)
}

/// Mounts `device`, writes and reads.
pub(crate) fn mount(name: &str, recipe: &Recipe, device: &str) -> Check {
    let what = format!("{name}: mount, write, read");
    let outcome = match mounted::kernel_has(recipe.kernel_fs) {
        false => Outcome::Skipped(format!("this kernel has no {}", recipe.kernel_fs)),
        true => match mounted::exercise(device, recipe.kernel_fs, &recipe.mount_options) {
            Ok(()) => Outcome::Good("1 MiB came back after a remount".into()),
            Err(error) => Outcome::Bad(error.to_string()),
        },
    };
    Check::new(what, outcome)
}
