//! Published tables beside ours: which column means what, and their figures in our units.

use super::{Known, PerformanceStudy};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use toml::Spanned;
use whichfs_decide::{FileError, Position};
use whichfs_units::hint;

/// A published table, and what of ours its figures stand beside.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Mapping {
    /// Name of the CSV file, in the folder of published tables.
    pub file: String,
    /// Column with the card, if it is about several.
    pub card_column: Option<String>,
    /// Our cards by their names in the table; others are passed over.
    pub cards: BTreeMap<String, String>,
    /// Column with the filesystem.
    pub candidate_column: String,
    /// Our candidates by their names in the table, where these differ.
    pub candidates: BTreeMap<String, String>,
    /// Column with the mount, if there are several.
    pub variant_column: Option<String>,
    /// Our variants by their names in the table, where these differ.
    pub variants: BTreeMap<String, String>,
    /// Columns that together say what was measured.
    pub metric_columns: Vec<String>,
    /// Column with the figure.
    pub value_column: String,
    /// Our metrics by what those columns say, joined by `/`; others are passed over.
    pub metrics: BTreeMap<String, Mapped>,
    /// Relative difference below which two figures of the source are a tie: how far its own
    /// repeats scatter, 0.05 for 5 %.
    pub noise: f64,
    /// The figures are grades, more is better: their order alone means something.
    pub grades: bool,
    /// Where it stands in its study file, as `mine.toml:12`.
    #[serde(skip)]
    pub at: String,
}

/// A metric of ours that a published one stands beside.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mapped {
    /// Name of the workload in the study.
    pub workload: String,
    /// Our metric.
    pub metric: String,
    /// Our unit is so many times theirs.
    #[serde(default = "one")]
    pub factor: f64,
    /// Theirs is a duration and ours a rate: ours is this amount divided by theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount: Option<f64>,
    /// Our candidate, where the table's column does not say which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<String>,
}

impl Mapped {
    fn ours(&self, theirs: f64) -> f64 {
        match self.amount {
            Some(amount) => amount / theirs,
            None => theirs * self.factor,
        }
    }
}

fn one() -> f64 {
    1.0
}

/// A published figure in our words and units.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PublishedFigure {
    /// Our card; `None`: whichever.
    pub card: Option<String>,
    /// Our workload.
    pub load: String,
    /// Our candidate.
    pub candidate: String,
    /// Our variant; `None` if the table has none.
    pub variant: Option<String>,
    /// Our metric.
    pub metric: String,
    /// In our unit; a grade as it was published.
    pub value: f64,
    /// Whether the value is a grade: more is better, whatever the metric.
    pub grade: bool,
}

impl PublishedFigure {
    /// Whether `other` stands beside the same figure of ours.
    fn is_of_the_same(&self, other: &PublishedFigure) -> bool {
        let of = |figure: &PublishedFigure| PublishedFigure {
            value: 0.0,
            ..figure.clone()
        };
        of(self) == of(other)
    }
}

/// What of a table and its mapping stands beside nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Skipped {
    /// Lines without a figure.
    pub holes: usize,
    /// Lines about cards, candidates, mounts or metrics that the study does not have.
    pub others: usize,
    /// Keys of the mapping's metrics that no line of the table has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unused: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MappingFile {
    file: Spanned<String>,
    card_column: Option<String>,
    #[serde(default)]
    cards: BTreeMap<String, Spanned<String>>,
    candidate_column: String,
    #[serde(default)]
    candidates: BTreeMap<String, Spanned<String>>,
    variant_column: Option<String>,
    #[serde(default)]
    variants: BTreeMap<String, Spanned<String>>,
    metric_columns: Vec<String>,
    value_column: String,
    #[serde(default)]
    noise: Option<Spanned<f64>>,
    #[serde(default)]
    grades: bool,
    metrics: BTreeMap<String, Spanned<Mapped>>,
}

/// The mappings of a study file; what they name must be in the `study`.
pub(super) fn mappings(
    at: &Position,
    given: &[MappingFile],
    study: &PerformanceStudy,
    known: &Known,
) -> Result<Vec<Mapping>, FileError> {
    given
        .iter()
        .map(|raw| mapping(at, raw, study, known))
        .collect()
}

