//! `whichfs card identify`: what a card says of itself, and what of that holds.

use crate::cli::IdentifyArgs;
use crate::failure::{Failure, Outcome};
use crate::output;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use whichfs_device::{DeviceIdentity, Emmc, Roots, SdStatus, Used, identify};
use whichfs_engine::cards;
use whichfs_report::Document;
use whichfs_report::documents::life::years_between;

/// Examples in the help text.
pub const EXAMPLES: &str = "\
Examples:
  whichfs card identify /dev/mmcblk0
  whichfs probe /dev/mmcblk0 --write --json > probe.json
  whichfs card identify /dev/mmcblk0 --measured probe.json      do its marks hold?
  whichfs card identify /dev/mmcblk1 --card emmc-8gb --per-day 2G   years left, as a range

Read from sysfs: nothing is opened; the size of an eMMC's cache needs root (debugfs).";

/// JSON of `card identify`.
#[derive(Serialize, JsonSchema)]
pub struct CardIdentity {
    #[serde(flatten)]
    identity: DeviceIdentity,
    marks: Vec<Mark>,
    left: Option<Left>,
    /// Whether it was asked for, and no block is ever erased.
    #[serde(skip)]
    unworn: bool,
}

impl Document for CardIdentity {
    const NAME: &'static str = "card identify";
}

/// A mark beside what was measured.
#[derive(Serialize, JsonSchema)]
struct Mark {
    mark: String,
    value: &'static str,
    least: f64,
    measured: Option<f64>,
    /// It holds; unknown without a measured value.
    holds: Option<bool>,
}

/// Years that are left.
#[derive(Serialize, JsonSchema)]
struct Left {
    /// Nine of ten live at least so long.
    least_years: f64,
    /// One of ten lives longer than this.
    most_years: f64,
    /// Share of its life that is used, which was taken off.
    used: Option<Used>,
}

/// Runs the command.
pub fn run(args: &IdentifyArgs) -> Outcome<u8> {
    let identity =
        identify(&args.device, this_year(), &Roots::default()).map_err(Failure::input)?;
    let measured = args.measured.as_deref().map(probed).transpose()?;
    let marks = marks(&identity, measured.as_ref());
    if measured.is_some() && marks.is_empty() {
        note!("it tells no marks: --measured has nothing to be compared with");
    }
    let left = match (args.per_day, &args.card) {
        (Some(per_day), Some(card)) => left(&identity, card, per_day)?,
        _ => None,
    };
    let document = CardIdentity {
        identity,
        marks,
        unworn: args.per_day.is_some() && left.is_none(),
        left,
    };
    match args.json {
        true => output::document(&document)?,
        false => output::text(&text(&document))?,
    }
    Ok(0)
}

fn this_year() -> u32 {
    const SECONDS_A_YEAR: u64 = 31_556_952;
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    1970 + since.map_or(0, |since| since.as_secs() / SECONDS_A_YEAR) as u32
}

/// What a probe wrote with `--json`.
fn probed(path: &Path) -> Outcome<serde_json::Value> {
    let fail = |error: &dyn std::fmt::Display| {
        Failure::input(format!(
            "--measured {}: {error}; expected what `whichfs probe DEV --write --json` writes",
            path.display()
        ))
    };
    let text = whichfs_engine::input::read_text(path).map_err(|error| fail(&error))?;
    let document: serde_json::Value = serde_json::from_str(&text).map_err(|error| fail(&error))?;
    match document["read_mb_s"].is_object() {
        true => Ok(document),
        false => Err(fail(&"it has no values of a probe")),
    }
}

fn marks(identity: &DeviceIdentity, measured: Option<&serde_json::Value>) -> Vec<Mark> {
    let promises = identity.sd.iter().flat_map(SdStatus::promises);
    promises
        .map(|promise| {
            let found = measured.and_then(|probe| probe[promise.value]["value"].as_f64());
            Mark {
                mark: promise.mark,
                value: promise.value,
                least: promise.least,
                measured: found,
                holds: found.map(|found| found >= promise.least),
            }
        })
        .collect()
}

/// The years of a new card like `card`, less the share that is used.
fn left(identity: &DeviceIdentity, card: &str, per_day: u64) -> Outcome<Option<Left>> {
    let card = cards::open(card)?;
    let used = identity.emmc.as_ref().and_then(Emmc::used);
    let share = |per_cent: u8| 1.0 - f64::from(per_cent.min(100)) / 100.0;
    let (least, most) = match used {
        None => (1.0, 1.0),
        Some(used) => (share(used.most.unwrap_or(100)), share(used.least)),
    };
    let years = whichfs_engine::life::of_random_writes(&card.profile, per_day)?;
    Ok(years.map(|years| Left {
        least_years: years.p10_years * least,
        most_years: years.p90_years * most,
        used,
    }))
}

fn text(document: &CardIdentity) -> String {
    let identity = &document.identity;
    let mut lines = identity.told();
    lines.extend(document.marks.iter().map(mark));
    lines.extend(identity.emmc.iter().flat_map(Emmc::told));
    lines.extend(document.left.as_ref().map(years));
    if document.unworn {
        lines.push("life     nothing is written or erased: wear does not end it".to_owned());
    }
    let doubts = identity.doubts.iter();
    lines.extend(doubts.map(|doubt| format!("doubt    {doubt}")));
    lines.join("\n") + "\n"
}

fn mark(mark: &Mark) -> String {
    let unit = match mark.value {
        "write_mb_s" => "MB/s written in order",
        "random_read_iops" => "reads of 4 KiB a second",
        _ => "writes of 4 KiB a second",
    };
    let found = match (mark.measured, mark.holds) {
        (Some(found), Some(true)) => format!("measured {found:.0}: holds"),
        (Some(found), _) => format!("measured {found:.0}: DOES NOT HOLD"),
        (None, _) => "not measured (--measured)".to_owned(),
    };
    format!("{:<8} at least {} {unit}; {found}", mark.mark, mark.least)
}

fn years(left: &Left) -> String {
    let taken = match left.used {
        Some(_) => "what is worn is taken off",
        None => "as of a new one, since it does not tell its wear",
    };
    let years = years_between(left.least_years, left.most_years);
    format!("life     {years} left of 8 in 10 such cards, {taken}")
}
