//! The host's own kernel: a loop device over memory, CPU time of the process and, by sampling,
//! of the kernel's threads.

use crate::work::Phase;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Samples a second on each CPU.
const HERTZ: u64 = 4999;
/// Size of the device.
const DEVICE_BYTES: u64 = 3 << 30;

/// What a filesystem is on the host.
pub struct Mounted {
    mount: PathBuf,
    image: PathBuf,
}

/// Makes and mounts a filesystem, or says why not.
pub fn mount(mkfs: &str, kind: &str, options: &str) -> Result<Mounted, String> {
    let known = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    if !known.lines().any(|line| line.trim() == kind) {
        return Err(format!("the host's kernel has no {kind}"));
    }
    let own = format!("whichfs-virtual-cpu-{}", std::process::id());
    let image = Path::new("/dev/shm").join(&own);
    let mount = std::env::temp_dir().join(&own);
    std::fs::create_dir_all(&mount).map_err(|e| format!("{}: {e}", mount.display()))?;
    let file = std::fs::File::create(&image).map_err(|e| format!("{}: {e}", image.display()))?;
    file.set_len(DEVICE_BYTES)
        .map_err(|e| format!("{}: {e}", image.display()))?;
    let mounted = Mounted { mount, image };
    let image = mounted.image.to_string_lossy();
    let mkfs = mkfs.replace("{device}", &image);
    command(&mkfs.split(' ').collect::<Vec<_>>())?;
    let target = mounted.mount.to_string_lossy();
    let options = format!("loop,{options}");
    command(&[
        "mount",
        "-t",
        kind,
        "-o",
        options.trim_end_matches(','),
        &image,
        &target,
    ])?;
    Ok(mounted)
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.mount).output();
        let _ = std::fs::remove_dir(&self.mount);
        let _ = std::fs::remove_file(&self.image);
    }
}

fn command(argv: &[&str]) -> Result<(), String> {
    let output = Command::new(argv[0])
        .args(&argv[1..])
        .output()
        .map_err(|e| format!("{}: {e}", argv[0]))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!(
            "{argv:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        )),
    }
}

/// CPU time of the phases of `case`, in ns: of the process and of the threads of the kernel.
pub fn measure(place: &Mounted, case: &str) -> Result<Vec<(Phase, u64)>, String> {
    let samples = place.image.with_extension("perf");
    let mut perf = Command::new("perf")
        .args([
            "record",
            "-q",
            "-a",
            "-e",
            "cpu-clock:k",
            "-k",
            "mono",
            "-g",
            "-F",
        ])
        .arg(HERTZ.to_string())
        .arg("-o")
        .arg(&samples)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| format!("perf: {e}"))?;
    std::thread::sleep(Duration::from_millis(500));
    let worker = std::env::current_exe().map_err(|e| e.to_string())?;
    let output = Command::new(worker)
        .args(["work", case])
        .env(crate::work::OUTSIDE, "1")
        .current_dir(&place.mount)
        .output()
        .map_err(|e| e.to_string());
    if let Ok(pid) = i32::try_from(perf.id()) {
        // SAFETY: a signal to our own child.
        unsafe { libc::kill(pid, libc::SIGINT) };
    }
    let _ = perf.wait();
    let output = output?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let phases: Vec<Phase> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let threads = threads(&samples)?;
    let _ = std::fs::remove_file(&samples);
    Ok(phases
        .into_iter()
        .map(|phase| {
            let (begin, end) = phase.window;
            let own = threads
                .iter()
                .filter(|at| (begin..end).contains(*at))
                .count() as u64;
            (phase, own * (1_000_000_000 / HERTZ))
        })
        .collect())
}

/// Times of the samples in threads of the kernel that work for a filesystem.
fn threads(samples: &Path) -> Result<Vec<u64>, String> {
    let mut script = Command::new("perf")
        .args(["script", "-F", "comm,tid,time,ip,sym", "--ns", "-i"])
        .arg(samples)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| format!("perf: {e}"))?;
    let out = script.stdout.take().ok_or("perf script has no output")?;
    let mut found = Vec::new();
    let mut stack: Vec<String> = Vec::new();
    let mut head: Option<(String, u64)> = None;
    for line in BufReader::new(out)
        .lines()
        .map_while(Result::ok)
        .chain([String::new()])
    {
        if line.is_empty() {
            if let Some((comm, at)) = head.take()
                && is_thread(&comm)
                && works_for_a_filesystem(&stack)
            {
                found.push(at);
            }
            stack.clear();
        } else if head.is_none() {
            head = header(&line);
        } else if let Some((_, symbol)) = line.trim().split_once(' ') {
            stack.push(symbol.trim().to_owned());
        }
    }
    let _ = script.wait();
    Ok(found)
}

/// Name of the thread and time in ns, from `NAME TID SECONDS.NANOSECONDS:`.
fn header(line: &str) -> Option<(String, u64)> {
    let (rest, time) = line.trim().trim_end_matches(':').rsplit_once(' ')?;
    let (seconds, nanos) = time.split_once('.')?;
    let at = seconds.parse::<u64>().ok()? * 1_000_000_000 + nanos.parse::<u64>().ok()?;
    let (comm, _) = rest.trim().rsplit_once(' ')?;
    Some((comm.trim().to_owned(), at))
}

fn is_thread(comm: &str) -> bool {
    ["kworker/", "jbd2/", "btrfs-", "xfs", "ksoftirqd"]
        .iter()
        .any(|name| comm.starts_with(name))
}

/// The loop device's own work is the storage; what it calls when a request ends is not.
fn works_for_a_filesystem(stack: &[String]) -> bool {
    let has = |names: &[&str]| {
        stack
            .iter()
            .any(|symbol| names.iter().any(|name| symbol.starts_with(name)))
    };
    if has(&["loop_", "lo_"]) && !has(&["bio_endio", "blk_update_request"]) {
        return false;
    }
    has(&[
        "ext4_",
        "jbd2_",
        "kjournald2",
        "btrfs_",
        "xfs",
        "xlog",
        "wb_",
        "bio_endio",
        "squashfs",
        "erofs",
        "z_erofs",
        "end_bbio",
        "btree_",
    ])
}
