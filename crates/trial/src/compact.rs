//! What an inspection found, in few bytes: of a tree of ten thousand files JSON is a tenth of what
//! a look at it costs.
//!
//! [`MARK`], four bytes with the length of the rest, then the rest: numbers in groups of seven
//! bits, lowest first, with the highest bit of a byte for "more follows"; texts with their length
//! before them; digests little-endian. What is behind that is padding.

use crate::event::Event;
use crate::found::{DirectoryEntry, Node};

/// The first byte, which no JSON has.
pub const MARK: u8 = 0xf0;

/// Bytes before the rest.
const HEADER: usize = 5;

/// Which event it is.
const FOUND: u8 = 1;
const SECTORS: u8 = 2;

/// Kinds of entries.
const DIRECTORY: u8 = 0;
const FILE: u8 = 1;
const SYMLINK: u8 = 2;
const OTHER: u8 = 3;
const UNREADABLE: u8 = 4;

/// `event` in this form; `None` for those that have JSON only.
pub fn compact(event: &Event) -> Option<Vec<u8>> {
    let mut bytes = vec![MARK, 0, 0, 0, 0];
    match event {
        Event::Found { entries } => {
            bytes.push(FOUND);
            put(&mut bytes, entries.len() as u64);
            for found in entries {
                put_found(&mut bytes, found);
            }
        }
        Event::Sectors {
            path,
            first,
            digests,
        } => {
            bytes.push(SECTORS);
            put_text(&mut bytes, path);
            put(&mut bytes, *first);
            put_digests(&mut bytes, digests);
        }
        _ => return None,
    }
    let length = u32::try_from(bytes.len() - HEADER).ok()?;
    bytes[1..HEADER].copy_from_slice(&length.to_le_bytes());
    Some(bytes)
}

/// The event that [`compact`] made into these bytes, with or without padding behind them; `None`
/// if they are not such.
pub fn expand(bytes: &[u8]) -> Option<Event> {
    let (&[mark, a, b, c, d], rest) = bytes.split_first_chunk()?;
    let length = u32::from_le_bytes([a, b, c, d]) as usize;
    let mut reader = Reader(rest.get(..length)?);
    if mark != MARK {
        return None;
    }
    let event = match reader.byte()? {
        FOUND => Event::Found {
            entries: reader.list(Reader::found)?,
        },
        SECTORS => Event::Sectors {
            path: reader.text()?,
            first: reader.number()?,
            digests: reader.digests()?,
        },
        _ => return None,
    };
    reader.0.is_empty().then_some(event)
}

fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    put(bytes, text.len() as u64);
    bytes.extend_from_slice(text.as_bytes());
}

fn put_digests(bytes: &mut Vec<u8>, digests: &[u32]) {
    put(bytes, digests.len() as u64);
    bytes.extend(digests.iter().flat_map(|digest| digest.to_le_bytes()));
}

fn put_found(bytes: &mut Vec<u8>, found: &DirectoryEntry) {
    put_text(bytes, &found.path);
    match &found.node {
        Node::Directory => bytes.push(DIRECTORY),
        Node::File { size, digest } => {
            bytes.push(FILE);
            put(bytes, *size);
            bytes.extend_from_slice(&digest.to_le_bytes());
        }
        Node::Symlink { target } => {
            bytes.push(SYMLINK);
            put_text(bytes, target);
        }
        Node::Other => bytes.push(OTHER),
        Node::Unreadable { error } => {
            bytes.push(UNREADABLE);
            put_text(bytes, error);
        }
    }
    put(bytes, u64::from(found.mode));
    put_digests(bytes, &found.sectors);
    put(bytes, found.zeros.len() as u64);
    for (first, count) in &found.zeros {
        put(bytes, *first);
        put(bytes, *count);
    }
}

