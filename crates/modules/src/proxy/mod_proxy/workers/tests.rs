use super::*;

fn found(names: &[&str], url: &str, kind: Kind) -> Option<usize> {
    let names = names.iter().map(|name| (name.as_bytes(), name.contains('$')));
    best(names, url.as_bytes(), kind)
}

#[test]
fn the_longest_name_that_covers_the_authority_is_found() {
    let names = ["http://h/", "http://h/a", "http://h:81", "fcgi://localhost"];
    for (url, place) in [
        ("http://h/ab", Some(1)),
        ("HTTP://H/b", Some(0)),
        ("http://h/A", Some(0)),
        ("http://h:81/a", Some(2)),
        ("http://h:8/a", None),
        ("http://h", None),
        ("fcgi://localhost/var/www/a.php", Some(3)),
        ("fcgi://localhost2/", None),
        ("nonsense", None),
        ("http://", None),
    ] {
        assert_eq!(found(&names, url, Kind::Any), place, "{url}");
    }
}

#[test]
fn captures_stand_for_any_text() {
    let names = ["http://h/x$1/y", "http://h$1", "http://h/"];
    assert_eq!(found(&names, "http://h/x12/y", Kind::Any), Some(0));
    assert_eq!(found(&names, "http://h/x12/z", Kind::Pattern), Some(1));
    assert_eq!(found(&names, "http://h/x12/y", Kind::Prefix), Some(2));
    assert_eq!(found(&["http://$1$2"], "http://h.test:81/x", Kind::Any), Some(0));
    // The name is longer than the URL.
    assert_eq!(found(&names[..1], "http://h/x/y", Kind::Any), None);
}

#[test]
fn a_balancer_is_named_without_path() {
    assert_eq!(balancer_name(b"Balancer://My/a/b").as_deref(), Some(&b"balancer://my"[..]));
    assert_eq!(balancer_name(b"balancer://"), None);
    assert_eq!(balancer_name(b"http://B/a").as_deref(), Some(&b"http://b"[..]));
    assert_eq!(balancer_name(b"b"), None);
}
