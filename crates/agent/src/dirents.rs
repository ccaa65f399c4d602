//! What getdents64 gives: names and kinds. Pure.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Bytes before the name: inode and offset of 8, length of 2, kind of 1.
const HEADER: usize = 19;

/// What a directory says an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A regular file.
    File,
    /// An entry with entries of its own (`DT_DIR`).
    Directory,
    /// A symbolic link.
    Symlink,
    /// Something else, or the filesystem does not say it along with the name.
    Other,
}

/// The entries in `bytes`, without `.` and `..`; what is malformed ends them.
pub fn entries(bytes: &[u8]) -> impl Iterator<Item = (&OsStr, Kind)> {
    let mut rest = bytes;
    let all = std::iter::from_fn(move || {
        let length = u16::from_le_bytes([*rest.get(16)?, *rest.get(17)?]);
        let entry = rest.get(..usize::from(length))?;
        let name = entry.get(HEADER..)?;
        rest = &rest[entry.len()..];
        let end = name.iter().position(|&byte| byte == 0)?;
        let kind = match entry[18] {
            libc::DT_REG => Kind::File,
            libc::DT_DIR => Kind::Directory,
            libc::DT_LNK => Kind::Symlink,
            _ => Kind::Other,
        };
        Some((OsStr::from_bytes(&name[..end]), kind))
    });
    all.filter(|(name, _)| *name != "." && *name != "..")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, kind: u8) -> Vec<u8> {
        let length = (HEADER + name.len() + 1).next_multiple_of(8);
        let mut bytes = vec![0; length];
        bytes[16..18].copy_from_slice(&(length as u16).to_le_bytes());
        bytes[18] = kind;
        bytes[HEADER..HEADER + name.len()].copy_from_slice(name.as_bytes());
        bytes
    }

    #[test]
    fn names_and_kinds_are_read() {
        let listed = [
            entry(".", libc::DT_DIR),
            entry("..", libc::DT_DIR),
            entry("file", libc::DT_REG),
            entry("a link", libc::DT_LNK),
            entry("socket", libc::DT_SOCK),
        ]
        .concat();
        let found: Vec<_> = entries(&listed).collect();
        let right = [
            (OsStr::new("file"), Kind::File),
            (OsStr::new("a link"), Kind::Symlink),
            (OsStr::new("socket"), Kind::Other),
        ];
        assert_eq!(found, right);
    }

    #[test]
    fn rubbish_ends_the_list() {
        let good = entry("file", libc::DT_REG);
        for cut in 0..good.len() {
            assert_eq!(entries(&good[..cut]).count(), 0);
        }
        let mut endless = good.clone();
        endless[16..18].fill(0);
        assert_eq!(entries(&endless).count(), 0);
        assert_eq!(entries(&[&good[..], &[0xff; 40]].concat()).count(), 1);
    }
}
