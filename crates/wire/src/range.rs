//! Byte ranges (`ap_set_byterange` and the byterange filter).

use crate::chars::decimal;

/// One range of a body; both ends are inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// First byte.
    pub first: u64,
    /// Last byte.
    pub last: u64,
}

impl ByteRange {
    /// The length in bytes, never 0.
    pub const fn len(self) -> u64 {
        self.last - self.first + 1
    }

    /// Always false: a range has at least one byte.
    pub const fn is_empty(self) -> bool {
        false
    }
}

/// `MaxRanges`, `MaxRangeOverlaps`, `MaxRangeReversals`. `None` is `unlimited`, `Some(0)` is
/// `none`. A request that exceeds a limit gets the whole body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeLimits {
    /// Ranges after merging. Default 200.
    pub ranges: Option<usize>,
    /// Ranges that overlap or touch the one before. Default 20.
    pub overlaps: Option<usize>,
    /// Overlapping ranges that begin before the preceding one. Default 20.
    pub reversals: Option<usize>,
}

impl Default for RangeLimits {
    fn default() -> Self {
        RangeLimits { ranges: Some(200), overlaps: Some(20), reversals: Some(20) }
    }
}

/// The outcome of a `Range` field for a body of known length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// Send the whole body with 200.
    Whole,
    /// Send the listed ranges with 206: a single one by itself, several as `multipart/byteranges`.
    Parts,
    /// Respond with 416.
    Unsatisfiable,
}

/// Parses the value of a `Range` field for a body of `length` bytes into `ranges`, which is cleared
/// first.
///
/// A malformed range invalidates the field. A range that overlaps or touches the preceding one is
/// merged with it. An empty body is always sent whole.
pub fn select(
    value: &[u8],
    length: u64,
    limits: &RangeLimits,
    ranges: &mut Vec<ByteRange>,
) -> Selection {
    ranges.clear();
    let Some(list) = strip_unit(value).filter(|_| length > 0) else { return Selection::Whole };
    let mut merging = Merging { ranges, current: None, overlaps: 0, reversals: 0 };
    let mut is_unsatisfiable = false;
    for (at, spec) in list.split(|byte| *byte == b',').enumerate() {
        if spec.is_empty() {
            // The first element may not be empty; later ones are skipped.
            if at == 0 {
                return Selection::Whole;
            }
            continue;
        }
        match parse_spec(spec, length) {
            Spec::Malformed => return Selection::Whole,
            Spec::Beyond => is_unsatisfiable = true,
            // An open-ended range over the whole body overrides all others.
            Spec::Range(range) if range.first == 0 && spec.ends_with(b"-") => {
                merging.ranges.clear();
                merging.current = Some(range);
                break;
            }
            Spec::Range(range) => merging.add(range),
        }
    }
    let (overlaps, reversals) = merging.finish();
    if ranges.is_empty() {
        return if is_unsatisfiable { Selection::Unsatisfiable } else { Selection::Whole };
    }
    let exceeds = |count: usize, limit: Option<usize>| limit.is_some_and(|limit| count > limit);
    let sum = ranges.iter().fold(0u64, |sum, range| sum.saturating_add(range.len()));
    let is_refused = sum > length
        || exceeds(ranges.len(), limits.ranges)
        || exceeds(overlaps, limits.overlaps)
        || exceeds(reversals, limits.reversals);
    if is_refused { Selection::Whole } else { Selection::Parts }
}

/// Strips `bytes=`, ignoring case.
fn strip_unit(value: &[u8]) -> Option<&[u8]> {
    let (unit, list) = value.split_at_checked(6)?;
    unit.eq_ignore_ascii_case(b"bytes=").then_some(list)
}

enum Spec {
    Malformed,
    Beyond,
    Range(ByteRange),
}

fn parse_spec(spec: &[u8], length: u64) -> Spec {
    let Some(dash) = spec.iter().position(|byte| *byte == b'-') else { return Spec::Malformed };
    let (first, last) = (&spec[..dash], &spec[dash + 1..]);
    if first.is_empty() {
        return match decimal(last) {
            None | Some(0) => Spec::Malformed,
            Some(suffix) => {
                Spec::Range(ByteRange { first: length.saturating_sub(suffix), last: length - 1 })
            }
        };
    }
    let Some(first) = decimal(first) else { return Spec::Malformed };
    let last = match decimal(last) {
        Some(last) if last < first => return Spec::Malformed,
        Some(last) => last.min(length - 1),
        None if last.is_empty() => length - 1,
        None => return Spec::Malformed,
    };
    if first >= length { Spec::Beyond } else { Spec::Range(ByteRange { first, last }) }
}

