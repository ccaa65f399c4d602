//! How often the probe is right, and how often wrong though sure, on random cards with the
//! noise of real ones.
#![allow(clippy::unwrap_used)]

use crate::support;

use support::cards::{Mechanisms, Sizes, Specimen, specimen, specimen_with, spread};
use support::noise::LEVELS;
use support::noisy::{Drift, Halves, Noise, Noisy, Shifted};
use support::score::{Grade, Summary, Truth, grade};
use whichfs_card::Family;
use whichfs_curves::TimedDevice;
use whichfs_probe::{Findings, ProbeOptions, Quantity, Silent, Writing, probe};
use whichfs_units::{MIB, Rng};

/// Noise of a random card, of the levels that real logs have.
fn noise(rng: &mut Rng) -> Noise {
    let levels = *LEVELS;
    let mut between = |(low, high)| spread(rng, low, high);
    Noise {
        positional: between(levels.positional),
        each: between(levels.each),
        write: between(levels.write),
        tail_permille: rng.below((2.0 * levels.tail_permille).round() as u64 + 1),
    }
}

#[test]
fn noise_is_that_of_the_logs() {
    let near = |(low, high): (f64, f64), stated: (f64, f64)| {
        assert!(
            (low / stated.0 - 1.0).abs() < 0.05,
            "{low}, not {}",
            stated.0
        );
        assert!(
            (high / stated.1 - 1.0).abs() < 0.05,
            "{high}, not {}",
            stated.1
        );
    };
    let levels = *LEVELS;
    println!("{levels:?}");
    near(levels.each, (0.0097, 0.0358));
    near(levels.positional, (0.0095, 0.0386));
    near(levels.write, (0.0090, 0.0358));
    assert!((levels.tail_permille - 8.0).abs() < 0.1);
}

fn options(seed: u64) -> ProbeOptions {
    ProbeOptions {
        seed,
        writing: Writing::Destroy,
        ..ProbeOptions::default()
    }
}

fn run(device: &mut dyn TimedDevice, seed: u64) -> Findings {
    probe(device, &options(seed), &mut Silent)
}

/// Judges one card and says what was not right.
fn judge(
    truths: &[Truth],
    findings: &Findings,
    slower: (f64, f64),
    what: &str,
    summary: &mut Summary,
) {
    for quantity in summary.judged.clone() {
        if !truths.iter().all(|truth| truth.applies(quantity)) {
            continue;
        }
        let grade = grade(truths, quantity, findings, slower);
        summary.add(quantity, grade);
        if std::env::var_os("PROBE_VERBOSE").is_some()
            && (grade != Grade::Right || std::env::var_os("PROBE_RIGHT").is_some())
        {
            let finding = findings.get(quantity);
            let truths: Vec<String> = truths.iter().map(|t| t.told(quantity)).collect();
            let name = quantity.name();
            println!("{what}: {name} {grade:?}, truth {truths:?}: {finding:?}");
        }
    }
}

fn family_of(seed: u64) -> Family {
    match seed % 8 {
        0 | 2 | 4 => Family::LogBlock,
        6 => Family::UpdateBlock,
        _ => Family::PageMap,
    }
}

/// A card of a family with noise, and what the probe finds on it.
fn probed(seed: u64, giga_max: u64, mechanisms: Mechanisms) -> (Specimen, Noise, Findings) {
    let card = specimen_with(seed, family_of(seed), Sizes::Usual, giga_max, mechanisms);
    let mut rng = Rng::named(seed, "noise of the card");
    let noise = noise(&mut rng);
    let mut device = Noisy::new(card.device(), noise, Drift::None, seed);
    let findings = run(&mut device, seed);
    (card, noise, findings)
}

/// A card of a family, with noise.
fn inside(seed: u64, giga_max: u64, mechanisms: Mechanisms, summary: &mut Summary) {
    let (card, noise, findings) = probed(seed, giga_max, mechanisms);
    let what = format!("seed {seed} {} {noise:?}", brief(&card));
    judge(
        &[Truth::of(&card, noise)],
        &findings,
        (1.0, 1.0),
        &what,
        summary,
    );
}

