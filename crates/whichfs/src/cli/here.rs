//! Arguments of trials on a real device.

use crate::quantity;
use clap::Args;

/// What trials on a real device may do, and what is known of it.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "On a real device")]
pub struct HereArgs {
    /// Lose what is on the device that is called so; --dry-run tells the name.
    #[arg(long, value_name = "ID")]
    pub destroy: Option<String>,
    /// Begin no trial after which more than this would have been written to the device.
    #[arg(long, value_name = "SIZE", value_parser = quantity::bytes)]
    pub max_write: Option<u64>,
    /// Profile of the device, to which filesystems are tuned (whichfs probe --save).
    #[arg(long, value_name = "NAME|FILE", conflicts_with = "au")]
    pub profile: Option<String>,
    /// Its allocation unit, if nothing else is known of it.
    #[arg(long, value_name = "SIZE", value_parser = quantity::bytes)]
    pub au: Option<u64>,
    /// Idle time before each trial, in seconds, in which the device tidies up; default: 5.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(0..=3600))]
    pub settle: Option<u64>,
    /// Refuse larger devices; default: 2T.
    #[arg(long, value_name = "SIZE", value_parser = quantity::bytes)]
    pub max_size: Option<u64>,
    /// Also a device that nobody takes out: eMMC, SATA, NVMe.
    #[arg(long)]
    pub internal: bool,
}

impl HereArgs {
    /// The first flag given: they are for trials on a device alone.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            ("--destroy", self.destroy.is_some()),
            ("--max-write", self.max_write.is_some()),
            ("--profile", self.profile.is_some()),
            ("--au", self.au.is_some()),
            ("--settle", self.settle.is_some()),
            ("--max-size", self.max_size.is_some()),
            ("--internal", self.internal),
        ];
        given.into_iter().find(|(_, is)| *is).map(|(flag, _)| flag)
    }
}
