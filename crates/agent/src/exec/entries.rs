//! One call on every entry of a directory.

use super::Executor;
use crate::batch::{Batch, Failed};
use crate::error::AgentError;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Dir, OFlags};
use std::ffi::CStr;

impl Executor<'_> {
    /// Lists `path` and makes a call on each entry; how many there are.
    pub(super) fn each_entry(&self, path: &str, plan: PlanEntry) -> Result<u64, AgentError> {
        let fd = self.open(path, OFlags::RDONLY | OFlags::DIRECTORY, None)?;
        let mut batch = Batch::default();
        let mut count = 0;
        let mut entries = Dir::read_from(&fd).map_err(|errno| self.error("list", path, errno))?;
        while let Some(entry) = entries.read() {
            let entry = entry.map_err(|errno| self.error("list", path, errno))?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            count += 1;
            let added = plan(&mut batch, &fd, name);
            added.map_err(|failed| self.failed_in(path, &failed))?;
            if batch.is_full() {
                batch
                    .perform()
                    .map_err(|failed| self.failed_in(path, &failed))?;
            }
        }
        let rest = batch.perform();
        rest.map_err(|failed| self.failed_in(path, &failed))?;
        Ok(count)
    }

    pub(super) fn failed_in(&self, dir: &str, failed: &Failed) -> AgentError {
        let inside = format!("{dir}/{}", failed.path);
        self.error(failed.what, &inside, failed.errno)
    }
}

/// Adds a call on an entry of a directory to a batch.
type PlanEntry = fn(&mut Batch, &OwnedFd, &CStr) -> Result<(), Failed>;

/// Asks for its attributes, as ls -l does.
pub(super) fn stat_entry(batch: &mut Batch, dir: &OwnedFd, name: &CStr) -> Result<(), Failed> {
    batch.stat(dir, name.to_bytes()).map(drop)
}

/// Deletes the entry, which is no directory.
pub(super) fn unlink_entry(batch: &mut Batch, dir: &OwnedFd, name: &CStr) -> Result<(), Failed> {
    batch.unlink(dir, name.to_bytes(), AtFlags::empty())
}
