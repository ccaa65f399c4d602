//! One self-contained HTML page for a verdict: no network, light and dark, works by keyboard.
//!
//! From top to bottom it answers: which one; how to apply it, what decides it in one picture, and
//! what is unknown, all on the first screen; how sure; what it costs against the second;
//! what was excluded and by which rule; the picture of all candidates; each metric; how long
//! operations took; the device; its wear; the card; what it ran on; how it was judged; how to
//! reproduce it, trial by trial. The template escapes every text; only the page's
//! own script, which is part of the program, is put in as it is, and the page's policy runs no
//! other. Without the script nothing is missing but filters, sorting and the list of every sample.

use crate::answer::{measured_whole, sureness, winner};
use crate::chart::{Chart, chart, unjudged};
use crate::commands::{TrialsOf, repeated, shown, trials};
use crate::device::{DeviceView, TrialLine};
use crate::document::Document;
use crate::excluded::{Group, failed, groups};
use crate::files::RunStamp;
use crate::page_device::{LatencyChart, SizesRow, WearRow, latencies, sizes, wear, without};
use crate::page_front::{Front, PLANE, SIZE, front};
use crate::page_parts::{
    Against, Head, HeatRow, Part, Score, against, heads, heat, linked, printed, provenance, scores,
};
use crate::page_time::{Axis, TimeRow, axis, times};
use crate::policy::{SCRIPT, policy};
use crate::samples;
use crate::terminal::{bound, scale_told, sentence};
use askama::Template;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use whichfs_decide::Verdict;

/// A labelled figure with its source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct Item {
    /// Name of the figure, for people.
    pub label: String,
    /// Its name in a file or a document, where that is another.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its value with unit.
    pub value: String,
    /// Where it comes from; empty where that is this program.
    pub source: String,
}

/// The source of a figure that the card's profile does not state.
pub const DEFAULT: &str = "default of the model";

/// Power cuts under one candidate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct CutSeries {
    /// Candidate name.
    pub candidate: String,
    /// Decides the run and the instants of the cuts.
    pub seed: u64,
    /// Number of the series.
    pub id: String,
    /// Number of power cuts.
    pub cuts: u64,
}

/// What a report shows. Its JSON form is that of `choose --json`: the verdict's fields, and these.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct Page {
    /// The verdict with all its figures.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// When it was made, and what its user calls it by.
    #[serde(default)]
    pub run: RunStamp,
    /// Figures of the card's profile, each with its source.
    pub card_figures: Vec<Item>,
    /// Board, clock, kernel, tools and their versions.
    pub environment: Vec<Item>,
    /// The exact command that gives this report again.
    pub reproduce: Vec<String>,
    /// The command that repeats one trial: in its last options, from `--fs` on, CANDIDATE
    /// and SEED stand for what they say.
    pub repeat: String,
    /// The command that shows one trial; TRIAL stands for its id.
    #[serde(default)]
    pub show: String,
    /// The series of power cuts behind it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cuts: Vec<CutSeries>,
    /// The trials behind it.
    pub trials_of: Vec<TrialLine>,
    /// The device under each candidate.
    pub devices: Vec<DeviceView>,
}

impl Document for Page {
    const NAME: &'static str = "choose";
}

impl Page {
    /// Of the winner's first trial, or of the first of all: whose it is, the command that shows it
    /// and the one that runs it again. None without trials.
    pub fn example(&self) -> Option<(String, String, String)> {
        let winner = self.verdict.advised();
        let all = || self.trials_of.iter();
        let own = |line: &&TrialLine| winner.is_some_and(|one| one.candidate == line.candidate);
        let line = all().find(own).or_else(|| all().next())?;
        Some((
            format!("Trial of {}, seed {}", line.candidate, line.seed),
            shown(&self.show, &line.id),
            match line.command.is_empty() {
                true => repeated(&self.repeat, &line.candidate, line.seed),
                false => line.command.clone(),
            },
        ))
    }
}

/// The page as HTML.
pub fn html(page: &Page) -> String {
    crate::text::rendered(&View::of(page))
}

