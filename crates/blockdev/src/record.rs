//! A device that keeps what a host did to it, with the data: from it the content at any instant can
//! be made again.

use crate::device::BlockDevice;
use whichfs_card::{CardStatus, Completion, ContentsError, Request, RequestKind};
use whichfs_units::Nanos;

/// One request that changes what is on a card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged {
    /// Write, discard or flush.
    pub op: RequestKind,
    /// First byte on the card.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// When it reached the card.
    pub arrived: Nanos,
    /// When the card reported it done.
    pub done: Nanos,
    /// The card copied live data of an AU for it: it merged a log block or collected.
    pub collected: bool,
    /// What was written; empty for others than writes.
    pub data: Box<[u8]>,
}

/// A device that keeps the requests which change it.
pub struct Recording<D> {
    /// The device below.
    pub below: D,
    /// The requests that succeeded, in order; `None` while they are not kept.
    pub log: Option<Vec<Logged>>,
}

impl<D> Recording<D> {
    /// Nothing is kept yet.
    pub fn new(below: D) -> Recording<D> {
        Recording { below, log: None }
    }
}

impl<D: BlockDevice> BlockDevice for Recording<D> {
    type Below = D;

    fn below(&self) -> &D {
        &self.below
    }

    fn below_mut(&mut self) -> &mut D {
        &mut self.below
    }

    #[inline]
    fn submit(&mut self, now: Nanos, request: &Request) -> Completion {
        let Some(log) = &mut self.log else {
            return self.below.submit(now, request);
        };
        let copies = self.below.stats().au_copies;
        let done = self.below.submit(now, request);
        if request.op != RequestKind::Read && done.status == CardStatus::Ok {
            let data = match request.op {
                RequestKind::Write => vec![0; request.bytes as usize].into_boxed_slice(),
                _ => Box::default(),
            };
            log.push(Logged {
                op: request.op,
                offset: request.offset,
                bytes: request.bytes,
                arrived: now,
                done: done.at,
                collected: self.below.stats().au_copies > copies,
                data,
            });
        }
        done
    }

    #[inline]
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), ContentsError> {
        let last = self.log.as_mut().and_then(|log| log.last_mut());
        if let Some(request) = last
            && let Some(from) = offset.checked_sub(request.offset)
            && let Some(kept) = request
                .data
                .get_mut(from as usize..from as usize + data.len())
        {
            kept.copy_from_slice(data);
        }
        self.below.write(offset, data)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::{Defective, Defects, Payload, Refuses, Timing};
    use whichfs_card::{Card, Contents, Profile, builtin};

    fn card() -> Timing {
        let (name, text) = builtin()[0];
        let profile = Profile::parse(name, text).unwrap();
        Timing {
            card: Card::fresh(&profile),
            contents: Contents::new(profile.capacity_bytes()),
            request_cost: Nanos(1000),
        }
    }

    #[test]
    fn a_write_in_pieces_is_kept_as_one_request_with_its_times() {
        let mut device = Recording::new(card());
        let write = Request::write(4096, 1024);
        device.submit(Nanos(0), &write);
        device.write(4096, &[1; 1024]).unwrap();
        device.log = Some(Vec::new());
        let done = device.submit(Nanos(7), &write);
        device.write(4096, &[2; 512]).unwrap();
        device.write(4096 + 512, &[3; 512]).unwrap();
        device.submit(Nanos(8), &Request::read(4096, 512));
        device.submit(Nanos(9), &Request::flush());
        let log = device.log.as_ref().unwrap();
        let [written, flush] = &log[..] else {
            panic!("{} requests", log.len());
        };
        assert_eq!(written.data[..], [[2; 512], [3; 512]].concat());
        assert_eq!((written.arrived, written.done), (Nanos(7), done.at));
        assert_eq!(
            (flush.op, flush.bytes, flush.data.len()),
            (RequestKind::Flush, 0, 0)
        );
    }

    #[test]
    fn what_a_layer_above_refuses_is_neither_kept_nor_the_cards_work() {
        let mut recording = Recording::new(card());
        recording.log = Some(Vec::new());
        let mut device = Defective::new(recording, Nanos(1000));
        device.defects = Some(Defects {
            refuses: Refuses::Writes,
            ..Defects::default()
        });
        let done = device.submit(Nanos(5), &Request::write(0, 512));
        assert_eq!((done.at, done.status), (Nanos(1005), CardStatus::Failed));
        assert_eq!((device.stats().writes, device.refused.len()), (0, 1));
        assert!(device.below.log.as_ref().unwrap().is_empty());
        let mut sector = [1; 512];
        let read = Request::read(0, 512);
        assert_eq!(device.submit(done.at, &read).status, CardStatus::Ok);
        device.transfer(&read, Payload::Fill(&mut sector)).unwrap();
        assert_eq!(sector, [0; 512]);
    }
}
