//! The measured cards from which the prior is made.
//!
//! `data/population.tsv` is committed with the command that makes it (`make population`): a
//! member for each run of flashbench that has write curves, as fitted, and some for each row of
//! `cards.csv`, which are samples of the posterior of that row's rates under the fitted cards.

use std::fmt::Write as _;
use whichfs_card::{Interface, Profile};

/// The data as they ship.
const SHIPPED: &str = include_str!("../data/population.tsv");
/// Columns of the file.
const COLUMNS: [&str; 9] = [
    "id",
    "card",
    "weight",
    "interface",
    "year",
    "bytes",
    "maker",
    "family",
    "figures",
];

/// One member of the population: a card as fitted, or one of the samples of a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// Run or row of the data.
    pub id: String,
    /// The physical card: members of one card share its weight and are held out together.
    pub card: String,
    /// Share of the card that this member stands for.
    pub weight: f64,
    /// What the card is plugged into.
    pub interface: Interface,
    /// Year of manufacture or of the measurement; none if not known.
    pub year: Option<u32>,
    /// Capacity in bytes.
    pub bytes: u64,
    /// Maker: an ID such as `03` or a name; none if not known.
    pub maker: Option<String>,
    /// Figures of the card or of the sample.
    pub profile: Profile,
}

/// Measured cards.
#[derive(Clone, Debug, PartialEq)]
pub struct Population {
    /// All of them.
    pub members: Vec<Member>,
}

/// Why a text is no population.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct PopulationError {
    /// Line, counted from one.
    pub line: usize,
    /// What is wrong.
    pub why: String,
}

impl Population {
    /// The data as they ship.
    ///
    /// # Errors
    /// The shipped file is no population: a test holds that it is.
    pub fn shipped() -> Result<Population, PopulationError> {
        Population::parse(SHIPPED)
    }

    /// The shipped data as text: a key of caches.
    pub fn shipped_text() -> &'static str {
        SHIPPED
    }

    /// Reads the form of `data/population.tsv`.
    ///
    /// # Errors
    /// A line that does not fit.
    pub fn parse(text: &str) -> Result<Population, PopulationError> {
        let lines = text.lines().enumerate();
        let rows = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let members = rows
            .map(|(at, line)| member(line).map_err(|why| PopulationError { line: at + 1, why }));
        let members = members.collect::<Result<Vec<_>, _>>()?;
        Ok(Population { members })
    }

    /// The form that [`Population::parse`] reads.
    pub fn text(&self) -> String {
        let mut text = format!("# {}\n", COLUMNS.join("\t"));
        for member in &self.members {
            let interface = Interface::NAMES
                .iter()
                .find(|(_, of)| *of == member.interface);
            let columns = [
                member.id.clone(),
                member.card.clone(),
                format!("{:.4}", member.weight),
                interface.map_or("", |(name, _)| name).to_owned(),
                member.year.map_or("-".into(), |year| year.to_string()),
                member.bytes.to_string(),
                member.maker.clone().unwrap_or_else(|| "-".into()),
                member.profile.family().name().to_owned(),
                figures_text(&member.profile),
            ];
            let _ = writeln!(text, "{}", columns.join("\t"));
        }
        text
    }

    /// The same without the members of `card`.
    #[must_use]
    pub fn without(&self, card: &str) -> Population {
        let others = self.members.iter().filter(|member| member.card != card);
        Population {
            members: others.cloned().collect(),
        }
    }
}

fn member(line: &str) -> Result<Member, String> {
    let columns: Vec<&str> = line.split('\t').collect();
    let [
        id,
        card,
        weight,
        interface,
        year,
        bytes,
        maker,
        family,
        figures,
    ] = columns[..]
    else {
        return Err(format!("{} columns for {}", columns.len(), COLUMNS.len()));
    };
    let stated = |text: &str| (text != "-").then(|| text.to_owned());
    let number = |text: &str| text.parse::<u64>().map_err(|e| format!("{text}: {e}"));
    let named = Interface::NAMES.iter().find(|(name, _)| *name == interface);
    let year = stated(year).map(|year| number(&year)).transpose()?;
    Ok(Member {
        id: id.to_owned(),
        card: card.to_owned(),
        weight: weight.parse().map_err(|e| format!("{weight}: {e}"))?,
        interface: named.ok_or_else(|| format!("interface {interface}"))?.1,
        year: year.and_then(|year| u32::try_from(year).ok()),
        bytes: number(bytes)?,
        maker: stated(maker),
        profile: profile_of(id, interface, family, figures)?,
    })
}

/// The figures of `profile` that are not the default, as `section.key=value` with blanks between.
pub fn figures_text(profile: &Profile) -> String {
    let stated = profile.figures().filter(|figure| !figure.is_default());
    let words: Vec<String> = stated
        .map(|figure| format!("{}={}", figure.path, figure.value))
        .collect();
    words.join(" ")
}

/// The profile of `figures` in the form of [`figures_text`].
///
/// # Errors
/// What is wrong with them.
pub fn profile_of(
    title: &str,
    interface: &str,
    family: &str,
    figures: &str,
) -> Result<Profile, String> {
    let mut toml = format!(
        "title = {title:?}\ninterface = \"{interface}\"\nfamily = \"{family}\"\n\
         uncertainty_percent = 0\n"
    );
    let mut section = "";
    for word in figures.split(' ') {
        let (path, value) = word
            .split_once('=')
            .ok_or_else(|| format!("{word}: no value"))?;
        let (of, key) = path
            .split_once('.')
            .ok_or_else(|| format!("{word}: no section"))?;
        if of != section {
            section = of;
            let _ = writeln!(toml, "[{section}]");
        }
        let _ = writeln!(toml, "{key} = {{ value = {value}, source = \"a sample\" }}");
    }
    Profile::parse(title, &toml).map_err(|error| error.to_string())
}