#[derive(Template)]
#[template(path = "report.html")]
struct View<'a> {
    page: &'a Page,
    verdict: &'a Verdict,
    policy: String,
    script: &'static str,
    data: String,
    headline: String,
    stamp: &'static str,
    provenance: String,
    sure: Vec<String>,
    /// Whose trials failed, in a sentence.
    failed: Option<String>,
    caveats: Vec<String>,
    reasons: Vec<Vec<Part>>,
    /// Each with whether it is of a rule.
    changes: Vec<(Vec<Part>, bool)>,
    /// The picture of the first screen.
    front: Option<Front>,
    scores: Vec<Score>,
    /// What a score of 1 is.
    scale: String,
    against: Option<Against>,
    excluded: Vec<Group>,
    /// For each of these, the trials that exclude it, as commands.
    tried: Vec<Vec<String>>,
    heads: Vec<Head>,
    heat: Vec<HeatRow>,
    /// The same in pieces that fit a sheet.
    printed: Vec<(Vec<Head>, Vec<HeatRow>)>,
    charts: Vec<Chart>,
    latencies: Vec<LatencyChart>,
    sizes: Vec<SizesRow>,
    times: Vec<TimeRow>,
    /// The axis of these.
    axis: Option<Axis>,
    /// Whether some trial recorded what its device did over time, and whether that has open AUs.
    series_known: bool,
    open_known: bool,
    wear: Vec<WearRow>,
    /// Candidates none of whose trials tells of the device, each with why.
    without: String,
    /// The trials of each candidate with their commands.
    trials: Vec<TrialsOf>,
    /// Candidates that had trials and are not judged, with why.
    marks: BTreeMap<&'a str, String>,
    /// What the card's profile states, and what it leaves to the model.
    card: [Vec<&'a Item>; 2],
}

/// The commands that show the trials of a group that its own trials exclude.
fn tried(page: &Page, group: &Group) -> Vec<String> {
    let own = |line: &&TrialLine| group.tried && group.candidates.contains(&line.candidate);
    let trials = page.trials_of.iter().filter(own);
    let shown = trials.map(|line| shown(&page.show, &line.id));
    shown.filter(|command| !command.is_empty()).collect()
}

impl<'a> View<'a> {
    /// Number of the part with the trials of `candidate`; 0 if there is none.
    fn trials_of(&self, candidate: &str) -> usize {
        let own = self.trials.iter().find(|one| one.candidate == candidate);
        own.map_or(0, |one| one.number)
    }

    /// Why `candidate` is not judged; empty if it is.
    fn mark(&self, candidate: &str) -> &str {
        self.marks.get(candidate).map_or("", String::as_str)
    }

    fn of(page: &'a Page) -> View<'a> {
        let verdict = &page.verdict;
        let first = verdict.advised();
        let reasons = first.map_or(&[][..], |first| &first.reasons);
        let metrics = &verdict.metrics;
        let times = times(page);
        let trials = trials(page);
        let number = |name: &str| {
            let own = trials.iter().find(|one| one.candidate == name);
            own.map_or(0, |one| one.number)
        };
        View {
            page,
            verdict,
            policy: policy(SCRIPT),
            script: SCRIPT,
            data: samples::json(page),
            headline: winner(verdict),
            stamp: verdict.origin.word(),
            provenance: provenance(verdict),
            sure: sureness(verdict).iter().map(|text| bound(text)).collect(),
            failed: failed(verdict),
            caveats: first.map_or(Vec::new(), |first| {
                let sentences = first.caveats.iter();
                let sentences = sentences.map(|text| format!("{}.", sentence(text)));
                sentences.chain(measured_whole(verdict)).collect()
            }),
            reasons: (reasons.iter())
                .map(|reason| linked(&format!("{reason}."), metrics))
                .collect(),
            changes: (verdict.changes.iter())
                .map(|change| {
                    let text = format!("{}.", sentence(&change.text));
                    (linked(&text, metrics), change.rule.is_some())
                })
                .collect(),
            front: front(verdict),
            scores: scores(verdict),
            scale: scale_told(verdict).replace('▒', "thin line"),
            against: against(verdict),
            tried: groups(verdict)
                .iter()
                .map(|group| tried(page, group))
                .collect(),
            excluded: groups(verdict),
            heads: heads(verdict),
            heat: (heat(verdict).into_iter())
                .map(|row| HeatRow {
                    number: number(&row.candidate),
                    ..row
                })
                .collect(),
            printed: printed(verdict),
            charts: metrics
                .iter()
                .map(|metric| chart(verdict, metric))
                .collect(),
            latencies: latencies(page),
            sizes: sizes(page),
            series_known: times.iter().any(|row| !row.amplification.is_empty()),
            open_known: times.iter().any(|row| row.open.is_some()),
            times,
            axis: axis(page),
            wear: wear(page),
            without: without(page)
                .iter()
                .map(|(name, mark)| format!("{name} ({mark})"))
                .collect::<Vec<_>>()
                .join(", "),
            trials,
            marks: unjudged(verdict)
                .into_iter()
                .map(|(one, mark)| (one.candidate.as_str(), mark))
                .collect(),
            card: [false, true].map(|default| {
                let own = page.card_figures.iter();
                own.filter(|item| (item.source == DEFAULT) == default)
                    .collect()
            }),
        }
    }
}
