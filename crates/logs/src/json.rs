//! The JSON form: `{NAME: {"al": …, "lin": …, "rnd": …, "fat": …}}`, several runs by name.
//! Values are checked while they are parsed, so that an error knows its line. The form has no
//! `--erasesize`: the largest block need not be it, where the head of a test is missing.

use crate::units::{TIME_MAX_NS, possible};
use crate::{Form, LogError, LogReading, LoggedIdentity, LoggedRun, Problem, Remark};
use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;
use whichfs_curves::{Align, Curves};

const ABSURD: &str = "absurd figure";
const DUPLICATE: &str = "duplicate key";
const CONTRADICTION: &str = "not diff = on - (pre + post) / 2";

/// How a remark on a run begins that has no curves.
pub const NO_CURVES: &str = "a run without curves";

/// Fields of a run that hold curves.
const FIELDS: [&str; 4] = ["al", "lin", "rnd", "fat"];

/// Writes `curves` as the JSON form with one name.
pub fn json_text(name: &str, curves: &Curves) -> String {
    let document = BTreeMap::from([(name, curves)]);
    // Keys are strings and numbers, and non-finite numbers become null: nothing can fail.
    let mut text = serde_json::to_string(&document).unwrap_or_default();
    text.push('\n');
    text
}

/// Reads the runs of `text`.
pub(super) fn read(text: &str) -> Result<LogReading, LogError> {
    let named: Unique<String, Card> = match serde_json::from_str(text) {
        Ok(named) => named,
        Err(error) => return Err(fault(text, &error)),
    };
    if named.0.keys().any(|name| FIELDS.contains(&name.as_str())) {
        return Err(LogError::new(Problem::Malformed, Some(1), text)
            .expected("a name around the curves: {NAME: {\"al\": …}}")
            .remedy("wrap the object into {\"card\": …}"));
    }
    let lines = (1, text.lines().count().max(1));
    let mut skipped = Vec::new();
    let mut mended = Vec::new();
    let mut runs = Vec::new();
    for (name, mut card) in named.0 {
        card.curves.prune();
        let remark = |why: String| Remark {
            lines,
            why,
            text: name.clone(),
        };
        let other = match card.other.as_slice() {
            [] => String::new(),
            fields => format!(
                "fields without a meaning or unit here: {}",
                fields.join(", ")
            ),
        };
        if card.curves.is_empty() {
            let more = if other.is_empty() { "" } else { "; " };
            skipped.push(remark(format!("{NO_CURVES}{more}{other}")));
            continue;
        }
        if !other.is_empty() {
            skipped.push(remark(other));
        }
        if card.restored > 0 {
            mended.push(remark(format!(
                "{} lines of the alignment test had a null, restored from the other figures",
                card.restored
            )));
        }
        let mut identity = card.identity;
        if let (Some(tested), Some(registers)) = (identity.capacity_bytes, card.csd_bytes)
            && tested != registers
        {
            mended.push(remark(format!(
                "CID left out: its CSD says {registers} bytes, the device tested has {tested}"
            )));
            identity = identity.without_registers();
        }
        identity.capacity_bytes = identity.capacity_bytes.or(card.csd_bytes);
        runs.push(LoggedRun {
            name,
            lines,
            card: identity,
            erase_bytes: None,
            curves: card.curves,
            rates: Vec::new(),
        });
    }
    Ok(LogReading {
        form: Form::Json,
        runs,
        skipped,
        mended,
    })
}

fn fault(text: &str, error: &serde_json::Error) -> LogError {
    let message = error.to_string();
    let line = error.line().max(1);
    let found = text.lines().nth(line - 1).unwrap_or("");
    // The form is often one long line: show the place in it.
    let column = error.column().saturating_sub(40);
    let near: String = found.chars().skip(column).take(60).collect();
    let (problem, remedy) = if error.is_eof() {
        (
            Problem::Truncated,
            "write the file again; its end is missing",
        )
    } else if message.starts_with(ABSURD) {
        (Problem::Absurd, "repeat the test, or delete the figure")
    } else if message.starts_with(CONTRADICTION) {
        (Problem::MixedUnits, "give all times in microseconds")
    } else if message.starts_with(DUPLICATE) || message.starts_with("duplicate field") {
        (Problem::Duplicate, "keep one of the two")
    } else {
        (Problem::Malformed, "restore the file")
    };
    LogError::new(problem, Some(line), &near)
        .expected(format!(
            "{{NAME: {{\"al\": {{BYTES: [[pre, on, post, diff]]}}, \"lin\": {{AUS: {{BYTES: \
             B/s}}}}, \"rnd\": …, \"fat\": {{BYTES: [[B/s]]}}}}}} ({message})"
        ))
        .remedy(remedy)
}

/// One run of the form.
#[derive(Default)]
struct Card {
    curves: Curves,
    identity: LoggedIdentity,
    csd_bytes: Option<u64>,
    /// Lines of the alignment test of which one figure was missing.
    restored: usize,
    other: Vec<String>,
}

