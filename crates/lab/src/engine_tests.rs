//! The engine against a fake guest that speaks both protocols over real sockets: the message
//! form of the calendar (kernels before 6.12), and guests that talk nonsense.
#![allow(clippy::unwrap_used)]

use crate::block::BlockGeometry;
use crate::calendar::{CalendarMessage, CalendarOperation, MESSAGE_BYTES};
use crate::device::{Backend, Device};
use crate::disk::Disk;
use crate::engine::{Engine, Finished};
use crate::error::LabError;
use crate::guest::Guest;
use crate::memory::GuestMemory;
use crate::socket::Peer;
use crate::vhost::{CALL_REPLY_BYTES, Header, Region};
use crate::watchdog::{GuestLimits, Watchdog};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::AtomicBool;
use whichfs_card::{Card, Contents, Profile, builtin};
use whichfs_units::Nanos;

const MEMORY: u64 = 0x8000;
const TABLE: u64 = 0x1000;
const AVAILABLE: u64 = 0x2000;
const USED: u64 = 0x3000;
const HEADER: u64 = 0x4000;
const DATA: u64 = 0x5000;
const STATUS: u64 = 0x6000;
const NEVER: u64 = i64::MAX as u64;

/// The guest's end of the connections.
struct FakeGuest {
    calendar: UnixStream,
    disk: UnixStream,
    channel: Option<UnixStream>,
    memory: GuestMemory,
    file: OwnedFd,
}

fn disk() -> Disk {
    let (name, text) = builtin()[0];
    let profile = Profile::parse(name, text).unwrap();
    let geometry = BlockGeometry {
        bytes: 1 << 30,
        segments_max: 128,
        write_cache: false,
        discard_bytes: None,
    };
    let contents = Contents::new(profile.capacity_bytes());
    let card = Card::fresh(&profile);
    Disk::new(card, contents, 4 << 20, geometry, Nanos(1000))
}

/// Runs the engine against `guest` and returns how it ended and what is left.
fn run(guest: impl FnOnce(FakeGuest) + Send + 'static) -> (Result<(), LabError>, Finished) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("c");
    let listener = UnixListener::bind(&path).unwrap();
    let (ours, theirs) = UnixStream::pair().unwrap();
    let speaker = std::thread::spawn(move || {
        let file = memfd_create("fake guest", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, MEMORY).unwrap();
        guest(FakeGuest {
            calendar: UnixStream::connect(path).unwrap(),
            disk: theirs,
            channel: None,
            memory: GuestMemory::map(&[region()], vec![file.try_clone().unwrap()]).unwrap(),
            file,
        });
    });
    let device = Device::new(0, Peer::Connected(ours), Backend::Card(Box::new(disk())));
    let cancelled = AtomicBool::new(false);
    let watch = Watchdog::new(GuestLimits::default(), &cancelled);
    let mut ignore = |_: &crate::engine::Stamped| {};
    let mut engine = Engine::new(listener, vec![device], watch, &mut ignore).unwrap();
    let mut process = Guest::stand_in();
    let result = engine.run(&mut process, &mut || {});
    let mut finished = engine.finish();
    // A guest that waits for the engine's verdict sees it in this.
    finished
        .devices
        .iter_mut()
        .for_each(|device| device.peer.close());
    speaker.join().unwrap();
    (result, finished)
}

fn region() -> Region {
    Region {
        guest_address: 0,
        bytes: MEMORY,
        file_offset: 0,
    }
}

fn words(values: &[u64]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_ne_bytes())
        .collect()
}

impl FakeGuest {
    fn hear(&mut self) -> CalendarMessage {
        let mut bytes = [0; MESSAGE_BYTES];
        self.calendar.read_exact(&mut bytes).unwrap();
        // RUN and FREE_UNTIL are not decoded: no guest may send them.
        let operation = match u32::from_ne_bytes(bytes[..4].try_into().unwrap()) {
            6 => CalendarOperation::Run,
            7 => CalendarOperation::FreeUntil,
            _ => CalendarOperation::Ack,
        };
        CalendarMessage {
            operation,
            sequence: u32::from_ne_bytes(bytes[4..8].try_into().unwrap()),
            time: u64::from_ne_bytes(bytes[8..].try_into().unwrap()),
        }
    }

    /// Says something and hears its acknowledgement, with the time that it carries.
    fn say(&mut self, operation: CalendarOperation, time: u64) -> u64 {
        let mut message = CalendarMessage::new(operation, time);
        message.sequence = 7;
        self.calendar.write_all(&message.encode()).unwrap();
        let answer = self.hear();
        assert_eq!(
            (answer.operation, answer.sequence),
            (CalendarOperation::Ack, 7)
        );
        answer.time
    }

