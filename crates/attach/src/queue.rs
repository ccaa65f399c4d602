//! Makes the device's queue look to the kernel as mmc_block's or usb-storage's does.

use crate::error::AttachError;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The queue of the host controller that the card is behind: `[host.mmc]` or `[host.usb]` of
/// a board file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostQueue {
    /// I/O scheduler: `mq-deadline`, `none` …
    pub scheduler: String,
    /// Whether the kernel takes the disk for a rotating one.
    pub rotational: bool,
    /// Requests that the scheduler may hold.
    pub nr_requests: u32,
    /// Read-ahead in KiB.
    pub read_ahead_kib: u64,
    /// The largest request in KiB.
    pub largest_request_kib: u64,
}

/// What the card itself decides about the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CardQueue {
    /// Whether it has a volatile cache: without one the kernel sends no flush.
    pub cache: bool,
    /// Whether it knows discard.
    pub discard: bool,
    /// The largest request in KiB that the way to it takes in one piece.
    pub way_kib: u64,
}

/// The largest discard, as the lab has it: what mmc_block lets a card erase within its
/// time-out.
pub(crate) const DISCARD_MAX_BYTES: u64 = 512 << 20;

/// Sets the attributes of the disk `name` below `block` (`/sys/block`) and reads each back.
/// Returns the largest request in KiB, which the way may cut.
pub(crate) fn set(
    block: &Path,
    name: &str,
    host: &HostQueue,
    card: CardQueue,
) -> Result<u64, AttachError> {
    let queue = Attributes(block.join(name).join("queue"));
    // The scheduler comes first: the kernel resets the number of requests with it.
    queue.set("scheduler", "host.scheduler", &host.scheduler)?;
    queue.set(
        "rotational",
        "host.rotational",
        if host.rotational { "1" } else { "0" },
    )?;
    queue.set(
        "nr_requests",
        "host.nr_requests",
        &host.nr_requests.to_string(),
    )?;
    queue.set(
        "read_ahead_kb",
        "host.read_ahead_kib",
        &host.read_ahead_kib.to_string(),
    )?;
    let hardware = queue.number("max_hw_sectors_kb")?;
    let largest = host.largest_request_kib.min(card.way_kib).min(hardware);
    queue.set(
        "max_sectors_kb",
        "host.largest_request_kib",
        &largest.to_string(),
    )?;
    let cache = if card.cache {
        "write back"
    } else {
        "write through"
    };
    queue.set("write_cache", CARD, cache)?;
    let discard = match card.discard {
        true => DISCARD_MAX_BYTES.min(queue.number("discard_max_hw_bytes")?),
        false => 0,
    };
    queue.set("discard_max_bytes", CARD, &discard.to_string())?;
    Ok(largest)
}

/// Has the loop device `name` below `block` flush again, if it is there: a setting outlives what
/// it is bound to, and one that is "write through" never flushes, whatever its next user keeps
/// on it.
pub(crate) fn flush_again(block: &Path, name: &str) {
    change(&block.join(name).join("queue/write_cache"), "write back");
}

/// Gives the loop device `name` below `block` the settings of a new one, as far as the kernel
/// lets.
pub(crate) fn as_new(block: &Path, name: &str) {
    flush_again(block, name);
    let queue = block.join(name).join("queue");
    let most = fs::read_to_string(queue.join("discard_max_hw_bytes")).unwrap_or_default();
    let settings = [
        ("scheduler", "none"),
        ("discard_max_bytes", most.trim()),
        // Zero: what the driver gives.
        ("max_sectors_kb", "0"),
        ("read_ahead_kb", "128"),
        ("nr_requests", "128"),
    ];
    for (setting, value) in settings.iter().filter(|(_, value)| !value.is_empty()) {
        change(&queue.join(setting), value);
    }
}

/// Writes `value` to `path`, if that is there: a device that is gone needs nothing.
fn change(path: &Path, value: &str) {
    if path.exists() {
        let _ = fs::write(path, value);
    }
}

/// Where settings come from that the board does not decide.
const CARD: &str = "the card's profile, or the kernel";

/// The directory `queue` of a disk in sysfs.
struct Attributes(PathBuf);

impl Attributes {
    /// Sets `name` to the `value` of `key`.
    fn set(&self, name: &str, key: &'static str, value: &str) -> Result<(), AttachError> {
        let path = self.0.join(name);
        let wrong = |why: String| AttachError::Setting {
            key,
            path: path.display().to_string(),
            value: value.to_owned(),
            why,
        };
        fs::write(&path, value).map_err(|error| wrong(error.to_string()))?;
        let text = fs::read_to_string(&path).map_err(|error| wrong(error.to_string()))?;
        if chosen(text.trim()) == value {
            return Ok(());
        }
        Err(wrong(format!("the kernel says {:?}", text.trim())))
    }

