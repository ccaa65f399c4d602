//! `whichfs card life`: how long a modelled card lives under a stated load.

use crate::cli::{LifeArgs, LifeOrder};
use crate::failure::{Failure, Outcome};
use crate::output;
use serde::Serialize;
use whichfs_card::{CELL_TYPES, Card, Cycles, Life, Profile, Request, Wear, projected_life};
use whichfs_engine::cards;
use whichfs_units::{Bytes, Rng};

/// Examples for `--help`.
pub const EXAMPLES: &str = "\
Examples:
  whichfs card life a1-32gb --per-day 2G                      4 KiB writes at random places
  whichfs card life class4-4gb --per-day 200M --block 64K --order sequential
  whichfs card life emmc-8gb --per-day 1G --span 256M         all of it into one small partition

The load is what reaches the card: what applications write, times what the filesystem adds
(write_amplification_filesystem of `whichfs choose`).";

/// Capacity of the cut-down card on which a load over the whole card is simulated: blocks must
/// be erased several times for their spread to show. A page-mapped card keeps its share of
/// spare blocks, others their number.
const CUT_BYTES: u64 = 2 << 30;
/// How often what is written is written over, before the figures are taken and while they are.
const ROUNDS: u64 = 4;
/// Fewest and most bytes that are written each time.
const WRITTEN_LEAST: u64 = 4 << 30;
const WRITTEN_MAX: u64 = 16 << 30;

/// The document of `card life`.
#[derive(Serialize)]
struct Document {
    card: String,
    bytes_a_day: u64,
    block_bytes: u64,
    order: &'static str,
    span_bytes: u64,
    /// Flash bytes programmed for each byte that the host writes.
    write_amplification_card: f64,
    /// Erases of the most worn block for each of the mean.
    spread: f64,
    erases: Wear,
    /// What the cycles are of: a type of cells, or specimens of this model.
    cells: &'static str,
    /// Program and erase cycles that shares of such cards stand at most.
    pe_cycles: Cycles,
    /// Years that shares of such cards live at most.
    life: Option<Life>,
}

/// Simulates the load and projects the life.
pub fn run(args: &LifeArgs) -> Outcome<u8> {
    let card = cards::open(&args.name)?;
    let document = project(card.name, &card.profile, args)?;
    match args.json {
        true => output::json(&document)?,
        false => output::text_line(&text(&document))?,
    }
    Ok(0)
}

/// Years that cards of `profile` live if `per_day` bytes reach them as writes of 4 KiB anywhere.
///
/// # Errors
/// A profile that cannot be cut down.
pub fn years(name: String, profile: &Profile, per_day: u64) -> Outcome<Option<Life>> {
    let load = LifeArgs {
        name: name.clone(),
        per_day,
        block: 4 << 10,
        order: LifeOrder::Random,
        span: None,
        seed: 1,
        json: false,
    };
    Ok(project(name, profile, &load)?.life)
}

fn project(name: String, profile: &Profile, args: &LifeArgs) -> Outcome<Document> {
    let capacity = profile.capacity_bytes();
    let span_bytes = args.span.unwrap_or(capacity);
    if span_bytes > capacity || span_bytes < args.block {
        return Err(Failure::input(format!(
            "--span {}: expected between a block and the card's {}",
            Bytes(span_bytes),
            Bytes(capacity)
        )));
    }
    let small = match args.span {
        None if capacity > CUT_BYTES => profile.with_capacity(CUT_BYTES),
        _ => Ok(profile.clone()),
    };
    let small = small.map_err(Failure::input)?;
    let span = args.span.unwrap_or(small.capacity_bytes());
    let share = small.capacity_bytes() as f64 / capacity as f64;
    let mut used = Card::used(&small, args.seed);
    let total = (ROUNDS * span).clamp(WRITTEN_LEAST, WRITTEN_MAX);
    // The first rounds bring the mapping into the state that lasts.
    write(&mut used, span, total, args, "life, before");
    let (before, programmed) = (used.erases_per_au(), used.stats().programmed_bytes);
    let written = used.stats().write_bytes;
    write(&mut used, span, total, args, "life");
    let stats = used.stats();
    let (programmed, written) = (
        stats.programmed_bytes - programmed,
        stats.write_bytes - written,
    );
    let erases = Wear::between(&before, &used.erases_per_au())
        .ok_or_else(|| Failure::environment("the card lost count of its erases"))?;
    Ok(Document {
        card: name,
        bytes_a_day: args.per_day,
        block_bytes: args.block,
        order: match args.order {
            LifeOrder::Random => "random",
            LifeOrder::Sequential => "sequential",
        },
        span_bytes,
        write_amplification_card: programmed as f64 / written as f64,
        spread: erases.spread(),
        life: projected_life(
            &small,
            (args.per_day as f64 * share).ceil() as u64,
            written,
            &erases,
        ),
        erases,
        cells: cells(profile),
        pe_cycles: profile.pe_cycles(),
    })
}

