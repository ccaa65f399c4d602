//! Posteriors of shipped cards, made before (`make posteriors`): `data/posteriors.tsv`.
//!
//! For each knowledge file a line `card`, then what the posterior says, then the samples of each
//! family: a line for each figure, with the values of the samples in turn; `8*3` is `8 8 8`.

use crate::knowledge::{Knowledge, shipped_knowledge};
use crate::population::{Population, profile_of};
use crate::posterior::{CostPercentiles, Posterior, SUMMARY};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use whichfs_card::{Family, Figure, Interface, Profile};
use whichfs_units::Rng;

/// The file as it ships.
pub(crate) const SHIPPED: &str = include_str!("../data/posteriors.tsv");
/// Samples that are kept of each: more than the seeds of a verdict, and little text.
const SAMPLES: usize = 32;
/// Raised where the same knowledge and population come to give another posterior.
const METHOD: u32 = 2;
/// A figure that a sample has by default.
const DEFAULT: &str = "-";
/// Figures of a profile of which no measurement of the population tells anything, by their
/// beginnings.
const NOT_INFERRED: [&str; 6] = [
    "cache.",
    "discard.",
    "geometry.beyond",
    "geometry.real_bytes",
    "slc.",
    "wear.",
];

/// How the source of a figure begins that nobody measured (docs/cards.md).
const COMPOSED: &str = "composed";
/// Beginning of the figures of the first AUs. The sequences of observations do not go there, so a
/// profile that measured how many there are knows more.
const FIRST_AUS: &str = "fat.";

/// Why the shipped posterior of a card cannot be read, in words; a test holds that all can be.
type Wrong = String;

impl Posterior {
    /// The posterior of the shipped card `name`, of which `knowledge/NAME.toml` says what is known;
    /// none if there is no such file.
    ///
    /// # Errors
    /// The shipped data are damaged.
    pub fn shipped(name: &str) -> Result<Option<Posterior>, Wrong> {
        let Some((_, text)) = shipped_knowledge().iter().find(|(of, _)| *of == name) else {
            return Ok(None);
        };
        let knowledge = Knowledge::parse(name, text).map_err(|error| error.to_string())?;
        let lines = lines_of(name).ok_or_else(|| format!("{name}: no posterior ships"))?;
        read(&knowledge, lines).map(Some)
    }

    /// The samples with what no measurement tells of them (cache, pSLC cache, discard, wear, less
    /// flash than claimed), and with the first AUs if these were measured, as `typical` has it, a
    /// card of the same size.
    ///
    /// # Errors
    /// Another size, or such a card cannot be; in words.
    pub fn completed_by(mut self, typical: &Profile) -> Result<Posterior, Wrong> {
        let [own, other] = [typical, &self.samples[0]].map(|card| card.capacity_bytes());
        if own != other {
            return Err(format!(
                "the card has {own} bytes, and {other} by what is known of it; correct the one \
                 that is wrong"
            ));
        }
        let measured = |figure: &Figure| {
            let source = figure.source.as_deref();
            figure.path == "fat.aus" && source.is_some_and(|source| !source.starts_with(COMPOSED))
        };
        let measured = !typical.composed() && typical.figures().any(measured);
        let first_aus = measured.then_some(FIRST_AUS);
        let told: BTreeMap<&str, u64> = typical
            .figures()
            .filter(|figure| {
                let mut theirs = NOT_INFERRED.iter().copied().chain(first_aus);
                theirs.any(|of| figure.path.starts_with(of))
            })
            .map(|figure| (figure.path, figure.value))
            .collect();
        let value = |figure: &Figure| *told.get(figure.path).unwrap_or(&figure.value);
        for sample in &mut self.samples {
            *sample = sample.with_values(value)?;
        }
        Ok(self)
    }

    /// The part of `data/posteriors.tsv` of the shipped card `name`.
    pub fn shipped_form(&self, name: &str, key: u64) -> String {
        let mut text = format!("card\t{name}\t{key:016x}\n");
        for (family, share) in &self.prior_families {
            let _ = writeln!(text, "prior\t{}\t{share:.4}", family.name());
        }
        for cost in &self.costs {
            let all = [cost.prior_ns, cost.posterior_ns].concat();
            let words: Vec<String> = all.iter().map(|ns| format!("{ns:.3e}")).collect();
            let _ = writeln!(text, "cost\t{}", words.join(" "));
        }
        for remark in &self.remarks {
            let _ = writeln!(text, "remark\t{remark}");
        }
        let _ = writeln!(text, "evaluations\t{}", self.evaluations);
        let count = self.samples.len().min(SAMPLES);
        let kept: Vec<&Profile> = (0..count)
            .map(|at| &self.samples[(2 * at + 1) * self.samples.len() / (2 * count)])
            .collect();
        for samples in kept.chunk_by(|a, b| a.family() == b.family()) {
            let family = samples[0].family().name();
            let _ = writeln!(text, "family\t{family}\t{}", samples.len());
            for path in samples[0].figures().map(|figure| figure.path) {
                let values: Vec<String> = samples.iter().map(|card| word(card, path)).collect();
                if values.iter().any(|value| value != DEFAULT) {
                    let _ = writeln!(text, "{path}\t{}", in_runs(&values));
                }
            }
        }
        text
    }
}

/// What the posterior of `knowledge` depends on beside the program: another key, another posterior.
pub fn posterior_key(knowledge: &Knowledge) -> u64 {
    let known = knowledge.canonical();
    let text = format!("{METHOD}\n{known}\n{}", Population::shipped_text());
    Rng::named(0, &text).next_u64()
}

