//! Calls that tell where the content of an open file lies on its device, and whether what is in
//! the page cache is what lies there.

use super::{Batch, FSTATAT, Number, Stat, number_of};
use rustix::fd::RawFd;
use rustix::fs::OFlags;
use rustix::io::Errno;

/// Extents that are asked for: a file in more pieces is not worth the memory.
const EXTENTS: usize = 72;

/// `cachestat` (Linux 6.5), the same on all processors.
const CACHESTAT: i64 = 451;
/// `FS_IOC_FIEMAP`.
const FIEMAP: i64 = 0xc020_660b;

/// `FIEMAP_EXTENT_LAST` and `FIEMAP_EXTENT_MERGED`: with any other flag the bytes may not be those
/// of the device at that address, or be somebody else's too.
const PLAIN: u32 = 0x1 | 0x1000;

/// `struct fiemap_extent`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved: [u64; 2],
    flags: u32,
    more_reserved: [u32; 3],
}

/// `struct fiemap` with its extents.
#[repr(C)]
struct Map {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    room: u32,
    reserved: u32,
    extents: [Extent; EXTENTS],
}

/// `struct cachestat_range` and `struct cachestat`, in pages.
#[repr(C)]
#[derive(Default)]
struct Cached {
    offset: u64,
    length: u64,
    cached: u64,
    dirty: u64,
    under_way: u64,
    evicted: u64,
    evicted_lately: u64,
}

impl Cached {
    /// All that is cached is what the device has.
    fn is_clean(&self) -> bool {
        self.dirty == 0 && self.under_way == 0
    }
}

struct Answer {
    cached: Cached,
    map: Map,
}

/// Memory for answers: the kernel writes to where they are.
#[derive(Default)]
pub(super) struct Answers {
    all: Vec<Box<Answer>>,
    used: usize,
}

impl Answers {
    pub(super) fn clear(&mut self) {
        self.used = 0;
    }

    /// Number of an answer that nobody uses, ready for the questions.
    fn next(&mut self) -> usize {
        let map = Map {
            start: 0,
            length: u64::MAX,
            flags: 0,
            mapped: 0,
            room: EXTENTS as u32,
            reserved: 0,
            extents: [Extent::default(); EXTENTS],
        };
        let cached = Cached::default();
        if self.used == self.all.len() {
            self.all.push(Box::new(Answer { cached, map }));
        } else {
            let answer = &mut self.all[self.used];
            answer.cached = cached;
            // Extents beyond those mapped are never looked at.
            (answer.map.flags, answer.map.mapped) = (0, 0);
        }
        self.used += 1;
        self.used - 1
    }
}

/// The calls that ask for the place of a file.
pub struct Asked {
    cached: Number,
    mapped: Number,
    answer: usize,
}

impl Batch {
    /// Asks where the content of what `file` opens lies; [`Batch::places`] tells it.
    pub fn ask_places(&mut self, file: Number) -> Asked {
        let answer = self.answers.next();
        let Answer { cached, map } = &mut *self.answers.all[answer];
        let [range, figures] = pointers(cached).map(|pointer| pointer as i64);
        let map = std::ptr::from_mut(map) as i64;
        let cached = self.on("ask about", CACHESTAT, file, [range, figures, 0]);
        let ioctl = number_of(libc::SYS_ioctl);
        let mapped = self.on("ask about", ioctl, file, [FIEMAP, map, 0]);
        Asked {
            cached,
            mapped,
            answer,
        }
    }

    /// Where on its device the first `size` bytes of the file lie, begin and end of each piece in
    /// the order of the file; `None` if any of them lie nowhere, or not as they are, or if
    /// something newer is in the page cache.
    pub fn places(&self, asked: &Asked, size: u64) -> Option<Vec<(u64, u64)>> {
        self.result(asked.cached).ok()?;
        self.result(asked.mapped).ok()?;
        let answer = self.answers.all.get(asked.answer)?;
        let extents = answer.map.extents.get(..answer.map.mapped as usize)?;
        answer.cached.is_clean().then(|| whole(extents, size))?
    }

    /// Has `fd`, which an earlier batch opened with `flags` and left open, read past the page cache
    /// if it can, and reads what follows in it into `buffer`; returns the bytes. The batch must be
    /// empty, and is then.
    ///
    /// # Errors
    /// Why it cannot be read; it may still be readable through the page cache.
    pub fn read_directly(
        &mut self,
        fd: RawFd,
        flags: OFlags,
        buffer: &mut [u8],
    ) -> Result<usize, Errno> {
        let (fd, flags) = (i64::from(fd), i64::from((flags | OFlags::DIRECT).bits()));
        let set = [fd, i64::from(libc::F_SETFL), flags, 0];
        self.add("set flags of", number_of(libc::SYS_fcntl), set, 0);
        let read = [fd, buffer.as_mut_ptr() as i64, buffer.len() as i64, 0];
        let read = self.add("read", number_of(libc::SYS_read), read, 0);
        self.perform_each();
        let result = self.result(read);
        self.clear();
        result.map(|bytes| bytes as usize)
    }

    /// Size and mode that the call `number` of [`Batch::stat_open`] told.
    ///
    /// # Errors
    /// What it failed with.
    pub fn attributes(&self, number: Number) -> Result<(u64, u32), Errno> {
        let stat = self.stat_of(number)?;
        Ok((u64::try_from(stat.st_size).unwrap_or(0), stat.st_mode))
    }

