//! Faults of a card while a system uses it: from an instant on it damages or drops writes, answers
//! with errors, is slow, or does not answer any more.
//!
//! Pure: when each fault acts comes in, in virtual time; how many requests it met comes out. What
//! device-mapper targets do to a real device is the model: `flakey` (`corrupt_bio_byte`,
//! `drop_writes`, `error_reads`, `error_writes`) and `delay`.

use whichfs_card::RequestKind;
use whichfs_units::{KIB, Nanos};

/// Bytes of a filesystem's block.
const BLOCK: u64 = 4 * KIB;

/// When a request that is never answered is done: User Mode Linux' "never" (S64_MAX).
pub const NEVER: Nanos = Nanos(i64::MAX as u64);

/// One fault: what it does, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveFault {
    /// It acts on requests that arrive from here on.
    pub from: Nanos,
    /// It acts for so long, pauses for so long, and so on; none: it acts for good.
    pub alternates: Option<Nanos>,
    /// What it does.
    pub damage: LiveDamage,
}

/// What a live fault does to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiveDamage {
    /// The first byte of each block of 4 KiB that is written is zero.
    ZeroFirstByte,
    /// A write is reported done and changes nothing.
    DropWrites,
    /// Reads are answered with an error, and give no bytes.
    FailReads,
    /// Writes and discards fail.
    FailWrites,
    /// Each request takes so much longer.
    Delay(Nanos),
    /// No request is answered.
    Hang,
}

impl LiveFault {
    /// Whether it acts on a request of `op` that arrives at `now`.
    fn acts(&self, now: Nanos, op: RequestKind) -> bool {
        use RequestKind::{Discard, Read, Write};
        let Some(since) = now.0.checked_sub(self.from.0) else {
            return false;
        };
        let pauses = |every: Nanos| !(since / every.0.max(1)).is_multiple_of(2);
        let kind = match self.damage {
            LiveDamage::ZeroFirstByte | LiveDamage::DropWrites => op == Write,
            LiveDamage::FailReads => op == Read,
            LiveDamage::FailWrites => matches!(op, Write | Discard),
            LiveDamage::Delay(_) | LiveDamage::Hang => true,
        };
        kind && !self.alternates.is_some_and(pauses)
    }
}

/// The live faults of a device, and what they have done so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveFaults {
    /// All of them.
    pub faults: Vec<LiveFault>,
    /// Requests that they met.
    pub hits: u64,
    /// When they met the first.
    pub first_hit: Option<Nanos>,
    /// What they do to the bytes of the request under way.
    write: WriteDamage,
}

/// What happens to the bytes of a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum WriteDamage {
    #[default]
    None,
    Zeroed,
    Dropped,
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LiveFate {
    /// The device serves it, so much later.
    Served(Nanos),
    /// It is answered with an error, and changes nothing.
    Fails,
    /// It is never answered.
    Hangs,
}

impl LiveFaults {
    /// What becomes of a request of `op` that arrives at `now`.
    pub(crate) fn fate(&mut self, now: Nanos, op: RequestKind) -> LiveFate {
        self.write = WriteDamage::None;
        let mut fate = LiveFate::Served(Nanos(0));
        let mut hit = false;
        for fault in self.faults.iter().filter(|fault| fault.acts(now, op)) {
            hit = true;
            match (fault.damage, fate) {
                (LiveDamage::Hang, _) | (_, LiveFate::Hangs) => fate = LiveFate::Hangs,
                (LiveDamage::FailReads | LiveDamage::FailWrites, _) | (_, LiveFate::Fails) => {
                    fate = LiveFate::Fails;
                }
                (LiveDamage::Delay(more), LiveFate::Served(delay)) => {
                    fate = LiveFate::Served(delay + more);
                }
                (LiveDamage::DropWrites, _) => self.write = WriteDamage::Dropped,
                (LiveDamage::ZeroFirstByte, _) => {
                    if self.write == WriteDamage::None {
                        self.write = WriteDamage::Zeroed;
                    }
                }
            }
        }
        if hit {
            self.hits += 1;
            self.first_hit.get_or_insert(now);
        }
        fate
    }

