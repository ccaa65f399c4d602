//! Sizes and times as people type them: `4096`, `64K`, `2G`, `10m`.

use crate::MIB;
use std::time::Duration;

/// Bytes of `text`: a number, or one with K, M, G or T (powers of 1024; KiB and so on too).
///
/// # Errors
/// Says what was expected.
pub fn bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("found {text:?}; expected bytes such as 4096, 64K, 200M or 2G");
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    let unit = match &text[digits.len()..] {
        "" | "B" => 1,
        "K" | "KiB" => 1 << 10,
        "M" | "MiB" => 1 << 20,
        "G" | "GiB" => 1 << 30,
        "T" | "TiB" => 1 << 40,
        _ => return Err(wrong()),
    };
    number.checked_mul(unit).ok_or_else(wrong)
}

/// Bytes of `text`, as [`bytes`]: whole MiB, `LEAST` to `MOST` of them.
///
/// # Errors
/// Says what was expected, and what a small number without a unit was likely meant to be.
pub fn whole_mib<const LEAST: u64, const MOST: u64>(text: &str) -> Result<u64, String> {
    let (least, most) = (told(LEAST * MIB), told(MOST * MIB));
    let expected = format!("expected whole MiB from {least} to {most}, such as 64M or 1G");
    let bytes = bytes(text).map_err(|_| format!("found {text:?}; {expected}"))?;
    let alone = text.bytes().all(|byte| byte.is_ascii_digit());
    if alone && (LEAST..=MOST).contains(&bytes) && bytes < MIB {
        return Err(format!(
            "found {text:?}, which is {bytes} bytes; did you mean {text}M?"
        ));
    }
    let fits = bytes.is_multiple_of(MIB) && (LEAST * MIB..=MOST * MIB).contains(&bytes);
    match fits {
        true => Ok(bytes),
        false => Err(format!("found {text:?}; {expected}")),
    }
}

/// `bytes` as [`bytes()`] takes them, in the largest unit that makes whole numbers: `64M`.
pub fn told(bytes: u64) -> String {
    let units = [
        ("T", 1_u64 << 40),
        ("G", 1 << 30),
        ("M", 1 << 20),
        ("K", 1 << 10),
    ];
    let fits = |(_, unit): &(&str, u64)| bytes > 0 && bytes.is_multiple_of(*unit);
    match units.into_iter().find(fits) {
        Some((name, unit)) => format!("{}{name}", bytes / unit),
        None => bytes.to_string(),
    }
}

/// Bytes of a device, a partition or an image, as [`bytes`].
///
/// # Errors
/// Says what was expected; so few bytes without a unit are a forgotten unit.
pub fn size(text: &str) -> Result<u64, String> {
    /// Smallest number without a unit that is taken: a page.
    const LEAST: u64 = 4096;
    let found = bytes(text)?;
    let alone = text.bytes().all(|byte| byte.is_ascii_digit());
    match alone && (1..LEAST).contains(&found) {
        true => Err(format!(
            "found {text:?}, which is {found} bytes; did you mean {text}M?"
        )),
        false => Ok(found),
    }
}

/// The time that `text` says: seconds, or a number with s, m or h.
///
/// # Errors
/// Says what was expected.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("found {text:?}; expected a time such as 90s, 10m or 2h");
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    let unit = match &text[digits.len()..] {
        "" | "s" => 1,
        "m" | "min" => 60,
        "h" => 3600,
        _ => return Err(wrong()),
    };
    let seconds = number.checked_mul(unit).filter(|&s| s > 0 && s < 1 << 32);
    seconds.map(Duration::from_secs).ok_or_else(wrong)
}

/// Bytes of a request: whole sectors, at least one, at most 64 MiB.
///
/// # Errors
/// Says what was expected.
pub fn request_bytes(text: &str) -> Result<u64, String> {
    let found = bytes(text)?;
    if found == 0 || found % 512 != 0 || found > 64 << 20 {
        return Err(format!(
            "found {text:?}; expected a multiple of 512 up to 64M"
        ));
    }
    Ok(found)
}

