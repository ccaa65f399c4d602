//! What a probe found: each value with its confidence and evidence, or nothing and why.

use crate::evidence::ProbeEvidence;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// From this confidence on a value may be taken for granted.
pub const CONFIDENT: f64 = 0.9;

/// What a probe looks for, in the order in which it is told.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    schemars::JsonSchema,
    Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Flash page: the least that is read or programmed at once, in bytes.
    PageBytes,
    /// What several planes handle together, in bytes: read, or programmed where reads do not tell.
    WriteUnitBytes,
    /// Allocation unit or erase block, in bytes.
    AuBytes,
    /// Zone of the map above the AU, in bytes.
    ZoneBytes,
    /// AUs that can be written in order in turns without copying.
    OpenAusLinear,
    /// AUs that can be written in random order in turns without copying.
    OpenAusRandom,
    /// AUs near the beginning of the card with another mapping.
    FatAus,
    /// The first of them, counted from zero.
    FatFirstAu,
    /// Writes below this many bytes do not open an AU; zero where all do.
    SmallWriteBytes,
    /// Time of a write when one more AU is in use than can be open, in microseconds.
    OverflowUs,
    /// Smallest size at which reading in order is at full rate, in bytes: nearly the rate of the
    /// middle one of the three largest sizes.
    BestReadBytes,
    /// Smallest size at which writing in order is at full rate, in bytes, of a stream that goes on:
    /// what closing AUs costs that were open before is paid once, by whatever is written next.
    BestWriteBytes,
    /// Rate of reading in order at the best size, in millions of bytes a second.
    ReadMbS,
    /// Rate of writing in order at the best size, in millions of bytes a second, of a stream that
    /// goes on: behind a pSLC cache where the stream came to the end of one.
    WriteMbS,
    /// Bytes that a stream writes before it slows down for good: a pSLC cache. At least what was
    /// written where it did not.
    SlcBytes,
    /// Rate of writing in order into that cache, in millions of bytes a second.
    SlcWriteMbS,
    /// 4 KiB reads a second at random places.
    #[serde(rename = "random_read_iops")]
    RandomRead4k,
    /// 16 KiB reads a second at random places.
    #[serde(rename = "random_read_16k_iops")]
    RandomRead16k,
    /// 64 KiB reads a second at random places.
    #[serde(rename = "random_read_64k_iops")]
    RandomRead64k,
    /// Median time of a 4 KiB read at a random place, in microseconds.
    ReadLatencyUs,
    /// Time that 99 of 100 such reads do not exceed, in microseconds.
    #[serde(rename = "read_latency_p99_us")]
    ReadLatency99Us,
    /// 4 KiB writes a second at random places of the whole card.
    #[serde(rename = "random_write_iops")]
    RandomWrite4k,
    /// 16 KiB writes a second at random places of the whole card.
    #[serde(rename = "random_write_16k_iops")]
    RandomWrite16k,
    /// 64 KiB writes a second at random places of the whole card.
    #[serde(rename = "random_write_64k_iops")]
    RandomWrite64k,
    /// Median time of a 4 KiB write at a random place that is made durable, in microseconds.
    WriteLatencyUs,
    /// Time that 99 of 100 such writes do not exceed, in microseconds.
    #[serde(rename = "write_latency_p99_us")]
    WriteLatency99Us,
    /// Time of a flush after one 4 KiB write, in microseconds.
    FlushUs,
    /// Bytes that are taken in faster than they can be programmed.
    CacheBytes,
    /// Time to discard an AU (4 MiB where the AU is not known), in microseconds.
    DiscardUs,
    /// How many times faster first writes into discarded AUs are than into used ones.
    DiscardSpeedup,
}