/// Writes `bytes` into the first `span` bytes of the card.
fn write(card: &mut Card, span: u64, bytes: u64, args: &LifeArgs, stream: &str) {
    let places = span / args.block;
    let mut rng = Rng::named(args.seed, stream);
    for at in 0..bytes / args.block {
        let place = match args.order {
            LifeOrder::Random => rng.below(places),
            LifeOrder::Sequential => at % places,
        };
        card.submit(
            card.busy_until(),
            &Request::write(place * args.block, args.block),
        );
    }
}

fn text(document: &Document) -> String {
    let wear = &document.erases;
    let mut text = format!(
        "{}: {} a day in {} writes of {} over {}\n\
         write amplification of the card {:.2}; its most worn block gets {:.1} × the mean \
         ({} to {} erases)",
        document.card,
        Bytes(document.bytes_a_day),
        document.order,
        Bytes(document.block_bytes),
        Bytes(document.span_bytes),
        document.write_amplification_card,
        document.spread,
        wear.least,
        wear.most,
    );
    let cycles = document.pe_cycles;
    match document.life {
        Some(life) => text.push_str(&format!(
            "\nlife of 8 in 10 such cards: {}; of half of them: {}\n\
             for {:.0} to {:.0} program and erase cycles ({}; specimens of one\n\
             model differ tenfold); other faults are not in it",
            between(life.p10_years, life.p90_years),
            between(life.p25_years, life.p75_years),
            cycles.p10,
            cycles.p90,
            document.cells,
        )),
        None => text.push_str("\nnothing is written or erased: wear does not end it"),
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

/// A range of years.
pub fn between(least: f64, most: f64) -> String {
    match [least, most].map(span_of) {
        [least, most] if least == most => least,
        [least, most] => format!("{least} to {most}"),
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn args(order: LifeOrder, per_day: u64) -> LifeArgs {
        LifeArgs {
            name: "class4-4gb".to_owned(),
            per_day,
            block: 4096,
            order,
            span: Some(256 << 20),
            seed: 1,
            json: false,
        }
    }

    #[test]
    fn random_writes_wear_more_than_those_in_order_and_life_is_a_range() {
        let card = cards::open("class4-4gb").unwrap();
        let of = |order, per_day| {
            project(card.name.clone(), &card.profile, &args(order, per_day)).unwrap()
        };
        let random = of(LifeOrder::Random, 1 << 30);
        let sequential = of(LifeOrder::Sequential, 1 << 30);
        assert!(random.write_amplification_card > 5.0 * sequential.write_amplification_card);
        // Small writes in order share pages: the card programs what it is given.
        assert!((0.99..1.01).contains(&sequential.write_amplification_card));
        let life = random.life.unwrap();
        assert!(life.p10_years < life.p25_years && life.p75_years < life.p90_years);
        assert!(life.p90_years < sequential.life.unwrap().p90_years);
        assert!(of(LifeOrder::Random, 0).life.is_none());
        let told = text(&random);
        let (_, years) = told.split_once("life of 8 in 10 such cards: ").unwrap();
        // Two ranges and no single span.
        let ranges = years.lines().next().unwrap().split("; of half of them: ");
        assert!(ranges.clone().count() == 2 && ranges.into_iter().all(|r| r.contains(" to ")));
        assert!(told.contains("planar TLC"), "{told}");
    }

    #[test]
    fn cards_of_other_cells_stand_other_cycles() {
        let of = |name: &str| cards::open(name).unwrap().profile;
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

    #[test]
    fn a_span_beyond_the_card_is_refused() {
        let card = cards::open("class4-4gb").unwrap();
        let wrong = LifeArgs {
            span: Some(1 << 50),
            ..args(LifeOrder::Random, 1)
        };
        let failure = project(card.name, &card.profile, &wrong).err().unwrap();
        assert!(failure.message.contains("--span"), "{failure}");
    }
}
