//! A device whose reads nobody times.

use crate::device::BlockDevice;
use whichfs_card::{CardStatus, Completion, Request, RequestKind};
use whichfs_units::Nanos;

/// A device that answers reads at once, while that is switched on.
pub struct Untimed<D> {
    /// The device below, which then does not see reads.
    pub below: D,
    /// Whether reads are answered at once.
    pub on: bool,
}

impl<D> Untimed<D> {
    /// Switched off.
    pub fn new(below: D) -> Untimed<D> {
        Untimed { below, on: false }
    }
}

impl<D: BlockDevice> BlockDevice for Untimed<D> {
    type Below = D;

    fn below(&self) -> &D {
        &self.below
    }

    fn below_mut(&mut self) -> &mut D {
        &mut self.below
    }

    #[inline]
    fn submit(&mut self, now: Nanos, request: &Request) -> Completion {
        if self.on && request.op == RequestKind::Read {
            return Completion {
                at: now,
                status: CardStatus::Ok,
            };
        }
        self.below.submit(now, request)
    }
}