impl<'de> Deserialize<'de> for Card {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Card, D::Error> {
        deserializer.deserialize_map(CardVisitor)
    }
}

struct CardVisitor;

impl<'de> Visitor<'de> for CardVisitor {
    type Value = Card;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object with al, lin, rnd, fat")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Card, A::Error> {
        let mut card = Card::default();
        let mut seen = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            if seen.contains(&key) {
                return Err(A::Error::custom(format!("{DUPLICATE} {key}")));
            }
            match key.as_str() {
                "al" => {
                    let lines: Unique<u64, Vec<Line>> = map.next_value()?;
                    let all = lines.0.values().flatten();
                    card.restored = all.filter(|line| line.restored).count();
                    card.curves.align = plain(lines);
                }
                "lin" => card.curves.linear = rates(map.next_value()?),
                "rnd" => card.curves.random = rates(map.next_value()?),
                "fat" => {
                    card.curves.fat = plain(map.next_value::<Unique<u64, Vec<Vec<Figure>>>>()?)
                }
                "size" => card.identity.capacity_bytes = map.next_value()?,
                "csdsize" => card.csd_bytes = map.next_value()?,
                "cid" => card.identity.cid = map.next_value()?,
                "man" => card.identity.manufacturer = map.next_value()?,
                "pn" => card.identity.product = map.next_value()?,
                "date" => card.identity.date = map.next_value()?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    card.other.push(key.clone());
                }
            }
            seen.push(key);
        }
        Ok(card)
    }
}

/// A value that is checked and then only a number.
trait Checked {
    type Plain;
    fn plain(self) -> Self::Plain;
}

/// A rate in bytes a second.
struct Figure(f64);

/// A line of the alignment test.
struct Line {
    us: Align,
    restored: bool,
}

impl Checked for Figure {
    type Plain = f64;
    fn plain(self) -> f64 {
        self.0
    }
}

impl Checked for Line {
    type Plain = Align;
    fn plain(self) -> Align {
        self.us
    }
}

impl<T: Checked> Checked for Vec<T> {
    type Plain = Vec<T::Plain>;
    fn plain(self) -> Self::Plain {
        self.into_iter().map(T::plain).collect()
    }
}

fn plain<K: Ord, V: Checked>(map: Unique<K, V>) -> BTreeMap<K, V::Plain> {
    let entries = map.0.into_iter();
    entries.map(|(key, value)| (key, value.plain())).collect()
}

fn rates(map: Unique<u32, Unique<u64, Figure>>) -> BTreeMap<u32, whichfs_curves::Rates> {
    let entries = map.0.into_iter();
    entries.map(|(aus, rates)| (aus, plain(rates))).collect()
}

impl<'de> Deserialize<'de> for Figure {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Figure, D::Error> {
        let rate = f64::deserialize(deserializer)?;
        match possible(rate, true) {
            Ok(()) => Ok(Figure(rate)),
            Err(expected) => Err(D::Error::custom(format!(
                "{ABSURD}: {rate} B/s instead of {expected}"
            ))),
        }
    }
}

impl<'de> Deserialize<'de> for Line {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Line, D::Error> {
        let (line, restored) = whole(Deserialize::deserialize(deserializer)?)
            .ok_or_else(|| D::Error::custom("two of the four times are missing"))?;
        let possible = |us: f64| us > 0.0 && us <= TIME_MAX_NS / 1e3;
        if !line[..3].iter().all(|&us| possible(us)) || !line[3].is_finite() {
            return Err(D::Error::custom(format!("{ABSURD}: times {line:?} in µs")));
        }
        let [pre, on, post, diff] = line;
        let slack = 0.006 * (on + (pre + post) / 2.0 + diff.abs()) + 0.1;
        if (on - (pre + post) / 2.0 - diff).abs() > slack {
            return Err(D::Error::custom(format!("{CONTRADICTION}: {line:?} in µs")));
        }
        Ok(Line { us: line, restored })
    }
}

/// The line, and whether a `null` in it, as converters leave for a figure whose unit
/// flashbench cut off, was restored: diff = on - (pre + post) / 2.
fn whole(times: [Option<f64>; 4]) -> Option<(Align, bool)> {
    let restored = match times {
        [Some(pre), Some(on), Some(post), Some(diff)] => {
            return Some(([pre, on, post, diff], false));
        }
        [None, Some(on), Some(post), Some(diff)] => [2.0 * (on - diff) - post, on, post, diff],
        [Some(pre), None, Some(post), Some(diff)] => [pre, diff + (pre + post) / 2.0, post, diff],
        [Some(pre), Some(on), None, Some(diff)] => [pre, on, 2.0 * (on - diff) - pre, diff],
        [Some(pre), Some(on), Some(post), None] => [pre, on, post, on - (pre + post) / 2.0],
        _ => return None,
    };
    Some((restored, true))
}

/// A map whose keys are numbers above 0 or names, each once.
struct Unique<K, V>(BTreeMap<K, V>);

