//! bonnie++'s table and its CSV (1.03, and 1.9x with versions in front): what it wrote and read in
//! blocks, in order. It syncs what it writes, and its file is twice the host's memory. Both are
//! rates of a filesystem, which the card can only exceed.

use crate::text::Line;
use crate::units::{number, possible};
use crate::{Caveat, Operation, Rate};

const FILESYSTEM: Caveat = Caveat::at_least("of a filesystem (bonnie++)");

/// Fields of the table: name, size, then rate and CPU of six tests.
const FIELDS: usize = 14;

/// The rates of a row; none if `line` is no row of bonnie++.
pub(super) fn rates(line: &Line) -> Option<Vec<Rate>> {
    let text = line.text.trim();
    let csv = text.contains(',') && !text.contains(' ');
    let fields: Vec<&str> = match csv {
        true => text.split(',').collect(),
        false => text.split_whitespace().collect(),
    };
    let versions = csv && number(fields[0]).is_some() && number(fields[1]).is_some();
    // Behind the versions, concurrency and seed, and the size of a chunk behind that of the file.
    let [size, first] = if versions { [5, 7] } else { [1, 2] };
    let is_size = |text: &str| number(text).is_some_and(|(_, unit)| ["M", "G"].contains(&unit));
    let figures = fields.get(first..first + FIELDS - 2)?;
    let is_figure = |text: &&str| number(text).is_some() || text.trim_start_matches('+').is_empty();
    if !is_size(fields[size]) || !figures.iter().all(is_figure) || !(csv || fields.len() == FIELDS)
    {
        return None;
    }
    let rate = |(operation, at): (Operation, usize)| {
        let (value, unit) = number(figures[at])?;
        let scale = match unit {
            "" | "k" => 1024.0,
            "m" => 1_048_576.0,
            "g" => 1_073_741_824.0,
            _ => return None,
        };
        possible(value * scale, false).ok()?;
        Some(Rate {
            caveat: Some(FILESYSTEM),
            ..Rate::plain(operation, value * scale, "bonnie++ block", line.number)
        })
    };
    let rates = [(Operation::Write, 2), (Operation::Read, 8)].into_iter();
    Some(rates.filter_map(rate).collect())
}
