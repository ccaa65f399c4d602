//! Arguments of `whichfs crash`.

use super::{HereArgs, JsonArgs, PlaceArgs, RunArgs};
use crate::commands;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::time::Duration;
use whichfs_crash::{Harm, ShareBound};
use whichfs_units::arguments;

#[derive(Debug, Subcommand)]
pub enum CrashCommand {
    /// Cut the power at many instants of one run; mount, read, check and repair each image.
    Run(Box<CrashArgs>),
    /// Print the cuts of a run as JSON lines for other machines: `crash cut` makes them, `crash
    /// import` takes their records.
    Plan(Box<CrashPlanArgs>),
    /// Make planned cuts; print a record of each, and keep nothing.
    Cut(CrashCutArgs),
    /// Keep records of cuts, each once, so that `crash run` finds them.
    Import(CrashImportArgs),
    /// Show one cut again: what reached the card, what was lost of it, what became of each file.
    Replay(ReplayArgs),
    /// Make a failing cut small: few operations, few lost writes, as a file that shows it again.
    #[command(alias = "minimize")]
    Minimise(MinimiseArgs),
    /// List what a card may do to data, and what is known of it.
    #[command(after_help = commands::crash::FAULTS_EXAMPLES)]
    Faults(JsonArgs),
}

/// Which cuts of which run.
#[derive(Debug, Args)]
pub struct SeriesArgs {
    #[command(flatten)]
    pub place: PlaceArgs,
    /// Filesystems, separated by commas, as `whichfs fs list` prints them.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', required = true)]
    pub fs: Vec<String>,
    /// Use these mount options instead of the catalogue's; with a plus before them (+sync) beside
    /// those.
    #[arg(long, value_name = "OPTIONS|+OPTIONS")]
    pub mount: Option<String>,
    /// Workload that is cut (`whichfs workload list`).
    #[arg(long, value_name = "NAME", default_value = "rootfs")]
    pub workload: String,
    /// Cut these operations instead of a workload's: one JSON object a line (docs/crash.md).
    #[arg(long, value_name = "FILE", conflicts_with = "workload")]
    pub script: Option<PathBuf>,
    /// Size of its data, where it has one.
    #[arg(long, value_name = "SIZE", default_value = "32M",
          value_parser = arguments::whole_mib::<16, 4096>)]
    pub size: u64,
    /// Size of the partition.
    #[arg(long, value_name = "SIZE", default_value = "512M",
          value_parser = arguments::whole_mib::<16, { 1 << 20 }>)]
    pub partition: u64,
    /// Number of random cuts; all: each boundary between requests, and one inside each write;
    /// end: one, when the run has ended.
    #[arg(long, value_name = "N|all|end", default_value = "100")]
    pub cuts: CutCount,
    /// As many random cuts as show that less than this share of cuts harms anything, if none does:
    /// 'p<1%' takes 381.
    #[arg(long, value_name = "p<SHARE", conflicts_with_all = ["cuts", "at"])]
    pub until: Option<ShareBound>,
    /// Cut at this request only: before, inside and after it.
    #[arg(long, value_name = "REQUEST", conflicts_with = "cuts")]
    pub at: Option<usize>,
    /// Only during this: `collection` (the card copies live data of an AU) or `mount` (the new
    /// filesystem is mounted for the first time; --recovery cuts the mounts after a cut).
    #[arg(long, value_enum, value_name = "WHAT")]
    pub during: Option<CutDuring>,
    /// Cut the power so often again, each time while the filesystem is mounted and recovers.
    #[arg(long, value_name = "TIMES", default_value_t = 0,
          value_parser = clap::value_parser!(u64).range(0..=9))]
    pub recovery: u64,
    /// Damage beyond what the card's profile says, separated by commas.
    #[arg(long, value_name = "FAULT,…", value_delimiter = ',')]
    pub faults: Vec<String>,
    /// Leave out the filesystem's own checker and repair.
    #[arg(long)]
    pub no_fsck: bool,
    /// Seed of the workload, the card and the cuts.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

#[derive(Debug, Args)]
#[command(after_help = commands::crash::help())]
pub struct CrashArgs {
    #[command(flatten)]
    pub series: SeriesArgs,
    /// Exit with 1 if a cut did this: broken (promise), no-mount, repair, lost, read-error;
    /// separated by commas.
    #[arg(long, value_name = "HARM,…", value_delimiter = ',', default_value = "broken",
          value_parser = harm)]
    pub fail_on: Vec<Harm>,
    /// Only the cut of this number.
    #[arg(long, value_name = "NUMBER", conflicts_with = "until")]
    pub only: Option<u64>,
    /// Write the image of that cut (the partition) to this file.
    #[arg(long, value_name = "FILE")]
    pub keep: Option<PathBuf>,
    /// Judge this image (of the partition) instead of what the card would hold after that cut.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["keep", "recovery", "fresh"])]
    pub image: Option<PathBuf>,
    /// Write report.html, junit.xml, results.csv and outcomes.csv to this directory.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub run: RunArgs,
    /// Make all cuts again, even those of an interrupted or finished series.
    #[arg(long)]
    pub fresh: bool,
    /// Cuts checked at once; default: one for each core.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=256))]
    pub jobs: Option<u64>,
    /// One JSON document on standard output, nothing else.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub on: OnArgs,
    #[command(flatten)]
    pub here: HereArgs,
}

#[derive(Debug, Args)]
#[command(after_help = commands::crash::PLAN_EXAMPLES)]
pub struct CrashPlanArgs {
    #[command(flatten)]
    pub series: SeriesArgs,
    /// Cuts in a line: for each line the workload runs once more, unless lines of one run follow
    /// each other.
    #[arg(long, value_name = "N", default_value_t = 25,
          value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub per_line: u64,
    /// Only the cuts that are not kept here.
    #[arg(long)]
    pub only_missing: bool,
}

