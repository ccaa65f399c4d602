//! Trials on a device, told: what would be done, and how it went.

use crate::failure::Outcome;
use crate::output;
use whichfs_decide::DeviceTurn;
use whichfs_engine::campaign::{Campaign, Fair};
use whichfs_engine::device::DeviceExecutor;
use whichfs_report::documents::study::{
    DeviceAfter, DeviceCosts, DeviceMeasured, device_sentences,
};
use whichfs_trial::Trial;
use whichfs_units::{counted, shell_word};

/// What was seen of the device of `site`.
pub fn measured(site: &DeviceExecutor, order: &Fair) -> DeviceMeasured {
    DeviceMeasured {
        path: site.shown(),
        device: site.device.identity.clone(),
        session: site.session,
        written_bytes: order.spent.bytes,
        reference_runs: order.references(),
        drifts: order.drifts(),
        stopped: order.stopped,
    }
}

/// A campaign on a device, and its order.
type Ordered<'o, 'c, K> = (&'o Campaign<'c, DeviceExecutor, K>, &'o Fair);

/// Says what a campaign would do on `site` in its order, every command of it, and what it would
/// cost.
///
/// # Errors
/// Standard output is closed.
pub fn dry_run<K: Clone + PartialEq>(
    site: &DeviceExecutor,
    (campaign, order): Ordered<'_, '_, K>,
    left_out: &[String],
) -> Outcome<u8> {
    output::paragraph(&site.described(), 2)?;
    for said in left_out {
        output::paragraph(&format!("left out: {said}"), 2)?;
    }
    let trials = order
        .turns
        .iter()
        .filter(|turn| matches!(turn, DeviceTurn::Trial(_)))
        .count();
    let others = order.turns.len() - trials;
    let known = campaign.trials().count();
    output::paragraph(
        &format!(
            "{}, {known} of them finished, {trials} to run; with {} of the first one, by which \
             changes of the device are seen.",
            counted(campaign.matrix().len(), "trial"),
            counted(others, "run")
        ),
        0,
    )?;
    output::paragraph(&costs((campaign, order)), 0)?;
    if site.inside().is_some() {
        output::text_line("\nNothing was written, and nothing is formatted or mounted.")?;
    } else if trials > 0 {
        output::text_line("\nCommands:")?;
        let runs = order.turns.iter().filter_map(|turn| match turn {
            DeviceTurn::Trial(at) => campaign.matrix()[*at].prepared(),
            _ => None,
        });
        for line in site.commands(runs) {
            output::text_line(&line)?;
        }
        let id = shell_word(site.id());
        output::text_line(&format!(
            "\nNothing was written. To erase the device: --destroy {id}"
        ))?;
    }
    Ok(0)
}

/// What is to run costs, and what it may.
fn costs<K: Clone + PartialEq>((campaign, order): Ordered<'_, '_, K>) -> String {
    let matrix = campaign.matrix();
    let each = || order.turns.iter().map(|turn| order.estimate(matrix, *turn));
    let time = order
        .knows_time(matrix)
        .then(|| each().map(|cost| cost.time).sum());
    let costs = DeviceCosts {
        time,
        bytes: each().fold(0, |bytes, cost| bytes.saturating_add(cost.bytes)),
        unknown: order.unknown(matrix).into_iter().collect(),
        spent: order.spent.bytes,
        limit: order.budget.bytes,
    };
    costs.told()
}

/// How it went, in sentences.
pub fn sentences<K: Clone + PartialEq>(
    site: &DeviceExecutor,
    campaign: &Campaign<'_, DeviceExecutor, K>,
    order: &Fair,
) -> Vec<String> {
    let trials: Vec<&Trial> = campaign.trials().collect();
    let after = match site.around.board() {
        _ if site.inside().is_some() => DeviceAfter::Directory,
        None => DeviceAfter::Local,
        Some(_) => DeviceAfter::Remote,
    };
    device_sentences(&measured(site, order), &trials, after)
}
