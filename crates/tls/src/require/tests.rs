use super::*;
use proptest::prelude::*;

struct Request(Vec<Pattern>);

impl Facts for Request {
    fn variable(&self, name: &str) -> Vec<u8> {
        match name {
            "SSL_CIPHER" => b"TLS_AES_256_GCM_SHA384".to_vec(),
            "SSL_CLIENT_S_DN_O" => b"Snake Oil, Ltd.".to_vec(),
            "SSL_CLIENT_S_DN_OU" => b"CA".to_vec(),
            "TIME_WDAY" => b"3".to_vec(),
            "TIME_HOUR" => b"11".to_vec(),
            "REMOTE_ADDR" => b"192.76.162.9".to_vec(),
            _ => Vec::new(),
        }
    }

    fn function(&self, name: &str, argument: &[u8]) -> Vec<u8> {
        [name.as_bytes(), b":", argument].concat()
    }

    fn peer_extensions(&self, oid: &str) -> Vec<Vec<u8>> {
        if oid == "1.2.3.4.5.6" { vec![b"foobar".to_vec()] } else { vec![] }
    }

    /// Enough of regular expressions for these tests: a beginning.
    fn matches(&self, index: usize, value: &[u8]) -> bool {
        let Pattern { source, .. } = &self.0[index];
        value.starts_with(source.trim_start_matches('^').as_bytes())
    }
}

fn holds(text: &str) -> bool {
    let requirement = Requirement::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    requirement.holds(&Request(requirement.patterns().to_vec()))
}

#[test]
fn the_manuals_example() {
    assert!(holds(
        "( %{SSL_CIPHER} !~ m/^(EXP|NULL)-/ \
          and %{SSL_CLIENT_S_DN_O} eq \"Snake Oil, Ltd.\" \
          and %{SSL_CLIENT_S_DN_OU} in {\"Staff\", \"CA\", \"Dev\"} \
          and %{TIME_WDAY} -ge 1 and %{TIME_WDAY} -le 5 \
          and %{TIME_HOUR} -ge 8 and %{TIME_HOUR} -le 20 ) \
          or %{REMOTE_ADDR} =~ m/^192.76.162./"
    ));
    assert!(holds("\"foobar\" in PeerExtList(\"1.2.3.4.5.6\")"));
    assert!(!holds("\"foo\" in PeerExtList(\"1.2.3.4.5.6\")"));
}

#[test]
fn lengths_are_compared_first() {
    assert!(holds("\"9\" < \"10\""));
    assert!(holds("\"b\" lt \"aa\""));
    assert!(holds("\"ab\" > \"aa\" && 5 >= 5 and 5 le 5"));
    assert!(holds("\"9x\" -lt \"10\" and \"-3\" -lt 2"));
    assert!(holds("10 != 9 and 10 ne 9 and \"a\" = 'a'"));
}

#[test]
fn precedence_and_negation() {
    assert!(holds("true || false && false"));
    assert!(!holds("(true or false) and false"));
    assert!(holds("! \"a\" == \"b\""));
    assert!(holds("!(false) and not false"));
    assert!(!holds("!true"));
}

#[test]
fn strings_and_functions() {
    assert!(holds("\"ou=%{SSL_CLIENT_S_DN_OU}!\" == \"ou=CA!\""));
    assert!(holds("file(\"/a\") == \"file:/a\""));
    assert!(holds("\"a\\\"b\" == 'a\"b'"));
    assert!(holds("%{NOTHING} == \"\""));
    let parsed = Requirement::parse("%{A} =~ m#a/b\\#c#i").unwrap();
    assert_eq!(parsed.patterns(), [Pattern { source: "a/b#c".into(), flags: "i".into() }]);
}

#[test]
fn errors_have_a_place() {
    for (text, offset) in [
        ("", 0),
        ("%{A", 0),
        ("%{A} ==", 7),
        ("%{A} == \"x", 10),
        ("%{A} =~ m/x", 11),
        ("%{A} foo \"x\"", 8),
        ("true true", 9),
        ("%{A} in \"x\"", 11),
        ("%{A} -foo 3", 9),
        ("@", 0),
    ] {
        let error = Requirement::parse(text).unwrap_err();
        assert_eq!(error.offset, offset, "{text}: {error}");
    }
    assert!(Requirement::parse(&"(".repeat(10_000)).is_err());
    assert!(Requirement::parse(&"!".repeat(10_000)).is_err());
}

proptest! {
    #[test]
    fn any_text_is_survived(text in "[-a-z0-9 %{}()!=<>~/\"'\\\\&|,ä]{0,60}") {
        let _ = Requirement::parse(&text);
    }
}
