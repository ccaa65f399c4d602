//! A plan made into an image file, without root.

use crate::FormatListener;
use crate::device::writable;
use crate::error::FormatError;
use crate::program::{require, run, words};
use crate::verify::{self, Check, Outcome};
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use whichfs_layout::{DiskPlan, PlannedPartition, in_file, sfdisk_script};
use whichfs_units::{Bytes, counted};

/// Bytes that are copied at a time; those that are all zero stay a hole.
const CHUNK: usize = 64 << 10;

/// A file that is removed unless it is kept. It is locked while its process lives, so that the next
/// run for the same file knows what a killed one left.
pub struct PartialImage {
    /// Where it is, beside the file that it becomes.
    pub path: PathBuf,
    _lock: File,
}

/// Removes the parts of `whole` that nobody works on any more.
fn remove_left(whole: &Path) {
    let directory = match whole.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let Some(name) = whole.file_name().and_then(std::ffi::OsStr::to_str) else {
        return;
    };
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let part = entry.file_name();
        let middle = part.to_str().and_then(|part| {
            let rest = part.strip_prefix(name)?.strip_prefix('.')?;
            rest.strip_suffix(".part")
        });
        let first = middle.and_then(|middle| middle.split('.').next());
        let is_part = first.is_some_and(|pid| pid.parse::<u32>().is_ok());
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if !is_part || !is_file {
            continue;
        }
        let is_left = File::open(entry.path())
            .is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok());
        if is_left {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

impl PartialImage {
    /// A file of `bytes` beside `whole`; what killed runs left there is removed.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn beside(whole: &Path, name: &str, bytes: u64) -> Result<PartialImage, FormatError> {
        remove_left(whole);
        let mut path = whole.as_os_str().to_owned();
        path.push(format!(".{}.{name}.part", std::process::id()));
        let path = PathBuf::from(path);
        let file = File::create(&path).map_err(|error| failed(&path, &error))?;
        // Where a filesystem has no locks, parts stay.
        let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
        let sized = file.set_len(bytes);
        let part = PartialImage { path, _lock: file };
        match sized {
            Ok(()) => Ok(part),
            Err(error) if is_too_long(&error) => Err(FormatError::File {
                path: whole.display().to_string(),
                reason: format!("no file can have {} there", Bytes(bytes)),
                remedy: "say a smaller --size",
            }),
            Err(error) => Err(failed(&part.path, &error)),
        }
    }

    /// Gives it the name `whole`.
    ///
    /// # Errors
    /// It cannot be written or renamed.
    pub fn keep(self, whole: &Path) -> Result<(), FormatError> {
        let synced = File::open(&self.path).and_then(|file| file.sync_all());
        let kept = synced.and_then(|()| std::fs::rename(&self.path, whole));
        kept.map_err(|error| failed(whole, &error))
    }

    /// Its path as text.
    pub fn shown(&self) -> String {
        self.path.display().to_string()
    }
}

impl Drop for PartialImage {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Whether a length was refused, by the filesystem or before it was asked.
fn is_too_long(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        std::io::ErrorKind::FileTooLarge | std::io::ErrorKind::InvalidInput
    )
}

pub(crate) fn failed(path: &Path, error: &std::io::Error) -> FormatError {
    FormatError::File {
        path: path.display().to_string(),
        reason: error.to_string(),
        remedy: "name a file in a directory that can be written and has room",
    }
}

/// Makes the card of `plan` in the file `path`, whole or not at all.
///
/// # Errors
/// What failed.
pub fn format_image(
    path: &Path,
    plan: &DiskPlan,
    interrupted: &AtomicBool,
    tell: &mut FormatListener,
) -> Result<Vec<Check>, FormatError> {
    require("sfdisk", "writes partition tables", "fdisk")?;
    for one in &plan.partitions {
        writable(one)?;
    }
    let card = PartialImage::beside(path, "card", plan.medium.capacity_bytes)?;
    tell(&format!(
        "{} with {}",
        plan.table.word(),
        counted(plan.partitions.len(), "partition")
    ));
    run(
        &words(&["sfdisk", "-q", &card.shown()]),
        &sfdisk_script(plan),
    )
    .map_err(|error| or_full(path, error))?;
    let mut checks = Vec::new();
    for (done, one) in plan.partitions.iter().enumerate() {
        stop(interrupted, done, plan.partitions.len())?;
        tell(&format!("{} on {}", one.candidate.name, one.wanted.name));
        let part = filesystem(path, one)?;
        let name = &one.wanted.name;
        checks.push(verify::fsck(name, &one.recipe, &part.shown()));
        copy(&part.path, &card.path, one.start).map_err(|error| failed(&card.path, &error))?;
    }
    let mut all = verify::disk(&card.path, plan)?;
    all.extend(checks);
    all.push(Check {
        what: "mount, write, read".to_owned(),
        outcome: Outcome::Skipped("an image is made without root and mounted by nobody".into()),
    });
    if !all.iter().any(Check::is_bad) {
        card.keep(path)?;
    }
    Ok(all)
}

