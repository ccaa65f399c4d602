//! The job of an agent: an ordered list of steps. The agent decides nothing.

use crate::op::Op;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Name of the directory in which [`Step::Exercise`] works.
pub const EXERCISE_NAME: &str = "whichfs-exercise";

/// Everything an agent does in one trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Seed of the trial; workloads draw their named streams from it.
    pub seed: u64,
    /// How each disk must look to the kernel before anything is formatted.
    pub queues: Vec<BlockQueue>,
    /// What to do, in this order; the first failure ends the job.
    pub steps: Vec<Step>,
    /// Report each call that makes data durable as [`crate::Event::Promise`].
    #[serde(default)]
    pub promises: bool,
    /// Report each operation that changes something when it has returned, as a promise whose
    /// call is [`crate::RETURNED`]: mounted with `sync` or `dirsync` that is one.
    #[serde(default)]
    pub returns: bool,
    /// What a workload does to make data durable does nothing and says that it did, as under
    /// eatmydata.
    #[serde(default)]
    pub ignores_sync: bool,
    /// Report what the kernel did in each phase as [`crate::Event::Work`], where it counts that.
    #[serde(default)]
    pub counts_work: bool,
    /// Go on after each promise, and after the begin of each phase, only when whoever hears it has
    /// acknowledged it (where no lab does so anyway): what follows one that nobody heard has then
    /// not begun.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub acknowledged: bool,
}

/// Attributes of a block device's queue, as mmc_block or a USB reader has them
/// (`/sys/block/NAME/queue/`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BlockQueue {
    /// Kernel name of the disk, for example `vda`.
    pub disk: String,
    /// virtio-blk says yes by itself; SD and eMMC say no, USB readers yes.
    pub rotational: bool,
    /// I/O scheduler: `none`, `mq-deadline`, `bfq`.
    pub scheduler: String,
    /// Largest request in KiB (`max_sectors_kb`).
    pub max_request_kib: u64,
    /// Requests the scheduler may hold (`nr_requests`).
    pub requests: u32,
    /// Read-ahead in KiB (`read_ahead_kb`); the kernel's default is 128.
    pub read_ahead_kib: u64,
}

/// One step of a [`Job`]. A step with a `phase` is bracketed by
/// `phase_begin` and `phase_end` and yields figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum Step {
    /// Runs a program of the host and waits; a non-zero status fails the job
    /// unless `any_status`.
    Run {
        /// Phase this step is, if it yields figures (`mkfs`).
        phase: Option<String>,
        /// Program and arguments.
        argv: Vec<String>,
        /// The whole environment of the program.
        env: BTreeMap<String, String>,
        /// Working directory.
        dir: String,
        /// What it reads from its standard input.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        stdin: String,
        /// Pass standard output and error on as `output` events.
        show: bool,
        /// Report the exit status as the metric `exit_status` instead of failing.
        any_status: bool,
        /// It keeps the agent's rights where programs are confined: it mounts or serves the
        /// filesystem, as ntfs-3g and nilfs_cleanerd do.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        keeps_rights: bool,
    },
    /// Mounts, with options written as in fstab.
    Mount {
        /// Phase this step is (`mount`), if it yields figures.
        phase: Option<String>,
        /// Device, or `none`.
        source: String,
        /// Directory; made if missing.
        target: String,
        /// Kernel name of the filesystem (`ext4`, `ntfs3`, …).
        kernel_fs: String,
        /// Comma-separated options as in fstab: `noatime,compress=zstd`.
        options: String,
    },
    /// Unmounts `target`.
    Unmount {
        /// Phase this step is, if it yields figures.
        phase: Option<String>,
        /// Mounted directory.
        target: String,
    },
    /// `sync`, then drops page cache, dentries and inodes.
    DropCaches,
    /// `syncfs`: what the filesystem of `dir` keeps back is written, as by an unmount.
    Sync {
        /// Phase this step is (`sync`).
        phase: String,
        /// Directory on the filesystem under test.
        dir: String,
    },
    /// Forgets what is cached of the files below `dir`, whose filesystem stays mounted:
    /// `posix_fadvise` for each, and all caches where the kernel lets that be done.
    Forget {
        /// Directory on the filesystem under test.
        dir: String,
    },
    /// Sleeps: idle time in which caches drain and cards collect.
    Settle {
        /// How long, in milliseconds of the clock in force.
        milliseconds: u64,
    },
    /// Writes an image file to a device with direct 1 MiB writes, then flushes:
    /// how a read-only image gets onto a card.
    Deploy {
        /// Phase name (`deploy`).
        phase: String,
        /// Image: a file, or in the lab a read-only disk.
        image: String,
        /// Block device.
        device: String,
    },
    /// Loads modules of the kernel, one after the other, from memory: their files are read before.
    LoadModules {
        /// Phase name (`module_load`).
        phase: String,
        /// Their files in the order in which they need one another, not compressed; in the lab
        /// `/NAME/…` below a directory that is shared as NAME.
        modules: Vec<String>,
    },
    /// Performs one phase of a workload in `dir`.
    Operate {
        /// Phase of the workload, for example `tree_write`.
        phase: String,
        /// Which workload, with all its parameters.
        workload: WorkloadSpec,
        /// Directory on the filesystem under test.
        dir: String,
    },
    /// Reports the metric `space`: bytes of `device` that the filesystem mounted on `dir` no
    /// longer has free. That counts data, metadata and everything set aside (inode tables,
    /// journals, reserves), which filesystems book differently in `statfs`. An image that has
    /// nothing free counts with its own size.
    Space {
        /// Directory on the filesystem under test.
        dir: String,
        /// Its block device.
        device: String,
    },
    /// Does `steps` up to the first that fails, which is reported as [`crate::Event::Failed`];
    /// the job goes on after them.
    Try {
        /// Name of the attempt in the report of its failure.
        name: String,
        /// What to do.
        steps: Vec<Step>,
    },
    /// Reports all that is below `dir` as [`crate::Event::Found`], and digests of the sectors
    /// of some files. What cannot be read is reported with the error.
    Inspect {
        /// Directory on the filesystem under test.
        dir: String,
        /// Files whose sectors are wanted, relative to `dir`.
        sectors: Vec<String>,
    },
    /// Makes, writes, renames, reads back and deletes a file in a directory of `dir` that is
    /// called [`EXERCISE_NAME`]: whether the filesystem can be used.
    Exercise {
        /// Directory on the filesystem under test.
        dir: String,
    },
    /// Reports what the kernel logged since the last such step as [`crate::Event::KernelLog`].
    KernelLog,
    /// Reports a file's trimmed content as an `output` event (tests read sysfs with it).
    ShowFile {
        /// Absolute path.
        path: String,
    },
}

/// A workload with the parameters that determine its operations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkloadSpec {
    /// Name of the workload (`rootfs`).
    pub name: String,
    /// Parameters by name; the workload defines which and their units.
    pub parameters: BTreeMap<String, u64>,
    /// Directory tree of the user instead of a generated one (`--tree DIR`); in the lab `/NAME`
    /// of a shared directory.
    pub tree: Option<String>,
    /// Whether the filesystem has permissions, owners, symlinks and hard links
    /// (FAT and exFAT do not): operations that it cannot do are left out.
    pub unix: bool,
    /// Operations as data, for the workload that has none of its own (`script`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<Vec<Op>>,
    /// What the user gives the program of a phase, for the workloads that take such: a job file
    /// for fio, a command line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
}
