//! Regular expressions that take long: which requests wait for them, and the log.

use std::fs;
use std::thread;

use crate::others::assert_serves_others;
use crate::site::Site;

/// A condition that takes more steps than Apache allows, for the subject below.
const CONDITION: &str = "%{QUERY_STRING} =~ /^(a+)+$/";
const LINE: &str = "AH20040";

fn start(name: &str, more: &str) -> Site {
    let mut site = Site::new(name);
    site.configure(&format!(
        "LoadModule mpm_event_module x\nStartServers 1\nServerLimit 1\nLoadModule dir_module x\n\
         LoadModule authz_core_module x\nLoadModule setenvif_module x\nLoadModule alias_module x\n\
         LoadModule headers_module x\n{more}"
    ));
    site.start();
    site
}

/// A path with a query that begins with `count` times `a`.
fn path(begin: &str, count: usize) -> String {
    format!("{begin}{}!", "a".repeat(count))
}

#[test]
fn a_match_beyond_all_limits_holds_up_no_others() {
    let site = start("condition", &format!("<If \"{CONDITION}\">\nRequire all denied\n</If>\n"));
    assert_eq!(site.get(&path("/?", 60)).status, 500);
    assert_eq!(site.count_lines(LINE), 1, "{}", site.error_log());
    assert!(site.error_log().contains("'^(a+)+$'") && site.error_log().contains("match limit"));
    assert_serves_others(&site, || assert_eq!(site.get(&path("/?", 60)).status, 500));
}

#[test]
fn many_of_them_at_once_hold_up_no_others() {
    // Three kinds: before the file is known, by its name, and in the output.
    let site = start(
        "many",
        "SetEnvIf Request_URI \"^/(a+)+$\" slow\nRedirectMatch 302 \"^/b/(a+)+$\" /\n\
         Header set X-Slow yes \"expr=%{QUERY_STRING} =~ /^(a+)+$/\"\n",
    );
    let paths = [path("/", 60), path("/b/", 60), path("/?", 60), path("/index.html?", 60)];
    assert_serves_others(&site, || {
        thread::scope(|scope| {
            for (path, status) in paths.iter().zip([404, 404, 200, 200]) {
                let site = &site;
                scope.spawn(move || assert_eq!(site.get(path).status, status));
            }
        });
    });
}

#[test]
fn patterns_of_an_htaccess_hold_up_no_others() {
    let site = start("htaccess", "");
    fs::create_dir_all(site.path("htdocs/own")).unwrap();
    site.write("htdocs/own/index.html", "own\n");
    let slow = format!("<If \"{CONDITION}\">\nRequire all denied\n</If>\n");
    let long = format!("SetEnvIf User-Agent \"^(?:{}none)*$\" x\n", "bot[a-z]+|".repeat(700));
    site.write("htdocs/own/.htaccess", &format!("{}{slow}", long.repeat(20)));
    assert_serves_others(&site, || assert_eq!(site.get(&path("/own/?", 60)).status, 500));
}

#[test]
fn what_takes_long_and_is_decided_counts() {
    let more = "<If \"%{QUERY_STRING} =~ /^(a+)+$|evil/\">\nRequire all denied\n</If>\n";
    let site = start("decided", more);
    for (end, status) in [("evil", 403), ("good", 200)] {
        let asked = format!("{}{end}", path("/?", 20));
        assert_eq!(site.get(&asked).status, status, "{}", site.error_log());
    }
    assert_eq!(site.count_lines(LINE), 0, "{}", site.error_log());
}

#[test]
fn many_patterns_on_one_field_hold_up_no_others() {
    let lines: String = (0..200)
        .map(|number| format!("SetEnvIf User-Agent \"^(a+)+$|evil{number}\" bad\n"))
        .collect();
    let site = start("patterns", &lines);
    // Each takes longer than a quick match, but not long.
    let agent = format!("{}!", "a".repeat(16));
    assert_serves_others(&site, || {
        let mut client = site.client();
        let head = format!("GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: {agent}\r\n\r\n");
        client.send(head.as_bytes()).unwrap();
        assert_eq!(client.answer().unwrap().status, 200);
    });
}

#[test]
fn a_request_with_too_many_of_them_is_refused() {
    // Each alone can be decided, by a different pattern.
    let conditions: String = (0..80)
        .map(|number| {
            format!(
                "<If \"%{{QUERY_STRING}} =~ /^(a+)+$|evil{number}/\">\nRequire all denied\n</If>\n"
            )
        })
        .collect();
    let site = start("number", &conditions);
    // Each takes longer than a quick match, but not long.
    assert_eq!(site.get(&path("/?", 16)).status, 500);
    assert!(site.error_log().contains("too many costly matches"), "{}", site.error_log());
    assert_eq!(site.count_lines(LINE), 1, "{}", site.error_log());
}
