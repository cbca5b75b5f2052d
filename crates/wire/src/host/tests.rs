use super::*;
use crate::request::{HeadLimits, HeadOptions, HeadParser};

fn host_of(line: &str, field: &str, strict: bool) -> (RequestHost, RequestHead) {
    let bytes = format!("{line} HTTP/1.1\r\nHost: {field}\r\n\r\n");
    let methods = crate::MethodRegistry::new();
    let options =
        HeadOptions { strict, registered_methods: false, allow_http09: true, methods: &methods };
    let mut head = RequestHead::new();
    HeadParser::new().parse(&mut head, bytes.as_bytes(), &HeadLimits::default(), &options);
    let mut host = RequestHost::new();
    let _ = host.resolve(&mut head, b"http", strict);
    (host, head)
}

// Apache 2.4.71: SERVER_NAME with UseCanonicalName Off.
#[test]
fn names_are_lower_case_without_port_and_dot() {
    for (field, name, port) in [
        ("A.B.", "a.b", 0),
        ("a:080", "a", 80),
        ("[::FFFF:1.2.3.4]", "::ffff:1.2.3.4", 0),
        ("[::1]:80", "::1", 80),
        ("1.2.3.4.", "1.2.3.4", 0),
        (".a", ".a", 0),
    ] {
        let (host, _) = host_of("GET /", field, true);
        assert_eq!((host.name(), host.port), (name.as_bytes(), port), "{field}");
        assert!(host.is_given);
    }
}

// Apache 2.4.71: Strict replaces the field by the target's host, Unsafe keeps it.
#[test]
fn the_target_comes_before_the_field() {
    for (target, strict, name, field) in [
        ("http://A.B:80/", true, "a.b", "a.b:80"),
        ("http://a:/", true, "a", "a:"),
        ("http://a:70000/", true, "a", "a:70000"),
        ("http://[::1]:8/", true, "::1", "[::1]:8"),
        ("http:///x", true, "", ""),
        ("http://A.B/", false, "a.b", "h"),
        ("https://a/", true, "h", "h"),
        ("http:/a", true, "h", "h"),
    ] {
        let (host, head) = host_of(&format!("GET {target}"), "h", strict);
        assert_eq!(host.name(), name.as_bytes(), "{target}");
        assert_eq!(head.header(b"Host"), Some(field.as_bytes()), "{target}");
    }
}

#[test]
fn a_target_s_host_does_not_outlive_its_request() {
    for strict in [true, false] {
        let mut host = RequestHost::new();
        for (target, name) in [("http://c/", "c"), ("/", "")] {
            let (_, mut head) = host_of(&format!("GET {target}"), "", strict);
            let _ = host.resolve(&mut head, b"http", strict);
            assert_eq!(host.name(), name.as_bytes());
            assert_eq!(host.is_given, !name.is_empty());
        }
    }
}

#[test]
fn a_host_is_recycled() {
    let mut host = RequestHost::new();
    for (target, field, name) in [
        ("/", "A:81", "a"),
        ("/", "A:81", "a"),
        ("/", "", ""),
        ("/", "b", "b"),
        ("http://c/", "b", "c"),
        ("/", "b", "b"),
        ("/", "a b", ""),
        ("/", "b", "b"),
    ] {
        let (_, mut head) = host_of(&format!("GET {target}"), field, true);
        let outcome = host.resolve(&mut head, b"http", true);
        assert_eq!(host.name(), name.as_bytes(), "{target} {field}");
        assert_eq!(host.is_given, !name.is_empty(), "{target} {field}");
        assert_eq!(outcome.is_err(), field == "a b");
        assert_eq!(host.port, if field == "A:81" { 81 } else { 0 });
    }
}

proptest::proptest! {
    #[test]
    fn the_quick_look_agrees_with_the_exact_rules(
        field in "[aB0-2._:\\[\\]-]{1,12}|[0-2]{1,2}(\\.[0-2]{1,2}){2,4}(:[0-9]{0,6})?",
        strict: bool,
    ) {
        if let Some((name, port)) = plain_host(field.as_bytes()) {
            let mut exact = RequestHost::new();
            proptest::prop_assert!(exact.take_field(field.as_bytes(), strict).is_ok());
            proptest::prop_assert_eq!(exact.name(), name.to_ascii_lowercase());
            proptest::prop_assert_eq!(exact.port, port);
            proptest::prop_assert!(exact.is_given && !exact.is_ipv6);
        }
    }
}
