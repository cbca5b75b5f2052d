//! `%t`: the time of the request or of the response.

use std::cell::RefCell;

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// The argument of `%{…}t`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Time {
    /// The end of the response instead of the beginning of the request.
    pub at_end: bool,
    /// The format.
    pub style: Style,
}

/// The format of a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Style {
    /// `[21/Nov/2026:00:24:33 +0000]`
    Common,
    /// Whole units since the epoch: microseconds per unit.
    SinceEpoch(u64),
    /// The fraction of the second: microseconds per unit, and the number of digits.
    Fraction(u64, usize),
    /// `strftime`
    Format(String),
}

impl Time {
    /// Parses the argument of `%{…}t`.
    pub fn parse(argument: &[u8]) -> Time {
        let (at_end, rest) = match argument.strip_prefix(b"end") {
            Some(rest) if matches!(rest.first(), None | Some(b':')) => (true, rest),
            _ => match argument.strip_prefix(b"begin") {
                Some(rest) if matches!(rest.first(), None | Some(b':')) => (false, rest),
                _ => (false, argument),
            },
        };
        let style = match rest.strip_prefix(b":").unwrap_or(rest) {
            b"" => Style::Common,
            b"sec" => Style::SinceEpoch(1_000_000),
            b"msec" => Style::SinceEpoch(1000),
            b"usec" => Style::SinceEpoch(1),
            b"msec_frac" => Style::Fraction(1000, 3),
            b"usec_frac" => Style::Fraction(1, 6),
            format => Style::Format(String::from_utf8_lossy(format).into_owned()),
        };
        Time { at_end, style }
    }

    /// Writes a time given in microseconds since the epoch.
    pub fn write(&self, time_us: u64, out: &mut Vec<u8>) {
        match &self.style {
            Style::Common => common(time_us / 1_000_000, out),
            Style::SinceEpoch(unit) => digits(time_us / unit, 1, out),
            Style::Fraction(unit, width) => digits(time_us % 1_000_000 / unit, *width, out),
            Style::Format(format) => {
                let text = local(time_us / 1_000_000).strftime(format.as_str()).to_string();
                out.extend_from_slice(text.as_bytes());
            }
        }
    }
}

/// Writes a number with leading zeros.
fn digits(number: u64, width: usize, out: &mut Vec<u8>) {
    let mut buffer = itoa::Buffer::new();
    let text = buffer.format(number).as_bytes();
    out.extend(std::iter::repeat_n(b'0', width.saturating_sub(text.len())));
    out.extend_from_slice(text);
}

fn local(seconds: u64) -> Zoned {
    let seconds = i64::try_from(seconds).unwrap_or(0);
    let time = Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH);
    time.to_zoned(TimeZone::system())
}

/// Writes the common form, which is formatted once per second.
fn common(seconds: u64, out: &mut Vec<u8>) {
    thread_local! {
        static LAST: RefCell<(u64, String)> = RefCell::default();
    }
    LAST.with_borrow_mut(|(second, text)| {
        if *second != seconds || text.is_empty() {
            *text = local(seconds).strftime("[%d/%b/%Y:%H:%M:%S %z]").to_string();
            *second = seconds;
        }
        out.extend_from_slice(text.as_bytes());
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(argument: &[u8], time_us: u64) -> String {
        let mut out = Vec::new();
        Time::parse(argument).write(time_us, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn parts_of_a_time() {
        assert_eq!(text(b"sec", 1_500_000_042_000), "1500000");
        assert_eq!(text(b"msec_frac", 1_000_007_000), "007");
        assert_eq!(text(b"begin:usec_frac", 1_000_000_009), "000009");
        assert!(Time::parse(b"end:sec").at_end);
        assert_eq!(Time::parse(b"ending").style, Style::Format("ending".to_owned()));
        assert_eq!(text(b"%Y", 86_400_000_000 * 40), "1970");
    }
}
