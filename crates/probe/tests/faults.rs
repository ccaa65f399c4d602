//! What the probe reports when the device fails, stalls, slows down or is not to be written.
#![allow(clippy::unwrap_used)]

use crate::support;

use support::faulty::{Fault, Faulty, Liar, Lie};
use support::noisy::{Drift, Noise, Noisy};
use whichfs_card::{Card, Family, Profile, builtin};
use whichfs_curves::{Modelled, TimedDevice};
use whichfs_probe::{
    Findings, ProbeBudget, ProbeEvidence, ProbeOptions, ProbeStep, Progress, Quantity, Silent,
    Stage, Value, Writing, probe, resume,
};
use whichfs_units::Nanos;

fn profile(name: &str) -> Profile {
    let (name, text) = builtin()
        .iter()
        .find(|(n, _)| n.contains(name))
        .copied()
        .unwrap();
    Profile::parse(name, text).unwrap()
}

fn card(name: &str) -> Modelled {
    let profile = profile(name);
    Modelled::new(Card::used(&profile, 1), profile.capacity_bytes())
}

fn options(writing: Writing) -> ProbeOptions {
    ProbeOptions {
        seed: 11,
        writing,
        ..ProbeOptions::default()
    }
}

fn run(device: &mut dyn TimedDevice, writing: Writing) -> Findings {
    probe(device, &options(writing), &mut Silent)
}

const QUIET: Noise = Noise {
    positional: 0.005,
    each: 0.005,
    write: 0.01,
    tail_permille: 0,
};

#[test]
fn nothing_is_written_unless_it_is_allowed() {
    let mut device = Liar::new(1 << 30, 1 << 30, Lie::None);
    let findings = run(&mut device, Writing::Never);
    assert_eq!((device.writes, findings.bytes_written), (0, 0));
    assert!(findings.complete);
    let linear = findings.get(Quantity::OpenAusLinear);
    assert_eq!(linear.value, None);
    assert!(linear.reason.as_ref().unwrap().contains("not allowed"));
}

#[test]
fn what_is_to_be_kept_is_kept() {
    let mut device = Liar::new(1 << 30, 1 << 30, Lie::None);
    let findings = run(&mut device, Writing::Preserve);
    assert!(
        findings.bytes_written > 10 << 20,
        "{}",
        findings.bytes_written
    );
    let changed = device
        .blocks
        .iter()
        .filter(|(at, data)| **data != Liar::original(**at));
    assert_eq!(changed.count(), 0);
    assert!(
        findings
            .get(Quantity::DiscardUs)
            .reason
            .as_ref()
            .unwrap()
            .contains("kept")
    );
}

#[test]
fn without_keeping_data_change() {
    let mut device = Liar::new(1 << 30, 1 << 30, Lie::None);
    run(&mut device, Writing::Destroy);
    let changed = device
        .blocks
        .iter()
        .filter(|(at, data)| **data != Liar::original(**at));
    assert!(changed.count() > 1000, "the check of kept data can fail");
}

#[test]
fn a_device_that_vanishes_leaves_what_was_found_before() {
    let whole = run(&mut card("class4"), Writing::Destroy);
    let requests = whole.measured.spent.reads + whole.measured.spent.writes;
    let mut device = Faulty::new(card("class4"), Fault::Gone(requests * 9 / 10));
    let findings = run(&mut device, Writing::Destroy);
    assert!(findings.ended.as_ref().unwrap().contains("pulled out"));
    assert!(!findings.complete);
    assert_eq!(
        findings.value(Quantity::PageBytes).unwrap().whole(),
        16 << 10
    );
    let last = findings.get(Quantity::DiscardUs);
    assert!(
        last.reason.as_ref().unwrap().contains("pulled out"),
        "{last:?}"
    );
}

#[test]
fn errors_in_one_place_are_told_and_cost_samples_only() {
    let mut device = Faulty::new(
        card("class4"),
        Fault::Range(1 << 30, (1 << 30) + (200 << 20)),
    );
    let findings = run(&mut device, Writing::Never);
    assert_eq!(findings.value(Quantity::AuBytes).unwrap().whole(), 4 << 20);
    assert!(findings.measured.spent.errors > 0);
    assert!(
        findings
            .notes
            .iter()
            .any(|note| note.contains("medium error"))
    );
}

