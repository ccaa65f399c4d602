//! Cards by name or file, their state, and their place in a trial.

use crate::error::{Error, Outcome};
use crate::inference;
use std::path::Path;
use whichfs_card::{Card, Profile, builtin};
use whichfs_decide::{CardKind, ModelError, SUSTAINED};
use whichfs_fs::Geometry;
use whichfs_posterior::{CostPercentiles, Knowledge, Posterior, ToldBy};
use whichfs_units::{MIB, UnknownName};

/// The card that is used where none is named.
pub const DEFAULT: &str = "a1-32gb";

/// End of the name of a card that is behind a full-speed port: USB 1.1.
const FULL_SPEED: &str = "@usb1.1";

/// Rate of a full-speed port in bytes a second: 12 Mbit/s carry at most 19 packets of 64 bytes of a
/// bulk transfer a millisecond (USB 2.0 specification, table 5-9), 1,216,000 bytes/s; hosts reach
/// somewhat less.
const FULL_SPEED_RATE: i64 = 1_000_000;

/// Time of a command there beside its data, in microseconds: command, data and status of the
/// bulk-only transport are in frames of their own, of a millisecond each.
const FULL_SPEED_COMMAND_US: i64 = 2_000;

/// A profile with its name.
#[derive(Clone)]
pub struct NamedProfile {
    /// Name of the profile: that of its file.
    pub name: String,
    /// The profile; of a card with a posterior the one that stands for all.
    pub profile: Profile,
    /// What the card may be, where only some is known of it.
    pub posterior: Option<Posterior>,
    /// The rates that a probe of the card has measured.
    pub probed: ToldBy,
}

impl NamedProfile {
    /// The card of trials with `seed`, equal for all candidates: a sample of the posterior, or the
    /// profile with its figures drawn within their uncertainty.
    pub fn of_seed(&self, seed: u64) -> Profile {
        match &self.posterior {
            Some(posterior) => posterior.sample(seed).clone(),
            None => self.profile.draw(seed),
        }
    }

    /// Everything that decides how the card behaves, as text for a digest.
    pub fn canonical(&self) -> String {
        match &self.posterior {
            Some(posterior) => posterior.samples().iter().map(Profile::canonical).collect(),
            None => self.profile.canonical(),
        }
    }

    /// How unsure the card's figures are, as a fraction: of a posterior how far the ends of the
    /// 80 % intervals of its costs are from their middles, in the median; of a profile the median
    /// of its uncertainties.
    pub fn uncertainty(&self) -> f64 {
        match &self.posterior {
            Some(posterior) => {
                let half = |cost: &CostPercentiles| {
                    (cost.posterior_ns[2] / cost.posterior_ns[0]).sqrt() - 1.0
                };
                let mut all: Vec<f64> = posterior.costs.iter().map(half).collect();
                all.sort_by(f64::total_cmp);
                all.get(all.len() / 2).copied().unwrap_or(0.0)
            }
            None => uncertainty(&self.profile),
        }
    }

    /// What kind of card trials with `seed` run on, where the posterior has several kinds.
    pub fn kind_of_seed(&self, seed: u64) -> Option<CardKind> {
        let posterior = self.posterior.as_ref()?;
        let name = kind(posterior.sample(seed));
        let alike = posterior
            .samples()
            .iter()
            .filter(|sample| kind(sample) == name);
        let probability = alike.count() as f64 / posterior.samples().len() as f64;
        Some(CardKind { name, probability })
    }
}

/// Capacity of the card of sustained trials: it is written several times over, so it is small.
const SUSTAINED_BYTES: u64 = 512 * MIB;
/// Fewest AUs of that card: figures of few blocks depend on each one of them.
const SUSTAINED_AUS: u64 = 64;