/// Bytes without which no program that failed had room.
const FULL: u64 = 1 << 20;

/// `error`, or, where the filesystem of `path` is full, which not every program says, that it is.
pub(crate) fn or_full(path: &Path, error: FormatError) -> FormatError {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let is_full = rustix::fs::statvfs(directory)
        .is_ok_and(|stat| stat.f_bavail.saturating_mul(stat.f_frsize) < FULL);
    match (is_full, error) {
        (true, FormatError::Failed { command, reason }) => FormatError::File {
            path: path.display().to_string(),
            reason: format!("no room is left on its filesystem ({command}: {reason})"),
            remedy: "delete something there, or name a file elsewhere",
        },
        (_, error) => error,
    }
}

/// Ends it where the user wants that: files that are not whole are removed.
pub(crate) fn stop(interrupted: &AtomicBool, done: usize, all: usize) -> Result<(), FormatError> {
    match interrupted.load(Ordering::Relaxed) {
        false => Ok(()),
        true => Err(FormatError::Interrupted {
            done,
            all,
            state: "no image was made".into(),
        }),
    }
}

/// The filesystem of `one` in a file beside `whole`.
fn filesystem(whole: &Path, one: &PlannedPartition) -> Result<PartialImage, FormatError> {
    let part = PartialImage::beside(whole, &one.wanted.name, one.bytes)?;
    for argv in one.mkfs_on(&part.shown()) {
        let tool = argv.first().cloned().unwrap_or_default();
        let purpose = format!("makes {}", one.candidate.name);
        require(&tool, &purpose, &one.candidate.facts().packages.join(" "))?;
        run(&in_file(argv), "").map_err(|error| or_full(whole, error))?;
    }
    Ok(part)
}

/// Copies `from` into `to` at `offset`, zeros left out.
fn copy(from: &Path, to: &Path, offset: u64) -> std::io::Result<()> {
    let (from, to) = (File::open(from)?, File::options().write(true).open(to)?);
    let end = from.metadata()?.len();
    let mut buffer = vec![0; CHUNK];
    let mut at = 0;
    while at < end {
        // Holes are passed over: an image is mostly one.
        at = match rustix::fs::seek(&from, rustix::fs::SeekFrom::Data(at)) {
            Ok(data) => data,
            Err(rustix::io::Errno::NXIO) => return Ok(()),
            Err(_) => at,
        };
        let wanted = CHUNK.min(usize::try_from(end - at).unwrap_or(CHUNK));
        from.read_exact_at(&mut buffer[..wanted], at)?;
        if buffer[..wanted].iter().any(|&byte| byte != 0) {
            to.write_all_at(&buffer[..wanted], offset + at)?;
        }
        at += wanted as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn attack_what_a_killed_run_left_is_removed_by_the_next() {
        let home = tempfile::tempdir().unwrap();
        let whole = home.path().join("card.img");
        let others = [
            "card.img",
            "card.img.part",
            "card.img.x.part",
            "other.img.7.a.part",
        ];
        for name in others.into_iter().chain(["card.img.4194999.card.part"]) {
            std::fs::write(home.path().join(name), "").unwrap();
        }
        let one = PartialImage::beside(&whole, "card", 1).unwrap();
        let other = PartialImage::beside(&whole, "data", 1).unwrap();
        assert!(one.path.exists(), "one that is worked on stays");
        drop((one, other));
        let entries = home.path().read_dir().unwrap().flatten();
        let mut left: Vec<_> = entries
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, others);
    }
}
