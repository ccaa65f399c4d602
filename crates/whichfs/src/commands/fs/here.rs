//! What a filesystem is good and bad at on a card, by the trials in the user's store.

use crate::failure::{Failure, Outcome};
use crate::output::folded;
use serde::Serialize;
use std::fmt::Write as _;
use whichfs_engine::places;
use whichfs_engine::trial_cache::open_store;
use whichfs_store::Filter;
use whichfs_study::{Grade, Standing, standings};
use whichfs_trial::Trial;

/// Lines of what it is good at, and of what it is bad at, at most.
const SHOWN: usize = 5;

/// What the trials on one card say.
#[derive(Serialize)]
pub struct Here {
    /// The card.
    pub card: String,
    /// Every metric, the best first.
    figures: Vec<Standing>,
}

impl Here {
    /// Nothing is known.
    pub fn unknown(card: &str) -> Here {
        Here {
            card: card.to_owned(),
            figures: Vec::new(),
        }
    }
}

/// What the trials of `candidate` on `card` say. The catalogue is shown without them too: a store
/// that cannot be read is told of, and no more.
pub fn of(candidate: &str, card: &str) -> Here {
    let mut here = Here::unknown(card);
    match trials(card) {
        Ok(trials) => here.figures = standings(&trials, candidate),
        Err(failure) => note!("what it is good and bad at here is not known: {failure}"),
    }
    here
}

fn trials(card: &str) -> Outcome<Vec<Trial>> {
    let path = places::store()?;
    // Looking makes no store.
    if !path.exists() {
        return Ok(Vec::new());
    }
    let store = open_store(&path)?;
    let done = Filter {
        card: Some(card.to_owned()),
        done: Some(true),
        ..Filter::default()
    };
    let stored = store.find(&done).map_err(Failure::environment)?;
    Ok(stored.into_iter().map(|stored| stored.trial).collect())
}

/// That in lines of at most `width` columns.
pub fn text(here: &Here, width: usize) -> String {
    let card = &here.card;
    if here.figures.is_empty() {
        let none = format!(
            "Good and bad at on {card}: no trials yet; whichfs choose --card {card} makes some"
        );
        return format!("\n{}\n", folded(&none, 2, width));
    }
    let good = here
        .figures
        .iter()
        .filter(|one| one.grade <= Grade::VeryGood);
    let bad = here
        .figures
        .iter()
        .rev()
        .filter(|one| one.grade >= Grade::Fair);
    let mut text = String::new();
    let mut list = |title: &str, lines: Vec<String>| {
        let _ = writeln!(
            text,
            "\n{title} on {card}, of the trials so far (modelled):"
        );
        match lines.is_empty() {
            true => text.push_str("  nothing\n"),
            false => lines.iter().for_each(|line| {
                let _ = writeln!(text, "{}", folded(&format!("  {line}"), 4, width));
            }),
        }
    };
    list("Good at", good.take(SHOWN).map(line).collect());
    list("Bad at", bad.take(SHOWN).map(line).collect());
    text
}

fn line(one: &Standing) -> String {
    let words = whichfs_trial::metric_words(&one.metric);
    let figure = whichfs_report::figure(one.value, &one.unit);
    let beside = match one.ratio {
        ratio if ratio < 1.005 => format!("the best of {}", one.candidates),
        ratio if ratio < 1.05 => format!("as good as {}, the best of {}", one.best, one.candidates),
        ratio if ratio < 9.95 => format!("{ratio:.1}× behind {}", one.best),
        ratio => format!("{ratio:.0}× behind {}", one.best),
    };
    let trial = one
        .trials
        .first()
        .and_then(|id| id.get(..12))
        .unwrap_or_default();
    format!(
        "{}, {words}: {figure}, {beside} (trial {trial})",
        one.workload
    )
}
