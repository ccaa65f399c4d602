//! What the fuzz targets and their test do with one input: every reader takes it or refuses
//! it with a reason; a panic is a bug, and so is a reading that breaks its own promises.

use crate::{Form, LogOptions, LogReading, Problem, flashbench_text, json_text, read, read_with};
use whichfs_curves::Curves;

/// The readers, by the first byte of an input modulo [`READERS`].
pub const READERS: u8 = 5;

/// Reads `data` with the reader that `reader` chooses; the number of measurements found.
///
/// # Panics
/// When a reader breaks a promise.
pub fn one(reader: u8, data: &[u8]) -> u64 {
    let name = "fuzz.log";
    let options = LogOptions::default();
    let text = crate::text::decode(data);
    let result = match reader % READERS {
        0 => crate::session::read(name, &text, &options),
        1 => match crate::fio::document(&text) {
            Some(at) => crate::fio::read(name, &text, at),
            None => return 0,
        },
        2 => crate::json::read(&text),
        3 => crate::csv::read(name, &text),
        _ => read_with(name, data, &options),
    };
    match result {
        Ok(reading) => checked(&reading),
        Err(error) => {
            let lines = text.split(['\n', '\r']).count();
            assert!(
                error.line.is_none_or(|line| (1..=lines).contains(&line)),
                "{error}"
            );
            assert!(
                !error.expected.is_empty() && !error.remedy.is_empty(),
                "{error:?}"
            );
            0
        }
    }
}

/// Checks what every reading promises.
fn checked(reading: &LogReading) -> u64 {
    let mut found = 0;
    for run in &reading.runs {
        assert!(run.lines.0 >= 1 && run.lines.0 <= run.lines.1);
        let curves = &run.curves;
        let rates = curves.linear.values().chain(curves.random.values());
        let rates = rates.flat_map(|rates| rates.values());
        let rates = rates.chain(curves.fat.values().flatten().flatten());
        let of_curves = rates.map(|&rate| (rate, true));
        let of_programs = run.rates.iter().map(|rate| {
            let over_bus = rate.direct && rate.operation != crate::Operation::Discard;
            (rate.bytes_per_s, over_bus)
        });
        for (rate, direct) in of_curves.chain(of_programs) {
            assert_eq!(crate::units::possible(rate, direct), Ok(()), "{rate}");
            found += 1;
        }
        for line in curves.align.values().flatten() {
            assert!(line[..3].iter().all(|&us| us > 0.0) && line[3].is_finite());
            found += 1;
        }
        again(reading.form, curves);
    }
    found
}

/// The JSON form gives the curves back as they are; flashbench's form gives as many points.
fn again(form: Form, curves: &Curves) {
    if *curves == Curves::default() {
        return;
    }
    let json = read("again.json", json_text("card", curves));
    assert_eq!(json.map(|runs| runs[0].curves.clone()), Ok(curves.clone()));
    if form != Form::Session {
        // Figures may be finer than flashbench prints.
        let _ = read("again.txt", flashbench_text(curves));
        return;
    }
    match read("again.txt", flashbench_text(curves)) {
        Ok(runs) => assert_eq!(shape(&runs[0].curves), shape(curves)),
        // Odd block sizes may become one in three digits.
        Err(error) => assert_eq!(error.problem, Problem::Duplicate, "{error}"),
    }
}

