//! One trial for a terminal: what decided it, its phases and figures, the device over time, and
//! the command that runs it again.

use crate::document::Document;
use crate::number::{duration, short, with_unit};
use crate::text::{clean, wrap};
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use whichfs_decide::{FigureOrigin, doubts_told};
use whichfs_trial::{Identity, PhaseFigures, Series, Slot, Status, Trial, metric_words};
use whichfs_units::Bytes;

/// A trial of a store, and what only the store knows of it.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct TrialTold<'a> {
    /// Id of the trial.
    pub id: &'a str,
    /// What decided it and what came out.
    #[serde(flatten)]
    pub trial: &'a Trial,
    /// Wall time it took, in seconds.
    pub wall_s: f64,
    /// When it ended, in seconds since 1970.
    pub finished_at_unix: i64,
    /// The command that runs it again.
    pub repeat: String,
}

impl Document for TrialTold<'_> {
    const NAME: &'static str = "trial show";
}

/// Lines of a log that are shown of a failed trial.
const LOG_LINES: usize = 12;

/// The trial in lines of at most `width` columns, but for commands.
pub fn trial_text(told: &TrialTold, width: usize) -> String {
    let mut out = String::new();
    let Trial { identity, outcome } = told.trial;
    let _ = writeln!(out, "{}", told.id);
    let mut line = |text: String| wrap(&mut out, &clean(&text), "  ", "    ", width);
    line(format!(
        "{} on {} ({}), seed {}",
        identity.candidate, identity.card, identity.card_state, identity.seed
    ));
    line(format!("workload {}", workload(identity)));
    line(format!(
        "board {}, clock {}, kernel {}, memory {} MiB, partition {} at {}",
        identity.board,
        identity.clock,
        identity.kernel,
        identity.memory_mib,
        with_unit(identity.partition_bytes as f64, "B"),
        with_unit(identity.partition_offset as f64, "B")
    ));
    if let Some(second) = &identity.second_card {
        let (holds, card) = (&second.holds, &second.card);
        line(match second.partition_bytes {
            0 => format!("second card: none, its {holds} is in RAM"),
            bytes => format!(
                "second card {card} with its {holds}, partition {} at {}",
                with_unit(bytes as f64, "B"),
                with_unit(second.partition_offset as f64, "B")
            ),
        });
    }
    let mkfs: Vec<String> = identity.mkfs.iter().map(|words| words.join(" ")).collect();
    for command in &mkfs {
        // A command is never broken: a line that is copied must run.
        let command = clean(command);
        let _ = match command.chars().count() + "  mkfs: ".len() <= width {
            true => writeln!(out, "  mkfs: {command}"),
            false => writeln!(out, "  mkfs:\n    {command}"),
        };
    }
    let mut line = |text: String| wrap(&mut out, &clean(&text), "  ", "    ", width);
    line(format!("mount options: {}", identity.mount_options));
    let tools = identity
        .tools
        .iter()
        .map(|(name, version)| format!("{name} {version}"));
    let tools: Vec<String> = tools.collect();
    if !tools.is_empty() {
        line(format!("tools: {}", tools.join(", ")));
    }
    line(userland(identity));
    match &outcome.status {
        Status::Done => {
            let took = duration(outcome.virtual_time.as_secs_f64());
            let here = duration(told.wall_s);
            line(match identity.clock.as_str() {
                // The device's own time; the rest is its preparation.
                "real" => format!(
                    "done in {took}, {here} with preparation; figures are {}",
                    FigureOrigin::Measured.word()
                ),
                _ => format!(
                    "done in {took} of virtual time, {here} here; figures are {}",
                    FigureOrigin::Modelled.word()
                ),
            });
        }
        Status::Failed { reason, log } => {
            line(format!("FAILED: {reason}"));
            for text in &log[log.len().saturating_sub(LOG_LINES)..] {
                line(format!("| {text}"));
            }
        }
    }
    phases(&mut out, &outcome.phases, width);
    second_card(&mut out, &outcome.phases, width);
    sizes(&mut out, told.trial, width);
    over_time(&mut out, told.trial, width);
    metrics(&mut out, told.trial, width);
    for said in doubts_told([told.trial].into_iter(), &|_| true) {
        out.push('\n');
        wrap(
            &mut out,
            &clean(&format!("Mind: {said}.")),
            "  ",
            "    ",
            width,
        );
    }
    out.push_str("\nRun it again\n");
    match told.repeat.starts_with("whichfs ") {
        true => out.push_str(&format!("  {}\n", clean(&told.repeat))),
        // A sentence that says why there is no command.
        false => wrap(&mut out, &clean(&told.repeat), "  ", "  ", width),
    }
    out
}

