//! Reads and writes a file in blocks of a given size, buffered or past the page cache.

use super::{CHUNK, Executor};
use crate::aligned::Aligned;
use crate::batch::Failed;
use crate::error::AgentError;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::OFlags;
use rustix::io::{Errno, retry_on_intr};
use std::io::IoSlice;
use whichfs_workload::{Content, Op, generated_bytes};

/// Bytes of a file and the calls in which they are read or written.
struct Blocks<'a> {
    path: &'a str,
    offset: u64,
    len: u64,
    block: u64,
    direct: bool,
}

impl Blocks<'_> {
    /// Bytes before each call, and of it.
    fn each(&self) -> impl Iterator<Item = (u64, u64)> + use<> {
        let (len, block) = (self.len, self.block);
        (0..len.div_ceil(block)).map(move |at| (at * block, block.min(len - at * block)))
    }

    /// What the file is opened with, beside the mode.
    fn flags(&self) -> OFlags {
        match self.direct {
            true => OFlags::DIRECT,
            false => OFlags::empty(),
        }
    }
}

impl Executor<'_> {
    /// Performs the operations that name a block.
    pub(super) fn perform_blocks(&mut self, op: &Op) -> Result<(), AgentError> {
        let (blocks, flags, content) = match op {
            Op::ReadAt {
                path,
                offset,
                len,
                block,
                direct,
            } => (
                Blocks {
                    path,
                    offset: *offset,
                    len: *len,
                    block: *block,
                    direct: *direct,
                },
                OFlags::RDONLY,
                None,
            ),
            Op::WriteAt {
                path,
                offset,
                len,
                block,
                direct,
                content,
            } => (
                Blocks {
                    path,
                    offset: *offset,
                    len: *len,
                    block: *block,
                    direct: *direct,
                },
                OFlags::WRONLY | OFlags::CREATE,
                Some(content),
            ),
            Op::Rewrite {
                path,
                offset,
                len,
                block,
                content,
            } => (
                Blocks {
                    path,
                    offset: *offset,
                    len: *len,
                    block: *block,
                    direct: false,
                },
                OFlags::RDWR,
                Some(content),
            ),
            other => unreachable!("it names no block: {other:?}"),
        };
        if blocks.block == 0 {
            let text = format!("{}: blocks of 0 bytes; take at least 1", blocks.path);
            return Err(AgentError::new(text));
        }
        let reads = !matches!(op, Op::WriteAt { .. });
        let content = content.map(generated).transpose()?;
        self.with_open(blocks.path, flags | blocks.flags(), |executor, fd| {
            executor.blocks(fd, &blocks, reads, content)
        })
    }

    /// Reads each block, or writes it, or both.
    fn blocks(
        &mut self,
        fd: &OwnedFd,
        blocks: &Blocks<'_>,
        reads: bool,
        content: Option<(u8, u64)>,
    ) -> Result<(), AgentError> {
        // What is written counts, so that bytes of a rewrite count once.
        let mut read = 0;
        for (before, bytes) in blocks.each() {
            let offset = blocks.offset + before;
            if reads && !blocks.direct && bytes <= CHUNK {
                self.planned.read_left(fd.as_raw_fd(), bytes, offset);
            } else if reads {
                read += self.settle_blocks(blocks.path)?;
                read += self.read_block(fd, blocks.path, offset, bytes)?;
            }
            let Some((level, seed)) = content else {
                if self.planned.is_full() {
                    read += self.settle_blocks(blocks.path)?;
                }
                continue;
            };
            match generated_bytes(level, seed, before, bytes) {
                whole if whole.len() as u64 == bytes && !blocks.direct => {
                    self.planned.write_left(fd.as_raw_fd(), whole, offset);
                }
                _ => {
                    self.settle_blocks(blocks.path)?;
                    let pieces = pieces(level, seed, before, bytes);
                    match blocks.direct {
                        true => self.write_direct(fd, blocks.path, offset, &pieces)?,
                        false => self.write_pieces(fd, blocks.path, offset, &pieces)?,
                    }
                }
            }
            self.counts.bytes += bytes;
            if self.planned.is_full() {
                self.settle_blocks(blocks.path)?;
            }
        }
        read += self.settle_blocks(blocks.path)?;
        if content.is_none() {
            self.counts.bytes += read;
            self.counts.read_bytes += read;
        }
        Ok(())
    }

    /// Makes the planned calls on the file `path`; the bytes that they read.
    fn settle_blocks(&mut self, path: &str) -> Result<u64, AgentError> {
        let done = self.planned.perform();
        done.map_err(|Failed { what, errno, .. }| self.error(what, path, errno))
    }

    /// Reads up to `bytes` at `offset` in one call, if the file has them; how many it has.
    fn read_block(
        &mut self,
        fd: &OwnedFd,
        path: &str,
        offset: u64,
        bytes: u64,
    ) -> Result<u64, AgentError> {
        let mut buffer = self.take_aligned(bytes);
        let into = &mut buffer.bytes_mut()[..bytes as usize];
        let result = retry_on_intr(|| rustix::io::pread(fd, &mut *into, offset));
        self.aligned = Some(buffer);
        let count = result.map_err(|errno| self.error("read", path, errno))?;
        Ok(count as u64)
    }

    /// Writes `pieces` at `offset` past the page cache, in one call.
    fn write_direct(
        &mut self,
        fd: &OwnedFd,
        path: &str,
        offset: u64,
        pieces: &[&[u8]],
    ) -> Result<(), AgentError> {
        let bytes: usize = pieces.iter().map(|piece| piece.len()).sum();
        let mut buffer = self.take_aligned(bytes as u64);
        let mut rest = &mut buffer.bytes_mut()[..bytes];
        for piece in pieces {
            let (here, after) = rest.split_at_mut(piece.len());
            here.copy_from_slice(piece);
            rest = after;
        }
        let result = retry_on_intr(|| rustix::io::pwrite(fd, &buffer.bytes()[..bytes], offset));
        self.aligned = Some(buffer);
        match result {
            Ok(count) if count == bytes => Ok(()),
            // The rest of a direct write need not be aligned, so that it could not go on.
            Ok(_) => Err(self.error("write", path, Errno::NOSPC)),
            Err(errno) => Err(self.error("write", path, errno)),
        }
    }

    /// Writes `pieces` at `offset`, in one call if the system takes them all at once.
    fn write_pieces(
        &self,
        fd: &OwnedFd,
        path: &str,
        mut offset: u64,
        pieces: &[&[u8]],
    ) -> Result<(), AgentError> {
        let mut slices: Vec<IoSlice<'_>> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
        let mut rest = &mut slices[..];
        while !rest.is_empty() {
            match retry_on_intr(|| rustix::io::pwritev(fd, rest, offset)) {
                Ok(0) => return Err(self.error("write", path, Errno::NOSPC)),
                Ok(count) => {
                    offset += count as u64;
                    IoSlice::advance_slices(&mut rest, count);
                }
                Err(errno) => return Err(self.error("write", path, errno)),
            }
        }
        Ok(())
    }

    /// The aligned buffer, with at least `bytes`.
    fn take_aligned(&mut self, bytes: u64) -> Aligned {
        let fits = |buffer: &Aligned| buffer.bytes().len() as u64 >= bytes;
        // The smaller one goes before the larger one comes: a guest has no room for both.
        let kept = self.aligned.take().filter(fits);
        kept.unwrap_or_else(|| Aligned::new(bytes as usize))
    }
}

/// Level and seed of `content`.
fn generated(content: &Content) -> Result<(u8, u64), AgentError> {
    match content {
        Content::Generated { level, seed } => Ok((*level, *seed)),
        Content::File { path } => Err(AgentError::new(format!(
            "{path} cannot be written in blocks: only generated content can"
        ))),
    }
}

/// The bytes of a block that begins `before` bytes behind the begin of its content.
fn pieces(level: u8, seed: u64, before: u64, bytes: u64) -> Vec<&'static [u8]> {
    let mut pieces = Vec::new();
    let mut done = 0;
    while done < bytes {
        let piece = generated_bytes(level, seed, before + done, bytes - done);
        done += piece.len() as u64;
        pieces.push(piece);
    }
    pieces
}
