//! A device that refuses requests and gives wrong bytes.

use crate::defects::Defects;
use crate::device::BlockDevice;
use crate::live::{LiveFate, LiveFaults, NEVER};
use whichfs_card::{CardStatus, Completion, ContentsError, Request, RequestKind};
use whichfs_units::Nanos;

/// A device with the defects of a bad card.
pub struct Defective<D> {
    /// The device below, which does not see refused requests.
    pub below: D,
    /// What it fails to do; `None` for a good card.
    pub defects: Option<Defects>,
    /// What goes wrong with it while it is used.
    pub live: LiveFaults,
    /// When it refused a request.
    pub refused: Vec<Nanos>,
    /// Time that a refusal takes.
    refusal_cost: Nanos,
}

impl<D> Defective<D> {
    /// No defects yet; a refusal takes `refusal_cost`.
    pub fn new(below: D, refusal_cost: Nanos) -> Defective<D> {
        Defective {
            below,
            defects: None,
            live: LiveFaults::default(),
            refused: Vec::new(),
            refusal_cost,
        }
    }
}

impl<D: BlockDevice> BlockDevice for Defective<D> {
    type Below = D;

    fn below(&self) -> &D {
        &self.below
    }

    fn below_mut(&mut self) -> &mut D {
        &mut self.below
    }

    #[inline]
    fn submit(&mut self, now: Nanos, request: &Request) -> Completion {
        if let Some(defects) = &mut self.defects
            && !defects.admits(request.op, request.offset, request.bytes)
        {
            self.refused.push(now);
            return Completion {
                at: now + self.refusal_cost,
                status: CardStatus::Failed,
            };
        }
        if self.live.faults.is_empty() {
            return self.below.submit(now, request);
        }
        match self.live.fate(now, request.op) {
            LiveFate::Served(delay) => {
                let mut done = self.below.submit(now, request);
                done.at += delay;
                done
            }
            LiveFate::Fails => {
                if request.op != RequestKind::Read {
                    self.refused.push(now);
                }
                Completion {
                    at: now + self.refusal_cost,
                    status: CardStatus::Failed,
                }
            }
            LiveFate::Hangs => Completion {
                at: NEVER,
                status: CardStatus::Failed,
            },
        }
    }

    #[inline]
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), ContentsError> {
        let below = &mut self.below;
        let left = self
            .live
            .written(offset, data, |old| below.read(offset, old))?;
        self.below.write(offset, left.as_deref().unwrap_or(data))
    }

    #[inline]
    fn read(&mut self, offset: u64, out: &mut [u8]) -> Result<(), ContentsError> {
        self.below.read(offset, out)?;
        if let Some(defects) = &mut self.defects {
            defects.corrupt(offset, out);
        }
        Ok(())
    }
}