fn brief(card: &Specimen) -> String {
    let figures = [
        "log_block.first_opened",
        "log_block.merge_at_once",
        "write.rate_bytes_per_s",
        "write.overhead_us",
        "copy.erase_us",
        "write.coalesce",
        "geometry.capacity_bytes",
        "geometry.page_bytes",
        "geometry.au_bytes",
        "geometry.open_aus_linear",
        "geometry.open_aus_random",
        "read.first_page_us",
        "read.next_page_us",
        "read.au_step_us",
        "fat.aus",
        "log_block.small_write_bytes",
        "cache.bytes",
        "write.program_bytes",
        "read.zone_bytes",
        "reader.max_bytes",
        "slc.bytes",
        "slc.rate_bytes_per_s",
        "page_map.streams",
        "update_block.fold_rate_bytes_per_s",
        "fat.first_au",
    ];
    let values: Vec<String> = figures.iter().map(|f| card.figure(f).to_string()).collect();
    format!(
        "{:?} used {} {}",
        card.profile.family(),
        card.used,
        values.join(" ")
    )
}

/// A card outside of every family.
fn outside(seed: u64, giga_max: u64, mechanisms: Mechanisms, summary: &mut Summary) {
    let mut rng = Rng::named(seed, "outside");
    let noise = noise(&mut rng);
    let card = |sizes| specimen_with(seed, family_of(seed / 4), sizes, giga_max, mechanisms);
    let what = format!("outside seed {seed} kind {}", seed % 4);
    let mut slower = (1.0, 1.0);
    let (findings, truths) = match seed % 4 {
        0 => {
            let low = card(Sizes::Usual);
            let family = family_of(seed / 8);
            let high = specimen_with(seed + 77, family, Sizes::Usual, giga_max, mechanisms);
            let halves = Halves {
                low: low.device(),
                high: high.device(),
            };
            let mut device = Noisy::new(halves, noise, Drift::None, seed);
            let what = format!("{what} {} | {}", brief(&low), brief(&high));
            let findings = run(&mut device, seed);
            let truths = vec![Truth::of(&low, noise), Truth::of(&high, noise)];
            judge(&truths, &findings, slower, &what, summary);
            return;
        }
        1 => {
            let card = card(Sizes::Usual);
            let factor = spread(&mut rng, 1.15, 2.5);
            let at = spread(&mut rng, 2.0, 30.0);
            let drift = if rng.ratio(1, 2) {
                Drift::Ramp(2.0 * at, factor)
            } else {
                Drift::Jump(at, factor)
            };
            slower = (1.0, factor);
            let mut device = Noisy::new(card.device(), noise, drift, seed);
            (run(&mut device, seed), vec![Truth::of(&card, noise)])
        }
        2 => {
            let card = card(Sizes::Unseen);
            let mut device = Noisy::new(card.device(), noise, Drift::None, seed);
            (run(&mut device, seed), vec![Truth::of(&card, noise)])
        }
        _ => {
            let card = card(Sizes::Usual);
            let by = (1 + rng.below(7)) * MIB / 4;
            let shifted = |inner| Shifted { inner, by };
            let mut device = Noisy::new(shifted(card.device()), noise, Drift::None, seed);
            (
                run(&mut device, seed),
                vec![Truth::seen(&card, by, noise, shifted)],
            )
        }
    };
    judge(&truths, &findings, slower, &what, summary);
}

/// Values that were judged from the beginning.
const BASIC: [Quantity; 12] = [
    Quantity::PageBytes,
    Quantity::AuBytes,
    Quantity::OpenAusLinear,
    Quantity::OpenAusRandom,
    Quantity::FatAus,
    Quantity::SmallWriteBytes,
    Quantity::BestReadBytes,
    Quantity::BestWriteBytes,
    Quantity::ReadMbS,
    Quantity::WriteMbS,
    Quantity::RandomRead4k,
    Quantity::CacheBytes,
];

