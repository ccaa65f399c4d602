//! Modelled cards, every figure with its source.

use crate::document::Document;
use crate::text::table;
use schemars::JsonSchema;
use serde::Serialize;
use whichfs_card::{Family, Figure, Interface, Profile, Residual};
use whichfs_posterior::Posterior;
use whichfs_units::{Bytes, Nanos, counted};

/// A line of `card list`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CardLine {
    name: String,
    title: String,
    interface: &'static str,
    family: &'static str,
    composed: bool,
    /// fitted, measured, composed or inferred: what kind of figures decide how it behaves.
    basis: &'static str,
    /// How far it is off what was measured.
    fit_error: Option<String>,
    capacity_bytes: u64,
    au_bytes: u64,
    write_bytes_per_s: u64,
}

/// The document of `card show`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CardShown<'a> {
    #[serde(flatten)]
    line: CardLine,
    partition_offset: u64,
    figures: Vec<FigureLine<'a>>,
    /// What the family does not explain of the times of writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    residual: Option<ResidualDocument<'a>>,
    /// What the card may be, where only some is known of it; `figures` are then those of the
    /// card that stands for all where one is needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    posterior: Option<PosteriorDocument<'a>>,
}

/// Factors in percent of the family's times: a row for each number of AUs in turns, from one on,
/// with a factor for each size.
#[derive(Debug, Serialize, JsonSchema)]
struct ResidualDocument<'a> {
    source: &'a str,
    uncertainty_percent: u64,
    block_bytes: &'a [u64],
    in_order: &'a [Vec<u64>],
    at_random: &'a [Vec<u64>],
}

#[derive(Debug, Serialize, JsonSchema)]
struct PosteriorDocument<'a> {
    samples: usize,
    families: Vec<FamilyShare>,
    costs: Vec<CostDocument>,
    remarks: &'a [String],
}

#[derive(Debug, Serialize, JsonSchema)]
struct FamilyShare {
    family: &'static str,
    prior: f64,
    posterior: f64,
}

/// Nanoseconds of a request: the 10th, 50th and 90th percentile.
#[derive(Debug, Serialize, JsonSchema)]
struct CostDocument {
    requests: String,
    bytes: u64,
    prior_ns: [f64; 3],
    posterior_ns: [f64; 3],
}

#[derive(Debug, Serialize, JsonSchema)]
struct FigureLine<'a> {
    figure: &'static str,
    value: u64,
    unit: &'static str,
    uncertainty_percent: u64,
    /// None where the profile leaves it to the default.
    source: Option<&'a str>,
}

impl Document for CardLine {
    const NAME: &'static str = "card list";
}

impl Document for CardShown<'_> {
    const NAME: &'static str = "card show";
}

/// What a list of cards is sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CardOrder {
    /// By name.
    Name,
    /// Capacity, smallest first.
    Capacity,
    /// Sequential write rate, fastest first.
    Write,
    /// Family, then name.
    Family,
}

impl CardLine {
    /// The line of the card called `name`, of which only some is known if it is `inferred`.
    pub fn new(name: &str, profile: &Profile, inferred: bool) -> CardLine {
        CardLine {
            name: name.to_owned(),
            title: profile.title().to_owned(),
            interface: interface(profile),
            family: profile.family().name(),
            composed: profile.composed(),
            basis: match inferred {
                true => "inferred",
                false => profile.basis().name(),
            },
            fit_error: profile.fit_error().map(str::to_owned),
            capacity_bytes: profile.capacity_bytes(),
            au_bytes: profile.au_bytes(),
            write_bytes_per_s: profile.write.rate_bytes_per_s.value,
        }
    }

    /// Whether name, title, bus or family contains `text`, which is in lower case.
    pub fn contains(&self, text: &str) -> bool {
        let fields = [
            self.name.as_str(),
            self.title.as_str(),
            self.interface,
            self.family,
        ];
        let mut fields = fields.iter();
        fields.any(|field| field.to_lowercase().contains(text))
    }
}

impl<'a> CardShown<'a> {
    /// The card called `name`, whose partitions begin at `partition_offset`, and what it may be
    /// where only some is known of it.
    pub fn new(
        name: &str,
        profile: &'a Profile,
        partition_offset: u64,
        of: Option<&'a Posterior>,
    ) -> CardShown<'a> {
        CardShown {
            line: CardLine::new(name, profile, of.is_some()),
            partition_offset,
            figures: profile.figures().map(figure_line).collect(),
            residual: profile.residual().map(residual),
            posterior: of.map(posterior),
        }
    }
}

