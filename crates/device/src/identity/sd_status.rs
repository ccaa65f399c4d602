//! The SD Status register (SSR): what an SD card says of its allocation units and speed.
//!
//! 512 bits, told by the kernel as hexadecimal digits in `ssr`, the highest first. Fields and
//! their codes: SD Specifications Part 1, Physical Layer Simplified Specification, 4.10.2. A code
//! that the specification reserves is told as a doubt, not as a value.

use serde::Serialize;
use whichfs_units::{KIB, MIB};

/// Bytes of the register.
const BYTES: usize = 64;

/// What the register says; `None` for a class that the card does not claim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct SdStatus {
    /// Speed class: 2, 4, 6 or 10 MB/s.
    pub speed_class: Option<u8>,
    /// UHS speed grade: 1 (10 MB/s) or 3 (30 MB/s).
    pub uhs_grade: Option<u8>,
    /// Video speed class: 6, 10, 30, 60 or 90 MB/s.
    pub video_class: Option<u8>,
    /// Application performance class: 1 (1500 reads, 500 writes a second) or 2 (4000, 2000).
    pub application_class: Option<u8>,
    /// Allocation unit in bytes.
    pub au_bytes: Option<u64>,
    /// Allocation unit in the UHS modes, in bytes.
    pub uhs_au_bytes: Option<u64>,
    /// It takes discards, and not only erases.
    pub discard: bool,
}

/// A minimum that a mark on the card promises.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MarkedMinimum {
    /// The mark: `C10`, `U3`, `V30`, `A1`.
    pub mark: String,
    /// Value of the probe that it is about: `write_mb_s`, `random_read_iops`, `random_write_iops`.
    pub value: &'static str,
    /// At least so much.
    pub least: f64,
}

impl SdStatus {
    /// Decodes the register as sysfs writes it, and says what in it cannot be.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn decode(text: &str) -> Result<(SdStatus, Vec<String>), String> {
        let register = bytes_of(text)?;
        let first = register[0];
        if register.iter().all(|byte| *byte == first) {
            return Err(format!("all of its bytes are {first:#04x}"));
        }
        let mut doubts = Vec::new();
        let mut known = |what: &str, code: u8, value: Option<u64>| {
            if code != 0 && value.is_none() {
                doubts.push(format!("{what}: {code:#x} is reserved"));
            }
            value
        };
        let au = register[10] >> 4;
        let uhs_au = register[14] & 15;
        let status = SdStatus {
            speed_class: known("speed class", register[8], speed_class(register[8])).map(small),
            uhs_grade: known("UHS grade", register[14] >> 4, grade(register[14] >> 4)).map(small),
            video_class: known("video class", register[15], video(register[15])).map(small),
            application_class: known(
                "application class",
                register[21] & 15,
                application(register[21] & 15),
            )
            .map(small),
            au_bytes: known("AU size", au, au_bytes(au)),
            uhs_au_bytes: known(
                "UHS AU size",
                uhs_au,
                au_bytes(uhs_au).filter(|_| uhs_au >= 7),
            ),
            discard: register[24] & 2 != 0,
        };
        Ok((status, doubts))
    }

    /// What its marks promise, each for a card in the state that the mark's test asks for: nearly
    /// empty and written in whole allocation units (classes), warm and within a part of the card
    /// (application classes).
    pub fn promises(&self) -> Vec<MarkedMinimum> {
        let write = |mark: String, least: u8| MarkedMinimum {
            mark,
            value: "write_mb_s",
            least: f64::from(least),
        };
        let mut promises = Vec::new();
        promises.extend(
            self.speed_class
                .map(|class| write(format!("C{class}"), class)),
        );
        promises.extend(
            self.uhs_grade
                .map(|grade| write(format!("U{grade}"), 10 * grade)),
        );
        promises.extend(
            self.video_class
                .map(|class| write(format!("V{class}"), class)),
        );
        if let Some(class) = self.application_class {
            let (reads, writes) = if class == 1 {
                (1500.0, 500.0)
            } else {
                (4000.0, 2000.0)
            };
            for (value, least) in [("random_read_iops", reads), ("random_write_iops", writes)] {
                let mark = format!("A{class}");
                promises.push(MarkedMinimum { mark, value, least });
            }
        }
        promises
    }
}

