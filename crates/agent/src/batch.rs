//! System calls that are made together.
//!
//! To enter the lab's kernel costs more host time than most calls do, so it takes a list of calls
//! in one entry (`kernel/patches/0012-batches.patch`) and performs each as if it had come alone:
//! the filesystem sees no difference. Other kernels do not know that call; there the list is
//! performed call by call.

mod opened;
mod perform;

pub use opened::Opened;

use crate::prefaulted_buffer::PrefaultedBuffer;
use crate::syscall_abi32::{FADVISE, FSTAT, FSTATAT, LARGE, Stat, registers};
use rustix::fd::{AsFd, AsRawFd, RawFd};
use rustix::fs::{AtFlags, OFlags};
use rustix::io::Errno;
use std::ffi::CString;

/// Number of the call that performs a list of calls.
const UM_BATCH: i64 = 22342;

/// Calls after which a batch is full: some operations add a few more.
const CALLS: usize = 256;

/// Index of the path of a call on a file that is open already.
const NO_PATH: usize = usize::MAX;

/// Bytes that one call of [`Batch::read_head`] and the like reads at most.
pub const HEAD: usize = 64 << 10;

/// Bytes of a read call whose data nobody looks at: what coreutils' cp takes at a time.
const CHUNK: usize = 128 << 10;

/// A call as the kernel takes it (`struct um_call` of the patch).
#[repr(C)]
#[derive(Clone, Copy)]
struct Call {
    number: i64,
    arguments: [i64; 6],
    /// If not 0: the first argument is the result of the call so many before this.
    behind: i64,
    /// The batch stops behind a call whose result is not within these.
    least: i64,
    most: i64,
    result: i64,
}

/// What a call is for, and what to do where it stops a batch.
struct About {
    /// `open`, `write` …, for messages.
    what: &'static str,
    /// Index of its path.
    path: usize,
    then: Then,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    Fail,
    /// As many bytes as its result says were read.
    Count,
    /// The rest is written by another call.
    WriteRest,
    /// Read on until less than asked for comes.
    ReadOn,
}

/// A call that failed.
#[derive(Debug, PartialEq, Eq)]
pub struct Failed {
    /// What it was to do.
    pub what: &'static str,
    /// The path that it is about.
    pub path: String,
    /// What the kernel returned.
    pub errno: Errno,
}

/// Number of a call in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number(usize);

/// Calls to be made together, in order.
#[derive(Default)]
pub struct Batch {
    calls: Vec<Call>,
    about: Vec<About>,
    paths: Vec<CString>,
    /// Where data go that nobody looks at.
    scratch: Vec<u8>,
    heads: Vec<PrefaultedBuffer>,
    /// Heads that calls of this batch use.
    heads_used: usize,
    #[expect(clippy::vec_box, reason = "the kernel writes to where they are")]
    stats: Vec<Box<Stat>>,
    stats_used: usize,
    /// The kernel has said that it knows no batches.
    alone: bool,
}

impl Batch {
    /// Nothing is to be done.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Enough is to be done.
    pub fn is_full(&self) -> bool {
        self.calls.len() >= CALLS
    }

    /// Opens `path` in `dir`.
    ///
    /// # Errors
    /// `EINVAL` for a path with a zero byte, as for all calls with a path.
    pub fn open(
        &mut self,
        dir: impl AsFd,
        path: impl AsRef<[u8]>,
        flags: OFlags,
        mode: u32,
    ) -> Result<Number, Failed> {
        let rest = [i64::from(flags.bits()) | LARGE, i64::from(mode)];
        let number = number_of(libc::SYS_openat);
        self.at("open", number, dir, path.as_ref(), rest)
    }

    /// Writes `bytes` to what `file` opens, at `offset` (at its end if it appends): all of them.
    pub fn write(&mut self, file: Number, bytes: &'static [u8], offset: u64) {
        let arguments = [address(bytes), bytes.len() as i64, offset as i64];
        let number = self.on("write", number_of(libc::SYS_pwrite64), file, arguments);
        self.about[number.0].then = Then::WriteRest;
        self.calls[number.0].least = bytes.len() as i64;
    }

