//! The ublk driver: the structures of `linux/ublk_cmd.h` and the commands that make and remove
//! a device, each one request of an io_uring on `/dev/ublk-control`.
//!
//! Wanted are `UBLK_F_USER_COPY` (the bytes of a request are read and written at the device of
//! the server, `/dev/ublkcN`) and the opcodes in the form of ioctls: Linux 6.5 and newer.

use crate::node::Binding;
use io_uring::{IoUring, cqueue, opcode, squeue, types};
use rustix::fs::{Mode, OFlags, open};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use whichfs_units::SECTOR;

/// Requests under way at once: as many as a loop device takes.
pub(crate) const DEPTH: u16 = 128;
/// The largest transfer that the driver can name: 25 bits of an offset.
const TRANSFER_BYTES: u64 = 32 << 20;
/// What the driver must be able to do: opcodes in the form of ioctls, and user copy.
const FEATURES: u64 = 1 << 6 | USER_COPY;
const USER_COPY: u64 = 1 << 7;
/// The state of a device that nobody serves.
const DEAD: u16 = 0;
/// `ublk_param_basic.attrs`.
const VOLATILE_CACHE: u32 = 1 << 2;
const FUA: u32 = 1 << 3;
/// `ublk_params.types`.
const BASIC: u32 = 1;
const DISCARD: u32 = 2;

const GET_DEV_INFO: u32 = ctrl(READ, 0x02);
const ADD_DEV: u32 = ctrl(READ | WRITE, 0x04);
const DEL_DEV: u32 = ctrl(READ | WRITE, 0x05);
const START_DEV: u32 = ctrl(READ | WRITE, 0x06);
const STOP_DEV: u32 = ctrl(READ | WRITE, 0x07);
const SET_PARAMS: u32 = ctrl(READ | WRITE, 0x08);
const GET_FEATURES: u32 = ctrl(READ, 0x13);
/// Commands to a queue.
pub(crate) const FETCH: u32 = code(READ | WRITE, size_of::<IoCommand>(), 0x20);
pub(crate) const COMMIT_AND_FETCH: u32 = code(READ | WRITE, size_of::<IoCommand>(), 0x21);
const WRITE: u32 = 1;
const READ: u32 = 2;

/// `_IOC(direction, 'u', number, size)`.
const fn code(direction: u32, size: usize, number: u32) -> u32 {
    direction << 30 | (size as u32) << 16 | (b'u' as u32) << 8 | number
}

const fn ctrl(direction: u32, number: u32) -> u32 {
    code(direction, size_of::<Command>(), number)
}

/// `struct ublksrv_ctrl_cmd`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Command {
    device: u32,
    queue: u16,
    length: u16,
    address: u64,
    data: u64,
    path_length: u16,
    padding: u16,
    reserved: u32,
}

/// `struct ublksrv_ctrl_dev_info`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Info {
    queues: u16,
    depth: u16,
    state: u16,
    padding: u16,
    most_bytes: u32,
    device: u32,
    pid: i32,
    padding_2: u32,
    flags: u64,
    /// Kept by the driver for the server, which marks its devices with it.
    tag: u64,
    owner: [u32; 2],
    reserved: [u64; 2],
}

/// `struct ublksrv_io_cmd`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IoCommand {
    pub queue: u16,
    pub tag: u16,
    /// Bytes done, or a negative errno.
    pub result: i32,
    pub address: u64,
}

/// `struct ublksrv_io_desc`: a request, as the driver tells it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Descriptor {
    pub op_flags: u32,
    pub sectors: u32,
    pub first_sector: u64,
    pub address: u64,
}

/// The parts of `struct ublk_params` that are set.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Parameters {
    length: u32,
    types: u32,
    attributes: u32,
    logical_shift: u8,
    physical_shift: u8,
    optimal_shift: u8,
    least_shift: u8,
    most_sectors: u32,
    chunk_sectors: u32,
    sectors: u64,
    virtual_boundary: u64,
    discard_alignment: u32,
    discard_granularity: u32,
    discard_most_sectors: u32,
    zeroes_most_sectors: u32,
    discard_most_segments: u16,
    padding: u16,
}

/// Length of [`Parameters`] for the driver: without what fills it up to a whole word.
const PARAMETERS: u32 = 60;

/// What the kernel is to know of a new device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Disk {
    pub bytes: u64,
    pub largest_request_bytes: u64,
    /// Whether it has a cache that flushes and forced unit access (FUA) mean something to.
    pub cache: bool,
    /// Whether it knows discards, and what those are rounded to.
    pub discard: bool,
    pub discard_bytes: u32,
    /// The largest discard.
    pub discard_most_bytes: u64,
}

impl Disk {
    /// The largest request that the driver passes on in one piece.
    fn largest_bytes(&self) -> u64 {
        let largest = self.largest_request_bytes.clamp(4096, TRANSFER_BYTES);
        largest / 4096 * 4096
    }

