//! Open files as calls of a batch name them.

use super::{Batch, Number};
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
    /// `file`, once this batch has opened it, for calls of the next one.
    pub fn left_open(&self, file: Opened) -> Opened {
        match file {
            Opened::By(Number(call)) => Opened::Left(self.calls[call].result as RawFd),
            left @ Opened::Left(_) => left,
        }
    }
}
