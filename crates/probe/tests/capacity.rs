//! Cards that lie about their size: wrapping, vanishing, failing, caching; and honest ones.
#![allow(clippy::unwrap_used)]

use crate::support;

use std::panic::{AssertUnwindSafe, catch_unwind};
use support::faulty::{Fault, Faulty, Liar, Lie};
use whichfs_curves::{DeviceError, TimedDevice};
use whichfs_probe::{
    Blocks, CapacityOptions, CapacityReport, Honesty, MemoryOnly, ProbeStep, Progress, Rescue,
    Silent, UndoLog, capacity, rescue,
};
use whichfs_units::Nanos;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

const SEED: u64 = 3;

fn check(device: &mut dyn TimedDevice, preserve: bool) -> CapacityReport {
    let seed = SEED;
    let options = CapacityOptions { seed, preserve };
    capacity(device, &options, &mut MemoryOnly, &mut Silent)
}

/// Blocks of 4 KiB that are not as they were before any test.
fn changed(device: &Liar) -> u64 {
    let sectors = device.blocks.iter();
    let changed = sectors.filter(|(at, data)| **data != Liar::original(**at));
    let mut blocks: Vec<u64> = changed.map(|(at, _)| at / 4096).collect();
    blocks.dedup();
    blocks.len() as u64
}

/// An honest card small enough to be checked many times.
fn small() -> Liar {
    Liar::new(64 * MIB, 64 * MIB, Lie::None)
}

#[test]
fn an_honest_card_is_honest_and_keeps_its_data() {
    let mut device = Liar::new(8 * GIB, 8 * GIB, Lie::None);
    let report = check(&mut device, true);
    assert_eq!(report.honesty, Honesty::Honest, "{report:?}");
    assert_eq!(report.real_bytes, Some(8 * GIB));
    assert_eq!(report.lost_blocks, 0);
    assert_eq!(changed(&device), 0);
}

#[test]
fn wrapping_is_found_at_any_size_to_the_byte() {
    let within_a_block = [GIB + 512, 4 * GIB - 512, 7_999_999_488];
    let whole_blocks = [GIB, 4 * GIB, 3 * GIB + 7 * MIB, 1_234_567 * 4096];
    for real in whole_blocks.into_iter().chain(within_a_block) {
        for claimed in [16 * GIB, 60 * GIB] {
            let mut device = Liar::new(claimed, real, Lie::Wraps);
            let report = check(&mut device, true);
            assert_eq!(report.honesty, Honesty::Wraps, "{report:?}");
            assert_eq!(report.real_bytes, Some(real), "{report:?}");
            assert_eq!(changed(&device), 0, "data are put back");
        }
    }
}

#[test]
fn vanishing_and_failing_are_found_to_the_block() {
    let kinds = [
        (Lie::Zeros, Honesty::Vanishes),
        (Lie::Stale, Honesty::Vanishes),
        (Lie::Fails, Honesty::Fails),
    ];
    for (lie, honesty) in kinds {
        for real in [
            2 * GIB,
            7 * GIB + 4096 * 77,
            8_000_000_000,
            5 * GIB + 4096 * 1001,
        ] {
            let mut device = Liar::new(32 * GIB, real, lie);
            let report = check(&mut device, true);
            assert_eq!(report.honesty, honesty, "{lie:?} {report:?}");
            assert_eq!(report.real_bytes, Some(real), "{lie:?} {report:?}");
            assert_eq!(changed(&device), 0, "{lie:?}: data are put back");
        }
    }
}

#[test]
fn a_cache_that_shows_what_is_not_kept_deceives_nobody() {
    let mut device = Liar::new(32 * GIB, 5 * GIB, Lie::Zeros);
    device.cache = 1000;
    let report = check(&mut device, false);
    assert_eq!(report.honesty, Honesty::Vanishes, "{report:?}");
    assert_eq!(report.real_bytes, Some(5 * GIB));
}

#[test]
fn few_bytes_are_written() {
    let mut device = Liar::new(32 * GIB, 5 * GIB, Lie::Zeros);
    let report = check(&mut device, false);
    // A stripe of the 2000th part, and pushes of 8 MiB for each of log16 rounds.
    assert!(report.bytes_written < 96 * MIB, "{}", report.bytes_written);
    let marks = device.writes;
    assert!(marks < 300, "{marks} write requests");
}

#[test]
fn a_card_too_small_to_check_says_so() {
    let mut device = Liar::new(2 * MIB, 2 * MIB, Lie::None);
    let report = check(&mut device, true);
    assert_eq!(report.honesty, Honesty::Unknown);
    assert!(report.ended.unwrap().contains("too small"));
}