/// The table of `card list` for so many columns of output: in narrow ones with those that tell
/// cards apart.
pub fn card_table(lines: Vec<CardLine>, width: usize) -> String {
    const WIDE: usize = 140;
    let wide = width >= WIDE;
    let rows = lines.into_iter().map(|card| {
        let mut row = vec![card.name.clone(), card.title.clone()];
        if wide {
            row.extend([
                card.interface.to_owned(),
                card.family.to_owned(),
                Bytes(card.capacity_bytes).to_string(),
                Bytes(card.au_bytes).to_string(),
                rate(card.write_bytes_per_s),
            ]);
        }
        row.push(off(&card));
        row
    });
    let mut head = vec!["name", "card"];
    if wide {
        head.extend(["bus", "family", "capacity", "AU", "write"]);
    }
    head.push("off by");
    table(&head, rows.collect(), width)
}

/// How far a card is off what was measured: median / 90th percentile of a fit, or the most over
/// the rates of a row.
fn off(card: &CardLine) -> String {
    let error = card.fit_error.as_deref().unwrap_or("");
    match error.split_once(" of ") {
        _ if card.composed => card.basis.to_owned(),
        Some((percent, _)) => format!("{} {}", card.basis, percent.replace("at most ", "≤ ")),
        None => card.basis.to_owned(),
    }
}

/// Sorts the lines of a list of cards.
pub fn sort_cards(lines: &mut [CardLine], key: CardOrder) {
    lines.sort_by(|a, b| match key {
        CardOrder::Name => a.name.cmp(&b.name),
        CardOrder::Capacity => (a.capacity_bytes, &a.name).cmp(&(b.capacity_bytes, &b.name)),
        CardOrder::Write => (b.write_bytes_per_s, &a.name).cmp(&(a.write_bytes_per_s, &b.name)),
        CardOrder::Family => (a.family, &a.name).cmp(&(b.family, &b.name)),
    });
}

/// One card with all its figures, in lines of at most `width` columns.
pub fn card_text(card: &CardShown, width: usize) -> String {
    let line = &card.line;
    let standing = standing(line);
    let rows = card.figures.iter().map(|figure| {
        let uncertainty = match figure.uncertainty_percent {
            0 => String::new(),
            percent => format!("{percent} %"),
        };
        vec![
            figure.figure.to_owned(),
            value(figure),
            uncertainty,
            figure.source.unwrap_or("default").to_owned(),
        ]
    });
    let head = ["figure", "value", "±", "source"];
    let standing = match &card.posterior {
        Some(posterior) => posterior_text(posterior, width),
        None => standing,
    };
    let residual = card.residual.as_ref().map(|of| residual_text(of, width));
    let residual = residual.map_or_else(String::new, |text| format!("\n\n{text}"));
    format!(
        "{}: {}\nbus {}, family {}, partitions begin at {}\n{standing}\n\n{}{residual}",
        line.name,
        line.title,
        line.interface,
        line.family,
        Bytes(card.partition_offset),
        table(&head, rows.collect(), width)
    )
}

fn residual(of: &Residual) -> ResidualDocument<'_> {
    ResidualDocument {
        source: &of.source,
        uncertainty_percent: of.uncertainty_percent,
        block_bytes: &of.block_bytes,
        in_order: &of.in_order,
        at_random: &of.at_random,
    }
}

/// Factors by size for people: those of one AU and of the most AUs, in order and at random.
fn residual_text(of: &ResidualDocument, width: usize) -> String {
    let columns =
        [of.in_order, of.at_random].map(|table| (table.first(), table.last(), table.len()));
    let names = ["in order", "at random"];
    let head = columns.iter().zip(names).flat_map(|((.., aus), name)| {
        [
            format!("{name}, 1 AU"),
            format!("{name}, {}", counted(*aus, "AU")),
        ]
    });
    let head: Vec<String> = std::iter::once("writes of".to_owned())
        .chain(head)
        .collect();
    let cell = |row: Option<&Vec<u64>>, at: usize| {
        let factor = row.and_then(|row| row.get(at));
        factor.map_or_else(String::new, |percent| format!("{percent} %"))
    };
    let rows = of.block_bytes.iter().enumerate().map(|(at, bytes)| {
        let factors = columns
            .iter()
            .flat_map(|(one, most, _)| [cell(*one, at), cell(*most, at)]);
        std::iter::once(Bytes(*bytes).to_string())
            .chain(factors)
            .collect()
    });
    format!(
        "Residual, in percent of the family's time, ±{} %:\n{}\n\n{}",
        of.uncertainty_percent,
        of.source,
        table(
            &head.iter().map(String::as_str).collect::<Vec<_>>(),
            rows.collect(),
            width
        )
    )
}

