//! `whichfs study claims`: what the authors concluded, beside what the lab found.

use super::files;
use super::trials::{Limits, Runner};
use crate::cli::ClaimsArgs;
use crate::failure::{Failure, Outcome as Done};
use crate::output;
use serde::Serialize;
use std::collections::BTreeMap;
use whichfs_study::{
    CLAIMS, Claim, Grid, Judgement, Outcome, PerformanceStudy, Study, grids, judge_claim,
};
use whichfs_units::counted;

/// A claim and what became of it.
#[derive(Serialize)]
struct Judged {
    #[serde(flatten)]
    claim: Claim,
    #[serde(flatten)]
    judgement: Judgement,
}

/// Judges all claims by the trials that the store has.
pub fn claims(args: &ClaimsArgs) -> Done<u8> {
    let performance = |study| match study {
        Study::Performance(study) if args.quick => Some(study.quick()),
        Study::Performance(study) => Some(study),
        Study::Crash(_) => None,
    };
    let studies: Vec<PerformanceStudy> =
        files::all()?.into_iter().filter_map(performance).collect();
    let borrowed: Vec<&PerformanceStudy> = studies.iter().collect();
    let (file, text) = CLAIMS;
    let claims = whichfs_study::claims(file, text, &borrowed).map_err(Failure::input)?;
    let tables = tables(&borrowed, &claims)?;
    let judged: Vec<Judged> = claims
        .into_iter()
        .map(|claim| Judged {
            judgement: judge_claim(&claim, tables.get(&claim.study).map_or(&[], Vec::as_slice)),
            claim,
        })
        .collect();
    match args.json {
        true => output::json(&judged)?,
        false => tell(&judged)?,
    }
    Ok(0)
}

/// The tables of the studies that claims are about.
fn tables(studies: &[&PerformanceStudy], claims: &[Claim]) -> Done<BTreeMap<String, Vec<Grid>>> {
    let mut tables = BTreeMap::new();
    for study in studies {
        let asked = |claim: &Claim| claim.study == study.name && !claim.parts.is_empty();
        if claims.iter().any(asked) {
            let mut runner = Runner::new(study, &Limits::default())?;
            runner.recall()?;
            tables.insert(study.name.clone(), grids(study, &runner.trials, &[]));
        }
    }
    Ok(tables)
}

fn tell(judged: &[Judged]) -> Done {
    let mut study = "";
    for one in judged {
        if one.claim.study != study {
            study = &one.claim.study;
            output::text_line(&format!("\n{study}"))?;
        }
        let outcome = one.judgement.outcome.name();
        output::paragraph(
            &format!("{outcome}: {} [{}]", one.claim.text, one.claim.source),
            2,
        )?;
        for reason in &one.judgement.reasons {
            output::paragraph(&format!("- {reason}"), 2)?;
        }
    }
    let count = |outcome| {
        let of = |one: &&Judged| one.judgement.outcome == outcome;
        judged.iter().filter(of).count()
    };
    let counts = [
        Outcome::Reproduced,
        Outcome::Contradicted,
        Outcome::NotRun,
        Outcome::NotTestable,
    ];
    let counts = counts.map(|outcome| format!("{} {}", count(outcome), outcome.name()));
    output::text_line(&format!(
        "\n{}: {}",
        counted(judged.len(), "claim"),
        counts.join(", ")
    ))?;
    output::paragraph(
        "a 2.00 × b: a is twice as good as b, as fast or as short.",
        0,
    )
}
