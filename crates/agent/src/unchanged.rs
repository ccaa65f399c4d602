//! Files that cannot have changed since an inspection read them.
//!
//! The lab's card holds what was written to it and nothing else, and the lab tells what was written
//! since the inspection before ([`Written`]). A file whose bytes lie where they lay then, none of
//! them written since, has the content that it had: it is looked up and its attributes are told,
//! but it is not read again. Everything else is read: on a card that may change what it holds,
//! about which the lab says nothing; on a filesystem that gives no addresses of its device, or
//! keeps data with metadata, encoded, or in common with other files; a file of which the page
//! cache has something newer than the card, then or now; and one that is not as it was.

use std::collections::HashMap;
use std::path::Path;
use whichfs_trial::{Found, Node, Written};

/// The lab's first disk.
const FIRST_DISK: &str = "/dev/vda";

/// Filesystems (as statfs numbers them) that `fiemap` gives addresses of their one device for, so
/// far as its flags say nothing else, and that read directly: ext2 to ext4, xfs, f2fs, nilfs2.
const FILESYSTEMS: [u64; 4] = [0xef53, 0x5846_5342, 0xf2f5_2010, 0x3434];

/// Bytes that may be kept of the files of an inspection: what does not fit is read again.
const ROOM: usize = 8 << 20;

/// What an inspection keeps for the next.
#[derive(Default)]
pub struct Memory {
    /// What the inspection before kept.
    before: HashMap<String, Kept>,
    /// What was written since then.
    written: Written,
    /// What this one keeps, if another follows.
    now: Option<HashMap<String, Kept>>,
    /// Bytes for which there is room.
    room: usize,
    /// The card is a good one, and the filesystem is one of [`FILESYSTEMS`].
    is_plain: bool,
    /// Bytes of files that were not read again.
    unread: u64,
}

/// A file that was read.
struct Kept {
    size: u64,
    digest: u64,
    /// Where its bytes lie.
    places: Vec<(u64, u64)>,
    /// Its sectors were asked for.
    wanted: bool,
    sectors: Vec<u32>,
    zeros: Vec<(u64, u64)>,
}

impl Kept {
    fn bytes(&self, path: &str) -> usize {
        let pairs = self.places.len() + self.zeros.len();
        size_of::<(String, Kept)>() + path.len() + 16 * pairs + 4 * self.sectors.len()
    }
}

