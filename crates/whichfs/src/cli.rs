//! The command line: one definition gives parsing, help and the checks on it.
//!
//! tidy: long: the commands and the options that several of them share

mod crash;
#[cfg(test)]
mod documents;
mod emit;
mod format;
mod here;
mod json;
mod lab;
mod life;
mod manual;
mod report;
mod store;
mod study;

pub use crash::{
    CrashArgs, CrashCommand, CrashCutArgs, CrashImportArgs, CrashPlanArgs, CutCount, CutDuring,
    MinimiseArgs, PowerArg, ReplayArgs, SeriesArgs,
};

use crate::commands;
use clap::builder::ArgPredicate;
use clap::{Args, Parser, Subcommand};
pub use emit::{EmitCommand, LavaArgs};
pub use format::{CheckArgs, FormatArgs, ImageArgs};
pub use here::{ChooseHereArgs, HereArgs};
pub use json::{may_want_json, wants_json};
pub use lab::{ExecArgs, KernelArgs, LabCommand};
pub use life::{IdentifyArgs, LifeArgs};
pub use manual::ManualCommand;
pub use report::{CardRankArgs, ReportArgs};
use std::path::PathBuf;
pub use store::{
    CacheCommand, CacheGcArgs, FilterArgs, NeedCommand, NeedNewArgs, StoreArgs, StoreCommand,
    StoreExportArgs, StoreGcArgs, StoreImportArgs, StoreMergeArgs, TrialArgs, TrialCommand,
    TrialListArgs, TrialRunArgs,
};
pub use study::{
    ClaimsArgs, StudyArgs, StudyCommand, StudyPlanArgs, StudyShowArgs, StudyTrialsArgs,
};
use whichfs_engine::board;
use whichfs_engine::cards::{self, CardState};
use whichfs_engine::trial_cache::now_unix;
use whichfs_report::RunStamp;
use whichfs_units::arguments;

const EXAMPLES: &str = "\
Examples:
  whichfs choose                          which filesystem for a root filesystem on an A1 card
  whichfs choose --for logger --card class4-4gb
  whichfs choose --for exchange --json    for a program
  whichfs lab exec --card a1-32gb --fs f2fs -- bonnie++ -u root -d . -s 0 -n 1
  whichfs doctor                          what is missing on this machine, and the remedy

Exit status: 0 done, 1 the answer is no, 2 bad usage or input, 3 the environment lacks
something, 4 a trial failed (of `choose` only if nobody is left; a verdict that stands names those
that failed, and the status is 0), 130 interrupted.";

/// Which filesystem, tuned how, should I use on this SD card, eMMC or USB stick, for my work?
#[derive(Debug, Parser)]
#[command(name = "whichfs", version, after_help = EXAMPLES, max_term_width = 100)]
pub struct Cli {
    /// Tell only the answer and errors: no progress, no notes.
    #[arg(
        long,
        short,
        global = true,
        conflicts_with = "verbose",
        display_order = 1000
    )]
    pub quiet: bool,
    /// Tell everything: a line for each trial, notes and summaries in full.
    #[arg(long, short, global = true, display_order = 1000)]
    pub verbose: bool,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Decide: run all candidates on a modelled card, print the verdict, write a report.
    Choose(Box<ChooseArgs>),
    /// The lab itself: run any program in it, or look at its kernel.
    #[command(subcommand)]
    Lab(LabCommand),
    /// Cut the power of a modelled card and see what is left.
    #[command(subcommand)]
    Crash(CrashCommand),
    /// Experiments that ship as files: filesystems, mounts, faults and workloads compared.
    #[command(subcommand)]
    Study(StudyCommand),
    /// Finished runs side by side: what changed beyond noise.
    Report(ReportArgs),
    /// Finished trials: what is behind a figure.
    #[command(subcommand)]
    Trial(TrialCommand),
    /// The store of finished trials.
    #[command(subcommand)]
    Store(StoreCommand),
    /// What can be made again on this machine, and the room that it takes.
    #[command(subcommand)]
    Cache(CacheCommand),
    /// What a filesystem is for: what counts of it, and what excludes it.
    #[command(subcommand, after_help = commands::need::help())]
    Need(NeedCommand),
    /// Modelled cards: look at them, fit one to measurements, attach one to this machine.
    #[command(subcommand)]
    Card(CardCommand),
    /// Find out what a card is like: page, AU, open AUs, rates, each with its confidence.
    Probe(ProbeArgs),
    /// Write partitions and tuned filesystems to a card or an image; files for image builders.
    Format(Box<FormatArgs>),
    /// Is what is on a card or in an image aligned and tuned, and what would it gain?
    Check(CheckArgs),
    /// Make an image of a tuned filesystem with a directory's files in it, without root.
    Image(ImageArgs),
    /// The catalogue of filesystems.
    #[command(subcommand)]
    Fs(FsCommand),
    /// The computers around the card: their speed, and how it is known.
    #[command(subcommand)]
    Board(ShowCommand),
    /// What is measured: list workloads, show phases and parameters of one.
    #[command(subcommand)]
    Workload(ShowCommand),
    /// Job definitions for board labs.
    #[command(subcommand)]
    Emit(EmitCommand),
    /// Check what this machine has and say how to get what is missing.
    Doctor(JsonArgs),
    /// Man pages, completions of shells, the reference of all commands.
    #[command(subcommand, after_help = manual::EXAMPLES)]
    Manual(ManualCommand),
}

