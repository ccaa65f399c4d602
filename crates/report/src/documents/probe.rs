//! What a card is like, from timings; and whether all of it is real.

use crate::document::Document;
use crate::text::{one_line, table};
use whichfs_probe::{
    CapacityReport, CardDrift, Finding, Findings, Honesty, Quantity, Rescue, Value,
};
use whichfs_units::{Bytes, Nanos, counted};

impl Document for Findings {
    const NAME: &'static str = "probe";
}

impl Document for CapacityReport {
    const NAME: &'static str = "probe --capacity";
}

impl Document for Rescue {
    const NAME: &'static str = "probe --put-back";
}

/// Whether the capacity of a card is real, for people.
pub fn capacity_text(report: &CapacityReport) -> String {
    let claimed = Bytes(report.claimed_bytes);
    let mut text = match (report.honesty, report.real_bytes) {
        (Honesty::Honest, _) => format!("The card has the {claimed} that it claims."),
        (Honesty::Broken, _) => "The card keeps nothing that is written to it.".to_owned(),
        (Honesty::Unknown, _) => format!("It claims {claimed}; whether that is true is not known."),
        (how, real) => {
            let real = real.map_or("less".to_owned(), |real| Bytes(real).to_string());
            let how = match how {
                Honesty::Wraps => "writes beyond that overwrite its beginning",
                Honesty::Vanishes => "writes beyond that are lost",
                _ => "requests beyond that fail",
            };
            format!("The card LIES: it claims {claimed} and has {real}; {how}.")
        }
    };
    text.push_str(&format!(
        "\n{}\n{} written",
        report.evidence,
        Bytes(report.bytes_written)
    ));
    if report.lost_blocks > 0 {
        text.push_str(&format!(
            "; {} of 4 KiB could not be put back as they were",
            counted(report.lost_blocks, "block")
        ));
    }
    if let Some(ended) = &report.ended {
        text.push_str(&format!("\nstopped: {ended}"));
    }
    text
}

/// Values that one asks for first: what a filesystem is tuned by, and how fast the card is.
const FIRST: [&[&str]; 2] = [
    &[
        "page_bytes",
        "au_bytes",
        "open_aus_linear",
        "open_aus_random",
    ],
    &[
        "read_mb_s",
        "write_mb_s",
        "random_read_iops",
        "random_write_iops",
    ],
];

/// What a probe of `name` found, in five lines at most, of at most `width` columns.
pub fn findings_summary(name: &str, findings: &Findings, width: usize) -> String {
    let found = |finding: &Finding| finding.value.is_some();
    let told = |names: &[&str]| {
        let all = Quantity::ALL.into_iter();
        let own = all.filter(|one| names.contains(&one.name().as_str()));
        let own: Vec<_> = own.map(|one| (one.name(), findings.get(one))).collect();
        let known = own.iter().filter(|(_, finding)| found(finding));
        let each = known.map(|(name, finding)| format!("{} {}", words(name), value(name, finding)));
        let sure = own.iter().filter(|(_, finding)| found(finding));
        let sure = sure.map(|(_, finding)| finding.confidence).reduce(f64::min);
        let each: Vec<String> = each.collect();
        // Short enough for 80 columns.
        let each = each.join(", ").replace(", open AUs random", ", random");
        let each = each.replace(", random write IOPS", ", write");
        sure.map(|sure| format!("{each} ({:.0} % sure)", sure * 100.0))
    };
    let all = || {
        Quantity::ALL
            .into_iter()
            .map(|one| (one.name(), findings.get(one)))
    };
    let unknown = all().filter(|(_, finding)| !found(finding));
    let unknown: Vec<String> = unknown.map(|(name, _)| words(&name)).collect();
    let shown: Vec<&str> = FIRST.concat();
    let more = all().filter(|(name, finding)| found(finding) && !shown.contains(&name.as_str()));
    let more = counted(more.count(), "more value");
    let mut lines = vec![format!(
        "{name}: {}",
        told(FIRST[0]).unwrap_or("no geometry found".to_owned())
    )];
    lines.extend(told(FIRST[1]));
    lines.push(match unknown.is_empty() {
        true => format!("{more} (-v shows all)"),
        false => format!("{more} (-v shows all); not known: {}", unknown.join(", ")),
    });
    let drift = findings.drift.iter().map(drift_told);
    let remarks: Vec<String> = drift.chain(findings.notes.iter().cloned()).collect();
    if let [first, others @ ..] = remarks.as_slice() {
        lines.push(match others.len() {
            0 => first.clone(),
            others => format!("the first of {} remarks: {first}", others + 1),
        });
    }
    let ended = findings.ended.as_ref();
    let ended = ended.map_or(String::new(), |why| format!("stopped: {why}; "));
    lines.push(format!("{ended}{}", cost(findings)));
    lines.retain(|line| !line.is_empty());
    let lines = lines.iter().map(|line| one_line(line, width));
    lines.collect::<Vec<_>>().join("\n")
}