impl Quantity {
    /// All, in order.
    pub const ALL: [Quantity; 30] = {
        use Quantity::*;
        [
            PageBytes,
            WriteUnitBytes,
            AuBytes,
            ZoneBytes,
            OpenAusLinear,
            OpenAusRandom,
            FatAus,
            FatFirstAu,
            SmallWriteBytes,
            OverflowUs,
            BestReadBytes,
            BestWriteBytes,
            ReadMbS,
            WriteMbS,
            SlcBytes,
            SlcWriteMbS,
            RandomRead4k,
            RandomRead16k,
            RandomRead64k,
            ReadLatencyUs,
            ReadLatency99Us,
            RandomWrite4k,
            RandomWrite16k,
            RandomWrite64k,
            WriteLatencyUs,
            WriteLatency99Us,
            FlushUs,
            CacheBytes,
            DiscardUs,
            DiscardSpeedup,
        ]
    };

    /// Its name in JSON, which ends with the unit.
    pub fn name(self) -> String {
        match serde_json::to_value(self) {
            Ok(serde_json::Value::String(name)) => name,
            _ => unreachable!("a unit variant is a string"),
        }
    }
}

/// A value, whole where it counts something.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// Bytes or a count.
    Whole(u64),
    /// A time or a rate.
    Real(f64),
}

impl Value {
    /// As a real number.
    pub fn real(self) -> f64 {
        match self {
            Value::Whole(whole) => whole as f64,
            Value::Real(real) => real,
        }
    }

    /// As a whole number, rounded.
    pub fn whole(self) -> u64 {
        match self {
            Value::Whole(whole) => whole,
            Value::Real(real) => real.round() as u64,
        }
    }
}

/// One value with its evidence, or the reason why there is none.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct Finding {
    /// The value; `null` where the data do not tell.
    pub value: Option<Value>,
    /// The truth is this or more: the test saw no limit up to here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
    /// Probability that the value is right, 0 to 1; zero where there is none.
    pub confidence: f64,
    /// What was seen.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub evidence: String,
    /// Why there is no value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Finding {
    /// What a test found, with its evidence; `confidence` is rounded to 0.001.
    pub(crate) fn of(value: Value, confidence: f64, evidence: impl Into<String>) -> Finding {
        Finding {
            value: Some(value),
            at_least: false,
            confidence: (confidence.clamp(0.0, 1.0) * 1e3).round() / 1e3,
            evidence: evidence.into(),
            reason: None,
        }
    }

    /// A value that is a bound from below.
    pub(crate) fn at_least(value: u64, confidence: f64, evidence: impl Into<String>) -> Finding {
        Finding {
            at_least: true,
            ..Finding::of(Value::Whole(value), confidence, evidence)
        }
    }

    /// No value.
    pub(crate) fn none(reason: impl Into<String>) -> Finding {
        Finding {
            value: None,
            at_least: false,
            confidence: 0.0,
            evidence: String::new(),
            reason: Some(reason.into()),
        }
    }

    /// Whether the value may be taken for granted.
    pub fn confident(&self) -> bool {
        self.value.is_some() && self.confidence >= CONFIDENT
    }
}

/// A card that became slower or faster while it was probed.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct CardDrift {
    /// `read` or `write`.
    pub what: String,
    /// Time of the same request at the end over that at the beginning.
    pub slowdown: f64,
    /// What was seen.
    pub evidence: String,
}

/// All that a probe found.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct Findings {
    /// Every quantity, found or not.
    #[serde(flatten)]
    pub values: BTreeMap<Quantity, Finding>,
    /// Bytes written in all.
    pub bytes_written: u64,
    /// Bytes read in all.
    pub bytes_read: u64,
    /// Time on the device in seconds, idle time included.
    pub device_s: f64,
    /// Whether each stage that was asked for has a result, or a reason in the card why it cannot
    /// have one; not if requests failed or the probe ended early.
    pub complete: bool,
    /// Why the probe ended early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// Whether the card changed its speed meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drift: Vec<CardDrift>,
    /// Failed and stalled requests, and what else is worth knowing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What was measured.
    pub measured: ProbeEvidence,
}

/// What findings from a file say of a quantity that is not in them.
static UNTOLD: Finding = Finding {
    value: None,
    at_least: false,
    confidence: 0.0,
    evidence: String::new(),
    reason: None,
};

/// Confidence of sizes of a card below a filesystem.
const BELOW_A_FILESYSTEM: f64 = 0.6;

