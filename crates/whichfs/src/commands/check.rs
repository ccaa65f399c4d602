//! `whichfs check`: is what is on a card aligned and tuned, and what would it gain?

use super::study;
use crate::cli::CheckArgs;
use crate::failure::{Failure, Kind, Outcome, exit_code};
use crate::output;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use whichfs_engine::cards;
use whichfs_engine::medium::{self, KernelReport};
use whichfs_engine::places;
use whichfs_format::{Disk, Left};
use whichfs_layout::superblock::Figure;
use whichfs_layout::{Fault, Found, Medium, Verdict, judge};
use whichfs_study::{Base, Compare, Load, Offset, PerformanceStudy, Tuning, Variant};
use whichfs_units::{Bytes, counted};

/// Examples in the help text.
pub const EXAMPLES: &str = "\
Examples:
  sudo whichfs check /dev/mmcblk0                       nothing is written
  whichfs check sdcard.img --card a1-32gb               an image, as a BSP's CI does
  whichfs check sdcard.img --au 8M --no-gain            without the lab
  whichfs check sdcard.img --card mycard.toml --json

What is misaligned or not tuned is made again in the lab, as it is and as whichfs format would
make it, on the model of the card (--card; a1-32gb if none is named), and the difference is
measured with the workload rootfs.

Exit status: 0 aligned and tuned, 1 something is not, is cut off, or was left half done by format,
2 bad usage or input.";

/// Names of the two variants.
const FOUND: &str = "as found";
const TUNED: &str = "tuned";
/// Repeats of the measurement.
const SEEDS: u64 = 5;
/// The least partition that the workload has room in.
const LEAST_BYTES: u64 = 64 << 20;

/// A partition with what is to be said of it.
#[derive(Serialize)]
struct Partition {
    number: usize,
    name: String,
    start: u64,
    bytes: u64,
    #[serde(flatten)]
    verdict: Verdict,
    /// What tuning gains, measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    gain: Option<study::Compared>,
    /// Why it was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_measured: Option<String>,
}

/// The JSON document.
#[derive(Serialize)]
struct Document {
    path: String,
    bytes: u64,
    au_bytes: u64,
    au_why: String,
    table: Option<&'static str>,
    /// What is wrong with it.
    table_faults: Vec<Fault>,
    partitions: Vec<Partition>,
    /// What a `format` that did not come to its end left.
    #[serde(skip_serializing_if = "Option::is_none")]
    unfinished: Option<String>,
}

/// Runs the command.
pub fn run(args: &CheckArgs) -> Outcome<u8> {
    let disk = Disk::open(&args.target)?;
    if disk.bytes == 0 {
        return Err(Failure::input(format!(
            "{} has no bytes; name a card or an image",
            args.target.display()
        )));
    }
    let medium = medium::of(
        &args.medium.knowledge(),
        Some(disk.bytes),
        told(&args.target),
    )?;
    let unfinished = unfinished(&args.target);
    if let Some(unfinished) = &unfinished {
        // What it left may be nothing that can be read.
        note!("{unfinished}");
    }
    let mut document = document(args, &disk, &medium, unfinished)?;
    if document
        .partitions
        .iter()
        .all(|one| one.verdict.candidate.is_none())
        && document.table.is_none()
    {
        return Err(Failure::input(format!(
            "{} has neither a partition table nor a filesystem that is known; name a card or an \
             image",
            args.target.display()
        )));
    }
    for one in &mut document.partitions {
        match measured(args, one) {
            Ok(gain) => one.gain = gain,
            Err(Some(failure)) => return Err(failure),
            Err(None) => {}
        }
    }
    match args.json {
        true => output::json(&document)?,
        false => tell(&document)?,
    }
    let faults = !document.table_faults.is_empty()
        || document
            .partitions
            .iter()
            .any(|one| !one.verdict.faults.is_empty());
    // A reader's name is that of all cards in it: what the journal says alone proves nothing.
    let unknown = |one: &Partition| one.verdict.candidate.is_none();
    let half = document.unfinished.is_some() && document.partitions.iter().any(unknown);
    let bad = faults || half;
    Ok(if bad { exit_code(Kind::No) } else { 0 })
}

/// What the kernel says of a device; nothing of a file.
fn told(path: &Path) -> KernelReport {
    let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let name = real.file_name().unwrap_or_default();
    let number = |attribute: &str| {
        let path = Path::new("/sys/class/block").join(name).join(attribute);
        let text = std::fs::read_to_string(path)
            .ok()
            .filter(|_| real.starts_with("/dev"))?;
        text.trim().parse::<u64>().ok()
    };
    KernelReport {
        erase_bytes: number("device/preferred_erase_size").filter(|bytes| *bytes > 0),
        sector_bytes: number("queue/logical_block_size"),
        discard: number("queue/discard_max_bytes").is_none_or(|bytes| bytes > 0),
    }
}