fn mapping(
    at: &Position,
    raw: &MappingFile,
    study: &PerformanceStudy,
    known: &Known,
) -> Result<Mapping, FileError> {
    let variants: Vec<&String> = study.variants.iter().map(|v| &v.name).collect();
    let cards: Vec<&String> = study.cards.iter().collect();
    let candidates: Vec<&String> = study.candidates.iter().collect();
    for (key, mapped) in &raw.metrics {
        let name = format!("published.metrics.{key}");
        let Mapped {
            workload,
            metric,
            factor,
            amount,
            candidate,
        } = mapped.get_ref();
        let Some(load) = study.workloads.iter().find(|load| load.name == *workload) else {
            let all: Vec<&str> = study
                .workloads
                .iter()
                .map(|load| load.name.as_str())
                .collect();
            return Err(at.error(mapped, &name, format!("'{workload}'"), &all.join(", ")));
        };
        (known.metric)(&load.workload, metric)
            .map_err(|why| at.error(mapped, &name, format!("'{metric}'"), &why))?;
        if let Some(candidate) = candidate.as_ref().filter(|c| !candidates.contains(c)) {
            let all: Vec<&str> = candidates.iter().map(|name| name.as_str()).collect();
            return Err(at.error(mapped, &name, format!("'{candidate}'"), &all.join(", ")));
        }
        let legal = |number: f64| number.is_finite() && number > 0.0;
        if !legal(*factor) || !amount.is_none_or(legal) {
            let found = format!("factor {factor}, amount {amount:?}");
            return Err(at.error(mapped, &name, found, "numbers above 0"));
        }
    }
    let noise = raw.noise.as_ref().map_or(0.0, |noise| *noise.get_ref());
    if let Some(given) = raw.noise.as_ref().filter(|_| !(0.0..=1.0).contains(&noise)) {
        let found = noise.to_string();
        return Err(at.error(given, "published.noise", found, "0 to 1"));
    }
    Ok(Mapping {
        file: at.filled("published.file", &raw.file)?,
        card_column: raw.card_column.clone(),
        cards: names_of(at, "published.cards", &raw.cards, &cards)?,
        candidate_column: raw.candidate_column.clone(),
        candidates: names_of(at, "published.candidates", &raw.candidates, &candidates)?,
        variant_column: raw.variant_column.clone(),
        variants: names_of(at, "published.variants", &raw.variants, &variants)?,
        metric_columns: raw.metric_columns.clone(),
        value_column: raw.value_column.clone(),
        metrics: raw
            .metrics
            .iter()
            .map(|(key, mapped)| (key.clone(), mapped.get_ref().clone()))
            .collect(),
        noise,
        grades: raw.grades,
        at: at.of(&raw.file),
    })
}

/// Our names by theirs; ours must be among `legal`.
fn names_of(
    at: &Position,
    key: &str,
    given: &BTreeMap<String, Spanned<String>>,
    legal: &[&String],
) -> Result<BTreeMap<String, String>, FileError> {
    let mut found = BTreeMap::new();
    for (theirs, ours) in given {
        if !legal.contains(&ours.get_ref()) {
            let all: Vec<&str> = legal.iter().map(|name| name.as_str()).collect();
            return Err(at.error(ours, key, format!("'{}'", ours.get_ref()), &all.join(", ")));
        }
        found.insert(theirs.clone(), ours.get_ref().clone());
    }
    Ok(found)
}

impl Mapping {
    /// The figures of a published table, `text` in RFC 4180 with a line of heads; `file` is
    /// only for messages.
    ///
    /// # Errors
    /// [`FileError`] if a column is missing, a line is of another length, a figure is no number
    /// above 0, or a second line has a figure for the same.
    pub fn read(
        &self,
        study: &PerformanceStudy,
        file: &str,
        text: &str,
    ) -> Result<(Vec<PublishedFigure>, Skipped), FileError> {
        let mut reader = csv::ReaderBuilder::new()
            .comment(Some(b'#'))
            .from_reader(text.as_bytes());
        let heads = reader.headers().map_err(|e| fault(file, &e))?.clone();
        let place = |column: &str| {
            heads.iter().position(|head| head == column).ok_or_else(|| {
                let all: Vec<&str> = heads.iter().collect();
                let found = format!("there is no column '{column}'");
                let legal = match all.as_slice() {
                    [] => "a line of heads".to_owned(),
                    all => hint(column, all, Some(&format!("the first line of {file}"))),
                };
                error(file, 1, "heads", found, &legal)
            })
        };
        let optional = |column: &Option<String>| column.as_deref().map(place).transpose();
        let columns = Columns {
            card: optional(&self.card_column)?,
            candidate: place(&self.candidate_column)?,
            variant: optional(&self.variant_column)?,
            metrics: self
                .metric_columns
                .iter()
                .map(|column| place(column))
                .collect::<Result<_, _>>()?,
            value: place(&self.value_column)?,
        };
        let (mut figures, mut skipped) = (Vec::new(), Skipped::default());
        let mut lines: Vec<usize> = Vec::new();
        let mut unused: BTreeSet<&String> = self.metrics.keys().collect();
        for record in reader.records() {
            let record = record.map_err(|e| fault(file, &e))?;
            let line = record.position().map_or(0, |at| at.line() as usize);
            unused.remove(&columns.measured(&record));
            let cell = &record[columns.value];
            if matches!(cell.trim(), "" | "-") {
                skipped.holes += 1;
                continue;
            }
            let value = cell.trim().parse().ok();
            let Some(value) = value.filter(|v: &f64| v.is_finite() && *v > 0.0) else {
                let found = format!("'{cell}'");
                return Err(error(
                    file,
                    line,
                    &self.value_column,
                    found,
                    "a number above 0",
                ));
            };
            let Some(figure) = self.figure(study, &columns, &record, value) else {
                skipped.others += 1;
                continue;
            };
            let same = figures
                .iter()
                .position(|other| figure.is_of_the_same(other));
            if let Some(first) = same.and_then(|at| lines.get(at)) {
                let found = format!("'{cell}' for what line {first} has a figure for");
                return Err(error(
                    file,
                    line,
                    &self.value_column,
                    found,
                    "one line for each",
                ));
            }
            figures.push(figure);
            lines.push(line);
        }
        skipped.unused = unused.into_iter().cloned().collect();
        Ok((figures, skipped))
    }

