use std::path::Path;

use super::format::{Format, parse_format};
use super::sinks::Target;

fn path(text: &str) -> Option<Target> {
    super::target::parse_target(text.as_bytes(), Path::new("/etc/apache2"))
}

#[test]
fn targets_are_files_pipes_and_syslog() {
    assert_eq!(path("logs/e"), Some(Target::File("/etc/apache2/logs/e".into())));
    assert_eq!(path("syslog"), Some(Target::Syslog(23, "tamarack".into())));
    assert_eq!(path("syslog:user:x"), Some(Target::Syslog(1, "x".into())));
    assert_eq!(path("syslog::x"), Some(Target::Syslog(23, "x".into())));
    assert_eq!(path("syslog:bogus"), Some(Target::Syslog(23, "tamarack".into())));
    assert_eq!(path("syslogs"), Some(Target::File("/etc/apache2/syslogs".into())));
    assert!(matches!(path("|/bin/cat"), Some(Target::Pipe(_))));
    assert_eq!(path("|"), None);
}

#[test]
fn formats_are_refused_in_apaches_words() {
    let wrong = |text: &str| parse_format(text.as_bytes()).unwrap_err();
    assert_eq!(wrong("%q"), "Unrecognized error log format directive %q");
    assert!(wrong("%{foo").starts_with("Ran off end"));
    assert!(wrong("100%").starts_with("Ran off end"));
    assert!(!parse_format(b"%t %l").unwrap().has_message());
    assert!(Format::standard().has_message());
}
