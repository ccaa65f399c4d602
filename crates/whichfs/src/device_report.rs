//! Trials on a device, told: what would be done, and how it went.

use crate::failure::Outcome;
use crate::output;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use whichfs_engine::device::{Campaign, DeviceExecutor};
use whichfs_format::partition_commands;
use whichfs_study::{DeviceTurn as Turn, Drift, REFERENCES_MIN, Spent};
use whichfs_trial::Trial;
use whichfs_units::shell_word;
use whichfs_units::{Bytes, Nanos, counted};

/// What was seen of a device beside figures; part of the JSON document.
#[derive(Debug, Serialize)]
pub struct Measured {
    /// What tells the device from others.
    device: String,
    /// Which of the series on it.
    session: u64,
    /// Bytes written to it in the session.
    written_bytes: u64,
    /// Runs by which changes are seen.
    reference_runs: usize,
    /// Changes that they show.
    drifts: Vec<Drift>,
    /// What of the budget was used up.
    stopped: Option<Spent>,
}

impl Measured {
    /// What was seen of the device of `site`.
    pub fn of(site: &DeviceExecutor, campaign: &Campaign<'_>) -> Measured {
        Measured {
            device: site.device.identity.clone(),
            session: site.session,
            written_bytes: campaign.spent.bytes,
            reference_runs: campaign.references(),
            drifts: campaign.drifts(),
            stopped: campaign.stopped,
        }
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
        true => format!("take about {}", spell(time)),
        false => "take a time that is not known yet".to_owned(),
    };
    let most = match campaign.budget.bytes {
        Some(most) => format!("; --max-write allows {}", Bytes(most)),
        None => "; --max-write SIZE limits that".to_owned(),
    };
    format!(
        "They {time} and write about {} to the device ({} were written in this session{most}).",
        Bytes(bytes),
        Bytes(campaign.spent.bytes)
    )
}

/// A time as a person says it.
fn spell(time: Duration) -> String {
    match time.as_secs() {
        s if s < 90 => format!("{s} s"),
        s if s < 5400 => format!("{} min", s / 60),
        s => format!("{:.1} h", s as f64 / 3600.0),
    }
}

/// How it went, in sentences: changes of the device, heat, what of the budget was used up, and
/// what is on the device now.
pub fn sentences(site: &DeviceExecutor, campaign: &Campaign<'_>) -> Vec<String> {
    let mut said = vec![drifted(campaign)];
    let trials: Vec<&Trial> = campaign.known.iter().flatten().collect();
    said.push(warmth(&trials));
    said.extend(threads(&trials));
    said.push(format!(
        "Written to the device in this session: {}.",
        Bytes(campaign.spent.bytes)
    ));
    said.extend(campaign.stopped.map(|spent| match spent {
        Spent::Time => "The time is spent; the same command goes on.".to_owned(),
        Spent::Bytes => "The next trial would write more than --max-write allows.".to_owned(),
    }));
    let path = site.shown();
    said.push(match site.around.board() {
        _ if site.inside().is_some() => format!("What trials wrote in {path} was removed."),
        None => format!(
            "On {path} is what the last trial left: whichfs format {path} makes it fit for use."
        ),
        Some(_) => format!("On {path} is what the last trial left: format it before use."),
    });
    said
}

fn drifted(campaign: &Campaign<'_>) -> String {
    let runs = campaign.references();
    let found = campaign.drifts();
    if runs < REFERENCES_MIN {
        return format!(
            "Whether the device changed is not known: {} of {REFERENCES_MIN} needed.",
            counted(runs, "reference run")
        );
    }
    if found.is_empty() {
        return format!("The device did not change: {runs} reference runs are alike.");
    }
    let each = found.iter().map(|drift| {
        let (change, spread) = (drift.change * 100.0, drift.spread * 100.0);
        format!(
            "{} {change:+.0} % (runs scatter by {spread:.0} %)",
            drift.metric
        )
    });
    let list = each.collect::<Vec<_>>().join(", ");
    format!("The device changed from the first to the last of {runs} reference runs: {list}.")
}

/// Temperatures and throttling during `trials`.
fn warmth(trials: &[&Trial]) -> String {
    let all = || {
        trials
            .iter()
            .filter_map(|trial| trial.outcome.conditions.as_ref())
    };
    let mut parts = Vec::new();
    for (what, name) in [("disk", "device"), ("cpu", "CPU")] {
        let ranges: Vec<(f64, f64)> = all()
            .filter_map(|one| one.temperatures.get(what).copied())
            .collect();
        let low = ranges.iter().map(|range| range.0).fold(f64::MAX, f64::min);
        let high = ranges.iter().map(|range| range.1).fold(f64::MIN, f64::max);
        parts.push(match ranges.is_empty() {
            true => format!("{name} not known"),
            false => format!("{name} {low:.0} to {high:.0} °C"),
        });
    }
    let throttled: Vec<u64> = all().filter_map(|one| one.throttled).collect();
    parts.push(match throttled.iter().sum::<u64>() {
        _ if throttled.is_empty() => "throttling not known".to_owned(),
        0 => "never throttled".to_owned(),
        times => format!("throttled {}", counted(times, "time")),
    });
    format!("Temperature: {}.", parts.join(", "))
}

/// CPU time of the kernel's threads during `trials`, the busiest first; none if none had any.
fn threads(trials: &[&Trial]) -> Option<String> {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for one in trials
        .iter()
        .filter_map(|trial| trial.outcome.conditions.as_ref())
    {
        for (name, time) in &one.threads {
            *sums.entry(name).or_default() += time.0;
        }
    }
    let mut all: Vec<(&str, u64)> = sums.into_iter().collect();
    all.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let each = all
        .iter()
        .take(THREADS)
        .map(|(name, ns)| format!("{name} {}", Nanos(*ns)));
    let list = each.collect::<Vec<_>>().join(", ");
    (!list.is_empty()).then(|| format!("CPU time of kernel threads of the machine: {list}."))
}

/// Kernel threads that are listed.
const THREADS: usize = 6;
