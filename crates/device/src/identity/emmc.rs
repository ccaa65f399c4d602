//! What an eMMC says of its wear and abilities, as the kernel tells it in sysfs, and what only its
//! EXT_CSD register has (debugfs, root): the size of its cache.
//!
//! Meanings: JEDEC JESD84-B51, 7.4; names of the attributes: Linux, `drivers/mmc/core/mmc.c`.

use serde::Serialize;

/// Bytes of the EXT_CSD register.
const EXT_CSD_BYTES: usize = 512;
/// Where `CACHE_SIZE` is in it; the kernel takes its unit for KiB (`include/linux/mmc/card.h`).
const CACHE_SIZE_AT: usize = 249;

/// How much of the reserved blocks is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PreEol {
    /// Less than 80 % used.
    Normal,
    /// At least 80 % used.
    Warning,
    /// At least 90 % used.
    Urgent,
}

/// Share of the life of one kind of cells that is used, in per cent: at least and at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Used {
    /// At least.
    pub least: u8,
    /// At most; none if its estimated life is exceeded.
    pub most: Option<u8>,
}

/// What an eMMC says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Emmc {
    /// Standard that it follows: `5.1`.
    pub standard: Option<&'static str>,
    /// Wear of its cells of type A (those with one bit, where it has both).
    pub used_a: Option<Used>,
    /// Wear of its cells of type B.
    pub used_b: Option<Used>,
    /// How much of its spare blocks is used up (`pre_eol_info`).
    pub reserve: Option<PreEol>,
    /// Sectors that it writes whole or not at all.
    pub reliable_write_sectors: Option<u64>,
    /// It has its command queue switched on.
    pub queue: bool,
    /// Volatile cache in KiB, where debugfs tells.
    pub cache_kib: Option<u64>,
}

impl Emmc {
    /// What the attributes tell, and what in them cannot be. `attribute` gives the text of one.
    pub fn of(attribute: &dyn Fn(&str) -> Option<String>) -> (Emmc, Vec<String>) {
        let mut doubts = Vec::new();
        let number = |name: &str| {
            let text = attribute(name)?;
            number(&text)
        };
        let life = attribute("life_time").unwrap_or_default();
        let mut used = life.split_whitespace().map(|word| {
            let code = number_of(word);
            match used(code) {
                Ok(used) => used,
                Err(()) => {
                    doubts.push(format!("life_time: {word} is reserved"));
                    None
                }
            }
        });
        let (used_a, used_b) = (used.next().flatten(), used.next().flatten());
        drop(used);
        let reserve = match number("pre_eol_info") {
            None | Some(0) => None,
            Some(1) => Some(PreEol::Normal),
            Some(2) => Some(PreEol::Warning),
            Some(3) => Some(PreEol::Urgent),
            Some(code) => {
                doubts.push(format!("pre_eol_info: {code:#04x} is reserved"));
                None
            }
        };
        let emmc = Emmc {
            standard: number("rev").and_then(standard),
            used_a,
            used_b,
            reserve,
            reliable_write_sectors: number("rel_sectors").filter(|sectors| *sectors > 0),
            queue: number("cmdq_en") == Some(1),
            cache_kib: None,
        };
        (emmc, doubts)
    }

    /// The more worn of its kinds of cells.
    pub fn used(&self) -> Option<Used> {
        let both = [self.used_a, self.used_b].into_iter().flatten();
        both.max_by_key(|used| used.least)
    }
}

/// The size of the cache in KiB that an EXT_CSD register, as debugfs writes it, tells.
pub fn cache_kib(ext_csd: &str) -> Option<u64> {
    let text = ext_csd.trim();
    if text.len() != 2 * EXT_CSD_BYTES || !text.is_ascii() {
        return None;
    }
    let byte = |at: usize| u64::from_str_radix(&text[2 * at..2 * at + 2], 16).ok();
    (0..4).try_fold(0, |sum, place| {
        Some(sum | byte(CACHE_SIZE_AT + place)? << (8 * place))
    })
}

/// A number as the kernel writes it: decimal, or hexadecimal with `0x`.
pub fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// A number that is not one counts as reserved.
fn number_of(text: &str) -> u64 {
    number(text).unwrap_or(u64::MAX)
}

/// `DEVICE_LIFE_TIME_EST_TYP_*`: steps of 10 %; 0 is "not defined", 0x0b "exceeded".
fn used(code: u64) -> Result<Option<Used>, ()> {
    match code {
        0 => Ok(None),
        1..=10 => Ok(Some(Used {
            least: (code as u8 - 1) * 10,
            most: Some(code as u8 * 10),
        })),
        11 => Ok(Some(Used {
            least: 100,
            most: None,
        })),
        _ => Err(()),
    }
}

/// `EXT_CSD_REV`.
fn standard(code: u64) -> Option<&'static str> {
    Some(match code {
        5 => "4.41",
        6 => "4.5",
        7 => "5.0",
        8 => "5.1",
        9 => "5.1A",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(attributes: &[(&str, &str)]) -> (Emmc, Vec<String>) {
        Emmc::of(&|name| {
            let found = attributes.iter().find(|(known, _)| *known == name);
            found.map(|(_, text)| (*text).to_owned())
        })
    }

    #[test]
    fn wear_and_abilities_are_told() {
        let (emmc, doubts) = of(&[
            ("rev", "0x8"),
            ("life_time", "0x02 0x0b"),
            ("pre_eol_info", "0x02"),
            ("rel_sectors", "0x1"),
            ("cmdq_en", "1"),
        ]);
        let right = Emmc {
            standard: Some("5.1"),
            used_a: Some(Used {
                least: 10,
                most: Some(20),
            }),
            used_b: Some(Used {
                least: 100,
                most: None,
            }),
            reserve: Some(PreEol::Warning),
            reliable_write_sectors: Some(1),
            queue: true,
            cache_kib: None,
        };
        assert_eq!((emmc.clone(), doubts), (right, vec![]));
        assert_eq!(emmc.used(), emmc.used_b);
    }

    #[test]
    fn what_is_not_defined_is_none_and_what_is_reserved_a_doubt() {
        let (emmc, doubts) = of(&[("life_time", "0x00 0x00"), ("pre_eol_info", "0x00")]);
        assert_eq!((emmc, doubts), (Emmc::default(), vec![]));
        let (emmc, doubts) = of(&[("life_time", "0xff 0xff"), ("pre_eol_info", "0xff")]);
        assert_eq!((emmc, doubts.len()), (Emmc::default(), 3));
        assert_eq!(of(&[]), (Emmc::default(), vec![]));
    }

    #[test]
    fn the_cache_is_read_from_the_register() {
        let mut register = vec!["00"; EXT_CSD_BYTES];
        register[CACHE_SIZE_AT + 1] = "04";
        assert_eq!(cache_kib(&(register.concat() + "\n")), Some(1024));
        assert_eq!(cache_kib("00"), None);
    }
}
