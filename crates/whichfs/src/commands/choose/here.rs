//! `choose` on a real device: the need's trials under this machine's kernel.

use super::files::Report;
use super::{check_names, code_of, need_of, tell, work_of};
use crate::cli::ChooseArgs;
use crate::device_report;
use crate::failure::{Failure, Kind, Outcome};
use crate::progress::Progress;
use crate::{interrupt, page, repeat};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use whichfs_engine::choose::{failures, not_known, rows_of};
use whichfs_engine::device::{Campaign, DeviceExecutor, Planned as Run, campaign};
use whichfs_engine::executor::PrepareError;
use whichfs_engine::images::Images;
use whichfs_engine::trial_cache::TrialCache;
use whichfs_engine::workload_run::WorkloadRun;
use whichfs_remote::Place;
use whichfs_report::item;
use whichfs_study::plan::{Planned, first_round, next_round};
use whichfs_study::{Budget, Evidence, Excluded, Need, Origin, Row, Variant, Verdict, judge};
use whichfs_trial::Trial;

/// Repeats that every candidate gets: of one alone it is not known how far a device scatters.
const FIRST: u64 = 2;

/// Most repeats, unless the user says how many: they take real time.
pub const REPEATS: u64 = 3;

/// Measures what the need asks for on the device that `--card` names, and tells the verdict.
///
/// # Errors
/// What speaks against losing the device's data; what this machine lacks; the user's interrupt.
pub fn run(args: &ChooseArgs, begun: Instant) -> Outcome<u8> {
    let need = need_of(args)?;
    let work = work_of(args, &need)?;
    check_names(&args.candidates)?;
    let mut measuring = Measuring::new(args, &need, &work)?;
    let candidates = measuring.candidates()?;
    let most = args.seeds.unwrap_or(REPEATS);
    let repeats = args.first_seed..args.first_seed.saturating_add(most.min(FIRST));
    let first: Vec<Planned> = repeats
        .flat_map(|repeat| first_round(&candidates, repeat))
        .collect();
    if args.device.dry_run {
        return measuring.dry_run(&first);
    }
    let report = Report::new(&args.out)?;
    let mut verdict = measuring.verdict(begun)?;
    let mut round = first;
    while !round.is_empty() && measuring.run_round(&round)? {
        verdict = measuring.verdict(begun)?;
        round = next_round(&verdict, args.first_seed, most);
        round.retain(|planned| !measuring.asked.contains(planned));
    }
    verdict = measuring.verdict(begun).unwrap_or(verdict);
    let reused = measuring.keeper.reused;
    let trials = &measuring.trials;
    let mut page = page::measured(
        &measuring.site,
        &work,
        &verdict,
        reused,
        trials,
        repeat::line(args),
    );
    page.environment.extend(measuring.items());
    let report = report.write(&page, &rows_of(&measuring.trials), &measuring.trials)?;
    tell(args, &page, &measuring.sentences, &report)?;
    Ok(code_of(
        verdict.ranking.is_empty(),
        failures(&measuring.trials).is_empty(),
    ))
}

/// Everything that measuring for one need gathers.
pub struct Measuring<'a> {
    args: &'a ChooseArgs,
    need: &'a Need,
    work: &'a WorkloadRun,
    /// The device.
    pub site: DeviceExecutor,
    keeper: TrialCache,
    /// The user has named the device.
    confirmed: bool,
    /// What was asked for so far, in this order.
    asked: Vec<Planned>,
    /// Finished trials.
    pub trials: Vec<Trial>,
    excluded: Vec<Excluded>,
    not_comparable: Vec<Excluded>,
    caveats: BTreeMap<String, Vec<String>>,
    /// How it went, in sentences.
    pub sentences: Vec<String>,
    begun: Instant,
}

