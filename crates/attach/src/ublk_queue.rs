//! The queue of a ublk device: requests in, completions out at the card's times.
//!
//! One thread, because the driver takes commands of a queue from one alone: it sleeps until a
//! request comes or a completion is nearly due, and then looks at both. The card is serial and
//! requests come in order, so what is due first is served first.

use crate::clock::monotonic;
use crate::delivery::SPIN_NS;
use crate::error::AttachError;
use crate::lateness::Punctuality;
use crate::model::Model;
use crate::node::Node;
use crate::runtime::Owner;
use crate::serving::Serving;
use crate::thread::prepare;
use crate::ublk::{self, COMMIT_AND_FETCH, DEPTH, Descriptor, Disk, FETCH, IoCommand};
use io_uring::{IoUring, cqueue, opcode, types};
use rustix::io::{pread, pwrite};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::collections::VecDeque;
use std::ffi::c_void;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;
use whichfs_blockdev::Payload;
use whichfs_card::{Request, RequestKind};
use whichfs_units::SECTOR;

/// Where the bytes of request 0 are in the server's device, and how far the next ones are.
const DATA_OFFSET: u64 = 0x8000_0000;
const DATA_STRIDE: u64 = 1 << 25;
/// `UBLK_IO_F_FUA`.
const FUA: u32 = 1 << 13;
/// Where a queue ends: its device is stopped.
const ABORT: i32 = -libc::ENODEV;

/// Makes a ublk device of `owner` before `model` and serves it.
///
/// # Errors
/// What the driver refuses. Nothing is left then.
pub(crate) fn serve(
    model: Arc<Model>,
    punctuality: Arc<Punctuality>,
    disk: &Disk,
    owner: &Owner,
) -> Result<(Node, Serving), AttachError> {
    let number = ublk::add(disk, owner.tag())
        .map_err(|error| AttachError::io("make a ublk device", error))?;
    let served = begin(number, model, punctuality);
    let shown = served.and_then(|serving| match ublk::start(number) {
        Ok(()) => Ok(serving),
        Err(error) => {
            let _ = ublk::stop(number);
            Err(AttachError::io("start the ublk device", error))
        }
    });
    match shown {
        Ok(serving) => Ok((Node::of_ublk(number), serving)),
        Err(error) => {
            let _ = ublk::delete(number);
            Err(error)
        }
    }
}

/// A thread that waits for requests of device `number`; returns when it does.
fn begin(
    number: u32,
    model: Arc<Model>,
    punctuality: Arc<Punctuality>,
) -> Result<Serving, AttachError> {
    let (ready, is_ready) = channel();
    let body = move || {
        prepare();
        let mut queue = Queue::new(number, model, punctuality)?;
        queue.fetch_all(&ready)?;
        queue.run()
    };
    let serving = Serving::begin("whichfs-ublk", body)?;
    match is_ready.recv() {
        Ok(()) => Ok(serving),
        // The thread is gone, and says why.
        Err(_) => {
            let why = serving.join().err();
            let why = why.unwrap_or_else(|| io::Error::other("it ended at once"));
            Err(AttachError::io("serve the ublk device", why))
        }
    }
}

/// A request that waits for its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Waiting {
    due: u64,
    tag: u16,
    result: i32,
}

/// What the thread has.
struct Queue {
    ring: IoUring,
    server: OwnedFd,
    descriptors: Descriptors,
    model: Arc<Model>,
    punctuality: Arc<Punctuality>,
    waiting: VecDeque<Waiting>,
    buffer: Vec<u8>,
    /// Requests that may still come.
    open: u16,
}

impl Queue {
    fn new(number: u32, model: Arc<Model>, punctuality: Arc<Punctuality>) -> io::Result<Queue> {
        let server = ublk::server(number)?;
        Ok(Queue {
            // Room for a command of each request.
            ring: IoUring::new(DEPTH.into())?,
            descriptors: Descriptors::map(&server)?,
            server,
            model,
            punctuality,
            waiting: VecDeque::new(),
            buffer: Vec::new(),
            open: DEPTH,
        })
    }

    /// Asks the driver for requests; tells `ready` when it knows.
    fn fetch_all(&mut self, ready: &Sender<()>) -> io::Result<()> {
        for tag in 0..DEPTH {
            self.push(FETCH, tag, 0)?;
        }
        self.ring.submit()?;
        // Nobody listens any more: the device is about to be stopped.
        let _ = ready.send(());
        Ok(())
    }