#[derive(Debug, Args)]
#[command(after_help = commands::crash::CUT_EXAMPLES)]
pub struct CrashCutArgs {
    /// Lines of `crash plan`; default: standard input.
    #[arg(value_name = "FILE", default_value = "-")]
    pub plan: PathBuf,
    /// Cuts checked at once; default: one for each core.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=256))]
    pub jobs: Option<u64>,
}

#[derive(Debug, Args)]
#[command(after_help = commands::crash::CUT_EXAMPLES)]
pub struct CrashImportArgs {
    /// Records that `crash cut` printed; `-`: standard input.
    #[arg(value_name = "FILE", required = true)]
    pub records: Vec<PathBuf>,
    /// Take only cuts of this plan, and count those that are missing.
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,
    /// One JSON document on standard output, nothing else.
    #[arg(long)]
    pub json: bool,
}

/// What `--fail-on` names.
fn harm(text: &str) -> Result<Harm, String> {
    let mut all = Harm::ALL.into_iter();
    all.find(|harm| harm.name() == text).ok_or_else(|| {
        let names = Harm::ALL.map(Harm::name);
        format!("expected {}", names.join(", "))
    })
}

impl SeriesArgs {
    /// The cuts that are asked for.
    pub fn count(&self) -> CutCount {
        match self.until {
            Some(bound) => CutCount::Number(bound.clean_cuts_needed(0, 0)),
            None => self.cuts,
        }
    }
}

/// A real device whose power is cut.
#[derive(Debug, Args)]
#[command(next_help_heading = "On a real device")]
pub struct OnArgs {
    /// Cut the power of a board, with the workload on this device of it, instead of the lab's:
    /// ssh://USER@HOST/dev/mmcblk0, or labgrid:PLACE/dev/mmcblk0. All that is on it is lost
    /// (--destroy).
    #[arg(long, value_name = "ssh://…|labgrid:…", conflicts_with_all = [
        "card", "card_state", "board", "clock", "at", "during", "recovery", "faults", "only",
        "keep", "image", "jobs"])]
    pub on: Option<String>,
    /// What ends the board. With watchdog and sysrq its card may keep its supply, and what its
    /// cache holds.
    #[arg(long, value_enum, value_name = "WAY", requires = "on")]
    pub power: Option<PowerArg>,
    /// This command, run here by /bin/sh, takes the board's power (a switched socket); if no other
    /// gives it, it gives it again itself.
    #[arg(long, value_name = "CMD", requires = "on", conflicts_with = "power")]
    pub power_command: Option<String>,
    /// This command gives the power again.
    #[arg(long, value_name = "CMD", requires = "power_command")]
    pub power_on_command: Option<String>,
    /// Time without power between the two commands, or of --power labgrid: 5s, 1m; default: 5s.
    #[arg(long, value_name = "TIME", value_parser = arguments::duration, requires = "on")]
    pub power_off_time: Option<Duration>,
    /// Print every command for the device and write nothing.
    #[arg(long, requires = "on")]
    pub dry_run: bool,
}

/// How a board ends itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum PowerArg {
    /// Its watchdog is armed and not fed.
    Watchdog,
    /// Its kernel restarts at once (sysrq b).
    Sysrq,
    /// The power driver of its labgrid place takes its power and gives it again.
    Labgrid,
}

#[derive(Debug, Args)]
#[command(after_help = commands::crash::REPLAY_EXAMPLES)]
pub struct ReplayArgs {
    /// Series and number of the cut, as `crash run` prints them: SERIES-NUMBER; or a file of
    /// `crash minimise`.
    #[arg(value_name = "ID|FILE")]
    pub id: String,
    /// Write the image (the partition) to this file.
    #[arg(long, value_name = "FILE")]
    pub keep: Option<PathBuf>,
    /// Read commands from standard input and run them in the lab, on the card as the cut left it.
    #[arg(long, conflicts_with = "json")]
    pub shell: bool,
    /// Requests shown before and after the cut.
    #[arg(long, value_name = "N", default_value_t = 8,
          value_parser = clap::value_parser!(u64).range(0..=100_000))]
    pub around: u64,
    /// One JSON document on standard output, nothing else.
    #[arg(long)]
    pub json: bool,
}

/// What is going on at a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum CutDuring {
    /// The card copies live data of an AU.
    Collection,
    /// The new filesystem is mounted for the first time.
    Mount,
}

/// How many cuts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutCount {
    /// All that there are.
    All,
    /// So many at random.
    Number(u64),
    /// One, when the run has ended.
    End,
}

impl std::str::FromStr for CutCount {
    type Err = String;

    fn from_str(text: &str) -> Result<CutCount, String> {
        match text.parse() {
            _ if text == "all" => Ok(CutCount::All),
            _ if text == "end" => Ok(CutCount::End),
            Ok(count @ 1..=1_000_000) => Ok(CutCount::Number(count)),
            _ => Err("expected a number from 1 to 1000000, all or end".to_owned()),
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = commands::crash::MINIMISE_EXAMPLES)]
pub struct MinimiseArgs {
    /// Series and number of a cut that broke a promise, as `crash run` prints them; or a file
    /// that this command wrote, to go on with it.
    #[arg(value_name = "ID|FILE")]
    pub id: String,
    /// File to write; default: crash-ID.json in this directory, or the file that it goes on with.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Seconds after which the smallest so far is taken.
    #[arg(long, value_name = "SECONDS", default_value_t = 300,
          value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub budget: u64,
    /// Cuts checked at once; default: one for each core.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=256))]
    pub jobs: Option<u64>,
    /// One JSON document on standard output, nothing else.
    #[arg(long)]
    pub json: bool,
}
