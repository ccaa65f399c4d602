//! Arguments of `whichfs study`.

use super::{HereArgs, JsonArgs, RunArgs};
use crate::commands;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Subcommand)]
pub enum StudyCommand {
    /// All of them, a line each.
    List(JsonArgs),
    /// One of them: what it runs, where it comes from, and the figures of its last run.
    Show(StudyShowArgs),
    /// Make all series or trials of one, print tables, write a report; an interrupted one goes on.
    Run(Box<StudyArgs>),
    /// Its trials as JSON lines for other machines: `trial run` runs them, `store import` takes
    /// their records; or its power cuts, for `crash cut` and `crash import`.
    Plan(StudyPlanArgs),
    /// What the authors of the studies concluded, and whether the trials run so far say the same.
    Claims(ClaimsArgs),
}

#[derive(Debug, Args)]
pub struct StudyShowArgs {
    /// Study: a name (`whichfs study list`) or a file.
    #[arg(value_name = "NAME|FILE")]
    pub name: String,
    /// Folder with published tables that figures are set beside; default: those of the program
    /// (studies with trials).
    #[arg(long, value_name = "DIR")]
    pub published: Option<PathBuf>,
    /// One JSON document on standard output, nothing else.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct ClaimsArgs {
    /// Judge by the studies' quick forms.
    #[arg(long)]
    pub quick: bool,
    /// One JSON document on standard output, nothing else.
    #[arg(long)]
    pub json: bool,
}

/// Which trials of a study.
#[derive(Debug, Args)]
pub struct StudyTrialsArgs {
    /// The study's quick form: the same shape, less data, fewer seeds (studies with trials).
    #[arg(long)]
    pub quick: bool,
    /// Repeats, instead of the study's (studies with trials).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000))]
    pub seeds: Option<u64>,
    /// Directory whose content is written in place of the trees that workloads draw (studies with
    /// trials).
    #[arg(long, value_name = "DIR")]
    pub tree: Option<PathBuf>,
    /// Only these filesystems of it, separated by commas.
    #[arg(
        long = "fs",
        alias = "only-fs",
        value_name = "NAME,…",
        value_delimiter = ','
    )]
    pub only_fs: Vec<String>,
    /// Only these of its modelled cards, separated by commas (studies with trials).
    #[arg(
        long = "card",
        alias = "only-card",
        value_name = "NAME,…",
        value_delimiter = ','
    )]
    pub only_card: Vec<String>,
    /// Only the trials or cuts that are not kept; `study run` does so unless --fresh is given.
    #[arg(long)]
    pub only_missing: bool,
}

#[derive(Debug, Args)]
#[command(after_help = commands::study::PLAN_EXAMPLES)]
pub struct StudyPlanArgs {
    /// Study: a name (`whichfs study list`) or a file.
    #[arg(value_name = "NAME|FILE")]
    pub name: String,
    #[command(flatten)]
    pub trials: StudyTrialsArgs,
}

#[derive(Debug, Args)]
#[command(after_help = commands::study::EXAMPLES)]
pub struct StudyArgs {
    /// Study: a name (`whichfs study list`) or a file.
    #[arg(value_name = "NAME|FILE")]
    pub name: String,
    /// Cuts of each series, instead of the study's (studies with power cuts).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub cuts: Option<u64>,
    #[command(flatten)]
    pub trials: StudyTrialsArgs,
    /// Begin no trial after this wall time: 90s, 10m, 2h (studies with trials).
    #[arg(long, value_name = "TIME", value_parser = whichfs_units::arguments::duration)]
    pub budget: Option<Duration>,
    /// Only say how many trials there are, how many of them are known, and about how long the
    /// others take (studies with trials).
    #[arg(long)]
    pub dry_run: bool,
    /// Folder with published tables that figures are set beside; default: those of the program
    /// (studies with trials).
    #[arg(long, value_name = "DIR")]
    pub published: Option<PathBuf>,
    /// Wall time after which a trial is stopped, in seconds (studies with trials).
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub wall_limit: Option<u64>,
    /// Run the trials on this device, under this machine's kernel, instead of on the study's
    /// modelled cards; or on one of a board, under its kernel: ssh://USER@HOST/dev/mmcblk0, or
    /// labgrid:PLACE/dev/mmcblk0. All that is on it is lost (--destroy). In a directory of a
    /// mounted filesystem nothing is formatted: that filesystem is measured, and what was written
    /// is removed. Given several times, the study runs on all at once, each with its own --budget
    /// and --max-write, and the report tells how much they differ.
    #[arg(long, value_name = "DEV|DIR", conflicts_with_all = ["jobs", "only_card", "only_missing"])]
    pub on: Vec<PathBuf>,
    #[command(flatten)]
    pub here: HereArgs,
    /// Run the trials that the store lacks on other machines first, by the Python package (pip
    /// install 'whichfs[cluster]'): tcp://HOST:8786 of a Dask scheduler, ssh:HOST,…, local:N, or
    /// --jobs jobs of slurm, pbs, sge, lsf, htcondor, oar or moab (studies with trials).
    #[arg(long, value_name = "WHERE", conflicts_with_all = ["on", "fresh", "budget", "dry_run"])]
    pub cluster: Option<String>,
    /// Directory for report.html and the figures, results.csv and .json [default: a new one,
    /// whichfs-study/TIME, to which whichfs-study/latest leads].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub run: RunArgs,
    /// Make all cuts and trials again, even those that are known.
    #[arg(long, conflicts_with = "only_missing")]
    pub fresh: bool,
    /// Cuts or trials at once; default: one for each core.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=256))]
    pub jobs: Option<u64>,
    /// One JSON document on standard output, nothing else.
    #[arg(long)]
    pub json: bool,
}

impl StudyTrialsArgs {
    /// The first flag given that only studies with trials have.
    pub fn of_trials(&self) -> Option<&'static str> {
        let given = [
            ("--quick", self.quick),
            ("--seeds", self.seeds.is_some()),
            ("--tree", self.tree.is_some()),
            ("--card", !self.only_card.is_empty()),
        ];
        given.into_iter().find(|(_, is)| *is).map(|(flag, _)| flag)
    }
}

impl StudyArgs {
    /// The first flag given that only studies with trials have.
    pub fn of_trials(&self) -> Option<&'static str> {
        let given = [
            ("--budget", self.budget.is_some()),
            ("--dry-run", self.dry_run),
            ("--published", self.published.is_some()),
            ("--wall-limit", self.wall_limit.is_some()),
            ("--on", !self.on.is_empty()),
            ("--only-missing", self.trials.only_missing),
            ("--cluster", self.cluster.is_some()),
        ];
        let given = given.into_iter().find(|(_, is)| *is);
        self.trials.of_trials().or(given.map(|(flag, _)| flag))
    }
}