impl<'de, K: FromStr + Ord + Default, V: Deserialize<'de>> Deserialize<'de> for Unique<K, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(UniqueVisitor(PhantomData))
    }
}

struct UniqueVisitor<K, V>(PhantomData<(K, V)>);

impl<'de, K: FromStr + Ord + Default, V: Deserialize<'de>> Visitor<'de> for UniqueVisitor<K, V> {
    type Value = Unique<K, V>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = BTreeMap::new();
        while let Some(text) = map.next_key::<String>()? {
            let key = K::from_str(&text).ok().filter(|key| *key != K::default());
            let Some(key) = key else {
                return Err(A::Error::custom(format!("{text:?} is no key here")));
            };
            if entries.insert(key, map.next_value()?).is_some() {
                return Err(A::Error::custom(format!("{DUPLICATE} {text}")));
            }
        }
        Ok(Unique(entries))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn problem(text: &str) -> Problem {
        read(text).unwrap_err().problem
    }

    #[test]
    fn runs_are_read_by_name() {
        let text = "{\"a\": {\"lin\": {\"1\": {\"4096\": 1e6}}, \"dd\": {\"x\": [1]},\n\
                    \"size\": 5},\n\
                    \"b\": {\"al\": {\"2048\": [[1, 2, 3, 0]]}}, \"c\": {\"dd\": {}}}";
        let reading = read(text).unwrap();
        let names: Vec<&str> = reading.runs.iter().map(|run| run.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(reading.runs[0].card.capacity_bytes, Some(5));
        assert_eq!(reading.runs[0].erase_bytes, None, "the form has none");
        let skipped: Vec<(&str, &str)> = reading
            .skipped
            .iter()
            .map(|remark| (remark.text.as_str(), remark.why.as_str()))
            .collect();
        let without = "fields without a meaning or unit here: dd";
        let no_run = format!("a run without curves; {without}");
        assert_eq!(skipped, [("a", without), ("c", no_run.as_str())]);
    }

    #[test]
    fn faults_know_their_line() {
        let error = read("{\"a\": {\n\"lin\": {\"1\":\n{\"4096\": 0}}}}").unwrap_err();
        assert_eq!((error.problem, error.line), (Problem::Absurd, Some(3)));
        for rate in ["1e15", "4.1e8"] {
            let text = format!("{{\"a\": {{\"lin\": {{\"1\": {{\"4096\": {rate}}}}}}}}}");
            let error = read(&text).unwrap_err();
            assert_eq!(error.problem, Problem::Absurd, "{rate}");
            assert!(error.to_string().contains("eMMC HS400"), "{error}");
        }
        assert_eq!(
            problem("{\"a\": {\"al\": {\"4096\": [[-1,1,1,0]]}}}"),
            Problem::Absurd
        );
        assert_eq!(
            problem("{\"a\": {\"lin\": {\"1\": {\"4096\""),
            Problem::Truncated
        );
        assert_eq!(problem("{\"a\": {}, \"a\": {}}"), Problem::Duplicate);
        assert_eq!(
            problem("{\"a\": {\"al\": {}, \"al\": {}}}"),
            Problem::Duplicate
        );
        let twice = "{\"a\": {\"lin\": {\"1\": {\"4096\": 1, \"4096\": 2}}}}";
        assert_eq!(problem(twice), Problem::Duplicate);
        assert_eq!(
            problem("{\"a\": {\"lin\": {\"0\": {}}}}"),
            Problem::Malformed
        );
        let mixed = "{\"a\": {\"al\": {\"4096\": [[1000, 1.2, 1000, 200]]}}}";
        assert_eq!(problem(mixed), Problem::MixedUnits);
        let nulls = "{\"a\": {\"al\": {\"4096\": [[null, 1.2, null, 200]]}}}";
        assert_eq!(problem(nulls), Problem::Malformed);
        assert_eq!(problem("{\"al\": {}}"), Problem::Malformed);
        assert_eq!(problem("{\"a\": 3}"), Problem::Malformed);
    }

    #[test]
    fn one_missing_figure_of_a_line_is_restored() {
        let reading = read("{\"a\": {\"al\": {\"4096\": [[1100, 1100, null, 54.5]]}}}").unwrap();
        let line = reading.runs[0].curves.align[&4096][0];
        assert_eq!(line, [1100.0, 1100.0, 991.0, 54.5]);
        assert_eq!(reading.mended.len(), 1);
    }

    #[test]
    fn what_is_written_is_read() {
        let mut curves = Curves::default();
        curves.linear.insert(3, [(4096, 123_456.5)].into());
        curves.align.insert(2048, vec![[1.0, 2.0, 3.5, -0.25]]);
        curves.fat.insert(4096, vec![vec![1e6, 2e6]]);
        let reading = read(&json_text("a \"card\"", &curves)).unwrap();
        assert_eq!(reading.runs[0].name, "a \"card\"");
        assert_eq!(reading.runs[0].curves, curves);
    }
}
