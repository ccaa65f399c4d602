//! Reading a saved flashbench output: what its tables of `-a`, `-O` and `-f` tell, and
//! what not.
//!
//! The user of flashbench is left alone with a table. Steps are found by [`crate::steps`];
//! what a step means is decided by its place (`flash.md` §2.4): up to 64 KiB flash pages and
//! what several planes read together, from 128 KiB to 64 MiB the erase block, beyond it
//! zones of the map. A table of powers of two cannot tell 4 MiB from 12 MiB boundaries: a
//! multiple of 12 MiB is rare among multiples of 4 MiB. So sizes found are powers of two.

use crate::evidence::ProbeEvidence;
use crate::findings::{Finding, Findings, Quantity, Value};
use crate::interpret_writes;
use crate::stats::median;
use crate::steps::{Point, Rise, Rules, rises};
use std::collections::BTreeMap;
use whichfs_curves::{Align, Curves, Rates};
use whichfs_units::{Bytes, KIB, MIB};

/// Largest page or multi-plane page.
pub(crate) const PAGE_MAX: u64 = 64 * KIB;
/// Largest AU (SD105: 64 MB).
pub(crate) const AU_MAX: u64 = 64 * MIB;
/// Height of a step of a table over the time of a read: pages cost 56 µs and more, AUs 20 µs
/// and more of 400–1,500 µs (`flash.md` §2.4), and places differ by 1–4 %.
const HEIGHT_OF_READ: f64 = 0.03;
/// A step below this share of the page level is the position inside a page, not a page:
/// 0.17–0.25 on Phison's cards (WB6, WB21), 0.32 and more where authors read a page.
const PAGE_SHARE: f64 = 0.27;
/// A finer boundary that costs this much more than the next is none of both.
const PAGE_DIP: f64 = 0.87;
/// Rates fall to less than this share where one AU too many is in use: 0.01–0.56 with a
/// limit; other counts differ by less than 30 % even on cards that slow down gradually.
const COLLAPSE: f64 = 0.7;
/// Below this share it is no dip of another cause.
const CLEAR_COLLAPSE: f64 = 0.5;

/// Confidence that a size which a table of powers of two shows is one itself, and not three times
/// it: of the cards shipped one of 66 has another size, of those sold perhaps one in ten.
const POWERS_OF_TWO: f64 = 0.9;

/// Interprets the tables of a flashbench log; what they do not hold is null with a reason.
pub fn interpret(curves: &Curves) -> Findings {
    let mut values: BTreeMap<Quantity, Finding> = Quantity::ALL
        .into_iter()
        .map(|quantity| (quantity, Finding::none("flashbench's tables do not tell")))
        .collect();
    alignment(&curves.align, &mut values);
    let linear = open_aus(&curves.linear, "-O");
    let random = open_aus(&curves.random, "-O --random");
    values.insert(Quantity::OpenAusLinear, linear);
    values.insert(Quantity::OpenAusRandom, random);
    interpret_writes::insert(curves, &mut values);
    Findings {
        values,
        bytes_written: 0,
        bytes_read: 0,
        device_s: 0.0,
        complete: true,
        ended: None,
        drift: Vec::new(),
        notes: Vec::new(),
        measured: ProbeEvidence::default(),
    }
}

