//! A study on a real device: its matrix without cards and boards, under this machine's kernel.

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
use whichfs_engine::study_run::{DeviceMatrix, done, failed, on_device, works};
use whichfs_engine::trial_cache::TrialCache;
use whichfs_report::documents::study::StudyPlace;
use whichfs_study::PerformanceStudy;

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
        None => whichfs_remote::DevicePlace::Here(path.to_owned()),
    };
    let mut site = DeviceExecutor::open(&device, &args.here.options(), wall_limit)?;
    let mut cache = TrialCache::open(None, args.fresh)?;
    site.session = session(&mut cache, site.id())?;
    let (study, not_there) = on_device(study, &site);
    let works = works(&study, args.trials.tree.as_deref())?;
    let budget = Budget {
        time: args.budget,
        bytes: args.here.max_write,
    };
    let images = match args.dry_run {
        true => Images::unbuilt(),
        false => Images::new(&|what: &str| note!("{what}")),
    };
    let (flag, mut rounds) = (interrupt::flag(), Progress::default());
    let mut matrix = DeviceMatrix::new(&study, &site, &works, cache, &images, flag, &mut rounds)?;
    matrix.left_out.extend(not_there);
    let campaign = &mut matrix.campaign;
    let card = (site.id(), site.session);
    let mut order = Fair::of(campaign.matrix(), &campaign.cache, card, budget)?;
    if args.dry_run {
        return device_report::dry_run(&site, (campaign, &order), &matrix.left_out);
    }
    // What can be wrong with them is known before the first trial.
    let files = Files::new(args)?;
    if !order.turns.is_empty() {
        let (most, all) = order.writes(campaign.matrix());
        site.announce(most, all)?;
        site.confirm(&args.here.consent(args.json))?;
        let progress = Progress::of(order.turns.len(), 1).here();
        let name = format!("trials of {}", study.name);
        campaign.run(&site, &name, &mut order, &mut progress.quiet(args.json))?;
    }
    let trials = matrix.trials();
    let gathered = Gathered {
        smallest: Vec::new(),
        left_out: matrix.left_out,
        failed: failed(&study, &trials),
        caveats: [
            matrix.caveats.sentences(),
            device_report::sentences(&site, &matrix.campaign, &order),
        ]
        .concat(),
        done: done(&trials),
        reused: matrix.campaign.cache.reused,
        trials,
    };
    let mut document = study_document(&study, &gathered, None)?;
    document.budget_ended = order.stopped.is_some();
    document.measured = Some(device_report::measured(&site, &order));
    let place = StudyPlace {
        kernels: vec![(
            site.machine.kernel.clone(),
            site.machine.kernel_sha256.clone(),
        )],
        card_state: "as found",
        origin: FigureOrigin::Measured,
    };
    files.tell(args, &study, &gathered.trials, &document, &place)?;
    Ok(match document.failed.is_empty() {
        true => 0,
        false => exit_code(Kind::Trial),
    })
}
