//! `whichfs crash minimise`: a failing cut as a small file that shows it again.

use super::replay;
use crate::cli::MinimiseArgs;
use crate::crash::archive;
use crate::crash::check::Checker;
use crate::crash::minimiser::Minimiser;
use crate::crash::record::Plan;
use crate::failure::{Failure, Outcome};
use crate::places::{self, WholeFile};
use crate::{interrupt, output};
use std::time::Duration;
use whichfs_lab::available_cores;

/// Examples in the help text.
pub const EXAMPLES: &str = "\
Examples:
  whichfs crash minimise 3f9a0c51d2e7-17                     writes crash-3f9a0c51d2e7-17.json
  whichfs crash minimise 3f9a0c51d2e7-17 --out lost.json --budget 600
  whichfs crash replay lost.json                             shows it again

Operations are left out as long as some cut of the shorter run still fails in the same way,
then writes that the card loses (delta debugging). The file names every operation: keep it as
a test, or send it to the filesystem's maintainers.

Exit status: 0 done, 2 bad usage or input, 3 this machine lacks something, 4 the run failed.";

/// Operations that are shown.
const SHOWN: usize = 20;

/// Runs the command.
pub fn run(args: &MinimiseArgs) -> Outcome<u8> {
    let (series, number) = replay::parse(&args.id)?;
    let (spec, _) = archive::read(&places::crashes()?, series)?;
    let bench = replay::bench(&spec, args.jobs)?;
    let out = match &args.out {
        Some(path) => path.clone(),
        None => format!("crash-{}-{number}.json", spec.id()).into(),
    };
    let file = WholeFile::new(&out)?;
    let plan = Plan::new(&bench, &spec)?;
    let cancelled = interrupt::flag();
    let core = available_cores().last().copied();
    note!("{}: running the workload", spec.fs);
    let recorded = plan.record(core, cancelled)?;
    let cut = replay::cut(&spec, &recorded, number)?;
    let result = Checker::new(&plan, &recorded).check_whole(&cut, core, cancelled)?;
    let mut told = |what: &str, left: usize| note!("{what}: {left} left");
    let budget = Duration::from_secs(args.budget);
    let minimiser = Minimiser::new(&bench, &spec, &result, budget, core, cancelled, &mut told)
        .ok_or_else(|| {
            Failure::input(format!(
                "cut {number} broke no promise: there is nothing to make smaller; crash run names \
             those that did"
            ))
        })?;
    let small = minimiser.run(&recorded, &result)?;
    let text = serde_json::to_string_pretty(&small).map_err(Failure::environment)?;
    file.write((text + "\n").as_bytes())?;
    output::text_line(&small.title)?;
    let ops = small.spec.script.as_deref().unwrap_or_default();
    let text = whichfs_workload::script_text(&ops[..ops.len().min(SHOWN)]);
    for line in text.lines() {
        output::text_line(&format!("  {line}"))?;
    }
    if ops.len() > SHOWN {
        output::text_line(&format!(
            "  and {} more; a larger --budget may find fewer",
            ops.len() - SHOWN
        ))?;
    }
    output::text_line(&format!(
        "written to {0}; again: whichfs crash replay {0}",
        out.display()
    ))?;
    Ok(0)
}
