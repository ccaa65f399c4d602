//! One guest from start to end.

use crate::control::Control;
use crate::cores::Pinned;
use crate::cpu::CpuPrices;
use crate::device::{Backend, Device};
use crate::disk::Disk;
use crate::engine::{Engine, Stamped};
use crate::error::LabError;
use crate::guest::{Guest, GuestProcess, KILLED, disk_name, host_refusal};
use crate::guest_directory::GuestDirectory;
use crate::host_view::Root;
use crate::image_disk::ImageDisk;
use crate::initramfs::Initramfs;
use crate::kernel::Kernel;
use crate::shared::SharedDirectory;
use crate::socket::Peer;
use crate::watchdog::{GuestLimits, Watchdog};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use whichfs_trial::{Event, HOST_ROOT, Job};
use whichfs_units::Nanos;

/// Most cards that a guest can have.
pub const DISKS_MAX: usize = 4;

/// The agent's program, ready to be packed.
#[derive(Clone, Debug)]
pub struct Agent {
    /// Where it came from.
    pub path: PathBuf,
    /// SHA-256 of the program, in hex.
    pub sha256: String,
    initramfs: Arc<Initramfs>,
}

impl Agent {
    /// Reads the agent; it must be a static program, because the guest's first root holds
    /// nothing else.
    pub fn open(path: &Path) -> Result<Agent, LabError> {
        let refuse = |why: &str| LabError::NoAgent {
            path: path.to_path_buf(),
            why: why.to_owned(),
        };
        let program = std::fs::read(path).map_err(|e| refuse(&e.to_string()))?;
        if !program.starts_with(b"\x7fELF") {
            return Err(refuse("it is not an ELF program"));
        }
        if needs_interpreter(&program) {
            return Err(refuse("it is linked dynamically"));
        }
        Ok(Agent {
            path: path.to_path_buf(),
            sha256: Sha256::digest(&program)
                .iter()
                .map(|b| format!("{b:02x}"))
                .collect(),
            initramfs: Arc::new(
                Initramfs::new(&program)
                    .map_err(LabError::io(format!("keep {} in memory", path.display())))?,
            ),
        })
    }
}

/// Whether a 64-bit little-endian ELF program has a PT_INTERP header.
fn needs_interpreter(program: &[u8]) -> bool {
    const PT_INTERP: u32 = 3;
    let number = |at: usize, bytes: usize| -> usize {
        let slice = program.get(at..at + bytes).unwrap_or_default();
        slice.iter().rev().fold(0, |n, &b| n << 8 | usize::from(b))
    };
    let (table, size, count) = (number(32, 8), number(54, 2), number(56, 2));
    (0..count).any(|i| number(table + i * size, 4) == PT_INTERP as usize)
}

/// What a guest is made of.
pub struct GuestSpec<'a> {
    /// The lab kernel.
    pub kernel: &'a Kernel,
    /// The program that the guest runs as its first process.
    pub agent: &'a Agent,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// Directory of the file that is its memory ([`crate::memory_directory`]).
    pub memory: &'a Path,
    /// What its work costs; nothing for the clock `device`.
    pub cpu: CpuPrices,
    /// Requests that a disk takes at once, from 1; `None`: as many as its ring holds.
    pub queue_depth: Option<u32>,
    /// What the agent does; its seed is also that of the guest's entropy.
    pub job: &'a Job,
    /// Where the programs of its job come from.
    pub root: Root<'a>,
    /// Files of the host that its job reads as disks ([`image_device`] says where).
    pub images: &'a [ImageDisk],
    /// Directories of the host that the job's trees and modules are in.
    pub shared: &'a [SharedDirectory],
    /// CPU for the engine and the guest; `None`: wherever the system puts them.
    pub core: Option<usize>,
    /// When to stop it.
    pub limits: GuestLimits,
}

/// What a guest's life yielded.
pub struct GuestRun {
    /// How it ended.
    pub result: Result<(), LabError>,
    /// Everything the agent said, stamped.
    pub events: Vec<Stamped>,
    /// Hash over all requests.
    pub trace_sha256: String,
    /// Number of card requests.
    pub requests: u64,
    /// Virtual time at the end.
    pub time: Nanos,
    /// Tail of the console.
    pub console: Vec<String>,
    /// The disks as they are now.
    pub disks: Vec<Disk>,
}

