//! Framing: an event as one or more records of at most [`RECORD_MAX`] bytes. Pure.

use whichfs_trial::{Event, compact};
use whichfs_units::SECTOR;

/// Most bytes of a record: it must fit into one request of the control disk.
pub const RECORD_MAX: usize = 128 << 10;

/// The records of `event`: each is a complete JSON object, or what [`compact`] makes, padded with
/// zero bytes to a multiple of 512.
///
/// A long `output`, `found` or `kernel_log` becomes several events; a long `error` loses the
/// oldest lines of its kernel log, then the end of its message, as a `failed` does.
pub fn records(event: &Event) -> Vec<Vec<u8>> {
    let bytes = encode(event);
    if bytes.len() <= RECORD_MAX {
        return vec![pad(bytes)];
    }
    split(event).iter().flat_map(records).collect()
}

/// Smaller events that say what `event` says.
fn split(event: &Event) -> Vec<Event> {
    match event {
        Event::Output { stream, text } if text.len() > 1 => {
            let middle = boundary(text, text.len() / 2);
            [&text[..middle], &text[middle..]]
                .into_iter()
                .filter(|part| !part.is_empty())
                .map(|part| Event::Output {
                    stream: stream.clone(),
                    text: part.to_owned(),
                })
                .collect()
        }
        Event::Error {
            message,
            kernel_log,
        } if !kernel_log.is_empty() => vec![Event::Error {
            message: message.clone(),
            kernel_log: kernel_log[kernel_log.len().div_ceil(2)..].to_vec(),
        }],
        Event::Error { message, .. } => vec![Event::Error {
            message: message[..boundary(message, message.len() / 2)].to_owned(),
            kernel_log: Vec::new(),
        }],
        Event::Found { entries } if entries.len() > 1 => halves(entries)
            .map(|part| Event::Found {
                entries: part.to_vec(),
            })
            .collect(),
        Event::KernelLog { lines, times_us } if lines.len() > 1 => {
            let half = lines.len() / 2;
            let times = times_us.split_at(half.min(times_us.len()));
            let lines = lines.split_at(half);
            let parts = [(lines.0, times.0), (lines.1, times.1)];
            let part = |(lines, times): (&[String], &[u64])| Event::KernelLog {
                lines: lines.to_vec(),
                times_us: times.to_vec(),
            };
            parts.map(part).to_vec()
        }
        Event::KernelLog { lines, times_us } => vec![Event::KernelLog {
            times_us: times_us.clone(),
            // One line, and longer than the kernel makes any: its beginning tells enough.
            lines: lines
                .iter()
                .map(|line| line[..boundary(line, line.len() / 2)].to_owned())
                .collect(),
        }],
        Event::Failed { attempt, message } => vec![Event::Failed {
            attempt: attempt.clone(),
            message: message[..boundary(message, message.len() / 2)].to_owned(),
        }],
        // A sector's digest has four bytes, an event 8,192 of them. Names of phases and
        // metrics, one entry of a directory and histograms of 2,000 buckets are below the limit; a
        // path or stream name of 128 KiB does not exist (PATH_MAX is 4 KiB).
        other => unreachable!("this event cannot be longer than a record: {other:?}"),
    }
}

/// The two halves of a list.
fn halves<T>(list: &[T]) -> impl Iterator<Item = &[T]> {
    let (first, second) = list.split_at(list.len() / 2);
    [first, second].into_iter()
}

/// The first character boundary of `text` at or after `from`, but never 0.
fn boundary(text: &str, from: usize) -> usize {
    (from.max(1)..=text.len())
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(text.len())
}

fn encode(event: &Event) -> Vec<u8> {
    compact(event).unwrap_or_else(|| json(event))
}

fn json(event: &Event) -> Vec<u8> {
    serde_json::to_vec(event).unwrap_or_else(|error| {
        unreachable!("an Event is strings, numbers and maps of numbers: {error}")
    })
}

