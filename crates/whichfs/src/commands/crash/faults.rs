//! `whichfs crash faults`: what a card may do to data, and what is known of it.

use crate::cli::JsonArgs;
use crate::failure::Outcome;
use crate::output;
use whichfs_crash::{Acts, Evidence, Facts, Fault};

/// The groups and what they are called.
const GROUPS: [(Acts, &str); 3] = [
    (Acts::AtCut, "when the power goes"),
    (
        Acts::WithoutCut,
        "without a cut, judged when the run has ended",
    ),
    (
        Acts::WhileRead,
        "while the image is mounted, read and repaired",
    ),
];

/// Runs the command.
pub fn run(args: &JsonArgs) -> Outcome<u8> {
    if args.json {
        output::json(&Fault::ALL.map(Fault::facts))?;
        return Ok(0);
    }
    for (acts, title) in GROUPS {
        output::text_line(&format!("{title}:"))?;
        for facts in of(acts) {
            output::text_line(&text(facts))?;
        }
    }
    output::text_line("Use: whichfs crash run --faults NAME,…")?;
    Ok(0)
}

/// All names by group, for the help text.
pub fn names() -> String {
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

fn of(acts: Acts) -> impl Iterator<Item = &'static Facts> {
    let all = Fault::ALL.into_iter().map(Fault::facts);
    all.filter(move |facts| facts.acts == acts)
}

fn text(facts: &Facts) -> String {
    let evidence = match facts.evidence {
        Evidence::Published => "published",
        Evidence::Hypothesis => "hypothesis",
    };
    format!(
        "  {:<20}{}\n{:22}{evidence}: {}",
        facts.name, facts.meaning, "", facts.source
    )
}