    /// Serves until the device is stopped.
    fn run(&mut self) -> io::Result<()> {
        while self.open > 0 {
            self.wait()?;
            self.deliver()?;
            self.take()?;
        }
        Ok(())
    }

    /// Sleeps until a request comes or the next completion is nearly due.
    fn wait(&mut self) -> io::Result<()> {
        let Some(first) = self.waiting.front() else {
            return ublk::wait(&self.ring, None);
        };
        let until = first.due.saturating_sub(SPIN_NS);
        match until.checked_sub(monotonic()) {
            Some(left) if left > 0 => ublk::wait(&self.ring, Some(Duration::from_nanos(left))),
            _ => {
                std::hint::spin_loop();
                self.submit()
            }
        }
    }

    /// Ends what is due.
    fn deliver(&mut self) -> io::Result<()> {
        while let Some(&Waiting { due, tag, result }) = self.waiting.front()
            && due <= monotonic()
        {
            self.waiting.pop_front();
            self.push(COMMIT_AND_FETCH, tag, result)?;
            self.submit()?;
            self.punctuality.add(due, monotonic());
        }
        Ok(())
    }

    /// Gives the card the requests that have come.
    fn take(&mut self) -> io::Result<()> {
        while let Some(answer) = self.next_answer() {
            match answer.result() {
                0 => self.serve(answer.user_data() as u16)?,
                ABORT => self.open -= 1,
                errno => return Err(io::Error::from_raw_os_error(-errno)),
            }
            // A long transfer must not keep others from their times.
            self.deliver()?;
        }
        Ok(())
    }

    fn next_answer(&mut self) -> Option<cqueue::Entry> {
        self.ring.completion().next()
    }

    /// Asks the card when a request is done, and moves its bytes.
    fn serve(&mut self, tag: u16) -> io::Result<()> {
        let arrival = monotonic();
        let descriptor = self.descriptors.read(tag);
        let (due, result) = match request(&descriptor) {
            None => (None, -libc::EOPNOTSUPP),
            Some(request) => self.ask(arrival, tag, &request),
        };
        match due {
            None => self.push(COMMIT_AND_FETCH, tag, result),
            Some(due) => {
                let next = Waiting { due, tag, result };
                let place = self.waiting.partition_point(|other| other.due <= due);
                self.waiting.insert(place, next);
                Ok(())
            }
        }
    }

    /// When `request` is due and what its result is.
    fn ask(&mut self, arrival: u64, tag: u16, request: &Request) -> (Option<u64>, i32) {
        let at = DATA_OFFSET + u64::from(tag) * DATA_STRIDE;
        let bytes = match request.op {
            RequestKind::Read | RequestKind::Write => request.bytes as usize,
            RequestKind::Discard | RequestKind::Flush => 0,
        };
        if self.buffer.len() < bytes {
            self.buffer.resize(bytes, 0);
        }
        let data = &mut self.buffer[..bytes];
        let brought = match request.op {
            RequestKind::Write => all(data.len(), |done| {
                pread(&self.server, &mut data[done..], at + done as u64)
            }),
            _ => Ok(()),
        };
        if let Err(errno) = brought {
            return (None, -errno);
        }
        let payload = match request.op {
            RequestKind::Read => Payload::Fill(data),
            RequestKind::Write => Payload::Data(data),
            RequestKind::Discard | RequestKind::Flush => Payload::None,
        };
        let ending = self.model.serve(arrival, request, payload);
        let data = &self.buffer[..bytes];
        let ended = ending.result.and_then(|()| match request.op {
            RequestKind::Read => all(bytes, |done| {
                pwrite(&self.server, &data[done..], at + done as u64)
            }),
            _ => Ok(()),
        });
        (
            ending.due,
            ended.map_or_else(|errno| -errno, |()| bytes as i32),
        )
    }

    fn push(&mut self, code: u32, tag: u16, result: i32) -> io::Result<()> {
        let command = IoCommand {
            queue: 0,
            tag,
            result,
            address: 0,
        };
        let entry = opcode::UringCmd16::new(types::Fd(self.server.as_raw_fd()), code)
            .cmd(command.bytes())
            .build()
            .user_data(tag.into());
        // SAFETY: the command names no memory.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.map_err(io::Error::other)
    }

