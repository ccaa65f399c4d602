//! Trials on a device, told: what would be done, and how it went.

use crate::failure::Outcome;
use crate::output;
use std::collections::BTreeSet;
use std::time::Duration;
use whichfs_engine::device::{Campaign, DeviceExecutor};
use whichfs_format::partition_commands;
use whichfs_report::documents::study::{
    DeviceMeasured, drift_told, kernel_threads, time_words, warmth,
};
use whichfs_study::{DeviceTurn as Turn, Spent};
use whichfs_trial::Trial;
use whichfs_units::{Bytes, counted, shell_word};

/// What was seen of the device of `site`.
pub fn measured(site: &DeviceExecutor, campaign: &Campaign<'_>) -> DeviceMeasured {
    DeviceMeasured {
        device: site.device.identity.clone(),
        session: site.session,
        written_bytes: campaign.spent.bytes,
        reference_runs: campaign.references(),
        drifts: campaign.drifts(),
        stopped: campaign.stopped,
    }
}

/// Says what `campaign` would do on `site`, every command of it, and what it would cost.
///
/// # Errors
/// Standard output is closed.
pub fn dry_run(site: &DeviceExecutor, campaign: &Campaign<'_>, left_out: &[String]) -> Outcome<u8> {
    output::paragraph(&about(site), 2)?;
    for said in left_out {
        output::paragraph(&format!("left out: {said}"), 2)?;
    }
    let trials = campaign
        .turns
        .iter()
        .filter(|turn| matches!(turn, Turn::Trial(_)))
        .count();
    let others = campaign.turns.len() - trials;
    let known = campaign.known.iter().flatten().count();
    output::paragraph(
        &format!(
            "{}, {known} of them finished, {trials} to run; with {} of the first one, by which \
             changes of the device are seen.",
            counted(campaign.planned.len(), "trial"),
            counted(others, "run")
        ),
        0,
    )?;
    output::paragraph(&costs(campaign), 0)?;
    if site.inside().is_some() {
        output::text_line("\nNothing was written, and nothing is formatted or mounted.")?;
    } else if trials > 0 {
        output::text_line("\nCommands:")?;
        for line in commands(site, campaign) {
            output::text_line(&line)?;
        }
        let id = shell_word(site.id());
        output::text_line(&format!(
            "\nNothing was written. To lose what is on it: --destroy {id}"
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
fn commands(site: &DeviceExecutor, campaign: &Campaign<'_>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut lines: Vec<String> = Vec::new();
    for turn in &campaign.turns {
        let Turn::Trial(at) = turn else { continue };
        let run = &campaign.planned[*at].run;
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
fn costs(campaign: &Campaign<'_>) -> String {
    let each = campaign.turns.iter().map(|turn| campaign.estimate(*turn));
    let (bytes, time) = each.fold((0_u64, Duration::ZERO), |(bytes, time), cost| {
        (
            bytes.saturating_add(cost.bytes),
            time.saturating_add(cost.time),
        )
    });
    let time = match campaign.knows_time() {
        true => format!("take about {}", time_words(time)),
        false => "take a time that is not known yet".to_owned(),
    };
    let most = match campaign.budget.bytes {
        Some(most) => format!("; --max-write allows {}", Bytes(most)),
        None => "; --max-write SIZE limits that".to_owned(),
    };
    let unknown: Vec<&str> = campaign.unknown().into_iter().collect();
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
        Bytes(campaign.spent.bytes)
    )
}

/// How it went, in sentences: changes of the device, heat, what of the budget was used up, and
/// what is on the device now.
pub fn sentences(site: &DeviceExecutor, campaign: &Campaign<'_>) -> Vec<String> {
    let mut said = vec![drift_told(campaign.references(), &campaign.drifts())];
    let trials: Vec<&Trial> = campaign.known.iter().flatten().collect();
    said.push(warmth(&trials));
    said.extend(kernel_threads(&trials));
    said.push(format!(
        "Written to the device in this session: {}.",
        Bytes(campaign.spent.bytes)
    ));
    said.extend(campaign.stopped.map(|spent| match spent {
        Spent::Time => "The time is spent; the same command goes on.".to_owned(),
        Spent::Bytes => format!(
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