/// A key and a value: `operator=J. Doe`. The key has something but no `=`, and neither has control
/// characters.
///
/// # Errors
/// What was found and what was expected.
pub fn key_value(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=');
    let parts = parts.map(|(key, value)| (key.trim(), value.trim()));
    match parts {
        Some((key, value))
            if !key.is_empty() && !value.is_empty() && !text.contains(char::is_control) =>
        {
            Ok((key.to_owned(), value.to_owned()))
        }
        _ => Err(format!(
            "found {text:?}; expected KEY=VALUE, for example operator=\"J. Doe\""
        )),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn sizes_have_binary_units_and_nothing_else() {
        assert_eq!(bytes("4096").unwrap(), 4096);
        assert_eq!(bytes("64K").unwrap(), 65_536);
        assert_eq!(bytes("2GiB").unwrap(), 2 << 30);
        for wrong in ["", "K", "-1", "1.5G", "3 M", "99999999999T", "7x"] {
            assert!(bytes(wrong).unwrap_err().contains("64K"), "{wrong}");
        }
        assert!(request_bytes("0").is_err());
        assert!(request_bytes("1000").is_err());
        assert_eq!(request_bytes("512").unwrap(), 512);
    }

    #[test]
    fn a_label_is_a_key_and_a_value() {
        let of = |key: &str, value: &str| Ok((key.to_owned(), value.to_owned()));
        assert_eq!(key_value("operator = J. Doe"), of("operator", "J. Doe"));
        assert_eq!(key_value("a=b=c"), of("a", "b=c"));
        for wrong in ["", "=", "a=", "=b", "a", "a=b\n"] {
            assert!(key_value(wrong).unwrap_err().contains("KEY=VALUE"));
        }
    }

    #[test]
    fn a_size_in_whole_mib_has_a_unit() {
        let mib = whole_mib::<16, 4096>;
        for (text, bytes) in [("16M", 16 << 20), ("1G", 1 << 30), ("64MiB", 64 << 20)] {
            assert_eq!(mib(text).unwrap(), bytes);
        }
        assert_eq!(mib("16777216").unwrap(), 16 << 20);
        let forgotten = mib("512").unwrap_err();
        assert_eq!(
            forgotten,
            "found \"512\", which is 512 bytes; did you mean 512M?"
        );
        for wrong in [
            "",
            "15",
            "15M",
            "5G",
            "17000K",
            "1.5G",
            "-1",
            "M",
            "99999999999999999999",
        ] {
            assert!(
                mib(wrong).unwrap_err().contains("from 16M to 4G"),
                "{wrong}"
            );
        }
    }

    #[test]
    fn a_size_of_a_few_bytes_is_a_forgotten_unit() {
        assert_eq!(size("4M").unwrap(), 4 << 20);
        assert_eq!(size("8388608").unwrap(), 8 << 20);
        assert_eq!(size("0").unwrap(), 0);
        assert!(size("512").unwrap_err().contains("did you mean 512M?"));
    }

    #[test]
    fn a_size_is_told_as_it_is_taken() {
        for (size, text) in [(0, "0"), (1000, "1000"), (64 << 20, "64M"), (3 << 30, "3G")] {
            assert_eq!(told(size), text);
            assert_eq!(bytes(text).unwrap(), size);
        }
    }

    #[test]
    fn times_have_seconds_minutes_and_hours() {
        for (text, seconds) in [("90", 90), ("90s", 90), ("10m", 600), ("2h", 7200)] {
            assert_eq!(duration(text).unwrap(), Duration::from_secs(seconds));
        }
        for wrong in ["", "m", "0", "-1s", "1.5h", "3 m", "7d", "99999999999h"] {
            assert!(duration(wrong).unwrap_err().contains("10m"), "{wrong}");
        }
    }
}
