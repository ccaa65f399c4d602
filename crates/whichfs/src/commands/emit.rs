//! `whichfs emit`: job definitions for board labs.

use crate::cli::LavaArgs;
use crate::failure::{Failure, Outcome};
use crate::output;
use std::fs::read_to_string;
use whichfs_engine::studies;
use whichfs_report::lava::LavaJob;
use whichfs_study::Study;

/// Examples in the help text.
pub const EXAMPLES: &str = "\
Examples:
  whichfs emit lava pandora --quick --device-type x15 --on /dev/sda --destroy ID > job.yaml
  whichfs emit lava pandora --quick --device-type ssh --on /media/card
  whichfs emit lava pandora --device-type x15 --on /media/card --actions boot.yaml
  lavacli jobs submit job.yaml

Each trial is a test case of LAVA, each of its figures another one with a measurement. The job
prints the records of its trials, which `whichfs store import` takes.";

/// Prints a job definition of LAVA.
pub fn lava(args: &LavaArgs) -> Outcome<u8> {
    if let Study::Crash(study) = studies::open(&args.study)? {
        return Err(Failure::input(format!(
            "{} cuts the power, which a job of LAVA cannot; name a study with trials (whichfs \
             study list)",
            study.name
        )));
    }
    let wrong = |why: String| {
        let file = args.actions.as_ref().map(|path| path.display().to_string());
        Failure::input(format!("--actions {}: {why}", file.unwrap_or_default()))
    };
    let actions = args.actions.as_ref().map(read_to_string).transpose();
    let actions = actions.map_err(|e| wrong(format!("{e}; name a file that can be read")))?;
    let job = LavaJob {
        study: &args.study,
        quick: args.quick,
        device_type: &args.device_type,
        device: &args.on,
        destroy: args.destroy.as_deref(),
        budget: args.budget,
        setup: &args.setup,
        actions: actions.as_deref(),
    };
    output::text(&job.yaml().map_err(wrong)?)?;
    Ok(0)
}
