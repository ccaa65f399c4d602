//! `whichfs crash faults`: what a card may do to data, and what is known of it.

use crate::cli::JsonArgs;
use crate::failure::Outcome;
use crate::output;
use whichfs_crash::Fault;
use whichfs_report::documents::faults::faults_text;

/// Examples in the help text.
pub const EXAMPLES: &str = "\
Examples:
  whichfs crash faults
  whichfs crash run --fs ext4 --card emmc-8gb --faults flush-lies,torn-4k";

/// Runs the command.
pub fn run(args: &JsonArgs) -> Outcome<u8> {
    match args.json {
        true => output::list(&Fault::ALL.map(|fault| *fault.facts()))?,
        false => output::text(&faults_text(output::width()))?,
    }
    Ok(0)
}
