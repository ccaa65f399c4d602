//! How long a modelled card lives under a stated load.

use crate::document::Document;
use schemars::JsonSchema;
use serde::Serialize;
use whichfs_card::{CELL_TYPES, Cycles, Life, Load, LoadWear, Profile, Wear};
use whichfs_decide::FilesystemLoad;
use whichfs_units::Bytes;

/// The document of `card life`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CardLife {
    /// Name of the card.
    card: String,
    /// Bytes that reach it in a day.
    bytes_a_day: u64,
    /// Bytes of a write; none under a filesystem.
    #[serde(skip_serializing_if = "Option::is_none")]
    block_bytes: Option<u64>,
    /// Order of the writes; none under a filesystem.
    #[serde(skip_serializing_if = "Option::is_none")]
    order: Option<&'static str>,
    /// Bytes of the part that is written; none under a filesystem.
    #[serde(skip_serializing_if = "Option::is_none")]
    span_bytes: Option<u64>,
    /// Flash bytes programmed for each byte that the host writes.
    write_amplification_card: f64,
    /// Erases of the most worn block for each of the mean.
    spread: f64,
    /// Erases of blocks; none under a filesystem.
    #[serde(skip_serializing_if = "Option::is_none")]
    erases: Option<Wear>,
    /// What the cycles are of: a type of cells, or specimens of this model.
    cells: &'static str,
    /// Program and erase cycles that shares of such cards stand at most.
    pe_cycles: Cycles,
    /// Years that shares of such cards live at most.
    life: Option<Life>,
    /// What writes to the card, if that is a filesystem.
    #[serde(skip_serializing_if = "Option::is_none")]
    filesystem: Option<FilesystemLoad>,
}

impl Document for CardLife {
    const NAME: &'static str = "card life";
}

impl CardLife {
    /// How `load` wears the card called `name`.
    pub fn new(name: String, profile: &Profile, load: &Load, wear: LoadWear) -> CardLife {
        CardLife {
            card: name,
            bytes_a_day: load.bytes_a_day,
            block_bytes: Some(load.block_bytes),
            order: Some(match load.sequential {
                false => "random",
                true => "sequential",
            }),
            span_bytes: Some(wear.span_bytes),
            write_amplification_card: wear.write_amplification,
            spread: wear.erases.spread(),
            erases: Some(wear.erases),
            cells: cells(profile),
            pe_cycles: profile.pe_cycles(),
            life: wear.life,
            filesystem: None,
        }
    }

    /// How `load` wears the card called `name`: `wear` is bytes that reach it in a day, its own
    /// write amplification, and the spread of its erases.
    pub fn of_filesystem(
        name: String,
        profile: &Profile,
        (bytes_a_day, write_amplification_card, spread): (u64, f64, f64),
        load: FilesystemLoad,
        life: Option<Life>,
    ) -> CardLife {
        CardLife {
            card: name,
            bytes_a_day,
            block_bytes: None,
            order: None,
            span_bytes: None,
            write_amplification_card,
            spread,
            erases: None,
            cells: cells(profile),
            pe_cycles: profile.pe_cycles(),
            life,
            filesystem: Some(load),
        }
    }
}

/// The document for people.
pub fn life_text(document: &CardLife) -> String {
    let mut text = match &document.filesystem {
        Some(load) => filesystem_text(document, load),
        None => load_text(document),
    };
    let cycles = document.pe_cycles;
    match document.life {
        Some(life) => text.push_str(&format!(
            "\nlife of 8 in 10 such cards: {}; of half of them: {}\n\
             for {:.0} to {:.0} program and erase cycles ({}; specimens of one\n\
             model differ tenfold); other faults are not in it",
            years_between(life.p10_years, life.p90_years),
            years_between(life.p25_years, life.p75_years),
            cycles.p10,
            cycles.p90,
            document.cells,
        )),
        None => text.push_str("\nnothing is written or erased: wear does not end it"),
    }
    text
}

/// What the bytes of a stated load do.
fn load_text(document: &CardLife) -> String {
    let mut text = format!(
        "{}: {} a day in {} writes of {} over {}\n\
         write amplification of the card {:.2}; its most worn block gets {:.1} × the mean",
        document.card,
        Bytes(document.bytes_a_day),
        document.order.unwrap_or_default(),
        Bytes(document.block_bytes.unwrap_or_default()),
        Bytes(document.span_bytes.unwrap_or_default()),
        document.write_amplification_card,
        document.spread,
    );
    if let Some(wear) = &document.erases {
        text.push_str(&format!(" ({} to {} erases)", wear.least, wear.most));
    }
    text
}