/// The current range, and the number of merges so far.
struct Merging<'a> {
    ranges: &'a mut Vec<ByteRange>,
    current: Option<ByteRange>,
    overlaps: usize,
    reversals: usize,
}

impl Merging<'_> {
    fn add(&mut self, next: ByteRange) {
        let Some(current) = &mut self.current else {
            self.current = Some(next);
            return;
        };
        let touches = next.first <= current.last + 1 && next.last + 1 >= current.first;
        if !touches {
            self.ranges.push(*current);
            *current = next;
            return;
        }
        if next.first < current.first {
            current.first = next.first;
            self.reversals += 1;
        }
        current.last = current.last.max(next.last);
        self.overlaps += 1;
    }

    fn finish(self) -> (usize, usize) {
        self.ranges.extend(self.current);
        (self.overlaps, self.reversals)
    }
}

/// Appends the value of `Content-Range`: `bytes 0-9/100`.
pub fn write_content_range(out: &mut Vec<u8>, range: ByteRange, length: u64) {
    out.extend_from_slice(b"bytes ");
    write_decimal(out, range.first);
    out.push(b'-');
    write_decimal(out, range.last);
    out.push(b'/');
    write_decimal(out, length);
}

/// Length of a multipart boundary.
pub const BOUNDARY_BYTES: usize = 16;

/// Formats a multipart boundary from a random number, which is fixed for the life of the server
/// (`ap_multipart_boundary`).
pub fn boundary(random: u64) -> [u8; BOUNDARY_BYTES] {
    let mut out = [0; BOUNDARY_BYTES];
    for (at, digit) in out.iter_mut().enumerate() {
        *digit = b"0123456789abcdef"[(random >> (60 - 4 * at) & 15) as usize];
    }
    out
}

/// Appends the boundary and fields before a part of a `multipart/byteranges` body.
pub fn write_part_head(
    out: &mut Vec<u8>,
    boundary: &[u8],
    content_type: Option<&[u8]>,
    range: ByteRange,
    length: u64,
) {
    out.extend_from_slice(b"\r\n--");
    out.extend_from_slice(boundary);
    if let Some(content_type) = content_type {
        out.extend_from_slice(b"\r\nContent-type: ");
        out.extend_from_slice(content_type);
    }
    out.extend_from_slice(b"\r\nContent-range: ");
    write_content_range(out, range, length);
    out.extend_from_slice(b"\r\n\r\n");
}

/// Appends the closing boundary.
pub fn write_last_boundary(out: &mut Vec<u8>, boundary: &[u8]) {
    out.extend_from_slice(b"\r\n--");
    out.extend_from_slice(boundary);
    out.extend_from_slice(b"--\r\n");
}

