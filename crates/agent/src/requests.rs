//! How large the requests are that reach a disk: the kernel's tracepoint `block:block_rq_issue`,
//! counted by direction and size.
//!
//! The events come through perf's rings, one for each processor, and the tracepoint's description
//! through a mount of tracefs that is attached nowhere: both vanish with this process, however it
//! ends. `/sys/block/DISK/stat` has totals only. Devices whose driver takes bios (zram, device
//! mapper) issue no requests, and none are seen of them.

use crate::ring::Ring;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags, openat};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::Path;

/// The tracepoint, below tracefs.
const POINT: &str = "events/block/block_rq_issue";
/// Where tracefs may be mounted, for kernels before 5.2.
const MOUNTED: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// Bits of a minor number within the kernel (`MINORBITS` of linux/kdev_t.h).
const MINOR_BITS: u32 = 20;

/// Requests by direction and size: bound in bytes (a power of two) → requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Those that read.
    pub reads: BTreeMap<u64, u64>,
    /// Those that write.
    pub writes: BTreeMap<u64, u64>,
    /// Requests that came faster than they were counted, and are missing.
    pub lost: u64,
}

/// Counts the requests of one disk.
pub struct Requests {
    rings: Vec<Ring>,
    layout: Layout,
    sizes: Sizes,
}

impl Requests {
    /// Begins to count those of the disk that the kernel calls `disk`.
    ///
    /// # Errors
    /// What the kernel does not have or allow, in words.
    pub fn of(disk: &str) -> Result<Requests, String> {
        let number = fs::read_to_string(Path::new("/sys/block").join(disk).join("dev"))
            .map_err(|error| format!("the number of {disk} is not known: {error}"))?;
        let device = device_of(number.trim()).ok_or("its number cannot be understood")?;
        let id = described("id")?.trim().parse();
        let id: u64 = id.map_err(|_| "tracefs tells no number".to_owned())?;
        let layout = Layout::parse(&described("format")?)
            .ok_or("the kernel describes block_rq_issue in a way that is not known")?;
        let filter = format!("dev == {device}");
        let rings = processors()
            .into_iter()
            .map(|processor| Ring::new(id, processor, &filter))
            .collect::<Result<Vec<Ring>, String>>()?;
        Ok(Requests {
            rings,
            layout,
            sizes: Sizes::default(),
        })
    }

    /// What has been counted by now.
    pub fn read(&mut self) -> Sizes {
        let (layout, sizes) = (&self.layout, &mut self.sizes);
        for ring in &mut self.rings {
            sizes.lost += ring.drain(&mut |record| {
                if let Some((bytes, writes)) = layout.request(record) {
                    let list = match writes {
                        true => &mut sizes.writes,
                        false => &mut sizes.reads,
                    };
                    *list.entry(bytes.next_power_of_two()).or_default() += 1;
                }
            });
        }
        self.sizes.clone()
    }
}

/// Where a record of the tracepoint has what is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    /// Offset of `unsigned int bytes`.
    bytes: usize,
    /// Offset and length of `char rwbs[]`.
    kind: (usize, usize),
}

impl Layout {
    /// From the `format` of a tracepoint.
    fn parse(format: &str) -> Option<Layout> {
        let number = |line: &str, key: &str| -> Option<usize> {
            let rest = line.split_once(key)?.1;
            rest.split(';').next()?.trim().parse().ok()
        };
        let field = |declared: &str| {
            let line = format.lines().find(|line| line.contains(declared))?;
            Some((number(line, "offset:")?, number(line, "size:")?))
        };
        let (bytes, size) = field(" bytes;")?;
        (size == 4).then_some(())?;
        Some(Layout {
            bytes,
            kind: field(" rwbs[")?,
        })
    }

    /// Bytes of the request that `record` tells of, and whether it writes; `None` if it moves no
    /// data.
    fn request(&self, record: &[u8]) -> Option<(u64, bool)> {
        let number = record.get(self.bytes..self.bytes + 4)?;
        let bytes = u32::from_ne_bytes(number.try_into().ok()?);
        let kind = record.get(self.kind.0..self.kind.0 + self.kind.1)?;
        // `FWS`: a flush goes before the write.
        let first = kind.iter().find(|letter| **letter != b'F')?;
        match first {
            _ if bytes == 0 => None,
            b'W' => Some((bytes.into(), true)),
            b'R' => Some((bytes.into(), false)),
            _ => None,
        }
    }
}

