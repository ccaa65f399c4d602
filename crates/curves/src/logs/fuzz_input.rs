//! What the fuzz targets and their test do with one input: every reader takes it or refuses
//! it with a reason; a panic is a bug, and so is a reading that breaks its own promises.

use super::{Options, Problem, Reading, align_text, flashbench_text, json_text, read, read_with};
use crate::Curves;

/// The readers, by the first byte of an input modulo [`READERS`].
pub const READERS: u8 = 5;

/// Reads `data` with the reader that `reader` chooses; the number of measurements found.
///
/// # Panics
/// When a reader breaks a promise.
pub fn one(reader: u8, data: &[u8]) -> u64 {
    let name = "fuzz.log";
    let options = Options {
        open_aus: Some(3),
        random: reader.is_multiple_of(2),
        dd: Some(super::Operation::Read),
        run: None,
    };
    let text = super::text::decode(data);
    let result = match reader % READERS {
        0 => super::session::read(name, &text, &options),
        1 => match super::fio::document(&text) {
            Some(at) => super::fio::read(name, &text, at),
            None => return 0,
        },
        2 => super::json::read(&text),
        3 => super::csv::read(name, &text),
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
fn checked(reading: &Reading) -> u64 {
    let mut found = 0;
    for run in &reading.runs {
        assert!(run.lines.0 >= 1 && run.lines.0 <= run.lines.1);
        let curves = &run.curves;
        let rates = curves.linear.values().chain(curves.random.values());
        let rates = rates.flat_map(|rates| rates.values());
        let rates = rates.chain(curves.fat.values().flatten().flatten());
        for &rate in rates.chain(run.rates.iter().map(|rate| &rate.bytes_per_s)) {
            assert!(rate > 0.0 && rate <= super::units::RATE_MAX, "{rate}");
            found += 1;
        }
        for line in curves.align.values().flatten() {
            assert!(line[..3].iter().all(|&us| us > 0.0) && line[3].is_finite());
            found += 1;
        }
        again(curves);
    }
    found
}

/// The JSON form gives the curves back as they are; flashbench's form gives as many points.
fn again(curves: &Curves) {
    if *curves == Curves::default() {
        return;
    }
    let json = read("again.json", json_text("card", curves));
    assert_eq!(json.map(|runs| runs[0].curves.clone()), Ok(curves.clone()));
    // Figures of the JSON form may be finer than flashbench prints or contradict each other.
    if let Err(error) = read("again.txt", flashbench_text(curves)) {
        let expected = [Problem::Absurd, Problem::MixedUnits, Problem::Malformed];
        assert!(
            expected.contains(&error.problem) || align_text(curves).is_empty(),
            "{error}"
        );
    }
}
