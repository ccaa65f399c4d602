//! What a machine has done and how it is: the counters of its disk, CPU time, temperatures.

use crate::error::AgentError;
use crate::monitor::{Monitor, Seen};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use whichfs_trial::{CounterReading, DeviceFigures};
use whichfs_units::Nanos;

/// What `/sys` and `/proc` count sectors in.
const SECTOR: u64 = 512;
/// Flag of a kernel thread in `/proc/PID/stat` (`PF_KTHREAD` of linux/sched.h).
const KERNEL_THREAD: u64 = 0x0020_0000;

/// Reads the state of this machine and of one of its disks.
#[derive(Clone)]
pub struct Reader {
    proc: PathBuf,
    sys: PathBuf,
    disk: String,
    monitor: Option<Monitor>,
}

impl Reader {
    /// A reader for the disk that the kernel calls `disk` (`mmcblk0`).
    pub fn of(disk: &str) -> Reader {
        Reader {
            proc: "/proc".into(),
            sys: "/sys".into(),
            disk: disk.to_owned(),
            monitor: None,
        }
    }

    /// The same, which also tells what `monitor` has seen.
    #[must_use]
    pub fn with(self, monitor: Monitor) -> Reader {
        Reader {
            monitor: Some(monitor),
            ..self
        }
    }

    /// What has been done so far. What the kernel does not tell is left out, but not the disk's
    /// counters.
    ///
    /// # Errors
    /// The disk is gone, or its counters cannot be understood.
    pub fn read(&self) -> Result<CounterReading, AgentError> {
        let path = self.sys.join("block").join(&self.disk).join("stat");
        let text = fs::read_to_string(&path)
            .map_err(|error| AgentError::io("read", path.display(), &error))?;
        let device = counters(&text).ok_or_else(|| {
            AgentError::new(format!("{}: {text:?} are no counters", path.display()))
        })?;
        let (user, system) = own_time();
        let mut reading = CounterReading {
            device,
            user,
            system,
            threads: self.threads(),
            temperatures: self.temperatures(),
            throttled: self.throttled(),
            ..CounterReading::default()
        };
        if let Some(monitor) = &self.monitor {
            add(&mut reading, monitor.seen());
        }
        Ok(reading)
    }

    /// CPU time of all kernel threads, by name.
    fn threads(&self) -> BTreeMap<String, Nanos> {
        let mut found: BTreeMap<String, Nanos> = BTreeMap::new();
        for process in entries(&self.proc) {
            let text = |name: &str| fs::read_to_string(process.join(name)).ok();
            // A thread may end between the two looks.
            let Some((name, ticks)) = text("stat").as_deref().and_then(kernel_thread) else {
                continue;
            };
            let exact = text("schedstat").as_deref().and_then(run_time);
            let time = found.entry(name).or_default();
            time.0 += exact.unwrap_or(ticks).0;
        }
        found
    }

    fn temperatures(&self) -> BTreeMap<String, f64> {
        let mut found = BTreeMap::new();
        let device = self.sys.join("block").join(&self.disk).join("device");
        let disk = entries(&device.join("hwmon"))
            .into_iter()
            .chain(entries(&device))
            .find_map(|dir| degrees(&dir.join("temp1_input")));
        found.extend(disk.map(|value| ("disk".to_owned(), value)));
        let is_cpu = |zone: &Path| {
            let kind = fs::read_to_string(zone.join("type")).unwrap_or_default();
            ["cpu", "pkg", "soc"].iter().any(|part| kind.contains(part))
        };
        let zones = entries(&self.sys.join("class/thermal"));
        let mut zones = zones.into_iter().filter(|zone| is_cpu(zone));
        let cpu = zones.find_map(|zone| degrees(&zone.join("temp")));
        found.extend(cpu.map(|value| ("cpu".to_owned(), value)));
        found
    }

    /// Throttlings of all cores together.
    fn throttled(&self) -> Option<u64> {
        let cores = entries(&self.sys.join("devices/system/cpu"));
        let counts = cores
            .iter()
            .filter_map(|core| number(&core.join("thermal_throttle/core_throttle_count")));
        counts.reduce(|a, b| a + b)
    }
}

