//! What is mounted and swapped on, read from /proc.

use std::path::Path;

/// A line of a mountinfo file that matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Device number, `major:minor`.
    pub device: String,
    /// Where it is mounted, with octal escapes resolved.
    pub place: String,
    /// What is mounted: a device's path for most filesystems.
    pub source: String,
    /// Kernel's name of the filesystem (`ext4`).
    pub kind: String,
    /// Options of this mount and of the filesystem, as the kernel tells them, each once.
    pub options: String,
    /// A process that sees it, if this one does not.
    pub process: Option<u32>,
}

/// All mounts of this process and of every other that it can see: a card that is mounted in
/// a container is mounted.
pub fn mounts(proc: &Path) -> Vec<Mount> {
    let mut found: Vec<Mount> = Vec::new();
    let entries = std::fs::read_dir(proc).into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    for process in std::iter::once(None).chain(numbers.map(Some)) {
        for mount in seen_by(proc, process) {
            let is_known = |known: &Mount| {
                (&known.device, &known.place, &known.source)
                    == (&mount.device, &mount.place, &mount.source)
            };
            if !found.iter().any(is_known) {
                found.push(mount);
            }
        }
    }
    found
}

/// The mounts that this process sees, in the order in which they lie on each other.
pub fn own_mounts(proc: &Path) -> Vec<Mount> {
    seen_by(proc, None)
}

/// The mounts that `process` sees; none if it is gone or another user's.
pub(crate) fn of_process(proc: &Path, process: u32) -> Vec<Mount> {
    seen_by(proc, Some(process))
}

/// The mounts that the calling thread sees, which may have its own.
pub fn thread_mounts(proc: &Path) -> Vec<Mount> {
    let text = std::fs::read(proc.join("thread-self/mountinfo")).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    text.lines().filter_map(parse).collect()
}

/// The mounts that `process`, or else this one, sees. It may be gone or another user's: then
/// they are not to be seen.
fn seen_by(proc: &Path, process: Option<u32>) -> Vec<Mount> {
    let name = process.map_or("self".to_owned(), |process| process.to_string());
    let text = std::fs::read(proc.join(name).join("mountinfo")).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let mounts = text.lines().filter_map(parse);
    mounts.map(|mount| Mount { process, ..mount }).collect()
}

/// Devices with active swap space.
pub fn swaps(proc: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(proc.join("swaps")).unwrap_or_default();
    let lines = text.lines().skip(1);
    lines
        .filter_map(|line| line.split_whitespace().next())
        .map(unescape)
        .collect()
}

/// `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`
fn parse(line: &str) -> Option<Mount> {
    let (front, back) = line.split_once(" - ")?;
    let mut front = front.split(' ').skip(2);
    let device = front.next()?.to_owned();
    let place = unescape(front.nth(1)?);
    let of_mount = front.next().unwrap_or_default();
    let mut back = back.split(' ');
    let kind = back.next()?.to_owned();
    let source = unescape(back.next()?);
    let of_filesystem = back.next().unwrap_or_default();
    Some(Mount {
        device,
        place,
        source,
        kind,
        options: together(of_mount, of_filesystem),
        process: None,
    })
}

/// Two lists of options as one. What is `ro` in one of them is.
fn together(of_mount: &str, of_filesystem: &str) -> String {
    let mut all: Vec<&str> = Vec::new();
    let each = of_mount.split(',').chain(of_filesystem.split(','));
    for option in each.filter(|option| !option.is_empty()) {
        if !all.contains(&option) {
            all.push(option);
        }
    }
    if all.contains(&"ro") {
        all.retain(|option| *option != "rw");
    }
    all.join(",")
}

/// `\040` and its like stand for blanks, tabs, line ends and backslashes.
fn unescape(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let octal = bytes
            .get(at + 1..at + 4)
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match octal {
            Some(byte) if bytes[at] == b'\\' => {
                out.push(byte);
                at += 4;
            }
            _ => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_mountinfo_line_gives_device_place_and_source() {
        let line = r"36 35 8:1 / /media/my\040card rw,noatime shared:1 - vfat /dev/sda1 rw";
        let mount = parse(line).unwrap();
        assert_eq!(mount.device, "8:1");
        assert_eq!(mount.place, "/media/my card");
        assert_eq!(mount.source, "/dev/sda1");
        assert_eq!(mount.kind, "vfat");
        assert_eq!(mount.options, "rw,noatime");
        let locked = parse("1 0 8:1 / /m rw,noatime - ext4 /dev/sda1 ro,data=ordered").unwrap();
        assert_eq!(locked.options, "noatime,ro,data=ordered");
        assert_eq!(parse("nonsense"), None);
        assert_eq!(parse("1 2 - ext4"), None);
    }

    #[test]
    fn mounts_of_other_processes_count() {
        let proc = tempfile::tempdir().unwrap();
        for (who, place) in [("self", "/"), ("17", "/container")] {
            std::fs::create_dir(proc.path().join(who)).unwrap();
            let line = format!("1 0 8:1 / {place} rw - ext4 /dev/sda1 rw\n");
            std::fs::write(proc.path().join(who).join("mountinfo"), line).unwrap();
        }
        let found = mounts(proc.path()).into_iter();
        let found: Vec<_> = found.map(|mount| (mount.place, mount.process)).collect();
        let container = ("/container".to_owned(), Some(17));
        assert_eq!(found, [("/".to_owned(), None), container]);
        assert_eq!(own_mounts(proc.path()).len(), 1);
    }

    #[test]
    fn swaps_are_the_first_column() {
        let proc = tempfile::tempdir().unwrap();
        let text = "Filename\tType\tSize\tUsed\tPriority\n/dev/sdb2 partition 1 0 -2\n";
        std::fs::write(proc.path().join("swaps"), text).unwrap();
        assert_eq!(swaps(proc.path()), ["/dev/sdb2"]);
        assert!(swaps(Path::new("/nonexistent")).is_empty());
    }
}
