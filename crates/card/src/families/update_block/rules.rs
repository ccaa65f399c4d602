//! What a profile says of family S, and the arithmetic of its sizes.

use super::UpdateBlockFigures;
use crate::figures::{CardFigures, Figure};
use crate::flash::Program;
use std::num::NonZeroU64;

/// Parameters, from the profile.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rules {
    pub au_bytes: u64,
    pub page_bytes: u64,
    pub flash_bytes: u64,
    pub open: usize,
    pub open_chaotic: usize,
    pub program: Program,
    pub copy_rate: u64,
    /// If complete AUs are folded.
    pub fold_rate: Option<NonZeroU64>,
    pub erase_ns: u64,
    pub small_bytes: u64,
    pub small_area_bytes: u64,
    pub small_ns: u64,
    pub whole_ns: u64,
    pub group_bytes: u64,
    pub group_rate: u64,
    pub gather_bytes: u64,
    pub gap_bytes: u64,
    /// Writes after which an AU that was not written loses its place to one that asks.
    pub keep_writes: u64,
    /// Bytes of short writes that are gathered before a group is consolidated.
    pub short_bytes: u64,
    /// What the AUs without an update block have of a small-write area together.
    pub shared_bytes: u64,
    /// Least write of an AU's beginning that begins writing it in order.
    pub tail_bytes: u64,
    /// AUs without an update block whose end is remembered.
    pub tails: usize,
}

impl Rules {
    /// The figures of `profile`.
    pub fn new(card: &CardFigures, own: &UpdateBlockFigures) -> Rules {
        let open = card.open_aus_linear() as usize;
        let percent = |of: u64, part: &Figure| of * part.value / 100;
        let small_area_bytes = own.small_area_bytes.value;
        let gather_bytes = own.gather_bytes.value;
        Rules {
            au_bytes: card.au_bytes(),
            page_bytes: card.page_bytes(),
            flash_bytes: card.flash_bytes(),
            open,
            open_chaotic: (card.open_aus_random() as usize).min(open),
            program: Program::new(card, card.page_bytes()),
            copy_rate: card.copy.rate_bytes_per_s.value,
            fold_rate: NonZeroU64::new(own.fold_rate_bytes_per_s.value),
            erase_ns: card.copy.erase_us.nanos(),
            small_bytes: own.small_bytes.value,
            small_area_bytes,
            small_ns: own.small_us.nanos(),
            whole_ns: own.whole_us.nanos(),
            group_bytes: own.group_bytes.value,
            group_rate: own.group_rate_bytes_per_s.value,
            gather_bytes,
            gap_bytes: own.gap_bytes.value,
            keep_writes: own.keep_writes.value,
            short_bytes: gather_bytes * own.short_pieces.value,
            shared_bytes: percent(small_area_bytes, &own.shared_percent),
            tail_bytes: percent(card.au_bytes(), &own.tail_percent),
            tails: own.tails.value as usize,
        }
    }

    /// What a write to the small-write area takes beside programming: `small_us` for 4 KiB and
    /// with the square of the size, which is what the logs show (WB1 1.6 and 5-6.7 ms for 4 and
    /// 8 KiB, WB4 1.6 and 5-7, WB12 1.9 and 5-6, WB27 1.7 and 11).
    pub fn small_write_ns(&self, bytes: u64) -> u64 {
        const FOUR_KIB: u64 = 4096;
        let pieces = bytes.div_ceil(FOUR_KIB);
        self.small_ns * pieces * pieces
    }

    /// Bytes of the pages that `within..end` begins in a block that is filled up to `next`.
    pub fn pages_behind(&self, next: u64, within: u64, end: u64) -> u64 {
        let page = self.page_bytes;
        let first = (within / page).max(next.div_ceil(page));
        end.div_ceil(page).saturating_sub(first) * page
    }

    /// The groups that `within..end` touches.
    pub fn groups(&self, within: u64, end: u64) -> std::ops::Range<u32> {
        (within / self.group_bytes) as u32..end.div_ceil(self.group_bytes) as u32
    }
}
