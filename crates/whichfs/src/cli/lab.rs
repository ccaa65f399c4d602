//! `whichfs lab`: programs in the lab, and its kernel.

use super::PlaceArgs;
use crate::commands;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum LabCommand {
    /// Run a program of this machine on a formatted, mounted card in virtual time.
    Exec(ExecArgs),
    /// Show the lab kernel, or build it.
    Kernel(KernelArgs),
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
    /// Show the guest this directory of this machine and, beside /usr and /etc, no other; may be
    /// repeated. Without it all is shown but secrets: /root, keys and passwords.
    #[arg(long, value_name = "DIR")]
    pub see: Vec<PathBuf>,
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
    /// Another kernel than the lab's own, for studies that name it (`kernel = ["6.12", "6.1"]`).
    #[arg(long, value_name = "V")]
    pub version: Option<String>,
    /// The kernel whose filesystems are modules, for the workload boot.
    #[arg(long)]
    pub modules: bool,
    /// One JSON document on standard output, nothing else.
    #[arg(long)]
    pub json: bool,
}
