//! What a card may do to data, and what is known of it.

use crate::document::Document;
use crate::text::Lines;
use whichfs_crash::{Acts, Fault, FaultEvidence, FaultFacts};

impl Document for FaultFacts {
    const NAME: &'static str = "crash faults";
}

/// What happens at every cut (`crates/crash/src/faults/cut.rs`).
const OF_EVERY_CARD: &str = "\
Without any of these an honest card loses, when the power goes, what its volatile cache (of eMMC; \
its profile has the size) was told since the last flush, newest first (published: JESD84: data in \
the cache may be lost), and of the request under way keeps a prefix of whole flash pages \
(hypothesis). All else is a fault that you name:";

/// The groups and what they are called.
const GROUPS: [(Acts, &str); 4] = [
    (Acts::AtCut, "when the power goes"),
    (
        Acts::WithoutCut,
        "without a cut, judged when the run has ended",
    ),
    (
        Acts::WhileRead,
        "while the image is mounted, read and repaired",
    ),
    (Acts::WhileRun, "while the workload runs"),
];

/// The faults of a card, for people: lines of at most `width` columns.
pub fn faults_text(width: usize) -> String {
    let mut out = Lines::new(width);
    out.paragraph(OF_EVERY_CARD, 0);
    for (acts, title) in GROUPS {
        out.line(&format!("{title}:"));
        for facts in of(acts) {
            tell(&mut out, facts);
        }
    }
    out.line("Use: whichfs crash run --faults NAME,…");
    out.text()
}

/// All names by group, for the help text.
pub fn fault_names() -> String {
    let mut lines =
        vec!["Faults (--faults; `whichfs crash faults` says what each does):".to_owned()];
    for (acts, title) in GROUPS {
        lines.push(format!("  {title}:"));
        let names: Vec<&str> = of(acts).map(|facts| facts.name).collect();
        let rows: Vec<String> = names.chunks(5).map(|row| row.join(", ")).collect();
        lines.push(format!("    {}", rows.join(",\n    ")));
    }
    lines.join("\n")
}

fn of(acts: Acts) -> impl Iterator<Item = &'static FaultFacts> {
    let all = Fault::ALL.into_iter().map(Fault::facts);
    all.filter(move |facts| facts.acts == acts)
}

fn tell(out: &mut Lines, facts: &FaultFacts) {
    /// Column of the texts.
    const COLUMN: usize = 22;
    let evidence = match facts.evidence {
        FaultEvidence::Published => "published",
        FaultEvidence::Hypothesis => "hypothesis",
    };
    out.line(&format!("  {}", facts.name));
    for text in [
        facts.meaning.to_owned(),
        format!("{evidence}: {}", facts.source),
    ] {
        out.paragraph(&format!("{:COLUMN$}{text}", ""), COLUMN);
    }
}
