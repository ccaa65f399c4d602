//! A study on real devices: its matrix without cards and boards, under the kernel of each machine.

use super::performance::{Files, Gathered, study_document};
use crate::cli::StudyArgs;
use crate::failure::{Failure, Kind, Outcome, exit_code};
use crate::progress::Progress;
use crate::{device_report, interrupt};
use std::path::Path;
use std::time::Duration;
use whichfs_decide::{Budget, FigureOrigin};
use whichfs_engine::campaign::{Fair, session};
use whichfs_engine::device::DeviceExecutor;
use whichfs_engine::images::Images;
use whichfs_engine::study_run::{
    DeviceMatrix, PlacedStudy, done, failed, kernels_of, on_device, require_different, run_fleet,
    works,
};
use whichfs_engine::trial_cache::TrialCache;
use whichfs_remote::DevicePlace;
use whichfs_report::documents::study::{FleetRun, PlaceRun, StudyPlace};
use whichfs_study::{PerformanceStudy, Spot};
use whichfs_trial::Trial;

/// Time of a trial where `--wall-limit` says nothing: old cards take an hour for what new ones do
/// in a minute.
const WALL_LIMIT: Duration = Duration::from_secs(7200);

/// Runs `study` on the devices that `--on` names, which may be of boards.
///
/// # Errors
/// What speaks against losing their data; what this machine lacks; the user's interrupt.
pub fn run(study: PerformanceStudy, args: &StudyArgs) -> Outcome<u8> {
    if !study.kernels.is_empty() {
        return Err(Failure::input(format!(
            "--on: {} is run on the kernels {}, a device has the one of its machine; run it in the \
             lab, without --on",
            study.name,
            study.kernels.join(" and ")
        )));
    }
    // A signal until then ends the program, and with it what a lab lent.
    let sites = args.on.iter().map(|place| open(args, place));
    let mut sites = sites.collect::<Outcome<Vec<DeviceExecutor>>>()?;
    require_different(&sites)?;
    let flag = interrupt::flag();
    let studies = sites.iter().map(|site| on_device(study.clone(), site));
    let studies: Vec<(PerformanceStudy, Vec<String>)> = studies.collect();
    let images = match args.dry_run {
        true => Images::unbuilt(),
        false => Images::new(&|what: &str| note!("{what}")),
    };
    let (mut rounds, mut parts) = (Progress::default(), Vec::new());
    for (site, (study, not_there)) in sites.iter_mut().zip(&studies) {
        let mut cache = TrialCache::open(None, args.fresh)?;
        site.session = session(&mut cache, site.id())?;
        let works = works(study, args.trials.tree.as_deref())?;
        let mut matrix = DeviceMatrix::new(study, site, &works, cache, &images, flag, &mut rounds)?;
        matrix.left_out.extend_from_slice(not_there);
        let budget = Budget {
            time: args.budget,
            bytes: args.here.max_write,
        };
        let (card, campaign) = ((site.id(), site.session), &matrix.campaign);
        let order = Fair::of(campaign.matrix(), &campaign.cache, card, budget)?;
        if args.dry_run {
            device_report::dry_run(site, (campaign, &order), &matrix.left_out)?;
        }
        parts.push(PlacedStudy {
            study,
            place: site.shown(),
            matrix,
            order,
            ended: None,
        });
    }
    if args.dry_run {
        return Ok(0);
    }
    // What can be wrong with them is known before the first trial.
    let files = Files::new(args)?;
    for (site, part) in sites.iter_mut().zip(&parts) {
        if !part.order.turns.is_empty() {
            let (most, all) = part.order.writes(part.matrix.campaign.matrix());
            site.announce(most, all)?;
            site.confirm(&args.here.consent(args.json))?;
        }
    }
    let turns = parts.iter().map(|part| part.order.turns.len()).sum();
    let progress = Progress::of(turns, parts.len()).here();
    let mut progress = progress.quiet(args.json || turns == 0);
    run_fleet(&mut parts, &sites, &mut progress)?;
    drop(progress);
    tell(args, files, &sites, parts)
}

/// The device at `place`.
fn open(args: &StudyArgs, place: &Path) -> Outcome<DeviceExecutor> {
    let wall_limit = args.wall_limit.map_or(WALL_LIMIT, Duration::from_secs);
    let (device, options) = (DevicePlace::of(place)?, args.here.options());
    DeviceExecutor::open(&device, &options, wall_limit, interrupt::state())
}

/// Tells what became of all `parts`.
fn tell(
    args: &StudyArgs,
    files: Files,
    sites: &[DeviceExecutor],
    parts: Vec<PlacedStudy<'_, DeviceExecutor>>,
) -> Outcome<u8> {
    let (mut places, mut all, mut code) = (Vec::new(), Vec::<(Spot, Trial)>::new(), 0);
    for (site, part) in sites.iter().zip(parts) {
        let PlacedStudy {
            study,
            matrix,
            order,
            ..
        } = part;
        let trials = matrix.trials();
        let device = device_report::sentences(site, &matrix.campaign, &order);
        let gathered = Gathered {
            smallest: Vec::new(),
            left_out: matrix.left_out,
            failed: failed(study, &trials),
            caveats: [matrix.caveats.sentences(), device].concat(),
            done: done(&trials),
            reused: matrix.campaign.cache.reused,
            trials,
        };
        let mut run = study_document(study, &gathered, None)?;
        run.budget_ended = order.stopped.is_some();
        run.labels.clone_from(&args.run.labels);
        run.measured = Some(device_report::measured(site, &order));
        if code == 0 && !run.failed.is_empty() {
            code = exit_code(Kind::Trial);
        }
        code = part
            .ended
            .as_ref()
            .map_or(code, |error| exit_code(error.kind));
        all.extend(gathered.trials);
        places.push(PlaceRun {
            place: part.place,
            card: site.id().to_owned(),
            board: site.machine.name.clone(),
            ended: part.ended.map(|error| error.message),
            run,
        });
    }
    let kernels = kernels_of(sites);
    let place = StudyPlace {
        kernels,
        card_state: "as found",
        origin: FigureOrigin::Measured,
    };
    match &places[..] {
        [one] => files.tell(args, one.run.study, &all, &one.run, &place)?,
        _ => files.tell_fleet(args, &all, &FleetRun::of(places), &place)?,
    }
    Ok(code)
}
