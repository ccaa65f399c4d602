//! A connection to the guest: listening at first, connected later.

use crate::calendar::{CalendarMessage, MESSAGE_BYTES};
use crate::error::LabError;
use crate::vhost::{HEADER_BYTES, Header, PAYLOAD_BYTES_MAX};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::io::{IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};

/// Most file descriptors that come with one message.
const FILES_MAX: usize = 2;

/// One end of a connection that the guest opens.
pub(crate) enum Peer {
    Listening(UnixListener),
    Connected(UnixStream),
    Closed,
}

/// A vhost-user message with the files sent beside it.
pub(crate) struct VhostMessage {
    pub(crate) header: Header,
    pub(crate) payload: Vec<u8>,
    pub(crate) files: Vec<OwnedFd>,
}

impl Peer {
    /// What to poll, unless the guest has closed the connection.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Peer::Listening(listener) => Some(listener.as_fd()),
            Peer::Connected(stream) => Some(stream.as_fd()),
            Peer::Closed => None,
        }
    }

    /// Whether the guest has connected, even if it has closed the connection since.
    pub(crate) fn was_connected(&self) -> bool {
        !matches!(self, Peer::Listening(_))
    }

    /// Forgets a connection that the guest has closed.
    pub(crate) fn close(&mut self) {
        *self = Peer::Closed;
    }

    /// Takes the guest's connection, if this end still listens; true if it did.
    pub(crate) fn accept(&mut self) -> Result<bool, LabError> {
        if let Peer::Listening(listener) = self {
            let (stream, _) = listener
                .accept()
                .map_err(LabError::io("accept the guest"))?;
            *self = Peer::Connected(stream);
            return Ok(true);
        }
        Ok(false)
    }

    fn stream(&mut self) -> Result<&mut UnixStream, LabError> {
        match self {
            Peer::Connected(stream) => Ok(stream),
            Peer::Listening(_) | Peer::Closed => Err(LabError::protocol(
                "calendar",
                "a message without a connection",
            )),
        }
    }

    /// Sends all of `bytes`.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), LabError> {
        let sent = self.stream()?.write_all(bytes);
        sent.map_err(LabError::io("write to the guest"))
    }

    /// Sends `bytes` with `files` beside them.
    pub(crate) fn send_with_files(
        &mut self,
        bytes: &[u8],
        files: &[BorrowedFd],
    ) -> Result<(), LabError> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_MAX))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        assert!(
            ancillary.push(SendAncillaryMessage::ScmRights(files)),
            "FILES_MAX files fit"
        );
        let data = [IoSlice::new(bytes)];
        let sent = sendmsg(self.stream()?, &data, &mut ancillary, SendFlags::NOSIGNAL)
            .map_err(|e| LabError::io("send files to the guest")(e.into()))?;
        if sent != bytes.len() {
            return Err(LabError::protocol("calendar", "a message went out in part"));
        }
        Ok(())
    }

    /// Reads one calendar message; `None`: the guest closed the connection.
    pub(crate) fn receive_calendar(&mut self) -> Result<Option<CalendarMessage>, LabError> {
        let mut bytes = [0; MESSAGE_BYTES];
        match self.stream()?.read(&mut bytes) {
            Ok(MESSAGE_BYTES) => CalendarMessage::decode(&bytes).map(Some),
            Ok(0) => Ok(None),
            Ok(part) => {
                let rest = self.stream()?.read_exact(&mut bytes[part..]);
                rest.map_err(LabError::io("read the rest of a calendar message"))?;
                CalendarMessage::decode(&bytes).map(Some)
            }
            Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => Ok(None),
            Err(e) => Err(LabError::io("read from the calendar connection")(e)),
        }
    }

    /// Reads one vhost-user message; `None`: the guest closed the connection.
    pub(crate) fn receive_vhost(&mut self) -> Result<Option<VhostMessage>, LabError> {
        let stream = self.stream()?;
        let mut head = [0; HEADER_BYTES];
        let mut files = Vec::new();
        // Header and payload apart: before REPLY_ACK is agreed upon the next message may
        // follow at once. Files come with the first byte.
        match receive(stream, &mut head, &mut files)? {
            0 => return Ok(None),
            have => read_rest(stream, &mut head[have..])?,
        }
        let header = Header::decode(&head)?;
        let mut payload = [0; PAYLOAD_BYTES_MAX];
        let payload = &mut payload[..header.size as usize];
        read_rest(stream, payload)?;
        Ok(Some(VhostMessage {
            header,
            payload: payload.to_vec(),
            files,
        }))
    }
}

fn read_rest(stream: &mut UnixStream, out: &mut [u8]) -> Result<(), LabError> {
    stream
        .read_exact(out)
        .map_err(LabError::io("read the rest of a vhost-user message"))
}

fn receive(
    stream: &UnixStream,
    out: &mut [u8],
    files: &mut Vec<OwnedFd>,
) -> Result<usize, LabError> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_MAX))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut data = [IoSliceMut::new(out)];
    let received = match recvmsg(stream, &mut data, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
        Ok(received) => received.bytes,
        Err(rustix::io::Errno::CONNRESET) => 0,
        Err(e) => return Err(LabError::io("read from a disk's connection")(e.into())),
    };
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = message {
            files.extend(fds);
        }
    }
    Ok(received)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (Peer, UnixStream) {
        let (ours, theirs) = UnixStream::pair().expect("a socket pair");
        (Peer::Connected(ours), theirs)
    }

    #[test]
    fn a_message_in_pieces_is_put_together() {
        let (mut peer, mut guest) = pair();
        let message = crate::vhost::call(7);
        let writer = std::thread::spawn(move || {
            for piece in message.chunks(5) {
                guest.write_all(piece).expect("written");
            }
        });
        let got = peer.receive_vhost().expect("valid").expect("open");
        assert_eq!((got.header.request, got.payload.len()), (4, 8));
        writer.join().expect("no panic");
    }

    #[test]
    fn a_closed_connection_is_not_an_error_but_half_a_message_is() {
        let (mut peer, guest) = pair();
        drop(guest);
        assert!(peer.receive_vhost().expect("closed").is_none());
        let (mut peer, mut guest) = pair();
        guest.write_all(&[0; 7]).expect("written");
        drop(guest);
        assert!(peer.receive_calendar().is_err());
    }

    #[test]
    fn two_messages_at_once_are_read_one_by_one() {
        let (mut peer, mut guest) = pair();
        guest
            .write_all(&[crate::vhost::call(0), crate::vhost::call(1)].concat())
            .expect("written");
        for index in [0, 1] {
            let got = peer.receive_vhost().expect("valid").expect("open");
            assert_eq!(got.payload[0], index);
        }
    }
}
