//! What a card's family does not explain of the times of its writes: factors by order, by the
//! number of AUs that are written in turns, and by size of the request.
//!
//! A family has the mechanism: what is merged, copied and erased when, and so the card's memory of
//! what was written before. Where measured curves differ from it in a way that no figure of the
//! family has, the difference stands here and multiplies the time of a write, whatever that is. A
//! card without a residual is its family alone.
//!
//! In a profile:
//!
//! ```toml
//! [residual]
//! source = "what the family leaves of 154 points of flashbench -O"
//! uncertainty_percent = 6
//! block_bytes = [4096, 65536, 1048576]
//! in_order = [[104, 100, 97], [110, 102, 97]]       # percent; 1 AU, 2 AUs in turns
//! at_random = [[96, 101, 97]]
//! ```
//!
//! Between two sizes a factor goes in proportion to the bytes; outside of them, and beyond the last
//! number of AUs, it is that of the last.

use whichfs_units::Rng;

/// Most AUs that are written in turns and still known from each other; with more, each write is
/// taken for one of so many.
pub(crate) const AUS_MOST: usize = 8;
/// Sizes of a table at most.
pub(crate) const SIZES_MOST: usize = 32;
/// Least and largest factor, in percent.
pub const FACTOR_PERCENT: std::ops::RangeInclusive<u64> = 5..=2000;

/// Factors of the times of writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Residual {
    /// Where it is from.
    pub source: String,
    /// How far the factors of one number of AUs may be off together, in percent, up or down.
    pub uncertainty_percent: u64,
    /// Sizes of requests in bytes, the smallest first.
    pub block_bytes: Vec<u64>,
    /// Factors in percent of writes that go on where the last write into their AU ended: one row
    /// for each number of AUs in turns, from one on, with a factor for each size.
    pub in_order: Vec<Vec<u64>>,
    /// The same of all other writes.
    pub at_random: Vec<Vec<u64>>,
}

impl Residual {
    /// The two tables with their names in a profile.
    pub(crate) fn tables(&self) -> [(&'static str, &Vec<Vec<u64>>); 2] {
        [("in_order", &self.in_order), ("at_random", &self.at_random)]
    }

    /// `ns` of a write of `bytes`, as the card takes them.
    pub(crate) fn of(&self, ns: u64, bytes: u64, place: Place) -> u64 {
        let table = match place.in_order {
            true => &self.in_order,
            false => &self.at_random,
        };
        let row = &table[place.aus.clamp(1, table.len()) - 1];
        // In 1/1024 percent, so that interpolation loses nothing that matters.
        let factor = self.between(row, bytes);
        let scaled = u128::from(ns) * u128::from(factor) / (100 << 10);
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }

    /// The factor of `row` at `bytes`, in 1/1024 percent.
    fn between(&self, row: &[u64], bytes: u64) -> u64 {
        let above = self.block_bytes.partition_point(|size| *size <= bytes);
        let at = |index: usize| row[index.min(row.len() - 1)] << 10;
        if above == 0 || above == row.len() {
            return at(above);
        }
        let [low, high] = [self.block_bytes[above - 1], self.block_bytes[above]];
        let (from, to) = (at(above - 1), at(above));
        let part = |span: u64| {
            (u128::from(span) * u128::from(bytes - low) / u128::from(high - low)) as u64
        };
        match to >= from {
            true => from + part(to - from),
            false => from - part(from - to),
        }
    }

    /// The same with the factors of each number of AUs drawn anew, together, by `scaled` within the
    /// uncertainty.
    pub(crate) fn drawn(&self, seed: u64, scaled: impl Fn(u64, u64, f64) -> u64) -> Residual {
        let mut drawn = self.clone();
        for (name, table) in [
            ("in order", &mut drawn.in_order),
            ("at random", &mut drawn.at_random),
        ] {
            for (aus, row) in table.iter_mut().enumerate() {
                let unit = Rng::named(seed, &format!("residual {name} {aus}")).unit_f64();
                for factor in row {
                    let value = scaled(*factor, self.uncertainty_percent, unit);
                    *factor = value.clamp(*FACTOR_PERCENT.start(), *FACTOR_PERCENT.end());
                }
            }
        }
        drawn
    }

    /// What is wrong with it, by key; nothing if it can be.
    pub(crate) fn check(&self) -> Result<(), (&'static str, String)> {
        let sizes = &self.block_bytes;
        if sizes.is_empty() || sizes.len() > SIZES_MOST || !sizes.is_sorted_by(|a, b| a < b) {
            let found = format!("not 1 to {SIZES_MOST} sizes, each larger than the one before");
            return Err(("block_bytes", found));
        }
        for (name, table) in self.tables() {
            if !(1..=AUS_MOST).contains(&table.len()) {
                return Err((name, format!("{} rows, not 1 to {AUS_MOST}", table.len())));
            }
            if let Some(row) = table.iter().find(|row| row.len() != sizes.len()) {
                let found = format!("a row of {} factors for {} sizes", row.len(), sizes.len());
                return Err((name, found));
            }
        }
        Ok(())
    }
}

/// How a write stands to those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// It goes on where the last write into its AU ended, or begins the AU.
    pub in_order: bool,
    /// How many AUs have been written since the last write into its AU, itself included.
    pub aus: usize,
}

