//! The lines that flashbench prints: `align …` of `-a`, block size and rates of `-O` and `-f`.

use crate::text::Line;
use crate::units::{self, NoFigure, PrintedTime, TIME_MAX_NS};
use crate::{LogError, Problem};

/// Why a section is listed as skipped; it also tells a log without figures from foreign text.
pub(super) const NO_ROWS: &str = "a section without figures: the test did not run or end";

/// Larger blocks than flashbench can write (`MAX_BUFSIZE` is 64 MiB) by far.
const BLOCK_MAX: f64 = (1_u64 << 34) as f64;

/// One line of `-a`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AlignRow {
    pub boundary: u64,
    /// Before, on, after the boundary, and their difference, in microseconds.
    pub us: [f64; 4],
    /// What had to be mended in its figures.
    pub mended: Option<&'static str>,
}

/// One line of `-O` or `-f`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RateRow {
    /// As printed: three digits, perhaps no whole number of bytes.
    pub block: f64,
    /// In bytes a second. Empty: the test was interrupted in this line.
    pub rates: Vec<f64>,
}

/// The alignment line that `line` is.
pub(super) fn align(line: &Line) -> Result<Option<AlignRow>, LogError> {
    const KEYS: [&str; 4] = ["pre", "on", "post", "diff"];
    let words: Vec<&str> = line.text.split_whitespace().collect();
    let (Some(&"align"), Some(boundary)) = (words.first(), words.get(1)) else {
        return Ok(None);
    };
    let is_number = boundary.bytes().all(|byte| byte.is_ascii_digit());
    let keys_fit = KEYS
        .iter()
        .enumerate()
        .all(|(i, key)| match words.get(2 + 2 * i) {
            Some(word) => word == key || (words.len() == 3 + 2 * i && key.starts_with(word)),
            None => true,
        });
    if !is_number || !keys_fit {
        return Ok(None);
    }
    const WHOLE: &str = "`align BYTES pre TIME on TIME post TIME diff TIME`";
    if words.len() < 10 {
        return Err(cut(line, true).expected(WHOLE));
    }
    if words.len() > 10 {
        return Err(cut(line, false).expected(WHOLE));
    }
    let boundary: u64 = match boundary.parse() {
        Ok(bytes) if bytes > 0 && bytes < 1 << 50 => bytes,
        _ => return Err(absurd(line, "a boundary inside the card, in bytes")),
    };
    let mut times = [PrintedTime {
        ns: 0.0,
        digits_lost: false,
        unit_mended: false,
    }; 4];
    for (i, time) in times.iter_mut().enumerate() {
        let token = words[3 + 2 * i];
        *time = units::time(token).map_err(|why| figure(line, token, why, i == 3))?;
    }
    let [pre, on, post, _] = times.map(|time| time.ns);
    if [pre, on, post]
        .iter()
        .any(|&ns| ns <= 0.0 || ns > TIME_MAX_NS)
    {
        return Err(absurd(line, "times of reads above 0 and below 1000 s"));
    }
    let diff = difference(line, [pre, on, post], times[3])?;
    let mended = times.iter().any(|time| time.unit_mended);
    let mended = mended.then_some(if times[3].digits_lost && diff != times[3].ns {
        "digits that flashbench cut off were restored from the other columns"
    } else {
        "a unit that is cut off or destroyed was restored"
    });
    Ok(Some(AlignRow {
        boundary,
        us: [pre, on, post, diff].map(|ns| ns / 1e3),
        mended,
    }))
}

/// Checks that `diff` is what flashbench computes from the other columns, which holds on
/// every line of 28 real cards, and restores digits that were cut off.
fn difference(line: &Line, [pre, on, post]: [f64; 3], diff: PrintedTime) -> Result<f64, LogError> {
    // Three significant digits: up to 0.5 % of each figure; integer division: 2 ns.
    let computed = on - (pre + post) / 2.0;
    let powers = if diff.digits_lost { 0..=6 } else { 0..=0 };
    let values = powers.map(|power| (diff.ns * 10_f64.powi(power), 10_f64.powi(power)));
    let nearest = values.min_by(|a, b| (a.0 - computed).abs().total_cmp(&(b.0 - computed).abs()));
    if let Some((value, scale)) = nearest {
        let slack = 0.006 * (on + (pre + post) / 2.0 + value.abs()) + 1.0 + scale;
        if (value - computed).abs() <= slack {
            return Ok(value);
        }
    }
    Err(
        LogError::new(Problem::MixedUnits, Some(line.number), &line.text)
            .expected(format!(
                "diff = on - (pre + post) / 2, here {:.1} µs",
                computed / 1e3
            ))
            .remedy("restore the line as flashbench printed it"),
    )
}

