//! Cards that lie about their size: wrapping, vanishing, failing, caching; and honest ones.
#![allow(clippy::unwrap_used)]

mod support;

use support::faulty::{Liar, Lie};
use whichfs_probe::{CapacityOptions, CapacityReport, Honesty, Silent, capacity};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

fn check(device: &mut Liar, preserve: bool) -> CapacityReport {
    let options = CapacityOptions { seed: 3, preserve };
    capacity(device, &options, &mut Silent)
}

#[test]
fn an_honest_card_is_honest_and_keeps_its_data() {
    let mut device = Liar::new(8 * GIB, 8 * GIB, Lie::None);
    let report = check(&mut device, true);
    assert_eq!(report.honesty, Honesty::Honest, "{report:?}");
    assert_eq!(report.real_bytes, Some(8 * GIB));
    assert_eq!(report.lost_blocks, 0);
    let changed = device
        .blocks
        .iter()
        .filter(|(at, data)| **data != Liar::original(**at));
    assert_eq!(changed.count(), 0);
}

#[test]
fn wrapping_is_found_at_any_size_to_the_byte() {
    for real in [GIB, 4 * GIB, 3 * GIB + 7 * MIB, 1_234_567 * 4096] {
        for claimed in [16 * GIB, 60 * GIB] {
            let mut device = Liar::new(claimed, real, Lie::Wraps);
            let report = check(&mut device, true);
            assert_eq!(report.honesty, Honesty::Wraps, "{report:?}");
            assert_eq!(report.real_bytes, Some(real), "{report:?}");
            let changed = device
                .blocks
                .iter()
                .filter(|(at, data)| **data != Liar::original(**at));
            assert_eq!(changed.count(), 0, "data are put back");
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
        for real in [2 * GIB, 7 * GIB + 4096 * 77] {
            let mut device = Liar::new(32 * GIB, real, lie);
            let report = check(&mut device, true);
            assert_eq!(report.honesty, honesty, "{lie:?} {report:?}");
            assert_eq!(report.real_bytes, Some(real), "{lie:?} {report:?}");
            let changed = device
                .blocks
                .iter()
                .filter(|(at, data)| **data != Liar::original(**at));
            assert_eq!(changed.count(), 0, "{lie:?}: data are put back");
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