impl NamedProfile {
    /// The same card cut down to what sustained trials need, with its share of spare area; the card
    /// itself if it is no larger.
    ///
    /// # Errors
    /// The card cannot have that size.
    pub fn cut_down(mut self) -> Outcome<NamedProfile> {
        let au = self.profile.au_bytes();
        let bytes = (SUSTAINED_AUS * au).max(SUSTAINED_BYTES.next_multiple_of(au));
        if bytes < self.profile.capacity_bytes() {
            self.profile = self.profile.cut_down(bytes).map_err(Error::input)?;
            if let Some(posterior) = &mut self.posterior {
                posterior.cut_down(bytes).map_err(Error::input)?;
            }
        }
        Ok(self)
    }
}

/// What a card does, as far as it decides which filesystem suits it.
pub fn kind(profile: &Profile) -> String {
    let family = profile.family();
    let open = match profile.open_aus_linear() {
        _ if !family.limits_open_aus() => "",
        ..8 => " and few open AUs",
        _ => " and many open AUs",
    };
    family.words().to_owned() + open
}

/// The shipped card, or the profile or knowledge file called `name`; with `@usb1.1` at its end, the
/// card behind a port of that kind.
///
/// A shipped card with a knowledge file (`knowledge/NAME.toml`) is one that nobody measured: its
/// trials run on samples of its posterior. Its profile is the typical card, which stands for all
/// where one is needed. A profile that a probe wrote has such knowledge as a section.
pub fn open(name: &str) -> Outcome<NamedProfile> {
    if let Some(card) = name.strip_suffix(FULL_SPEED) {
        return full_speed(name, card);
    }
    let (stem, file, text) = text_of(name)?;
    if Knowledge::is_meant(&text) {
        return inferred(&stem, &file, &text);
    }
    let mut card = parse(&stem, &file, &text)?;
    let found = match is_file(name) {
        false => Posterior::shipped(name).map_err(Error::environment)?,
        true => Knowledge::within(&file, &text)
            .map_err(Error::input)?
            .map(|knowledge| {
                card.probed = ToldBy::those_of(&knowledge);
                inference::of(&file, knowledge)
            })
            .transpose()?,
    };
    let complete = |found: Posterior| found.completed_by(&card.profile);
    card.posterior = found
        .map(complete)
        .transpose()
        .map_err(|error| Error::input(format!("{file}: {error}")))?;
    Ok(card)
}

/// The card called `name` of which the knowledge file `file` says what is known.
fn inferred(name: &str, file: &str, text: &str) -> Outcome<NamedProfile> {
    let posterior = inference::of_file(file, text)?;
    Ok(NamedProfile {
        name: name.to_owned(),
        profile: posterior.representative().clone(),
        posterior: Some(posterior),
        probed: ToldBy::NOTHING,
    })
}

/// The card called `card` behind a port of USB 1.1, called `name`.
fn full_speed(name: &str, card: &str) -> Outcome<NamedProfile> {
    let (_, file, text) = text_of(card)?;
    // What is wrong in the file is told with its own lines.
    parse(card, &file, &text)?;
    let wrong = |e: &dyn std::fmt::Display| Error::input(format!("card {name}: {e}"));
    let mut profile: toml::Table = text.parse().map_err(|e: toml::de::Error| wrong(&e))?;
    profile.insert("interface".to_owned(), "usb".into());
    let reader = profile
        .entry("reader")
        .or_insert_with(|| toml::Table::new().into());
    let Some(reader) = reader.as_table_mut() else {
        return Err(wrong(&"its section [reader] is no table"));
    };
    for (key, value, source) in [
        (
            "rate_bytes_per_s",
            FULL_SPEED_RATE,
            "composed: full speed, at most 1,216,000 bytes/s (USB 2.0 specification, table 5-9)",
        ),
        (
            "command_us",
            FULL_SPEED_COMMAND_US,
            "composed: command and status in frames of their own, of 1 ms",
        ),
        (
            "max_bytes",
            122_880,
            "composed: the limit of Linux usb-storage",
        ),
    ] {
        let mut figure = toml::Table::new();
        figure.insert("value".to_owned(), value.into());
        figure.insert("source".to_owned(), source.into());
        reader.insert(key.to_owned(), figure.into());
    }
    let text = toml::to_string(&profile).map_err(|e| wrong(&e))?;
    let stem = Path::new(name).file_name().and_then(|name| name.to_str());
    parse(stem.unwrap_or(name), name, &text)
}