fn posterior(of: &Posterior) -> PosteriorDocument<'_> {
    let share = |shares: &[(Family, f64)], family: Family| {
        let found = shares.iter().find(|(of, _)| *of == family);
        found.map_or(0.0, |(_, share)| *share)
    };
    let after = of.families();
    let families = Family::NAMES.iter().map(|(name, family)| FamilyShare {
        family: name,
        prior: share(&of.prior_families, *family),
        posterior: share(&after, *family),
    });
    let costs = of.costs.iter().map(|cost| CostDocument {
        requests: cost.place.name(),
        bytes: cost.place.bytes,
        prior_ns: cost.prior_ns,
        posterior_ns: cost.posterior_ns,
    });
    PosteriorDocument {
        samples: of.samples().len(),
        families: families.collect(),
        costs: costs.collect(),
        remarks: &of.remarks,
    }
}

/// Families and intervals for people.
fn posterior_text(of: &PosteriorDocument, width: usize) -> String {
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let families = of.families.iter();
    let families = families.map(|one| {
        vec![
            one.family.to_owned(),
            percent(one.prior),
            percent(one.posterior),
        ]
    });
    let time = |ns: f64| Nanos(ns as u64).to_string();
    let between = |[low, _, high]: [f64; 3]| format!("{} to {}", time(low), time(high));
    let costs = of.costs.iter().map(|cost| {
        vec![
            format!("{}, {}", cost.requests, Bytes(cost.bytes)),
            between(cost.prior_ns),
            time(cost.posterior_ns[1]),
            between(cost.posterior_ns),
        ]
    });
    let remarks: String = of
        .remarks
        .iter()
        .map(|remark| format!("\nMind: {remark}."))
        .collect();
    format!(
        "Inferred from what is known of it: {} samples, each as likely as another.{remarks}\n\n{}\
         \n\n{}\n\n\
         The card that stands for all where one is needed:",
        of.samples,
        table(&["family", "before", "now"], families.collect(), width),
        table(
            &[
                "a request",
                "80 % before the observations",
                "median",
                "80 % now"
            ],
            costs.collect(),
            width
        ),
    )
}

/// What kind of figures a card has, and how far it is off.
fn standing(line: &CardLine) -> String {
    let kind = match line.basis {
        "composed" => "Composed from the figures of a class, not one measured card.",
        "fitted" => "Fitted to the curves of one card.",
        _ => "Figures of one card or model, from the sources below.",
    };
    match (&line.fit_error, line.composed) {
        (Some(error), false) if error.contains(" / ") => {
            let error = error.replace("; ", ";\n");
            format!("{kind}\nOff (median / 90th percentile) by {error}.")
        }
        (Some(error), false) => format!("{kind}\nOff by {error}."),
        _ => kind.to_owned(),
    }
}

fn interface(profile: &Profile) -> &'static str {
    let found = Interface::NAMES
        .iter()
        .find(|(_, value)| *value == profile.interface());
    found.map_or("", |(name, _)| name)
}

fn figure_line(figure: &Figure) -> FigureLine<'_> {
    FigureLine {
        figure: figure.path,
        value: figure.value,
        unit: unit(figure.path),
        uncertainty_percent: figure.uncertainty_percent,
        source: figure.source.as_deref(),
    }
}

/// A figure of a profile for people: `7.45 GiB`, `5.1 MB/s`, `250 µs`.
pub fn card_figure(figure: &Figure) -> String {
    value(&figure_line(figure))
}

