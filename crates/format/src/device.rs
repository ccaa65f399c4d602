//! A plan written to a disk, step by step.

use crate::FormatListener;
use crate::error::FormatError;
use crate::journal::FormatJournal;
use crate::mounted::mounting;
use crate::program::{require, run, shown, words};
use crate::verify::{self, Check};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use whichfs_device::{Roots, TargetDisk};
use whichfs_layout::{DiskPlan, PlannedPartition, sfdisk_script};
use whichfs_units::{SECTOR, counted};

/// How long partitions may take to appear.
const APPEAR: Duration = Duration::from_secs(5);

/// A step: its name and its commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatStep {
    /// What it does.
    pub what: String,
    /// Its commands, word by word, each with what it reads.
    pub commands: Vec<(Vec<String>, String)>,
}

impl FormatStep {
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
pub fn steps(plan: &DiskPlan, disk: &str) -> Vec<FormatStep> {
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
    let table = FormatStep {
        what: format!(
            "{} with {}",
            plan.table.word(),
            counted(plan.partitions.len(), "partition")
        ),
        commands: vec![
            (words(&["partx", "--delete", &device]), String::new()),
            (sfdisk, sfdisk_script(plan)),
            (words(&["partx", "--update", &device]), String::new()),
        ],
    };
    let mut all = vec![table];
    for one in &plan.partitions {
        let partition = format!("/dev/{}", partition_name(disk, one.number));
        let commands = one.mkfs_on(&partition).into_iter();
        all.push(FormatStep {
            what: format!(
                "{} on {} ({partition})",
                one.candidate.name, one.wanted.name
            ),
            commands: commands.map(|argv| (argv, String::new())).collect(),
        });
    }
    all
}

/// The commands that then check what was written to the disk that the kernel calls `disk`, as a
/// person would type them; `DIR` is a directory of its own for each mount, which nobody else sees.
pub fn check_commands(plan: &DiskPlan, disk: &str) -> Vec<String> {
    let mut all = vec![shown(&flushing(disk))];
    for one in &plan.partitions {
        let partition = format!("/dev/{}", partition_name(disk, one.number));
        let mount = shown(&mounting(&one.recipe, &partition, "DIR"));
        let unmount = shown(&words(&["umount", "DIR"]));
        all.extend([
            format!("{mount}  # 1 MiB is written"),
            unmount.clone(),
            format!("{mount}  # and read"),
            unmount,
        ]);
        let fsck = whichfs_fs::Recipe::on_device(&one.recipe.fsck_check, &partition);
        all.extend((!fsck.is_empty()).then(|| shown(&fsck)));
    }
    all
}

/// Writes `plan` to `disk` and checks it. The disk is the same and free before each step; an
/// interrupt ends it between two.
///
/// # Errors
/// What failed; the journal in `journals` tells how far it came.
pub fn format_disk(
    disk: &TargetDisk,
    plan: &DiskPlan,
    roots: &Roots,
    journals: &Path,
    interrupted: &AtomicBool,
    tell: &mut FormatListener,
) -> Result<Vec<Check>, FormatError> {
    require_tools(plan)?;
    let steps = steps(plan, disk.name());
    let names: Vec<String> = steps.iter().map(|step| step.what.clone()).collect();
    let device = disk.target.path.display().to_string();
    let mut journal = FormatJournal::begin(journals, &device, &disk.id, &names)?;
    for (number, step) in steps.iter().enumerate() {
        if interrupted.load(Ordering::Relaxed) {
            return Err(journal.interrupted());
        }
        let may = may_begin(disk, plan, number, roots);
        may.map_err(|error| journal.given_up(error))?;
        tell(&step.what);
        journal.step(number)?;
        for (argv, stdin) in &step.commands {
            // Old partitions are forgotten first: one that grows over another is not updated.
            // Kernels that read the table themselves need no partx, and it may say so by failing;
            // whether the partitions are there is looked at before they are used.
            let matters = argv.first().is_some_and(|program| program != "partx");
            if let Err(error) = run(argv, stdin)
                && matters
            {
                return Err(journal.given_up(error));
            }
        }
        journal.done(number)?;
    }
    let checked = flush(disk).and_then(|()| check(disk, plan, roots, tell));
    let checks = checked.map_err(|error| journal.given_up(error))?;
    journal.end(None)?;
    Ok(checks)
}

/// Whether the step `number` may begin: the disk is the same and free, its nodes lead to it, and
/// the partition of the step is where it was planned.
fn may_begin(
    disk: &TargetDisk,
    plan: &DiskPlan,
    number: usize,
    roots: &Roots,
) -> Result<(), FormatError> {
    disk.check(roots)?;
    own_node(disk.name(), roots)?;
    let before = number.checked_sub(1);
    match before.and_then(|index| plan.partitions.get(index)) {
        Some(one) => appeared(disk.name(), one.number, one.start, one.bytes, roots),
        None => Ok(()),
    }
}

/// The checks of all that was written.
fn check(
    disk: &TargetDisk,
    plan: &DiskPlan,
    roots: &Roots,
    tell: &mut FormatListener,
) -> Result<Vec<Check>, FormatError> {
    disk.check(roots)?;
    own_node(disk.name(), roots)?;
    let mut checks = verify::disk(&PathBuf::from(format!("/dev/{}", disk.name())), plan)?;
    for one in &plan.partitions {
        disk.check(roots)?;
        appeared(disk.name(), one.number, one.start, one.bytes, roots)?;
        let name = &one.wanted.name;
        let partition = format!("/dev/{}", partition_name(disk.name(), one.number));
        tell(&format!("checking {name}"));
        checks.push(verify::mount(name, &one.recipe, &partition));
        checks.push(verify::fsck(name, &one.recipe, &partition));
    }
    Ok(checks)
}

/// Checks that the node of the disk or partition `name` in `/dev` leads to it. Where nobody keeps
/// `/dev` (a container's), it may be left of a device that is gone, whose number another has now.
pub(crate) fn own_node(name: &str, roots: &Roots) -> Result<(), FormatError> {
    let node = PathBuf::from(format!("/dev/{}", name.replace('!', "/")));
    let number = std::fs::read_to_string(roots.sys.join("class/block").join(name).join("dev"));
    let number = number.unwrap_or_default();
    let meta = std::fs::metadata(&node).ok();
    let found = meta.filter(|meta| meta.file_type().is_block_device());
    let found = found.map_or("no device".to_owned(), |meta| {
        let device = meta.rdev();
        format!("device {}:{}", libc::major(device), libc::minor(device))
    });
    if found == format!("device {}", number.trim()) {
        return Ok(());
    }
    Err(FormatError::Partitions {
        what: format!(
            "{} leads to {found}, and the kernel's {name} is another device ({})",
            node.display(),
            match number.trim() {
                "" => "it has none of that name",
                number => number,
            }
        ),
        remedy: "remove that node, plug the card in again, then run the same command again",
    })
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
    while own_node(&name, roots).is_err() && begun.elapsed() < APPEAR {
        std::thread::sleep(APPEAR / 100);
    }
    if !node.exists() {
        return Err(FormatError::Partitions {
            what: format!("the partition {} does not appear", node.display()),
            remedy: "take the card out and put it in again, then run the same command again",
        });
    }
    own_node(&name, roots)?;
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

fn flush(disk: &TargetDisk) -> Result<(), FormatError> {
    rustix::fs::sync();
    run(&flushing(disk.name()), "").map(drop)
}

/// The command that writes out what the kernel has of the disk called `disk`, and forgets it.
fn flushing(disk: &str) -> Vec<String> {
    words(&["blockdev", "--flushbufs", &format!("/dev/{disk}")])
}

/// Refuses what cannot be written to a card at all, before anything is told or done.
///
/// # Errors
/// The first partition that cannot be, with its remedy.
pub fn validate(plan: &DiskPlan) -> Result<(), FormatError> {
    plan.partitions.iter().try_for_each(writable)
}

fn require_tools(plan: &DiskPlan) -> Result<(), FormatError> {
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
pub(crate) fn writable(one: &PlannedPartition) -> Result<(), FormatError> {
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