#[derive(Debug, Subcommand)]
pub enum ShowCommand {
    /// All of them, a line each.
    List(JsonArgs),
    /// One of them, whole.
    Show(NamedArgs),
}

#[derive(Debug, Subcommand)]
pub enum CardCommand {
    /// All of them, a line each.
    List(CardListArgs),
    /// One of them: its curves and all its figures.
    Show(NamedArgs),
    /// What flashbench would measure on it.
    Curves(CurvesArgs),
    /// Fit a profile to logs of flashbench, dd, iozone or fio.
    Fit(FitArgs),
    /// What a card in this machine says of itself: maker, date, AU, speed marks, wear.
    #[command(after_help = commands::identify::EXAMPLES)]
    Identify(IdentifyArgs),
    /// How long it lives under a load, as a range.
    Life(LifeArgs),
    /// Which one to buy: cards with their best filesystems, ranked for a need.
    Rank(CardRankArgs),
    /// Attach it to this machine as a block device, in real time (root).
    Attach(AttachArgs),
    /// Detach an attached card.
    Detach(DetachArgs),
    /// The cards that are attached, and what they have done.
    Attached(JsonArgs),
}

#[derive(Debug, Subcommand)]
pub enum FsCommand {
    /// All of them, a line each.
    List(JsonArgs),
    /// One of them: commands, tuning, limits, care, sources.
    Show(FsShowArgs),
    /// Why one is no candidate, or not for a need.
    #[command(after_help = commands::fs::why::EXAMPLES)]
    Why(FsWhyArgs),
    /// Two of them side by side: limits, tools, care.
    #[command(after_help = commands::fs::compare::EXAMPLES)]
    Compare(FsCompareArgs),
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
    /// Name, as `list` prints it (for a card or a board also a file).
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

#[derive(Debug, Args)]
pub struct FsWhyArgs {
    /// Any filesystem: a candidate, or one like zfs or jffs2.
    #[arg(value_name = "NAME")]
    pub name: String,
    /// The need that it is asked for: a name or a file.
    #[arg(long = "for", value_name = "NEED", default_value = "rootfs")]
    pub needs: String,
    /// Card, whose size is a limit too: a name or a profile file.
    #[arg(long, value_name = "CARD", default_value = cards::DEFAULT)]
    pub card: String,
    /// One JSON document on standard output, nothing else.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct FsCompareArgs {
    /// Name, as `fs list` prints it.
    #[arg(value_name = "NAME")]
    pub first: String,
    /// Filesystem to compare it with.
    #[arg(value_name = "NAME")]
    pub second: String,
    /// Also what is the same.
    #[arg(long)]
    pub all: bool,
    /// Say below the table where each line is written.
    #[arg(long)]
    pub sources: bool,
    /// One JSON document on standard output, nothing else.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct CardListArgs {
    /// Only cards whose name, title, bus or family contains this.
    #[arg(value_name = "TEXT")]
    pub pattern: Option<String>,
    /// Order of the lines.
    #[arg(long, value_enum, value_name = "KEY", default_value = "name")]
    pub sort: SortKey,
    /// One JSON document on standard output, nothing else.
    #[arg(long)]
    pub json: bool,
}

/// What `card list` sorts by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum SortKey {
    /// By name.
    Name,
    /// Capacity, smallest first.
    Capacity,
    /// Sequential write rate, fastest first.
    Write,
    /// Family, then name.
    Family,
}

