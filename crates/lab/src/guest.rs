//! The guest's process: its start, its end.
//!
//! The guest must not survive the engine: its process asks for SIGKILL at the death of the
//! thread that started it, and its own children do the same (User Mode Linux sets
//! PR_SET_PDEATHSIG in them).

use crate::confinement::Confinement;
use crate::cpu::CpuPrices;
use crate::error::LabError;
use crate::guest_directory::GuestDirectory;
use crate::host_view::{self, Root};
use crate::initramfs::Initramfs;
use crate::kernel::Kernel;
use crate::shared::{self, Handles, SharedDirectory};
use crate::spawn::{Child, Program, spawn};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::os::unix::fs::symlink;
use std::path::Path;

/// Keeps the C library of the guest's kernel from registering restartable sequences: the host would
/// write to that area in the processes of the guest's programs, where it is not mapped, and so
/// end them. A kernel without shared libraries has the area among their addresses.
const NO_RSEQ: (&str, &str) = ("GLIBC_TUNABLES", "glibc.pthread.rseq=0");
/// What [`Guest::finish`] says of a guest that did not end by itself.
pub const KILLED: &str = "killed by the engine";
/// What the guest's kernel says when the host refuses something, and what that is with its remedy.
/// Sentences of arch/um, the most telling first.
pub const HOST_REFUSALS: [(&str, &str); 7] = [
    (
        "UML ran out of memory on the host side",
        "this machine allows a process too few mappings for the guest's kernel: raise the limit \
         (`sudo sysctl vm.max_map_count=1048576`), or free memory",
    ),
    ("start_ptraced_child : fork failed", NO_PROCESSES),
    ("clone failed, errno = 11", NO_PROCESSES),
    ("clone failed", NO_MEMORY),
    ("setup_physmem - mapping", NO_MEMORY),
    ("check_ptrace", NO_TRACING),
    ("check_sysemu", NO_TRACING),
];
const NO_PROCESSES: &str = "this machine allows too few processes for the guest: raise the limit \
    (ulimit -u, pids.max of the control group, --pids-limit of the container)";
const NO_MEMORY: &str = "this machine gives the guest no memory: raise the limit (ulimit -v, \
    memory.max of the control group), run fewer trials at once (--jobs), or free memory";
const NO_TRACING: &str = "this machine does not let the guest's kernel trace its processes \
    (ptrace): run outside of the container or its seccomp filter (--cap-add SYS_PTRACE), and look \
    at `sysctl kernel.yama.ptrace_scope` (3 forbids it)";

/// What the host refused a guest that said `lines`, and the remedy.
pub fn host_refusal<'a>(
    lines: impl IntoIterator<Item = &'a String> + Clone,
) -> Option<&'static str> {
    let is_said = |words: &str| lines.clone().into_iter().any(|line| line.contains(words));
    let said = HOST_REFUSALS.iter().find(|(words, _)| is_said(words));
    said.map(|(_, remedy)| *remedy)
}

/// What a guest's process is started with.
pub struct GuestProcess<'a> {
    /// The lab kernel.
    pub kernel: &'a Kernel,
    /// Its first root.
    pub initramfs: &'a Initramfs,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// Private directory in which the file that is its memory is made: with its own directory the
    /// only one that it may write.
    pub memory: &'a Path,
    /// What its work costs.
    pub cpu: CpuPrices,
    /// Seed of the guest's entropy.
    pub seed: u64,
    /// Requests that a disk takes at once; `None`: as many as its ring holds.
    pub queue_depth: Option<u32>,
    /// Where its programs come from.
    pub root: Root<'a>,
    /// Directories of the host that it sees, its root included if that is one.
    pub shared: &'a [SharedDirectory],
    /// Number of disks, the control disk and that of the sealed userland included.
    pub disks: usize,
    /// Kernel name of the control disk.
    pub control: &'a str,
}

/// A running guest.
pub struct Guest {
    child: Child,
    console: File,
    /// Nothing of it is left.
    gone: bool,
}

