//! Figures with units as flashbench prints them: read and written.
//!
//! flashbench formats every figure into eight bytes (`snprintf(out, 8, …)`), so that units
//! are cut where the figure is long: `1e+03µs` becomes `1e+03µ` (µ is two bytes),
//! `-12345ns` becomes `-12345n`, `1.234G/s` becomes `1.234G/`. Negative times are always in
//! nanoseconds, since `ns < 1000` is asked first; from -1000000 ns on, digits are lost too.

/// Bytes that are left of a figure after `snprintf(out, 8, …)`.
const FIELD_BYTES: usize = 7;

/// No card has a faster bus, in bytes a second: eMMC HS400 (`flash.md` 2.7 \[ISSI\]; SD's UHS-I has
/// 104 MB/s, 2.7 \[GB\]).
pub const BUS_RATE_MAX: f64 = 400e6;

/// No memory that a host's page cache lies in is faster, in bytes a second.
const MEMORY_RATE_MAX: f64 = 100e9;

/// A request of a card that takes longer than this is none, in nanoseconds.
pub(super) const TIME_MAX_NS: f64 = 1000e9;

/// Why a figure is not one.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum NoFigure {
    /// Not a number with a unit.
    Malformed,
    /// A number whose unit is missing or cut, as at the end of a truncated file.
    NoUnit,
    /// A number with a unit that flashbench does not print.
    OtherUnit(String),
}

/// A time as printed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PrintedTime {
    /// In nanoseconds.
    pub ns: f64,
    /// The eight bytes cut the unit and possibly digits off: the figure may be a power of
    /// ten too small.
    pub digits_lost: bool,
    /// The unit had to be guessed: cut off, or its µ destroyed.
    pub unit_mended: bool,
}

/// Whether a card can have answered so many bytes a second, or the host's page cache, through which
/// requests that are not `direct` go.
///
/// # Errors
/// What was expected.
pub(super) fn possible(bytes_per_s: f64, direct: bool) -> Result<(), &'static str> {
    let (most, expected) = match direct {
        true => (
            BUS_RATE_MAX,
            "rates above 0 B/s and at most 400 MB/s, the fastest bus of a card (eMMC HS400)",
        ),
        false => (
            MEMORY_RATE_MAX,
            "rates above 0 B/s and at most 100 GB/s, which is the host's memory",
        ),
    };
    match bytes_per_s > 0.0 && bytes_per_s <= most {
        true => Ok(()),
        false => Err(expected),
    }
}

/// The number at the start of `token` and what follows it. As C reads it: `1e+03ms` is a
/// number and `ms`.
pub(super) fn number(token: &str) -> Option<(f64, &str)> {
    let bytes = token.as_bytes();
    let digits = |from: usize| {
        from + bytes[from..]
            .iter()
            .take_while(|b| b.is_ascii_digit())
            .count()
    };
    let start = usize::from(bytes.first() == Some(&b'-'));
    let mut end = digits(start);
    if end == start {
        return None;
    }
    if bytes.get(end) == Some(&b'.') && digits(end + 1) > end + 1 {
        end = digits(end + 1);
    }
    if bytes.get(end) == Some(&b'e') {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + sign);
        if exponent > end + 1 + sign {
            end = exponent;
        }
    }
    let value: f64 = token[..end].parse().ok()?;
    value.is_finite().then_some((value, &token[end..]))
}

/// `64KiB`, as in the first column of `-O` and `-f`. Bytes, not rounded to an integer.
pub(super) fn block(token: &str) -> Option<f64> {
    let (value, unit) = number(token)?;
    let scale = match unit {
        "B" => 1.0,
        "KiB" => 1024.0,
        "MiB" => 1_048_576.0,
        "GiB" => 1_073_741_824.0,
        "Ki" if token.len() == FIELD_BYTES => 1024.0,
        "Mi" if token.len() == FIELD_BYTES => 1_048_576.0,
        "Gi" if token.len() == FIELD_BYTES => 1_073_741_824.0,
        _ => return None,
    };
    (value > 0.0).then_some(value * scale)
}

