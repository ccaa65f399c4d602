//! `whichfs fs compare`: two filesystems side by side.

use crate::cli::FsCompareArgs;
use crate::failure::{Failure, Outcome};
use crate::output;
use whichfs_report::documents::fs::{fs_comparison, fs_comparison_text};

/// Examples in the help text.
pub const EXAMPLES: &str = "\
Examples:
  whichfs fs compare ext4 f2fs           only what differs
  whichfs fs compare vfat exfat --all --sources";

/// Runs the command.
pub fn run(args: &FsCompareArgs) -> Outcome<u8> {
    let find = |name: &str| whichfs_fs::find(name).map_err(Failure::input);
    let pair = [find(&args.first)?, find(&args.second)?];
    let lines = fs_comparison(pair, args.all);
    match args.json {
        true => output::list(&lines)?,
        false => {
            let names = pair.map(|one| one.name);
            let text = fs_comparison_text(&lines, names, args.sources, output::width());
            output::text(&text)?;
        }
    }
    Ok(0)
}
