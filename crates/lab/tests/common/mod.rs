//! What the tests that boot guests share: a guest from few words, and proof that nothing
//! of it is left.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

pub mod program;
pub mod traces;

pub use whichfs_testkit::skip;

use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use whichfs_card::{Card, Contents, Profile, builtin};
use whichfs_lab::{
    Agent, BlockGeometry, CpuPrices, Disk, GuestLimits, GuestRun, GuestSpec, HostView, Kernel,
    Root, Stamped, Userland, run,
};
use whichfs_trial::{BlockQueue, Event, Job, Step};
use whichfs_units::Nanos;

/// Where the partition begins on each test card.
pub const OFFSET: u64 = 4 << 20;

/// The variable's path, or the reason why the test does nothing.
fn named(variable: &str) -> Option<PathBuf> {
    let path = std::env::var_os(variable).map(PathBuf::from);
    if path.is_none() {
        skip::skip(format!("{variable} is not set (make test sets it)"));
    }
    path
}

/// The lab kernel, unless the machine has none.
pub fn kernel() -> Option<Kernel> {
    Some(Kernel::open(&named("WHICHFS_KERNEL")?).unwrap())
}

/// The sealed userland, unless the machine has none.
pub fn userland() -> Option<Userland> {
    Some(Userland::open(&named("WHICHFS_USERLAND")?).unwrap())
}

/// The static agent, unless the machine has none.
pub fn agent() -> Option<Agent> {
    Some(Agent::open(&named("WHICHFS_AGENT")?).unwrap())
}

/// Guests of one test binary run one at a time: processes and directories are then the
/// running test's own.
pub fn one_at_a_time() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock()
}

/// The shipped profile called `name`.
pub fn profile(name: &str) -> Profile {
    let (name, text) = builtin().iter().find(|(n, _)| *n == name).unwrap();
    Profile::parse(name, text).unwrap()
}

/// A fresh card of profile `name` as a disk of `bytes` bytes.
pub fn disk(name: &str, bytes: u64) -> Disk {
    let profile = profile(name);
    let geometry = BlockGeometry {
        bytes,
        segments_max: 128,
        write_cache: false,
        discard_bytes: None,
    };
    let contents = Contents::new(profile.capacity_bytes());
    let cost = Nanos::from_micros(50);
    Disk::new(Card::fresh(&profile), contents, OFFSET, geometry, cost)
}

/// A partition of 1 GiB on the default card.
pub fn sd() -> Disk {
    disk("a1-32gb", 1 << 30)
}

/// Prices of a board on which an instruction takes so many picoseconds; nothing of it is free.
pub fn prices(instruction: u64) -> CpuPrices {
    match instruction {
        0 => CpuPrices::default(),
        instruction => CpuPrices {
            instruction,
            loop_instruction: instruction / 4,
            compression_branch: instruction * 4,
            call: instruction,
            atomic: instruction * 3,
            copy_byte: instruction / 3,
            fill_byte: instruction / 5,
            checksum_byte: instruction,
            syscall: instruction * 100,
            fault: instruction * 200,
            switch: instruction * 400,
            interrupt: instruction * 400,
        },
    }
}

/// The queue of an SD card.
pub fn queue(disk: &str) -> BlockQueue {
    BlockQueue {
        disk: disk.into(),
        rotational: false,
        scheduler: "mq-deadline".into(),
        max_request_kib: 512,
        requests: 64,
        read_ahead_kib: 128,
    }
}

/// A host program with its arguments; its output becomes events.
pub fn command(argv: &[&str]) -> Step {
    Step::Run {
        phase: None,
        argv: argv.iter().map(|s| (*s).to_owned()).collect(),
        env: path_only(),
        dir: "/".into(),
        stdin: String::new(),
        show: true,
        any_status: false,
        keeps_rights: false,
    }
}

/// A line for the host's shell.
pub fn shell(line: &str) -> Step {
    command(&["/bin/sh", "-c", line])
}

/// The environment of every program in these guests.
pub fn path_only() -> BTreeMap<String, String> {
    BTreeMap::from([("PATH".into(), "/usr/sbin:/usr/bin:/sbin:/bin".into())])
}

