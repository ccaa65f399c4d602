//! One virtio disk on its vhost-user connection: negotiation, ring, completions under way.

use crate::block::{BlockGeometry, BlockRequest, BlockStatus, CONFIG_WRITE_CACHE_AT};
use crate::control::Control;
use crate::disk::Disk;
use crate::error::LabError;
use crate::image_disk::ImageDisk;
use crate::memory::GuestMemory;
use crate::ring::{Ring, Segment};
use crate::socket::Peer;
use crate::trace::Trace;
use crate::vhost::{self, F_PROTOCOL_FEATURES, GuestRequest, PROTOCOL_FEATURES};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use whichfs_trial::Event;
use whichfs_units::Nanos;

/// What a virtio disk is backed by.
pub(crate) enum Backend {
    Card(Box<Disk>),
    Control(Control),
    /// A file of the host: the sealed userland, an image that the trial deploys.
    Image(ImageDisk),
}

/// A request whose completion is still to come.
struct Pending {
    at: Nanos,
    head: u16,
    written: u32,
}

/// One disk of the guest.
pub(crate) struct Device {
    pub(crate) index: usize,
    pub(crate) peer: Peer,
    pub(crate) backend: Backend,
    channel: Option<UnixStream>,
    memory: GuestMemory,
    ring: Ring,
    config: Vec<u8>,
    pending: VecDeque<Pending>,
    segments: Vec<Segment>,
}

/// What a message of the guest asks of the engine beyond the reply.
pub(crate) enum Effect {
    /// Nothing: the reply, if any, has been sent.
    None,
    /// The ring was kicked: serve it, then acknowledge.
    Kick,
}

impl Device {
    pub(crate) fn new(index: usize, peer: Peer, backend: Backend) -> Device {
        let config = geometry(&backend).config().to_vec();
        Device {
            index,
            peer,
            backend,
            channel: None,
            memory: GuestMemory::default(),
            ring: Ring::default(),
            config,
            pending: VecDeque::new(),
            segments: Vec::new(),
        }
    }

    /// Reads one message and answers it, except a kick. `None`: the guest closed the connection.
    pub(crate) fn receive(&mut self) -> Result<Option<(Effect, bool)>, LabError> {
        let Some(message) = self.peer.receive_vhost()? else {
            return Ok(None);
        };
        let request = GuestRequest::decode(&message.header, &message.payload)?;
        let wants_reply = message.header.wants_reply();
        let code = message.header.request;
        let answer = match request {
            GuestRequest::Kick(0) => return Ok(Some((Effect::Kick, wants_reply))),
            GuestRequest::GetFeatures => {
                Some(geometry(&self.backend).features() | F_PROTOCOL_FEATURES)
            }
            GuestRequest::GetProtocolFeatures => Some(PROTOCOL_FEATURES),
            GuestRequest::GetConfig { offset, size } => {
                self.reply_config(code, offset, size)?;
                return Ok(Some((Effect::None, false)));
            }
            other => {
                self.set(other, message.files)?;
                wants_reply.then_some(0)
            }
        };
        if let Some(value) = answer {
            self.peer.send(&vhost::reply(code, &value.to_ne_bytes()))?;
        }
        Ok(Some((Effect::None, false)))
    }

    /// Acknowledges the kick that [`Device::receive`] reported.
    pub(crate) fn acknowledge_kick(&mut self) -> Result<(), LabError> {
        const KICK: u32 = 35;
        self.peer.send(&vhost::reply(KICK, &0_u64.to_ne_bytes()))
    }

    fn set(&mut self, request: GuestRequest, mut files: Vec<OwnedFd>) -> Result<(), LabError> {
        match request {
            GuestRequest::SetMemTable(regions) => self.memory = GuestMemory::map(&regions, files)?,
            GuestRequest::SetVringNum(0, entries) => self.ring.set_entries(entries)?,
            GuestRequest::SetVringBase(0, base) => self.ring.set_base(base),
            GuestRequest::SetVringAddr(0, address) => self.ring.address = address,
            GuestRequest::SetBackendChannel => {
                let file = files
                    .pop()
                    .ok_or_else(|| bad("a backend channel without its file".into()))?;
                self.channel = Some(UnixStream::from(file));
            }
            GuestRequest::SetProtocolFeatures(features) if features != PROTOCOL_FEATURES => {
                return Err(bad(format!("protocol features {features:#x}")));
            }
            GuestRequest::SetConfig { offset, bytes } => {
                // The write-cache switch is the only writable field.
                if offset == CONFIG_WRITE_CACHE_AT && bytes.len() == 1 {
                    self.config[CONFIG_WRITE_CACHE_AT as usize] = bytes[0];
                }
            }
            GuestRequest::SetOwner
            | GuestRequest::SetFeatures(_)
            | GuestRequest::SetProtocolFeatures(_)
            | GuestRequest::SetVringEnable(0, _) => {}
            other => return Err(bad(format!("{other:?} at this time"))),
        }
        Ok(())
    }

