//! An attached card from its beginning to its end.

use crate::clean::{Leftover, clean};
use crate::clock::{Speed, monotonic, within};
use crate::control::{Control, Wishes};
use crate::error::AttachError;
use crate::lateness::Punctuality;
use crate::model::Model;
use crate::node::{Binding, Driver, Node};
use crate::options::AttachOptions;
use crate::path;
use crate::queue::{self, CardQueue};
use crate::runtime::{Owner, Record};
use crate::serving::Serving;
use crate::statistics::Statistics;
use crate::transport::{self, Placed};
use crate::way::Ways;
use parking_lot::{Mutex, MutexGuard};
use rustix::fs::fsync;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use whichfs_card::Contents;
use whichfs_device::{Roots, User, users_of_disk};
use whichfs_spill::SpillFile;

/// How long the kernel may take to write back and let go of a device.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long programs that only look at a device (udev, blkid) may keep it open.
const GLANCE: Duration = Duration::from_secs(2);

/// A card that is attached as a block device.
///
/// It ends by [`Attached::detach`]. If it is dropped instead, it is detached where nobody uses
/// the device; where somebody does, it is served until the process ends.
pub struct Attached {
    live: Option<Live>,
    cleaned: Vec<Leftover>,
}

/// What serves the device while it is attached.
struct Live {
    control: Control,
    node: Node,
    serving: Serving,
    facts: Arc<Facts>,
    wishes: Arc<Wishes>,
    record: Record,
}

/// What statistics are made of.
struct Facts {
    model: Arc<Model>,
    punctuality: Arc<Punctuality>,
    device: String,
    driver: Driver,
    card: String,
    capacity_bytes: u64,
    speed: Mutex<Speed>,
    largest_request_kib: u64,
    ways: Ways,
}

/// A card that could not be detached, and why. It is attached as before.
pub struct StillAttached {
    /// Still serves its device.
    pub attached: Attached,
    /// Why: most often [`AttachError::Busy`].
    pub error: AttachError,
}

impl fmt::Debug for StillAttached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StillAttached({})", self.error)
    }
}

/// Attaches a card, after removing what dead processes left.
///
/// # Errors
/// What is missing or wrong, with the remedy: root, ublk or FUSE and loop devices, room for the
/// contents, a setting that the kernel does not take.
pub fn attach(options: AttachOptions) -> Result<Attached, AttachError> {
    if !rustix::process::geteuid().is_root() {
        return Err(AttachError::NotRoot);
    }
    let driver = transport::driver(options.transport)?;
    let cleaned = clean()?;
    let contents = contents(&options)?;
    let capacity_bytes = options.profile.capacity_bytes();
    let model = Arc::new(Model::new(options.card(), contents, options.request_cost));
    let (punctuality, owner) = (Arc::default(), Owner::own());
    let placed = driver.place(&options, &model, &punctuality, &owner)?;
    let Placed {
        node,
        serving,
        made,
    } = placed;
    let record = Record {
        number: node.number,
        driver,
        pid: owner.pid,
        start_time: owner.start_time,
        namespace: owner.namespace,
        made,
        card: options.name.clone(),
        capacity_bytes,
    };
    let facts = Facts {
        model,
        punctuality,
        device: node.path().display().to_string(),
        driver,
        card: options.name.clone(),
        capacity_bytes,
        speed: Mutex::new(options.speed),
        largest_request_kib: 0,
        ways: Ways::default(),
    };
    match set_up(node, facts, &record, &options) {
        Ok((facts, control, wishes)) => Ok(Attached {
            live: Some(Live {
                control,
                node,
                serving,
                facts,
                wishes,
                record,
            }),
            cleaned,
        }),
        Err(error) => {
            if is_let_go(&record, &serving) || let_go(&record, &serving) {
                forget(&record, serving);
            }
            Err(error)
        }
    }
}

/// What is left to do once the device is there; its clock runs at the end.
fn set_up(
    node: Node,
    mut facts: Facts,
    record: &Record,
    options: &AttachOptions,
) -> Result<(Arc<Facts>, Control, Arc<Wishes>), AttachError> {
    record.write()?;
    facts.largest_request_kib = settle(node, options)?;
    facts.ways = path::measure(node, &facts.model, facts.largest_request_kib)
        .map_err(|error| AttachError::io("try out the new device", error))?;
    facts.model.take_off(facts.ways);
    facts.punctuality.forget(monotonic());
    let facts = Arc::new(facts);
    let wishes = Arc::new(Wishes::default());
    let told = Arc::clone(&facts);
    let control = Control::new(node, move || told.statistics(), Arc::clone(&wishes))
        .map_err(|error| AttachError::io("make the socket for statistics", error))?;
    facts.model.run_at(options.speed);
    Ok((facts, control, wishes))
}

