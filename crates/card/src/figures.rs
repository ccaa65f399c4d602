//! The figures a profile may state: names, legal ranges, meaning. One table, used by the
//! reader, by the drawing of uncertain parameters and by the messages.

use crate::ftl::MAX_LOGS;
use crate::limits::{AU_BYTES, CAPACITY_MAX, MICROS_MAX, RANDOM_PERCENT, RATE, UNIT_BYTES};
use crate::profile::Family;
use crate::wear::CELLS;

/// What kind of a quantity a figure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Geometry, cycles, switches: never varied by a draw.
    Fixed,
    /// A time, a rate or a threshold: varied within its uncertainty.
    Varied,
}

/// One figure that a profile may or must state.
#[derive(Debug)]
pub(crate) struct Spec {
    /// `section.key` in the TOML file.
    pub path: &'static str,
    /// Least legal value.
    pub min: u64,
    /// Greatest legal value.
    pub max: u64,
    /// Value where the file says nothing; `None` makes it mandatory.
    pub default: Option<u64>,
    /// Whether a draw varies it.
    pub kind: Kind,
    /// The family that has it; `None` for all.
    pub family: Option<Family>,
    /// Where the default is from and how far it may be off, in percent.
    pub assumed: Option<(&'static str, u64)>,
}

impl Spec {
    /// Section and key.
    pub fn names(&self) -> (&'static str, &'static str) {
        self.path
            .split_once('.')
            .unwrap_or_else(|| unreachable!("no section: {}", self.path))
    }

