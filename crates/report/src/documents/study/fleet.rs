//! A study that ran on several boards at once: what each gave, and how much units differ.

use super::gains::gain_tables;
use super::performance::{StudyPlace, StudyRun, study_page, study_text};
use crate::document::Document;
use crate::number::with_unit;
use crate::study_page::StudyPage;
use crate::text::Lines;
use schemars::JsonSchema;
use serde::Serialize;
use whichfs_study::{Grid, UnitScatter, unit_scatter};
use whichfs_trial::metric_words;
use whichfs_units::counted;

/// What one board gave.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PlaceRun<'a> {
    /// Where its card is: a path, or an address (`ssh://…`, `labgrid:…`).
    pub place: String,
    /// What its card is called in results.
    pub card: String,
    /// Name of the board.
    pub board: String,
    /// Why its run ended early, if it did; what had finished is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// What its trials gave.
    pub run: StudyRun<'a>,
}

/// A study on several boards.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FleetRun<'a> {
    /// Each board, in the order of the command line.
    pub places: Vec<PlaceRun<'a>>,
    /// How much units differ, apart from repeats, for each figure that two or more have.
    pub scatter: Vec<UnitScatter>,
}

impl Document for FleetRun<'_> {
    const NAME: &'static str = "study fleet";
}

/// Heads of the table of scatter.
pub(crate) const SCATTER_HEAD: [&str; 6] = [
    "candidate",
    "figure",
    "mean",
    "units ±",
    "repeats ±",
    "lowest and highest unit",
];

impl<'a> FleetRun<'a> {
    /// The document of `places`.
    pub fn of(places: Vec<PlaceRun<'a>>) -> FleetRun<'a> {
        let tables: Vec<&[Grid]> = (places.iter())
            .map(|one| one.run.tables.as_slice())
            .collect();
        FleetRun {
            scatter: unit_scatter(&tables),
            places,
        }
    }

    /// What is to be known of the scatter, in a sentence.
    fn explained(&self) -> String {
        let units = counted(self.places.len(), "unit");
        match self.scatter.is_empty() {
            true => format!("Scatter between units is not known: no figure is of two of {units}."),
            false => format!(
                "Scatter over {units}: units ± is the standard deviation between cards in their \
                 boards, without what repeats on the same one scatter by (repeats ±); both are \
                 shares of the mean."
            ),
        }
    }
}

/// A figure over all units, by the heads of [`SCATTER_HEAD`].
pub(crate) fn scatter_row(one: &UnitScatter) -> Vec<String> {
    let share = |value: f64| format!("{:.1} %", value * 100.0);
    let by_mean =
        |a: &&whichfs_study::UnitFigure, b: &&whichfs_study::UnitFigure| a.mean.total_cmp(&b.mean);
    let ends = [
        one.units.iter().min_by(by_mean),
        one.units.iter().max_by(by_mean),
    ];
    let ends = ends.into_iter().flatten();
    let ends: Vec<String> = ends
        .map(|unit| format!("{} {}", unit.card, with_unit(unit.mean, &one.unit)))
        .collect();
    let named = [
        metric_words(&one.metric),
        one.form.clone(),
        one.variant.clone(),
    ];
    let named: Vec<String> = named.into_iter().filter(|name| !name.is_empty()).collect();
    vec![
        one.candidate.clone(),
        format!("{}: {}", one.load, named.join(", ")),
        with_unit(one.mean, &one.unit),
        share(one.between),
        one.within.map_or("–".to_owned(), share),
        ends.join(", "),
    ]
}

/// What all boards gave, and how much they differ, in lines of at most `width` columns.
pub fn fleet_text(fleet: &FleetRun, width: usize) -> String {
    let mut out = Lines::new(width);
    for one in &fleet.places {
        out.paragraph(
            &format!("== {}: {} in {}", one.place, one.card, one.board),
            0,
        );
        if let Some(why) = &one.ended {
            out.paragraph(&format!("ENDED EARLY: {why}"), 0);
        }
        out.raw(&study_text(&one.run, width));
        out.line("");
    }
    if !fleet.scatter.is_empty() {
        let rows = fleet.scatter.iter().map(scatter_row).collect();
        out.table(&SCATTER_HEAD, rows);
    }
    out.paragraph(&fleet.explained(), 0);
    out.text()
}

/// The page of `fleet`, which has a board at least; `place` is what all boards have in common.
pub fn fleet_page<'a>(fleet: &'a FleetRun<'_>, place: &StudyPlace, version: &str) -> StudyPage<'a> {
    let first = study_page(&fleet.places[0].run, place, version);
    let tables = fleet.places.iter().flat_map(|one| one.run.tables.clone());
    let mut notes = vec![fleet.explained()];
    let (mut cards, mut boards, mut done, mut all) = (Vec::new(), Vec::new(), 0, 0);
    for one in &fleet.places {
        let said = one
            .ended
            .iter()
            .map(|why| format!("{}: ENDED EARLY: {why}", one.place));
        notes.extend(said);
        let own = study_page(&one.run, place, version).notes.into_iter();
        notes.extend(own.map(|note| format!("{}: {note}", one.place)));
        cards.push(one.card.as_str());
        boards.push(one.board.as_str());
        done += one.run.done;
        all += one.run.trials;
    }
    let mut environment = first.environment;
    for item in &mut environment {
        match item.label.as_str() {
            "cards" => item.value = cards.join(", "),
            "boards" => item.value = boards.join(", "),
            "trials" => item.value = format!("{done} of {all}"),
            _ => {}
        }
    }
    StudyPage {
        tables: tables.collect(),
        gains: (fleet.places.iter())
            .flat_map(|one| gain_tables(one.run.study, &one.run.gains, usize::MAX))
            .collect(),
        scatter: fleet.scatter.iter().map(scatter_row).collect(),
        notes,
        environment,
        ..first
    }
}
