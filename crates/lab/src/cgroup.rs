//! What the control groups of this process leave for guests: a container or a unit of systemd may
//! have less memory, CPU time and processes than the machine.

use std::fs;
use std::path::{Path, PathBuf};

/// Limits of all control groups above this process, the tightest of each kind; `None`: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupLimits {
    /// Bytes of memory that are left; what the page cache can give back counts as left.
    pub memory: Option<u64>,
    /// Whole CPUs that the CPU time is enough for, at least 1.
    pub cpus: Option<usize>,
    /// Processes and threads that are left.
    pub processes: Option<u64>,
}

impl GroupLimits {
    /// Those of this process now.
    pub fn now() -> GroupLimits {
        let read = |name: &str| fs::read_to_string(format!("/proc/self/{name}"));
        let (groups, mounts) = (read("cgroup"), read("mountinfo"));
        GroupLimits::of(&groups.unwrap_or_default(), &mounts.unwrap_or_default())
    }

    /// Those of a process with these files `cgroup` and `mountinfo` of procfs.
    fn of(groups: &str, mounts: &str) -> GroupLimits {
        let mut all = GroupLimits::default();
        for directory in directories(groups, mounts) {
            all.memory = least(all.memory, memory(&directory));
            all.cpus = least(all.cpus, cpus(&directory));
            all.processes = least(all.processes, processes(&directory));
        }
        all
    }
}

fn least<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    one.into_iter().chain(other).min()
}

/// The directories of the control groups that a process is in, and of those above them.
fn directories(groups: &str, mounts: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for line in mounts.lines() {
        let Some((front, back)) = line.split_once(" - ") else {
            continue;
        };
        let mut front = front.split(' ').skip(3);
        let (root, place) = (front.next().unwrap_or("/"), front.next().unwrap_or("/"));
        let mut back = back.split(' ');
        let kind = back.next().unwrap_or_default();
        let options = back.nth(1).unwrap_or_default();
        let group = groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            let is_its = match kind {
                "cgroup2" => controllers.is_empty(),
                "cgroup" => {
                    !controllers.is_empty()
                        && controllers
                            .split(',')
                            .all(|one| options.split(',').any(|option| option == one))
                }
                _ => false,
            };
            is_its.then_some(path)
        });
        let Some(group) = group else { continue };
        // A container may see its own group alone, as the root of the mount.
        let below = Path::new(group).strip_prefix(root).unwrap_or(Path::new(""));
        let own = Path::new(place).join(below);
        let above = own.ancestors().take_while(|dir| dir.starts_with(place));
        found.extend(above.map(Path::to_path_buf));
    }
    found
}

fn number(directory: &Path, name: &str) -> Option<u64> {
    fs::read_to_string(directory.join(name))
        .ok()?
        .trim()
        .parse()
        .ok()
}

/// Bytes that are left of the limit of version 2 or 1 of control groups.
fn memory(directory: &Path) -> Option<u64> {
    let of = |limit, usage, cache: &str| {
        let (limit, used) = (number(directory, limit)?, number(directory, usage)?);
        let stat = fs::read_to_string(directory.join("memory.stat")).unwrap_or_default();
        let values = stat.lines().filter_map(|line| line.split_once(' '));
        let cached = values.filter(|(name, _)| *name == cache);
        let cached: u64 = cached
            .filter_map(|(_, value)| value.parse::<u64>().ok())
            .sum();
        Some(limit.saturating_sub(used.saturating_sub(cached)))
    };
    let newer = of("memory.max", "memory.current", "inactive_file");
    newer.or_else(|| {
        let (limit, usage) = ("memory.limit_in_bytes", "memory.usage_in_bytes");
        of(limit, usage, "total_inactive_file")
    })
}

fn cpus(directory: &Path) -> Option<usize> {
    let newer = || {
        let text = fs::read_to_string(directory.join("cpu.max")).ok()?;
        let (quota, period) = text.trim().split_once(' ')?;
        Some((quota.parse().ok()?, period.parse().ok()?))
    };
    let older = || {
        let quota = number(directory, "cpu.cfs_quota_us")?;
        Some((quota, number(directory, "cpu.cfs_period_us")?))
    };
    let (quota, period): (u64, u64) = newer().or_else(older)?;
    let whole = quota.checked_div(period)?;
    Some(usize::try_from(whole).unwrap_or(usize::MAX).max(1))
}

fn processes(directory: &Path) -> Option<u64> {
    let most = number(directory, "pids.max")?;
    Some(most.saturating_sub(number(directory, "pids.current")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(directory: &Path, files: &[(&str, &str)]) {
        fs::create_dir_all(directory).expect("a directory");
        for (name, text) in files {
            fs::write(directory.join(name), text).expect("a file");
        }
    }

    #[test]
    fn the_tightest_group_above_counts() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let place = root.path().display();
        let mounts =
            format!("30 23 0:26 / {place} rw - cgroup2 cgroup2 rw\n1 0 8:1 / / rw - ext4 x rw\n");
        write(
            &root.path().join("a"),
            &[
                ("memory.max", "1000\n"),
                ("memory.current", "700\n"),
                ("memory.stat", "anon 1\ninactive_file 200\n"),
                ("cpu.max", "250000 100000\n"),
                ("pids.max", "max\n"),
            ],
        );
        write(
            &root.path().join("a/b"),
            &[
                ("memory.max", "max\n"),
                ("memory.current", "700\n"),
                ("cpu.max", "max 100000\n"),
                ("pids.max", "40\n"),
                ("pids.current", "3\n"),
            ],
        );
        let found = GroupLimits::of("0::/a/b\n", &mounts);
        let expected = GroupLimits {
            memory: Some(500),
            cpus: Some(2),
            processes: Some(37),
        };
        assert_eq!(found, expected);
        assert_eq!(GroupLimits::of("0::/\n", &mounts), GroupLimits::default());
    }

    #[test]
    fn the_first_version_is_known_too() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let place = root.path().display();
        let mounts = format!("30 23 0:26 /docker/x {place} rw - cgroup cgroup rw,cpu,cpuacct\n");
        write(
            root.path(),
            &[
                ("cpu.cfs_quota_us", "50000"),
                ("cpu.cfs_period_us", "100000"),
            ],
        );
        let groups = "4:memory:/docker/x\n3:cpu,cpuacct:/docker/x\n";
        assert_eq!(
            GroupLimits::of(groups, &mounts).cpus,
            Some(1),
            "at least one"
        );
        write(root.path(), &[("cpu.cfs_quota_us", "-1")]);
        assert_eq!(GroupLimits::of(groups, &mounts).cpus, None);
    }
}
