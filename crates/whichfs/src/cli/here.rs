//! Arguments of trials on a real device.

use crate::consent::CommandLineConsent;
use clap::Args;
use std::time::Duration;
use whichfs_engine::device::DeviceOptions;
use whichfs_units::arguments;

/// What trials on a real device may do, and what is known of it.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "On a real device")]
pub struct HereArgs {
    /// Erase the device with this ID; --dry-run shows the ID. Given once for each device.
    #[arg(long, value_name = "ID")]
    pub destroy: Vec<String>,
    /// Begin no trial after which more than this would have been written to the device.
    #[arg(long, value_name = "SIZE", value_parser = arguments::size)]
    pub max_write: Option<u64>,
    /// Profile of the device, to which filesystems are tuned (whichfs probe --save).
    #[arg(long, value_name = "NAME|FILE", conflicts_with = "au")]
    pub profile: Option<String>,
    /// Its allocation unit, if nothing else is known of it.
    #[arg(long, value_name = "SIZE", value_parser = arguments::size)]
    pub au: Option<u64>,
    /// Idle time before each trial, in seconds, in which the device tidies up; default: 5.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(0..=3600))]
    pub settle: Option<u64>,
    /// Refuse larger devices; default: 2T.
    #[arg(long, value_name = "SIZE", value_parser = arguments::size)]
    pub max_size: Option<u64>,
    /// Also a device that nobody takes out: eMMC, SATA, NVMe; or a directory of the filesystem that
    /// this system runs from.
    #[arg(long)]
    pub internal: bool,
    /// Give a board up that is out of reach for so long, or takes so long to start: 90s, 20m;
    /// default: 10m.
    #[arg(long, value_name = "TIME", value_parser = arguments::duration)]
    pub board_timeout: Option<Duration>,
}

/// What `choose` does with a real device.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "On a real device")]
pub struct ChooseHereArgs {
    /// Measure on this device, under this machine's kernel, instead of in the lab; or on one of a
    /// board: ssh://USER@HOST/dev/mmcblk0, labgrid:PLACE/dev/mmcblk0. All that is on it is lost
    /// (--destroy).
    #[arg(long, value_name = "DEV", group = "on_device", conflicts_with = "card")]
    #[arg(conflicts_with_all = ["cuts", "jobs", "emit", "confirm", "write"])]
    pub on: Option<String>,
    /// Measure on the device that --card names: --on, as it was called.
    #[arg(long, hide = true, group = "on_device")]
    #[arg(conflicts_with_all = ["cuts", "jobs", "emit", "confirm", "write"])]
    pub here: bool,
    /// Probe the device that --card names with writes, and put back what was there.
    #[arg(long, conflicts_with = "destroy")]
    pub write: bool,
    /// Measure the two best of the lab on the device (--destroy), and tell how far both differ.
    #[arg(long)]
    pub confirm: bool,
    /// Begin no trial on the device that would end after this time: 90s, 10m, 2h.
    #[arg(long, value_name = "TIME", value_parser = arguments::duration)]
    pub budget: Option<Duration>,
    /// Print every command for the device and write nothing (with --on).
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub device: HereArgs,
}

impl ChooseHereArgs {
    /// The first flag given: they are for a device alone.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            ("--dry-run", self.dry_run),
            ("--write", self.write),
            ("--confirm", self.confirm),
            ("--budget", self.budget.is_some()),
        ];
        let own = given.into_iter().find(|(_, is)| *is).map(|(flag, _)| flag);
        own.or_else(|| self.device.given())
    }
}

impl HereArgs {
    /// How trials on the device are made.
    pub fn options(&self) -> DeviceOptions {
        DeviceOptions {
            profile: self.profile.clone(),
            au: self.au,
            settle: self.settle.map(Duration::from_secs),
            max_bytes: self.max_size,
            internal: self.internal,
            destroy: self.destroy.first().cloned(),
            board_timeout: self.board_timeout,
        }
    }

    /// The consent that `--destroy` is, or that the user types when asked; nobody is asked where
    /// the answer is a JSON document.
    pub fn consent(&self, json: bool) -> CommandLineConsent<'_> {
        CommandLineConsent {
            destroy: &self.destroy,
            json,
        }
    }

    /// The first flag given: they are for trials on a device alone.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            ("--destroy", !self.destroy.is_empty()),
            ("--max-write", self.max_write.is_some()),
            ("--profile", self.profile.is_some()),
            ("--au", self.au.is_some()),
            ("--settle", self.settle.is_some()),
            ("--max-size", self.max_size.is_some()),
            ("--internal", self.internal),
            ("--board-timeout", self.board_timeout.is_some()),
        ];
        given.into_iter().find(|(_, is)| *is).map(|(flag, _)| flag)
    }
}
