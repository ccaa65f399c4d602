//! Times of the calendar (UTC) from seconds since 1970. Nobody asks a clock here.

/// Year, month, day, hour, minute and second of `unix`, seconds since 1970.
///
/// Days are counted from 1 March of the year 0 of the Gregorian calendar, in eras of 400 years,
/// so that the day that a leap year adds is the last of its year.
pub fn utc(unix: i64) -> [i64; 6] {
    let (days, second) = (unix.div_euclid(86_400), unix.rem_euclid(86_400));
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let march = (5 * day + 2) / 153;
    let month = if march < 10 { march + 3 } else { march - 9 };
    [
        era * 400 + year + i64::from(month <= 2),
        month,
        day - (153 * march + 2) / 5 + 1,
        second / 3600,
        second / 60 % 60,
        second % 60,
    ]
}

/// `2026-11-25 16:22:25 UTC`.
pub fn utc_words(unix: i64) -> String {
    let [year, month, day, hour, minute, second] = utc(unix);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// `20261125T162225Z`, the basic format of ISO 8601: names of files sort by time so.
pub fn utc_name(unix: i64) -> String {
    let [year, month, day, hour, minute, second] = utc(unix);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        let known = [
            (0, "19700101T000000Z"),
            (-1, "19691231T235959Z"),
            (951_782_400, "20000229T000000Z"),
            (1_764_087_745, "20251125T162225Z"),
            (4_107_542_399, "21000228T235959Z"),
            (4_107_542_400, "21000301T000000Z"),
        ];
        for (unix, name) in known {
            assert_eq!(utc_name(unix), name);
        }
        assert_eq!(utc_words(1_764_087_745), "2025-11-25 16:22:25 UTC");
        // Each day follows the one before, through all leap years of an era.
        let mut before = utc(-86_400);
        for day in 0..146_097 {
            let now = utc(day * 86_400);
            let next = now[..2] == before[..2] && now[2] == before[2] + 1;
            let month = now[2] == 1 && before[2] >= 28;
            assert!(next || month, "{before:?} {now:?}");
            before = now;
        }
    }
}
