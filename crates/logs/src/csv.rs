//! Alignment tests that were published as a table: `align_bytes,pre_us,on_us,post_us,diff_us`.

use crate::remarks::push;
use crate::tables::Tables;
use crate::text::{self, Line};
use crate::units::TIME_MAX_NS;
use crate::{Form, LogError, LogReading, LoggedIdentity, LoggedRun, Problem, flash, stem};
use whichfs_curves::Curves;

/// By this a table is known.
pub(super) const HEADER_BEGIN: &str = "align_bytes,";

const HEADER: &str = "align_bytes,pre_us,on_us,post_us,diff_us";

/// Reads the table `text` of the file `name`.
pub(super) fn read(name: &str, text: &str) -> Result<LogReading, LogError> {
    let lines = text::lines(text);
    let mut lines = lines.iter().filter(|line| !line.text.trim().is_empty());
    let mut curves = Curves::default();
    let mut last = 1;
    if let Some(line) = lines.next().filter(|line| line.text.trim() != HEADER) {
        return Err(
            LogError::new(Problem::MixedUnits, Some(line.number), &line.text)
                .expected(format!("the columns {HEADER}"))
                .remedy("convert the table to these columns and units"),
        );
    }
    let mut mended = Vec::new();
    let mut tables = Tables::default();
    for line in lines {
        if line.text.trim() == HEADER {
            return Err(another(line));
        }
        let (boundary, us) = row(line)?;
        tables.row(line, boundary, us)?;
        if !line.ended {
            let why = "the last line has no line end: decimals of its last figure may be missing";
            push(&mut mended, line.number, why, &line.text);
        }
        curves.align.entry(boundary).or_default().push(us);
        last = line.number;
    }
    tables.end()?;
    let runs = if curves.align.is_empty() {
        Vec::new()
    } else {
        vec![LoggedRun {
            name: stem(name).to_owned(),
            lines: (1, last),
            card: LoggedIdentity::default(),
            erase_bytes: None,
            curves,
            rates: Vec::new(),
        }]
    };
    Ok(LogReading {
        form: Form::Csv,
        runs,
        skipped: Vec::new(),
        mended,
    })
}

/// The head of a second table.
fn another(line: &Line) -> LogError {
    LogError::new(Problem::MixedCards, Some(line.number), &line.text)
        .expected("one table")
        .remedy("give each table in a file of its own, or take this line out if it is one card's")
}

fn row(line: &Line) -> Result<(u64, [f64; 4]), LogError> {
    let cells: Vec<&str> = line.text.split(',').map(str::trim).collect();
    let whole = || flash::cut(line, true).expected(format!("figures for {HEADER}"));
    let [boundary, times @ ..] = cells.as_slice() else {
        return Err(whole());
    };
    let boundary: u64 = boundary.parse().map_err(|_| whole())?;
    let times: Vec<f64> = times
        .iter()
        .filter_map(|cell| cell.parse().ok().filter(|us: &f64| us.is_finite()))
        .collect();
    let us: [f64; 4] = times.try_into().map_err(|_| whole())?;
    let [pre, on, post, diff] = us;
    let possible = |us: f64| us > 0.0 && us <= TIME_MAX_NS / 1e3;
    if boundary == 0 || ![pre, on, post].into_iter().all(possible) {
        return Err(flash::absurd(
            line,
            "a boundary, and times of reads below 1000 s",
        ));
    }
    let computed = on - (pre + post) / 2.0;
    let slack = 0.006 * (on + (pre + post) / 2.0 + diff.abs()) + 0.1;
    if (diff - computed).abs() > slack || cells.len() != 5 {
        return Err(
            LogError::new(Problem::MixedUnits, Some(line.number), &line.text)
                .expected(format!(
                    "diff = on - (pre + post) / 2, here {computed:.1} µs"
                ))
                .remedy("restore the line, with all times in microseconds"),
        );
    }
    Ok((boundary, us))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_table_is_read_and_its_faults_are_named() {
        let good = format!("{HEADER}\n4194304,1390,1470,1280,135.0\n2097152,1300,1300,1290,5\n");
        let reading = read("dir/card.csv", &good).unwrap();
        assert_eq!(reading.runs[0].name, "card");
        let align = &reading.runs[0].curves.align;
        assert_eq!(align[&4_194_304], [[1390.0, 1470.0, 1280.0, 135.0]]);
        for (text, problem) in [
            ("align_bytes,pre_ms\n1,2", Problem::MixedUnits),
            (&format!("{HEADER}\n4096,1390,1470"), Problem::Truncated),
            (
                &format!("{HEADER}\n4096,1390,x,1280,1\n"),
                Problem::Malformed,
            ),
            (
                &format!("{HEADER}\n4096,10,12,10,2\n{HEADER}\n"),
                Problem::MixedCards,
            ),
            (
                &format!("{HEADER}\n4096,10,12,10,2\n8192,10,12,10,2\n"),
                Problem::MixedCards,
            ),
            (&format!("{HEADER}\n4096,-1,1470,1280,1\n"), Problem::Absurd),
            (
                &format!("{HEADER}\n4096,1.39,1470,1280,139\n"),
                Problem::MixedUnits,
            ),
        ] {
            assert_eq!(read("t", text).unwrap_err().problem, problem, "{text}");
        }
    }
}
