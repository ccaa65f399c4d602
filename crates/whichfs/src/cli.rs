//! The command line: one definition gives parsing, help and the checks on it.

use crate::cards::{self, CardState};
use crate::{board, commands};
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  whichfs choose                          which filesystem for a root filesystem on an A1 card
  whichfs choose --for logger --card class4-4gb
  whichfs choose --for exchange --json    for a program
  whichfs lab exec --card a1-32gb --fs f2fs -- bonnie++ -u root -d . -s 0 -n 1
  whichfs doctor                          what is missing on this machine, and the remedy

Exit status: 0 done, 1 the answer is no, 2 bad usage or input, 3 the environment lacks
something, 4 a trial failed, 130 interrupted.";

/// Which filesystem, tuned how, should I use on this SD card, eMMC or USB stick, for my work?
#[derive(Debug, Parser)]
#[command(name = "whichfs", version, after_help = EXAMPLES, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Decide: run all candidates on a modelled card, print the verdict, write a report.
    Choose(ChooseArgs),
    /// The lab itself: run any program in it, or look at its kernel.
    #[command(subcommand)]
    Lab(LabCommand),
    /// Modelled cards.
    #[command(subcommand)]
    Card(ShowCommand),
    /// The catalogue of filesystems.
    #[command(subcommand)]
    Fs(FsCommand),
    /// Workloads.
    #[command(subcommand)]
    Workload(ShowCommand),
    /// Check what this machine has and say how to get what is missing.
    Doctor(JsonArgs),
}

#[derive(Debug, Subcommand)]
pub enum LabCommand {
    /// Run a program of this machine on a formatted, mounted card in virtual time.
    Exec(ExecArgs),
    /// Show the lab kernel, or build it.
    Kernel(KernelArgs),
}

#[derive(Debug, Subcommand)]
pub enum ShowCommand {
    /// All of them, a line each.
    List(JsonArgs),
    /// One of them, whole.
    Show(NamedArgs),
}

#[derive(Debug, Subcommand)]
pub enum FsCommand {
    /// All of them, a line each.
    List(JsonArgs),
    /// One of them: commands, tuning, limits, sources.
    Show(FsShowArgs),
}

/// Output for programs.
#[derive(Debug, Args)]
pub struct JsonArgs {
    /// One JSON document on standard output, nothing else.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct NamedArgs {
    /// Name, as `list` prints it (for a card also a profile file).
    #[arg(value_name = "NAME")]
    pub name: String,
    /// One JSON document on standard output, nothing else.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct FsShowArgs {
    /// Name of the filesystem, as `fs list` prints it.
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Card to tune for: a name or a profile file.
    #[arg(long, value_name = "CARD", default_value = cards::DEFAULT)]
    pub card: String,
    /// One JSON document on standard output, nothing else.
    #[arg(long)]
    pub json: bool,
}

/// The place of a trial: card, computer, clock.
#[derive(Debug, Args)]
pub struct PlaceArgs {
    /// Card: a name (`whichfs card list`) or a profile file.
    #[arg(long, value_name = "NAME|FILE", default_value = cards::DEFAULT)]
    pub card: String,
    /// State in which the card begins.
    #[arg(long, value_enum, value_name = "STATE", default_value = "used")]
    pub card_state: CardState,
    /// Computer around the card: a name or a board file.
    #[arg(long, value_name = "NAME|FILE", default_value = board::DEFAULT)]
    pub board: String,
    /// Clock: `cpu` (device time and the kernel's CPU at the board's speed), `cpu:BOARD`, or
    /// `device` (CPU is free).
    #[arg(long, value_name = "CLOCK", default_value = "cpu")]
    pub clock: String,
    /// Wall time after which a guest is stopped, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 300,
          value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub wall_limit: u64,
}

#[derive(Debug, Args)]
#[command(after_help = commands::choose::EXAMPLES)]
pub struct ChooseArgs {
    #[command(flatten)]
    pub place: PlaceArgs,
    /// What it is for: rootfs, rootfs-readonly, exchange, logger, or a need file.
    #[arg(long = "for", value_name = "NEED", default_value = "rootfs")]
    pub needs: String,
    /// Change one thing of the need, for example power_loss=tolerated or windows=yes.
    #[arg(long = "need", value_name = "KEY=VALUE")]
    pub need: Vec<String>,
    /// Only these candidates, separated by commas.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub candidates: Vec<String>,
    /// Most seeds for those near the leader; all others get one.
    #[arg(long, value_name = "N", default_value_t = 3,
          value_parser = clap::value_parser!(u64).range(1..=100))]
    pub seeds: u64,
    /// First seed.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub first_seed: u64,
    /// Size of the generated tree or data in MiB, where the workload has one.
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=65_536))]
    pub size: Option<u64>,
    /// Use this directory's files instead of a generated tree.
    #[arg(long, value_name = "DIR")]
    pub tree: Option<PathBuf>,
    /// Trials at once; default: one for each core.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=256))]
    pub jobs: Option<u64>,
    /// Directory for report.html and results.csv.
    #[arg(long, value_name = "DIR", default_value = "whichfs-report")]
    pub out: PathBuf,
    /// File of finished trials; default: in the user's data directory.
    #[arg(long, value_name = "FILE")]
    pub store: Option<PathBuf>,
    /// Run every trial again, even those the store has.
    #[arg(long)]
    pub fresh: bool,
    /// One JSON document on standard output, nothing else.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = commands::exec::EXAMPLES)]
pub struct ExecArgs {
    #[command(flatten)]
    pub place: PlaceArgs,
    /// Filesystem to make and mount, as `whichfs fs list` prints it.
    #[arg(long, value_name = "NAME")]
    pub fs: String,
    /// Use this mkfs command line instead of the catalogue's; {device} stands for the device.
    #[arg(long, value_name = "COMMAND", allow_hyphen_values = true)]
    pub mkfs: Option<String>,
    /// Use these mount options instead of the catalogue's.
    #[arg(long, value_name = "OPTIONS")]
    pub mount: Option<String>,
    /// Seed of the card's parameters and of all randomness in the guest.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// One JSON document on standard output, nothing else.
    #[arg(long)]
    pub json: bool,
    /// Program and arguments; the working directory is the mounted card.
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<String>,
}

#[derive(Debug, Args)]
pub struct KernelArgs {
    /// Build it if the cache does not have it (needs the source tree's kernel/build).
    #[arg(long)]
    pub build: bool,
    /// One JSON document on standard output, nothing else.
    #[arg(long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_holds_together() {
        Cli::command().debug_assert();
    }
}
