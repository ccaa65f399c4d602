//! Files that cannot have changed since an inspection read them.
//!
//! The lab's card holds what was written to it and nothing else, and the lab tells what was written
//! since the inspection before ([`Written`]). A file whose bytes lie where they lay then, none of
//! them written since, has the content that it had: it is looked up and its attributes are told,
//! but it is not read again. Everything else is read: on a card that may change what it holds,
//! about which the lab says nothing; on a filesystem that gives no addresses of its device, or
//! keeps data with metadata, encoded, or in common with other files; a file of which the page
//! cache has something newer than the card, then or now; and one that is not as it was.

use std::path::Path;
use whichfs_trial::{Found, Node, Written, content_digest, fingerprint};

/// The lab's first disk.
const FIRST_DISK: &str = "/dev/vda";

/// Filesystems (as statfs numbers them) that `fiemap` gives addresses of their one device for, so
/// far as its flags say nothing else, and that read directly: ext2 to ext4, xfs, f2fs, nilfs2.
const FILESYSTEMS: [u64; 4] = [0xef53, 0x5846_5342, 0xf2f5_2010, 0x3434];

/// Files of which something is kept: what does not fit is read again. A page of memory costs the
/// lab as much as reading a small file, so little is kept of each.
const FILES_MAX: usize = 1 << 18;
/// Digests and runs of sectors that are kept of all files together.
const MORE_MAX: usize = 1 << 20;
/// Files that are passed over, at most, to find the next one: both looks are in one order.
const AHEAD: usize = 4096;

/// What an inspection keeps for the next.
#[derive(Default)]
pub struct Memory {
    /// What the inspection before kept, in its order, and the first that was not asked for yet.
    before: Files,
    next: usize,
    /// What was written since then.
    written: Written,
    /// What this one keeps, if another follows.
    now: Option<Files>,
    /// The card is a good one, and the filesystem is one of [`FILESYSTEMS`].
    is_plain: bool,
    /// Bytes of files that were not read again.
    unread: u64,
    /// For what a file is known by.
    bytes: Vec<u8>,
}

#[derive(Default)]
struct Files {
    files: Vec<File>,
    more: Vec<More>,
    /// Digests and runs of sectors in `more`.
    count: usize,
}

/// A file that was read.
struct File {
    /// Digest of its path.
    path: u64,
    /// Fingerprint of its path, its size, where its bytes lie, and whether its sectors were asked
    /// for.
    print: [u64; 2],
    digest: u64,
    /// Index of what more is to be told of it, from 1.
    more: u32,
}

/// Digests of sectors and runs of sectors of zeros.
type More = (Vec<u32>, Vec<(u64, u64)>);

/// Number of a file that the inspection before read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known(usize);

impl Memory {
    /// An inspection of `dir` begins; `written` is what the lab says; `another` may follow.
    pub fn begin(&mut self, dir: &Path, written: Option<Written>, another: bool) {
        self.is_plain = written.is_some() && is_plain(dir);
        let known = written.as_ref().is_some_and(|it| it.ranges.is_some());
        self.before = match self.is_plain && known {
            true => self.now.take().unwrap_or_default(),
            false => Files::default(),
        };
        self.next = 0;
        self.written = written.unwrap_or_default();
        self.now = (self.is_plain && another).then(Files::default);
        self.unread = 0;
    }

    /// Bytes of files that this inspection has not read.
    pub fn unread(&self) -> u64 {
        self.unread
    }

    /// Whether large files are read past the page cache. What they lack of it is nothing that an
    /// inspection looks at, and a card that fails now and then would be asked in another way.
    pub fn reads_directly(&self) -> bool {
        self.is_plain
    }

    /// The file `path`, if it need perhaps not be read; files are asked for in the order in which
    /// they are looked at.
    pub fn find(&mut self, path: &str) -> Option<Known> {
        let path = content_digest(path.as_bytes());
        let later = self.before.files.iter().enumerate().skip(self.next);
        let mut later = later.take(AHEAD);
        let (at, _) = later.find(|(_, file)| file.path == path)?;
        self.next = at + 1;
        Some(Known(at))
    }

    /// Whether it matters where the content of every file lies.
    pub fn keeps(&self) -> bool {
        self.now.is_some()
    }

    /// What is to be told of the file `path` of `size` bytes at `places`, if it has not changed
    /// since it was read as `known`; its mode is not known.
    pub fn unchanged(
        &mut self,
        known: Known,
        path: &str,
        size: u64,
        places: &[(u64, u64)],
        wanted: bool,
    ) -> Option<Found> {
        let print = self.print(path, size, places, wanted);
        let kept = self.before.files.get(known.0)?;
        if kept.print != print || self.written.touches(places) {
            return None;
        }
        let more = (kept.more as usize).checked_sub(1);
        let more = more.and_then(|more| self.before.more.get(more));
        let (sectors, zeros) = more.cloned().unwrap_or_default();
        self.unread += size;
        let digest = kept.digest;
        Some(Found {
            path: path.to_owned(),
            node: Node::File { size, digest },
            mode: 0,
            sectors,
            zeros,
        })
    }

    /// Keeps `found`, which was read whole and lies at `places`, if that is known.
    pub fn keep(&mut self, found: &Found, wanted: bool, places: Option<&[(u64, u64)]>) {
        let (Node::File { size, digest }, Some(places)) = (&found.node, places) else {
            return;
        };
        let print = self.print(&found.path, *size, places, wanted);
        let Some(now) = &mut self.now else {
            return;
        };
        let count = found.sectors.len() + found.zeros.len();
        if now.files.len() >= FILES_MAX || now.count + count > MORE_MAX {
            return;
        }
        if count > 0 {
            now.count += count;
            now.more.push((found.sectors.clone(), found.zeros.clone()));
        }
        now.files.push(File {
            path: content_digest(found.path.as_bytes()),
            print,
            digest: *digest,
            more: if count > 0 { now.more.len() as u32 } else { 0 },
        });
    }