/// Whether the kernel has let go of the card, by whoever's doing: then the device of that number
/// may be somebody else's by now.
fn is_let_go(record: &Record, serving: &Serving) -> bool {
    let binding = || record.node().binding(&record.owner());
    serving.is_over() || matches!(binding(), Binding::Others | Binding::Free)
}

/// Detaches the device from the card: with it the thread that serves it ends. Returns whether
/// the kernel lets go in time; of a loop device it does not while somebody has it open.
fn let_go(record: &Record, serving: &Serving) -> bool {
    let node = record.node();
    let _ = node.clear();
    within(PATIENCE, || !node.is_bound_to(&record.owner()))
        && within(PATIENCE, || serving.is_over())
}

/// Removes what is left of a device that the kernel has let go of.
fn forget(record: &Record, serving: Serving) {
    if within(PATIENCE, || serving.is_over()) {
        // How it ended does not matter any more.
        let _ = serving.join();
    }
    let node = record.node();
    if record.made {
        // The kernel refuses that for a device that is somebody else's by now.
        within(GLANCE, || node.remove().is_ok() || node.is_bound());
    }
    record.remove();
}

/// Bounded contents, if there is room for all of the card.
fn contents(options: &AttachOptions) -> Result<Contents, AttachError> {
    let (layout, directory) = (options.profile.layout(), &options.directory);
    let failed = |error| AttachError::io(format!("make a file in {}", directory.display()), error);
    let spill = SpillFile::new(directory).map_err(failed)?;
    // A card that lies about its size holds no more than it has.
    let memory = options.memory_bytes.min(layout.real_bytes);
    require_room(
        layout.real_bytes,
        memory,
        free_bytes(directory).map_err(failed)?,
        directory,
    )?;
    let contents = Contents::bounded(layout.capacity_bytes, memory, Box::new(spill));
    Ok(contents.laid_out(layout))
}

fn require_room(capacity: u64, memory: u64, disk: u64, at: &Path) -> Result<(), AttachError> {
    let free = memory.saturating_add(disk);
    if capacity <= free {
        return Ok(());
    }
    Err(AttachError::NoRoom {
        capacity,
        free,
        memory,
        directory: at.to_owned(),
    })
}

/// Gives the new device the looks of the card's; returns its largest request in KiB.
fn settle(node: Node, options: &AttachOptions) -> Result<u64, AttachError> {
    let card = CardQueue {
        cache: options.profile.has_cache(),
        discard: options.profile.discard_supported(),
        way_kib: node.driver.largest_kib(),
    };
    let name = node.to_string();
    let largest = queue::set(Path::new("/sys/block"), &name, &options.queue, card)?;
    let refused = node.driver.refuse_zeroing(node);
    refused.map_err(|e| AttachError::io("write zeros to the new device", e))?;
    Ok(largest)
}

impl Facts {
    fn speed(&self) -> MutexGuard<'_, Speed> {
        self.speed.lock()
    }

    fn statistics(&self) -> Statistics {
        let progress = self.model.progress();
        Statistics {
            device: self.device.clone(),
            driver: self.driver,
            card: self.card.clone(),
            pid: std::process::id(),
            capacity_bytes: self.capacity_bytes,
            speed: self.speed().to_string(),
            largest_request_kib: self.largest_request_kib,
            way_ns: self.ways.write.ns(4096),
            card_time: progress.card_time,
            figures: progress.stats,
            delivery: self.punctuality.figures(),
            failure: progress.failure,
        }
    }
}

impl Attached {
    /// Path of the block device.
    pub fn device(&self) -> PathBuf {
        self.live().node.path()
    }

    /// What dead processes had left, removed before this card was attached.
    pub fn cleaned(&self) -> &[Leftover] {
        &self.cleaned
    }

    /// What the card has done up to now.
    pub fn statistics(&self) -> Statistics {
        self.live().facts.statistics()
    }

    /// Lets the card's time run at another speed from now on: formatting at
    /// [`Speed::Max`], then measuring at [`Speed::REAL`].
    pub fn set_speed(&self, speed: Speed) {
        let facts = &self.live().facts;
        let mut current = facts.speed();
        facts.model.run_at(speed);
        *current = speed;
    }

