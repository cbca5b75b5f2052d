//! The fields of a cached head that depend on the time of the request.

use std::ops::Range;

use server::request::{Expiry, Request};
use wire::date;

use super::given::field_of;
use super::response::{CachedResponse, NeedsPhases};
use super::texts::Text;

/// Their places in the lines before the connection's own.
#[derive(Debug, PartialEq)]
pub(super) struct TimedFields {
    pub expiry: Expiry,
    /// The value of `Expires`.
    pub date_at: Option<Range<usize>>,
    /// The number of `max-age` in `Cache-Control`.
    pub age_at: Option<Range<usize>>,
}

/// A new text for a part of the lines.
enum Value {
    Number(u64),
    Date([u8; date::DATE_BYTES]),
}

impl TimedFields {
    /// Finds the fields that a request's response has; `None` if none depends on the time.
    pub(super) fn find(
        request: &Request,
        lines: &[u8],
    ) -> Result<Option<TimedFields>, NeedsPhases> {
        match request.response.expiry {
            Some(expiry) if expiry.moves_date || expiry.moves_age => {
                TimedFields::of(expiry, request.time_us, lines).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn of(expiry: Expiry, now_us: u64, lines: &[u8]) -> Result<TimedFields, NeedsPhases> {
        let (date, age) = expiry.time.fields(now_us);
        let date_at = if expiry.moves_date {
            let line = [b"\r\nExpires: ", &date::format(date)[..], b"\r\n"].concat();
            let start = last(lines, &line).ok_or(NeedsPhases)? + b"\r\nExpires: ".len();
            Some(start..start + date::DATE_BYTES)
        } else {
            None
        };
        let age_at = if expiry.moves_age {
            let start = last(lines, b"\r\nCache-Control: ").ok_or(NeedsPhases)?;
            let line = lines.get(start + 2..).unwrap_or_default();
            let line = line.split(|byte| *byte == b'\r').next().unwrap_or_default();
            let number = age.to_string();
            let is_last = line.ends_with(format!("max-age={number}").as_bytes());
            let end = start + 2 + line.len();
            Some(is_last.then_some(end - number.len()..end).ok_or(NeedsPhases)?)
        } else {
            None
        };
        Ok(TimedFields { expiry, date_at, age_at })
    }

    fn edits(&self, now_us: u64) -> [Option<(&Range<usize>, Value)>; 2] {
        let (date, age) = self.expiry.time.fields(now_us);
        [
            self.date_at.as_ref().map(|at| (at, Value::Date(date::format(date)))),
            self.age_at.as_ref().map(|at| (at, Value::Number(age))),
        ]
    }
}

impl CachedResponse {
    /// Writes the lines before the connection's own, for a request of `now_us`; `length` is that of
    /// the part that is sent.
    pub fn write_before(&self, now_us: u64, length: Option<u64>, out: &mut Vec<u8>) {
        let length = length.and_then(|length| Some((self.length_at.as_ref()?, length)));
        let length = length.map(|(at, length)| (at, Value::Number(length)));
        if length.is_none() && self.timed.is_none() {
            return out.extend_from_slice(self.texts.get(Text::Before));
        }
        let [date, age] = self.timed.as_ref().map_or([None, None], |timed| timed.edits(now_us));
        write_edited(self.texts.get(Text::Before), [length, date, age], out);
    }

    /// Copies them into a request that this response was sent for, for the log.
    pub(super) fn give_timed(&self, request: &mut Request) {
        if self.timed.is_none() {
            return;
        }
        let mut lines = Vec::new();
        self.write_before(request.time_us, None, &mut lines);
        for name in [&b"Expires"[..], b"Cache-Control"] {
            if let Some(value) = field_of(&lines, name) {
                request.response.headers_out.set(name, value);
            }
        }
    }
}

fn write_edited<const N: usize>(
    lines: &[u8],
    mut edits: [Option<(&Range<usize>, Value)>; N],
    out: &mut Vec<u8>,
) {
    edits.sort_unstable_by_key(|edit| edit.as_ref().map_or(0, |(at, _)| at.start));
    let mut from = 0;
    for (at, value) in edits.into_iter().flatten() {
        out.extend_from_slice(lines.get(from..at.start).unwrap_or_default());
        match value {
            Value::Number(number) => wire::range::write_decimal(out, number),
            Value::Date(date) => out.extend_from_slice(&date),
        }
        from = at.end;
    }
    out.extend_from_slice(lines.get(from..).unwrap_or_default());
}

fn last(lines: &[u8], wanted: &[u8]) -> Option<usize> {
    lines.windows(wanted.len()).rposition(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use server::request::ExpiryTime;

    use super::*;

    fn again(time: ExpiryTime, moves: (bool, bool), lines: &str, now: u64) -> Option<String> {
        let expiry = Expiry { time, moves_date: moves.0, moves_age: moves.1 };
        let timed = TimedFields::of(expiry, 1_000_000_000_000_000, lines.as_bytes()).ok()?;
        let mut out = Vec::new();
        write_edited(lines.as_bytes(), timed.edits(now), &mut out);
        Some(String::from_utf8_lossy(&out).into_owned())
    }

    #[test]
    fn the_date_follows_the_request() {
        let time = ExpiryTime::AfterRequest(60);
        let lines = "\r\nServer: x\r\nExpires: 0\r\nCache-Control: max-age=60\r\nExpires: Sun, \
                     09 Sep 2001 01:47:40 GMT\r\nETag: \"1\"\r\n";
        let later = lines.replace("01:47:40", "01:47:45");
        assert_eq!(again(time, (true, false), lines, 1_000_000_005_000_000), Some(later));
        assert_eq!(again(time, (true, false), "\r\nExpires: 0\r\n", 0), None);
    }

    #[test]
    fn the_age_shrinks_to_nothing() {
        let time = ExpiryTime::At(1_000_000_100_000_000);
        let lines = "\r\nCache-Control: a\r\nCache-Control: public, max-age=100\r\nExpires: Sun, \
                     09 Sep 2001 01:48:20 GMT\r\n";
        let at = |now| again(time, (true, true), lines, now);
        assert_eq!(at(1_000_000_001_000_000), Some(lines.replace("=100", "=99")));
        let after = lines.replace("=100", "=0").replace("01:48:20", "01:50:00");
        assert_eq!(at(1_000_000_200_000_000), Some(after));
        let fixed = lines.replace("=100", "=99");
        assert_eq!(again(time, (true, true), &fixed, 0), None);
    }
}
