//! One cut with all that it has to tell.

use super::series::name_words;
use super::timeline::CutLine;
use crate::text::Lines;
use whichfs_crash::{CutPlace, CutResult};

/// A cut of a recorded run shown again, which is `about` that of a filesystem, in lines of at most
/// `width` columns.
pub fn replay_text(
    about: &str,
    operations: u64,
    timeline: &[CutLine],
    result: &CutResult,
    width: usize,
) -> String {
    let mut out = Lines::new(width);
    out.paragraph(about, 0);
    if result.live.is_none() {
        tell_cut(&mut out, operations, timeline, result);
    }
    outcome(&mut out, result);
    out.text()
}

/// Where the cut lay, with the requests and promises around it.
fn tell_cut(out: &mut Lines, operations: u64, timeline: &[CutLine], result: &CutResult) {
    let cut = &result.cut;
    let place = match cut.place {
        CutPlace::Before => "before",
        CutPlace::Inside => "inside",
        CutPlace::After | CutPlace::Unseen => "after",
    };
    let when = format!(
        "The power goes at {}, {place} request {}. Of {} operations the first {} were durable as a \
         whole, {} had begun.",
        cut.at, cut.request, operations, result.window.0, result.window.1
    );
    out.paragraph(&when, 0);
    for again in &result.recovery {
        out.line(&format!(
            "It goes again {} into the mount that recovers, at its write {}.",
            again.at, again.request
        ));
    }
    let rows = timeline.iter().map(|line| {
        vec![
            format!("{:.3}", line.at.as_secs_f64() * 1e3),
            line.request.map_or(String::new(), |n| n.to_string()),
            line.what.clone(),
            line.left.clone(),
        ]
    });
    out.line("");
    out.table(&["ms", "request", "what", "left of it"], rows.collect());
    out.line("");
}

/// A cut of a real device, which is `about` that of a filesystem, in lines of at most `width`
/// columns.
pub fn measured_replay_text(about: &str, result: &CutResult, width: usize) -> String {
    let mut out = Lines::new(width);
    out.paragraph(about, 0);
    outcome(&mut out, result);
    out.text()
}

/// What was found, step by step.
fn outcome(out: &mut Lines, result: &CutResult) {
    let checked = &result.checked;
    if let Some(run) = &result.live {
        super::live::tell_run(out, run);
    }
    let said = |out: &mut Lines, what: &str, done: &Option<Result<(), String>>| match done {
        None => {}
        Some(Ok(())) => out.line(&format!("{what}: yes")),
        Some(Err(why)) => out.paragraph(&format!("{what}: no: {why}"), 2),
    };
    said(out, "mounts", &checked.mounted);
    if let Some(time) = result.mount {
        out.line(&format!("mount with recovery: {time}"));
    }
    said(out, "works", &checked.usable);
    for (what, status) in [
        ("its checker", checked.check),
        ("its repair", checked.repair),
    ] {
        if let Some(status) = status {
            out.line(&format!("{what} ends with {status}"));
        }
    }
    said(out, "mounts after the repair", &checked.mounted_again);
    for line in checked.messages.iter().chain(&checked.messages_again) {
        out.paragraph(&format!("kernel: {line}"), 2);
    }
    for (when, findings) in [
        ("first mount", &checked.findings),
        ("after the repair", &checked.findings_again),
    ] {
        for finding in findings {
            let mark = if finding.broken { "BROKEN " } else { "" };
            let outcome = name_words(&finding.outcome);
            let told = format!(
                "{when}: {mark}{}: {outcome}: {}",
                finding.path, finding.what
            );
            out.paragraph(&told, 2);
        }
    }
    let broken = if result.broken {
        "it broke a promise"
    } else {
        "no promise was broken"
    };
    out.line(&format!("{}; {broken}", name_words(&result.condition)));
}