/// Adds what a monitor has seen.
fn add(reading: &mut CounterReading, seen: Seen) {
    reading.stopped = seen.stopped;
    reading.suspended = seen.suspended;
    match seen.sizes {
        Ok(sizes) => {
            reading.device.read_sizes = sizes.reads;
            reading.device.write_sizes = sizes.writes;
            reading.sizes_lost = sizes.lost;
        }
        Err(why) => reading.sizes_unknown = Some(why),
    }
}

/// The entries of a directory, in order; none if it is not there.
fn entries(dir: &Path) -> Vec<PathBuf> {
    let found = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = found.map(|entry| entry.path()).collect();
    found.sort();
    found
}

fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// A temperature that the kernel tells in thousandths of a degree.
fn degrees(path: &Path) -> Option<f64> {
    let text = fs::read_to_string(path).ok()?;
    let value: i64 = text.trim().parse().ok()?;
    Some(value as f64 / 1000.0)
}

/// The counters of a disk (Documentation/block/stat.rst): discards since 4.18, flushes since 5.5.
fn counters(text: &str) -> Option<DeviceFigures> {
    let all: Option<Vec<u64>> = text
        .split_whitespace()
        .map(|word| word.parse().ok())
        .collect();
    let all = all.filter(|all| all.len() >= 11)?;
    let of = |at: usize| all.get(at).copied().unwrap_or(0);
    Some(DeviceFigures {
        reads: of(0),
        read_bytes: of(2).saturating_mul(SECTOR),
        writes: of(4),
        write_bytes: of(6).saturating_mul(SECTOR),
        busy: milliseconds(of(9)),
        discards: of(11),
        discard_bytes: of(13).saturating_mul(SECTOR),
        flushes: of(15),
        ..DeviceFigures::default()
    })
}

fn milliseconds(number: u64) -> Nanos {
    Nanos(number.saturating_mul(1_000_000))
}

/// Name and CPU time of a kernel thread from its `/proc/PID/stat`; `None` for other processes.
fn kernel_thread(stat: &str) -> Option<(String, Nanos)> {
    let (open, close) = (stat.find('(')?, stat.rfind(')')?);
    let rest: Vec<&str> = stat.get(close + 1..)?.split_whitespace().collect();
    // proc(5) counts from 1 and begins with the process number and the name.
    let of = |field: usize| rest.get(field - 3)?.parse::<u64>().ok();
    if of(9)? & KERNEL_THREAD == 0 {
        return None;
    }
    // In user space's ticks of 10 ms on all architectures of Debian.
    let ticks = of(14)?.saturating_add(of(15)?);
    Some((
        first_part(stat.get(open + 1..close)?),
        milliseconds(ticks.saturating_mul(10)),
    ))
}

/// The part of a thread's name that says what it does: `jbd2` of `jbd2/sda1-8`, `loop` of `loop7`.
fn first_part(name: &str) -> String {
    match name.split_once('/') {
        Some((first, _)) => first.to_owned(),
        None => {
            let end = |c: char| c.is_ascii_digit() || ":-.".contains(c);
            name.trim_end_matches(end).to_owned()
        }
    }
}

/// Time on a CPU from `/proc/PID/schedstat`, in nanoseconds; its first word.
fn run_time(text: &str) -> Option<Nanos> {
    text.split_whitespace().next()?.parse().ok().map(Nanos)
}

/// CPU time in user space and in the kernel, of this process and of those that it waited for.
fn own_time() -> (Nanos, Nanos) {
    let both = [libc::RUSAGE_SELF, libc::RUSAGE_CHILDREN].map(|who| {
        // SAFETY: a rusage is numbers, for which all zeros is a value.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel fills the one that it is given; it fails for no legal `who`.
        unsafe { libc::getrusage(who, &raw mut usage) };
        (nanos(&usage.ru_utime), nanos(&usage.ru_stime))
    });
    (Nanos(both[0].0 + both[1].0), Nanos(both[0].1 + both[1].1))
}

