//! Makes a disk's queue look to the kernel as the real device's does.

use crate::error::AgentError;
use crate::sink::Sink;
use std::fs;
use std::path::Path;
use whichfs_trial::{BlockQueue, Event};

/// Sets the attributes of `queue` below `block` (`/sys/block`) and reads each back.
///
/// A largest request above the hardware's limit is set to that limit and told as an
/// `output` event; every other difference is an error.
pub fn set(block: &Path, queue: &BlockQueue, sink: &mut dyn Sink) -> Result<(), AgentError> {
    let dir = block.join(&queue.disk).join("queue");
    if !dir.is_dir() {
        return Err(AgentError::new(format!(
            "disk {}: {} does not exist",
            queue.disk,
            dir.display()
        )));
    }
    // The scheduler comes first: the kernel resets the number of requests with it.
    set_attribute(&dir, "scheduler", &queue.scheduler)?;
    set_attribute(&dir, "rotational", if queue.rotational { "1" } else { "0" })?;
    set_attribute(&dir, "nr_requests", &queue.requests.to_string())?;
    set_attribute(&dir, "read_ahead_kb", &queue.read_ahead_kib.to_string())?;
    let limit = read_number(&dir.join("max_hw_sectors_kb"))?;
    let largest = queue.max_request_kib.min(limit);
    set_attribute(&dir, "max_sectors_kb", &largest.to_string())?;
    if largest < queue.max_request_kib {
        sink.send(&Event::Output {
            stream: dir.join("max_sectors_kb").display().to_string(),
            text: format!(
                "{} KiB were asked for, the hardware's limit is {limit} KiB",
                queue.max_request_kib
            ),
        })?;
    }
    Ok(())
}

/// Writes `value` to the attribute and checks that the kernel took it.
fn set_attribute(dir: &Path, name: &str, value: &str) -> Result<(), AgentError> {
    let path = dir.join(name);
    let what = format!("{value} to {}", path.display());
    fs::write(&path, value).map_err(|error| AgentError::io("write", &what, &error))?;
    let text = read(&path)?;
    let found = chosen(&text);
    if found == value {
        return Ok(());
    }
    Err(AgentError::new(format!(
        "{}: {value} was written, the kernel says {text:?}",
        path.display()
    )))
}

/// The choice in brackets of a list such as `none [mq-deadline]`, else the text itself.
fn chosen(text: &str) -> &str {
    text.split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'))
        .map_or(text, |(inner, _)| inner)
}

fn read(path: &Path) -> Result<String, AgentError> {
    fs::read_to_string(path)
        .map(|text| text.trim().to_owned())
        .map_err(|error| AgentError::io("read", path.display(), &error))
}

fn read_number(path: &Path) -> Result<u64, AgentError> {
    let text = read(path)?;
    text.parse()
        .map_err(|_| AgentError::new(format!("{}: {text:?} is not a number", path.display())))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn queue() -> BlockQueue {
        BlockQueue {
            disk: "vda".into(),
            rotational: false,
            scheduler: "mq-deadline".into(),
            max_request_kib: 512,
            requests: 64,
            read_ahead_kib: 128,
        }
    }

    fn sysfs(limit: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let queue = dir.path().join("vda/queue");
        fs::create_dir_all(&queue).unwrap();
        fs::write(queue.join("max_hw_sectors_kb"), limit).unwrap();
        dir
    }

    #[test]
    fn every_attribute_is_written() {
        let dir = sysfs("32767\n");
        let mut events: Vec<Event> = Vec::new();
        set(dir.path(), &queue(), &mut events).unwrap();
        let read = |name: &str| fs::read_to_string(dir.path().join("vda/queue").join(name));
        assert_eq!(read("rotational").unwrap(), "0");
        assert_eq!(read("scheduler").unwrap(), "mq-deadline");
        assert_eq!(read("max_sectors_kb").unwrap(), "512");
        assert_eq!(read("nr_requests").unwrap(), "64");
        assert_eq!(read("read_ahead_kb").unwrap(), "128");
        assert!(events.is_empty());
    }

    #[test]
    fn a_limit_of_the_hardware_is_told() {
        let dir = sysfs("128");
        let mut events: Vec<Event> = Vec::new();
        set(dir.path(), &queue(), &mut events).unwrap();
        assert_eq!(events.len(), 1);
        assert!(format!("{:?}", events[0]).contains("limit is 128 KiB"));
    }

    #[test]
    fn an_attribute_that_the_kernel_does_not_take_is_an_error() {
        let dir = sysfs("512");
        // /dev/null takes every value and reads back as nothing: a kernel that ignores us.
        std::os::unix::fs::symlink("/dev/null", dir.path().join("vda/queue/rotational")).unwrap();
        let error = set(dir.path(), &queue(), &mut Vec::new()).unwrap_err();
        assert!(
            error.to_string().contains("rotational: 0 was written"),
            "{error}"
        );
    }

    #[test]
    fn a_missing_disk_is_named() {
        let dir = sysfs("512");
        let other = BlockQueue {
            disk: "vdz".into(),
            ..queue()
        };
        let error = set(dir.path(), &other, &mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains("disk vdz"), "{error}");
    }

    #[test]
    fn the_chosen_scheduler_is_the_one_in_brackets() {
        assert_eq!(chosen("none [mq-deadline] bfq"), "mq-deadline");
        assert_eq!(chosen("none"), "none");
    }
}