/// The file that the card `name` is read from, if it is not shipped.
pub fn file_of(name: &str) -> Option<&str> {
    let name = name.strip_suffix(FULL_SPEED).unwrap_or(name);
    is_file(name).then_some(name)
}

/// Whether the card, board or study called `name` is a file, and no shipped one.
pub(crate) fn is_file(name: &str) -> bool {
    name.contains('/') || name.ends_with(".toml")
}

/// Name, file and text of the profile of the shipped card, or of the file, called `name`.
fn text_of(name: &str) -> Outcome<(String, String, String)> {
    if let Some((name, text)) = builtin().iter().find(|(known, _)| *known == name) {
        let file = format!("cards/{name}.toml");
        return Ok(((*name).to_owned(), file, (*text).to_owned()));
    }
    let path = Path::new(name);
    if path.starts_with("/dev") {
        return Err(Error::input(format!(
            "{name} is a device: sudo whichfs probe {} --write --save card.toml makes a \
             profile of it, which is named here; or name a modelled card (whichfs card list)",
            whichfs_units::shell_word(name)
        )));
    }
    if is_file(name) {
        let text = crate::input::read_text(path).map_err(|e| {
            Error::input(format!("card {name}: {e}; name a profile that can be read"))
        })?;
        let stem = path
            .file_stem()
            .and_then(|stem| stem.to_str())
            .unwrap_or(name);
        return Ok((stem.to_owned(), name.to_owned(), text));
    }
    let names: Vec<&str> = builtin().iter().map(|(name, _)| *name).collect();
    Err(Error::input(UnknownName::new(
        "card",
        name,
        &names,
        Some("`whichfs card list`"),
    )))
}

fn parse(name: &str, file: &str, text: &str) -> Outcome<NamedProfile> {
    let profile = Profile::parse(file, text).map_err(Error::input)?;
    Ok(NamedProfile {
        name: name.to_owned(),
        profile,
        posterior: None,
        probed: ToldBy::NOTHING,
    })
}

/// Where the partition begins: the first AU boundary at or after 4 MiB.
pub fn partition_offset(profile: &Profile) -> u64 {
    first_au(profile.au_bytes())
}

/// Where the first AU of `au_bytes` at or after 4 MiB begins.
pub fn first_au(au_bytes: u64) -> u64 {
    (4 * MIB).next_multiple_of(au_bytes)
}

/// What filesystems on a card of `profile` are tuned to: one partition from
/// [`partition_offset`] to the last whole AU.
pub fn geometry(profile: &Profile) -> Geometry {
    let room = profile
        .capacity_bytes()
        .saturating_sub(partition_offset(profile));
    Geometry {
        partition_bytes: room - room % profile.au_bytes(),
        page_bytes: profile.page_bytes(),
        write_unit_bytes: profile.write_unit_bytes(),
        au_bytes: profile.au_bytes(),
        discard: profile.discard_supported(),
        flush: profile.has_cache(),
    }
}

/// State in which a card begins a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CardState {
    /// All of it written once, then 5 % random overwrites.
    Used,
    /// Never written.
    Fresh,
    /// Used, and cut down to a small card that trials can write several times over.
    Sustained,
}

impl CardState {
    /// `used`, `fresh` or `sustained`.
    pub fn name(self) -> &'static str {
        match self {
            CardState::Used => "used",
            CardState::Fresh => "fresh",
            CardState::Sustained => SUSTAINED,
        }
    }

    /// The state called `name`.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn named(name: &str) -> Outcome<CardState> {
        match name {
            "used" => Ok(CardState::Used),
            "fresh" => Ok(CardState::Fresh),
            SUSTAINED => Ok(CardState::Sustained),
            other => Err(Error::input(format!(
                "unknown card state '{other}': used, fresh or sustained"
            ))),
        }
    }
}