    /// Hears something of the engine's own accord and acknowledges it.
    fn heed(&mut self, operation: CalendarOperation) -> u64 {
        let message = self.hear();
        assert_eq!(message.operation, operation);
        self.calendar.write_all(&message.ack(0).encode()).unwrap();
        message.time
    }

    fn send(&mut self, request: u32, flags: u32, payload: &[u8], files: &[BorrowedFd]) {
        let header = Header {
            request,
            flags: 1 | flags,
            size: payload.len() as u32,
        };
        let bytes = [&header.encode()[..], payload].concat();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !files.is_empty() {
            assert!(ancillary.push(SendAncillaryMessage::ScmRights(files)));
        }
        let data = [IoSlice::new(&bytes)];
        let sent = sendmsg(&self.disk, &data, &mut ancillary, SendFlags::NOSIGNAL);
        assert_eq!(sent.unwrap(), bytes.len());
    }

    /// Tells of memory, ring and channel, as virtio_uml does.
    fn set_up(&mut self) {
        let one = [1_u32.to_ne_bytes(), 0_u32.to_ne_bytes()].concat();
        let table = [one, words(&[0, MEMORY, 0, 0])].concat();
        let file = self.file.try_clone().unwrap();
        self.send(5, 0, &table, &[file.as_fd()]);
        let (ours, theirs) = UnixStream::pair().unwrap();
        self.send(21, 0, &[], &[theirs.as_fd()]);
        self.channel = Some(ours);
        let entries = [0_u32.to_ne_bytes(), 8_u32.to_ne_bytes()].concat();
        self.send(8, 0, &entries, &[]);
        self.send(9, 0, &words(&[0, TABLE, USED, AVAILABLE, 0]), &[]);
    }

    fn put(&mut self, at: u64, bytes: &[u8]) {
        self.memory
            .slice_mut(at, bytes.len())
            .unwrap()
            .copy_from_slice(bytes);
    }

    /// Puts a write of one sector of `byte` at the disk's start into the ring.
    fn offer_a_write(&mut self, byte: u8) {
        self.put(HEADER, &[&1_u32.to_le_bytes()[..], &[0; 12]].concat());
        self.put(DATA, &[byte; 512]);
        self.put(STATUS, &[0xff]);
        let chain = [
            (HEADER, 16_u32, 1_u16, 1_u16),
            (DATA, 512, 1, 2),
            (STATUS, 1, 2, 0),
        ];
        for (i, (address, bytes, flags, next)) in (0_u64..).zip(chain) {
            self.put(TABLE + 16 * i, &address.to_le_bytes());
            self.put(TABLE + 16 * i + 8, &bytes.to_le_bytes());
            self.put(TABLE + 16 * i + 12, &flags.to_le_bytes());
            self.put(TABLE + 16 * i + 14, &next.to_le_bytes());
        }
        self.put(AVAILABLE + 4, &0_u16.to_le_bytes());
        self.put(AVAILABLE + 2, &1_u16.to_le_bytes());
    }

    /// Kicks the ring: the engine says how far the guest may go before it answers.
    fn kick(&mut self) -> u64 {
        const NEED_REPLY: u32 = 1 << 3;
        self.send(35, NEED_REPLY, &[0; 8], &[]);
        let free_until = self.heed(CalendarOperation::FreeUntil);
        let mut reply = [0; CALL_REPLY_BYTES];
        self.disk.read_exact(&mut reply).unwrap();
        crate::vhost::check_call_reply(&reply).unwrap();
        free_until
    }

    /// Hears of a completion and answers it; between the two it wants to run at `now`.
    fn take_completion(&mut self) {
        let mut call = [0; CALL_REPLY_BYTES];
        let mut channel = self.channel.take().unwrap();
        channel.read_exact(&mut call).unwrap();
        let now = self.say(CalendarOperation::Get, 0);
        self.say(CalendarOperation::Request, now);
        let mut answer = call;
        answer[4..8].copy_from_slice(&5_u32.to_ne_bytes()); // version 1, a reply
        answer[12..].fill(0);
        channel.write_all(&answer).unwrap();
        self.channel = Some(channel);
    }
}

#[test]
fn without_shared_memory_time_is_granted_by_messages() {
    let (result, mut finished) = run(|mut guest| {
        guest.say(CalendarOperation::Start, 0);
        assert_eq!(guest.say(CalendarOperation::Get, 0), 0);
        guest.set_up();
        guest.offer_a_write(0xab);
        guest.say(CalendarOperation::Update, 5_000);
        let completion = guest.kick();
        assert!(
            completion > 5_000 + 1000,
            "after arrival and the request's cost: {completion}"
        );
        guest.say(CalendarOperation::Request, NEVER);
        guest.say(CalendarOperation::Wait, 0);
        guest.take_completion();
        assert!(
            guest.heed(CalendarOperation::FreeUntil) > completion,
            "nothing is under way now"
        );
        assert_eq!(guest.heed(CalendarOperation::Run), completion);
        assert_eq!(guest.memory.array::<2>(USED + 2).unwrap(), [1, 0]);
        assert_eq!(guest.memory.array::<1>(STATUS).unwrap(), [0]);
    });
    result.unwrap();
    assert_eq!(finished.trace.requests, 1);
    let Backend::Card(disk) = &mut finished.devices[0].backend else {
        panic!("it was a card");
    };
    let mut sector = [0; 512];
    let at = disk.offset;
    disk.contents_mut().read(at, &mut sector).unwrap();
    assert_eq!(sector, [0xab; 512]);
}