fn document(
    args: &CheckArgs,
    disk: &Disk,
    medium: &Medium,
    unfinished: Option<String>,
) -> Outcome<Document> {
    let table = disk.table()?;
    let places: Vec<(usize, String, u64, u64)> = match &table {
        Some(table) => table
            .entries
            .iter()
            .map(|entry| (entry.number, entry.name.clone(), entry.start, entry.bytes))
            .collect(),
        None => vec![(0, "whole".to_owned(), 0, disk.bytes)],
    };
    let mut partitions = Vec::new();
    for &(number, ref name, start, bytes) in &places {
        let superblock = match start < disk.bytes {
            true => disk.superblock(start)?,
            false => None,
        };
        let found = Found {
            start,
            bytes,
            superblock,
        };
        let mut verdict = judge(&found, medium);
        let cut_off = cut_off(&found, disk.bytes);
        let others = places.iter().filter(|other| other.0 != number);
        let shared = others.filter_map(|other| shared(&found, other)).next();
        let not_measured = match (&cut_off, &shared) {
            (Some(_), _) => Some("it is not whole".to_owned()),
            (_, Some(_)) => Some("another partition overlaps it".to_owned()),
            _ => None,
        };
        verdict.faults.extend(cut_off);
        verdict.faults.extend(shared);
        partitions.push(Partition {
            number,
            name: name.clone(),
            start,
            bytes,
            verdict,
            gain: None,
            not_measured,
        });
    }
    Ok(Document {
        path: args.target.display().to_string(),
        bytes: disk.bytes,
        au_bytes: medium.unit.bytes,
        au_why: medium.unit.why.clone(),
        table: table.map(|table| table.kind.word()),
        table_faults: disk.backup_damage().map(backup).into_iter().collect(),
        partitions,
        unfinished,
    })
}

/// That a part of `found` lies behind the end of a disk of `bytes`, or its filesystem behind its
/// own end.
fn cut_off(found: &Found, bytes: u64) -> Option<Fault> {
    let end = found.start.saturating_add(found.bytes);
    let superblock = found.superblock.as_ref();
    // Of a btrfs it is the size of all its devices.
    let covers = superblock.filter(|superblock| superblock.candidate != "btrfs");
    let covers = covers.and_then(|superblock| superblock.figure(Figure::Bytes));
    let what = match covers {
        _ if end > bytes => format!(
            "it ends at {}, behind the end of the disk at {}",
            Bytes(end),
            Bytes(bytes)
        ),
        Some(covers) if covers > found.bytes => format!(
            "its filesystem has {}, more than the {} that are there",
            Bytes(covers),
            Bytes(found.bytes)
        ),
        _ => return None,
    };
    Some(Fault {
        what,
        costs: "the image is cut off, or was written to a card that is too small: what lies behind \
                is missing",
    })
}

/// That the second copy of a GPT is not what it should be.
fn backup(damage: String) -> Fault {
    Fault {
        what: format!("the second copy of the GPT is damaged ({damage})"),
        costs: "if the first copy is lost, so are the partitions; gdisk writes it anew",
    }
}

/// That `found` shares bytes with the partition `other`: number, name, first byte, bytes.
fn shared(found: &Found, other: &(usize, String, u64, u64)) -> Option<Fault> {
    let (number, _, start, bytes) = other;
    let end = found.start.saturating_add(found.bytes);
    (*start < end && found.start < start.saturating_add(*bytes)).then(|| Fault {
        what: format!(
            "it overlaps partition {number}, which begins at {}",
            Bytes(*start)
        ),
        costs: "what is written to one destroys the other",
    })
}

/// What a `format` that did not come to its end left on the device at `path`.
fn unfinished(path: &Path) -> Option<String> {
    let id = whichfs_device::id_of(path, &whichfs_device::Roots::default())?;
    let left = Left::read(&places::journals().ok()?, &id)?;
    let told = left.told()?;
    Some(format!("the last format of it {told}"))
}

/// Measures what tuning would gain `one`; nothing if nothing is wrong with it.
///
/// # Errors
/// `None` where it was not measured, and the reason is in `one`.
fn measured(
    args: &CheckArgs,
    one: &mut Partition,
) -> Result<Option<study::Compared>, Option<Failure>> {
    if one.verdict.faults.is_empty() {
        return Ok(None);
    }
    if one.not_measured.is_some() {
        return Err(None);
    }
    match measurable(args, one) {
        Ok(study) => {
            if !args.json {
                note!(
                    "measuring what partition {} would gain, in the lab",
                    one.number
                );
            }
            study::compared(&study).map(Some).map_err(Some)
        }
        Err(why) => {
            one.not_measured = Some(why);
            Err(None)
        }
    }
}