impl Memory {
    /// An inspection of `dir` begins; `written` is what the lab says; `another` may follow.
    pub fn begin(&mut self, dir: &Path, written: Option<Written>, another: bool) {
        self.is_plain = written.is_some() && is_plain(dir);
        self.before = match self.is_plain && written.as_ref().is_some_and(|it| it.ranges.is_some())
        {
            true => self.now.take().unwrap_or_default(),
            false => HashMap::new(),
        };
        self.written = written.unwrap_or_default();
        self.now = (self.is_plain && another).then(HashMap::new);
        self.room = ROOM;
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

    /// Whether `path` need perhaps not be read.
    pub fn knows(&self, path: &str) -> bool {
        self.before.contains_key(path)
    }

    /// Whether it matters where the content of `path` lies.
    pub fn asks(&self, path: &str) -> bool {
        self.now.is_some() || self.knows(path)
    }

    /// What is to be told of the file `path` of `size` bytes at `places`, if it has not changed;
    /// its mode is not known.
    pub fn unchanged(
        &mut self,
        path: &str,
        size: u64,
        places: Option<&[(u64, u64)]>,
        wanted: bool,
    ) -> Option<Found> {
        let kept = self.before.get(path)?;
        let is_same = kept.size == size && kept.wanted == wanted && *kept.places == *places?;
        if !is_same || self.written.touches(&kept.places) {
            return None;
        }
        self.unread += size;
        let digest = kept.digest;
        Some(Found {
            path: path.to_owned(),
            node: Node::File { size, digest },
            mode: 0,
            sectors: kept.sectors.clone(),
            zeros: kept.zeros.clone(),
        })
    }

    /// Keeps `found`, which was read whole and lies at `places`, if that is known.
    pub fn keep(&mut self, found: &Found, wanted: bool, places: Option<Vec<(u64, u64)>>) {
        let (Some(now), Some(places)) = (&mut self.now, places) else {
            return;
        };
        let Node::File { size, digest } = found.node else {
            return;
        };
        let kept = Kept {
            size,
            digest,
            places,
            wanted,
            sectors: found.sectors.clone(),
            zeros: found.zeros.clone(),
        };
        if let Some(left) = self.room.checked_sub(kept.bytes(&found.path)) {
            self.room = left;
            now.insert(found.path.clone(), kept);
        }
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

    /// What an inspection has that another one follows, or that follows one in which `a` was read
    /// and since which `written` was.
    fn memory(written: Option<Vec<(u64, u64)>>) -> Memory {
        let mut memory = Memory {
            now: Some(HashMap::new()),
            room: ROOM,
            ..Memory::default()
        };
        memory.keep(&found("a"), true, Some(PLACES.to_vec()));
        memory.keep(&found("b"), true, None);
        memory.before = memory.now.take().unwrap();
        memory.written = written.map_or_else(Written::default, Written::of);
        memory
    }

    #[test]
    fn a_file_that_nobody_wrote_is_told_as_it_was() {
        let mut memory = memory(Some(vec![(0, 4096), (8192, 40960), (45056, 99999)]));
        assert!(memory.knows("a") && memory.asks("a") && !memory.knows("b") && !memory.asks("b"));
        let told = memory.unchanged("a", 6000, Some(PLACES), true);
        let mode = 0;
        assert_eq!(told, Some(Found { mode, ..found("a") }));
        assert_eq!(memory.unread(), 6000);
        assert_eq!(memory.unchanged("b", 6000, Some(PLACES), true), None);
    }

    #[test]
    fn a_file_of_which_a_sector_was_written_is_read() {
        for sector in [(4096, 4608), (7680, 8192), (44544, 45056), (0, 1 << 40)] {
            let mut memory = memory(Some(vec![sector]));
            let told = memory.unchanged("a", 6000, Some(PLACES), true);
            assert_eq!(told, None, "{sector:?}");
        }
        let mut unknown = memory(None);
        assert_eq!(unknown.unchanged("a", 6000, Some(PLACES), true), None);
        assert_eq!(unknown.unread(), 0);
    }

    #[test]
    fn a_file_that_is_not_as_it_was_is_read() {
        let mut memory = memory(Some(Vec::new()));
        assert!(memory.unchanged("a", 6000, Some(PLACES), true).is_some());
        assert_eq!(memory.unchanged("a", 6001, Some(PLACES), true), None);
        assert_eq!(memory.unchanged("a", 6000, Some(PLACES), false), None);
        assert_eq!(memory.unchanged("a", 6000, None, true), None);
        let moved = [PLACES[1], PLACES[0]];
        assert_eq!(memory.unchanged("a", 6000, Some(&moved), true), None);
        assert_eq!(memory.unchanged("a", 6000, Some(&PLACES[..1]), true), None);
    }

    #[test]
    fn little_is_kept_and_nothing_where_none_follows() {
        let mut memory = memory(Some(Vec::new()));
        memory.keep(&found("a"), true, Some(PLACES.to_vec()));
        assert!(memory.now.is_none(), "no inspection follows");
        (memory.now, memory.room) = (Some(HashMap::new()), 1000);
        for name in ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"] {
            memory.keep(&found(name), true, Some(PLACES.to_vec()));
        }
        let kept = memory.now.unwrap().len();
        assert!((2..8).contains(&kept), "{kept}");
    }

    #[test]
    fn elsewhere_than_on_the_first_disk_everything_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let mut memory = memory(Some(Vec::new()));
        memory.now = Some(memory.before.drain().collect());
        // Nobody notes what is written.
        memory.begin(dir.path(), None, true);
        assert!(!memory.knows("a") && !memory.asks("a") && !memory.reads_directly());
        memory.begin(Path::new("/proc"), Some(Written::of(Vec::new())), true);
        assert!(!memory.asks("a") && !memory.reads_directly());
    }
}