fn pad(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.resize(bytes.len().next_multiple_of(SECTOR as usize), 0);
    bytes
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use whichfs_trial::{DirectoryEntry, MARK, Node, expand};

    fn decode(record: &[u8]) -> Event {
        if record[0] == MARK {
            return expand(record).unwrap();
        }
        let end = record.iter().rposition(|&byte| byte != 0).unwrap() + 1;
        serde_json::from_slice(&record[..end]).unwrap()
    }

    #[test]
    fn a_short_event_is_one_padded_record() {
        let records = records(&Event::Done);
        assert_eq!(records.len(), 1);
        assert_eq!(records[0].len(), 512);
        assert_eq!(decode(&records[0]), Event::Done);
    }

    #[test]
    fn long_lists_are_split_and_nothing_is_lost() {
        let lines: Vec<String> = (0..5000)
            .map(|n| format!("{n} {}", "é".repeat(50)))
            .collect();
        let mut joined = Vec::new();
        for record in records(&Event::KernelLog {
            lines: lines.clone(),
            times_us: (0..5000).collect(),
        }) {
            assert!(record.len() <= RECORD_MAX);
            match decode(&record) {
                Event::KernelLog { lines, times_us } => {
                    assert_eq!(lines.len(), times_us.len(), "each line keeps its time");
                    joined.extend(lines);
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(joined, lines);
        let found = |n: usize| DirectoryEntry {
            path: format!("{n}/{}", "x".repeat(4000)),
            node: Node::Directory,
            mode: 0o755,
            sectors: Vec::new(),
            zeros: Vec::new(),
        };
        let entries: Vec<DirectoryEntry> = (0..100).map(found).collect();
        let mut joined = Vec::new();
        for record in records(&Event::Found {
            entries: entries.clone(),
        }) {
            assert!(record.len() <= RECORD_MAX);
            match decode(&record) {
                Event::Found { entries } => joined.extend(entries),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(joined, entries);
    }

    #[test]
    fn texts_beyond_any_bound_are_cut() {
        let text = "日".repeat(200_000);
        let lines = vec![text.clone()];
        let failed = Event::Failed {
            attempt: "mount".into(),
            message: text,
        };
        for event in [
            Event::KernelLog {
                lines,
                times_us: vec![1],
            },
            failed,
        ] {
            let records = records(&event);
            assert!(records.len() == 1 && records[0].len() <= RECORD_MAX);
        }
    }

    #[test]
    fn a_long_output_is_split_and_nothing_is_lost() {
        // Control characters grow six-fold in JSON; the others are of several bytes.
        for unit in ["x", "é\n", "\u{1}", "日本"] {
            let text = unit.repeat(200_000);
            let event = Event::Output {
                stream: "stdout".into(),
                text: text.clone(),
            };
            let records = records(&event);
            assert!(records.len() > 1);
            let mut joined = String::new();
            for record in &records {
                assert!(record.len() <= RECORD_MAX && record.len() % 512 == 0);
                match decode(record) {
                    Event::Output { stream, text } => {
                        assert_eq!(stream, "stdout");
                        joined.push_str(&text);
                    }
                    other => panic!("{other:?}"),
                }
            }
            assert!(joined == text, "text of {unit:?} changed");
        }
    }

    #[test]
    fn a_long_error_keeps_its_message_and_the_newest_lines() {
        let event = Event::Error {
            message: "mount failed".into(),
            kernel_log: (0..100)
                .map(|n| format!("{n} {}", "y".repeat(4000)))
                .collect(),
        };
        let records = records(&event);
        assert_eq!(records.len(), 1);
        let Event::Error {
            message,
            kernel_log,
        } = decode(&records[0])
        else {
            panic!("not an error")
        };
        assert_eq!(message, "mount failed");
        assert!(kernel_log.last().unwrap().starts_with("99 "));
        assert!(kernel_log.len() >= 10);
    }

    #[test]
    fn an_endless_message_is_cut() {
        let event = Event::Error {
            message: "ö".repeat(1 << 20),
            kernel_log: Vec::new(),
        };
        let records = records(&event);
        assert_eq!(records.len(), 1);
        assert!(records[0].len() <= RECORD_MAX);
    }
}
