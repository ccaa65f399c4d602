//! The profile of a fitted card: figures, sources, how well each is determined.

use crate::fat::{FatRegion, region};
use crate::reads::{Reads, reads};
use crate::search::Candidate;
use crate::shape::Unit;
use crate::sheet::{Note, Sheet, family_name};
use crate::{FitError, Options};
use std::collections::BTreeMap;
use whichfs_card::Profile;
use whichfs_curves::Curves;

/// Capacity where none is known: a card sold as 4 GB, as most of the data.
const CAPACITY: u64 = 3_980_394_496;
/// Where the last of seven AUs of `flashbench -O` ends: 16 MiB + 6 × 48 MiB + 4 MiB, and
/// what the first tests need.
const CAPACITY_LEAST: u64 = 352 << 20;
/// SD high speed less framing, in bytes a second; faster cards get what they need.
const BUS_RATE: u64 = 23_000_000;
/// Bytes of a read of `flashbench -a` in the published logs.
const READ_BYTES: f64 = 1024.0;
/// Residual spread behind the solver's unit; a fit that is worse knows its figures less.
const SCALE_SPREAD: f64 = 0.06;

/// How well a time or rate of the profile is determined.
#[derive(Clone, Debug, PartialEq)]
pub struct Determined {
    /// `section.key` of the figure.
    pub path: &'static str,
    /// Value in the profile.
    pub value: u64,
    /// How far it may be off, in percent, as a factor up or down (one standard deviation).
    pub uncertainty_percent: u64,
    /// Share of the knowledge that is from the points; the rest is the prior. 0 to 1.
    pub informed: f64,
    /// In a word or two.
    pub word: &'static str,
}

/// What was written.
pub(crate) struct Written {
    pub toml: String,
    pub profile: Profile,
    pub determined: Vec<Determined>,
}

/// The capacity of the card.
pub(crate) fn capacity(options: &Options) -> Result<u64, FitError> {
    match options.capacity_bytes {
        Some(bytes) if bytes < CAPACITY_LEAST => Err(FitError::TooSmall(bytes)),
        Some(bytes) => Ok(bytes / 512 * 512),
        None => Ok(CAPACITY),
    }
}

/// Writes the profile of `best`. `measured`: curves from which reads and the FAT region may
/// be taken.
pub(crate) fn profile(
    best: &Candidate,
    measured: Option<&Curves>,
    points: usize,
    capacity: u64,
    options: &Options,
) -> Result<Written, FitError> {
    let mut sheet = best.shape.sheet(&best.free, &best.solution.theta, capacity);
    let determined = determined(best, &sheet);
    let mut notes = notes(best, &determined, points, options);
    let write_rate = sheet
        .values
        .get("write.rate_bytes_per_s")
        .copied()
        .unwrap_or(0);
    sheet
        .values
        .insert("bus.rate_bytes_per_s", BUS_RATE.max(write_rate * 2));
    if let Some(curves) = measured {
        let shape = &best.shape;
        let page = shape.value("geometry.page_bytes");
        let au = shape.value("geometry.au_bytes");
        if let Some(found) = reads(&curves.align, page, au) {
            put_reads(&mut sheet, &mut notes, found, &options.source);
        }
        if let Some(found) = region(&curves.fat) {
            put_fat(&mut sheet, &mut notes, found, &options.source);
        }
    }
    let title = match options.title.trim() {
        "" => "fitted card",
        title => title,
    };
    let head = [format!(
        "Fitted to {points} write points of {}: family {}.",
        source_name(&options.source),
        family_name(sheet.family),
    )];
    let toml = sheet.toml(title, "sd", &head, |path| {
        notes.get(path).cloned().unwrap_or_default()
    });
    let profile =
        Profile::parse(title, &toml).map_err(|error| FitError::NoCard(error.to_string()))?;
    Ok(Written {
        toml,
        profile,
        determined,
    })
}

fn source_name(source: &str) -> &str {
    if source.is_empty() {
        "flashbench -O"
    } else {
        source
    }
}

