use super::*;

const ETAG: &str = "\"64-59b08c1fa4000\"";
const MTIME: i64 = 1_577_836_800;
const SAME: &str = "Wed, 01 Jan 2020 00:00:00 GMT";
const BEFORE: &str = "Tue, 31 Dec 2019 23:59:59 GMT";
const AFTER: &str = "Wed, 01 Jan 2020 00:00:01 GMT";
const FUTURE: &str = "Wed, 01 Jan 2070 00:00:01 GMT";

/// 200, 206 (a range would be sent), 304 or 412.
fn status(fields: &str, method: Method, age: i64) -> u16 {
    let fields = fields.replace("ETAG", ETAG).replace("SAME", SAME).replace("BEFORE", BEFORE);
    let fields = fields.replace("AFTER", AFTER).replace("FUTURE", FUTURE);
    let mut request = Table::new();
    for field in fields.split('|').filter(|field| !field.is_empty()) {
        let (name, value) = field.split_once(": ").unwrap();
        request.add(name.as_bytes(), value.as_bytes());
    }
    let known = Validators {
        method,
        etag: Some(ETAG.as_bytes()),
        last_modified: Some(MTIME),
        now: MTIME + age,
    };
    let decided = meets_conditions(&request, &known).status();
    let ranged = request.contains(b"Range") && if_range(&request, &known) != Condition::NoMatch;
    decided.unwrap_or(if ranged { 206 } else { 200 })
}

// Each row is Apache 2.4.71's response for a file of MTIME with ETAG.
#[test]
fn old_file() {
    for (fields, expected) in [
        ("Range: r|If-Range: ETAG", 206),
        ("Range: r|If-Range: W/ETAG", 200),
        ("Range: r|If-Range: \"x\"", 200),
        ("Range: r|If-Range: \"x\", ETAG", 200),
        ("Range: r|If-Range: SAME", 206),
        ("Range: r|If-Range: AFTER", 200),
        ("Range: r|If-Range: BEFORE", 200),
        ("Range: r|If-Range: junk", 200),
        ("Range: r|If-Range: ", 200),
        ("If-None-Match: ETAG", 304),
        ("If-None-Match: W/ETAG", 304),
        ("If-None-Match: *", 304),
        ("If-None-Match: *x", 304),
        ("If-None-Match: \"a\", ETAG", 304),
        ("If-None-Match: \"a\", *", 200),
        ("If-None-Match: \"a\"", 200),
        ("If-None-Match: ", 200),
        ("If-None-Match: 64-59b08c1fa4000", 200),
        ("If-None-Match: \"a\"|If-Modified-Since: SAME", 200),
        ("If-None-Match: ETAG|If-Modified-Since: BEFORE", 200),
        ("If-None-Match: ETAG|If-Modified-Since: SAME", 304),
        ("If-None-Match: ETAG|If-Modified-Since: junk", 200),
        ("If-None-Match: ETAG|If-Modified-Since: FUTURE", 200),
        ("If-None-Match: W/ETAG|Range: r", 206),
        ("If-None-Match: ETAG|Range: r", 304),
        ("If-None-Match: *|Range: r", 304),
        ("If-Modified-Since: SAME", 304),
        ("If-Modified-Since: AFTER", 304),
        ("If-Modified-Since: BEFORE", 200),
        ("If-Modified-Since: FUTURE", 200),
        ("If-Modified-Since: junk", 200),
        ("If-Modified-Since: SAME|Range: r", 304),
        ("If-Unmodified-Since: SAME", 200),
        ("If-Unmodified-Since: BEFORE", 412),
        ("If-Unmodified-Since: AFTER", 200),
        ("If-Unmodified-Since: junk", 200),
        ("If-Match: ETAG", 200),
        ("If-Match: *", 200),
        ("If-Match: \"a\"", 412),
        ("If-Match: W/ETAG", 412),
        ("If-Match: ", 412),
        ("If-Match: ETAG|If-Unmodified-Since: BEFORE", 412),
        ("If-Match: ETAG|If-None-Match: ETAG", 304),
        ("If-None-Match: ETAG|If-Range: \"x\"|Range: r", 200),
        ("If-None-Match: ETAG|If-Range: \"x\"", 304),
        ("If-Modified-Since: SAME|If-Range: \"x\"|Range: r", 200),
        ("If-Modified-Since: SAME|If-Range: ETAG|Range: r", 206),
    ] {
        assert_eq!(status(fields, Method::GET, 100_000_000), expected, "{fields}");
    }
}

#[test]
fn other_methods() {
    for (fields, expected) in [
        ("If-None-Match: ETAG", 412),
        ("If-None-Match: *", 412),
        ("If-None-Match: W/ETAG", 200),
        ("If-None-Match: \"a\"", 200),
        ("If-Modified-Since: SAME", 200),
        ("If-Match: \"x\"", 412),
        ("If-Unmodified-Since: BEFORE", 412),
    ] {
        assert_eq!(status(fields, Method::POST, 100_000_000), expected, "{fields}");
    }
}

// Within a minute of the modification, times are weak validators.
#[test]
fn young_file() {
    for (fields, expected) in [
        ("If-Modified-Since: SAME", 304),
        ("If-Modified-Since: SAME|Range: r", 206),
        ("If-Unmodified-Since: BEFORE", 412),
        ("If-Unmodified-Since: BEFORE|Range: r", 206),
        ("If-Unmodified-Since: SAME", 200),
        ("If-Range: SAME|Range: r", 200),
        ("If-Range: ETAG|Range: r", 206),
        ("If-None-Match: ETAG", 304),
        ("If-None-Match: ETAG|If-Modified-Since: SAME", 304),
        ("If-None-Match: ETAG|If-Modified-Since: SAME|Range: r", 206),
    ] {
        assert_eq!(status(fields, Method::GET, 2), expected, "{fields}");
    }
}