/// Appends a number in decimal digits.
pub fn write_decimal(out: &mut Vec<u8>, value: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = value;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(value: &str) -> String {
        let mut ranges = Vec::new();
        match select(value.as_bytes(), 100, &RangeLimits::default(), &mut ranges) {
            Selection::Whole => "200".into(),
            Selection::Unsatisfiable => "416".into(),
            Selection::Parts => {
                let parts = ranges.iter().map(|range| format!("{}-{}", range.first, range.last));
                parts.collect::<Vec<_>>().join(" ")
            }
        }
    }

    // Each row is Apache 2.4.71's response for a file of 100 bytes.
    #[test]
    fn ranges_are_apaches() {
        for (value, answer) in [
            ("bytes=0-9", "0-9"),
            ("Bytes=00-09", "0-9"),
            ("bytes=0-", "0-99"),
            ("bytes=-5", "95-99"),
            ("bytes=-200", "0-99"),
            ("bytes=-0", "200"),
            ("bytes=0-9,-0", "200"),
            ("bytes=99-", "99-99"),
            ("bytes=50-200", "50-99"),
            ("bytes=100-", "416"),
            ("bytes=200-300,400-500", "416"),
            ("bytes=200-300,0-9", "0-9"),
            ("bytes=10-5", "200"),
            ("bytes=0-9,10-5", "200"),
            ("bytes=0-0,1-1", "0-1"),
            ("bytes=5-5,0-0", "5-5 0-0"),
            ("bytes=0-9,5-15,10-20", "0-20"),
            ("bytes=0-50,10-20", "0-50"),
            ("bytes=10-20,0-50", "0-50"),
            ("bytes=50-60,40-55", "40-60"),
            ("bytes=20-29,10-19,0-9", "0-29"),
            ("bytes=0-9,20-29,10-19", "0-9 10-29"),
            ("bytes=0-9,11-19", "0-9 11-19"),
            ("bytes=0-59,70-71,0-37", "0-59 70-71 0-37"),
            ("bytes=0-59,70-71,0-38", "200"),
            ("bytes=0-9,", "0-9"),
            ("bytes=0-9,,20-29", "0-9 20-29"),
            ("bytes=,0-9", "200"),
            ("bytes=0-9, 20-29", "200"),
            ("bytes= 0-9", "200"),
            ("bytes =0-9", "200"),
            ("bytes=", "200"),
            ("bytes=-", "200"),
            ("bytes=1", "200"),
            ("bytes=a,0-9", "200"),
            ("bytes=1-5-7", "200"),
            ("bytes=--5", "200"),
            ("bytes=+1-5", "200"),
            ("bytes=99999999999999999999-", "200"),
            ("items=0-9", "200"),
            ("bytes=50-51,10-20,0-,30-40", "0-99"),
            ("bytes=0-,x", "0-99"),
            ("bytes=x,0-", "200"),
        ] {
            assert_eq!(text(value), answer, "{value}");
        }
    }

    // Apache 2.4.71 accepts 20 merges and refuses 21. Reversed ranges that are apart do not count.
    #[test]
    fn limits() {
        let list = |count: u64, of: fn(u64) -> u64| {
            let specs = (0..count).map(|n| format!("{0}-{0}", of(n)));
            format!("bytes={}", specs.collect::<Vec<_>>().join(","))
        };
        assert_eq!(text(&list(21, |n| n)), "0-20");
        assert_eq!(text(&list(22, |n| n)), "200");
        assert_eq!(text(&list(21, |n| 98 - n)), "78-98");
        assert_eq!(text(&list(22, |n| 98 - n)), "200");
        assert_eq!(text(&list(23, |n| 98 - 2 * n)).split(' ').count(), 23);
        let none = RangeLimits { ranges: Some(0), ..RangeLimits::default() };
        assert_eq!(select(b"bytes=0-1", 9, &none, &mut Vec::new()), Selection::Whole);
        let empty = RangeLimits::default();
        assert_eq!(select(b"bytes=0-0", 0, &empty, &mut Vec::new()), Selection::Whole);
    }

    // Apache 2.4.71: the body of `bytes=0-0,5-5`, 134 bytes with this boundary.
    #[test]
    fn multipart_body() {
        let mut body = Vec::new();
        let mark = boundary(0x2e78_1529_301c_01bc);
        for (first, byte) in [(0, b'a'), (5, b'f')] {
            write_part_head(&mut body, &mark, None, ByteRange { first, last: first }, 100);
            body.push(byte);
        }
        write_last_boundary(&mut body, &mark);
        let expected = "\r\n--2e781529301c01bc\r\nContent-range: bytes 0-0/100\r\n\r\na\
            \r\n--2e781529301c01bc\r\nContent-range: bytes 5-5/100\r\n\r\nf\
            \r\n--2e781529301c01bc--\r\n";
        assert_eq!(body, expected.as_bytes());
        assert_eq!(body.len(), 134);
    }

    proptest! {
        #[test]
        fn ranges_lie_in_the_body(value in "bytes=[0-9,-]{0,60}", length in 0u64..200) {
            let mut ranges = Vec::new();
            let unlimited = RangeLimits { ranges: None, overlaps: None, reversals: None };
            if select(value.as_bytes(), length, &unlimited, &mut ranges) == Selection::Parts {
                prop_assert!(!ranges.is_empty());
                for range in &ranges {
                    prop_assert!(range.first <= range.last && range.last < length);
                }
                prop_assert!(ranges.iter().map(|range| range.len()).sum::<u64>() <= length);
            }
        }

        #[test]
        fn any_bytes_are_read_without_panic(value: Vec<u8>, length: u64) {
            select(&value, length, &RangeLimits::default(), &mut Vec::new());
        }
    }
}