    /// Waits until `interrupt` is set, somebody asks for the device to be detached
    /// ([`crate::request_detach`]), or it can no longer be served.
    pub fn wait(&self, interrupt: &AtomicBool) {
        let live = self.live();
        while !interrupt.load(Ordering::Acquire)
            && !live.wishes.detach.swap(false, Ordering::AcqRel)
            && !live.serving.is_over()
        {
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Runs `command` by the shell, as nbdkit's `--run` does, with the device's path in
    /// `$WHICHFS_DEVICE` and `$dev`, and returns its status. `output` is its standard output.
    /// When `interrupt` is set, it gets a moment to end (a terminal has told it too), then
    /// SIGTERM. It dies with this thread, before its device does.
    ///
    /// # Errors
    /// If the shell cannot be started.
    pub fn run(
        &self,
        command: &str,
        output: Stdio,
        interrupt: &AtomicBool,
    ) -> io::Result<ExitStatus> {
        let device = self.device();
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-c", command])
            .env("WHICHFS_DEVICE", &device)
            .env("dev", &device)
            .stdout(output);
        // SAFETY: prctl is async-signal-safe.
        unsafe {
            shell.pre_exec(|| {
                let signal = Some(rustix::process::Signal::TERM);
                Ok(rustix::process::set_parent_process_death_signal(signal)?)
            });
        }
        let child = shell.spawn()?;
        let command = &self.live().wishes.command;
        command.store(child.id(), Ordering::Release);
        let status = wait_for(child, interrupt);
        command.store(0, Ordering::Release);
        status
    }

    /// Detaches the card: writes back what the kernel still holds for the device, frees it and
    /// ends all threads. Returns the last figures.
    ///
    /// # Errors
    /// The card, attached as before, where somebody uses the device: the message names the
    /// mount, swap, device or process. Also where it cannot be written back.
    pub fn detach(mut self) -> Result<Statistics, Box<StillAttached>> {
        match self.live.take().map(Live::end) {
            Some(Ok(statistics)) => Ok(statistics),
            Some(Err((live, error))) => {
                self.live = Some(*live);
                let attached = self;
                Err(Box::new(StillAttached { attached, error }))
            }
            None => unreachable!("detached twice"),
        }
    }

    fn live(&self) -> &Live {
        match &self.live {
            Some(live) => live,
            None => unreachable!("gone only in detach and drop"),
        }
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        if let Some(Err((live, _))) = self.live.take().map(Live::end) {
            // Somebody uses it: its threads go on until the process ends.
            std::mem::forget(live);
        }
    }
}

impl Live {
    fn end(self) -> Result<Statistics, (Box<Live>, AttachError)> {
        if is_let_go(&self.record, &self.serving) {
            self.node.flush_again();
        } else if let Err(error) = self.detach() {
            return Err((Box::new(self), error));
        }
        let statistics = self.facts.statistics();
        drop(self.control);
        forget(&self.record, self.serving);
        Ok(statistics)
    }

    /// Writes back and frees the device, if nobody uses it.
    fn detach(&self) -> Result<(), AttachError> {
        let name = self.node.to_string();
        let users = || users_of_disk(&name, &Roots::default());
        let busy = |holders| {
            let device = self.node.path().display().to_string();
            Err(AttachError::Busy { device, holders })
        };
        let mut found = Vec::new();
        within(GLANCE, || {
            found = users();
            // Only programs go away by themselves.
            found
                .iter()
                .all(|user| !matches!(user, User::Process { .. }))
        });
        if !found.is_empty() {
            return busy(found);
        }
        let written = self.write_back();
        let alone = written.map_err(|error| AttachError::io("write back to the device", error))?;
        if let_go(&self.record, &self.serving) {
            return Ok(());
        }
        drop(alone);
        // Somebody opened it in between: the kernel waits for the last to close it.
        let mut found = users();
        if found.is_empty() {
            found.push(User::Claimed);
        }
        busy(found)
    }

    /// Has the kernel write what it holds for the device. A ublk device, which goes at once
    /// when it is told to, stays open to us alone until it does.
    fn write_back(&self) -> io::Result<Option<OwnedFd>> {
        let alone = self.node.driver == Driver::Ublk;
        let file = self.node.open(alone)?;
        fsync(&file)?;
        Ok(alone.then_some(file))
    }
}

/// Waits for `child`, which gets SIGTERM if it does not end after `interrupt` is set.
fn wait_for(mut child: Child, interrupt: &AtomicBool) -> io::Result<ExitStatus> {
    let mut asked = None;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if interrupt.load(Ordering::Acquire) {
            let since = asked.get_or_insert_with(Instant::now).elapsed();
            if since > GLANCE
                && let Some(pid) = rustix::process::Pid::from_raw(child.id() as i32)
            {
                // It is not waited for yet, so the number is its own.
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
                asked = Some(Instant::now());
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Bytes that files in `directory` may still take.
///
/// # Errors
/// If the filesystem does not say.
fn free_bytes(directory: &Path) -> std::io::Result<u64> {
    let state = rustix::fs::statvfs(directory)?;
    Ok(state.f_bavail.saturating_mul(state.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_that_does_not_fit_is_refused_with_the_remedy() {
        let at = Path::new("/var/tmp");
        assert!(require_room(100, 40, 60, at).is_ok());
        let error = require_room(101 << 20, 40 << 20, 60 << 20, at);
        let text = error.err().map(|e| e.to_string()).unwrap_or_default();
        for word in [
            "101",
            "40",
            "/var/tmp",
            "--size",
            "XDG_CACHE_HOME",
            "--memory",
        ] {
            assert!(text.contains(word), "{word} in {text}");
        }
    }
}
