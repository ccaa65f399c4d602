//! The ways from the kernel to the card: ublk, or a loop device on a FUSE file.

use crate::delivery::Delivery;
use crate::error::AttachError;
use crate::file::{CardFile, FUSE_LARGEST_KIB, name_of};
use crate::lateness::Punctuality;
use crate::loopdev::{self, LoopDevice};
use crate::model::Model;
use crate::mount;
use crate::node::{Driver, Node};
use crate::options::{AttachOptions, Transport};
use crate::queue::DISCARD_MAX_BYTES;
use crate::runtime::Owner;
use crate::serving::Serving;
use crate::ublk::{self, Disk};
use crate::ublk_queue;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

/// A device before a card, and who serves it.
pub(crate) struct Placed {
    pub node: Node,
    pub serving: Serving,
    /// Whether it was made for the card, and goes with it.
    pub made: bool,
}

/// The driver for `transport` on this machine.
///
/// # Errors
/// What is missing, with the remedy.
pub(crate) fn driver(transport: Transport) -> Result<Driver, AttachError> {
    let fuse = || loopdev::available().map_err(AttachError::no_loop);
    match transport {
        Transport::Ublk => {
            ublk::available().map_err(AttachError::no_ublk)?;
            Ok(Driver::Ublk)
        }
        Transport::Auto if ublk::available().is_ok() => Ok(Driver::Ublk),
        Transport::Auto | Transport::Fuse => fuse().map(|()| Driver::Loop),
    }
}

impl Driver {
    /// The largest request in KiB that the way takes in one piece.
    pub(crate) fn largest_kib(self) -> u64 {
        match self {
            Driver::Loop => FUSE_LARGEST_KIB,
            // As much as it was told when the device was made.
            Driver::Ublk => u64::MAX,
        }
    }

    /// Makes a device of `owner` before `model`.
    ///
    /// # Errors
    /// What the kernel refuses, with the remedy.
    pub(crate) fn place(
        self,
        options: &AttachOptions,
        model: &Arc<Model>,
        punctuality: &Arc<Punctuality>,
        owner: &Owner,
    ) -> Result<Placed, AttachError> {
        let (model, punctuality) = (Arc::clone(model), Arc::clone(punctuality));
        match self {
            Driver::Loop => by_fuse(options, model, punctuality, owner),
            Driver::Ublk => by_ublk(options, model, punctuality, owner),
        }
    }

    /// Brings the new device `node` to have no command that writes zeros, as no card has one.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn refuse_zeroing(self, node: Node) -> io::Result<()> {
        match self {
            Driver::Loop => refuse_zeroing(node),
            // It was told so when it was made.
            Driver::Ublk => Ok(()),
        }
    }
}

fn by_ublk(
    options: &AttachOptions,
    model: Arc<Model>,
    punctuality: Arc<Punctuality>,
    owner: &Owner,
) -> Result<Placed, AttachError> {
    let profile = &options.profile;
    let disk = Disk {
        bytes: profile.capacity_bytes(),
        largest_request_bytes: options.queue.largest_request_kib << 10,
        cache: profile.has_cache(),
        discard: profile.discard_supported(),
        discard_bytes: profile.au_bytes() as u32,
        discard_most_bytes: DISCARD_MAX_BYTES,
    };
    let (node, serving) = ublk_queue::serve(model, punctuality, &disk, owner)?;
    Ok(Placed {
        node,
        serving,
        made: true,
    })
}

fn by_fuse(
    options: &AttachOptions,
    model: Arc<Model>,
    punctuality: Arc<Punctuality>,
    owner: &Owner,
) -> Result<Placed, AttachError> {
    let profile = &options.profile;
    let delivery = Delivery::new(punctuality);
    let delivery = delivery.map_err(|error| AttachError::io("start a thread", error))?;
    let file = CardFile {
        name: name_of(&options.name, owner.pid),
        model,
        delivery: Arc::new(delivery),
        bytes: profile.capacity_bytes(),
        discard_bytes: profile.au_bytes() as u32,
        discard: profile.discard_supported(),
        buffers: Arc::default(),
    };
    let (serving, backing) = mount::serve(file)?;
    let device = LoopDevice::bind(backing.as_fd(), &owner.label())?;
    Ok(Placed {
        node: Node::of_loop(device.number),
        serving,
        made: device.ours,
    })
}

/// Makes the loop driver find out that there is no command to write zeros: it asks once, is
/// refused, and the kernel writes zeros itself from then on.
fn refuse_zeroing(node: Node) -> io::Result<()> {
    const BLKZEROOUT: libc::Ioctl = 0x127f;
    let sector: [u64; 2] = [0, 512];
    let file = node.open(false)?;
    // SAFETY: BLKZEROOUT reads two u64 at the pointer.
    match unsafe { libc::ioctl(file.as_raw_fd(), BLKZEROOUT, &raw const sector) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