impl Findings {
    /// The same of a file: its extents may lie anywhere on the card, so sizes are not sure, and
    /// boundaries may be those of the extents.
    #[must_use]
    pub fn of_a_file(mut self) -> Findings {
        use Quantity::{AuBytes, FatAus, FatFirstAu, PageBytes, WriteUnitBytes, ZoneBytes};
        for size in [
            AuBytes,
            FatAus,
            FatFirstAu,
            PageBytes,
            WriteUnitBytes,
            ZoneBytes,
        ] {
            if let Some(finding) = self.values.get_mut(&size) {
                finding.confidence = finding.confidence.min(BELOW_A_FILESYSTEM);
            }
        }
        let note = "a file on a filesystem: sizes may be those of its extents, not the card's; \
                    probe the device to be sure";
        self.notes.push(note.to_owned());
        self
    }

    /// The same of what is no card, for the reason `why`: nothing is sure.
    #[must_use]
    pub fn of_no_card(mut self, why: &str) -> Findings {
        for finding in self.values.values_mut() {
            finding.confidence = 0.0;
        }
        self.notes.push(format!("nothing is sure: {why}"));
        self
    }

    /// What was found of `quantity`: nothing, without a reason, of one that findings from a file
    /// do not have.
    pub fn get(&self, quantity: Quantity) -> &Finding {
        self.values.get(&quantity).unwrap_or(&UNTOLD)
    }

    /// The value of `quantity` if there is one.
    pub fn value(&self, quantity: Quantity) -> Option<Value> {
        self.get(quantity).value
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn names_are_those_of_the_contract() {
        let names: Vec<String> = Quantity::ALL.iter().map(|q| q.name()).collect();
        for name in [
            "page_bytes",
            "au_bytes",
            "open_aus_linear",
            "open_aus_random",
            "fat_aus",
            "best_write_bytes",
            "best_read_bytes",
            "read_mb_s",
            "write_mb_s",
            "random_read_iops",
        ] {
            assert!(names.iter().any(|n| n == name), "{name}");
        }
        let mut sorted = Quantity::ALL;
        sorted.sort();
        assert_eq!(sorted, Quantity::ALL);
    }

    #[test]
    fn findings_from_a_file_may_lack_a_quantity() {
        let whole = crate::infer(&ProbeEvidence::default());
        let mut json = serde_json::to_value(&whole).unwrap();
        json.as_object_mut().unwrap().remove("au_bytes").unwrap();
        let read: Findings = serde_json::from_value(json).unwrap();
        for quantity in Quantity::ALL {
            assert_eq!(read.value(quantity), None);
        }
        assert!(read.to_profile().is_err());
    }

    #[test]
    fn sizes_of_a_file_are_not_sure_and_its_rates_are() {
        let mut found = crate::interpret(&whichfs_curves::Curves::default());
        for quantity in [Quantity::AuBytes, Quantity::ReadMbS] {
            let sure = Finding::of(Value::Whole(8 << 20), 0.97, "a step");
            found.values.insert(quantity, sure);
        }
        let below = found.of_a_file();
        assert!(!below.get(Quantity::AuBytes).confident());
        assert!(below.get(Quantity::ReadMbS).confident());
        let cached = below.clone().of_no_card("the page cache answers");
        assert!(
            Quantity::ALL
                .iter()
                .all(|quantity| cached.get(*quantity).confidence == 0.0)
        );
        assert!(
            cached
                .notes
                .iter()
                .any(|note| note.contains("the page cache answers"))
        );
        assert!(below.notes.iter().any(|note| note.contains("extents")));
    }

    #[test]
    fn null_has_a_reason_and_a_value_has_evidence() {
        let none = serde_json::to_value(Finding::none("nothing to see")).unwrap();
        assert_eq!(none["value"], serde_json::Value::Null);
        assert_eq!(none["reason"], "nothing to see");
        let some = Finding::of(Value::Whole(4096), 0.9876, "a step");
        let json = serde_json::to_value(&some).unwrap();
        assert_eq!(json["value"], 4096);
        assert_eq!(json["confidence"], 0.988);
        assert_eq!(serde_json::from_value::<Finding>(json).unwrap(), some);
    }
}