fn nanos(time: &libc::timeval) -> u64 {
    // CPU times are never negative.
    (time.tv_sec as u64).saturating_mul(1_000_000_000) + (time.tv_usec as u64) * 1000
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_counters_of_old_and_new_kernels_are_read() {
        let old = "  10 1 80 4   20 2 4096 9   0 13 22\n";
        let found = counters(old).unwrap();
        assert_eq!((found.reads, found.read_bytes), (10, 80 * 512));
        assert_eq!((found.writes, found.write_bytes), (20, 4096 * 512));
        assert_eq!((found.busy, found.flushes), (Nanos(13_000_000), 0));
        let new = format!("{} 3 0 8 1 5 6", old.trim_end());
        let found = counters(&new).unwrap();
        assert_eq!(
            (found.discards, found.discard_bytes, found.flushes),
            (3, 8 * 512, 5)
        );
        for bad in ["", "1 2 3", "10 1 80 4 20 2 x 9 0 13 22"] {
            assert_eq!(counters(bad), None, "{bad}");
        }
    }

    #[test]
    fn kernel_threads_are_told_from_programs_and_grouped_by_what_they_do() {
        let stat = |name: &str, flags: u64| {
            format!("7 ({name}) S 2 0 0 0 -1 {flags} 0 0 0 0 3 4 0 0 20 0 1 0 9 0 0")
        };
        let of = |name: &str| kernel_thread(&stat(name, 0x0020_8040)).unwrap();
        assert_eq!(of("jbd2/sda1-8"), ("jbd2".into(), Nanos(70_000_000)));
        assert_eq!(of("loop7").0, "loop");
        assert_eq!(of("kdamond.0").0, "kdamond");
        assert_eq!(of("f2fs_gc-7:0").0, "f2fs_gc");
        assert_eq!(of("kworker/u8:2").0, "kworker");
        assert_eq!(of("a (b) c").0, "a (b) c");
        assert_eq!(kernel_thread(&stat("bash", 0x0040_0000)), None);
        assert_eq!(kernel_thread("nonsense"), None);
        assert_eq!(run_time("1234 5 6\n"), Some(Nanos(1234)));
    }

    #[test]
    fn what_the_system_does_not_tell_is_left_out() {
        let root = tempfile::tempdir().unwrap();
        let reader = Reader {
            proc: root.path().join("proc"),
            sys: root.path().join("sys"),
            disk: "sdz".into(),
            monitor: None,
        };
        let gone = reader.read().unwrap_err().to_string();
        assert!(gone.contains("block/sdz/stat"), "{gone}");
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("sys/block/sdz/stat", "1 1 1 1 1 1 1 1 1 1 1");
        let reading = reader.read().unwrap();
        assert!(reading.temperatures.is_empty() && reading.threads.is_empty());
        assert_eq!(reading.throttled, None);

        write("sys/block/sdz/device/hwmon/hwmon3/temp1_input", "41500\n");
        write("sys/class/thermal/thermal_zone0/type", "iwlwifi_1\n");
        write("sys/class/thermal/thermal_zone0/temp", "99000\n");
        write("sys/class/thermal/thermal_zone1/type", "cpu-thermal\n");
        write("sys/class/thermal/thermal_zone1/temp", "62000\n");
        write(
            "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count",
            "2\n",
        );
        write(
            "sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count",
            "3\n",
        );
        write(
            "proc/7/stat",
            "7 (loop7) S 2 0 0 0 -1 2097152 0 0 0 0 3 4 0",
        );
        write("proc/7/schedstat", "900 1 1\n");
        write(
            "proc/8/stat",
            "8 (loop8) S 2 0 0 0 -1 2097152 0 0 0 0 3 4 0",
        );
        let reading = reader.read().unwrap();
        let expected = [("cpu".to_owned(), 62.0), ("disk".to_owned(), 41.5)];
        assert_eq!(reading.temperatures, BTreeMap::from(expected));
        assert_eq!(reading.throttled, Some(5));
        assert_eq!(reading.threads["loop"], Nanos(70_000_900));
    }

    #[test]
    fn the_cpu_time_of_this_process_grows() {
        let (user, system) = own_time();
        let begun = std::time::Instant::now();
        let (mut later, mut sum) = ((user, system), 0_u64);
        while later == (user, system) && begun.elapsed().as_secs() < 10 {
            sum = std::hint::black_box((0..100_000_u64).fold(sum, u64::wrapping_add));
            later = own_time();
        }
        assert!(later.0 > user || later.1 > system);
    }
}