#[derive(Debug, Args)]
#[command(after_help = commands::curves::EXAMPLES)]
pub struct CurvesArgs {
    /// Card: a name (`whichfs card list`) or a profile or knowledge file.
    #[arg(value_name = "NAME|FILE")]
    pub name: String,
    /// Seed of what the used card was written with.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Write a drawing (SVG) to this file.
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// Print what flashbench prints.
    #[arg(long, conflicts_with = "json")]
    pub flashbench: bool,
    /// One JSON document on standard output, in the form of flashbench.json, nothing else.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = commands::fit::EXAMPLES)]
pub struct FitArgs {
    /// Logs of flashbench (-a, -O, -f), dd, iozone or fio (JSON) of one card, each test in one of
    /// them, or curves in the form of `card curves --json`.
    #[arg(value_name = "LOG", required = true)]
    pub logs: Vec<PathBuf>,
    /// The run to fit, where a file holds several.
    #[arg(long, value_name = "NAME")]
    pub run: Option<String>,
    /// Fit only to the write curves at these block sizes in bytes, and tell the error on the rest.
    #[arg(long, value_name = "BYTES,…", value_delimiter = ',')]
    pub block_sizes: Vec<u64>,
    /// Write the profile to this file.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Write a drawing (SVG) of measured against modelled to this file.
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// Fit each run of the files and print a table (Markdown) of families and errors.
    #[arg(long, conflicts_with_all = ["run", "out", "plot", "json", "block_sizes"])]
    pub report: bool,
    /// Seed of what the used card was written with.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// One JSON document on standard output, nothing else.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = commands::attach::EXAMPLES)]
pub struct AttachArgs {
    /// Card: a name (`whichfs card list`) or a profile or knowledge file.
    #[arg(value_name = "NAME|FILE")]
    pub name: String,
    /// Capacity, if less than the card's: 512M, 2G.
    #[arg(long, value_name = "SIZE", value_parser = arguments::whole_mib::<16, { 1 << 20 }>)]
    pub size: Option<u64>,
    /// Speed of the card's time: a factor, or max to answer at once.
    #[arg(long, value_name = "FACTOR|max", default_value = "1.0")]
    pub speed: whichfs_attach::Speed,
    /// Run this shell command with the device in $WHICHFS_DEVICE, then detach.
    #[arg(long, value_name = "CMD")]
    pub run: Option<String>,
    /// State in which the card begins.
    #[arg(long, value_enum, value_name = "STATE", default_value = "used")]
    pub card_state: CardStateArg,
    /// Computer around the card: its queue limits are those of the device.
    #[arg(long, value_name = "NAME|FILE", default_value = board::DEFAULT)]
    pub board: String,
    /// Way of the requests to the card.
    #[arg(long, value_enum, value_name = "WAY", default_value = "auto")]
    pub transport: TransportArg,
    /// Memory for the card's contents; the rest goes to a file.
    #[arg(long, value_name = "SIZE", default_value = "512M",
          value_parser = arguments::whole_mib::<1, { 1 << 20 }>)]
    pub memory: u64,
    /// Seed of the card's use.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Print the figures as one JSON document at the end, nothing else on standard output.
    #[arg(long)]
    pub json: bool,
}

/// State in which a card begins a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum CardStateArg {
    /// All of it written once, then 5 % random overwrites.
    Used,
    /// Never written.
    Fresh,
    /// Used, and cut down to a small card that a trial can write several times over.
    Sustained,
}

impl From<CardStateArg> for CardState {
    fn from(state: CardStateArg) -> CardState {
        match state {
            CardStateArg::Used => CardState::Used,
            CardStateArg::Fresh => CardState::Fresh,
            CardStateArg::Sustained => CardState::Sustained,
        }
    }
}

/// Way from the kernel to an attached card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum TransportArg {
    /// ublk where the kernel has it, else fuse.
    Auto,
    /// A ublk device: Linux 6.5 or newer.
    Ublk,
    /// A loop device on a FUSE file: Linux 5.8 or newer.
    Fuse,
}

