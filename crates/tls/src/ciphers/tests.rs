use super::*;
use proptest::prelude::*;
use std::process::Command;

fn names(choice: &Choice) -> Vec<&'static str> {
    choice.suites.iter().filter_map(|suite| suite_of(suite.suite())).map(|s| s.name).collect()
}

/// OpenSSL's result for the string, reduced to the suites of rustls.
fn openssl(spec: &str) -> Option<Vec<String>> {
    let output = Command::new("openssl").args(["ciphers", "-s", "-tls1_2", spec]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let known = |name: &&str| TLS12.iter().any(|suite| suite.name == *name);
    Some(text.trim().split(':').filter(known).map(str::to_owned).collect())
}

#[test]
fn strings_mean_what_openssl_makes_of_them() {
    for spec in [
        "DEFAULT",
        "HIGH:!aNULL",
        "HIGH:!aNULL:!MD5:!SEED:!IDEA",
        "EECDH+AESGCM:EDH+AESGCM",
        "AES128:AES256",
        "AES128:CHACHA20:AES256:@STRENGTH",
        "HIGH:+AES256",
        "ALL:-AES128:AES128",
        "ALL:-ECDSA:AES128+ECDSA:ECDSA",
        "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-CHACHA20-POLY1305",
        "SUITEB128",
        "SUITEB192",
        "DEFAULT:!ECDHE+aRSA",
        "HIGH MEDIUM,!AES256",
        "ALL:!kECDHE",
        "aRSA+CHACHA20:AES",
        "DEFAULT:@SECLEVEL=4",
        "FIPS",
        "SHA384:SHA256:AESGCM",
    ] {
        let Some(expected) = openssl(spec) else { return };
        assert_eq!(names(&tls12(spec)), expected, "{spec}");
    }
}

#[test]
fn class_words_are_quiet_and_select_what_openssl_selects() {
    for word in ABSENT_CLASSES.iter().chain(&["ECDH", "kECDHE", "kEECDH", "aECDSA", "TLSv1.2"]) {
        let spec = format!("{word}:!eNULL:@SECLEVEL=0");
        let choice = tls12(&spec);
        assert!(choice.findings.is_empty(), "{word}");
        let Some(expected) = openssl(&spec) else { return };
        assert_eq!(names(&choice), expected, "{word}");
    }
}

#[test]
fn a_named_suite_that_is_not_there_is_reported() {
    let choice = tls12("ECDHE-RSA-AES128-GCM-SHA256:AES128-SHA:DHE-RSA-AES128-GCM-SHA256:!RC4-MD5");
    assert_eq!(names(&choice), ["ECDHE-RSA-AES128-GCM-SHA256"]);
    assert_eq!(choice.findings.len(), 2);
    assert!(choice.findings.iter().any(|finding| finding.message.contains("AES128-SHA")));
}

#[test]
fn nothing_remains_of_what_rustls_lacks() {
    assert!(tls12("kRSA").suites.is_empty());
    assert!(tls12("AES128-SHA").suites.is_empty());
}

#[test]
fn security_levels() {
    assert!(tls12("DEFAULT:@SECLEVEL=2").findings.is_empty());
    assert_eq!(tls12("DEFAULT:@SECLEVEL=3").findings.len(), 1);
    assert_eq!(tls12("DEFAULT:@SECLEVEL=9").findings[0].severity, crate::Severity::Error);
}

#[test]
fn tls13_lists() {
    let choice = tls13("TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_CCM_SHA256").unwrap();
    assert_eq!(names(&choice), ["TLS_CHACHA20_POLY1305_SHA256"]);
    assert_eq!(choice.findings.len(), 1);
    assert_eq!(tls13("HIGH").unwrap_err().number, Some(10127));
}

#[test]
fn what_the_line_concerns() {
    assert_eq!(Target::parse("SSL"), Ok(Target::Tls12));
    assert_eq!(Target::parse("TLSv1.3"), Ok(Target::Tls13));
    assert_eq!(Target::parse("SSLv3").unwrap_err().message, "protocol 'SSLv3' not supported");
}

proptest! {
    #[test]
    fn no_string_adds_a_suite_twice(spec in "[-+!:@A-Za-z0-9=. ]{0,60}") {
        let mut names = names(&tls12(&spec));
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        prop_assert_eq!(names.len(), count);
    }
}
