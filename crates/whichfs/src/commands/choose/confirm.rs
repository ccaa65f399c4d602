//! From a card in the reader to a verdict: its profile is taken, the lab decides, and the two best
//! are measured on the card.

use super::here::begin;
use crate::cli::{ChooseArgs, PlaceArgs, WriteHow};
use crate::commands::{probe, table};
use crate::device_report;
use crate::failure::{Failure, Outcome};
use crate::progress::Progress;
use std::path::{Path, PathBuf};
use std::time::Instant;
use whichfs_decide::plan::PlannedTrial;
use whichfs_decide::{
    Distance, Evidence, FigureOrigin, FigureRow, Need, Sample, Verdict, distances, judge,
};
use whichfs_device::{DestroyLimits, Roots, TargetDisk};
use whichfs_engine::campaign::rows_of;
use whichfs_engine::choose_on_device::REPEATS;
use whichfs_engine::images::Images;
use whichfs_engine::places;
use whichfs_engine::question::Question;
use whichfs_report::{Item, figure, item};
use whichfs_trial::Trial;
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
    let limits = DestroyLimits {
        max_bytes: own.max_size.unwrap_or(DestroyLimits::default().max_bytes),
        internal: own.internal,
    };
    let mut disk = TargetDisk::find(device, &limits, &roots)?;
    let path = saved(&disk)?;
    if path.exists() && !args.fresh {
        note!("its profile was taken before: {}", path.display());
        return Ok(path);
    }
    let how = match (args.device.write, own.destroy.first()) {
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
    /// The trials on the device.
    pub trials: Vec<Trial>,
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
            .map(|said| item("on the device", said, ""));
        let each = self.distances.iter().map(|one| {
            let names = one
                .candidates
                .keys()
                .cloned()
                .collect::<Vec<_>>()
                .join(", ");
            let value = format!("{:.2} of the lab's", one.ratio);
            item(&format!("device: {}", one.metric), value, &names)
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
    lab: &[FigureRow],
    verdict: &Verdict,
) -> Outcome<Confirmed> {
    let advised = verdict.advised().map(|one| one.candidate.as_str());
    let ranked = verdict.ranking.iter().map(|one| one.candidate.as_str());
    let others = ranked.filter(|name| Some(*name) != advised);
    let best: Vec<&str> = advised.into_iter().chain(others).take(BEST).collect();
    let (mut site, mut choice) = begin(args, question, Instant::now())?;
    let seeds = args.first_seed
        ..args
            .first_seed
            .saturating_add(args.seeds.unwrap_or(REPEATS));
    let round: Vec<PlannedTrial> = seeds
        .flat_map(|seed| {
            best.iter().map(move |name| PlannedTrial {
                seed,
                candidate: (*name).to_owned(),
            })
        })
        .collect();
    let tell = |what: &str| note!("{what}");
    let mut rounds = Progress::default().here().quiet(args.json);
    let mut order = choice.plan(&site, &round, &Images::new(&tell), &mut rounds)?;
    if !order.turns.is_empty() {
        site.confirm(&args.device.device.consent(args.json))?;
        choice.run(&site, &mut order, &mut rounds)?;
    }
    let rows = rows_of(&choice.found.trials);
    let samples = |rows: &[FigureRow]| rows.iter().map(FigureRow::sample).collect::<Vec<_>>();
    let mut distances = distances(&samples(lab), &samples(&rows));
    // What nobody asked for would bury the rest.
    distances.retain(|one| question.need.weights.contains_key(&one.metric));
    let mut sentences = vec![agreement(
        &question.need,
        &best,
        &samples(lab),
        &samples(&rows),
    )];
    sentences.extend(device_report::sentences(&site, choice.campaign(), &order));
    Ok(Confirmed {
        distances,
        trials: choice.found.trials,
        sentences,
    })
}

/// Whether the device says the same of the two `best` as the lab, by what both measured of both and
/// the need counts.
fn agreement(need: &Need, best: &[&str], lab: &[Sample], device: &[Sample]) -> String {
    let few = || "Lab and device have too few figures in common to say which is better.".to_owned();
    let all_have = |metric: &str| {
        let has = |samples: &[Sample], name: &str| {
            let own = |one: &Sample| one.candidate == name && one.metric == metric;
            samples.iter().any(own)
        };
        best.iter().all(|name| has(lab, name) && has(device, name))
    };
    let counted = need
        .weights
        .iter()
        .filter(|(_, weight)| weight.weight > 0.0);
    let common: Vec<&str> = counted
        .map(|(metric, _)| metric.as_str())
        .filter(|metric| all_have(metric))
        .collect();
    let leader = |samples: &[Sample], origin| {
        let own = |one: &&Sample| {
            best.contains(&one.candidate.as_str()) && common.contains(&one.metric.as_str())
        };
        let evidence = Evidence {
            samples: samples.iter().filter(own).cloned().collect(),
            origin,
            ..Evidence::default()
        };
        let mut need = need.clone();
        need.requires.clear();
        let verdict = judge(&need, &evidence).ok()?;
        let first = verdict.ranking.into_iter().next()?;
        Some((first.candidate, first.ties_with.is_empty(), first.p_best?))
    };
    let both = (
        leader(lab, FigureOrigin::Modelled),
        leader(device, FigureOrigin::Measured),
    );
    let (Some((modelled, clear_lab, _)), Some((measured, clear, p))) = both else {
        return few();
    };
    let labels: Vec<String> = common.iter().map(|metric| need.label(metric)).collect();
    let by = format!("by what both measured ({})", labels.join(", "));
    let (other, sure) = (best.get(1).copied().unwrap_or_default(), p * 100.0);
    let first = best.first().copied().unwrap_or_default();
    match (clear, clear_lab, modelled == measured) {
        (false, false, _) => format!("The device agrees: {first} and {other} tie there too, {by}."),
        (true, true, true) => {
            format!("The device agrees: {measured} is better there too ({sure:.0} % sure), {by}.")
        }
        (false, true, _) => format!(
            "On the device {first} and {other} cannot be told apart, {by}; in the lab {modelled} \
             is better."
        ),
        (true, false, _) => format!(
            "On the device {measured} is better ({sure:.0} % sure), {by}; the lab cannot tell them \
             apart. Believe the device."
        ),
        (true, true, false) => format!(
            "The device disagrees: there {measured} is better ({sure:.0} % sure), not {modelled}, \
             {by}. Believe the device, and probe it again."
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn samples(all: &[(&str, &str, f64)]) -> Vec<Sample> {
        let sample = |&(candidate, metric, value): &(&str, &str, f64)| Sample {
            candidate: candidate.into(),
            metric: metric.into(),
            seed: 1,
            value,
            unit: "s".into(),
            lower_is_better: true,
        };
        all.iter().map(sample).collect()
    }

    /// Space decides for f2fs in the lab, and the device cannot measure it: what both have decides.
    #[test]
    fn only_what_both_sides_measure_decides() {
        let need = Need::named("packages").unwrap();
        let lab = samples(&[
            ("xfs", "packages_install", 1.0),
            ("ext4", "packages_install", 2.0),
            ("xfs", "write_amplification", 9.0),
            ("ext4", "write_amplification", 1.0),
        ]);
        let device = samples(&[
            ("xfs", "packages_install", 1.0),
            ("ext4", "packages_install", 2.1),
        ]);
        let said = agreement(&need, &["ext4", "xfs"], &lab, &device);
        assert!(
            said.starts_with("The device agrees: xfs is better there too")
                && said.contains("by what both measured (install packages)"),
            "{said}"
        );
        let other = samples(&[
            ("xfs", "packages_install", 2.0),
            ("ext4", "packages_install", 1.0),
        ]);
        let said = agreement(&need, &["ext4", "xfs"], &lab, &other);
        assert!(
            said.starts_with("The device disagrees: there ext4 is better"),
            "{said}"
        );
        let alike = samples(&[
            ("xfs", "packages_install", 2.0),
            ("ext4", "packages_install", 2.1),
        ]);
        let said = agreement(&need, &["ext4", "xfs"], &lab, &alike);
        assert!(said.contains("cannot be told apart"), "{said}");
        let said = agreement(
            &need,
            &["ext4", "xfs"],
            &lab,
            &samples(&[("xfs", "mount", 1.0)]),
        );
        assert!(said.contains("too few figures"), "{said}");
    }
}