/// What the bytes that `load` writes into files do.
fn filesystem_text(document: &CardLife, load: &FilesystemLoad) -> String {
    let a_day = Bytes(load.file_bytes_a_day);
    let from = match (load.times_a_day, load.file_bytes_a_run) {
        (Some(1.0), Some(_)) => format!(
            "{a_day} a day into files: one run of the workload of {} (--times-a-day, --per-day)",
            load.need
        ),
        (Some(times), Some(bytes)) => format!(
            "{a_day} a day into files: {times} runs of the workload of {} of {} each",
            load.need,
            Bytes(bytes)
        ),
        _ => format!("{a_day} a day into files, as {} writes them", load.need),
    };
    let [least, most] = load.write_amplification;
    let trial = load.trial.get(..12).unwrap_or(&load.trial);
    let mut text = format!(
        "{}, {}: {from}\n\
         write amplification {least:.2} to {most:.2} in the long run, {} % full (sustained trial\n\
         {trial}): {} a day reach the card, which programs {:.2} times as much;\n\
         its most worn block gets at most {:.1} × the mean",
        document.card,
        load.filesystem,
        load.full_percent,
        Bytes(document.bytes_a_day),
        document.write_amplification_card,
        document.spread,
    );
    if let Some(mind) = &load.mind {
        text.push_str(&format!("\nMind: {mind}"));
    }
    text
}

/// What the cycles of `profile` are of.
fn cells(profile: &Profile) -> &'static str {
    match profile.wear.pe_cycles_low.value {
        0 => CELL_TYPES
            .get(profile.wear.cell.value as usize)
            .map_or("", |cell| cell.0),
        _ => "specimens of this model",
    }
}

/// In the unit that fits, with two significant digits, and no more than a century.
fn span_of(years: f64) -> String {
    const DAYS: f64 = 365.25;
    let (value, unit) = match years {
        y if y >= 100.0 => return "more than 100 years".to_owned(),
        y if y >= 1.0 => (y, "years"),
        y if y * 12.0 >= 1.0 => (y * 12.0, "months"),
        y if y * DAYS >= 1.0 => (y * DAYS, "days"),
        y => (y * DAYS * 24.0, "hours"),
    };
    match value {
        v if v >= 10.0 => format!("{v:.0} {unit}"),
        v => format!("{v:.1} {unit}"),
    }
}

/// A range of years.
pub fn years_between(least: f64, most: f64) -> String {
    match [least, most].map(span_of) {
        [least, most] if least == most => least,
        [least, most] => format!("{least} to {most}"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use whichfs_card::builtin;

    #[test]
    fn the_life_is_told_as_two_ranges() {
        let (_, text) = builtin()
            .iter()
            .find(|(name, _)| *name == "class4-4gb")
            .unwrap();
        let profile = Profile::parse("class4-4gb", text).unwrap();
        let load = Load {
            bytes_a_day: 1 << 30,
            block_bytes: 4096,
            sequential: false,
            span_bytes: Some(64 << 20),
            seed: 1,
        };
        let wear = whichfs_card::wear_under(&profile, &load).unwrap();
        let told = life_text(&CardLife::new("class4-4gb".into(), &profile, &load, wear));
        let (_, years) = told.split_once("life of 8 in 10 such cards: ").unwrap();
        let ranges = years.lines().next().unwrap().split("; of half of them: ");
        assert!(ranges.clone().count() == 2 && ranges.into_iter().all(|r| r.contains(" to ")));
        assert!(told.contains("planar TLC"), "{told}");
    }

    #[test]
    fn cards_of_other_cells_stand_other_cycles() {
        let of = |name: &str| {
            let (_, text) = builtin().iter().find(|(known, _)| *known == name).unwrap();
            Profile::parse(name, text).unwrap()
        };
        let [class4, emmc, a1, kodak] = [
            "class4-4gb",
            "emmc-8gb",
            "a1-32gb",
            "kodak-ultra-performance-64gb",
        ]
        .map(of);
        let low = |profile: &Profile| profile.pe_cycles().p10;
        assert!(low(&class4) < low(&a1) && low(&a1) < low(&emmc));
        let names = [&class4, &emmc, &a1, &kodak].map(cells);
        assert_eq!(
            names,
            ["planar TLC", "MLC", "3D TLC", "specimens of this model"]
        );
    }

    #[test]
    fn spans_have_the_unit_that_fits() {
        let spans = [0.0001, 0.01, 0.5, 3.0, 42.0, 1e6].map(span_of);
        let right = [
            "0.9 hours",
            "3.7 days",
            "6.0 months",
            "3.0 years",
            "42 years",
            "more than 100 years",
        ];
        assert_eq!(spans, right);
    }
}