    /// Gives the kernel the commands that wait for it.
    fn submit(&mut self) -> io::Result<()> {
        if self.ring.submission().is_empty() {
            return Ok(());
        }
        match self.ring.submit() {
            // They wait for the next time.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            other => other.map(drop),
        }
    }
}

/// Repeats `transfer`, which is told how many bytes were moved, until it has moved `bytes`.
///
/// # Errors
/// The errno.
fn all(
    bytes: usize,
    mut transfer: impl FnMut(usize) -> rustix::io::Result<usize>,
) -> Result<(), i32> {
    let mut done = 0;
    while done < bytes {
        match transfer(done) {
            Ok(0) => return Err(libc::EIO),
            Ok(moved) => done += moved,
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.raw_os_error()),
        }
    }
    Ok(())
}

/// The card's request for what the driver tells; `None` for what no card has.
fn request(descriptor: &Descriptor) -> Option<Request> {
    let offset = descriptor.first_sector * SECTOR;
    let bytes = u64::from(descriptor.sectors) * SECTOR;
    Some(match descriptor.op_flags & 0xFF {
        0 => Request::read(offset, bytes),
        1 => Request {
            fua: descriptor.op_flags & FUA != 0,
            ..Request::write(offset, bytes)
        },
        2 => Request::flush(),
        3 => Request::discard(offset, bytes),
        _ => return None,
    })
}

/// The requests' descriptors, which the driver writes and the server reads.
struct Descriptors {
    first: *const Descriptor,
    bytes: usize,
}

// SAFETY: the mapping is the value's own and only read.
unsafe impl Send for Descriptors {}

impl Descriptors {
    fn map(server: &OwnedFd) -> io::Result<Descriptors> {
        let page = rustix::param::page_size();
        let bytes = (usize::from(DEPTH) * size_of::<Descriptor>()).next_multiple_of(page);
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: a new mapping, at a place that the kernel chooses.
        let first = unsafe {
            mmap(
                std::ptr::null_mut(),
                bytes,
                ProtFlags::READ,
                flags,
                server,
                0,
            )?
        };
        Ok(Descriptors {
            first: first.cast(),
            bytes,
        })
    }

    fn read(&self, tag: u16) -> Descriptor {
        assert!(tag < DEPTH, "the driver names no other");
        // SAFETY: within the mapping; the driver wrote it before it told of the request, and
        // writes no more until that is answered.
        unsafe { self.first.add(tag.into()).read_volatile() }
    }
}

impl Drop for Descriptors {
    fn drop(&mut self) {
        // SAFETY: mapped by `map`; nothing refers to it any more.
        let _ = unsafe { munmap(self.first.cast_mut().cast::<c_void>(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn descriptor(op_flags: u32) -> Descriptor {
        Descriptor {
            op_flags,
            sectors: 8,
            first_sector: 3,
            address: 0,
        }
    }

    #[test]
    fn what_the_driver_tells_is_a_request_of_the_card() {
        let (offset, bytes) = (1536, 4096);
        assert_eq!(request(&descriptor(0)), Some(Request::read(offset, bytes)));
        let write = Request::write(offset, bytes);
        assert_eq!(request(&descriptor(1)), Some(write));
        let forced = Request { fua: true, ..write };
        assert_eq!(request(&descriptor(1 | FUA | 1 << 11)), Some(forced));
        assert_eq!(request(&descriptor(2)), Some(Request::flush()));
        assert_eq!(
            request(&descriptor(3)),
            Some(Request::discard(offset, bytes))
        );
        for other in [4, 5, 13] {
            assert_eq!(request(&descriptor(other)), None, "{other}");
        }
    }

    #[test]
    fn a_transfer_goes_on_until_all_is_moved() {
        let mut calls = Vec::new();
        let moved = all(10, |done| {
            calls.push(done);
            Ok(4.min(10 - done))
        });
        assert_eq!((moved, calls), (Ok(()), vec![0, 4, 8]));
        assert_eq!(all(10, |_| Ok(0)), Err(libc::EIO));
        let refused = |_| Err(rustix::io::Errno::ACCESS);
        assert_eq!(all(10, refused), Err(libc::EACCES));
        assert_eq!(all(0, refused), Ok(()));
    }
}