fn workload(identity: &Identity) -> String {
    let mut parts = vec![identity.workload.clone()];
    parts.extend(
        identity
            .parameters
            .iter()
            .map(|(name, value)| format!("{name} {value}")),
    );
    if !identity.tree_sha256.is_empty() {
        let digest = identity
            .tree_sha256
            .get(..12)
            .unwrap_or(&identity.tree_sha256);
        parts.push(format!("the user's tree {digest}"));
    }
    parts.extend(
        identity
            .input
            .iter()
            .map(|input| format!("input {input:?}")),
    );
    parts.join(", ")
}

fn phases(out: &mut String, phases: &[PhaseFigures], width: usize) {
    if phases.is_empty() {
        return;
    }
    let head = [
        "phase",
        "time",
        "calls",
        "written",
        "ampl.",
        "AU copies",
        "erases",
        "CPU",
    ];
    let rows = phases.iter().map(|phase| {
        let device = &phase.device;
        let cpu = phase.cpu.as_ref().and_then(|cpu| cpu.spent());
        vec![
            phase.phase.replace('_', " "),
            duration(phase.seconds()),
            phase.counts.operations.to_string(),
            with_unit(device.write_bytes as f64, "B"),
            (device.write_amplification())
                .map_or("–".to_owned(), |times| format!("{} ×", short(times))),
            device.au_copies.to_string(),
            device.erases.to_string(),
            cpu.map_or("–".to_owned(), |spent| duration(spent.as_secs_f64())),
        ]
    });
    table(out, "Phases", &head, rows.collect(), width);
}

/// What the second card did in each phase, if there was one.
fn second_card(out: &mut String, phases: &[PhaseFigures], width: usize) {
    let told = phases.iter().filter_map(|phase| {
        let second = phase.second_card.as_ref()?;
        Some(vec![
            phase.phase.replace('_', " "),
            (second.reads + second.writes).to_string(),
            with_unit(second.write_bytes as f64, "B"),
            (second.write_amplification())
                .map_or("–".to_owned(), |times| format!("{} ×", short(times))),
            second.au_copies.to_string(),
            second.erases.to_string(),
        ])
    });
    let rows: Vec<Vec<String>> = told.collect();
    if !rows.is_empty() {
        let head = [
            "phase",
            "requests",
            "written",
            "ampl.",
            "AU copies",
            "erases",
        ];
        table(out, "Second card", &head, rows, width);
    }
}

/// The requests of each phase by size; of a real device also why they are not known.
fn sizes(out: &mut String, trial: &Trial, width: usize) {
    let list = |all: &BTreeMap<u64, u64>| {
        let each = all
            .iter()
            .map(|(size, count)| format!("{count} of {}", Bytes(*size)));
        each.collect::<Vec<_>>().join(", ")
    };
    let mut lines = Vec::new();
    for phase in &trial.outcome.phases {
        let of = [
            ("writes", &phase.device.write_sizes),
            ("reads", &phase.device.read_sizes),
        ];
        for (what, all) in of.into_iter().filter(|(_, all)| !all.is_empty()) {
            let name = phase.phase.replace('_', " ");
            lines.push(format!("{name}, {what}: {}", list(all)));
        }
    }
    let conditions = trial.outcome.conditions.as_ref();
    if let Some(conditions) = conditions {
        let why = conditions.sizes_unknown.as_ref();
        lines.extend(why.map(|why| format!("not known: {why}")));
        if conditions.sizes_lost > 0 {
            let lost = conditions.sizes_lost;
            lines.push(format!("{lost} more came too fast to be counted"));
        }
    }
    if lines.is_empty() {
        return;
    }
    let _ = writeln!(out, "\nRequests of at most a size");
    for line in lines {
        wrap(out, &clean(&line), "  ", "    ", width);
    }
}