/// `6.28M/s`, in bytes a second.
pub(super) fn rate(token: &str) -> Result<f64, NoFigure> {
    let (value, unit) = number(token).ok_or(NoFigure::Malformed)?;
    let scale = match unit {
        "B/s" => 1.0,
        "K/s" => 1e3,
        "M/s" => 1e6,
        "G/s" => 1e9,
        "K/" if token.len() == FIELD_BYTES => 1e3,
        "M/" if token.len() == FIELD_BYTES => 1e6,
        "G/" if token.len() == FIELD_BYTES => 1e9,
        "" | "." | "B" | "K" | "M" | "G" | "B/" | "K/" | "M/" | "G/" => {
            return Err(NoFigure::NoUnit);
        }
        other if is_unit(other) => return Err(NoFigure::OtherUnit(other.to_owned())),
        _ => return Err(NoFigure::Malformed),
    };
    // flashbench counts in whole bytes a second and whole nanoseconds.
    Ok((value * scale).round())
}

fn is_unit(text: &str) -> bool {
    text.chars()
        .all(|c| c.is_alphabetic() || matches!(c, '/' | '%'))
}

/// `1.08ms`, `-3602ns` and their cut forms.
pub(super) fn time(token: &str) -> Result<PrintedTime, NoFigure> {
    let (value, unit) = number(token).ok_or(NoFigure::Malformed)?;
    let micro = micro(unit);
    // µ is two bytes of the field, whatever is left of it here.
    let cut = if micro == Some(false) { 2 } else { unit.len() };
    let length = token.len() - unit.len() + cut;
    let full = length == FIELD_BYTES;
    let (scale, unit_mended) = match unit {
        "ns" => (1.0, false),
        "ms" => (1e6, false),
        "s" => (1e9, false),
        _ if micro == Some(true) => (1e3, unit != "µs"),
        _ if micro == Some(false) && full => (1e3, true),
        "n" if full => (1.0, true),
        "m" if full => (1e6, true),
        "" if full && value < 0.0 => (1.0, true),
        "" | "." | "n" | "m" => return Err(NoFigure::NoUnit),
        _ if micro.is_some() => return Err(NoFigure::NoUnit),
        other if is_unit(other) => return Err(NoFigure::OtherUnit(other.to_owned())),
        _ => return Err(NoFigure::Malformed),
    };
    Ok(PrintedTime {
        ns: (value * scale).round(),
        digits_lost: unit.is_empty(),
        unit_mended,
    })
}

/// Whether `unit` is µs (true) or a µ alone (false), as it is or as mail programs leave it.
fn micro(unit: &str) -> Option<bool> {
    const MARKS: [&str; 7] = ["µ", "μ", "u", "Âµ", "?", "\u{fffd}", "\u{fffd}\u{fffd}"];
    MARKS.iter().find_map(|mark| {
        let rest = unit.strip_prefix(mark)?;
        match rest {
            "s" => Some(true),
            "" => Some(false),
            _ => None,
        }
    })
}

/// C's `%.{digits}g`.
pub(super) fn general(value: f64, digits: usize) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let scientific = format!("{:.*e}", digits - 1, value);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if exponent < -4 || exponent >= digits as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}e{sign}{:02}", trim(mantissa), exponent.abs())
    } else {
        let places = (digits as i32 - 1 - exponent).max(0) as usize;
        trim(&format!("{value:.places$}"))
    }
}