    fn number(&self, name: &str) -> Result<u64, AttachError> {
        let path = self.0.join(name);
        let failed = |error| AttachError::io(format!("read {}", path.display()), error);
        let text = fs::read_to_string(&path).map_err(failed)?;
        let number = text.trim().parse();
        number.map_err(|_| failed(io::Error::other(format!("found {:?}", text.trim()))))
    }
}

/// The choice in brackets of a list such as `none [mq-deadline]`, else the text itself.
fn chosen(text: &str) -> &str {
    text.split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'))
        .map_or(text, |(inner, _)| inner)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::file::FUSE_LARGEST_KIB;

    fn host() -> HostQueue {
        HostQueue {
            scheduler: "mq-deadline".into(),
            rotational: false,
            nr_requests: 128,
            read_ahead_kib: 128,
            largest_request_kib: 512,
        }
    }

    const SD: CardQueue = CardQueue {
        cache: false,
        discard: true,
        way_kib: FUSE_LARGEST_KIB,
    };

    fn sysfs() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let queue = dir.path().join("loop9/queue");
        fs::create_dir_all(&queue).unwrap();
        fs::write(queue.join("max_hw_sectors_kb"), "1280\n").unwrap();
        fs::write(queue.join("discard_max_hw_bytes"), "4294966784\n").unwrap();
        dir
    }

    fn read(dir: &tempfile::TempDir, name: &str) -> String {
        fs::read_to_string(dir.path().join("loop9/queue").join(name)).unwrap()
    }

    #[test]
    fn an_sd_card_is_write_through_and_discards_in_pieces() {
        let dir = sysfs();
        assert_eq!(set(dir.path(), "loop9", &host(), SD).unwrap(), 512);
        for (name, value) in [
            ("scheduler", "mq-deadline"),
            ("rotational", "0"),
            ("nr_requests", "128"),
            ("read_ahead_kb", "128"),
            ("max_sectors_kb", "512"),
            ("write_cache", "write through"),
            ("discard_max_bytes", "536870912"),
        ] {
            assert_eq!(read(&dir, name), value, "{name}");
        }
    }

    #[test]
    fn nothing_of_a_card_stays_on_a_loop_device() {
        let dir = sysfs();
        set(dir.path(), "loop9", &host(), SD).unwrap();
        as_new(dir.path(), "loop9");
        assert_eq!(read(&dir, "write_cache"), "write back");
        assert_eq!(read(&dir, "scheduler"), "none");
        as_new(dir.path(), "loop8");
        assert!(!dir.path().join("loop8").exists());
    }

    #[test]
    fn an_emmc_has_a_cache_and_a_usb_stick_no_discard() {
        let dir = sysfs();
        let emmc = CardQueue { cache: true, ..SD };
        set(dir.path(), "loop9", &host(), emmc).unwrap();
        assert_eq!(read(&dir, "write_cache"), "write back");
        let usb = CardQueue {
            discard: false,
            ..SD
        };
        set(dir.path(), "loop9", &host(), usb).unwrap();
        assert_eq!(read(&dir, "discard_max_bytes"), "0");
    }

    #[test]
    fn a_request_larger_than_a_transfer_is_cut_and_told() {
        let dir = sysfs();
        let pandora = HostQueue {
            largest_request_kib: 1280,
            ..host()
        };
        assert_eq!(
            set(dir.path(), "loop9", &pandora, SD).unwrap(),
            FUSE_LARGEST_KIB
        );
        assert_eq!(read(&dir, "max_sectors_kb"), FUSE_LARGEST_KIB.to_string());
        let ublk = CardQueue {
            way_kib: u64::MAX,
            ..SD
        };
        assert_eq!(set(dir.path(), "loop9", &pandora, ublk).unwrap(), 1280);
    }

    #[test]
    fn a_setting_that_the_kernel_does_not_take_is_an_error() {
        let dir = sysfs();
        // /dev/null takes every value and reads back as nothing: a kernel that ignores us.
        let path = dir.path().join("loop9/queue/write_cache");
        std::os::unix::fs::symlink("/dev/null", path).unwrap();
        let error = set(dir.path(), "loop9", &host(), SD).unwrap_err();
        assert!(error.to_string().contains("write_cache"), "{error}");
        let deep = HostQueue {
            nr_requests: 4096,
            ..host()
        };
        let path = dir.path().join("loop9/queue/nr_requests");
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/null", path).unwrap();
        let error = set(dir.path(), "loop9", &deep, SD).unwrap_err().to_string();
        assert!(
            error.contains("host.nr_requests in the board file"),
            "{error}"
        );
    }
}
