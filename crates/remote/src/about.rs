//! What a device and the machine around it are, as far as that decides results.

use crate::tools::{cpu_features_sha256, sha256};
use serde::{Deserialize, Serialize};
use std::fs::read_to_string;
use whichfs_device::TargetDisk;
use whichfs_units::MIB;

/// A disk whose data may be lost, as its machine tells it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteDisk {
    /// As it was named.
    pub path: String,
    /// Kernel's name of it.
    pub name: String,
    /// What it is called by: CID, serial, or the file behind a loop device.
    pub id: String,
    /// What tells it from others: its register or serial number, and its size.
    pub identity: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its allocation unit as the kernel knows it, in bytes.
    pub erase_bytes: Option<u64>,
    /// Whether discard reaches it.
    pub discard: bool,
    /// Its logical sector in bytes.
    pub sector_bytes: u64,
}

impl RemoteDisk {
    /// What `disk` is.
    pub fn of(disk: &TargetDisk) -> RemoteDisk {
        RemoteDisk {
            path: disk.target.path.display().to_string(),
            name: disk.name().to_owned(),
            id: disk.id.clone(),
            identity: disk.identity().to_owned(),
            bytes: disk.bytes,
            erase_bytes: disk.erase_bytes,
            discard: disk.discard,
            sector_bytes: disk.sector_bytes,
        }
    }
}

/// A computer that runs trials, as far as it decides their results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Its host name.
    pub name: String,
    /// SHA-256 of what its processors say they are.
    pub sha256: String,
    /// Release of its kernel.
    pub kernel: String,
    /// SHA-256 of the kernel's version line, which names its build.
    pub kernel_sha256: String,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// SHA-256 of the processor's features.
    pub cpu_features_sha256: String,
}

impl Machine {
    /// The machine that this program runs on.
    pub fn this() -> Machine {
        let read = |path: &str| read_to_string(path).unwrap_or_default();
        let system = rustix::system::uname();
        Machine {
            name: system.nodename().to_string_lossy().into_owned(),
            sha256: sha256(processors(&read("/proc/cpuinfo")).as_bytes()),
            kernel: system.release().to_string_lossy().into_owned(),
            kernel_sha256: sha256(read("/proc/version").as_bytes()),
            memory_mib: total_kib(&read("/proc/meminfo")) * 1024 / MIB,
            cpu_features_sha256: cpu_features_sha256(),
        }
    }
}

/// What processors are, without how fast they are just now.
fn processors(cpuinfo: &str) -> String {
    let names = [
        "processor",
        "model name",
        "Hardware",
        "Model",
        "CPU part",
        "cpu family",
    ];
    let is_one = |line: &&str| {
        let name = line.split(':').next().unwrap_or_default().trim();
        names.contains(&name)
    };
    let lines: Vec<&str> = cpuinfo.lines().filter(is_one).collect();
    lines.join("\n")
}

fn total_kib(meminfo: &str) -> u64 {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"));
    let number = line.and_then(|rest| rest.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_is_the_same_at_another_speed() {
        let at = |mhz| format!("processor\t: 0\nmodel name\t: X\ncpu MHz\t\t: {mhz}\n");
        assert_eq!(processors(&at("800")), processors(&at("3100")));
        assert!(processors(&at("1")).contains("model name\t: X"));
        assert_eq!(total_kib("MemTotal:        1024 kB\nMemFree: 3 kB\n"), 1024);
        assert_eq!(total_kib(""), 0);
        assert!(!Machine::this().kernel.is_empty());
    }
}
