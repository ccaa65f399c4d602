//! A study on a real device: its matrix without cards and boards, under this machine's kernel.

use super::{Caveats, told_where, wanted};
use crate::campaign::{Campaign, Wanted, WantedTrial};
use crate::device::DeviceExecutor;
use crate::error::Outcome;
use crate::executor::Executor;
use crate::images::Images;
use crate::observer::Observer;
use crate::trial_cache::TrialCache;
use crate::workload_run::WorkloadRun;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use whichfs_study::{PerformanceStudy, Spot, Variant};
use whichfs_trial::{REAL, Trial};
use whichfs_workload::Writes;

/// The study with the device and this machine in place of its cards and boards, and what of it
/// cannot be there. Figures that others published are of other cards; the smallest partition is
/// looked for in the lab.
pub fn on_device(
    study: PerformanceStudy,
    site: &DeviceExecutor,
) -> (PerformanceStudy, Vec<String>) {
    let mut study = PerformanceStudy {
        cards: vec![site.id().to_owned()],
        boards: vec![site.machine.name.clone()],
        clock: REAL.to_owned(),
        published: Vec::new(),
        smallest: None,
        ..study
    };
    let mut left_out = Vec::new();
    if let Some(dir) = site.inside() {
        // The filesystem is what is there, mounted as it is.
        let kind = std::mem::take(&mut study.candidates);
        let others: Vec<String> = kind.into_iter().filter(|name| *name != dir.kind).collect();
        if !others.is_empty() {
            let (names, path, kind) = (others.join(", "), &dir.shown, &dir.kind);
            left_out.push(format!(
                "{names}: {path} is on {kind}, and nothing is formatted there"
            ));
        }
        study.candidates = vec![dir.kind.clone()];
        let named = study.variants.iter().map(|variant| variant.name.as_str());
        let names: Vec<&str> = named.filter(|name| !name.is_empty()).collect();
        if !names.is_empty() {
            let names = names.join(", ");
            left_out.push(format!(
                "{names}: it is mounted with {}, and stays so",
                dir.options
            ));
        }
        study.variants = vec![Variant::default()];
        for load in &mut study.workloads {
            load.only_variants.clear();
        }
    }
    (study, left_out)
}

/// The matrix of a study as trials of a device.
pub struct DeviceMatrix<'a, E: Executor> {
    /// Its trials: spots that come to the same commands share one.
    pub campaign: Campaign<'a, E, Spot<'a>>,
    /// What cannot run here, a sentence for each reason.
    pub left_out: Vec<String>,
    /// What figures leave out.
    pub caveats: Caveats,
}

impl<'a, E: Executor> DeviceMatrix<'a, E> {
    /// The trials of `study` on `executor` with `works`, of which `cache` knows some.
    ///
    /// # Errors
    /// The caller's interruption; what is wrong beside a candidate.
    pub fn new(
        study: &'a PerformanceStudy,
        executor: &E,
        works: &BTreeMap<&'a str, WorkloadRun>,
        cache: TrialCache,
        images: &Images,
        interrupted: &'a AtomicBool,
        observer: &mut dyn Observer,
    ) -> Outcome<DeviceMatrix<'a, E>> {
        let mut writes: BTreeMap<&str, Writes> = BTreeMap::new();
        for (name, work) in works {
            writes.insert(name, work.writes()?);
        }
        let spots = study.spots();
        let wanted: Vec<Wanted<'_, Spot<'a>>> = wanted(study, &spots, works)?
            .into_iter()
            .map(|one| Wanted {
                label: one.label.map(|label| label.replace(", seed ", ", repeat ")),
                writes: writes[one.key.load.name.as_str()],
                ..one
            })
            .collect();
        let mut campaign = Campaign::new(cache, interrupted);
        let planned = campaign.plan(executor, wanted, images, &told_where)?;
        let mut without: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        let mut caveats = Caveats::default();
        for (spot, planned) in spots.iter().zip(planned) {
            match planned {
                WantedTrial::InMatrix { caveats: said, .. } => caveats.add(spot.candidate, &said),
                WantedTrial::LeftOut { why, .. } => {
                    let names = without.entry(why).or_default();
                    if !names.contains(&spot.candidate) {
                        names.push(spot.candidate);
                    }
                }
            }
        }
        caveats.tell(observer);
        let sentence = |(why, names): (String, Vec<&str>)| format!("{}: {why}", names.join(", "));
        Ok(DeviceMatrix {
            campaign,
            left_out: without.into_iter().map(sentence).collect(),
            caveats,
        })
    }

    /// The trials that are known, each with its spot, in the order of the study.
    pub fn trials(&self) -> Vec<(Spot<'a>, Trial)> {
        let cells = self.campaign.matrix().iter();
        let known = cells.filter_map(|cell| Some((&cell.keys, cell.trial.as_ref()?)));
        known
            .flat_map(|(keys, trial)| keys.iter().map(|spot| (*spot, trial.clone())))
            .collect()
    }
}
