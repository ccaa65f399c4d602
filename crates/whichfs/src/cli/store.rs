//! Arguments of `whichfs trial`, `store`, `cache` and `need`.

use super::{JsonArgs, NamedArgs};
use crate::commands;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use whichfs_units::arguments;

#[derive(Debug, Subcommand)]
pub enum TrialCommand {
    /// Finished trials, a line each.
    List(TrialListArgs),
    /// One trial: what decided it, its phases and figures, the command that runs it again.
    Show(TrialArgs),
    /// Run planned trials (`study plan`) and print their records, a JSON line each.
    Run(TrialRunArgs),
    /// Show one trial and delete it from the store: it will be run again when it is asked for.
    Forget(TrialArgs),
}

#[derive(Debug, Subcommand)]
pub enum StoreCommand {
    /// How many trials there are, of which versions, workloads and cards.
    Info(StoreArgs),
    /// Is the file whole, and is every trial what its id says? Exit code 1 if not.
    Check(StoreArgs),
    /// Put the trials of other stores into this one.
    Merge(StoreMergeArgs),
    /// Put records of trials that ran elsewhere (`trial run`) into this one; exit status 2 if some
    /// are refused, 1 if trials of the plan are missing.
    Import(StoreImportArgs),
    /// Put trials into a new store, to give them to somebody, or their figures into a table.
    Export(StoreExportArgs),
    /// Delete trials that no verdict of this version uses.
    Gc(StoreGcArgs),
}

#[derive(Debug, Subcommand)]
pub enum CacheCommand {
    /// What is in it, and how large it is.
    #[command(after_help = commands::cache::EXAMPLES)]
    List(JsonArgs),
    /// Remove what was not used for the longest time, until it has at most a size.
    #[command(after_help = commands::cache::EXAMPLES)]
    Gc(CacheGcArgs),
}

#[derive(Debug, Subcommand)]
pub enum NeedCommand {
    /// All of them, a line each.
    List(JsonArgs),
    /// One of them: weights and rules, each with its reason.
    Show(NamedArgs),
    /// Print a need file of your own that begins as a shipped one, to be changed.
    New(NeedNewArgs),
}

/// File of the store, and output for programs.
#[derive(Debug, Args)]
pub struct StoreArgs {
    /// File of finished trials; default: in the user's data directory.
    #[arg(long, value_name = "FILE")]
    pub store: Option<PathBuf>,
    /// One JSON document on standard output, nothing else.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = commands::trial::EXAMPLES)]
pub struct TrialArgs {
    /// Its id, or the first digits of it.
    #[arg(value_name = "ID")]
    pub id: String,
    #[command(flatten)]
    pub of: StoreArgs,
}

/// Which trials: all that every given option lets through.
#[derive(Debug, Args)]
pub struct FilterArgs {
    /// Only of this filesystem.
    #[arg(long, value_name = "NAME")]
    pub fs: Option<String>,
    /// Only of this card.
    #[arg(long, value_name = "NAME")]
    pub card: Option<String>,
    /// Only of this board.
    #[arg(long, value_name = "NAME")]
    pub board: Option<String>,
    /// Only of this workload.
    #[arg(long, value_name = "NAME")]
    pub workload: Option<String>,
    /// Only of this seed.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Only those that failed.
    #[arg(long)]
    pub failed: bool,
}

#[derive(Debug, Args)]
#[command(after_help = commands::trial::EXAMPLES)]
pub struct TrialListArgs {
    #[command(flatten)]
    pub filter: FilterArgs,
    #[command(flatten)]
    pub of: StoreArgs,
}

#[derive(Debug, Args)]
#[command(after_help = commands::store::EXAMPLES)]
pub struct StoreMergeArgs {
    /// Stores whose trials are taken over.
    #[arg(value_name = "FILE", required = true)]
    pub others: Vec<PathBuf>,
    #[command(flatten)]
    pub of: StoreArgs,
}

#[derive(Debug, Args)]
#[command(after_help = commands::trial::RUN_EXAMPLES)]
pub struct TrialRunArgs {
    /// File with planned trials, one a line; `-` is standard input.
    #[arg(value_name = "FILE|-", default_value = "-")]
    pub plan: PathBuf,
    /// Trials at once.
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u64).range(1..=256))]
    pub jobs: u64,
    /// Wall time after which a trial is stopped, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = commands::study::WALL_LIMIT_S,
          value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub wall_limit: u64,
    /// Run nothing: print the ids of the trials that this machine would make as they were planned.
    #[arg(long)]
    pub check: bool,
}

#[derive(Debug, Args)]
#[command(after_help = commands::store::EXAMPLES)]
pub struct StoreImportArgs {
    /// Files with records, one a line, or logs of LAVA; `-` is standard input.
    #[arg(value_name = "FILE|-", required = true)]
    pub records: Vec<PathBuf>,
    /// Take only records of this plan, and count the trials that are missing.
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,
    /// Take also records of other versions of whichfs.
    #[arg(long)]
    pub other_versions: bool,
    #[command(flatten)]
    pub of: StoreArgs,
}

#[derive(Debug, Args)]
#[command(after_help = commands::store::EXAMPLES)]
pub struct StoreExportArgs {
    /// The new store; a table of all figures if its name ends in .csv or .json; `-` prints
    /// records, a JSON line each, for `store import`.
    #[arg(value_name = "FILE|-")]
    pub out: PathBuf,
    #[command(flatten)]
    pub filter: FilterArgs,
    #[command(flatten)]
    pub of: StoreArgs,
}

#[derive(Debug, Args)]
#[command(after_help = commands::store::EXAMPLES)]
#[group(id = "unwanted", args = ["failed", "other_versions"], multiple = true, required = true)]
pub struct StoreGcArgs {
    /// Trials that failed.
    #[arg(long)]
    pub failed: bool,
    /// Trials of other versions of whichfs, which this one does not reuse.
    #[arg(long)]
    pub other_versions: bool,
    /// Only count them.
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub of: StoreArgs,
}

#[derive(Debug, Args)]
pub struct CacheGcArgs {
    /// Size that it may keep.
    #[arg(long, value_name = "SIZE", default_value = "5G", value_parser = arguments::size)]
    pub limit: u64,
    /// One JSON document on standard output, nothing else.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct NeedNewArgs {
    /// Name of the new need: lower-case letters, digits and hyphens.
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Shipped need that it begins as.
    #[arg(long, value_name = "NEED", default_value = "rootfs")]
    pub from: String,
    /// Write it to this file.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}
