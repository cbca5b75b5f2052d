//! Formats numbers as on Apache's pages.

use std::fmt::Write;

/// Formats a number as APR's `%g` with `precision` digits: no zero before the point, no trailing
/// zeros.
pub(super) fn general(value: f64, precision: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return "0".to_owned();
    }
    let scientific = format!("{:.*e}", precision.saturating_sub(1), value);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let places = i32::try_from(precision).unwrap_or(i32::MAX);
    if exponent < -4 || exponent >= places {
        let mantissa = trim(mantissa);
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    let decimals = usize::try_from(places - 1 - exponent).unwrap_or(0);
    let plain = format!("{value:.decimals$}");
    let plain = if decimals > 0 { trim(&plain) } else { &plain };
    plain.strip_prefix("0.").map_or_else(|| plain.to_owned(), |rest| format!(".{rest}"))
}

fn trim(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}

/// Bytes in a kilobyte.
pub(super) const KILO: f64 = 1024.0;
const MEGA: f64 = KILO * KILO;
const GIGA: f64 = MEGA * KILO;

/// Formats bytes in a suitable unit (`format_byte_out`).
pub(super) fn bytes(bytes: f64) -> String {
    if bytes < 5.0 * KILO {
        format!("{} B", bytes.trunc())
    } else if bytes < MEGA / 2.0 {
        format!("{:.1} kB", bytes / KILO)
    } else if bytes < GIGA / 2.0 {
        format!("{:.1} MB", bytes / MEGA)
    } else {
        format!("{:.1} GB", bytes / GIGA)
    }
}

/// Formats kilobytes in a suitable unit (`format_kbyte_out`).
pub(super) fn kilobytes(kilobytes: u64) -> String {
    let value = kilobytes as f64;
    if value < KILO {
        format!("{kilobytes} kB")
    } else if value < MEGA {
        format!("{:.1} MB", value / KILO)
    } else {
        format!("{:.1} GB", value / MEGA)
    }
}

/// Formats a time in words, each after a blank (`show_time`).
pub(super) fn time(seconds: u64) -> String {
    let parts = [
        (seconds / 86_400, "day"),
        (seconds / 3600 % 24, "hour"),
        (seconds / 60 % 60, "minute"),
        (seconds % 60, "second"),
    ];
    let mut out = String::new();
    for (count, unit) in parts.into_iter().filter(|(count, _)| *count > 0) {
        // Writing to a String can't fail.
        let _ = write!(out, " {count} {unit}{}", if count == 1 { "" } else { "s" });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn general_numbers_are_as_apr_writes_them() {
        let all = [
            (0.0, 6, "0"),
            (3.0, 6, "3"),
            (2.0 / 3.0, 6, ".666667"),
            (0.0123, 6, ".0123"),
            (1234.5678, 6, "1234.57"),
            (1_234_567.0, 6, "1.23457e+06"),
            (0.5, 3, ".5"),
            (12.345, 3, "12.3"),
            (1234.0, 3, "1.23e+03"),
        ];
        for (value, precision, shown) in all {
            assert_eq!(general(value, precision), shown);
        }
    }

    #[test]
    fn sizes_and_times_have_units() {
        assert_eq!(bytes(512.4), "512 B");
        assert_eq!(bytes(6144.0), "6.0 kB");
        assert_eq!(bytes(3_145_728.0), "3.0 MB");
        assert_eq!((kilobytes(2), kilobytes(2048)), ("2 kB".into(), "2.0 MB".into()));
        assert_eq!(time(1), " 1 second");
        assert_eq!(time(90_061), " 1 day 1 hour 1 minute 1 second");
    }
}
