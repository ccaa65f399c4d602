//! What a choice is about, and what a caller adds to its trials.

use crate::error::{Error, Outcome};
use crate::workload_run::WorkloadRun;
use crate::{cards, external_journal};
use std::collections::BTreeMap;
use whichfs_decide::{Count, Excluded, FigureRow, Need, Verdict};
use whichfs_fs::Candidate;
use whichfs_study::{SecondCard, SecondCardUse, Variant};

/// What is asked.
pub struct Question {
    /// Rules and weights.
    pub need: Need,
    /// The workload of the need, with its parameters.
    pub work: WorkloadRun,
    /// Names of the candidates; all of the catalogue if empty.
    pub candidates: Vec<String>,
    /// Seed of the first round; later rounds count up from it.
    pub first_seed: u64,
    /// Most seeds of a candidate.
    pub seeds: u64,
    /// A second card, which holds the journal of candidates with such names: `ext4+journal`.
    pub second_card: Option<SecondCard>,
}

impl Question {
    /// Asks also about those candidates whose journal can be on the second card `card`.
    ///
    /// # Errors
    /// The card cannot be opened, or is RAM.
    pub fn offer_second_card(&mut self, card: &str) -> Outcome {
        let second = SecondCard {
            card: card.to_owned(),
            holds: SecondCardUse::Journal,
            mib: SecondCard::JOURNAL_MIB,
        };
        if second.is_ram() {
            return Err(Error::input(
                "a second card in RAM: a journal in RAM is lost with the power; name a card",
            ));
        }
        cards::open(card).map_err(|error| error.about("second card"))?;
        if self.candidates.is_empty() {
            let all = whichfs_fs::candidates().iter();
            self.candidates = all.map(|one| one.name.to_owned()).collect();
        }
        let journals = external_journal::CANDIDATES.iter();
        let asked = journals.filter(|name| self.candidates.iter().any(|asked| asked == *name));
        let more: Vec<String> = asked.map(|name| second.candidate(name)).collect();
        self.candidates.extend(more);
        self.second_card = Some(second);
        Ok(())
    }

    /// The catalogue's candidate that is called `name`, and how it is made.
    ///
    /// # Errors
    /// There is none, or its second card is not named.
    pub(crate) fn asked(&self, name: &str) -> Outcome<(&'static Candidate, Variant)> {
        let candidate = whichfs_fs::find_of_trial(name).map_err(Error::input)?;
        if candidate.name == name {
            return Ok((candidate, Variant::default()));
        }
        let second = self.second_card.as_ref();
        let second = second.filter(|second| second.candidate(candidate.name) == name);
        match second {
            Some(second) => Ok((
                candidate,
                Variant {
                    second_card: Some(second.clone()),
                    ..Variant::default()
                },
            )),
            None => Err(Error::input(format!(
                "{name}: a part of it is on a second card: name that card, and call candidates \
                 NAME{}journal",
                Candidate::SECOND_CARD
            ))),
        }
    }
}

/// What a caller adds to the trials: series of power cuts, for example. `()` adds nothing.
pub trait Supplement {
    /// Adds what `verdict` calls for; true if the verdict may be another one now.
    ///
    /// # Errors
    /// Those that end the whole choice.
    fn add(&mut self, verdict: &Verdict) -> Outcome<bool>;
    /// Figures beside those of the trials; `rows` are the trials' own.
    fn rows(&self, rows: &[FigureRow]) -> Vec<FigureRow>;
    /// Candidates that it excludes.
    fn excluded(&self) -> Vec<Excluded>;
    /// What was counted behind its figures: metric → candidate → count.
    fn counts(&self) -> BTreeMap<String, BTreeMap<String, Count>>;
}

impl Supplement for () {
    fn add(&mut self, _verdict: &Verdict) -> Outcome<bool> {
        Ok(false)
    }

    fn rows(&self, _rows: &[FigureRow]) -> Vec<FigureRow> {
        Vec::new()
    }

    fn excluded(&self) -> Vec<Excluded> {
        Vec::new()
    }

    fn counts(&self) -> BTreeMap<String, BTreeMap<String, Count>> {
        BTreeMap::new()
    }
}
