//! Arguments of `whichfs report` and `whichfs card rank`.

use super::MachineArgs;
use crate::commands;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = commands::report::EXAMPLES)]
pub struct ReportArgs {
    /// Runs: the first is what the others are compared with.
    #[arg(value_name = "RUN", required = true)]
    pub runs: Vec<PathBuf>,
    /// Exit code 1 if a figure is worse than the first run's by more than this and beyond noise,
    /// or gone, or if a filesystem that worked in it fails or is excluded.
    #[arg(long, value_name = "PERCENT", value_parser = share)]
    pub fail_over: Option<f64>,
    /// Write a JUnit file: a test case for each filesystem and figure, which fails as --fail-over
    /// says (10%); winner, scores and probabilities are its properties.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Write a page for the browser: every change in a picture, every figure in a table.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Also what did not change.
    #[arg(long)]
    pub all: bool,
    /// A Markdown table on standard output.
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    /// One JSON document on standard output, nothing else.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = commands::card_rank::EXAMPLES)]
pub struct CardRankArgs {
    /// Only these cards: names, parts of names, or profile files, separated by commas.
    #[arg(
        long = "card",
        alias = "cards",
        value_name = "NAME,…",
        value_delimiter = ','
    )]
    pub cards: Vec<String>,
    #[command(flatten)]
    pub machine: MachineArgs,
    /// What it is for: as after `whichfs choose --for`.
    #[arg(long = "for", value_name = "NEED", default_value = "rootfs")]
    pub needs: String,
    /// Change one thing of the need, for example power_loss=tolerated.
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
    /// Seeds of each filesystem on each card.
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u64).range(1..=100))]
    pub seeds: u64,
    /// Trials at once; default: one for each core.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=256))]
    pub jobs: Option<u64>,
    /// File of finished trials; default: in the user's data directory.
    #[arg(long, value_name = "FILE")]
    pub store: Option<PathBuf>,
    /// One JSON document on standard output, nothing else.
    #[arg(long)]
    pub json: bool,
}

/// A share of `text` in percent: `10%`, or `10`.
fn share(text: &str) -> Result<f64, String> {
    let wrong = || format!("found {text:?}; expected a share such as 10%");
    let (digits, marked) = match text.strip_suffix('%') {
        Some(digits) => (digits, true),
        None => (text, false),
    };
    let percent: f64 = digits.trim().parse().map_err(|_| wrong())?;
    if !(0.0..=10_000.0).contains(&percent) {
        return Err(wrong());
    }
    // Shares of 1 were written so before.
    if !marked && percent > 0.0 && percent < 1.0 {
        let meant = percent * 100.0;
        return Err(format!(
            "found {text:?}, which is less than one percent; did you mean {meant}%? {text}% is \
             taken as it is"
        ));
    }
    Ok(percent / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_percent_with_and_without_the_sign() {
        assert_eq!((share("10%"), share("10")), (Ok(0.1), Ok(0.1)));
        assert_eq!((share("0.5%"), share("0")), (Ok(0.005), Ok(0.0)));
        assert!(share("0.25").is_err_and(|why| why.contains("did you mean 25%?")));
        for wrong in ["", "x", "-1%", "nan", "inf", "10%%"] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }
}
