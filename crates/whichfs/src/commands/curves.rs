//! `whichfs card curves`: a modelled card put through flashbench's tests.

use crate::cli::CurvesArgs;
use crate::failure::{Failure, Outcome};
use crate::output;
use whichfs_curves::flashbench;
use whichfs_engine::cards;
use whichfs_engine::places::write_whole;

/// Examples for `--help`.
pub const EXAMPLES: &str = "\
Examples:
  whichfs card curves class4-4gb                 drawn in the terminal
  whichfs card curves class4-4gb --json          for a program, as card fit reads it
  whichfs card curves ./mine.toml --flashbench   as flashbench prints it";

/// Measures and shows the curves of a card.
pub fn run(args: &CurvesArgs) -> Outcome<u8> {
    let card = cards::open(&args.name)?;
    let curves = flashbench::curves_of(&card.profile, args.seed).map_err(Failure::input)?;
    if let Some(path) = &args.plot {
        write_whole(
            path,
            whichfs_report::curves_svg(&card.name, &curves).as_bytes(),
        )?;
    }
    if args.json {
        output::text_line(whichfs_logs::json_text(&card.name, &curves).trim_end())?;
    } else if args.flashbench {
        output::text_line(whichfs_logs::flashbench_text(&curves).trim_end())?;
    } else {
        output::text_line(&whichfs_report::curves_text(&card.name, &curves))?;
    }
    Ok(0)
}
