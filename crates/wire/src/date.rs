//! HTTP dates: parses all three formats as `apr_date_parse_http` does, and writes the preferred
//! one.

/// Length of a formatted date, `Sun, 06 Nov 1994 08:49:37 GMT`.
pub const DATE_BYTES: usize = 29;

const DAYS: [&[u8; 3]; 7] = [b"Sun", b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat"];
const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

/// The year 10000 in seconds since 1970: the first that does not fit the format.
const END_SECONDS: i64 = 253_402_300_800;

/// Formats `seconds` since 1970, clamped to the years 1970 to 9999, as an HTTP date.
pub fn format(seconds: i64) -> [u8; DATE_BYTES] {
    let seconds = seconds.clamp(0, END_SECONDS - 1);
    let days = seconds / 86_400;
    let of_day = (seconds % 86_400) as u32;
    let (year, month, day) = civil_from_days(days);
    let mut out = *b"Sun, 00 Jan 0000 00:00:00 GMT";
    let weekday = DAYS[((days + 4) % 7) as usize];
    out[..3].copy_from_slice(weekday);
    put_two(&mut out[5..7], day);
    out[8..11].copy_from_slice(MONTHS[(month - 1) as usize]);
    put_two(&mut out[12..14], year / 100);
    put_two(&mut out[14..16], year % 100);
    put_two(&mut out[17..19], of_day / 3600);
    put_two(&mut out[20..22], of_day / 60 % 60);
    put_two(&mut out[23..25], of_day % 60);
    out
}

/// Parses an HTTP date: RFC 1123, RFC 850 or asctime. The day of the week and the zone are ignored.
/// Returns `None` for other text, for a day that is not in the calendar, and before 1970.
pub fn parse(date: &[u8]) -> Option<i64> {
    let start = date.iter().position(|byte| !byte.is_ascii_whitespace())?;
    let date = date.get(start..)?;
    let space = date.iter().position(|byte| *byte == b' ')?;
    let rest = date.get(space + 1..)?;
    let fields = if matches_mask(rest, b"## @$$ #### ##:##:## *") {
        let century = number(rest, 7, 2)?;
        if century < 19 {
            return None;
        }
        Fields::at(rest, (0, 2), 3, century * 100 + number(rest, 9, 2)?, 12)?
    } else if matches_mask(rest, b"##-@$$-## ##:##:## *") {
        let year = number(rest, 7, 2)?;
        Fields::at(rest, (0, 2), 3, if year < 70 { 2000 + year } else { 1900 + year }, 10)?
    } else if matches_mask(rest, b"@$$ ~# ##:##:## ####*") {
        let day = if rest.get(4) == Some(&b' ') { (5, 1) } else { (4, 2) };
        Fields::at(rest, day, 0, number(rest, 16, 4)?, 7)?
    } else if matches_mask(rest, b"# @$$ #### ##:##:## *") {
        Fields::at(rest, (0, 1), 2, number(rest, 6, 4).filter(|year| *year >= 1900)?, 11)?
    } else {
        return None;
    };
    fields.seconds()
}

struct Fields {
    year: u32,
    month: u32,
    day: u32,
    second_of_day: u32,
}

impl Fields {
    /// Parses the fields at their offsets. Returns `None` if hour, minute or second is out of
    /// range.
    fn at(
        text: &[u8],
        day: (usize, usize),
        month_at: usize,
        year: u32,
        time_at: usize,
    ) -> Option<Fields> {
        let (hour, minute, second) = (
            number(text, time_at, 2)?,
            number(text, time_at + 3, 2)?,
            number(text, time_at + 6, 2)?,
        );
        if hour > 23 || minute > 59 || second > 61 {
            return None;
        }
        let name = text.get(month_at..month_at + 3)?;
        let month = MONTHS.iter().position(|month| month.as_slice() == name)? as u32 + 1;
        Some(Fields {
            year,
            month,
            day: number(text, day.0, day.1)?,
            second_of_day: hour * 3600 + minute * 60 + second,
        })
    }

    fn seconds(&self) -> Option<i64> {
        let every = |years| self.year.is_multiple_of(years);
        let is_leap = every(4) && (!every(100) || every(400));
        let days_of_month = match self.month {
            2 if is_leap => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        if self.year < 1970 || self.day == 0 || self.day > days_of_month {
            return None;
        }
        let days = days_from_civil(self.year, self.month, self.day);
        Some(days * 86_400 + i64::from(self.second_of_day))
    }
}

/// `apr_date_checkmask`: `@` is upper case, `$` lower case, `#` a digit, `~` a digit or space, and
/// `*` any rest.
fn matches_mask(text: &[u8], mask: &[u8]) -> bool {
    for (at, symbol) in mask.iter().enumerate() {
        let byte = text.get(at).copied();
        let fits = match (symbol, byte) {
            (b'*', _) => return true,
            (_, None) => false,
            (b'@', Some(byte)) => byte.is_ascii_uppercase(),
            (b'$', Some(byte)) => byte.is_ascii_lowercase(),
            (b'#', Some(byte)) => byte.is_ascii_digit(),
            (b'~', Some(byte)) => byte == b' ' || byte.is_ascii_digit(),
            (literal, Some(byte)) => byte == *literal,
        };
        if !fits {
            return false;
        }
    }
    text.len() == mask.len()
}

fn number(text: &[u8], at: usize, len: usize) -> Option<u32> {
    let digits = text.get(at..at + len)?;
    digits.iter().try_fold(0, |value, byte| {
        byte.is_ascii_digit().then(|| value * 10 + u32::from(byte - b'0'))
    })
}

fn put_two(out: &mut [u8], value: u32) {
    out.copy_from_slice(&[b'0' + (value / 10 % 10) as u8, b'0' + (value % 10) as u8]);
}

/// Days from 1970 to a date of the Gregorian calendar. Years begin in March internally.
pub(crate) fn days_from_civil(year: u32, month: u32, day: u32) -> i64 {
    let year = i64::from(year) - i64::from(month <= 2);
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let month = i64::from((month + 9) % 12);
    let of_year = (153 * month + 2) / 5 + i64::from(day) - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The inverse of [`days_from_civil`] for days since 1970: year, month, day.
fn civil_from_days(days: i64) -> (u32, u32, u32) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year as u32, month as u32, day as u32)
}

/// The current second's date, formatted again only when the second changes.
#[derive(Debug, Clone)]
pub struct DateCache {
    seconds: i64,
    text: [u8; DATE_BYTES],
}

impl DateCache {
    /// Returns a cache that holds the date of `seconds` since 1970.
    pub fn new(seconds: i64) -> Self {
        DateCache { seconds, text: format(seconds) }
    }

    /// The date of `seconds`.
    pub fn at(&mut self, seconds: i64) -> &[u8; DATE_BYTES] {
        if seconds != self.seconds {
            *self = DateCache::new(seconds);
        }
        &self.text
    }
}

impl Default for DateCache {
    fn default() -> Self {
        DateCache::new(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // Apache 2.4.71: If-Modified-Since against a file of that second is a 304 for these dates…
    #[test]
    fn dates_that_apache_takes() {
        for date in [
            "Wed, 01 Jan 2020 00:00:00 GMT",
            "Wed, 01 Jan 2020 00:00:00 +0100",
            "Wed, 1 Jan 2020 00:00:00 GMT",
            "Xyz, 01 Jan 2020 00:00:00 GMT",
            "X 01 Jan 2020 00:00:00 GMT",
            "Wed, 01-Jan-20 00:00:00 GMT",
            "Wednesday, 01-Jan-20 00:00:00 GMT",
            "Wed Jan 01 00:00:00 2020",
            "Wed Jan  1 00:00:00 2020",
            "Wed Jan  1 00:00:00 2020 x",
            "Wed, 01 Jan 2020 00:00:00 GMT; length=100",
        ] {
            assert_eq!(parse(date.as_bytes()), Some(1_577_836_800), "{date}");
        }
        assert_eq!(parse(b"Wed, 01 Jan 2020 00:00:60 GMT"), Some(1_577_836_860));
    }

    // … and a 200 for these.
    #[test]
    fn dates_that_apache_does_not_take() {
        for date in [
            "01 Jan 2020 00:00:00 GMT",
            "Wed, 01 Jan 2020 0:00:00 GMT",
            "Wed, 01 Jan 2020 00:00:00",
            "wed, 01 jan 2020 00:00:00 gmt",
            "Wed,01 Jan 2020 00:00:00 GMT",
            "Wed, 01-Jan-2020 00:00:00 GMT",
            "Wed, 32 Jan 2020 00:00:00 GMT",
            "Wed, 01 Jan 2020 24:00:00 GMT",
            "Wed, 01 Jan 2020 00:60:00 GMT",
            "Wed, 01 Jan 2020 00:00:62 GMT",
            "Wed, 01 Abc 2020 00:00:00 GMT",
            "Wed, 30 Feb 2020 00:00:00 GMT",
            "Wed, 29 Feb 2021 00:00:00 GMT",
            "Wed, 31 Apr 2020 00:00:00 GMT",
            "Wed Jan 1 00:00:00 2020",
            "Wed, 01 Jan 2020 00:00 GMT",
            "Wed, 00 Jan 2020 00:00:00 GMT",
            "Wed, 01 Jan 1969 00:00:00 GMT",
            "Wed, 01 Jan 0020 00:00:00 GMT",
            "1577836800",
            "",
        ] {
            assert_eq!(parse(date.as_bytes()), None, "{date}");
        }
    }

    #[test]
    fn the_cache_follows_the_second() {
        let mut cache = DateCache::new(784_111_777);
        assert_eq!(cache.at(784_111_777), b"Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(cache.at(784_111_778), b"Sun, 06 Nov 1994 08:49:38 GMT");
    }

    proptest! {
        #[test]
        fn what_is_written_can_be_read(seconds in 0..END_SECONDS) {
            let text = format(seconds);
            prop_assert_eq!(parse(&text), Some(seconds));
            let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds as u64);
            let expected = httpdate::fmt_http_date(time);
            prop_assert_eq!(text.as_slice(), expected.as_bytes());
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes: Vec<u8>) {
            parse(&bytes);
        }
    }
}