/// Runs one guest with `disks` to its end. `on_event` hears each event as it comes;
/// `cancelled` stops it.
///
/// # Errors
/// Only where the guest could not be started; how its life ended is in [`GuestRun::result`].
pub fn run(
    spec: &GuestSpec,
    disks: Vec<Disk>,
    cancelled: &AtomicBool,
    on_event: &mut dyn FnMut(&Stamped),
) -> Result<GuestRun, LabError> {
    assert!(
        (1..=DISKS_MAX).contains(&disks.len()),
        "a guest has one to {DISKS_MAX} disks"
    );
    let _pinned = Pinned::to(spec.core);
    let directory = GuestDirectory::new()?;
    let memory = GuestDirectory::below(spec.memory)?;
    let calendar = directory.listen("c")?;
    let control_name = disk_name(disks.len());
    let devices = listen_for(disks, spec, &directory)?;
    let shared = with_root(spec);
    let process = GuestProcess {
        kernel: spec.kernel,
        initramfs: &spec.agent.initramfs,
        memory_mib: spec.memory_mib,
        memory: memory.path(),
        cpu: spec.cpu,
        seed: spec.job.seed,
        queue_depth: spec.queue_depth,
        root: spec.root,
        shared: &shared,
        disks: devices.len(),
        control: &control_name,
    };
    let mut guest = Guest::start(&process, &directory)?;
    let watch = Watchdog::new(spec.limits, cancelled);
    let mut engine = Engine::new(calendar, devices, watch, on_event)?;
    let looped = engine.run(&mut guest, &mut || {
        directory.remove();
        memory.remove();
    });
    // The guest ends before its connections do: it panics when they break, and that panic
    // would hide the reason why the engine ended it.
    let exit = guest.finish(patience(&looped));
    let finished = engine.finish();
    let console = guest.console_tail();
    Ok(GuestRun {
        result: verdict(looped, &finished.events, &console, &exit),
        trace_sha256: finished.trace.hex(),
        requests: finished.trace.requests,
        events: finished.events,
        time: finished.time,
        console,
        disks: cards(finished.devices),
    })
}

fn listen_for(
    disks: Vec<Disk>,
    spec: &GuestSpec,
    directory: &GuestDirectory,
) -> Result<Vec<Device>, LabError> {
    let job = serde_json::to_vec(spec.job)
        .map_err(|e| LabError::protocol("control", format!("a job that is no JSON: {e}")))?;
    let backends = disks
        .into_iter()
        .map(|disk| Backend::Card(Box::new(disk)))
        .chain([Backend::Control(Control::new(&job))])
        .chain(spec.images.iter().cloned().map(Backend::Image))
        .chain(match spec.root {
            Root::Sealed(userland) => Some(Backend::Image(userland.image())),
            Root::Host(_) => None,
        });
    backends
        .enumerate()
        .map(|(index, backend)| {
            let listener = directory.listen(&format!("d{index}"))?;
            Ok(Device::new(index, Peer::Listening(listener), backend))
        })
        .collect()
}

/// Where a guest with so many `cards` finds the disk of the first of its images: after the cards
/// and the control disk.
pub fn image_device(cards: usize) -> String {
    format!("/dev/{}", disk_name(cards + 1))
}

/// The shared directories of a guest: those of its job, and the host's root if it sees that.
fn with_root(spec: &GuestSpec) -> Vec<SharedDirectory> {
    let root = matches!(spec.root, Root::Host(_)).then(|| SharedDirectory {
        name: HOST_ROOT,
        path: "/".into(),
    });
    spec.shared.iter().cloned().chain(root).collect()
}

fn cards(devices: Vec<Device>) -> Vec<Disk> {
    devices
        .into_iter()
        .filter_map(|device| match device.backend {
            Backend::Card(disk) => Some(*disk),
            Backend::Control(_) | Backend::Image(_) => None,
        })
        .collect()
}

/// How long a guest may take to end by itself, in units of 10 ms: a broken connection is the
/// first sign of its end, and its exit status then says more; a limit of ours waits for nothing.
fn patience(looped: &Result<(), LabError>) -> u32 {
    match looped {
        Ok(()) => 200,
        Err(LabError::Io { .. }) => 50,
        Err(_) => 0,
    }
}