    /// Whether a card of `family` has this figure.
    pub fn belongs_to(&self, family: Family) -> bool {
        self.family.is_none_or(|of| of == family)
    }
}

const fn fixed(path: &'static str, min: u64, max: u64, default: Option<u64>) -> Spec {
    Spec {
        path,
        min,
        max,
        default,
        kind: Kind::Fixed,
        family: None,
        assumed: None,
    }
}

const fn varied(path: &'static str, min: u64, max: u64, default: Option<u64>) -> Spec {
    Spec {
        path,
        min,
        max,
        default,
        kind: Kind::Varied,
        family: None,
        assumed: None,
    }
}

const fn rate(path: &'static str, default: Option<u64>) -> Spec {
    varied(path, *RATE.start(), *RATE.end(), default)
}

/// A figure whose default has a source and an uncertainty of its own.
const fn assumed(spec: Spec, source: &'static str, percent: u64) -> Spec {
    Spec {
        assumed: Some((source, percent)),
        ..spec
    }
}

const fn log_block(spec: Spec) -> Spec {
    Spec {
        family: Some(Family::LogBlock),
        ..spec
    }
}

const fn update_block(spec: Spec) -> Spec {
    Spec {
        family: Some(Family::UpdateBlock),
        ..spec
    }
}

const fn page_map(spec: Spec) -> Spec {
    Spec {
        family: Some(Family::PageMap),
        ..spec
    }
}

/// Source of what the published logs of flashbench were fitted with.
const LOGS: &str = "assumed: fits the logs of flashbench";
/// Source of what no log tells.
const UNKNOWN: &str = "assumed: no measurement";
/// Spare blocks that collecting in the background cannot free: those that are open.
pub(crate) const OPEN_BLOCKS: u64 = 4;

/// All figures, ordered as they are documented in `cards/README.md`.
pub(crate) const SPECS: &[Spec] = &[
    fixed("geometry.capacity_bytes", 1 << 20, CAPACITY_MAX, None),
    fixed("geometry.page_bytes", 512, 1 << 20, None),
    fixed("geometry.write_unit_bytes", 512, 4 << 20, None),
    fixed(
        "geometry.au_bytes",
        *AU_BYTES.start(),
        *AU_BYTES.end(),
        None,
    ),
    fixed("geometry.open_aus_linear", 1, 1024, None),
    fixed("geometry.open_aus_random", 1, 1024, None),
    fixed("geometry.spare_aus", 8, 100_000, None),
    fixed("geometry.real_bytes", 0, CAPACITY_MAX, Some(0)),
    fixed("geometry.beyond", 0, 1, Some(0)),
    varied("bus.command_us", 0, MICROS_MAX, None),
    rate("bus.rate_bytes_per_s", None),
    fixed("bus.mode", 0, 6, Some(0)),
    varied("reader.command_us", 0, MICROS_MAX, Some(0)),
    rate("reader.rate_bytes_per_s", Some(*RATE.end())),
    varied("reader.cut_us", 0, MICROS_MAX, Some(0)),
    fixed("reader.max_bytes", 0, 64 << 20, Some(0)),
    varied("read.first_page_us", 0, MICROS_MAX, None),
    varied("read.next_page_us", 0, MICROS_MAX, None),
    varied("read.au_step_us", 0, MICROS_MAX, Some(0)),
    fixed("read.zone_bytes", 0, CAPACITY_MAX, Some(0)),
    varied("read.zone_step_us", 0, MICROS_MAX, Some(0)),
    varied("write.overhead_us", 0, MICROS_MAX, None),
    rate("write.rate_bytes_per_s", None),
    fixed("write.coalesce", 0, 1, Some(0)),
    fixed("write.coalesce_bytes", 0, 64 << 20, Some(0)),
    assumed(
        varied("write.coalesce_us", 0, MICROS_MAX, Some(10_000)),
        UNKNOWN,
        200,
    ),
    fixed("write.program_bytes", 0, 4 << 20, Some(0)),
    varied("write.partial_us", 0, MICROS_MAX, Some(0)),
    varied("write.partial_full_us", 0, MICROS_MAX, Some(0)),
    varied("write.fill_us", 0, MICROS_MAX, Some(0)),
    varied("write.jump_us", 0, MICROS_MAX, Some(0)),
    varied("write.switch_us", 0, MICROS_MAX, Some(0)),
    rate("copy.rate_bytes_per_s", None),
    varied("copy.erase_us", 0, MICROS_MAX, None),
    fixed("discard.supported", 0, 1, None),
    varied("discard.overhead_us", 0, MICROS_MAX, Some(0)),
    varied("discard.partial_au_us", 0, MICROS_MAX, Some(0)),
    varied("discard.au_us", 0, MICROS_MAX, Some(0)),
    fixed("discard.granularity_bytes", 512, 64 << 20, Some(512)),
    fixed("cache.bytes", 0, 1 << 30, Some(0)),
    varied("cache.flush_us", 0, MICROS_MAX, Some(0)),
    varied("cache.flush_empty_us", 0, MICROS_MAX, Some(0)),
    varied("cache.fua_us", 0, MICROS_MAX, Some(0)),
    fixed("slc.bytes", 0, 64 << 30, Some(0)),
    fixed("slc.most_bytes", 0, 64 << 20, Some(0)),
    varied("slc.overhead_us", 0, MICROS_MAX, Some(0)),
    rate("slc.rate_bytes_per_s", Some(20_000_000)),
    rate("slc.drain_rate_bytes_per_s", Some(10_000_000)),
    fixed("wear.cell", 0, CELLS as u64 - 1, Some(0)),
    fixed("wear.pe_cycles_low", 0, 1_000_000, Some(0)),
    fixed("wear.pe_cycles_high", 0, 1_000_000, Some(0)),
    fixed("fat.aus", 0, 64, Some(0)),
    fixed("fat.first_au", 0, 63, Some(0)),
    varied("fat.overhead_us", 0, MICROS_MAX, Some(0)),
    rate("fat.rate_bytes_per_s", Some(1_000_000)),
    varied("fat.sub_page_us", 0, MICROS_MAX, Some(0)),
    log_block(varied(
        "log_block.random_percent",
        *RANDOM_PERCENT.start(),
        *RANDOM_PERCENT.end(),
        Some(100),
    )),
    log_block(fixed(
        "log_block.log_percent",
        5,
        100 * MAX_LOGS as u64,
        Some(100),
    )),
    log_block(varied("log_block.idle_close_us", 0, MICROS_MAX, Some(0))),
    log_block(fixed("log_block.gap_bytes", 0, 64 << 20, Some(0))),
    log_block(fixed("log_block.small_write_bytes", 0, 1 << 20, Some(0))),
    log_block(fixed("log_block.small_write_jumps", 0, 1, Some(0))),
    log_block(varied("log_block.small_write_us", 0, MICROS_MAX, Some(0))),
    log_block(fixed("log_block.first_opened", 0, 1, Some(0))),
    log_block(fixed("log_block.merge_at_once", 0, 1, Some(0))),
    page_map(fixed(
        "page_map.unit_bytes",
        *UNIT_BYTES.start(),
        *UNIT_BYTES.end(),
        None,
    )),
    page_map(varied("page_map.modify_us", 0, MICROS_MAX, None)),
    page_map(fixed("page_map.streams", 0, 1024, Some(0))),
    page_map(fixed("page_map.background_aus", 0, 100_000, Some(0))),
    page_map(assumed(
        varied("page_map.keep_writes", 8, 65_536, Some(64)),
        LOGS,
        200,
    )),
    page_map(assumed(
        varied("page_map.rest_us", 0, MICROS_MAX, Some(200_000)),
        LOGS,
        200,
    )),
    page_map(assumed(
        varied("page_map.worth_percent", 0, 90, Some(6)),
        UNKNOWN,
        100,
    )),
    update_block(fixed("update_block.small_bytes", 512, 16 << 10, Some(8192))),
    update_block(fixed(
        "update_block.small_area_bytes",
        4096,
        64 << 20,
        Some(1 << 20),
    )),
    update_block(varied("update_block.small_us", 0, MICROS_MAX, Some(0))),
    update_block(varied("update_block.whole_us", 0, MICROS_MAX, Some(0))),
    update_block(fixed(
        "update_block.group_bytes",
        4096,
        64 << 20,
        Some(512 << 10),
    )),
    update_block(rate("update_block.group_rate_bytes_per_s", None)),
    update_block(varied(
        "update_block.fold_rate_bytes_per_s",
        0,
        *RATE.end(),
        Some(0),
    )),
    update_block(fixed(
        "update_block.gather_bytes",
        512,
        64 << 20,
        Some(64 << 10),
    )),
    update_block(fixed("update_block.gap_bytes", 0, 64 << 20, Some(0))),
    update_block(assumed(
        varied("update_block.keep_writes", 8, 65_536, Some(64)),
        LOGS,
        200,
    )),
    update_block(assumed(
        varied("update_block.short_pieces", 1, 64, Some(3)),
        LOGS,
        30,
    )),
    update_block(assumed(
        varied("update_block.shared_percent", 1, 100, Some(25)),
        LOGS,
        30,
    )),
    update_block(assumed(
        varied("update_block.tail_percent", 1, 100, Some(50)),
        LOGS,
        30,
    )),
    update_block(assumed(
        fixed("update_block.tails", 1, 256, Some(16)),
        UNKNOWN,
        0,
    )),
];

/// Index of `path` in [`SPECS`].
pub(crate) fn index_of(path: &str) -> Option<usize> {
    SPECS.iter().position(|spec| spec.path == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_has_a_section_a_range_and_a_legal_default() {
        for (at, spec) in SPECS.iter().enumerate() {
            assert!(spec.names().0.len() > 1);
            assert!(spec.assumed.is_none() || spec.default.is_some());
            assert!(spec.min < spec.max, "{}", spec.path);
            assert!(
                spec.default
                    .is_none_or(|d| (spec.min..=spec.max).contains(&d))
            );
            assert_eq!(
                index_of(spec.path),
                Some(at),
                "{} is there twice",
                spec.path
            );
        }
    }
}
