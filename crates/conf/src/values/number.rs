//! Flags, numbers, sizes and times.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::diag::Diagnostic;
use crate::tree::{Arg, Node};

/// Parses `On` or `Off`, ignoring case.
///
/// # Errors
/// `<Directive> must be On or Off`.
pub fn flag(node: &Node, arg: &Arg) -> Result<bool, Diagnostic> {
    if arg.is("on") {
        return Ok(true);
    }
    if arg.is("off") {
        return Ok(false);
    }
    Err(arg.error(format!("{} must be On or Off", node.name)).with_label("neither On nor Off"))
}

/// Parses a decimal number that is the whole argument.
///
/// # Errors
/// `Invalid value for directive <Directive>, expected integer`. For a number outside of the bounds,
/// the message names them.
pub fn integer(node: &Node, arg: &Arg, bounds: RangeInclusive<i64>) -> Result<i64, Diagnostic> {
    let number = std::str::from_utf8(&arg.text).ok().and_then(|text| text.parse::<i64>().ok());
    match number {
        Some(number) if bounds.contains(&number) => Ok(number),
        Some(_) => {
            let (low, high) = (bounds.start(), bounds.end());
            let message = format!("{} must be between {low} and {high}", node.name);
            Err(arg.error(message).with_label("out of range"))
        }
        None => {
            let name = &node.name;
            let message = format!("Invalid value for directive {name}, expected integer");
            Err(arg.error(message).with_label("not a number"))
        }
    }
}

/// Parses a number of bytes with an optional unit `B`, `K`, `KB`, `M`, `MB`, `G`, `GB` (powers of
/// 1024).
///
/// Returns `None` if it is invalid, negative, or does not fit.
pub fn size(text: &[u8]) -> Option<u64> {
    let (number, unit) = leading_number(text)?;
    let factor: u64 = match unit.to_ascii_lowercase().as_slice() {
        b"" | b"b" => 1,
        b"k" | b"kb" => 1 << 10,
        b"m" | b"mb" => 1 << 20,
        b"g" | b"gb" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(factor)
}

/// The unit of a time that is written without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// `ms`
    Milliseconds,
    /// `s`
    Seconds,
    /// `mi`, `min`
    Minutes,
    /// `h`
    Hours,
}

/// Parses a time with an optional unit: `ms`, `s`, `mi` or `min`, `h`, in any case.
///
/// As in Apache the first letters decide, so `5seconds` and `5minutes` are valid and a plain `m` is
/// not; a unit without a number is 0. Returns `None` for invalid input. Source:
/// `ap_timeout_parameter_parse`.
pub fn timeout(text: &[u8], default: Unit) -> Option<Duration> {
    let text = text.trim_ascii_start();
    let text = text.strip_prefix(b"+").unwrap_or(text);
    let (number, unit) = match text.first() {
        Some(first) if first.is_ascii_alphabetic() => (0, text),
        _ => leading_number(text)?,
    };
    let unit = match unit.to_ascii_lowercase().as_slice() {
        [] => default,
        [b's', ..] => Unit::Seconds,
        [b'h', ..] => Unit::Hours,
        [b'm', b's', ..] => Unit::Milliseconds,
        [b'm', b'i', ..] => Unit::Minutes,
        _ => return None,
    };
    Some(match unit {
        Unit::Milliseconds => Duration::from_millis(number),
        Unit::Seconds => Duration::from_secs(number),
        Unit::Minutes => Duration::from_secs(number.checked_mul(60)?),
        Unit::Hours => Duration::from_secs(number.checked_mul(3600)?),
    })
}

/// Parses decimal digits and returns the rest. A number that does not fit is `None`.
fn leading_number(text: &[u8]) -> Option<(u64, &[u8])> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, unit) = text.split_at_checked(digits)?;
    let number = std::str::from_utf8(number).ok()?.parse().ok()?;
    Some((number, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        let parse = |text: &str| timeout(text.as_bytes(), Unit::Seconds);
        assert_eq!(parse("5"), Some(Duration::from_secs(5)));
        assert_eq!(parse("250ms"), Some(Duration::from_millis(250)));
        assert_eq!(parse("2MIN"), Some(Duration::from_secs(120)));
        assert_eq!(parse("1h"), Some(Duration::from_secs(3600)));
        assert_eq!(parse("3seconds"), Some(Duration::from_secs(3)));
        assert_eq!((parse(" 5"), parse("ms")), (parse("5s"), parse("0")));
        assert_eq!(timeout(b"7", Unit::Milliseconds), Some(Duration::from_millis(7)));
        for bad in ["", "x", "-1", "5m", "5d", "99999999999999999999", "9999999999999999999h"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn sizes() {
        assert_eq!(size(b"10"), Some(10));
        assert_eq!(size(b"2KB"), Some(2048));
        assert_eq!(size(b"1g"), Some(1 << 30));
        assert_eq!(size(b"1x"), None);
        assert_eq!(size(b"99999999999999999g"), None);
    }
}