/// The number that the kernel has for `major:minor`.
fn device_of(number: &str) -> Option<u64> {
    let (major, minor) = number.split_once(':')?;
    let (major, minor): (u64, u64) = (major.parse().ok()?, minor.parse().ok()?);
    Some(major << MINOR_BITS | minor)
}

/// What the file `name` of the tracepoint says.
fn described(name: &str) -> Result<String, String> {
    let path = format!("{POINT}/{name}");
    let own = own_tracefs().and_then(|root| {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = openat(root.as_fd(), path.as_str(), flags, Mode::empty());
        read(fs::File::from(file.map_err(|errno| errno.to_string())?))
    });
    own.or_else(|why| {
        let opened = MOUNTED.iter().find_map(|root| {
            let file = fs::File::open(Path::new(root).join(&path)).ok()?;
            Some(read(file))
        });
        opened.unwrap_or_else(|| {
            Err(format!(
                "the kernel's tracefs does not tell of requests: {why}"
            ))
        })
    })
}

fn read(mut file: fs::File) -> Result<String, String> {
    let mut text = String::new();
    let read = file.read_to_string(&mut text);
    read.map_err(|error| error.to_string())?;
    Ok(text)
}

/// A tracefs of our own, attached nowhere.
fn own_tracefs() -> Result<OwnedFd, String> {
    let told = |errno: rustix::io::Errno| errno.to_string();
    let filesystem = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC).map_err(told)?;
    fsconfig_create(&filesystem).map_err(told)?;
    let flags = FsMountFlags::FSMOUNT_CLOEXEC;
    fsmount(&filesystem, flags, MountAttrFlags::empty()).map_err(told)
}

/// The processors that are online; the first, if the kernel does not tell.
fn processors() -> Vec<i32> {
    let text = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    match list(text.trim()) {
        Some(all) if !all.is_empty() => all,
        _ => vec![0],
    }
}

/// `0-3,5` as numbers.
fn list(text: &str) -> Option<Vec<i32>> {
    let mut all = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (i32, i32) = (first.parse().ok()?, last.parse().ok()?);
        all.extend(first..=last);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const FORMAT: &str = "name: block_rq_issue\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
        \tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:unsigned int bytes;\toffset:28;\tsize:4;\tsigned:0;\n\
        \tfield:char rwbs[10];\toffset:34;\tsize:10;\tsigned:0;\n";

    fn record(bytes: u32, kind: &str) -> Vec<u8> {
        let mut record = vec![0; 64];
        record[28..32].copy_from_slice(&bytes.to_ne_bytes());
        record[34..34 + kind.len()].copy_from_slice(kind.as_bytes());
        record
    }

    #[test]
    fn a_record_tells_direction_and_bytes() {
        let layout = Layout::parse(FORMAT).unwrap();
        let of = |bytes, kind| layout.request(&record(bytes, kind));
        assert_eq!(of(4096, "WS"), Some((4096, true)));
        assert_eq!(of(512, "FWFSM"), Some((512, true)));
        assert_eq!(of(131_072, "RA"), Some((131_072, false)));
        for (bytes, kind) in [(4096, "D"), (0, "FF"), (0, "W"), (8, "N"), (0, "")] {
            assert_eq!(of(bytes, kind), None, "{kind}");
        }
        assert_eq!(layout.request(&[0; 20]), None, "too short");
    }

    #[test]
    fn another_description_is_not_guessed_at() {
        assert_eq!(Layout::parse(""), None);
        assert_eq!(Layout::parse(&FORMAT.replace(" bytes;", " octets;")), None);
        assert_eq!(Layout::parse(&FORMAT.replace("size:4", "size:8")), None);
    }

    #[test]
    fn numbers_of_devices_and_lists_of_processors_are_read() {
        assert_eq!(device_of("7:3"), Some(0x70_0003));
        assert_eq!(device_of("259:70000"), Some((259 << 20) | 70000));
        assert_eq!(device_of("x"), None);
        assert_eq!(list("0-3,5"), Some(vec![0, 1, 2, 3, 5]));
        assert_eq!(list("0"), Some(vec![0]));
        assert_eq!(list(""), None);
    }

    #[test]
    fn a_disk_that_is_not_there_is_told() {
        let why = Requests::of("no-such-disk").err().unwrap();
        assert!(why.contains("no-such-disk"), "{why}");
    }
}