/// The line of block size and rates that `line` is. Inside a test (`expected`) a broken line
/// is an error; elsewhere, text that begins with a size is only text.
pub(super) fn rates(line: &Line, expected: bool) -> Result<Option<RateRow>, LogError> {
    let mut words = line.text.split_whitespace();
    let Some(block) = words.next().and_then(units::block) else {
        return Ok(None);
    };
    let tokens: Vec<&str> = words.collect();
    let figures: Vec<Result<f64, NoFigure>> =
        tokens.iter().map(|token| units::rate(token)).collect();
    let begins_as_rate = match figures.first() {
        None => expected,
        Some(Ok(_)) => true,
        Some(Err(NoFigure::OtherUnit(unit))) => expected || unit.ends_with("/s"),
        Some(Err(NoFigure::NoUnit)) => expected || !line.ended,
        Some(Err(NoFigure::Malformed)) => expected && units::number(tokens[0]).is_some(),
    };
    if !begins_as_rate {
        return Ok(None);
    }
    let mut rates = Vec::with_capacity(figures.len());
    let last = figures.len().saturating_sub(1);
    for (i, figure_of) in figures.into_iter().enumerate() {
        let rate = figure_of.map_err(|why| figure(line, tokens[i], why, i == last))?;
        // -O writes with O_DIRECT and O_SYNC, -f too: nothing but the card answers.
        units::possible(rate, true).map_err(|expected| absurd(line, expected))?;
        rates.push(rate);
    }
    if rates.is_empty() && !line.ended {
        return Err(cut(line, true).expected("a rate after the block size"));
    }
    if block > BLOCK_MAX {
        return Err(absurd(line, "a block of at most 16 GiB"));
    }
    Ok(Some(RateRow { block, rates }))
}

/// A figure that is none.
fn figure(line: &Line, token: &str, why: NoFigure, at_end: bool) -> LogError {
    const UNITS: &str = "B/s, K/s, M/s, G/s for rates and ns, µs, ms, s for times";
    match why {
        NoFigure::OtherUnit(_) => LogError::new(Problem::MixedUnits, Some(line.number), token)
            .expected(format!("flashbench's units: {UNITS}"))
            .remedy("use the program's own output; do not convert its figures"),
        NoFigure::NoUnit => cut(line, at_end).expected(format!("a unit after `{token}`: {UNITS}")),
        NoFigure::Malformed => {
            cut(line, at_end).expected(format!("a figure in place of `{token}`"))
        }
    }
}

/// A line that is not whole: at the end of a file, the file was cut.
pub(super) fn cut(line: &Line, at_end: bool) -> LogError {
    let truncated = at_end && !line.ended;
    let (problem, remedy) = if truncated {
        (
            Problem::Truncated,
            "delete this last line to use what is before it",
        )
    } else {
        (Problem::Malformed, "restore the line or delete it")
    };
    LogError::new(problem, Some(line.number), &line.text).remedy(remedy)
}