/// Mounts `/dev/vda` at `/mnt/test`.
pub fn mount(kernel_fs: &str, options: &str) -> Step {
    Step::Mount {
        phase: Some("mount".into()),
        source: "/dev/vda".into(),
        target: "/mnt/test".into(),
        kernel_fs: kernel_fs.into(),
        options: options.into(),
    }
}

/// Unmounts `/mnt/test`.
pub fn unmount() -> Step {
    Step::Unmount {
        phase: None,
        target: "/mnt/test".into(),
    }
}

/// Memory of the guests.
const MEMORY_MIB: u64 = 256;

/// Everything about a guest of a test; its seed marks its processes.
pub struct Trial {
    pub seed: u64,
    pub agent: Agent,
    pub kernel: Kernel,
    pub steps: Vec<Step>,
    pub disks: Vec<Disk>,
    pub queues: Vec<BlockQueue>,
    pub limits: GuestLimits,
    pub cpu: CpuPrices,
    pub queue_depth: Option<u32>,
    pub core: Option<usize>,
    pub counts_work: bool,
    /// Its root; the host's files if it is none.
    pub userland: Option<Userland>,
}

impl Trial {
    /// A guest with the real agent on one SD card; `None` if kernel or agent is missing.
    pub fn new(seed: u64, steps: Vec<Step>) -> Option<Trial> {
        Some(Trial::with_agent(seed, agent()?, kernel()?, steps))
    }

    /// A guest whose first program is `agent`.
    pub fn with_agent(seed: u64, agent: Agent, kernel: Kernel, steps: Vec<Step>) -> Trial {
        Trial {
            seed,
            agent,
            kernel,
            steps,
            disks: vec![sd()],
            queues: vec![queue("vda")],
            limits: GuestLimits {
                wall: Duration::from_secs(20),
                ..GuestLimits::default()
            },
            cpu: CpuPrices::default(),
            queue_depth: None,
            core: Some(whichfs_lab::available_cores()[0]),
            counts_work: false,
            userland: None,
        }
    }

    /// Runs it to its end.
    pub fn run(self) -> GuestRun {
        self.run_with(&AtomicBool::new(false), &mut |_| {})
    }

    /// Runs it; `on_event` hears each event, `cancelled` stops it.
    pub fn run_with(self, cancelled: &AtomicBool, on_event: &mut dyn FnMut(&Stamped)) -> GuestRun {
        let job = Job {
            seed: self.seed,
            queues: self.queues,
            steps: self.steps,
            promises: false,
            returns: false,
            ignores_sync: false,
            counts_work: self.counts_work,
            acknowledged: false,
        };
        let view = HostView::default();
        let spec = GuestSpec {
            kernel: &self.kernel,
            agent: &self.agent,
            memory_mib: MEMORY_MIB,
            memory: &whichfs_lab::memory_directory(MEMORY_MIB).unwrap(),
            cpu: self.cpu,
            queue_depth: self.queue_depth,
            job: &job,
            root: self
                .userland
                .as_ref()
                .map_or(Root::Host(&view), Root::Sealed),
            images: &[],
            shared: &[],
            core: self.core,
            limits: self.limits,
        };
        run(&spec, self.disks, cancelled, on_event).unwrap()
    }
}

/// What the programs of a guest printed and the files it showed, in order.
pub fn text_of(life: &GuestRun) -> String {
    let outputs = life
        .events
        .iter()
        .filter_map(|stamped| match &stamped.event {
            Event::Output { text, .. } => Some(text.as_str()),
            _ => None,
        });
    outputs.collect()
}

/// The file `path` that a guest showed.
pub fn shown<'a>(life: &'a GuestRun, path: &str) -> &'a str {
    let mut texts = life
        .events
        .iter()
        .filter_map(|stamped| match &stamped.event {
            Event::Output { stream, text } if stream == path => Some(text.as_str()),
            _ => None,
        });
    texts
        .next_back()
        .unwrap_or_else(|| panic!("{path} was not shown"))
}

/// Everything that two equal trials must share, as text: status, hash, events with stamps.
pub fn fingerprint(life: &GuestRun) -> String {
    let status = match &life.result {
        Ok(()) => "done".to_owned(),
        Err(error) => error.to_string(),
    };
    let mut text = format!(
        "{status}\n{} {} {}\n",
        life.trace_sha256, life.requests, life.time.0
    );
    for stamped in &life.events {
        text.push_str(&format!("{stamped:?}\n"));
    }
    text
}
