//! What became of systems whose card failed while they ran.

use super::row::milliseconds;
use super::series::{CutReport, name_words, percent};
use crate::crash::FileCount;
use crate::text::Lines;
use std::collections::BTreeMap;
use whichfs_crash::{CutResult, LiveRun, Share, SystemOutcome};
use whichfs_units::Nanos;

/// How many runs ended how; empty for cuts of a run on a card that did not fail.
pub(super) fn shares(cuts: &[CutResult]) -> BTreeMap<SystemOutcome, Share> {
    let runs = cuts.iter().filter_map(|cut| cut.live.as_ref());
    let mut counts: BTreeMap<SystemOutcome, u64> = BTreeMap::new();
    for run in runs {
        *counts.entry(run.outcome).or_default() += 1;
    }
    let of = cuts.len() as u64;
    let share = |(outcome, count)| (outcome, Share::new(count, of));
    counts.into_iter().map(share).collect()
}

/// The same in words, for a page.
pub(super) fn counts(cuts: &[CutResult]) -> Vec<FileCount> {
    let counted = shares(cuts).into_iter();
    counted
        .map(|(outcome, share)| FileCount {
            outcome: name_words(&outcome),
            count: share.count,
        })
        .collect()
}

/// What became of the systems of `report`, in lines.
pub(super) fn tell(out: &mut Lines, report: &CutReport) {
    if report.live.is_empty() {
        return;
    }
    let rows = report
        .live
        .iter()
        .map(|(outcome, share)| vec![name_words(outcome), share.count.to_string(), percent(share)]);
    let head = ["system, while the card failed", "runs", "95 % interval"];
    out.table(&head, rows.collect());
    let runs = || report.cuts.iter().filter_map(|cut| cut.live.as_ref());
    let met = runs().filter(|run| run.hits > 0).count();
    let times = milliseconds(&report.cuts, |cut| cut.live.as_ref().and_then(delay));
    let told = times.len();
    let when = match (times.get(told / 2), times.last()) {
        (Some(median), Some(longest)) => {
            format!(": after {median:.0} ms (median), {longest:.0} ms at most")
        }
        _ => String::new(),
    };
    let line = format!(
        "the faults met requests in {met} of {} runs; the program was told in {told}{when}",
        runs().count()
    );
    out.paragraph(&line, 0);
    let mut errors: BTreeMap<i32, u64> = BTreeMap::new();
    for errno in runs().filter_map(|run| run.errno) {
        *errors.entry(errno).or_default() += 1;
    }
    let errors: Vec<String> = errors
        .into_iter()
        .map(|(errno, count)| format!("{} in {count}", errno_name(errno)))
        .collect();
    if !errors.is_empty() {
        out.paragraph(&format!("by the error {}", errors.join(", ")), 0);
    }
}

/// One run in lines.
pub(super) fn tell_run(out: &mut Lines, run: &LiveRun) {
    let met = match run.hit {
        Some(at) => format!("the faults met {} requests from {at} on", run.hits),
        None => "the faults met no request".to_owned(),
    };
    out.paragraph(
        &format!("the system: {}; {met}", name_words(&run.outcome)),
        2,
    );
    let at = |at: Option<Nanos>| at.map_or(String::new(), |at| format!(" at {at}"));
    if let Some(error) = &run.error {
        let when = at(run.noticed);
        out.paragraph(&format!("the program was told{when}: {error}"), 2);
    }
    if let Some(error) = &run.next {
        out.paragraph(&format!("the next program was told: {error}"), 2);
    }
    if let Some(stopped) = run.stopped {
        out.paragraph(&format!("the filesystem stopped at {stopped}"), 2);
    }
    if let Some(why) = &run.unmount {
        out.paragraph(&format!("the unmount failed: {why}"), 2);
    }
    if let Some(why) = &run.ended {
        out.paragraph(&format!("it was ended: {why}"), 2);
    }
    for line in &run.messages {
        out.paragraph(&format!("kernel, while it ran: {line}"), 2);
    }
}

/// From the first request that met a fault until the program was told.
fn delay(run: &LiveRun) -> Option<Nanos> {
    Some(run.noticed?.saturating_sub(run.hit?))
}

/// The name of an error number (errno(3), Linux), where it is one that a failing card gives.
fn errno_name(errno: i32) -> String {
    match errno {
        5 => "EIO".to_owned(),
        28 => "ENOSPC".to_owned(),
        30 => "EROFS".to_owned(),
        117 => "EUCLEAN".to_owned(),
        other => format!("number {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::result;
    use super::super::series::cuts_text;
    use super::*;
    use whichfs_crash::{LiveSeen, contract};

    /// A run of `outcome`, which told its program 5 ms after the first request that failed.
    fn run(number: u64, seen: LiveSeen) -> CutResult {
        CutResult {
            live: Some(
                LiveSeen {
                    hits: (3, Some(Nanos(1_000_000))),
                    program_ended: true,
                    ..seen
                }
                .judged(),
            ),
            ..result(number)
        }
    }

    #[test]
    fn what_became_of_the_systems_is_told_before_what_became_of_the_images() {
        let error = "fsync a: I/O error (os error 5)".to_owned();
        let failed = LiveSeen {
            failed: Some((Nanos(6_000_000), error)),
            unmounted: true,
            ..LiveSeen::default()
        };
        let hung = LiveSeen {
            hung: Some("it hangs".to_owned()),
            ..LiveSeen::default()
        };
        let cuts = vec![run(0, failed.clone()), run(1, failed), run(2, hung)];
        assert_eq!(counts(&cuts)[0].outcome, "error returned");
        let contract = contract("ext4", "").expect("it has one");
        let report = CutReport::new(None, "ext4", "", contract, cuts);
        let text = cuts_text(&report, 120);
        for part in [
            "error returned",
            "unmount hangs",
            "in 3 of 3 runs; the program was told in 2: after 5 ms (median)",
            "by the error EIO in 2",
            "3 runs",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let system = text.find("error returned");
        assert!(system < text.find("durable lost"), "{text}");
    }

    #[test]
    fn cuts_of_a_good_card_say_nothing_of_a_system() {
        assert!(shares(&[result(0)]).is_empty() && counts(&[result(0)]).is_empty());
    }
}
