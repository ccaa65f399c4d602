//! The FUSE filesystem: one directory with one file, which is the card.
//!
//! The kernel sends reads, writes, fsync (flush) and fallocate (discard); all go to the
//! model in the order of arrival and are answered by [`Delivery`] at their times, so as many
//! are under way as the kernel sends. `FOPEN_DIRECT_IO`: no page of the file is ever cached.

use crate::clock::monotonic;
use crate::delivery::Delivery;
use crate::model::{Ending, Model};
use crate::thread::prepare;
use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen,
    ReplyStatfs, ReplyWrite, Request as Call, WriteFlags,
};
use parking_lot::{Mutex, MutexGuard};
use std::ffi::OsStr;
use std::io;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
use whichfs_blockdev::Payload;
use whichfs_card::Request;

/// Name of the file of the card called `card`, attached by the process `pid`: the loop device shows
/// it, and what is measured on one card must not pass for another's.
pub(crate) fn name_of(card: &str, pid: u32) -> String {
    let plain = |c: char| match c.is_ascii_alphanumeric() || "-_.".contains(c) {
        true => c,
        false => '-',
    };
    let name: String = card.chars().map(plain).take(NAME_MAX).collect();
    format!("{name}-{pid}")
}

/// Letters of a card's name in that of its file: the kernel shows 64 of a loop device's.
const NAME_MAX: usize = 40;
/// The largest transfer in one request: 256 pages, all that kernels without the
/// `fs.fuse.max_pages_limit` setting (before 6.13) take.
const TRANSFER_BYTES: u32 = 1 << 20;
/// The largest request in KiB that FUSE takes in one piece. Data that begin within a
/// page touch one page more than their length has, and FUSE counts pages.
pub(crate) const FUSE_LARGEST_KIB: u64 = TRANSFER_BYTES as u64 / 1024 - 4;
/// Requests under way at once: more than the queue of a loop device holds.
const BACKGROUND: u16 = 1024;
const FILE: INodeNo = INodeNo(2);
/// Nothing changes behind the kernel's back.
const FOR_EVER: Duration = Duration::from_secs(1 << 30);

/// What the file is.
pub(crate) struct CardFile {
    /// Its name in its directory.
    pub name: String,
    pub model: Arc<Model>,
    pub delivery: Arc<Delivery>,
    pub bytes: u64,
    /// What a discard is rounded to: the loop driver asks `statfs` for it.
    pub discard_bytes: u32,
    pub discard: bool,
    pub buffers: Arc<Buffers>,
}

/// Buffers of reads that were answered, for the next ones: fresh memory costs a page fault for
/// each 4 KiB, which a large read would feel.
#[derive(Default)]
pub(crate) struct Buffers(Mutex<Vec<Vec<u8>>>);

impl Buffers {
    /// More than a host controller has under way are not kept.
    const KEPT: usize = 64;

    fn take(&self, bytes: usize) -> Vec<u8> {
        let kept = self.lock().pop();
        let mut buffer = kept.unwrap_or_default();
        buffer.resize(bytes, 0);
        buffer
    }

