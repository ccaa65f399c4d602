//! From a card in the reader to a verdict: its profile is taken, the lab decides, and the two best
//! are measured on the card.

use super::here::{Measuring, REPEATS};
use crate::cli::{ChooseArgs, PlaceArgs, WriteHow};
use crate::commands::{probe, table};
use crate::failure::{Failure, Outcome};
use crate::page;
use std::path::{Path, PathBuf};
use std::time::Instant;
use whichfs_device::{Limits, Roots, TargetDisk};
use whichfs_engine::choose::{Question, rows_of};
use whichfs_engine::places;
use whichfs_report::{Item, figure};
use whichfs_study::plan::Planned;
use whichfs_study::{Distance, Row, Verdict, distances};
use whichfs_units::Bytes;

/// How many of the best are measured.
const BEST: usize = 2;

/// Whether `card` is a device of this machine.
pub fn is_device(card: &str) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let is_block = |meta: std::fs::Metadata| meta.file_type().is_block_device();
    card.starts_with("/dev/") || std::fs::metadata(card).is_ok_and(is_block)
}

/// The profile of the device that `--card` names: given, taken before, or taken now, with the
/// user's consent to what that writes.
///
/// # Errors
/// No consent; what the probe says.
pub fn profile(args: &ChooseArgs) -> Outcome<PathBuf> {
    let own = &args.device.device;
    if let Some(name) = &own.profile {
        return Ok(name.into());
    }
    let device = Path::new(&args.place.card);
    let roots = Roots::default();
    let limits = Limits {
        max_bytes: own.max_size.unwrap_or(Limits::default().max_bytes),
        internal: own.internal,
    };
    let mut disk = TargetDisk::find(device, &limits, &roots)?;
    let path = saved(&disk)?;
    if path.exists() && !args.fresh {
        note!("its profile was taken before: {}", path.display());
        return Ok(path);
    }
    let how = match (args.device.write, &own.destroy) {
        (_, Some(given)) => {
            disk.confirm(Some(given), &roots)?;
            WriteHow::Destroy
        }
        (true, None) => WriteHow::Preserve,
        (false, None) => {
            let shown = device.display();
            return Err(Failure::input(format!(
                "{shown} ({}, called {}) is not known yet: say --write to have it probed, which \
                 writes to it and puts back what was there; or --destroy {} if its data may be \
                 lost, which is faster; or --profile FILE",
                Bytes(disk.bytes),
                disk.id,
                whichfs_units::shell_word(&disk.id)
            )));
        }
    };
    let identity = disk.identity().to_owned();
    // The probe claims the device for itself.
    drop(disk);
    note!(
        "probing {}: its profile will be {}",
        device.display(),
        path.display()
    );
    probe::save(&args.place.card, how, &identity, &path)?;
    Ok(path)
}

/// Where the profile of `disk` is kept.
fn saved(disk: &TargetDisk) -> Outcome<PathBuf> {
    let directory = places::profiles()?;
    places::make(&directory)?;
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let name: String = disk.id.chars().map(plain).collect();
    let from = name.len().saturating_sub(60);
    // Devices whose names differ only in other characters have other digests.
    let digest = whichfs_engine::digest::sha256(disk.identity().as_bytes());
    let name = name[from..].trim_matches('-');
    Ok(directory.join(format!("{name}-{}.toml", &digest[..8])))
}

/// The arguments with a profile in place of the device.
pub fn in_the_lab(args: &ChooseArgs, profile: &Path) -> ChooseArgs {
    ChooseArgs {
        place: PlaceArgs {
            card: profile.display().to_string(),
            ..args.place.clone()
        },
        ..args.clone()
    }
}

/// The two best of the lab, measured on the device.
pub struct Confirmed {
    /// Where lab and device differ, by metric.
    pub distances: Vec<Distance>,
    /// The figures of the device.
    pub rows: Vec<Row>,
    /// What is to be said of it.
    pub sentences: Vec<String>,
}