    /// Reads what `file` opens to its end; its bytes go nowhere.
    pub fn read_all(&mut self, file: Number) {
        self.scratch.resize(CHUNK, 0);
        let arguments = [self.scratch.as_mut_ptr() as i64, CHUNK as i64, 0];
        let number = self.on("read", number_of(libc::SYS_read), file, arguments);
        self.about[number.0].then = Then::ReadOn;
        // A regular file gives less than was asked for at its end only.
        self.calls[number.0].most = CHUNK as i64 - 1;
    }

    /// Reads the first bytes of what `file` opens; [`Batch::head`] tells them.
    pub fn read_head(&mut self, file: Number) -> Number {
        let head = self.head_place();
        self.on(
            "read",
            number_of(libc::SYS_read),
            file,
            [head, HEAD as i64, 0],
        )
    }

    /// Lists entries of the directory `file`, behind those listed before; [`Batch::head`] tells
    /// them as [`crate::dirents`] reads them.
    pub fn list(&mut self, file: impl Into<Opened>) -> Number {
        let head = self.head_place();
        self.on(
            "list",
            number_of(libc::SYS_getdents64),
            file,
            [head, HEAD as i64, 0],
        )
    }

    /// Reads at most `len` bytes (as many as fit in one call of [`Batch::read_all`] at most) at
    /// `offset` of the open file `fd`; they go nowhere.
    pub fn read_left(&mut self, fd: RawFd, len: u64, offset: u64) {
        self.scratch.resize(CHUNK, 0);
        let len = (len as usize).min(CHUNK) as i64;
        let arguments = [
            i64::from(fd),
            self.scratch.as_mut_ptr() as i64,
            len,
            offset as i64,
        ];
        let number = self.add("read", number_of(libc::SYS_pread64), arguments, 0);
        self.about[number.0].then = Then::Count;
    }

    /// Writes `bytes` to the open file `fd` at `offset`: all of them.
    pub fn write_left(&mut self, fd: RawFd, bytes: &'static [u8], offset: u64) {
        let len = bytes.len() as i64;
        let arguments = [i64::from(fd), address(bytes), len, offset as i64];
        let number = self.add("write", number_of(libc::SYS_pwrite64), arguments, 0);
        self.about[number.0].then = Then::WriteRest;
        self.calls[number.0].least = len;
    }

    /// Reads where the symbolic link `path` in `dir` leads; [`Batch::target`] tells it.
    ///
    /// # Errors
    /// As [`Batch::open`].
    pub fn read_link(&mut self, dir: impl AsFd, path: impl AsRef<[u8]>) -> Result<Number, Failed> {
        let rest = [self.head_place(), HEAD as i64];
        let number = number_of(libc::SYS_readlinkat);
        self.at("read link", number, dir, path.as_ref(), rest)
    }

    /// Asks for the attributes of `file`; [`Batch::attributes`] tells them.
    pub fn stat_open(&mut self, file: impl Into<Opened>) -> Number {
        let stat = self.stat_place();
        self.on("stat", FSTAT, file, [stat, 0, 0])
    }

    /// Asks for the attributes of `path` in `dir`, not following it.
    ///
    /// # Errors
    /// As [`Batch::open`].
    pub fn stat(&mut self, dir: impl AsFd, path: impl AsRef<[u8]>) -> Result<Number, Failed> {
        let stat = self.stat_place();
        let flags = i64::from(AtFlags::SYMLINK_NOFOLLOW.bits());
        let rest = [stat, flags];
        self.at("stat", FSTATAT, dir, path.as_ref(), rest)
    }

    /// Says that the first `bytes` of what `file` opens will be read (`POSIX_FADV_WILLNEED`): the
    /// kernel begins and does not wait.
    pub fn will_need(&mut self, file: Number, bytes: u64) {
        let arguments = [0, bytes as i64, i64::from(libc::POSIX_FADV_WILLNEED)];
        self.on("read ahead in", FADVISE, file, arguments);
    }