/// How many figures there are of each kind.
fn shape(curves: &Curves) -> [usize; 4] {
    [
        curves.align.values().map(Vec::len).sum(),
        curves.linear.values().map(|rates| rates.len()).sum(),
        curves.random.values().map(|rates| rates.len()).sum(),
        curves.fat.values().map(Vec::len).sum(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use whichfs_units::Rng;

    /// A log of each reader; the last reader tells the form itself.
    const LOGS: [(u8, &str); 7] = [
        (0, include_str!("../tests/logs/script.txt")),
        (0, include_str!("../tests/logs/shell.txt")),
        (0, include_str!("../tests/logs/iozone.txt")),
        (0, include_str!("../tests/logs/programs.txt")),
        (1, include_str!("../tests/logs/fio.json")),
        (2, include_str!("../tests/logs/curves.json")),
        (3, include_str!("../tests/logs/align.csv")),
    ];

    /// What a tired hand, a broken disk or a clever foe puts into a log.
    const PIECES: [&str; 24] = [
        "0",
        "9",
        "-",
        "e+",
        "1e999",
        ".",
        "\n",
        "\r",
        "\t",
        "/",
        "µ",
        "\u{b5}s",
        "\u{1b}[2K",
        "^C",
        "B/s",
        "KiB",
        "ms",
        "null",
        "{",
        "]",
        ",",
        "AU=0, random",
        "18446744073709551616",
        "$((",
    ];

    fn mutated(rng: &mut Rng, log: &str) -> Vec<u8> {
        let mut data = log.as_bytes().to_vec();
        if log.len() > 600 && !log.contains('{') && rng.ratio(7, 8) {
            // A window of some lines: most of a long log only costs time.
            let from = rng.below(data.len() as u64) as usize;
            let to = (from + 400).min(data.len());
            data = data[from..to].to_vec();
        }
        for _ in 0..rng.below(4) {
            let at = rng.below(data.len() as u64 + 1) as usize;
            match rng.below(4) {
                0 => data.truncate(at.max(1)),
                1 => {
                    let piece = PIECES[rng.below(PIECES.len() as u64) as usize];
                    data.splice(at..at, piece.bytes());
                }
                2 => {
                    let end = (at + rng.below(40) as usize).min(data.len());
                    data.drain(at..end);
                }
                _ => {
                    let at = at.min(data.len().saturating_sub(1));
                    if let Some(byte) = data.get_mut(at) {
                        *byte = rng.below(256) as u8;
                    }
                }
            }
        }
        data
    }

    /// What the fuzz targets have found worth keeping (`fuzz/run`), by the reader of each.
    const KEPT: [(u8, &str); 5] = [
        (0, include_str!("../../../fuzz/corpus/log_session.hex")),
        (1, include_str!("../../../fuzz/corpus/log_fio.hex")),
        (2, include_str!("../../../fuzz/corpus/log_json.hex")),
        (3, include_str!("../../../fuzz/corpus/log_csv.hex")),
        (4, include_str!("../../../fuzz/corpus/log_any.hex")),
    ];

    #[test]
    fn attack_kept_inputs_are_read_or_refused() {
        let byte = |pair: &[u8]| {
            let digits = pair.iter().map(|digit| (*digit as char).to_digit(16));
            digits.fold(0, |value, digit| value * 16 + digit.expect("hex") as u8)
        };
        for (reader, kept) in KEPT {
            for line in kept.lines() {
                let input: Vec<u8> = line.as_bytes().chunks(2).map(byte).collect();
                let _found = one(reader, &input);
            }
            assert!(kept.lines().count() > 50, "the corpus is gone");
        }
    }

    #[test]
    fn a_hundred_thousand_inputs_are_read_or_refused() {
        let mut rng = Rng::named(3, "log inputs");
        let mut found = [0_u64; READERS as usize];
        for case in 0..100_000_u64 {
            let (reader, log) = LOGS[(case % 7) as usize];
            let data = if case % 20 == 19 {
                let mut noise = vec![0; rng.below(300) as usize];
                rng.fill(&mut noise);
                noise
            } else {
                mutated(&mut rng, log)
            };
            let reader = if rng.ratio(1, 4) { READERS - 1 } else { reader };
            found[usize::from(reader)] += u64::from(one(reader, &data) > 0);
        }
        // Inputs that are all refused would prove little.
        assert!(found.iter().all(|&n| n > 500), "read: {found:?}");
    }

    #[test]
    fn a_reading_that_breaks_its_promise_is_caught() {
        let mut reading = crate::read_with("x", LOGS[0].1, &LogOptions::default());
        if let Ok(reading) = &mut reading {
            reading.runs[0]
                .curves
                .linear
                .entry(1)
                .or_default()
                .insert(4096, -1.0);
        }
        let broken = reading.map(|reading| std::panic::catch_unwind(|| checked(&reading)).is_err());
        assert_eq!(broken, Ok(true));
    }
}
