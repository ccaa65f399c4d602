//! `choose` on a real device: the need's trials under this machine's kernel.

use super::{code_of, folder, question, tell, write};
use crate::cli::ChooseArgs;
use crate::device_report;
use crate::failure::Outcome;
use crate::progress::Progress;
use crate::{interrupt, page, repeat};
use std::time::{Duration, Instant};
use whichfs_decide::Budget;
use whichfs_engine::campaign::{failures, rows_of, session};
use whichfs_engine::choose_on_device::{DeviceChoice, REPEATS};
use whichfs_engine::device::DeviceExecutor;
use whichfs_engine::images::Images;
use whichfs_engine::question::Question;
use whichfs_engine::trial_cache::TrialCache;
use whichfs_remote::DevicePlace;
use whichfs_report::item;

/// Measures what the need asks for on the device that `--card` names, and tells the verdict.
///
/// # Errors
/// What speaks against losing the device's data; what this machine lacks; the user's interrupt.
pub fn run(args: &ChooseArgs, begun: Instant) -> Outcome<u8> {
    let question = question(args, REPEATS)?;
    let (mut site, mut choice) = begin(args, &question, begun)?;
    if args.device.dry_run {
        let first = choice.first_round(&site);
        let order = choice.plan(&site, &first, &Images::unbuilt(), &mut Progress::default())?;
        return device_report::dry_run(&site, (choice.campaign(), &order), &[]);
    }
    let report = folder(args)?;
    let consent = |site: &mut DeviceExecutor| site.confirm(&args.device.device.consent(args.json));
    let tell_image = |what: &str| note!("{what}");
    let images = Images::new(&tell_image);
    let mut rounds = Progress::default().here().quiet(args.json);
    let (verdict, order) = choice.decide(&mut site, &consent, &images, &mut rounds)?;
    let trials = &choice.found.trials;
    let sentences = order.map(|order| device_report::sentences(&site, choice.campaign(), &order));
    let sentences = sentences.unwrap_or_default();
    let mut page = page::measured(
        &site,
        &question.work,
        &verdict,
        choice.campaign().cache.reused,
        trials,
        repeat::line(args),
    );
    let items = sentences.iter().map(|said| item("on the device", said, ""));
    page.environment.extend(items);
    page.run = args.run.stamp();
    let report = write(report, &page, &rows_of(trials), trials)?;
    tell(args, &page, &sentences, &report)?;
    Ok(code_of(
        verdict.ranking.is_empty(),
        failures(trials).is_empty(),
    ))
}

/// The device that `--card` names, and a choice on it that began at `begun`.
///
/// # Errors
/// What speaks against losing its data.
pub fn begin<'a>(
    args: &ChooseArgs,
    question: &'a Question,
    begun: Instant,
) -> Outcome<(DeviceExecutor, DeviceChoice<'a, DeviceExecutor>)> {
    let wall_limit = Duration::from_secs(args.place.machine.wall_limit);
    let (place, options): (DevicePlace, _) =
        (args.place.card.parse()?, args.device.device.options());
    let mut site = DeviceExecutor::open(&place, &options, wall_limit, interrupt::state())?;
    // Too small a device is refused before anything else is said.
    site.whole()?;
    let mut cache = TrialCache::open(args.store.clone(), args.fresh)?;
    site.session = session(&mut cache, site.id())?;
    let budget = Budget {
        time: args.device.budget,
        bytes: args.device.device.max_write,
    };
    let flag = interrupt::flag();
    let choice = DeviceChoice::new(question, site.session, cache, flag, budget, begun);
    Ok((site, choice))
}
