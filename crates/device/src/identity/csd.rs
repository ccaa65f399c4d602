//! The Card-Specific Data register (CSD): capacity and write protection as the card states them.
//!
//! 128 bits, told by the kernel as hexadecimal digits in `csd`, the highest first. Fields of SD
//! cards: SD Specifications Part 1, Physical Layer Simplified Specification, 5.3; of eMMC: JEDEC
//! JESD84-B51, 7.3.

use serde::Serialize;
use whichfs_units::KIB;

/// Hexadecimal digits of the register.
const DIGITS: usize = 32;
/// `C_SIZE` of an eMMC whose capacity only EXT_CSD has.
const IN_EXT_CSD: u128 = 0xfff;

/// What the register says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Csd {
    /// All of it, in hexadecimal digits.
    pub csd: String,
    /// Capacity in bytes; none of an eMMC larger than 2 GB, which has it elsewhere.
    pub bytes: Option<u64>,
    /// Write-protected for good (`PERM_WRITE_PROTECT`).
    pub locked_for_good: bool,
    /// Write-protected until that is taken back (`TMP_WRITE_PROTECT`).
    pub locked: bool,
}

impl Csd {
    /// Decodes the register as sysfs writes it, of an SD card or else of an eMMC; `bytes` is the
    /// size that the kernel has, and the second value what cannot be.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn decode(text: &str, sd: bool, bytes: u64) -> Result<(Csd, Vec<String>), String> {
        let text = text.trim();
        if text.len() != DIGITS {
            return Err(format!("{} digits instead of {DIGITS}", text.len()));
        }
        let register = u128::from_str_radix(text, 16)
            .map_err(|_| "other letters than hexadecimal digits".to_owned())?;
        if register == 0 || register == u128::MAX {
            return Err(format!("all of its digits are {}", &text[..1]));
        }
        let field = |from: u32, wide: u32| (register >> from) & ((1 << wide) - 1);
        // Of SD cards up to 2 GB, and of eMMC.
        let small = || {
            let blocks = (field(62, 12) + 1) << (field(47, 3) + 2);
            blocks << field(80, 4)
        };
        let mut doubts = Vec::new();
        let found = match (sd, field(126, 2)) {
            (true, 0) => Some(small()),
            (true, 1) => Some((field(48, 22) + 1) * u128::from(512 * KIB)),
            (true, 2) => Some((field(48, 28) + 1) * u128::from(512 * KIB)),
            (true, version) => {
                doubts.push(format!("CSD register: version {version} is reserved"));
                None
            }
            (false, _) if field(62, 12) == IN_EXT_CSD => None,
            (false, _) => Some(small()),
        };
        let found = found.and_then(|found| u64::try_from(found).ok());
        if let Some(found) = found.filter(|found| bytes > 0 && *found != bytes) {
            doubts.push(format!(
                "CSD register: it has {found} bytes there, and the kernel takes it for {bytes}"
            ));
        }
        let csd = Csd {
            csd: text.to_owned(),
            bytes: found,
            locked_for_good: field(13, 1) == 1,
            locked: field(12, 1) == 1,
        };
        Ok((csd, doubts))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A register whose fields, by their lowest bit, have these values.
    fn register(fields: &[(u32, u128)]) -> String {
        let all = fields.iter().map(|(from, value)| value << from);
        format!("{:032x}", all.fold(1, |sum, field| sum | field))
    }

    #[test]
    fn the_capacity_is_that_of_the_version() {
        // A card of 32 GB: C_SIZE of 60,871 is (60,871 + 1) units of 512 KiB.
        let large = register(&[(126, 1), (48, 60_871)]);
        let (csd, doubts) = Csd::decode(&large, true, 60_872 << 19).unwrap();
        assert_eq!((csd.bytes, doubts.len()), (Some(60_872 << 19), 0));
        assert!(!csd.locked && !csd.locked_for_good);
        // One of 1 GB: 3,874 + 1 times 512 blocks of 512 bytes.
        let small = register(&[(80, 9), (62, 3_874), (47, 7)]);
        let bytes = 3_875 * 512 * 512;
        for sd in [true, false] {
            let (csd, doubts) = Csd::decode(&small, sd, bytes).unwrap();
            assert_eq!((csd.bytes, doubts.len()), (Some(bytes), 0));
        }
        // 4 TB.
        let uc = register(&[(126, 2), (48, (1 << 23) - 1)]);
        let (csd, _) = Csd::decode(&uc, true, 4 << 40).unwrap();
        assert_eq!(csd.bytes, Some(4 << 40));
        let emmc = register(&[(126, 3), (80, 9), (62, 0xfff), (47, 7)]);
        let (csd, doubts) = Csd::decode(&emmc, false, 8 << 30).unwrap();
        assert_eq!((csd.bytes, doubts.len()), (None, 0));
    }

    #[test]
    fn locks_are_told_and_what_cannot_be_is_doubted() {
        let locked = register(&[(126, 1), (48, 60_871), (12, 1), (13, 1)]);
        let (csd, doubts) = Csd::decode(&locked, true, 1 << 30).unwrap();
        assert!(csd.locked && csd.locked_for_good);
        assert!(doubts[0].contains("the kernel takes it for 1073741824"));
        let (csd, doubts) = Csd::decode(&register(&[(126, 3)]), true, 0).unwrap();
        assert_eq!((csd.bytes, doubts.len()), (None, 1));
        for text in ["", "00", &"f".repeat(32), &"0".repeat(32), &"g".repeat(32)] {
            assert!(Csd::decode(text, true, 0).is_err(), "{text}");
        }
    }
}