fn metrics(out: &mut String, trial: &Trial, width: usize) {
    let head = ["metric", "value", "better"];
    let rows = trial.outcome.metrics.iter().map(|metric| {
        let better = match (
            whichfs_trial::is_share(&metric.metric),
            metric.lower_is_better,
        ) {
            (true, _) => "neither",
            (false, true) => "lower",
            (false, false) => "higher",
        };
        vec![
            metric_words(&metric.metric),
            with_unit(metric.value, &metric.unit),
            better.to_owned(),
        ]
    });
    table(out, "Figures", &head, rows.collect(), width);
}

fn table(out: &mut String, title: &str, head: &[&str], rows: Vec<Vec<String>>, width: usize) {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(u16::try_from(width).unwrap_or(u16::MAX))
        .set_header(head.iter().copied());
    for row in rows {
        table.add_row(row.iter().map(|cell| clean(cell)));
    }
    for (at, column) in table.column_iter_mut().enumerate() {
        column.set_padding((if at == 0 { 2 } else { 0 }, 2));
        if at > 0 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let _ = writeln!(out, "\n{title}");
    for line in table.lines() {
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

/// Sparklines of the series, from the begin of the trial to its end.
fn over_time(out: &mut String, trial: &Trial, width: usize) {
    let Some(series) = &trial.outcome.series else {
        return;
    };
    let columns = width.saturating_sub(34).clamp(16, Series::SLOTS);
    let joined = |of: fn(&Slot) -> u64, most: bool| -> Vec<f64> {
        let each = series.slots.len().div_ceil(columns).max(1);
        let join = |slots: &[Slot]| match most {
            true => slots.iter().map(of).max().unwrap_or(0) as f64,
            false => slots.iter().map(of).sum::<u64>() as f64,
        };
        series.slots.chunks(each).map(join).collect()
    };
    let _ = writeln!(out, "\nOver {} of virtual time", {
        duration((series.slot.as_secs_f64()) * series.slots.len() as f64)
    });
    let mut line = |name: &str, values: &[f64], full: f64, note: &str| {
        let _ = writeln!(out, "  {name:10} {} {note}", sparkline(values, full));
    };
    if let Some(limit) = series.open_limit {
        let open = joined(|slot| u64::from(slot.open_aus), true);
        let most = open.iter().copied().fold(0.0, f64::max);
        line(
            "open AUs",
            &open,
            f64::from(limit),
            &format!("most {most} of {limit}"),
        );
    }
    let copies = joined(|slot| slot.au_copies, false);
    let all: f64 = copies.iter().sum();
    if all > 0.0 {
        let full = copies.iter().copied().fold(0.0, f64::max);
        line("AU copies", &copies, full, &format!("{all} in all"));
    }
    for (name, of) in [
        (
            "written",
            (|slot: &Slot| slot.write_bytes) as fn(&Slot) -> u64,
        ),
        ("programmed", |slot| slot.programmed_bytes),
    ] {
        let values = joined(of, false);
        let full = values.iter().copied().fold(0.0, f64::max);
        let all = with_unit(values.iter().sum(), "B");
        line(name, &values, full, &format!("{all} in all"));
    }
}

/// Where the programs of the trial came from.
fn userland(identity: &Identity) -> String {
    match (&identity.userland_sha256, identity.is_measured()) {
        (Some(sha256), _) => {
            let digits = sha256.get(..16).unwrap_or(sha256);
            format!("sealed userland sha256 {digits}")
        }
        (None, true) => "programs of the machine that the device was in".to_owned(),
        (None, false) => "no sealed userland: programs and libraries of the host decided too, and \
                          the id names only some of them"
            .to_owned(),
    }
}

/// A character for each value, from empty to a whole block at `full`.
fn sparkline(values: &[f64], full: f64) -> String {
    const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let level = |value: &f64| match *value > 0.0 && full > 0.0 {
        // What is not nothing is seen.
        true => ((value / full * 8.0).round() as usize).clamp(1, 8),
        false => 0,
    };
    values.iter().map(|value| LEVELS[level(value)]).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn told(trial: &Trial) -> TrialTold<'_> {
        TrialTold {
            id: "00c0ffee",
            trial,
            wall_s: 4.6,
            finished_at_unix: 0,
            repeat: "whichfs choose --fs ext4".into(),
        }
    }

    #[test]
    fn requests_of_a_real_device_are_told_by_size_or_with_the_reason() {
        let mut trial = crate::fixture::trial();
        let device = &mut trial.outcome.phases[0].device;
        device.write_sizes = [(4096, 7), (1 << 17, 2)].into();
        device.read_sizes = [(512, 1)].into();
        let text = trial_text(&told(&trial), 80);
        assert!(
            text.contains("tree write, writes: 7 of 4 KiB, 2 of 128 KiB"),
            "{text}"
        );
        assert!(text.contains("tree write, reads: 1 of 512 B"), "{text}");
        trial.outcome.conditions = Some(whichfs_trial::Conditions {
            sizes_unknown: Some("no tracefs".to_owned()),
            ..whichfs_trial::Conditions::default()
        });
        let text = trial_text(&told(&trial), 80);
        assert!(text.contains("not known: no tracefs"), "{text}");
    }

    #[test]
    fn a_second_card_is_told_with_what_it_did() {
        let mut trial = crate::fixture::trial();
        assert!(!trial_text(&told(&trial), 80).contains("Second card"));
        trial.identity.second_card = Some(whichfs_trial::SecondCardIdentity {
            card: "emmc-8gb".to_owned(),
            card_sha256: String::new(),
            holds: "journal".to_owned(),
            partition_offset: 4 << 20,
            partition_bytes: 64 << 20,
        });
        trial.outcome.phases[0].second_card = Some(whichfs_trial::DeviceFigures {
            writes: 77,
            write_bytes: 1000,
            programmed_bytes: 5000,
            ..whichfs_trial::DeviceFigures::default()
        });
        let text = trial_text(&told(&trial), 80);
        let line = "second card emmc-8gb with its journal, partition 64.0 MiB at 4.00 MiB";
        assert!(text.contains(line), "{text}");
        let (_, table) = text.split_once("Second card\n").unwrap();
        assert!(table.contains("77") && table.contains("5.00 ×"), "{text}");
    }

    #[test]
    fn a_trial_says_what_decided_it_and_what_came_out_and_fits_80_columns() {
        let trial = crate::fixture::trial();
        let text = trial_text(&told(&trial), 80);
        for said in [
            "ext4 on a1-32gb (used), seed 3",
            "workload rootfs, mib 192",
            "mkfs: mkfs.ext4 -F /dev/vda",
            "done in 41.3 s of virtual time, 4.60 s here; figures are modelled",
            "tree write",
            "2.00 ×",
            "no sealed userland: programs and libraries of the host decided",
            "25.1 MB/s",
            "neither",
            "open AUs   ▂█  most 5 of 5",
            "AU copies   █  3 in all",
            "written    ▄█  12.0 KiB in all",
            "whichfs choose --fs ext4",
        ] {
            assert!(text.contains(said), "{said}\n{text}");
        }
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        let json = serde_json::to_value(told(&trial)).unwrap();
        assert_eq!(json["identity"]["seed"], 3);
        assert_eq!(json["outcome"]["series"]["open_limit"], 5);
    }

    #[test]
    fn a_long_command_stays_whole_in_a_line_of_its_own_and_a_sentence_is_wrapped() {
        let mut trial = crate::fixture::trial();
        let option = "-E stride=16,stripe_width=1024,lazy_itable_init=0,lazy_journal_init=0,x=1";
        trial.identity.mkfs = vec![vec!["mkfs.ext4".to_owned(), option.to_owned()]];
        let mut told = told(&trial);
        told.repeat = "no need has this workload: ".to_owned() + &"a study's trial ".repeat(8);
        let text = trial_text(&told, 80);
        assert!(
            text.contains(&format!("  mkfs:\n    mkfs.ext4 {option}\n")),
            "{text}"
        );
        let end = text.split("Run it again").nth(1).unwrap_or_default();
        assert!(end.lines().all(|line| line.chars().count() <= 80), "{end}");
    }

    #[test]
    fn a_failed_trial_says_why_and_shows_the_end_of_its_log_disarmed() {
        let mut trial = crate::fixture::trial();
        trial.outcome.series = None;
        trial.outcome.status = Status::Failed {
            reason: "the guest panicked".into(),
            log: (0..40).map(|n| format!("line {n}\u{1b}[31m")).collect(),
        };
        let text = trial_text(&told(&trial), 80);
        assert!(text.contains("FAILED: the guest panicked"), "{text}");
        assert!(
            text.contains("| line 39") && !text.contains("| line 27"),
            "{text}"
        );
        assert!(
            !text.contains('\u{1b}') && !text.contains("open AUs"),
            "{text}"
        );
    }
}