fn small(value: u64) -> u8 {
    value as u8
}

fn bytes_of(text: &str) -> Result<[u8; BYTES], String> {
    let text = text.trim();
    if !text.is_ascii() || text.len() != 2 * BYTES {
        return Err(format!("{} digits instead of {}", text.len(), 2 * BYTES));
    }
    let mut register = [0; BYTES];
    for (at, byte) in register.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16)
            .map_err(|_| "other letters than hexadecimal digits".to_owned())?;
    }
    Ok(register)
}

fn speed_class(code: u8) -> Option<u64> {
    [None, Some(2), Some(4), Some(6), Some(10)]
        .get(usize::from(code))
        .copied()
        .flatten()
}

fn grade(code: u8) -> Option<u64> {
    matches!(code, 1 | 3).then_some(u64::from(code))
}

fn video(code: u8) -> Option<u64> {
    [6, 10, 30, 60, 90]
        .contains(&code)
        .then_some(u64::from(code))
}

fn application(code: u8) -> Option<u64> {
    matches!(code, 1 | 2).then_some(u64::from(code))
}

/// Bytes of an allocation unit by its code; 0 is "not defined".
fn au_bytes(code: u8) -> Option<u64> {
    Some(match code {
        1..=9 => (16 * KIB) << (code - 1),
        10 => 8 * MIB,
        11 => 12 * MIB,
        12 => 16 * MIB,
        13 => 24 * MIB,
        14 => 32 * MIB,
        15 => 64 * MIB,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A register with these bytes at these places, as sysfs writes it.
    pub fn register(bytes: &[(usize, u8)]) -> String {
        let mut all = [0_u8; BYTES];
        for (at, byte) in bytes {
            all[*at] = *byte;
        }
        all.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn a_card_of_class_10_u3_v30_a1_is_told() {
        // 4 MiB AU and 32 MiB in UHS modes; discard.
        let text = register(&[(8, 4), (10, 0x90), (14, 0x3e), (15, 30), (21, 1), (24, 2)]);
        let (status, doubts) = SdStatus::decode(&text).unwrap();
        let right = SdStatus {
            speed_class: Some(10),
            uhs_grade: Some(3),
            video_class: Some(30),
            application_class: Some(1),
            au_bytes: Some(4 * MIB),
            uhs_au_bytes: Some(32 * MIB),
            discard: true,
        };
        assert_eq!((status.clone(), doubts), (right, vec![]));
        let told: Vec<(String, f64)> = (status.promises().into_iter())
            .map(|promise| (promise.mark, promise.least))
            .collect();
        let marks = ["C10", "U3", "V30", "A1", "A1"].map(str::to_owned);
        let right = marks.into_iter().zip([10.0, 30.0, 30.0, 1500.0, 500.0]);
        assert_eq!(told, right.collect::<Vec<_>>());
    }

    #[test]
    fn every_unit_of_the_specification_is_known() {
        let sizes = (0..16).map(|code| {
            let (status, _) = SdStatus::decode(&register(&[(0, 0x80), (10, code << 4)])).unwrap();
            status.au_bytes.map(|bytes| bytes / KIB)
        });
        let kib = [
            16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 12288, 16384, 24576, 32768, 65536,
        ];
        let right = [None].into_iter().chain(kib.map(Some));
        assert!(sizes.eq(right));
    }

    #[test]
    fn reserved_codes_are_doubts_and_no_values() {
        let text = register(&[(8, 9), (14, 0x23), (15, 7), (21, 5)]);
        let (status, doubts) = SdStatus::decode(&text).unwrap();
        assert_eq!(status, SdStatus::default());
        assert_eq!(doubts.len(), 5, "{doubts:?}");
    }

    #[test]
    fn what_is_no_register_is_refused() {
        for text in [
            "",
            "00",
            &"g".repeat(128),
            &"ff".repeat(64),
            &"00".repeat(64),
        ] {
            assert!(SdStatus::decode(text).is_err(), "{text}");
        }
    }
}