/// What has not been read yet. All lengths are checked against it.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            number |= bits << shift;
            if byte & 0x80 == 0 {
                // Bits that do not fit, and zeros that are not needed, are nobody's.
                let fits = bits << shift >> shift == bits;
                return (fits && (byte != 0 || shift == 0)).then_some(number);
            }
        }
        None
    }

    /// The number of things of which each takes a byte at least.
    fn count(&mut self) -> Option<usize> {
        let count = usize::try_from(self.number()?).ok()?;
        (count <= self.0.len()).then_some(count)
    }

    fn list<T>(&mut self, one: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.count()?;
        (0..count).map(|_| one(self)).collect()
    }

    fn text(&mut self) -> Option<String> {
        let length = self.count()?;
        let text = str::from_utf8(self.take(length)?).ok()?;
        Some(text.to_owned())
    }

    fn digests(&mut self) -> Option<Vec<u32>> {
        let bytes = self.count()?.checked_mul(4)?;
        let (digests, _) = self.take(bytes)?.as_chunks();
        Some(digests.iter().map(|d| u32::from_le_bytes(*d)).collect())
    }

    fn found(&mut self) -> Option<DirectoryEntry> {
        let path = self.text()?;
        let node = match self.byte()? {
            DIRECTORY => Node::Directory,
            FILE => Node::File {
                size: self.number()?,
                digest: u64::from_le_bytes(*self.take(8)?.first_chunk()?),
            },
            SYMLINK => Node::Symlink {
                target: self.text()?,
            },
            OTHER => Node::Other,
            UNREADABLE => Node::Unreadable {
                error: self.text()?,
            },
            _ => return None,
        };
        Some(DirectoryEntry {
            path,
            node,
            mode: u32::try_from(self.number()?).ok()?,
            sectors: self.digests()?,
            zeros: self.list(|reader| Some((reader.number()?, reader.number()?)))?,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn entry(path: &str, node: Node) -> DirectoryEntry {
        DirectoryEntry {
            path: path.to_owned(),
            node,
            mode: 0o7755,
            sectors: Vec::new(),
            zeros: Vec::new(),
        }
    }

    fn events() -> [Event; 3] {
        let mut file = entry(
            "d/ä",
            Node::File {
                size: u64::MAX,
                digest: 0x0123_4567_89ab_cdef,
            },
        );
        file.sectors = vec![0, 1, u32::MAX];
        file.zeros = vec![(0, 1), (127, 128), (1 << 40, u64::MAX)];
        let target = || "../\"\\\n".to_owned();
        let entries = vec![
            entry("d", Node::Directory),
            file,
            entry("", Node::Symlink { target: target() }),
            entry("pipe", Node::Other),
            entry("bad", Node::Unreadable { error: target() }),
        ];
        [
            Event::Found { entries },
            Event::Found {
                entries: Vec::new(),
            },
            Event::Sectors {
                path: "d/ä".to_owned(),
                first: 8192,
                digests: (0..8192).collect(),
            },
        ]
    }

    #[test]
    fn what_was_found_comes_back_with_and_without_padding() {
        for event in events() {
            let mut bytes = compact(&event).unwrap();
            assert_eq!(expand(&bytes).as_ref(), Some(&event));
            bytes.resize(bytes.len().next_multiple_of(512) + 512, 0);
            assert_eq!(expand(&bytes), Some(event));
        }
        assert_eq!(compact(&Event::Done), None);
    }

    #[test]
    fn bytes_that_are_cut_or_changed_are_refused_or_another_event() {
        for event in events() {
            let bytes = compact(&event).unwrap();
            for cut in 0..bytes.len().min(300) {
                assert_eq!(expand(&bytes[..cut]), None, "{cut} bytes");
            }
            for at in 0..bytes.len().min(300) {
                for bit in 0..8 {
                    let mut other = bytes.clone();
                    other[at] ^= 1 << bit;
                    assert_ne!(expand(&other).as_ref(), Some(&event), "bit {bit} of {at}");
                }
            }
        }
    }

    #[test]
    fn lengths_beyond_the_end_take_no_memory() {
        let mut bytes = vec![MARK, 12, 0, 0, 0, FOUND];
        bytes.extend([0xff; 9]);
        bytes.extend([1, 0]);
        assert_eq!(expand(&bytes), None);
    }
}