    /// Says that nothing of the open file `fd` will be read again (`POSIX_FADV_DONTNEED`).
    pub fn wont_need(&mut self, fd: RawFd) {
        let advice = i64::from(libc::POSIX_FADV_DONTNEED);
        let arguments = [i64::from(fd), 0, 0, advice];
        self.add("give up", FADVISE, arguments, 0);
    }

    /// Sets the mode of what `file` opens.
    pub fn chmod_open(&mut self, file: Number, mode: u32) {
        let arguments = [i64::from(mode), 0, 0];
        self.on("set mode of", number_of(libc::SYS_fchmod), file, arguments);
    }

    /// Closes `file`.
    pub fn close(&mut self, file: impl Into<Opened>) {
        self.on("close", number_of(libc::SYS_close), file, [0; 3]);
    }

    /// Deletes `path` in `dir`, a directory if `flags` say so.
    ///
    /// # Errors
    /// As [`Batch::open`].
    pub fn unlink(
        &mut self,
        dir: impl AsFd,
        path: impl AsRef<[u8]>,
        flags: AtFlags,
    ) -> Result<(), Failed> {
        let what = match flags.contains(AtFlags::REMOVEDIR) {
            true => "delete directory",
            false => "delete",
        };
        let flags = [i64::from(flags.bits()), 0];
        self.at(
            what,
            number_of(libc::SYS_unlinkat),
            dir,
            path.as_ref(),
            flags,
        )
        .map(drop)
    }

    /// Makes directory `path` in `dir`.
    ///
    /// # Errors
    /// As [`Batch::open`].
    pub fn mkdir(&mut self, dir: impl AsFd, path: &str, mode: u32) -> Result<(), Failed> {
        let mode = [i64::from(mode), 0];
        let path = path.as_bytes();
        self.at(
            "make directory",
            number_of(libc::SYS_mkdirat),
            dir,
            path,
            mode,
        )
        .map(drop)
    }

    /// Sets the mode of `path` in `dir`.
    ///
    /// # Errors
    /// As [`Batch::open`].
    pub fn chmod(&mut self, dir: impl AsFd, path: &str, mode: u32) -> Result<(), Failed> {
        let mode = [i64::from(mode), 0];
        let path = path.as_bytes();
        self.at(
            "set mode of",
            number_of(libc::SYS_fchmodat),
            dir,
            path,
            mode,
        )
        .map(drop)
    }

    /// Makes all calls, and no more of them after one that fails; returns the bytes that
    /// [`Batch::read_all`] read. The batch is empty then.
    ///
    /// # Errors
    /// The call that failed.
    pub fn perform(&mut self) -> Result<u64, Failed> {
        Ok(self.perform_and(|_| ())?.0)
    }

    /// As [`Batch::perform`]; also what `look` sees of the results before the batch is empty.
    ///
    /// # Errors
    /// The call that failed.
    pub fn perform_and<T>(&mut self, look: impl FnOnce(&Batch) -> T) -> Result<(u64, T), Failed> {
        let result = self.run_strictly().map(|bytes| (bytes, look(self)));
        self.clear();
        result
    }

    /// Makes all calls, whatever comes of each; [`Batch::result`] tells it until the batch is
    /// cleared.
    pub fn perform_each(&mut self) {
        for call in &mut self.calls {
            (call.least, call.most) = (i64::MIN, i64::MAX);
        }
        let mut at = 0;
        while at < self.calls.len() {
            at = self.run(at);
            if self.calls[at - 1].result == interrupted() {
                at -= 1;
            }
        }
    }

    /// What call `number` returned.
    ///
    /// # Errors
    /// What it failed with.
    pub fn result(&self, number: Number) -> Result<u64, Errno> {
        let result = self.calls[number.0].result;
        u64::try_from(result).map_err(|_| errno(result))
    }