#[test]
fn one_failing_request_at_any_instant_loses_nothing() {
    let mut whole = Faulty::new(small(), Fault::Gone(u64::MAX));
    assert_eq!(check(&mut whole, true).honesty, Honesty::Honest);
    for at in 1..=whole.requests {
        for fault in [Fault::Once(at), Fault::OnceDone(at)] {
            let mut device = Faulty::new(small(), fault);
            let report = check(&mut device, true);
            assert_eq!(changed(&device.inner), 0, "{fault:?} {report:?}");
            assert_eq!(report.lost_blocks, 0, "{fault:?}");
        }
    }
}

#[test]
fn a_card_that_is_pulled_out_has_lost_what_is_marked_and_that_is_told() {
    let mut device = Faulty::new(small(), Fault::Gone(8));
    let report = check(&mut device, true);
    assert_eq!(report.honesty, Honesty::Unknown);
    assert!(changed(&device.inner) > 0);
    assert_eq!(report.lost_blocks, changed(&device.inner), "{report:?}");
}

/// A device whose writes to one block stop working after the first.
struct WornOut {
    inner: Liar,
    at: u64,
    written: bool,
}

impl TimedDevice for WornOut {
    fn capacity_bytes(&self) -> u64 {
        self.inner.capacity_bytes()
    }
    fn elapsed(&self) -> Nanos {
        self.inner.elapsed()
    }
    fn read(&mut self, offset: u64, buffer: &mut [u8]) -> Result<Nanos, DeviceError> {
        self.inner.read(offset, buffer)
    }
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<Nanos, DeviceError> {
        let hit = (offset..offset + data.len() as u64).contains(&self.at);
        if hit && self.written {
            return Ok(Nanos::ZERO);
        }
        self.written |= hit;
        self.inner.write(offset, data)
    }
    fn discard(&mut self, offset: u64, bytes: u64) -> Result<Nanos, DeviceError> {
        self.inner.discard(offset, bytes)
    }
    fn flush(&mut self) -> Result<Nanos, DeviceError> {
        self.inner.flush()
    }
    fn rest(&mut self, span: Nanos) {
        self.inner.rest(span);
    }
}

#[test]
fn blocks_that_cannot_be_put_back_are_counted() {
    // The run that holds the block is dropped without a word, then written block by block.
    let (inner, at) = (small(), MIB + 8192);
    let written = false;
    let mut device = WornOut { inner, at, written };
    let report = check(&mut device, true);
    assert_eq!(changed(&device.inner), 1, "{report:?}");
    assert_eq!(report.lost_blocks, 1);
}

/// Panics at the n-th step that it is told.
struct Panics(u32);

impl Progress for Panics {
    fn step(&mut self, _step: &ProbeStep) {
        self.0 -= 1;
        assert!(self.0 > 0, "nobody listens any more");
    }
}

#[test]
fn a_panic_on_the_way_loses_nothing() {
    let seed = SEED;
    let preserve = true;
    let options = CapacityOptions { seed, preserve };
    for steps in [2, 40, 66, 67] {
        let mut device = small();
        let mut watcher = Panics(steps);
        let run = AssertUnwindSafe(|| {
            capacity(&mut device, &options, &mut MemoryOnly, &mut watcher);
        });
        assert!(catch_unwind(run).is_err(), "{steps}");
        assert!(device.writes > 0, "{steps}");
        assert_eq!(changed(&device), 0, "{steps}");
    }
}

/// Keeps all; fails after so many calls.
struct Memory {
    blocks: Blocks,
    calls: u32,
}

impl UndoLog for Memory {
    fn keep(&mut self, blocks: &Blocks) -> Result<(), String> {
        self.calls = self.calls.checked_sub(1).ok_or("no space left")?;
        self.blocks.extend(blocks.clone());
        Ok(())
    }
}

#[test]
fn what_is_not_kept_is_not_overwritten() {
    for calls in 0..3 {
        let blocks = Blocks::new();
        let mut keeper = Memory { blocks, calls };
        let mut device = small();
        let (seed, preserve) = (SEED, true);
        let options = CapacityOptions { seed, preserve };
        let report = capacity(&mut device, &options, &mut keeper, &mut Silent);
        for at in device.blocks.keys() {
            assert!(keeper.blocks.contains_key(&(at / 4096 * 4096)), "{at}");
        }
        let refused = report.ended.is_some_and(|ended| ended.contains("no space"));
        assert_eq!(refused, calls < 2);
        assert_eq!(changed(&device), 0);
    }
}

#[test]
fn a_killed_check_is_made_good_from_what_was_kept_and_newer_data_stay() {
    let (blocks, calls) = (Blocks::new(), 9);
    let mut keeper = Memory { blocks, calls };
    // Killed: nothing is written any more from some request on.
    let mut device = Faulty::new(small(), Fault::Gone(70));
    let (seed, preserve) = (SEED, true);
    let options = CapacityOptions { seed, preserve };
    capacity(&mut device, &options, &mut keeper, &mut Silent);
    let mut device = device.inner;
    let marked = changed(&device);
    assert!(marked > 0);
    // Somebody wrote to a block since, and one mark is torn.
    device.write(MIB, &[7; 4096]).unwrap();
    device.write(2 * MIB - 4096, &[9; 512]).unwrap();
    let found = rescue(&mut device, SEED, &keeper.blocks, &mut Silent);
    let expected = Rescue {
        put_back: marked - 1,
        changed: 1,
        lost: 0,
    };
    assert_eq!(found, expected);
    assert_eq!(changed(&device), 1, "only the block that somebody wrote");
    // Marks of another check are not touched.
    let other = rescue(&mut device, SEED + 1, &keeper.blocks, &mut Silent);
    assert_eq!((other.put_back, other.changed), (0, 1));
}

