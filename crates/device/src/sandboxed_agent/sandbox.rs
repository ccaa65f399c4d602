//! The part of this machine that an agent and its programs see and may change.
//!
//! A trial's job names programs of this machine, and files that anybody may have written decide
//! what they do. So they run where nothing but the place under test can be written: in namespaces
//! of their own (mounts, processes, network, System V IPC), with every mount read-only, `/dev` with
//! the disk under test and a few nodes that belong to nobody, `/tmp`, `/var/tmp` and `/run` empty
//! and their own, and sockets of the machine's services covered. The agent puts further limits on
//! the programs that it starts (`whichfs_agent::Confinement`), among them the rules of Landlock
//! that are made here.

use super::SandboxedAgent;
use crate::error::HereError;
use crate::mounts::thread_mounts;
use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreatedAttr, Scope,
};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags, mknodat};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_bind,
    mount_bind_recursive, mount_change, mount_remount, move_mount, open_tree,
};
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use whichfs_trial::{Job, Step};

/// Directories that are empty in the sandbox, and their modes.
const EMPTY: [(&str, &str); 3] = [("/tmp", "1777"), ("/var/tmp", "1777"), ("/run", "755")];
/// Where the directory that a trial works in is, in the sandbox.
pub const DIRECTORY: &str = "/run/whichfs-trial";
/// Devices of `/dev` that belong to nobody: name, major and minor number (`devices.txt`). The
/// agent reads the kernel's log; programs do not see it.
const NODES: [(&str, u32, u32); 7] = [
    ("null", 1, 3),
    ("zero", 1, 5),
    ("full", 1, 7),
    ("random", 1, 8),
    ("urandom", 1, 9),
    ("kmsg", 1, 11),
    ("tty", 5, 0),
];
/// Links of `/dev`.
const LINKS: [(&str, &str); 4] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
];
/// Places where programs may write beside the place under test.
const SCRATCH: [&str; 7] = [
    "/tmp",
    "/var/tmp",
    "/dev/shm",
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/tty",
];
/// The newest version of Landlock that this program knows.
const LANDLOCK: ABI = ABI::V10;

/// Rules of Landlock for programs, and the rights that they handle.
pub(crate) type Rules = (OwnedFd, u64);

/// Puts the calling thread, and the processes that it starts, into the sandbox of `sandboxed`. The
/// rules for programs are returned where the kernel has Landlock.
///
/// # Errors
/// The system refuses a part of it.
pub(crate) fn enter(sandboxed: &SandboxedAgent<'_>) -> Result<Option<Rules>, HereError> {
    let (job, writable) = (sandboxed.job, sandboxed.writable);
    // Of the machine's network, not of the new one.
    let sockets = sockets();
    let directory = sandboxed.directory.map(|directory| directory.open);
    let tree = directory.map(detached).transpose()?;
    namespaces()?;
    for target in targets(&job.steps) {
        // A trial on this machine has always left its mount point behind, empty.
        let _ = fs::create_dir_all(target);
    }
    let kept = kept(sandboxed.agent, job);
    let devices = devices(writable)?;
    make_read_only()?;
    empty_directories(&devices).map_err(|error| failed("files of its own", &error))?;
    for place in &kept {
        place.bind()?;
    }
    if let Some(tree) = &tree {
        attach(tree).map_err(|error| failed("its directory", &error))?;
    }
    for target in targets(&job.steps) {
        if is_hidden(Path::new(target)) {
            fs::create_dir_all(target).map_err(|error| failed("its mount point", &error))?;
        }
    }
    for socket in sockets.iter().filter(|path| is_socket(path)) {
        mount_bind("/dev/null", socket)
            .map_err(|errno| failed("services out of its reach", &errno.into()))?;
    }
    let own = tree.map(|_| PathBuf::from(DIRECTORY));
    rules(writable.iter().chain(&own))
}

fn failed(what: &'static str, error: &io::Error) -> HereError {
    HereError::Agent {
        what,
        reason: error.to_string(),
    }
}

