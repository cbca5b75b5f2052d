//! Times as ctime(3) shows them.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// `seconds` since 1970 as local time: `Sun Nov  6 08:49:37 1994`, but with a day of two digits. A
/// time out of range is 1970.
///
/// Source: `apr_ctime`
pub(crate) fn ctime(seconds: i64) -> String {
    let time = Timestamp::from_second(seconds).unwrap_or_default();
    time.to_zoned(TimeZone::system()).strftime("%a %b %d %H:%M:%S %Y").to_string()
}