impl Confirmed {
    /// What is printed after the verdict.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("On the device\n{}\n", table(&self.distances))];
        lines.extend(self.sentences.iter().cloned());
        lines
    }

    /// The same for the report.
    pub fn items(&self) -> Vec<Item> {
        let said = self
            .sentences
            .iter()
            .map(|said| page::item("on the device", said, ""));
        let each = self.distances.iter().map(|one| {
            let names = one
                .candidates
                .keys()
                .cloned()
                .collect::<Vec<_>>()
                .join(", ");
            let value = format!("{:.2} of the lab's", one.ratio);
            page::item(&format!("device: {}", one.metric), value, &names)
        });
        said.chain(each).collect()
    }
}

/// Measures the best of `verdict` on the device, and compares with `lab`, the figures of the lab.
///
/// # Errors
/// What speaks against losing the device's data; the user's interrupt.
pub fn confirm(
    args: &ChooseArgs,
    question: &Question,
    lab: &[Row],
    verdict: &Verdict,
) -> Outcome<Confirmed> {
    let best: Vec<&str> = verdict
        .ranking
        .iter()
        .take(BEST)
        .map(|one| one.candidate.as_str())
        .collect();
    let mut measuring = Measuring::new(args, &question.need, &question.work)?;
    let seeds = args.first_seed
        ..args
            .first_seed
            .saturating_add(args.seeds.unwrap_or(REPEATS));
    let round: Vec<Planned> = seeds
        .flat_map(|seed| {
            best.iter().map(move |name| Planned {
                seed,
                candidate: (*name).to_owned(),
            })
        })
        .collect();
    measuring.run_round(&round)?;
    let rows = rows_of(&measuring.trials);
    let samples = |rows: &[Row]| rows.iter().map(Row::sample).collect::<Vec<_>>();
    let mut distances = distances(&samples(lab), &samples(&rows));
    // What nobody asked for would bury the rest.
    distances.retain(|one| question.need.weights.contains_key(&one.metric));
    let mut sentences = vec![agreement(
        &best,
        measuring.verdict(Instant::now()).ok().as_ref(),
    )];
    sentences.extend(measuring.sentences.iter().cloned());
    Ok(Confirmed {
        distances,
        rows,
        sentences,
    })
}

/// Whether the device says the same.
fn agreement(best: &[&str], measured: Option<&Verdict>) -> String {
    let Some(measured) = measured.filter(|verdict| verdict.ranking.len() >= 2) else {
        return "The device gave too few figures to say which of the two is better.".to_owned();
    };
    let (first, lab) = (
        &measured.ranking[0],
        best.first().copied().unwrap_or_default(),
    );
    let sure = first.p_best * 100.0;
    match (first.candidate == lab, first.ties_with.is_empty()) {
        (true, _) => format!("The device agrees: {lab} is best there too ({sure:.0} % sure)."),
        (false, false) => format!(
            "On the device {} and {lab} cannot be told apart.",
            first.candidate
        ),
        (false, true) => format!(
            "The device disagrees: there {} is best ({sure:.0} % sure), not {lab}. Believe the \
             device, and probe it again.",
            first.candidate
        ),
    }
}

/// Where lab and device differ, as a table: the device's figure for each of the lab's.
fn table(distances: &[Distance]) -> String {
    let names: Vec<&String> = distances
        .first()
        .map(|first| first.candidates.keys().collect())
        .unwrap_or_default();
    let mut head = vec!["lab → device".to_owned()];
    head.extend(names.iter().map(|name| (*name).clone()));
    head.push("device / lab".to_owned());
    let rows = distances.iter().map(|one| {
        let mut row = vec![one.metric.clone()];
        row.extend(names.iter().map(|name| match one.candidates.get(*name) {
            Some((lab, device)) => {
                let [lab, device] = [lab, device].map(|value| figure(*value, &one.unit));
                format!("{lab} → {device}")
            }
            None => "-".to_owned(),
        }));
        row.push(format!("{:.2}×", one.ratio));
        row
    });
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    table::text(&head, rows.collect())
}
