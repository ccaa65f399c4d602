//! Trials on a device, told: what would be done, and how it went.

use crate::failure::Outcome;
use crate::output;
use std::collections::BTreeSet;
use std::time::Duration;
use whichfs_decide::{BudgetLimit, DeviceTurn};
use whichfs_engine::campaign::{Campaign, Fair};
use whichfs_engine::device::DeviceExecutor;
use whichfs_format::partition_commands;
use whichfs_report::documents::study::{
    DeviceMeasured, drift_told, kernel_threads, time_words, warmth,
};
use whichfs_trial::Trial;
use whichfs_units::{Bytes, counted, shell_word};

/// What was seen of the device of `site`.
pub fn measured(site: &DeviceExecutor, order: &Fair) -> DeviceMeasured {
    DeviceMeasured {
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
    output::paragraph(&about(site), 2)?;
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
        for line in commands(site, (campaign, order)) {
            output::text_line(&line)?;
        }
        let id = shell_word(site.id());
        output::text_line(&format!(
            "\nNothing was written. To erase the device: --destroy {id}"
        ))?;
    }
    Ok(0)
}

/// What the device is, in a sentence.
fn about(site: &DeviceExecutor) -> String {
    if let Some(dir) = site.inside() {
        return format!(
            "{} is on {}, of {}, mounted on {} with {}.",
            dir.shown,
            dir.id,
            Bytes(dir.bytes),
            dir.place,
            dir.options
        );
    }
    let unit = &site.medium.unit;
    format!(
        "{} has {} and is called {}; allocation unit of {}: {}.",
        site.shown(),
        Bytes(site.device.bytes),
        site.id(),
        Bytes(unit.bytes),
        unit.why
    )
}

/// Every command, each once, in the order of the matrix.
fn commands<K: Clone + PartialEq>(
    site: &DeviceExecutor,
    (campaign, order): Ordered<'_, '_, K>,
) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut lines: Vec<String> = Vec::new();
    for turn in &order.turns {
        let DeviceTurn::Trial(at) = turn else {
            continue;
        };
        let Some(run) = campaign.matrix()[*at].prepared() else {
            continue;
        };
        let mut own = partition_commands(&site.device.name, run.span, site.device.sector_bytes);
        own.extend(run.commands.iter().map(|argv| {
            let words: Vec<String> = argv.iter().map(|word| shell_word(word)).collect();
            words.join(" ")
        }));
        let options = &run.identity.mount_options;
        if !run.commands.is_empty() {
            own.push(format!(
                "# {}: mounted with {options:?}",
                run.identity.candidate
            ));
        }
        lines.extend(own.into_iter().filter(|line| seen.insert(line.clone())));
    }
    lines
}

/// What is to run costs, and what it may.
fn costs<K: Clone + PartialEq>((campaign, order): Ordered<'_, '_, K>) -> String {
    let matrix = campaign.matrix();
    let each = order.turns.iter().map(|turn| order.estimate(matrix, *turn));
    let (bytes, time) = each.fold((0_u64, Duration::ZERO), |(bytes, time), cost| {
        (
            bytes.saturating_add(cost.bytes),
            time.saturating_add(cost.time),
        )
    });
    let time = match order.knows_time(matrix) {
        true => format!("take about {}", time_words(time)),
        false => "take a time that is not known yet".to_owned(),
    };
    let most = match order.budget.bytes {
        Some(most) => format!("; --max-write allows {}", Bytes(most)),
        None => "; --max-write SIZE limits that".to_owned(),
    };
    let unknown: Vec<&str> = order.unknown(matrix).into_iter().collect();
    let unknown = match unknown[..] {
        [] => String::new(),
        _ => format!(
            " and what only the program of {} knows",
            unknown.join(" and ")
        ),
    };
    format!(
        "They {time} and write about {}{unknown} to the device ({} were written in this \
         session{most}).",
        Bytes(bytes),
        Bytes(order.spent.bytes)
    )
}

/// How it went, in sentences: changes of the device, heat, what of the budget was used up, and
/// what is on the device now.
pub fn sentences<K: Clone + PartialEq>(
    site: &DeviceExecutor,
    campaign: &Campaign<'_, DeviceExecutor, K>,
    order: &Fair,
) -> Vec<String> {
    let mut said = vec![drift_told(order.references(), &order.drifts())];
    let trials: Vec<&Trial> = campaign.trials().collect();
    said.push(warmth(&trials));
    said.extend(kernel_threads(&trials));
    said.push(format!(
        "Written to the device in this session: {}.",
        Bytes(order.spent.bytes)
    ));
    said.extend(order.stopped.map(|spent| match spent {
        BudgetLimit::Time => "The time is spent; the same command goes on.".to_owned(),
        BudgetLimit::Bytes => format!(
            "No more trials: the next one would write more than --max-write allows, or began to \
             and was ended. {} kept; with a larger --max-write the same command goes on.",
            counted(trials.len(), "finished trial")
        ),
    }));
    let path = site.shown();
    said.push(match site.around.board() {
        _ if site.inside().is_some() => format!("What trials wrote in {path} was removed."),
        None => format!(
            "On {path} is what the last trial left: whichfs format {} makes it fit for use.",
            shell_word(&path)
        ),
        Some(_) => format!("On {path} is what the last trial left: format it before use."),
    });
    said
}
