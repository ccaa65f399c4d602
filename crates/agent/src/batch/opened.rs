//! Open files as calls of a batch name them.

use super::{Batch, CHUNK, Number, Then, number_of};
use rustix::fd::RawFd;

/// An open file, as calls of a batch name it.
#[derive(Clone, Copy, Debug)]
pub enum Opened {
    /// What a call of the same batch opens.
    By(Number),
    /// What is open already.
    Left(RawFd),
}

impl From<Number> for Opened {
    fn from(number: Number) -> Opened {
        Opened::By(number)
    }
}

impl From<RawFd> for Opened {
    fn from(fd: RawFd) -> Opened {
        Opened::Left(fd)
    }
}

impl Batch {
    /// Reads the next `len` bytes of `file`, as many as fit in one call of [`Batch::read_all`] at
    /// most; they go nowhere.
    pub fn read_next(&mut self, file: impl Into<Opened>, len: u64) {
        self.scratch.resize(CHUNK, 0);
        let arguments = [
            self.scratch.as_mut_ptr() as i64,
            len.min(CHUNK as u64) as i64,
            0,
        ];
        let number = self.on("read", number_of(libc::SYS_read), file, arguments);
        self.about[number.0].then = Then::Count;
    }

    /// `file`, once this batch has opened it, for calls of the next one.
    pub fn left_open(&self, file: Opened) -> Opened {
        match file {
            Opened::By(Number(call)) => Opened::Left(self.calls[call].result as RawFd),
            left @ Opened::Left(_) => left,
        }
    }
}