impl Guest {
    /// Starts the guest in `directory`, where the engine already listens.
    pub fn start(process: &GuestProcess, directory: &GuestDirectory) -> Result<Guest, LabError> {
        let kernel = process.kernel.path.as_path();
        if !kernel.is_file() {
            return Err(LabError::NoKernel {
                path: kernel.to_path_buf(),
            });
        }
        let link = directory.path().join("i");
        symlink(Initramfs::path(), &link)
            .map_err(LabError::io(format!("make {}", link.display())))?;
        let console = open_console(directory.path())?;
        let handles = Handles::open(process.shared)?;
        let numbers = handles.numbers();
        let archive = process.initramfs.number();
        let confinement = Confinement::new(
            kernel,
            &[directory.path(), process.memory],
            &host_view::readable(process.root, process.shared),
            process.memory_mib,
        )
        .map_err(LabError::io("confine the guest"))?;
        let environment = [
            ("TMPDIR", process.memory.as_os_str().to_owned()),
            (NO_RSEQ.0, NO_RSEQ.1.into()),
        ];
        let program = Program {
            path: kernel,
            arguments: &command_line(process),
            environment: &environment,
            directory: directory.path(),
            output: console.as_fd(),
        };
        // SAFETY: only system calls are made before it starts.
        let child = unsafe {
            spawn(&program, &|| {
                prepare_child()?;
                shared::put_in_place(&numbers)?;
                Initramfs::put_in_place(archive)?;
                confinement.put_on()
            })
        };
        let child = child.map_err(LabError::io(format!("start {}", kernel.display())))?;
        Ok(Guest {
            child,
            console,
            gone: false,
        })
    }

    /// A process that does nothing, for tests in which a thread plays the guest.
    #[cfg(test)]
    pub(crate) fn stand_in() -> Guest {
        let console = tempfile::tempfile().expect("a temporary file");
        let program = Program {
            path: Path::new("/bin/sleep"),
            arguments: &["60".to_owned()],
            environment: &[],
            directory: Path::new("/"),
            output: console.as_fd(),
        };
        // SAFETY: only system calls are made before it starts.
        let child = unsafe { spawn(&program, &prepare_child) }.expect("sleep is everywhere");
        Guest {
            child,
            console,
            gone: false,
        }
    }

    /// Process id of the guest, which is also its session.
    pub fn pid(&self) -> u32 {
        self.child.pid().as_raw_pid().cast_unsigned()
    }

    /// Bytes of console output so far.
    pub fn console_bytes(&self) -> u64 {
        self.console.metadata().map_or(0, |meta| meta.len())
    }

    /// The last lines of the console, and before them those of a panic and of its cause on the
    /// host, once each: the call trace between may be longer than that.
    pub fn console_tail(&mut self) -> Vec<String> {
        const TAIL_BYTES: u64 = 256 << 10;
        const TAIL_LINES: usize = 60;
        let refusals = HOST_REFUSALS.iter().map(|(words, _)| *words);
        let start = self.console_bytes().saturating_sub(TAIL_BYTES);
        let mut text = Vec::new();
        let read = self
            .console
            .seek(SeekFrom::Start(start))
            .and_then(|_| (&self.console).take(TAIL_BYTES).read_to_end(&mut text));
        if read.is_err() {
            return vec!["(the console could not be read)".into()];
        }
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text
            .lines()
            .map(str::trim_end)
            .filter(|l| !l.is_empty())
            .collect();
        let (head, tail) = lines.split_at(lines.len().saturating_sub(TAIL_LINES));
        let telling = refusals.chain(["Kernel panic"]).filter_map(|what| {
            let mut found = head.iter().filter(|line| line.contains(what));
            found.next()
        });
        telling.chain(tail).map(|line| (*line).to_owned()).collect()
    }

    /// Seconds of CPU that the guest and its processes have used.
    pub fn cpu_seconds(&self) -> f64 {
        let ticks: u64 = session_processes(self.pid())
            .into_iter()
            .map(|(_, ticks)| ticks)
            .sum();
        ticks as f64 / rustix::param::clock_ticks_per_second() as f64
    }

    /// How the process ended, if it has.
    pub fn ended(&mut self) -> Option<String> {
        self.child
            .try_wait()
            .ok()
            .flatten()
            .map(|status| status.to_string())
    }

    /// Waits for the process to end, at most `tries` times 10 ms, then kills it.
    pub fn finish(&mut self, tries: u32) -> String {
        for _ in 0..tries {
            if let Some(how) = self.ended() {
                return how;
            }
            self.wait_a_moment();
        }
        self.kill();
        KILLED.into()
    }

    /// Waits 10 ms, or until it has ended where the host can tell (Linux 5.3).
    fn wait_a_moment(&self) {
        const MOMENT: Timespec = Timespec {
            tv_sec: 0,
            tv_nsec: 10_000_000,
        };
        let handle = pidfd_open(self.child.pid(), PidfdFlags::empty()).ok();
        let waited = handle.iter().map(|fd| PollFd::new(fd, PollFlags::IN));
        let mut waited: Vec<PollFd> = waited.collect();
        // Interrupted or not: whoever asks looks again.
        let _ = poll(&mut waited, Some(&MOMENT));
    }