/// Probes `cards` cards, a third of them outside of the families, and holds the goals: the share
/// `goal` of the values of families right, and 1 % of all wrong though sure.
fn measure(cards: u64, first_seed: u64, giga_max: u64, mechanisms: Mechanisms, goal: f64) {
    let judged = match mechanisms {
        Mechanisms::Basic => BASIC.to_vec(),
        Mechanisms::All => Quantity::ALL.to_vec(),
    };
    let (mut families, mut others) = (Summary::of(&judged), Summary::of(&judged));
    for at in 0..cards {
        let seed = first_seed + at;
        if at % 3 == 2 {
            outside(seed, giga_max, mechanisms, &mut others);
        } else {
            inside(seed, giga_max, mechanisms, &mut families);
        }
    }
    families.print(&format!("{} cards of the families", cards - cards / 3));
    others.print(&format!("{} cards outside of them", cards / 3));
    let wrong = families.count(None, Some(Grade::Wrong)) + others.count(None, Some(Grade::Wrong));
    let all = families.count(None, None) + others.count(None, None);
    let right = families.share(None, Grade::Right);
    println!(
        "{:.2} % right on the families; {wrong} of {all} ({:.2} %) wrong though sure",
        100.0 * right,
        100.0 * f64::from(wrong) / f64::from(all)
    );
    assert!(right >= goal, "{right} right on the families");
    assert!(
        f64::from(wrong) <= 0.01 * f64::from(all),
        "{wrong} of {all} wrong though sure"
    );
}

/// Right on the families: the goal, with basic mechanisms and with all.
const GOAL: f64 = 0.97;

#[test]
fn sixty_random_cards_are_read_right() {
    measure(60, 1_000, 4, Mechanisms::Basic, GOAL);
}

#[test]
fn all_values_of_sixty_cards_with_all_mechanisms() {
    measure(60, 1_000, 4, Mechanisms::All, GOAL);
}

fn first_seed() -> u64 {
    std::env::var("PROBE_SEED").map_or(50_000, |seed| seed.parse().unwrap())
}

/// For `make soak`: the full count, with large cards too.
#[test]
#[ignore = "the full count takes a minute: make soak"]
fn soak_450_random_cards_are_read_right() {
    measure(450, first_seed(), 32, Mechanisms::Basic, GOAL);
}

/// For `make soak`.
#[test]
#[ignore = "the full count takes a minute: make soak"]
fn soak_all_values_of_450_cards_with_all_mechanisms() {
    measure(450, first_seed(), 32, Mechanisms::All, GOAL);
}

/// Family S copies little where too many AUs are written at random, and keeps places for AUs that
/// were in use; with `first_opened` AUs keep them for good.
#[test]
fn limits_at_random_show_without_copies_and_past_what_was_open_before() {
    let cards = [
        (770_094, Family::UpdateBlock),
        (770_438, Family::UpdateBlock),
        (770_096, Family::LogBlock),
        (770_250, Family::LogBlock),
    ];
    for (seed, family) in cards {
        let card = specimen(seed, family, Sizes::Usual, 32);
        let findings = run(&mut card.device(), seed);
        let found = findings.get(Quantity::OpenAusRandom);
        let truth = card.figure("geometry.open_aus_random");
        assert!(!found.at_least, "{seed} {found:?}");
        assert_eq!(
            found.value.map(|v| v.whole()),
            Some(truth),
            "{seed} {found:?}"
        );
    }
}

#[test]
fn a_fresh_card_is_not_said_to_have_no_limit() {
    let mut card = specimen(2, Family::LogBlock, Sizes::Usual, 2);
    card.used = false;
    let findings = run(&mut card.device(), 5);
    let truth = Truth::of(&card, Noise::NONE);
    let linear = findings.get(Quantity::OpenAusLinear);
    assert!(
        truth.agrees(Quantity::OpenAusLinear, linear, (1.0, 1.0)),
        "{linear:?}"
    );
}

/// Whether the AUs in turns have data decides what one too many costs, and with it most else: also
/// where one half of the card has data, where smaller numbers of AUs close what others left open,
/// and where reads do not show the AU.
#[test]
fn a_card_that_was_never_written_is_told_from_one_in_use() {
    let fresh = [970_282, 970_330, 970_432, 1_100_372];
    let in_use = [1_110_042, 1_110_442];
    for seed in fresh.into_iter().chain(in_use) {
        let (card, _, findings) = probed(seed, 32, Mechanisms::All);
        let truth = Truth::of(&card, Noise::NONE);
        let writes = findings.get(Quantity::RandomWrite4k);
        assert_eq!(writes.value.is_some(), card.used, "{seed} {writes:?}");
        for quantity in [Quantity::OverflowUs, Quantity::SmallWriteBytes] {
            let found = findings.get(quantity);
            assert!(
                truth.agrees(quantity, found, (1.0, 1.0)),
                "{seed} {} {found:?}",
                truth.told(quantity)
            );
        }
    }
}