/// A line with a figure that no card has.
pub(super) fn absurd(line: &Line, expected: &str) -> LogError {
    LogError::new(Problem::Absurd, Some(line.number), &line.text)
        .expected(expected)
        .remedy("repeat the test; if the device failed in it, delete the section")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn line(text: &str, ended: bool) -> Line {
        Line {
            number: 7,
            text: text.to_owned(),
            cleaned: false,
            ended,
        }
    }

    fn align_of(text: &str) -> Result<Option<AlignRow>, LogError> {
        align(&line(text, true))
    }

    #[test]
    fn alignment_lines_of_the_program() {
        let row = align_of("align 4194304\tpre 1.32ms\ton 1.65ms\tpost 1.57ms\tdiff 202µs");
        let row = row.unwrap().unwrap();
        assert_eq!(
            (row.boundary, row.us),
            (4 << 20, [1320.0, 1650.0, 1570.0, 202.0])
        );
        assert_eq!(row.mended, None);
        let row = align_of("align 8192 pre 1e+03µ on 1.46ms post 1.01ms diff 456µs").unwrap();
        assert_eq!(row.unwrap().us[0], 1000.0);
        let row = align_of("align 8192 pre 1.62ms on 1.28ms post 1.61ms diff -338238").unwrap();
        let row = row.unwrap();
        assert_eq!(row.us[3], -338.238);
        assert!(row.mended.is_some());
    }

    #[test]
    fn digits_that_were_cut_off_come_back_to_their_power_of_ten() {
        let row = align_of("align 8192 pre 5ms on 2.01ms post 4ms diff -249123").unwrap();
        assert_eq!(row.unwrap().us[3], -2491.23);
    }

    #[test]
    fn a_difference_that_is_none_shows_mixed_units() {
        let error = align_of("align 8192 pre 1.3ms on 1.6ms post 1.5ms diff 202ms").unwrap_err();
        assert_eq!(error.problem, Problem::MixedUnits);
        assert!(error.to_string().contains("200.0 µs"), "{error}");
        let error = align_of("align 8192 pre 1.3ms on 1.6xs post 1.5ms diff 202µs").unwrap_err();
        assert_eq!(error.problem, Problem::MixedUnits);
    }

    #[test]
    fn impossible_times_are_absurd_and_a_negative_difference_is_not() {
        let error = align_of("align 8192 pre -1300ns on 1.6ms post 1.5ms diff 202µs").unwrap_err();
        assert_eq!(error.problem, Problem::Absurd);
        let error = align_of("align 8192 pre 0ns on 0ns post 0ns diff 0ns").unwrap_err();
        assert_eq!(error.problem, Problem::Absurd);
        assert!(
            align_of("align 8192 pre 70µs on 70µs post 90µs diff -9999ns")
                .unwrap()
                .is_some()
        );
    }

    #[test]
    fn every_cut_of_a_line_is_seen() {
        let whole = "align 4194304\tpre 1.32ms\ton 1.65ms\tpost 1.57ms\tdiff 202µs";
        for (end, _) in whole.char_indices().skip("align 4".len()) {
            let error = align(&line(&whole[..end], false)).unwrap_err();
            assert_eq!(error.problem, Problem::Truncated, "{}", &whole[..end]);
        }
        let whole = "128KiB  3.22M/s";
        for end in "128KiB".len()..whole.len() {
            let error = rates(&line(&whole[..end], false), true).unwrap_err();
            assert_eq!(error.problem, Problem::Truncated, "{}", &whole[..end]);
        }
    }

    #[test]
    fn rates_of_the_program_and_of_others() {
        let row = rates(&line("4MiB    2.58M/s  817K/s   0.15G/s  ", true), false);
        let row = row.unwrap().unwrap();
        assert_eq!(row.block, 4_194_304.0);
        assert_eq!(row.rates, [2.58e6, 817e3, 150e6]);
        for (text, problem) in [
            ("4MiB 3.8MB/s", Problem::MixedUnits),
            ("4MiB 3.8M/s 4.8MiB/s", Problem::MixedUnits),
            ("4MiB 0B/s", Problem::Absurd),
            ("4MiB 1e+15B/s", Problem::Absurd),
            ("4MiB 3.8M/s 401M/s", Problem::Absurd),
            ("4MiB 3.8M/s 4..8M/s", Problem::Malformed),
            ("4MiB 3.8M/s 4.8M", Problem::Malformed),
        ] {
            let error = rates(&line(text, true), false).unwrap_err();
            assert_eq!(error.problem, problem, "{text}");
            assert_eq!(error.line, Some(7));
        }
        for text in [
            "4MiB blocks",
            "482 MiB, 505413632 bytes",
            "4MiB 3 files",
            "4MiB",
        ] {
            assert_eq!(rates(&line(text, true), false), Ok(None), "{text}");
        }
    }
}