#[test]
fn a_device_that_only_fails_gives_reasons_and_no_value() {
    let mut device = Faulty::new(card("class4"), Fault::Range(0, u64::MAX));
    let findings = run(&mut device, Writing::Destroy);
    for (quantity, finding) in &findings.values {
        assert_eq!(finding.value, None, "{quantity:?} {finding:?}");
        assert!(finding.reason.is_some(), "{quantity:?}");
    }
}

#[test]
fn a_stall_of_minutes_is_noted_and_changes_no_value() {
    let mut device = Faulty::new(card("class4"), Fault::Stall(500, 200));
    let findings = run(&mut device, Writing::Never);
    assert!(
        findings.notes.iter().any(|note| note.contains("200 s")),
        "{:?}",
        findings.notes
    );
    assert_eq!(findings.value(Quantity::AuBytes).unwrap().whole(), 4 << 20);
    assert!(findings.device_s > 200.0);
}

#[test]
fn a_read_only_device_says_so() {
    let mut device = Faulty::new(card("class4"), Fault::ReadOnly);
    let findings = run(&mut device, Writing::Destroy);
    let rate = findings.get(Quantity::WriteMbS);
    assert!(
        rate.reason.as_ref().unwrap().contains("not supported"),
        "{rate:?}"
    );
    assert!(findings.value(Quantity::ReadMbS).is_some());
}

#[test]
fn a_card_that_heats_up_and_slows_is_marked() {
    let mut device = Noisy::new(card("a1-32gb"), QUIET, Drift::Jump(3.0, 1.6), 4);
    let findings = run(&mut device, Writing::Destroy);
    assert!(!findings.drift.is_empty());
    let doubtful = findings.get(Quantity::WriteMbS).confidence;
    assert!(!findings.get(Quantity::BestWriteBytes).confident());
    let mut device = Noisy::new(card("a1-32gb"), QUIET, Drift::None, 4);
    let findings = run(&mut device, Writing::Destroy);
    assert_eq!(findings.drift, []);
    assert!(findings.get(Quantity::BestWriteBytes).confident());
    // A larger cache could hide the rate of a card without a limit, but nothing else speaks
    // against it.
    let rate = findings.get(Quantity::WriteMbS);
    assert!(rate.confidence > doubtful && rate.evidence.contains("raise --budget"));
}

#[test]
fn a_budget_ends_the_probe_with_what_it_has() {
    let mut options = options(Writing::Destroy);
    options.budget = ProbeBudget {
        write_bytes: 8 << 20,
        device: Nanos::from_secs(600),
    };
    let findings = probe(&mut card("class4"), &options, &mut Silent);
    assert!(findings.bytes_written <= 8 << 20);
    assert!(findings.ended.unwrap().contains("budget"));
    options.budget.device = Nanos::from_secs(1);
    let findings = probe(&mut card("class4"), &options, &mut Silent);
    assert!(findings.device_s < 1.1, "{}", findings.device_s);
    assert!(findings.ended.unwrap().contains("budget"));
}

/// Stops after a number of checkpoints and keeps the last.
struct Watch {
    left: usize,
    state: Option<ProbeEvidence>,
    steps: Vec<f64>,
}

impl Progress for Watch {
    fn step(&mut self, step: &ProbeStep) {
        self.steps.push(step.done);
    }

    fn checkpoint(&mut self, state: &ProbeEvidence) {
        self.state = Some(state.clone());
        self.left = self.left.saturating_sub(1);
    }

    fn stop(&mut self) -> bool {
        self.left == 0
    }
}