    fn put(&self, buffer: Vec<u8>) {
        let mut kept = self.lock();
        if kept.len() < Buffers::KEPT {
            kept.push(buffer);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.0.lock()
    }
}

impl CardFile {
    fn attributes(&self, ino: INodeNo) -> FileAttr {
        let is_file = ino == FILE;
        FileAttr {
            ino,
            size: if is_file { self.bytes } else { 0 },
            blocks: if is_file { self.bytes / 512 } else { 0 },
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: match is_file {
                true => FileType::RegularFile,
                false => FileType::Directory,
            },
            perm: if is_file { 0o600 } else { 0o500 },
            nlink: if is_file { 1 } else { 2 },
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }

    /// Has `answer`, which carries `bytes` to the kernel, called with the result when the
    /// request is due.
    fn finish(
        &self,
        ending: Ending,
        bytes: usize,
        answer: impl FnOnce(Result<(), Errno>) + Send + 'static,
    ) {
        let result = ending.result.map_err(Errno::from_i32);
        match ending.due {
            None => answer(result),
            Some(due) => self
                .delivery
                .at(due, bytes, Box::new(move || answer(result))),
        }
    }

    /// Serves a request that has no data and ends it.
    fn plain(&self, arrival: u64, request: &Request, reply: ReplyEmpty) {
        let ending = self.model.serve(arrival, request, Payload::None);
        self.finish(ending, 0, |result| match result {
            Ok(()) => reply.ok(),
            Err(errno) => reply.error(errno),
        });
    }
}

impl Filesystem for CardFile {
    fn init(&mut self, _: &Call, config: &mut KernelConfig) -> io::Result<()> {
        let wanted = InitFlags::FUSE_ASYNC_DIO | InitFlags::FUSE_MAX_PAGES;
        config.add_capabilities(wanted).map_err(|missing| {
            io::Error::other(format!(
                "this kernel's FUSE lacks {missing:?}: Linux 4.20 or newer is needed"
            ))
        })?;
        let refused = |least| io::Error::other(format!("FUSE limits its requests to {least}"));
        config.set_max_write(TRANSFER_BYTES).map_err(refused)?;
        config
            .set_max_background(BACKGROUND)
            .and_then(|_| config.set_congestion_threshold(BACKGROUND))
            .map_err(|least| refused(u32::from(least)))?;
        Ok(())
    }

    fn lookup(&self, _: &Call, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if parent == INodeNo::ROOT && name == self.name.as_str() {
            reply.entry(&FOR_EVER, &self.attributes(FILE), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _: &Call, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&FOR_EVER, &self.attributes(ino));
    }

    fn open(&self, _: &Call, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        if ino != FILE {
            return reply.error(Errno::EISDIR);
        }
        let flags = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
        reply.opened(FileHandle(1), flags);
    }

    fn read(
        &self,
        _: &Call,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let arrival = monotonic();
        prepare();
        let mut data = self.buffers.take(size as usize);
        let request = Request::read(offset, u64::from(size));
        let payload = Payload::Fill(&mut data);
        let ending = self.model.serve(arrival, &request, payload);
        let buffers = Arc::clone(&self.buffers);
        self.finish(ending, size as usize, move |result| {
            match result {
                Ok(()) => reply.data(&data),
                Err(errno) => reply.error(errno),
            }
            buffers.put(data);
        });
    }

    fn write(
        &self,
        _: &Call,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let arrival = monotonic();
        prepare();
        let request = Request::write(offset, data.len() as u64);
        let written = data.len() as u32;
        let ending = self.model.serve(arrival, &request, Payload::Data(data));
        self.finish(ending, 0, move |result| match result {
            Ok(()) => reply.written(written),
            Err(errno) => reply.error(errno),
        });
    }

    fn fsync(&self, _: &Call, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.plain(monotonic(), &Request::flush(), reply);
    }

    /// The loop driver sends a discard as a hole. Zeros it is told to write itself: no card
    /// has a command for that.
    fn fallocate(
        &self,
        _: &Call,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let arrival = monotonic();
        if !self.discard || mode & libc::FALLOC_FL_PUNCH_HOLE == 0 {
            return reply.error(Errno::EOPNOTSUPP);
        }
        self.plain(arrival, &Request::discard(offset, length), reply);
    }

    /// The loop driver's own reference ends here; nothing is kept for it.
    fn flush(&self, _: &Call, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn statfs(&self, _: &Call, _: INodeNo, reply: ReplyStatfs) {
        let blocks = self.bytes / u64::from(self.discard_bytes);
        let unit = self.discard_bytes;
        reply.statfs(blocks, 0, 0, 1, 0, unit, 255, unit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_attached_card_has_a_name_of_its_own() {
        assert_eq!(name_of("a1-32gb", 7), "a1-32gb-7");
        assert_eq!(name_of("my card/x", 8), "my-card-x-8");
        assert!(name_of(&"x".repeat(500), 9).len() < 64);
    }
}
