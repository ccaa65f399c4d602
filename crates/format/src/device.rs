//! A plan written to a disk, step by step.

use crate::Tell;
use crate::error::FormatError;
use crate::journal::Journal;
use crate::program::{require, run, shown, words};
use crate::verify::{self, Check};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use whichfs_here::{Doomed, Roots};
use whichfs_layout::{Plan, Planned, sfdisk_script};
use whichfs_units::{SECTOR, counted};

/// How long partitions may take to appear.
const APPEAR: Duration = Duration::from_secs(5);

/// A step: its name and its commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What it does.
    pub what: String,
    /// Its commands, word by word, each with what it reads.
    pub commands: Vec<(Vec<String>, String)>,
}

impl Step {
    /// Its commands as a person would type them.
    pub fn shown(&self) -> Vec<String> {
        let line = |(argv, stdin): &(Vec<String>, String)| match stdin.as_str() {
            "" => shown(argv),
            stdin => format!("{} <<'TABLE'\n{}\nTABLE", shown(argv), stdin.trim_end()),
        };
        self.commands.iter().map(line).collect()
    }
}

/// Name of a partition of the disk called `disk`: the kernel puts a `p` behind a digit.
pub(crate) fn partition_name(disk: &str, number: usize) -> String {
    match disk.ends_with(|c: char| c.is_ascii_digit()) {
        true => format!("{disk}p{number}"),
        false => format!("{disk}{number}"),
    }
}

/// The steps that write `plan` to the disk that the kernel calls `disk`.
pub fn steps(plan: &Plan, disk: &str) -> Vec<Step> {
    let device = format!("/dev/{disk}");
    let sfdisk = words(&[
        "sfdisk",
        "-q",
        "--wipe",
        "always",
        "--wipe-partitions",
        "always",
        &device,
    ]);
    let table = Step {
        what: format!(
            "{} with {}",
            plan.table.word(),
            counted(plan.partitions.len(), "partition")
        ),
        commands: vec![
            (sfdisk, sfdisk_script(plan)),
            (words(&["partx", "--update", &device]), String::new()),
        ],
    };
    let mut all = vec![table];
    for one in &plan.partitions {
        let partition = format!("/dev/{}", partition_name(disk, one.number));
        let commands = one.mkfs_on(&partition).into_iter();
        all.push(Step {
            what: format!(
                "{} on {} ({partition})",
                one.candidate.name, one.wanted.name
            ),
            commands: commands.map(|argv| (argv, String::new())).collect(),
        });
    }
    all
}

/// Writes `plan` to `disk` and checks it. The disk is the same and free before each step; an
/// interrupt ends it between two.
///
/// # Errors
/// What failed; the journal in `journals` tells how far it came.
pub fn format_disk(
    disk: &Doomed,
    plan: &Plan,
    roots: &Roots,
    journals: &Path,
    interrupted: &AtomicBool,
    tell: &mut Tell,
) -> Result<Vec<Check>, FormatError> {
    require_tools(plan)?;
    let steps = steps(plan, disk.name());
    let names: Vec<String> = steps.iter().map(|step| step.what.clone()).collect();
    let device = disk.target.path.display().to_string();
    let mut journal = Journal::begin(journals, &device, &disk.id, &names)?;
    let mut checks = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        if interrupted.load(Ordering::Relaxed) {
            return Err(journal.interrupted());
        }
        disk.check(roots)?;
        if number > 0 {
            let one = &plan.partitions[number - 1];
            appeared(disk.name(), one.number, one.start, one.bytes, roots)?;
        }
        tell(&step.what);
        journal.step(number)?;
        for (argv, stdin) in &step.commands {
            // Kernels that read the table themselves need no partx, and it may say so by failing;
            // whether the partitions are there is looked at before they are used.
            let matters = argv.first().is_some_and(|program| program != "partx");
            if let Err(error) = run(argv, stdin)
                && matters
            {
                journal.end(Some(error.to_string()))?;
                return Err(error);
            }
        }
        journal.done(number)?;
    }
    flush(disk)?;
    checks.extend(check(disk, plan, roots, tell)?);
    journal.end(None)?;
    Ok(checks)
}

