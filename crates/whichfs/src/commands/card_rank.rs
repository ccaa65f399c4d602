//! `whichfs card rank`: which card to buy.

use super::choose;
use crate::cli::{CardRankArgs, ChooseArgs, ChooseHereArgs, PlaceArgs};
use crate::failure::{Failure, Kind, Outcome, exit_code};
use crate::output;
use std::path::PathBuf;
use whichfs_decide::rank_cards;
use whichfs_engine::shell::quoted_os;
use whichfs_report::documents::card_rank::{CardRankShown, rank_text};

/// Examples in the help text.
pub const EXAMPLES: &str = "\
Examples:
  whichfs card rank --for logger --cards a1-32gb,class4-4gb,emmc-8gb
  whichfs card rank --for camera --cards sandisk         all shipped cards of that name
  whichfs card rank --for rootfs --candidates ext4,f2fs  all shipped cards, two filesystems

Each card is as good as its best filesystem. Cards tie whose scores are nearer than 10 % or than
what is known of the two cards; --json has the trials behind each card, and how to show them.
Trials that are in the store are not run again, so an interrupted ranking goes on with the same
command.";

/// Ranks the cards.
pub fn run(args: &CardRankArgs) -> Outcome<u8> {
    let need = choose::need(&args.needs, &args.need)?;
    let cards = cards(&args.cards)?;
    let mut evidence = Vec::new();
    for (at, card) in cards.iter().enumerate() {
        note!("card {} of {}: {card}", at + 1, cards.len());
        let own = choose::evidence(&choose_args(args, card))?;
        evidence.push(own);
    }
    let ranking = rank_cards(&need, &evidence).map_err(|e| Failure::new(Kind::Trial, e))?;
    let store = args.store.as_deref();
    let store = store.map(|path| format!(" --store {}", quoted_os(path.as_os_str())));
    let store = store.unwrap_or_default();
    match args.json {
        true => output::document(&CardRankShown::new(&ranking, &store))?,
        false => output::text_line(&rank_text(&ranking, output::width()))?,
    }
    Ok(match ranking.cards.is_empty() {
        true => exit_code(Kind::No),
        false => 0,
    })
}

/// The cards meant: shipped ones whose names contain a word, files, or all shipped ones.
fn cards(wanted: &[String]) -> Outcome<Vec<String>> {
    let shipped = || {
        whichfs_card::builtin()
            .iter()
            .map(|(name, _)| (*name).to_owned())
    };
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
            return Err(Failure::input(format!(
                "--cards {word}: no shipped card has that in its name; `whichfs card list` has all"
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

fn choose_args(args: &CardRankArgs, card: &str) -> ChooseArgs {
    ChooseArgs {
        place: PlaceArgs {
            card: card.to_owned(),
            ..args.place.clone()
        },
        needs: args.needs.clone(),
        need: args.need.clone(),
        candidates: args.candidates.clone(),
        seeds: Some(args.seeds),
        first_seed: 1,
        size: None,
        tree: None,
        fio: None,
        command: None,
        cuts: None,
        jobs: args.jobs,
        out: PathBuf::new(),
        emit: None,
        layout: None,
        store: args.store.clone(),
        fresh: false,
        device: ChooseHereArgs::default(),
        json: args.json,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn cards_are_named_whole_or_in_part() {
        let named = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            cards(&words)
        };
        assert_eq!(named(&["a1-32gb", "a1-32gb"]).unwrap(), ["a1-32gb"]);
        assert!(named(&["sandisk"]).unwrap().len() > 5);
        assert_eq!(named(&["./my.toml"]).unwrap(), ["./my.toml"]);
        assert_eq!(named(&[]).unwrap().len(), whichfs_card::builtin().len());
        let said = named(&["nosuch"]).unwrap_err().message;
        assert!(said.contains("whichfs card list"), "{said}");
    }
}
