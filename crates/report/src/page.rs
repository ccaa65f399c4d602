//! One self-contained HTML page for a verdict: no network, light and dark, works by keyboard.
//!
//! From top to bottom it answers: which one; how sure; what it costs against the second;
//! what was excluded and by which rule; the picture of all candidates; each metric; how long
//! operations took; the device; its wear; the card; what it ran on; how it was judged; how to
//! apply it; how to reproduce it. The template escapes every text; only the page's own script,
//! which is part of the program, is put in as it is, and the page's policy runs no other.
//! Without the script nothing is missing but filters, sorting and the list of every sample.

use crate::chart::{Chart, chart};
use crate::device::{DeviceView, TrialLine};
use crate::excluded::{Group, failed, groups};
use crate::page_device::{LatencyChart, SizesRow, WearRow, latencies, sizes, wear};
use crate::page_parts::{
    Against, Head, HeatRow, Part, Score, against, heads, heat, linked, printed, provenance, scores,
};
use crate::page_time::{TimeRow, times};
use crate::policy::{SCRIPT, policy};
use crate::samples::{self, ID};
use crate::terminal::{bound, measured_whole, sentence, sureness, winner};
use askama::Template;
use serde::{Deserialize, Serialize};
use whichfs_study::Verdict;

/// A labelled figure with its source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// What it is.
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

/// What a report shows. Its JSON form is that of `choose --json`: the verdict's fields, and these.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Page {
    /// The verdict with all its figures.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Figures of the card's profile, each with its source.
    pub card_figures: Vec<Item>,
    /// Board, clock, kernel, tools and their versions.
    pub environment: Vec<Item>,
    /// The exact command that gives this report again.
    pub reproduce: Vec<String>,
    /// The command that repeats one trial; CANDIDATE and SEED stand for what they say.
    pub repeat: String,
    /// The command that shows one trial; TRIAL stands for its id.
    #[serde(default)]
    pub show: String,
    /// The trials behind it.
    pub trials_of: Vec<TrialLine>,
    /// The device under each candidate.
    pub devices: Vec<DeviceView>,
}

/// The page as HTML.
pub fn html(page: &Page) -> String {
    let view = View::of(page);
    view.render()
        .unwrap_or_else(|error| unreachable!("writing to a String cannot fail: {error}"))
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
    changes: Vec<Vec<Part>>,
    scores: Vec<Score>,
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
    /// Whether some trial recorded what its device did over time, and whether that has open AUs.
    series_known: bool,
    open_known: bool,
    wear: Vec<WearRow>,
    /// What the card's profile states, and what it leaves to the model.
    card: [Vec<&'a Item>; 2],
}

/// The commands that show the trials of a group that its own trials exclude.
fn tried(page: &Page, group: &Group) -> Vec<String> {
    let own = |line: &&TrialLine| group.tried && group.candidates.contains(&line.candidate);
    let trials = page.trials_of.iter().filter(own);
    let shown = trials.map(|line| {
        page.show
            .replace("TRIAL", line.id.get(..ID).unwrap_or(&line.id))
    });
    shown.filter(|command| !command.is_empty()).collect()
}

impl<'a> View<'a> {
    fn of(page: &'a Page) -> View<'a> {
        let verdict = &page.verdict;
        let first = verdict.ranking.first();
        let reasons = first.map_or(&[][..], |first| &first.reasons);
        let metrics = &verdict.metrics;
        let times = times(page);
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
                .map(|change| linked(&format!("{}.", sentence(&change.text)), metrics))
                .collect(),
            scores: scores(verdict),
            against: against(verdict),
            tried: groups(verdict)
                .iter()
                .map(|group| tried(page, group))
                .collect(),
            excluded: groups(verdict),
            heads: heads(verdict),
            heat: heat(verdict),
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
            wear: wear(page),
            card: [false, true].map(|default| {
                let own = page.card_figures.iter();
                own.filter(|item| (item.source == DEFAULT) == default)
                    .collect()
            }),
        }
    }
}