    /// The figure of a line, if it is about something that the study has.
    fn figure(
        &self,
        study: &PerformanceStudy,
        columns: &Columns,
        record: &csv::StringRecord,
        theirs: f64,
    ) -> Option<PublishedFigure> {
        let ours = |names: &BTreeMap<String, String>, theirs: &str| {
            names.get(theirs).cloned().unwrap_or(theirs.to_owned())
        };
        let mapped = self.metrics.get(&columns.measured(record))?;
        let card = match columns.card {
            Some(at) => Some(self.cards.get(&record[at])?.clone()),
            None => None,
        };
        let candidate = match &mapped.candidate {
            Some(candidate) => candidate.clone(),
            None => ours(&self.candidates, &record[columns.candidate]),
        };
        let variant = columns.variant.map(|at| ours(&self.variants, &record[at]));
        let has_variant = |name: &String| study.variants.iter().any(|v| v.name == *name);
        let known = study.candidates.contains(&candidate) && variant.iter().all(has_variant);
        known.then(|| PublishedFigure {
            card,
            load: mapped.workload.clone(),
            candidate,
            variant,
            metric: mapped.metric.clone(),
            value: match self.grades {
                true => theirs,
                false => mapped.ours(theirs),
            },
            grade: self.grades,
        })
    }
}

/// Places of the columns in a record.
struct Columns {
    card: Option<usize>,
    candidate: usize,
    variant: Option<usize>,
    metrics: Vec<usize>,
    value: usize,
}

impl Columns {
    /// What was measured, as the key of a mapping.
    fn measured(&self, record: &csv::StringRecord) -> String {
        let measured: Vec<&str> = self.metrics.iter().map(|&at| &record[at]).collect();
        measured.join("/")
    }
}

fn error(file: &str, line: usize, key: &str, found: String, expected: &str) -> FileError {
    FileError {
        file: file.to_owned(),
        line,
        key: key.to_owned(),
        found,
        expected: expected.to_owned(),
    }
}