/// What the probe did to the device; empty if it did nothing.
fn cost(findings: &Findings) -> String {
    match findings.device_s > 0.0 {
        false => String::new(),
        true => format!(
            "{:.1} s on the device, {} read, {} written",
            findings.device_s,
            Bytes(findings.bytes_read),
            Bytes(findings.bytes_written),
        ),
    }
}

/// A change of the device during the probe.
fn drift_told(drift: &CardDrift) -> String {
    let share = (drift.slowdown - 1.0) * 100.0;
    format!(
        "{}s took {share:+.0} % at the end: {}",
        drift.what, drift.evidence
    )
}

/// What a probe of `name` found, with the evidence, in lines of at most `width` columns.
pub fn findings_text(name: &str, findings: &Findings, width: usize) -> String {
    let mut out = format!("{name}\n\n");
    let rows = Quantity::ALL
        .into_iter()
        .map(|quantity| (quantity.name(), findings.get(quantity)))
        .filter(|(_, finding)| finding.value.is_some())
        .map(|(name, finding)| {
            let confidence = format!("{:.0} %", finding.confidence * 100.0);
            vec![
                words(&name),
                value(&name, finding),
                confidence,
                finding.evidence.clone(),
            ]
        });
    out.push_str(&table(
        &["", "value", "sure", "evidence"],
        rows.collect(),
        width,
    ));
    let plot = crate::boundaries_text(findings, false);
    if !plot.is_empty() {
        out.push_str(&format!("\n\n{plot}"));
    }
    out.push_str(&unknown(findings));
    for drift in &findings.drift {
        out.push_str(&format!("\n{}", drift_told(drift)));
    }
    for note in &findings.notes {
        out.push_str(&format!("\n{note}"));
    }
    if let Some(ended) = &findings.ended {
        out.push_str(&format!("\nstopped: {ended}"));
    }
    match cost(findings).as_str() {
        "" => out,
        cost => format!("{out}\n{cost}"),
    }
}

/// What was not found, by reason.
fn unknown(findings: &Findings) -> String {
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for quantity in Quantity::ALL {
        let Some(reason) = findings.get(quantity).reason.as_deref() else {
            continue;
        };
        let name = words(&quantity.name());
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(name),
            None => reasons.push((reason, vec![name])),
        }
    }
    let lines = reasons
        .iter()
        .map(|(reason, names)| format!("\n  {}: {reason}", names.join(", ")));
    match reasons.is_empty() {
        true => String::new(),
        false => format!("\n\nNot known:{}", lines.collect::<String>()),
    }
}

/// `open_aus_linear` → `open AUs linear`, without the unit at its end.
fn words(name: &str) -> String {
    let ends = ["_bytes", "_us", "_mb_s"];
    let stem = ends.iter().find_map(|end| name.strip_suffix(end));
    let text = stem.unwrap_or(name).replace('_', " ");
    let text = text.replace("aus", "AUs").replace("iops", "IOPS");
    if text == "au" { "AU".to_owned() } else { text }
}

fn value(name: &str, finding: &Finding) -> String {
    let Some(value) = finding.value else {
        return String::new();
    };
    let text = match value {
        Value::Whole(bytes) if name.ends_with("_bytes") => Bytes(bytes).to_string(),
        value if name.ends_with("_us") => Nanos((value.real() * 1e3) as u64).to_string(),
        value if name.ends_with("_mb_s") => format!("{:.1} MB/s", value.real()),
        Value::Whole(count) => count.to_string(),
        Value::Real(real) if real >= 10.0 => format!("{real:.0}"),
        Value::Real(real) => format!("{real:.1}"),
    };
    if finding.at_least {
        return format!("≥ {text}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_in_words_and_values_with_units() {
        assert_eq!(words("open_aus_linear"), "open AUs linear");
        assert_eq!(words("au_bytes"), "AU");
        assert_eq!(words("random_write_iops"), "random write IOPS");
        let findings = whichfs_probe::interpret(&whichfs_curves::Curves::default());
        assert!(findings_text("x", &findings, 80).contains("Not known:"));
        for width in [40, 80, 200] {
            let text = findings_summary("x", &findings, width);
            let lines: Vec<&str> = text.lines().collect();
            assert!(lines.len() <= 5, "{text}");
            assert!(width < 200 || text.contains("not known: page"), "{text}");
            let fits = |line: &&str| line.chars().count() <= width;
            assert!(lines.iter().all(fits), "{text}");
        }
    }
}
