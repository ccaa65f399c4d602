//! What a guest could leave behind: processes of its session, its directory.

use std::collections::BTreeSet;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A process as `/proc` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub pid: u32,
    pub parent: u32,
    pub session: u32,
    pub state: String,
    pub command_line: String,
}

/// All processes of the machine.
pub fn processes() -> Vec<Process> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            let line = fs::read(entry.path().join("cmdline")).ok()?;
            let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
            Some(Process {
                pid,
                parent: fields[1].parse().ok()?,
                session: fields[3].parse().ok()?,
                state: fields[0].to_owned(),
                command_line: String::from_utf8_lossy(&line).replace('\0', " "),
            })
        })
        .collect()
}

/// Sessions of the guests with seed `seed` that run now.
pub fn sessions_of(seed: u64) -> BTreeSet<u32> {
    let mark = format!("um_seed={seed} ");
    let guests = processes()
        .into_iter()
        .filter(|p| p.command_line.contains(&mark));
    guests.map(|p| p.session).collect()
}

/// Processes of `sessions` that are alive; zombies that wait for init are not.
pub fn alive(sessions: &BTreeSet<u32>) -> Vec<Process> {
    let all = processes().into_iter();
    all.filter(|p| sessions.contains(&p.session) && p.state != "Z")
        .collect()
}

/// Directories of guests whose engine is process `engine`.
pub fn directories(engine: u32) -> Vec<String> {
    let prefix = format!("whichfs-guest-{engine}-");
    let entries = fs::read_dir(std::env::temp_dir()).unwrap().flatten();
    entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.starts_with(&prefix))
        .collect()
}

/// Waits until `done`, at most `limit`; true if it came.
pub fn wait_until(limit: Duration, mut done: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while !done() {
        if start.elapsed() > limit {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    true
}

/// Looks out for the guest of a seed while it runs.
pub struct Lookout {
    stop: Arc<AtomicBool>,
    seen: Seen,
    thread: JoinHandle<()>,
}

/// Sessions that a [`Lookout`] has seen so far.
pub type Seen = Arc<Mutex<BTreeSet<u32>>>;

/// The session of this process: between fork and setsid a guest is still in it.
pub fn own_session() -> u32 {
    let own = rustix::process::getsid(None).unwrap();
    own.as_raw_nonzero().get() as u32
}

impl Lookout {
    /// Begins before the guest with seed `seed` starts.
    pub fn for_seed(seed: u64) -> Lookout {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let seen = Seen::default();
        let noted = Arc::clone(&seen);
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                noted.lock().unwrap().extend(sessions_of(seed));
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        Lookout { stop, seen, thread }
    }

    /// What it has seen, for another thread to wait for.
    pub fn seen(&self) -> Seen {
        Arc::clone(&self.seen)
    }

    /// The guest has ended: it was seen, none of its processes lives, its directory is gone.
    pub fn nothing_is_left(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
        let mut guests = std::mem::take(&mut *self.seen.lock().unwrap());
        guests.remove(&own_session());
        assert!(
            !guests.is_empty(),
            "the guest was never seen: the check would be empty"
        );
        assert_eq!(alive(&guests), [], "processes of the guest are left");
        assert_eq!(
            directories(std::process::id()),
            [""; 0],
            "directories of the guest are left"
        );
    }
}