    fn parameters(&self) -> Parameters {
        let basic = Parameters {
            length: PARAMETERS,
            types: BASIC,
            attributes: if self.cache { VOLATILE_CACHE | FUA } else { 0 },
            logical_shift: 9,
            physical_shift: 9,
            optimal_shift: 9,
            least_shift: 9,
            most_sectors: (self.largest_bytes() / SECTOR) as u32,
            sectors: self.bytes / SECTOR,
            ..Parameters::default()
        };
        if !self.discard {
            return basic;
        }
        Parameters {
            types: BASIC | DISCARD,
            discard_granularity: self.discard_bytes,
            discard_most_sectors: (self.discard_most_bytes / SECTOR) as u32,
            discard_most_segments: 1,
            ..basic
        }
    }
}

/// Whether the driver is there and can do what is wanted.
///
/// # Errors
/// Why not.
pub(crate) fn available() -> io::Result<()> {
    let mut features = 0_u64;
    command(GET_FEATURES, u32::MAX, 0, Some(&mut features)).map_err(|error| {
        match error.raw_os_error() {
            // What drivers without the command answer.
            Some(libc::EOPNOTSUPP | libc::EINVAL | libc::ENODEV) => old(),
            _ => error,
        }
    })?;
    match features & FEATURES == FEATURES {
        true => Ok(()),
        false => Err(old()),
    }
}

fn old() -> io::Error {
    io::Error::other("the driver lacks user copy, Linux 6.5")
}

/// Makes a device marked with `tag`, which is not there for others before [`start`]; returns its
/// number.
///
/// # Errors
/// The driver's.
pub(crate) fn add(disk: &Disk, tag: u64) -> io::Result<u32> {
    let mut info = Info {
        queues: 1,
        depth: DEPTH,
        most_bytes: disk.largest_bytes() as u32,
        device: u32::MAX,
        flags: FEATURES,
        tag,
        ..Info::default()
    };
    command(ADD_DEV, u32::MAX, 0, Some(&mut info))?;
    let mut parameters = disk.parameters();
    let set = command(SET_PARAMS, info.device, 0, Some(&mut parameters));
    if let Err(error) = set {
        let _ = delete(info.device);
        return Err(error);
    }
    Ok(info.device)
}

/// Opens what the server of device `number` reads and writes.
///
/// # Errors
/// The kernel's; `EBUSY` where it has a server.
pub(crate) fn server(number: u32) -> io::Result<OwnedFd> {
    let path = server_path(number);
    // devtmpfs makes the node before the device is there; others take a moment.
    crate::clock::within(Duration::from_millis(200), || path.exists());
    Ok(open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?)
}

fn server_path(number: u32) -> PathBuf {
    PathBuf::from(format!("/dev/ublkc{number}"))
}

/// Shows the device to all, once its server waits for requests; its partition table is read.
///
/// # Errors
/// The driver's.
pub(crate) fn start(number: u32) -> io::Result<()> {
    let pid = u64::from(std::process::id());
    command::<u64>(START_DEV, number, pid, None).map(drop)
}

/// Takes the block device away, also from those who have it open.
///
/// # Errors
/// The driver's.
pub(crate) fn stop(number: u32) -> io::Result<()> {
    absent_is_done(command::<u64>(STOP_DEV, number, 0, None))
}

/// Removes the device.
///
/// # Errors
/// The driver's; a time-out while somebody has the block device open still.
pub(crate) fn delete(number: u32) -> io::Result<()> {
    absent_is_done(command::<u64>(DEL_DEV, number, 0, None))
}

fn absent_is_done(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(()),
        other => other,
    }
}

/// Whether the driver knows a device of that number.
pub(crate) fn exists(number: u32) -> bool {
    server_path(number).exists()
}

/// Whether device `number` is marked with `tag`.
pub(crate) fn binding(number: u32, tag: u64) -> Binding {
    match info(number) {
        Ok(info) if info.tag == tag => Binding::Ours,
        Ok(_) => Binding::Others,
        Err(error) => match error.raw_os_error() {
            // No device, or no driver.
            Some(libc::ENODEV | libc::ENOENT) => Binding::Free,
            _ => Binding::Unknown(error.to_string()),
        },
    }
}

/// All devices that nobody serves and that are marked, with the marks.
pub(crate) fn tags() -> Vec<(u32, u64)> {
    let entries = fs::read_dir("/sys/class/ublk-char").into_iter().flatten();
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("ublkc"));
        let Some(number) = number.and_then(|digits| digits.parse().ok()) else {
            continue;
        };
        if let Ok(info) = info(number)
            && info.state == DEAD
        {
            found.push((number, info.tag));
        }
    }
    found.sort_unstable();
    found
}

fn info(number: u32) -> io::Result<Info> {
    let mut info = Info::default();
    command(GET_DEV_INFO, number, 0, Some(&mut info))?;
    Ok(info)
}

/// How long the driver may take for one command.
const PATIENCE: Duration = Duration::from_secs(10);

