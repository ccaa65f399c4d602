//! Arguments of `format`, `check` and `image`.

use crate::commands;
use clap::Args;
use std::path::PathBuf;
use whichfs_engine::medium::CardKnowledge;
use whichfs_layout::TableKind;
use whichfs_units::arguments;

/// What is known of the card.
#[derive(Debug, Args)]
pub struct MediumArgs {
    /// Card to lay out for and tune to: a name (`whichfs card list`) or a profile file
    /// (`whichfs probe --save`).
    #[arg(long, value_name = "NAME|FILE", conflicts_with = "au")]
    pub card: Option<String>,
    /// Allocation unit, if nothing else is known of the card; need not be a power of two.
    #[arg(long, value_name = "SIZE", value_parser = arguments::size)]
    pub au: Option<u64>,
}

impl MediumArgs {
    /// What these options say of the card.
    pub fn knowledge(&self) -> CardKnowledge {
        CardKnowledge {
            card: self.card.clone(),
            au: self.au,
        }
    }
}

/// Kind of a partition table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum TableArg {
    /// GUID partition table.
    Gpt,
    /// Master boot record: four partitions, 2 TiB.
    Mbr,
}

impl From<TableArg> for TableKind {
    fn from(table: TableArg) -> TableKind {
        match table {
            TableArg::Gpt => TableKind::Gpt,
            TableArg::Mbr => TableKind::Mbr,
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = commands::format::EXAMPLES)]
pub struct FormatArgs {
    /// Block device, or the file of an image; none with --emit alone.
    #[arg(value_name = "DEV|IMAGE", required_unless_present = "emit")]
    pub target: Option<PathBuf>,
    /// Filesystem of the partitions that name none, as `whichfs fs list` prints it.
    #[arg(long, value_name = "NAME")]
    pub fs: Option<String>,
    /// Partitions: boot-root, boot-root-data, ab, or a file; default: one for the whole card, with
    /// --board boot-root.
    #[arg(long, value_name = "NAME|FILE")]
    pub layout: Option<String>,
    /// Board that boots from the card: a name (`whichfs board list`) or a file; its boot ROM
    /// decides on the table, the boot partition and where the first partition begins.
    #[arg(long, value_name = "NAME|FILE", conflicts_with = "label")]
    pub board: Option<String>,
    /// Kind of the partition table; default: what layout and board say, else gpt.
    #[arg(long, value_enum, value_name = "KIND")]
    pub table: Option<TableArg>,
    #[command(flatten)]
    pub medium: MediumArgs,
    /// Label of the filesystem, where there is one partition.
    #[arg(long, value_name = "TEXT", conflicts_with = "layout")]
    pub label: Option<String>,
    /// Where the fstab line mounts it, where there is one partition.
    #[arg(
        long,
        value_name = "DIR",
        default_value = "/data",
        conflicts_with = "layout"
    )]
    pub mount: String,
    /// Size of a new image, or of the card that --emit is for.
    #[arg(long, value_name = "SIZE", value_parser = arguments::size)]
    pub size: Option<u64>,
    /// Write files for image builders into this directory: Yocto wic, genimage, systemd-repart,
    /// fstab, RAUC, SWUpdate, Mender, kernel options, U-Boot, a script.
    #[arg(long, value_name = "DIR")]
    pub emit: Option<PathBuf>,
    /// Draw the identifiers of disk and partitions from N; default: new ones each time.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Erase the device with this ID; --dry-run shows the ID.
    #[arg(long, value_name = "ID")]
    pub destroy: Option<String>,
    /// Refuse larger devices.
    #[arg(long, value_name = "SIZE", default_value = "2T", value_parser = arguments::size)]
    pub max_size: u64,
    /// Also a device that nobody takes out: eMMC, SATA, NVMe.
    #[arg(long)]
    pub internal: bool,
    /// Print every command and write nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// One JSON document on standard output, nothing else.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = commands::check::EXAMPLES)]
pub struct CheckArgs {
    /// Block device or image.
    #[arg(value_name = "DEV|IMAGE")]
    pub target: PathBuf,
    #[command(flatten)]
    pub medium: MediumArgs,
    /// Do not measure in the lab what tuning would gain.
    #[arg(long)]
    pub no_gain: bool,
    /// One JSON document on standard output, nothing else.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = commands::image::EXAMPLES)]
pub struct ImageArgs {
    /// Directory whose files the image gets.
    #[arg(value_name = "TREE")]
    pub tree: PathBuf,
    /// Filesystem, as `whichfs fs list` prints it.
    #[arg(long, value_name = "NAME")]
    pub fs: String,
    #[command(flatten)]
    pub medium: MediumArgs,
    /// File to write the image to.
    #[arg(short, long, value_name = "IMG")]
    pub output: PathBuf,
    /// Its size, which is that of its partition; default: the tree and a fifth to spare.
    #[arg(long, value_name = "SIZE", value_parser = arguments::size)]
    pub size: Option<u64>,
    /// The filesystem's label, as its mkfs takes it.
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub label: String,
    /// Mount it in the lab and copy the files there, also where a tool could do it.
    #[arg(long)]
    pub lab: bool,
    /// Overwrite a file that is there.
    #[arg(long)]
    pub force: bool,
    /// One JSON document on standard output, nothing else.
    #[arg(long)]
    pub json: bool,
}