#[derive(Debug, Args)]
pub struct DetachArgs {
    /// Device, as `card attach` printed it; without it, all that dead processes left.
    #[arg(value_name = "DEVICE")]
    pub device: Option<String>,
    /// One JSON document on standard output, nothing else.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Default, Args)]
#[command(after_help = commands::probe::EXAMPLES)]
pub struct ProbeArgs {
    /// A modelled card (name or profile file), a block device, or a file on one.
    #[arg(value_name = "CARD|DEV|FILE", required_unless_present = "from")]
    pub target: Option<String>,
    /// Interpret a saved flashbench output instead of measuring.
    #[arg(long, value_name = "LOG",
          conflicts_with_all = ["target", "write", "destroy", "capacity", "put_back", "budget",
                                "resume", "save", "seed"])]
    pub from: Option<PathBuf>,
    /// The run of the log, where it holds several.
    #[arg(long, value_name = "NAME", requires = "from")]
    pub run: Option<String>,
    /// Write too. `preserve` puts back what was there, `destroy` does not and is faster.
    #[arg(long, value_enum, value_name = "HOW", num_args = 0..=1, require_equals = true,
          default_missing_value = "preserve")]
    pub write: Option<WriteHow>,
    /// Overwrite a device that holds a filesystem or a partition table: what it says of itself, as
    /// the refusal tells it (with --write=destroy).
    #[arg(long, alias = "confirm", value_name = "ID", requires = "write")]
    pub destroy: Option<String>,
    /// Check that the capacity is real (needs --write). What it overwrites is kept in a file
    /// until it is put back, so that not even a power cut loses it.
    #[arg(long, requires = "write", conflicts_with_all = ["budget", "save", "plot", "resume"])]
    pub capacity: bool,
    /// Put back what a --capacity check that was killed left overwritten (needs --write).
    #[arg(long, requires = "write",
          conflicts_with_all = ["budget", "save", "plot", "resume", "capacity"])]
    pub put_back: bool,
    /// Rates of block sizes from 512 B to 64 MiB, in order and at random, as dd's table; written
    /// too with --write. `whichfs report` sets the documents of several cards side by side.
    #[arg(long, conflicts_with_all = ["capacity", "put_back", "save", "plot", "resume", "from",
                                      "need", "flashbench_compatible"])]
    pub sweep: bool,
    /// A CSV table on standard output.
    #[arg(long, requires = "sweep", conflicts_with = "json")]
    pub csv: bool,
    /// Most that it may cost: bytes written (640M) and time (30m), either or both.
    #[arg(long, value_name = "BYTES,TIME", value_delimiter = ',')]
    pub budget: Vec<String>,
    /// Measure what decides this need, and no longer than the answer can change. Trials in the lab
    /// run first, on cards of that size.
    #[arg(long = "for", value_name = "NEED", conflicts_with_all = ["from", "capacity", "put_back"])]
    pub need: Option<String>,
    /// Keep what is measured in this file, and go on from it if it is there. It is of one card
    /// (but cards of one size in one USB reader look alike).
    #[arg(long, value_name = "FILE")]
    pub resume: Option<PathBuf>,
    /// Write a profile of the card for the lab to this file.
    #[arg(long, value_name = "PROFILE")]
    pub save: Option<PathBuf>,
    /// Write a drawing (SVG) of the evidence to this file.
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// Print what `flashbench -a` would print.
    #[arg(long, conflicts_with_all = ["json", "from", "write", "save", "plot", "resume", "budget"])]
    pub flashbench_compatible: bool,
    /// Seed of all places and orders.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// One JSON document on standard output, nothing else.
    #[arg(long)]
    pub json: bool,
}

/// What happens to the data under a probe that writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum WriteHow {
    /// Each place gets its data back at once.
    Preserve,
    /// Random bytes stay; refused where there are data, unless --destroy names the device.
    Destroy,
}

/// What a run is called by.
#[derive(Clone, Debug, Default, Args)]
pub struct RunArgs {
    /// Print this in the files of the report: operator=NAME, requirement=ID, …; may be repeated.
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = arguments::key_value)]
    pub labels: Vec<(String, String)>,
}

impl RunArgs {
    /// Labels, and the time of now.
    pub fn stamp(&self) -> RunStamp {
        RunStamp {
            made_unix: now_unix(),
            labels: self.labels.clone(),
        }
    }
}

