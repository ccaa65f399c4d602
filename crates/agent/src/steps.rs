//! Does the steps of a job, in order, until one fails.

use crate::confine::Confinement;
use crate::deploy::deploy;
use crate::error::AgentError;
use crate::exec::{Manner, Time, operate};
use crate::exercise::exercise;
use crate::inspect::{Room, inspect};
use crate::program::{self, Program};
use crate::sink::Sink;
use crate::walk::list_tree;
use crate::work::Counter;
use crate::{forget, kernel_log, modules, mount, queue};
use rustix::fs::StatVfs;
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use whichfs_trial::{Counts, Event, Job, LatencyHistogram, RETURNED, Step, WorkloadSpec};
use whichfs_workload::{Listing, Op};

/// Where the agent finds things: this differs between the lab and a board.
#[derive(Debug)]
pub struct Context {
    /// Put before the paths of images and trees: where shared directories are in the lab,
    /// `/` on a board.
    pub host_root: PathBuf,
    /// What programs may do; none: all that the agent may.
    pub confinement: Option<Confinement>,
}

impl Context {
    /// A machine whose files are where their names say.
    pub fn board(confinement: Option<Confinement>) -> Context {
        Context {
            host_root: PathBuf::from("/"),
            confinement,
        }
    }

    /// Where the host's file `path` is.
    fn host(&self, path: &str) -> PathBuf {
        self.host_root.join(path.trim_start_matches('/'))
    }
}

/// A filesystem is called full when less than one in so many of its blocks is free.
const ROOM_PART: u64 = 100;

/// What a step with a phase did.
type Done = (Counts, LatencyHistogram);

/// Sets the queues and does all steps of `job`.
///
/// # Errors
/// The first step that fails; the caller reports it.
pub fn perform(job: &Job, context: &Context, sink: &mut dyn Sink) -> Result<(), AgentError> {
    for wanted in &job.queues {
        queue::set(Path::new("/sys/block"), wanted, sink)?;
    }
    let mut trees = Trees {
        context,
        listed: BTreeMap::new(),
    };
    let mut progress = Progress {
        promises: job.promises,
        manner: Manner {
            returns: job.returns,
            ignores_sync: job.ignores_sync,
        },
        operations: 0,
        log_from: kernel_log::now(),
        counter: job.counts_work.then(Counter::open).flatten(),
        room: None,
    };
    perform_steps(&job.steps, job.seed, &mut trees, &mut progress, sink)
}

/// What the steps of a job share, beside trees.
struct Progress {
    /// Whether promises are reported.
    promises: bool,
    /// How operations are done and told.
    manner: Manner,
    /// Operations done in all phases so far.
    operations: u64,
    /// Kernel messages from here on have not been reported.
    log_from: u64,
    /// What the kernel counts, if that is wanted and it does.
    counter: Option<Counter>,
    /// What inspections work in.
    room: Option<Room>,
}

fn perform_steps(
    steps: &[Step],
    seed: u64,
    trees: &mut Trees<'_>,
    progress: &mut Progress,
    sink: &mut dyn Sink,
) -> Result<(), AgentError> {
    for step in steps {
        perform_step(step, seed, trees, progress, sink)?;
    }
    Ok(())
}

/// Trees of the user that have been listed and trees that have been drawn, by what they were
/// asked for with.
struct Trees<'a> {
    context: &'a Context,
    listed: BTreeMap<String, Listing>,
}

fn perform_step(
    step: &Step,
    seed: u64,
    trees: &mut Trees<'_>,
    progress: &mut Progress,
    sink: &mut dyn Sink,
) -> Result<(), AgentError> {
    if let Step::Try { name, steps } = step {
        return match perform_steps(steps, seed, trees, progress, sink) {
            Ok(()) => Ok(()),
            Err(error) => sink.send(&Event::Failed {
                attempt: name.clone(),
                message: error.to_string(),
            }),
        };
    }
    // Listing and drawing trees is our own work, so it stands before the phase.
    let ops = match step {
        Step::Operate {
            phase, workload, ..
        } => Some(operations(phase, workload, seed, trees)?),
        _ => None,
    };
    // So is reading modules into memory.
    let images = match step {
        Step::LoadModules { modules, .. } => {
            modules::read(modules.iter().map(|file| trees.context.host(file)))?
        }
        _ => Vec::new(),
    };
    let prepared = Prepared { ops, images };
    let Some(phase) = phase_of(step) else {
        return act(step, prepared, trees.context, progress, sink).map(drop);
    };
    let name = || phase.to_owned();
    // Reading the counts takes time of the guest, so it stands outside of the phase.
    let before = progress.counter.as_ref().map(Counter::read).transpose()?;
    sink.send(&Event::PhaseBegin { phase: name() })?;
    let (counts, latency) = act(step, prepared, trees.context, progress, sink)?;
    sink.send(&Event::PhaseEnd {
        phase: name(),
        counts,
        latency,
    })?;
    match progress.counter.as_ref().zip(before) {
        Some((counter, before)) => counter.tell(phase, &before, sink),
        None => Ok(()),
    }
}