/// A card of `profile` in `state`. Making one used takes about as long as reading a stored
/// snapshot would (0.3 s, 60 MiB), so callers keep it and clone it (copy on write).
pub fn in_state(profile: &Profile, state: CardState, seed: u64) -> Card {
    match state {
        CardState::Fresh => Card::fresh(profile),
        CardState::Used | CardState::Sustained => Card::used(profile, seed),
    }
}

/// How unsure the profile's figures are, as a fraction: the median of those that vary.
fn uncertainty(profile: &Profile) -> f64 {
    let mut all: Vec<u64> = profile
        .figures()
        .map(|f| f.uncertainty_percent)
        .filter(|&percent| percent > 0)
        .collect();
    all.sort_unstable();
    all.get(all.len() / 2)
        .map_or(0.0, |&percent| percent as f64 / 100.0)
}

/// Error of the card's model on the points that it was fitted to; none for a profile that states
/// none. The statement begins with median and 90th percentile, `6.2 / 19.4 % of the write points`,
/// or with the most, `at most 3.3 % of 5 rates`.
pub fn fit_error(profile: &Profile) -> Option<ModelError> {
    let (begin, _) = profile.fit_error()?.split_once('%')?;
    let digits = |text: &str| {
        let text = text.trim_matches(|c: char| !c.is_ascii_digit());
        text.parse::<f64>().ok().map(|percent| percent / 100.0)
    };
    let (median, p90) = begin.split_once('/').unwrap_or((begin, begin));
    Some(ModelError {
        median: digits(median)?,
        p90: digits(p90)?,
    })
}