/// What the table of `-a` tells about pages, AU and zones.
fn alignment(table: &BTreeMap<u64, Vec<Align>>, values: &mut BTreeMap<Quantity, Finding>) {
    let quantities = [
        Quantity::PageBytes,
        Quantity::WriteUnitBytes,
        Quantity::AuBytes,
        Quantity::ZoneBytes,
    ];
    let points = points_of(table);
    if points.len() < 4 {
        for quantity in quantities {
            values.insert(
                quantity,
                Finding::none("no table of flashbench -a, or fewer than four lines of it"),
            );
        }
        return;
    }
    let rules = rules_for(table, &points);
    let (finest, greatest) = (points[0].0, points[points.len() - 1].0);
    let found = sort_out(&rises(&points, rules), au_max(greatest));
    let why = |what: &str| {
        format!(
            "no step of at least {:.0} µs {what} stands out from differences between lines",
            rules.height_us
        )
    };
    let below = if finest > 4 * KIB {
        format!("the table begins at {}: a page is not in it", Bytes(finest))
    } else {
        why("up to 64 KiB")
    };
    let one_plane = "no second step up to 64 KiB";
    let results = [
        (Quantity::PageBytes, found.page, below),
        (Quantity::WriteUnitBytes, found.unit, one_plane.to_owned()),
        (Quantity::AuBytes, found.au, why("from 128 KiB to 64 MiB")),
        (Quantity::ZoneBytes, found.zone, why("beyond the AU")),
    ];
    for (quantity, rise, reason) in results {
        values.insert(quantity, finding(rise, &reason));
    }
}

fn finding(rise: Option<Rise>, reason: &str) -> Finding {
    let Some(rise) = rise else {
        return Finding::none(reason);
    };
    let evidence = format!(
        "reads across multiples of {} take {:.0} µs more than on either side, across odd \
         multiples of {} {:.0} µs ({:.0} standard errors); a table of powers of two does not tell \
         it from three times as much",
        Bytes(rise.bytes),
        rise.behind_us,
        Bytes(rise.bytes / 2),
        rise.before_us,
        rise.score
    );
    let sure = confidence(rise.score).min(POWERS_OF_TWO);
    Finding::of(Value::Whole(rise.bytes), sure, evidence)
}

/// Probability that a step of this score is one: the cut was chosen among some twenty.
pub(crate) fn confidence(score: f64) -> f64 {
    match score {
        s if s >= 8.0 => 0.99,
        s if s >= 6.0 => 0.97,
        s if s >= 5.0 => 0.94,
        s if s >= 4.0 => 0.9,
        s if s >= 3.0 => 0.7,
        _ => 0.4,
    }
}

/// Median of the replicates of each level.
fn points_of(table: &BTreeMap<u64, Vec<Align>>) -> Vec<Point> {
    let levels = table.iter().filter_map(|(bytes, replicates)| {
        let extra: Vec<f64> = replicates.iter().map(|line| line[3]).collect();
        let middle = median(&extra)?;
        let spread = crate::stats::sigma(&extra);
        Some((*bytes, middle, spread / (extra.len() as f64).sqrt()))
    });
    levels.collect()
}

/// A step must be taller than a share of a read, and than what is seen at the finest
/// boundaries, where reads cross no page and nothing should be seen.
fn rules_for(table: &BTreeMap<u64, Vec<Align>>, points: &[Point]) -> Rules {
    let reads: Vec<f64> = table.values().flatten().map(|line| line[0]).collect();
    let nothing = points
        .iter()
        .find(|point| point.0 <= 2 * KIB)
        .map_or(0.0, |point| point.1.abs());
    Rules {
        score: 4.5,
        height_us: (HEIGHT_OF_READ * median(&reads).unwrap_or(0.0)).max(nothing),
        relative: 0.1,
    }
}

/// Steps by what they mean.
#[derive(Clone, Copy, Debug, Default)]
struct Meaning {
    page: Option<Rise>,
    unit: Option<Rise>,
    au: Option<Rise>,
    zone: Option<Rise>,
}

/// Largest AU of a card whose greatest boundary is this: SD105 allows 4 MB up to 32 GB, of
/// which some makers have a multiple, and 64 MB beyond. flashbench's greatest boundary is
/// more than a fourteenth of the card.
fn au_max(greatest: u64) -> u64 {
    if greatest > 4096 * MIB {
        AU_MAX
    } else {
        16 * MIB
    }
}

