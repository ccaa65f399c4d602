//! The tail of the kernel's log, for error reports.

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
    fn the_log_is_bounded_whoever_asks() {
        assert!(tail(5).len() <= 5);
    }
}
