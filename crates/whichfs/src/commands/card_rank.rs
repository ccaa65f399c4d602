//! `whichfs card rank`: which card to buy.

use super::choose;
use crate::cli::{CardRankArgs, ChooseArgs, ChooseHereArgs, PlaceArgs, RunArgs};
use crate::failure::{Failure, Kind, Outcome, exit_code};
use crate::output;
use crate::progress::Progress;
use whichfs_decide::rank_cards;
use whichfs_engine::cards;
use whichfs_engine::shell::quoted_os;
use whichfs_report::documents::card_rank::{CardRankShown, rank_text};

/// Examples in the help text.
pub const EXAMPLES: &str = "\
Examples:
  whichfs card rank --for logger --card a1-32gb,class4-4gb,emmc-8gb
  whichfs card rank --for camera --card sandisk         all shipped cards of that name
  whichfs card rank --for rootfs --fs ext4,f2fs  all shipped cards, two filesystems

Each card is as good as its best filesystem. Cards tie whose scores are nearer than 10 % or than
what is known of the two cards; --json has the trials behind each card, and how to show them.
Trials that are in the store are not run again, so an interrupted ranking goes on with the same
command.";

/// Ranks the cards by what the need weighs.
pub fn run(args: &CardRankArgs) -> Outcome<u8> {
    let need = choose::need(&args.needs, &args.need)?;
    let cards = cards::matching(&args.cards)?;
    let (mut evidence, mut progress) = (Vec::new(), Progress::default());
    for (at, card) in cards.iter().enumerate() {
        note!("card {} of {}: {card}", at + 1, cards.len());
        progress.rounds_left = (cards.len() - at - 1) as u64 * args.seeds;
        let own = choose::evidence(&choose_args(args, card), &mut progress)?;
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

fn choose_args(args: &CardRankArgs, card: &str) -> ChooseArgs {
    ChooseArgs {
        place: PlaceArgs {
            card: card.to_owned(),
            machine: args.machine.clone(),
        },
        needs: args.needs.clone(),
        need: args.need.clone(),
        candidates: args.candidates.clone(),
        seeds: Some(args.seeds),
        second_card: None,
        first_seed: 1,
        size: None,
        tree: None,
        fio: None,
        command: None,
        cuts: None,
        jobs: args.jobs,
        out: None,
        run: RunArgs::default(),
        emit: None,
        layout: None,
        store: args.store.clone(),
        fresh: false,
        device: ChooseHereArgs::default(),
        json: args.json,
    }
}