    fn print(&mut self, path: &str, size: u64, places: &[(u64, u64)], wanted: bool) -> [u64; 2] {
        let bytes = &mut self.bytes;
        bytes.clear();
        let numbers = places.iter().flat_map(|&(begin, end)| [begin, end]);
        let numbers = [u64::from(wanted), size].into_iter().chain(numbers);
        bytes.extend(numbers.flat_map(u64::to_le_bytes));
        bytes.extend_from_slice(path.as_bytes());
        let print = fingerprint(bytes);
        [print as u64, (print >> 64) as u64]
    }
}

/// Whether `dir` is on the first disk itself, with one of [`FILESYSTEMS`].
fn is_plain(dir: &Path) -> bool {
    let number = |stat: rustix::fs::StatFs| stat.f_type as u64 & 0xffff_ffff;
    let known = rustix::fs::statfs(dir).is_ok_and(|stat| FILESYSTEMS.contains(&number(stat)));
    let (Ok(below), Ok(disk)) = (rustix::fs::stat(dir), rustix::fs::stat(FIRST_DISK)) else {
        return false;
    };
    known && below.st_dev == disk.st_rdev
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const PLACES: &[(u64, u64)] = &[(4096, 8192), (40960, 45056)];

    fn found(path: &str) -> Found {
        let (size, digest) = (6000, 99);
        Found {
            path: path.to_owned(),
            node: Node::File { size, digest },
            mode: 0o644,
            sectors: vec![1, 2],
            zeros: vec![(3, 1)],
        }
    }

    /// What an inspection has that follows one in which `a` was read and since which `written` was.
    fn memory(written: Option<Vec<(u64, u64)>>) -> Memory {
        let mut memory = Memory {
            now: Some(Files::default()),
            ..Memory::default()
        };
        for path in ["z", "a", "c"] {
            memory.keep(&found(path), true, Some(PLACES));
        }
        memory.keep(&found("b"), true, None);
        memory.before = memory.now.take().unwrap();
        memory.written = written.map_or_else(Written::default, Written::of);
        memory
    }

    #[test]
    fn a_file_that_nobody_wrote_is_told_as_it_was() {
        let mut memory = memory(Some(vec![(0, 4096), (8192, 40960), (45056, 99999)]));
        assert_eq!(memory.find("b"), None);
        let known = memory.find("a").unwrap();
        let told = memory.unchanged(known, "a", 6000, PLACES, true);
        let mode = 0;
        assert_eq!(told, Some(Found { mode, ..found("a") }));
        assert_eq!(memory.unread(), 6000);
        assert_eq!(memory.find("z"), None, "its turn is over");
        assert_eq!(memory.find("c"), Some(Known(2)));
    }

    #[test]
    fn a_file_of_which_a_sector_was_written_is_read() {
        for sector in [(4096, 4608), (7680, 8192), (44544, 45056), (0, 1 << 40)] {
            let mut memory = memory(Some(vec![sector]));
            let known = memory.find("a").unwrap();
            let told = memory.unchanged(known, "a", 6000, PLACES, true);
            assert_eq!(told, None, "{sector:?}");
        }
        let mut unknown = memory(None);
        let known = unknown.find("a").unwrap();
        assert_eq!(unknown.unchanged(known, "a", 6000, PLACES, true), None);
        assert_eq!(unknown.unread(), 0);
    }

    #[test]
    fn a_file_that_is_not_as_it_was_is_read() {
        let mut memory = memory(Some(Vec::new()));
        let known = memory.find("a").unwrap();
        let mut told = |path: &str, size, places: &[(u64, u64)], wanted| {
            let told = memory.unchanged(known, path, size, places, wanted);
            told.is_some()
        };
        assert!(told("a", 6000, PLACES, true));
        assert!(!told("c", 6000, PLACES, true));
        assert!(!told("a", 6001, PLACES, true));
        assert!(!told("a", 6000, PLACES, false));
        assert!(!told("a", 6000, &[PLACES[1], PLACES[0]], true));
        assert!(!told("a", 6000, &PLACES[..1], true));
    }

    #[test]
    fn little_is_kept_and_nothing_where_none_follows() {
        let mut memory = memory(Some(Vec::new()));
        assert!(!memory.keeps());
        memory.keep(&found("a"), true, Some(PLACES));
        assert!(memory.now.is_none(), "no inspection follows");
        memory.now = Some(Files::default());
        let mut large = found("a");
        large.sectors = vec![0; MORE_MAX / 4];
        for _ in 0..9 {
            memory.keep(&large, true, Some(PLACES));
        }
        assert_eq!(memory.now.unwrap().files.len(), 3);
    }

    #[test]
    fn elsewhere_than_on_the_first_disk_everything_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let mut memory = memory(Some(Vec::new()));
        memory.now = Some(std::mem::take(&mut memory.before));
        // Nobody notes what is written.
        memory.begin(dir.path(), None, true);
        assert!(memory.find("z").is_none() && !memory.keeps() && !memory.reads_directly());
        memory.begin(Path::new("/proc"), Some(Written::of(Vec::new())), true);
        assert!(memory.find("z").is_none() && !memory.keeps() && !memory.reads_directly());
    }
}
