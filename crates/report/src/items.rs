//! Labelled figures of a page: what is to be said of a card, and trials that are set aside.

use crate::device::{TrialLine, trial_lines};
use crate::documents::card::{card_figure, card_words};
use crate::page::{DEFAULT, Item};
use whichfs_card::Profile;
use whichfs_decide::Excluded;
use whichfs_trial::Trial;
use whichfs_units::{Bytes, shell_word};

/// A line of a list.
pub fn item(label: &str, value: impl ToString, source: &str) -> Item {
    Item {
        label: label.to_owned(),
        value: value.to_string(),
        source: source.to_owned(),
        ..Item::default()
    }
}

/// What is to be said of the card called `name`, which begins in `state`, and whose partition
/// begins at `offset`: every figure with its source.
pub fn card_items(name: &str, profile: &Profile, state: &str, offset: u64) -> Vec<Item> {
    let kind = if profile.composed() {
        "composed of several sources"
    } else {
        "one card"
    };
    let mut items = vec![
        item("profile", format!("{name}: {}", profile.title()), kind),
        item("state at the start", state, ""),
        item(
            "partition begins at",
            Bytes(offset),
            "first AU at or after 4 MiB",
        ),
    ];
    items.extend(profile.figures().map(|figure| {
        let shown = card_figure(figure);
        let value = match figure.uncertainty_percent {
            0 => shown,
            percent => format!("{shown} (±{percent} %)"),
        };
        Item {
            name: figure.path.to_owned(),
            ..item(
                &card_words(figure.path),
                value,
                figure.source.as_deref().unwrap_or(DEFAULT),
            )
        }
    }));
    items
}

/// The lines of `trials` of candidates that a rule excludes: they tell what the rule decides. The
/// command of each lifts its rule.
pub fn aside(excluded: &[Excluded], trials: &[Trial], repeat: &str) -> Vec<TrialLine> {
    let lines = trial_lines(trials, repeat).into_iter();
    lines.filter_map(|line| lifted(excluded, line)).collect()
}

/// `line` with a command that lifts the rule by which its candidate is excluded; none where no
/// option does.
fn lifted(excluded: &[Excluded], line: TrialLine) -> Option<TrialLine> {
    let mut all = excluded.iter();
    let own = all.find(|one| one.candidate == line.candidate)?;
    let option = own.allow.as_deref()?.strip_prefix("--need ")?;
    let (begin, part) = line.command.split_at(line.command.rfind(" --fs ")?);
    let command = format!("{begin} --need {}{part}", shell_word(option));
    Some(TrialLine { command, ..line })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_command_of_a_trial_that_a_rule_excludes_lifts_the_rule() {
        let line = TrialLine {
            candidate: "ext4".into(),
            command: "whichfs choose --for rootfs --fs ext4 --first-seed 1".into(),
            ..TrialLine::default()
        };
        let told = |allow: Option<&str>| {
            let excluded = Excluded {
                candidate: "ext4".into(),
                allow: allow.map(str::to_owned),
                ..Excluded::default()
            };
            lifted(&[excluded], line.clone()).map(|line| line.command)
        };
        let lifts = told(Some("--need windows=any")).unwrap();
        assert_eq!(
            lifts,
            "whichfs choose --for rootfs --need windows=any --fs ext4 --first-seed 1"
        );
        assert_eq!(
            told(Some("a card with a partition of 64 MiB or more")),
            None
        );
        assert_eq!(told(None), None);
    }
}
