//! A study on a real device: its matrix without cards and boards, under this machine's kernel.

use super::caveats::Caveats;
use super::performance::{Files, Gathered, study_run};
use super::trials::{done, failed, label, told_where, works};
use crate::cli::StudyArgs;
use crate::failure::{Failure, Kind, Outcome, exit_code};
use crate::progress::Progress;
use crate::{device_report, interrupt};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;
use whichfs_engine::device::{Campaign, DeviceExecutor, Planned, campaign};
use whichfs_engine::executor::PrepareError;
use whichfs_engine::images::Images;
use whichfs_engine::trial_cache::TrialCache;
use whichfs_engine::workload_run::WorkloadRun;
use whichfs_report::documents::study::StudyPlace;
use whichfs_study::{Budget, Origin, PerformanceStudy, Spot, Variant};
use whichfs_trial::REAL;
use whichfs_workload::Writes;

/// Time of a trial where `--wall-limit` says nothing: old cards take an hour for what new ones do
/// in a minute.
const WALL_LIMIT: Duration = Duration::from_secs(7200);

/// Runs `study` on the device at `path`, which may be one of a board.
///
/// # Errors
/// What speaks against losing its data; what this machine lacks; the user's interrupt.
pub fn run(study: PerformanceStudy, args: &StudyArgs, path: &Path) -> Outcome<u8> {
    if !study.kernels.is_empty() {
        return Err(Failure::input(format!(
            "--on: {} is run on the kernels {}, a device has the one of its machine; run it in the \
             lab, without --on",
            study.name,
            study.kernels.join(" and ")
        )));
    }
    let wall_limit = args.wall_limit.map_or(WALL_LIMIT, Duration::from_secs);
    let device = match path.to_str() {
        Some(text) => text.parse()?,
        None => whichfs_remote::Place::Here(path.to_owned()),
    };
    let mut site = DeviceExecutor::open(&device, &args.here.options(), wall_limit)?;
    let mut keeper = TrialCache::open(None, args.fresh)?;
    site.session = campaign::session(&mut keeper, site.id())?;
    let (study, not_there) = placed(study, &site);
    let works: BTreeMap<&str, WorkloadRun> = works(&study, args.tree.as_deref())?;
    let budget = Budget {
        time: args.budget,
        bytes: args.here.max_write,
    };
    let images = match args.dry_run {
        true => Images::unbuilt(),
        false => Images::new(&|what: &str| note!("{what}")),
    };
    let mut matrix = Matrix::new(&study, &site, &works, &images)?;
    matrix.left_out.extend(not_there);
    let mut campaign = Campaign::new(&site, matrix.planned, &mut keeper, budget)?;
    if args.dry_run {
        return device_report::dry_run(&site, &campaign, &matrix.left_out);
    }
    // What can be wrong with them is known before the first trial.
    let files = Files::new(args)?;
    if !campaign.turns.is_empty() {
        let (most, all) = campaign.writes();
        site.announce(most, all)?;
        campaign::confirm(&mut site, &args.here.consent(args.json))?;
        let mut progress = Progress::new(campaign.turns.len(), 1, args.json).here();
        let name = format!("trials of {}", study.name);
        let ended = campaign.run(&site, &name, &mut keeper, interrupt::flag(), &mut progress);
        progress.finish();
        ended?;
    }
    let trials = matrix.spots.iter().filter_map(|(spot, at)| {
        let trial = campaign.known.get(*at)?.clone()?;
        Some((*spot, trial))
    });
    let trials: Vec<_> = trials.collect();
    let gathered = Gathered {
        smallest: Vec::new(),
        left_out: matrix.left_out,
        failed: failed(&study, &trials),
        caveats: [
            matrix.caveats.sentences(),
            device_report::sentences(&site, &campaign),
        ]
        .concat(),
        done: done(&trials),
        reused: keeper.reused,
        trials,
    };
    let mut document = study_run(&study, &gathered, None)?;
    document.budget_ended = campaign.stopped.is_some();
    document.measured = Some(device_report::measured(&site, &campaign));
    let place = StudyPlace {
        kernels: vec![(
            site.machine.kernel.clone(),
            site.machine.kernel_sha256.clone(),
        )],
        card_state: "as found",
        origin: Origin::Measured,
    };
    files.tell(args, &study, &gathered.trials, &document, &place)?;
    Ok(match document.failed.is_empty() {
        true => 0,
        false => exit_code(Kind::Trial),
    })
}

/// The study with the device and this machine in place of its cards and boards, and what of it
/// cannot be there. Figures that others published are of other cards; the smallest partition is
/// looked for in the lab.
fn placed(study: PerformanceStudy, site: &DeviceExecutor) -> (PerformanceStudy, Vec<String>) {
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
struct Matrix<'a> {
    planned: Vec<Planned<'a>>,
    /// Each spot with the place of its trial: spots that come to the same commands share one.
    spots: Vec<(Spot<'a>, usize)>,
    left_out: Vec<String>,
    caveats: Caveats,
}

impl<'a> Matrix<'a> {
    fn new(
        study: &'a PerformanceStudy,
        site: &DeviceExecutor,
        works: &'a BTreeMap<&str, WorkloadRun>,
        images: &Images,
    ) -> Outcome<Matrix<'a>> {
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        let mut without: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        let mut writes: BTreeMap<&str, Writes> = BTreeMap::new();
        let mut matrix = Matrix {
            planned: Vec::new(),
            spots: Vec::new(),
            left_out: Vec::new(),
            caveats: Caveats::default(),
        };
        for spot in study.spots() {
            if interrupt::flag().load(Ordering::Relaxed) {
                return Err(Failure::new(Kind::Interrupted, "interrupted"));
            }
            let work = &works[spot.load.name.as_str()];
            let candidate = whichfs_fs::find(spot.candidate).map_err(Failure::input)?;
            let writes = match writes.entry(spot.load.name.as_str()) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(place) => *place.insert(work.writes()?),
            };
            match site.prepare(candidate, work, spot.variant, spot.seed, images) {
                Ok(mut run) => {
                    run.label = label(study, &spot).replace(", seed ", ", repeat ");
                    let said: Vec<String> = run.caveat.iter().cloned().collect();
                    matrix.caveats.add(spot.candidate, &said);
                    let next = matrix.planned.len();
                    let at = *places.entry(run.identity.id()).or_insert(next);
                    if at == next {
                        matrix.planned.push(Planned { run, work, writes });
                    }
                    matrix.spots.push((spot, at));
                }
                Err(PrepareError::Failed(failure)) => return Err(told_where(&spot, failure)),
                Err(PrepareError::Excluded { why, .. }) => {
                    let names = without.entry(why).or_default();
                    if !names.contains(&spot.candidate) {
                        names.push(spot.candidate);
                    }
                }
            }
        }
        let sentence = |(why, names): (String, Vec<&str>)| format!("{}: {why}", names.join(", "));
        matrix.left_out = without.into_iter().map(sentence).collect();
        matrix.caveats.tell();
        Ok(matrix)
    }
}
