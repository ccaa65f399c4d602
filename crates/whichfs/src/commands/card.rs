//! `whichfs card`: modelled cards, every figure with its source.

use crate::cli::{CardListArgs, SortKey};
use crate::failure::{Failure, Kind, Outcome, exit_code};
use crate::output;
use whichfs_card::builtin;
use whichfs_curves::flashbench;
use whichfs_engine::cards;
use whichfs_report::documents::card::{
    CardLine, CardOrder, CardShown, card_table, card_text, sort_cards,
};

impl From<SortKey> for CardOrder {
    fn from(key: SortKey) -> CardOrder {
        match key {
            SortKey::Name => CardOrder::Name,
            SortKey::Capacity => CardOrder::Capacity,
            SortKey::Write => CardOrder::Write,
            SortKey::Family => CardOrder::Family,
        }
    }
}

/// Shipped cards, a line each.
pub fn list(args: &CardListArgs) -> Outcome<u8> {
    let mut lines = Vec::new();
    for (name, _) in builtin() {
        let card = cards::open(name)?;
        lines.push(CardLine::new(name, &card.profile, card.posterior.is_some()));
    }
    let wanted = args.pattern.as_deref().unwrap_or_default().to_lowercase();
    lines.retain(|line| line.contains(&wanted));
    if lines.is_empty() && args.json {
        output::list(&lines)?;
        return Ok(exit_code(Kind::No));
    }
    if lines.is_empty() {
        return Err(Failure::new(
            Kind::No,
            format!("no card contains {wanted:?}; whichfs card list shows all"),
        ));
    }
    sort_cards(&mut lines, args.sort.into());
    if args.json {
        output::list(&lines)?;
        return Ok(0);
    }
    output::text_line(&card_table(lines, output::width()))?;
    Ok(0)
}

/// One card with its curves and all its figures; `name` may be a profile file.
pub fn show(name: &str, json: bool) -> Outcome<u8> {
    let card = cards::open(name)?;
    let offset = cards::partition_offset(&card.profile);
    let document = CardShown::new(&card.name, &card.profile, offset, card.posterior.as_ref());
    if json {
        output::document(&document)?;
    } else {
        let curves = flashbench::curves_of(&card.profile, 1).map_err(Failure::input)?;
        output::text_line(&card_text(&document, output::width()))?;
        output::text_line(&format!("\n{}", whichfs_report::curves_text(name, &curves)))?;
    }
    Ok(0)
}
