//! The trials of a study: every seed on every card, board and kernel with every workload, candidate
//! and variant.

use super::{PerformanceStudy, StudyWorkload, Variant};
use whichfs_trial::REAL;

/// One trial of the matrix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spot<'a> {
    /// Seed of the trial.
    pub seed: u64,
    /// Card's name in the study.
    pub card: &'a str,
    /// Board's name in the study.
    pub board: &'a str,
    /// Workload with its parameters.
    pub load: &'a StudyWorkload,
    /// Name of the filesystem in the catalogue.
    pub candidate: &'a str,
    /// Mount and mkfs options of the trial, and its partition.
    pub variant: &'a Variant,
}

impl<'a> Spot<'a> {
    /// Version of its kernel, if it is not the lab's own.
    pub fn kernel(&self) -> Option<&'a str> {
        self.variant.kernel.as_deref()
    }
}

impl PerformanceStudy {
    /// All trials. Those of one seed together, so that a study that is ended early has something
    /// of everything; then those of one card, board, workload and kernel.
    pub fn spots(&self) -> Vec<Spot<'_>> {
        let seeds = 1..=self.seeds;
        seeds.flat_map(|seed| self.spots_of_seed(seed)).collect()
    }

    /// The trials with `seed`, in the same order.
    pub fn spots_of_seed(&self, seed: u64) -> Vec<Spot<'_>> {
        let mut spots = Vec::new();
        for card in &self.cards {
            for board in &self.boards {
                for load in &self.workloads {
                    let spot = |(candidate, variant)| Spot {
                        seed,
                        card,
                        board,
                        load,
                        candidate,
                        variant,
                    };
                    for kernel in self.each_kernel() {
                        let here = self.mounted(load).map(spot);
                        spots.extend(here.filter(|spot| spot.kernel() == kernel));
                    }
                }
            }
        }
        spots
    }

    /// The same study with only these filesystems and these cards; an empty list leaves all.
    ///
    /// # Errors
    /// The option with a name that the study does not have, and those that it has.
    pub fn only(mut self, filesystems: &[String], cards: &[String]) -> Result<Self, String> {
        for (option, all, wanted) in [
            ("--fs", &mut self.candidates, filesystems),
            ("--card", &mut self.cards, cards),
        ] {
            if let Some(name) = wanted.iter().find(|name| !all.contains(name)) {
                let all = all.join(", ");
                return Err(format!("{option} {name}: {} has {all}", self.name));
            }
            if !wanted.is_empty() {
                all.retain(|name| wanted.contains(name));
            }
        }
        Ok(self)
    }

    /// Each kernel that the study names, or the lab's own.
    fn each_kernel(&self) -> Vec<Option<&str>> {
        match self.kernels.is_empty() {
            true => vec![None],
            false => self.kernels.iter().map(|k| Some(k.as_str())).collect(),
        }
    }

    /// Each candidate with each of its variants that `load` is run with.
    fn mounted<'a>(
        &'a self,
        load: &'a StudyWorkload,
    ) -> impl Iterator<Item = (&'a str, &'a Variant)> {
        // The lab has one CPU.
        let runs = !load.on_devices || self.clock == REAL;
        let candidates = self.candidates.iter().filter(move |_| runs);
        candidates.flat_map(move |candidate| {
            let listed = |list: &[String], name: &String| list.is_empty() || list.contains(name);
            let has = move |v: &&Variant| {
                listed(&v.only, candidate) && listed(&load.only_variants, &v.name)
            };
            let variants = self.variants.iter().filter(has);
            variants.map(move |variant| (candidate.as_str(), variant))
        })
    }
}