impl<'a> Measuring<'a> {
    /// On the device that `--card` names.
    ///
    /// # Errors
    /// What speaks against losing its data.
    pub fn new(
        args: &'a ChooseArgs,
        need: &'a Need,
        work: &'a WorkloadRun,
    ) -> Outcome<Measuring<'a>> {
        let wall_limit = Duration::from_secs(args.place.wall_limit);
        let place = Place::Here(args.place.card.clone().into());
        let mut site = DeviceExecutor::open(&place, &args.device.device.options(), wall_limit)?;
        let mut keeper = TrialCache::open(args.store.clone(), args.fresh)?;
        site.session = campaign::session(&mut keeper, site.id())?;
        Ok(Measuring {
            args,
            need,
            work,
            site,
            keeper,
            confirmed: false,
            asked: Vec::new(),
            trials: Vec::new(),
            excluded: Vec::new(),
            not_comparable: Vec::new(),
            caveats: BTreeMap::new(),
            sentences: Vec::new(),
            begun: Instant::now(),
        })
    }

    /// The candidates that satisfy the need's rules; the others are noted with their reason.
    fn candidates(&mut self) -> Outcome<Vec<String>> {
        let all = whichfs_engine::facts::of_those(&self.args.candidates);
        let bytes = self.site.whole()?.bytes;
        let (kept, excluded) = whichfs_study::exclude(self.need, bytes, &all);
        self.excluded = excluded;
        self.not_comparable = whichfs_study::not_comparable(&kept);
        self.caveats = not_known(self.need, &kept);
        Ok(kept.into_iter().map(|facts| facts.name).collect())
    }

    /// Runs the trials of `round` that are not known; false if the budget ended before.
    ///
    /// # Errors
    /// The device is in use, another or gone; the user's interrupt. What was finished is kept.
    pub fn run_round(&mut self, round: &[Planned]) -> Outcome<bool> {
        self.asked.extend_from_slice(round);
        let tell = |what: &str| note!("{what}");
        let mut campaign = self.campaign(&Images::new(&tell))?;
        if !campaign.turns.is_empty() {
            self.confirm()?;
            let quiet = self.args.json;
            let mut progress = Progress::new(campaign.turns.len(), 1, quiet).here();
            let name = format!("trials for {}", self.need.name);
            let ended = campaign.run(
                &self.site,
                &name,
                &mut self.keeper,
                interrupt::flag(),
                &mut progress,
            );
            progress.finish();
            ended?;
        }
        self.trials = campaign.known.iter().flatten().cloned().collect();
        self.sentences = device_report::sentences(&self.site, &campaign);
        Ok(campaign.stopped.is_none())
    }

    /// Has the user name the device, once.
    fn confirm(&mut self) -> Outcome {
        if !self.confirmed {
            let consent = self.args.device.device.consent(self.args.json);
            campaign::confirm(&mut self.site, &consent)?;
            self.confirmed = true;
        }
        Ok(())
    }

    /// All that was asked for, as trials of the device.
    fn campaign(&mut self, images: &Images) -> Outcome<Campaign<'a>> {
        let mut planned = Vec::new();
        let writes = self.work.writes()?;
        for one in &self.asked.clone() {
            if interrupt::flag().load(Ordering::Relaxed) {
                return Err(self.keeper.interrupted());
            }
            let candidate = whichfs_fs::find(&one.candidate).map_err(Failure::input)?;
            let variant = Variant::default();
            match self
                .site
                .prepare(candidate, self.work, &variant, one.seed, images)
            {
                Ok(run) => {
                    if let Some(caveat) = &run.caveat {
                        let said = self.caveats.entry(one.candidate.clone()).or_default();
                        // Each repeat has the same.
                        if !said.contains(caveat) {
                            said.push(caveat.clone());
                        }
                    }
                    planned.push(Run {
                        run,
                        work: self.work,
                        writes,
                    });
                }
                Err(PrepareError::Failed(failure)) => return Err(failure),
                Err(PrepareError::Excluded { why, source }) => {
                    self.leave_out(&one.candidate, why, source)
                }
            }
        }
        let budget = Budget {
            time: self
                .args
                .device
                .budget
                .map(|all| all.saturating_sub(self.begun.elapsed())),
            bytes: self.args.device.device.max_write,
        };
        let excluded = &self.excluded;
        self.asked.retain(|one| {
            !excluded
                .iter()
                .any(|other| other.candidate == one.candidate)
        });
        Campaign::new(&self.site, planned, &mut self.keeper, budget)
    }

    fn leave_out(&mut self, candidate: &str, why: String, source: Option<String>) {
        if self.excluded.iter().all(|one| one.candidate != candidate) {
            note!("left out: {candidate}: {why}");
            self.excluded.push(Excluded {
                candidate: candidate.to_owned(),
                why,
                source,
                ..Excluded::default()
            });
        }
    }

    fn dry_run(&mut self, round: &[Planned]) -> Outcome<u8> {
        self.asked.extend_from_slice(round);
        let campaign = self.campaign(&Images::unbuilt())?;
        device_report::dry_run(&self.site, &campaign, &[])
    }

    /// What the figures so far say.
    ///
    /// # Errors
    /// They contradict each other.
    pub fn verdict(&self, begun: Instant) -> Outcome<Verdict> {
        let target = match self.need.workload.as_str() {
            "rootfs" => "/",
            _ => "/data",
        };
        let geometry = self.site.medium.geometry(self.site.whole()?.bytes);
        let names: Vec<&str> = self
            .trials
            .iter()
            .map(|trial| trial.identity.candidate.as_str())
            .collect();
        let commands = names.into_iter().filter_map(|name| {
            Some((
                name.to_owned(),
                whichfs_engine::apply::commands(
                    &geometry,
                    name,
                    target,
                    self.need.partition.as_ref(),
                )?,
            ))
        });
        let rows = rows_of(&self.trials);
        let evidence = Evidence {
            card: self.site.id().to_owned(),
            samples: rows
                .iter()
                .map(Row::sample)
                .filter(|sample| sample.value > 0.0)
                .collect(),
            failures: failures(&self.trials),
            excluded: [self.excluded.as_slice(), &self.not_comparable].concat(),
            commands: commands.collect(),
            card_uncertainty: 0.0,
            card_kinds: BTreeMap::new(),
            fit_error: None,
            origin: Origin::Measured,
            partition_bytes: Some(geometry.partition_bytes),
            aside: Vec::new(),
            caveats: self.caveats.clone(),
            facts: whichfs_engine::facts::of_those(&self.args.candidates),
            counts: BTreeMap::new(),
            trials: self.trials.len() as u64,
            virtual_s: self
                .trials
                .iter()
                .map(|t| t.outcome.virtual_time.as_secs_f64())
                .sum(),
            wall_s: begun.elapsed().as_secs_f64(),
        };
        judge(self.need, &evidence).map_err(|e| Failure::new(Kind::Trial, e))
    }

    /// How it went, for the report.
    fn items(&self) -> Vec<whichfs_report::Item> {
        self.sentences
            .iter()
            .map(|said| item("on the device", said, ""))
            .collect()
    }
}
