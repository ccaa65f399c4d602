//! The sequences against the real program: counts, places
//! and arithmetic on a device that records.

#![allow(clippy::unwrap_used)]

use super::*;
use whichfs_units::Nanos;

/// Records requests; each takes a time that its place decides.
struct Recorder {
    size: u64,
    log: Vec<(char, u64, u64)>,
}

impl Recorder {
    fn new() -> Recorder {
        Recorder {
            size: 1 << 30,
            log: Vec::new(),
        }
    }
}

impl TimedDevice for Recorder {
    fn capacity_bytes(&self) -> u64 {
        self.size
    }
    fn elapsed(&self) -> Nanos {
        Nanos(0)
    }
    fn read(&mut self, offset: u64, buffer: &mut [u8]) -> Result<Nanos, DeviceError> {
        self.log.push(('r', offset, buffer.len() as u64));
        let crosses = offset / 4096 != (offset + buffer.len() as u64 - 1) / 4096;
        // The first try is slow: the fastest counts.
        let first = self.log.len() <= 21;
        let extra = if crosses { 500 } else { 0 } + if first { 77_000 } else { 0 };
        Ok(Nanos(1000 + extra))
    }
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<Nanos, DeviceError> {
        self.log.push(('w', offset, data.len() as u64));
        Ok(Nanos(data.len() as u64))
    }
    fn discard(&mut self, _: u64, _: u64) -> Result<Nanos, DeviceError> {
        Err(DeviceError::Unsupported("discard"))
    }
    fn flush(&mut self) -> Result<Nanos, DeviceError> {
        Err(DeviceError::Unsupported("flush"))
    }
    fn rest(&mut self, span: Nanos) {
        self.log.push(('z', 0, span.0));
    }
}

const MIB: u64 = 1 << 20;

fn writing(aus: u32, random: bool) -> FlashbenchWriting {
    FlashbenchWriting {
        erase_bytes: 4 * MIB,
        block_bytes: MIB,
        aus,
        random,
    }
}

#[test]
fn open_aus_are_twelve_aus_apart_and_interleaved_by_block() {
    let mut device = Recorder::new();
    let rates = open_aus(&mut device, &writing(2, true)).unwrap();
    assert_eq!(
        rates.keys().copied().collect::<Vec<_>>(),
        [MIB, 2 * MIB, 4 * MIB]
    );
    assert!(
        rates.values().all(|rate| *rate == 1e9),
        "a nanosecond a byte"
    );
    let (low, high) = (16 * MIB, 64 * MIB);
    let expect = [
        // 4 MiB: AU 1, AU 0.
        (high, 4),
        (low, 4),
        // 2 MiB: blocks 1, 0.
        (high + 2 * MIB, 2),
        (low + 2 * MIB, 2),
        (high, 2),
        (low, 2),
        // 1 MiB: blocks 2, 1, 3, 0.
        (high + 2 * MIB, 1),
        (low + 2 * MIB, 1),
        (high + MIB, 1),
        (low + MIB, 1),
        (high + 3 * MIB, 1),
        (low + 3 * MIB, 1),
        (high, 1),
        (low, 1),
    ];
    let expect = expect.map(|(at, mib)| ('w', at, mib * MIB));
    assert_eq!(device.log, expect);
}

#[test]
fn linear_goes_through_each_au_in_order() {
    let mut device = Recorder::new();
    open_aus(&mut device, &writing(1, false)).unwrap();
    let places: Vec<u64> = device.log.iter().map(|entry| entry.1 / MIB).collect();
    assert_eq!(places, [16, 16, 18, 16, 17, 18, 19]);
}

#[test]
fn the_fat_test_takes_one_au_after_the_other() {
    let mut device = Recorder::new();
    let found = find_fat(&mut device, &writing(3, false)).unwrap();
    assert_eq!(found[&MIB], [1e9; 3]);
    let places: Vec<u64> = device.log.iter().map(|entry| entry.1 / MIB).collect();
    assert_eq!(places[..9], [0, 4, 8, 0, 2, 4, 6, 8, 10]);
    assert_eq!(places.len(), 3 + 6 + 12);
}

#[test]
fn align_keeps_the_fastest_try_and_averages_the_places() {
    let mut device = Recorder::new();
    let lines = align(&mut device, 1024, 2).unwrap();
    assert_eq!(lines[&4096], [1.0, 1.5, 1.0, 0.5]);
    assert_eq!(lines[&2048], [1.0, 1.0, 1.0, 0.0]);
    // 1 GiB / 7 is less than 256 MiB, the largest boundary; the last places wrap.
    assert_eq!(*lines.keys().next_back().unwrap(), 256 * MIB);
    assert!(device.log.iter().all(|entry| entry.2 <= 1024));
    assert!(
        device
            .log
            .iter()
            .all(|entry| entry.1 + entry.2 <= device.size)
    );
}