#[test]
fn what_is_only_in_the_cards_cache_is_not_back() {
    let saved = |after| {
        let mut device = Faulty::new(small(), Fault::Flushes(after));
        let report = check(&mut device, true);
        assert_eq!(changed(&device.inner), 0, "written, but not there to stay");
        report
    };
    let whole = saved(u64::MAX);
    assert_eq!((whole.honesty, whole.lost_blocks), (Honesty::Honest, 0));
    // From the first flush of the check on, and from the first one of putting back on.
    for after in [0, 2] {
        let report = saved(after);
        assert!(report.lost_blocks >= 256, "{after}: {report:?}");
    }
    let blocks: Blocks = [(MIB, vec![7; 4096])].into();
    let mut device = Faulty::new(marked_card(), Fault::Flushes(0));
    let found = rescue(&mut device, SEED, &blocks, &mut Silent);
    assert_eq!((found.put_back, found.lost), (0, 1));
}

/// A card on which a check was killed: its stripe is marked.
fn marked_card() -> Liar {
    let mut device = Faulty::new(small(), Fault::Gone(8));
    check(&mut device, true);
    assert!(changed(&device.inner) > 0);
    device.inner
}

#[test]
fn a_block_that_dies_under_its_mark_is_lost_also_beyond_the_end_that_was_found() {
    let last = 64 * MIB - 4096;
    let mut device = Faulty::new(small(), Fault::Range(last, last + 4096));
    let report = check(&mut device, true);
    assert_eq!(report.honesty, Honesty::Fails, "{report:?}");
    assert_eq!(report.real_bytes, Some(last));
    assert_eq!(report.lost_blocks, 0, "nothing was written there");
    // It could be read, and then the first write kills it.
    let mut device = Faulty::new(small(), Fault::Dies(last, last + 4096));
    let report = check(&mut device, true);
    assert_eq!((report.honesty, report.lost_blocks), (Honesty::Fails, 1));
}

#[test]
fn what_cannot_be_read_is_written_only_where_other_blocks_tell_the_card() {
    let (blocks, calls) = (Blocks::new(), 9);
    let mut keeper = Memory { blocks, calls };
    let (seed, preserve) = (SEED, true);
    let options = CapacityOptions { seed, preserve };
    let mut device = Faulty::new(small(), Fault::Gone(8));
    capacity(&mut device, &options, &mut keeper, &mut Silent);
    // Its first block can be written, but not read.
    let unreadable = |inner| Unreadable { inner, at: MIB };
    let mut same = unreadable(device.inner);
    let found = rescue(&mut same, SEED, &keeper.blocks, &mut Silent);
    assert_eq!((found.changed, found.lost), (0, 1), "{found:?}");
    assert_eq!(changed(&same.inner), 0, "it was written");
    let mut stranger = small();
    for at in keeper.blocks.keys() {
        stranger.write(*at, &[9; 4096]).unwrap();
    }
    let mut stranger = unreadable(stranger);
    let found = rescue(&mut stranger, SEED, &keeper.blocks, &mut Silent);
    assert_eq!((found.put_back, found.lost), (0, 1), "{found:?}");
    assert_eq!(stranger.inner.kept(MIB), [9; 512], "another card's block");
}

/// A device on which one block cannot be read.
struct Unreadable {
    inner: Liar,
    at: u64,
}

impl TimedDevice for Unreadable {
    fn capacity_bytes(&self) -> u64 {
        self.inner.capacity_bytes()
    }
    fn elapsed(&self) -> Nanos {
        self.inner.elapsed()
    }
    fn read(&mut self, offset: u64, buffer: &mut [u8]) -> Result<Nanos, DeviceError> {
        let bytes = buffer.len() as u64;
        match (offset..offset + bytes).contains(&self.at) {
            true => Err(DeviceError::Failed {
                operation: "read",
                offset,
                bytes,
                reason: "medium error".into(),
            }),
            false => self.inner.read(offset, buffer),
        }
    }
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<Nanos, DeviceError> {
        self.inner.write(offset, data)
    }
    fn discard(&mut self, offset: u64, bytes: u64) -> Result<Nanos, DeviceError> {
        self.inner.discard(offset, bytes)
    }
    fn flush(&mut self) -> Result<Nanos, DeviceError> {
        self.inner.flush()
    }
    fn rest(&mut self, span: Nanos) {
        self.inner.rest(span);
    }
}