    /// The bytes that a write of `data` at `offset` leaves, where they are not `data`; `old` gives
    /// what was there before.
    pub(crate) fn written<E>(
        &self,
        offset: u64,
        data: &[u8],
        old: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<Option<Vec<u8>>, E> {
        if self.write == WriteDamage::None {
            return Ok(None);
        }
        let mut left = data.to_vec();
        match self.write {
            WriteDamage::None => {}
            WriteDamage::Dropped => old(&mut left)?,
            WriteDamage::Zeroed => {
                let first = (BLOCK - offset % BLOCK) % BLOCK;
                for at in (first as usize..left.len()).step_by(BLOCK as usize) {
                    left[at] = 0;
                }
            }
        }
        Ok(Some(left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(from: u64, damage: LiveDamage) -> LiveFaults {
        LiveFaults {
            faults: vec![LiveFault {
                from: Nanos(from),
                alternates: None,
                damage,
            }],
            ..LiveFaults::default()
        }
    }

    #[test]
    fn a_fault_acts_from_its_instant_on_and_on_its_kind_of_request() {
        let mut live = faults(10, LiveDamage::FailWrites);
        let served = LiveFate::Served(Nanos(0));
        assert_eq!(live.fate(Nanos(9), RequestKind::Write), served);
        assert_eq!(live.fate(Nanos(10), RequestKind::Write), LiveFate::Fails);
        assert_eq!(live.fate(Nanos(11), RequestKind::Discard), LiveFate::Fails);
        assert_eq!(live.fate(Nanos(12), RequestKind::Read), served);
        assert_eq!(live.fate(Nanos(12), RequestKind::Flush), served);
        assert_eq!((live.hits, live.first_hit), (2, Some(Nanos(10))));
    }

    #[test]
    fn a_fault_that_never_begins_meets_nothing() {
        let mut live = faults(NEVER.0, LiveDamage::Hang);
        let fate = live.fate(Nanos(1 << 60), RequestKind::Write);
        assert_eq!(fate, LiveFate::Served(Nanos(0)));
        assert_eq!((live.hits, live.first_hit), (0, None));
    }

    #[test]
    fn an_alternating_fault_pauses_as_long_as_it_acts() {
        let mut live = faults(100, LiveDamage::FailReads);
        live.faults[0].alternates = Some(Nanos(10));
        let fails = [99, 100, 109, 110, 119, 120, 130].map(|now| {
            let fate = live.fate(Nanos(now), RequestKind::Read);
            fate == LiveFate::Fails
        });
        assert_eq!(fails, [false, true, true, false, false, true, false]);
    }

    #[test]
    fn the_first_byte_of_each_block_is_zeroed_wherever_a_write_begins() {
        let mut live = faults(0, LiveDamage::ZeroFirstByte);
        live.fate(Nanos(1), RequestKind::Write);
        let none = |_: &mut [u8]| Ok::<(), ()>(());
        let left = live.written(4096 - 512, &[7; 8192], none).unwrap_or(None);
        let left = left.expect("it is damaged");
        let zeros: Vec<usize> = (0..left.len()).filter(|at| left[*at] == 0).collect();
        assert_eq!(zeros, [512, 512 + 4096]);
        live.fate(Nanos(1), RequestKind::Read);
        assert_eq!(live.written(0, &[7; 512], none), Ok(None));
    }

    #[test]
    fn a_dropped_write_leaves_what_was_there() {
        let mut live = faults(0, LiveDamage::DropWrites);
        live.fate(Nanos(1), RequestKind::Write);
        let old = |out: &mut [u8]| {
            out.fill(3);
            Ok::<(), ()>(())
        };
        assert_eq!(live.written(0, &[7; 4], old), Ok(Some(vec![3; 4])));
    }

    #[test]
    fn delays_add_up_and_a_hang_beats_all() {
        let mut live = faults(0, LiveDamage::Delay(Nanos(5)));
        live.faults.push(live.faults[0]);
        let fate = live.fate(Nanos(1), RequestKind::Flush);
        assert_eq!(fate, LiveFate::Served(Nanos(10)));
        live.faults[0].damage = LiveDamage::Hang;
        live.faults[1].damage = LiveDamage::FailReads;
        assert_eq!(live.fate(Nanos(1), RequestKind::Read), LiveFate::Hangs);
    }
}
