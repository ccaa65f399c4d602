//! The control disk: the job is read from it, each event is one write to it.

use crate::aligned::Aligned;
use crate::error::AgentError;
use crate::record::{RECORD_MAX, records};
use crate::sink::Sink;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, pread, pwrite};
use std::path::{Path, PathBuf};
use whichfs_trial::{Event, Job};
use whichfs_units::{MIB, SECTOR};

/// The first eight bytes of a control disk, little-endian: "wfsctl", version 1.
pub const JOB_MAGIC: u64 = 0x7766_7363_746c_0001;

/// Byte offset that every record is written to.
pub const RECORDS_OFFSET: u64 = MIB;

/// Most bytes of a job's JSON: it lies between the first sector and the records.
const JOB_MAX: u64 = RECORDS_OFFSET - SECTOR;

/// What the engine puts at offset 0 of the control disk: magic, length of the JSON
/// (both little-endian), then from offset 512 the JSON, padded to a multiple of 512.
///
/// # Errors
/// If the job is too long for the space before the records.
pub fn encode_job(job: &Job) -> Result<Vec<u8>, AgentError> {
    let json = serde_json::to_vec(job)
        .map_err(|error| AgentError::new(format!("encode the job: {error}")))?;
    if json.len() as u64 > JOB_MAX {
        return Err(AgentError::new(format!(
            "the job has {} bytes of JSON; the control disk holds {JOB_MAX}",
            json.len()
        )));
    }
    let mut disk = vec![0; SECTOR as usize];
    disk[..8].copy_from_slice(&JOB_MAGIC.to_le_bytes());
    disk[8..16].copy_from_slice(&(json.len() as u64).to_le_bytes());
    disk.extend_from_slice(&json);
    disk.resize(disk.len().next_multiple_of(SECTOR as usize), 0);
    Ok(disk)
}

/// The length of the JSON that the first sector announces.
fn job_len(sector: &[u8]) -> Result<usize, AgentError> {
    let word = |at: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&sector[at..at + 8]);
        u64::from_le_bytes(bytes)
    };
    let (magic, len) = (word(0), word(8));
    if magic != JOB_MAGIC {
        return Err(AgentError::new(format!(
            "not a control disk: it begins with {magic:#018x}, expected {JOB_MAGIC:#018x}"
        )));
    }
    if len == 0 || len > JOB_MAX {
        return Err(AgentError::new(format!(
            "the control disk announces a job of {len} bytes; legal are 1 to {JOB_MAX}"
        )));
    }
    Ok(len as usize)
}

/// The control disk, opened for direct I/O.
pub struct ControlDisk {
    fd: OwnedFd,
    path: PathBuf,
    buffer: Aligned,
}

impl ControlDisk {
    /// Opens the disk at `path` with O_DIRECT.
    ///
    /// # Errors
    /// If there is no such disk or it cannot do direct I/O.
    pub fn open(path: &Path) -> Result<ControlDisk, AgentError> {
        let flags = OFlags::RDWR | OFlags::DIRECT | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Mode::empty())
            .map_err(|errno| AgentError::system("open control disk", path.display(), errno))?;
        Ok(ControlDisk {
            fd,
            path: path.to_owned(),
            buffer: Aligned::new(RECORD_MAX),
        })
    }

    /// Reads the job.
    ///
    /// # Errors
    /// If the disk cannot be read or what is on it is not a job.
    pub fn job(&mut self) -> Result<Job, AgentError> {
        let mut sector = Aligned::new(SECTOR as usize);
        self.read(sector.bytes_mut(), 0)?;
        let len = job_len(sector.bytes())?;
        let mut json = Aligned::new(len.next_multiple_of(SECTOR as usize));
        self.read(json.bytes_mut(), SECTOR)?;
        serde_json::from_slice(&json.bytes()[..len])
            .map_err(|error| AgentError::new(format!("the job is not valid: {error}")))
    }

    /// Fills `bytes` from `offset`.
    fn read(&self, bytes: &mut [u8], offset: u64) -> Result<(), AgentError> {
        let mut done = 0;
        while done < bytes.len() {
            match pread(&self.fd, &mut bytes[done..], offset + done as u64) {
                Ok(0) => {
                    return Err(AgentError::new(format!(
                        "read control disk {}: it ends at {}",
                        self.path.display(),
                        offset + done as u64
                    )));
                }
                Ok(count) => done += count,
                Err(Errno::INTR) => {}
                Err(errno) => {
                    let path = self.path.display();
                    return Err(AgentError::system("read control disk", path, errno));
                }
            }
        }
        Ok(())
    }
}

impl Sink for ControlDisk {
    fn send(&mut self, event: &Event) -> Result<(), AgentError> {
        for record in records(event) {
            let bytes = &mut self.buffer.bytes_mut()[..record.len()];
            bytes.copy_from_slice(&record);
            // One call, never continued: the engine takes each write as one record.
            let count = pwrite(&self.fd, bytes, RECORDS_OFFSET).map_err(|errno| {
                AgentError::system("write a record to", self.path.display(), errno)
            })?;
            if count != record.len() {
                return Err(AgentError::new(format!(
                    "write a record to {}: {count} of {} bytes were taken",
                    self.path.display(),
                    record.len()
                )));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use whichfs_trial::Step;

    fn job() -> Job {
        Job {
            seed: 7,
            queues: Vec::new(),
            steps: vec![Step::DropCaches, Step::Settle { milliseconds: 3 }],
            promises: false,
            returns: false,
            ignores_sync: false,
            counts_work: false,
            acknowledged: false,
        }
    }

    #[test]
    fn an_encoded_job_announces_its_json() {
        let disk = encode_job(&job()).unwrap();
        assert_eq!(disk.len() % 512, 0);
        let len = job_len(&disk[..512]).unwrap();
        let read: Job = serde_json::from_slice(&disk[512..512 + len]).unwrap();
        assert_eq!(read, job());
    }

    #[test]
    fn a_foreign_disk_is_refused() {
        let text = job_len(&[0; 512]).unwrap_err().to_string();
        assert!(text.contains("not a control disk"), "{text}");
        let mut disk = encode_job(&job()).unwrap();
        disk[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(job_len(&disk[..512]).is_err());
    }

    #[test]
    fn a_job_that_does_not_fit_is_refused() {
        let mut long = job();
        long.steps = vec![Step::DropCaches; 100_000];
        assert!(encode_job(&long).is_err());
    }

    #[test]
    fn job_and_records_pass_through_a_file() {
        // tmpfs does direct I/O since Linux 6.6 only, so /dev/shm would not do.
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control");
        let mut disk = encode_job(&job()).unwrap();
        disk.resize(40 << 20, 0);
        std::fs::write(&path, &disk).unwrap();
        let mut control = ControlDisk::open(&path).unwrap();
        assert_eq!(control.job().unwrap(), job());
        control.send(&Event::Done).unwrap();
        let disk = std::fs::read(&path).unwrap();
        let record = &disk[RECORDS_OFFSET as usize..][..512];
        assert_eq!(record, &records(&Event::Done)[0][..]);
    }
}
