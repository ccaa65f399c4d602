//! A partition for trials on a target disk: laid anew where a trial wants it elsewhere, with a
//! journal that tells what is on the disk if it all ends early.

use crate::device::{appeared, own_node, partition_name};
use crate::error::FormatError;
use crate::journal::FormatJournal;
use crate::program::{require, run, shown, words};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Duration;
use whichfs_device::{Roots, TargetDisk};

/// How long a disk may be in use after a trial: until mounts of a killed agent are gone.
const PATIENCE: Duration = Duration::from_secs(30);

/// Name of the steps in the journal.
const TABLE: &str = "gpt with one partition";

/// A partition of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// First byte on the disk.
    pub start: u64,
    /// Size of the partition in bytes.
    pub bytes: u64,
}

/// A disk that trials run on.
#[derive(Debug)]
pub struct PartitionLease<'a> {
    disk: &'a TargetDisk,
    roots: &'a Roots,
    journal: FormatJournal,
    laid: Option<Span>,
}

/// The commands that lay `span` as the only partition of the disk that the kernel calls `disk`,
/// with logical sectors of `sector` bytes; each with what it reads.
fn commands(disk: &str, span: Span, sector: u64) -> [(Vec<String>, String); 3] {
    let device = format!("/dev/{disk}");
    let always = ["-q", "--wipe", "always", "--wipe-partitions", "always"];
    let sfdisk = [&["sfdisk"], &always[..], &[&device]].concat();
    let (start, size) = (span.start / sector, span.bytes / sector);
    let script = format!("label: gpt\nunit: sectors\n\nstart={start}, size={size}, type=linux\n");
    let partx = words(&["partx", "--update", &device]);
    // Old partitions are forgotten first: one that grows over another is not updated.
    let forget = words(&["partx", "--delete", &device]);
    let none = String::new;
    [(forget, none()), (words(&sfdisk), script), (partx, none())]
}

/// The same as a person would type them.
pub fn partition_commands(disk: &str, span: Span, sector: u64) -> Vec<String> {
    let [(forget, _), (sfdisk, script), (partx, _)] = commands(disk, span, sector);
    let table = format!("{} <<'TABLE'\n{}\nTABLE", shown(&sfdisk), script.trim_end());
    vec![shown(&forget), table, shown(&partx)]
}

/// Path of the only partition of the disk that the kernel calls `disk`.
pub fn only_partition(disk: &str) -> String {
    format!("/dev/{}", partition_name(disk, 1))
}

impl<'a> PartitionLease<'a> {
    /// `disk` leased for `trials`, as the journal in `journals` calls them.
    ///
    /// # Errors
    /// A tool is missing, or the journal cannot be written.
    pub fn begin(
        disk: &'a TargetDisk,
        roots: &'a Roots,
        journals: &Path,
        trials: &str,
    ) -> Result<PartitionLease<'a>, FormatError> {
        require("sfdisk", "writes partition tables", "fdisk")?;
        require("partx", "shows partitions to the kernel", "util-linux")?;
        let steps = [TABLE.to_owned(), trials.to_owned()];
        let device = disk.target.path.display().to_string();
        Ok(PartitionLease {
            disk,
            roots,
            journal: FormatJournal::begin(journals, &device, &disk.id, &steps)?,
            laid: None,
        })
    }

    /// Makes `span` the disk's only partition, unless it is already, and notes that `trial` comes
    /// onto it. The disk is the same as ever and nobody uses it.
    ///
    /// # Errors
    /// Another disk, one in use; what failed.
    pub fn lay(&mut self, span: Span, trial: &str) -> Result<String, FormatError> {
        self.check()?;
        let name = self.disk.name();
        if self.laid != Some(span) {
            self.laid = None;
            self.journal.step(0)?;
            let sector = self.disk.sector_bytes;
            let [(forget, _), (sfdisk, script), (partx, _)] = commands(name, span, sector);
            drop(run(&forget, ""));
            run(&sfdisk, &script)?;
            // Kernels that read the table themselves need no partx, and it may say so by failing;
            // whether the partition is there is looked at.
            drop(run(&partx, ""));
            appeared(name, 1, span.start, span.bytes, self.roots)?;
            self.journal.done(0)?;
            self.laid = Some(span);
        }
        own_node(&partition_name(name, 1), self.roots)?;
        self.journal.step(1)?;
        self.journal.trial(trial)?;
        Ok(only_partition(name))
    }

    /// Takes the disk's only partition as it is, with what is on it, which must be `span`; `trial`
    /// looks at that. The disk is the same as ever and nobody uses it.
    ///
    /// # Errors
    /// Another disk, one in use, another table.
    pub fn keep(&mut self, span: Span, trial: &str) -> Result<String, FormatError> {
        self.check()?;
        let name = self.disk.name();
        let [_, _, (partx, _)] = commands(name, span, self.disk.sector_bytes);
        // A device that has come back may have been read before its table was there.
        drop(run(&partx, ""));
        appeared(name, 1, span.start, span.bytes, self.roots)?;
        self.laid = Some(span);
        self.journal.step(1)?;
        self.journal.trial(trial)?;
        Ok(only_partition(name))
    }

    /// Checks that the disk is the same as ever and that nobody uses it any more.
    ///
    /// # Errors
    /// Another disk, one in use, or none; `/dev` leads to another.
    pub fn check(&self) -> Result<(), FormatError> {
        self.disk.check_within(self.roots, PATIENCE)?;
        own_node(self.disk.name(), self.roots)
    }

    /// Nothing more will be done: for `reason`, or because all is.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn end(mut self, reason: Option<String>) -> Result<(), FormatError> {
        if reason.is_none() {
            self.journal.done(1)?;
        }
        self.journal.end(reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_told_as_it_is_typed() {
        let span = Span {
            start: 8 << 20,
            bytes: 64 << 20,
        };
        let large = partition_commands("sdx", span, 4096);
        assert!(large[1].contains("start=2048, size=16384"), "{large:?}");
        let lines = partition_commands("mmcblk0", span, 512);
        assert_eq!(lines[0], "partx --delete /dev/mmcblk0");
        assert!(lines[1].starts_with("sfdisk -q --wipe always"), "{lines:?}");
        assert!(lines[1].contains("start=16384, size=131072"), "{lines:?}");
        assert_eq!(lines[2], "partx --update /dev/mmcblk0");
        assert_eq!(only_partition("mmcblk0"), "/dev/mmcblk0p1");
        assert_eq!(only_partition("sdx"), "/dev/sdx1");
    }
}