    fn reply_config(&mut self, code: u32, offset: u32, size: u32) -> Result<(), LabError> {
        let (offset, size) = (offset as usize, size as usize);
        if offset + size > 512 {
            return Err(bad(format!("{size} bytes of configuration at {offset}")));
        }
        let mut payload = Vec::with_capacity(12 + size);
        for word in [offset as u32, size as u32, 0] {
            payload.extend_from_slice(&word.to_ne_bytes());
        }
        // Fields beyond those the device has read as zero.
        let byte = |at: usize| self.config.get(at).copied().unwrap_or(0);
        payload.extend((offset..offset + size).map(byte));
        self.peer.send(&vhost::reply(code, &payload))
    }

    /// Serves everything in the ring at `now`; events of the control disk go to `events`.
    pub(crate) fn serve(
        &mut self,
        now: Nanos,
        trace: &mut Trace,
        events: &mut Vec<Event>,
    ) -> Result<(), LabError> {
        self.ring.catch_up(&self.memory, self.pending.len())?;
        while let Some(head) = self.ring.pop(&self.memory, &mut self.segments)? {
            let request = BlockRequest::parse(&self.memory, &self.segments)?;
            let status_at = request.status_at;
            let (at, status, written) = match &mut self.backend {
                Backend::Card(disk) => {
                    let served =
                        disk.serve(now, &request, &mut self.memory, trace)
                            .map_err(|why| LabError::Contents {
                                disk: self.index,
                                why,
                            })?;
                    (served.at, served.status, served.written)
                }
                Backend::Control(control) => {
                    let (status, written, event) = control.serve(&request, &mut self.memory)?;
                    events.extend(event);
                    (now, status, written)
                }
                Backend::Image(image) => {
                    let (status, written) = image.serve(&request, &mut self.memory)?;
                    (now, status, written)
                }
            };
            self.finish_later(at, head, status, status_at, written)?;
        }
        Ok(())
    }

    fn finish_later(
        &mut self,
        at: Nanos,
        head: u16,
        status: BlockStatus,
        status_at: u64,
        written: u32,
    ) -> Result<(), LabError> {
        self.memory.slice_mut(status_at, 1)?[0] = status as u8;
        let pending = Pending {
            at,
            head,
            written: written.saturating_add(1),
        };
        // Cards are serial, so this is nearly always the end; refused requests overtake.
        let place = self.pending.partition_point(|p| p.at <= at);
        self.pending.insert(place, pending);
        Ok(())
    }

    /// When the next request completes.
    pub(crate) fn next_completion(&self) -> Option<Nanos> {
        self.pending.front().map(|pending| pending.at)
    }

    /// Puts all completions due at `now` into the used ring; true if there were any.
    pub(crate) fn complete(&mut self, now: Nanos) -> Result<bool, LabError> {
        let mut any = false;
        while self.next_completion().is_some_and(|at| at <= now) {
            let Some(pending) = self.pending.pop_front() else {
                break;
            };
            self.ring
                .push(&mut self.memory, pending.head, pending.written)?;
            any = true;
        }
        Ok(any)
    }

    /// Tells the guest of completions by a message, which it answers on the same channel.
    pub(crate) fn notify(&mut self) -> Result<(), LabError> {
        std::io::Write::write_all(self.channel_mut()?, &vhost::call(0))
            .map_err(LabError::io("notify the guest of a completion"))
    }

    /// The channel on which the guest answers notifications.
    pub(crate) fn channel_mut(&mut self) -> Result<&mut UnixStream, LabError> {
        self.channel
            .as_mut()
            .ok_or_else(|| bad("no backend channel".into()))
    }
}

fn geometry(backend: &Backend) -> BlockGeometry {
    match backend {
        Backend::Card(disk) => disk.geometry,
        Backend::Control(_) => Control::geometry(),
        Backend::Image(image) => image.geometry(),
    }
}

fn bad(what: String) -> LabError {
    LabError::protocol("vhost-user", what)
}