/// Gives the calling thread mounts, a network and System V IPC of its own, and its children a
/// process namespace.
fn namespaces() -> Result<(), HereError> {
    let flags = libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWNET | libc::CLONE_NEWIPC;
    // SAFETY: unshare takes a number and changes only what this thread shares with others.
    if unsafe { libc::unshare(flags) } != 0 {
        let error = io::Error::last_os_error();
        return Err(failed("namespaces of its own", &error));
    }
    let flags = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", flags).map_err(|errno| failed("mounts of its own", &errno.into()))
}

/// Sockets of this machine that have a path.
fn sockets() -> Vec<PathBuf> {
    let text = fs::read("/proc/self/net/unix").unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    // Num RefCount Protocol Flags Type St Inode Path
    let paths = text.lines().filter_map(|line| {
        let at = line.find('/')?;
        Some(PathBuf::from(&line[at..]))
    });
    let mut paths: Vec<PathBuf> = paths.collect();
    paths.sort();
    paths.dedup();
    paths
}

fn is_socket(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket())
}

/// The mount points of `steps`.
fn targets(steps: &[Step]) -> Vec<&str> {
    fn of_step(step: &Step) -> Vec<&str> {
        match step {
            Step::Mount { target, .. } => vec![target.as_str()],
            Step::Try { steps, .. } => targets(steps),
            _ => Vec::new(),
        }
    }
    steps.iter().flat_map(of_step).collect()
}

/// Whether the sandbox has nothing of this machine at `path`.
fn is_hidden(path: &Path) -> bool {
    path.starts_with("/dev") || EMPTY.iter().any(|(place, _)| path.starts_with(place))
}

/// A file or directory of this machine that is in the sandbox where it is outside.
struct Kept {
    path: PathBuf,
    handle: OwnedFd,
    is_directory: bool,
}

impl Kept {
    /// # Errors
    /// It is not there.
    fn open(path: &Path) -> io::Result<Kept> {
        let handle = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&handle)?.st_mode);
        Ok(Kept {
            path: path.to_path_buf(),
            handle,
            is_directory: kind == FileType::Directory,
        })
    }

    /// Mounts it at its path, which is made where the sandbox has nothing there.
    fn bind(&self) -> Result<(), HereError> {
        self.try_bind().map_err(|error| HereError::Agent {
            what: "a file of its job",
            reason: format!("{}: {error}", self.path.display()),
        })
    }

    fn try_bind(&self) -> io::Result<()> {
        if !is_hidden(&self.path) {
            return Ok(());
        }
        match (self.is_directory, self.path.parent()) {
            (true, _) => fs::create_dir_all(&self.path)?,
            (false, Some(parent)) => {
                fs::create_dir_all(parent)?;
                fs::File::create(&self.path)?;
            }
            (false, None) => {}
        }
        let source = format!("/proc/thread-self/fd/{}", self.handle.as_raw_fd());
        Ok(mount_bind_recursive(source, &self.path)?)
    }
}

/// The open directory that a trial works in as a mount of its own, which can be carried into
/// another mount namespace: no path leads there on the way.
fn detached(directory: &OwnedFd) -> Result<OwnedFd, HereError> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH;
    open_tree(directory, "", flags).map_err(|errno| failed("its directory", &errno.into()))
}

/// Attaches `tree` at [`DIRECTORY`], a path of the sandbox's own, where nobody outside can swap a
/// name for another.
fn attach(tree: &OwnedFd) -> io::Result<()> {
    fs::create_dir_all(DIRECTORY)?;
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    move_mount(tree, "", rustix::fs::CWD, DIRECTORY, flags)?;
    let flags = MountFlags::BIND | MountFlags::NODEV | MountFlags::NOSUID;
    Ok(mount_remount(DIRECTORY, flags, c"")?)
}

