//! `whichfs probe --write --capacity`: is all of a card real?

use super::probe_progress::Watcher;
use crate::cli::{ProbeArgs, WriteHow};
use crate::failure::Outcome;
use crate::output;
use whichfs_curves::Device;
use whichfs_probe::{CapacityOptions, CapacityReport, Honesty, capacity};
use whichfs_units::Bytes;

/// Checks the capacity of `device`; exit status 1 if it is not what the card claims.
pub fn run(device: &mut dyn Device, args: &ProbeArgs) -> Outcome<u8> {
    let options = CapacityOptions {
        seed: args.seed,
        preserve: args.write != Some(WriteHow::Destroy),
    };
    let mut watcher = Watcher::new(None, args.json);
    let report = capacity(device, &options, &mut watcher);
    watcher.finish();
    match args.json {
        true => output::json(&report)?,
        false => output::text_line(&text(&report))?,
    }
    Ok(u8::from(report.honesty != Honesty::Honest))
}

fn text(report: &CapacityReport) -> String {
    let claimed = Bytes(report.claimed_bytes);
    let mut text = match (report.honesty, report.real_bytes) {
        (Honesty::Honest, _) => format!("The card has the {claimed} that it claims."),
        (Honesty::Broken, _) => "The card keeps nothing that is written to it.".to_owned(),
        (Honesty::Unknown, _) => format!("It claims {claimed}; whether that is true is not known."),
        (how, real) => {
            let real = real.map_or("less".to_owned(), |real| Bytes(real).to_string());
            let how = match how {
                Honesty::Wraps => "writes beyond that overwrite its beginning",
                Honesty::Vanishes => "writes beyond that are lost",
                _ => "requests beyond that fail",
            };
            format!("The card LIES: it claims {claimed} and has {real}; {how}.")
        }
    };
    text.push_str(&format!(
        "\n{}\n{} written",
        report.evidence,
        Bytes(report.bytes_written)
    ));
    if report.lost_blocks > 0 {
        text.push_str(&format!(
            "; {} blocks of 4 KiB could not be put back as they were",
            report.lost_blocks
        ));
    }
    if let Some(ended) = &report.ended {
        text.push_str(&format!("\nended early: {ended}"));
    }
    text
}
