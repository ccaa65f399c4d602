//! Tables of `flashbench -a` one behind the other: several runs on one card, or several cards.
//!
//! A table goes from the greatest boundary, which is decided by the card's size, down to twice
//! the block size. Runs of one card take the same time to within 6 %, of one card in 27 to within
//! 31 % (median of the reads beside the boundaries, `shared/data/flashbench.json`).

use crate::text::Line;
use crate::{LogError, Problem};
use std::collections::BTreeMap;

/// Tables whose reads take so many times what those of the first take are another card's.
const OTHER_CARD: f64 = 1.5;
/// Fewest lines by which the times of two tables are compared.
const LINES_LEAST: usize = 4;

/// The tables of one run.
#[derive(Clone, Debug, Default)]
pub(super) struct Tables {
    first: Option<Table>,
    last: Option<Table>,
}

/// A table, or as much of it as was read.
#[derive(Clone, Debug, Default)]
struct Table {
    /// Number of its first line.
    line: usize,
    /// Time of reads beside each boundary, in microseconds.
    beside_us: BTreeMap<u64, f64>,
}

impl Tables {
    /// Takes a line, with times before, on and after the boundary and their difference.
    ///
    /// # Errors
    /// It ends the table of another card.
    pub fn row(&mut self, line: &Line, boundary: u64, us: [f64; 4]) -> Result<(), LogError> {
        let continues = |table: &&mut Table| {
            let least = table.beside_us.keys().next();
            least.is_some_and(|least| boundary < *least)
        };
        let beside = (us[0] + us[2]) / 2.0;
        if let Some(table) = self.last.as_mut().filter(continues) {
            table.beside_us.insert(boundary, beside);
            return Ok(());
        }
        self.end()?;
        self.last = Some(Table {
            line: line.number,
            beside_us: BTreeMap::from([(boundary, beside)]),
        });
        Ok(())
    }

    /// Ends the table at hand.
    ///
    /// # Errors
    /// It is of another card than the first.
    pub fn end(&mut self) -> Result<(), LogError> {
        let Some(table) = self.last.take() else {
            return Ok(());
        };
        let Some(first) = &self.first else {
            self.first = Some(table);
            return Ok(());
        };
        match first.differs(&table) {
            Some(how) => Err(mixed(first.line, table.line, &how)),
            None => Ok(()),
        }
    }
}

impl Table {
    /// What tells that `other` is another card's.
    fn differs(&self, other: &Table) -> Option<String> {
        let greatest = |table: &Table| table.beside_us.keys().next_back().copied();
        let finest = |table: &Table| table.beside_us.keys().next().copied();
        if let (Some(a), Some(b)) = (greatest(self), greatest(other))
            && a != b
        {
            return Some(format!(
                "tables that begin at {a} and at {b} bytes, which the card's size decides"
            ));
        }
        // Reads of other blocks end at another boundary, and take another time.
        if finest(self) != finest(other) {
            return None;
        }
        let both = self.beside_us.iter();
        let mut times: Vec<f64> = both
            .filter_map(|(boundary, us)| Some(other.beside_us.get(boundary)? / us))
            .collect();
        times.sort_by(f64::total_cmp);
        let median = times.get(times.len() / 2).copied()?;
        let differs = !(1.0 / OTHER_CARD..=OTHER_CARD).contains(&median);
        (times.len() >= LINES_LEAST && differs)
            .then(|| format!("tables of which the second's reads take {median:.2} times as long"))
    }
}

fn mixed(first: usize, second: usize, how: &str) -> LogError {
    LogError::new(Problem::MixedCards, Some(second), "")
        .found(format!("{how}: in line {first} and in line {second}"))
        .expected("repeats of flashbench -a on one card")
        .remedy("give the table of each card in a file of its own")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Takes tables, each from `greatest` down to `finest` with reads of `us`.
    fn read(tables: &[(u64, u64, f64)]) -> Result<(), LogError> {
        let mut found = Tables::default();
        let mut number = 0;
        for (greatest, finest, us) in tables {
            let mut boundary = *greatest;
            while boundary >= *finest {
                number += 1;
                let line = Line {
                    number,
                    text: String::new(),
                    cleaned: false,
                    ended: true,
                };
                found.row(&line, boundary, [*us, us + 100.0, *us, 100.0])?;
                boundary /= 2;
            }
        }
        found.end()
    }

    #[test]
    fn repeats_pass_and_other_cards_do_not() {
        let (gib, end) = (1 << 30, 2048);
        read(&[(gib, end, 900.0), (gib, end, 950.0), (gib, end, 860.0)]).unwrap();
        // Interrupted, or with larger blocks, which take longer.
        read(&[(gib, 1 << 20, 900.0), (gib, end, 900.0)]).unwrap();
        read(&[(gib, end, 900.0), (gib, 32768, 1900.0)]).unwrap();
        for other in [(2 * gib, end, 900.0), (gib, end, 1450.0), (gib, end, 500.0)] {
            let error = read(&[(gib, end, 900.0), (gib, end, 910.0), other]).unwrap_err();
            assert_eq!(error.problem, Problem::MixedCards);
            assert_eq!(error.line, Some(41), "{error}");
        }
    }
}
