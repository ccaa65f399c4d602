//! `whichfs study claims`: what the authors concluded, beside what the lab found.

use super::performance::{Limits, lab};
use crate::cli::ClaimsArgs;
use crate::failure::{Failure, Outcome as Done};
use crate::output;
use crate::progress::Progress;
use std::collections::BTreeMap;
use whichfs_engine::{places, studies};
use whichfs_report::documents::study::{JudgedClaim, claims_text};
use whichfs_study::{CLAIMS, Claim, Grid, PerformanceStudy, Study, grids, judge_claim};

/// Judges all claims by the trials that the store has.
pub fn claims(args: &ClaimsArgs) -> Done<u8> {
    let performance = |study| match study {
        Study::Performance(study) if args.quick => Some(study.quick()),
        Study::Performance(study) => Some(study),
        Study::Crash(_) => None,
    };
    let studies: Vec<PerformanceStudy> = studies::all()?
        .into_iter()
        .filter_map(performance)
        .collect();
    let borrowed: Vec<&PerformanceStudy> = studies.iter().collect();
    let (file, text) = CLAIMS;
    let claims = whichfs_study::claims(file, text, &borrowed).map_err(Failure::input)?;
    let tables = tables(&borrowed, &claims)?;
    let judged: Vec<JudgedClaim> = claims
        .into_iter()
        .map(|claim| JudgedClaim {
            judgement: judge_claim(&claim, tables.get(&claim.study).map_or(&[], Vec::as_slice)),
            claim,
        })
        .collect();
    match args.json {
        true => output::list(&judged)?,
        false => output::text(&claims_text(&judged, output::width()))?,
    }
    Ok(0)
}

/// The tables of the studies that claims are about.
fn tables(studies: &[&PerformanceStudy], claims: &[Claim]) -> Done<BTreeMap<String, Vec<Grid>>> {
    let mut tables = BTreeMap::new();
    for study in studies {
        let asked = |claim: &Claim| claim.study == study.name && !claim.parts.is_empty();
        if claims.iter().any(asked) {
            // A kernel of its own that was never built here: none of its trials was run.
            if study
                .kernels
                .iter()
                .any(|of| places::kernel_of(of).is_err())
            {
                continue;
            }
            let mut runner = lab(study, &Limits::default())?;
            runner.recall(&mut Progress::default())?;
            tables.insert(study.name.clone(), grids(study, &runner.trials(), &[]));
        }
    }
    Ok(tables)
}