/// The most telling account of how a life ended: the agent's own words before the
/// kernel's, those before the engine's.
fn verdict(
    looped: Result<(), LabError>,
    events: &[Stamped],
    console: &[String],
    exit: &str,
) -> Result<(), LabError> {
    for stamped in events.iter().rev() {
        match &stamped.event {
            Event::Done => return Ok(()),
            Event::Error {
                message,
                kernel_log,
            } => {
                // A program that cannot start for want of the host's memory or processes is no
                // fault of the filesystem.
                if let Some(remedy) = host_refusal(kernel_log.iter().chain(console)) {
                    return Err(LabError::HostRefused(remedy));
                }
                return Err(LabError::Agent {
                    message: message.clone(),
                    kernel_log: kernel_log.clone(),
                });
            }
            _ => {}
        }
    }
    // A guest whose engine gave up panics because of that: the engine's reason is the cause.
    let engine_gave_up = looped
        .as_ref()
        .is_err_and(|e| !matches!(e, LabError::GuestEnded { .. } | LabError::Io { .. }));
    if engine_gave_up {
        return looped;
    }
    if let Some(remedy) = host_refusal(console) {
        return Err(LabError::HostRefused(remedy));
    }
    if let Some(line) = console.iter().find(|line| line.contains("Kernel panic")) {
        return Err(LabError::Panic { line: line.clone() });
    }
    match looped {
        // Then the guest's end broke the connection, not the other way round.
        Err(LabError::Io { .. }) if exit != KILLED => {}
        other => other?,
    }
    Err(if exit.contains("exit status: 0") {
        LabError::NotDone
    } else {
        LabError::GuestEnded {
            how: exit.to_owned(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_for_want_of_mappings_blames_the_host() {
        let panic = "Kernel panic - not syncing: Segfault with no mm".to_owned();
        let of = |console: &[String]| {
            let ended = verdict(Ok(()), &[], console, "signal: 6 (SIGABRT)");
            ended.err().and_then(|error| error.blames_host())
        };
        assert_eq!(of(std::slice::from_ref(&panic)), None);
        // arch/um/kernel/tlb.c, report_enomem.
        let cause = "UML ran out of memory on the host side! This can happen due to a memory \
                     limitation or vm.max_map_count has been reached.";
        let told = of(&[cause.to_owned(), panic]).unwrap_or_default();
        assert!(told.contains("sysctl vm.max_map_count"), "{told}");
    }

    /// Sentences of guests under a seccomp filter, `pids.max` and `ulimit -v`.
    #[test]
    fn attack_what_the_host_refuses_blames_the_host() {
        let ended = |console: &str, agent: Option<&str>| {
            let event = agent.map(|message| Stamped {
                at: whichfs_units::Nanos(0),
                event: Event::Error {
                    message: message.to_owned(),
                    kernel_log: Vec::new(),
                },
                device: whichfs_trial::DeviceFigures::default(),
                others: Vec::new(),
            });
            let events: Vec<Stamped> = event.into_iter().collect();
            verdict(Ok(()), &events, &[console.to_owned()], "exit status: 1")
        };
        for (console, agent, remedy) in [
            (
                "check_ptrace : expected SIGSTOP, got status = 9",
                None,
                "SYS_PTRACE",
            ),
            (
                "start_ptraced_child : fork failed: Resource temporarily unavailable",
                None,
                "pids.max",
            ),
            (
                "start_userspace : clone failed, errno = 11",
                Some("run mke2fs in /: Cannot allocate memory (os error 12)"),
                "pids.max",
            ),
            (
                "setup_physmem - mapping 515899392 bytes of memory at 0x0 failed - errno = -12",
                None,
                "ulimit -v",
            ),
        ] {
            let error = ended(console, agent).expect_err("it ended early");
            let told = error.blames_host().unwrap_or_default();
            assert!(told.contains(remedy), "{console}: {told}");
        }
        let own = ended("EXT4-fs error", Some("mount: Cannot allocate memory"));
        assert_eq!(own.expect_err("it failed").blames_host(), None);
    }
}