fn sort_out(rises: &[Rise], au_max: u64) -> Meaning {
    let mut pages = rises.iter().filter(|r| r.bytes <= PAGE_MAX).copied();
    let (first, second) = (pages.next(), pages.next());
    let page_level = rises
        .iter()
        .rfind(|r| r.bytes <= PAGE_MAX)
        .map_or(0.0, |r| r.behind_us);
    let (page, unit) = match (first, second) {
        (Some(first), Some(second)) if !is_page(&first, &second, page_level) => {
            (Some(second), None)
        }
        both => both,
    };
    let au = rises
        .iter()
        .find(|r| (2 * PAGE_MAX..=au_max).contains(&r.bytes))
        .copied();
    let above = au.map_or(au_max, |au| au.bytes);
    // Zones are told by tall steps only: few boundaries of their size fit a card.
    let zone = rises
        .iter()
        .find(|r| r.bytes > above && r.behind_us - r.near_us >= 0.2 * r.near_us.abs())
        .copied();
    Meaning {
        page,
        unit,
        au,
        zone: zone.filter(|zone| zone.bytes > 8 * above),
    }
}

/// Whether the first of two steps up to 64 KiB is a page, and not the place inside one.
pub(crate) fn is_page(first: &Rise, second: &Rise, level: f64) -> bool {
    let falls = second.near_us < PAGE_DIP * first.at_us;
    !falls && first.height_us >= PAGE_SHARE * level
}

/// Most AUs before the rates collapse.
fn open_aus(table: &BTreeMap<u32, Rates>, option: &str) -> Finding {
    let Some(most) = table.keys().next_back().copied().filter(|most| *most > 1) else {
        return Finding::none(format!("no tables of flashbench {option} for several AUs"));
    };
    let ratios: Vec<(u32, f64)> = table
        .iter()
        .zip(table.iter().skip(1))
        .filter(|((fewer, _), (more, _))| **fewer > 0 && **more - **fewer == 1)
        .filter_map(|((aus, fewer), (_, more))| Some((*aus, ratio(fewer, more)?)))
        .collect();
    // From one AU to two, writes also cease to be contiguous, which costs by itself.
    let bound = |aus: u32| {
        if aus == 1 {
            0.5 * CLEAR_COLLAPSE
        } else {
            COLLAPSE
        }
    };
    let worst = ratios.iter().find(|(aus, ratio)| *ratio < bound(*aus));
    match worst {
        Some((aus, ratio)) => {
            let evidence = format!(
                "with {} AUs the rates at 16–256 KiB are {:.0} % of those with {aus}",
                aus + 1,
                100.0 * ratio
            );
            let sure = match *ratio {
                r if r < 0.2 => 0.98,
                r if r < CLEAR_COLLAPSE => 0.9,
                _ => 0.8,
            };
            Finding::of(Value::Whole(u64::from(*aus)), sure, evidence)
        }
        None if ratios.len() + 1 == most as usize => {
            let first = ratios.first().map_or(1.0, |(_, ratio)| *ratio);
            let evidence = format!(
                "rates at 16–256 KiB do not collapse up to {most} AUs; with 2 AUs they are \
                 {:.0} % of those with 1",
                100.0 * first
            );
            // What falls from one AU to two may be writes no longer contiguous, or a limit.
            let sure = if first < COLLAPSE { 0.7 } else { 0.9 };
            Finding::at_least(u64::from(most), sure, evidence)
        }
        None => Finding::none(format!(
            "tables of flashbench {option} are missing in between"
        )),
    }
}

/// Median ratio of rates at sizes at which one AU too many shows.
fn ratio(fewer: &Rates, more: &Rates) -> Option<f64> {
    let sizes = [16 * KIB, 32 * KIB, 64 * KIB, 128 * KIB, 256 * KIB];
    let ratios: Vec<f64> = sizes
        .iter()
        .filter_map(|size| Some(more.get(size)? / fewer.get(size)?))
        .collect();
    median(&ratios)
}
