//! Sizes on the command line: `4096`, `64K`, `2G`.

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

/// MiB of `text`: a number alone, or one with K, M, G or T that makes whole MiB; 16 to 2^20.
///
/// # Errors
/// Says what was expected.
pub fn mebibytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("found {text:?}; expected 16 to 1048576 MiB, or a size such as 2G");
    let alone = text.bytes().all(|byte| byte.is_ascii_digit());
    let mib = match alone {
        true => text.parse().map_err(|_| wrong())?,
        false => {
            let bytes = bytes(text).map_err(|_| wrong())?;
            let whole = bytes.is_multiple_of(1 << 20).then_some(bytes >> 20);
            whole.ok_or_else(wrong)?
        }
    };
    let fits = (16..=1 << 20).contains(&mib);
    fits.then_some(mib).ok_or_else(wrong)
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
    fn mebibytes_are_counted_or_made_of_other_units() {
        for (text, mib) in [("16", 16), ("512", 512), ("1G", 1024), ("65536K", 64)] {
            assert_eq!(mebibytes(text).unwrap(), mib);
        }
        for wrong in ["", "15", "1048577", "2T", "17000K", "1.5G", "-1"] {
            assert!(mebibytes(wrong).unwrap_err().contains("2G"), "{wrong}");
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