/// The AUs written last, the latest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Turns {
    /// AU, and where the last write into it ended.
    latest: Vec<(u64, u64)>,
    aus: usize,
}

impl Turns {
    /// Takes a write in `[offset, end)` of the AU number `au`, that begins it if `first`.
    pub fn write(&mut self, au: u64, offset: u64, end: u64, first: bool) -> Place {
        let latest = &self.latest;
        let goes_on = latest.iter().position(|(_, last)| *last == offset);
        let found = goes_on.or_else(|| latest.iter().position(|(of, _)| *of == au));
        let aus = match found {
            Some(at) => {
                self.latest.remove(at);
                at + 1
            }
            // A new AU takes its turn as the last one did; a place anywhere is of many AUs.
            None if first => self.aus.max(1),
            None => AUS_MOST,
        };
        self.latest.truncate(AUS_MOST - 1);
        self.latest.insert(0, (au, end));
        self.aus = aus;
        Place {
            in_order: goes_on.is_some() || first,
            aus,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Residual {
        Residual {
            source: "test".into(),
            uncertainty_percent: 10,
            block_bytes: vec![4096, 8192],
            in_order: vec![vec![100, 200], vec![300, 300]],
            at_random: vec![vec![50, 10]],
        }
    }

    fn place(in_order: bool, aus: usize) -> Place {
        Place { in_order, aus }
    }

    #[test]
    fn factors_go_in_proportion_between_sizes_and_stay_outside() {
        let table = table();
        let of = |bytes, place| table.of(1000, bytes, place);
        assert_eq!(of(4096, place(true, 1)), 1000);
        assert_eq!(of(6144, place(true, 1)), 1500);
        assert_eq!(of(512, place(true, 1)), 1000);
        assert_eq!(of(1 << 20, place(true, 1)), 2000);
        assert_eq!(of(4096, place(true, 7)), 3000, "more AUs than rows");
        assert_eq!(of(6144, place(false, 1)), 300);
        assert_eq!(table.of(u64::MAX, 8192, place(true, 1)), u64::MAX);
    }

    #[test]
    fn aus_in_turns_are_counted_whether_in_order_or_not() {
        const AU: u64 = 1 << 20;
        let mut turns = Turns::default();
        let mut write =
            |au: u64, at: u64| turns.write(au, au * AU + at, au * AU + at + 4096, at == 0);
        assert_eq!(write(3, 0), place(true, 1));
        assert_eq!(write(3, 4096), place(true, 1));
        assert_eq!(write(9, 0), place(true, 1), "a new AU, as before");
        assert_eq!(write(3, 8192), place(true, 2));
        assert_eq!(write(9, 4096), place(true, 2));
        assert_eq!(write(9, 65536), place(false, 1));
        assert_eq!(write(5, 65536), place(false, AUS_MOST));
        // A stream goes on into the next AU.
        assert_eq!(write(5, AU - 4096), place(false, 1));
        assert_eq!(write(6, 0), place(true, 1));
        // Of nine AUs in turns none is remembered.
        for _ in 0..2 {
            for au in 20..29 {
                write(au, 4096);
            }
        }
        assert_eq!(write(20, 65536), place(false, AUS_MOST));
    }

    #[test]
    fn what_is_no_table_is_refused() {
        let with = |change: fn(&mut Residual)| {
            let mut table = table();
            change(&mut table);
            table.check().map_err(|(key, _)| key)
        };
        assert_eq!(with(|_| ()), Ok(()));
        assert_eq!(with(|of| of.block_bytes.reverse()), Err("block_bytes"));
        assert_eq!(with(|of| of.in_order.clear()), Err("in_order"));
        assert_eq!(with(|of| of.at_random[0].push(3)), Err("at_random"));
    }
}