    /// All that the call `number` of [`Batch::stat_open`] or [`Batch::stat`] told.
    ///
    /// # Errors
    /// What it failed with.
    pub fn stat_of(&self, number: Number) -> Result<&Stat, Errno> {
        self.result(number)?;
        let call = &self.calls[number.0];
        // The place comes behind the file, or behind directory and path.
        let place = call.arguments[if call.number == FSTATAT { 2 } else { 1 }];
        let mut stats = self.stats.iter().map(|stat| &**stat);
        let stat = stats.find(|stat| std::ptr::from_ref::<Stat>(stat) as i64 == place);
        stat.ok_or(Errno::INVAL)
    }
}

/// Where the kernel reads the range, all of the file, and where it puts the figures.
fn pointers(cached: &mut Cached) -> [*mut u64; 2] {
    let range = std::ptr::from_mut(cached).cast::<u64>();
    [range, range.wrapping_add(2)]
}

/// The places of `size` bytes, if `extents` have all of them one after the other.
fn whole(extents: &[Extent], size: u64) -> Option<Vec<(u64, u64)>> {
    let mut places = Vec::new();
    let mut end = 0;
    for extent in extents {
        if end >= size {
            break;
        }
        if extent.flags & !PLAIN != 0 || extent.logical != end || extent.length == 0 {
            return None;
        }
        end = end.checked_add(extent.length)?;
        places.push((extent.physical, extent.physical.checked_add(extent.length)?));
    }
    (end >= size).then_some(places)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::aligned::Aligned;
    use rustix::fs::Mode;
    use std::io::{Seek, SeekFrom};
    use std::os::fd::AsRawFd;
    use std::path::Path;

    fn extent(logical: u64, physical: u64, length: u64, flags: u32) -> Extent {
        Extent {
            logical,
            physical,
            length,
            flags,
            ..Extent::default()
        }
    }

    #[test]
    fn only_a_file_that_lies_whole_and_plain_has_places() {
        let two = [extent(0, 8192, 4096, 0x1000), extent(4096, 512, 8192, 1)];
        let both = vec![(8192, 12288), (512, 8704)];
        assert_eq!(whole(&two, 12288), Some(both.clone()));
        assert_eq!(whole(&two, 4097), Some(both));
        assert_eq!(whole(&two, 4096), Some(vec![(8192, 12288)]));
        assert_eq!(whole(&two, 12289), None, "the end lies nowhere");
        assert_eq!(whole(&two[1..], 100), None, "it begins with a hole");
        assert_eq!(whole(&[], 1), None);
        assert_eq!(whole(&[], 0), Some(Vec::new()));
        assert_eq!(whole(&[two[0], extent(8192, 512, 4096, 1)], 12288), None);
        // Unknown, delayed, encoded, encrypted, not aligned, inline, tail, unwritten, shared.
        for flag in [2, 4, 8, 0x80, 0x100, 0x200, 0x400, 0x800, 0x2000] {
            let odd = [two[0], extent(4096, 512, 8192, 1 | flag)];
            assert_eq!(whole(&odd, 12288), None, "{flag:#x}");
            assert_eq!(whole(&odd, 4096), Some(vec![(8192, 12288)]));
        }
        let far = [extent(0, u64::MAX - 5, 4096, 0)];
        assert_eq!(whole(&far, 1), None);
    }

    #[test]
    fn what_is_not_on_the_device_yet_is_not_clean() {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, [7; 10_000]).unwrap();
        let file = std::fs::File::open(&path).unwrap();
        let ask = || {
            let mut batch = Batch::default();
            let root = rustix::fs::CWD;
            let path = path.to_str().unwrap();
            let file = batch.open(root, path, OFlags::RDONLY, Mode::empty().bits());
            let asked = batch.ask_places(file.unwrap());
            batch.perform_each();
            batch.places(&asked, 10_000)
        };
        assert_eq!(ask(), None, "it was just written");
        file.sync_all().unwrap();
        // Kernels before 6.5 and some filesystems do not tell.
        if let Some(places) = ask() {
            let bytes: u64 = places.iter().map(|(begin, end)| end - begin).sum();
            assert!(bytes >= 10_000, "{places:?}");
        }
    }

    #[test]
    fn what_can_be_read_directly_is_read() {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = dir.path().join("a");
        let content: Vec<u8> = (0..20_000_u32).map(|n| (n / 7) as u8).collect();
        std::fs::write(&path, &content).unwrap();
        let mut buffer = Aligned::new(16 << 10);
        for dir in [path.as_path(), Path::new("/proc/version")] {
            let mut file = std::fs::File::open(dir).unwrap();
            let mut right = std::fs::read(dir).unwrap();
            if right.len() > 4096 {
                right.drain(..4096);
                file.seek(SeekFrom::Start(4096)).unwrap();
            }
            let mut batch = Batch::default();
            let into = buffer.bytes_mut();
            let read = batch.read_directly(file.as_raw_fd(), OFlags::RDONLY, into);
            let bytes = read.unwrap();
            assert!(batch.is_empty());
            assert_eq!(buffer.bytes()[..bytes], right[..bytes]);
            assert!(bytes == right.len().min(16 << 10), "{bytes}");
        }
        let closed = Batch::default().read_directly(-1, OFlags::RDONLY, &mut [0]);
        assert_eq!(closed, Err(Errno::BADF));
    }
}