/// A stream of operations.
type Ops = Box<dyn Iterator<Item = Op>>;

/// What is made ready before a step, whose time it is none of.
struct Prepared {
    /// Operations, if the step performs such.
    ops: Option<Ops>,
    /// Modules, if it loads such.
    images: Vec<modules::Module>,
}

/// The operations of `phase`; a tree is listed or drawn when it is first needed.
fn operations(
    phase: &str,
    spec: &WorkloadSpec,
    seed: u64,
    trees: &mut Trees<'_>,
) -> Result<Ops, AgentError> {
    let refuse = |error: &dyn std::fmt::Display| AgentError::new(error.to_string());
    let workload = whichfs_workload::find(&spec.name).map_err(|error| refuse(&error))?;
    let key = format!("{spec:?} {seed}");
    if !trees.listed.contains_key(&key) {
        let listing = match &spec.tree {
            Some(tree) => Some(list_tree(&trees.context.host(tree))?),
            None => workload
                .generated_tree(spec, seed)
                .map_err(|error| refuse(&error))?,
        };
        trees
            .listed
            .extend(listing.map(|listing| (key.clone(), listing)));
    }
    workload
        .operations(phase, spec, trees.listed.get(&key), seed)
        .map_err(|error| refuse(&error))
}

/// Nanoseconds of the clock in force.
fn monotonic() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // The monotonic clock begins at 0 and does not go backwards: never negative.
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// The phase that `step` is, if it yields figures.
fn phase_of(step: &Step) -> Option<&str> {
    match step {
        Step::Run { phase, .. } | Step::Mount { phase, .. } | Step::Unmount { phase, .. } => {
            phase.as_deref()
        }
        Step::Deploy { phase, .. }
        | Step::LoadModules { phase, .. }
        | Step::Operate { phase, .. }
        | Step::Sync { phase, .. } => Some(phase),
        Step::DropCaches
        | Step::Forget { .. }
        | Step::Settle { .. }
        | Step::Space { .. }
        | Step::Try { .. }
        | Step::Inspect { .. }
        | Step::Exercise { .. }
        | Step::KernelLog
        | Step::ShowFile { .. } => None,
    }
}

fn act(
    step: &Step,
    prepared: Prepared,
    context: &Context,
    progress: &mut Progress,
    sink: &mut dyn Sink,
) -> Result<Done, AgentError> {
    let one = Counts {
        operations: 1,
        ..Counts::default()
    };
    let mut counts = one;
    match step {
        Step::Run { .. } => run(step, context, sink)?,
        Step::Mount {
            source,
            target,
            kernel_fs,
            options,
            ..
        } => {
            let confinement = context.confinement.as_ref();
            mount::mount(source, target, kernel_fs, options, confinement)?;
        }
        Step::Unmount { target, .. } => {
            mount::unmount(target)?;
            progress.promise("umount", "", 0, sink)?;
        }
        Step::DropCaches => forget::drop_caches()?,
        Step::Forget { dir } => forget::forget(dir)?,
        Step::Sync { dir, .. } => forget::write_back(dir)?,
        Step::Settle { milliseconds } => std::thread::sleep(Duration::from_millis(*milliseconds)),
        Step::Deploy { image, device, .. } => {
            counts = deploy(Path::new(image), Path::new(device))?;
        }
        Step::LoadModules { .. } => counts = modules::load(&prepared.images)?,
        Step::Operate { workload, dir, .. } => {
            let ops = prepared.ops.into_iter().flatten();
            let tree = workload.tree.as_ref().map(|tree| context.host(tree));
            let time = Time {
                now: &monotonic,
                sleep: &|nanoseconds| std::thread::sleep(Duration::from_nanos(nanoseconds)),
            };
            let mut promised =
                |call: &str, path: &str, done| progress.promise(call, path, done, sink);
            let _user = context.confinement.as_ref().and_then(Confinement::as_user);
            let done = operate(
                ops,
                Path::new(dir),
                tree.as_deref(),
                &time,
                progress.manner,
                &mut promised,
            )?;
            progress.operations += done.0.operations;
            return Ok(done);
        }
        Step::Try { .. } => unreachable!("its steps are performed one by one"),
        Step::Inspect { dir, sectors } => {
            sink.send(&Event::Untimed { begins: true })?;
            let room = progress.room.get_or_insert_default();
            inspect(Path::new(dir), sectors, room, sink)?;
            sink.send(&Event::Untimed { begins: false })?;
        }
        Step::Exercise { dir } => exercise(Path::new(dir))?,
        Step::KernelLog => {
            let (times_us, lines) = kernel_log::since(&mut progress.log_from);
            sink.send(&Event::KernelLog { lines, times_us })?;
        }
        Step::Space { dir, device } => sink.send(&space(dir, device)?)?,
        Step::ShowFile { path } => sink.send(&show(path)?)?,
    }
    Ok((counts, LatencyHistogram::default()))
}