    /// What the call `number` of [`Batch::read_head`] or [`Batch::list`] read; nothing if it
    /// failed.
    pub fn head(&self, number: Number) -> &[u8] {
        self.head_at(number, 1)
    }

    /// What the call `number` of [`Batch::read_link`] read; nothing if it failed.
    pub fn target(&self, number: Number) -> &[u8] {
        self.head_at(number, 2)
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

    fn head_at(&self, number: Number, argument: usize) -> &[u8] {
        let bytes = self.result(number).unwrap_or(0) as usize;
        let place = self.calls[number.0].arguments[argument];
        let head = self.heads.iter().find(|head| address(&head[..]) == place);
        head.map_or(&[], |head| &head[..bytes])
    }

    /// Forgets all calls.
    pub fn clear(&mut self) {
        self.calls.clear();
        self.about.clear();
        self.paths.clear();
        self.heads_used = 0;
        self.stats_used = 0;
    }

    fn head_place(&mut self) -> i64 {
        if self.heads_used == self.heads.len() {
            self.heads.push(PrefaultedBuffer::new(HEAD));
        }
        self.heads_used += 1;
        self.heads[self.heads_used - 1].as_mut_ptr() as i64
    }

    fn stat_place(&mut self) -> i64 {
        if self.stats_used == self.stats.len() {
            // SAFETY: `stat` is numbers alone, for which zeros are valid.
            self.stats.push(Box::new(unsafe { std::mem::zeroed() }));
        }
        self.stats_used += 1;
        std::ptr::from_mut(&mut *self.stats[self.stats_used - 1]) as i64
    }

    /// A call on `path` in `dir`.
    fn at(
        &mut self,
        what: &'static str,
        number: i64,
        dir: impl AsFd,
        path: &[u8],
        rest: [i64; 2],
    ) -> Result<Number, Failed> {
        let path = CString::new(path).map_err(|_| Failed {
            what,
            path: String::from_utf8_lossy(path).into_owned(),
            errno: Errno::INVAL,
        })?;
        let arguments = [
            i64::from(dir.as_fd().as_raw_fd()),
            path.as_ptr() as i64,
            rest[0],
            rest[1],
        ];
        self.paths.push(path);
        Ok(self.add(what, number, arguments, self.paths.len() - 1))
    }

    /// A call on an open file.
    fn on(
        &mut self,
        what: &'static str,
        number: i64,
        file: impl Into<Opened>,
        [b, c, d]: [i64; 3],
    ) -> Number {
        match file.into() {
            Opened::Left(fd) => self.add(what, number, [i64::from(fd), b, c, d], NO_PATH),
            Opened::By(file) => {
                let path = self.about[file.0].path;
                let added = self.add(what, number, [-1, b, c, d], path);
                self.calls[added.0].behind = (added.0 - file.0) as i64;
                added
            }
        }
    }

    fn add(&mut self, what: &'static str, number: i64, first: [i64; 4], path: usize) -> Number {
        let mut arguments = [0; 6];
        arguments[..4].copy_from_slice(&first);
        self.calls.push(Call {
            number,
            arguments,
            behind: 0,
            least: 0,
            most: i64::MAX,
            result: 0,
        });
        self.about.push(About {
            what,
            path,
            then: Then::Fail,
        });
        Number(self.calls.len() - 1)
    }
}

/// A number that is as wide as the processor's words.
#[allow(clippy::useless_conversion, reason = "32 bits on some")]
fn number_of(word: libc::c_long) -> i64 {
    i64::from(word)
}

fn interrupted() -> i64 {
    -i64::from(libc::EINTR)
}

fn errno(result: i64) -> Errno {
    let number = i32::try_from(result.saturating_neg()).unwrap_or(libc::EIO);
    Errno::from_raw_os_error(number)
}

fn address(bytes: &[u8]) -> i64 {
    bytes.as_ptr() as i64
}

#[cfg(test)]
#[path = "batch_tests.rs"]
mod tests;
