//! What a filesystem is good and bad at on a card, by the trials in the user's store.

use crate::number::with_unit;
use crate::text::folded;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write as _;
use whichfs_decide::{Grade, Standing, standings};
use whichfs_trial::Trial;

/// Lines of what it is good at, and of what it is bad at, at most.
const SHOWN: usize = 5;

/// What the trials on one card say.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Here {
    /// Name of the card's profile.
    pub card: String,
    /// Every metric, the best first.
    figures: Vec<Standing>,
}

impl Here {
    /// What `trials` on `card` say of `candidate`.
    pub fn of(candidate: &str, card: &str, trials: &[Trial]) -> Here {
        Here {
            card: card.to_owned(),
            figures: standings(trials, candidate),
        }
    }
}

/// That in lines of at most `width` columns.
pub(super) fn text(here: &Here, width: usize) -> String {
    let card = &here.card;
    if here.figures.is_empty() {
        let none = format!(
            "Good and bad at on {card}: no trials yet; whichfs choose --card {} makes some",
            whichfs_units::shell_word(card)
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
    let figure = with_unit(one.value, &one.unit);
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