/// What a key says in words, without its unit: `geometry.au_bytes` is `geometry: au`.
pub fn card_words(path: &str) -> String {
    let ends = ["_bytes_per_s", "_bytes", "_us", "_percent"];
    let bare = ends.iter().find_map(|end| path.strip_suffix(end));
    let (group, key) = match bare.unwrap_or(path).split_once('.') {
        Some((group, key)) => (format!("{}: ", group.replace('_', " ")), key),
        None => (String::new(), bare.unwrap_or(path)),
    };
    let key = key.replace('_', " ");
    let key = match key.as_str() {
        "bytes" => "size".to_owned(),
        "au" => "allocation unit".to_owned(),
        _ => key,
    };
    format!("{group}{key}")
}

/// Units by the end of a key; the longest end comes first.
const UNITS: [(&str, &str); 4] = [
    ("_bytes_per_s", "B/s"),
    ("_bytes", "B"),
    (".bytes", "B"),
    ("_us", "µs"),
];

/// Unit of a figure: the end of its key; `1` for counts and switches.
fn unit(path: &str) -> &'static str {
    let percent = path.ends_with("_percent").then_some("%");
    let found = UNITS
        .iter()
        .find(|(end, _)| path.ends_with(end))
        .map(|(_, unit)| *unit);
    found.or(percent).unwrap_or("1")
}

/// A figure for people.
fn value(figure: &FigureLine) -> String {
    match figure.unit {
        "B/s" => rate(figure.value),
        "B" => Bytes(figure.value).to_string(),
        "µs" => Nanos(figure.value * 1_000).to_string(),
        "%" => format!("{} %", figure.value),
        _ => figure.value.to_string(),
    }
}

/// A rate in MB/s (10^6 bytes), as card makers count.
fn rate(bytes_per_s: u64) -> String {
    let text = format!("{:.2}", bytes_per_s as f64 / 1e6);
    format!("{} MB/s", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use whichfs_card::builtin;

    fn line(name: &str) -> CardLine {
        let (_, text) = builtin().iter().find(|(known, _)| *known == name).unwrap();
        CardLine::new(name, &Profile::parse(name, text).unwrap(), false)
    }

    #[test]
    fn a_unit_is_the_end_of_the_key() {
        for (path, expected) in [
            ("geometry.au_bytes", "B"),
            ("cache.bytes", "B"),
            ("bus.rate_bytes_per_s", "B/s"),
            ("copy.erase_us", "µs"),
            ("log_block.random_percent", "%"),
            ("geometry.spare_aus", "1"),
            ("discard.supported", "1"),
        ] {
            assert_eq!(unit(path), expected, "{path}");
        }
    }

    #[test]
    fn keys_are_told_in_words() {
        let check = |path: &str, said: &str| assert_eq!(card_words(path), said);
        check("geometry.capacity_bytes", "geometry: capacity");
        check("geometry.au_bytes", "geometry: allocation unit");
        check("cache.bytes", "cache: size");
        check("write.rate_bytes_per_s", "write: rate");
        check("log_block.random_percent", "log block: random");
        check("copy.erase_us", "copy: erase");
    }

    #[test]
    fn every_card_has_a_name_for_its_bus_and_family_and_a_write_rate() {
        for (name, _) in builtin() {
            let line = line(name);
            assert!(
                !line.interface.is_empty() && !line.family.is_empty(),
                "{name}"
            );
            assert!(line.composed || off(&line).contains('%'), "{name}");
        }
        assert_eq!(rate(5_100_000), "5.1 MB/s");
        assert_eq!(rate(30_000_000), "30 MB/s");
    }

    #[test]
    fn a_list_says_how_far_cards_are_off_and_titles_stay_readable_in_80_columns() {
        let of = line;
        let lines = || {
            vec![
                of("ncard-8gb"),
                of("a1-32gb"),
                of("samsung-pro-endurance-32gb"),
            ]
        };
        for width in [80, 200] {
            let text = card_table(lines(), width);
            for word in ["fitted 3.6 / 11.6 %", "composed", "measured ≤"] {
                assert!(text.contains(word), "{width}: {text}");
            }
            assert_eq!(text.contains("page-map"), width == 200, "{text}");
            assert!(text.contains("Samsung PRO"), "{text}");
        }
        let standing = standing(&of("ncard-8gb"));
        assert!(
            standing.contains("by 3.6 / 11.6 % of the write points of WB14;\nits family alone by"),
            "{standing}"
        );
        assert!(super::standing(&of("a1-32gb")).starts_with("Composed"));
    }
}
