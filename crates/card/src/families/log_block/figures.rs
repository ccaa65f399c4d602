//! The figures of log blocks, and what a fit is told of them.

use crate::figures::{CardFigures, section};
use crate::fit_hints::{FigureIs, FitHints, FittedFigure, PriorScale, SearchedFigure};
use crate::limits::{MICROS_MAX, RANDOM_PERCENT};

/// Most log blocks that one AU may use.
pub(super) const LOGS_MAX: usize = 4;
/// Blocks that closing an AU takes beside its logs.
const MERGING: u64 = 2;

section! {
    /// Figures of the family with a log block for each open AU.
    log_block: LogBlockFigures {
        /// Time of writes in random order over those in order, percent.
        random_percent: varied(*RANDOM_PERCENT.start(), *RANDOM_PERCENT.end(), Some(100));
        /// What a chaotic log takes before it is merged, percent of an AU.
        log_percent: fixed(5, 100 * LOGS_MAX as u64, Some(100));
        /// Rest after which logs are closed, microseconds; 0 is never.
        idle_close_us: varied(0, MICROS_MAX, Some(0));
        /// Gaps up to this are copied forward, bytes.
        gap_bytes: fixed(0, 64 << 20, Some(0));
        /// Writes below this go to an area of their own, bytes; 0 is none.
        small_write_bytes: fixed(0, 1 << 20, Some(0));
        /// 1 if contiguous small writes do not go there.
        small_write_jumps: fixed(0, 1, Some(0));
        /// A write to that area, microseconds.
        small_write_us: varied(0, MICROS_MAX, Some(0));
        /// 1 closes the AU opened first, 0 the one used longest ago.
        first_opened: fixed(0, 1, Some(0));
        /// 1 merges a full chaotic log by the write that fills it, and before a write of the
        /// whole AU.
        merge_at_once: fixed(0, 1, Some(0));
    }
}

impl LogBlockFigures {
    /// Blocks that are taken when all AUs that can be are open, those at random with all their
    /// logs, and one is merged.
    pub(super) fn blocks_taken(&self, card: &CardFigures) -> u64 {
        let linear = card.open_aus_linear();
        let more = self.log_percent.value.div_ceil(100) - 1;
        linear + more * card.open_aus_random().min(linear) + MERGING
    }
}

/// There is an area for small writes.
const SMALL_WRITES: Option<FigureIs> = Some(FigureIs {
    path: "log_block.small_write_bytes",
    values: 1..=u64::MAX,
});

/// What a fit is told.
pub(super) const FIT: FitHints = FitHints {
    start: &[
        ("log_block.log_percent", 100),
        ("log_block.gap_bytes", 0),
        ("log_block.small_write_bytes", 0),
        ("log_block.small_write_jumps", 0),
        ("log_block.idle_close_us", 0),
        ("log_block.merge_at_once", 0),
        ("log_block.first_opened", 0),
    ],
    searched: &[
        SearchedFigure {
            of_few_sizes: &[&[0], &[8 << 10]],
            ..SearchedFigure::always("log_block.small_write_bytes", &[&[0], &[8 << 10, 16 << 10]])
        },
        SearchedFigure {
            only: SMALL_WRITES,
            ..SearchedFigure::always("log_block.small_write_jumps", &[&[0], &[1]])
        },
        // Merges of an AU written at random: none, one, two and more.
        SearchedFigure {
            of_few_sizes: &[&[70], &[50], &[42], &[34], &[28]],
            ..SearchedFigure::always(
                "log_block.log_percent",
                &[&[200, 300, 400], &[50], &[42, 34, 28], &[70]],
            )
        },
        SearchedFigure::of_many_sizes("log_block.merge_at_once", &[&[0], &[1]]),
        SearchedFigure::of_many_sizes("log_block.gap_bytes", &[&[16 << 10]]),
        SearchedFigure::shared("geometry.open_aus_linear"),
        SearchedFigure::shared("geometry.open_aus_random"),
    ],
    restarts: &[
        ("log_block.first_opened", &[0, 1]),
        ("log_block.merge_at_once", &[0, 1]),
        ("log_block.log_percent", &[100, 200]),
    ],
    fitted: &[
        FittedFigure {
            path: "log_block.small_write_us",
            scale: PriorScale::Pages,
            ln_centre: 2.0,
            sigma: 1.0,
            why: "cards of family A+s in the data",
            only: SMALL_WRITES,
        },
        FittedFigure {
            path: "log_block.random_percent",
            scale: PriorScale::Absolute,
            ln_centre: 0.05,
            sigma: 0.2,
            why: "cards of family A in the data: 100 to 130",
            only: None,
        },
    ],
    unusual: &[
        ("log_block.log_percent", 0..=100, 0.5),
        ("log_block.gap_bytes", 0..=0, 0.5),
        ("log_block.small_write_bytes", 0..=0, 0.5),
        ("log_block.first_opened", 0..=0, 0.5),
    ],
    ..FitHints::NONE
};