#[test]
fn all_tests_of_a_modelled_card_are_repeatable_and_the_short_way_agrees() {
    let (name, text) = whichfs_card::builtin()[0];
    let profile = whichfs_card::Profile::parse(name, text).unwrap();
    let curves = curves_of(&profile, 1).unwrap();
    assert_eq!(curves, curves_of(&profile, 1).unwrap());
    for part in [&curves.linear, &curves.random] {
        assert_eq!(
            part.keys().copied().collect::<Vec<_>>(),
            [1, 2, 3, 4, 5, 6, 7]
        );
        assert!(part.values().all(|rates| rates.len() == 11));
    }
    assert_eq!(curves.fat[&1024][0].len(), 8);
    assert!(curves.align.contains_key(&(4 * MIB)));
    let few = OpenAuTests {
        most: [2, 1],
        ..OpenAuTests::PUBLISHED
    };
    let short = write_times_of(&profile, 1, &few).unwrap().curves();
    assert_eq!((short.linear.len(), short.random.len()), (2, 1));
    let ratio = short.linear[&2][&65_536] / curves.linear[&2][&65_536];
    assert!((0.9..1.1).contains(&ratio), "{ratio}");
}

#[test]
fn each_number_of_aus_is_a_run_of_its_own_after_a_rest() {
    let mut device = Recorder::new();
    let tests = OpenAuTests {
        block_bytes: 4 * MIB,
        most: [2, 1],
        ..OpenAuTests::PUBLISHED
    };
    Host::new(&mut device, tests.erase_bytes)
        .open_au_tests(&tests)
        .unwrap();
    let order: String = device.log.iter().map(|entry| entry.0).collect();
    assert_eq!(order, "zwzwwzw");
}

#[test]
fn what_was_open_before_a_test_is_opened_between_the_rest_and_the_test() {
    let run = |opened| {
        let mut device = Recorder::new();
        let tests = OpenAuTests {
            block_bytes: 4 * MIB,
            most: [3, 0],
            opened,
            ..OpenAuTests::PUBLISHED
        };
        Host::new(&mut device, tests.erase_bytes)
            .open_au_tests(&tests)
            .unwrap();
        device.log
    };
    let (untold, log) = (
        run(Opened::UNTOLD),
        run(Opened::UNTOLD.with(false, 3, 2).with(true, 2, 1)),
    );
    // Of 3 AUs the test writes 2, 1, 0: before it, AU 0 was opened and then AU 1.
    let others = (1..=7).map(|au| 16 + 4 * au);
    let before: Vec<_> = others
        .chain([16, 16 + 48])
        .flat_map(|mib| [mib * MIB, mib * MIB + 2 * MIB])
        .map(|at| ('w', at, 2 * MIB))
        .collect();
    let at = untold.len() - 3;
    assert_eq!(log[..at], untold[..at]);
    assert_eq!(log[at..at + before.len()], before);
    assert_eq!(log[at + before.len()..], untold[at..]);
    let opened = Opened::UNTOLD.with(true, 7, 3).with(false, 2, 0);
    let told: Vec<_> = opened.told().collect();
    assert_eq!(told, [(false, 2, 0), (true, 7, 3)]);
    assert_eq!(opened.with(true, 8, 1), opened, "no such test");
}

#[test]
fn other_erase_sizes_have_other_aus_and_blocks() {
    let (name, text) = whichfs_card::builtin()[0];
    let profile = whichfs_card::Profile::parse(name, text).unwrap();
    let tests = OpenAuTests {
        erase_bytes: 24 * MIB,
        block_bytes: 4096,
        most: [2, 0],
        ..OpenAuTests::PUBLISHED
    };
    let curves = write_times_of(&profile, 1, &tests).unwrap().curves();
    let sizes: Vec<u64> = curves.linear[&2].keys().copied().collect();
    assert_eq!((sizes[0], sizes[12]), (6144, 24 * MIB));
    assert_eq!(tests.end_bytes(), (24 + 6 * 12 * 24 + 24) * MIB);
}

#[test]
fn on_a_small_card_only_the_aus_it_has_are_opened() {
    let (name, text) = whichfs_card::builtin()[0];
    let whole = whichfs_card::Profile::parse(name, text).unwrap();
    let aus = |mib: u64| {
        let small = whole.with_capacity(mib * MIB).unwrap();
        let times = write_times_of(&small, 1, &OpenAuTests::PUBLISHED);
        times.map(|times| times.curves().random.len())
    };
    assert_eq!((aus(308), aus(307), aus(64)), (Ok(7), Ok(6), Ok(1)));
    let most = aus(67).unwrap();
    assert_eq!((most, aus(68)), (1, Ok(2)));
}
