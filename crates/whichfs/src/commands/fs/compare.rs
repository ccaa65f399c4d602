//! `whichfs fs compare`: two filesystems side by side.

use super::limit_cells;
use crate::cli::FsCompareArgs;
use crate::commands::table;
use crate::failure::{Failure, Outcome};
use crate::output;
use serde::Serialize;
use whichfs_fs::{Candidate, Matter};

/// Examples in the help text.
pub const EXAMPLES: &str = "\
Examples:
  whichfs fs compare ext4 f2fs           only what differs
  whichfs fs compare vfat exfat --all";

/// A line: what, and how it is with both.
#[derive(Serialize)]
struct Line {
    what: String,
    values: [String; 2],
    /// Where both are written.
    sources: [String; 2],
}

/// Runs the command.
pub fn run(args: &FsCompareArgs) -> Outcome<u8> {
    let find = |name: &str| whichfs_fs::find(name).map_err(Failure::input);
    let pair = [find(&args.first)?, find(&args.second)?];
    let mut lines = lines(pair);
    if !args.all {
        lines.retain(|line| line.values[0] != line.values[1]);
    }
    if args.json {
        output::json(&lines)?;
        return Ok(0);
    }
    if lines.is_empty() {
        output::text_line("nothing differs; --all shows everything")?;
        return Ok(0);
    }
    let rows = lines.into_iter().map(|line| {
        let [first, second] = line.values;
        vec![line.what, first, second]
    });
    let head = ["", pair[0].name, pair[1].name];
    output::text_line(&table::text(&head, rows.collect()))?;
    Ok(0)
}

fn lines(pair: [&'static Candidate; 2]) -> Vec<Line> {
    let cells = pair.map(limit_cells);
    let limits = cells[0].iter().zip(&cells[1]).map(|(first, second)| Line {
        what: first.0.to_owned(),
        values: [first.1.clone(), second.1.clone()],
        sources: pair.map(|one| one.source_of(first.2).to_owned()),
    });
    let care = Matter::ALL.into_iter().map(|matter| {
        let of = |one: &Candidate| {
            let care = whichfs_fs::care(one.name).get(&matter);
            care.map_or_else(Default::default, |care| {
                (told(matter, care), care.source.clone())
            })
        };
        let [first, second] = pair.map(of);
        Line {
            what: matter.words().to_owned(),
            values: [first.0, second.0],
            sources: [first.1, second.1],
        }
    });
    limits.chain(care).collect()
}

/// A line of care in a cell: whether, and how.
pub fn told(matter: Matter, care: &whichfs_fs::Care) -> String {
    match matter {
        Matter::Licence => care.how.clone(),
        _ => format!("{}: {}", care.can.word(), care.how),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn each_line_has_both() {
        let find = |name| whichfs_fs::find(name).unwrap();
        let lines = lines([find("ext4"), find("vfat")]);
        let line = |what: &str| lines.iter().find(|line| line.what == what).unwrap();
        assert_eq!(line("symbolic links").values, ["yes", "no"]);
        assert_eq!(line("freeze").values[1], "no: the driver has no freeze_fs");
        assert!(
            lines
                .iter()
                .all(|line| line.values.iter().all(|value| !value.is_empty()))
        );
    }
}