#[test]
fn a_timer_before_the_completion_comes_first() {
    let (result, finished) = run(|mut guest| {
        guest.say(CalendarOperation::Start, 0);
        guest.set_up();
        guest.offer_a_write(1);
        let completion = guest.kick();
        guest.say(CalendarOperation::Request, completion - 10);
        guest.say(CalendarOperation::Wait, 0);
        assert_eq!(guest.heed(CalendarOperation::FreeUntil), completion);
        assert_eq!(guest.heed(CalendarOperation::Run), completion - 10);
    });
    result.unwrap();
    assert!(finished.time > Nanos(1000));
}

#[test]
fn a_guest_without_a_wish_sleeps_for_ever() {
    let (result, _) = run(|mut guest| {
        guest.say(CalendarOperation::Start, 0);
        guest.say(CalendarOperation::Wait, 0);
    });
    assert!(matches!(result, Err(LabError::SleepsForever)), "{result:?}");
}

#[test]
fn a_wish_beyond_every_bound_is_no_progress() {
    let (result, _) = run(|mut guest| {
        guest.say(CalendarOperation::Start, 0);
        guest.say(CalendarOperation::Request, 1 << 60);
        guest.say(CalendarOperation::Wait, 0);
    });
    assert!(matches!(result, Err(LabError::NoProgress(_))), "{result:?}");
}

#[test]
fn a_wish_before_now_is_a_broken_protocol() {
    let (result, _) = run(|mut guest| {
        guest.say(CalendarOperation::Start, 0);
        guest.say(CalendarOperation::Update, 500);
        guest.say(CalendarOperation::Request, 400);
        guest.say(CalendarOperation::Wait, 0);
    });
    assert!(
        matches!(result, Err(LabError::Protocol { .. })),
        "{result:?}"
    );
}

#[test]
fn nonsense_on_the_calendar_is_an_error() {
    let of = |operation: u32| [&operation.to_ne_bytes()[..], &[0; 12]].concat();
    for bytes in [of(6), of(7), of(9), of(u32::MAX), of(0), vec![1, 0, 0]] {
        let shown = format!("{bytes:?}");
        let (result, _) = run(move |mut guest| guest.calendar.write_all(&bytes).unwrap());
        let broken = matches!(result, Err(LabError::Protocol { .. } | LabError::Io { .. }));
        assert!(broken, "{shown}: {result:?}");
    }
}

#[test]
fn nonsense_on_a_disks_connection_is_an_error() {
    let two = |a: u32, b: u32| [a.to_ne_bytes(), b.to_ne_bytes()].concat();
    let cases: [(&str, u32, u32, Vec<u8>); 9] = [
        ("an unknown request", 99, 0, vec![]),
        ("version 3", 1, 2, vec![]),
        ("a ring of 3 entries", 8, 0, two(0, 3)),
        ("a ring of 512 entries", 8, 0, two(0, 512)),
        ("ring 5", 8, 0, two(5, 8)),
        (
            "a memory table without files",
            5,
            0,
            [two(1, 0), words(&[0, 4096, 0, 0])].concat(),
        ),
        (
            "a memory table of 9 regions",
            5,
            0,
            [two(9, 0), vec![0; 288]].concat(),
        ),
        ("a channel without its file", 21, 0, vec![]),
        ("a kick before the ring is set up", 35, 0, two(0, 0)),
    ];
    for (what, request, flags, payload) in cases {
        let (result, _) = run(move |mut guest| {
            guest.send(request, flags, &payload, &[]);
            // Stays until the engine has made up its mind.
            let _ = guest.disk.read(&mut [0]);
        });
        assert!(
            matches!(result, Err(LabError::Protocol { .. })),
            "{what}: {result:?}"
        );
    }
}

#[test]
fn a_request_outside_memory_is_an_error() {
    let (result, _) = run(|mut guest| {
        guest.say(CalendarOperation::Start, 0);
        guest.set_up();
        guest.offer_a_write(1);
        guest.put(TABLE, &u64::MAX.to_le_bytes());
        guest.send(35, 0, &[0; 8], &[]);
        let _ = guest.disk.read(&mut [0]);
    });
    assert!(
        matches!(result, Err(LabError::Protocol { .. })),
        "{result:?}"
    );
}