/// The place of a trial: card, computer, clock.
#[derive(Clone, Debug, Args)]
pub struct PlaceArgs {
    /// Card: a name (`whichfs card list`) or a profile or knowledge file; for `choose` also a
    /// device.
    #[arg(long, value_name = "NAME|FILE", default_value = cards::DEFAULT)]
    pub card: String,
    #[command(flatten)]
    pub machine: MachineArgs,
}

/// The place of a trial but for its card.
#[derive(Clone, Debug, Args)]
pub struct MachineArgs {
    /// State in which the card begins.
    #[arg(long, value_enum, value_name = "STATE", default_value = "used")]
    pub card_state: CardStateArg,
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

#[derive(Clone, Debug, Args)]
#[command(after_help = commands::choose::EXAMPLES)]
pub struct ChooseArgs {
    #[command(flatten)]
    pub place: PlaceArgs,
    /// What it is for: rootfs, rootfs-readonly, exchange, logger, packages, camera, video,
    /// database, ota, appstart, fio, or a need file.
    #[arg(
        long = "for",
        value_name = "NEED",
        default_value = "rootfs",
        default_value_ifs([
            ("fio", ArgPredicate::IsPresent, "fio-job"),
            ("command", ArgPredicate::IsPresent, "command"),
        ])
    )]
    pub needs: String,
    /// Change one thing of the need, for example power_loss=tolerated or windows=yes.
    #[arg(long = "need", value_name = "KEY=VALUE")]
    pub need: Vec<String>,
    /// Only these filesystems, separated by commas.
    #[arg(
        long = "fs",
        alias = "candidates",
        value_name = "NAME,…",
        value_delimiter = ','
    )]
    pub candidates: Vec<String>,
    /// Also filesystems whose journal is on a second card: a name, or a profile file.
    #[arg(long, value_name = "CARD", conflicts_with_all = ["on_device", "confirm", "cuts", "emit"])]
    pub second_card: Option<String>,
    /// Most seeds for those near the leader, from the fourth on for those within 3 % of it; all
    /// others get one [default: 6, on a device 3].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100))]
    pub seeds: Option<u64>,
    /// Seed of the first trial of each candidate; the others follow it.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub first_seed: u64,
    /// Size of the generated tree or data, where the workload has one: 64M, 1G.
    #[arg(long, value_name = "SIZE", value_parser = arguments::whole_mib::<1, 65_536>)]
    pub size: Option<u64>,
    /// Use this directory's files instead of a generated tree.
    #[arg(long, value_name = "DIR")]
    pub tree: Option<PathBuf>,
    /// Measure with the real fio and this job file; its files go to the card under test.
    #[arg(long, value_name = "FILE")]
    pub fio: Option<PathBuf>,
    /// Measure the time of this command line, which /bin/sh runs on the mounted card.
    #[arg(
        long,
        value_name = "CMD",
        conflicts_with = "fio",
        allow_hyphen_values = true
    )]
    pub command: Option<String>,
    /// Cut the power so often under each candidate that could win; default: not at all, or 20
    /// times with --need power_loss=none.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub cuts: Option<u64>,
    /// Trials at once; default: one for each core.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=256))]
    pub jobs: Option<u64>,
    /// Directory for report.html, verdict.json, results.csv, .json and .md, and junit.xml
    /// [default: a new one, whichfs-report/TIME, to which whichfs-report/latest leads].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub run: RunArgs,
    /// File of finished trials; default: in the user's data directory.
    #[arg(long, value_name = "FILE")]
    pub store: Option<PathBuf>,
    /// Run every trial again, even those the store has.
    #[arg(long)]
    pub fresh: bool,
    /// Write files for image builders (Yocto, genimage, systemd-repart, RAUC …) with the best
    /// candidate into this directory.
    #[arg(long, value_name = "DIR")]
    pub emit: Option<PathBuf>,
    /// Layout for --emit: a name or a file, as for `whichfs format`.
    #[arg(long, value_name = "NAME|FILE", requires = "emit")]
    pub layout: Option<String>,
    #[command(flatten)]
    pub device: ChooseHereArgs,
    /// One JSON document on standard output, nothing else.
    #[arg(long)]
    pub json: bool,
}

impl ChooseArgs {
    /// The device to measure on; none for the lab.
    pub fn measured_on(&self) -> Option<&str> {
        let named = self.device.here.then_some(self.place.card.as_str());
        self.device.on.as_deref().or(named)
    }
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
