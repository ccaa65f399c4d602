//! A disk whose data may be lost: judged, named by the user, and the same at every step.

use crate::error::HereError;
use crate::guard::{Access, Target, TargetKind, identity, judge, kind_of, open_error, target};
use crate::roots::Roots;
use crate::sysfs::Block;
use crate::usage::{device_below, is_claimed};
use rustix::fd::OwnedFd;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use serde::{Deserialize, Serialize};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};
use whichfs_units::{Bytes, SECTOR, shell_word};

/// How often it is looked whether a disk is free by now.
const LOOK: Duration = Duration::from_millis(50);

/// What a user lets be destroyed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DestroyLimits {
    /// Larger disks are refused.
    pub max_bytes: u64,
    /// Also disks that nobody takes out.
    pub internal: bool,
}

impl Default for DestroyLimits {
    /// Removable disks up to 2 TiB, which no card exceeds.
    fn default() -> DestroyLimits {
        DestroyLimits {
            max_bytes: 2 << 40,
            internal: false,
        }
    }
}

/// A disk whose data may be lost.
#[derive(Debug)]
pub struct TargetDisk {
    /// The path with its kind and identity.
    pub target: Target,
    /// What it is called by: CID, serial, or the file behind a loop device.
    pub id: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its allocation unit as the kernel knows it of SD cards (`preferred_erase_size`), in bytes.
    pub erase_bytes: Option<u64>,
    /// Whether discard reaches it.
    pub discard: bool,
    /// Its logical sector in bytes, the unit of its partition table.
    pub sector_bytes: u64,
    sequence: Option<String>,
    /// Keeps udev and others who take this lock from looking at it meanwhile.
    _lock: Option<OwnedFd>,
}

impl TargetDisk {
    /// The disk at `path`, if nothing speaks against losing its data but the user's word.
    ///
    /// # Errors
    /// The first reason against it, with its remedy.
    pub fn find(
        path: &Path,
        limits: &DestroyLimits,
        roots: &Roots,
    ) -> Result<TargetDisk, HereError> {
        let shown = path.display().to_string();
        let target = target(path, Access::Write, roots)?;
        let Some(block) = block(&target, roots) else {
            return Err(HereError::NotStorage {
                path: shown,
                found: "a regular file",
            });
        };
        check_kind(&shown, &block, roots)?;
        check_size(&shown, &block, limits)?;
        if !limits.internal && !block.is_removable() {
            let kind = block.attribute("device/type").filter(|kind| kind == "MMC");
            return Err(HereError::Internal {
                path: shown,
                what: match kind {
                    Some(_) => format!("the eMMC {}", block.name),
                    None => format!("the disk {}", block.name),
                },
            });
        }
        let number = |name: &str| {
            block
                .attribute(name)
                .and_then(|text| text.parse::<u64>().ok())
        };
        // The kernel guesses for eMMC, and has 4 MiB at most where a card says nothing.
        let erase = number("device/preferred_erase_size").filter(|bytes| *bytes > 0);
        Ok(TargetDisk {
            id: block.id(),
            bytes: block.bytes(),
            erase_bytes: erase,
            discard: number("queue/discard_max_bytes").is_some_and(|bytes| bytes > 0),
            sector_bytes: number("queue/logical_block_size").unwrap_or(SECTOR),
            sequence: block.sequence(),
            target,
            _lock: None,
        })
    }