impl Progress {
    /// Reports that `call` made durable what `done` operations of this phase did, if asked to, or
    /// that they returned.
    fn promise(
        &self,
        call: &str,
        path: &str,
        done: u64,
        sink: &mut dyn Sink,
    ) -> Result<(), AgentError> {
        if call != RETURNED && !self.promises {
            return Ok(());
        }
        sink.send(&Event::Promise {
            call: call.to_owned(),
            path: path.to_owned(),
            operations: self.operations + done,
        })
    }
}

/// Runs the program of a [`Step::Run`].
fn run(step: &Step, context: &Context, sink: &mut dyn Sink) -> Result<(), AgentError> {
    let Step::Run {
        argv,
        env,
        dir,
        stdin,
        show,
        any_status,
        keeps_rights,
        ..
    } = step
    else {
        unreachable!("only called for run steps");
    };
    let program = Program {
        argv,
        env,
        dir,
        stdin,
        show: *show,
        confinement: context.confinement.as_ref().filter(|_| !keeps_rights),
    };
    let ended = program::run(&program, sink)?;
    if std::process::id() == 1 {
        program::reap_orphans();
    }
    if *any_status {
        return sink.send(&Event::Metric {
            name: "exit_status".to_owned(),
            value: f64::from(ended.status),
            unit: "1".to_owned(),
        });
    }
    if ended.status == 0 {
        return Ok(());
    }
    let said = if ended.tail.is_empty() {
        String::new()
    } else {
        format!(": {}", ended.tail)
    };
    Err(AgentError::new(format!(
        "{} ended with status {}{said}{}",
        shown(argv),
        ended.status,
        full(dir)
    )))
}