fn fault(file: &str, fault: &csv::Error) -> FileError {
    let line = fault.position().map_or(1, |at| at.line() as usize);
    let expected = "lines of as many fields as the first has, in UTF-8";
    error(file, line, "the table", fault.to_string(), expected)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::study::{StudyWorkload, Variant};

    fn study() -> PerformanceStudy {
        let load = |name: &str| StudyWorkload {
            name: name.into(),
            workload: "rootfs".into(),
            parameters: BTreeMap::new(),
            quick: BTreeMap::new(),
            only_variants: Vec::new(),
            partition_bytes: None,
            table: String::new(),
            at: String::new(),
            cpu: false,
            on_devices: false,
        };
        let variant = |name: &str| Variant {
            name: name.into(),
            ..Variant::default()
        };
        PerformanceStudy {
            name: "x".into(),
            title: "t".into(),
            source: "s".into(),
            method: "m".into(),
            cards: vec!["c".into()],
            boards: vec!["b".into()],
            clock: "cpu".into(),
            kernels: Vec::new(),
            modules: None,
            seeds: 1,
            quick_seeds: 1,
            same_data: false,
            candidates: vec!["ext4".into(), "ntfs3".into()],
            variants: vec![variant("relatime"), variant("sync")],
            workloads: vec![load("tree")],
            compare: None,
            smallest: None,
            published: Vec::new(),
        }
    }

    fn mapping() -> Mapping {
        let mapped = |factor, amount| Mapped {
            workload: "tree".into(),
            metric: "tree_write".into(),
            factor,
            amount,
            candidate: None,
        };
        let names = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            let own = |pair: &(&str, &str)| (pair.0.to_owned(), pair.1.to_owned());
            pairs.iter().map(own).collect()
        };
        Mapping {
            file: "t.csv".into(),
            card_column: Some("card".into()),
            cards: names(&[("sd", "c")]),
            candidate_column: "fs".into(),
            candidates: names(&[("ntfs", "ntfs3")]),
            variant_column: Some("mount".into()),
            variants: BTreeMap::new(),
            metric_columns: vec!["what".into(), "phase".into()],
            value_column: "v".into(),
            metrics: BTreeMap::from([
                ("tree/rate".to_owned(), mapped(0.001, None)),
                ("tree/time".to_owned(), mapped(1.0, Some(100.0))),
            ]),
            noise: 0.0,
            grades: false,
            at: String::new(),
        }
    }

    const HEADS: &str = "card,what,phase,mount,fs,v\n";

    fn read(lines: &str) -> Result<(Vec<PublishedFigure>, Skipped), FileError> {
        mapping().read(&study(), "t.csv", &format!("{HEADS}{lines}"))
    }

    #[test]
    fn grades_are_taken_as_they_are_and_comments_are_passed_over() {
        let graded = Mapping {
            grades: true,
            ..mapping()
        };
        let table = format!("# source\n{HEADS}sd,tree,rate,relatime,ext4,5\n");
        let (figures, _) = graded.read(&study(), "t.csv", &table).unwrap();
        assert_eq!((figures[0].value, figures[0].grade), (5.0, true));
    }

    #[test]
    fn figures_are_in_our_names_and_units() {
        let lines = "sd,tree,rate,relatime,ext4,5000\nsd,tree,time,sync,ntfs,4\n";
        let (figures, skipped) = read(lines).unwrap();
        assert_eq!(skipped, Skipped::default());
        assert_eq!(figures.len(), 2);
        assert_eq!(figures[0].value, 5.0);
        assert_eq!(figures[1].candidate, "ntfs3");
        assert_eq!(figures[1].value, 25.0);
        assert_eq!(figures[1].card.as_deref(), Some("c"));
        assert_eq!(figures[1].variant.as_deref(), Some("sync"));
    }

    #[test]
    fn a_key_can_name_the_candidate_that_the_table_leaves_open() {
        let mut mapping = mapping();
        if let Some(mapped) = mapping.metrics.get_mut("tree/rate") {
            mapped.candidate = Some("ntfs3".to_owned());
        }
        let text = format!("{HEADS}sd,tree,rate,sync,,1\n");
        let (figures, _) = mapping.read(&study(), "t.csv", &text).unwrap();
        assert_eq!(figures[0].candidate, "ntfs3");
    }

    #[test]
    fn holes_and_what_the_study_does_not_have_are_counted() {
        let lines = "sd,tree,rate,relatime,ext4,\nsd,tree,rate,relatime,ext4,-\n\
                     usb,tree,rate,relatime,ext4,1\nsd,tree,rate,relatime,zfs,1\n\
                     sd,tree,rate,async,ext4,1\nsd,boot,rate,relatime,ext4,1\n";
        let (figures, skipped) = read(lines).unwrap();
        assert!(figures.is_empty());
        let expected = Skipped {
            holes: 2,
            others: 4,
            unused: vec!["tree/time".to_owned()],
        };
        assert_eq!(skipped, expected);
    }

    #[test]
    fn faults_of_a_table_are_told_with_their_lines() {
        let cases = [
            ("sd,tree,rate,relatime,ext4,fast\n", "t.csv:2: v: 'fast'"),
            ("sd,tree,rate,relatime,ext4,-3\n", "t.csv:2: v: '-3'"),
            (
                "sd,tree,rate,sync,ext4,1\nsd,tree,rate,sync,ext4,2\n",
                "t.csv:3: v: '2' for what line 2 has a figure for",
            ),
            (
                "sd,tree,rate,relatime,ext4,1\nsd,tree\n",
                "t.csv:3: the table",
            ),
        ];
        for (lines, said) in cases {
            let error = read(lines).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
        let error = mapping().read(&study(), "t.csv", "a,b\n1,2\n").unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains("no column 'card'") && error.contains("a, b"),
            "{error}"
        );
    }
}
