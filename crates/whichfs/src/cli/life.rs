//! Arguments of `card identify` and `card life`.

use crate::commands;
use clap::Args;
use std::path::PathBuf;
use whichfs_units::arguments;

#[derive(Debug, Args)]
#[command(after_help = commands::life::EXAMPLES)]
pub struct LifeArgs {
    /// Card: a name (`whichfs card list`) or a profile or knowledge file.
    #[arg(value_name = "NAME|FILE")]
    pub name: String,
    /// Bytes that reach the card in a day; with --fs, bytes that programs write into files.
    #[arg(long, value_name = "BYTES", value_parser = arguments::bytes,
          required_unless_present = "fs")]
    pub per_day: Option<u64>,
    /// Under this filesystem, 80 % full: its write amplification is measured in the lab.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["block", "order", "span"])]
    pub fs: Option<String>,
    /// What is written there: a need with a long run, or its workload.
    #[arg(
        long = "for",
        value_name = "NEED|WORKLOAD",
        default_value = "logger",
        requires = "fs"
    )]
    pub needs: String,
    /// How often a day the need's workload runs, in place of --per-day; default: 1.
    #[arg(long, value_name = "N", requires = "fs", conflicts_with = "per_day",
          value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub times_a_day: Option<u64>,
    /// Size of a write.
    #[arg(long, value_name = "BYTES", default_value = "4K",
          value_parser = arguments::request_bytes)]
    pub block: u64,
    /// Order of the writes: each anywhere in the span, or each after the last.
    #[arg(long, value_name = "ORDER", default_value = "random",
          value_parser = ["random", "sequential"])]
    pub order: String,
    /// Part of the card, from its beginning, that is written; default: all.
    #[arg(long, value_name = "BYTES", value_parser = arguments::bytes)]
    pub span: Option<u64>,
    /// Seed of the places, or of the trial.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Run the trial again, even if the store has it.
    #[arg(long, requires = "fs")]
    pub fresh: bool,
    /// One JSON document on standard output, nothing else.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `card identify`.
#[derive(Debug, Args)]
pub struct IdentifyArgs {
    /// The card's disk.
    #[arg(value_name = "DEV")]
    pub device: PathBuf,
    /// What `whichfs probe --json` measured on it: its marks against that.
    #[arg(long, value_name = "PROBE.json")]
    pub measured: Option<PathBuf>,
    /// Bytes that reach the card in a day: years that it has left, as a range (needs --card).
    #[arg(long, value_name = "BYTES", value_parser = arguments::bytes, requires = "card")]
    pub per_day: Option<u64>,
    /// Profile like this card, for --per-day: a name (`whichfs card list`) or a file.
    #[arg(long, value_name = "NAME|FILE")]
    pub card: Option<String>,
    /// One JSON document on standard output, nothing else.
    #[arg(long)]
    pub json: bool,
}
