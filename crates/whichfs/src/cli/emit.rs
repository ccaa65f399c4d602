//! Arguments of `whichfs emit`.

use crate::commands;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::time::Duration;
use whichfs_units::arguments;

#[derive(Debug, Subcommand)]
pub enum EmitCommand {
    /// Print a job definition of LAVA that runs a study on the card of a board.
    Lava(LavaArgs),
}

#[derive(Debug, Args)]
#[command(after_help = commands::emit::EXAMPLES)]
pub struct LavaArgs {
    /// Study with trials: a name (`whichfs study list`).
    #[arg(value_name = "NAME")]
    pub study: String,
    /// The study's quick form.
    #[arg(long)]
    pub quick: bool,
    /// LAVA's device type of the board.
    #[arg(long, value_name = "TYPE")]
    pub device_type: String,
    /// Card on the board, or a directory of a mounted filesystem there.
    #[arg(long, value_name = "DEV|DIR")]
    pub on: String,
    /// Erase the card with this ID; `whichfs study run --on DEV --dry-run` on the board shows it.
    #[arg(long, value_name = "ID")]
    pub destroy: Option<String>,
    /// Begin no trial after this time: 90s, 10m, 2h.
    #[arg(long, value_name = "TIME", default_value = "2h", value_parser = arguments::duration)]
    pub budget: Duration,
    /// Command line that the board runs before, such as one that installs whichfs; given once for
    /// each.
    #[arg(long, value_name = "CMD")]
    pub setup: Vec<String>,
    /// File with a YAML list of LAVA's actions that deploy and boot the board; without, LAVA
    /// reaches it by ssh.
    #[arg(long, value_name = "FILE")]
    pub actions: Option<PathBuf>,
}
