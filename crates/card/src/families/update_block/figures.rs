//! The figures of update blocks, how they fit together, and what a fit is told of them.

use crate::figures::{CardFigures, LOGS, Misfit, UNKNOWN, section};
use crate::fit_hints::{FigureIs, FitHints, FittedFigure, PriorScale, SearchedFigure};
use crate::limits::{MICROS_MAX, RATE};

/// Blocks that closing an AU takes beside its update block.
const MERGING: u64 = 2;
/// Most groups of an AU: one bit each.
const GROUPS_MAX: u64 = 128;

section! {
    /// Figures of the family with update blocks.
    update_block: UpdateBlockFigures {
        /// Writes up to this go to the small-write area, bytes.
        small_bytes: fixed(512, 16 << 10, Some(8192));
        /// Size of that area.
        small_area_bytes: fixed(4096, 64 << 20, Some(1 << 20));
        /// A write of 4 KiB to it, microseconds.
        small_us: varied(0, MICROS_MAX, Some(0));
        /// Copying an AU as a whole, microseconds; 0 goes by the copy rate.
        whole_us: varied(0, MICROS_MAX, Some(0));
        /// Group that is rewritten as one, bytes.
        group_bytes: fixed(4096, 64 << 20, Some(512 << 10));
        /// Rate at which groups are rewritten, bytes a second.
        group_rate_bytes_per_s: rate(None);
        /// Rate at which complete AUs are copied once more; 0 is not at all.
        fold_rate_bytes_per_s: varied(0, *RATE.end(), Some(0));
        /// Pieces that are gathered, bytes.
        gather_bytes: fixed(512, 64 << 20, Some(64 << 10));
        /// Gaps up to this are copied forward, bytes.
        gap_bytes: fixed(0, 64 << 20, Some(0));
        /// Writes to others after which an AU loses its place to one that asks.
        keep_writes: varied(8, 65_536, Some(64)), assumed(LOGS, 200);
        /// Pieces of `gather_bytes` that an AU without an update block takes.
        short_pieces: varied(1, 64, Some(3)), assumed(LOGS, 30);
        /// Share of the small-write area that such AUs may fill, percent.
        shared_percent: varied(1, 100, Some(25)), assumed(LOGS, 30);
        /// Share of an AU that a remembered end may reach, percent.
        tail_percent: varied(1, 100, Some(50)), assumed(LOGS, 30);
        /// AUs without an update block whose end is remembered.
        tails: fixed(1, 256, Some(16)), assumed(UNKNOWN, 0);
    }
}

impl UpdateBlockFigures {
    /// Whether groups are parts of an AU, and few enough, and there are blocks for open AUs.
    pub(super) fn check(&self, card: &CardFigures) -> Result<(), Misfit> {
        let group = &self.group_bytes;
        card.geometry
            .au_bytes
            .check_multiple(group.value, group.path)?;
        let groups = card.au_bytes() / group.value;
        if groups > GROUPS_MAX {
            let found = format!("{groups} groups in an AU, more than {GROUPS_MAX}");
            return Err((group.path, found));
        }
        card.check_spare(card.open_aus_linear() + MERGING)
    }
}

/// What a fit is told.
pub(super) const FIT: FitHints = FitHints {
    start: &[
        ("update_block.small_bytes", 8 << 10),
        ("update_block.small_area_bytes", 4 << 20),
        ("update_block.group_bytes", 512 << 10),
    ],
    searched: &[
        SearchedFigure::always(
            "update_block.group_bytes",
            &[&[256 << 10], &[512 << 10], &[1 << 20]],
        ),
        SearchedFigure::shared("geometry.open_aus_linear"),
        SearchedFigure::of_many_sizes(
            "update_block.small_bytes",
            &[&[4 << 10], &[8 << 10], &[16 << 10]],
        ),
    ],
    fitted: &[
        // 0.53 s, not in proportion to the write rate: the same model at 6 and at 18 MB/s takes
        // much the same.
        FittedFigure {
            path: "update_block.whole_us",
            scale: PriorScale::Absolute,
            ln_centre: 20.09,
            sigma: 0.3,
            why: "cards of family S in the data with a limit of open AUs: 0.42 to 0.71 s",
            only: Some(FigureIs {
                path: "geometry.open_aus_linear",
                values: 1..=7,
            }),
        },
        FittedFigure {
            path: "update_block.small_us",
            scale: PriorScale::Pages,
            ln_centre: 0.5,
            sigma: 0.8,
            why: "cards of family S in the data",
            only: None,
        },
        FittedFigure {
            path: "update_block.group_rate_bytes_per_s",
            scale: PriorScale::WriteTime,
            ln_centre: 0.5,
            sigma: 0.5,
            why: "cards of family S in the data",
            only: None,
        },
    ],
    // Update blocks show where they are: 64 KiB at random takes many times what it does in order
    // and 1 MiB does not. Without that, other families explain as much.
    oddity: 4.0,
    unusual: &[("update_block.group_bytes", 512 << 10..=512 << 10, 2.2)],
    ..FitHints::NONE
};