/// The checks of all that was written.
fn check(
    disk: &Doomed,
    plan: &Plan,
    roots: &Roots,
    tell: &mut Tell,
) -> Result<Vec<Check>, FormatError> {
    disk.check(roots)?;
    let mut checks = verify::disk(&PathBuf::from(format!("/dev/{}", disk.name())), plan)?;
    for one in &plan.partitions {
        disk.check(roots)?;
        let name = &one.wanted.name;
        let partition = format!("/dev/{}", partition_name(disk.name(), one.number));
        tell(&format!("checking {name}"));
        checks.push(verify::mount(name, &one.recipe, &partition));
        checks.push(verify::fsck(name, &one.recipe, &partition));
    }
    Ok(checks)
}

/// Waits for a partition and checks that the kernel has it where it was planned.
pub(crate) fn appeared(
    disk: &str,
    number: usize,
    start: u64,
    bytes: u64,
    roots: &Roots,
) -> Result<(), FormatError> {
    let name = partition_name(disk, number);
    let node = PathBuf::from(format!("/dev/{name}"));
    let begun = Instant::now();
    while !node.exists() && begun.elapsed() < APPEAR {
        std::thread::sleep(APPEAR / 100);
    }
    if !node.exists() {
        return Err(FormatError::Partitions {
            what: format!("the partition {} does not appear", node.display()),
            remedy: "take the card out and put it in again, then run the same command again",
        });
    }
    let sys = roots.sys.join("class/block").join(&name);
    let number = |name: &str| {
        let text = std::fs::read_to_string(sys.join(name)).unwrap_or_default();
        text.trim()
            .parse::<u64>()
            .map_or(0, |sectors| sectors * SECTOR)
    };
    let found = (number("start"), number("size"));
    if found != (start, bytes) {
        return Err(FormatError::Partitions {
            what: format!(
                "{} begins at {} and has {} bytes, not {} and {}",
                node.display(),
                found.0,
                found.1,
                start,
                bytes
            ),
            remedy: "the kernel still has the old table: put the card in again, then try again",
        });
    }
    Ok(())
}

fn flush(disk: &Doomed) -> Result<(), FormatError> {
    rustix::fs::sync();
    let device = format!("/dev/{}", disk.name());
    run(&words(&["blockdev", "--flushbufs", &device]), "").map(drop)
}

fn require_tools(plan: &Plan) -> Result<(), FormatError> {
    require("sfdisk", "writes partition tables", "fdisk")?;
    require("partx", "shows partitions to the kernel", "util-linux")?;
    for one in &plan.partitions {
        writable(one)?;
        for tool in &one.recipe.tools {
            let purpose = format!("makes and checks {}", one.candidate.name);
            require(tool, &purpose, &one.candidate.facts().packages.join(" "))?;
        }
    }
    Ok(())
}

/// Refuses read-only filesystems, which are nothing without a tree.
pub(crate) fn writable(one: &Planned) -> Result<(), FormatError> {
    if one.recipe.image.is_none() {
        return Ok(());
    }
    Err(FormatError::Tree {
        what: format!(
            "partition {}: {} is read-only and made from a tree",
            one.wanted.name, one.candidate.name
        ),
        remedy: format!(
            "whichfs image TREE --fs {} -o IMG makes it; take another filesystem here",
            one.candidate.name
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_called_as_the_kernel_calls_them() {
        assert_eq!(partition_name("sda", 1), "sda1");
        assert_eq!(partition_name("mmcblk0", 2), "mmcblk0p2");
        assert_eq!(partition_name("loop7", 3), "loop7p3");
    }
}
