//! The tail of the kernel's log, for error reports.

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// `SYSLOG_ACTION_READ_ALL` of syslog(2): read the last messages, leave them there.
const READ_ALL: libc::c_int = 3;

/// Most bytes of log to ask for: about a thousand lines.
const LOG_BYTES: usize = 64 << 10;

/// The last `lines` lines of the kernel log; empty where this user may not read it.
pub fn tail(lines: usize) -> Vec<String> {
    let mut buffer = vec![0_u8; LOG_BYTES];
    // SAFETY: the kernel writes at most `LOG_BYTES` bytes, which is what `buffer` has;
    // it is not used by anyone else during the call.
    let count = unsafe {
        libc::klogctl(
            READ_ALL,
            buffer.as_mut_ptr().cast::<libc::c_char>(),
            LOG_BYTES as libc::c_int,
        )
    };
    buffer.truncate(usize::try_from(count).unwrap_or(0));
    last_lines(&String::from_utf8_lossy(&buffer), lines)
}

/// Number of the message that comes next: from there on [`since`] tells.
pub fn now() -> u64 {
    messages().last().map_or(0, |last| last.number + 1)
}

/// The messages from number `from` on: when each was logged, in microseconds since the kernel
/// started, and its text without the level; `from` moves behind them.
pub fn since(from: &mut u64) -> (Vec<u64>, Vec<String>) {
    let mut new = messages();
    new.retain(|message| message.number >= *from);
    if let Some(last) = new.last() {
        *from = last.number + 1;
    }
    (new.into_iter().map(|message| (message.at_us, message.text))).unzip()
}

/// A message of the kernel.
#[derive(Debug, PartialEq, Eq)]
struct Message {
    number: u64,
    at_us: u64,
    text: String,
}

/// All messages that the kernel still has; none where this user may not
/// read them.
fn messages() -> Vec<Message> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(fd) = rustix::fs::open("/dev/kmsg", flags, Mode::empty()) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let mut buffer = [0; 8192];
    loop {
        match rustix::io::read(&fd, &mut buffer) {
            Ok(0) => break,
            Ok(count) => found.extend(message(&String::from_utf8_lossy(&buffer[..count]))),
            // Overwritten while we read: the next is the oldest that is left.
            Err(Errno::PIPE | Errno::INTR) => {}
            Err(_) => break,
        }
    }
    found
}

/// A record of /dev/kmsg: `level,number,time,flags;text`, then lines of details that begin with a
/// blank.
fn message(record: &str) -> Option<Message> {
    let (head, text) = record.split_once(';')?;
    let mut fields = head.split(',').skip(1);
    Some(Message {
        number: fields.next()?.parse().ok()?,
        at_us: fields.next()?.parse().ok()?,
        text: text.lines().next().unwrap_or_default().to_owned(),
    })
}

/// The last `lines` lines of `text`.
fn last_lines(text: &str, lines: usize) -> Vec<String> {
    let all: Vec<&str> = text.lines().collect();
    let first = all.len().saturating_sub(lines);
    all[first..].iter().map(|&line| line.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_lines_are_kept() {
        assert_eq!(last_lines("a\nb\nc\n", 2), ["b", "c"]);
        assert_eq!(last_lines("a\n", 5), ["a"]);
        assert!(last_lines("", 5).is_empty());
    }

    #[test]
    fn records_of_kmsg_have_a_number_and_a_text() {
        let record = "4,1203,5140900,-;EXT4-fs (vda): recovery complete\n SUBSYSTEM=x\n";
        let expected = Message {
            number: 1203,
            at_us: 5_140_900,
            text: "EXT4-fs (vda): recovery complete".to_owned(),
        };
        assert_eq!(message(record), Some(expected));
        assert_eq!(message("no record"), None);
    }

    #[test]
    fn the_log_is_bounded_whoever_asks() {
        assert!(tail(5).len() <= 5);
    }
}
