//! Arguments of `whichfs study`.

use super::{JsonArgs, NamedArgs};
use crate::commands;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum StudyCommand {
    /// All of them, a line each.
    List(JsonArgs),
    /// One of them: what it runs, where it comes from, about how long it takes.
    Show(NamedArgs),
    /// Make all series of one, print a table, write a report; an interrupted one goes on.
    Run(StudyArgs),
}

#[derive(Debug, Args)]
#[command(after_help = commands::study::EXAMPLES)]
pub struct StudyArgs {
    /// Study: a name (`whichfs study list`) or a file.
    #[arg(value_name = "NAME|FILE")]
    pub name: String,
    /// Cuts of each series, instead of the study's.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub cuts: Option<u64>,
    /// Only these filesystems of it, separated by commas.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub only_fs: Vec<String>,
    /// Directory for report.html and results.csv.
    #[arg(long, value_name = "DIR", default_value = "whichfs-study")]
    pub out: PathBuf,
    /// Make all cuts again, even those of an interrupted or finished series.
    #[arg(long)]
    pub fresh: bool,
    /// Cuts checked at once; default: one for each core.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=256))]
    pub jobs: Option<u64>,
    /// One JSON document on standard output, nothing else.
    #[arg(long)]
    pub json: bool,
}