/// What the sandbox keeps of this machine: the agent, and what `job` reads.
fn kept(agent: &Path, job: &Job) -> Vec<Kept> {
    let mut read = vec![agent.to_path_buf()];
    read.extend(inputs(&job.steps));
    let is_plain = |path: &PathBuf| path.is_file() || path.is_dir();
    read.retain(|path| is_hidden(path) && !path.starts_with("/dev") && is_plain(path));
    read.retain(|path| EMPTY.iter().all(|(place, _)| path != Path::new(place)));
    read.sort();
    read.dedup();
    // What is below another is there with it.
    let all = read.clone();
    read.retain(|path| {
        let mut above = all.iter().filter(|one| *one != path);
        above.all(|one| !path.starts_with(one))
    });
    // What is not there is missed by its step, which then says so.
    read.iter()
        .filter_map(|path| Kept::open(path).ok())
        .collect()
}

/// Paths that `steps` read: images, trees, modules, programs and files among their arguments.
fn inputs(steps: &[Step]) -> Vec<PathBuf> {
    let of_step = |step: &Step| match step {
        Step::Run { argv, .. } => argv.clone(),
        Step::Deploy { image, .. } => vec![image.clone()],
        Step::LoadModules { modules, .. } => modules.clone(),
        Step::Operate { workload, .. } => workload.tree.iter().cloned().collect(),
        Step::Try { steps, .. } => {
            let inner = inputs(steps).into_iter();
            inner.map(|path| path.display().to_string()).collect()
        }
        _ => Vec::new(),
    };
    let words = steps.iter().flat_map(of_step);
    words
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .collect()
}

/// The block devices among `writable`, with their numbers.
fn devices(writable: &[PathBuf]) -> Result<Vec<(PathBuf, u64)>, HereError> {
    let mut devices = Vec::new();
    for path in writable {
        let meta = fs::metadata(path);
        let meta = meta.map_err(|error| failed("the place under test", &error))?;
        if meta.file_type().is_block_device() {
            devices.push((path.clone(), meta.rdev()));
        }
    }
    Ok(devices)
}

/// Makes every mount read-only, and what is on it unable to open devices or to give rights. Those
/// of `/proc` and `/sys` stay as they are: the agent sets queues and drops caches by them, and
/// takes them away from programs.
fn make_read_only() -> Result<(), HereError> {
    let flags = MountFlags::BIND | MountFlags::RDONLY | MountFlags::NODEV | MountFlags::NOSUID;
    for one in thread_mounts(Path::new("/proc")) {
        let place = Path::new(&one.place);
        if place.starts_with("/proc") || place.starts_with("/sys") || is_hidden(place) {
            continue;
        }
        match mount_remount(place, flags, c"") {
            // Another mount covers it: it cannot be named, so nobody in here can reach it.
            Ok(()) | Err(Errno::NOENT | Errno::INVAL | Errno::ACCESS | Errno::NOTDIR) => {}
            Err(errno) => {
                return Err(HereError::Agent {
                    what: "a machine that it cannot change",
                    reason: format!("{}: {errno}", one.place),
                });
            }
        }
    }
    Ok(())
}

/// Covers `/tmp`, `/var/tmp`, `/run` and `/dev` with directories of its own, the last with
/// `devices`.
fn empty_directories(devices: &[(PathBuf, u64)]) -> io::Result<()> {
    let quiet = MountFlags::NODEV | MountFlags::NOSUID;
    let memory = |place: &str, flags: MountFlags, mode: &str| -> io::Result<()> {
        let data = std::ffi::CString::new(format!("mode={mode}"))?;
        Ok(mount("tmpfs", place, "tmpfs", flags, data.as_c_str())?)
    };
    for (place, mode) in EMPTY {
        if Path::new(place).is_dir() {
            memory(place, quiet, mode)?;
        }
    }
    memory("/dev", MountFlags::NOSUID | MountFlags::NOEXEC, "755")?;
    let node = |path: &Path, kind, mode: u32, device| {
        let mode = Mode::from_raw_mode(mode);
        // The umask takes bits away.
        mknodat(rustix::fs::CWD, path, kind, mode, device)?;
        rustix::fs::chmod(path, mode)
    };
    for (name, major, minor) in NODES {
        let device = rustix::fs::makedev(major, minor);
        node(
            &Path::new("/dev").join(name),
            FileType::CharacterDevice,
            0o666,
            device,
        )?;
    }
    for (path, device) in devices {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        node(path, FileType::BlockDevice, 0o600, *device)?;
    }
    for (name, target) in LINKS {
        symlink(target, Path::new("/dev").join(name))?;
    }
    fs::DirBuilder::new().mode(0o755).create("/dev/shm")?;
    memory("/dev/shm", quiet, "1777")?;
    let fixed = MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NOEXEC;
    Ok(mount_remount("/dev", fixed, c"")?)
}

