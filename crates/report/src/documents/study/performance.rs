//! Studies with trials: what one is, and what its trials gave.

use super::columns::parts;
use super::gains::{self, gain_tables};
use super::smallest::{self, SmallestFound};
use super::{DeviceMeasured, paragraphs};
use crate::document::Document;
use crate::page::Item;
use crate::study_page::StudyPage;
use crate::text::{Lines, table};
use schemars::JsonSchema;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use whichfs_decide::FigureOrigin;
use whichfs_study::{
    FallingBehind, Gain, Grid, GridLine, Offset, PerformanceStudy, Score, Skipped, Tuning, Variant,
};
use whichfs_trial::REAL;
use whichfs_units::{Bytes, counted};

/// A study with trials and what they gave.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StudyRun<'a> {
    /// The study as it was run.
    pub study: &'a PerformanceStudy,
    /// Figures, table by table.
    pub tables: Vec<Grid>,
    /// How true they are, beside the published figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<Score>,
    /// What is compared, if the study compares.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gains: Vec<Gain>,
    /// Turning points, if its workloads are a series.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<FallingBehind>,
    /// The smallest partitions, if the study looks for them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub smallest: Vec<SmallestFound<'a>>,
    /// Published lines that stand beside nothing, by file.
    pub skipped: BTreeMap<String, Skipped>,
    /// Candidates that cannot run here, with the reason.
    pub left_out: Vec<String>,
    /// Trials that failed, with the reason.
    pub failed: Vec<String>,
    /// What figures leave out.
    pub caveats: Vec<String>,
    /// Trials of the matrix.
    pub trials: usize,
    /// Trials whose figures are in the tables.
    pub done: usize,
    /// Trials that came from the store.
    pub reused: usize,
    /// Whether the budget ended before the trials did.
    pub budget_ended: bool,
    /// What was seen of the device, if it was measured on one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<DeviceMeasured>,
    /// Keys and values of `--label`, in the order in which they were given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<(String, String)>,
    /// Command line that repeats the study.
    pub reproduce: String,
}

impl Document for StudyRun<'_> {
    const NAME: &'static str = "study run";
}

/// Where trials were made.
#[derive(Clone, Debug)]
pub struct StudyPlace {
    /// Release and SHA-256 of each kernel.
    pub kernels: Vec<(String, String)>,
    /// State in which the card began.
    pub card_state: &'static str,
    /// Modelled or measured.
    pub origin: FigureOrigin,
}

/// A study with trials, and the figures of its last run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StudyShown<'a> {
    /// What the study file asks for.
    #[serde(flatten)]
    pub study: &'a PerformanceStudy,
    /// The figures that the store has; without any, absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<&'a StudyRun<'a>>,
}

impl Document for StudyShown<'_> {
    const NAME: &'static str = "study show";
}

/// What a study is, in lines of at most `width` columns.
pub fn study_definition(study: &PerformanceStudy, width: usize) -> String {
    let method = paragraphs(&study.method);
    let row = |label: &str, value: String| vec![label.to_owned(), value];
    let mut rows = vec![
        row("question", study.title.clone()),
        row("source", study.source.clone()),
    ];
    rows.extend(method.iter().map(|text| row("method", text.clone())));
    rows.push(row("candidates", study.candidates.join(", ")));
    let named = study.variants.iter().filter(|v| !v.name.is_empty());
    rows.extend(named.map(|variant| {
        let without = variant.without.iter().map(|option| format!(" -{option}"));
        let add = [&variant.add].into_iter().filter(|add| !add.is_empty());
        let changes: String = without.chain(add.map(|add| format!(" +{add}"))).collect();
        let only = match variant.only.is_empty() {
            true => String::new(),
            false => format!(" ({} only)", variant.only.join(", ")),
        };
        let same = if changes.is_empty() {
            " the catalogue's options"
        } else {
            ""
        };
        let place = placed(variant);
        row(
            "mount",
            format!("{}:{same}{changes}{place}{only}", variant.name),
        )
    }));
    rows.extend(study.workloads.iter().map(|load| {
        let text = |map: &BTreeMap<String, u64>| {
            let pairs = map.iter().map(|(name, value)| format!("{name}={value}"));
            pairs.collect::<Vec<String>>().join(" ")
        };
        let quick = match load.quick.is_empty() {
            true => String::new(),
            false => format!("; quick: {}", text(&load.quick)),
        };
        let full = text(&load.parameters);
        let place = if load.on_devices {
            "; on real devices only"
        } else {
            ""
        };
        row(
            "workload",
            format!("{}: {} {full}{quick}{place}", load.name, load.workload),
        )
    }));
    rows.push(row("cards", study.cards.join(", ")));
    rows.push(row("boards", study.boards.join(", ")));
    rows.push(row("clock", study.clock.clone()));
    if !study.kernels.is_empty() {
        rows.push(row("kernels", study.kernels.join(", ")));
    }
    rows.push(row(
        "repeats",
        format!("{}; quick: {}", study.seeds, study.quick_seeds),
    ));
    rows.push(row("trials", study.spots().len().to_string()));
    for mapping in &study.published {
        rows.push(row("published", mapping.file.clone()));
    }
    table(&["study", &study.name], rows, width) + "\n"
}