    /// Ends what is left of the guest and waits until it is gone. A process id is used only
    /// while it is known to be ours: before its process has been waited for.
    fn kill(&mut self) {
        const TRIES: u32 = 200;
        if self.gone {
            return;
        }
        self.gone = true;
        let kill = rustix::process::Signal::KILL;
        if self.ended().is_none() {
            let _ = rustix::process::kill_process_group(self.child.pid(), kill);
            self.child.kill();
            let _ = self.child.wait();
        }
        for _ in 0..TRIES {
            let left = session_processes(self.pid());
            if left.is_empty() {
                return;
            }
            for (pid, _) in left {
                if let Some(pid) = Pid::from_raw(pid.cast_signed()) {
                    let _ = rustix::process::kill_process(pid, kill);
                }
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.kill();
    }
}

fn open_console(directory: &Path) -> Result<File, LabError> {
    File::options()
        .create_new(true)
        .read(true)
        .append(true)
        .open(directory.join("console"))
        .map_err(LabError::io("make the console file"))
}

/// Kernel command line. Every path is relative to the guest's directory: its length
/// must not depend on where that is.
fn command_line(process: &GuestProcess) -> Vec<String> {
    /// The guest's clock starts at 2026-01-01 00:00:00 UTC, always.
    const START_NS: u64 = 1_767_225_600_000_000_000;
    let mut line = vec![
        format!("mem={}M", process.memory_mib),
        "initrd=i".into(),
        "uml_dir=./".into(),
        "umid=u".into(),
        "con=null".into(),
        "con0=null,fd:1".into(),
        "quiet".into(),
        "norandmaps".into(),
        "panic=-1".into(),
        format!("um_cpu={}", process.cpu),
        format!("um_seed={}", process.seed),
        format!("time-travel-start={START_NS}"),
        "time-travel=ext:c".into(),
        format!("whichfs.control={}", process.control),
    ];
    line.extend(
        process
            .queue_depth
            .map(|depth| format!("virtio_blk.queue_depth={depth}")),
    );
    line.extend(process.kernel.arguments.iter().cloned());
    if let Root::Sealed(_) = process.root {
        line.push(whichfs_trial::ROOT.to_owned() + &disk_name(process.disks - 1));
    }
    line.extend(shared::parameter(process.shared));
    line.extend((0..process.disks).map(|disk| format!("virtio_uml.device=d{disk}:2")));
    line
}

/// Kernel name of disk `at`.
pub(crate) fn disk_name(at: usize) -> String {
    format!("vd{}", (b'a' + at as u8) as char)
}

/// Runs in the child between fork and exec.
fn prepare_child() -> std::io::Result<()> {
    // SAFETY: plain system calls without pointers.
    let failed = unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0
            || libc::setsid() < 0
            || libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong) < 0
    };
    if failed {
        return Err(std::io::Error::last_os_error());
    }
    die_first();
    Ok(())
}

/// Has the kernel end the calling process, and those that it starts, before any other when memory
/// runs out: a trial can be run again.
fn die_first() {
    let (path, most) = (c"/proc/self/oom_score_adj".as_ptr(), b"1000");
    // SAFETY: the path ends with NUL, and both outlive the calls. A host without procfs decides by
    // itself.
    unsafe {
        let fd = libc::open(path, libc::O_WRONLY | libc::O_CLOEXEC);
        if fd >= 0 {
            libc::write(fd, most.as_ptr().cast(), most.len());
            libc::close(fd);
        }
    }
}

/// Process ids and CPU ticks of all living processes of session `session`.
fn session_processes(session: u32) -> Vec<(u32, u64)> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            // Fields after the name in brackets: state, parent, group, session, …, utime, stime.
            let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
            if fields.first() == Some(&"Z") {
                return None; // dead already; its parent has not looked yet
            }
            let number = |i: usize| fields.get(i)?.parse::<u64>().ok();
            (number(3)? == u64::from(session)).then_some((pid, number(11)? + number(12)?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_names_no_path_of_the_host() {
        let kernel = Kernel {
            path: "/some/where/linux".into(),
            sha256: String::new(),
            release: String::new(),
            mounts_userland: false,
            arguments: vec!["seccomp=off".into()],
        };
        let process = GuestProcess {
            kernel: &kernel,
            initramfs: &Initramfs::new(b"agent").expect("memory for it"),
            memory_mib: 256,
            memory: Path::new("/dev/shm"),
            cpu: CpuPrices::default(),
            seed: 1,
            queue_depth: Some(64),
            root: Root::Host(&crate::host_view::HostView::default()),
            shared: &[SharedDirectory {
                name: "tree",
                path: "/srv/tree".into(),
            }],
            disks: 2,
            control: "vdb",
        };
        let line = command_line(&process).join(" ");
        assert!(
            !line.contains('/') || line.matches('/').count() == 1,
            "only uml_dir=./: {line}"
        );
        assert!(line.contains("virtio_uml.device=d1:2"));
        assert!(line.contains("virtio_blk.queue_depth=64"));
        assert!(line.contains("seccomp=off"));
    }
}