/// The rules of Landlock for programs: they write to `writable` (devices and a directory), to what
/// is theirs and, as the agent adds, where it mounts. None before Linux 5.19, whose Landlock lets
/// nobody move a file from one directory to another.
fn rules<'a>(writable: impl Iterator<Item = &'a PathBuf>) -> Result<Option<Rules>, HereError> {
    let fail = |error: &dyn std::fmt::Display| HereError::Agent {
        what: "rules of Landlock",
        reason: error.to_string(),
    };
    let abi = ABI::from(landlock_version()).min(LANDLOCK);
    if abi < ABI::V2 {
        return Ok(None);
    }
    let writes = AccessFs::from_write(abi);
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(writes)
        .and_then(|rules| rules.handle_access(AccessNet::from_all(abi)))
        .and_then(|rules| rules.scope(Scope::from_all(abi)))
        .and_then(Ruleset::create)
        .map_err(|error| fail(&error))?;
    let own = SCRATCH.iter().map(Path::new).filter(|path| path.exists());
    for path in own.chain(writable.map(PathBuf::as_path)) {
        let open = PathFd::new(path).map_err(|error| fail(&error))?;
        let rights = match path.is_dir() {
            true => writes,
            false => writes & AccessFs::from_file(abi),
        };
        let rule = PathBeneath::new(open, rights);
        (&mut rules).add_rule(rule).map_err(|error| fail(&error))?;
    }
    let rules: Option<OwnedFd> = rules.into();
    Ok(rules.map(|rules| (rules, writes.bits())))
}

/// The version of the kernel's Landlock; not positive where it has none.
fn landlock_version() -> i32 {
    /// `LANDLOCK_CREATE_RULESET_VERSION`.
    const VERSION: libc::c_uint = 1;
    let none = std::ptr::null::<libc::c_void>();
    // SAFETY: asks for a number; nothing is read or written.
    let version =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, none, 0_usize, VERSION) };
    i32::try_from(version).unwrap_or(-1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_below_hidden_directories_is_hidden() {
        for path in ["/tmp/x", "/dev/sda", "/run/dbus/socket", "/var/tmp"] {
            assert!(is_hidden(Path::new(path)), "{path}");
        }
        for path in ["/srv/user/tmp", "/tmpfile", "/var/lib", "/"] {
            assert!(!is_hidden(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn a_job_never_has_devices_or_whole_directories_of_the_machine_shown() {
        let program = Step::Run {
            phase: None,
            argv: [
                "/bin/ls",
                "/dev/sda",
                "/tmp",
                "/run",
                "/dev/null",
                "relative",
            ]
            .map(str::to_owned)
            .to_vec(),
            env: std::collections::BTreeMap::new(),
            dir: "/".into(),
            stdin: String::new(),
            show: false,
            any_status: false,
            keeps_rights: false,
        };
        let job = Job {
            seed: 1,
            queues: Vec::new(),
            steps: vec![program],
            promises: false,
            returns: false,
            ignores_sync: false,
            counts_work: false,
            acknowledged: false,
        };
        let kept = kept(Path::new("/bin/true"), &job);
        let paths: Vec<_> = kept.iter().map(|one| &one.path).collect();
        assert!(paths.is_empty(), "{paths:?}");
    }
}