/// Does command `code` of device `number` with `data` and with `buffer`, which it reads or fills.
fn command<T>(code: u32, number: u32, data: u64, buffer: Option<&mut T>) -> io::Result<()> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let control = open("/dev/ublk-control", flags, Mode::empty())?;
    let mut ring: IoUring<squeue::Entry128, cqueue::Entry> = IoUring::builder().build(4)?;
    // Commands with a buffer answer at once and are waited for without an end: the buffer must
    // not go before they do.
    let patience = buffer.is_none().then_some(PATIENCE);
    let (address, length) = match buffer {
        Some(buffer) => (std::ptr::from_mut(buffer) as u64, size_of::<T>() as u16),
        None => (0, 0),
    };
    let command = Command {
        device: number,
        queue: u16::MAX,
        length,
        address,
        data,
        path_length: 0,
        padding: 0,
        reserved: 0,
    };
    let entry = opcode::UringCmd80::new(types::Fd(control.as_raw_fd()), code)
        .cmd(command.bytes())
        .build();
    // SAFETY: the buffer lives until the command has answered, see above.
    let pushed = unsafe { ring.submission().push(&entry) };
    pushed.map_err(io::Error::other)?;
    let begun = Instant::now();
    loop {
        wait(
            &ring,
            patience.map(|all| all.saturating_sub(begun.elapsed())),
        )?;
        if let Some(answer) = ring.completion().next() {
            return match answer.result() {
                0.. => Ok(()),
                errno => Err(io::Error::from_raw_os_error(-errno)),
            };
        }
        if patience.is_some_and(|all| begun.elapsed() >= all) {
            return Err(io::Error::from_raw_os_error(libc::ETIMEDOUT));
        }
    }
}

/// Submits what there is and waits for a completion, a signal, or the end of `patience`.
pub(crate) fn wait<S: squeue::EntryMarker>(
    ring: &IoUring<S, cqueue::Entry>,
    patience: Option<Duration>,
) -> io::Result<()> {
    let waited = match patience {
        None => ring.submitter().submit_and_wait(1),
        Some(patience) => {
            let time = types::Timespec::from(patience);
            let arguments = types::SubmitArgs::new().timespec(&time);
            ring.submitter().submit_with_args(1, &arguments)
        }
    };
    match waited.map_err(|error| (error.raw_os_error(), error)) {
        Ok(_) | Err((Some(libc::ETIME | libc::EINTR | libc::EAGAIN | libc::EBUSY), _)) => Ok(()),
        Err((_, error)) => Err(error),
    }
}

impl Command {
    fn bytes(&self) -> [u8; 80] {
        let mut bytes = [0; 80];
        // SAFETY: plain integers without padding between them, shorter than `bytes`.
        let own = unsafe {
            std::slice::from_raw_parts(std::ptr::from_ref(self).cast::<u8>(), size_of::<Command>())
        };
        bytes[..own.len()].copy_from_slice(own);
        bytes
    }
}

impl IoCommand {
    pub fn bytes(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..2].copy_from_slice(&self.queue.to_ne_bytes());
        bytes[2..4].copy_from_slice(&self.tag.to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.result.to_ne_bytes());
        bytes[8..].copy_from_slice(&self.address.to_ne_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: Disk = Disk {
        bytes: 1 << 30,
        largest_request_bytes: 512 << 10,
        cache: false,
        discard: true,
        discard_bytes: 3 << 20,
        discard_most_bytes: 512 << 20,
    };

    #[test]
    fn structures_and_codes_are_the_kernels() {
        assert_eq!(size_of::<Command>(), 32);
        assert_eq!(size_of::<Info>(), 64);
        assert_eq!(size_of::<IoCommand>(), 16);
        assert_eq!(size_of::<Descriptor>(), 24);
        // Up to the end of `ublk_param_discard`, and what fills the last word.
        let end = std::mem::offset_of!(Parameters, padding) + 2;
        assert_eq!((end, size_of::<Parameters>()), (PARAMETERS as usize, 64));
        // As `printf` of the header's macros gives them.
        assert_eq!(ADD_DEV, 0xC020_7504);
        assert_eq!(GET_FEATURES, 0x8020_7513);
        assert_eq!(COMMIT_AND_FETCH, 0xC010_7521);
    }

    #[test]
    fn a_card_with_a_cache_takes_flushes_and_forced_writes_and_others_do_not() {
        let sd = DISK.parameters();
        assert_eq!((sd.attributes, sd.types), (0, BASIC | DISCARD));
        assert_eq!(sd.discard_granularity, 3 << 20);
        assert_eq!(sd.discard_most_sectors, 1 << 20);
        let emmc = Disk {
            cache: true,
            ..DISK
        };
        assert_eq!(emmc.parameters().attributes, VOLATILE_CACHE | FUA);
        let stick = Disk {
            discard: false,
            ..DISK
        };
        assert_eq!(stick.parameters().types, BASIC);
    }

    #[test]
    fn requests_are_as_large_as_the_host_sends_them_in_whole_pages() {
        for (asked, given) in [
            (512 << 10, 512 << 10),
            (1280 << 10, 1280 << 10),
            (5000, 4096),
        ] {
            let disk = Disk {
                largest_request_bytes: asked,
                ..DISK
            };
            assert_eq!(disk.largest_bytes(), given);
        }
        let endless = Disk {
            largest_request_bytes: 1 << 40,
            ..DISK
        };
        assert_eq!(endless.largest_bytes(), TRANSFER_BYTES);
    }
}