/// Where a variant puts the partition, what it changes in mkfs and what it tunes for.
fn placed(variant: &Variant) -> String {
    let offset = variant.offset.map(|offset| match offset {
        Offset::Bytes(bytes) => format!(", partition at {}", Bytes(bytes)),
        Offset::Au {
            numerator,
            denominator,
        } => format!(", partition at {numerator}/{denominator} of an allocation unit"),
    });
    let set = variant
        .set
        .iter()
        .map(|(key, value)| format!(", {key}={value}"));
    let mkfs = (!variant.mkfs.is_empty()).then(|| format!(", mkfs {}", variant.mkfs.join(" ")));
    let tuned = match &variant.tuning {
        Tuning::ThisCard => None,
        Tuning::Nothing => Some(", as mkfs and mount make it by themselves".to_owned()),
        Tuning::Card(card) => Some(format!(", tuned for {card}")),
    };
    offset
        .into_iter()
        .chain(set)
        .chain(mkfs)
        .chain(tuned)
        .collect()
}

/// The tables and what is to be known of them, in lines of at most `width` columns.
pub fn study_text(document: &StudyRun, width: usize) -> String {
    let mut out = Lines::new(width);
    let study = document.study;
    out.paragraph(&format!("{} ({})", study.title, study.name), 0);
    for grid in &document.tables {
        out.line(&format!(
            "\n{} on {}, board {} ({})",
            grid.load,
            grid.card,
            grid.board,
            origin(study).word()
        ));
        for (at, part) in parts(grid, width).into_iter().enumerate() {
            if at > 0 {
                out.line("");
            }
            let head: Vec<&str> = part.head.iter().map(String::as_str).collect();
            out.table(&head, part.rows);
        }
    }
    for table in gain_tables(study, &document.gains, width) {
        out.line(&format!("\n{}", table.title));
        let head: Vec<&str> = table.head.iter().map(String::as_str).collect();
        out.table(&head, table.rows);
    }
    if !document.smallest.is_empty() {
        out.line("");
        let rows = smallest::rows(&document.smallest);
        out.table(&smallest::HEAD, rows);
    }
    out.line("");
    for sentence in legend(document) {
        out.paragraph(&sentence, 0);
    }
    out.text()
}

/// Where the figures of a study come from.
fn origin(study: &PerformanceStudy) -> FigureOrigin {
    match study.clock.as_str() {
        REAL => FigureOrigin::Measured,
        _ => FigureOrigin::Modelled,
    }
}