#[test]
fn a_stopped_probe_goes_on_where_it_was() {
    let whole = run(&mut card("class4"), Writing::Destroy);
    let mut watch = Watch {
        left: 4,
        state: None,
        steps: Vec::new(),
    };
    let mut device = card("class4");
    let first = probe(&mut device, &options(Writing::Destroy), &mut watch);
    assert!(first.ended.unwrap().contains("stopped by the user"));
    assert!(watch.steps.is_sorted(), "progress never goes back");
    let stored = serde_json::to_string(&watch.state.unwrap()).unwrap();
    let state: ProbeEvidence = serde_json::from_str(&stored).unwrap();
    assert_eq!(
        state.done,
        [Stage::Align, Stage::Reading, Stage::Sustained, Stage::Flush]
    );
    let reads = state.spent.reads;
    let findings = resume(&mut device, state, &mut Silent);
    assert!(findings.complete && findings.measured.spent.reads > reads);
    for quantity in [Quantity::AuBytes, Quantity::OpenAusLinear, Quantity::FatAus] {
        assert_eq!(
            findings.value(quantity),
            whole.value(quantity),
            "{quantity:?}"
        );
    }
}

#[test]
fn equal_calls_give_equal_findings() {
    let once = run(&mut card("class10"), Writing::Destroy);
    let again = run(&mut card("class10"), Writing::Destroy);
    assert_eq!(
        serde_json::to_string(&once).unwrap(),
        serde_json::to_string(&again).unwrap()
    );
    let stored: Findings = serde_json::from_str(&serde_json::to_string(&once).unwrap()).unwrap();
    assert_eq!(stored.values, once.values);
}