/// How well each free figure is known.
fn determined(best: &Candidate, sheet: &Sheet) -> Vec<Determined> {
    let solution = &best.solution;
    let worse = (solution.typical_error / SCALE_SPREAD).max(1.0);
    best.free
        .iter()
        .enumerate()
        .map(|(j, free)| {
            let (spread, informed) = (solution.spread[j], solution.informed[j]);
            // What is of the points scales with how well they are met; the prior does not.
            let spread = (spread * worse).min(free.prior.sigma.max(spread));
            let percent = (spread.exp_m1() * 100.0).round().clamp(1.0, 900.0) as u64;
            let word = match informed {
                ..0.3 => "not determined",
                0.3..0.7 => "weakly determined",
                _ if percent > 30 => "weakly determined",
                _ if percent > 10 => "determined",
                _ => "well determined",
            };
            Determined {
                path: free.path,
                value: sheet.values.get(free.path).copied().unwrap_or(0),
                uncertainty_percent: percent,
                informed,
                word,
            }
        })
        .collect()
}

/// Sources of all figures of the shape.
fn notes(
    best: &Candidate,
    determined: &[Determined],
    points: usize,
    options: &Options,
) -> BTreeMap<&'static str, Note> {
    let from = source_name(&options.source);
    let mut notes = BTreeMap::new();
    for path in best.shape.fixed.keys() {
        let source = match best.chosen.contains(path) {
            true => format!("fit: of the values tried, fits {points} points of {from} best"),
            false => "usual value: the write curves do not tell".to_owned(),
        };
        notes.insert(*path, plain(source));
    }
    let capacity = match options.capacity_bytes {
        Some(_) => "as stated",
        None => "unknown: a card sold as 4 GB",
    };
    notes.insert("geometry.capacity_bytes", plain(capacity.into()));
    notes.insert(
        "geometry.spare_aus",
        plain("composed: flash comes in powers of two, and a reserve".into()),
    );
    notes.insert(
        "bus.rate_bytes_per_s",
        plain(
            "composed: SD high speed 25 MB/s less framing, flash.md 2.7 GB, or what writing takes"
                .into(),
        ),
    );
    for (free, known) in best.free.iter().zip(determined) {
        let source = match known.informed {
            ..0.3 => format!("{}: prior of {}", known.word, free.why),
            _ => format!("fit to {points} points of {from}: {}", known.word),
        };
        let note = Note {
            source,
            uncertainty_percent: (free.unit != Unit::Percent).then_some(known.uncertainty_percent),
        };
        notes.insert(free.path, note);
    }
    notes
}

fn plain(source: String) -> Note {
    Note {
        source,
        uncertainty_percent: None,
    }
}

fn put_reads(
    sheet: &mut Sheet,
    notes: &mut BTreeMap<&'static str, Note>,
    found: Reads,
    source: &str,
) {
    let figure = |path| sheet.values.get(path).copied().unwrap_or(0) as f64;
    let transfer_us = READ_BYTES / figure("bus.rate_bytes_per_s") * 1e6;
    let first = found.within_us - figure("bus.command_us") - transfer_us;
    let values = [
        ("read.first_page_us", first),
        ("read.next_page_us", found.page_us),
        ("read.au_step_us", found.au_us),
    ];
    for (path, us) in values {
        sheet.values.insert(path, us.round().max(0.0) as u64);
        let from = source_name(source);
        notes.insert(path, plain(format!("median of flashbench -a of {from}")));
    }
}

fn put_fat(
    sheet: &mut Sheet,
    notes: &mut BTreeMap<&'static str, Note>,
    found: FatRegion,
    source: &str,
) {
    let values = [
        ("fat.first_au", found.first_au),
        ("fat.aus", found.aus),
        ("fat.overhead_us", found.overhead_us.round() as u64),
        (
            "fat.rate_bytes_per_s",
            (found.rate as u64).clamp(10_000, 4_000_000_000),
        ),
        ("fat.sub_page_us", found.sub_page_us.round() as u64),
    ];
    for (path, value) in values {
        sheet.values.insert(path, value);
        let from = source_name(source);
        notes.insert(
            path,
            plain(format!("flashbench -f of {from}: AUs unlike those behind")),
        );
    }
}