/// The key of the posterior that ships for the card `name`; none if none ships.
pub fn shipped_key(name: &str) -> Option<u64> {
    let first = lines_of(name)?.next()?;
    u64::from_str_radix(first.split('\t').nth(2)?, 16).ok()
}

/// The lines of the card `name`, from its own on.
fn lines_of(name: &str) -> Option<impl Iterator<Item = &'static str>> {
    let is_card = |line: &str| line.starts_with("card\t");
    let start = SHIPPED
        .lines()
        .position(|line| is_card(line) && line.split('\t').nth(1) == Some(name))?;
    let mut first = true;
    Some(
        SHIPPED
            .lines()
            .skip(start)
            .take_while(move |line| std::mem::take(&mut first) || !is_card(line)),
    )
}

/// The value of the figure `path` of `card` as it is kept: times and rates with three digits, as
/// 123 or 123e4.
fn word(card: &Profile, path: &str) -> String {
    let Some(figure) = card.figures().find(|figure| figure.path == path) else {
        return DEFAULT.to_owned();
    };
    let value = figure.value;
    if figure.is_default() {
        DEFAULT.to_owned()
    } else if (path.ends_with("_us") || path.ends_with("_per_s")) && value >= 1000 {
        let zeros = value.ilog10() - 2;
        let power = 10_u64.pow(zeros);
        format!("{}e{zeros}", (value + power / 2) / power)
    } else {
        value.to_string()
    }
}

/// `words` with blanks between, equal neighbours as `WORD*COUNT`.
fn in_runs(words: &[String]) -> String {
    let runs = words.chunk_by(|a, b| a == b).map(|run| match run.len() {
        1 => run[0].clone(),
        count => format!("{}*{count}", run[0]),
    });
    runs.collect::<Vec<String>>().join(" ")
}

/// The words of [`in_runs`].
fn words(runs: &str) -> Option<Vec<&str>> {
    let mut words = Vec::new();
    for run in runs.split(' ') {
        let (word, count) = run.split_once('*').unwrap_or((run, "1"));
        words.extend(std::iter::repeat_n(word, count.parse().ok()?));
    }
    Some(words)
}

/// The value of a [`word`].
fn value(word: &str) -> Option<u64> {
    let Some((digits, zeros)) = word.split_once('e') else {
        return word.parse().ok();
    };
    let power = 10_u64.checked_pow(zeros.parse().ok()?)?;
    digits.parse::<u64>().ok()?.checked_mul(power)
}

/// The samples of one family as they are read.
struct Samples {
    family: String,
    /// Figures of each sample, as [`profile_of`] takes them.
    figures: Vec<Vec<String>>,
}

fn read(
    knowledge: &Knowledge,
    lines: impl Iterator<Item = &'static str>,
) -> Result<Posterior, Wrong> {
    let title = &knowledge.title;
    let mut found = Posterior {
        title: title.clone(),
        prior_families: Vec::new(),
        costs: Vec::new(),
        remarks: Vec::new(),
        evaluations: 0,
        samples: Vec::new(),
    };
    let mut families: Vec<Samples> = Vec::new();
    for line in lines.skip(1) {
        let wrong = || format!("{title}: {line}");
        let columns: Vec<&str> = line.split('\t').collect();
        match columns[..] {
            ["prior", family, share] => {
                let named = Family::NAMES.iter().find(|(name, _)| *name == family);
                let share = share.parse().map_err(|_| wrong())?;
                found
                    .prior_families
                    .push((named.ok_or_else(wrong)?.1, share));
            }
            ["cost", all] => {
                let ns: Result<Vec<f64>, _> = all.split(' ').map(str::parse).collect();
                let place = *SUMMARY.get(found.costs.len()).ok_or_else(wrong)?;
                let [a, b, c, d, e, f] = ns.map_err(|_| wrong())?[..] else {
                    return Err(wrong());
                };
                found.costs.push(CostPercentiles {
                    place,
                    prior_ns: [a, b, c],
                    posterior_ns: [d, e, f],
                });
            }
            ["remark", text] => found.remarks.push(text.to_owned()),
            ["evaluations", count] => found.evaluations = count.parse().map_err(|_| wrong())?,
            ["family", family, count] => families.push(Samples {
                family: family.to_owned(),
                figures: vec![Vec::new(); count.parse().map_err(|_| wrong())?],
            }),
            [path, values] => {
                let Samples { figures, .. } = families.last_mut().ok_or_else(wrong)?;
                let words = words(values).filter(|words| words.len() == figures.len());
                for (word, of_sample) in words.ok_or_else(wrong)?.iter().zip(figures) {
                    if *word != DEFAULT {
                        let value = value(word).ok_or_else(wrong)?;
                        of_sample.push(format!("{path}={value}"));
                    }
                }
            }
            _ => return Err(wrong()),
        }
    }
    let named = Interface::NAMES
        .iter()
        .find(|(_, of)| *of == knowledge.interface);
    let interface = named.map_or("", |(name, _)| name);
    for Samples { family, figures } in &families {
        for of_sample in figures {
            let sample = profile_of(title, interface, family, &of_sample.join(" "))?;
            found.samples.push(sample);
        }
    }
    match found.samples.is_empty() {
        true => Err(format!("{title}: no samples")),
        false => Ok(found),
    }
}