/// What is left of `text` in eight bytes of C. A µ that is cut in two is dropped whole:
/// a half is no text.
fn field(text: String) -> String {
    let mut end = text.len().min(FIELD_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

/// flashbench's `format_ns`.
pub(super) fn print_time(ns: i64) -> String {
    let value = ns as f64;
    field(match ns {
        ..1000 => format!("{ns}ns"),
        1000..1_000_000 => format!("{}µs", general(value / 1e3, 3)),
        1_000_000..1_000_000_000 => format!("{}ms", general(value / 1e6, 3)),
        _ => format!("{}s", general(value / 1e9, 4)),
    })
}

/// flashbench's form of a rate in bytes a second.
pub(super) fn print_rate(bytes_per_s: i64) -> String {
    let value = bytes_per_s as f64;
    field(match bytes_per_s {
        ..1000 => format!("{bytes_per_s}B/s"),
        1000..1_000_000 => format!("{}K/s", general(value / 1e3, 3)),
        1_000_000..1_000_000_000 => format!("{}M/s", general(value / 1e6, 3)),
        _ => format!("{}G/s", general(value / 1e9, 4)),
    })
}

/// flashbench's form of a block size in bytes.
pub(super) fn print_block(bytes: u64) -> String {
    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;
    let value = bytes as f64;
    field(match bytes {
        ..KIB => format!("{bytes}B"),
        KIB..MIB => format!("{}KiB", general(value / KIB as f64, 3)),
        MIB..GIB => format!("{}MiB", general(value / MIB as f64, 3)),
        _ => format!("{}GiB", general(value / GIB as f64, 4)),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn figures_are_printed_as_c_prints_them() {
        let cases = [
            (-8994, "-8994ns"),
            (-12345, "-12345n"),
            (-241_015, "-241015"),
            (-1_234_567, "-123456"),
            (57, "57ns"),
            (74_200, "74.2µs"),
            (999_900, "1e+03µ"),
            (1_080_000, "1.08ms"),
            (1_300_000, "1.3ms"),
            (999_900_000, "1e+03ms"),
            (2_039_000_000, "2.039s"),
        ];
        for (ns, text) in cases {
            assert_eq!(print_time(ns), text);
        }
        assert_eq!(print_rate(997), "997B/s");
        assert_eq!(print_rate(938_000), "938K/s");
        assert_eq!(print_rate(999_999), "1e+03K/");
        assert_eq!(print_rate(2_039_000_000), "2.039G/");
        assert_eq!(print_rate(1_480_000_000), "1.48G/s");
        assert_eq!(print_block(4_096_000), "3.91MiB");
        assert_eq!(print_block(1_024_000), "1e+03Ki");
        assert_eq!(print_block(512), "512B");
        assert_eq!(print_block(1 << 30), "1GiB");
    }

    #[test]
    fn cut_units_are_understood_only_where_the_field_was_full() {
        let ns = |token| time(token).map(|time| time.ns);
        assert_eq!(ns("1e+03µ"), Ok(1e6));
        assert_eq!(ns("-12345n"), Ok(-12345.0));
        assert_eq!(ns("-241015"), Ok(-241_015.0));
        assert!(time("-241015").unwrap().digits_lost);
        assert_eq!(ns("195µ"), Err(NoFigure::NoUnit));
        assert_eq!(ns("-8994"), Err(NoFigure::NoUnit));
        assert_eq!(ns("-8994n"), Err(NoFigure::NoUnit));
        assert_eq!(ns("1234567"), Err(NoFigure::NoUnit));
        assert_eq!(rate("1e+03K/"), Ok(1e6));
        assert_eq!(rate("3.95M/"), Err(NoFigure::NoUnit));
        assert_eq!(
            rate("3.95MB/s"),
            Err(NoFigure::OtherUnit("MB/s".to_owned()))
        );
    }

    #[test]
    fn a_destroyed_micro_is_still_one() {
        for token in [
            "735µs",
            "735μs",
            "735us",
            "735Âµs",
            "735?s",
            "735\u{fffd}\u{fffd}s",
        ] {
            assert_eq!(time(token).unwrap().ns, 735e3, "{token}");
        }
        assert!(time("735?s").unwrap().unit_mended);
        assert!(!time("735µs").unwrap().unit_mended);
        assert_eq!(time("735xs"), Err(NoFigure::OtherUnit("xs".to_owned())));
    }

    #[test]
    fn a_rate_is_bounded_by_the_bus_and_by_memory_where_the_page_cache_may_answer() {
        for (bytes_per_s, direct, fits) in [
            (400e6, true, true),
            (401e6, true, false),
            (2.7e9, true, false),
            (2.7e9, false, true),
            (1e12, false, false),
            (0.0, true, false),
            (f64::NAN, false, false),
        ] {
            let found = possible(bytes_per_s, direct);
            assert_eq!(found.is_ok(), fits, "{bytes_per_s} {direct}");
        }
        let stated = |most: f64, direct: bool, text: &str| {
            let expected = possible(most * 1.01, direct).unwrap_err();
            assert!(expected.contains(text), "{expected}");
        };
        stated(BUS_RATE_MAX, true, &format!("{} MB/s", BUS_RATE_MAX / 1e6));
        stated(
            MEMORY_RATE_MAX,
            false,
            &format!("{} GB/s", MEMORY_RATE_MAX / 1e9),
        );
    }

    #[test]
    fn no_token_is_a_number_by_accident() {
        for token in ["", "-", ".5", "e5", "NaN", "inf", "x1"] {
            assert_eq!(number(token), None, "{token}");
        }
        assert_eq!(number("1e+03ms"), Some((1000.0, "ms")));
        assert_eq!(number("5e"), Some((5.0, "e")));
        assert_eq!(number("1e999"), None);
        assert_eq!(number("3.x"), Some((3.0, ".x")));
    }
}