/// The cards that `wanted` names: shipped ones whose names contain a word, files, or all shipped
/// ones if it is empty.
///
/// # Errors
/// A word that is in no name.
pub fn matching(wanted: &[String]) -> Outcome<Vec<String>> {
    let shipped = || builtin().iter().map(|(name, _)| (*name).to_owned());
    if wanted.is_empty() {
        return Ok(shipped().collect());
    }
    let mut cards: Vec<String> = Vec::new();
    for word in wanted {
        let exact = word.contains('/') || word.ends_with(".toml") || shipped().any(|n| n == *word);
        let found: Vec<String> = match exact {
            true => vec![word.clone()],
            false => shipped().filter(|name| name.contains(word)).collect(),
        };
        if found.is_empty() {
            return Err(Error::input(format!(
                "{word}: no shipped card has that in its name; `whichfs card list` lists all"
            )));
        }
        cards.extend(
            found
                .into_iter()
                .filter(|name| !cards.contains(name))
                .collect::<Vec<_>>(),
        );
    }
    Ok(cards)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn shipped_cards_that_were_fitted_say_how_far_they_are_off() {
        let mut fitted = 0;
        for (name, _) in builtin() {
            let profile = open(name).unwrap().profile;
            let error = fit_error(&profile);
            assert_eq!(error.is_some(), profile.fit_error().is_some(), "{name}");
            assert!(
                error.is_none_or(|error| {
                    (0.0..=error.p90).contains(&error.median) && error.p90 < 2.0
                }),
                "{name}: {error:?}"
            );
            fitted += usize::from(error.is_some());
        }
        assert!(fitted > 10, "{fitted}");
        let error = |name: &str| fit_error(&open(name).unwrap().profile).unwrap();
        let of_both = error("class4-4gb");
        assert_eq!((of_both.median, of_both.p90), (0.114, 0.47));
        let at_most = error("amazon-basics-64gb");
        assert_eq!((at_most.median, at_most.p90), (0.033, 0.033));
    }

    #[test]
    fn every_shipped_card_opens_and_its_partition_is_aligned() {
        for (name, _) in builtin() {
            let card = open(name).unwrap();
            let offset = partition_offset(&card.profile);
            assert!(
                offset >= 4 * MIB && offset.is_multiple_of(card.profile.au_bytes()),
                "{name}"
            );
        }
    }

    #[test]
    fn a_card_behind_usb_1_1_is_the_same_card_at_the_rate_of_the_port() {
        let slow = open("noname-usb-2gb@usb1.1").unwrap();
        let own = open("noname-usb-2gb").unwrap().profile;
        assert_eq!(slow.name, "noname-usb-2gb@usb1.1");
        let mut figures = slow.profile.figures();
        let rate = figures.find(|figure| figure.path == "reader.rate_bytes_per_s");
        assert_eq!(rate.map(|figure| figure.value), Some(1_000_000));
        assert_eq!(slow.profile.capacity_bytes(), own.capacity_bytes());
        assert_eq!(slow.profile.au_bytes(), own.au_bytes());
        for (name, _) in builtin() {
            open(&format!("{name}@usb1.1")).unwrap();
        }
        assert!(open("none@usb1.1").is_err());
        assert!(open("a1-32gb@usb9").is_err());
    }

    #[test]
    fn a_card_of_which_little_is_known_is_many_cards_of_its_size() {
        let card = open("noname-usb-2gb").unwrap();
        let size = card.profile.capacity_bytes();
        assert!((1..=16).all(|seed| card.of_seed(seed).capacity_bytes() == size));
        assert_ne!(card.of_seed(1).canonical(), card.of_seed(2).canonical());
        assert!(card.uncertainty() > 1.0, "nothing but the size is known");
        let kinds: Vec<CardKind> = (1..=16)
            .filter_map(|seed| card.kind_of_seed(seed))
            .collect();
        assert!(kinds.iter().any(|kind| kind.name != kinds[0].name));
    }

    #[test]
    fn a_profile_that_says_what_is_known_is_many_cards_and_mistakes_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("mine.toml");
        let (_, text) = builtin()
            .iter()
            .find(|(of, _)| *of == "class4-4gb")
            .unwrap();
        let capacity = open("class4-4gb").unwrap().profile.capacity_bytes();
        let opened = |capacity: u64, more: &str| {
            let known = format!(
                "{text}\n[knowledge]\ntitle = \"mine\"\ninterface = \"sd\"\n\
                 capacity_bytes = {capacity}\n{more}"
            );
            std::fs::write(&file, known).unwrap();
            open(file.to_str().unwrap())
        };
        let refused = |capacity: u64, more: &str| opened(capacity, more).err().unwrap().message;
        assert!(refused(capacity - MIB, "").contains("correct the one that is wrong"));
        let missing = refused(capacity, "logs = [\"none.log\"]\n");
        assert!(missing.contains("none.log"), "{missing}");
        let misspelt = refused(capacity, "yaer = 2014\n");
        let whole = std::fs::read_to_string(&file).unwrap();
        let line = whole.split("yaer").next().unwrap().matches('\n').count() + 1;
        let named = format!(":{line}: unknown key 'yaer'");
        assert!(misspelt.contains(&named), "{misspelt}");
        let card = opened(capacity, "marks = [\"class 4\"]\n").unwrap();
        assert_ne!(card.of_seed(1).canonical(), card.of_seed(2).canonical());
        assert_eq!(card.profile.au_bytes(), 4 * MIB);
    }

    #[test]
    fn unknown_cards_and_devices_are_told_apart() {
        assert!(open("a1-32g").err().unwrap().message.contains("a1-32gb"));
        assert!(
            open("/dev/sdz")
                .err()
                .unwrap()
                .message
                .contains("probe /dev/sdz --write --save")
        );
        assert!(
            open("./none.toml")
                .err()
                .unwrap()
                .message
                .contains("No such file")
        );
    }

    #[test]
    fn cards_are_named_whole_or_in_part() {
        let named = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            matching(&words)
        };
        assert_eq!(named(&["a1-32gb", "a1-32gb"]).unwrap(), ["a1-32gb"]);
        assert!(named(&["sandisk"]).unwrap().len() > 5);
        assert_eq!(named(&["./my.toml"]).unwrap(), ["./my.toml"]);
        assert_eq!(named(&[]).unwrap().len(), builtin().len());
        let said = named(&["nosuch"]).unwrap_err().message;
        assert!(said.contains("whichfs card list"), "{said}");
    }
}