/// A command in a line: a script among its words is left out.
fn shown(argv: &[String]) -> String {
    let word = |word: &String| match word.contains('\n') {
        true => "'…'".to_owned(),
        false => word.clone(),
    };
    argv.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// What to say of the filesystem of `dir` if a program that failed there may have lacked room.
fn full(dir: &str) -> String {
    match rustix::fs::statvfs(dir) {
        // The root is the host's.
        Ok(stat) if dir != "/" => lack(&stat),
        _ => String::new(),
    }
}

/// That a filesystem with these figures is full; nothing if it is not.
fn lack(stat: &StatVfs) -> String {
    // Some keep a rest that a program cannot have.
    let room = stat.f_blocks == 0 || stat.f_bavail > stat.f_blocks / ROOM_PART;
    let names = stat.f_files == 0 || stat.f_favail > 0;
    if room && names {
        return String::new();
    }
    format!(
        "; the filesystem is full ({} of {} B and {} of {} inodes are free): take a larger \
         card, or write less",
        stat.f_bavail * stat.f_frsize,
        stat.f_blocks * stat.f_frsize,
        stat.f_favail,
        stat.f_files
    )
}

/// Bytes of `device` that the filesystem mounted on `dir` no longer has free ([`Step::Space`]).
fn space(dir: &str, device: &str) -> Result<Event, AgentError> {
    let stat =
        rustix::fs::statvfs(dir).map_err(|errno| AgentError::system("statfs", dir, errno))?;
    let free = stat.f_bfree * stat.f_frsize;
    let whole = match free {
        0 => stat.f_blocks * stat.f_frsize,
        _ => size_of(device)?,
    };
    Ok(Event::Metric {
        name: "space".to_owned(),
        value: whole.saturating_sub(free) as f64,
        unit: "B".to_owned(),
    })
}

/// Bytes of a block device or file.
fn size_of(device: &str) -> Result<u64, AgentError> {
    let mut file =
        fs::File::open(device).map_err(|error| AgentError::io("open", device, &error))?;
    let end = std::io::Seek::seek(&mut file, std::io::SeekFrom::End(0));
    end.map_err(|error| AgentError::io("find the end of", device, &error))
}

/// The trimmed content of `path`.
fn show(path: &str) -> Result<Event, AgentError> {
    let bytes = fs::read(path).map_err(|error| AgentError::io("read", path, &error))?;
    Ok(Event::Output {
        stream: path.to_owned(),
        text: String::from_utf8_lossy(&bytes).trim().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::collections::BTreeMap;

    fn run_step(script: &str, phase: Option<&str>, any_status: bool) -> Step {
        Step::Run {
            phase: phase.map(str::to_owned),
            argv: ["/bin/sh", "-c", script].map(str::to_owned).to_vec(),
            env: BTreeMap::new(),
            dir: "/".into(),
            stdin: String::new(),
            show: false,
            any_status,
            keeps_rights: false,
        }
    }

    #[test]
    fn a_script_is_no_line_of_a_message() {
        let argv = ["sh", "-c", "a\nb", "sh", "4"].map(str::to_owned);
        assert_eq!(shown(&argv), "sh -c '…' sh 4");
    }

    fn do_steps(steps: Vec<Step>) -> (Result<(), AgentError>, Vec<Event>) {
        let job = Job {
            seed: 1,
            queues: Vec::new(),
            steps,
            promises: false,
            returns: false,
            ignores_sync: false,
            counts_work: true,
            acknowledged: false,
        };
        let mut events = Vec::new();
        (perform(&job, &Context::board(None), &mut events), events)
    }

    #[test]
    fn a_phase_is_bracketed() {
        let (result, events) = do_steps(vec![run_step("true", Some("mkfs"), false)]);
        result.unwrap();
        assert!(matches!(&events[0], Event::PhaseBegin { phase } if phase == "mkfs"));
        assert!(matches!(&events[1], Event::PhaseEnd { phase, .. } if phase == "mkfs"));
        assert_eq!(
            events.len(),
            2,
            "other kernels than the lab's count nothing"
        );
    }

    #[test]
    fn the_first_failure_ends_the_job() {
        let steps = vec![
            run_step("echo broken >&2; exit 4", Some("mkfs"), false),
            run_step("true", None, false),
        ];
        let (result, events) = do_steps(steps);
        let text = result.unwrap_err().to_string();
        assert!(text.contains("status 4: broken"), "{text}");
        assert_eq!(
            events.len(),
            1,
            "no phase_end for a failed phase: {events:?}"
        );
    }

    #[test]
    fn a_lack_of_blocks_or_inodes_is_said() {
        let mut stat = rustix::fs::statvfs("/proc").unwrap();
        assert_eq!(lack(&stat), "", "it has no blocks of its own");
        stat.f_frsize = 4096;
        let mut said = |blocks, bavail, files, favail| {
            (stat.f_blocks, stat.f_bavail) = (blocks, bavail);
            (stat.f_files, stat.f_favail) = (files, favail);
            lack(&stat)
        };
        assert_eq!(said(1000, 11, 100, 1), "");
        assert_eq!(said(1000, 500, 0, 0), "", "FAT counts no inodes");
        assert!(said(1000, 10, 0, 0).contains("40960 of 4096000 B"));
        assert!(said(1000, 500, 100, 0).contains("0 of 100 inodes"));
    }

    #[test]
    fn any_status_is_reported_as_a_metric() {
        let (result, events) = do_steps(vec![run_step("exit 5", None, true)]);
        result.unwrap();
        let expected = Event::Metric {
            name: "exit_status".into(),
            value: 5.0,
            unit: "1".into(),
        };
        assert_eq!(events, [expected]);
    }

    #[test]
    fn files_and_space_are_reported() {
        // A device far larger than what the root filesystem has free.
        let dir = tempfile::tempdir().unwrap();
        let device = dir.path().join("device");
        fs::File::create(&device).unwrap().set_len(1 << 43).unwrap();
        let (result, events) = do_steps(vec![
            Step::ShowFile {
                path: "/proc/sys/kernel/ostype".into(),
            },
            Step::Space {
                dir: "/".into(),
                device: device.to_string_lossy().into_owned(),
            },
        ]);
        result.unwrap();
        assert!(matches!(&events[0], Event::Output { text, .. } if text == "Linux"));
        assert!(matches!(&events[1], Event::Metric { value, .. } if *value > 0.0));
    }

    #[test]
    fn paths_of_the_host_are_below_its_root() {
        let lab = Context {
            host_root: PathBuf::from("/mnt/.host"),
            confinement: None,
        };
        assert_eq!(lab.host("/tmp/image"), Path::new("/mnt/.host/tmp/image"));
        assert_eq!(Context::board(None).host("/a"), Path::new("/a"));
    }
}