/// The page of a study that was run at `place` by `version` of the program.
pub fn study_page<'a>(
    document: &'a StudyRun<'_>,
    place: &StudyPlace,
    version: &str,
) -> StudyPage<'a> {
    let study = document.study;
    let item = |label: &str, value: String, source: &str| Item {
        label: label.to_owned(),
        value,
        source: source.to_owned(),
        ..Item::default()
    };
    let releases: Vec<&str> = place
        .kernels
        .iter()
        .map(|(release, _)| &**release)
        .collect();
    let short = |(_, sha256): &(String, String)| sha256.chars().take(16).collect::<String>();
    let digests: Vec<String> = place.kernels.iter().map(short).collect();
    StudyPage {
        origin: place.origin,
        title: &study.title,
        source: &study.source,
        method: paragraphs(&study.method),
        labels: &document.labels,
        tables: Cow::Borrowed(&document.tables),
        gains: gain_tables(study, &document.gains, usize::MAX),
        scatter: Vec::new(),
        notes: [notes(document), smallest::sentences(&document.smallest)].concat(),
        environment: vec![
            item("whichfs", version.to_owned(), ""),
            item(
                "kernel",
                releases.join(", "),
                &format!("sha256 {}", digests.join(", ")),
            ),
            item("cards", study.cards.join(", "), place.card_state),
            item("boards", study.boards.join(", "), ""),
            item("clock", study.clock.clone(), ""),
            item("seeds", study.seeds.to_string(), "figures are medians"),
            item(
                "trials",
                format!("{} of {}", document.done, document.trials),
                &format!("{} from the store", document.reused),
            ),
        ],
        reproduce: document.reproduce.clone(),
    }
}

fn legend(document: &StudyRun) -> Vec<String> {
    let lines = || document.tables.iter().flat_map(|grid| &grid.lines);
    let mut said = vec!["*: best of the line.".to_owned()];
    if document.study.seeds > 1 {
        said.push(format!(
            "Medians of {} {}; ±: the largest distance from the median.",
            document.study.seeds,
            match origin(document.study) {
                FigureOrigin::Measured => "repeats",
                FigureOrigin::Modelled | FigureOrigin::Published => "seeds",
            }
        ));
    }
    if lines().any(GridLine::is_doubted) {
        said.push(
            "~: off by more than 15 % because of what the virtual CPU takes; see below.".into(),
        );
    }
    if lines().any(|line| !line.published.is_empty()) {
        said.push(
            "published: what the authors measured on the real card, in our unit; tau: how far \
             the two rankings agree (Kendall's tau-b: 1 wholly, 0 not at all, -1 reversed)."
                .to_owned(),
        );
    }
    said.extend(notes(document));
    said
}

/// What is to be known of the figures.
fn notes(document: &StudyRun) -> Vec<String> {
    let mut said = gains::sentences(document.study, &document.gains, &document.turns);
    for (file, skipped) in &document.skipped {
        if skipped.holes + skipped.others > 0 {
            said.push(format!(
                "{file}: {} without a figure, {} about what this study does not have.",
                counted(skipped.holes, "line"),
                skipped.others
            ));
        }
        if !skipped.unused.is_empty() {
            said.push(format!(
                "{file}: no line has {}, which the study would set beside its figures.",
                skipped.unused.join(", ")
            ));
        }
    }
    said.extend(orders(document));
    said.extend(document.score.iter().flat_map(Score::told));
    if document.study.clock == "device" {
        said.push("cpu: not known: with the clock device the CPU is free.".to_owned());
    }
    let list = |label: &str, all: &[String]| -> Vec<String> {
        all.iter().map(|text| format!("{label}: {text}")).collect()
    };
    said.extend(list("left out", &document.left_out));
    said.extend(list("FAILED", &document.failed));
    said.extend(list("note", &document.caveats));
    if document.budget_ended {
        said.push(format!(
            "The budget is spent: of {} {} done; the same command goes on.",
            counted(document.trials, "trial"),
            document.done
        ));
    }
    said
}

/// How far published figures rank the workloads of a table as ours do.
fn orders(document: &StudyRun) -> Vec<String> {
    let of = |grid: &Grid| {
        let (card, table) = (grid.card.clone(), grid.load.clone());
        let told = grid.orders.iter().map(move |order| {
            format!(
                "{table} on {card}: {} on {}, tau of the {} published forms: {:.2}.",
                order.metric, order.candidate, order.forms, order.tau_b
            )
        });
        told.collect::<Vec<String>>()
    };
    document.tables.iter().flat_map(of).collect()
}