#[test]
fn findings_become_a_profile_that_probes_alike() {
    for name in ["class4", "class10", "a1-32gb", "emmc"] {
        let found = run(&mut card(name), Writing::Destroy);
        let text = found.to_profile().unwrap();
        let made = Profile::parse("probed.toml", &text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert_eq!(made.family(), profile(name).family(), "{name}");
        assert_eq!(made.page_bytes(), profile(name).page_bytes(), "{name}");
        assert_eq!(made.au_bytes(), profile(name).au_bytes(), "{name}");
        assert!(
            made.sources()
                .iter()
                .any(|source| source.starts_with("probe")),
            "{name}"
        );
        let mut again = Modelled::new(Card::used(&made, 1), made.capacity_bytes());
        let again = run(&mut again, Writing::Destroy);
        for quantity in [
            Quantity::OpenAusLinear,
            Quantity::FatAus,
            Quantity::CacheBytes,
        ] {
            assert_eq!(
                again.value(quantity),
                found.value(quantity),
                "{name} {quantity:?}"
            );
        }
        let rates = [
            Quantity::ReadMbS,
            Quantity::WriteMbS,
            Quantity::RandomRead4k,
        ];
        for quantity in rates {
            let value = |f: &Findings| f.value(quantity).unwrap().real();
            let ratio = value(&again) / value(&found);
            assert!((0.75..1.34).contains(&ratio), "{name} {quantity:?} {ratio}");
        }
    }
}

#[test]
fn findings_of_reads_alone_become_a_composed_profile() {
    let found = run(&mut card("class4"), Writing::Never);
    let text = found.to_profile().unwrap();
    assert!(!text.contains("open_aus_tried"), "{text}");
    let made = Profile::parse("probed.toml", &text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert!(made.composed());
    assert_eq!(made.au_bytes(), 4 << 20);
}

/// A loop device in memory was, twice: the rate of copies follows that of writes where no write
/// was seen to copy.
#[test]
fn a_device_faster_or_slower_than_any_card_still_becomes_a_profile() {
    let mut found = run(&mut card("class4"), Writing::Destroy);
    for rate in [0.001, 4133.0, 50_000.0] {
        for quantity in [Quantity::ReadMbS, Quantity::WriteMbS] {
            found.values.get_mut(&quantity).unwrap().value = Some(Value::Real(rate));
        }
        for overflow in [true, false] {
            if !overflow {
                found.values.get_mut(&Quantity::OverflowUs).unwrap().value = None;
            }
            let text = found.to_profile().unwrap();
            Profile::parse("p", &text).unwrap_or_else(|e| panic!("{rate} MB/s: {e}"));
            let mut known = text
                .lines()
                .filter_map(|of| of.strip_prefix("bytes_per_s = "));
            assert!(known.all(|of| of.parse::<f64>().unwrap() <= 4e9), "{text}");
        }
    }
}

#[test]
fn what_was_not_measured_is_composed_and_the_reason_is_told() {
    let mut options = options(Writing::Destroy);
    options.budget.write_bytes = 58 << 20;
    let found = probe(&mut card("class4"), &options, &mut Silent);
    assert!(found.value(Quantity::WriteMbS).is_some());
    assert_eq!(found.value(Quantity::OpenAusLinear), None);
    let text = found.to_profile().unwrap();
    assert!(
        text.contains("# The family is composed, not measured: "),
        "{text}"
    );
    let made = Profile::parse("probed.toml", &text).unwrap();
    assert!(made.composed());
    let figure = |path: &str| made.figures().find(|figure| figure.path == path).unwrap();
    for path in ["geometry.open_aus_linear", "copy.rate_bytes_per_s"] {
        let source = figure(path).source.as_deref().unwrap();
        assert!(source.contains("budget"), "{path}: {source}");
    }
    assert_eq!(figure("copy.erase_us").uncertainty_percent, 30);
    check_sources(&found, &made);
}

/// Time on the device after each stage.
#[derive(Default)]
struct Ends(Vec<Nanos>);

impl Progress for Ends {
    fn step(&mut self, _step: &ProbeStep) {}

    fn checkpoint(&mut self, state: &ProbeEvidence) {
        self.0.push(state.spent.device);
    }
}

#[test]
fn what_was_not_read_in_time_is_composed_and_the_reason_is_told() {
    let mut ends = Ends::default();
    let mut options = options(Writing::Destroy);
    probe(&mut card("class4"), &options, &mut ends);
    let [align, reading] = [ends.0[0], ends.0[1]];
    options.budget.device = Nanos(align.0.midpoint(reading.0));
    let found = probe(&mut card("class4"), &options, &mut Silent);
    assert_eq!(found.measured.done, [Stage::Align]);
    assert!(found.value(Quantity::PageBytes).is_some());
    assert_eq!(found.value(Quantity::ReadMbS), None);
    let made = Profile::parse("probed.toml", &found.to_profile().unwrap()).unwrap();
    check_sources(&found, &made);
    let mut figures = made.figures();
    let rate = figures.find(|figure| figure.path == "bus.rate_bytes_per_s");
    let source = rate.unwrap().source.as_deref().unwrap();
    assert!(source.contains("budget"), "{source}");
}

#[test]
fn a_flush_that_the_device_refuses_has_no_measured_time() {
    let mut found = run(&mut card("emmc-8gb"), Writing::Destroy);
    let parse = |found: &Findings| Profile::parse("p", &found.to_profile().unwrap()).unwrap();
    check_sources(&found, &parse(&found));
    found.measured.flush.as_mut().unwrap().supported = false;
    check_sources(&found, &parse(&found));
}

/// Every figure of the probe was measured, and the others say that they were not.
fn check_sources(found: &Findings, made: &Profile) {
    for figure in made.figures() {
        let Some(source) = figure.source.as_deref() else {
            continue;
        };
        let by_probe = source.starts_with("probe");
        assert!(
            !by_probe || measured(found, figure.path),
            "{}: {source}",
            figure.path
        );
        let told = ["probe", "composed", "assumed"];
        assert!(told.iter().any(|word| source.starts_with(word)), "{source}");
    }
}

/// Whether that was measured from which a figure of a profile follows.
fn measured(found: &Findings, path: &str) -> bool {
    use Quantity::{
        AuBytes, CacheBytes, DiscardUs, FatAus, OpenAusLinear, OpenAusRandom, OverflowUs,
        PageBytes, ReadMbS, SmallWriteBytes, WriteMbS, WriteUnitBytes, ZoneBytes,
    };
    let value = |quantity| found.value(quantity).is_some();
    let tests = &found.measured;
    match path {
        "geometry.capacity_bytes" => tests.capacity_bytes > 0,
        "geometry.page_bytes" | "read.next_page_us" => value(PageBytes),
        "geometry.write_unit_bytes" => value(WriteUnitBytes),
        "geometry.au_bytes" | "read.au_step_us" => value(AuBytes),
        "geometry.open_aus_linear" => value(OpenAusLinear),
        "geometry.open_aus_random" => value(OpenAusRandom),
        "bus.rate_bytes_per_s" => value(ReadMbS),
        "read.first_page_us" => tests.align.is_some(),
        "read.zone_bytes" | "read.zone_step_us" => value(ZoneBytes),
        "write.overhead_us" => tests.open_linear.is_some(),
        "write.coalesce" => tests.open_linear.is_some() && tests.writes.is_some(),
        "write.rate_bytes_per_s" => value(WriteMbS),
        "copy.rate_bytes_per_s" => value(OverflowUs),
        "discard.supported" | "discard.overhead_us" => value(DiscardUs),
        "cache.bytes" => value(CacheBytes),
        "cache.flush_us" => tests.flush.as_ref().is_some_and(|flush| flush.supported),
        "fat.aus" | "fat.rate_bytes_per_s" => value(FatAus),
        "log_block.random_percent" => tests.open_linear.is_some() && tests.open_random.is_some(),
        "log_block.small_write_bytes" => value(SmallWriteBytes),
        "log_block.small_write_us" => tests.small_writes.is_some(),
        other => panic!("{other} is no figure of the probe"),
    }
}

#[test]
fn a_card_larger_than_profiles_and_an_au_beyond_them_still_become_one() {
    let mut found = run(&mut card("class4"), Writing::Never);
    found.measured.capacity_bytes = 900_000_000_000_000;
    let au = found.values.get_mut(&Quantity::AuBytes).unwrap();
    au.value = Some(Value::Whole(96 << 20));
    let text = found.to_profile().unwrap();
    let made = Profile::parse("probed.toml", &text).unwrap();
    assert_eq!((made.capacity_bytes(), made.au_bytes()), (1 << 37, 4 << 20));
    assert_eq!(made.title(), "Probed card, 137.4 GB");
    assert!(text.contains("the probe saw 96 MiB"), "{text}");
    found.measured.capacity_bytes = 4096;
    assert!(found.to_profile().unwrap_err().contains("--json"));
}

#[test]
fn a_large_page_map_has_larger_units_before_it_is_cut() {
    let mut found = run(&mut card("class4"), Writing::Never);
    for (capacity, unit) in [(500, 4), (1_000, 8), (2_000, 16)] {
        let capacity: u64 = capacity * 1_000_000_000 / 512 * 512;
        found.measured.capacity_bytes = capacity;
        let made = Profile::parse("probed.toml", &found.to_profile().unwrap()).unwrap();
        assert_eq!(made.family(), Family::PageMap);
        assert_eq!(made.capacity_bytes(), capacity);
        let mut figures = made.figures();
        let units = figures.find(|figure| figure.path == "page_map.unit_bytes");
        assert_eq!(units.unwrap().value, unit << 10, "{capacity}");
    }
}

#[test]
fn a_discard_that_never_succeeded_is_not_supported() {
    let mut device = Faulty::new(card("class4"), Fault::Discards);
    let found = run(&mut device, Writing::Destroy);
    assert_eq!(found.value(Quantity::DiscardUs), None);
    let made = Profile::parse("probed.toml", &found.to_profile().unwrap()).unwrap();
    assert!(!made.discard_supported());
    let mut small = Liar::new(64 << 20, 64 << 20, Lie::None);
    let found = run(&mut small, Writing::Destroy);
    let reason = found.get(Quantity::DiscardUs).reason.as_ref().unwrap();
    assert!(reason.contains("too small"), "{reason}");
}

/// `profile(name)` with figures changed.
fn changed(name: &str, figures: &[(&str, u64)]) -> Modelled {
    let (_, text) = builtin().iter().find(|(n, _)| n.contains(name)).unwrap();
    let line = |line: &str| {
        let key = line.split(" = ").next().unwrap();
        match figures.iter().find(|(changed, _)| *changed == key) {
            Some((_, value)) => format!("{key} = {{ value = {value}, source = \"test\" }}"),
            None => line.to_owned(),
        }
    };
    let text: Vec<String> = text.lines().map(line).collect();
    let profile = Profile::parse("changed.toml", &text.join("\n")).unwrap();
    Modelled::new(Card::used(&profile, 1), profile.capacity_bytes())
}

#[test]
fn the_least_aus_are_told_by_reads_and_from_1_mib_on_by_writes_too() {
    for au in [128 << 10, 512 << 10, 1 << 20] {
        let figures = [
            ("capacity_bytes", 10_000 * au),
            ("au_bytes", au),
            ("spare_aus", 2000),
        ];
        let found = run(&mut changed("class4", &figures), Writing::Destroy);
        let finding = found.get(Quantity::AuBytes);
        assert_eq!(finding.value, Some(Value::Whole(au)), "{finding:?}");
        let linear = found.get(Quantity::OpenAusLinear);
        if au >= 1 << 20 {
            assert!(finding.evidence.contains("pairs"), "{finding:?}");
            assert_eq!(linear.value, Some(Value::Whole(3)), "{linear:?}");
        } else {
            let reason = linear.reason.as_ref().unwrap();
            assert!(reason.contains("too small"), "{linear:?}");
        }
    }
}

#[test]
fn a_limit_on_aus_that_were_perhaps_never_written_is_a_doubt_that_names_the_budget() {
    let profile = profile("class4");
    let mut device = Modelled::new(Card::fresh(&profile), profile.capacity_bytes());
    let mut options = options(Writing::Destroy);
    options.budget.write_bytes = 80 << 20;
    let found = probe(&mut device, &options, &mut Silent);
    let linear = found.get(Quantity::OpenAusLinear);
    let reason = linear.reason.as_ref().unwrap();
    assert!(
        reason.contains("a limit of 3") && reason.contains("--budget"),
        "{reason}"
    );
    let text = found.to_profile().unwrap();
    assert!(Profile::parse("probed.toml", &text).unwrap().composed());
}

#[test]
fn half_of_the_writes_lost_do_not_make_a_cached_card_faster() {
    let rate = |device: &mut dyn TimedDevice| {
        let found = run(device, Writing::Destroy);
        found.value(Quantity::WriteMbS).unwrap().real()
    };
    let whole = rate(&mut card("emmc"));
    let lossy = rate(&mut Faulty::new(card("emmc"), Fault::Writes(1)));
    assert!(lossy < 1.3 * whole, "{lossy} {whole}");
}

#[test]
fn lost_writes_are_no_answer_of_the_first_aus() {
    let mut device = Faulty::new(card("class4"), Fault::Range(8 << 20, 12 << 20));
    let found = run(&mut device, Writing::Destroy);
    let fat = found.get(Quantity::FatAus);
    assert_eq!(fat.value, None, "{fat:?}");
    assert!(
        fat.reason.as_ref().unwrap().contains("AU 2 failed"),
        "{fat:?}"
    );
    assert!(!found.complete);
}

/// A few AUs keep their place and others are slow beside them: no number is too many at once.
#[test]
fn open_aus_of_update_blocks_are_those_that_stay_fast() {
    for (linear, random) in [(3, 2), (5, 3), (8, 6)] {
        let figures = [("open_aus_linear", linear), ("open_aus_random", random)];
        let found = run(&mut changed("sandisk-su04g", &figures), Writing::Destroy);
        let finding = found.get(Quantity::OpenAusLinear);
        assert_eq!(finding.value, Some(Value::Whole(linear)), "{finding:?}");
        assert!(finding.confident() && finding.evidence.contains("stay fast"));
        let text = found.to_profile().unwrap();
        let made = Profile::parse("probed.toml", &text).unwrap();
        assert_eq!(made.family(), Family::UpdateBlock);
    }
}
