use super::*;

fn entry(from: &str, to: &str) -> Reverse {
    Reverse { from: from.into(), to: to.into(), interpolates: false }
}

#[test]
fn urls_are_mapped_by_their_beginning() {
    let mapped = |from, to, url: &str| below(&entry(from, to), url.as_bytes());
    let is = |path: &str| Some(path.as_bytes().to_vec());
    assert_eq!(mapped("/a/", "http://h:1/", "HTTP://H:1/x?y"), is("/a/x?y"));
    assert_eq!(mapped("/a", "http://h:1", "http://h:1"), is("/a"));
    assert_eq!(mapped("/a", "http://h:1", "http://h:10/"), is("/a0/"));
    assert_eq!(mapped("/a/", "/app/", "http://other/app/x"), is("/a/x"));
    assert_eq!(mapped("/a/", "/app/", "/app/x"), is("/a/x"));
    assert_eq!(mapped("/a/", "http://h:1/b/", "http://h:1/"), None);
    assert_eq!(mapped("/a/", "", "http://h:1/"), None);
}

#[test]
fn cookies_get_the_domain_and_path_of_this_server() {
    let (paths, domains) = ([entry("/app", "/pub")], [entry("in.test", "out.example")]);
    let mapped = |value: &'static str| {
        let mapped = mapped_cookie(&paths, &domains, value.as_bytes());
        String::from_utf8(mapped.into_owned()).unwrap()
    };
    assert_eq!(mapped("a=b; path=/app/x; secure"), "a=b; path=/pub; secure");
    assert_eq!(mapped("a=b;Domain=IN.TEST;Path=/app"), "a=b;Domain=out.example;Path=/pub");
    assert_eq!(mapped("a=b; Path=/app; Domain=in.test"), "a=b; Path=/pub; Domain=out.example");
    assert_eq!(mapped("a=b; Path=/other"), "a=b; Path=/other");
    assert_eq!(mapped("a=b; path=/app; path=/c"), "a=b; path=/app; path=/c");
    assert_eq!(mapped("a=b"), "a=b");
}

#[test]
fn errors_are_overridden_by_their_status() {
    let some = ErrorOverride { is_on: true, statuses: vec![404, 502] };
    assert!(some.has(404) && !some.has(500) && !some.has(200));
    let all = ErrorOverride { is_on: true, statuses: vec![] };
    assert!(all.has(500) && !all.has(302) && !ErrorOverride::default().has(500));
}