/// The study of `one`: as it is against as it would be.
fn measurable(args: &CheckArgs, one: &Partition) -> Result<PerformanceStudy, String> {
    if args.no_gain {
        return Err("--no-gain".into());
    }
    let name = one
        .verdict
        .candidate
        .ok_or("no filesystem is known in it")?;
    let candidate = whichfs_fs::find(name).map_err(|error| error.to_string())?;
    if candidate.facts().read_only {
        return Err(format!("{name} is read-only"));
    }
    if one.bytes < LEAST_BYTES {
        return Err(format!(
            "the workload needs a partition of {}",
            Bytes(LEAST_BYTES)
        ));
    }
    places::kernel().map_err(|failure| failure.message)?;
    let card = args.medium.card.as_deref().unwrap_or(cards::DEFAULT);
    let profile = cards::open(card)
        .map_err(|failure| failure.message)?
        .profile;
    let unit = profile.au_bytes();
    let begin = cards::partition_offset(&profile);
    let room = profile.capacity_bytes().saturating_sub(begin + unit);
    let offset = begin + one.start % unit;
    let bytes = one.bytes.min(room / unit * unit);
    Ok(study_of(card, name, one, offset, bytes))
}

fn study_of(card: &str, name: &str, one: &Partition, offset: u64, bytes: u64) -> PerformanceStudy {
    let remedy = &one.verdict.as_found;
    let found = Variant {
        name: FOUND.into(),
        mkfs: remedy.mkfs.clone(),
        set: remedy.set.clone(),
        offset: Some(Offset::Bytes(offset)),
        tuning: match remedy.untuned {
            true => Tuning::Nothing,
            false => Tuning::ThisCard,
        },
        ..Variant::default()
    };
    let tuned = Variant {
        name: TUNED.into(),
        ..Variant::default()
    };
    let metrics = ["tree_write", "tree_read", "rewrite", "random_update"];
    PerformanceStudy {
        name: "check".into(),
        title: "What would tuning gain?".into(),
        source: String::new(),
        method: String::new(),
        cards: vec![card.to_owned()],
        boards: vec!["generic-1ghz".to_owned()],
        clock: "cpu".into(),
        kernels: Vec::new(),
        modules: None,
        seeds: SEEDS,
        quick_seeds: SEEDS,
        same_data: false,
        candidates: vec![name.to_owned()],
        variants: vec![found, tuned],
        workloads: vec![Load {
            name: "root filesystem".into(),
            workload: "rootfs".into(),
            parameters: BTreeMap::from([("bytes".into(), 12_000_000), ("files".into(), 300)]),
            quick: BTreeMap::new(),
            only_variants: Vec::new(),
            partition_bytes: Some(bytes),
            table: String::new(),
            at: String::new(),
            cpu: false,
        }],
        compare: Some(Compare {
            with: Base::Variant(FOUND.into()),
            metrics: metrics.map(str::to_owned).to_vec(),
            series: false,
        }),
        smallest: None,
        published: Vec::new(),
    }
}

fn tell(document: &Document) -> Outcome {
    let table = document.table.map_or("no partition table", |table| table);
    output::paragraph(
        &format!(
            "{}: {}, {table}; allocation unit of {}: {}.",
            document.path,
            Bytes(document.bytes),
            Bytes(document.au_bytes),
            document.au_why
        ),
        2,
    )?;
    for fault in &document.table_faults {
        output::paragraph(&format!("- {}: {}", fault.what, fault.costs), 2)?;
    }
    for one in &document.partitions {
        tell_partition(one)?;
    }
    Ok(())
}

fn tell_partition(one: &Partition) -> Outcome {
    let fs = one
        .verdict
        .candidate
        .unwrap_or("no filesystem that is known");
    let name = match one.name.as_str() {
        "" => one.number.to_string(),
        name => format!("{} {name}", one.number),
    };
    let begin = format!(
        "begins at {} ({})",
        Bytes(one.start),
        counted(one.start / 512, "sector")
    );
    output::text_line("")?;
    output::paragraph(&format!("{name}: {fs}, {}, {begin}", Bytes(one.bytes)), 2)?;
    let figures = one.verdict.figures.iter();
    let shown: Vec<String> = figures
        .map(|(figure, (value, _))| shown(*figure, *value))
        .collect();
    if !shown.is_empty() {
        output::paragraph(&format!("  has: {}", shown.join(", ")), 7)?;
    }
    if one.verdict.faults.is_empty() {
        return output::text_line(match one.verdict.candidate {
            Some(_) => "  aligned and tuned",
            None => "  aligned; whether it is tuned cannot be told",
        });
    }
    for fault in &one.verdict.faults {
        output::paragraph(&format!("  - {}: {}", fault.what, fault.costs), 4)?;
    }
    if let Some(why) = &one.not_measured {
        output::paragraph(
            &format!("  What tuning would gain was not measured: {why}"),
            4,
        )?;
    }
    let Some(gain) = &one.gain else {
        return Ok(());
    };
    output::text_line("  Tuned, against as found, measured in the lab (95 % interval):")?;
    for row in &gain.rows {
        output::text_line(&format!("    {}", row.join("  ")))?;
    }
    for lacking in &gain.lacking {
        output::paragraph(&format!("    {lacking}"), 6)?;
    }
    Ok(())
}

fn shown(figure: Figure, value: u64) -> String {
    match figure.is_bytes() {
        true => format!("{} {}", figure.words(), Bytes(value)),
        false => format!("{} {value}", figure.words()),
    }
}