    /// Checks that the user means this disk, and takes the lock that udev honours.
    ///
    /// # Errors
    /// Not confirmed, another one confirmed, in use by another program that takes that lock.
    pub fn confirm(&mut self, given: Option<&str>, roots: &Roots) -> Result<(), HereError> {
        let path = self.target.path.display().to_string();
        let id = shell_word(&self.id);
        match given.map(str::trim) {
            None => return Err(HereError::NotConfirmed { path, id }),
            Some(given) if given == self.id || given == self.target.identity => {}
            Some(given) => {
                let given = shell_word(given);
                return Err(HereError::OtherConfirmed { path, given, id });
            }
        }
        self.check(roots)?;
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let lock = open(&self.target.path, flags, Mode::empty())
            .map_err(|errno| open_error(&self.target, errno))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| HereError::Busy { path })?;
        self._lock = Some(lock);
        Ok(())
    }

    /// Checks that the path still leads to this disk, with the medium that was judged, and that
    /// nobody has begun to use it.
    ///
    /// # Errors
    /// What has changed.
    pub fn check(&self, roots: &Roots) -> Result<(), HereError> {
        let path = self.target.path.display().to_string();
        let replaced = || Err(HereError::Replaced { path: path.clone() });
        let TargetKind::Disk { number, .. } = &self.target.kind else {
            return replaced();
        };
        let Ok(meta) = std::fs::metadata(&self.target.path) else {
            return replaced();
        };
        let device = meta.rdev();
        let found = format!("{}:{}", libc::major(device), libc::minor(device));
        let Some(block) = Block::of(&roots.sys, number).filter(|_| found == *number) else {
            return replaced();
        };
        let is_same = identity(&self.target.path, &self.target.kind, roots) == self.target.identity
            && block.bytes() == self.bytes
            && block.sequence() == self.sequence;
        if !is_same {
            return replaced();
        }
        judge(&self.target, Access::Write, roots)?;
        // Pools (ZFS, bcachefs) show nowhere but claim what they are made of.
        match is_claimed(&path) {
            true => Err(HereError::Busy { path }),
            false => Ok(()),
        }
    }

    /// As [`TargetDisk::check`], but who still uses it may let go of it for `patience`: mounts of a
    /// process that was killed vanish a moment after it.
    ///
    /// # Errors
    /// What has changed, or who uses it still.
    pub fn check_within(&self, roots: &Roots, patience: Duration) -> Result<(), HereError> {
        let begun = Instant::now();
        loop {
            match self.check(roots) {
                Err(error) if error.may_pass() && begun.elapsed() < patience => {
                    std::thread::sleep(LOOK);
                }
                result => return result,
            }
        }
    }

    /// What tells it from others: its register or serial number, and its size.
    pub fn identity(&self) -> &str {
        &self.target.identity
    }

    /// Kernel's name of it.
    pub fn name(&self) -> &str {
        match &self.target.kind {
            TargetKind::Disk { name, .. } => name,
            TargetKind::File { .. } => "",
        }
    }
}

/// What the disk at `path` is called by, whoever uses it; `None` if there is none.
pub fn id_of(path: &Path, roots: &Roots) -> Option<String> {
    match kind_of(path, roots).ok()? {
        TargetKind::Disk { number, .. } => Some(Block::of(&roots.sys, &number)?.id()),
        TargetKind::File { .. } => None,
    }
}

fn block(target: &Target, roots: &Roots) -> Option<Block> {
    match &target.kind {
        TargetKind::Disk { number, .. } => Block::of(&roots.sys, number),
        TargetKind::File { .. } => None,
    }
}

/// What looks like a disk and is none.
fn check_kind(path: &str, block: &Block, roots: &Roots) -> Result<(), HereError> {
    let path = path.to_owned();
    if let Some(disk) = block.emmc() {
        let disk = format!("/dev/{disk}");
        return Err(HereError::Hardware { path, disk });
    }
    let mut parts = block.slaves();
    parts.extend(device_below(block, roots).map(|below| below.display().to_string()));
    if !parts.is_empty() {
        let parts = parts.join(", ");
        return Err(HereError::Made { path, parts });
    }
    Ok(())
}

fn check_size(path: &str, block: &Block, limits: &DestroyLimits) -> Result<(), HereError> {
    let (path, bytes) = (path.to_owned(), block.bytes());
    if bytes == 0 {
        return Err(HereError::NoMedium { path });
    }
    if bytes > limits.max_bytes {
        return Err(HereError::TooLarge {
            path,
            size: Bytes(bytes),
            most: Bytes(limits.max_bytes),
            size_arg: format!("{}G", bytes.div_ceil(1 << 30)),
        });
    }
    Ok(())
}
