//! What the authors of studies concluded, beside what the lab found.

use crate::document::Document;
use crate::text::Lines;
use schemars::JsonSchema;
use serde::Serialize;
use whichfs_study::{Claim, ClaimOutcome, Judgement};
use whichfs_units::counted;

/// A claim and what became of it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct JudgedClaim {
    /// What the author states, and where.
    #[serde(flatten)]
    pub claim: Claim,
    /// What became of it.
    #[serde(flatten)]
    pub judgement: Judgement,
}

impl Document for JudgedClaim {
    const NAME: &'static str = "study claims";
}

/// The claims, in lines of at most `width` columns.
pub fn claims_text(judged: &[JudgedClaim], width: usize) -> String {
    let mut out = Lines::new(width);
    let mut study = "";
    for one in judged {
        if one.claim.study != study {
            study = &one.claim.study;
            out.line(&format!("\n{study}"));
        }
        let Judgement {
            outcome,
            comparisons,
            hold,
            ..
        } = &one.judgement;
        let held = match comparisons {
            0 => String::new(),
            of => format!(" ({hold} of {} hold)", counted(*of, "comparison")),
        };
        let (outcome, text, source) = (outcome.name(), &one.claim.text, &one.claim.source);
        out.paragraph(&format!("{outcome}{held}: {text} [{source}]"), 2);
        for reason in &one.judgement.reasons {
            out.paragraph(&format!("- {reason}"), 2);
        }
    }
    let count = |outcome| {
        let of = |one: &&JudgedClaim| one.judgement.outcome == outcome;
        judged.iter().filter(of).count()
    };
    let counts = [
        ClaimOutcome::Reproduced,
        ClaimOutcome::Contradicted,
        ClaimOutcome::NotDecided,
        ClaimOutcome::NotRun,
        ClaimOutcome::NotTestable,
    ];
    let counts = counts.map(|outcome| format!("{} {}", count(outcome), outcome.name()));
    out.line(&format!(
        "\n{}: {}",
        counted(judged.len(), "claim"),
        counts.join(", ")
    ));
    out.paragraph(
        "a 2.00 × b: a is twice as good as b, as fast or as short.",
        0,
    );
    out.text()
}
